//! What is counted of connections, and told of them.

use crate::handshake::Refusal;
use parnass_base::atomics::{AtomicU64, Ordering};
use parnass_counters as counters;
use parnass_counters::{Counters, Observer};
use std::sync::{Arc, OnceLock};

/// Where a process counts, and who is told.
#[derive(Debug)]
pub struct Books {
    pub counters: Counters,
    pub observer: Arc<Observer>,
}

impl Books {
    /// There is a connection now.
    pub(crate) fn connected(&self, peer: u32) {
        self.counters.count_any(counters::NETWORK_CONNECTIONS, 1);
        self.observer.raise(counters::CONNECTION_MADE, &[peer.into()]);
    }

    /// A connection was refused.
    pub(crate) fn refused(&self, refusal: Refusal) {
        self.counters.count_any(counters::NETWORK_REFUSED, 1);
        self.observer.raise(counters::CONNECTION_REFUSED, &[refusal as u64]);
    }

    /// So many bytes were written at once.
    #[inline]
    pub(crate) fn wrote(&self, bytes: usize) {
        self.counters.count_any(counters::NETWORK_WRITES, 1);
        self.counters.count_any(counters::NETWORK_SENT_BYTES, bytes as u64);
    }

    /// So many bytes were read out of a peer's memory.
    pub(crate) fn took(&self, bytes: usize) {
        self.counters.count_any(counters::NETWORK_READS, 1);
        self.counters.count_any(counters::NETWORK_READ_BYTES, bytes as u64);
    }

    /// What could not be read out of a peer's memory is sent.
    pub(crate) fn failed_to_take(&self) {
        self.counters.count_any(counters::NETWORK_FAILED_READS, 1);
    }

    /// So many bytes were read.
    #[inline]
    pub(crate) fn read(&self, bytes: usize) {
        self.counters.count_any(counters::NETWORK_RECEIVED_BYTES, bytes as u64);
    }
}

/// How many connections were refused, by reason.
#[derive(Debug, Default)]
pub struct Refusals([AtomicU64; 6], OnceLock<Books>);

impl Refusals {
    const REASONS: [Refusal; 6] = [
        Refusal::Garbage,
        Refusal::Version,
        Refusal::OtherJob,
        Refusal::Proof,
        Refusal::Slow,
        Refusal::Crowd,
    ];

    /// Where a process counts them, and everything else that is counted of its streams. Once, before there are any.
    pub fn count_in(&self, books: Books) {
        let _ = self.1.set(books);
    }

    pub(crate) fn books(&self) -> Option<&Books> {
        self.1.get()
    }

    /// Notes one.
    pub fn count(&self, refusal: Refusal) {
        if let Some(books) = self.books() {
            books.refused(refusal);
        }
        self.0[refusal as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Those that were refused for `refusal`.
    pub fn of(&self, refusal: Refusal) -> u64 {
        self.0[refusal as usize].load(Ordering::Relaxed)
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        Self::REASONS.iter().map(|refusal| self.of(*refusal)).sum()
    }
}
