//! Everybody deals its short blocks, and picks its own out of what the others have dealt; long ones go by messages.
//! Cost: 1 round on the board, one copy in and one out of every block; a message for each long block.

use super::{outgoing, outgoing_bytes};
use crate::algorithm::{Algorithm, Groups, Needs};
use crate::board::Rounds;
use crate::deal::longest;
use crate::problem::{Operation, Problem};
use crate::schedule::{Schedule, Wake};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Alltoallv, Operation::Alltoallw],
    name: "board",
    cost: "1 round on the board, one copy in and one out; long blocks: n - 1 messages per process",
    groups: Groups::One,
    needs: Needs::Board,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let (rank, size, longest) = (problem.rank, problem.size, longest(problem));
    let mut rounds = Rounds::new(problem);
    // In place, what goes by message later must not be overwritten before.
    let block = outgoing(&mut rounds.builder, problem, |bytes| bytes > longest);
    let gives = |to: u32| (block(to), outgoing_bytes(problem, to));
    let gets = |from: u32| (problem.recv_block(from), problem.recv_block_bytes(from));
    let wake = Wake { only: None, when_complete: problem.oversubscribed };
    rounds.deal(0, gives, wake);
    rounds.builder.copy(block(rank), problem.recv_block(rank));
    rounds.gather(0);
    let others = || (1..size).map(|distance| (rank + distance) % size);
    others().for_each(|from| rounds.pick(0, from, gets(from)));
    rounds.builder.messages();
    others().for_each(|from| rounds.receive_long(from, gets(from)));
    others().for_each(|to| rounds.send_long(to, gives(to)));
    rounds.finish(1)
}
