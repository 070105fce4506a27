//! Reports climb a binomial tree to process 0, and the release comes down it.
//! Cost: `2 ceil(log2 n)` rounds, `2 (n - 1)` messages: few messages without a process that handles all of them.

use super::dissemination::SIGNAL;
use crate::algorithm::{Algorithm, Groups, Needs};
use crate::pieces::tree_broadcast;
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Barrier],
    name: "binomial",
    cost: "2 log n rounds, 2 (n - 1) messages",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (rank, size) = (problem.rank, problem.size);
    climb(&mut builder, rank, size, Peer::Local);
    tree_broadcast(&mut builder, rank, size, SIGNAL, Peer::Local);
    builder.finish()
}

/// The way up, to place 0 of `size`; `me` is that of this process.
pub(crate) fn climb(builder: &mut Builder<'_>, me: u32, size: u32, peer: impl Fn(u32) -> Peer) {
    let mut mask = 1;
    while mask < size && me & mask == 0 {
        if me + mask < size {
            builder.receive(peer(me + mask), SIGNAL);
        }
        mask <<= 1;
    }
    builder.wait();
    if me != 0 {
        builder.send(peer(me - mask), SIGNAL);
    }
}
