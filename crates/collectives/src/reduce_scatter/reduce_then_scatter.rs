//! Process 0 receives everything, folds it in the order of the ranks, and sends everybody its block.
//! Cost: 2 rounds, `2 (n - 1)` messages: the fewest, for when every message costs a change of process on a core.

use super::own_result;
use crate::algorithm::{Algorithm, Groups, Needs};
use crate::pieces::receive_and_fold;
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::ReduceScatter, Operation::ReduceScatterBlock],
    name: "reduce_then_scatter",
    cost: "2 rounds, 2 (n - 1) messages, all arithmetic at process 0",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (rank, element, operands) = (problem.rank, problem.element(), problem.operands());
    if rank != 0 {
        builder.send(Peer::Local(0), operands);
        builder.wait();
        builder.receive(Peer::Local(0), own_result(problem));
        return builder.finish();
    }
    let sum = builder.scratch_elements(operands.count, element);
    receive_and_fold(&mut builder, 0, problem.size, operands, sum, element);
    let block = |of: u32| {
        let (first, count) = problem.operand_block(of);
        sum.part(first, count, element)
    };
    (1..problem.size).for_each(|target| builder.send(Peer::Local(target), block(target)));
    builder.copy(block(0), own_result(problem));
    builder.finish()
}
