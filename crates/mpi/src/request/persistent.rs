//! Persistent requests (MPI 5.0, sections 3.9, 4.2 and 6.13): an operation that can be started again and again.

use super::slots::SlotName;
use super::{Kind, Operation, Readiness, Request, State, Status};
use crate::coll::{Begun, Persistent};
use crate::comm::{Communicator, Plane};
use crate::constants::{MPI_ANY_TAG, MPI_ERR_REQUEST, MPI_PROC_NULL, MPI_SUCCESS};
use crate::datatype::{Buffer, Datatype};
use crate::error::{Error, Result};
use crate::process::Process;
use crate::pt2pt::{Incoming, Outgoing, Route, SendMode};
use parnass_base::UserAddress;
use parnass_portals::ProcessId;
use std::sync::Arc;
use std::task::Poll;

/// What a persistent request does each time it is started.
pub enum Specification {
    Send { address: UserAddress, count: u64, datatype: Arc<Datatype>, target: i32, tag: i32, mode: SendMode },
    Receive { address: UserAddress, count: u64, datatype: Arc<Datatype>, source: i32, tag: i32 },
    Collective(Persistent),
    PartitionedSend(Outgoing),
    PartitionedReceive(Arc<Incoming>),
}

impl Specification {
    /// How a partitioned operation went, when it is over.
    pub(super) fn partitioned_result(&self, process: &Process) -> Option<Result<Status>> {
        match self {
            Specification::PartitionedSend(outgoing) => outgoing.result(process),
            Specification::PartitionedReceive(incoming) => incoming.result(process),
            _ => Some(Ok(Status::EMPTY)),
        }
    }

    /// The route of a message of the usual kind.
    fn route(&self, communicator: &Communicator) -> Option<Route> {
        let (rank, datatype, count) = match self {
            Specification::Send {
                mode: SendMode::Standard | SendMode::Ready,
                count,
                datatype,
                target,
                ..
            } => (*target, datatype, *count),
            Specification::Receive { count, datatype, source, tag, .. } if *tag != MPI_ANY_TAG => {
                (*source, datatype, *count)
            }
            _ => return None,
        };
        if rank < 0 { None } else { Route::new(communicator, rank, datatype, count) }
    }

    /// Starts a message of the usual kind. `None`: it is not just now, and nothing was done.
    #[inline(always)]
    fn start_on(&self, route: &Route, process: &Process) -> Option<State> {
        match self {
            Specification::Send { address, tag, .. } => {
                process.starts_sending_on(route, *address, *tag).then_some(State::Sent)
            }
            Specification::Receive { address, tag, .. } => {
                process.post_on(route, *address, *tag).map(State::Posted)
            }
            _ => None,
        }
    }

    /// The process at the other end of a partitioned operation.
    pub(super) fn partner(&self, communicator: &Communicator) -> Option<ProcessId> {
        let rank = match self {
            Specification::PartitionedSend(outgoing) => outgoing.peer(),
            Specification::PartitionedReceive(incoming) => incoming.peer(),
            _ => MPI_PROC_NULL,
        };
        (rank != MPI_PROC_NULL).then(|| communicator.peer(rank))
    }
}

impl Request {
    /// MPI_Send_init, MPI_Bcast_init and their siblings: an inactive request.
    pub fn persistent(communicator: &Arc<Communicator>, specification: Specification) -> Arc<Request> {
        let route = specification.route(communicator);
        let kind = Kind::Persistent(specification, route);
        Request::new(Some(Arc::clone(communicator)), kind, State::Inactive)
    }

    /// MPI_Start.
    #[inline(always)]
    pub fn start(&self, process: &Process) -> Result<()> {
        // The usual case first.
        if let Kind::Persistent(specification, Some(route)) = &self.kind {
            let mut state = self.state();
            if matches!(*state, State::Inactive)
                && let Some(started) = specification.start_on(route, process)
            {
                state.become_plain(started);
                return Ok(());
            }
        }
        self.start_any(process)
    }

    #[inline(never)]
    fn start_any(&self, process: &Process) -> Result<()> {
        if let Kind::Staged(staged) = &self.kind {
            staged.start(process)?;
            *self.state() = State::Staged;
            return Ok(());
        }
        let (Kind::Persistent(specification, route), Some(communicator)) = (&self.kind, &self.communicator)
        else {
            return Err(Error::new(
                MPI_ERR_REQUEST,
                "the request is not persistent, so that it cannot be started; make it with MPI_Send_init, MPI_Bcast_init or one of their siblings",
            ));
        };
        let mut state = self.state();
        if !matches!(*state, State::Inactive) {
            return Err(Error::new(
                MPI_ERR_REQUEST,
                "the persistent request is active already; complete it with MPI_Wait or MPI_Test before it is started again",
            ));
        }
        *state = match specification {
            Specification::Send { address, count, datatype, target, tag, mode } => {
                if route.is_some_and(|route| process.exchanges_on(&route, *address, *tag)) {
                    State::Sent
                } else {
                    State::Transfer(process.start_send(
                        communicator,
                        Plane::PointToPoint,
                        *target,
                        *tag as u32,
                        Buffer { address: *address, count: *count, datatype },
                        *mode,
                    )?)
                }
            }
            Specification::Receive { address, count, datatype, source, tag } => {
                State::Transfer(process.start_recv(
                    communicator,
                    Plane::PointToPoint,
                    *source,
                    *tag,
                    Buffer { address: *address, count: *count, datatype },
                )?)
            }
            Specification::Collective(collective) => match collective.start(process)? {
                Begun::Over(result) => State::Complete(result.map(|()| Status::EMPTY)),
                Begun::UnderWay(activity) => State::Composite(activity),
            },
            Specification::PartitionedSend(outgoing) => {
                outgoing.start();
                State::Partitioned
            }
            Specification::PartitionedReceive(incoming) => {
                incoming.start(process);
                State::Partitioned
            }
        };
        Ok(())
    }

    /// How far one of these is. `None`: it is none of them, or something unusual has become of it.
    #[inline(always)]
    pub(super) fn readiness_again(&self, process: &Process) -> Option<Readiness> {
        self.route()?;
        match *self.state() {
            State::Inactive => Some(Readiness::Inactive),
            State::Sent => Some(Readiness::Complete),
            State::Posted(name) if process.slots.is_complete(name) || process.faults.is_active() => {
                Some(Readiness::Complete)
            }
            State::Posted(_) => Some(Readiness::Pending),
            _ => None,
        }
    }

    /// The status of one of these whose operation has gone as usual, once. `None`: it is none of them, or something unusual has become of it.
    #[inline(always)]
    pub fn poll_again(&self, process: &Process) -> Option<Poll<Status>> {
        let route = self.route()?;
        let mut state = self.state();
        let status = match &*state {
            State::Inactive | State::Sent => Status::EMPTY,
            State::Posted(name) if !process.slots.is_complete(*name) && !process.faults.is_active() => {
                return Some(Poll::Pending);
            }
            State::Posted(name) => {
                let (match_bits, bytes) = process.slots.gone_well(*name)?;
                process.slots.release(*name);
                Status {
                    source: route.rank(),
                    tag: match_bits as u32 as i32,
                    error: MPI_SUCCESS,
                    bytes,
                    cancelled: false,
                }
            }
            _ => return None,
        };
        state.become_plain(State::Inactive);
        Some(Poll::Ready(status))
    }

    /// The route of its messages, if it is a persistent one of the usual kind.
    pub(super) fn route(&self) -> Option<&Route> {
        match &self.kind {
            Kind::Persistent(_, route) => route.as_ref(),
            _ => None,
        }
    }

    /// As [`Request::poll_again`], when it is over.
    #[inline]
    pub(super) fn wait_again(&self, process: &Process) -> Option<Status> {
        loop {
            match self.poll_again(process)? {
                Poll::Ready(status) => return Some(status),
                Poll::Pending => self.wait_posted(process),
            }
        }
    }

    /// Waits until its receive is over.
    fn wait_posted(&self, process: &Process) {
        let State::Posted(name) = *self.state() else { return };
        if process.receive_parked(name) {
            return;
        }
        process.wait_for(Some(name), self.route().map(Route::peer), || {
            (process.slots.is_complete(name) || process.faults.is_active()).then_some(())
        });
    }

    /// Its receive, which is in flight in this slot.
    pub(super) fn posted(&self, name: SlotName) -> Operation {
        let (Some(route), Kind::Persistent(Specification::Receive { tag, .. }, _)) =
            (self.route(), &self.kind)
        else {
            unreachable!("only a persistent receive that has a route is posted so");
        };
        route.operation(name, *tag)
    }

    /// MPI_Pready, MPI_Pready_range and MPI_Pready_list: nothing is sent unless all are partitions of the operation.
    pub fn ready(&self, process: &Process, partitions: impl Iterator<Item = i32> + Clone) -> Result<()> {
        if let Kind::Staged(staged) = &self.kind {
            return staged.ready(process, partitions);
        }
        let (Kind::Persistent(Specification::PartitionedSend(outgoing), _), Some(communicator)) =
            (&self.kind, &self.communicator)
        else {
            return Err(Error::new(
                MPI_ERR_REQUEST,
                "the request is no partitioned send, so that it has no partitions to be ready; make it with MPI_Psend_init",
            ));
        };
        for partition in partitions.clone() {
            outgoing.check_partition(partition)?;
        }
        for partition in partitions {
            outgoing.ready(process, communicator, partition)?;
        }
        Ok(())
    }

    pub(super) fn partitioned_receive(&self) -> Option<&Arc<Incoming>> {
        match &self.kind {
            Kind::Staged(staged) => staged.inner.partitioned_receive(),
            Kind::Persistent(Specification::PartitionedReceive(incoming), _) => Some(incoming),
            _ => None,
        }
    }

    /// MPI_Parrived.
    pub fn has_arrived(&self, process: &Process, partition: i32) -> Result<bool> {
        if let Kind::Staged(staged) = &self.kind {
            return staged.has_arrived(process, partition);
        }
        let Kind::Persistent(Specification::PartitionedReceive(incoming), _) = &self.kind else {
            return Err(Error::new(
                MPI_ERR_REQUEST,
                "the request is no partitioned receive, so that no partitions arrive; make it with MPI_Precv_init",
            ));
        };
        if incoming.has_arrived(process, partition)? {
            return Ok(true);
        }
        process.progress_for_test();
        incoming.has_arrived(process, partition)
    }
}
