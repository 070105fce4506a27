//! Reports to the leaders, a signal between the leaders, release.
//! Cost: 3 rounds, `2 n` messages for `n` processes in both groups together.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::barrier::dissemination::SIGNAL;
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Barrier],
    name: "leaders",
    cost: "3 rounds, 2 n messages",
    groups: Groups::Two,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    if problem.rank == 0 {
        (1..problem.size).for_each(|rank| builder.receive(Peer::Local(rank), SIGNAL));
        builder.wait();
        builder.send(Peer::Remote(0), SIGNAL);
        builder.receive(Peer::Remote(0), SIGNAL);
        builder.wait();
        (1..problem.size).for_each(|rank| builder.send(Peer::Local(rank), SIGNAL));
    } else {
        builder.send(Peer::Local(0), SIGNAL);
        builder.receive(Peer::Local(0), SIGNAL);
    }
    builder.finish()
}
