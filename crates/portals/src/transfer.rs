//! A matched long message: chunks that whoever waits claims and moves.
//!
//! The record's data words are
//!
//! * the claim word: the record's generation (low 24 bits of it) above the number of the next unit. A claim
//!   checks the generation, so that a worker who comes late, with a record that has been given to somebody else,
//!   gets nothing. Records of other kinds leave this word alone;
//! * the bytes that have been moved; whoever moves the last ones finishes the transfer;
//! * the state: which sides cannot reach the other's memory, whether the owner may still claim something, and whether
//!   the message goes through a pipe;
//! * the time at which it was sent, if what it takes says which way is the faster one.
//!
//! When both wait as the message matches, or before anything of it is moved, it may go through a pipe, see [`crate::pipe`]. Otherwise whoever waits moves
//! chunks straight between the two buffers, the target and the initiator alike. When neither can reach the other's
//! memory, or where the bytes of one side have gaps between them, the initiator copies chunks into bulk pieces and sends
//! those, at most [`PIECES`] ahead of the target, who copies them out.

use crate::core::{Core, Driver, Outcome, notice};
use crate::interface::EventKind;
use crate::memory::{Memory, Place};
use crate::message::{self, PIECE, Piece};
use crate::nic::Nic;
use crate::pipe::Incoming;
use crate::record::kind;
use parnass_base::atomics::Ordering;
use parnass_base::clock::nanoseconds;
use parnass_counters::DIRECT_PIPED;
use parnass_transport::{Bulk, MemoryError, Waiting};

/// Chunks and pieces are made of units of so many bytes; a piece is one.
const UNIT: u64 = 32 << 10;
/// Bytes of a chunk at most.
const MOST_CHUNK: u64 = 512 << 10;
/// Chunks that a message is cut into, between these bounds.
const CHUNKS: u64 = 8;
/// Where the other side computes, so many bytes are one chunk, and of a longer message one part in so many of what is left.
const AT_ONCE: u64 = 128 << 10;
const PARTS: u64 = 4;
/// For so long a target that waits looks whether the initiator comes to wait, before it moves anything alone.
const COMES_NS: u64 = 2_000;
/// Pieces under way in one transfer.
const PIECES: u64 = 6;
/// Bytes that one call of progress moves at most, before it looks around.
const BUDGET: u64 = 2 << 20;

const CLAIM: usize = 0;
const DONE: usize = 1;
const STATE: usize = 2;
const UNIT_BITS: u32 = 40;
const UNIT_MASK: u64 = (1 << UNIT_BITS) - 1;
/// A claim word that lets nobody claim anything.
const NO_CLAIM: u64 = u64::MAX;

/// State: this side cannot reach the other's memory.
const INITIATOR_CANNOT: u64 = 1;
const TARGET_CANNOT: u64 = 2;
/// State: no longer counted in the NIC's `unclaimed`.
const UNCOUNTED: u64 = 4;
/// State: a pipe is wanted, and nothing may be claimed.
const WANTS_PIPE: u64 = 8;
/// State: goes through a pipe.
const PIPED: u64 = 16;
/// State: as `PIPED`, and the initiator waits to be told that it is over.
const TELLS: u64 = 32;
/// State: there was no memory for a pipe, and nobody asks for one again.
const NO_PIPE: u64 = 64;
const NEITHER_CAN: u64 = INITIATOR_CANNOT | TARGET_CANNOT;

/// Turns a record that is in no list, and that names a pipe, into a transfer. Lock held.
pub fn start_piped(nic: &Nic, index: u32) {
    begin(nic, index, PIPED, NO_CLAIM);
    // Release pairs with the acquire in `drain_pipes`.
    nic.control.piped.fetch_add(1, Ordering::Release);
}

fn begin(nic: &Nic, index: u32, state: u64, claim: u64) {
    let record = nic.slab.at(index);
    record.kind.set(kind::TRANSFER);
    record.detail.set(0);
    record.data[DONE].store(0, Ordering::Relaxed);
    record.data[STATE].store(state, Ordering::Relaxed);
    record.data[CLAIM].store(claim, Ordering::Release);
    nic.slab.push(&nic.control.transfers, index);
}

/// Lets nobody claim anything of a transfer any more whose initiator is dead: what that one had claimed it will never move. Lock held.
pub fn stop(nic: &Nic, index: u32) {
    nic.slab.at(index).data[CLAIM].store(NO_CLAIM, Ordering::Release);
}

/// Takes a transfer that was stopped, and of which nobody moves anything, out of the list. Lock held.
pub fn abandon(nic: &Nic, index: u32) {
    let state = nic.slab.at(index).data[STATE].load(Ordering::Relaxed);
    if state & (UNCOUNTED | WANTS_PIPE | PIPED) == 0 {
        nic.control.unclaimed.fetch_sub(1, Ordering::Relaxed);
    }
    nic.slab.remove(&nic.control.transfers, index);
}

/// Adds the pipes of a NIC that are not in `known` yet. Lock held.
pub fn find_pipes(nic: &Nic, known: &mut Vec<Incoming>) {
    let mut index = nic.control.transfers.head.get();
    while index != 0 {
        let record = nic.slab.at(index);
        let (state, handle) = (record.data[STATE].load(Ordering::Relaxed), nic.slab.handle(index));
        if state & PIPED != 0 && known.iter().all(|pipe| pipe.handle != handle) {
            let placed = record.length.get();
            known.push(Incoming {
                index,
                handle,
                source: record.source.get(),
                pipe: Bulk(record.remote.get()),
                memory: Memory::from_word(record.address.get()),
                length: if state & TELLS != 0 { placed } else { record.requested.get() },
                placed,
                drained: 0,
            });
        }
        index = record.next.get();
    }
}

/// What a worker knows of a transfer.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    index: u32,
    handle: u64,
    initiator: u32,
    /// At the initiator.
    pub remote: Memory,
    /// At the target.
    memory: Memory,
    pub length: u64,
    mark: u64,
    wants_pipe: bool,
    /// Nobody has claimed anything of it.
    is_untouched: bool,
}

/// Some transfers of a NIC that may have something left to claim: those of one initiator, or of all. Lock held.
pub fn works_of(nic: &Nic, initiator: Option<u32>) -> Vec<Work> {
    let mut works = Vec::new();
    let mut index = nic.control.transfers.head.get();
    while index != 0 && works.len() < 8 {
        let record = nic.slab.at(index);
        let claim = record.data[CLAIM].load(Ordering::Relaxed);
        let work = Work {
            index,
            handle: nic.slab.handle(index),
            initiator: record.source.get(),
            remote: Memory::from_word(record.remote.get()),
            memory: Memory::from_word(record.address.get()),
            length: record.length.get(),
            mark: u64::from(record.generation.get()) << UNIT_BITS,
            wants_pipe: record.data[STATE].load(Ordering::Relaxed) & WANTS_PIPE != 0,
            is_untouched: claim & UNIT_MASK == 0,
        };
        let claimed = (claim & UNIT_MASK) * UNIT;
        let open = if claim == NO_CLAIM { work.wants_pipe } else { claimed < work.length };
        if open && initiator.is_none_or(|initiator| initiator == work.initiator) {
            works.push(work);
        }
        index = record.next.get();
    }
    works
}

/// Bytes that a worker claims at a time of a message of such a length, of which so much is left. Each chunk costs a call of the kernel. Where the other side
/// computes nobody waits for the end of one until that side comes back, which then finds something left to take part in.
fn chunk(length: u64, left: u64, alone: bool) -> u64 {
    if alone && length <= AT_ONCE {
        return AT_ONCE;
    }
    let part = if alone { left / PARTS } else { length / CHUNKS };
    part.next_multiple_of(UNIT).clamp(UNIT, MOST_CHUNK)
}

impl Work {
    /// Whether nobody but their owners can move the bytes of one side.
    fn has_gaps(&self) -> bool {
        self.remote.is_described() || self.memory.is_described()
    }

    fn is_in_pieces(&self, nic: &Nic) -> bool {
        nic.slab.at(self.index).data[STATE].load(Ordering::Relaxed) & NEITHER_CAN == NEITHER_CAN
    }

    /// The next bytes to move: at most `bytes` of what is left, in whole units: their offset and length. At most `ahead` bytes may be claimed and not moved.
    fn claim(&self, nic: &Nic, bytes: impl Fn(u64) -> u64, ahead: u64) -> Option<(u64, usize)> {
        let record = nic.slab.at(self.index);
        let word = &record.data[CLAIM];
        let mut seen = word.load(Ordering::Acquire);
        loop {
            let offset = (seen & UNIT_MASK) * UNIT;
            if seen & !UNIT_MASK != self.mark || offset >= self.length {
                return None;
            }
            let done = record.data[DONE].load(Ordering::Relaxed);
            if offset.saturating_sub(done) >= ahead {
                return None;
            }
            let units = bytes(self.length - offset) / UNIT;
            match word.compare_exchange_weak(seen, seen + units, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    let length = (self.length - offset).min(units * UNIT);
                    if offset + length == self.length {
                        self.uncount(nic, 0);
                    }
                    return Some((offset, length as usize));
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Notes that the owner has nothing more to claim, and `also`. Returns the state before.
    fn uncount(&self, nic: &Nic, also: u64) -> u64 {
        let before = nic.slab.at(self.index).data[STATE].fetch_or(UNCOUNTED | also, Ordering::AcqRel);
        if before & UNCOUNTED == 0 {
            nic.control.unclaimed.fetch_sub(1, Ordering::Relaxed);
        }
        before
    }

    /// Notes that `length` claimed bytes are moved. `true`: they were the last ones.
    fn done(&self, nic: &Nic, length: usize) -> bool {
        let word = &nic.slab.at(self.index).data[DONE];
        word.fetch_add(length as u64, Ordering::AcqRel) + length as u64 == self.length
    }
}

impl Core {
    /// Turns a record of the NIC of `of` that is in no list, with a message whose data is in the initiator's memory, into
    /// a transfer. Whether either side may move all of it. Lock held.
    pub fn start_transfer(&self, nic: &Nic, of: u32, index: u32, outcome: &mut Outcome) -> bool {
        let record = nic.slab.at(index);
        let initiator = record.source.get();
        let gaps = [&record.remote, &record.address]
            .into_iter()
            .any(|word| Memory::from_word(word.get()).is_described());
        let mark = u64::from(record.generation.get()) << UNIT_BITS;
        let length = record.length.get();
        let prefers_direct = || !gaps && self.prefers_direct(of, initiator, length as usize);
        let wants_pipe = self.wants_pipe(of, initiator) && !prefers_direct();
        let in_pieces = gaps && initiator != of;
        if wants_pipe {
            begin(nic, index, WANTS_PIPE, NO_CLAIM);
        } else if in_pieces {
            begin(nic, index, NEITHER_CAN | UNCOUNTED, mark);
        } else {
            begin(nic, index, 0, mark);
            nic.control.unclaimed.fetch_add(1, Ordering::Relaxed);
        }
        let is_shared = !wants_pipe && !in_pieces && self.transport.reaches(initiator);
        // Who computes, or has to share a processor to help, is not called for what this process moves at once.
        let at_once = is_shared && of == self.me && self.is_attended() && length <= AT_ONCE;
        if !at_once || self.waits(initiator) && self.transport.spins() != 0 {
            outcome.calls.push((initiator, wants_pipe || in_pieces));
        }
        is_shared
    }

    /// Moves bytes of a transfer from its initiator's memory into this process.
    fn fetch(&self, work: &Work, offset: u64, length: usize) -> Result<(), MemoryError> {
        if work.initiator == self.me {
            self.copy_within(work.remote, work.memory, offset, length);
            return Ok(());
        }
        let (Place::Run(remote), Place::Run(local)) = (work.remote.place(), work.memory.place()) else {
            return Err(MemoryError::NotPermitted);
        };
        let (remote, local) = (remote.offset(offset as i64), local.offset(offset as i64));
        self.transport.read(work.initiator, remote, local, length)
    }

    /// Whether a peer that waits needs this process for a transfer to `target`.
    pub fn owes_transfers(&self, target: u32) -> bool {
        if self.is_far(target) {
            return false;
        }
        let (nic, own) = (self.nic_of(target), target == self.me);
        self.lock(nic);
        let works = works_of(nic, (!own).then_some(self.me));
        nic.lock().release();
        works.iter().any(|work| {
            let peer = if own { work.initiator } else { target };
            let shared = self.transport.reaches(peer) && (own || !work.wants_pipe && !work.is_in_pieces(nic));
            peer != self.me && self.waits(peer) && !shared
        })
    }

    /// Whether a transfer with a peer is left to that one, or until this process waits: its helper would take longer for it, and its time.
    fn is_left_to(&self, peer: u32, driver: Driver) -> bool {
        driver == Driver::Other && peer != self.me && self.is_thrifty() && self.transport.reaches(peer)
    }

    /// Moves chunks of the transfers into this process.
    pub fn move_own(&self, driver: Driver, outcome: &mut Outcome) -> bool {
        let nic = self.own();
        if nic.control.unclaimed.load(Ordering::Relaxed) == 0 {
            return false;
        }
        // Pairs with the acquire in `fail`: what this thread has claimed is settled when it no longer counts.
        self.movers.fetch_add(1, Ordering::AcqRel);
        let moved = self.move_chunks(nic, driver, outcome);
        self.movers.fetch_sub(1, Ordering::AcqRel);
        moved
    }

    fn move_chunks(&self, nic: &Nic, driver: Driver, outcome: &mut Outcome) -> bool {
        self.lock(nic);
        let works = works_of(nic, None);
        nic.lock().release();
        let mut moved = 0;
        for work in works {
            if work.wants_pipe || work.is_in_pieces(nic) || self.is_left_to(work.initiator, driver) {
                continue;
            }
            // Of a dead one nothing can be read, which ends the transfer.
            if !self.transport.reaches(work.initiator) && !self.tallies.of(work.initiator).is_dead() {
                self.refuse(nic, &work, TARGET_CANNOT, UNCOUNTED);
                self.call(work.initiator, true);
                continue;
            }
            if self.may_turn(self.me, &work)
                && self.comes_to_wait(work.initiator)
                && self.turn_to_pipe(nic, &work)
            {
                self.call(work.initiator, true);
                continue;
            }
            let bytes =
                |left| chunk(work.length, left, self.transport.spins() == 0 || !self.waits(work.initiator));
            while moved < BUDGET
                && let Some((offset, length)) = work.claim(nic, bytes, u64::MAX)
            {
                moved += length as u64;
                let result = self.fetch(&work, offset, length);
                if self.settle(nic, &work, length, result) {
                    self.lock(nic);
                    self.complete(nic, self.me, work.index, driver, outcome);
                    nic.lock().release();
                }
            }
        }
        moved != 0
    }

    /// Notes that a side cannot reach the other's memory. The record may be somebody else's by now: then nothing
    /// of it has been claimed by this worker, and the mark is checked under the lock.
    fn refuse(&self, nic: &Nic, work: &Work, side: u64, uncount: u64) -> bool {
        self.lock(nic);
        let valid = nic.slab.resolve(work.handle).is_some();
        if valid {
            if uncount != 0 {
                work.uncount(nic, side);
            } else {
                nic.slab.at(work.index).data[STATE].fetch_or(side, Ordering::AcqRel);
            }
        }
        nic.lock().release();
        valid
    }

    /// Moves chunks of a transfer from this process into `target`.
    pub fn move_to(&self, target: u32, work: &Work, driver: Driver) -> bool {
        let nic = self.nic_of(target);
        let mut worked = false;
        if work.wants_pipe {
            return self.give_pipe(target, nic, work);
        }
        if !work.is_in_pieces(nic) && !self.transport.reaches(target) {
            self.refuse(nic, work, INITIATOR_CANNOT, 0);
            if !work.is_in_pieces(nic) && self.waits(self.me) && !self.waits(target) {
                // It has not said yet that it cannot either.
                self.transport.ring_helper(target);
            }
        }
        if work.is_in_pieces(nic) {
            return self.send_pieces(target, nic, work);
        }
        // What has gaps goes in pieces or stays in its process.
        let (Place::Run(local), Place::Run(remote)) = (work.remote.place(), work.memory.place()) else {
            return false;
        };
        if !self.transport.reaches(target) || self.is_left_to(target, driver) {
            return false;
        }
        if self.may_turn(target, work) && self.waits(target) && self.turn_to_pipe(nic, work) {
            return self.give_pipe(target, nic, work);
        }
        let bytes = |left| chunk(work.length, left, !self.waits(target));
        while let Some((offset, length)) = work.claim(nic, bytes, u64::MAX) {
            worked = true;
            let (remote, local) = (remote.offset(offset as i64), local.offset(offset as i64));
            let result = self.transport.write(target, remote, local, length);
            if self.settle(nic, work, length, result) {
                let mut outcome = Outcome::default();
                self.lock(nic);
                self.complete(nic, target, work.index, Driver::Other, &mut outcome);
                nic.lock().release();
                self.transport.ring(target);
                self.finish(&mut outcome);
            }
        }
        worked
    }

    /// Whether a transfer of which nobody has moved anything may still go through a pipe, should both sides wait.
    fn may_turn(&self, of: u32, work: &Work) -> bool {
        work.is_untouched
            && self.is_attended()
            && !work.has_gaps()
            && self.could_pipe(of, work.initiator)
            && !self.prefers_direct(of, work.initiator, work.length as usize)
    }

    /// Whether a peer waits, or soon does: two that exchange messages match each other's before both wait, and what one moves alone by then takes
    /// longer than what both move.
    fn comes_to_wait(&self, peer: u32) -> bool {
        let mut end = None;
        while !self.waits(peer) {
            let now = nanoseconds();
            if now > *end.get_or_insert(now + COMES_NS) {
                return false;
            }
            std::hint::spin_loop();
        }
        true
    }

    /// Has a transfer of which nobody has moved anything ask for a pipe.
    fn turn_to_pipe(&self, nic: &Nic, work: &Work) -> bool {
        self.lock(nic);
        let record = nic.slab.at(work.index);
        let turns = nic.slab.resolve(work.handle).is_some()
            && record.data[STATE].load(Ordering::Relaxed) == 0
            && record.data[CLAIM]
                .compare_exchange(work.mark, NO_CLAIM, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
        if turns {
            record.data[STATE].store(WANTS_PIPE, Ordering::Relaxed);
            nic.control.unclaimed.fetch_sub(1, Ordering::Relaxed);
        }
        nic.lock().release();
        turns
    }

    /// Opens the pipe that a transfer to `target` asks for, or lets it go without.
    fn give_pipe(&self, target: u32, nic: &Nic, work: &Work) -> bool {
        let record = nic.slab.at(work.index);
        // Changes the state, if it is still what it was.
        let change = |then: &dyn Fn()| {
            self.lock(nic);
            let valid = nic.slab.resolve(work.handle).is_some()
                && record.data[STATE].load(Ordering::Relaxed) == WANTS_PIPE;
            if valid {
                then();
            }
            nic.lock().release();
            valid
        };
        let opened = self.open_pipe(work, target, |pipe| {
            change(&|| {
                record.remote.set(pipe.0);
                record.data[STATE].store(PIPED | TELLS, Ordering::Relaxed);
                // Release pairs with the acquire in `drain_pipes`.
                nic.control.piped.fetch_add(1, Ordering::Release);
            })
        });
        if !opened {
            change(&|| {
                if work.has_gaps() {
                    record.data[STATE].store(NEITHER_CAN | UNCOUNTED, Ordering::Relaxed);
                } else {
                    record.data[STATE].store(NO_PIPE, Ordering::Relaxed);
                    nic.control.unclaimed.fetch_add(1, Ordering::Relaxed);
                }
                record.data[CLAIM].store(work.mark, Ordering::Release);
            });
            self.transport.ring(target);
        } else {
            self.counters.count_any(DIRECT_PIPED, 1);
        }
        opened
    }

    fn settle(&self, nic: &Nic, work: &Work, length: usize, result: Result<(), MemoryError>) -> bool {
        if result.is_err() {
            nic.slab.at(work.index).detail.set(1);
        }
        work.done(nic, length)
    }

    fn send_pieces(&self, target: u32, nic: &Nic, work: &Work) -> bool {
        let mut worked = false;
        while let Some(bulk) = self.transport.claim(UNIT as usize) {
            let Some((offset, length)) = work.claim(nic, |_| UNIT, PIECES * UNIT) else {
                self.transport.discard(bulk);
                break;
            };
            worked = true;
            self.fill(target, bulk, 0, work.remote, offset, length);
            let tag = message::tag(PIECE, 0, self.me);
            self.post_or_delay(target, tag, [work.handle, offset, bulk.0, length as u64]);
        }
        if worked && work.memory.is_described() && self.transport.shown(target) == Waiting::Not {
            // Only it can take them in.
            self.transport.ring_helper(target);
        }
        worked
    }

    /// Takes in a piece at the NIC of `of`, whose lock is held. `false`: it must wait where it is.
    pub fn place_piece(
        &self,
        nic: &Nic,
        of: u32,
        driver: Driver,
        piece: &Piece,
        outcome: &mut Outcome,
    ) -> bool {
        let bulk = Bulk(piece.bulk);
        let index = nic.slab.resolve(piece.transfer).filter(|index| {
            let record = nic.slab.at(*index);
            record.kind.get() == kind::TRANSFER && record.source.get() == piece.source
        });
        let Some(index) = index else {
            self.transport.discard(bulk);
            return true;
        };
        let record = nic.slab.at(index);
        let memory = Memory::from_word(record.address.get());
        match self.drain(bulk, 0, of, memory, piece.offset, piece.length as usize) {
            Ok(()) => (),
            Err(MemoryError::NotPermitted) => return false,
            Err(MemoryError::Gone | MemoryError::Failed) => record.detail.set(1),
        }
        self.transport.discard(bulk);
        let done = record.data[DONE].load(Ordering::Relaxed) + piece.length;
        record.data[DONE].store(done, Ordering::Release);
        if done == record.length.get() {
            self.complete(nic, of, index, driver, outcome);
        } else {
            outcome.calls.push((piece.source, true));
        }
        true
    }

    /// Ends a transfer all of whose bytes are moved. Lock held.
    pub fn complete(&self, nic: &Nic, of: u32, index: u32, driver: Driver, outcome: &mut Outcome) {
        let record = nic.slab.at(index);
        let (put, send) = if record.detail.get() == 0 {
            (EventKind::Put, EventKind::Send)
        } else {
            (EventKind::Failed, EventKind::Failed)
        };
        let state = record.data[STATE].load(Ordering::Relaxed);
        if state & (PIPED | TELLS) != PIPED {
            outcome.notices.push((record.source.get(), notice(record, of, send)));
        }
        nic.slab.remove(&nic.control.transfers, index);
        self.report(nic, index, put, driver, outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parnass_base::{Region, Window};

    fn memory(length: usize) -> Window {
        Region::private(length).unwrap().window(0, length)
    }

    /// The first record of a NIC has generation 0, and so has a claim of its first chunk, which looks like a message of zeros.
    #[test]
    fn who_comes_late_claims_nothing_of_what_the_record_has_become() {
        let nic = Nic::new(&memory(64 << 20), &memory(4096));
        let index = nic.slab.allocate(crate::slab::Purpose::Posting);
        let record = nic.slab.at(index);
        record.length.set(2 * UNIT);
        begin(&nic, index, 0, u64::from(record.generation.get()) << UNIT_BITS);
        nic.control.unclaimed.fetch_add(1, Ordering::Relaxed);
        let (first, late) = (works_of(&nic, None)[0], works_of(&nic, None)[0]);
        for _ in 0..2 {
            let (_, length) = first.claim(&nic, |_| UNIT, u64::MAX).unwrap();
            first.done(&nic, length);
        }
        nic.slab.remove(&nic.control.transfers, index);
        nic.slab.release(index);
        assert_eq!(nic.slab.allocate(crate::slab::Purpose::Arrival), index);
        record.kind.set(kind::UNEXPECTED);
        for cell in record.short() {
            cell.set(0);
        }
        assert_eq!(late.claim(&nic, |_| UNIT, u64::MAX), None);
        assert!(record.short().iter().all(|cell| cell.get() == 0));
    }

    #[test]
    fn who_moves_alone_claims_more_first_and_less_at_the_end() {
        for (length, left, shared, alone) in [
            (1, 1, 32, 128),
            (100_000, 100_000, 32, 128),
            (1 << 20, 1 << 20, 128, 256),
            (1 << 20, 3 << 17, 128, 96),
            (1 << 20, 1, 128, 32),
            (16 << 20, 16 << 20, 512, 512),
        ] {
            assert_eq!((chunk(length, left, false), chunk(length, left, true)), (shared << 10, alone << 10));
        }
    }
}
