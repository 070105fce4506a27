//! What a runner is given must be what a schedule would have kept.

use parnass_collectives::{Algorithm, Problem, Runner, Schedule, Share, Step};
use std::cell::{Cell, RefCell};

/// Takes steps as they are written, and gives out working memory as a schedule does.
#[derive(Debug, Default)]
struct Record {
    steps: RefCell<Vec<Step>>,
    shares: RefCell<Vec<Share>>,
    scratch: Cell<u64>,
}

impl Runner for Record {
    fn step(&self, step: &Step, shares: &[Share]) {
        self.steps.borrow_mut().push(*step);
        if matches!(step, Step::Deal { .. }) {
            self.shares.borrow_mut().extend(shares);
        }
    }

    fn scratch(&self, length: u64) -> i64 {
        let start = self.scratch.get();
        self.scratch.set((start + length).next_multiple_of(64));
        start as i64
    }
}

/// Has an algorithm write for a runner, and compares with its schedule.
pub fn compare(algorithm: &Algorithm, problem: &Problem<'_>, schedule: &Schedule) {
    let record = Record::default();
    let rest = (algorithm.build)(&Problem { runner: Some(&record), ..*problem });
    let mut steps = record.steps.into_inner();
    let first = schedule.messages().unwrap_or(schedule.steps().len());
    assert_eq!(steps.len(), first, "{}", algorithm.name);
    steps.extend(rest.steps());
    assert_eq!(steps, schedule.steps(), "{}", algorithm.name);
    assert_eq!(record.shares.into_inner(), schedule.shares());
    assert_eq!((record.scratch.get(), rest.scratch_bytes()), (schedule.scratch_bytes(), 0));
    assert_eq!(rest.rounds(), schedule.rounds());
    assert_eq!(rest.messages(), schedule.messages().map(|_| 0));
}
