//! Everybody offers its block, and reads those of all others where they lie.
//! Cost: 2 rounds on the board, `n` copies of `m` per process.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::board::{Rounds, whole};
use crate::problem::{Operation, Problem};
use crate::schedule::Schedule;

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Allgather, Operation::Allgatherv],
    name: "direct",
    cost: "2 rounds on the board, n copies of m",
    groups: Groups::One,
    needs: Needs::Direct,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let (rank, size) = (problem.rank, problem.size);
    let own = problem.contribution();
    let (bytes, element) = if problem.in_place {
        (problem.recv_block_bytes(rank), problem.shape.recv.element)
    } else {
        (problem.shape.send.bytes(), problem.shape.send.element)
    };
    let mut rounds = Rounds::new(problem);
    let offered = rounds.run_of(own, bytes, &element);
    rounds.offer(0, offered, bytes);
    rounds.builder.copy(own, problem.recv_block(rank));
    rounds.gather(0);
    for from in (1..size).map(|distance| (rank + distance) % size) {
        let length = problem.recv_block_bytes(from);
        rounds.fetch(0, from, length, 0, whole(problem.recv_block(from), length));
    }
    rounds.all_have_read(1);
    rounds.finish(2)
}
