//! Everybody posts its block piece by piece, and takes those of all others.
//! Cost: `m / piece` rounds on the board, one copy in and `n - 1` out per process.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::board::{Pieces, Rounds};
use crate::problem::{Operation, Problem};
use crate::schedule::{Schedule, Slice};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Allgather],
    name: "board",
    cost: "m / piece rounds on the board, one copy in and n - 1 out",
    groups: Groups::One,
    needs: Needs::Board,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let pieces = Pieces::of_bytes(problem, problem.bytes());
    let (rank, size) = (problem.rank, problem.size);
    Rounds::new(problem).run(
        pieces.count(),
        |rounds, round| {
            let (skip, length) = pieces.get(round);
            rounds.post(round, Slice { span: problem.contribution(), skip, length });
        },
        |rounds, round| {
            if round == 0 {
                rounds.builder.copy(problem.contribution(), problem.recv_block(rank));
            }
            let (skip, length) = pieces.get(round);
            rounds.gather(round);
            for from in (1..size).map(|distance| (rank + distance) % size) {
                rounds.take(round, from, length, 0, Slice { span: problem.recv_block(from), skip, length });
            }
        },
    )
}
