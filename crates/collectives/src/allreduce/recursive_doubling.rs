//! Partners exchange what they have summed up; in the order of the ranks, for any number of processes.
//! Cost: `log2 n` rounds of `m` bytes, 2 more where `n` is no power of two; `n log2 n` messages.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::pieces::Core;
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Element, Peer, Schedule, Span};

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
    let (operands, result) = (problem.operands(), problem.result());
    exchange(&mut builder, problem.rank, problem.size, (operands, result), problem.element(), Peer::Local);
    builder.finish()
}

/// All rounds, among `size` processes of which this one stands at place `rank`: the reduction of all `operands`, in the
/// order of the places, comes into `result` at each.
pub(crate) fn exchange(
    builder: &mut Builder<'_>,
    rank: u32,
    size: u32,
    (operands, result): (Span, Span),
    element: &Element,
    peer: impl Fn(u32) -> Peer,
) {
    let core = Core::of(rank, size);
    let Some(me) = core.me else {
        builder.send(peer(rank + 1), operands);
        if operands.region == result.region {
            builder.wait();
        }
        builder.receive(peer(rank + 1), result);
        builder.wait();
        return;
    };
    builder.copy(operands, result);
    let mut sum = result;
    let mut other = builder.scratch_elements(result.count, element);
    if core.folds(rank) {
        builder.receive(peer(rank - 1), other);
        builder.wait();
        builder.reduce(other, sum);
    }
    let mut mask = 1;
    while mask < core.size {
        let partner = me ^ mask;
        builder.exchange(peer(core.rank(partner)), sum, peer(core.rank(partner)), other);
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
        builder.send(peer(rank - 1), sum);
    }
    builder.copy(sum, result);
    builder.wait();
}
