//! Broadcast along a binomial tree.
//! Cost: `ceil(log2 n)` rounds of `m` bytes, `n - 1` messages.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::pieces::tree_broadcast;
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Bcast],
    name: "binomial",
    cost: "log n rounds of m bytes, n - 1 messages",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let me = super::from_root(problem);
    tree_broadcast(&mut builder, me, problem.size, problem.result(), |place| super::peer(problem, place));
    builder.finish()
}
