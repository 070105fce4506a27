//! Blocks travel around a ring, which goes from node to node where there are several.
//! Cost: `n - 1` rounds of one block, `n (n - 1)` messages; every byte crosses every link once.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::nodes::{place, rank_at};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Allgather, Operation::Allgatherv],
    name: "ring",
    cost: "n - 1 rounds of m bytes",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (me, size) = (place(problem, problem.rank), problem.size);
    let at = |place: u32| rank_at(problem, place % size);
    let (contribution, own) = (problem.contribution(), problem.recv_block(problem.rank));
    for round in 0..size - 1 {
        let gives = at(me + size - round);
        let takes = at(me + size - round - 1);
        let block = if round == 0 { contribution } else { problem.recv_block(gives) };
        builder.exchange(
            Peer::Local(at(me + 1)),
            block,
            Peer::Local(at(me + size - 1)),
            problem.recv_block(takes),
        );
        if round == 0 {
            builder.copy(contribution, own);
        }
        builder.wait();
    }
    if size == 1 {
        builder.copy(contribution, own);
    }
    builder.finish()
}
