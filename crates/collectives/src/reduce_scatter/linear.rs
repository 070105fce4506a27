//! Everybody receives all operands for its block and folds them in the order of the ranks.
//! Cost: 1 round, `n (n - 1)` messages; for operators whose order matters.

use super::{operands_for, own_result};
use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::ReduceScatter, Operation::ReduceScatterBlock],
    name: "linear",
    cost: "1 round of n - 1 blocks per process",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (rank, size, element) = (problem.rank, problem.size, problem.element());
    let own = operands_for(problem, rank);
    let mut operands = Vec::with_capacity(size as usize);
    for source in 0..size {
        let place = builder.scratch_elements(own.count, element);
        if source == rank {
            builder.copy(own, place);
        } else {
            builder.receive(Peer::Local(source), place);
        }
        operands.push(place);
    }
    for distance in 1..size {
        let target = (rank + distance) % size;
        builder.send(Peer::Local(target), operands_for(problem, target));
    }
    builder.wait();
    let sum = operands[size as usize - 1];
    for operand in operands[..size as usize - 1].iter().rev() {
        builder.reduce(*operand, sum);
    }
    builder.copy(sum, own_result(problem));
    builder.finish()
}
