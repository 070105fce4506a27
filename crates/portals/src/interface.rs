//! What a process does with its virtual NIC: the only door from the MPI layer to everything below it.

use crate::board::Board;
use crate::core::Core;
use crate::errand::{UpdateWords, Updater};
use crate::helper::Helper;
use crate::memory::{Descriptions, Memory};
use crate::remote::RemoteCopy;
use crate::segment::{Made, Segment};
use crate::stay::Stay;
use crate::tuning::Tuning;
use parnass_base::UserAddress;
use parnass_base::atomics::Ordering;
use parnass_base::lane::ShortBytes;
use parnass_counters::{Counters, Observer};
use parnass_transport::{Follow, MemoryError, Prospect, Transport, Turns};
use std::sync::Arc;
use std::time::Instant;

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
    /// As `Buffered`, and copied whole before the target hears of it, which is about to send a message itself: see [`Interface::exchanges`].
    Exchanged,
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
    pub source: Memory,
    pub length: usize,
    pub protocol: Protocol,
    /// Whether the caller does nothing else until the source may be reused.
    pub blocking: bool,
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
    pub memory: Memory,
    pub length: usize,
    /// Comes back in the events of this entry.
    pub user: u64,
}

/// Names an entry that has been appended; stale handles are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryHandle(pub u64);

impl EntryHandle {
    /// That of an entry which its `user` alone names.
    pub const BY_USER: EntryHandle = EntryHandle(0);
}

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
    /// Initiator: the put `user` was taken back before anybody received it ([`Interface::ask_back`]); in place of its last event.
    Withdrawn,
    /// The peer of this operation is gone, or its data could not be moved.
    Failed,
}

/// One event.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub kind: EventKind,
    pub user: u64,
    /// The other side: the initiator for events at the target, the target for events at the initiator.
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

/// Who is told of events.
pub trait Sink {
    /// An event has come. Where this is to be part of the path of a short message, whatever the compiler thinks of its length, it says so.
    fn hear(&mut self, event: Event);
}

impl<F: FnMut(Event)> Sink for F {
    #[inline]
    fn hear(&mut self, event: Event) {
        self(event);
    }
}

/// What is told of a message that was received without an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its data could not be moved.
    pub failed: bool,
    pub initiator: ProcessId,
    pub match_bits: u64,
    pub header_data: u64,
    /// Length of the message as sent, in bytes.
    pub requested_length: u64,
    /// Bytes that were placed.
    pub placed_length: u64,
}

impl Received {
    /// The event that tells it to the entry of `user`.
    pub(crate) fn event(&self, user: u64) -> Event {
        Event {
            kind: if self.failed { EventKind::Failed } else { EventKind::Put },
            user,
            initiator: self.initiator,
            match_bits: self.match_bits,
            header_data: self.header_data,
            requested_length: self.requested_length,
            placed_length: self.placed_length,
            taken: 0,
        }
    }
}

impl From<&Event> for Received {
    fn from(event: &Event) -> Self {
        Received {
            failed: event.kind == EventKind::Failed,
            initiator: event.initiator,
            match_bits: event.match_bits,
            header_data: event.header_data,
            requested_length: event.requested_length,
            placed_length: event.placed_length,
        }
    }
}

/// A moment in the life of an interface, for sleeping without missing anything: take a ticket, look
/// whether what you wait for is there, and if not, `wait` with the ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(pub u32);

/// Who else waits when a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Company {
    /// No other thread of this process.
    None,
    /// Other threads of this process, which may need the same processor.
    Others,
}

/// What a process does for others while it computes, beyond what its NIC does.
pub trait Wheel: Send + Sync {
    /// Takes events, and does what they ask for. Whether there was anything. Called by threads of this crate and of the transport.
    fn turn(&self) -> bool;

    /// Whether there is something to do of which no event tells.
    fn is_due(&self) -> bool;
}

/// Why the NIC refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortalError {
    /// No process has this number; holds the number and the size of the job.
    NoSuchProcess(u32, u32),
    /// The process with this number is dead.
    Dead(u32),
    /// The job's memory file is full; says what could not be had.
    OutOfMemory(String),
}

/// A process's view of its virtual NIC and of its peers. `Sync`: any thread may call it.
#[derive(Debug)]
pub struct Interface {
    pub(crate) core: Arc<Core>,
    pub(crate) helper: Helper,
}

impl Interface {
    /// The NIC of this process, and the way to those of its peers.
    ///
    /// # Errors
    /// No memory for it.
    pub fn new(transport: Box<dyn Transport>) -> Result<Interface, PortalError> {
        Interface::with(transport, Tuning::default())
    }

    /// As [`Interface::new`], with other values than the defaults.
    ///
    /// # Errors
    /// No memory for it.
    pub fn with(transport: Box<dyn Transport>, tuning: Tuning) -> Result<Interface, PortalError> {
        Interface::observed(transport.into(), tuning, Arc::default())
    }

    /// As [`Interface::with`], over a transport that somebody else may hold too, with an observer that is told what happens.
    ///
    /// # Errors
    /// No memory for it.
    pub fn observed(
        transport: Arc<dyn Transport>,
        tuning: Tuning,
        observer: Arc<Observer>,
    ) -> Result<Interface, PortalError> {
        let core = Arc::new(Core::new(transport, tuning, observer));
        core.may_park();
        Interface::have_attended(&core, &*core.transport);
        Ok(Interface { core, helper: Helper::default() })
    }

    /// Has what a network brings to a process that computes taken in.
    fn have_attended(core: &Arc<Core>, transport: &dyn Transport) {
        if transport.network().is_some() {
            // The attendant is called by another thread.
            transport.several_threads();
            core.networked.store(true, Ordering::Relaxed);
            let own = core.clone();
            let mut stay = Stay::default();
            transport.attend(Some(Box::new(move || own.attend(&mut stay))));
        }
    }

    /// What this process counts.
    #[inline]
    pub fn counters(&self) -> &Counters {
        &self.core.counters
    }

    /// Who is told what happens.
    #[inline]
    pub fn observer(&self) -> &Arc<Observer> {
        &self.core.observer
    }

    /// Who takes the events while no thread of this process waits; without anybody they are left for the program. `None` takes
    /// that back, and when it returns nobody is called any more.
    pub fn set_wheel(&self, wheel: Option<Arc<dyn Wheel>>) {
        if wheel.is_some() {
            self.helper.start(&self.core);
        }
        self.core.wheel.set(wheel);
    }

    /// Wakes the helper of a process, if it is on this node, for a message for which that process has a [`Wheel`].
    pub fn call_helper(&self, process: ProcessId) {
        self.core.transport.ring_helper(process.0);
    }

    /// Something is about to follow the next message to a process: they may travel together.
    pub fn more_follows(&self, process: ProcessId) {
        self.core.transport.more_follows(process.0);
    }

    /// Replaces the values of the tuning, from now on.
    pub fn retune(&self, tuning: Tuning) {
        self.core.tuning.set(tuning);
    }

    /// Now, if somebody wants to know how long calls wait.
    #[inline]
    pub fn watched_since(&self) -> Option<Instant> {
        self.core.watched_since()
    }

    /// Counts waiting that began when [`Interface::watched_since`] was asked, and was none of [`Interface::wait`].
    #[inline]
    pub fn count_waited(&self, began: Option<Instant>) {
        self.core.count_waited(began);
    }

    /// How many unexpected messages are kept, and how many entries are posted, whose match bits are `match_bits` where `mask` is set.
    pub fn queues(&self, match_bits: u64, mask: u64) -> (u64, u64) {
        self.core.queues(match_bits, mask)
    }

    /// Lets the watched marks of the most unexpected messages and the most posted entries begin anew; what they were, and what the
    /// levels are now.
    pub fn begin_marks(&self) -> [(u64, u64); 2] {
        self.core.begin_marks()
    }

    /// From now on `wider` is the way to all peers: it leads to all that this process reaches already, and may have a network for
    /// those that [`Interface::admit`] adds. Once; a second one is ignored.
    pub fn widen(&self, wider: Box<dyn Transport>) {
        self.core.post_all();
        // What the first way brings is brought by the wider one from now on.
        self.core.transport.attend(None);
        self.core.transport.widen(wider);
        Interface::have_attended(&self.core, &*self.core.transport);
        // Those who sleep on the old way are to sleep on the new one.
        self.core.transport.ring_always();
        self.core.transport.ring_helper(self.core.me);
    }

    /// Processes of other worlds are peers from now on, by these numbers, which follow those that were there before. The
    /// network of the transport leads to them.
    pub fn admit(&self, processes: std::ops::Range<u32>) {
        processes.for_each(|process| self.core.tallies.admit(process));
    }

    /// Gives what moves described memory, see [`Memory::described`]. Once; a second one is ignored.
    pub fn set_descriptions(&self, descriptions: Arc<dyn Descriptions>) {
        let _ = self.core.descriptions.set(descriptions);
    }

    /// The number of this process.
    pub fn me(&self) -> ProcessId {
        ProcessId(self.core.me)
    }

    /// How many processes the job has.
    pub fn size(&self) -> u32 {
        self.core.size()
    }

    /// The longest message that [`Protocol::Buffered`] can carry, in bytes; longer ones go as `Direct`.
    pub fn buffered_limit(&self) -> usize {
        self.core.transport.limits().bulk_bytes
    }

    /// Whether long messages to `peer` move straight between the two user buffers. Where not, they go in pieces
    /// through shared memory.
    pub fn reaches(&self, peer: ProcessId) -> bool {
        self.core.transport.reaches(peer.0)
    }

    /// From now on [`Interface::put_short`] does nothing for these peers: something may be wrong with a message to them, for which the caller looks
    /// before it takes the long way.
    pub fn look_before_sending(&self, peers: impl Iterator<Item = ProcessId>) {
        peers.for_each(|peer| self.core.tallies.of(peer.0).go_the_long_way());
    }

    /// Removes what these peers, which are dead, were in the middle of sending, so that all that they have sent whole is there; to be called before
    /// [`Interface::fail`]. `false`: somebody who lives is in the middle of a message; to be called again.
    pub fn bury(&self, dead: &[ProcessId]) -> bool {
        self.core.bury(dead)
    }

    /// A peer is dead. What this process has under way with it fails: messages to it that had not gone yet, and messages from it whose
    /// data had not come yet. Entries that name it stay; messages that it had sent as a whole can still be received. A direct put that it had
    /// been told of stays without an event.
    pub fn fail(&self, peer: ProcessId) {
        self.core.fail(peer.0);
    }

    /// Says goodbye to the peers on other nodes, before the end of this process: it is no loss to them then.
    pub fn close(&self) {
        if let Some(network) = self.core.transport.network() {
            network.close();
        }
    }

    /// Sends. Never blocks: what cannot go now is kept, in order, and goes when `progress` or `wait` runs.
    ///
    /// # Errors
    /// There is no such target.
    #[inline]
    pub fn put(&self, put: &Put) -> Result<PutOutcome, PortalError> {
        let outcome = self.core.put(put)?;
        if outcome == PutOutcome::Pending {
            self.helper.start(&self.core);
            if self.core.is_far(put.target.0) {
                self.core.attend_soon(Prospect::Moving);
            }
        }
        Ok(outcome)
    }

    /// The short way of a [`Protocol::Buffered`] put without an ack: `true` if it is done, `false` if nothing was done and it must
    /// go the long way, because it is too long for a mailbox, or because it cannot go now.
    #[inline(always)]
    pub fn put_short(
        &self,
        target: ProcessId,
        match_bits: u64,
        header_data: u64,
        source: Memory,
        length: usize,
        follow: Follow,
    ) -> bool {
        self.core.put_short(target.0, match_bits, header_data, source, length, follow)
    }

    /// The short way of a [`Protocol::Exchanged`] put without an ack, as [`Interface::put_short`].
    pub fn put_exchanged(&self, put: &Put) -> bool {
        self.core.put_exchanged(put)
    }

    /// From now on several threads may call. To be called while only one does.
    pub fn several_threads(&self) {
        self.core.park_never();
        self.core.counters.several_threads();
        self.core.transport.several_threads();
    }

    /// The short way to append to the priority list, of an entry that can be unlinked as [`EntryHandle::BY_USER`]. `false`: it is none of
    /// the usual kind, and nothing was done.
    #[inline(always)]
    pub fn park(&self, entry: &MatchEntry) -> bool {
        self.core.park(entry)
    }

    /// Waits for a moment for the message of an entry that has been kept back, if it is the only one. `None`: it is not, or its event comes later.
    #[inline]
    pub fn receive_parked(&self, user: u64) -> Option<Event> {
        self.core.receive_parked(user).map(|received| received.event(user))
    }

    /// Looks among the unexpected messages first, then appends, atomically with respect to arrivals.
    ///
    /// # Errors
    /// No memory for one more entry.
    ///
    /// # Panics
    /// If `list` is the overflow list: plain messages that nobody expects are kept by the NIC itself. Overflow
    /// entries belong to the other portals, see [`crate::target`].
    pub fn append(&self, list: List, entry: &MatchEntry) -> Result<Appended, PortalError> {
        if self.park(entry) {
            return Ok(Appended::Posted(EntryHandle::BY_USER));
        }
        if entry.length as u64 > self.core.tuning.helper_from_bytes() || self.core.is_secluded() {
            self.helper.start(&self.core);
        }
        self.core.append(list, entry)
    }

    /// The short way of a process that has nothing else to do than to receive: a message that is there, or comes while
    /// this process may spin, is placed in the memory of `entry` without posting it; the result is what `tell` makes of it. Or what `later` makes, and
    /// nothing is left behind, if it did not come, or if other work waits to be done: then append. Events of other entries may be left behind, see
    /// [`Interface::has_events`].
    #[inline]
    pub fn receive_soon<T>(
        &self,
        entry: &MatchEntry,
        tell: impl FnOnce(&Received) -> T,
        later: impl FnOnce() -> T,
    ) -> T {
        self.core.receive_soon(entry, tell, later)
    }

    /// Whether events wait to be taken.
    #[inline]
    pub fn has_events(&self) -> bool {
        self.core.own().control.events.count.get() != 0
    }

    /// Whether a message that could be buffered had better be [`Protocol::Direct`]. `blocking`: as in [`Put`].
    #[inline]
    pub fn prefers_one_copy(&self, target: ProcessId, source: Memory, length: usize, blocking: bool) -> bool {
        self.core.prefers_one_copy(target.0, source, length, blocking)
    }

    /// Whether a message to be sent now had better be [`Protocol::Exchanged`] than `otherwise`. `receives`: this process may be about to receive a message,
    /// though it has posted nothing for it.
    #[inline]
    pub fn exchanges(
        &self,
        target: ProcessId,
        source: Memory,
        length: usize,
        otherwise: Protocol,
        receives: bool,
    ) -> bool {
        self.core.exchanges(target.0, source, length, otherwise, receives)
    }

    /// Takes an entry back that has not matched, by its handle and its `user`. `false`: too late, its event has come or will come.
    pub fn unlink(&self, handle: EntryHandle, user: u64) -> bool {
        self.core.unlink(handle, user)
    }

    /// Asks for a put back that is not over: [`EventKind::Withdrawn`] takes the place of its last event if nobody has received it when the question
    /// comes to the target, where whoever drives its NIC answers; a put to oneself that has come is taken back by this call
    /// itself. `header_data` names the put among those with its match bits. What had room in a mailbox or in a payload, and waits for no ack, is over at once
    /// and cannot be asked back.
    pub fn ask_back(&self, target: ProcessId, match_bits: u64, header_data: u64) {
        self.core.ask_back(target.0, match_bits, header_data);
    }

    /// Looks for the first unexpected message, in arrival order, that `entry`'s criteria match. Takes in new
    /// arrivals first.
    pub fn search(&self, operation: SearchOperation, entry: &MatchEntry) -> Option<Event> {
        self.core.search(operation, entry)
    }

    /// As a search that takes its hit, for the next message of a source that is named, where that has at most 40 bytes (`entry` places
    /// none of them): it is received with this call. `None`: it is none of those, or has not come.
    pub fn take_short(&self, entry: &MatchEntry) -> Option<(Received, ShortBytes)> {
        self.core.take_short(entry)
    }

    /// Whether something is there to be taken in, or comes while this process may spin.
    pub fn awaits_arrival(&self, awaited: Option<ProcessId>) -> bool {
        self.core.awaits_arrival(awaited)
    }

    /// A number that is another one whenever a message that nobody expects has been taken in since, by whomever; also
    /// when something was appended. Who searches takes it before, and watches it while it waits: such a message
    /// comes without an event, and whoever takes it in for this process finds nobody asleep to wake.
    #[inline]
    pub fn arrivals(&self) -> u64 {
        self.core.own().control.order.get()
    }

    /// Receives a message that a search took, if it still lies where it came, as it mostly does. `None`: nothing was done.
    #[inline]
    pub fn receive_held(&self, taken: u64, memory: Memory, length: usize) -> Option<Received> {
        self.core.receive_held(taken, memory, length)
    }

    /// Receives a message that a search took. As `append`: complete at once, or an event comes.
    ///
    /// # Panics
    /// If `taken` names no taken message.
    pub fn receive_taken(&self, taken: u64, memory: Memory, length: usize, user: u64) -> Appended {
        self.core.receive_taken(taken, memory, length, user)
    }

    /// Turns the wheel once: takes in arrivals, sends what was delayed, moves data that waits to be moved, and
    /// hands every event to `sink`, which must not call the interface. Returns whether anything happened. Threads that
    /// sleep in `wait` are not woken by that: see [`Interface::wake`].
    #[inline]
    pub fn progress(&self, sink: &mut impl Sink) -> bool {
        self.core.progress(sink)
    }

    /// Lets another process run, if this one has no processor of its own.
    pub fn step_aside(&self) {
        if self.core.transport.spins() == 0 {
            self.core.transport.step_aside(&mut Turns::default());
        }
    }

    /// See [`Ticket`].
    pub fn ticket(&self) -> Ticket {
        Ticket(self.core.transport.rings())
    }

    /// Sleeps until something has happened since `ticket`, or until `deadline`; before that it spins if there is
    /// a core for every rank, and works for the peers that it waits for. May return early.
    /// `awaited` is the process that this one waits for, if it is one; it is shown to tools. `company`: whether other
    /// threads of this process wait too.
    #[inline]
    pub fn wait(
        &self,
        ticket: Ticket,
        awaited: Option<ProcessId>,
        deadline: Option<Instant>,
        company: Company,
    ) {
        self.core.show_waiting(awaited);
        self.core.wait(ticket, awaited, deadline, company, || false);
    }

    /// As [`Interface::wait`] without a deadline, until `watched` too: for something that peers do on a [`Board`], or a message that is
    /// not received yet.
    #[inline]
    pub fn wait_watching(
        &self,
        ticket: Ticket,
        awaited: Option<ProcessId>,
        company: Company,
        watched: &dyn Fn() -> bool,
    ) {
        self.core.show_watching(awaited);
        self.core.wait(ticket, awaited, None, company, watched);
    }

    /// Whether `progress` would find something: for a caller that spins on something else.
    #[inline]
    pub fn has_work(&self) -> bool {
        self.core.has_work()
    }

    /// How often a caller may look for something before it waits; 0 when there is no core to spare.
    #[inline]
    pub fn spins(&self) -> u32 {
        self.core.transport.spins()
    }

    /// Whether reading the memory of others beats two copies, see [`crate::copies_once`].
    pub fn copies_once(&self) -> bool {
        self.core.tuning.copies_once
    }

    /// Whether so many bytes are better written past the caches: these would not hold them until they are read.
    #[inline]
    pub fn goes_past_caches(&self, bytes: u64) -> bool {
        self.core.goes_past_caches(bytes)
    }

    /// Whether a board can be shared with this process.
    pub fn shares_memory(&self, with: ProcessId) -> bool {
        self.core.transport.board_memory(with.0).is_some()
    }

    /// Makes a board for so many members; its name, for [`Interface::open_board`] at each of them, or 0 if there is no
    /// room for one.
    pub fn claim_board(&self, members: u32) -> u64 {
        self.core.boards.claim(&self.core, members)
    }

    /// The board with a name that was claimed by one of the members. `members` are the same at each of them, and this
    /// process is number `me` among them. Every member must open it, once. `None` if its leader shares no memory with
    /// this process.
    pub fn open_board(&self, name: u64, members: Box<[ProcessId]>, me: u32) -> Option<Board> {
        Board::open(&self.core, name, members, me)
    }

    /// Makes a segment of so many bytes for so many members, for [`Interface::open_segment`] at each of them.
    ///
    /// # Errors
    /// There is no memory.
    pub fn make_segment(&self, members: u32, data_bytes: usize) -> Result<Made, PortalError> {
        Segment::make(&self.core, members, data_bytes)
    }

    /// The segment with a name that one of the members has made: `made` at that one. `members` share memory with this process, and are the
    /// same at each of them.
    ///
    /// # Errors
    /// There is no address space.
    pub fn open_segment(
        &self,
        name: u64,
        made: Option<Made>,
        members: Box<[ProcessId]>,
        data_bytes: usize,
    ) -> Result<Segment, PortalError> {
        Segment::open(&self.core, name, made, members, data_bytes)
    }

    /// Copies from `remote` in the memory of `peer` to `local`, if this process [`reaches`](Interface::reaches) it.
    ///
    /// # Errors
    /// It does not, or there is no such memory.
    pub fn read_memory(
        &self,
        peer: ProcessId,
        remote: UserAddress,
        local: UserAddress,
        length: usize,
    ) -> Result<(), MemoryError> {
        self.core.transport.read(peer.0, remote, local, length)
    }

    /// Copies from `local` to `remote` in the memory of `peer`, if this process [`reaches`](Interface::reaches) it.
    ///
    /// # Errors
    /// It does not, or there is no such memory.
    pub fn write_memory(
        &self,
        peer: ProcessId,
        remote: UserAddress,
        local: UserAddress,
        length: usize,
    ) -> Result<(), MemoryError> {
        self.core.transport.write(peer.0, remote, local, length)
    }

    /// How updates are carried out that others ask for, see [`Interface::ask_update`].
    pub fn set_updater(&self, updater: Updater) {
        self.core.errands.set_updater(updater);
    }

    /// As [`Interface::write_memory`], of memory that is known to be there: a `peer` that waits may be asked to take part, if that is the
    /// faster way, and nobody asks the kernel then.
    ///
    /// # Errors
    /// As for [`Interface::write_memory`].
    #[inline]
    pub fn write_known(
        &self,
        peer: ProcessId,
        remote: UserAddress,
        local: UserAddress,
        length: usize,
    ) -> Result<(), MemoryError> {
        self.core.copy_known(&RemoteCopy { target: peer.0, write: true, remote, mapped: None, local, length })
    }

    /// Copies, to `peer` or from there, between memory that this process shares with it and memory of its own. A peer that waits may take a part
    /// of that over.
    ///
    /// # Errors
    /// As for [`Interface::write_memory`].
    pub fn copy_mapped(&self, copy: &RemoteCopy) -> Result<(), MemoryError> {
        self.core.copy_mapped(copy)
    }

    /// As [`Interface::read_memory`], as [`Interface::write_known`].
    ///
    /// # Errors
    /// As for [`Interface::read_memory`].
    #[inline]
    pub fn read_known(
        &self,
        peer: ProcessId,
        remote: UserAddress,
        local: UserAddress,
        length: usize,
    ) -> Result<(), MemoryError> {
        self.core.copy_known(&RemoteCopy {
            target: peer.0,
            write: false,
            remote,
            mapped: None,
            local,
            length,
        })
    }

    /// Has `peer` update its memory at `remote`, as its [`Updater`] does, which gets all that is given here. What it leaves in the
    /// words. `None`: it does not wait, or sleeps, and nothing has been done.
    #[inline]
    pub fn ask_update(
        &self,
        peer: ProcessId,
        code: u32,
        remote: UserAddress,
        length: usize,
        words: UpdateWords,
    ) -> Option<UpdateWords> {
        self.core.ask_update(peer.0, code, remote, length, words)
    }

    /// Wakes every thread of this process that sleeps in `wait`.
    pub fn wake(&self) {
        self.core.transport.ring_always();
    }
}

impl Drop for Interface {
    fn drop(&mut self) {
        self.core.transport.attend(None);
        self.helper.stop(&self.core);
    }
}

impl Put {
    /// An event at the initiator.
    pub(crate) fn event(&self, kind: EventKind) -> Event {
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
    pub(crate) fn from_number(number: u32) -> EventKind {
        [EventKind::Put, EventKind::Send, EventKind::Ack, EventKind::Search, EventKind::Withdrawn]
            .into_iter()
            .find(|kind| *kind as u32 == number)
            .unwrap_or(EventKind::Failed)
    }
}
