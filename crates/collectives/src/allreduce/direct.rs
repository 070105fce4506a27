//! Everybody offers its operands, reads and folds those of all for its share, and posts the result on the board piece by piece, as it is
//! made, where the others take it. Where there are more processes than cores and rounds are slow, and where it is long, everybody offers
//! its result, and the others read it where it lies.
//! Cost: `2 m / (n piece)` rounds on the board, or 3; `(n - 1) / n` of `m` read and folded and as much taken per process.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::board::{Pieces, Rounds, whole};
use crate::problem::{Operation, Problem};
use crate::schedule::{Schedule, Span, Step};
use crate::shares::{self, share_of};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Allreduce],
    name: "direct",
    cost: "2 m / (n piece) rounds on the board, or 3; (n - 1) / n of m read and folded, and as much taken",
    groups: Groups::One,
    needs: Needs::Direct,
    build,
};

/// Of more bytes than this the results are better read where they lie.
const LONG: u64 = 128 << 10;

fn build(problem: &Problem<'_>) -> Schedule {
    if problem.oversubscribed || problem.bytes() > LONG {
        shares::where_they_lie(problem)
    } else {
        in_pieces(problem)
    }
}

/// In place this overwrites nothing that is still to be read: only the process whose share it is reads operands there, and it has read them
/// when its result is there.
fn in_pieces(problem: &Problem<'_>) -> Schedule {
    let (rank, size, element) = (problem.rank, problem.size, problem.element());
    let bytes = |count: u64| count * element.size;
    let ((first, result), offered) = (share_of(problem, rank), problem.bytes());
    let own = problem.operands().part(first, result.count, element);
    // Shares may differ in length, and all processes have the same rounds.
    let longest = problem.result().count.div_ceil(u64::from(size));
    let pieces = Pieces::few(problem, longest, element);
    let piece_of = |share: Span, index: u32| {
        let (begin, count) = pieces.get(index);
        let begin = begin.min(share.count);
        (begin, count.min(share.count - begin))
    };
    let mut rounds = Rounds::new(problem);
    let operands = rounds.run_of(problem.operands(), offered, element);
    let memory = rounds.reading(own, result);
    rounds.offer(0, operands, offered);
    for index in 0..pieces.count() {
        // A note does not stand for longer than a few rounds, so the operands are offered anew for every piece.
        let (offer, post) = (2 * index, 2 * index + 1);
        let (begin, count) = piece_of(result, index);
        let part = |span: Span| span.part(begin, count, element);
        rounds.read_and_fold((offer, offered), first + begin, (part(own), part(result)), &memory);
        rounds.builder.board(Step::Done { round: offer });
        rounds.post(post, whole(part(result), bytes(count)));
        if index + 1 < pieces.count() {
            rounds.offer(post + 1, operands, offered);
        }
        for from in (1..size).map(|distance| (rank + distance) % size) {
            let (_, theirs) = share_of(problem, from);
            let (begin, count) = piece_of(theirs, index);
            rounds.take(post, from, bytes(count), 0, whole(theirs.part(begin, count, element), bytes(count)));
        }
        if index + 1 < pieces.count() {
            rounds.builder.board(Step::Done { round: post });
        }
    }
    rounds.finish(2 * pieces.count())
}
