//! MPI_Alltoall, MPI_Alltoallv and MPI_Alltoallw.

pub(crate) mod board;
pub(crate) mod bruck;
pub(crate) mod direct;
pub(crate) mod linear;
pub(crate) mod pairwise;
pub(crate) mod vector;

use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Span};

/// What goes to each process: the blocks of the send buffer or, in place, packed copies of those of them that would be overwritten
/// before they have gone: `kept`, by their bytes.
fn outgoing<'p, F: Fn(u64) -> bool>(
    builder: &mut Builder<'_>,
    problem: &'p Problem<'p>,
    kept: F,
) -> impl Fn(u32) -> Span + use<'p, F> {
    let number = if problem.in_place { problem.size } else { 0 };
    let copies: Vec<Span> = (0..number)
        .map(|index| {
            let block = problem.recv_block(index);
            let bytes = problem.recv_block_bytes(index);
            if index == problem.rank || !kept(bytes) {
                return block;
            }
            let packed = builder.scratch(bytes);
            builder.copy(block, packed);
            packed
        })
        .collect();
    move |to| copies.get(to as usize).copied().unwrap_or_else(|| problem.send_block(to))
}

/// Whether a block of that many bytes travels. Equal blocks always do, so that a process with a wrong count is found
/// out; for unequal ones, empty blocks are the rule in sparse exchanges.
fn travels(problem: &Problem<'_>, bytes: u64) -> bool {
    bytes > 0 || problem.operation == Operation::Alltoall
}

/// Bytes that go to a process.
fn outgoing_bytes(problem: &Problem<'_>, index: u32) -> u64 {
    if problem.in_place { problem.recv_block_bytes(index) } else { problem.send_block_bytes(index) }
}
