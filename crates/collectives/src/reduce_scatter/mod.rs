//! MPI_Reduce_scatter and MPI_Reduce_scatter_block. In place, the operands lie in the receive buffer and the result
//! at its beginning.

pub(crate) mod board;
pub(crate) mod direct;
pub(crate) mod linear;
pub(crate) mod pairwise;
pub(crate) mod recursive_halving;
pub(crate) mod reduce_then_scatter;

use crate::problem::Problem;
use crate::schedule::{Kind, Region, Span};

/// The operands for the block of a process.
fn operands_for(problem: &Problem<'_>, rank: u32) -> Span {
    let (first, count) = problem.operand_block(rank);
    problem.operands().part(first, count, problem.element())
}

/// Where the result of this process goes.
fn own_result(problem: &Problem<'_>) -> Span {
    let (_, count) = problem.operand_block(problem.rank);
    Span { region: Region::Recv, kind: Kind::Recv, offset: 0, count }
}
