//! Both groups reduce to their leaders, which exchange the results and broadcast what they got.
//! Cost: `1 + 2 ceil(log2 n)` rounds of `m` bytes.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::pieces::{tree_broadcast, tree_reduce};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Allreduce],
    name: "leaders",
    cost: "1 + 2 log n rounds of m bytes",
    groups: Groups::Two,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (rank, size, result) = (problem.rank, problem.size, problem.result());
    let operands = problem.operands();
    let sum = tree_reduce(&mut builder, rank, size, operands, None, problem.element(), Peer::Local);
    if rank == 0 {
        builder.send(Peer::Remote(0), sum);
        builder.receive(Peer::Remote(0), result);
        builder.wait();
    }
    tree_broadcast(&mut builder, rank, size, result, Peer::Local);
    builder.finish()
}
