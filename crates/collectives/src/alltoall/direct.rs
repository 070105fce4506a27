//! Everybody offers all its blocks, and reads its own out of those of all others where they lie.
//! Cost: 2 rounds on the board, `n` copies of `m` per process.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::board::{Rounds, whole};
use crate::problem::{Operation, Problem};
use crate::schedule::Schedule;

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Alltoall],
    name: "direct",
    cost: "2 rounds on the board, n copies of m",
    groups: Groups::One,
    needs: Needs::Direct,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let (rank, size, bytes) = (problem.rank, problem.size, problem.bytes());
    let (all, skip) = (bytes * u64::from(size), bytes * u64::from(rank));
    let mut rounds = Rounds::new(problem);
    let blocks = rounds.run_of(problem.send_blocks(0, size), all, &problem.shape.send.element);
    rounds.offer(0, blocks, all);
    rounds.builder.copy(problem.send_block(rank), problem.recv_block(rank));
    rounds.gather(0);
    for from in (1..size).map(|distance| (rank + distance) % size) {
        rounds.fetch(0, from, all, skip, whole(problem.recv_block(from), bytes));
    }
    rounds.all_have_read(1);
    rounds.finish(2)
}
