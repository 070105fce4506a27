//! Partners exchange all that they have; what they have doubles in every round.
//! Cost: `log2 n` rounds, `n log2 n` messages, `(n - 1) m` bytes into every process.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Allgather],
    name: "recursive_doubling",
    cost: "log n rounds, n log n messages",
    groups: Groups::One,
    needs: Needs::PowerOfTwo,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let rank = problem.rank;
    let (contribution, own) = (problem.contribution(), problem.recv_block(rank));
    if problem.size == 1 {
        builder.copy(contribution, own);
    }
    let mut mask = 1;
    while mask < problem.size {
        let mine = rank & !(mask - 1);
        let partner = Peer::Local(rank ^ mask);
        let block = if mask == 1 { contribution } else { problem.recv_blocks(mine, mask) };
        builder.exchange(partner, block, partner, problem.recv_blocks(mine ^ mask, mask));
        if mask == 1 {
            builder.copy(contribution, own);
        }
        builder.wait();
        mask *= 2;
    }
    builder.finish()
}
