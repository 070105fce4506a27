//! Every process of the other group sends to the root.
//! Cost: 1 round, `n` messages.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::{Operation, Problem, Root};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Gather, Operation::Gatherv],
    name: "linear",
    cost: "1 round, n messages",
    groups: Groups::Two,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    match problem.root {
        Root::Here => {
            for rank in 0..problem.remote_size {
                builder.receive(Peer::Remote(rank), problem.recv_block(rank));
            }
        }
        Root::Rank(root) => builder.send(Peer::Remote(root), problem.contribution()),
        Root::Elsewhere | Root::None => {}
    }
    builder.finish()
}
