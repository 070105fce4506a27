//! The root offers the data, and everybody reads it where it lies.
//! Cost: 2 rounds on the board, one copy of `m` at each process but the root, at the same time.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::board::{Rounds, whole};
use crate::problem::{Operation, Problem};
use crate::schedule::Schedule;

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Bcast],
    name: "direct",
    cost: "2 rounds on the board, one copy of m at each process but the root",
    groups: Groups::One,
    needs: Needs::Direct,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let (data, bytes) = (problem.result(), problem.bytes());
    let mut rounds = Rounds::new(problem);
    if problem.is_root() {
        let data = rounds.run_of(data, bytes, problem.element());
        rounds.offer_alone(0, data, bytes);
    } else {
        rounds.fetch(0, problem.root_rank(), bytes, 0, whole(data, bytes));
    }
    rounds.all_have_read_of_root(1);
    rounds.finish(2)
}
