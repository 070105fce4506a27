//! Everybody posts its operands piece by piece, and the root folds them. Where that is much arithmetic, everybody folds its share of each
//! piece and posts the result for the root.
//! Cost: `m / piece` rounds on the board, all arithmetic at the root; or `2 m / piece` rounds and an n-th of that arithmetic at each.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::board::{Operands, Pieces, Rounds, whole};
use crate::problem::{Operation, Problem};
use crate::schedule::Schedule;
use crate::shares;

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Reduce],
    name: "board",
    cost: "m / piece rounds on the board, all arithmetic at the root, or twice as many and an n-th of it at each",
    groups: Groups::One,
    needs: Needs::Board,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    if shares::pay(problem) {
        return shares::on_board(problem);
    }
    let (own, result, element) = (problem.operands(), problem.result(), problem.element());
    let pieces = Pieces::of_elements(problem, own.count, element);
    let mut rounds = Rounds::new(problem);
    let [scratch, spare] = if problem.is_root() { rounds.scratch(pieces.longest()) } else { [own; 2] };
    rounds.run(
        pieces.count(),
        |rounds, round| {
            let (first, count) = pieces.get(round);
            let data = whole(own.part(first, count, element), count * element.size);
            rounds.post_to_root(round, data);
        },
        |rounds, round| {
            if problem.is_root() {
                let (first, count) = pieces.get(round);
                rounds.gather(round);
                let operands = Operands {
                    own: own.part(first, count, element),
                    result: result.part(first, count, element),
                    posted: count * element.size,
                    skip: 0,
                    scratch,
                    spare,
                };
                rounds.fold(round, 0..problem.size, &operands);
            }
        },
    )
}
