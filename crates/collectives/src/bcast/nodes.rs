//! Broadcast along a binomial tree of the nodes, then along one in each node.
//! Cost: `ceil(log2 k)` rounds of `m` bytes between `k` nodes; `k - 1` messages between nodes, `n - k` within.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::nodes::View;
use crate::pieces::{start_tree_broadcast, tree_broadcast};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Bcast],
    name: "nodes",
    cost: "log k rounds of m bytes between k nodes, k - 1 messages between them; log (n / k) rounds within",
    groups: Groups::One,
    needs: Needs::Nodes,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let view = View::new(problem, problem.root_rank());
    let data = problem.result();
    if view.me == 0 {
        // The far ones first; their messages are on their way while the near ones are served.
        start_tree_broadcast(&mut builder, view.node, view.count(), data, |place| view.speaker_of(place));
    }
    tree_broadcast(&mut builder, view.me, view.size, data, |place| view.mate(place));
    builder.finish()
}
