//! Broadcast of long messages: a binomial scatter, then a ring (van de Geijn).
//! Cost: `log n + n - 1` rounds, about `2 m` bytes in and out of every process.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::pieces::Stream;
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Schedule, Span, share};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Bcast],
    name: "scatter_allgather",
    cost: "log n + n - 1 rounds, 2 m bytes per process",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let stream = Stream::new(&mut builder, problem);
    let (me, size) = (super::from_root(problem), problem.size);
    let total = stream.bytes.count;
    let blocks = |low: u32, high: u32| -> Span {
        let (first, _) = share(total, size, low);
        let end = if high >= size { total } else { share(total, size, high).0 };
        stream.bytes.bytes(first, end - first)
    };

    // Scatter: process `me` is responsible for the blocks from its own up to the next subtree.
    let mut mask = 1;
    while mask < size && me & mask == 0 {
        mask <<= 1;
    }
    if me != 0 {
        builder.receive(super::peer(problem, me - mask), blocks(me, me + mask));
        builder.wait();
    }
    mask >>= 1;
    while mask > 0 {
        if me + mask < size {
            builder.send(super::peer(problem, me + mask), blocks(me + mask, me + 2 * mask));
        }
        mask >>= 1;
    }
    builder.wait();

    // Ring.
    for round in 0..size - 1 {
        let gives = (me + size - round) % size;
        let takes = (me + size - round - 1) % size;
        if me != 0 {
            builder.receive(super::peer(problem, (me + size - 1) % size), blocks(takes, takes + 1));
        }
        // The root has everything: nobody sends to it.
        if (me + 1) % size != 0 {
            builder.send(super::peer(problem, (me + 1) % size), blocks(gives, gives + 1));
        }
        builder.wait();
    }
    stream.finish(&mut builder, problem);
    builder.finish()
}
