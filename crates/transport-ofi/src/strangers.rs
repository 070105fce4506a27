//! Tests: who is not of the job gets in nowhere, and changes nothing. A bare endpoint plays the stranger.

use crate::address::Contact;
use crate::endpoint::{Completion, Endpoint, SENDING, SLOT};
use crate::engine::Engine;
use crate::library::Library;
use crate::provider::choose;
use crate::wire::{Head, Kind, VERSION};
use parnass_base::UserAddress;
use parnass_base::socket::{Part, interface_addresses};
use parnass_transport_stream::handshake::{Caller, Identity, Move};
use parnass_transport_stream::{Refusal, Refusals, Selection};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An endpoint over TCP's loopback and its contact; `None`, and the reason said, where there is none.
fn open() -> Option<(Endpoint, Contact)> {
    let opened = (|| {
        let library = Library::load().map_err(|error| error.to_string())?;
        let ways = library.ways(SLOT).map_err(|error| error.to_string())?;
        let interfaces = interface_addresses().map_err(|error| error.to_string())?;
        let selection = Selection::parse("lo")?;
        let way = choose(&ways.list, Some("tcp"), "here", &selection, &interfaces)?;
        let mut endpoint = Endpoint::open(&ways, way, false)?;
        let address = endpoint.name().map_err(|error| error.to_string())?;
        let contact = Contact::new("here", &way.provider, "", way.format, address, false);
        Ok::<_, String>((endpoint, contact))
    })();
    opened.map_err(|reason| eprintln!("skip: {reason}")).ok()
}

/// Two ranks of a job.
struct Pair {
    engines: [Engine; 2],
    refusals: [Arc<Refusals>; 2],
    contact: Contact,
}

fn pair() -> Option<Pair> {
    let (first, second) = (open()?, open()?);
    let contacts: Arc<[Contact]> = [first.1, second.1.clone()].into();
    let refusals = [Arc::new(Refusals::default()), Arc::new(Refusals::default())];
    let engine = |rank: u32, endpoint| {
        let identity = Identity::new(&[7; 32], rank, 2, false);
        Engine::new(endpoint, identity, contacts.clone(), refusals[rank as usize].clone())
    };
    let engines = [engine(0, first.0), engine(1, second.0)];
    Some(Pair { engines, refusals, contact: second.1 })
}

impl Pair {
    fn until(&mut self, what: &str, mut attempt: impl FnMut(&mut [Engine; 2]) -> bool) {
        let start = Instant::now();
        loop {
            self.engines.iter_mut().for_each(Engine::progress);
            if attempt(&mut self.engines) {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{what}");
            std::thread::yield_now();
        }
    }

    /// Rank 0 says something to rank 1, which hears it.
    fn exchange(&mut self, word: &[u8]) {
        self.engines[0].connect(1);
        self.until("a way out", |engines| engines[0].send(1, &[Part::Bytes(word)]).is_ok());
        let mut heard = vec![0; word.len() + 1];
        self.until("a word", |engines| {
            engines[1].receive(0, UserAddress::NULL, 0, &mut heard).is_ok_and(|count| count == word.len())
        });
        assert_eq!(&heard[..word.len()], word);
    }
}

/// Somebody with an endpoint of his own.
struct Stranger {
    endpoint: Endpoint,
    target: u64,
}

impl Stranger {
    fn new(target: &Contact) -> Stranger {
        let (mut endpoint, _) = open().expect("a third endpoint");
        let target = endpoint.insert(&target.address).unwrap();
        Stranger { endpoint, target }
    }

    /// Sends a packet, while the others look after theirs.
    fn send(&mut self, pair: &mut Pair, bytes: &[u8]) {
        let mut sent = false;
        pair.until("the stranger's packet", |_| {
            let mut completed = Vec::new();
            let _ = self.endpoint.progress(&mut completed);
            if sent {
                return completed.iter().any(|completion| matches!(completion, Completion::Sent(_)));
            }
            self.endpoint.slot(SENDING.start).write(bytes);
            sent = self.endpoint.send(SENDING.start, bytes.len(), self.target, false).is_ok();
            false
        });
    }
}

fn head(kind: Kind, from: u32, token: u64) -> Vec<u8> {
    Head { kind, from, sequence: 0, taken: 0, token }.encode().to_vec()
}

#[test]
fn packets_without_the_token_are_refused_and_counted() {
    let Some(mut pair) = pair() else { return };
    pair.exchange(b"first");
    let mut stranger = Stranger::new(&pair.contact);
    stranger.send(&mut pair, &[0xab; 300]);
    stranger.send(&mut pair, b"short");
    for kind in [Kind::Data, Kind::Last, Kind::Heard] {
        stranger.send(&mut pair, &[head(kind, 0, 4711), vec![1; 40]].concat());
    }
    stranger.send(&mut pair, &[head(Kind::Answer, 0, 1), vec![1; 32]].concat());
    // A rank that is not, and the rank itself.
    stranger.send(&mut pair, &head(Kind::Hello, 9, 1));
    stranger.send(&mut pair, &head(Kind::Hello, 1, 1));
    // A hello by somebody who does not know the key.
    let outsider = Identity::new(&[8; 32], 0, 2, false);
    let (_, Move::Exchange(hello, _)) = Caller::new(outsider, 1, [3; 32]) else {
        panic!("a caller speaks first")
    };
    let token = u64::from_le_bytes([3; 8]);
    stranger.send(&mut pair, &[head(Kind::Hello, 0, token), hello].concat());
    let refusals = pair.refusals[1].clone();
    pair.until("all are counted", |_| refusals.total() == 9);
    let of = [Refusal::Garbage, Refusal::Proof, Refusal::OtherJob].map(|refusal| refusals.of(refusal));
    assert_eq!(of, [2, 4, 3]);
    pair.exchange(b"second");
    assert_eq!(pair.refusals[0].total(), 0);
}

#[test]
fn who_answers_without_the_key_proves_nothing() {
    let Some(mut pair) = pair() else { return };
    let mut stranger = Stranger::new(&pair.contact);
    // A hello as a rank of this job says it: whoever has seen one can say it again. The challenge goes to the real rank.
    let (_, Move::Exchange(hello, _)) = Caller::new(Identity::new(&[7; 32], 0, 2, false), 1, [5; 32]) else {
        panic!("a caller speaks first")
    };
    let token = u64::from_le_bytes([5; 8]);
    stranger.send(&mut pair, &[head(Kind::Hello, 0, token), hello].concat());
    stranger.send(&mut pair, &[head(Kind::Answer, 0, token), vec![9; 32]].concat());
    let refusals = pair.refusals[1].clone();
    pair.until("the answer is refused", |_| refusals.of(Refusal::Proof) == 1);
    assert!(pair.engines[1].up.is_empty());
    pair.exchange(b"still here");
}

#[test]
fn any_bytes_change_nothing() {
    let Some(mut pair) = pair() else { return };
    pair.exchange(b"first");
    let mut stranger = Stranger::new(&pair.contact);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..300 {
        let length = random() as usize % 400;
        let mut bytes: Vec<u8> = (0..length).map(|_| random() as u8).collect();
        if let Some(first) = bytes.first_mut().filter(|first| **first & 1 == 0) {
            // Of this version, of any kind, from a rank of the job.
            *first = (VERSION << 4) | ((*first >> 1) & 7);
            bytes.iter_mut().skip(1).take(3).for_each(|byte| *byte = 0);
        }
        stranger.send(&mut pair, &bytes);
    }
    let refusals = pair.refusals[1].clone();
    assert!(refusals.total() > 0);
    pair.exchange(b"second");
}
