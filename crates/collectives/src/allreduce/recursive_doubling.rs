//! Partners exchange what they have summed up; in the order of the ranks, for any number of processes.
//! Cost: `log2 n` rounds of `m` bytes, 2 more where `n` is no power of two; `n log2 n` messages.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::pieces::Core;
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Allreduce],
    name: "recursive_doubling",
    cost: "log n rounds of m bytes (2 more if n is no power of two), n log n messages",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let rank = problem.rank;
    let result = problem.result();
    let core = Core::of(rank, problem.size);
    let Some(me) = core.me else {
        builder.send(Peer::Local(rank + 1), problem.operands());
        if problem.in_place {
            builder.wait();
        }
        builder.receive(Peer::Local(rank + 1), result);
        return builder.finish();
    };
    builder.copy(problem.operands(), result);
    let mut sum = result;
    let mut other = builder.scratch_elements(result.count, problem.element());
    core.fold(&mut builder, rank, sum, other);
    let mut mask = 1;
    while mask < core.size {
        let partner = me ^ mask;
        builder.send(Peer::Local(core.rank(partner)), sum);
        builder.receive(Peer::Local(core.rank(partner)), other);
        builder.wait();
        if core.first_rank(partner) < core.first_rank(me) {
            builder.reduce(other, sum);
        } else {
            builder.reduce(sum, other);
            (sum, other) = (other, sum);
        }
        mask *= 2;
    }
    if core.folds(rank) {
        builder.send(Peer::Local(rank - 1), sum);
    }
    builder.copy(sum, result);
    builder.finish()
}
