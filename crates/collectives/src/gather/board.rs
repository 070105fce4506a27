//! Everybody posts its block piece by piece, and the root takes them.
//! Cost: `m / piece` rounds on the board, one copy in at each process and `n - 1` out at the root.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::board::{Pieces, Rounds};
use crate::problem::{Operation, Problem};
use crate::schedule::{Schedule, Slice};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Gather],
    name: "board",
    cost: "m / piece rounds on the board, one copy in and n - 1 out at the root",
    groups: Groups::One,
    needs: Needs::Board,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let pieces = Pieces::of_bytes(problem, problem.bytes());
    let (root, size, is_root) = (problem.root_rank(), problem.size, problem.is_root());
    Rounds::new(problem).run(
        pieces.count(),
        |rounds, round| {
            let (skip, length) = pieces.get(round);
            rounds.post_to_root(round, Slice { span: problem.contribution(), skip, length });
        },
        |rounds, round| {
            if !is_root {
                return;
            }
            if round == 0 {
                rounds.builder.copy(problem.contribution(), problem.recv_block(root));
            }
            let (skip, length) = pieces.get(round);
            rounds.gather(round);
            for from in (1..size).map(|distance| (root + distance) % size) {
                rounds.take(round, from, length, 0, Slice { span: problem.recv_block(from), skip, length });
            }
        },
    )
}
