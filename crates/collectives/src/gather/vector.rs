//! Everybody posts its block, and the root takes them; what is long is only announced, and goes by message.
//! Cost: 1 round on the board, one copy in at each process and `n - 1` out at the root; a message for each long block.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::board::{NOTHING, Rounds, whole};
use crate::deal::longest;
use crate::problem::{Operation, Problem};
use crate::schedule::Schedule;

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Gatherv],
    name: "board",
    cost: "1 round on the board, one copy in and n - 1 out at the root; long blocks: n - 1 messages",
    groups: Groups::One,
    needs: Needs::Board,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let (root, size, longest) = (problem.root_rank(), problem.size, longest(problem));
    let mut rounds = Rounds::new(problem);
    if !problem.is_root() {
        let own = (problem.contribution(), problem.shape.send.bytes());
        if own.1 > longest {
            rounds.announce_to_root(0, own.1);
        } else {
            rounds.post_to_root(0, whole(own.0, own.1));
        }
        rounds.builder.messages();
        rounds.send_long(root, own);
        return rounds.finish(1);
    }
    rounds.post_to_root(0, NOTHING);
    rounds.builder.copy(problem.contribution(), problem.recv_block(root));
    let block = |rank| (problem.recv_block(rank), problem.recv_block_bytes(rank));
    let others = || (1..size).map(|distance| (root + distance) % size);
    rounds.gather(0);
    for from in others() {
        let (span, bytes) = block(from);
        if bytes > longest {
            rounds.fetch(0, from, bytes, 0, NOTHING);
        } else {
            rounds.take(0, from, bytes, 0, whole(span, bytes));
        }
    }
    rounds.builder.messages();
    others().for_each(|from| rounds.receive_long(from, block(from)));
    rounds.finish(1)
}
