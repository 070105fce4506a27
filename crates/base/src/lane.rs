//! A mailbox lane: a ring of one-cache-line messages with many producers and one consumer at a time.
//!
//! ```text
//! control   line 0: tail (producers)       line 1: head (consumer)
//! slot      word 0: sequence (low 32 bits, position + 1) | tag (high 32 bits)     words 1..7: the message
//! ```
//! A producer claims a position by moving the tail, fills the slot, and commits it by writing word 0 last. With
//! one producer the tail stays in its cache; the consumer polls nothing but the next slot. Slots are given back
//! by moving the head, which producers read only when the ring looks full.

use crate::atomics::{AtomicU64, Ordering};

/// Words of a message besides its tag.
pub const WORDS: usize = 7;

/// A message: 32 bits of tag and seven words, all opaque here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Opaque; typically kind, length and source.
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

/// One slot: a cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Slot {
    words: [AtomicU64; 8],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<LaneControl>() == 128 && size_of::<Slot>() == 64);

#[cfg(not(loom))]
// SAFETY: repr(C), made of atomics.
unsafe impl crate::record::Record for LaneControl {}
#[cfg(not(loom))]
// SAFETY: repr(C), made of atomics.
unsafe impl crate::record::Record for Slot {}

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

impl Default for Slot {
    fn default() -> Self {
        Slot { words: zeros() }
    }
}

/// Views of a lane's parts, whoever keeps them. The number of slots is a power of two.
#[derive(Clone, Copy, Debug)]
pub struct Lane<'a> {
    control: &'a LaneControl,
    slots: &'a [Slot],
}

impl<'a> Lane<'a> {
    /// A lane from its parts.
    ///
    /// # Panics
    /// If the number of slots is not a power of two.
    #[inline(always)]
    pub fn new(control: &'a LaneControl, slots: &'a [Slot]) -> Lane<'a> {
        assert!(slots.len().is_power_of_two());
        Lane { control, slots }
    }

    #[inline(always)]
    fn slot(&self, position: u64) -> &'a Slot {
        &self.slots[position as usize & (self.slots.len() - 1)]
    }

    /// Sends `words` (at most seven; the rest of the slot keeps old content) unless the ring is full.
    /// `known_head` is this producer's memory of the head, shared by the threads of a process.
    #[inline(always)]
    pub fn push(&self, known_head: &std::sync::atomic::AtomicU64, tag: u32, words: &[u64]) -> bool {
        let mut tail = self.control.tail.load(Ordering::Relaxed);
        loop {
            // Acquire pairs with the store of another thread of this process below.
            if tail.wrapping_sub(known_head.load(Ordering::Acquire)) >= self.slots.len() as u64 {
                // Acquire pairs with the release in `advance`: the consumer has read what we will overwrite.
                let head = self.control.head.load(Ordering::Acquire);
                known_head.store(head, Ordering::Release);
                if tail.wrapping_sub(head) >= self.slots.len() as u64 {
                    let now = self.control.tail.load(Ordering::Relaxed);
                    if now == tail {
                        return false;
                    }
                    tail = now;
                    continue;
                }
            }
            match self.control.tail.compare_exchange_weak(
                tail,
                tail + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => tail = now,
            }
        }
        let slot = self.slot(tail);
        for (cell, word) in slot.words[1..].iter().zip(words) {
            cell.store(*word, Ordering::Relaxed);
        }
        let sequence = (tail + 1) as u32;
        // Release pairs with the acquire in `peek`.
        slot.words[0].store(u64::from(tag) << 32 | u64::from(sequence), Ordering::Release);
        true
    }

    /// The consumer's position. Only who may consume may rely on it.
    #[inline(always)]
    pub fn head(&self) -> u64 {
        self.control.head.load(Ordering::Relaxed)
    }

    /// Whether the message at `position` has been committed, and its tag.
    #[inline(always)]
    pub fn peek(&self, position: u64) -> Option<u32> {
        // Acquire pairs with the commit in `push`.
        let word = self.slot(position).words[0].load(Ordering::Acquire);
        (word as u32 == (position + 1) as u32).then_some((word >> 32) as u32)
    }

    /// Word `index` of the message at `position`, which `peek` has seen.
    #[inline(always)]
    pub fn word(&self, position: u64, index: usize) -> u64 {
        self.slot(position).words[1 + index].load(Ordering::Relaxed)
    }

    /// The message at `position`, if it has been committed.
    #[inline(always)]
    pub fn read(&self, position: u64) -> Option<Message> {
        let tag = self.peek(position)?;
        Some(Message { tag, words: std::array::from_fn(|index| self.word(position, index)) })
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
            for step in 0..4 {
                assert!(lane.push(&known, 9, &[round, step]));
            }
            assert!(!lane.push(&known, 9, &[0]));
            for step in 0..4 {
                let message = lane.read(lane.head()).unwrap();
                assert_eq!((message.tag, message.words[0], message.words[1]), (9, round, step));
                lane.advance(lane.head() + 1);
            }
            assert!(lane.looks_empty());
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
                    for step in 0..1_000 {
                        while !lane.push(&known, 0, &[number, step]) {
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        let lane = Lane::new(&shared.0, &shared.1);
        let mut next = [0; 3];
        while next != [1_000; 3] {
            if let Some(message) = lane.read(lane.head()) {
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
mod models {
    use super::*;
    use loom::sync::Arc;

    type Shared = Arc<(LaneControl, Vec<Slot>)>;

    fn shared(slots: usize) -> Shared {
        Arc::new((LaneControl::default(), (0..slots).map(|_| Slot::default()).collect()))
    }

    fn consume(lane: &Lane, count: usize) -> Vec<(u32, u64)> {
        let mut seen = Vec::new();
        while seen.len() < count {
            let head = lane.head();
            match lane.peek(head) {
                Some(tag) => {
                    seen.push((tag, lane.word(head, 0)));
                    lane.advance(head + 1);
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
                for number in 1..=3 {
                    while !lane.push(&known, number as u32, &[number]) {
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
                        assert!(lane.push(&known, number as u32, &[number]));
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
}
