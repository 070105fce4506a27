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
    let (contribution, own) = (problem.contribution(), problem.recv_block(rank));
    for round in 0..size - 1 {
        let gives = (rank + size - round) % size;
        let takes = (rank + size - round - 1) % size;
        let block = if round == 0 { contribution } else { problem.recv_block(gives) };
        builder.send(Peer::Local((rank + 1) % size), block);
        builder.receive(Peer::Local((rank + size - 1) % size), problem.recv_block(takes));
        if round == 0 {
            builder.copy(contribution, own);
        }
        builder.wait();
    }
    if size == 1 {
        builder.copy(contribution, own);
    }
    builder.finish()
}
