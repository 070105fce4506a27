//! Persistent requests (MPI 5.0, sections 3.9 and 6.13): an operation that can be started again and again.

use super::{Kind, Request, State};
use crate::coll::Persistent;
use crate::comm::{Communicator, Plane};
use crate::constants::MPI_ERR_REQUEST;
use crate::datatype::{Buffer, Datatype};
use crate::error::{Error, Result};
use crate::process::Process;
use crate::pt2pt::SendMode;
use parnass_base::UserAddress;
use std::sync::Arc;

/// What a persistent request does each time it is started.
pub enum Specification {
    Send { address: UserAddress, count: u64, datatype: Arc<Datatype>, target: i32, tag: i32, mode: SendMode },
    Receive { address: UserAddress, count: u64, datatype: Arc<Datatype>, source: i32, tag: i32 },
    Collective(Persistent),
}

impl Request {
    /// MPI_Send_init, MPI_Bcast_init and their siblings: an inactive request.
    pub fn persistent(communicator: &Arc<Communicator>, specification: Specification) -> Arc<Request> {
        Request::new(Some(Arc::clone(communicator)), Kind::Persistent(specification), State::Inactive)
    }

    /// MPI_Start.
    pub fn start(&self, process: &Process) -> Result<()> {
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
        };
        Ok(())
    }
}
