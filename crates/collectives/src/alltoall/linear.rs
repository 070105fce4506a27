//! Everything is started at once.
//! Cost: 1 round of `n - 1` blocks in and out.

use super::{outgoing, outgoing_bytes, travels};
use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Alltoall, Operation::Alltoallv, Operation::Alltoallw],
    name: "linear",
    cost: "1 round, n - 1 messages per process",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (rank, size) = (problem.rank, problem.size);
    let block = outgoing(&mut builder, problem, |_| true);
    for distance in 1..size {
        let source = (rank + size - distance) % size;
        if travels(problem, problem.recv_block_bytes(source)) {
            builder.receive(Peer::Local(source), problem.recv_block(source));
        }
    }
    for distance in 1..size {
        let target = (rank + distance) % size;
        if travels(problem, outgoing_bytes(problem, target)) {
            builder.send(Peer::Local(target), block(target));
        }
    }
    builder.copy(block(rank), problem.recv_block(rank));
    builder.finish()
}
