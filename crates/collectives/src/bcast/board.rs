//! The root posts the data piece by piece, and everybody takes it.
//! Cost: `m / piece` rounds on the board, one copy at the root and one at each other process, at the same time.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::board::{Pieces, Rounds};
use crate::problem::{Operation, Problem};
use crate::schedule::{Schedule, Slice};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Bcast],
    name: "board",
    cost: "m / piece rounds on the board, one copy in and one out",
    groups: Groups::One,
    needs: Needs::Board,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let pieces = Pieces::of_bytes(problem, problem.bytes());
    let slice = |round| {
        let (skip, length) = pieces.get(round);
        Slice { span: problem.result(), skip, length }
    };
    let is_root = problem.is_root();
    Rounds::new(problem).run(
        pieces.count(),
        |rounds, round| {
            if is_root {
                rounds.post_alone(round, slice(round));
            }
        },
        |rounds, round| {
            if !is_root {
                let data = slice(round);
                rounds.take(round, problem.root_rank(), data.length, 0, data);
            }
        },
    )
}
