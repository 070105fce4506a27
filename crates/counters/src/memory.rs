//! The memory in which a process counts.
//!
//! ```text
//! line 0        whether several threads count, what is watched; the stripe of a process with one thread
//! lines 1 to 7  stripes for several threads
//! then          a word for each of the other counters, in the order of the table
//! at the end    high-water marks that start anew when a tool says so
//! ```
//! On the path of a short message a count is a load, an addition and a store: while one thread of the program calls, it alone
//! writes the first stripe. When there are several, the first six take one of the others each, and the rest share the last.

use crate::table::{POSTED_MOST, STRIPE_WORDS, UNEXPECTED_MOST, WORDS};
use crate::{Any, Home, Locked, Program, Stripe};
use parnass_base::atomics::{AtomicU32, AtomicU64, Ordering};
use parnass_base::{Placed, Window, place, record};

/// How much memory that is.
pub const BYTES: usize = 2048;
/// Stripes besides the first.
const STRIPES: usize = place::PLACES;
const STRIPE_ROOM: usize = 8;
/// Room for high-water marks that are watched.
const MARKS: usize = 4;
/// Room for words.
const WORD_ROOM: usize = (BYTES - 64 - STRIPES * 64) / 8 - MARKS;

const _: () = assert!(WORDS <= WORD_ROOM && STRIPE_WORDS < STRIPE_ROOM);
const _: () = assert!(size_of::<Block>() == BYTES);

record! {
    #[derive(Debug)]
    #[repr(align(64))]
    struct Block {
        several: AtomicU32,
        watch: AtomicU32,
        first: [AtomicU64; STRIPE_ROOM - 1],
        stripes: [[AtomicU64; STRIPE_ROOM]; STRIPES],
        words: [AtomicU64; WORD_ROOM],
        marks: [AtomicU64; MARKS],
    }
}

/// What somebody wants to know beyond the counts; bits of [`Counters::watch`].
pub mod watch {
    /// How long calls wait: a tool in the process asks.
    pub const TIMES: u32 = 1;
    /// The same: the launcher asks.
    pub const TIMES_OUTSIDE: u32 = 2;
    /// Events: the process wants to see its own arrivals, and nobody else takes them in for it.
    pub const EVENTS: u32 = 4;
    /// High-water marks since some moment.
    pub const MARKS: u32 = 8;
    /// Any of those about times.
    pub const ANY_TIMES: u32 = TIMES | TIMES_OUTSIDE;
}

/// A high-water mark: the word of the highest level of all, and the place of the one since a tool has asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    kept: Locked,
    watched: usize,
}

/// Of [`UNEXPECTED_MOST`].
pub const UNEXPECTED_MARK: Mark = Mark { kept: UNEXPECTED_MOST, watched: 0 };
/// Of [`POSTED_MOST`].
pub const POSTED_MARK: Mark = Mark { kept: POSTED_MOST, watched: 1 };

impl Mark {
    /// The mark of a counter.
    pub fn of(home: Home) -> Option<Mark> {
        [UNEXPECTED_MARK, POSTED_MARK].into_iter().find(|mark| home == Home::Locked(mark.kept))
    }
}

/// A view of the memory in which one process counts. Zeroed memory is a process that has counted nothing.
#[derive(Clone, Debug)]
pub struct Counters(Placed<Block>);

/// Adds without a locked instruction: nobody else writes this word now.
#[inline(always)]
fn add(word: &AtomicU64, amount: u64) {
    word.store(word.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
}

impl Counters {
    /// Those in the first [`BYTES`] bytes of `memory`.
    ///
    /// # Panics
    /// If it is shorter, or not aligned to a cache line.
    pub fn new(memory: &Window) -> Counters {
        Counters(memory.record(0))
    }

    /// Counts a short message on its way out, by a thread of the program.
    #[inline(always)]
    pub fn sent_short(&self, bytes: u64) {
        let block = &*self.0;
        if block.several.load(Ordering::Relaxed) == 0 {
            add(&block.first[0], 1);
            add(&block.first[1], bytes);
        } else {
            self.sent_short_beside_others(bytes);
        }
    }

    #[inline(never)]
    fn sent_short_beside_others(&self, bytes: u64) {
        let own = place::own();
        let stripe = &self.0.stripes[own];
        if own != place::SHARED {
            add(&stripe[0], 1);
            add(&stripe[1], bytes);
        } else {
            stripe[0].fetch_add(1, Ordering::Relaxed);
            stripe[1].fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// As [`Counters::sent_short`], by any thread.
    pub fn sent_short_by_any(&self, bytes: u64) {
        self.sent_short_beside_others(bytes);
    }

    /// Counts something, with the lock of the process's network interface held.
    #[inline(always)]
    pub fn count_locked(&self, which: Locked, amount: u64) {
        add(&self.0.words[which.0], amount);
    }

    /// Counts something, by a thread of the program.
    #[inline(always)]
    pub fn count(&self, which: Program, amount: u64) {
        let block = &*self.0;
        if block.several.load(Ordering::Relaxed) == 0 {
            add(&block.words[which.0], amount);
        } else {
            block.words[which.0].fetch_add(amount, Ordering::Relaxed);
        }
    }

    /// Counts something, by any thread.
    #[inline]
    pub fn count_any(&self, which: Any, amount: u64) {
        self.0.words[which.0].fetch_add(amount, Ordering::Relaxed);
    }

    /// Notes the level of something, with the lock of the process's network interface held.
    #[inline(always)]
    pub fn note_level(&self, mark: Mark, level: u64) {
        let block = &*self.0;
        let word = &block.words[mark.kept.0];
        if level > word.load(Ordering::Relaxed) {
            word.store(level, Ordering::Relaxed);
        }
        if block.watch.load(Ordering::Relaxed) & watch::MARKS != 0 {
            self.note_watched(mark, level);
        }
    }

    #[cold]
    fn note_watched(&self, mark: Mark, level: u64) {
        let word = &self.0.marks[mark.watched];
        if level > word.load(Ordering::Relaxed) {
            word.store(level, Ordering::Relaxed);
        }
    }

    /// The highest level since the last [`Counters::begin_mark`].
    pub fn watched_mark(&self, mark: Mark) -> u64 {
        self.0.marks[mark.watched].load(Ordering::Relaxed)
    }

    /// Lets a watched mark begin anew at `level`, with the lock of the process's network interface held; what it was.
    pub fn begin_mark(&self, mark: Mark, level: u64) -> u64 {
        let word = &self.0.marks[mark.watched];
        let before = word.load(Ordering::Relaxed);
        word.store(level, Ordering::Relaxed);
        before
    }

    /// From now on several threads of the program count. To be called while only one does.
    pub fn several_threads(&self) {
        self.0.several.store(1, Ordering::Relaxed);
    }

    /// What is watched: bits of [`mod@watch`].
    #[inline(always)]
    pub fn watch(&self) -> u32 {
        self.0.watch.load(Ordering::Relaxed)
    }

    /// Begins to watch something.
    pub fn begin_watch(&self, what: u32) {
        self.0.watch.fetch_or(what, Ordering::Relaxed);
    }

    /// Ends watching something.
    pub fn end_watch(&self, what: u32) {
        self.0.watch.fetch_and(!what, Ordering::Relaxed);
    }

    /// The value of a counter that is kept; 0 for one that is asked for.
    pub fn read(&self, home: Home) -> u64 {
        let word = |at: usize| self.0.words[at].load(Ordering::Relaxed);
        match home {
            Home::Stripe(Stripe(at)) => {
                let others = self.0.stripes.iter().map(|stripe| stripe[at].load(Ordering::Relaxed));
                others.fold(self.0.first[at].load(Ordering::Relaxed), u64::wrapping_add)
            }
            Home::Locked(Locked(at)) | Home::Program(Program(at)) | Home::Any(Any(at)) => word(at),
            Home::Asked => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::*;
    use parnass_base::{PAGE, Region};
    use std::sync::Arc;

    fn memory() -> Window {
        Region::private(PAGE).unwrap().window(PAGE - BYTES, BYTES)
    }

    #[test]
    fn what_is_counted_is_read_from_another_view() {
        let memory = memory();
        let (own, outside) = (Counters::new(&memory), Counters::new(&memory));
        own.sent_short(10);
        own.sent_short_by_any(5);
        own.count_locked(RECEIVED_SHORT_MESSAGES, 3);
        own.count(WINDOW_PUTS, 2);
        own.count_any(SLEEPS, 4);
        assert_eq!(outside.read(Home::Stripe(SENT_SHORT_MESSAGES)), 2);
        assert_eq!(outside.read(Home::Stripe(SENT_SHORT_BYTES)), 15);
        assert_eq!(outside.read(Home::Locked(RECEIVED_SHORT_MESSAGES)), 3);
        assert_eq!(outside.read(Home::Program(WINDOW_PUTS)), 2);
        assert_eq!(outside.read(Home::Any(SLEEPS)), 4);
        assert_eq!(outside.read(Home::Asked), 0);
    }

    #[test]
    fn several_threads_lose_nothing() {
        let counters = Arc::new(Counters::new(&memory()));
        counters.sent_short(1);
        counters.several_threads();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        counters.sent_short(2);
                        counters.count(WAITS, 1);
                    }
                });
            }
        });
        assert_eq!(counters.read(Home::Stripe(SENT_SHORT_MESSAGES)), 80_001);
        assert_eq!(counters.read(Home::Stripe(SENT_SHORT_BYTES)), 160_001);
        assert_eq!(counters.read(Home::Program(WAITS)), 80_000);
    }

    #[test]
    fn a_watched_mark_begins_anew_and_the_other_stays() {
        let counters = Counters::new(&memory());
        counters.note_level(UNEXPECTED_MARK, 9);
        counters.begin_watch(watch::MARKS);
        assert_eq!(counters.begin_mark(UNEXPECTED_MARK, 2), 0);
        counters.note_level(UNEXPECTED_MARK, 4);
        counters.note_level(UNEXPECTED_MARK, 3);
        assert_eq!(counters.watched_mark(UNEXPECTED_MARK), 4);
        assert_eq!(counters.read(Home::Locked(UNEXPECTED_MOST)), 9);
        counters.end_watch(watch::MARKS);
        counters.note_level(UNEXPECTED_MARK, 20);
        assert_eq!(counters.watched_mark(UNEXPECTED_MARK), 4);
        assert!(Mark::of(Home::Locked(POSTED_MOST)).is_some() && Mark::of(Home::Any(SLEEPS)).is_none());
    }
}
