//! Bruck's index algorithm (Bruck et al. 1997): block `i` for the process `d` further on travels the powers of two of `d`.
//! Cost: `ceil(log2 n)` rounds of `n / 2` blocks, `n ceil(log2 n)` messages: for short blocks.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Alltoall],
    name: "bruck",
    cost: "log n rounds of m n / 2 bytes",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (rank, size) = (problem.rank, problem.size);
    let block_bytes = problem.shape.recv.bytes();
    let length = |blocks: u32| u64::from(blocks) * block_bytes;
    // Place `d` holds what must still travel, or has arrived after travelling, the distance `d`.
    let places = builder.scratch(length(size));
    let outgoing = builder.scratch(length(size.div_ceil(2)));
    let incoming = builder.scratch(length(size.div_ceil(2)));
    for distance in 0..size {
        let index = (rank + distance) % size;
        let block = if problem.in_place { problem.recv_block(index) } else { problem.send_block(index) };
        builder.copy(block, places.bytes(length(distance), block_bytes));
    }
    let mut bit = 1;
    while bit < size {
        let travelling: Vec<u32> = (0..size).filter(|distance| distance & bit != 0).collect();
        let total = length(travelling.len() as u32);
        for (slot, distance) in (0..).zip(&travelling) {
            builder.copy(
                places.bytes(length(*distance), block_bytes),
                outgoing.bytes(length(slot), block_bytes),
            );
        }
        builder.exchange(
            Peer::Local((rank + bit) % size),
            outgoing.bytes(0, total),
            Peer::Local((rank + size - bit) % size),
            incoming.bytes(0, total),
        );
        builder.wait();
        for (slot, distance) in (0..).zip(&travelling) {
            builder.copy(
                incoming.bytes(length(slot), block_bytes),
                places.bytes(length(*distance), block_bytes),
            );
        }
        bit *= 2;
    }
    for distance in 0..size {
        let source = (rank + size - distance) % size;
        builder.copy(places.bytes(length(distance), block_bytes), problem.recv_block(source));
    }
    builder.finish()
}
