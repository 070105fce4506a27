//! Bruck's concatenation (Bruck et al. 1997): as recursive doubling, for any number of processes, over a packed
//! copy in which the own block comes first.
//! Cost: `ceil(log2 n)` rounds, `n ceil(log2 n)` messages, and one more copy of everything.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Allgather],
    name: "bruck",
    cost: "log n rounds, n log n messages, one more copy",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (rank, size) = (problem.rank, problem.size);
    let block_bytes = problem.shape.recv.bytes();
    let length = |blocks: u32| u64::from(blocks) * block_bytes;
    let packed = builder.scratch(length(size));
    builder.copy(problem.contribution(), packed.bytes(0, block_bytes));
    let mut have = 1;
    while have < size {
        let number = have.min(size - have);
        builder.exchange(
            Peer::Local((rank + size - have) % size),
            packed.bytes(0, length(number)),
            Peer::Local((rank + have) % size),
            packed.bytes(length(have), length(number)),
        );
        builder.wait();
        have += number;
    }
    builder.copy(packed.bytes(0, length(size - rank)), problem.recv_blocks(rank, size - rank));
    if rank > 0 {
        builder.copy(packed.bytes(length(size - rank), length(rank)), problem.recv_blocks(0, rank));
    }
    builder.finish()
}
