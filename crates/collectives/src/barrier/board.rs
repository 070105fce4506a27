//! Everybody posts an empty note, and waits for those of all others.
//! Cost: 1 round on the board.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::board::{NOTHING, Rounds};
use crate::problem::{Operation, Problem};
use crate::schedule::Schedule;

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Barrier],
    name: "board",
    cost: "1 round on the board",
    groups: Groups::One,
    needs: Needs::Board,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    Rounds::new(problem).run(
        1,
        |rounds, round| rounds.post(round, NOTHING),
        |rounds, round| {
            rounds.gather(round);
            for distance in 1..problem.size {
                rounds.take(round, (problem.rank + distance) % problem.size, 0, 0, NOTHING);
            }
        },
    )
}
