//! Both groups reduce to their leaders, which exchange the results and deal out what they got.
//! Cost: `2 + ceil(log2 n)` rounds.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::pieces::tree_reduce;
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Kind, Peer, Region, Schedule, Span};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::ReduceScatter, Operation::ReduceScatterBlock],
    name: "leaders",
    cost: "2 + log n rounds of m bytes",
    groups: Groups::Two,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (rank, size, element) = (problem.rank, problem.size, problem.element());
    let operands = problem.operands();
    let (_, own_count) = problem.operand_block(rank);
    let result = Span { region: Region::Recv, kind: Kind::Recv, offset: 0, count: own_count };
    let sum = tree_reduce(&mut builder, rank, size, operands, None, element, Peer::Local);
    if rank != 0 {
        builder.receive(Peer::Local(0), result);
        return builder.finish();
    }
    let received = builder.scratch_elements(operands.count, element);
    builder.send(Peer::Remote(0), sum);
    builder.receive(Peer::Remote(0), received);
    builder.wait();
    let block = |of: u32| {
        let (first, count) = problem.operand_block(of);
        received.part(first, count, element)
    };
    (1..size).for_each(|target| builder.send(Peer::Local(target), block(target)));
    builder.copy(block(0), result);
    builder.finish()
}
