//! The other group reduces to its leader, which sends the result to the root.
//! Cost: `1 + ceil(log2 n)` rounds of `m` bytes.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::pieces::tree_reduce;
use crate::problem::{Operation, Problem, Root};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Reduce],
    name: "leaders",
    cost: "1 + log n rounds of m bytes",
    groups: Groups::Two,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    match problem.root {
        Root::Here => builder.receive(Peer::Remote(0), problem.result()),
        Root::Rank(root) => {
            let (rank, size) = (problem.rank, problem.size);
            let operands = problem.operands();
            let sum = tree_reduce(&mut builder, rank, size, operands, None, problem.element(), Peer::Local);
            if rank == 0 {
                builder.send(Peer::Remote(root), sum);
            }
        }
        Root::Elsewhere | Root::None => {}
    }
    builder.finish()
}
