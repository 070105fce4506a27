//! A mailbox lane: a ring of messages of one cache line and more, with many producers and one consumer at a time.
//!
//! ```text
//! control   line 0: tail (producers)       line 1: head (consumer)
//! slot      word 0: sequence (24 bits, position + 1) | slots that follow (8 bits) | tag (32 bits)     words 1..7: the message
//! further   word 0: sequence (24 bits, position + 1) | 0                                              words 1..7: its bytes
//! ```
//! A producer claims positions by moving the tail, fills the slots, and commits each by writing its word 0 last. With
//! one producer the tail stays in its cache; the consumer polls nothing but the next slot. Slots are given back
//! by moving the head, which producers read only when the ring looks full.
//!
//! Bytes of a message that is too long to lie in slots lie in a *run*: memory beside the ring, one for each few positions, whose
//! lines hold nothing else. The message takes a slot for each [`STEP`] of them, the commit of which says that they are there.
//! A run is free again when the positions of its message are given back.
//!
//! Word 0 of every slot is its sequence, also where a long message goes on: so no byte of a message is ever taken for a
//! commit, and the consumer may copy the first slots out while the producer still fills the last ones.

use crate::address::UserAddress;
pub use crate::arrived::Arrived;
use crate::atomics::{AtomicU64, Ordering, fetch_to_read, fetch_to_write, hand_over, spin_loop};
pub use crate::short::{Short, ShortBytes};
use crate::slot::{FURTHER_SHIFT, SEQUENCE, SLOT_BYTES, TAG_SHIFT, fill};
pub use crate::slot::{Slot, WORDS, read_words, write_words};

/// Words before the bytes of a message, see [`Lane::push_bytes`].
pub const HEAD: usize = 2;
/// Bytes that fit behind them in the first slot.
pub const FIRST_BYTES: usize = (WORDS - HEAD) * 8;
/// Slots that a message can have after its first.
pub const MOST_FURTHER: usize = 127;
/// In the number of slots that follow: the bytes lie in a run, and their number in the first word behind the head.
pub(crate) const IN_RUN: usize = 128;
/// Positions of a lane that have places for runs, and from one place to the next.
pub const RUNS: usize = 64;
const RUN_STRIDE: usize = 4 << 10;
/// Bytes of the longest run, which takes up the places of the positions that follow too.
pub const RUN_BYTES: usize = 16 << 10;
/// Memory for the runs of a lane. A run that begins near the end goes on behind the last place.
pub const RUNS_BYTES: usize = RUNS * RUN_STRIDE + RUN_BYTES - RUN_STRIDE;
/// Bytes of a run that are shown at once.
pub(crate) const STEP: usize = 2 << 10;
const _: () = assert!(STEP <= RUN_STRIDE && RUN_BYTES / STEP <= RUNS);
/// So many slots ahead of the one that it fills a producer has the line of a slot brought to it, where a message takes one slot: the stores of a
/// call fill the processor's store buffer, so that the lines of very few messages would be on their way at once.
const WRITTEN_AHEAD: usize = 16;
/// So many slots ahead of the one that it reads a consumer does so, where messages follow each other: nearer ones are there
/// too late, further ones may not be written yet, and would be taken from their writer once more.
const READ_AHEAD: u64 = 4;
/// Looks at a slot that its producer is just filling. Afterwards the whole message counts as not there yet: the
/// producer may have lost its processor.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 2_000 };

/// The tag of what is no message: of further slots, and of what producers that died have left ([`crate::remains`]).
pub const NOTHING: u32 = 0;

/// A message: 32 bits of tag and seven words, all opaque here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Opaque but for [`NOTHING`]; typically kind, length and source.
    pub tag: u32,
    /// Opaque.
    pub words: [u64; WORDS],
}

/// Head and tail, each on its own cache line. Zeroed memory is an empty lane.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct LaneControl {
    tail: AtomicU64,
    _tail_line: [AtomicU64; 7],
    head: AtomicU64,
    _head_line: [AtomicU64; 7],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<LaneControl>() == 128);

#[cfg(not(loom))]
// SAFETY: repr(C), made of atomics.
unsafe impl crate::record::Record for LaneControl {}

fn zeros<const N: usize>() -> [AtomicU64; N] {
    std::array::from_fn(|_| AtomicU64::new(0))
}

impl Default for LaneControl {
    fn default() -> Self {
        LaneControl {
            tail: AtomicU64::new(0),
            _tail_line: zeros(),
            head: AtomicU64::new(0),
            _head_line: zeros(),
        }
    }
}

/// How many slots a message of [`HEAD`] words and `bytes` bytes has after its first.
#[inline(always)]
fn further(bytes: usize) -> usize {
    if bytes <= FIRST_BYTES { 0 } else { (bytes - FIRST_BYTES).div_ceil(SLOT_BYTES) }
}

/// How many of `bytes` bytes are in the last slot.
#[inline(always)]
pub fn last_bytes(bytes: usize) -> usize {
    if bytes <= FIRST_BYTES { bytes } else { (bytes - FIRST_BYTES - 1) % SLOT_BYTES + 1 }
}

/// The bytes of a message with so many slots after its first, and so many bytes in the last.
#[inline(always)]
pub(crate) fn bytes(further: usize, last: usize) -> usize {
    if further == 0 { last } else { FIRST_BYTES + (further - 1) * SLOT_BYTES + last }
}

/// What a sender brings along.
#[derive(Clone, Copy, Debug)]
pub struct Producer<'a> {
    /// Its memory of the head, shared by the threads of a process.
    pub known_head: &'a std::sync::atomic::AtomicU64,
    /// Whether nobody else, in no thread and no process, sends on this lane: then nothing is read and modified at once.
    pub alone: bool,
    /// Whether the first slot of a message of more than two is committed before the others are filled, so that the consumer reads while
    /// this producer writes. Not where the two may share a processor: who loses it half-way leaves
    /// the other waiting.
    pub overlaps: bool,
    /// Whether slots are handed over to the consumer's core, and later ones fetched. Not by who soon makes an instruction with a lock, which waits until
    /// that is done, unless its message is awaited.
    pub hands_over: bool,
}

/// Views of a lane's parts, whoever keeps them. The number of slots is a power of two.
#[derive(Clone, Copy, Debug)]
pub struct Lane<'a> {
    control: &'a LaneControl,
    slots: &'a [Slot],
    /// Where its runs lie, if it has any.
    pub(crate) runs: Option<UserAddress>,
}

impl<'a> Lane<'a> {
    /// A lane from its parts.
    ///
    /// # Panics
    /// If the number of slots is not a power of two.
    #[inline(always)]
    pub fn new(control: &'a LaneControl, slots: &'a [Slot]) -> Lane<'a> {
        assert!(slots.len().is_power_of_two());
        Lane { control, slots, runs: None }
    }

    /// The lane with [`RUNS_BYTES`] of memory for runs. All who use it give the same.
    #[must_use]
    #[inline(always)]
    pub fn with_runs(self, runs: UserAddress) -> Lane<'a> {
        Lane { runs: Some(runs), ..self }
    }

    /// The run of a message at `position`, which takes as many positions as it has steps.
    #[inline(always)]
    pub(crate) fn run_at(runs: UserAddress, position: u64) -> UserAddress {
        runs.offset(Lane::run_offset(position))
    }

    #[inline(always)]
    pub(crate) fn run_offset(position: u64) -> i64 {
        (position as usize % RUNS * RUN_STRIDE) as i64
    }

    #[inline(always)]
    pub(crate) fn slot(&self, position: u64) -> &'a Slot {
        &self.slots[position as usize & (self.slots.len() - 1)]
    }

    /// The slots from `position` on that follow one another in memory, at most `most`.
    #[inline(always)]
    pub(crate) fn row(&self, position: u64, most: usize) -> &'a [Slot] {
        let first = position as usize & (self.slots.len() - 1);
        &self.slots[first..self.slots.len().min(first + most)]
    }

    /// Sends `words` (at most seven; the rest of the slot keeps old content) unless the ring is full.
    #[inline(always)]
    pub fn push(&self, producer: Producer<'_>, tag: u32, words: &[u64]) -> bool {
        let Some(position) = self.claim(producer, 1, self.slots.len()) else { return false };
        let slot = self.slot(position);
        for (cell, word) in slot.words[1..].iter().zip(words) {
            cell.store(*word, Ordering::Relaxed);
        }
        slot.commit(position, 0, tag);
        true
    }

    /// Sends two words and behind them `length` bytes from `source`, unless the ring is full. [`further`] of `length` must
    /// not be more than [`MOST_FURTHER`], and less than the ring has slots.
    #[inline(always)]
    pub fn push_bytes(
        &self,
        producer: Producer<'_>,
        tag: u32,
        head: [u64; HEAD],
        source: UserAddress,
        length: usize,
    ) -> bool {
        let further = further(length);
        debug_assert!(further <= MOST_FURTHER && further < self.slots.len());
        let Some(first) = self.claim(producer, 1 + further as u64, self.slots.len()) else { return false };
        self.put_bytes(first, producer, tag, head, source, length);
        true
    }

    /// Writes such a message to the slots from `first` on, which are this producer's.
    #[inline(always)]
    pub(crate) fn put_bytes(
        &self,
        first: u64,
        producer: Producer<'_>,
        tag: u32,
        head: [u64; HEAD],
        source: UserAddress,
        length: usize,
    ) {
        let further = further(length);
        let slot = self.slot(first);
        for (cell, word) in slot.words[1..].iter().zip(head) {
            cell.store(word, Ordering::Relaxed);
        }
        // Apart: together with what follows it takes ten instructions more.
        if length == 8 {
            slot.words[1 + HEAD].store(source.read_word(), Ordering::Relaxed);
            slot.commit(first, 0, tag);
            if producer.overlaps {
                self.hand_on(producer, slot, first);
            }
            return;
        }
        if further == 0 {
            slot.fill(HEAD, source, length);
            slot.commit(first, 0, tag);
            if producer.overlaps {
                self.hand_on(producer, slot, first);
            }
            return;
        }
        slot.fill(HEAD, source, FIRST_BYTES);
        // Of two slots the first is committed last: who looks for it does not take the second from this core before that is written.
        if further == 1 {
            let second = self.slot(first + 1);
            second.fill(0, source.offset(FIRST_BYTES as i64), length - FIRST_BYTES);
            second.commit_further(first + 1, producer.hands_over);
            slot.commit(first, 1, tag);
            if producer.hands_over {
                hand_over(slot);
            }
            return;
        }
        if producer.overlaps {
            slot.commit(first, further, tag);
            if producer.hands_over {
                hand_over(slot);
            }
        }
        let (mut position, end) = (first + 1, first + 1 + further as u64);
        let mut done = FIRST_BYTES;
        while position < end {
            let row = self.row(position, (end - position) as usize);
            let whole = row.len().min((length - done) / SLOT_BYTES);
            fill(&row[..whole], position, source.offset(done as i64), producer.hands_over);
            done += whole * SLOT_BYTES;
            if whole < row.len() {
                let slot = &row[whole];
                slot.fill(0, source.offset(done as i64), length - done);
                slot.commit_further(position + whole as u64, producer.hands_over);
            }
            position += row.len() as u64;
        }
        if !producer.overlaps {
            slot.commit(first, further, tag);
        }
    }

    /// Hands the slot at `position` over to the consumer, and has another one brought here for a message to come.
    #[inline(always)]
    fn hand_on(&self, producer: Producer<'_>, slot: &Slot, position: u64) {
        if producer.hands_over {
            hand_over(slot);
            // In a short ring that one may not have been read yet.
            let ahead = WRITTEN_AHEAD.min(self.slots.len() / 4);
            fetch_to_write(self.slot(position + ahead as u64));
        }
    }

    /// As [`Lane::push_bytes`], for at most [`RUN_BYTES`] bytes, which go into a run: `write` is told for each part where it starts in the
    /// message, where it belongs, and how long it is. The run of the message that comes next; `None`: there is none for this one now.
    #[inline(never)]
    pub fn push_run(
        &self,
        producer: Producer<'_>,
        tag: u32,
        head: [u64; HEAD],
        length: usize,
        write: impl FnMut(usize, UserAddress, usize),
    ) -> Option<UserAddress> {
        let runs = self.runs?;
        let steps = length.div_ceil(STEP);
        // So that no other message that is there has a position with the same run.
        let first = self.claim(producer, steps as u64, RUNS.min(self.slots.len()))?;
        self.put_run(first, Lane::run_at(runs, first), tag, head, length, write);
        Some(Lane::run_at(runs, first + steps as u64))
    }

    /// Writes such a message to a run and the slots from `first` on, which are this producer's.
    #[inline(always)]
    pub(crate) fn put_run(
        &self,
        first: u64,
        run: UserAddress,
        tag: u32,
        head: [u64; HEAD],
        length: usize,
        mut write: impl FnMut(usize, UserAddress, usize),
    ) {
        debug_assert!(length > 0 && length <= RUN_BYTES);
        let steps = length.div_ceil(STEP);
        for step in 0..steps {
            let (at, end) = (step * STEP, length.min((step + 1) * STEP));
            write(at, run.offset(at as i64), end - at);
            let position = first + step as u64;
            let slot = self.slot(position);
            if step > 0 {
                slot.commit_further(position, false);
            } else {
                for (cell, word) in slot.words[1..].iter().zip(head.into_iter().chain([length as u64])) {
                    cell.store(word, Ordering::Relaxed);
                }
                slot.commit(position, IN_RUN + steps - 1, tag);
            }
        }
    }

    /// Claims `count` positions in a row, unless more than `room` would be in use; the first of them.
    #[inline(always)]
    pub(crate) fn claim(&self, producer: Producer<'_>, count: u64, room: usize) -> Option<u64> {
        let room = room as u64;
        let mut tail = self.control.tail.load(Ordering::Relaxed);
        loop {
            // Acquire pairs with the store of another thread of this process below.
            if tail.wrapping_sub(producer.known_head.load(Ordering::Acquire)).saturating_add(count) > room {
                // Acquire pairs with the release in `advance`: the consumer has read what we will overwrite.
                let head = self.control.head.load(Ordering::Acquire);
                producer.known_head.store(head, Ordering::Release);
                if tail.wrapping_sub(head).saturating_add(count) > room {
                    let now = self.control.tail.load(Ordering::Relaxed);
                    if now == tail {
                        return None;
                    }
                    tail = now;
                    continue;
                }
            }
            if producer.alone {
                self.control.tail.store(tail + count, Ordering::Relaxed);
                return Some(tail);
            }
            // Release pairs with the acquire in `tail`: that this producer pushes was shown before.
            match self.control.tail.compare_exchange_weak(
                tail,
                tail + count,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(tail),
                Err(now) => tail = now,
            }
        }
    }

    /// Whether the consumer has taken in all that was sent here, as far as this thread knows of it.
    #[inline(always)]
    pub fn is_taken_in(&self, producer: Producer<'_>) -> bool {
        let tail = self.control.tail.load(Ordering::Relaxed);
        producer.known_head.load(Ordering::Acquire) == tail || {
            // Acquire pairs with the release in `advance`.
            let head = self.control.head.load(Ordering::Acquire);
            producer.known_head.store(head, Ordering::Release);
            head == tail
        }
    }

    /// The consumer's position. Only who may consume may rely on it.
    #[inline(always)]
    pub fn head(&self) -> u64 {
        self.control.head.load(Ordering::Relaxed)
    }

    /// The position that is claimed next. Who has claimed one before it in a lane with several producers shows by now that it pushes, or does no
    /// longer.
    pub fn tail(&self) -> u64 {
        // Acquire pairs with the release in `claim`, which all later claims go on with.
        self.control.tail.load(Ordering::Acquire)
    }

    /// How many slots follow the one at `position`, if that has been committed.
    pub(crate) fn further(&self, position: u64) -> Option<u64> {
        self.peek(position).map(|word| word >> FURTHER_SHIFT & MOST_FURTHER as u64)
    }

    /// Word 0 of the slot at `position`, if it has been committed.
    #[inline(always)]
    pub(crate) fn peek(&self, position: u64) -> Option<u64> {
        // Acquire pairs with the release in `commit`.
        let word = self.slot(position).words[0].load(Ordering::Acquire);
        (word & SEQUENCE == (position + 1) & SEQUENCE).then_some(word)
    }

    /// Whether the slot at `position` is committed, or soon is.
    #[inline(always)]
    pub(crate) fn awaits(&self, position: u64) -> bool {
        self.peek(position).is_some() || self.awaits_longer(position)
    }

    #[cold]
    fn awaits_longer(&self, position: u64) -> bool {
        (0..LOOKS).any(|_| {
            spin_loop();
            self.peek(position).is_some()
        })
    }

    /// The message at `position`, if its first slot has been committed, and how many slots it has.
    #[inline(always)]
    pub fn read(&self, position: u64) -> Option<(Arrived<'a>, usize)> {
        let word = self.peek(position)?;
        let slot = self.slot(position);
        let words = std::array::from_fn(|index| slot.words[1 + index].load(Ordering::Relaxed));
        let count = (word >> FURTHER_SHIFT) as usize & MOST_FURTHER;
        let run = if word & (IN_RUN as u64) << FURTHER_SHIFT == 0 {
            None
        } else {
            self.runs.map(|runs| Lane::run_at(runs, position))
        };
        let message = Message { tag: (word >> TAG_SHIFT) as u32, words };
        Some((Arrived { message, further: count, first: position + 1, lane: Some(*self), run }, 1 + count))
    }

    /// Has the line of a slot behind the one at `position` brought to this core, for a consumer that is on its way through messages that
    /// follow each other.
    #[inline(always)]
    pub fn read_ahead(&self, position: u64) {
        fetch_to_read(self.slot(position + READ_AHEAD));
    }

    /// As [`Lane::read_ahead`], if the message at `position` has come, for all of which it was not done yet: `fetched` is the first of them.
    #[inline(always)]
    pub fn read_on(&self, position: u64, fetched: &AtomicU64) {
        if self.peek(position).is_some() {
            let (known, end) = (fetched.load(Ordering::Relaxed), position + READ_AHEAD + 1);
            (known.max(position + 1)..end).for_each(|next| fetch_to_read(self.slot(next)));
            fetched.store(end, Ordering::Relaxed);
        }
    }

    /// Gives the slots before `position` back to the producers. Only who may consume may call it.
    #[inline(always)]
    pub fn advance(&self, position: u64) {
        // Release pairs with the acquire of the head in `push`.
        self.control.head.store(position, Ordering::Release);
    }

    /// Whether nothing is waiting; only a hint for who may not consume.
    #[inline(always)]
    pub fn looks_empty(&self) -> bool {
        self.peek(self.head()).is_none()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64 as Plain;

    #[test]
    fn messages_come_out_in_order_and_a_full_ring_refuses() {
        let (control, slots) = (LaneControl::default(), (0..4).map(|_| Slot::default()).collect::<Vec<_>>());
        let lane = Lane::new(&control, &slots);
        let known = Plain::new(0);
        for round in 0..10u64 {
            let producer =
                Producer { known_head: &known, alone: round % 2 == 0, overlaps: false, hands_over: false };
            for step in 0..4 {
                assert!(lane.push(producer, 9, &[round, step]));
            }
            assert!(!lane.push(producer, 9, &[0]));
            for step in 0..4 {
                let (message, slots) = lane.read(lane.head()).unwrap();
                assert_eq!(slots, 1);
                assert_eq!((message.tag, message.words[0], message.words[1]), (9, round, step));
                lane.advance(lane.head() + 1);
            }
            assert!(lane.looks_empty());
        }
    }

    /// The first `length` bytes of `content` are in the message, and so many of them as are asked for are copied out, and no more.
    fn assert_arrived(message: &Arrived<'_>, content: &[u8], length: usize) {
        let target = crate::Scratch::new(content.len());
        for part in [0, length / 2, length] {
            target.address().write(&vec![0xee; content.len()]);
            assert!(message.copy_to(HEAD, target.address(), part));
            let mut arrived = vec![0; content.len()];
            target.address().read(&mut arrived);
            assert_eq!(arrived[..part], content[..part]);
            assert!(arrived[part..].iter().all(|byte| *byte == 0xee));
            let mut parts = Vec::new();
            let whole = message.copy_by(part, |at, from, length| {
                assert_eq!(at, parts.len());
                parts.resize(at + length, 0);
                from.read(&mut parts[at..]);
            });
            assert_eq!(whole, message.run.map(|_| true));
            assert!(whole.is_none() || parts == content[..part]);
        }
    }

    #[test]
    fn long_messages_of_every_length_arrive_whole() {
        let (control, slots) = (LaneControl::default(), (0..16).map(|_| Slot::default()).collect::<Vec<_>>());
        let lane = Lane::new(&control, &slots);
        let known = Plain::new(0);
        // Bytes that look like commits of any position.
        let content: Vec<u8> = (0..120u64).flat_map(|position| (position + 1).to_ne_bytes()).collect();
        let source = crate::Scratch::new(content.len());
        source.address().write(&content);
        for length in (0..=500).chain([15 * 56 + 40]) {
            let count = 1 + further(length);
            assert_eq!(bytes(count - 1, last_bytes(length)), length);
            assert!(length > 40 || count == 1);
            let producer = Producer {
                known_head: &known,
                alone: true,
                overlaps: length % 2 == 0,
                hands_over: length % 2 == 0,
            };
            assert!(lane.push_bytes(producer, 5, [7, 8], source.address(), length));
            assert!(count <= 8 || !lane.push_bytes(producer, 5, [7, 8], source.address(), length));
            let (message, slots) = lane.read(lane.head()).unwrap();
            assert_eq!((message.tag, slots, &message.words[..2]), (5, count, &[7, 8][..]));
            assert_arrived(&message, &content, length);
            lane.advance(lane.head() + slots as u64);
            assert!(lane.looks_empty());
        }
    }

    #[test]
    fn messages_in_runs_of_every_length_arrive_whole() {
        let (control, slots) = (LaneControl::default(), (0..32).map(|_| Slot::default()).collect::<Vec<_>>());
        let memory = crate::Scratch::new(RUNS_BYTES);
        let lane = Lane::new(&control, &slots).with_runs(memory.address());
        let known = Plain::new(0);
        let producer = Producer { known_head: &known, alone: true, overlaps: true, hands_over: true };
        let content: Vec<u8> = (0..RUN_BYTES).map(|at| (at * 7 + at / 256) as u8).collect();
        let source = crate::Scratch::new(RUN_BYTES);
        source.address().write(&content);
        let write =
            |at, part: UserAddress, length| part.copy_apart(source.address().offset(at as i64), length);
        assert!(Lane::new(&control, &slots).push_run(producer, 5, [7, 8], 1, write).is_none());
        let mut next = source.address();
        for length in (1..100).chain(
            (1..=RUN_BYTES / STEP)
                .flat_map(|steps| steps * STEP - 40..(steps * STEP + 40).min(RUN_BYTES + 1)),
        ) {
            let after = lane.push_run(producer, 5, [7, 8], length, write).unwrap();
            let before = std::mem::replace(&mut next, after);
            let (message, slots) = lane.read(lane.head()).unwrap();
            assert!(length == 1 || message.run == Some(before), "it lies where the one before it said");
            assert_eq!((message.tag, slots, &message.words[..2]), (5, length.div_ceil(STEP), &[7, 8][..]));
            assert!(message.is_long());
            assert_eq!(message.bytes(last_bytes(length)), length);
            assert_arrived(&message, &content, length);
            lane.advance(lane.head() + slots as u64);
            assert!(lane.looks_empty());
        }
    }

    /// A run is not written again while its message may still be read, however many short ones come after it.
    #[test]
    fn a_run_in_use_is_not_given_out() {
        let (control, slots) =
            (LaneControl::default(), (0..128).map(|_| Slot::default()).collect::<Vec<_>>());
        let memory = crate::Scratch::new(RUNS_BYTES);
        let lane = Lane::new(&control, &slots).with_runs(memory.address());
        let known = Plain::new(0);
        let producer = Producer { known_head: &known, alone: true, overlaps: true, hands_over: true };
        let push =
            |number| lane.push_run(producer, 1, [0; 2], STEP, |_, part, _| part.write_word(number)).is_some();
        assert!((0..RUNS as u64).all(push));
        assert!(!push(0));
        assert!(lane.push(producer, 2, &[0]));
        let first = lane.head();
        lane.advance(first + 1);
        // The short message has taken the position that the first run belonged to.
        assert!(!push(0));
        lane.advance(first + 2);
        assert!(push(0));
        let target = crate::Scratch::new(8);
        for number in 2..RUNS as u64 {
            let (message, slots) = lane.read(lane.head()).unwrap();
            assert!(message.copy_to(HEAD, target.address(), 8));
            assert_eq!((target.address().read_word(), slots), (number, 1));
            lane.advance(lane.head() + 1);
        }
    }

    #[test]
    fn producers_in_threads_lose_nothing() {
        let shared = Arc::new((LaneControl::default(), (0..8).map(|_| Slot::default()).collect::<Vec<_>>()));
        let threads: Vec<_> = (0..3u64)
            .map(|number| {
                let shared = shared.clone();
                std::thread::spawn(move || {
                    let lane = Lane::new(&shared.0, &shared.1);
                    let known = Plain::new(0);
                    let producer =
                        Producer { known_head: &known, alone: false, overlaps: false, hands_over: false };
                    for step in 0..1_000 {
                        while !lane.push(producer, 0, &[number, step]) {
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        let lane = Lane::new(&shared.0, &shared.1);
        let mut next = [0; 3];
        while next != [1_000; 3] {
            if let Some((message, _)) = lane.read(lane.head()) {
                assert_eq!(next[message.words[0] as usize], message.words[1]);
                next[message.words[0] as usize] += 1;
                lane.advance(lane.head() + 1);
            } else {
                std::thread::yield_now();
            }
        }
        for thread in threads {
            thread.join().unwrap();
        }
    }
}

#[cfg(all(test, loom))]
pub(crate) mod models {
    use super::*;
    use loom::sync::Arc;

    pub(crate) type Shared = Arc<(LaneControl, Vec<Slot>)>;

    pub(crate) fn shared(slots: usize) -> Shared {
        Arc::new((LaneControl::default(), (0..slots).map(|_| Slot::default()).collect()))
    }

    fn consume(lane: &Lane, count: usize) -> Vec<(u32, u64)> {
        let mut seen = Vec::new();
        while seen.len() < count {
            let head = lane.head();
            match lane.read(head) {
                Some((message, slots)) => {
                    seen.push((message.tag, message.words[0]));
                    lane.advance(head + slots as u64);
                }
                None => loom::thread::yield_now(),
            }
        }
        seen
    }

    /// One producer, a ring of two slots that wraps: order kept, nothing torn.
    #[test]
    fn one_producer_wraps() {
        loom::model(|| {
            let shared = shared(2);
            let other = shared.clone();
            let producer = loom::thread::spawn(move || {
                let lane = Lane::new(&other.0, &other.1);
                let known = std::sync::atomic::AtomicU64::new(0);
                let producer = Producer { known_head: &known, alone: true, overlaps: true, hands_over: true };
                for number in 1..=3 {
                    while !lane.push(producer, number as u32, &[number]) {
                        loom::thread::yield_now();
                    }
                }
            });
            assert_eq!(consume(&Lane::new(&shared.0, &shared.1), 3), [(1, 1), (2, 2), (3, 3)]);
            producer.join().unwrap();
        });
    }

    /// Two producers: each one's message arrives whole.
    #[test]
    fn two_producers_claim_apart() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let shared = shared(2);
            let producers: Vec<_> = [1u64, 2]
                .into_iter()
                .map(|number| {
                    let other = shared.clone();
                    loom::thread::spawn(move || {
                        let lane = Lane::new(&other.0, &other.1);
                        let known = std::sync::atomic::AtomicU64::new(0);
                        let producer =
                            Producer { known_head: &known, alone: false, overlaps: false, hands_over: false };
                        assert!(lane.push(producer, number as u32, &[number]));
                    })
                })
                .collect();
            let mut seen = consume(&Lane::new(&shared.0, &shared.1), 2);
            seen.sort_unstable();
            assert_eq!(seen, [(1, 1), (2, 2)]);
            for producer in producers {
                producer.join().unwrap();
            }
        });
    }

    /// Sends two messages of two slots. Their words 0 and 5 are 1 and 4, then 2 and 5.
    pub(crate) fn send_two_of_two_slots(shared: &Shared) -> loom::thread::JoinHandle<()> {
        let shared = shared.clone();
        loom::thread::spawn(move || {
            let lane = Lane::new(&shared.0, &shared.1);
            let known = std::sync::atomic::AtomicU64::new(0);
            let producer = Producer { known_head: &known, alone: true, overlaps: true, hands_over: true };
            let source = crate::Scratch::new(48);
            for number in 1..=2u64 {
                // The second word is what a commit of the next lap looks like.
                source.address().write_word(number);
                source.address().offset(40).write_word(number + 3);
                while !lane.push_bytes(producer, 1, [0; 2], source.address(), 48) {
                    loom::thread::yield_now();
                }
            }
        })
    }

    /// A message of two slots, twice around a ring of two: whatever its bytes, none is read before it is written, and
    /// none is written before it is read.
    #[test]
    fn a_long_message_is_read_while_it_is_written() {
        loom::model(|| {
            let shared = shared(2);
            let producer = send_two_of_two_slots(&shared);
            let lane = Lane::new(&shared.0, &shared.1);
            let target = crate::Scratch::new(48);
            let mut next = 1;
            while next <= 2 {
                let whole =
                    lane.read(lane.head()).filter(|(message, _)| message.copy_to(HEAD, target.address(), 48));
                let Some((_, slots)) = whole else {
                    loom::thread::yield_now();
                    continue;
                };
                let (first, second) = (target.address().read_word(), target.address().offset(40).read_word());
                assert_eq!((first, second, slots), (next, next + 3, 2));
                lane.advance(lane.head() + slots as u64);
                next += 1;
            }
            producer.join().unwrap();
        });
    }
}
