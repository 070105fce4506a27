//! Everybody posts its operands piece by piece and folds those of all. Where that is much arithmetic, everybody folds its
//! share of each piece and posts the result.
//! Cost: `m / piece` rounds on the board and `n - 1` operations on all of `m`; or `2 m / piece` rounds and `(n - 1) / n` of
//! that arithmetic.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::board::{NOTHING, Operands, Pieces, Rounds, whole};
use crate::problem::{Operation, Problem};
use crate::schedule::Schedule;
use crate::shares;

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Allreduce],
    name: "board",
    cost: "m / piece rounds on the board, or twice as many and an n-th of the arithmetic",
    groups: Groups::One,
    needs: Needs::Board,
    build,
};

/// From this many bytes on more than two processes share the arithmetic also where there are more of them than cores.
const SHARED: u64 = 8 << 10;
/// More processes than this look first whether all have posted, one after the other from the next one on, before they fold in the same order.
const MANY: u32 = 4;

fn build(problem: &Problem<'_>) -> Schedule {
    let (rank, size, element) = (problem.rank, problem.size, problem.element());
    if shares::pay(problem) || problem.oversubscribed && size > 2 && problem.bytes() >= SHARED {
        return shares::on_board(problem);
    }
    let (own, result) = (problem.operands(), problem.result());
    let pieces = Pieces::of_elements(problem, own.count, element);
    let mut rounds = Rounds::new(problem);
    let [scratch, spare] = rounds.scratch(pieces.longest());
    let bytes = |count: u64| count * element.size;
    rounds.run(
        pieces.count(),
        |rounds, round| {
            let (first, count) = pieces.get(round);
            rounds.post(round, whole(own.part(first, count, element), bytes(count)));
        },
        |rounds, round| {
            let (first, count) = pieces.get(round);
            rounds.gather(round);
            if size > MANY && !problem.oversubscribed {
                for from in (1..size).map(|distance| (rank + distance) % size) {
                    rounds.take(round, from, bytes(count), 0, NOTHING);
                }
            }
            let operands = Operands {
                own: own.part(first, count, element),
                result: result.part(first, count, element),
                posted: bytes(count),
                skip: 0,
                scratch,
                spare,
            };
            rounds.fold(round, 0..size, &operands);
        },
    )
}
