//! Everything that reads what others have sent, for the fuzz targets in fuzz/ and the tests: nothing that comes may make it panic,
//! or be taken for what it is not.

use crate::address::Contact;
use crate::sockets::Socket;
use parnass_base::Scratch;
use parnass_base::lane::Message;
use parnass_base::socket::Part;
use parnass_transport::{BULK_WORD, Bulk, LENGTH_WORD};
use parnass_transport_stream::handshake::{Callee, Caller, Identity, Move};
use parnass_transport_stream::incoming::{Incoming, Notes};
use parnass_transport_stream::offers::Answer;
use parnass_transport_stream::seal::{Opener, Sealer};
use parnass_transport_stream::wire::{Challenge, FrameKind, Head, Hello};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use std::io;
use std::sync::{Arc, Mutex};

const KEY: [u8; 32] = [7; 32];

/// How many decoders there are.
pub const DECODERS: usize = 4;

/// What one decoder reads, valid: for it to be changed.
///
/// # Panics
/// If the encoders do not understand each other.
pub fn sample(decoder: usize) -> Vec<u8> {
    match decoder {
        0 => Contact {
            host: "host".into(),
            machine: "boot net".into(),
            port: 4711,
            addresses: vec![crate::address::Offer {
                address: std::net::Ipv4Addr::LOCALHOST.into(),
                prefix: 8,
                doubtful: false,
            }],
        }
        .encode(),
        1 => {
            let (mut caller, first) = Caller::new(identity(0), 1, [1; 32]);
            let (mut callee, _) = Callee::new(identity(1), [2; 32]);
            let Move::Exchange(hello, _) = first else { panic!("a caller speaks first") };
            let Ok(Move::Exchange(challenge, _)) = callee.receive(&hello) else { panic!("a challenge") };
            let Ok(Move::Exchange(answer, _)) = caller.receive(&challenge) else { panic!("an answer") };
            [hello, answer, challenge].concat()
        }
        2 => frames(),
        _ => {
            let mut sealer = Sealer::new(&KEY);
            sealer.seal(&[Part::Bytes(&frames())]);
            sealer.unsent().to_vec()
        }
    }
}

/// Frames of rank 0: a message, one with a payload, credit, and a goodbye.
fn frames() -> Vec<u8> {
    let message =
        Head { kind: FrameKind::Message, words: 3, counted: false, tag: 1 << 28, returned: 0, payload: 0 };
    let payload = Head { words: 2, counted: true, payload: 40, ..message };
    let credit = Head { kind: FrameKind::Credit, words: 0, returned: 40, tag: 0, ..message };
    let goodbye = Head { kind: FrameKind::Goodbye, returned: 0, ..credit };
    let mut bytes = [&message.encode()[..], &[1; 24], &payload.encode(), &[2; 56]].concat();
    bytes.extend(credit.encode());
    bytes.extend(goodbye.encode());
    bytes
}

fn identity(me: u32) -> Identity {
    Identity::new(&KEY, me, 2, false)
}

/// Gives bytes to one decoder.
///
/// # Panics
/// If the decoder does what it must not.
pub fn decode(decoder: usize, bytes: &[u8]) {
    match decoder {
        0 => {
            if let Some(contact) = Contact::decode(bytes) {
                assert_eq!(Contact::decode(&contact.encode()), Some(contact));
            }
        }
        1 => handshake(bytes),
        2 => stream(bytes, None),
        _ => stream(bytes, Some(Opener::new(&KEY))),
    }
}

/// A caller's words to a callee, and a callee's to a caller.
fn handshake(bytes: &[u8]) {
    let (mut callee, _) = Callee::new(identity(1), [2; 32]);
    let (hello, rest) = bytes.split_at(bytes.len().min(Hello::BYTES));
    if callee.receive(hello).is_ok() {
        let (answer, _) = rest.split_at(rest.len().min(32));
        if callee.receive(answer).is_ok() {
            assert_eq!(
                &bytes[..Hello::BYTES + 32],
                &sample(1)[..Hello::BYTES + 32],
                "proved without the key"
            );
        }
    }
    let (mut caller, _) = Caller::new(identity(0), 1, [1; 32]);
    let challenge = &bytes[bytes.len().saturating_sub(Challenge::BYTES)..];
    if caller.receive(challenge).is_ok() {
        assert!(sample(1).ends_with(challenge), "proved without the key");
    }
}

/// Hears what is told of a stream.
#[derive(Default)]
struct Ears {
    over: Mutex<u32>,
    /// Why the stream was lost.
    said: Mutex<String>,
}

impl Notes for Ears {
    fn credit(&self, _peer: u32, _count: usize, _given: bool) {}
    fn answer(&self, _peer: u32, _number: u64, _answer: Answer, _count: usize) {
        panic!("nothing can be offered over TCP");
    }
    fn answered(&self, _peer: u32, _number: u64, _answer: Answer) -> bool {
        panic!("nothing is offered over TCP");
    }
    fn landed(&self, _then: Message) {}
    fn goodbye(&self, _peer: u32) {
        *self.over.lock().expect("one thread") += 1;
    }
    fn lost(&self, _peer: u32, error: io::Error) {
        *self.said.lock().expect("one thread") = error.to_string();
        *self.over.lock().expect("one thread") += 1;
    }
}

/// All that rank 0 sends over a connection; its payloads land, are thrown away, or are kept.
fn stream(bytes: &[u8], opener: Option<Opener>) {
    listen(bytes, opener, &Ears::default());
}

/// As [`stream`], told to `ears`; how many messages were taken.
fn listen(bytes: &[u8], opener: Option<Opener>, ears: &Ears) -> usize {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let Ok((near, far)) = net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None) else {
        return 0;
    };
    // What the socket does not take is cut off.
    let _ = net::send(&far, bytes, net::SendFlags::NOSIGNAL);
    drop(far);
    let incoming = Mutex::new(Incoming::default());
    let lock = || incoming.lock().expect("one thread");
    let number = lock().add(0, 0, Arc::new(Socket::new(near, &[])), opener, None);
    let memory = Scratch::new(64);
    let mut taken = 0;
    let then = Message { tag: 0, words: [0; 7] };
    // The kernel tells of a stream until its end was seen.
    while *ears.over.lock().expect("one thread") == 0 {
        lock().mark(number);
        taken += Incoming::take(lock, 16, ears, &mut |message| {
            let payload = message.words[BULK_WORD];
            if payload != 0 && message.words[LENGTH_WORD] != 0 {
                match message.words[0] % 3 {
                    0 => drop(lock().land(Bulk(payload), memory.address(), 64, then, ears)),
                    1 => lock().discard(Bulk(payload), ears),
                    _ => (),
                }
            }
            true
        });
    }
    lock().mark(number);
    assert!(!lock().has_ready(), "a stream that has ended is looked at again");
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_that_never_travel_end_the_stream() {
        let taken = |kind: u32| {
            let head = Head {
                kind: FrameKind::Message,
                words: 0,
                counted: false,
                tag: kind << 28,
                returned: 0,
                payload: 0,
            };
            let ears = Ears::default();
            let taken = listen(&head.encode(), None, &ears);
            let said = ears.said.lock().unwrap().clone();
            (taken, said)
        };
        for kind in [1, 2, 4, 7, 8, 9, 10, 13] {
            assert_eq!(taken(kind), (1, "unexpected end of file".to_owned()), "{kind}");
        }
        for kind in [3, 5, 6, 11, 12, 14, 15] {
            let (taken, said) = taken(kind);
            assert!(taken == 0 && said.contains("never travels between nodes"), "{kind}: {said}");
        }
    }

    #[test]
    fn a_message_that_names_a_payload_which_it_has_not() {
        let head = Head {
            kind: FrameKind::Message,
            words: 7,
            counted: false,
            tag: 1 << 28,
            returned: 0,
            payload: 0,
        };
        for name in [1u64, 2, u64::MAX] {
            for what in 0..3u64 {
                let words = [what, 0, 0, 0, 0, name, 9].map(u64::to_le_bytes).concat();
                decode(2, &[&head.encode()[..], &words].concat());
            }
        }
    }
}
