//! Persistent collective operations (MPI 5.0, section 6.13): the schedule is made once, and run at every start.
//!
//! Each has match bits of its own, drawn when it is made: processes may start several in different orders. The messages of
//! one start come before those of the next between any two processes, since nobody starts again before its own run is over.

use super::cache::Work;
use super::call::Call;
use super::execution::{Execution, OwnedParts};
use crate::comm::Plane;
use crate::constants::MPI_ERR_REQUEST;
use crate::error::{Error, Result};
use crate::process::Process;
use crate::progress::{Activity, Composite};
use crate::pt2pt::transfer::match_bits;
use crate::request::{Request, Specification, Status};
use std::sync::{Arc, Mutex, PoisonError};

/// What a run uses and the next one uses again. `None` during a run.
type Home = Arc<Mutex<Option<Box<Work>>>>;

/// A collective operation that can be started again and again.
#[derive(Debug)]
pub struct Persistent {
    parts: Arc<OwnedParts>,
    match_bits: u64,
    home: Home,
}

impl Process {
    /// Makes a collective operation that can be started again and again; the request is inactive. To be called in the same
    /// order at all members of the communicator.
    pub fn persistent_collective(&self, call: &Call<'_>) -> Arc<Request> {
        let communicator = call.communicator;
        let persistent = Persistent {
            parts: Arc::new(OwnedParts::new(call)),
            match_bits: match_bits(communicator, Plane::Collective, communicator.next_persistent_tag()),
            home: Arc::new(Mutex::new(Some(self.new_work(call, None, 0)))),
        };
        Request::persistent(communicator, Specification::Collective(persistent))
    }
}

impl Persistent {
    /// MPI_Start, while no run is under way.
    pub(crate) fn start(&self, process: &Process) -> Result<Arc<Composite>> {
        let work = self.home.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or_else(|| {
            Error::new(
                MPI_ERR_REQUEST,
                "the persistent collective operation has failed with messages still under way, so that it cannot be started \
                 again; free the request and make another one",
            )
        })?;
        process.count_collective(work.row, self.parts.parts().communicator);
        Ok(process.start_activity(Box::new(Run {
            parts: Arc::clone(&self.parts),
            home: Arc::clone(&self.home),
            execution: Some(Execution::of(process, work, self.match_bits)),
        })))
    }
}

/// One run.
struct Run {
    parts: Arc<OwnedParts>,
    home: Home,
    /// `None` when it is over.
    execution: Option<Execution>,
}

impl Activity for Run {
    fn advance(&mut self, process: &Process) -> Option<Result<Status>> {
        let parts = self.parts.parts();
        if !self.execution.as_mut()?.advance(process, &parts) {
            return None;
        }
        let (work, result) = self.execution.take()?.end();
        *self.home.lock().unwrap_or_else(PoisonError::into_inner) = work;
        Some(result.map(|()| Status::EMPTY))
    }
}
