//! Reductions in which everybody folds a share of the operands, and hands the result to those who take it: all, or the root.

use crate::board::{Operands, Pieces, Rounds, whole};
use crate::problem::{Operation, Problem};
use crate::schedule::{Schedule, Span, Step, share};

/// From this many bytes of all processes together on, more than two share the arithmetic, where each has a core.
const LEAST: u64 = 32 << 10;

/// Whether shares are worth their rounds on the board, where every process has a core.
pub(crate) fn pay(problem: &Problem<'_>) -> bool {
    problem.size > 2 && !problem.oversubscribed && problem.bytes() * u64::from(problem.size) >= LEAST
}

/// Whether this process takes the results of the others.
fn takes(problem: &Problem<'_>) -> bool {
    problem.operation != Operation::Reduce || problem.is_root()
}

/// Where this process folds its share of `longest` elements at most: `None`, in its place in the result.
fn aside(rounds: &mut Rounds<'_>, longest: u64) -> Option<Span> {
    let element = *rounds.problem.element();
    (!takes(rounds.problem)).then(|| rounds.builder.scratch_elements(longest, &element))
}

/// On the board, piece by piece: everybody posts a piece, folds its share of it, and posts that.
pub(crate) fn on_board(problem: &Problem<'_>) -> Schedule {
    let (rank, size, element) = (problem.rank, problem.size, problem.element());
    let (own, result) = (problem.operands(), problem.result());
    // Everybody works all the time: more pieces would only be more rounds.
    let pieces = Pieces::few(problem, own.count, element);
    let bytes = |count: u64| count * element.size;
    let mut rounds = Rounds::new(problem);
    let [scratch, spare] = rounds.scratch(pieces.longest());
    let aside = aside(&mut rounds, pieces.longest().div_ceil(u64::from(size)));
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
        let (skip, mine) = part(rank);
        let mine = aside.map_or(mine, |aside| aside.part(0, mine.count, element));
        let operands = Operands {
            own: own.part(first + skip, mine.count, element),
            result: mine,
            posted: bytes(count),
            skip: bytes(skip),
            scratch,
            spare,
        };
        rounds.fold_share(2 * index, &operands);
        let round = 2 * index + 1;
        let data = whole(mine, bytes(mine.count));
        if problem.operation == Operation::Reduce {
            rounds.post_to_root(round, data);
        } else {
            rounds.post(round, data);
        }
        if takes(problem) {
            rounds.gather(round);
            for from in (1..size).map(|distance| (rank + distance) % size) {
                let (_, theirs) = part(from);
                rounds.take(round, from, bytes(theirs.count), 0, whole(theirs, bytes(theirs.count)));
            }
        }
        if index + 1 < pieces.count() {
            rounds.builder.board(Step::Done { round });
        }
    }
    rounds.finish(2 * pieces.count())
}

/// Where the data lies, in three rounds: everybody offers its operands, reads and folds those of all for its share, and offers that.
///
/// In place this overwrites nothing that is still to be read: only the process whose share it is reads operands there, and it has read them
/// when its result is there.
pub(crate) fn where_they_lie(problem: &Problem<'_>) -> Schedule {
    let (rank, size, element) = (problem.rank, problem.size, problem.element());
    let bytes = |count: u64| count * element.size;
    let ((first, mine), offered) = (share_of(problem, rank), problem.bytes());
    let own = problem.operands().part(first, mine.count, element);
    let mut rounds = Rounds::new(problem);
    let mine = aside(&mut rounds, mine.count).unwrap_or(mine);
    let operands = rounds.run_of(problem.operands(), offered, element);
    let memory = rounds.reading(own, mine);
    rounds.offer(0, operands, offered);
    rounds.gather(0);
    rounds.read_and_fold((0, offered), first, (own, mine), &memory);
    rounds.builder.board(Step::Done { round: 0 });
    let data = rounds.run_of(mine, bytes(mine.count), element);
    rounds.offer(1, data, bytes(mine.count));
    if takes(problem) {
        rounds.gather(1);
        for from in (1..size).map(|distance| (rank + distance) % size) {
            let (_, theirs) = share_of(problem, from);
            rounds.fetch(1, from, bytes(theirs.count), 0, whole(theirs, bytes(theirs.count)));
        }
    }
    rounds.all_have_read(2);
    rounds.finish(3)
}

/// The first element of the share of a process, and the share in the result.
pub(crate) fn share_of(problem: &Problem<'_>, rank: u32) -> (u64, Span) {
    let result = problem.result();
    let (first, count) = share(result.count, problem.size, rank);
    (first, result.part(first, count, problem.element()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Direct, Shape};
    use crate::select::tests::shape;

    /// Whose operands each of 16 processes folds first, but for its own, if the schedule is `build`'s.
    fn first_read(build: fn(&Problem<'_>) -> Schedule, operation: Operation, commutative: bool) -> Vec<u32> {
        let shape = shape(operation, 16, 1 << 12, commutative);
        let schedule =
            |rank| build(&Problem::even(Shape { rank, board: 1 << 15, direct: Direct::Fast, ..shape }));
        let first = |schedule: Schedule| {
            schedule.steps().iter().find_map(|step| match *step {
                Step::Take { from, .. } | Step::Fold { from, .. } | Step::Fetch { from, .. } => Some(from),
                _ => None,
            })
        };
        (0..16).map(|rank| first(schedule(rank)).expect("everybody folds a share")).collect()
    }

    #[test]
    fn nobody_is_read_by_all_others_at_once_where_the_order_does_not_matter() {
        for operation in [Operation::Allreduce, Operation::Reduce] {
            for build in [on_board, where_they_lie] {
                let next: Vec<u32> = (0..16).map(|rank| (rank + 1) % 16).collect();
                assert_eq!(first_read(build, operation, true), next);
                let ordered = first_read(build, operation, false);
                assert!(ordered[..15].iter().all(|first| *first == 15), "{ordered:?}");
            }
        }
    }
}
