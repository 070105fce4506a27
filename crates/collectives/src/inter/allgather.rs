//! The leaders collect the blocks of their group, exchange them, and broadcast what they got.
//! Cost: `2 + ceil(log2 n)` rounds.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::pieces::tree_broadcast;
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Allgather],
    name: "leaders",
    cost: "2 + log n rounds of n m bytes",
    groups: Groups::Two,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let everything = problem.recv_blocks(0, problem.remote_size);
    if problem.rank == 0 {
        let block_bytes = problem.shape.send.bytes();
        let packed = builder.scratch(u64::from(problem.size) * block_bytes);
        for rank in 1..problem.size {
            let place = packed.bytes(u64::from(rank) * block_bytes, block_bytes);
            builder.receive(Peer::Local(rank), place);
        }
        builder.copy(problem.contribution(), packed.bytes(0, block_bytes));
        builder.wait();
        builder.send(Peer::Remote(0), packed);
        builder.receive(Peer::Remote(0), everything);
        builder.wait();
    } else {
        builder.send(Peer::Local(0), problem.contribution());
    }
    tree_broadcast(&mut builder, problem.rank, problem.size, everything, Peer::Local);
    builder.finish()
}
