//! The life of a NIC: sending, matching, waiting.
//!
//! Whoever holds the lock of a NIC may drive it: its owner, the owner's helper thread, or a peer that waits for
//! something to happen there. Nobody holds two locks at once: what a driver finds out for others is noted in an
//! [`Outcome`] and delivered after the release.

use crate::event_list::EventList;
use crate::index::Pattern;
use crate::interface::*;
use crate::message::{
    self, Arrival, BULK, DIRECT, INLINE, INLINE_ACK, INLINE_ACK_ROOM, INLINE_ROOM, Incoming, Payload,
};
use crate::nic::Nic;
use crate::record::{ANY, Entry, INLINE_BYTES, flag, kind};
use crate::slab::Purpose;
use crate::transfer;
use parnass_base::UserAddress;
use parnass_base::atomics::{AtomicBool, AtomicU32, Ordering};
use parnass_transport::{Bulk, MemoryError, Transport, Waiting};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Rounds of taking in before a search, against senders that never stop.
const SEARCH_ROUNDS: u32 = 1_000;
/// Messages of a lane taken in per hold of the lock.
pub const BATCH: usize = 16;
/// Tries for a lock before sleeping.
const LOCK_SPINS: u32 = 200;
/// Polls between two looks at the NICs of peers that this process waits for.
const HELP_EVERY: u32 = 256;
/// How long to sleep at most while something waits for room that nobody announces.
const ROOM_PAUSE: Duration = Duration::from_micros(200);
/// How long to sleep at most while a peer's NIC was busy when this process wanted to drive it.
const BUSY_PAUSE: Duration = Duration::from_millis(1);

/// A process's view of its virtual NIC and of its peers.
pub struct Core {
    pub transport: Box<dyn Transport>,
    pub me: u32,
    pub nics: Vec<Nic>,
    /// What could not go yet, by target.
    delayed: Mutex<Vec<VecDeque<Delayed>>>,
    /// How much that is, by target.
    delayed_by_target: Vec<AtomicU32>,
    /// How much that is.
    pub delayed_count: AtomicU32,
    /// Events that will come from each target: ends of direct puts, and acks.
    outstanding: Vec<AtomicU32>,
    pub outstanding_count: AtomicU32,
    /// Threads inside `wait`.
    waiters: AtomicU32,
    pub stopping: AtomicBool,
}

/// Something that waits for room in the mailbox of its target.
#[derive(Debug)]
enum Delayed {
    Put(Put),
    Message { tag: u32, words: [u64; 4] },
}

/// What a driver of a NIC has to do once it has released the lock.
#[derive(Debug, Default)]
pub struct Outcome {
    /// For the caller's sink (owner only).
    pub events: EventList<Event>,
    /// For initiators.
    pub notices: EventList<(u32, Event)>,
    /// Initiators that may have something to move.
    pub calls: EventList<u32>,
}

/// Who drives a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// Its owner, who takes the events at once.
    Owner,
    /// Somebody who leaves the events in the queue.
    Other,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "NIC of {} among {}", self.me, self.nics.len())
    }
}

impl Core {
    /// Entries longer than this want a helper thread.
    pub const HELPED: usize = 4096;

    pub fn new(transport: Box<dyn Transport>) -> Core {
        let size = transport.size();
        let zeros = || (0..size).map(|_| AtomicU32::new(0)).collect();
        Core {
            me: transport.me(),
            nics: (0..size).map(|rank| Nic::new(&transport.nic_memory(rank))).collect(),
            delayed: Mutex::new((0..size).map(|_| VecDeque::new()).collect()),
            delayed_by_target: zeros(),
            delayed_count: AtomicU32::new(0),
            outstanding: zeros(),
            outstanding_count: AtomicU32::new(0),
            waiters: AtomicU32::new(0),
            stopping: AtomicBool::new(false),
            transport,
        }
    }

    pub fn size(&self) -> u32 {
        self.nics.len() as u32
    }

    #[inline(always)]
    pub fn own(&self) -> &Nic {
        &self.nics[self.me as usize]
    }

    #[inline(always)]
    pub fn lock(&self, nic: &Nic) {
        nic.lock().acquire(self.transport.holder(), LOCK_SPINS, self.transport.holder_lives());
    }

    fn delayed(&self) -> MutexGuard<'_, Vec<VecDeque<Delayed>>> {
        self.delayed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- sending

    #[inline]
    pub fn put(&self, put: &Put) -> Result<PutOutcome, PortalError> {
        let target = put.target.0;
        let Some(delayed) = self.delayed_by_target.get(target as usize) else {
            return Err(PortalError::NoSuchProcess(target, self.size()));
        };
        if delayed.load(Ordering::Relaxed) == 0
            && let Some(outcome) = self.send(put)
        {
            return Ok(outcome);
        }
        self.delay(target, Delayed::Put(*put));
        Ok(PutOutcome::Pending)
    }

    #[cold]
    fn delay(&self, target: u32, what: Delayed) {
        let mut queues = self.delayed();
        queues[target as usize].push_back(what);
        self.delayed_by_target[target as usize].fetch_add(1, Ordering::Relaxed);
        self.delayed_count.fetch_add(1, Ordering::Relaxed);
        drop(queues);
        self.transport.ring_helper(self.me);
    }

    /// Hands a put to the transport; `None`: no room now.
    #[inline]
    fn send(&self, put: &Put) -> Option<PutOutcome> {
        let transport = &*self.transport;
        let target = put.target.0;
        let ack = put.ack == Ack::Matched;
        if put.protocol == Protocol::Buffered {
            if !ack && put.length <= INLINE_ROOM {
                let mut data = [0; 5];
                message::gather(put.source, put.length, &mut data);
                let [a, b, c, d, e] = data;
                let words = [put.match_bits, put.header_data, a, b, c, d, e];
                let tag = message::tag(INLINE, put.length, self.me);
                let used = 2 + put.length.div_ceil(8);
                return transport.post(target, tag, &words[..used]).then_some(PutOutcome::Done);
            }
            if ack && put.length <= INLINE_ACK_ROOM {
                let mut data = [0; 4];
                message::gather(put.source, put.length, &mut data);
                let [a, b, c, d] = data;
                let words = [put.match_bits, put.header_data, put.user, a, b, c, d];
                let tag = message::tag(INLINE_ACK, put.length, self.me);
                let used = 3 + put.length.div_ceil(8);
                self.expect(target, 1);
                if transport.post(target, tag, &words[..used]) {
                    return Some(PutOutcome::Done);
                }
                self.received(target, 1);
                return None;
            }
            if let Some(bulk) = transport.claim(put.length) {
                transport.fill(bulk, put.source, put.length);
                let words = [put.match_bits, put.header_data, bulk.0, put.length as u64, put.user];
                let tag = message::tag(BULK, usize::from(ack), self.me);
                self.expect(target, u32::from(ack));
                if transport.post(target, tag, &words) {
                    return Some(PutOutcome::Done);
                }
                self.received(target, u32::from(ack));
                transport.discard(bulk);
                return None;
            }
        }
        let address = put.source.value() as u64;
        let words = [put.match_bits, put.header_data, address, put.length as u64, put.user];
        let tag = message::tag(DIRECT, usize::from(ack), self.me);
        self.expect(target, 1 + u32::from(ack));
        if transport.post(target, tag, &words) {
            if transport.shown(target) == Waiting::Not {
                transport.ring_helper(target);
            }
            return Some(PutOutcome::Pending);
        }
        self.received(target, 1 + u32::from(ack));
        None
    }

    /// Notes that `count` events will come from `target`.
    #[inline]
    fn expect(&self, target: u32, count: u32) {
        if count != 0 {
            self.outstanding[target as usize].fetch_add(count, Ordering::Relaxed);
            self.outstanding_count.fetch_add(count, Ordering::Relaxed);
        }
    }

    fn received(&self, target: u32, count: u32) {
        if count != 0 {
            self.outstanding[target as usize].fetch_sub(count, Ordering::Relaxed);
            self.outstanding_count.fetch_sub(count, Ordering::Relaxed);
        }
    }

    /// Sends a message that belongs to a transfer, now or later.
    pub fn post_or_delay(&self, target: u32, tag: u32, words: [u64; 4]) {
        if self.delayed_by_target[target as usize].load(Ordering::Relaxed) != 0
            || !self.transport.post(target, tag, &words)
        {
            self.delay(target, Delayed::Message { tag, words });
        }
    }

    /// Tries again to send what was delayed. Returns whether anything went.
    #[cold]
    fn send_delayed(&self, outcome: &mut Outcome) -> bool {
        let Ok(mut queues) = self.delayed.try_lock() else { return false };
        let mut moved = false;
        for (target, (queue, count)) in queues.iter_mut().zip(&self.delayed_by_target).enumerate() {
            while let Some(first) = queue.front() {
                match first {
                    Delayed::Put(put) => match self.send(put) {
                        None => break,
                        Some(PutOutcome::Done) => outcome.events.push(put.event(EventKind::Send)),
                        Some(PutOutcome::Pending) => (),
                    },
                    Delayed::Message { tag, words } => {
                        if !self.transport.post(target as u32, *tag, words) {
                            break;
                        }
                    }
                }
                queue.pop_front();
                count.fetch_sub(1, Ordering::Relaxed);
                self.delayed_count.fetch_sub(1, Ordering::Relaxed);
                moved = true;
            }
        }
        moved
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
        let pattern = pattern_of(entry);
        self.lock(nic);
        let found = nic.unexpected.find(&nic.slab, &nic.classes, &pattern, |_| true);
        if found == 0 {
            let result = self.post(nic, pattern.source, entry);
            nic.lock().release();
            return result;
        }
        let mut outcome = Outcome::default();
        nic.unexpected.remove(&nic.slab, &nic.classes, found);
        let result = self.receive_record(nic, found, entry.memory, entry.length, entry.user, &mut outcome);
        nic.lock().release();
        self.finish(&mut outcome);
        if matches!(result, Appended::Posted(_)) {
            self.transport.ring_helper(self.me);
        }
        Ok(result)
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
        record.address.set(entry.memory.value() as u64);
        record.length.set(entry.length as u64);
        record.user.set(entry.user);
        record.order.set(nic.next_order());
        if !nic.posted.add(&nic.slab, &nic.classes, index) {
            nic.slab.release(index);
            return Err(PortalError::OutOfMemory(
                "cannot reserve memory for the tables of match entries".into(),
            ));
        }
        Ok(Appended::Posted(EntryHandle(nic.slab.handle(index))))
    }

    /// Receives an unexpected message that is in no list any more.
    fn receive_record(
        &self,
        nic: &Nic,
        index: u32,
        memory: UserAddress,
        length: usize,
        user: u64,
        outcome: &mut Outcome,
    ) -> Appended {
        let record = nic.slab.at(index);
        let requested = record.requested.get();
        let placed = requested.min(length as u64);
        let (flags, initiator) = (record.flags.get(), record.source.get());
        record.user.set(user);
        record.address.set(memory.value() as u64);
        record.length.set(placed);
        let mut event = event_of(record, EventKind::Put);
        if flags & flag::ACK != 0 {
            outcome.notices.push((initiator, notice(record, self.me, EventKind::Ack)));
        }
        if flags & flag::DIRECT != 0 {
            if placed == 0 {
                outcome.notices.push((initiator, notice(record, self.me, EventKind::Send)));
                nic.slab.release(index);
                return Appended::Complete(event);
            }
            transfer::start(nic, index);
            outcome.calls.push(initiator);
            return Appended::Posted(EntryHandle(nic.slab.handle(index)));
        }
        if flags & flag::BULK != 0 {
            let bulk = Bulk(record.remote.get());
            if self.transport.drain(bulk, 0, self.me, memory, placed as usize).is_err() {
                event.kind = EventKind::Failed;
            }
            self.transport.discard(bulk);
        } else {
            let words: [u64; 5] = std::array::from_fn(|index| record.data[index].load(Ordering::Relaxed));
            let mut bytes = [0; INLINE_BYTES];
            message::spread(&words, &mut bytes, placed as usize);
            memory.write(&bytes[..placed as usize]);
        }
        nic.slab.release(index);
        Appended::Complete(event)
    }

    pub fn unlink(&self, handle: EntryHandle) -> bool {
        let nic = self.own();
        self.lock(nic);
        let found = nic.slab.resolve(handle.0).filter(|index| nic.slab.at(*index).kind.get() == kind::POSTED);
        if let Some(index) = found {
            nic.posted.remove(&nic.slab, &nic.classes, index);
            nic.slab.release(index);
        }
        nic.lock().release();
        found.is_some()
    }

    pub fn search(&self, operation: SearchOperation, entry: &MatchEntry) -> Option<Event> {
        let nic = self.own();
        let pattern = pattern_of(entry);
        let mut outcome = Outcome::default();
        self.lock(nic);
        let mut rounds = 0;
        while self.take_in(nic, self.me, Driver::Other, &mut outcome) != 0 && rounds < SEARCH_ROUNDS {
            rounds += 1;
        }
        let found = nic.unexpected.find(&nic.slab, &nic.classes, &pattern, |_| true);
        let event = (found != 0).then(|| {
            let record = nic.slab.at(found);
            let mut event = event_of(record, EventKind::Search);
            event.user = entry.user;
            event.placed_length = 0;
            if operation == SearchOperation::Take {
                nic.unexpected.remove(&nic.slab, &nic.classes, found);
                record.kind.set(kind::TAKEN);
                event.taken = nic.slab.handle(found);
            }
            event
        });
        nic.lock().release();
        self.finish(&mut outcome);
        event
    }

    pub fn receive_taken(&self, taken: u64, memory: UserAddress, length: usize, user: u64) -> Appended {
        let nic = self.own();
        let mut outcome = Outcome::default();
        self.lock(nic);
        let found = nic.slab.resolve(taken).filter(|index| nic.slab.at(*index).kind.get() == kind::TAKEN);
        let result = found.map(|index| self.receive_record(nic, index, memory, length, user, &mut outcome));
        nic.lock().release();
        self.finish(&mut outcome);
        let result = result.expect("a message that a search took and nobody has received yet");
        if matches!(result, Appended::Posted(_)) {
            self.transport.ring_helper(self.me);
        }
        result
    }

    /// Takes in arrivals of the NIC of `of`, whose lock is held.
    #[inline]
    fn take_in(&self, nic: &Nic, of: u32, driver: Driver, outcome: &mut Outcome) -> usize {
        self.transport.take(of, BATCH, &mut |message| match Incoming::decode(message) {
            Some(Incoming::Put(arrival)) => self.deliver(nic, of, driver, &arrival, outcome),
            Some(Incoming::Piece(piece)) => self.place_piece(nic, of, driver, &piece, outcome),
            None => {
                nic.control.dropped.set(nic.control.dropped.get() + 1);
                true
            }
        })
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
        let index = nic.posted.find(&nic.slab, &nic.classes, arrival.source, arrival.match_bits, is_plain);
        if index == 0 {
            return self.keep_unexpected(nic, arrival);
        }
        let record = nic.slab.at(index);
        let memory = UserAddress::restore(record.address.get() as usize);
        let placed = arrival.length.min(record.length.get());
        let moved = match arrival.payload {
            Payload::Inline(words) if placed == 8 => {
                self.transport.place(of, memory, &words[0].to_ne_bytes())
            }
            Payload::Inline(words) => {
                let mut bytes = [0; INLINE_ROOM];
                message::spread(&words, &mut bytes, placed as usize);
                self.transport.place(of, memory, &bytes[..placed as usize])
            }
            Payload::Bulk(bulk) => self.transport.drain(Bulk(bulk), 0, of, memory, placed as usize),
            Payload::Direct(_) => Ok(()),
        };
        if moved == Err(MemoryError::NotPermitted) {
            // Only the owner can place it.
            return false;
        }
        nic.posted.remove(&nic.slab, &nic.classes, index);
        record.source.set(arrival.source);
        record.match_bits.set(arrival.match_bits);
        record.header_data.set(arrival.header_data);
        record.requested.set(arrival.length);
        record.length.set(placed);
        record.remote_user.set(arrival.user);
        if arrival.ack {
            outcome.notices.push((arrival.source, notice(record, of, EventKind::Ack)));
        }
        match arrival.payload {
            Payload::Bulk(bulk) => self.transport.discard(Bulk(bulk)),
            Payload::Direct(remote) => {
                record.remote.set(remote);
                if placed != 0 {
                    transfer::start(nic, index);
                    outcome.calls.push(arrival.source);
                    return true;
                }
                outcome.notices.push((arrival.source, notice(record, of, EventKind::Send)));
            }
            Payload::Inline(_) => (),
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

    fn keep_unexpected(&self, nic: &Nic, arrival: &Arrival) -> bool {
        let index = nic.slab.allocate(Purpose::Arrival);
        if index == 0 {
            return false;
        }
        let record = nic.slab.at(index);
        record.kind.set(kind::UNEXPECTED);
        record.detail.set(PLAIN_PORTAL);
        record.source.set(arrival.source);
        record.match_bits.set(arrival.match_bits);
        record.header_data.set(arrival.header_data);
        record.requested.set(arrival.length);
        record.remote_user.set(arrival.user);
        let mut flags = if arrival.ack { flag::ACK } else { 0 };
        match arrival.payload {
            Payload::Inline(words) => {
                for (cell, word) in record.data.iter().zip(words) {
                    cell.store(word, Ordering::Relaxed);
                }
            }
            Payload::Bulk(bulk) => {
                flags |= flag::BULK;
                record.remote.set(bulk);
            }
            Payload::Direct(address) => {
                flags |= flag::DIRECT;
                record.remote.set(address);
            }
        }
        record.flags.set(flags);
        record.order.set(nic.next_order());
        if !nic.unexpected.add(&nic.slab, &nic.classes, index) {
            nic.slab.release(index);
            return false;
        }
        true
    }

    /// Tells others what the lock's holder has found for them. No lock is held.
    #[inline]
    pub fn finish(&self, outcome: &mut Outcome) {
        while let Some((process, event)) = outcome.notices.pop() {
            self.notify(process, &event);
        }
        while let Some(process) = outcome.calls.pop() {
            self.call(process);
        }
    }

    fn notify(&self, process: u32, event: &Event) {
        let nic = &self.nics[process as usize];
        self.lock(nic);
        self.queue_copy(nic, event, flag::AWAITED);
        nic.lock().release();
        self.transport.ring(process);
    }

    /// Tells an initiator that it may have something to move.
    pub fn call(&self, process: u32) {
        if process != self.me {
            // The ring's fence orders this before the look for sleepers; pairs with the swap in `answer`.
            self.nics[process as usize].control.calls.fetch_add(1, Ordering::Release);
            self.transport.ring(process);
            if self.transport.shown(process) == Waiting::Not && !self.transport.reaches(process) {
                self.transport.ring_helper(process);
            }
        }
    }

    // ---- progress

    #[inline]
    pub fn progress(&self, sink: &mut dyn FnMut(Event)) -> bool {
        let nic = self.own();
        let control = &nic.control;
        let mut outcome = Outcome::default();
        let mut happened = false;
        if self.transport.poll(self.me) || control.events.count.get() != 0 {
            self.lock(nic);
            if control.events.count.get() != 0 {
                self.collect_events(nic, &mut outcome);
            }
            happened |= self.take_in(nic, self.me, Driver::Owner, &mut outcome) != 0;
            nic.lock().release();
        }
        if control.unclaimed.load(Ordering::Relaxed) != 0 {
            happened |= self.move_own(Driver::Owner, &mut outcome);
        }
        if control.calls.load(Ordering::Relaxed) != 0 {
            happened |= self.answer();
        }
        if self.delayed_count.load(Ordering::Relaxed) != 0 {
            happened |= self.send_delayed(&mut outcome);
        }
        self.finish(&mut outcome);
        if outcome.events.is_empty() {
            return happened;
        }
        while let Some(event) = outcome.events.pop() {
            sink(event);
        }
        if self.waiters.load(Ordering::Relaxed) != 0 {
            self.transport.ring_always();
        }
        true
    }

    fn collect_events(&self, nic: &Nic, outcome: &mut Outcome) {
        while let index @ 1.. = nic.control.events.head.get() {
            let record = nic.slab.at(index);
            outcome.events.push(event_of(record, EventKind::from_number(record.detail.get())));
            if record.flags.get() & flag::AWAITED != 0 {
                self.received(record.source.get(), 1);
            }
            nic.slab.remove(&nic.control.events, index);
            nic.slab.release(index);
        }
    }

    /// Somebody has matched a direct put of this process.
    fn answer(&self) -> bool {
        // Acquire pairs with the release in `call`.
        self.own().control.calls.swap(0, Ordering::Acquire);
        self.help_all().worked
    }

    /// Whether this process waits for something to happen at the NICs of peers.
    #[inline]
    fn expects_peers(&self) -> bool {
        self.outstanding_count.load(Ordering::Relaxed) != 0 || self.delayed_count.load(Ordering::Relaxed) != 0
    }

    /// Drives the NICs of all peers from which events will come, or which have no room for more.
    fn help_all(&self) -> Helped {
        let mut helped = Helped::default();
        if !self.expects_peers() {
            return helped;
        }
        for (target, (events, delayed)) in (0..).zip(self.outstanding.iter().zip(&self.delayed_by_target)) {
            let concerned = events.load(Ordering::Relaxed) != 0 || delayed.load(Ordering::Relaxed) != 0;
            if concerned && target != self.me {
                let one = self.help(target);
                helped.worked |= one.worked;
                helped.busy |= one.busy;
            }
        }
        helped
    }

    /// Takes in the arrivals of a target that computes, and moves data of this process that matched there.
    fn help(&self, target: u32) -> Helped {
        let nic = &self.nics[target as usize];
        let arrivals = self.transport.shown(target) == Waiting::Not && self.transport.poll(target);
        if !arrivals && nic.control.transfers.count.get() == 0 {
            return Helped::default();
        }
        if !nic.lock().try_acquire(self.transport.holder()) {
            return Helped { worked: false, busy: true };
        }
        let mut outcome = Outcome::default();
        let taken = if arrivals { self.take_in(nic, target, Driver::Other, &mut outcome) } else { 0 };
        let works = transfer::works_of(nic, Some(self.me));
        nic.lock().release();
        if taken != 0 {
            self.transport.ring(target);
        }
        self.finish(&mut outcome);
        let mut worked = taken != 0;
        for work in works {
            worked |= self.move_to(target, &work);
        }
        Helped { worked, busy: false }
    }

    /// Whether `progress` would find something.
    #[inline]
    fn has_work(&self) -> bool {
        let control = &self.own().control;
        self.transport.poll(self.me)
            || control.events.count.get() != 0
            || control.unclaimed.load(Ordering::Relaxed) != 0
            || control.calls.load(Ordering::Relaxed) != 0
    }

    // ---- waiting

    pub fn wait(&self, ticket: Ticket, awaited: Option<ProcessId>, deadline: Option<Instant>) {
        self.transport.show(awaited.map_or(Waiting::ForAny, |awaited| Waiting::For(awaited.0)));
        self.wait_shown(ticket, deadline);
        self.transport.show(Waiting::Not);
    }

    #[inline]
    fn wait_shown(&self, ticket: Ticket, deadline: Option<Instant>) {
        let changed = || self.has_work() || self.transport.rings() != ticket.0;
        let expecting = self.expects_peers();
        let delayed = self.delayed_count.load(Ordering::Relaxed) != 0;
        if !delayed {
            for turn in 1..=self.transport.spins() {
                if changed() || (expecting && turn.is_multiple_of(HELP_EVERY) && self.help_all().worked) {
                    return;
                }
                std::hint::spin_loop();
            }
        }
        let mut tries = 0;
        while self.transport.step_aside(tries) {
            if changed() {
                return;
            }
            tries += 1;
        }
        let mut limit = delayed.then_some(ROOM_PAUSE);
        if expecting {
            let helped = self.help_all();
            if helped.worked {
                return;
            }
            if helped.busy {
                limit = Some(limit.unwrap_or(BUSY_PAUSE));
            }
        }
        let limit = limit.map(|limit| Instant::now() + limit);
        let deadline = limit.into_iter().chain(deadline).min();
        self.waiters.fetch_add(1, Ordering::Relaxed);
        self.transport.sleep(ticket.0, deadline, &mut || self.has_work());
        self.waiters.fetch_sub(1, Ordering::Relaxed);
    }

    // ---- what the helper thread asks and does

    /// Whether a thread of this process waits, and so does the work itself.
    pub fn is_attended(&self) -> bool {
        self.transport.shown(self.me) != Waiting::Not
    }

    /// Whether there is work that should not wait for the owner.
    pub fn needs_help(&self) -> bool {
        let control = &self.own().control;
        self.transport.poll(self.me)
            || control.unclaimed.load(Ordering::Relaxed) != 0
            || control.calls.load(Ordering::Relaxed) != 0
            || self.delayed_count.load(Ordering::Relaxed) != 0
    }

    /// Progress whose events are left for the owner. Returns whether anything happened.
    pub fn work_unattended(&self) -> bool {
        let nic = self.own();
        let mut outcome = Outcome::default();
        let mut happened = false;
        if self.transport.poll(self.me) && nic.lock().try_acquire(self.transport.holder()) {
            happened |= self.take_in(nic, self.me, Driver::Other, &mut outcome) != 0;
            nic.lock().release();
        }
        happened |= self.move_own(Driver::Other, &mut outcome);
        if nic.control.calls.load(Ordering::Relaxed) != 0 {
            happened |= self.answer();
        }
        if self.delayed_count.load(Ordering::Relaxed) != 0 {
            happened |= self.send_delayed(&mut outcome);
        }
        self.finish(&mut outcome);
        if !outcome.events.is_empty() {
            self.lock(nic);
            while let Some(event) = outcome.events.pop() {
                self.queue_copy(nic, &event, 0);
            }
            nic.lock().release();
        }
        if happened {
            self.transport.ring(self.me);
        }
        happened
    }

    fn queue_copy(&self, nic: &Nic, event: &Event, flags: u32) {
        let index = nic.slab.allocate(Purpose::Completion);
        if index != 0 {
            let record = nic.slab.at(index);
            record.source.set(event.initiator.0);
            record.match_bits.set(event.match_bits);
            record.header_data.set(event.header_data);
            record.requested.set(event.requested_length);
            record.length.set(event.placed_length);
            record.user.set(event.user);
            record.flags.set(flags);
            nic.queue_event(index, event.kind as u32);
        }
    }
}

/// What came of driving peers.
#[derive(Clone, Copy, Debug, Default)]
struct Helped {
    worked: bool,
    /// Somebody else held a lock.
    busy: bool,
}

/// The portal of plain messages: those of the MPI layer.
pub const PLAIN_PORTAL: u32 = 0;

/// Whether an entry is one for plain messages: use once, put only, truncating.
#[inline(always)]
pub fn is_plain(entry: &Entry) -> bool {
    entry.detail.get() == PLAIN_PORTAL
}

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
