//! The service of a window with ranks that have no way to its memory but messages: it takes their requests, see `far`.
//!
//! It is an activity, advanced by whoever turns the wheel: threads of the program that are inside MPI, and while they compute
//! the thread that watches the network, or the helper. So it never waits: what has to be awaited is an operation that it has
//! started, or the lock of this process, which it watches.

use super::Target;
use super::accumulate::{Combination, update_spot};
use super::attached::Attached;
use super::far::{HEADER_BYTES, Kind, REQUEST, RUN_BYTES, Request, TOGETHER, bytes_of};
use super::transfer::{Place, Spot};
use crate::activity::Activity;
use crate::comm::{Communicator, Plane};
use crate::constants::*;
use crate::datatype::{Buffer, CountForm, Datatype};
use crate::process::{Process, UserBytes};
use crate::request::{Operation, Status};
use crate::{Error, Result};
use parnass_base::{Scratch, UserAddress};
use parnass_counters::WINDOW_REQUESTS;
use parnass_portals::{Access, Segment};
use std::collections::VecDeque;
use std::sync::Arc;

/// This process as a target.
#[derive(Debug)]
pub(super) struct Served {
    pub communicator: Arc<Communicator>,
    pub own: Target,
    pub base: UserAddress,
    pub segment: Arc<Segment>,
    pub member: u32,
    /// What may be accessed, of a dynamic window.
    pub attached: Option<Arc<Attached>>,
}

/// What carries out the requests of others at this process.
#[derive(Debug)]
pub(super) struct Service {
    served: Served,
    /// The next request, and its payload if it is short.
    header: Scratch,
    arriving: Option<Operation>,
    /// A request whose payload is on its way. Until it is there no other is taken, so that those of an origin stay in order.
    incomplete: Option<Incomplete>,
    /// Those who wait for the lock of this process.
    waiters: VecDeque<Waiter>,
    /// As what the lock is watched, if somebody waits for it.
    watched: Option<Access>,
    /// Answers on their way, with what they are sent from.
    answers: Vec<(Operation, Scratch)>,
    stopping: bool,
}

#[derive(Debug)]
struct Incomplete {
    rank: i32,
    request: Request,
    payload: Operation,
    /// Where it comes to, unless that is the window itself.
    kept: Scratch,
}

/// Somebody who waits for the lock of this process.
#[derive(Debug)]
struct Waiter {
    rank: i32,
    request: Request,
    access: Access,
}

impl Service {
    pub fn new(served: Served) -> Service {
        Service {
            served,
            header: Scratch::new(HEADER_BYTES + TOGETHER),
            arriving: None,
            incomplete: None,
            waiters: VecDeque::new(),
            watched: None,
            answers: Vec::new(),
            stopping: false,
        }
    }

    /// Does what can be done now. Whether there is more to come.
    fn go_on(&mut self, process: &Process) -> Result<bool> {
        // An answer that does not arrive is between the two, one of which may be dead.
        self.answers.retain_mut(|(operation, _)| operation.poll(process).is_none());
        while !self.stopping {
            if let Some(incomplete) = &mut self.incomplete {
                let Some(outcome) = incomplete.payload.poll(process) else { break };
                if let Some(Incomplete { rank, request, kept, .. }) = self.incomplete.take()
                    && outcome.is_ok()
                    && !kept.is_empty()
                {
                    self.carry_out(process, rank, request, kept.address());
                }
                continue;
            }
            let Some(arriving) = &mut self.arriving else {
                let bytes = process.datatypes().byte();
                let buffer = Buffer::new(self.header.address(), self.header.len() as u64, bytes);
                let (communicator, plane) = (&self.served.communicator, Plane::PointToPoint);
                let arriving =
                    process.start_recv(communicator, plane, MPI_ANY_SOURCE, REQUEST as i32, buffer)?;
                self.arriving = Some(arriving);
                continue;
            };
            // That one of the others is dead does not end it: the rest are served on.
            if arriving.slot().is_some_and(|slot| !process.slots.is_complete(slot)) {
                break;
            }
            let Some(outcome) = arriving.poll(process) else { break };
            self.arriving = None;
            let source = outcome?.source;
            let rank = source.map_or(MPI_UNDEFINED, |source| self.served.communicator.rank_of(source));
            self.take_in(process, rank)?;
        }
        self.hand_over(process);
        Ok(!self.stopping || !self.answers.is_empty())
    }

    /// A request has come.
    fn take_in(&mut self, process: &Process, rank: i32) -> Result<()> {
        let header = self.header.address();
        let words = std::array::from_fn(|index| header.offset(8 * index as i64).read_word());
        let Some(request) = Request::from_words(words) else {
            return Err(Error::new(MPI_ERR_INTERN, format!("rank {rank} has sent what is no request")));
        };
        if request.kind == Kind::Stop {
            self.stopping = true;
            return Ok(());
        }
        process.counters().count_any(WINDOW_REQUESTS, 1);
        if request.payload <= TOGETHER as u64 {
            self.carry_out(process, rank, request, header.offset(HEADER_BYTES as i64));
            return Ok(());
        }
        // What is written as it is comes to its place at once.
        let placed = request.kind == Kind::Put && request.runs == 0;
        let kept = Scratch::new(if placed { 0 } else { request.payload as usize });
        let place = if placed {
            let address = self.served.base.offset(request.start);
            self.served.require(
                process,
                rank,
                &request,
                address,
                (process.datatypes().byte(), request.length),
            );
            UserBytes { address, length: request.payload }
        } else {
            bytes_of(&kept)
        };
        let (plane, tag) = (Plane::PointToPoint, request.payload_tag());
        if let Ok(payload) = process.start_receive_bytes(&self.served.communicator, plane, rank, tag, place) {
            self.incomplete = Some(Incomplete { rank, request, payload, kept });
        }
        Ok(())
    }

    /// Carries out a request whose payload is there.
    fn carry_out(&mut self, process: &Process, rank: i32, request: Request, payload: UserAddress) {
        let access = match request.kind {
            Kind::LockShared | Kind::UnlockShared => Access::Shared,
            _ => Access::Exclusive,
        };
        match request.kind {
            Kind::LockShared | Kind::LockExclusive => {
                self.waiters.push_back(Waiter { rank, request, access });
            }
            Kind::UnlockShared | Kind::UnlockExclusive => {
                self.served.segment.release(self.served.member, access);
            }
            Kind::Flush => {
                Segment::fence();
                self.answer(process, rank, &request, None);
            }
            Kind::Put | Kind::Get | Kind::Update | Kind::Swap => {
                // What fails is between the two, one of which may be dead; the others are served on.
                if let Ok(Some(old)) = self.served.transfer(process, rank, request, payload) {
                    self.answer(process, rank, &request, Some(old));
                }
            }
            Kind::Stop => {}
        }
    }

    /// Whether the answer could be sent.
    fn answer(&mut self, process: &Process, rank: i32, request: &Request, data: Option<Scratch>) -> bool {
        let data = data.unwrap_or_else(|| Scratch::new(0));
        let (plane, tag) = (Plane::PointToPoint, request.answer_tag());
        let place = bytes_of(&data);
        match process.start_send_bytes(&self.served.communicator, plane, rank, tag, place) {
            Ok(mut operation) => {
                if operation.poll(process).is_none() {
                    self.answers.push((operation, data));
                }
                true
            }
            Err(_) => false,
        }
    }

    /// Hands the lock of this process to those who wait longest for it, as far as it can be had.
    fn hand_over(&mut self, process: &Process) {
        let (segment, member) = (Arc::clone(&self.served.segment), self.served.member);
        while let Some(&Waiter { access, .. }) = self.waiters.front() {
            if !segment.try_acquire(member, access) {
                if self.watched == Some(access) {
                    return;
                }
                // From now on who releases it rings, and the wheel looks whether it is to be had. It may have been released before,
                // when nobody rang: so it is tried once more.
                if self.watched.replace(access).is_none() {
                    segment.await_access(member, true);
                }
                let segment = Arc::clone(&segment);
                process.watch_in_activity(Box::new(move || segment.may_acquire(member, access)));
                continue;
            }
            if let Some(Waiter { rank, request, .. }) = self.waiters.pop_front()
                && !self.answer(process, rank, &request, None)
            {
                // The dead hold no lock that they have not heard of.
                segment.release(member, access);
            }
        }
        if self.watched.take().is_some() {
            segment.await_access(member, false);
            process.watch_no_more();
        }
    }
}

impl Activity for Service {
    fn advance(&mut self, process: &Process) -> Option<Result<Status>> {
        match self.go_on(process) {
            Ok(true) => None,
            Ok(false) => Some(Ok(Status::EMPTY)),
            Err(error) => {
                // Nobody would ever be answered.
                let text = format!("a window of this process cannot be served any more: {}", error.message());
                process.abort(error.class(), &text)
            }
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let memory = |memory: &mut Scratch| std::mem::replace(memory, Scratch::new(0));
        // The NIC may still use what operations were started with.
        if self.arriving.is_some() {
            std::mem::forget(memory(&mut self.header));
        }
        if let Some(incomplete) = &mut self.incomplete {
            std::mem::forget(memory(&mut incomplete.kept));
        }
        self.answers.drain(..).for_each(|(_, data)| std::mem::forget(data));
    }
}

impl Served {
    /// Ends the job if a request is for memory that may not be accessed.
    fn require(
        &self,
        process: &Process,
        rank: i32,
        request: &Request,
        address: UserAddress,
        (datatype, count): (&Arc<Datatype>, u64),
    ) {
        let Some(attached) = &self.attached else { return };
        let place = Place { rank: self.communicator.rank(), displacement: request.start, count, datatype };
        if let Err(error) = attached.require(address, &place) {
            // Not every request is answered, so its origin cannot be told.
            process.abort(error.class(), &format!("rank {rank}, in a window: {}", error.message()));
        }
    }

    /// Reads or writes the window. What is to be answered, if the request is answered.
    fn transfer(
        &self,
        process: &Process,
        rank: i32,
        request: Request,
        payload: UserAddress,
    ) -> Result<Option<Scratch>> {
        let table = request.runs as usize * RUN_BYTES;
        let data = payload.offset(table as i64);
        let derived;
        let (datatype, count) = if request.runs == 0 {
            (process.datatypes().byte(), request.length)
        } else {
            let word = |index: usize| payload.offset(8 * index as i64).read_word() as i64;
            let runs = request.runs as usize;
            let lengths: Vec<i64> = (0..runs).map(|run| word(2 * run + 1)).collect();
            let places: Vec<i64> = (0..runs).map(|run| word(2 * run)).collect();
            derived = Datatype::hindexed(CountForm::Large, &lengths, &places, process.datatypes().byte())?;
            (&derived, 1)
        };
        let address = self.base.offset(request.start);
        self.require(process, rank, &request, address, (datatype, count));
        let spot = Spot { target: &self.own, address, count, datatype, direct: true, asked: false };
        let old = Scratch::new(if request.kind == Kind::Put { 0 } else { request.length as usize });
        match request.kind {
            Kind::Put => {
                spot.write(process, data, request.length)?;
                return Ok(None);
            }
            Kind::Get => spot.read(process, old.address(), request.length)?,
            Kind::Swap => {
                let _update = self.segment.update(self.member);
                spot.read(process, old.address(), request.length)?;
                let bytes = request.length as usize;
                let (mut seen, mut expected) = (vec![0; bytes], vec![0; bytes]);
                old.address().read(&mut seen);
                data.read(&mut expected);
                if seen == expected {
                    spot.write(process, data.offset(bytes as i64), request.length)?;
                }
            }
            _ => {
                let ops = crate::op::PredefinedOps::default();
                let (op, basic) = (ops.get(request.op), process.datatypes().get(request.datatype));
                let (Some(op), Some(basic)) = (op, basic) else { return Ok(None) };
                let combination = Combination::new(op, basic)?;
                let result = Buffer::new(old.address(), request.length, process.datatypes().byte());
                let _update = self.segment.update(self.member);
                update_spot(process, &spot, &combination, data, request.length, Some(&result))?;
            }
        }
        Ok(Some(old))
    }
}
