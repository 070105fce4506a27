//! What a process does with its virtual NIC: the only door from the MPI layer to everything below it.

use crate::event_list::EventList;
use crate::message::{
    self, Arrival, BULK, DIRECT, INLINE, INLINE_ACK, INLINE_ACK_ROOM, INLINE_ROOM, Payload,
};
use crate::nic::Nic;
use crate::record::{ANY, Entry, INLINE_BYTES, flag, kind};
use crate::slab::Purpose;
use crate::transfer;
use parnass_base::UserAddress;
use parnass_base::atomics::Ordering;
use parnass_transport::{Bulk, MemoryError, Transport};
use std::collections::VecDeque;
use std::sync::atomic::AtomicU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A process of the job, by its number in the job (for a job started by mpiexec: the rank in MPI_COMM_WORLD).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProcessId(pub u32);

/// Whether the initiator wants to know that the target has accepted its put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ack {
    /// No event beyond the local completion.
    None,
    /// An [`EventKind::Ack`] once an entry of the *priority* list (or a search-and-delete, or a later append)
    /// has accepted the message; a message that waits among the unexpected is not acknowledged yet.
    Matched,
}

/// How the bytes travel. Chosen by the protocol chooser of the layer above, by message size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Copied out of the source before `put` returns when credit allows: the source buffer is free at once.
    Buffered,
    /// Only a description of the memory travels; the data moves once, between the two user buffers.
    Direct,
}

/// A put: the bytes and where they go.
#[derive(Clone, Copy, Debug)]
pub struct Put {
    pub target: ProcessId,
    pub match_bits: u64,
    /// 64 bits that the target sees in its event.
    pub header_data: u64,
    pub source: UserAddress,
    pub length: usize,
    pub protocol: Protocol,
    pub ack: Ack,
    /// Comes back in the events of this put at the initiator.
    pub user: u64,
}

/// What has become of a put when the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// The source may be reused; no [`EventKind::Send`] will come (an Ack may).
    Done,
    /// Not yet (no credit, or the data moves later): an [`EventKind::Send`] will come. The interface keeps puts
    /// to one target in order, whatever it had to delay.
    Pending,
}

/// Which list an entry is appended to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    Priority,
    Overflow,
}

/// A match entry with its memory. For a posted receive: use once, truncating.
#[derive(Clone, Copy, Debug)]
pub struct MatchEntry {
    /// `None` matches any initiator.
    pub source: Option<ProcessId>,
    pub match_bits: u64,
    /// A set bit makes that position of the match bits a wild card.
    pub ignore_bits: u64,
    pub memory: UserAddress,
    pub length: usize,
    /// Comes back in the events of this entry.
    pub user: u64,
}

/// Names an entry that has been appended; stale handles are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryHandle(pub u64);

/// What has become of an entry when `append` returns.
#[derive(Clone, Copy, Debug)]
pub enum Appended {
    /// It waits in its list (or its data is on the way): an [`EventKind::Put`] with its `user` will come.
    Posted(EntryHandle),
    /// An unexpected message matched and its data is in place: this is its event; no other will come.
    Complete(Event),
}

/// What a search among the unexpected messages does with its hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchOperation {
    /// Leaves it there (a probe).
    Look,
    /// Takes it out; it is then received with [`Interface::receive_taken`] (a matched probe).
    Take,
}

/// What an event tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Target: a put has been placed in the memory of the entry `user`.
    Put,
    /// Initiator: the source of the put `user` may be reused.
    Send,
    /// Initiator: the put `user` has been matched ([`Ack::Matched`]).
    Ack,
    /// A search has found this message; `taken` names it if it was taken.
    Search,
    /// The peer of this operation is gone, or its data could not be moved.
    Failed,
}

/// One event.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub kind: EventKind,
    pub user: u64,
    pub initiator: ProcessId,
    pub match_bits: u64,
    pub header_data: u64,
    /// Length of the message as sent, in bytes.
    pub requested_length: u64,
    /// Bytes that were placed; less than requested when the message was truncated.
    pub placed_length: u64,
    /// For a search that took its hit: what to hand to [`Interface::receive_taken`].
    pub taken: u64,
}

/// A moment in the life of an interface, for sleeping without missing anything: take a ticket, look
/// whether what you wait for is there, and if not, `wait` with the ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(pub u32);

/// Why the NIC refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortalError {
    /// No process has this number; holds the number and the size of the job.
    NoSuchProcess(u32, u32),
    /// The job's memory file is full; says what could not be had.
    OutOfMemory(String),
}

/// Messages taken in per hold of the lock.
const BATCH: usize = 16;
/// Tries for a lock before sleeping.
const LOCK_SPINS: u32 = 200;

/// A process's view of its virtual NIC and of its peers. `Sync`: any thread may call it.
pub struct Interface {
    transport: Box<dyn Transport>,
    me: u32,
    nics: Vec<Nic>,
    /// Puts that could not go yet, by target.
    delayed: Mutex<Vec<VecDeque<Put>>>,
    /// How many there are, by target.
    delayed_by_target: Vec<AtomicU32>,
    /// How many there are.
    delayed_count: AtomicU32,
    /// Threads inside `wait`.
    waiters: AtomicU32,
}

/// What a driver of a NIC has to do once it has released the lock.
#[derive(Default)]
struct Outcome {
    /// For the caller's sink (owner only).
    events: EventList<Event>,
    /// For initiators.
    notices: EventList<(u32, Event)>,
}

impl std::fmt::Debug for Interface {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Interface({} of {})", self.me, self.nics.len())
    }
}

impl Interface {
    /// The NIC of this process, and the way to those of its peers.
    ///
    /// # Errors
    /// No memory for it.
    pub fn new(transport: Box<dyn Transport>) -> Result<Interface, PortalError> {
        let size = transport.size();
        let nics: Vec<Nic> = (0..size).map(|rank| Nic::new(&transport.nic_memory(rank))).collect();
        Ok(Interface {
            me: transport.me(),
            nics,
            delayed: Mutex::new((0..size).map(|_| VecDeque::new()).collect()),
            delayed_by_target: (0..size).map(|_| AtomicU32::new(0)).collect(),
            delayed_count: AtomicU32::new(0),
            waiters: AtomicU32::new(0),
            transport,
        })
    }

    /// The number of this process.
    pub fn me(&self) -> ProcessId {
        ProcessId(self.me)
    }

    /// How many processes the job has.
    pub fn size(&self) -> u32 {
        self.nics.len() as u32
    }

    /// The longest message that [`Protocol::Buffered`] can carry, in bytes; longer ones go as `Direct`.
    pub fn buffered_limit(&self) -> usize {
        self.transport.limits().bulk_bytes
    }

    #[inline(always)]
    fn own(&self) -> &Nic {
        &self.nics[self.me as usize]
    }

    #[inline(always)]
    fn lock(&self, nic: &Nic) {
        nic.lock().acquire(self.transport.holder(), LOCK_SPINS, self.transport.holder_lives());
    }

    fn delayed(&self) -> MutexGuard<'_, Vec<VecDeque<Put>>> {
        self.delayed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends. Never blocks: what cannot go now is kept, in order, and goes when `progress` or `wait` runs.
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
        let mut queues = self.delayed();
        queues[target as usize].push_back(*put);
        delayed.fetch_add(1, Ordering::Relaxed);
        self.delayed_count.fetch_add(1, Ordering::Relaxed);
        Ok(PutOutcome::Pending)
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
                return transport.post(target, tag, &words[..used]).then_some(PutOutcome::Done);
            }
            if let Some(bulk) = transport.claim(put.length) {
                transport.fill(bulk, put.source, put.length);
                let words = [put.match_bits, put.header_data, bulk.0, put.length as u64, put.user];
                let tag = message::tag(BULK, usize::from(ack), self.me);
                if transport.post(target, tag, &words) {
                    return Some(PutOutcome::Done);
                }
                transport.discard(bulk);
                return None;
            }
        }
        let address = put.source.value() as u64;
        let words = [put.match_bits, put.header_data, address, put.length as u64, put.user];
        let tag = message::tag(DIRECT, usize::from(ack), self.me);
        transport.post(target, tag, &words).then_some(PutOutcome::Pending)
    }

    /// Tries again to send what was delayed. Returns whether anything went.
    #[cold]
    fn send_delayed(&self, outcome: &mut Outcome) -> bool {
        let Ok(mut queues) = self.delayed.try_lock() else { return false };
        let mut moved = false;
        for (queue, count) in queues.iter_mut().zip(&self.delayed_by_target) {
            while let Some(put) = queue.front() {
                let Some(sent) = self.send(put) else { break };
                if sent == PutOutcome::Done {
                    outcome.events.push(put.event(EventKind::Send));
                }
                queue.pop_front();
                count.fetch_sub(1, Ordering::Relaxed);
                self.delayed_count.fetch_sub(1, Ordering::Relaxed);
                moved = true;
            }
        }
        moved
    }

    /// Looks among the unexpected messages first, then appends, atomically with respect to arrivals.
    pub fn append(&self, list: List, entry: &MatchEntry) -> Result<Appended, PortalError> {
        debug_assert_eq!(list, List::Priority);
        let nic = self.own();
        let source = entry.source.map_or(ANY, |source| source.0);
        let mut outcome = Outcome::default();
        self.lock(nic);
        let found = nic.unexpected.find(&nic.slab, &nic.classes, source, entry.match_bits, entry.ignore_bits);
        let result = if found != 0 {
            nic.unexpected.remove(&nic.slab, &nic.classes, found);
            Ok(self.receive_record(nic, found, entry.memory, entry.length, entry.user, &mut outcome))
        } else {
            self.post(nic, source, entry)
        };
        nic.lock().release();
        self.finish(&mut outcome);
        result
    }

    fn post(&self, nic: &Nic, source: u32, entry: &MatchEntry) -> Result<Appended, PortalError> {
        let index = nic.slab.allocate(Purpose::Arrival);
        if index == 0 {
            return Err(PortalError::OutOfMemory(format!("{} entries are in use", nic.slab.used())));
        }
        let record = nic.slab.at(index);
        record.kind.set(kind::POSTED);
        record.source.set(source);
        record.match_bits.set(entry.match_bits);
        record.ignore_bits.set(entry.ignore_bits);
        record.address.set(entry.memory.value() as u64);
        record.length.set(entry.length as u64);
        record.user.set(entry.user);
        record.order.set(nic.next_order());
        if !nic.posted.add(&nic.slab, &nic.classes, index) {
            nic.slab.release(index);
            return Err(PortalError::OutOfMemory("the tables of posted entries".into()));
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
            outcome.notices.push((initiator, notice(record, EventKind::Ack)));
        }
        if flags & flag::DIRECT != 0 {
            if placed == 0 {
                outcome.notices.push((initiator, notice(record, EventKind::Send)));
                nic.slab.release(index);
                return Appended::Complete(event);
            }
            transfer::start(nic, index);
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

    /// Takes an entry back that has not matched. `false`: too late, its event has come or will come.
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

    /// Looks for the first unexpected message, in arrival order, that `entry`'s criteria match. Takes in new arrivals first.
    pub fn search(&self, operation: SearchOperation, entry: &MatchEntry) -> Option<Event> {
        let nic = self.own();
        let source = entry.source.map_or(ANY, |source| source.0);
        let mut outcome = Outcome::default();
        self.lock(nic);
        while self.take_in(nic, self.me, true, &mut outcome) == BATCH {}
        let found = nic.unexpected.find(&nic.slab, &nic.classes, source, entry.match_bits, entry.ignore_bits);
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

    /// Receives a message that a search took. As `append`: complete at once, or an event comes.
    ///
    /// # Panics
    /// If `taken` names no taken message.
    pub fn receive_taken(&self, taken: u64, memory: UserAddress, length: usize, user: u64) -> Appended {
        let nic = self.own();
        let mut outcome = Outcome::default();
        self.lock(nic);
        let found = nic.slab.resolve(taken).filter(|index| nic.slab.at(*index).kind.get() == kind::TAKEN);
        let result = found.map(|index| self.receive_record(nic, index, memory, length, user, &mut outcome));
        nic.lock().release();
        self.finish(&mut outcome);
        result.expect("a message that a search took and nobody has received yet")
    }

    /// Takes in arrivals of the NIC of `of`, whose lock is held. Events go to the queue, or, if the caller owns
    /// the NIC and `queue` is false, to the outcome.
    fn take_in(&self, nic: &Nic, of: u32, queue: bool, outcome: &mut Outcome) -> usize {
        self.transport.take(of, BATCH, &mut |message| match Arrival::decode(message) {
            Some(arrival) => self.deliver(nic, of, queue, &arrival, outcome),
            None => {
                nic.control.dropped.set(nic.control.dropped.get() + 1);
                true
            }
        })
    }

    /// Matches one message. `false`: it must wait where it is.
    #[inline]
    fn deliver(&self, nic: &Nic, of: u32, queue: bool, arrival: &Arrival, outcome: &mut Outcome) -> bool {
        let index = nic.posted.find(&nic.slab, &nic.classes, arrival.source, arrival.match_bits);
        if index == 0 {
            return self.keep_unexpected(nic, arrival);
        }
        let record = nic.slab.at(index);
        let memory = UserAddress::restore(record.address.get() as usize);
        let placed = arrival.length.min(record.length.get());
        let moved = match arrival.payload {
            Payload::Inline(words) if of == self.me => {
                if placed == 8 {
                    memory.write(&words[0].to_ne_bytes());
                } else {
                    let mut bytes = [0; INLINE_ROOM];
                    message::spread(&words, &mut bytes, placed as usize);
                    memory.write(&bytes[..placed as usize]);
                }
                Ok(())
            }
            Payload::Inline(_) => Err(MemoryError::NotPermitted),
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
            outcome.notices.push((arrival.source, notice(record, EventKind::Ack)));
        }
        match arrival.payload {
            Payload::Bulk(bulk) => self.transport.discard(Bulk(bulk)),
            Payload::Direct(remote) => {
                record.remote.set(remote);
                if placed != 0 {
                    transfer::start(nic, index);
                    return true;
                }
                outcome.notices.push((arrival.source, notice(record, EventKind::Send)));
            }
            Payload::Inline(_) => (),
        }
        let event = if moved.is_ok() { EventKind::Put } else { EventKind::Failed };
        if queue {
            nic.queue_event(index, event as u32);
        } else {
            outcome.events.push(event_of(record, event));
            nic.slab.release(index);
        }
        true
    }

    fn keep_unexpected(&self, nic: &Nic, arrival: &Arrival) -> bool {
        let index = nic.slab.allocate(Purpose::Arrival);
        if index == 0 {
            return false;
        }
        let record = nic.slab.at(index);
        record.kind.set(kind::UNEXPECTED);
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

    /// Tells initiators what the lock's holder has found for them. No lock is held.
    #[inline]
    fn finish(&self, outcome: &mut Outcome) {
        while let Some((initiator, event)) = outcome.notices.pop() {
            self.notify(initiator, &event);
        }
    }

    fn notify(&self, process: u32, event: &Event) {
        let nic = &self.nics[process as usize];
        self.lock(nic);
        let index = nic.slab.allocate(Purpose::Completion);
        if index != 0 {
            let record = nic.slab.at(index);
            record.source.set(event.initiator.0);
            record.match_bits.set(event.match_bits);
            record.header_data.set(event.header_data);
            record.requested.set(event.requested_length);
            record.length.set(event.placed_length);
            record.user.set(event.user);
            nic.queue_event(index, event.kind as u32);
        }
        nic.lock().release();
        self.transport.ring(process);
    }

    /// Turns the wheel once: takes in arrivals, sends what was delayed, moves data that only this process can
    /// move, and hands every event to `sink`. Returns whether anything happened.
    pub fn progress(&self, sink: &mut dyn FnMut(Event)) -> bool {
        let nic = self.own();
        let mut outcome = Outcome::default();
        let mut happened = false;
        if self.transport.poll(self.me) || nic.control.events.count.get() != 0 {
            self.lock(nic);
            while let index @ 1.. = nic.control.events.head.get() {
                let record = nic.slab.at(index);
                outcome.events.push(event_of(record, EventKind::from_number(record.detail.get())));
                nic.slab.remove(&nic.control.events, index);
                nic.slab.release(index);
            }
            happened |= self.take_in(nic, self.me, false, &mut outcome) != 0;
            nic.lock().release();
        }
        if nic.control.transfers.count.get() != 0 {
            happened |= self.move_data(nic, &mut outcome);
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

    /// Moves chunks of the transfers into this process.
    fn move_data(&self, nic: &Nic, outcome: &mut Outcome) -> bool {
        let mut worked = false;
        self.lock(nic);
        let index = nic.control.transfers.head.get();
        let work = (index != 0).then(|| transfer::Work::of(nic, index));
        nic.lock().release();
        let Some(work) = work else { return false };
        while let Some((offset, length)) = work.claim(nic) {
            worked = true;
            let remote = UserAddress::restore(work.remote as usize).offset(offset as i64);
            let local = UserAddress::restore(work.address as usize).offset(offset as i64);
            if self.transport.read(work.initiator, remote, local, length).is_err() {
                work.fail(nic);
            }
            if work.done(nic, length) {
                self.lock(nic);
                let record = nic.slab.at(work.index);
                let (put, send) = if record.detail.get() == 0 {
                    (EventKind::Put, EventKind::Send)
                } else {
                    (EventKind::Failed, EventKind::Failed)
                };
                outcome.events.push(event_of(record, put));
                outcome.notices.push((work.initiator, notice(record, send)));
                nic.slab.remove(&nic.control.transfers, work.index);
                nic.slab.release(work.index);
                nic.lock().release();
                break;
            }
        }
        worked
    }

    /// See [`Ticket`].
    pub fn ticket(&self) -> Ticket {
        Ticket(self.transport.rings())
    }

    /// Whether `progress` would find something.
    #[inline]
    fn has_work(&self) -> bool {
        let control = &self.own().control;
        self.transport.poll(self.me) || control.events.count.get() != 0 || control.transfers.count.get() != 0
    }

    /// Sleeps until something has happened since `ticket`, or until `deadline`; before that it spins if there is
    /// a core for every rank, and works for the peers that it waits for. May return early.
    /// `awaited` is the process that this one waits for, if it is one: its NIC is driven while waiting.
    pub fn wait(&self, ticket: Ticket, awaited: Option<ProcessId>, deadline: Option<Instant>) {
        let _ = awaited;
        let delayed = self.delayed_count.load(Ordering::Relaxed) != 0;
        if !delayed {
            for _ in 0..self.transport.spins() {
                if self.has_work() || self.transport.rings() != ticket.0 {
                    return;
                }
                std::hint::spin_loop();
            }
        }
        let deadline = if delayed {
            let soon = Instant::now() + Duration::from_micros(200);
            Some(deadline.map_or(soon, |deadline| deadline.min(soon)))
        } else {
            deadline
        };
        self.waiters.fetch_add(1, Ordering::Relaxed);
        self.transport.sleep(ticket.0, deadline, &mut || self.has_work());
        self.waiters.fetch_sub(1, Ordering::Relaxed);
    }

    /// Wakes every thread of this process that sleeps in `wait`.
    pub fn wake(&self) {
        self.transport.ring_always();
    }
}

impl Put {
    /// An event at the initiator.
    fn event(&self, kind: EventKind) -> Event {
        Event {
            kind,
            user: self.user,
            initiator: self.target,
            match_bits: self.match_bits,
            header_data: self.header_data,
            requested_length: self.length as u64,
            placed_length: self.length as u64,
            taken: 0,
        }
    }
}

impl EventKind {
    fn from_number(number: u32) -> EventKind {
        [EventKind::Put, EventKind::Send, EventKind::Ack, EventKind::Search]
            .into_iter()
            .find(|kind| *kind as u32 == number)
            .unwrap_or(EventKind::Failed)
    }
}

/// The event that a record of the owner tells.
#[inline]
fn event_of(record: &Entry, kind: EventKind) -> Event {
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

/// The event that the initiator of a message is told.
fn notice(record: &Entry, kind: EventKind) -> Event {
    Event { user: record.remote_user.get(), ..event_of(record, kind) }
}
