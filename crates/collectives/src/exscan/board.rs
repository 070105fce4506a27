//! Everybody posts its operands piece by piece, and folds those of the ranks before its own.
//! Cost: `m / piece` rounds on the board, up to `n - 1` operations on all of `m`.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::board::{Operands, Pieces, Rounds, whole};
use crate::problem::{Operation, Problem};
use crate::schedule::Schedule;

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Exscan],
    name: "board",
    cost: "m / piece rounds on the board, up to n - 1 operations on all of m",
    groups: Groups::One,
    needs: Needs::Board,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let (own, result, element) = (problem.operands(), problem.result(), problem.element());
    let pieces = Pieces::of_elements(problem, own.count, element);
    let mut rounds = Rounds::new(problem);
    let [scratch, spare] = rounds.scratch(pieces.longest());
    let end = problem.rank;
    rounds.run(
        pieces.count(),
        |rounds, round| {
            let (first, count) = pieces.get(round);
            rounds.post(round, whole(own.part(first, count, element), count * element.size));
        },
        |rounds, round| {
            let (first, count) = pieces.get(round);
            rounds.gather(round);
            if end == 0 {
                return;
            }
            let operands = Operands {
                own: own.part(first, count, element),
                result: result.part(first, count, element),
                posted: count * element.size,
                skip: 0,
                scratch,
                spare,
            };
            rounds.fold(round, 0..end, &operands);
        },
    )
}
