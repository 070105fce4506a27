//! Recursive halving, then recursive doubling (Rabenseifner 2004).
//! Cost: `2 log2 n` rounds (2 more where `n` is no power of two), about `2 m` bytes and `m` bytes of arithmetic per process.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::pieces::{Core, even_bounds};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Allreduce],
    name: "rabenseifner",
    cost: "2 log n rounds, 2 m bytes per process",
    groups: Groups::One,
    needs: Needs::Commutative,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (rank, element, result) = (problem.rank, problem.element(), problem.result());
    builder.copy(problem.operands(), result);
    let core = Core::of(rank, problem.size);
    if core.me.is_some() {
        let other = builder.scratch_elements(result.count, element);
        let bounds = even_bounds(result.count, core.size);
        core.fold(&mut builder, rank, result, other);
        core.halve(&mut builder, result, other, &bounds, element);
        core.double(&mut builder, result, &bounds, element);
        if core.folds(rank) {
            builder.send(Peer::Local(rank - 1), result);
        }
    } else {
        builder.send(Peer::Local(rank + 1), result);
        builder.wait();
        builder.receive(Peer::Local(rank + 1), result);
    }
    builder.finish()
}
