//! Everybody sends to every process of the other group: nobody knows what the others of its own group send.
//! Cost: 1 round, one message per pair.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Allgatherv],
    name: "linear",
    cost: "1 round, one message per pair",
    groups: Groups::Two,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    for rank in 0..problem.remote_size {
        builder.receive(Peer::Remote(rank), problem.recv_block(rank));
    }
    for rank in 0..problem.remote_size {
        builder.send(Peer::Remote(rank), problem.contribution());
    }
    builder.finish()
}
