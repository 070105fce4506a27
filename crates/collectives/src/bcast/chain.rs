//! Pipelined chain: every process hands segments on to the next.
//! Cost: `n - 2 + m / s` rounds of `s` bytes for segments of `s` bytes.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::pieces::Stream;
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Bcast],
    name: "chain",
    cost: "n - 2 + m / s rounds of s bytes, segments of s = 128 KiB, between nodes 512 KiB",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

/// Within a node, and between nodes, where each segment asks for its way first.
const SEGMENT_BYTES: (u64, u64) = (128 << 10, 512 << 10);

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let stream = Stream::new(&mut builder, problem);
    let (me, size) = (super::from_root(problem), problem.size);
    let total = stream.bytes.count;
    let segment_bytes = if problem.nodes.is_some() { SEGMENT_BYTES.1 } else { SEGMENT_BYTES.0 };
    let segments = total.div_ceil(segment_bytes).max(1);
    let segment = |index: u64| {
        let first = index * segment_bytes;
        stream.bytes.bytes(first, segment_bytes.min(total - first))
    };
    let has_next = me + 1 < size;
    for index in 0..segments {
        if me > 0 {
            builder.receive(super::peer(problem, me - 1), segment(index));
            // The segment before goes on while this one comes in.
            if has_next && index > 0 {
                builder.send(super::peer(problem, me + 1), segment(index - 1));
            }
            builder.wait();
        } else if has_next {
            builder.send(super::peer(problem, me + 1), segment(index));
        }
    }
    if me > 0 && has_next {
        builder.send(super::peer(problem, me + 1), segment(segments - 1));
    }
    builder.wait();
    stream.finish(&mut builder, problem);
    builder.finish()
}
