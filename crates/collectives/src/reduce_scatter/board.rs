//! Short operands: everybody posts all of them at once, and folds those for its own block.
//! Long operands: in step `i` everybody posts those for the process `i` further on, piece by piece.
//! Cost: 1 round on the board, or `(n - 1) m / (n piece)`.

use super::{operands_for, own_result};
use crate::algorithm::{Algorithm, Groups, Needs};
use crate::board::{Operands, Pieces, Rounds, whole};
use crate::problem::{Operation, Problem};
use crate::schedule::{Schedule, Step};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::ReduceScatter, Operation::ReduceScatterBlock],
    name: "board",
    cost: "1 round on the board, or (n - 1) m / (n piece)",
    groups: Groups::One,
    needs: Needs::Board,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let total = problem.bytes();
    if problem.size > 2 && total <= problem.board { at_once(problem, total) } else { by_distance(problem) }
}

fn at_once(problem: &Problem<'_>, total: u64) -> Schedule {
    let (rank, element) = (problem.rank, problem.element());
    let (first, count) = problem.operand_block(rank);
    let mut rounds = Rounds::new(problem);
    let [scratch, spare] = rounds.scratch(count);
    rounds.run(
        1,
        |rounds, round| rounds.post(round, whole(problem.operands(), total)),
        |rounds, round| {
            rounds.gather(round);
            let operands = Operands {
                own: operands_for(problem, rank),
                result: own_result(problem),
                posted: total,
                skip: first * element.size,
                scratch,
                spare,
            };
            rounds.fold_share(round, &operands);
        },
    )
}

/// The order of the operands is that of the distances, or with two processes that of the ranks.
fn by_distance(problem: &Problem<'_>) -> Schedule {
    let (rank, size, element) = (problem.rank, problem.size, problem.element());
    let pieces_of = |of: u32| Pieces::of_elements(problem, problem.operand_block(of).1, element);
    // Blocks may differ in length, and all processes have the same rounds.
    let each = (0..size).map(|of| pieces_of(of).count()).max().unwrap_or(1);
    let (mine, own, result) = (pieces_of(rank), operands_for(problem, rank), own_result(problem));
    let mut rounds = Rounds::new(problem);
    let [scratch, spare] = rounds.scratch(mine.longest());
    // The operands that are posted last must not be overwritten by the result before. Of two processes with equal blocks
    // neither overwrites more than it has posted.
    let sum = if problem.in_place && (size > 2 || problem.recv.is_some()) {
        rounds.builder.scratch_elements(own.count, element)
    } else {
        result
    };
    if size > 2 {
        rounds.builder.copy(own, sum);
    }
    let distance = |round| 1 + round / each;
    let schedule = |rounds: &mut Rounds<'_>, round: u32| {
        let from = (rank + size - distance(round)) % size;
        let index = round % each;
        if index >= mine.count() {
            return;
        }
        let (first, count) = mine.get(index);
        let posted = count * element.size;
        rounds.gather(round);
        if size == 2 {
            let operands = Operands {
                own: own.part(first, count, element),
                result: sum.part(first, count, element),
                posted,
                skip: 0,
                scratch,
                spare,
            };
            return rounds.fold(round, 0..2, &operands);
        }
        let sum = sum.part(first, count, element);
        if element.dense {
            rounds.builder.board(Step::Fold { round, from, posted, skip: 0, inout: sum });
        } else {
            let spare = spare.part(0, count, element);
            rounds.take(round, from, posted, 0, whole(spare, posted));
            rounds.builder.reduce(spare, sum);
        }
    };
    let post = |rounds: &mut Rounds<'_>, round: u32| {
        let to = (rank + distance(round)) % size;
        let (theirs, index) = (pieces_of(to), round % each);
        let (first, count) = if index < theirs.count() { theirs.get(index) } else { (0, 0) };
        let data = operands_for(problem, to).part(first, count, element);
        rounds.post_to(round, whole(data, count * element.size), to);
    };
    let number = (size - 1) * each;
    post(&mut rounds, 0);
    for round in 0..number {
        if round + 1 < number {
            post(&mut rounds, round + 1);
        }
        schedule(&mut rounds, round);
        if round + 1 < number {
            rounds.builder.board(Step::Done { round });
        }
    }
    rounds.builder.copy(sum, result);
    rounds.finish(number)
}
