//! In round `k` every process sends the operands for the process `k` further on straight to it.
//! Cost: `n - 1` rounds of one block.

use super::{operands_for, own_result};
use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::ReduceScatter, Operation::ReduceScatterBlock],
    name: "pairwise",
    cost: "n - 1 rounds of m / n bytes",
    groups: Groups::One,
    needs: Needs::Commutative,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (rank, size) = (problem.rank, problem.size);
    let own = operands_for(problem, rank);
    let sum = builder.scratch_elements(own.count, problem.element());
    let incoming = builder.scratch_elements(own.count, problem.element());
    builder.copy(own, sum);
    for round in 1..size {
        let target = (rank + round) % size;
        builder.exchange(
            Peer::Local(target),
            operands_for(problem, target),
            Peer::Local((rank + size - round) % size),
            incoming,
        );
        builder.wait();
        builder.reduce(incoming, sum);
    }
    builder.copy(sum, own_result(problem));
    builder.finish()
}
