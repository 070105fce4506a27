//! In round `k` every process sends to the one `k` further on and receives from the one `k` before.
//! Cost: `n - 1` rounds of one block.

use super::{outgoing, outgoing_bytes, travels};
use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Alltoall, Operation::Alltoallv, Operation::Alltoallw],
    name: "pairwise",
    cost: "n - 1 rounds of m bytes",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (rank, size) = (problem.rank, problem.size);
    let block = outgoing(&mut builder, problem, |_| true);
    for round in 1..size {
        let source = (rank + size - round) % size;
        let target = (rank + round) % size;
        if travels(problem, problem.recv_block_bytes(source)) {
            builder.receive(Peer::Local(source), problem.recv_block(source));
        }
        if travels(problem, outgoing_bytes(problem, target)) {
            builder.send(Peer::Local(target), block(target));
        }
        if round == 1 {
            builder.copy(block(rank), problem.recv_block(rank));
        }
        builder.wait();
    }
    if size == 1 {
        builder.copy(block(0), problem.recv_block(0));
    }
    builder.finish()
}
