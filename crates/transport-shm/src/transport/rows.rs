//! How messages travel that follow each other without an answer, found out by the time that rows of them take.
//!
//! A run shows its bytes while they are written, which a lone message gains by. In a row it matters more that its memory is not in the cache of who has just
//! read it: runs of a lane are written again while they are still there; pieces of bulk memory take turns until they have left that cache. Which costs less
//! depends on the length, on the processor, and on how near to each other the cores are.

use parnass_base::atomics::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use parnass_base::choice::Choice;
use parnass_base::clock;

/// Messages of a row up to so many bytes go by runs.
const IN_RUNS: usize = 2 << 10;
/// Lengths that are told apart: up to 4, 8 and more KiB.
const CLASSES: usize = 3;
/// Messages whose time is taken together.
const TIMED: u32 = 32;

/// What is known of the rows to one peer.
#[derive(Debug, Default)]
pub(super) struct Rows {
    ways: [Choice<2>; CLASSES],
    /// The length of those whose time is taken, how many there were, when the first one began, and how much was carved then.
    class: AtomicU32,
    messages: AtomicU32,
    began: AtomicU64,
    carved: AtomicU32,
    /// Whether the next message has been told already to take a piece.
    told: AtomicBool,
}

impl Rows {
    /// Whether a message of a row goes by a piece and not by a run. The same message may be asked about twice. `carved`: bytes of which this process has made
    /// pieces; new ones cost both sides a fault of a page, which says nothing of later ones.
    #[inline]
    pub(super) fn leaves_runs(&self, length: usize, carved: u32) -> bool {
        if length <= IN_RUNS || self.told.swap(false, Ordering::Relaxed) {
            return length > IN_RUNS;
        }
        let class = usize::from(length > 4 << 10) + usize::from(length > 8 << 10);
        let leaves = self.next(class, carved, clock::nanoseconds) == 0;
        self.told.store(leaves, Ordering::Relaxed);
        leaves
    }

    /// The way of the next message. Where several threads ask at once, some of what they learn is lost.
    fn next(&self, class: usize, carved: u32, now: impl FnOnce() -> u64) -> usize {
        let is_other = class as u32 != self.class.load(Ordering::Relaxed);
        let messages = if is_other { 0 } else { self.messages.load(Ordering::Relaxed) };
        if messages == 0 || messages == TIMED {
            let now = now();
            if messages == TIMED && carved == self.carved.load(Ordering::Relaxed) {
                let took = now.saturating_sub(self.began.load(Ordering::Relaxed));
                let choice = &self.ways[class];
                choice.learn(choice.way(), TIMED as usize, took);
            }
            self.class.store(class as u32, Ordering::Relaxed);
            self.messages.store(1, Ordering::Relaxed);
            self.began.store(now, Ordering::Relaxed);
            self.carved.store(carved, Ordering::Relaxed);
        } else {
            self.messages.store(messages + 1, Ordering::Relaxed);
        }
        self.ways[class].way()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_the_way_that_takes_less_time_for_their_length() {
        let rows = Rows::default();
        let now = AtomicU64::new(1);
        // Longer messages take less time by the other way; sometimes something short comes between.
        let send = |class: usize| {
            let way = rows.next(class, 0, || now.load(Ordering::Relaxed));
            let took = [[400, 900], [5000, 700], [6000, 6100]][class][way];
            now.fetch_add(took, Ordering::Relaxed);
            way
        };
        for number in 0..100_000 {
            send(number / 1000 % CLASSES);
        }
        for (class, fastest) in [(0, 0), (1, 1)] {
            let went = (0..4000).filter(|_| send(class) == fastest).count();
            assert!(went > 3600, "class {class}: {went} of 4000");
        }
    }

    #[test]
    fn what_new_pieces_cost_says_nothing_of_the_way() {
        let rows = Rows::default();
        let went = |pieces: u32| rows.next(0, pieces, || 9000 * u64::from(pieces + 1));
        assert!((0..10_000).all(|pieces| went(pieces) == 0), "pieces are left, as if they were always new");
    }

    #[test]
    fn a_message_that_is_asked_about_twice_is_told_the_same_and_counts_once() {
        let rows = Rows::default();
        for number in 0..10 {
            assert_eq!(rows.messages.load(Ordering::Relaxed), number);
            assert!(rows.leaves_runs(4000, 0), "the first way");
            assert!(rows.leaves_runs(4000, 0));
        }
        assert!(!rows.leaves_runs(IN_RUNS, 0));
    }
}
