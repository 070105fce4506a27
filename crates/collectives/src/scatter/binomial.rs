//! Scatter along a binomial tree; inner processes hold the packed blocks of their subtree.
//! Cost: `ceil(log2 n)` rounds, `n - 1` messages, `(n - 1) m` bytes out of the root.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Scatter],
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
    let mut children = Vec::new();
    let mut mask = 1;
    while mask < size && me & mask == 0 {
        if me + mask < size {
            children.push((me + mask, mask.min(size - me - mask)));
        }
        mask <<= 1;
    }
    // The largest subtree first.
    children.reverse();

    if me == 0 {
        let block_bytes = problem.shape.send.bytes();
        for (child, number) in children {
            let first = (child + root) % size;
            if first + number <= size {
                builder.send(peer(child), problem.send_blocks(first, number));
            } else {
                let packed = builder.scratch(u64::from(number) * block_bytes);
                let before = size - first;
                let length = u64::from(before) * block_bytes;
                builder.copy(problem.send_blocks(first, before), packed.bytes(0, length));
                builder.copy(
                    problem.send_blocks(0, number - before),
                    packed.bytes(length, packed.count - length),
                );
                builder.send(peer(child), packed);
            }
        }
        if !problem.in_place {
            builder.copy(problem.send_block(root), problem.share());
        }
        return builder.finish();
    }

    let parent = peer(me & (me - 1));
    if children.is_empty() {
        builder.receive(parent, problem.share());
        return builder.finish();
    }
    let block_bytes = problem.shape.recv.bytes();
    let packed = builder.scratch(u64::from(mask.min(size - me)) * block_bytes);
    builder.receive(parent, packed);
    builder.wait();
    for (child, number) in children {
        let first = u64::from(child - me) * block_bytes;
        builder.send(peer(child), packed.bytes(first, u64::from(number) * block_bytes));
    }
    builder.copy(packed.bytes(0, block_bytes), problem.share());
    builder.finish()
}
