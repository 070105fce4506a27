//! The root receives everything and folds it in the order of the ranks.
//! Cost: 1 round of `(n - 1) m` bytes, `n - 1` messages, all the arithmetic and `(n - 1) m` bytes of memory at the root.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::pieces::receive_and_fold;
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Reduce],
    name: "linear",
    cost: "1 round of (n - 1) m bytes, n - 1 messages",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (own, result) = (problem.operands(), problem.result());
    if problem.is_root() {
        receive_and_fold(&mut builder, problem.rank, problem.size, own, result, problem.element());
    } else {
        builder.send(Peer::Local(problem.root_rank()), own);
    }
    builder.finish()
}
