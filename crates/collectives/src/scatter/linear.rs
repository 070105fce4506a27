//! The root sends to everybody.
//! Cost: 1 round, `n - 1` messages, `(n - 1) m` bytes out of the root.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Scatter, Operation::Scatterv],
    name: "linear",
    cost: "1 round, n - 1 messages",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    if problem.is_root() {
        for rank in (0..problem.size).filter(|rank| *rank != problem.rank) {
            builder.send(Peer::Local(rank), problem.send_block(rank));
        }
        if !problem.in_place {
            builder.copy(problem.send_block(problem.rank), problem.share());
        }
    } else {
        builder.receive(Peer::Local(problem.root_rank()), problem.share());
    }
    builder.finish()
}
