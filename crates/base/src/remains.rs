//! What producers that have died leave in a lane that others use too.
//!
//! A producer that dies between its claim and its last commit leaves positions that nobody commits any more, and the consumer stops there.
//! So each producer of such a lane shows that it pushes ([`Pushing`]), before it claims and until it has committed. Who has learned of the death reads the
//! tail and then sees each of the living once not pushing: what is not committed before that tail now is of the dead. No producer pays more
//! for this than two stores to a line of its own.

use crate::atomics::{AtomicU32, Ordering};
use crate::lane::{Lane, NOTHING};
use crate::place::{PLACES, SHARED};

/// Which threads of a process are pushing to lanes that others use too: a cache line. Zeroed memory is nobody.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Pushing {
    /// 1 or 0 for a thread that has the place to itself; at last, how many of all others.
    threads: [AtomicU32; PLACES],
    _rest: [AtomicU32; 16 - PLACES],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Pushing>() == 64);

#[cfg(not(loom))]
// SAFETY: repr(C), made of atomics.
unsafe impl crate::record::Record for Pushing {}

impl Default for Pushing {
    fn default() -> Self {
        let nobody = |_| AtomicU32::new(0);
        Pushing { threads: std::array::from_fn(nobody), _rest: std::array::from_fn(nobody) }
    }
}

impl Pushing {
    /// Does what pushes a message, and shows it. `place`: see [`crate::place`]; any, if one thread calls.
    #[inline(always)]
    pub fn during<R>(&self, place: usize, push: impl FnOnce() -> R) -> R {
        let threads = &self.threads[place];
        // The release of the claim orders this before the tail that it leaves.
        if place == SHARED {
            threads.fetch_add(1, Ordering::Relaxed);
        } else {
            threads.store(1, Ordering::Relaxed);
        }
        let result = push();
        // Release pairs with the acquire in `is_over`. What other threads add and subtract goes on with it.
        if place == SHARED {
            threads.fetch_sub(1, Ordering::Release);
        } else {
            threads.store(0, Ordering::Release);
        }
        result
    }

    /// Whether no thread at this place pushes.
    fn is_over_at(&self, place: usize) -> bool {
        // Acquire pairs with the release in `during`: what was committed before is seen.
        self.threads[place].load(Ordering::Acquire) == 0
    }

    /// Calls `retry`, as long as that says so, until each place was seen once with nobody pushing. Then everything that this process has claimed
    /// before a tail that was read before is committed. Whether it came to that.
    pub fn is_over(&self, mut retry: impl FnMut() -> bool) -> bool {
        (0..PLACES).all(|place| {
            while !self.is_over_at(place) {
                if !retry() {
                    return false;
                }
            }
            true
        })
    }
}

impl Lane<'_> {
    /// Makes messages that say [`NOTHING`] of what is not whole before `end`, a position where no message goes on. Only who may consume may call it, and
    /// only when nobody living has claimed anything before `end` that is not committed.
    pub fn bury(&self, end: u64) {
        let mut position = self.head();
        while position < end {
            // How many positions follow one that was never committed is not known: each of these is looked at by itself. Those that were
            // committed say nothing but that they are there.
            let after = position + 1 + self.further(position).unwrap_or(0);
            if !(position..after).all(|at| self.further(at).is_some()) {
                (position..after).for_each(|at| self.slot(at).commit(at, 0, NOTHING));
            }
            position = after;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::lane::{LaneControl, Producer, RUN_BYTES, RUNS_BYTES, Slot};
    use crate::{Scratch, UserAddress};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicU64;

    /// What lies in a lane, but for what says nothing.
    fn drain(lane: &Lane) -> Vec<(u32, u64)> {
        let mut seen = Vec::new();
        while let Some((message, slots)) = lane.read(lane.head()) {
            assert!(message.is_whole());
            if message.tag != NOTHING {
                seen.push((message.tag, message.words[0]));
            }
            lane.advance(lane.head() + slots as u64);
        }
        seen
    }

    /// Producers die wherever they can in messages of one slot and more, in slots and in runs, at every place of the ring.
    #[test]
    fn what_the_dead_have_left_is_passed_and_all_else_is_there() {
        let (control, slots) = (LaneControl::default(), (0..32).map(|_| Slot::default()).collect::<Vec<_>>());
        let memory = Scratch::new(RUNS_BYTES);
        let lane = Lane::new(&control, &slots).with_runs(memory.address());
        let known = AtomicU64::new(0);
        let source = Scratch::new(1000);
        // Every word would be the commit of some position.
        for word in 0..125 {
            source.address().offset(word * 8).write_word(word as u64);
        }
        for round in 0..200u64 {
            let overlaps = round % 2 == 0;
            let producer = Producer { known_head: &known, alone: false, overlaps, hands_over: false };
            let push = |tag| assert!(lane.push(producer, tag, &[round]));
            push(1);
            if overlaps {
                // One in a run, that has shown some of it.
                let dies = |at: usize, _: UserAddress, _: usize| assert_eq!(at, 0);
                let push_run = || lane.push_run(producer, 98, [0; 2], RUN_BYTES / 2, dies);
                assert!(catch_unwind(AssertUnwindSafe(push_run)).is_err());
            }
            // One that has committed nothing, and in front of all.
            lane.claim(producer, 1 + round % 5, 32).unwrap();
            push(2);
            // One that has committed further slots, but not the first.
            let first = lane.claim(producer, 3, 32).unwrap();
            lane.slot(first + 1).commit(first + 1, 0, NOTHING);
            assert!(lane.push_bytes(producer, 3, [round, 0], source.address(), 300));
            // One that has committed the first of several, and perhaps some that follow.
            let first = lane.claim(producer, 4, 32).unwrap();
            lane.slot(first).commit(first, 3, 99);
            (0..round % 3).for_each(|at| lane.slot(first + 1 + at).commit(first + 1 + at, 0, NOTHING));
            push(4);
            let (message, taken) = lane.read(lane.head()).unwrap();
            assert_eq!((message.tag, message.words[0], taken), (1, round, 1));
            lane.advance(lane.head() + 1);
            assert!(lane.looks_empty() != overlaps);
            lane.bury(lane.tail());
            push(5);
            assert_eq!(drain(&lane), [(2, round), (3, round), (4, round), (5, round)]);
            assert_eq!(lane.head(), lane.tail());
            // Nothing to bury.
            lane.bury(lane.tail());
            assert!(lane.looks_empty());
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::lane::{LaneControl, Producer, Slot};
    use loom::sync::Arc;

    type Shared = (LaneControl, Vec<Slot>, Pushing);

    fn with_lane(shared: &Shared, work: impl FnOnce(&Lane, Producer)) {
        let known = std::sync::atomic::AtomicU64::new(0);
        let producer = Producer { known_head: &known, alone: false, overlaps: false, hands_over: false };
        work(&Lane::new(&shared.0, &shared.1), producer);
    }

    /// One dies when it has claimed, while another one pushes: that one's messages are neither lost nor taken for one of the dead.
    fn one_dies(place: usize) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let slots = (0..4).map(|_| Slot::default()).collect();
            let shared: Arc<Shared> = Arc::new((LaneControl::default(), slots, Pushing::default()));
            let other = shared.clone();
            let dying = loom::thread::spawn(move || {
                with_lane(&other, |lane, producer| assert!(lane.claim(producer, 1, 4).is_some()));
            });
            let other = shared.clone();
            let living = loom::thread::spawn(move || {
                with_lane(&other, |lane, producer| {
                    assert!(other.2.during(place, || lane.push(producer, 1, &[7])));
                    assert!(other.2.during(place, || lane.push(producer, 2, &[8])));
                });
            });
            // News of the death.
            dying.join().unwrap();
            let lane = Lane::new(&shared.0, &shared.1);
            let (mut seen, mut buried) = (Vec::new(), false);
            while seen.len() < 2 || !buried {
                if !buried {
                    let end = lane.tail();
                    buried = shared.2.is_over_at(place);
                    if buried {
                        lane.bury(end);
                    }
                }
                let head = lane.head();
                match lane.read(head) {
                    Some((message, slots)) => {
                        if message.tag != NOTHING {
                            seen.push((message.tag, message.words[0]));
                        }
                        lane.advance(head + slots as u64);
                    }
                    None => loom::thread::yield_now(),
                }
            }
            assert_eq!(seen, [(1, 7), (2, 8)]);
            living.join().unwrap();
        });
    }

    #[test]
    fn a_thread_with_a_place_pushes_while_another_producer_is_buried() {
        one_dies(0);
    }

    #[test]
    fn a_thread_without_pushes_while_another_producer_is_buried() {
        one_dies(SHARED);
    }
}
