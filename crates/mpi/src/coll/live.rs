//! Operations on a board that are done while their schedule is written, so that no schedule is made: those whose counts are not those of the last
//! call. Who calls a second time with the same finds a schedule the third time.

use super::board::Turn;
use super::cache::Work;
use super::call::{Call, Key};
use super::execution::Ground;
use super::messages_follow;
use crate::error::Result;
use crate::observe::row_of;
use crate::process::Process;
use crate::pt2pt::staging::Staging;
use parnass_base::UserAddress;
use parnass_collectives::{Algorithm, Needs, Operation, Problem, Runner, Share, Step};
use parnass_portals::Board;
use std::cell::RefCell;
use std::fmt;

/// Runs steps on a board as they come.
struct Live<'p, 'a> {
    turn: RefCell<Turn<'p, 'a>>,
    process: &'p Process,
    working: RefCell<Vec<Staging>>,
}

impl Runner for Live<'_, '_> {
    fn step(&self, step: &Step, shares: &[Share]) {
        self.turn.borrow_mut().take_step(step, shares);
    }

    /// The region is all of memory.
    fn scratch(&self, length: u64) -> i64 {
        let staging = self.process.staging.take(length);
        let address = staging.address().value() as i64;
        self.working.borrow_mut().push(staging);
        address
    }
}

impl fmt::Debug for Live<'_, '_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Live").finish_non_exhaustive()
    }
}

/// Whether an algorithm writes only what can be done at once. Packed copies, which blocks that differ need in place, must outlive the board.
fn can_run(algorithm: &Algorithm, problem: &Problem<'_>) -> bool {
    let varied = matches!(problem.operation, Operation::Alltoallv | Operation::Alltoallw);
    matches!(algorithm.needs, Needs::Board | Needs::Direct) && !(varied && problem.in_place)
}

impl Process {
    /// Runs an operation for which nothing was kept.
    #[inline(never)]
    pub(super) fn execute_new(
        &self,
        call: &Call<'_>,
        board: &Board,
        key: Option<Key>,
        era: u32,
    ) -> Result<()> {
        let (shape, communicator) = (self.shape(call, Some(board)), call.communicator);
        call.solve(shape, self, |problem, algorithm| {
            let (row, moved_bytes) = (row_of(call.operation, algorithm), shape.moved_bytes());
            self.count_collective(row, communicator);
            let again =
                key.as_ref().is_some_and(|key| communicator.collective_cache().comes_again(key, call));
            if again || !can_run(algorithm, problem) {
                let schedule = call.schedule(problem, algorithm);
                let work = Work::new(key.map(|key| (key, call)), era, (row, schedule), moved_bytes);
                return self.run_on(call, board, work);
            }
            let past_caches = self.nic().goes_past_caches(moved_bytes);
            let ground = Ground { parts: &call.parts(), scratch: UserAddress::NULL, past_caches };
            let turn = RefCell::new(Turn::new(self, board, ground));
            let live = Live { turn, process: self, working: RefCell::default() };
            let rest = (algorithm.build)(&Problem { runner: Some(&live), ..*problem });
            let result = live.turn.into_inner().end(rest.rounds());
            if messages_follow(call, &rest, &result) {
                let work = Work::new(None, era, (row, rest), moved_bytes);
                return self.execute_messages(call, work, result);
            }
            result.map_err(|failed| failed.error)
        })
    }
}
