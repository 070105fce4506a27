//! Blocks travel around a ring.
//! Cost: `n - 1` rounds of one block, `n (n - 1)` messages; every byte crosses every link once.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Allgather, Operation::Allgatherv],
    name: "ring",
    cost: "n - 1 rounds of m bytes",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (rank, size) = (problem.rank, problem.size);
    builder.copy(problem.contribution(), problem.recv_block(rank));
    for round in 0..size - 1 {
        let gives = (rank + size - round) % size;
        let takes = (rank + size - round - 1) % size;
        builder.receive(Peer::Local((rank + size - 1) % size), problem.recv_block(takes));
        builder.send(Peer::Local((rank + 1) % size), problem.recv_block(gives));
        builder.wait();
    }
    builder.finish()
}
