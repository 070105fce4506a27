//! Reduction along a binomial tree in each node, recursive doubling between the nodes' first processes, and a broadcast in each
//! node; in the order of the ranks where that matters.
//! Cost: `log2 k` rounds of `m` bytes between `k` nodes (2 more where `k` is no power of two), `2 log2 (n / k)` within.

use super::recursive_doubling::exchange;
use crate::algorithm::{Algorithm, Groups, Needs};
use crate::nodes::View;
use crate::pieces::{tree_broadcast, tree_reduce};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Allreduce],
    name: "nodes",
    cost: "log k rounds of m bytes between k nodes, 2 log (n / k) within",
    groups: Groups::One,
    needs: Needs::Nodes,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (operands, result, element) = (problem.operands(), problem.result(), problem.element());
    let view = View::new(problem, 0);
    let sum = tree_reduce(&mut builder, view.me, view.size, operands, None, element, |at| view.mate(at));
    if view.me == 0 {
        let data = (sum, result);
        exchange(&mut builder, view.node, view.count(), data, element, |at| view.speaker_of(at));
    }
    tree_broadcast(&mut builder, view.me, view.size, result, |at| view.mate(at));
    builder.finish()
}
