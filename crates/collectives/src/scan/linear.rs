//! Every process adds its operands to what comes from the one before it, and hands the result on.
//! Cost: `n - 1` rounds one after the other, `n - 1` messages.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Scan],
    name: "linear",
    cost: "n - 1 rounds of m bytes, n - 1 messages",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (rank, result) = (problem.rank, problem.result());
    builder.copy(problem.operands(), result);
    if rank > 0 {
        let before = builder.scratch_elements(result.count, problem.element());
        builder.receive(Peer::Local(rank - 1), before);
        builder.wait();
        builder.reduce(before, result);
    }
    if rank + 1 < problem.size {
        builder.send(Peer::Local(rank + 1), result);
    }
    builder.finish()
}
