//! Everybody offers its operands, and reads and folds those of all for its block.
//! Cost: 2 rounds on the board, `n - 1` operations on a block of `m / n`, and as much read.

use super::{operands_for, own_result};
use crate::algorithm::{Algorithm, Groups, Needs};
use crate::board::Rounds;
use crate::problem::{Operation, Problem};
use crate::schedule::Schedule;

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::ReduceScatter, Operation::ReduceScatterBlock],
    name: "direct",
    cost: "2 rounds on the board, (n - 1) / n of m read and folded",
    groups: Groups::One,
    needs: Needs::Direct,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let (rank, element) = (problem.rank, problem.element());
    let (first, count) = problem.operand_block(rank);
    let (own, result) = (operands_for(problem, rank), own_result(problem));
    let offered = problem.bytes();
    let mut rounds = Rounds::new(problem);
    let operands = rounds.run_of(problem.operands(), offered, element);
    rounds.offer(0, operands, offered);
    rounds.gather(0);
    // In place the result goes where others still read.
    let sum = if problem.in_place { rounds.builder.scratch_elements(count, element) } else { result };
    let memory = rounds.reading(own, sum);
    rounds.read_and_fold((0, offered), first, (own, sum), &memory);
    rounds.all_have_read(1);
    rounds.builder.copy(sum, result);
    rounds.finish(2)
}
