//! Everybody reports to process 0, which then releases everybody.
//! Cost: 2 rounds, `2 (n - 1)` messages: the fewest, for when every message costs a change of process on a core.

use super::dissemination::SIGNAL;
use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Barrier],
    name: "linear",
    cost: "2 rounds, 2 (n - 1) messages",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    if problem.rank == 0 {
        (1..problem.size).for_each(|rank| builder.receive(Peer::Local(rank), SIGNAL));
        builder.wait();
        (1..problem.size).for_each(|rank| builder.send(Peer::Local(rank), SIGNAL));
    } else {
        builder.send(Peer::Local(0), SIGNAL);
        builder.receive(Peer::Local(0), SIGNAL);
    }
    builder.finish()
}
