//! The life of a NIC: sending, matching, waiting.
//!
//! Whoever holds the lock of a NIC may drive it: its owner, the owner's helper thread, or a peer that waits for
//! something to happen there. Nobody holds two locks at once: what a driver finds out for others is noted in an
//! [`Outcome`] and delivered after the release.

use crate::board::Boards;
use crate::errand::Errands;
use crate::event_list::EventList;
use crate::far::{FAR, FarPut, Landing};
use crate::index::Pattern;
use crate::interface::*;
use crate::lent::Lent;
use crate::live::Live;
use crate::memory::{Descriptions, Memory};
use crate::message::{self, Arrival, INLINE_ROOM, Incoming, Payload};
use crate::named::Named;
use crate::nic::Nic;
use crate::partial;
use crate::pipe::Pipes;
use crate::receive_soon::Soon;
use crate::record::{ANY, Entry, INLINE_BYTES, flag, kind};
use crate::search::Aside;
use crate::segment::KeptSegments;
use crate::send::Delayed;
use crate::slab::Purpose;
use crate::transfer;
use crate::travel::Travel;
use crate::tuning::Tuning;
use crate::ways::{Tallies, Ways};
use crate::wheel::Wheels;
use parnass_base::Word64;
use parnass_base::atomics::{AtomicBool, AtomicU32, Ordering, full_fence};
use parnass_base::lane::Arrived;
use parnass_base::lock::Acquired;
use parnass_counters as counters;
use parnass_counters::{Counters, Observer, watch};
use parnass_transport::{Bulk, MemoryError, Prospect, Transport, Waiting};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Rounds of taking in before a search, against senders that never stop.
const SEARCH_ROUNDS: u32 = 1_000;
/// Messages of a lane taken in per hold of the lock.
pub const BATCH: usize = 16;
/// Bytes of bulk memory in which a process keeps long messages from its mailbox that nobody expects, before it asks its
/// senders to keep such messages themselves.
const KEPT_LIMIT: u64 = 16 << 20;
/// Tries for a lock before sleeping.
const LOCK_SPINS: u32 = 200;

/// A process's view of its virtual NIC and of its peers.
pub struct Core {
    pub transport: Ways,
    pub tuning: Live,
    /// What this process counts.
    pub counters: Counters,
    pub observer: Arc<Observer>,
    pub me: u32,
    /// This process in locks.
    holder: u32,
    /// The NIC of this process: what every call looks at is found here without a look into a table.
    own: Nic,
    /// The NICs that this process shares, its own among them.
    pub nics: Vec<Nic>,
    /// Where the NIC of each process is among them, or [`FAR`].
    pub places: Vec<u32>,
    pub far_puts: Named<FarPut>,
    pub far_landings: Named<Landing>,
    /// What could not go yet, by target.
    pub delayed: Mutex<Vec<VecDeque<Delayed>>>,
    /// How much that is.
    pub delayed_count: AtomicU32,
    /// How much that is, and what will come, by target.
    pub tallies: Tallies,
    pub outstanding_count: AtomicU32,
    /// How many threads of this process move chunks into it.
    pub movers: AtomicU32,
    /// A call that could not be answered yet, because the NIC concerned was being driven.
    pub unanswered: AtomicBool,
    /// [`Interface::bury`](crate::Interface::bury) is to be called again.
    pub buries: AtomicBool,
    /// How long the last message was that this process has written to where it belongs; 0 where that says nothing, or is used.
    pub came: AtomicU32,
    /// How many more long messages of this process may be taken for parts of exchanges until one comes again, see [`Core::exchanges`].
    pub exchanging: AtomicU32,
    /// Whose message the memory of the entry holds a part of that is appended next, and takes messages from anybody; plus 1. 0: nobody's. Only the one thread
    /// of a process uses it, see [`Core::receive_soon`].
    pub begun_from: AtomicU32,
    pub stopping: AtomicBool,
    /// See [`Core::is_secluded`].
    secluded: bool,
    /// Whether there is a network.
    pub networked: AtomicBool,
    pub pipes: Pipes,
    /// Whether short receives are kept back, see [`crate::parked`].
    pub parks: AtomicBool,
    /// What was put aside, see [`crate::search`].
    pub aside: Aside,
    pub boards: Boards,
    pub segments: KeptSegments,
    pub lent: Lent,
    /// What moves described memory.
    pub descriptions: OnceLock<Arc<dyn Descriptions>>,
    pub errands: Errands,
    pub wheel: Wheels,
}

/// Bytes of bulk memory that a kept message takes, about.
fn room_of(length: u64) -> u64 {
    length.next_power_of_two().max(64) + 64
}

/// What a driver of a NIC has to do once it has released the lock.
#[derive(Debug, Default)]
pub struct Outcome {
    /// For the caller's sink (owner only).
    pub events: EventList<Event>,
    /// For initiators.
    pub notices: EventList<(u32, Event)>,
    /// Initiators that may have something to move, and whether nobody else can move it.
    pub calls: EventList<(u32, bool)>,
    /// What this process has begun to receive: by whom it is moved.
    pub begun: EventList<Mover>,
}

/// Who moves what a process has begun to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mover {
    /// Only that process itself can.
    Own,
    /// A peer that was called, if it waits.
    Peer(u32),
    /// It comes over the network, which has a thread for those who compute.
    Network,
}

/// Who drives a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// Its owner, who takes the events at once.
    Owner,
    /// Somebody who leaves the events in the queue.
    Other,
}

impl Outcome {
    /// Whether there is nothing to do.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.notices.is_empty() && self.calls.is_empty()
    }
}

impl std::fmt::Debug for Core {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "NIC of {} among {}", self.me, self.size())
    }
}

impl Core {
    pub fn new(transport: Arc<dyn Transport>, tuning: Tuning, observer: Arc<Observer>) -> Core {
        let size = transport.size();
        let me = transport.me();
        let (mut nics, mut places) = (Vec::new(), vec![FAR; size as usize]);
        for (rank, place) in (0..).zip(&mut places).filter(|(rank, _)| transport.shares(*rank)) {
            *place = nics.len() as u32;
            nics.push(Nic::new(&transport.nic_memory(rank), &transport.counter_memory(rank)));
        }
        observer.attach(Counters::new(&transport.counter_memory(me)));
        Core {
            counters: Counters::new(&transport.counter_memory(me)),
            observer,
            secluded: nics.len() > 1 && !transport.reaches_peers(),
            holder: transport.holder(),
            me,
            own: Nic::new(&transport.nic_memory(me), &transport.counter_memory(me)),
            nics,
            places,
            far_puts: Named::default(),
            far_landings: Named::default(),
            delayed: Mutex::new((0..size).map(|_| VecDeque::new()).collect()),
            delayed_count: AtomicU32::new(0),
            tallies: Tallies::new(size),
            outstanding_count: AtomicU32::new(0),
            movers: AtomicU32::new(0),
            unanswered: AtomicBool::new(false),
            buries: AtomicBool::new(false),
            exchanging: AtomicU32::new(0),
            begun_from: AtomicU32::new(0),
            came: AtomicU32::new(0),
            stopping: AtomicBool::new(false),
            networked: AtomicBool::new(false),
            pipes: Pipes::default(),
            parks: AtomicBool::new(false),
            aside: Aside::default(),
            boards: Boards::default(),
            segments: KeptSegments::default(),
            lent: Lent::default(),
            descriptions: OnceLock::new(),
            errands: Errands::default(),
            wheel: Wheels::default(),
            transport: Ways::new(transport),
            tuning: Live::new(tuning, size),
        }
    }

    pub fn size(&self) -> u32 {
        self.places.len() as u32
    }

    #[inline(always)]
    pub fn own(&self) -> &Nic {
        &self.own
    }

    /// The NIC of a process of this node.
    #[inline(always)]
    pub fn nic_of(&self, process: u32) -> &Nic {
        &self.nics[self.places[process as usize] as usize]
    }

    #[inline(always)]
    pub fn lock(&self, nic: &Nic) {
        if !nic.lock().try_acquire(self.holder) {
            self.lock_slowly(nic);
        }
    }

    #[cold]
    fn lock_slowly(&self, nic: &Nic) {
        let acquired = nic.lock().acquire(self.holder, LOCK_SPINS, self.transport.holder_lives());
        if acquired == Acquired::Inherited {
            nic.parked.let_in();
        }
    }

    pub fn delayed(&self) -> MutexGuard<'_, Vec<VecDeque<Delayed>>> {
        self.delayed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- receiving

    #[inline]
    pub fn append(&self, list: List, entry: &MatchEntry) -> Result<Appended, PortalError> {
        assert_eq!(
            list,
            List::Priority,
            "plain messages that nobody expects are kept without overflow entries"
        );
        let nic = self.own();
        self.post_all();
        if self.begun_from.load(Ordering::Relaxed) != 0 {
            return self.append_begun(entry);
        }
        let pattern = pattern_of(entry);
        self.lock(nic);
        self.clear_way(nic);
        let found = nic.unexpected.find(&nic.slab, &nic.classes, &pattern, |_| true);
        if found == 0 {
            let result = self.post(nic, pattern.source, entry);
            nic.lock().release();
            if pattern.source == ANY || self.is_far(pattern.source) {
                self.attend_soon(Prospect::Posted);
            }
            return result;
        }
        Ok(self.receive_unexpected(nic, found, entry))
    }

    /// As [`Core::append`], for an entry whose memory may hold a part of a message already: it takes that one, see [`crate::partial`].
    #[cold]
    fn append_begun(&self, entry: &MatchEntry) -> Result<Appended, PortalError> {
        let nic = self.own();
        let source = self.begun_from.swap(0, Ordering::Relaxed) - 1;
        self.lock(nic);
        self.clear_way(nic);
        // Whoever dies from here on is found to be dead with the lock held.
        let kept = !self.tallies.of(source).is_dead();
        let pattern = match kept {
            true => Pattern { source, ..pattern_of(entry) },
            false => pattern_of(entry),
        };
        let found = nic.unexpected.find(&nic.slab, &nic.classes, &pattern, |_| true);
        if found != 0 {
            return Ok(self.receive_unexpected(nic, found, entry));
        }
        let result = self.post(nic, pattern_of(entry).source, entry);
        if kept
            && let Ok(Appended::Posted(EntryHandle(handle))) = &result
            && let Some(index) = nic.slab.resolve(*handle)
        {
            partial::keep(nic.slab.at(index), source);
        }
        nic.lock().release();
        result
    }

    /// Receives an unexpected message, and releases the lock.
    pub fn receive_unexpected(&self, nic: &Nic, found: u32, entry: &MatchEntry) -> Appended {
        let mut outcome = Outcome::default();
        nic.unexpected.remove(&nic.slab, &nic.classes, found);
        let result = self.receive_record(nic, found, entry.memory, entry.length, entry.user, &mut outcome);
        nic.lock().release();
        self.finish(&mut outcome);
        result
    }

    #[inline]
    pub fn post(&self, nic: &Nic, source: u32, entry: &MatchEntry) -> Result<Appended, PortalError> {
        let index = nic.slab.allocate(Purpose::Posting);
        if index == 0 {
            return Err(PortalError::OutOfMemory(nic.slab.shortage()));
        }
        let record = nic.slab.at(index);
        record.kind.set(kind::POSTED);
        record.flags.set(0);
        record.detail.set(PLAIN_PORTAL);
        record.source.set(source);
        record.match_bits.set(entry.match_bits);
        record.ignore_bits.set(entry.ignore_bits);
        record.address.set(entry.memory.word());
        record.length.set(entry.length as u64);
        record.remote.set(0);
        record.user.set(entry.user);
        record.order.set(nic.next_order());
        if !nic.posted.add(&nic.slab, &nic.classes, index) {
            nic.slab.release(index);
            return Err(PortalError::OutOfMemory(
                "cannot reserve memory for the tables of match entries".into(),
            ));
        }
        nic.counters.note_level(counters::POSTED_MARK, nic.posted.0.order().count.get().into());
        Ok(Appended::Posted(EntryHandle(nic.slab.handle(index))))
    }

    /// Whether the processes of this node cannot place what comes for this one while it computes: its helper must, also what is short.
    #[inline(always)]
    pub fn is_secluded(&self) -> bool {
        self.secluded
    }

    /// Receives an unexpected message that is in no list any more.
    pub fn receive_record(
        &self,
        nic: &Nic,
        index: u32,
        memory: Memory,
        length: usize,
        user: u64,
        outcome: &mut Outcome,
    ) -> Appended {
        let record = nic.slab.at(index);
        let requested = record.requested.get();
        let placed = requested.min(length as u64);
        let (flags, initiator) = (record.flags.get(), record.source.get());
        let words = record.short().map(Word64::get);
        let way = Travel::of_kept(flags, self.is_far(initiator));
        self.count_received(nic, way, initiator, record.match_bits.get(), requested, true);
        record.user.set(user);
        record.address.set(memory.word());
        record.length.set(placed);
        let mut event = event_of(record, EventKind::Put);
        if flags & flag::ACK != 0 {
            outcome.notices.push((initiator, notice(record, self.me, EventKind::Ack)));
        }
        if flags & flag::STREAM != 0 || flags & flag::DIRECT != 0 && self.is_far(initiator) {
            let remote = record.remote.get();
            let complete = if flags & flag::STREAM != 0 {
                self.land_stream(nic, index, remote)
            } else {
                self.pull(nic, index, initiator, remote)
            };
            if !complete {
                outcome.begun.push(Mover::Network);
                return Appended::Posted(EntryHandle(nic.slab.handle(index)));
            }
            nic.slab.release(index);
            return Appended::Complete(event);
        }
        if flags & flag::DIRECT != 0 {
            if placed == 0 {
                outcome.notices.push((initiator, notice(record, self.me, EventKind::Send)));
                nic.slab.release(index);
                return Appended::Complete(event);
            }
            let is_shared = self.start_transfer(nic, self.me, index, outcome);
            outcome.begun.push(if is_shared { Mover::Peer(initiator) } else { Mover::Own });
            return Appended::Posted(EntryHandle(nic.slab.handle(index)));
        }
        if flags & flag::PIPED != 0 {
            transfer::start_piped(nic, index);
            outcome.begun.push(Mover::Own);
            return Appended::Posted(EntryHandle(nic.slab.handle(index)));
        }
        if flags & flag::BULK != 0 {
            let bulk = Bulk(record.remote.get());
            if self.drain(bulk, 0, self.me, memory, 0, placed as usize).is_err() {
                event.kind = EventKind::Failed;
            }
            self.transport.discard(bulk);
            if flags & flag::KEPT != 0 {
                self.let_go(nic, requested);
            }
        } else if flags & flag::ASIDE != 0 {
            if self.place_aside(index, memory, placed as usize).is_err() {
                event.kind = EventKind::Failed;
            }
        } else {
            let mut bytes = [0; INLINE_BYTES];
            message::spread(&words, &mut bytes, placed as usize);
            if self.place(self.me, memory, &bytes[..placed as usize]).is_err() {
                event.kind = EventKind::Failed;
            }
        }
        nic.slab.release(index);
        Appended::Complete(event)
    }

    pub fn unlink(&self, handle: EntryHandle, user: u64) -> bool {
        let nic = self.own();
        self.post_all();
        self.lock(nic);
        let found = if handle == EntryHandle::BY_USER {
            Core::posted_by(nic, user)
        } else {
            nic.slab.resolve(handle.0).filter(|index| nic.slab.at(*index).kind.get() == kind::POSTED)
        };
        let found = found.filter(|index| !partial::holds_part(nic.slab.at(*index)));
        if let Some(index) = found {
            nic.posted.remove(&nic.slab, &nic.classes, index);
            nic.slab.release(index);
        }
        nic.lock().release();
        found.is_some()
    }

    /// Takes in all that has come to its own NIC, whose lock is held; whether there was anything.
    pub fn take_in_all(&self, nic: &Nic, outcome: &mut Outcome) -> bool {
        let mut rounds = 0;
        while self.take_in(nic, self.me, Driver::Other, outcome) != 0 && rounds < SEARCH_ROUNDS {
            rounds += 1;
        }
        rounds != 0
    }

    /// After [`Core::take_in_all`], with no lock held: what it took in may be what another thread sleeps for.
    pub fn tell_of_arrivals(&self, taken_in: bool) {
        if taken_in {
            self.transport.ring_always();
        }
    }

    /// Takes in arrivals of the NIC of `of`, whose lock is held.
    #[inline]
    pub fn take_in(&self, nic: &Nic, of: u32, driver: Driver, outcome: &mut Outcome) -> usize {
        self.transport.take(of, BATCH, &mut |message| self.take_one(nic, of, driver, message, outcome))
    }

    /// As [`Core::take_in`], for the owner, who hears at once of the short messages that are expected.
    #[inline]
    pub fn take_in_own(&self, nic: &Nic, outcome: &mut Outcome, sink: &mut impl Sink) -> usize {
        let mut delivered = false;
        self.transport.take(self.me, BATCH, &mut |message| {
            if self.deliver_short(nic, message, sink) {
                delivered = true;
                return true;
            }
            let behind = delivered || !outcome.events.is_empty();
            !(behind && self.comes_too_soon(nic, message))
                && self.take_one(nic, self.me, Driver::Owner, message, outcome)
        })
    }

    /// Whether a message is better left where it is, behind one that was received: it would be kept, a short one copied twice, and whoever has just got
    /// what it waited for is about to post the next receive.
    pub fn comes_too_soon(&self, nic: &Nic, message: &Arrived) -> bool {
        let (kind, ..) = message::parts(message.tag);
        [message::INLINE, message::BULK].contains(&kind) && !nic.receives()
    }

    pub fn take_one(
        &self,
        nic: &Nic,
        of: u32,
        driver: Driver,
        message: &Arrived,
        outcome: &mut Outcome,
    ) -> bool {
        match Incoming::decode(message) {
            Some(Incoming::Put(arrival)) => {
                if nic.holds(arrival.source) {
                    return self.put_aside(nic, of, message);
                }
                if driver == Driver::Owner && nic.parked.any() {
                    return self.deliver_among_parked(nic, &arrival, outcome);
                }
                self.deliver(nic, of, driver, &arrival, outcome)
            }
            Some(Incoming::Piece(piece)) => self.place_piece(nic, of, driver, &piece, outcome),
            Some(Incoming::Withdraw { source, match_bits, header_data }) => {
                self.withdraw(nic, of, source, match_bits, header_data, outcome);
                true
            }
            Some(Incoming::Far(far)) => self.take_far(nic, driver, &far, outcome),
            None => {
                nic.control.dropped.set(nic.control.dropped.get() + 1);
                true
            }
        }
    }

    /// As [`Core::deliver`], for the owner who keeps entries back.
    fn deliver_among_parked(&self, nic: &Nic, arrival: &Arrival, outcome: &mut Outcome) -> bool {
        let (source, match_bits) = (arrival.source, arrival.match_bits);
        if !self.is_awaited(nic, arrival)
            && let Some(entry) = nic.parked.look(source, match_bits)
        {
            match self.accept(nic, &entry, arrival) {
                Soon::Received(received) => {
                    nic.parked.take(source, match_bits);
                    outcome.events.push(received.event(entry.user));
                    return true;
                }
                // Where a part of it is there, an entry is kept for the rest.
                Soon::NotYet | Soon::NeedsEntry => self.post_parked(nic, Driver::Owner, outcome),
            }
        }
        self.deliver(nic, self.me, Driver::Owner, arrival, outcome)
    }

    /// Matches one message. `false`: it must wait where it is.
    #[inline]
    pub fn deliver(
        &self,
        nic: &Nic,
        of: u32,
        driver: Driver,
        arrival: &Arrival,
        outcome: &mut Outcome,
    ) -> bool {
        let index = Core::posted_for(nic, arrival.source, arrival.match_bits);
        if index == 0 {
            return self.keep_unexpected(nic, of, arrival);
        }
        let record = nic.slab.at(index);
        let memory = Memory::from_word(record.address.get());
        let placed = arrival.length.min(record.length.get());
        let moved = match arrival.payload {
            Payload::Inline(words) if placed == 8 => self.place(of, memory, &words[0].to_ne_bytes()),
            Payload::Inline(words) => {
                let mut bytes = [0; INLINE_ROOM];
                message::spread(&words, &mut bytes, placed as usize);
                self.place(of, memory, &bytes[..placed as usize])
            }
            Payload::Bulk(bulk) => self.place_bulk(of, memory, arrival.source, Bulk(bulk), placed as usize),
            Payload::Direct(_) | Payload::Piped(_) | Payload::Stream(_) => Ok(()),
            Payload::Long(message) => self.place_long(of, memory, arrival.source, message, placed as usize),
        };
        if moved == Err(MemoryError::NotPermitted) {
            // Only the owner can place it; or it is not all there yet. Others place no part, and may not know who is dead.
            let places_parts = of == self.me && matches!(arrival.payload, Payload::Long(_));
            if places_parts && !self.tallies.of(arrival.source).is_dead() {
                partial::keep(record, arrival.source);
            }
            return false;
        }
        nic.posted.remove(&nic.slab, &nic.classes, index);
        let way = Travel::of(&arrival.payload, self.is_far(arrival.source));
        self.count_received(nic, way, arrival.source, arrival.match_bits, arrival.length, false);
        arrival.note_in(record);
        record.length.set(placed);
        if arrival.ack {
            outcome.notices.push((arrival.source, notice(record, of, EventKind::Ack)));
        }
        match arrival.payload {
            Payload::Bulk(bulk) => self.transport.discard(Bulk(bulk)),
            Payload::Stream(payload) => {
                if !self.land_stream(nic, index, payload) {
                    return true;
                }
            }
            Payload::Direct(put) if self.is_far(arrival.source) => {
                if !self.pull(nic, index, arrival.source, put) {
                    return true;
                }
            }
            Payload::Direct(remote) => {
                if of == self.me {
                    self.note_long(arrival.source, arrival.length as usize);
                }
                record.remote.set(remote);
                if placed != 0 {
                    self.start_transfer(nic, of, index, outcome);
                    return true;
                }
                outcome.notices.push((arrival.source, notice(record, of, EventKind::Send)));
            }
            Payload::Piped(pipe) => {
                if of == self.me {
                    self.note_long(arrival.source, arrival.length as usize);
                }
                record.remote.set(pipe);
                transfer::start_piped(nic, index);
                return true;
            }
            Payload::Inline(_) | Payload::Long(_) => (),
        }
        let event = if moved.is_ok() { EventKind::Put } else { EventKind::Failed };
        self.report(nic, index, event, driver, outcome);
        true
    }

    /// Turns a record that is in no list into an event.
    #[inline]
    pub fn report(&self, nic: &Nic, index: u32, event: EventKind, driver: Driver, outcome: &mut Outcome) {
        if driver == Driver::Owner {
            outcome.events.push(event_of(nic.slab.at(index), event));
            nic.slab.release(index);
        } else {
            nic.slab.at(index).flags.set(0);
            nic.queue_event(index, event as u32);
        }
    }

    /// A long message that nobody expects moves into bulk memory of the owner, as far as its share of that goes.
    fn keep_long(&self, nic: &Nic, of: u32, message: &Arrived, length: u64) -> Option<Bulk> {
        if of != self.me {
            return None;
        }
        let bulk = self.transport.keep(message, length as usize)?;
        let kept = nic.control.kept.get() + room_of(length);
        nic.control.kept.set(kept);
        if kept > KEPT_LIMIT {
            self.transport.accept_long(false);
        }
        Some(bulk)
    }

    /// A long message that was kept has been received.
    pub fn let_go(&self, nic: &Nic, length: u64) {
        let kept = nic.control.kept.get() - room_of(length);
        nic.control.kept.set(kept);
        if kept <= KEPT_LIMIT / 2 && kept + room_of(length) > KEPT_LIMIT / 2 {
            self.transport.accept_long(true);
        }
    }

    fn keep_unexpected(&self, nic: &Nic, of: u32, arrival: &Arrival) -> bool {
        let index = nic.slab.allocate(Purpose::Arrival);
        if index == 0 {
            return false;
        }
        let record = nic.slab.at(index);
        record.kind.set(kind::UNEXPECTED);
        record.detail.set(PLAIN_PORTAL);
        arrival.note_in(record);
        let mut flags = if arrival.ack { flag::ACK } else { 0 };
        match arrival.payload {
            Payload::Inline(words) => {
                record.class.set(arrival.length as u32);
                let whole = (arrival.length as usize).div_ceil(8);
                record.short().iter().zip(words).take(whole).for_each(|(cell, word)| cell.set(word));
            }
            Payload::Bulk(bulk) => {
                flags |= flag::BULK;
                record.remote.set(bulk);
            }
            Payload::Direct(address) => {
                flags |= flag::DIRECT;
                record.remote.set(address);
            }
            Payload::Piped(pipe) => {
                flags |= flag::PIPED;
                record.remote.set(pipe);
            }
            Payload::Long(message) => {
                let Some(bulk) = self.keep_long(nic, of, message, arrival.length) else {
                    nic.slab.release(index);
                    return false;
                };
                flags |= flag::BULK | flag::KEPT;
                record.remote.set(bulk.0);
            }
            Payload::Stream(payload) => {
                flags |= flag::STREAM;
                record.remote.set(payload);
            }
        }
        record.flags.set(flags);
        record.order.set(nic.next_order());
        if !nic.unexpected.add(&nic.slab, &nic.classes, index) {
            nic.slab.release(index);
            return false;
        }
        nic.counters.count_locked(counters::UNEXPECTED_MESSAGES, 1);
        nic.counters.count_locked(counters::UNEXPECTED_BYTES, arrival.length);
        nic.counters.note_level(counters::UNEXPECTED_MARK, nic.unexpected.0.order().count.get().into());
        if nic.counters.watch() & watch::EVENTS != 0 {
            self.tell_kept(arrival);
        }
        true
    }

    /// Tells others what the lock's holder has found for them. No lock is held.
    #[inline(always)]
    pub fn finish(&self, outcome: &mut Outcome) {
        // Mostly there is nothing.
        if !(outcome.notices.is_empty() && outcome.calls.is_empty() && outcome.begun.is_empty()) {
            self.finish_now(outcome);
        }
    }

    #[inline(never)]
    fn finish_now(&self, outcome: &mut Outcome) {
        while let Some((process, event)) = outcome.notices.pop() {
            self.notify(process, &event);
        }
        while let Some((process, alone)) = outcome.calls.pop() {
            self.call(process, alone);
        }
        while let Some(mover) = outcome.begun.pop() {
            self.see_to(mover);
        }
    }

    /// This process has begun to receive something. Who computes does not want to share its processor with its own helper where somebody else moves it.
    #[cold]
    fn see_to(&self, mover: Mover) {
        if self.is_attended() {
            return;
        }
        // Pairs with the fence in `Interface::leave`: who stops waiting sees that it has been called, or is seen here.
        full_fence();
        match mover {
            Mover::Network => self.attend_soon(Prospect::Moving),
            Mover::Peer(peer) if self.is_thrifty() || self.waits(peer) => (),
            Mover::Own if self.is_thrifty() && !self.owes() => (),
            Mover::Peer(_) | Mover::Own => self.transport.ring_helper(self.me),
        }
    }

    fn notify(&self, process: u32, event: &Event) {
        if self.is_far(process) {
            return self.notify_far(process, event);
        }
        // Of its own NIC it tells through the mailbox: that costs the initiator one line of the cache where the event itself takes five.
        if event.initiator.0 == self.me && process != self.me && self.post_notice(process, event) {
            return;
        }
        let nic = self.nic_of(process);
        self.lock(nic);
        self.queue_copy(nic, event, flag::AWAITED);
        nic.lock().release();
        self.transport.ring(process);
    }

    /// Tells an initiator that it may have something to move; `alone`: that nobody else can.
    pub fn call(&self, process: u32, alone: bool) {
        if process != self.me {
            // The ring's fence orders this before the look for sleepers; pairs with the swap in `answer`.
            self.nic_of(process).control.calls.fetch_add(1, Ordering::Release);
            self.transport.ring(process);
            if self.transport.shown(process) == Waiting::Not && (alone || !self.transport.reaches(process)) {
                self.transport.ring_helper(process);
            }
        }
    }
}

/// The portal of plain messages: those of the MPI layer.
pub const PLAIN_PORTAL: u32 = 0;

#[inline(always)]
pub fn pattern_of(entry: &MatchEntry) -> Pattern {
    Pattern {
        source: entry.source.map_or(ANY, |source| source.0),
        match_bits: entry.match_bits,
        ignore_bits: entry.ignore_bits,
        portal: PLAIN_PORTAL,
    }
}

/// The event that a record of the owner tells.
#[inline]
pub fn event_of(record: &Entry, kind: EventKind) -> Event {
    Event {
        kind,
        user: record.user.get(),
        initiator: ProcessId(record.source.get()),
        match_bits: record.match_bits.get(),
        header_data: record.header_data.get(),
        requested_length: record.requested.get(),
        placed_length: record.length.get(),
        taken: 0,
    }
}

/// The event that the initiator of a message to `target` is told.
pub fn notice(record: &Entry, target: u32, kind: EventKind) -> Event {
    Event { user: record.remote_user.get(), initiator: ProcessId(target), ..event_of(record, kind) }
}
