//! Short blocks: everybody posts all its blocks at once, and takes its own out of those of all others.
//! Long blocks: in step `i` everybody posts the block for the process `i` further on, piece by piece.
//! Cost: 1 round on the board, or `(n - 1) m / piece`; one copy in and one out of every block.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::board::{Pieces, Rounds, whole};
use crate::problem::{Operation, Problem};
use crate::schedule::{Schedule, Slice, Span};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Alltoall],
    name: "board",
    cost: "1 round on the board, or (n - 1) m / piece; one copy in and one out",
    groups: Groups::One,
    needs: Needs::Board,
    build,
};

fn outgoing(problem: &Problem<'_>, index: u32) -> Span {
    if problem.in_place { problem.recv_block(index) } else { problem.send_block(index) }
}

fn build(problem: &Problem<'_>) -> Schedule {
    let (rank, size, bytes) = (problem.rank, problem.size, problem.bytes());
    let rounds = Rounds::new(problem);
    let own = outgoing(problem, rank);
    let all = bytes * u64::from(size);
    if size > 2 && all <= problem.board {
        let blocks =
            if problem.in_place { problem.recv_blocks(0, size) } else { problem.send_blocks(0, size) };
        return rounds.run(
            1,
            |rounds, round| rounds.post(round, whole(blocks, all)),
            |rounds, round| {
                rounds.builder.copy(own, problem.recv_block(rank));
                rounds.gather(round);
                for from in (1..size).map(|distance| (rank + distance) % size) {
                    rounds.take(
                        round,
                        from,
                        all,
                        u64::from(rank) * bytes,
                        whole(problem.recv_block(from), bytes),
                    );
                }
            },
        );
    }
    let pieces = Pieces::of_bytes(problem, bytes);
    let slice = |span, round| {
        let (skip, length) = pieces.get(round % pieces.count());
        Slice { span, skip, length }
    };
    let distance = |round| 1 + round / pieces.count();
    rounds.run(
        (size - 1) * pieces.count(),
        |rounds, round| {
            let to = (rank + distance(round)) % size;
            rounds.post_to(round, slice(outgoing(problem, to), round), to);
        },
        |rounds, round| {
            if round == 0 {
                rounds.builder.copy(own, problem.recv_block(rank));
            }
            rounds.gather(round);
            let from = (rank + size - distance(round)) % size;
            let data = slice(problem.recv_block(from), round);
            rounds.take(round, from, data.length, 0, data);
        },
    )
}
