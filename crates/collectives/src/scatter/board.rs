//! Short blocks: the root posts all of them at once, and everybody takes its own.
//! Long blocks: the root posts one after the other, piece by piece, each for the process that it belongs to.
//! Cost: 1 round on the board, or `(n - 1) m / piece`; `n - 1` copies in at the root and one out at each process.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::board::{Pieces, Rounds, whole};
use crate::problem::{Operation, Problem};
use crate::schedule::{Schedule, Slice};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Scatter],
    name: "board",
    cost: "1 round on the board, or (n - 1) m / piece; n - 1 copies in at the root and one out",
    groups: Groups::One,
    needs: Needs::Board,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let (rank, size, bytes) = (problem.rank, problem.size, problem.bytes());
    let (root, is_root) = (problem.root_rank(), problem.is_root());
    let keep_own = |rounds: &mut Rounds<'_>| {
        if is_root && !problem.in_place {
            rounds.builder.copy(problem.send_block(root), problem.share());
        }
    };
    let all = bytes * u64::from(size);
    if size > 2 && all <= problem.board {
        return Rounds::new(problem).run(
            1,
            |rounds, round| {
                if is_root {
                    rounds.post_alone(round, whole(problem.send_blocks(0, size), all));
                }
            },
            |rounds, round| {
                keep_own(rounds);
                if !is_root {
                    rounds.take(round, root, all, u64::from(rank) * bytes, whole(problem.share(), bytes));
                }
            },
        );
    }
    let pieces = Pieces::of_bytes(problem, bytes);
    let target = |round| (root + 1 + round / pieces.count()) % size;
    let slice = |span, round| {
        let (skip, length) = pieces.get(round % pieces.count());
        Slice { span, skip, length }
    };
    Rounds::new(problem).run(
        (size - 1) * pieces.count(),
        |rounds, round| {
            if is_root {
                let to = target(round);
                rounds.post_alone_to(round, slice(problem.send_block(to), round), to);
            }
        },
        |rounds, round| {
            if round == 0 {
                keep_own(rounds);
            }
            if !is_root && target(round) == rank {
                let data = slice(problem.share(), round);
                rounds.take(round, root, data.length, 0, data);
            }
        },
    )
}
