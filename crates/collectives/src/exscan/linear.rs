//! Every process gets its result from the one before it, and hands it on with its own operands added.
//! Cost: `n - 1` rounds one after the other, `n - 1` messages.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Exscan],
    name: "linear",
    cost: "n - 1 rounds of m bytes, n - 1 messages",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (rank, result) = (problem.rank, problem.result());
    let is_last = rank + 1 == problem.size;
    if rank == 0 {
        if !is_last {
            builder.send(Peer::Local(1), problem.operands());
        }
        return builder.finish();
    }
    let sum = builder.scratch_elements(result.count, problem.element());
    if !is_last {
        builder.copy(problem.operands(), sum);
    }
    builder.receive(Peer::Local(rank - 1), result);
    builder.wait();
    if !is_last {
        builder.reduce(result, sum);
        builder.send(Peer::Local(rank + 1), sum);
    }
    builder.finish()
}
