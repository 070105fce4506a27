//! Everything that reads what others have sent, for the fuzz targets in fuzz/ and the tests: nothing that comes may make it panic,
//! or be taken for what it is not.

use crate::address::Contact;
use crate::wire::{Head as Packet, Kind};
use parnass_base::lane::Message;
use parnass_base::socket::Part;
use parnass_base::{Scratch, UserAddress};
use parnass_transport::{BULK_WORD, Bulk, LENGTH_WORD};
use parnass_transport_stream::incoming::{Incoming, Notes};
use parnass_transport_stream::offers::{Answer, LONGEST, MOST};
use parnass_transport_stream::wire::{FrameKind, Head, OfferWords};
use parnass_transport_stream::{Pipe, Remote};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many decoders there are.
pub const DECODERS: usize = 3;

/// Bytes of the user that are read into.
const ROOM: usize = 64;

/// What one decoder reads, valid: for it to be changed.
pub fn sample(decoder: usize) -> Vec<u8> {
    match decoder {
        0 => Contact::new("host", "tcp;ofi_rxm", "boot", 2, vec![7; 16], true).encode(),
        1 => Packet { kind: Kind::Data, from: 1, sequence: 2, taken: 3, token: 4 }.encode().to_vec(),
        _ => frames(),
    }
}

/// Frames of rank 0: offers, of which the first cannot be read, answers to those of rank 1, and parts of the first.
fn frames() -> Vec<u8> {
    let frame = |kind, tag, words: &[u64], payload: &[u8]| {
        let (count, length) = (words.len() as u8, payload.len() as u32);
        let head = Head { kind, words: count, counted: false, tag, returned: 0, payload: length };
        let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        [&head.encode()[..], &words, payload].concat()
    };
    let offer = |number, length| {
        let words = OfferWords { word: number, offset: 0, length, key: number, address: 7, number };
        frame(FrameKind::Offer, 0, &words.encode(), &[])
    };
    [
        offer(0, 40),
        offer(1, LONGEST as u64),
        frame(FrameKind::Message, 1 << 28, &[1, 2, 3], &[]),
        frame(FrameKind::Part, 0, &[0], &[5; 30]),
        frame(FrameKind::Taken, 0, &[0], &[]),
        frame(FrameKind::Part, 0, &[0], &[6; 10]),
        frame(FrameKind::Declined, 0, &[1], &[]),
        frame(FrameKind::Instead, 0, &[2], &[]),
        frame(FrameKind::Goodbye, 0, &[], &[]),
    ]
    .concat()
}

/// Gives bytes to one decoder.
///
/// # Panics
/// If the decoder does what it must not.
pub fn decode(decoder: usize, bytes: &[u8]) {
    match decoder {
        0 => {
            if let Some(contact) = Contact::decode(bytes) {
                assert_eq!(contact.encode(), bytes);
            }
        }
        1 => {
            if let Some(bytes) = bytes.first_chunk::<{ Packet::BYTES }>()
                && let Some(packet) = Packet::decode(bytes)
            {
                assert_eq!(packet.encode(), *bytes);
            }
        }
        _ => listen(bytes),
    }
}

/// A stream that ends with these bytes, whose reads begin, and every third of which cannot.
#[derive(Debug)]
struct Ended {
    bytes: Mutex<Vec<u8>>,
    reads: Mutex<Vec<usize>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pipe for Ended {
    fn send(&self, _: &[Part<'_>]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn receive(&self, address: UserAddress, length: usize, buffer: &mut [u8]) -> io::Result<usize> {
        let mut bytes = lock(&self.bytes);
        let count = bytes.len().min(length + buffer.len());
        let rest = bytes.split_off(count);
        let taken = std::mem::replace(&mut *bytes, rest);
        let (first, rest) = taken.split_at(count.min(length));
        if !first.is_empty() {
            address.write(first);
        }
        buffer[..rest.len()].copy_from_slice(rest);
        Ok(count)
    }

    fn way(&self) -> &str {
        "memory"
    }

    fn reads(&self) -> usize {
        LONGEST
    }

    fn read(&self, name: usize, from: Remote, _: UserAddress, length: usize) -> io::Result<()> {
        assert!(length <= ROOM, "more is read than there is room for");
        if from.key.is_multiple_of(3) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        lock(&self.reads).push(name);
        Ok(())
    }

    fn finish(&self) {}

    fn cut(&self) {}
}

/// Hears what is told of a stream.
#[derive(Default)]
struct Ears {
    over: Mutex<bool>,
    /// Answers to offers, by their numbers.
    answers: Mutex<BTreeMap<u64, Vec<Answer>>>,
    /// Offers of this side that were answered.
    answered: Mutex<BTreeSet<u64>>,
}

impl Notes for Ears {
    fn credit(&self, _peer: u32, _count: usize, _given: bool) {}
    fn answer(&self, _peer: u32, number: u64, answer: Answer, _count: usize) {
        lock(&self.answers).entry(number).or_default().push(answer);
    }
    fn answered(&self, _peer: u32, number: u64, _answer: Answer) -> bool {
        number < MOST as u64 && lock(&self.answered).insert(number)
    }
    fn landed(&self, _then: Message) {}
    fn goodbye(&self, _peer: u32) {
        *lock(&self.over) = true;
    }
    fn lost(&self, _peer: u32, _error: io::Error) {
        *lock(&self.over) = true;
    }
}

/// All that rank 0 sends over a stream with reads; what it offers is read, thrown away, or left where it is.
fn listen(bytes: &[u8]) {
    let pipe = Arc::new(Ended { bytes: Mutex::new(bytes.to_vec()), reads: Mutex::default() });
    let incoming = Mutex::new(Incoming::default());
    let ears = Ears::default();
    let number = lock(&incoming).add(0, 0, pipe.clone(), None, None);
    let memory = Scratch::new(ROOM);
    let then = Message { tag: 0, words: [0; 7] };
    while !*lock(&ears.over) {
        lock(&incoming).mark(number);
        Incoming::take(|| lock(&incoming), 16, &ears, &mut |message| {
            let bulk = Bulk(message.words[BULK_WORD]);
            if bulk.0 != 0 && message.words[LENGTH_WORD] != 0 {
                match message.words[0] % 4 {
                    0 | 1 => drop(lock(&incoming).land(bulk, memory.address(), ROOM, then, &ears)),
                    2 => lock(&incoming).discard(bulk, &ears),
                    _ => (),
                }
            }
            true
        });
        for name in std::mem::take(&mut *lock(&pipe.reads)) {
            let result = if name.is_multiple_of(2) { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) };
            lock(&incoming).read(name, &result, &ears);
        }
    }
    // One answer to each, and nothing after that.
    assert!(lock(&ears.answers).values().all(|answers| answers.len() == 1), "an offer is answered twice");
}
