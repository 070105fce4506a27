//! Process 0 receives everything, folds it in the order of the ranks, and sends the result to everybody.
//! Cost: 2 rounds, `2 (n - 1)` messages: the fewest, for when every message costs a change of process on a core.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::pieces::receive_and_fold;
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Allreduce],
    name: "linear",
    cost: "2 rounds, 2 (n - 1) messages, all arithmetic at process 0",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (own, result) = (problem.operands(), problem.result());
    if problem.rank == 0 {
        receive_and_fold(&mut builder, 0, problem.size, own, result, problem.element());
        (1..problem.size).for_each(|rank| builder.send(Peer::Local(rank), result));
    } else {
        builder.send(Peer::Local(0), own);
        if problem.in_place {
            builder.wait();
        }
        builder.receive(Peer::Local(0), result);
    }
    builder.finish()
}
