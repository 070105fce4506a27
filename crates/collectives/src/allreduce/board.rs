//! Everybody posts its operands piece by piece and folds those of all. Where that is much arithmetic, everybody folds its
//! share of each piece and posts the result.
//! Cost: `m / piece` rounds on the board and `n - 1` operations on all of `m`; or `2 m / piece` rounds and `(n - 1) / n` of
//! that arithmetic.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::board::{Operands, Pieces, Rounds, whole};
use crate::problem::{Operation, Problem};
use crate::schedule::{Schedule, Slice, Step, share};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Allreduce],
    name: "board",
    cost: "m / piece rounds on the board, or twice as many and an n-th of the arithmetic",
    groups: Groups::One,
    needs: Needs::Board,
    build,
};

/// From this many bytes on more than two processes share the arithmetic.
const SHARED: u64 = 8 << 10;

fn build(problem: &Problem<'_>) -> Schedule {
    let (size, element) = (problem.size, problem.element());
    let (own, result) = (problem.operands(), problem.result());
    let pieces = Pieces::of_elements(problem, own.count, element);
    let mut rounds = Rounds::new(problem);
    let [scratch, spare] = rounds.scratch(pieces.longest());
    let bytes = |count: u64| count * element.size;
    if size == 2 || problem.bytes() < SHARED {
        return rounds.run(
            pieces.count(),
            |rounds, round| {
                let (first, count) = pieces.get(round);
                rounds.post(round, whole(own.part(first, count, element), bytes(count)));
            },
            |rounds, round| {
                let (first, count) = pieces.get(round);
                rounds.gather(round);
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
        );
    }
    let post = |rounds: &mut Rounds<'_>, index: u32| {
        let (first, count) = pieces.get(index);
        rounds.post(2 * index, whole(own.part(first, count, element), bytes(count)));
    };
    post(&mut rounds, 0);
    for index in 0..pieces.count() {
        if index + 1 < pieces.count() {
            post(&mut rounds, index + 1);
        }
        let (first, count) = pieces.get(index);
        let part = |rank| {
            let (skip, number) = share(count, size, rank);
            (skip, result.part(first + skip, number, element))
        };
        rounds.gather(2 * index);
        let (skip, mine) = part(problem.rank);
        let operands = Operands {
            own: own.part(first + skip, mine.count, element),
            result: mine,
            posted: bytes(count),
            skip: bytes(skip),
            scratch,
            spare,
        };
        rounds.fold(2 * index, 0..size, &operands);
        let round = 2 * index + 1;
        rounds.post(round, whole(mine, bytes(mine.count)));
        rounds.gather(round);
        for from in (1..size).map(|distance| (problem.rank + distance) % size) {
            let (_, theirs) = part(from);
            let length = bytes(theirs.count);
            rounds.take(round, from, length, 0, Slice { span: theirs, skip: 0, length });
        }
        if index + 1 < pieces.count() {
            rounds.builder.board(Step::Done { round });
        }
    }
    rounds.finish(2 * pieces.count())
}
