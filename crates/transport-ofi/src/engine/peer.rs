//! What is known of a peer that has proved to be of the job.

use std::collections::VecDeque;
use std::io;

/// Bytes that have come and are not taken yet.
#[derive(Debug)]
pub enum Chunk {
    Copy { bytes: Vec<u8>, start: usize },
    Slot { slot: usize, start: usize, end: usize },
}

/// Why a stream has ended: kind and words of an error, to be told more than once.
pub type Failure = (io::ErrorKind, String);

pub fn failure(error: &io::Error) -> Failure {
    (error.kind(), error.to_string())
}

/// A peer that has proved to be of the job.
#[derive(Debug)]
pub struct Peer {
    /// What packets to it and from it bear.
    pub tokens: [u64; 2],
    /// The numbers of the next packet to it and from it.
    pub next: [u32; 2],
    /// Bytes sent to it, those that it has taken, those taken of its own, and those of which it knows that: modulo 2^32.
    pub sent: u32,
    pub taken: u32,
    pub consumed: u32,
    pub told: u32,
    pub queue: VecDeque<Chunk>,
    pub queued: usize,
    pub spare: Vec<u8>,
    /// Its number among the streams, once it has one.
    pub number: Option<usize>,
    /// Whether it stands among those that have something.
    pub noted: bool,
    /// Its sends that have not completed.
    pub outstanding: usize,
    pub failure: Option<Failure>,
    /// Either side has said goodbye: nothing that comes matters any more.
    pub over: bool,
    /// Its last packet has arrived, and it is owed an answer to that; it has heard this side's last.
    pub leaving: bool,
    pub owed: bool,
    pub heard: bool,
}

impl Peer {
    /// One with which a handshake is over just now; `tokens` are those of packets to it and from it.
    pub fn new(tokens: [u64; 2]) -> Peer {
        Peer {
            tokens,
            next: [0; 2],
            sent: 0,
            taken: 0,
            consumed: 0,
            told: 0,
            queue: VecDeque::new(),
            queued: 0,
            spare: Vec::new(),
            number: None,
            noted: false,
            outstanding: 0,
            failure: None,
            over: false,
            leaving: false,
            owed: false,
            heard: false,
        }
    }
}
