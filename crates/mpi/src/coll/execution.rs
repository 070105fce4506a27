//! The executor of schedules of messages: runs their steps on the buffers of a call. Those on a board have one of their own.

use super::cache::Work;
use super::call::Call;
use crate::activity::current_owner;
use crate::comm::{Communicator, Plane};
use crate::constants::{MPI_ERR_COUNT, MPI_ERR_INTERN, MPI_ERR_TRUNCATE};
use crate::datatype::{Buffer, Datatype};
use crate::errhandler::Errhandler;
use crate::error::{Error, Result};
use crate::faults::interrupts;
use crate::op::Op;
use crate::process::{Process, UserBytes};
use crate::pt2pt::described::{Data, Description, Held};
use crate::pt2pt::transfer::{Criteria, Posted, Started, match_bits, received, receiving, sending};
use crate::request::Operation;
use parnass_base::UserAddress;
use parnass_collectives::{Kind, Peer, Region, Schedule, Span, Step};
use parnass_portals::ProcessId;
use std::sync::Arc;

/// Bytes that a copy inside the process moves at once when both sides have gaps.
pub(super) const COPY_PART: u64 = 32 << 10;
/// What is longer mostly needs an entry, since its bytes come later.
const SOON: u64 = 16 << 10;

/// A send or a receive of the round that is under way.
#[derive(Debug)]
pub(super) struct Flight {
    operation: Operation,
    peer: ProcessId,
    /// For a receive: how many bytes must come.
    expected: Option<u64>,
}

/// What the spans and peers of a schedule mean in one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    pub(super) communicator: &'a Arc<Communicator>,
    pub(super) send: UserAddress,
    pub(super) recv: UserAddress,
    pub(super) rest: Rest<'a>,
}

/// Where the datatypes and the operator are found, which most runs do not ask for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rest<'a> {
    Call(&'a Call<'a>),
    Kept(&'a OwnedParts),
}

impl<'a> Parts<'a> {
    #[inline]
    fn process_of(&self, peer: Peer) -> ProcessId {
        match peer {
            Peer::Local(rank) => self.communicator.group().process(rank as i32),
            Peer::Remote(rank) => self.communicator.peer(rank as i32),
        }
    }

    /// Whether an error ends the job.
    #[cold]
    pub(super) fn is_fatal(&self) -> bool {
        matches!(self.communicator.errhandler(), Errhandler::Fatal | Errhandler::Abort)
    }

    /// The datatype of a span; `None` for bytes.
    #[inline(always)]
    fn datatype(&self, kind: Kind) -> Result<Option<&'a Arc<Datatype>>> {
        if kind == Kind::Bytes { Ok(None) } else { self.find_datatype(kind).map(Some) }
    }

    fn find_datatype(&self, kind: Kind) -> Result<&'a Arc<Datatype>> {
        let datatype = match self.rest {
            Rest::Call(call) => call.datatype(kind),
            Rest::Kept(parts) => parts.datatype(kind),
        };
        datatype.ok_or_else(|| no_datatype(kind))
    }

    #[inline]
    fn op(&self) -> Option<&'a Arc<Op>> {
        match self.rest {
            Rest::Call(call) => call.op,
            Rest::Kept(parts) => parts.op.as_ref(),
        }
    }
}

/// Where the data of one run of a schedule lies.
#[derive(Debug)]
pub(super) struct Ground<'p, 'a> {
    pub(super) parts: &'p Parts<'a>,
    pub(super) scratch: UserAddress,
    /// Whether more is moved into this process than the caches would hold.
    pub(super) past_caches: bool,
}

impl<'a> Ground<'_, 'a> {
    #[inline]
    pub(super) fn address(&self, span: &Span) -> UserAddress {
        let base = match span.region {
            Region::Send => self.parts.send,
            Region::Recv => self.parts.recv,
            Region::Scratch => self.scratch,
        };
        base.offset(span.offset)
    }

    /// A span as one run of bytes or, if it is none, as a buffer of its datatype.
    #[inline]
    pub(super) fn resolve(&self, span: &Span) -> Result<std::result::Result<UserBytes, Buffer<'a>>> {
        let address = self.address(span);
        Ok(match self.parts.datatype(span.kind)? {
            None => Ok(UserBytes { address, length: span.count }),
            Some(datatype) => {
                let buffer = Buffer::new(address, span.count, datatype);
                match buffer.contiguous() {
                    Some(address) => Ok(UserBytes { address, length: buffer.size() }),
                    None => Err(buffer),
                }
            }
        })
    }

    /// A span as the NIC takes it.
    fn data(&self, process: &Process, span: &Span) -> Result<(Data, Option<Description>)> {
        Ok(match self.resolve(span)? {
            Ok(bytes) => (bytes.into(), None),
            Err(buffer) => process.described.data(&buffer),
        })
    }

    pub(super) fn copy(&self, process: &Process, from: &Span, to: &Span) -> Result<()> {
        let (source, target) = (self.resolve(from)?, self.resolve(to)?);
        let length_of = |side: &std::result::Result<UserBytes, Buffer<'_>>| match side {
            Ok(bytes) => bytes.length,
            Err(buffer) => buffer.size(),
        };
        let (available, room) = (length_of(&source), length_of(&target));
        let length = available.min(room);
        match (source, target) {
            (Ok(source), Ok(target)) if self.past_caches && source.is_apart_from(&target) => {
                target.address.stream_from(source.address, length as usize);
            }
            (Ok(source), Ok(target)) => target.address.copy_from(source.address, length as usize),
            (Err(source), Ok(target)) => {
                source.datatype.layout().pack(source.count, source.address, 0, target.address, length);
            }
            (Ok(source), Err(target)) => {
                target.datatype.layout().unpack(target.count, target.address, 0, source.address, length);
            }
            (Err(source), Err(target)) => {
                // In parts that stay in the cache.
                let part = length.min(COPY_PART);
                let packed = process.staging.take(part);
                let (from, to) = (source.datatype.layout(), target.datatype.layout());
                for start in (0..length).step_by(COPY_PART as usize) {
                    let bytes = part.min(length - start);
                    from.pack(source.count, source.address, start, packed.address(), bytes);
                    to.unpack(target.count, target.address, start, packed.address(), bytes);
                }
            }
        }
        check_length(process.me(), available, room)
    }

    /// Takes a step for which nobody else is needed.
    #[inline]
    fn step_alone(&self, process: &Process, step: &Step) -> Result<()> {
        match step {
            Step::Copy { from, to } => self.copy(process, from, to),
            Step::Reduce { input, inout } => self.reduce_from(self.address(input), inout),
            _ => Err(no_board()),
        }
    }

    /// Sends to a peer, and returns when the data may be written again.
    #[inline]
    fn send(&self, process: &Process, match_bits: u64, to: Peer, data: &Span) -> Result<()> {
        let (data, _description) = self.data(process, data)?;
        process.send_bytes(self.parts.process_of(to), match_bits, data, false)
    }

    /// Receives from a peer what must fill the span.
    #[inline]
    fn receive(&self, process: &Process, match_bits: u64, from: Peer, data: &Span) -> Result<()> {
        let peer = self.parts.process_of(from);
        let criteria = Criteria { source: Some(peer), match_bits, ignore_bits: 0 };
        let (data, _description) = self.data(process, data)?;
        process.receive_data(&criteria, data, |completion| {
            if completion.failed {
                received(completion, data.length)?;
            }
            check_length(peer, completion.requested_length, data.length)
        })
    }

    /// `inout = input (op) inout`.
    #[inline]
    pub(super) fn reduce_from(&self, input: UserAddress, inout: &Span) -> Result<()> {
        let (Some(op), Some(datatype)) = (self.parts.op(), self.parts.datatype(inout.kind)?) else {
            return Err(Error::new(MPI_ERR_INTERN, "a reduction needs an operator and a datatype"));
        };
        op.reduce(datatype, input, self.address(inout), inout.count)
    }
}

/// Runs the steps of a schedule in which nothing is under way beside a send or a receive: each as MPI_Send and MPI_Recv do. Draws the tag. After an error
/// the steps go on, as in an [`Execution`].
pub(super) fn run_in_turn(process: &Process, call: &Call<'_>, mut work: Box<Work>) -> Result<()> {
    let communicator = call.communicator;
    let bits = match_bits(communicator, Plane::Collective, communicator.next_collective_tag());
    let past_caches = process.nic().goes_past_caches(work.moved_bytes);
    let ground = Ground { parts: &call.parts(), scratch: work.scratch(process), past_caches };
    let mut failed = None;
    for step in work.schedule.steps() {
        let result = match step {
            &Step::Send { to, ref data } => ground.send(process, bits, to, data),
            &Step::Receive { from, ref data } => ground.receive(process, bits, from, data),
            Step::Wait => Ok(()),
            step => ground.step_alone(process, step),
        };
        if let Err(error) = result {
            note(&mut failed, error);
            if ground.parts.is_fatal() || failed.as_ref().is_some_and(interrupts) {
                break;
            }
        }
    }
    communicator.collective_cache().give_back(work);
    failed.map_or(Ok(()), Err)
}

/// The same, for an operation that outlives the call.
#[derive(Debug)]
pub(super) struct OwnedParts {
    communicator: Arc<Communicator>,
    send: UserAddress,
    recv: UserAddress,
    send_type: Option<Arc<Datatype>>,
    recv_type: Option<Arc<Datatype>>,
    send_types: Box<[Arc<Datatype>]>,
    recv_types: Box<[Arc<Datatype>]>,
    op: Option<Arc<Op>>,
}

impl OwnedParts {
    /// What a schedule of messages needs of a call.
    pub(super) fn new(call: &Call<'_>, schedule: &Schedule) -> OwnedParts {
        let [send, recv] = schedule.even_kinds();
        OwnedParts {
            communicator: Arc::clone(call.communicator),
            send: call.send.address(),
            recv: call.recv.address(),
            send_type: call.send.datatype().filter(|_| send).cloned(),
            recv_type: call.recv.datatype().filter(|_| recv).cloned(),
            send_types: call.send.datatypes().into(),
            recv_types: call.recv.datatypes().into(),
            op: call.op.cloned(),
        }
    }

    pub(super) fn parts(&self) -> Parts<'_> {
        Parts { communicator: &self.communicator, send: self.send, recv: self.recv, rest: Rest::Kept(self) }
    }

    fn datatype(&self, kind: Kind) -> Option<&Arc<Datatype>> {
        match kind {
            Kind::Bytes => None,
            Kind::Send => self.send_type.as_ref(),
            Kind::Recv => self.recv_type.as_ref(),
            Kind::SendAt(index) => self.send_types.get(index as usize),
            Kind::RecvAt(index) => self.recv_types.get(index as usize),
        }
    }
}

/// A collective operation under way.
#[derive(Debug)]
pub(super) struct Execution {
    work: Box<Work>,
    next: usize,
    match_bits: u64,
    scratch: UserAddress,
    /// Whether more is moved into this process than the caches would hold.
    past_caches: bool,
    /// Whether its caller does nothing else until it is over.
    is_awaited: bool,
    /// The first thing that went wrong. The steps go on, so that the other processes are not left waiting; unless
    /// the job will end of it: processes that disagree on a length may also disagree on the steps, and wait for ever.
    error: Option<Error>,
}

impl Execution {
    /// Ready to run, with what [`Process::work`] has found. Draws the tag, so this happens in the order of the program's calls.
    pub(super) fn new(process: &Process, call: &Call<'_>, work: Box<Work>) -> Execution {
        let communicator = call.communicator;
        let bits = match_bits(communicator, Plane::Collective, communicator.next_collective_tag());
        let past_caches = process.nic().goes_past_caches(work.moved_bytes);
        Execution { past_caches, ..Execution::of(process, work, bits) }
    }

    /// Ready to run the messages of a schedule that was run on a board before, where `error` has happened.
    pub(super) fn after_board(
        process: &Process,
        call: &Call<'_>,
        work: Box<Work>,
        error: Option<Error>,
    ) -> Execution {
        let next = work.schedule.messages().unwrap_or(0);
        Execution { next, error, ..Execution::new(process, call, work) }
    }

    pub(super) fn schedule(&self) -> &Schedule {
        &self.work.schedule
    }

    /// Whether nothing is left to do.
    pub(super) fn is_over(&self) -> bool {
        self.next == self.work.schedule.steps().len()
    }

    /// Ready to run a schedule of messages with these match bits.
    pub(super) fn of(process: &Process, mut work: Box<Work>, match_bits: u64) -> Execution {
        let scratch = work.scratch(process);
        Execution { work, next: 0, match_bits, scratch, past_caches: false, is_awaited: false, error: None }
    }

    /// Does everything that can be done without waiting; whether all is done.
    #[inline]
    pub(super) fn advance(&mut self, process: &Process, parts: &Parts<'_>) -> bool {
        if self.is_interrupted() {
            return self.collect(process);
        }
        // Steps are long: they are read where they stand, beside all else that they change.
        let schedule = std::mem::take(&mut self.work.schedule);
        let over = self.run(process, parts, schedule.steps());
        self.work.schedule = schedule;
        over
    }

    fn run(&mut self, process: &Process, parts: &Parts<'_>, steps: &[Step]) -> bool {
        let ground = Ground { parts, scratch: self.scratch, past_caches: self.past_caches };
        while let Some(step) = steps.get(self.next) {
            let result = match step {
                Step::Wait => {
                    if !self.collect(process) {
                        return self.error.is_some() && parts.is_fatal();
                    }
                    if self.is_interrupted() {
                        return true;
                    }
                    Ok(())
                }
                &Step::Send { to, ref data } => self.start_send(process, &ground, to, data),
                &Step::Receive { from, ref data } => {
                    let last = matches!(steps.get(self.next + 1), Some(Step::Wait));
                    self.start_receive(process, &ground, from, data, last)
                }
                step => ground.step_alone(process, step),
            };
            if let Err(error) = result {
                self.note(error);
            }
            if self.error.is_some() {
                if parts.is_fatal() {
                    return true;
                }
                if self.is_interrupted() {
                    return self.collect(process);
                }
            }
            self.next += 1;
        }
        true
    }

    /// Whether a member is dead, or the communicator revoked: the others learn that by themselves, and nobody is to be given what
    /// was made without all.
    fn is_interrupted(&self) -> bool {
        self.error.as_ref().is_some_and(interrupts)
    }

    /// Sleeps until the operation that [`Execution::advance`] stopped at is complete.
    fn wait(&self, process: &Process) {
        if let Some(flight) = self.work.in_flight.last() {
            let operation = &flight.operation;
            if operation.slot().is_some_and(|slot| process.receive_parked(slot)) {
                return;
            }
            process.wait_until(operation.awaited(), || operation.is_complete(process).then_some(()));
        }
    }

    /// Does all, for a caller that does nothing else.
    pub(super) fn complete(&mut self, process: &Process, parts: &Parts<'_>) {
        self.is_awaited = true;
        process.nic().will_wait_afar();
        while !self.advance(process, parts) {
            self.wait(process);
            process.nic().will_wait_afar();
        }
        process.nic().leave();
    }

    /// Who is advanced when an operation that it has started is complete.
    pub(super) fn belongs_to(&self, process: &Process, owner: Option<u32>) {
        for slot in self.work.in_flight.iter().filter_map(|flight| flight.operation.slot()) {
            process.slots.set_owner(slot, owner);
        }
    }

    /// How it went.
    pub(super) fn finish(self, communicator: &Communicator) -> Result<()> {
        let (work, result) = self.end();
        if let Some(work) = work {
            communicator.collective_cache().give_back(work);
        }
        result
    }

    /// What it has used, unless the NIC may still write there, and how it went.
    pub(super) fn end(self) -> (Option<Box<Work>>, Result<()>) {
        let work = self.work.in_flight.is_empty().then_some(self.work);
        (work, self.error.map_or(Ok(()), Err))
    }

    fn note(&mut self, error: Error) {
        note(&mut self.error, error);
    }

    /// Takes the operations that are complete, from the last one on; whether none is left.
    fn collect(&mut self, process: &Process) -> bool {
        while let Some(flight) = self.work.in_flight.last_mut() {
            let Some(outcome) = flight.operation.poll(process) else { return false };
            let (peer, expected) = (flight.peer, flight.expected);
            self.work.in_flight.pop();
            let checked = match (outcome, expected) {
                (Ok(outcome), Some(expected)) => check_length(peer, outcome.bytes, expected),
                (Ok(_), None) => Ok(()),
                (Err(error), Some(expected)) if error.class() == MPI_ERR_TRUNCATE => {
                    Err(too_long(peer, expected))
                }
                (Err(error), _) => Err(error),
            };
            if let Err(error) = checked {
                self.note(error);
            }
        }
        true
    }

    fn start_send(
        &mut self,
        process: &Process,
        ground: &Ground<'_, '_>,
        to: Peer,
        data: &Span,
    ) -> Result<()> {
        let peer = ground.parts.process_of(to);
        let (data, description) = ground.data(process, data)?;
        match process.put(peer, self.match_bits, data, false, current_owner())? {
            Started::Done => {}
            started => {
                let held = description.map(Held::Description);
                let operation = sending(started, peer, self.match_bits, held);
                self.work.in_flight.push(Flight { operation, peer, expected: None });
            }
        }
        Ok(())
    }

    fn start_receive(
        &mut self,
        process: &Process,
        ground: &Ground<'_, '_>,
        from: Peer,
        data: &Span,
        last: bool,
    ) -> Result<()> {
        let peer = ground.parts.process_of(from);
        let criteria = Criteria { source: Some(peer), match_bits: self.match_bits, ignore_bits: 0 };
        let (data, description) = ground.data(process, data)?;
        let mut received = None;
        if last && data.length <= SOON && self.is_awaited && self.work.in_flight.is_empty() {
            // Only this is waited for: no entry is needed if it comes soon.
            received = process.receive_soon(&criteria, data, |received| Some(*received), || None);
            process.nic().will_wait_afar();
        }
        let posted = match received {
            Some(received) => Posted::Done(received),
            None if last && !self.is_awaited => process.post_soon(&criteria, data, current_owner())?,
            None => process.post(&criteria, data, current_owner())?,
        };
        if let Posted::Done(completion) = &posted
            && !completion.failed
        {
            return check_length(peer, completion.requested_length, data.length);
        }
        let operation = receiving(posted, &criteria, data.length, description);
        self.work.in_flight.push(Flight { operation, peer, expected: Some(data.length) });
        Ok(())
    }
}

/// Keeps the first error, unless a later one interrupts the operation.
#[cold]
pub(super) fn note(kept: &mut Option<Error>, error: Error) {
    if interrupts(&error) && !kept.as_ref().is_some_and(interrupts) {
        *kept = Some(error);
    } else {
        kept.get_or_insert(error);
    }
}

#[cold]
fn no_board() -> Error {
    Error::new(MPI_ERR_INTERN, "the schedule wants a board, which this call does not have")
}

#[cold]
fn no_datatype(kind: Kind) -> Error {
    Error::new(
        MPI_ERR_INTERN,
        format!("the schedule wants the datatype {kind:?}, which the call does not have"),
    )
}

/// In a collective the data that is sent must fill exactly what is received (MPI 5.0, section 6.1).
#[inline]
pub(super) fn check_length(peer: ProcessId, length: u64, expected: u64) -> Result<()> {
    match length.cmp(&expected) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(too_long(peer, expected)),
        std::cmp::Ordering::Less => Err(too_short(peer, length, expected)),
    }
}

#[cold]
fn too_long(peer: ProcessId, expected: u64) -> Error {
    Error::new(
        MPI_ERR_TRUNCATE,
        format!(
            "process {} sent more than the {expected} bytes that this process receives from it; counts and datatypes must \
             describe the same amount of data at every rank",
            peer.0
        ),
    )
}

#[cold]
fn too_short(peer: ProcessId, length: u64, expected: u64) -> Error {
    Error::new(
        MPI_ERR_COUNT,
        format!(
            "process {} sent {length} bytes where this process receives {expected}; counts and datatypes must describe the \
             same amount of data at every rank",
            peer.0
        ),
    )
}
