//! Everything is started at once. Several messages between two processes match in the order in which they are started.
//! Cost: 1 round of as many blocks in and out as there are neighbours.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule, Span};

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
    let mut own: Vec<Span> = Vec::new();
    for (block, target) in neighbors.destinations.iter().enumerate() {
        let Some(target) = *target else { continue };
        let data = if same_to_all { problem.contribution() } else { problem.send_block(block as u32) };
        if target == problem.rank {
            own.push(data);
        } else {
            builder.send(Peer::Local(target), data);
        }
    }
    let mut own = own.into_iter();
    for &block in neighbors.order {
        let Some(source) = neighbors.sources[block as usize] else { continue };
        let place = problem.recv_block(block);
        if source != problem.rank {
            builder.receive(Peer::Local(source), place);
        } else if let Some(data) = own.next() {
            builder.copy(data, place);
        }
    }
    builder.finish()
}
