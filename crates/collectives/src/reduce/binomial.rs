//! Reduction along a binomial tree. Where the order of the operands matters the tree is rooted at rank 0, which hands
//! the result on to the root.
//! Cost: `ceil(log2 n)` rounds of `m` bytes, `n - 1` messages, one more if the order matters.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::pieces::tree_reduce;
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Reduce],
    name: "binomial",
    cost: "log n rounds of m bytes, n - 1 messages",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (rank, size, root) = (problem.rank, problem.size, problem.root_rank());
    let first = if problem.commutative { root } else { 0 };
    let me = (rank + size - first) % size;
    let ends_here = rank == root && first == root;
    let target = (ends_here && !problem.in_place).then(|| problem.result());
    let sum = tree_reduce(&mut builder, me, size, problem.operands(), target, problem.element(), |place| {
        Peer::Local((place + first) % size)
    });
    if ends_here {
        builder.copy(sum, problem.result());
    } else if rank == first && first != root {
        builder.send(Peer::Local(root), sum);
    } else if rank == root {
        builder.receive(Peer::Local(first), problem.result());
    }
    builder.finish()
}
