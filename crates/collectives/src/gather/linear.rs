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
        let own = (problem.contribution(), problem.recv_block(problem.rank));
        if problem.size == 2 {
            // Meanwhile the other one sends.
            builder.copy(own.0, own.1);
        }
        for rank in (0..problem.size).filter(|rank| *rank != problem.rank) {
            builder.receive(Peer::Local(rank), problem.recv_block(rank));
        }
        if problem.size != 2 {
            builder.copy(own.0, own.1);
        }
    } else {
        builder.send(Peer::Local(problem.root_rank()), problem.contribution());
    }
    builder.finish()
}
