//! The first process of each node collects the blocks of its node, these processes hand each other all nodes' blocks as in
//! Bruck's algorithm, and each passes everything on in its node.
//! Cost: `ceil(log2 k)` rounds between `k` nodes, in which every byte crosses to a node once.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::nodes::{Nodes, View};
use crate::pieces::tree_broadcast;
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule, Span};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Allgather],
    name: "nodes",
    cost: "log k rounds between k nodes, log (n / k) + 1 within",
    groups: Groups::One,
    needs: Needs::Nodes,
    build,
};

/// Where all blocks lie, node by node: in the receive buffer if the ranks are in that order, else packed.
struct Row {
    everything: Span,
    block_bytes: Option<u64>,
}

impl Row {
    fn new(builder: &mut Builder<'_>, problem: &Problem<'_>, nodes: &Nodes) -> Row {
        if nodes.in_order() {
            return Row { everything: problem.recv_blocks(0, problem.size), block_bytes: None };
        }
        let bytes = problem.recv_block_bytes(0);
        Row { everything: builder.scratch(bytes * u64::from(problem.size)), block_bytes: Some(bytes) }
    }

    /// `count` blocks from place `first` on.
    fn blocks(&self, problem: &Problem<'_>, first: u32, count: u32) -> Span {
        match self.block_bytes {
            None => problem.recv_blocks(first, count),
            Some(bytes) => self.everything.bytes(u64::from(first) * bytes, u64::from(count) * bytes),
        }
    }
}

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let view = View::new(problem, 0);
    let nodes = problem.nodes.expect("an algorithm for several nodes has some");
    let row = Row::new(&mut builder, problem, nodes);
    let start = nodes.start(view.node);
    if view.me == 0 {
        for place in 1..view.size {
            builder.receive(view.mate(place), row.blocks(problem, start + place, 1));
        }
        builder.copy(problem.contribution(), row.blocks(problem, start, 1));
        builder.wait();
        between(&mut builder, problem, nodes, &view, &row);
    } else {
        builder.send(view.mate(0), problem.contribution());
        if problem.in_place {
            // The own block comes back too, to where it is being sent from.
            builder.wait();
        }
    }
    tree_broadcast(&mut builder, view.me, view.size, row.everything, |place| view.mate(place));
    if row.block_bytes.is_some() {
        for (place, rank) in (0..).zip(nodes.ranks()) {
            builder.copy(row.blocks(problem, place, 1), problem.recv_block(*rank));
        }
    }
    builder.finish()
}

/// Bruck's algorithm: before a round this node has the blocks of `held` nodes, itself and those after it.
fn between(builder: &mut Builder<'_>, problem: &Problem<'_>, nodes: &Nodes, view: &View<'_>, row: &Row) {
    let (me, count) = (view.node, nodes.count());
    // The blocks of `number` nodes from one on, around the end.
    let runs = |first: u32, number: u32| {
        let end = first + number;
        [(first, end.min(count)), (0, end.saturating_sub(count))]
            .into_iter()
            .filter(|(from, to)| from < to)
            .map(|(from, to)| row.blocks(problem, nodes.start(from), nodes.start(to) - nodes.start(from)))
    };
    let mut held = 1;
    while held < count {
        let number = held.min(count - held);
        let (to, from): (Peer, Peer) =
            (view.speaker_of((me + count - held) % count), view.speaker_of((me + held) % count));
        runs(me, number).for_each(|run| builder.send(to, run));
        runs((me + held) % count, number).for_each(|run| builder.receive(from, run));
        builder.wait();
        held += number;
    }
}
