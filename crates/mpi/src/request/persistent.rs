//! Persistent requests (MPI 5.0, sections 3.9, 4.2 and 6.13): an operation that can be started again and again.

use super::{Kind, Request, State, Status};
use crate::coll::Persistent;
use crate::comm::{Communicator, Plane};
use crate::constants::{MPI_ERR_REQUEST, MPI_PROC_NULL};
use crate::datatype::{Buffer, Datatype};
use crate::error::{Error, Result};
use crate::process::Process;
use crate::pt2pt::{Incoming, Outgoing, SendMode};
use parnass_base::UserAddress;
use parnass_portals::ProcessId;
use std::sync::Arc;

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
        Request::new(Some(Arc::clone(communicator)), Kind::Persistent(specification), State::Inactive)
    }

    /// MPI_Start.
    pub fn start(&self, process: &Process) -> Result<()> {
        if let Kind::Staged(staged) = &self.kind {
            staged.start(process)?;
            *self.state() = State::Staged;
            return Ok(());
        }
        let (Kind::Persistent(specification), Some(communicator)) = (&self.kind, &self.communicator) else {
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
                State::Transfer(process.start_send(
                    communicator,
                    Plane::PointToPoint,
                    *target,
                    *tag as u32,
                    Buffer { address: *address, count: *count, datatype },
                    *mode,
                )?)
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
            Specification::Collective(collective) => State::Composite(collective.start(process)?),
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

    /// MPI_Pready, MPI_Pready_range and MPI_Pready_list: nothing is sent unless all are partitions of the operation.
    pub fn ready(&self, process: &Process, partitions: impl Iterator<Item = i32> + Clone) -> Result<()> {
        if let Kind::Staged(staged) = &self.kind {
            return staged.ready(process, partitions);
        }
        let (Kind::Persistent(Specification::PartitionedSend(outgoing)), Some(communicator)) =
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
            Kind::Persistent(Specification::PartitionedReceive(incoming)) => Some(incoming),
            _ => None,
        }
    }

    /// MPI_Parrived.
    pub fn has_arrived(&self, process: &Process, partition: i32) -> Result<bool> {
        if let Kind::Staged(staged) = &self.kind {
            return staged.has_arrived(process, partition);
        }
        let Kind::Persistent(Specification::PartitionedReceive(incoming)) = &self.kind else {
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
