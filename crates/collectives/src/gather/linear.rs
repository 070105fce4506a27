//! Everybody sends to the root.
//! Cost: 1 round, `n - 1` messages, `(n - 1) m` bytes into the root.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Gather, Operation::Gatherv],
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
            builder.receive(Peer::Local(rank), problem.recv_block(rank));
        }
        builder.copy(problem.contribution(), problem.recv_block(problem.rank));
    } else {
        builder.send(Peer::Local(problem.root_rank()), problem.contribution());
    }
    builder.finish()
}
