//! Dissemination barrier (Hensgen, Finkel and Manber 1988): in round `k` every process tells the one `2^k` further on.
//! Cost: `ceil(log2 n)` rounds, `n` messages in each.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Kind, Peer, Region, Schedule, Span};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Barrier],
    name: "dissemination",
    cost: "log n rounds, n log n messages",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

/// A message without data.
pub(crate) const SIGNAL: Span = Span { region: Region::Scratch, kind: Kind::Bytes, offset: 0, count: 0 };

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    spread(&mut builder, problem.rank, problem.size, Peer::Local);
    builder.finish()
}

/// All rounds, among `size` processes of which this one stands at place `me`.
pub(crate) fn spread(builder: &mut Builder<'_>, me: u32, size: u32, peer: impl Fn(u32) -> Peer) {
    let mut distance = 1;
    while distance < size {
        builder.send(peer((me + distance) % size), SIGNAL);
        builder.receive(peer((me + size - distance) % size), SIGNAL);
        builder.wait();
        distance *= 2;
    }
}
