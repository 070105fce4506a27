//! Persistent collective operations (MPI 5.0, section 6.13): the schedule is made once, and run at every start.
//!
//! Each has match bits of its own, drawn when it is made: processes may start several in different orders. The messages of
//! one start come before those of the next between any two processes, since nobody starts again before its own run is over.

use super::background::{Begun, Keeper, begin};
use super::cache::Work;
use super::call::Call;
use super::execution::{Execution, OwnedParts, Parts};
use crate::comm::Plane;
use crate::constants::MPI_ERR_REQUEST;
use crate::error::{Error, Result};
use crate::process::Process;
use crate::pt2pt::transfer::match_bits;
use crate::request::{Request, Specification};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A collective operation that can be started again and again.
#[derive(Debug)]
pub struct Persistent {
    match_bits: u64,
    kept: Arc<Kept>,
}

/// What its runs share.
#[derive(Debug)]
struct Kept {
    parts: OwnedParts,
    /// What a run uses and the next one uses again. `None` during a run.
    home: Mutex<Option<Box<Work>>>,
}

impl Process {
    /// Makes a collective operation that can be started again and again; the request is inactive. To be called in the same
    /// order at all members of the communicator.
    pub fn persistent_collective(&self, call: &Call<'_>) -> Arc<Request> {
        let communicator = call.communicator;
        let work = self.new_work(call, None, 0);
        let persistent = Persistent {
            match_bits: match_bits(communicator, Plane::Collective, communicator.next_persistent_tag()),
            kept: Arc::new(Kept {
                parts: OwnedParts::new(call, &work.schedule),
                home: Mutex::new(Some(work)),
            }),
        };
        Request::persistent(communicator, Specification::Collective(persistent))
    }
}

impl Persistent {
    /// MPI_Start, while no run is under way.
    pub(crate) fn start(&self, process: &Process) -> Result<Begun> {
        let work = self.kept.home().take().ok_or_else(|| {
            Error::new(
                MPI_ERR_REQUEST,
                "the persistent collective operation has failed with messages still under way, so that it cannot be started \
                 again; free the request and make another one",
            )
        })?;
        let parts = self.kept.parts();
        process.count_collective(work.row, parts.communicator);
        let execution = Execution::of(process, work, self.match_bits);
        Ok(begin(
            process,
            &parts,
            execution,
            |execution| self.kept.end(execution),
            |_| Arc::clone(&self.kept),
        ))
    }
}

impl Kept {
    fn home(&self) -> MutexGuard<'_, Option<Box<Work>>> {
        self.home.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keeper for Arc<Kept> {
    fn parts(&self) -> Parts<'_> {
        self.parts.parts()
    }

    fn end(&self, execution: Execution) -> Result<()> {
        let (work, result) = execution.end();
        *self.home() = work;
        result
    }
}
