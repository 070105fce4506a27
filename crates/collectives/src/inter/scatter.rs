//! The root sends to every process of the other group.
//! Cost: 1 round, `n` messages.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::{Operation, Problem, Root};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Scatter, Operation::Scatterv],
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
                builder.send(Peer::Remote(rank), problem.send_block(rank));
            }
        }
        Root::Rank(root) => builder.receive(Peer::Remote(root), problem.share()),
        Root::Elsewhere | Root::None => {}
    }
    builder.finish()
}
