//! The root deals short blocks, and everybody picks its own; long ones go by messages.
//! Cost: 1 round on the board, `n - 1` copies in at the root and one out at each process; a message for each long block.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::board::Rounds;
use crate::problem::{Operation, Problem};
use crate::schedule::{Schedule, Wake};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Scatterv],
    name: "board",
    cost: "1 round on the board, n - 1 copies in at the root and one out; long blocks: n - 1 messages",
    groups: Groups::One,
    needs: Needs::Board,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let (root, size) = (problem.root_rank(), problem.size);
    let mut rounds = Rounds::new(problem);
    if !problem.is_root() {
        let own = (problem.share(), problem.shape.recv.bytes());
        rounds.pick(0, root, own);
        rounds.builder.messages();
        rounds.receive_long(root, own);
        return rounds.finish(1);
    }
    let block = |rank| (problem.send_block(rank), problem.send_block_bytes(rank));
    rounds.deal(0, block, Wake::all());
    if !problem.in_place {
        rounds.builder.copy(problem.send_block(root), problem.share());
    }
    rounds.builder.messages();
    for to in (1..size).map(|distance| (root + distance) % size) {
        rounds.send_long(to, block(to));
    }
    rounds.finish(1)
}
