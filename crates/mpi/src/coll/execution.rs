//! The executor: runs the steps of a schedule on the buffers of a call.

use super::call::Call;
use crate::comm::{Communicator, Plane};
use crate::constants::{MPI_ERR_COUNT, MPI_ERR_INTERN, MPI_ERR_TRUNCATE};
use crate::datatype::{Buffer, Datatype};
use crate::error::{Error, Result};
use crate::op::Op;
use crate::process::{Process, UserBytes};
use crate::progress::current_owner;
use crate::pt2pt::staging::Staging;
use crate::pt2pt::transfer::{Criteria, Posted, Started, match_bits, receiving, receiving_packed, sending};
use crate::request::Operation;
use parnass_base::UserAddress;
use parnass_collectives::{Kind, Peer, Region, Schedule, Span, Step};
use parnass_portals::ProcessId;
use std::sync::Arc;

/// A send or a receive of the round that is under way.
#[derive(Debug)]
pub(super) struct Flight {
    operation: Operation,
    peer: ProcessId,
    /// For a receive: how many bytes must come.
    expected: Option<u64>,
}

/// A collective operation under way.
#[derive(Debug)]
pub(super) struct Execution {
    communicator: Arc<Communicator>,
    match_bits: u64,
    schedule: Arc<Schedule>,
    next: usize,
    in_flight: Vec<Flight>,
    send: UserAddress,
    recv: UserAddress,
    scratch: Option<Staging>,
    types: Types,
    op: Option<Arc<Op>>,
    /// The first thing that went wrong. The steps go on, so that the other processes are not left waiting.
    error: Option<Error>,
}

/// The datatypes of a call.
#[derive(Debug)]
struct Types {
    send: Option<Arc<Datatype>>,
    recv: Option<Arc<Datatype>>,
    sends: Box<[Arc<Datatype>]>,
    recvs: Box<[Arc<Datatype>]>,
}

impl Execution {
    /// Ready to run. Draws the tag, so this happens in the order of the program's calls.
    pub(super) fn new(process: &Process, call: &Call<'_>) -> Execution {
        let communicator = call.communicator;
        let settings = process.collectives();
        let shape = call.shape(process.is_oversubscribed());
        let cache = communicator.collective_cache();
        let (schedule, in_flight) = if call.is_even() {
            cache.take(&shape, || call.schedule(shape, &settings.overrides))
        } else {
            (Arc::new(call.schedule(shape, &settings.overrides)), cache.take_list())
        };
        let scratch = (schedule.scratch_bytes() > 0).then(|| process.staging.take(schedule.scratch_bytes()));
        let tag = communicator.next_collective_tag();
        Execution {
            communicator: Arc::clone(communicator),
            match_bits: match_bits(communicator, Plane::Collective, tag),
            schedule,
            next: 0,
            in_flight,
            send: call.send.address(),
            recv: call.recv.address(),
            scratch,
            types: Types {
                send: call.send.datatype().cloned(),
                recv: call.recv.datatype().cloned(),
                sends: call.send.datatypes().into(),
                recvs: call.recv.datatypes().into(),
            },
            op: call.op.cloned(),
            error: None,
        }
    }

    /// Does everything that can be done without waiting; whether all is done.
    pub(super) fn advance(&mut self, process: &Process) -> bool {
        let schedule = Arc::clone(&self.schedule);
        while let Some(step) = schedule.steps().get(self.next) {
            let result = match *step {
                Step::Wait => {
                    if !self.collect(process) {
                        return false;
                    }
                    Ok(())
                }
                Step::Send { to, data } => self.start_send(process, to, data),
                Step::Receive { from, data } => self.start_receive(process, from, data),
                Step::Copy { from, to } => self.copy(process, from, to),
                Step::Reduce { input, inout } => self.reduce(input, inout),
            };
            if let Err(error) = result {
                self.note(error);
            }
            self.next += 1;
        }
        true
    }

    /// Sleeps until the operation that [`Execution::advance`] stopped at is complete.
    pub(super) fn wait(&self, process: &Process) {
        if let Some(flight) = self.in_flight.last() {
            let operation = &flight.operation;
            process.wait_until(operation.awaited(), || operation.is_complete(process).then_some(()));
        }
    }

    /// How it went.
    pub(super) fn finish(mut self) -> Result<()> {
        let list = std::mem::take(&mut self.in_flight);
        self.communicator.collective_cache().give_back(list);
        match self.error {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }

    fn note(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    /// Takes the operations that are complete, from the last one on; whether none is left.
    fn collect(&mut self, process: &Process) -> bool {
        while let Some(flight) = self.in_flight.last_mut() {
            let Some(outcome) = flight.operation.poll(process) else { return false };
            let (peer, expected) = (flight.peer, flight.expected);
            self.in_flight.pop();
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

    fn process_of(&self, peer: Peer) -> ProcessId {
        match peer {
            Peer::Local(rank) => self.communicator.group().process(rank as i32),
            Peer::Remote(rank) => self.communicator.peer(rank as i32),
        }
    }

    fn address(&self, span: Span) -> UserAddress {
        let base = match span.region {
            Region::Send => self.send,
            Region::Recv => self.recv,
            Region::Scratch => self.scratch.as_ref().map_or(UserAddress::NULL, Staging::address),
        };
        base.offset(span.offset)
    }

    /// The datatype of a span; `None` for bytes.
    fn datatype(&self, kind: Kind) -> Result<Option<&Arc<Datatype>>> {
        let datatype = match kind {
            Kind::Bytes => return Ok(None),
            Kind::Send => self.types.send.as_ref(),
            Kind::Recv => self.types.recv.as_ref(),
            Kind::SendAt(index) => self.types.sends.get(index as usize),
            Kind::RecvAt(index) => self.types.recvs.get(index as usize),
        };
        match datatype {
            Some(datatype) => Ok(Some(datatype)),
            None => Err(Error::new(
                MPI_ERR_INTERN,
                format!("the schedule wants the datatype {kind:?}, which the call does not have"),
            )),
        }
    }

    /// A span as one run of bytes or, if it is none, as a buffer of its datatype.
    fn resolve(&self, span: Span) -> Result<std::result::Result<UserBytes, Buffer<'_>>> {
        let address = self.address(span);
        Ok(match self.datatype(span.kind)? {
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

    fn start_send(&mut self, process: &Process, to: Peer, data: Span) -> Result<()> {
        let peer = self.process_of(to);
        let (bytes, staging) = match self.resolve(data)? {
            Ok(bytes) => (bytes, None),
            Err(buffer) => process.packed(&buffer),
        };
        match process.put(peer, self.match_bits, bytes, false, current_owner())? {
            Started::Done => {}
            started => {
                let operation = sending(started, peer, self.match_bits, staging);
                self.in_flight.push(Flight { operation, peer, expected: None });
            }
        }
        Ok(())
    }

    fn start_receive(&mut self, process: &Process, from: Peer, data: Span) -> Result<()> {
        let peer = self.process_of(from);
        let criteria = Criteria { source: Some(peer), match_bits: self.match_bits, ignore_bits: 0 };
        let (operation, expected) = match self.resolve(data)? {
            Ok(bytes) => {
                let posted = process.post(&criteria, bytes, current_owner())?;
                if let Posted::Done(completion) = &posted
                    && !completion.failed
                {
                    return check_length(peer, completion.requested_length, bytes.length);
                }
                (receiving(posted, &criteria, bytes.length), bytes.length)
            }
            Err(buffer) => {
                let length = buffer.size();
                let staging = process.staging.take(length);
                let memory = UserBytes { address: staging.address(), length };
                let posted = process.post(&criteria, memory, current_owner())?;
                (receiving_packed(posted, &criteria, length, staging, &buffer), length)
            }
        };
        self.in_flight.push(Flight { operation, peer, expected: Some(expected) });
        Ok(())
    }

    fn copy(&self, process: &Process, from: Span, to: Span) -> Result<()> {
        let (source, target) = (self.resolve(from)?, self.resolve(to)?);
        let length_of = |side: &std::result::Result<UserBytes, Buffer<'_>>| match side {
            Ok(bytes) => bytes.length,
            Err(buffer) => buffer.size(),
        };
        let (available, room) = (length_of(&source), length_of(&target));
        let length = available.min(room);
        match (source, target) {
            (Ok(source), Ok(target)) => target.address.copy_from(source.address, length as usize),
            (Err(source), Ok(target)) => {
                source.datatype.layout().pack(source.count, source.address, 0, target.address, length);
            }
            (Ok(source), Err(target)) => {
                target.datatype.layout().unpack(target.count, target.address, 0, source.address, length);
            }
            (Err(source), Err(target)) => {
                let packed = process.staging.take(length);
                let address = packed.address();
                source.datatype.layout().pack(source.count, source.address, 0, address, length);
                target.datatype.layout().unpack(target.count, target.address, 0, address, length);
            }
        }
        check_length(process.me(), available, room)
    }

    fn reduce(&self, input: Span, inout: Span) -> Result<()> {
        let (Some(op), Some(datatype)) = (&self.op, self.datatype(inout.kind)?) else {
            return Err(Error::new(MPI_ERR_INTERN, "a reduction needs an operator and a datatype"));
        };
        op.reduce(datatype, self.address(input), self.address(inout), inout.count)
    }
}

/// In a collective the data that is sent must fill exactly what is received (MPI 5.0, section 6.1).
#[inline]
fn check_length(peer: ProcessId, length: u64, expected: u64) -> Result<()> {
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
