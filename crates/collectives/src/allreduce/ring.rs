//! Reduce-scatter around a ring, then allgather around it (Patarasuk and Yuan 2009). The ring goes from node to node where there
//! are several.
//! Cost: `2 (n - 1)` rounds of `m / n` bytes: the fewest bytes for any number of processes.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::nodes::{place, rank_at};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule, share};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Allreduce],
    name: "ring",
    cost: "2 (n - 1) rounds of m / n bytes",
    groups: Groups::One,
    needs: Needs::Commutative,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (me, size, element) = (place(problem, problem.rank), problem.size, problem.element());
    let at = |place: u32| Peer::Local(rank_at(problem, place % size));
    let result = problem.result();
    builder.copy(problem.operands(), result);
    let block = |index: u32| {
        let (first, number) = share(result.count, size, index % size);
        result.part(first, number, element)
    };
    let (next, previous) = (at(me + 1), at(me + size - 1));
    let incoming = builder.scratch_elements(result.count.div_ceil(u64::from(size)), element);
    for round in 0..size - 1 {
        let taken = block(me + 2 * size - round - 1);
        let place = incoming.part(0, taken.count, element);
        builder.exchange(next, block(me + 2 * size - round), previous, place);
        builder.wait();
        builder.reduce(place, taken);
    }
    for round in 0..size - 1 {
        builder.exchange(next, block(me + 2 * size + 1 - round), previous, block(me + 2 * size - round));
        builder.wait();
    }
    builder.finish()
}
