//! Reports climb a tree in each node, the nodes' first processes tell each other by dissemination, and the release comes down.
//! Cost: `ceil(log2 k)` rounds between `k` nodes, twice as many in a node as its processes need; `k log k` messages between nodes.

use super::binomial::climb;
use super::dissemination::{SIGNAL, spread};
use crate::algorithm::{Algorithm, Groups, Needs};
use crate::nodes::View;
use crate::pieces::tree_broadcast;
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Barrier],
    name: "nodes",
    cost: "log k rounds between k nodes, 2 log (n / k) within",
    groups: Groups::One,
    needs: Needs::Nodes,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let view = View::new(problem, 0);
    climb(&mut builder, view.me, view.size, |place| view.mate(place));
    if view.me == 0 {
        spread(&mut builder, view.node, view.count(), |place| view.speaker_of(place));
    }
    tree_broadcast(&mut builder, view.me, view.size, SIGNAL, |place| view.mate(place));
    builder.finish()
}
