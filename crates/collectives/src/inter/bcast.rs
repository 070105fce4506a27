//! The root sends to the leader of the other group, from where a binomial tree starts.
//! Cost: `1 + ceil(log2 n)` rounds of `m` bytes.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::pieces::tree_broadcast;
use crate::problem::{Operation, Problem, Root};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Bcast],
    name: "leaders",
    cost: "1 + log n rounds of m bytes",
    groups: Groups::Two,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let data = problem.result();
    match problem.root {
        Root::Here => builder.send(Peer::Remote(0), data),
        Root::Rank(root) => {
            if problem.rank == 0 {
                builder.receive(Peer::Remote(root), data);
                builder.wait();
            }
            tree_broadcast(&mut builder, problem.rank, problem.size, data, Peer::Local);
        }
        Root::Elsewhere | Root::None => {}
    }
    builder.finish()
}
