//! Reduction along a binomial tree in each node, then along one of the nodes. Where the order of the operands matters both
//! keep to the ranks, and rank 0 hands the result on to the root.
//! Cost: `ceil(log2 k)` rounds of `m` bytes between `k` nodes; `k - 1` messages between nodes (one more if the order matters).

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::nodes::View;
use crate::pieces::tree_reduce;
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Reduce],
    name: "nodes",
    cost: "log k rounds of m bytes between k nodes, k - 1 messages between them; log (n / k) rounds within",
    groups: Groups::One,
    needs: Needs::Nodes,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (rank, root, element) = (problem.rank, problem.root_rank(), problem.element());
    let first = if problem.commutative { root } else { 0 };
    let view = View::new(problem, first);
    let ends_here = rank == root && first == root;
    let sum =
        tree_reduce(&mut builder, view.me, view.size, problem.operands(), None, element, |at| view.mate(at));
    if view.me == 0 {
        let target = (ends_here && !problem.in_place).then(|| problem.result());
        let sum = tree_reduce(&mut builder, view.node, view.count(), sum, target, element, |at| {
            view.speaker_of(at)
        });
        if ends_here {
            builder.copy(sum, problem.result());
        } else if rank == first {
            builder.send(Peer::Local(root), sum);
        }
    }
    if rank == root && first != root {
        builder.receive(Peer::Local(first), problem.result());
    }
    builder.finish()
}
