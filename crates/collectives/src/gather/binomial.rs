//! Gather along a binomial tree; inner processes hold the packed blocks of their subtree.
//! Cost: `ceil(log2 n)` rounds, `n - 1` messages, `(n - 1) m` bytes into the root.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Gather],
    name: "binomial",
    cost: "log n rounds, n - 1 messages",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (size, root) = (problem.size, problem.root_rank());
    let me = (problem.rank + size - root) % size;
    let peer = |place: u32| Peer::Local((place + root) % size);
    // Children and the number of blocks that each brings.
    let mut children = Vec::new();
    let mut mask = 1;
    while mask < size && me & mask == 0 {
        if me + mask < size {
            children.push((me + mask, mask.min(size - me - mask)));
        }
        mask <<= 1;
    }

    if me == 0 {
        let block_bytes = problem.shape.recv.bytes();
        let mut wrapped = None;
        for (child, number) in children {
            let first = (child + root) % size;
            if first + number <= size {
                builder.receive(peer(child), problem.recv_blocks(first, number));
            } else {
                // Only one subtree can hold both the last rank and rank 0.
                let packed = builder.scratch(u64::from(number) * block_bytes);
                builder.receive(peer(child), packed);
                wrapped = Some((packed, first, number));
            }
        }
        builder.copy(problem.contribution(), problem.recv_block(root));
        builder.wait();
        if let Some((packed, first, number)) = wrapped {
            let before = size - first;
            let length = u64::from(before) * block_bytes;
            builder.copy(packed.bytes(0, length), problem.recv_blocks(first, before));
            builder
                .copy(packed.bytes(length, packed.count - length), problem.recv_blocks(0, number - before));
        }
        return builder.finish();
    }

    let parent = peer(me & (me - 1));
    if children.is_empty() {
        builder.send(parent, problem.contribution());
        return builder.finish();
    }
    let block_bytes = problem.shape.send.bytes();
    let blocks = mask.min(size - me);
    let packed = builder.scratch(u64::from(blocks) * block_bytes);
    for (child, number) in children {
        let first = u64::from(child - me) * block_bytes;
        builder.receive(peer(child), packed.bytes(first, u64::from(number) * block_bytes));
    }
    builder.copy(problem.contribution(), packed.bytes(0, block_bytes));
    builder.wait();
    builder.send(parent, packed);
    builder.finish()
}
