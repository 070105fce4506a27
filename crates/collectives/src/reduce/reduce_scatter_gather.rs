//! Long reductions: recursive halving leaves every process with a part of the result, which the root collects
//! (Rabenseifner).
//! Cost: `log n + 1` rounds, about `2 m` bytes and `m` bytes of arithmetic per process.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::pieces::{Core, even_bounds};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Reduce],
    name: "reduce_scatter_gather",
    cost: "log n + 1 rounds, 2 m bytes per process",
    groups: Groups::One,
    needs: Needs::Commutative,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (rank, root, element) = (problem.rank, problem.root_rank(), problem.element());
    let operands = problem.operands();
    let sum = builder.scratch_elements(operands.count, element);
    let other = builder.scratch_elements(operands.count, element);
    builder.copy(operands, sum);
    let core = Core::of(rank, problem.size);
    let bounds = even_bounds(operands.count, core.size);
    let part = |span: crate::schedule::Span, place: u32| {
        let first = bounds[place as usize];
        span.part(first, bounds[place as usize + 1] - first, element)
    };
    core.fold(&mut builder, rank, sum, other);
    core.halve(&mut builder, sum, other, &bounds, element);
    if rank == root {
        for place in 0..core.size {
            if core.me == Some(place) {
                builder.copy(part(sum, place), part(problem.result(), place));
            } else {
                builder.receive(Peer::Local(core.rank(place)), part(problem.result(), place));
            }
        }
    } else if let Some(me) = core.me {
        builder.send(Peer::Local(root), part(sum, me));
    }
    builder.finish()
}
