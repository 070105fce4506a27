//! Longer messages between two processes that both wait: through a piece of shared memory that the initiator fills
//! while the target drains it.
//!
//! With both sides at it that is faster than the kernel's copy from process to process on some processors, and slower on others, which is
//! found out for long messages; with one it is slower. It begins in one of two ways:
//!
//! * a `PIPED` message goes to a target that waits: it names the pipe, and its data follows at once, before anybody has
//!   matched it. The put is over once all of it is in the pipe;
//! * a `DIRECT` message matches while both sides wait: the target marks the transfer as wanting a pipe, and the
//!   initiator opens one. The put is over when the target says so, as with any direct message.
//!
//! From then on neither needs the other's lock: each stores how far it has come in the piece's [`Gauge`], and rings.
//! Both keep the pipes that they work at in their own memory; the target finds new ones in its NIC's list of transfers.

use crate::core::{Core, Driver, Outcome};
use crate::interface::*;
use crate::memory::{Memory, Place};
use crate::message::{self, PIPED};
use crate::record::kind;
use crate::transfer::Work;
use parnass_base::atomics::{AtomicBool, AtomicU32, Ordering};
use parnass_base::clock::nanoseconds;
use parnass_transport::{Bulk, Gauge, Waiting};
use std::sync::Mutex;

/// Shorter messages are copied in and out at once.
pub const PIPE_LEAST: usize = 16 << 10;
/// Pipes to one target at a time, of those that a match asks for.
const PIPES: usize = 2;
/// Shorter messages fit into any last cache.
const LONG: u64 = 1 << 20;
/// Looks at the other side's gauge before the pipe is left for something else, and before the other side is rung in case
/// it sleeps: a ring waits for all stores before it, which costs more than a step of the pipe.
const LOOKS: u32 = 300;
const LOOKS_UNRUNG: u32 = 50;
/// A pipe of a peer that waits goes on within this time, if that has its processor.
const GOES_ON_NS: u64 = 10_000;
/// So long new ones may follow those of a process that is about to compute, and so long it works at them before it leaves the rest to its helper: what it
/// has waited for may be needed at once.
const FOLLOWS_NS: u64 = 30_000;
const FINISHES_NS: u64 = 1_000_000;

/// The pipes that a process works at.
#[derive(Debug, Default)]
pub struct Pipes {
    outgoing: Mutex<Vec<Outgoing>>,
    outgoing_count: AtomicU32,
    incoming: Mutex<Vec<Incoming>>,
    incoming_count: AtomicU32,
    /// How many of the pipes that ever came to this NIC have been found.
    found: AtomicU32,
    /// A match asked for a pipe when there were enough.
    deferred: AtomicBool,
}

/// A pipe that this process fills.
#[derive(Debug)]
struct Outgoing {
    target: u32,
    pipe: Bulk,
    source: Memory,
    length: u64,
    filled: u64,
    /// The put that is over once the pipe has it all.
    put: Option<Put>,
}

/// A pipe that this process drains.
#[derive(Debug)]
pub struct Incoming {
    pub index: u32,
    pub handle: u64,
    pub source: u32,
    pub pipe: Bulk,
    pub memory: Memory,
    /// Bytes that come, and how many of them are wanted.
    pub length: u64,
    pub placed: u64,
    pub drained: u64,
}

/// Bytes after which the other side is told.
fn unit(length: u64) -> u64 {
    match length {
        0..0x2_0000 => 8 << 10,
        0x2_0000..0x4_0000 => 16 << 10,
        _ => 32 << 10,
    }
}

impl Core {
    pub fn waits(&self, process: u32) -> bool {
        self.transport.shown(process) != Waiting::Not
    }

    /// Whether a message that has matched should go through a pipe.
    pub fn wants_pipe(&self, target: u32, initiator: u32) -> bool {
        self.could_pipe(target, initiator) && self.waits(initiator) && self.waits(target)
    }

    /// Whether it could, should both sides wait.
    pub fn could_pipe(&self, target: u32, initiator: u32) -> bool {
        target != initiator
            && self.transport.spins() != 0
            && self.transport.pipe_bytes(if target == self.me { initiator } else { target }) != 0
    }

    /// Whether the kernel is to copy a long message of one run of bytes between two processes that wait, one of which is this one.
    pub fn prefers_direct(&self, target: u32, initiator: u32, length: usize) -> bool {
        length as u64 > self.tuning.piped_most()
            && self.transport.reaches(if target == self.me { initiator } else { target })
    }

    /// Whether a message that could be copied into shared memory, and out of it, had better be copied once: where ranks share processors, and the target is
    /// on another one, the second copy would bring each line from there once more. A caller that is `blocking`, and does nothing but send, is not kept until
    /// its target comes.
    pub fn prefers_one_copy(&self, target: u32, source: Memory, length: usize, blocking: bool) -> bool {
        length >= PIPE_LEAST
            && self.tuning.copies_once
            && self.transport.is_across(target)
            && (!blocking || self.own().receives() || self.waits(target))
            && matches!(source.place(), Place::Run(_))
            && self.transport.reaches(target)
    }

    /// Whether a target waits for a long message that this process now sends, and will take part in moving it; and this one too.
    pub fn is_taken_at_once(&self, put: &Put) -> bool {
        let target = put.target.0;
        // Who goes on computing would keep a pipe half filled. This is asked first: what the target shows lies in its cache.
        let stays = put.protocol != Protocol::Direct || self.waits(self.me);
        let is_waited_for = || match self.transport.shown(target) {
            Waiting::Not | Waiting::ForElse => false,
            Waiting::For(process) => process == self.me,
            Waiting::ForAny => true,
        };
        stays && target != self.me && self.transport.spins() != 0 && is_waited_for()
    }

    /// A piece of this process, of so many bytes, that one side is to fill while the other drains it.
    pub fn claim_pipe(&self, bytes: usize) -> Option<(Bulk, Gauge<'_>)> {
        let pipe = self.transport.claim(bytes)?;
        let Some(gauge) = self.transport.gauge(pipe) else {
            self.transport.discard(pipe);
            return None;
        };
        gauge.filled.store(0, Ordering::Relaxed);
        gauge.drained.store(0, Ordering::Relaxed);
        Some((pipe, gauge))
    }

    /// Sends a put through a pipe, whose target [takes it at once](Core::is_taken_at_once). `None`: there is no room for one.
    pub fn send_piped(&self, put: &Put) -> Option<PutOutcome> {
        let target = put.target.0;
        let room = self.transport.pipe_bytes(target);
        if room == 0 {
            return None;
        }
        let (pipe, _) = self.claim_pipe(put.length.min(room))?;
        let ack = put.ack == Ack::Matched;
        let words = [put.match_bits, put.header_data, pipe.0, put.length as u64, put.user];
        self.expect(target, u32::from(ack));
        if !self.transport.post(target, message::tag(PIPED, usize::from(ack), self.me), &words) {
            self.received(target, u32::from(ack));
            self.transport.discard(pipe);
            return None;
        }
        let length = put.length as u64;
        let mut outgoing = Outgoing { target, pipe, source: put.source, length, filled: 0, put: Some(*put) };
        self.fill_pipe(&mut outgoing);
        if outgoing.filled == length {
            return Some(PutOutcome::Done);
        }
        self.keep(outgoing);
        Some(PutOutcome::Pending)
    }

    fn keep(&self, outgoing: Outgoing) {
        let mut all = lock(&self.pipes.outgoing);
        all.push(outgoing);
        self.pipes.outgoing_count.store(all.len() as u32, Ordering::Relaxed);
    }

    /// Opens the pipe that a matched message of this process asks for; it is noted by `note`, under the target's lock.
    /// `false`: there is no memory for one.
    pub fn open_pipe(&self, work: &Work, target: u32, note: impl FnOnce(Bulk) -> bool) -> bool {
        let here = |outgoing: &&Outgoing| outgoing.target == target;
        if lock(&self.pipes.outgoing).iter().filter(here).count() >= PIPES {
            self.pipes.deferred.store(true, Ordering::Relaxed);
            return true;
        }
        let (source, length) = (work.remote, work.length);
        let room = self.transport.pipe_bytes(target);
        let Some((pipe, _)) = self.claim_pipe(room.min(length as usize)) else { return false };
        if !note(pipe) {
            // Somebody else of this process was faster.
            self.transport.discard(pipe);
            return true;
        }
        let mut outgoing = Outgoing { target, pipe, source, length, filled: 0, put: None };
        self.fill_pipe(&mut outgoing);
        if outgoing.filled != length {
            self.keep(outgoing);
        }
        true
    }

    fn gauge(&self, pipe: Bulk) -> Gauge<'_> {
        self.transport.gauge(pipe).expect("a pipe has a gauge")
    }

    /// Bytes that a pipe holds at a time.
    fn pipe_room(&self, peer: u32, length: u64) -> u64 {
        length.min(self.transport.pipe_bytes(peer) as u64)
    }

    /// Fills a pipe as far as it goes. Returns whether anything went.
    fn fill_pipe(&self, outgoing: &mut Outgoing) -> bool {
        let Outgoing { target, pipe, length, .. } = *outgoing;
        let gauge = self.gauge(pipe);
        let (room, unit) = (self.pipe_room(target, length), unit(length));
        let before = outgoing.filled;
        let (mut looks, mut rung, mut stuck) = (0, before, false);
        while outgoing.filled < length {
            let filled = outgoing.filled;
            // Acquire pairs with the release in `drain_pipe`: what was there has been read.
            let free = room - (filled - gauge.drained.load(Ordering::Acquire));
            if free == 0 {
                stuck = true;
                if filled == before || looks == LOOKS {
                    break;
                }
                looks += 1;
                if looks == LOOKS_UNRUNG {
                    rung = filled;
                    self.transport.ring(target);
                }
                std::hint::spin_loop();
                continue;
            }
            looks = 0;
            let at = filled % room;
            let bytes = unit.min(free).min(room - at).min(length - filled);
            self.fill(target, pipe, at as usize, outgoing.source, filled, bytes as usize);
            outgoing.filled += bytes;
            // Release pairs with the acquire in `drain_pipe`.
            gauge.filled.store(outgoing.filled, Ordering::Release);
        }
        if outgoing.filled != rung {
            self.transport.ring(target);
        }
        let advanced = outgoing.filled != before;
        // It is over when the target says so, which is not asked again.
        let untold = outgoing.put.is_none() && outgoing.filled == length;
        let wanted = if self.is_thrifty() { untold || stuck && self.waits(self.me) } else { advanced };
        if wanted && !self.waits(target) {
            self.transport.ring_helper_that_waits(target);
        }
        advanced
    }

    /// Whether a peer that waits needs this process for a pipe.
    pub fn owes_pipes(&self) -> bool {
        let pipes = &self.pipes;
        lock(&pipes.outgoing).iter().any(|one| self.waits(one.target))
            || lock(&pipes.incoming).iter().any(|one| self.waits(one.source))
    }

    /// For a process that is about to compute: works at its pipes as long as that goes on. Both sides together take less time for that than its helper
    /// would take from this process alone. At first new pipes may follow, as they do where it waits for one message after the other.
    #[cold]
    pub fn finish_pipes(&self) {
        let mut outcome = Outcome::default();
        let mut moved_at = nanoseconds();
        let begun_at = moved_at;
        let mut leaves = false;
        while self.has_pipes() {
            let moved = self.move_pipes(Driver::Other, &mut outcome);
            let now = nanoseconds();
            if moved {
                moved_at = now;
            }
            if !leaves && (now > begun_at + FOLLOWS_NS || now > moved_at + GOES_ON_NS) {
                // No new ones, and no rings for these.
                self.transport.rest_helper(true);
                self.transport.show(Waiting::Not);
                leaves = true;
            }
            let in_vain = !moved && (now > moved_at + GOES_ON_NS || !self.owes_pipes());
            if in_vain || now > begun_at + FINISHES_NS {
                break;
            }
        }
        if leaves {
            self.transport.rest_helper(false);
        }
        self.finish(&mut outcome);
        self.leave_events(&mut outcome);
    }

    /// Whether a pipe of this process has come to something to do.
    #[inline]
    pub fn pipes_move(&self) -> bool {
        let pipes = &self.pipes;
        let found = pipes.found.load(Ordering::Relaxed);
        if self.own().control.piped.load(Ordering::Relaxed) != found {
            return true;
        }
        let open = |gauge: Gauge<'_>| gauge.drained.load(Ordering::Relaxed);
        (pipes.outgoing_count.load(Ordering::Relaxed) != 0
            && pipes.outgoing.try_lock().is_ok_and(|all| {
                all.iter().any(|one| {
                    one.filled - open(self.gauge(one.pipe)) < self.pipe_room(one.target, one.length)
                })
            }))
            || (pipes.incoming_count.load(Ordering::Relaxed) != 0
                && pipes.incoming.try_lock().is_ok_and(|all| {
                    all.iter().any(|one| self.gauge(one.pipe).filled.load(Ordering::Relaxed) != one.drained)
                }))
    }

    /// Whether there are pipes at all.
    #[inline(always)]
    pub fn has_pipes(&self) -> bool {
        let pipes = &self.pipes;
        self.own().control.piped.load(Ordering::Relaxed) != pipes.found.load(Ordering::Relaxed)
            || pipes.outgoing_count.load(Ordering::Relaxed) != 0
            || pipes.incoming_count.load(Ordering::Relaxed) != 0
    }

    /// Works at all pipes of this process. Returns whether anything moved.
    pub fn move_pipes(&self, driver: Driver, outcome: &mut Outcome) -> bool {
        let drained = self.drain_pipes(driver, outcome);
        self.fill_pipes(outcome) || drained
    }

    fn fill_pipes(&self, outcome: &mut Outcome) -> bool {
        if self.pipes.outgoing_count.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let Ok(mut all) = self.pipes.outgoing.try_lock() else { return false };
        let mut moved = false;
        all.retain_mut(|outgoing| {
            moved |= self.fill_pipe(outgoing);
            let over = outgoing.filled == outgoing.length;
            if over && let Some(put) = outgoing.put {
                outcome.events.push(put.event(EventKind::Send));
            }
            !over
        });
        self.pipes.outgoing_count.store(all.len() as u32, Ordering::Relaxed);
        if moved && self.pipes.deferred.swap(false, Ordering::Relaxed) {
            // Look again at what has matched.
            self.own().control.calls.fetch_add(1, Ordering::Relaxed);
        }
        moved
    }

    fn drain_pipes(&self, driver: Driver, outcome: &mut Outcome) -> bool {
        let nic = self.own();
        // Acquire pairs with the release in `transfer::pipe`.
        let piped = nic.control.piped.load(Ordering::Acquire);
        let unknown = piped != self.pipes.found.load(Ordering::Relaxed);
        if !unknown && self.pipes.incoming_count.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let Ok(mut all) = self.pipes.incoming.try_lock() else { return false };
        if unknown {
            self.lock(nic);
            crate::transfer::find_pipes(nic, &mut all);
            self.pipes.found.store(nic.control.piped.load(Ordering::Relaxed), Ordering::Relaxed);
            nic.lock().release();
        }
        let mut moved = false;
        all.retain_mut(|incoming| {
            moved |= self.drain_pipe(incoming);
            let over = incoming.drained == incoming.length;
            if over {
                self.note_came(incoming.placed as usize);
                self.transport.discard(incoming.pipe);
                self.lock(nic);
                // Where its initiator has died meanwhile, it is over already.
                let record = nic.slab.at(incoming.index);
                let is_under_way = record.kind.get() == kind::TRANSFER;
                if is_under_way && nic.slab.resolve(incoming.handle).is_some() {
                    self.complete(nic, self.me, incoming.index, driver, outcome);
                }
                nic.lock().release();
            }
            !over
        });
        self.pipes.incoming_count.store(all.len() as u32, Ordering::Relaxed);
        moved
    }

    /// Whether so many bytes are better written past the caches.
    #[inline]
    pub fn goes_past_caches(&self, bytes: u64) -> bool {
        bytes >= LONG && bytes > self.transport.past_caches() as u64
    }

    /// Copies bytes of a pipe, from `at` on, to where they belong.
    fn drain_part(&self, incoming: &Incoming, at: usize, length: usize) {
        let Incoming { pipe, memory, drained, placed, .. } = *incoming;
        match memory.place() {
            Place::Run(address) if self.goes_past_caches(placed) => {
                let target = address.offset(drained as i64);
                let mut read = |source| target.stream_from(source, length);
                self.transport.drain_by(pipe, at, length, &mut read);
            }
            _ => self.drain(pipe, at, self.me, memory, drained, length).expect("memory of this process"),
        }
    }

    /// Drains a pipe as far as it goes. Returns whether anything came.
    fn drain_pipe(&self, incoming: &mut Incoming) -> bool {
        let Incoming { source, pipe, length, placed, .. } = *incoming;
        let gauge = self.gauge(pipe);
        let room = self.pipe_room(source, length);
        // Nobody waits for room where all fits.
        let most = if room < length { unit(length) } else { length };
        let before = incoming.drained;
        let (mut looks, mut rung, mut stuck) = (0, before, false);
        while incoming.drained < length {
            let drained = incoming.drained;
            // Acquire pairs with the release in `fill_pipe`.
            let there = gauge.filled.load(Ordering::Acquire) - drained;
            if there == 0 {
                stuck = true;
                if drained == before || looks == LOOKS {
                    break;
                }
                looks += 1;
                if looks == LOOKS_UNRUNG && room < length {
                    rung = drained;
                    self.transport.ring(source);
                }
                std::hint::spin_loop();
                continue;
            }
            looks = 0;
            let at = drained % room;
            let bytes = most.min(there).min(room - at);
            let wanted = bytes.min(placed.saturating_sub(drained));
            if wanted != 0 {
                self.drain_part(incoming, at as usize, wanted as usize);
            }
            incoming.drained += bytes;
            if room < length {
                // Release pairs with the acquire in `fill_pipe`.
                gauge.drained.store(incoming.drained, Ordering::Release);
            }
        }
        if room < length && incoming.drained != rung {
            self.transport.ring(source);
        }
        let advanced = incoming.drained != before;
        if room < length && incoming.drained != length && !self.waits(source) {
            if !self.is_thrifty() && advanced {
                self.transport.ring_helper(source);
            } else if stuck && self.waits(self.me) {
                self.transport.ring_helper_that_waits(source);
            }
        }
        advanced
    }
}

impl Core {
    /// Gives up the pipes to and from a dead peer. The puts that end with one of them. What comes through the others is over
    /// when its record is.
    pub fn give_up_pipes(&self, peer: u32) -> Vec<Put> {
        let mut over = Vec::new();
        let mut outgoing = lock(&self.pipes.outgoing);
        outgoing.retain(|one| {
            if one.target == peer {
                over.extend(one.put);
                self.transport.discard(one.pipe);
            }
            one.target != peer
        });
        self.pipes.outgoing_count.store(outgoing.len() as u32, Ordering::Relaxed);
        drop(outgoing);
        let mut incoming = lock(&self.pipes.incoming);
        incoming.retain(|one| one.source != peer);
        self.pipes.incoming_count.store(incoming.len() as u32, Ordering::Relaxed);
        over
    }
}

/// Who has panicked with a lock held has left nothing half done.
pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
