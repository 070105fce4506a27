//! Partners exchange the operands for each other's half of the processes, and halve again.
//! Cost: `log2 n` rounds (2 more where `n` is no power of two), about `m` bytes and `m` bytes of arithmetic per process.

use super::own_result;
use crate::algorithm::{Algorithm, Groups, Needs};
use crate::pieces::Core;
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::ReduceScatter, Operation::ReduceScatterBlock],
    name: "recursive_halving",
    cost: "log n rounds, m bytes per process",
    groups: Groups::One,
    needs: Needs::Commutative,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (rank, size, element) = (problem.rank, problem.size, problem.element());
    let operands = problem.operands();
    let sum = builder.scratch_elements(operands.count, element);
    let other = builder.scratch_elements(operands.count, element);
    builder.copy(operands, sum);
    let core = Core::of(rank, size);
    // A process that took its neighbour's operands works for the blocks of both.
    let mut bounds: Vec<u64> =
        (0..core.size).map(|place| problem.operand_block(core.first_rank(place)).0).collect();
    bounds.push(operands.count);
    core.fold(&mut builder, rank, sum, other);
    core.halve(&mut builder, sum, other, &bounds, element);
    let block = |of: u32| {
        let (first, count) = problem.operand_block(of);
        sum.part(first, count, element)
    };
    if core.me.is_none() {
        builder.receive(Peer::Local(rank + 1), own_result(problem));
        return builder.finish();
    }
    if core.folds(rank) {
        builder.send(Peer::Local(rank - 1), block(rank - 1));
    }
    builder.copy(block(rank), own_result(problem));
    builder.finish()
}
