//! The table of operations in flight: where an event of the NIC finds what it completes.
//!
//! A slot is named by 64 bits that travel with the operation and come back in its events: the index in the low
//! half, the generation in the high half, so that an event of a past life of a slot is recognised.
//!
//! ```text
//!   chunk 0 |  64 slots, inside the table |   index -> chunk k = log2(index / 64 + 1); never moved, never freed, so
//!   chunk 1 | 128 slots ...               |   that a slot can be reached without a lock while the table grows
//! ```
//!
//! One slot is spare: a blocking call borrows it, and mostly hands it back untouched, because the message went, or
//! was there, at once.

use super::Status;
use super::quick::Wanted;
use crate::constants::MPI_SUCCESS;
use parnass_portals::{Event, EventKind, ProcessId};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

const FIRST_CHUNK: u32 = 64;
const CHUNKS: usize = 24;
/// Marks the end of the free list; also "no activity" in [`Slot::owner`].
const NONE: u32 = u32::MAX;

const FINE: u8 = 0;
const FAILED: u8 = 1;
/// Taken back before anybody received it.
const WITHDRAWN: u8 = 2;

/// In [`Slot::quick`]: it is.
const QUICK: u64 = 1 << 32;

/// No slot at all, in [`Slots::spare`].
const NOBODY: u64 = u64::MAX;

/// One operation in flight: a put of this process, or an entry that waits for one.
#[repr(align(128))]
#[derive(Debug)]
pub(crate) struct Slot {
    /// Events that must still come; 0: the operation is complete and the fields below tell how it went.
    pending: AtomicU32,
    generation: AtomicU32,
    /// How the operation ended: [`FINE`], as in a free slot, [`FAILED`] or [`WITHDRAWN`].
    ending: AtomicU8,
    next_free: AtomicU32,
    /// The activity that waits for this operation; [`NONE`] if there is none, and while the slot is free.
    owner: AtomicU32,
    initiator: AtomicU32,
    match_bits: AtomicU64,
    header_data: AtomicU64,
    requested_length: AtomicU64,
    placed_length: AtomicU64,
    /// The generation in which the slot is all there is of a receive, see [`Quick`](super::Quick), and [`QUICK`]; or 0.
    quick: AtomicU64,
    /// Whether the operation and the handle of its request both hold the slot: whoever lets go last gives it back.
    held_twice: AtomicBool,
    // What such a receive asks for.
    rank: AtomicI32,
    peer: AtomicU32,
    capacity: AtomicU64,
}

impl Default for Slot {
    fn default() -> Self {
        Slot {
            pending: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            ending: AtomicU8::new(FINE),
            next_free: AtomicU32::new(NONE),
            owner: AtomicU32::new(NONE),
            initiator: AtomicU32::new(0),
            match_bits: AtomicU64::new(0),
            header_data: AtomicU64::new(0),
            requested_length: AtomicU64::new(0),
            placed_length: AtomicU64::new(0),
            quick: AtomicU64::new(0),
            held_twice: AtomicBool::new(false),
            rank: AtomicI32::new(0),
            peer: AtomicU32::new(0),
            capacity: AtomicU64::new(0),
        }
    }
}

impl Slot {
    /// Whether a receive that is complete did not fail and got the whole message.
    #[inline(always)]
    fn went_well(&self) -> bool {
        self.ending.load(Ordering::Relaxed) == FINE
            && self.requested_length.load(Ordering::Relaxed) == self.placed_length.load(Ordering::Relaxed)
    }
}

/// Names a slot in one of its lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotName(u64);

impl SlotName {
    /// Names no slot.
    pub(crate) const NONE: SlotName = SlotName(NOBODY);

    fn new(index: u32, generation: u32) -> SlotName {
        SlotName(u64::from(index) | u64::from(generation) << 32)
    }

    /// What travels with the operation as its `user` value.
    pub(crate) fn user(self) -> u64 {
        self.0
    }

    pub(crate) fn index(self) -> u32 {
        self.0 as u32
    }

    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// A head of the free list with another index and the same tag.
#[inline(always)]
fn with_index(head: u64, index: u32) -> u64 {
    head & !u64::from(u32::MAX) | u64::from(index)
}

/// The head of the free list after `slot`, which it names, has been taken from it.
#[inline(always)]
fn after(head: u64, slot: &Slot) -> u64 {
    let next = slot.next_free.load(Ordering::Relaxed);
    u64::from(next) | ((head >> 32).wrapping_add(1)) << 32
}

/// What has become of a receive that is nothing but its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quickly {
    Pending,
    Ended,
    /// It is no such receive any more, or something unusual has become of it.
    Unusual,
}

/// A receive that is nothing but its slot, and is complete and as usual.
#[derive(Debug)]
pub struct Ended<'a>(&'a Slot);

impl Ended<'_> {
    /// How it went.
    #[inline(always)]
    pub fn status(&self) -> Status {
        let rank = self.0.rank.load(Ordering::Relaxed);
        Status {
            source: if rank >= 0 { rank } else { self.0.initiator.load(Ordering::Relaxed) as i32 },
            tag: self.0.match_bits.load(Ordering::Relaxed) as u32 as i32,
            error: MPI_SUCCESS,
            bytes: self.0.placed_length.load(Ordering::Relaxed),
            cancelled: false,
        }
    }
}

/// How an operation went.
pub(crate) use parnass_portals::Received as Completion;

/// The table. All its methods may be called by several threads at once if it was told so with
/// [`Slots::set_concurrent`]; otherwise by one thread at a time.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Head of the free list: index in the low half, a tag against reuse in the high half.
    free: AtomicU64,
    concurrent: AtomicBool,
    /// The name of the spare slot, or [`NOBODY`] while it is borrowed.
    spare: AtomicU64,
    first: [Slot; FIRST_CHUNK as usize],
    /// The chunks after the first.
    chunks: [OnceLock<Box<[Slot]>>; CHUNKS],
    /// How many chunks there are after the first.
    growth: Mutex<usize>,
}

impl Slots {
    pub(crate) fn new() -> Slots {
        let slots = Slots {
            free: AtomicU64::new(u64::from(NONE)),
            concurrent: AtomicBool::new(false),
            spare: AtomicU64::new(NOBODY),
            first: std::array::from_fn(|_| Slot::default()),
            chunks: [const { OnceLock::new() }; CHUNKS],
            growth: Mutex::new(0),
        };
        for index in (0..FIRST_CHUNK).rev() {
            slots.push(index);
        }
        slots
    }

    /// From now on several threads may be inside at once (MPI_THREAD_MULTIPLE, or a thread of the library's own).
    pub(crate) fn set_concurrent(&self) {
        self.concurrent.store(true, Ordering::SeqCst);
    }

    #[inline]
    pub(crate) fn is_concurrent(&self) -> bool {
        self.concurrent.load(Ordering::Relaxed)
    }

    #[inline]
    fn slot(&self, index: u32) -> &Slot {
        match self.first.get(index as usize) {
            Some(slot) => slot,
            None => self.later_slot(index),
        }
    }

    fn later_slot(&self, index: u32) -> &Slot {
        self.slot_if_any(index).expect("a slot's index comes from its chunk")
    }

    /// The slot of an index that may be none.
    #[inline(always)]
    fn slot_if_any(&self, index: u32) -> Option<&Slot> {
        if index < FIRST_CHUNK {
            return self.first.get(index as usize);
        }
        let chunk = (index / FIRST_CHUNK + 1).ilog2();
        let start = FIRST_CHUNK * ((1 << chunk) - 1);
        self.chunks.get(chunk as usize - 1)?.get()?.get((index - start) as usize)
    }

    /// Borrows the spare slot, or takes one, for an operation of a blocking call that is complete after `events` events.
    #[inline]
    pub(crate) fn borrow(&self, events: u32) -> SlotName {
        let spare = if self.is_concurrent() {
            // Pairs with the release in `keep`.
            self.spare.swap(NOBODY, Ordering::Acquire)
        } else {
            let spare = self.spare.load(Ordering::Relaxed);
            self.spare.store(NOBODY, Ordering::Relaxed);
            spare
        };
        if spare == NOBODY {
            return self.take(events, None);
        }
        let name = SlotName(spare);
        self.slot(name.index()).pending.store(events, Ordering::Relaxed);
        name
    }

    /// Hands back a slot of which no event has come and none will.
    #[inline]
    pub(crate) fn untouched(&self, name: SlotName) {
        if !self.is_concurrent() {
            if self.spare.load(Ordering::Relaxed) == NOBODY {
                self.spare.store(name.0, Ordering::Relaxed);
                return;
            }
        } else if self.keep(name) {
            return;
        }
        self.release(name);
    }

    fn keep(&self, name: SlotName) -> bool {
        // Pairs with the acquire in `borrow`.
        self.spare.compare_exchange(NOBODY, name.0, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Hands back a slot whose events have come. Others that still name it are ignored from now on.
    #[inline]
    pub(crate) fn give_back(&self, name: SlotName) {
        let slot = self.slot(name.index());
        let generation = name.generation().wrapping_add(1);
        slot.generation.store(generation, Ordering::Relaxed);
        slot.ending.store(FINE, Ordering::Relaxed);
        slot.owner.store(NONE, Ordering::Relaxed);
        self.untouched(SlotName::new(name.index(), generation));
    }

    /// Takes a slot for an operation that is complete after `events` events.
    #[inline(always)]
    pub(crate) fn take(&self, events: u32, owner: Option<u32>) -> SlotName {
        let (slot, name) = self.take_slot(events);
        if let Some(owner) = owner {
            slot.owner.store(owner, Ordering::Relaxed);
        }
        name
    }

    /// Changes who waits for an operation in flight, of which no other thread takes events meanwhile.
    pub(crate) fn set_owner(&self, name: SlotName, owner: Option<u32>) {
        self.slot(name.index()).owner.store(owner.unwrap_or(NONE), Ordering::Relaxed);
    }

    #[inline(always)]
    fn take_slot(&self, events: u32) -> (&Slot, SlotName) {
        let (slot, index) = self.pop();
        // Whoever delivers an event got the name from the NIC, whose lock orders this store before it.
        slot.pending.store(events, Ordering::Relaxed);
        (slot, SlotName::new(index, slot.generation.load(Ordering::Relaxed)))
    }

    /// Takes the first of the free list.
    #[inline(always)]
    fn pop(&self) -> (&Slot, u32) {
        let head = self.free.load(Ordering::Relaxed);
        let index = head as u32;
        // The usual case first: one thread, and not many operations.
        if !self.is_concurrent()
            && let Some(slot) = self.first.get(index as usize)
        {
            let next = slot.next_free.load(Ordering::Relaxed);
            self.free.store(with_index(head, next), Ordering::Relaxed);
            return (slot, index);
        }
        let index = self.pop_any();
        (self.slot(index), index)
    }

    #[inline(never)]
    fn pop_any(&self) -> u32 {
        loop {
            // Pairs with the release in `push`: `next_free` of the head is visible.
            let head = self.free.load(Ordering::Acquire);
            let index = head as u32;
            if index == NONE {
                self.grow();
                continue;
            }
            let new = after(head, self.slot(index));
            if !self.is_concurrent() {
                self.free.store(new, Ordering::Relaxed);
                return index;
            }
            if self.free.compare_exchange_weak(head, new, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return index;
            }
        }
    }

    #[inline]
    fn push(&self, index: u32) {
        self.push_slot(self.slot(index), index);
    }

    #[inline(always)]
    fn push_slot(&self, slot: &Slot, index: u32) {
        if !self.is_concurrent() {
            // Nobody compares the head, so that its tag may stay.
            let head = self.free.load(Ordering::Relaxed);
            slot.next_free.store(head as u32, Ordering::Relaxed);
            self.free.store(with_index(head, index), Ordering::Release);
            return;
        }
        loop {
            let head = self.free.load(Ordering::Relaxed);
            slot.next_free.store(head as u32, Ordering::Relaxed);
            let new = u64::from(index) | ((head >> 32).wrapping_add(1)) << 32;
            // Pairs with the acquire in `pop`.
            if self.free.compare_exchange_weak(head, new, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return;
            }
        }
    }

    #[cold]
    fn grow(&self) {
        let mut count = self.growth.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if self.free.load(Ordering::Acquire) as u32 != NONE {
            return;
        }
        assert!(*count < CHUNKS, "2^31 operations in flight in one process");
        let length = FIRST_CHUNK << (*count + 1);
        let start = FIRST_CHUNK * ((1 << (*count + 1)) - 1);
        let slots: Box<[Slot]> = (0..length).map(|_| Slot::default()).collect();
        self.chunks[*count].set(slots).expect("chunks are added in order, under the lock");
        *count += 1;
        for index in (start..start + length).rev() {
            self.push(index);
        }
    }

    /// Gives a slot back, unless the handle of its request still holds it. Events that name it are ignored once it is given back.
    #[inline]
    pub(crate) fn release(&self, name: SlotName) {
        let slot = self.slot(name.index());
        if !(slot.held_twice.load(Ordering::Relaxed) && slot.held_twice.swap(false, Ordering::AcqRel)) {
            slot.owner.store(NONE, Ordering::Relaxed);
            slot.ending.store(FINE, Ordering::Relaxed);
            self.release_slot(slot, name);
        }
    }

    /// The handle of a request that was made of the receive with this index is gone.
    pub(crate) fn release_handle(&self, index: u32) {
        let generation = self.slot(index).generation.load(Ordering::Relaxed);
        self.release(SlotName::new(index, generation));
    }

    /// Nobody owns it, and it has ended well.
    #[inline(always)]
    fn release_slot(&self, slot: &Slot, name: SlotName) {
        slot.generation.store(name.generation().wrapping_add(1), Ordering::Relaxed);
        self.push_slot(slot, name.index());
    }

    /// Takes a slot that is all there is of a receive.
    #[inline(always)]
    pub(crate) fn take_quick(
        &self,
        rank: i32,
        peer: Option<ProcessId>,
        match_bits: u64,
        capacity: u64,
    ) -> SlotName {
        let (slot, name) = self.take_slot(1);
        slot.rank.store(rank, Ordering::Relaxed);
        slot.peer.store(peer.map_or(NONE, |peer| peer.0), Ordering::Relaxed);
        slot.match_bits.store(match_bits, Ordering::Relaxed);
        slot.capacity.store(capacity, Ordering::Relaxed);
        // Release pairs with the acquire in `quick_slot`, for threads that look through all of them.
        slot.quick.store(QUICK | u64::from(name.generation()), Ordering::Release);
        name
    }

    /// Ends that a slot is all there is of a receive. `false`: another thread has done so.
    #[inline(always)]
    fn claim_quick(&self, slot: &Slot, name: SlotName) -> bool {
        let quick = QUICK | u64::from(name.generation());
        if !self.is_concurrent() {
            // The caller has just found it so.
            slot.quick.store(0, Ordering::Relaxed);
            return true;
        }
        slot.quick.compare_exchange(quick, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Gives the slot of such a receive back if it is complete and went as usual, which `tell` hears before. Its generation has these bits
    /// where the mask is set.
    #[inline(always)]
    pub(crate) fn finish_quick(
        &self,
        index: u32,
        generation: u32,
        mask: u32,
        tell: impl FnOnce(&Ended<'_>),
    ) -> Quickly {
        let Some((slot, name)) = self.quick_slot(index, generation, mask) else { return Quickly::Unusual };
        // Pairs with the release in `subtract`: what the event told is visible.
        if slot.pending.load(Ordering::Acquire) != 0 {
            return Quickly::Pending;
        }
        if !slot.went_well() {
            return Quickly::Unusual;
        }
        tell(&Ended(slot));
        if !self.claim_quick(slot, name) {
            return Quickly::Unusual;
        }
        self.release_slot(slot, name);
        Quickly::Ended
    }

    /// What it asks for.
    #[inline(always)]
    pub(crate) fn wanted(&self, name: SlotName) -> Wanted {
        let slot = self.slot(name.index());
        let peer = slot.peer.load(Ordering::Relaxed);
        Wanted {
            peer: (peer != NONE).then_some(ProcessId(peer)),
            match_bits: slot.match_bits.load(Ordering::Relaxed),
            capacity: slot.capacity.load(Ordering::Relaxed),
        }
    }

    /// The receive whose slot has this index, and a generation that has these bits where the mask is set.
    #[inline(always)]
    pub(crate) fn quick(&self, index: u32, generation: u32, mask: u32) -> Option<SlotName> {
        self.quick_slot(index, generation, mask).map(|(_, name)| name)
    }

    #[inline(always)]
    fn quick_slot(&self, index: u32, generation: u32, mask: u32) -> Option<(&Slot, SlotName)> {
        let slot = self.slot_if_any(index)?;
        let quick = slot.quick.load(Ordering::Acquire);
        let same = (quick ^ (QUICK | u64::from(generation))) & (QUICK | u64::from(mask)) == 0;
        same.then_some((slot, SlotName::new(index, quick as u32)))
    }

    /// Whether it is still nothing but its slot.
    #[inline(always)]
    pub(crate) fn is_quick(&self, name: SlotName) -> bool {
        self.quick(name.index(), name.generation(), u32::MAX).is_some()
    }

    /// All receives that are nothing but their slots.
    pub(crate) fn all_quick(&self) -> impl Iterator<Item = SlotName> {
        (0..)
            .take_while(|index| self.slot_if_any(*index).is_some())
            .filter_map(|index| self.quick(index, 0, 0))
    }

    /// From now on there is more of it than its slot, which the handle of its request holds too, see [`Slots::release_handle`]. `false`: another
    /// thread has ended it.
    pub(crate) fn settle(&self, name: SlotName) -> bool {
        let slot = self.slot(name.index());
        let settled = self.claim_quick(slot, name);
        if settled {
            slot.held_twice.store(true, Ordering::Relaxed);
        }
        settled
    }

    /// Gives the slot of such a receive back, which nobody knows yet.
    #[inline(always)]
    pub(crate) fn end_quick(&self, name: SlotName) {
        let slot = self.slot(name.index());
        slot.quick.store(0, Ordering::Relaxed);
        self.release_slot(slot, name);
    }

    /// Delivers an event. Returns the activity that waits for the operation, if the operation is now complete.
    #[inline(always)]
    pub(crate) fn deliver(&self, event: &Event) -> Option<u32> {
        let name = SlotName(event.user);
        let slot = self.slot(name.index());
        if slot.generation.load(Ordering::Relaxed) != name.generation() {
            return None;
        }
        match event.kind {
            EventKind::Failed => slot.ending.store(FAILED, Ordering::Relaxed),
            EventKind::Withdrawn => slot.ending.store(WITHDRAWN, Ordering::Relaxed),
            _ => (),
        }
        slot.initiator.store(event.initiator.0, Ordering::Relaxed);
        slot.match_bits.store(event.match_bits, Ordering::Relaxed);
        slot.header_data.store(event.header_data, Ordering::Relaxed);
        slot.requested_length.store(event.requested_length, Ordering::Relaxed);
        slot.placed_length.store(event.placed_length, Ordering::Relaxed);
        let owner = slot.owner.load(Ordering::Relaxed);
        let all = event.kind == EventKind::Failed;
        (self.subtract(slot, all) && owner != NONE).then_some(owner)
    }

    /// One awaited event will not come (or all of them, when the operation failed). Whether that was the last.
    #[inline(always)]
    fn subtract(&self, slot: &Slot, all: bool) -> bool {
        // The usual case first; who delivers the last event of an operation does so alone.
        if !all && slot.pending.load(Ordering::Relaxed) == 1 {
            // Pairs with the acquire in `is_complete`.
            slot.pending.store(0, Ordering::Release);
            return true;
        }
        self.subtract_any(slot, all)
    }

    #[inline(never)]
    fn subtract_any(&self, slot: &Slot, all: bool) -> bool {
        // Both pair with the acquire in `is_complete`.
        if all {
            return slot.pending.swap(0, Ordering::AcqRel) != 0;
        }
        slot.pending
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |pending| pending.checked_sub(1))
            .is_ok_and(|before| before == 1)
    }

    /// The operation is over, and has failed; no event of it counts any more.
    pub(crate) fn fail(&self, name: SlotName) {
        let slot = self.slot(name.index());
        slot.ending.store(FAILED, Ordering::Relaxed);
        self.subtract(slot, true);
    }

    /// The put told at once what an event would have told.
    #[inline]
    pub(crate) fn done_at_once(&self, name: SlotName) {
        self.subtract(self.slot(name.index()), false);
    }

    /// Whether all events of the operation have come.
    #[inline]
    pub(crate) fn is_complete(&self, name: SlotName) -> bool {
        // Pairs with the release in `subtract`: what the event told is visible.
        self.slot(name.index()).pending.load(Ordering::Acquire) == 0
    }

    /// Whether it was taken back before anybody received it; to be asked once it is complete.
    pub(crate) fn is_withdrawn(&self, name: SlotName) -> bool {
        self.slot(name.index()).ending.load(Ordering::Relaxed) == WITHDRAWN
    }

    /// Match bits and bytes of the message of a receive that is complete and went as usual.
    #[inline(always)]
    pub(crate) fn gone_well(&self, name: SlotName) -> Option<(u64, u64)> {
        let slot = self.slot(name.index());
        // Pairs with the release in `subtract`: what the event told is visible.
        let well = slot.pending.load(Ordering::Acquire) == 0 && slot.went_well();
        well.then(|| (slot.match_bits.load(Ordering::Relaxed), slot.placed_length.load(Ordering::Relaxed)))
    }

    /// How the operation went; to be asked once it is complete.
    #[inline]
    pub(crate) fn completion(&self, name: SlotName) -> Completion {
        let slot = self.slot(name.index());
        Completion {
            failed: slot.ending.load(Ordering::Relaxed) == FAILED,
            initiator: ProcessId(slot.initiator.load(Ordering::Relaxed)),
            match_bits: slot.match_bits.load(Ordering::Relaxed),
            header_data: slot.header_data.load(Ordering::Relaxed),
            requested_length: slot.requested_length.load(Ordering::Relaxed),
            placed_length: slot.placed_length.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: SlotName, kind: EventKind) -> Event {
        Event {
            kind,
            user: name.user(),
            initiator: ProcessId(3),
            match_bits: 7,
            header_data: 0,
            requested_length: 100,
            placed_length: 60,
            taken: 0,
        }
    }

    fn slots(concurrent: bool) -> Slots {
        let slots = Slots::new();
        if concurrent {
            slots.set_concurrent();
        }
        slots
    }

    #[test]
    fn completes_after_its_events_and_tells_how_it_went() {
        for concurrent in [false, true] {
            let slots = slots(concurrent);
            let name = slots.take(2, Some(5));
            assert_eq!(slots.deliver(&event(name, EventKind::Send)), None);
            assert!(!slots.is_complete(name));
            assert_eq!(slots.deliver(&event(name, EventKind::Ack)), Some(5));
            assert!(slots.is_complete(name));
            let completion = slots.completion(name);
            assert_eq!((completion.requested_length, completion.placed_length), (100, 60));
            assert!(!completion.failed);
            slots.release(name);
        }
    }

    #[test]
    fn a_failure_ends_an_operation_that_awaits_two_events() {
        let slots = Slots::new();
        let name = slots.take(2, None);
        slots.deliver(&event(name, EventKind::Failed));
        assert!(slots.is_complete(name) && slots.completion(name).failed);
    }

    #[test]
    fn an_event_of_a_past_life_is_ignored() {
        let slots = Slots::new();
        let name = slots.take(1, None);
        slots.release(name);
        let next = slots.take(1, None);
        assert_eq!(name.index(), next.index());
        slots.deliver(&event(name, EventKind::Put));
        assert!(!slots.is_complete(next));
    }

    #[test]
    fn a_slot_forgets_how_its_operation_ended() {
        let slots = Slots::new();
        let name = slots.take(1, Some(5));
        assert_eq!(slots.deliver(&event(name, EventKind::Failed)), Some(5));
        slots.release(name);
        let next = slots.take_quick(1, None, 7, 100);
        assert_eq!(next.index(), name.index());
        assert_eq!(slots.deliver(&Event { requested_length: 60, ..event(next, EventKind::Put) }), None);
        let finished = slots.finish_quick(next.index(), next.generation(), u32::MAX, |ended| {
            assert_eq!((ended.status().source, ended.status().bytes), (1, 60));
        });
        assert_eq!(finished, Quickly::Ended);
    }

    #[test]
    fn the_spare_slot_comes_back() {
        for concurrent in [false, true] {
            let slots = slots(concurrent);
            let name = slots.borrow(1);
            let nested = slots.borrow(1);
            assert_ne!(name.index(), nested.index());
            slots.untouched(name);
            slots.deliver(&event(nested, EventKind::Failed));
            assert!(slots.completion(nested).failed);
            slots.give_back(nested);
            let again = slots.borrow(2);
            assert_eq!(again, name);
            slots.deliver(&event(again, EventKind::Put));
            slots.deliver(&event(again, EventKind::Put));
            slots.give_back(again);
            let next = slots.borrow(1);
            assert_eq!(next.index(), name.index());
            // An event for its life before this one.
            slots.deliver(&event(name, EventKind::Put));
            assert!(!slots.is_complete(next) && !slots.completion(next).failed);
        }
    }

    #[test]
    fn a_receive_that_is_its_slot_ends_once() {
        for concurrent in [false, true] {
            let slots = slots(concurrent);
            let name = slots.take_quick(1, None, 7, 100);
            assert!(slots.is_quick(name) && slots.all_quick().eq([name]));
            assert!(matches!(
                slots.finish_quick(name.index(), name.generation(), u32::MAX, |_| ()),
                Quickly::Pending
            ));
            let whole = Event { requested_length: 60, ..event(name, EventKind::Put) };
            slots.deliver(&whole);
            assert!(matches!(
                slots.finish_quick(name.index(), name.generation(), u32::MAX, |_| ()),
                Quickly::Ended
            ));
            assert!(matches!(
                slots.finish_quick(name.index(), name.generation(), u32::MAX, |_| ()),
                Quickly::Unusual
            ));
            assert!(!slots.is_quick(name));
        }
    }

    #[test]
    fn a_settled_receive_keeps_its_slot_until_its_handle_is_gone() {
        let slots = Slots::new();
        for handle_first in [false, true] {
            let name = slots.take_quick(1, None, 7, 100);
            assert!(slots.settle(name) && !slots.is_quick(name));
            if handle_first {
                slots.release_handle(name.index());
            } else {
                slots.release(name);
            }
            let other = slots.take(1, None);
            assert_ne!(other.index(), name.index());
            if handle_first {
                slots.release(name);
            } else {
                slots.release_handle(name.index());
            }
            let again = slots.take(1, None);
            assert_eq!(again.index(), name.index());
            assert_ne!(again, name);
            slots.release(again);
            slots.release(other);
        }
    }

    #[test]
    fn one_of_several_threads_ends_a_receive() {
        let slots = slots(true);
        for _ in 0..2000 {
            let name = slots.take_quick(1, None, 7, 100);
            slots.deliver(&Event { requested_length: 60, ..event(name, EventKind::Put) });
            let ended = AtomicU32::new(0);
            std::thread::scope(|scope| {
                for settles in [false, true] {
                    let (slots, ended) = (&slots, &ended);
                    scope.spawn(move || {
                        let won = if settles {
                            slots.settle(name)
                        } else {
                            let finished =
                                slots.finish_quick(name.index(), name.generation(), u32::MAX, |_| ());
                            matches!(finished, Quickly::Ended)
                        };
                        ended.fetch_add(won.into(), Ordering::Relaxed);
                    });
                }
            });
            assert_eq!(ended.into_inner(), 1);
        }
    }

    #[test]
    fn grows_without_handing_out_a_slot_twice() {
        let slots = Slots::new();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1000 {
            assert!(seen.insert(slots.take(1, None).index()));
        }
    }

    #[test]
    fn threads_take_and_release_distinct_slots() {
        let slots = slots(true);
        let in_use: Vec<AtomicBool> = (0..4096).map(|_| AtomicBool::new(false)).collect();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..5000 {
                        let names: Vec<_> = (0..1 + round % 7).map(|_| slots.take(1, None)).collect();
                        for name in &names {
                            assert!(!in_use[name.index() as usize].swap(true, Ordering::SeqCst));
                        }
                        for name in names {
                            in_use[name.index() as usize].store(false, Ordering::SeqCst);
                            slots.release(name);
                        }
                    }
                });
            }
        });
    }
}
