//! The root sends to everybody.
//! Cost: 1 round of `(n - 1) m` bytes, `n - 1` messages; no process but the root has to run twice.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Bcast],
    name: "linear",
    cost: "1 round of (n - 1) m bytes, n - 1 messages",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    if problem.is_root() {
        for place in 1..problem.size {
            builder.send(super::peer(problem, place), problem.result());
        }
    } else {
        builder.receive(Peer::Local(problem.root_rank()), problem.result());
    }
    builder.finish()
}
