//! Collective operations (MPI 5.0, chapter 6): a call becomes a schedule of `parnass_collectives`, and one executor
//! runs it, whether the call waits for it or not.

mod board;
mod cache;
mod call;
mod execution;
mod persistent;

pub(crate) use board::BoardSlot;
pub(crate) use cache::Cache;
pub use call::{BlockTypes, Blocks, Call, Side};
pub use parnass_collectives::{Operation as Collective, Overrides};
pub use persistent::Persistent;

use crate::comm::Communicator;
use crate::error::Result;
use crate::process::Process;
use crate::progress::Activity;
use crate::request::{Request, Status};
use execution::{Execution, OwnedParts};
use parnass_base::Scratch;
use parnass_portals::Board;
use std::sync::Arc;

/// What decides about algorithms beyond the call itself. The same at every process of a job.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub overrides: Overrides,
    /// Whether some machine has more processes of the job than cores for them.
    pub oversubscribed: bool,
    /// The node of each process; empty where all are on one.
    pub nodes: Vec<u32>,
}

impl Process {
    /// Runs a collective operation.
    pub fn collective(&self, call: &Call<'_>) -> Result<()> {
        self.check_all(call.communicator)?;
        // Neighbours need not wait for the others, with whom a board would have to be made.
        let board = if call.operation.is_on_neighbors() { None } else { self.board_of(call.communicator)? };
        self.execute(call, board)
    }

    #[inline]
    pub(crate) fn execute(&self, call: &Call<'_>, board: Option<&Board>) -> Result<()> {
        let parts = call.parts(board);
        let mut execution = Execution::new(self, call, board);
        while !execution.advance(self, &parts) {
            execution.wait(self);
        }
        execution.finish(call.communicator)
    }

    /// What process 0 of an intracommunicator says, at all of them, by messages.
    fn tell_all(&self, communicator: &Arc<Communicator>, number: u64) -> Result<u64> {
        let place = Scratch::new(size_of::<u64>());
        place.address().write(&number.to_ne_bytes());
        let mut call = Call::new(communicator, Collective::Bcast);
        call.root = 0;
        call.recv = Side::Even {
            address: place.address(),
            count: size_of::<u64>() as u64,
            datatype: self.datatypes().byte(),
        };
        self.execute(&call, None)?;
        let mut told = [0; size_of::<u64>()];
        place.address().read(&mut told);
        Ok(u64::from_ne_bytes(told))
    }

    /// Starts a collective operation.
    pub fn start_collective(&self, call: &Call<'_>) -> Arc<Request> {
        if let Err(error) = self.check_all(call.communicator) {
            return Request::complete(Some(call.communicator), Err(error));
        }
        let background = Background {
            parts: OwnedParts::new(&call.parts(None)),
            execution: Some(Execution::new(self, call, None)),
        };
        Request::composite(self, call.communicator, Box::new(background))
    }
}

/// A collective operation that nobody waits for.
struct Background {
    parts: OwnedParts,
    /// `None` when it is over.
    execution: Option<Execution>,
}

impl Activity for Background {
    fn advance(&mut self, process: &Process) -> Option<Result<Status>> {
        let parts = self.parts.parts();
        if !self.execution.as_mut()?.advance(process, &parts) {
            return None;
        }
        let result = self.execution.take()?.finish(parts.communicator);
        Some(result.map(|()| Status::EMPTY))
    }
}
