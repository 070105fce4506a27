//! A binomial reduction to process 0, then a binomial broadcast.
//! Cost: `2 log2 n` rounds of `m` bytes, `2 (n - 1)` messages; the order of the ranks is kept.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::pieces::{tree_broadcast, tree_reduce};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Allreduce],
    name: "reduce_bcast",
    cost: "2 log n rounds of m bytes, 2 (n - 1) messages",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (rank, size, result) = (problem.rank, problem.size, problem.result());
    let target = (!problem.in_place).then_some(result);
    let sum =
        tree_reduce(&mut builder, rank, size, problem.operands(), target, problem.element(), Peer::Local);
    if rank == 0 {
        builder.copy(sum, result);
    }
    tree_broadcast(&mut builder, rank, size, result, Peer::Local);
    builder.finish()
}
