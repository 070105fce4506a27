//! A short message where it lies: whoever takes it copies its bytes out of its slots, and makes nothing else of them.

use crate::address::UserAddress;
use crate::atomics::Ordering;
use crate::lane::{FIRST_BYTES, HEAD, IN_RUN, Lane, STEP};
use crate::slot::{FURTHER_SHIFT, SEQUENCE, SLOT_BYTES, Slot, TAG_SHIFT};

/// The bytes of a message of one slot.
pub type ShortBytes = [u64; FIRST_BYTES / 8];

/// A message of [`HEAD`] words whose bytes have all come, and take one slot, two, or one step of a run.
#[derive(Clone, Copy, Debug)]
pub struct Short<'a> {
    first: &'a Slot,
    rest: Rest<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Rest<'a> {
    Nothing,
    Slot(&'a Slot),
    /// Where all of its bytes lie.
    Run(UserAddress),
}

impl Short<'_> {
    /// The bytes of the longest one.
    pub const MOST_BYTES: usize = STEP;

    /// See [`crate::lane::Message::tag`].
    #[inline(always)]
    pub fn tag(&self) -> u32 {
        (self.first.words[0].load(Ordering::Relaxed) >> TAG_SHIFT) as u32
    }

    /// One of its [`HEAD`] words.
    #[inline(always)]
    pub fn word(&self, index: usize) -> u64 {
        self.first.words[1 + index].load(Ordering::Relaxed)
    }

    /// Its bytes; `last`: see [`crate::lane::last_bytes`].
    #[inline(always)]
    pub fn bytes(&self, last: usize) -> usize {
        match self.rest {
            Rest::Nothing => last.min(FIRST_BYTES),
            Rest::Slot(_) => FIRST_BYTES + last.min(SLOT_BYTES),
            Rest::Run(_) => (self.word(HEAD) as usize).min(STEP),
        }
    }

    /// How many slots it takes.
    #[inline(always)]
    pub fn slots(&self) -> u64 {
        1 + u64::from(matches!(self.rest, Rest::Slot(_)))
    }

    /// Its bytes, if they take one slot.
    #[inline(always)]
    pub fn words(&self) -> Option<ShortBytes> {
        matches!(self.rest, Rest::Nothing).then(|| std::array::from_fn(|index| self.word(HEAD + index)))
    }

    /// Copies the first `length` of its bytes to `target`.
    #[inline(always)]
    pub fn copy_to(&self, target: UserAddress, length: usize) {
        let here = length.min(FIRST_BYTES);
        match self.rest {
            Rest::Nothing if length == 8 => target.write_word(self.word(HEAD)),
            Rest::Nothing => self.first.pour(HEAD, target, here),
            Rest::Slot(second) => {
                self.first.pour(HEAD, target, here);
                second.pour(0, target.offset(FIRST_BYTES as i64), length - here);
            }
            Rest::Run(run) => target.copy_apart(run, length),
        }
    }
}

impl<'a> Lane<'a> {
    /// The message at `position`, if all of it has come and is short.
    #[inline(always)]
    pub fn short(&self, position: u64) -> Option<Short<'a>> {
        let first = self.slot(position);
        // Acquire pairs with the release in `commit`.
        let word = first.words[0].load(Ordering::Acquire) ^ (position + 1) & SEQUENCE;
        if word & SEQUENCE != 0 {
            return None;
        }
        let rest = match (word as u32 >> FURTHER_SHIFT) as usize {
            0 => Rest::Nothing,
            1 if self.peek(position + 1).is_some() => Rest::Slot(self.slot(position + 1)),
            IN_RUN => Rest::Run(Lane::run_at(self.runs?, position)),
            _ => return None,
        };
        Some(Short { first, rest })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::lane::{LaneControl, Producer, RUNS_BYTES, last_bytes};

    /// What lies in up to two slots, or in one step of a run, is short, and its bytes are those that were sent.
    #[test]
    fn short_messages_of_every_length_are_read_where_they_lie() {
        let (control, slots) = (LaneControl::default(), (0..16).map(|_| Slot::default()).collect::<Vec<_>>());
        let memory = crate::Scratch::new(RUNS_BYTES);
        let lane = Lane::new(&control, &slots).with_runs(memory.address());
        let known = std::sync::atomic::AtomicU64::new(0);
        let producer = Producer { known_head: &known, alone: true, overlaps: true, hands_over: true };
        let content: Vec<u8> = (0..2 * STEP).map(|at| (at * 7 + at / 256 + 1) as u8).collect();
        let source = crate::Scratch::new(content.len());
        source.address().write(&content);
        let mut fetched = 0;
        let known_fetched = crate::atomics::AtomicU64::new(0);
        let mut met = |length: usize, is_short: bool| {
            let position = lane.head();
            let short = lane.short(position);
            assert_eq!(short.is_some(), is_short, "{length} bytes");
            let Some(short) = short else {
                let (_, slots) = lane.read(position).unwrap();
                return lane.advance(position + slots as u64);
            };
            assert_eq!((short.tag(), short.word(0), short.word(1)), (5, 7, 8));
            assert_eq!(short.bytes(last_bytes(length)), length);
            for part in [0, length.min(8), length / 2, length] {
                let target = crate::Scratch::new(length + 8);
                target.address().write(&vec![0xee; length + 8]);
                short.copy_to(target.address(), part);
                let mut seen = vec![0; length + 8];
                target.address().read(&mut seen);
                assert_eq!(seen[..part], content[..part]);
                assert!(seen[part..].iter().all(|byte| *byte == 0xee));
            }
            lane.advance(position + short.slots());
            lane.read_on(position, &known_fetched);
            assert!(known_fetched.load(Ordering::Relaxed) >= fetched);
            fetched = known_fetched.load(Ordering::Relaxed);
        };
        for length in 0..200 {
            assert!(lane.push_bytes(producer, 5, [7, 8], source.address(), length));
            met(length, length <= FIRST_BYTES + SLOT_BYTES);
        }
        for length in [1, 8, 300, STEP - 1, STEP, STEP + 1, 2 * STEP] {
            let write = |at, part: UserAddress, length| {
                part.copy_apart(source.address().offset(at as i64), length);
            };
            assert!(lane.push_run(producer, 5, [7, 8], length, write).is_some());
            met(length, length <= STEP);
        }
        assert!(lane.short(lane.head()).is_none());
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::lane::models::{send_two_of_two_slots, shared};

    /// A message of two slots, twice around a ring of two: it is short when both have come, and its slots are not written before they are given back.
    #[test]
    fn a_message_of_two_slots_is_short_when_both_have_come() {
        loom::model(|| {
            let shared = shared(2);
            let producer = send_two_of_two_slots(&shared);
            let lane = Lane::new(&shared.0, &shared.1);
            let target = crate::Scratch::new(48);
            for next in 1..=2 {
                let short = loop {
                    match lane.short(lane.head()) {
                        Some(short) => break short,
                        None => loom::thread::yield_now(),
                    }
                };
                short.copy_to(target.address(), 48);
                let (first, second) = (target.address().read_word(), target.address().offset(40).read_word());
                assert_eq!((first, second), (next, next + 3));
                lane.advance(lane.head() + short.slots());
            }
            producer.join().unwrap();
        });
    }
}
