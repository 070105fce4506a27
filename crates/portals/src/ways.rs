//! The transport of a process, and the one that takes its place when processes of other worlds become its peers; and what
//! is counted for each peer.

use parnass_base::atomics::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use parnass_base::{Growing, Held, Pace};
use parnass_transport::Transport;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// The way to all peers.
pub struct Ways {
    first: Held<dyn Transport>,
    /// Reaches more than the first one, and all that it reaches.
    wider: OnceLock<Box<dyn Transport>>,
}

impl Ways {
    pub fn new(first: Arc<dyn Transport>) -> Ways {
        Ways { first: Held::new(first), wider: OnceLock::new() }
    }

    /// From now on `wider` is the transport. Once.
    pub fn widen(&self, wider: Box<dyn Transport>) {
        let _ = self.wider.set(wider);
    }
}

impl Deref for Ways {
    type Target = dyn Transport;

    #[inline(always)]
    fn deref(&self) -> &(dyn Transport + 'static) {
        match self.wider.get() {
            None => &*self.first,
            Some(wider) => &**wider,
        }
    }
}

/// What is counted for one peer.
#[derive(Debug, Default)]
pub struct Counters {
    /// Events that will come from it: ends of direct puts, and acks.
    pub outstanding: AtomicU32,
    /// What could not go to it yet, and [`LONG_WAY`].
    delayed: AtomicU32,
    dead: AtomicBool,
    /// A wait for it to take in what it was sent was in vain, and nothing has gone since that did not go at first.
    away: AtomicBool,
    /// Whether it was sent a long message since the last one came from it.
    asked: AtomicBool,
    /// How many of its last long messages came alone after that, when it had taken in all that it was sent; up to [`ANSWERS`].
    answers: AtomicU8,
    /// Of copies into memory that it reads.
    pub pace: Pace,
}

/// Nothing takes the short way to this peer: something may be wrong with what goes there.
const LONG_WAY: u32 = 1 << 31;

/// Long messages after which a peer counts as one that answers.
const ANSWERS: u8 = 2;

impl Counters {
    /// Whether a message may take the short way: nothing waits to go before it, and nothing can be wrong.
    #[inline(always)]
    pub fn is_free(&self) -> bool {
        self.delayed.load(Ordering::Relaxed) == 0
    }

    /// How much could not go yet.
    #[inline(always)]
    pub fn delayed(&self) -> u32 {
        self.delayed.load(Ordering::Relaxed) & !LONG_WAY
    }

    pub fn delay(&self) {
        self.delayed.fetch_add(1, Ordering::Relaxed);
    }

    pub fn go(&self, count: u32) {
        self.delayed.fetch_sub(count, Ordering::Relaxed);
    }

    /// From now on nothing takes the short way.
    pub fn go_the_long_way(&self) {
        self.delayed.fetch_or(LONG_WAY, Ordering::Relaxed);
    }

    /// Whether it was waited for in vain when it had not taken in what it was sent.
    pub fn is_away(&self) -> bool {
        self.away.load(Ordering::Relaxed)
    }

    /// Notes whether it was.
    pub fn note_away(&self, away: bool) {
        self.away.store(away, Ordering::Relaxed);
    }

    /// Notes that it is sent a long message; whether it answers such, or may be sending one at the same time.
    pub fn ask(&self) -> bool {
        self.asked.store(true, Ordering::Relaxed);
        self.answers.load(Ordering::Relaxed) == ANSWERS
    }

    /// Notes that a long message has come from it, and whether it has taken in all that it was sent.
    pub fn note_answer(&self, taken_in: bool) {
        let answers = self.answers.load(Ordering::Relaxed);
        let is_answer = taken_in && self.asked.load(Ordering::Relaxed);
        self.answers.store(if is_answer { (answers + 1).min(ANSWERS) } else { 0 }, Ordering::Relaxed);
        self.asked.store(false, Ordering::Relaxed);
    }

    /// Notes that the peer is dead; whether that is new.
    pub fn die(&self) -> bool {
        self.go_the_long_way();
        !self.dead.swap(true, Ordering::Relaxed)
    }

    #[inline]
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }
}

/// The counters of all peers.
#[derive(Debug)]
pub struct Tallies {
    own: Box<[Counters]>,
    /// Of processes of other worlds.
    others: Growing<Counters>,
}

impl Tallies {
    pub fn new(size: u32) -> Tallies {
        Tallies { own: (0..size).map(|_| Counters::default()).collect(), others: Growing::default() }
    }

    #[inline(always)]
    pub fn get(&self, peer: u32) -> Option<&Counters> {
        match self.own.get(peer as usize) {
            Some(counters) => Some(counters),
            None => self.others.get(peer as usize - self.own.len()),
        }
    }

    /// # Panics
    /// If there is no such peer.
    #[inline(always)]
    pub fn of(&self, peer: u32) -> &Counters {
        self.get(peer).expect("a process that was made known")
    }

    /// Those of this world.
    pub fn own(&self) -> &[Counters] {
        &self.own
    }

    /// A process of another world is a peer now.
    pub fn admit(&self, peer: u32) {
        self.others.get_or_fill(peer as usize - self.own.len(), Counters::default);
    }
}
