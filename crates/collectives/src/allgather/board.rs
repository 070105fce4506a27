//! Everybody posts its block piece by piece, and takes those of all others.
//! Cost: `m / piece` rounds on the board, one copy in and `n - 1` out per process.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::board::{Pieces, Rounds, longest_block};
use crate::problem::{Operation, Problem};
use crate::schedule::{Schedule, Slice};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Allgather, Operation::Allgatherv],
    name: "board",
    cost: "m / piece rounds on the board, one copy in and n - 1 out",
    groups: Groups::One,
    needs: Needs::Board,
    build,
};

/// Longer blocks are in no cache any more when they have been posted.
const LONG: u64 = 4 << 20;

fn build(problem: &Problem<'_>) -> Schedule {
    // Blocks that differ are cut alike: who has a shorter one posts nothing in the last rounds.
    let pieces = Pieces::of_bytes(problem, longest_block(problem));
    let slice = |span, bytes: u64, round| {
        let (skip, length) = pieces.get(round);
        Slice { span, skip: skip.min(bytes), length: length.min(bytes.saturating_sub(skip)) }
    };
    let (rank, size) = (problem.rank, problem.size);
    // Own data that no cache holds is taken while the piece that was posted is still there.
    let takes_own = !problem.in_place && problem.bytes() > LONG;
    let own = if problem.in_place { problem.recv_block_bytes(rank) } else { problem.shape.send.bytes() };
    Rounds::new(problem).run(
        pieces.count(),
        |rounds, round| {
            rounds.post(round, slice(problem.contribution(), own, round));
        },
        |rounds, round| {
            if round == 0 && !takes_own {
                rounds.builder.copy(problem.contribution(), problem.recv_block(rank));
            }
            rounds.gather(round);
            for from in (u32::from(!takes_own)..size).map(|distance| (rank + distance) % size) {
                let data = slice(problem.recv_block(from), problem.recv_block_bytes(from), round);
                rounds.take(round, from, data.length, 0, data);
            }
        },
    )
}
