//! Everything is started at once. Several messages between two processes match in the order in which they are started.
//! Cost: 1 round of as many blocks in and out as there are neighbours.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[
        Operation::NeighborAllgather,
        Operation::NeighborAllgatherv,
        Operation::NeighborAlltoall,
        Operation::NeighborAlltoallv,
        Operation::NeighborAlltoallw,
    ],
    name: "linear",
    cost: "1 round, 1 message per neighbour",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let neighbors = problem.neighbors();
    let same_to_all =
        matches!(problem.operation, Operation::NeighborAllgather | Operation::NeighborAllgatherv);
    let sent =
        |block: usize| if same_to_all { problem.contribution() } else { problem.send_block(block as u32) };
    let targets =
        neighbors.destinations.iter().enumerate().filter_map(|(block, target)| Some((block, (*target)?)));
    let mut own = targets.clone().filter(|(_, target)| *target == problem.rank);
    // What is asked for before anything is sent need not be kept when it comes.
    for &block in neighbors.order {
        let Some(source) = neighbors.sources[block as usize] else { continue };
        let place = problem.recv_block(block);
        if source != problem.rank {
            builder.receive(Peer::Local(source), place);
        } else if let Some((block, _)) = own.next() {
            builder.copy(sent(block), place);
        }
    }
    for (block, target) in targets.filter(|(_, target)| *target != problem.rank) {
        builder.send(Peer::Local(target), sent(block));
    }
    builder.finish()
}
