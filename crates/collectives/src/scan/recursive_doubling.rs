//! Partners exchange what they have summed up over their blocks of `2^k` processes; the upper one adds it to its prefix.
//! Cost: `ceil(log2 n)` rounds of `m` bytes, `n log2 n` messages.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Scan],
    name: "recursive_doubling",
    cost: "log n rounds of m bytes, n log n messages",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (rank, size, result) = (problem.rank, problem.size, problem.result());
    let mut sum = builder.scratch_elements(result.count, problem.element());
    let mut other = builder.scratch_elements(result.count, problem.element());
    builder.copy(problem.operands(), sum);
    builder.copy(problem.operands(), result);
    let mut mask = 1;
    while mask < size {
        let partner = rank ^ mask;
        if partner < size {
            builder.exchange(Peer::Local(partner), sum, Peer::Local(partner), other);
            builder.wait();
            if partner < rank {
                builder.reduce(other, result);
                builder.reduce(other, sum);
            } else {
                builder.reduce(sum, other);
                (sum, other) = (other, sum);
            }
        }
        mask *= 2;
    }
    builder.finish()
}
