//! Collective operations (MPI 5.0, chapter 6): a call becomes a schedule of `parnass_collectives`. One executor runs those of
//! messages, whether the call waits for it or not, and another one those on a board.

mod background;
mod blocks;
mod board;
mod cache;
mod call;
mod execution;
mod live;
mod persistent;

pub(crate) use background::Begun;
pub use blocks::{BlockTypes, Blocks};
pub(crate) use board::BoardSlot;
pub(crate) use cache::Cache;
pub use call::{Call, Side};
pub use parnass_collectives::{Operation as Collective, Overrides};
pub use persistent::Persistent;

use crate::comm::Communicator;
use crate::error::Result;
use crate::observe::row_of;
use crate::process::Process;
use board::{Failed, Turn};
use cache::Work;
use call::Key;
use execution::{Execution, Ground, run_in_turn};
use parnass_base::Scratch;
use parnass_collectives::{Schedule, Shape};
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
        if !call.operation.is_on_neighbors()
            && let Some(board) = self.board_of(call.communicator)?
        {
            return self.execute_on(call, board);
        }
        self.execute(call)
    }

    /// Runs it, on the board if that is how it is done.
    #[inline(never)]
    fn execute_on(&self, call: &Call<'_>, board: &Board) -> Result<()> {
        let (key, era) = (call.key(true), self.changeable.era());
        match key.as_ref().and_then(|key| call.communicator.collective_cache().take(key, call, era)) {
            Some(work) => {
                self.count_collective(work.row, call.communicator);
                self.run_on(call, board, work)
            }
            None => self.execute_new(call, board, key, era),
        }
    }

    #[inline(always)]
    fn run_on(&self, call: &Call<'_>, board: &Board, mut work: Box<Work>) -> Result<()> {
        if work.schedule.rounds() == 0 {
            return self.execute_work(call, work);
        }
        let past_caches = self.nic().goes_past_caches(work.moved_bytes);
        let (parts, scratch) = (call.parts(), work.scratch(self));
        let ground = Ground { parts: &parts, scratch, past_caches };
        let result = Turn::new(self, board, ground).run(&work.schedule);
        if messages_follow(call, &work.schedule, &result) {
            return self.execute_messages(call, work, result);
        }
        call.communicator.collective_cache().give_back(work);
        result.map_err(|failed| failed.error)
    }

    /// Goes on with the messages of what was run on a board.
    fn execute_messages(
        &self,
        call: &Call<'_>,
        mut work: Box<Work>,
        result: std::result::Result<(), Failed>,
    ) -> Result<()> {
        let error = match result {
            Ok(()) => None,
            Err(failed) if failed.ended => return Err(failed.error),
            Err(failed) => {
                work.give_up(&failed.astray);
                Some(failed.error)
            }
        };
        self.execute_rest(call, Execution::after_board(self, call, work, error))
    }

    /// Runs it by messages.
    pub(crate) fn execute(&self, call: &Call<'_>) -> Result<()> {
        self.execute_work(call, self.work(call))
    }

    #[inline(never)]
    fn execute_work(&self, call: &Call<'_>, work: Box<Work>) -> Result<()> {
        if work.schedule.width() <= 1 {
            return run_in_turn(self, call, work);
        }
        self.execute_rest(call, Execution::new(self, call, work))
    }

    /// Does what is left of an execution.
    fn execute_rest(&self, call: &Call<'_>, mut execution: Execution) -> Result<()> {
        if execution.is_over() {
            return execution.finish(call.communicator);
        }
        execution.complete(self, &call.parts());
        execution.finish(call.communicator)
    }

    /// What a run of it by messages needs, counted.
    #[inline(always)]
    fn work(&self, call: &Call<'_>) -> Box<Work> {
        let (key, era) = (call.key(false), self.changeable.era());
        let kept = key.as_ref().and_then(|key| call.communicator.collective_cache().take(key, call, era));
        let work = kept.unwrap_or_else(|| self.new_work(call, key, era));
        self.count_collective(work.row, call.communicator);
        work
    }

    #[cold]
    fn new_work(&self, call: &Call<'_>, key: Option<Key>, era: u32) -> Box<Work> {
        let shape = self.shape(call, None);
        call.solve(shape, self, |problem, algorithm| {
            let (row, schedule) = (row_of(call.operation, algorithm), call.schedule(problem, algorithm));
            Work::new(key.map(|key| (key, call)), era, (row, schedule), shape.moved_bytes())
        })
    }

    fn shape(&self, call: &Call<'_>, board: Option<&Board>) -> Shape {
        call.shape(self.collectives(call.communicator).oversubscribed, board)
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
        self.execute(&call)?;
        let mut told = [0; size_of::<u64>()];
        place.address().read(&mut told);
        Ok(u64::from_ne_bytes(told))
    }
}

/// Whether messages are to follow what was run on a board. Where only others have some, draws the tag that all draw.
#[inline(always)]
fn messages_follow(call: &Call<'_>, schedule: &Schedule, result: &std::result::Result<(), Failed>) -> bool {
    let Some(first) = schedule.messages() else { return false };
    let follow = result.is_err() || first < schedule.steps().len();
    if !follow {
        call.communicator.next_collective_tag();
    }
    follow
}
