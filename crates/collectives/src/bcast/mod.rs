//! MPI_Bcast. The buffer is the receive buffer at every process.

pub(crate) mod binomial;
pub(crate) mod board;
pub(crate) mod chain;
pub(crate) mod direct;
pub(crate) mod linear;
pub(crate) mod nodes;
pub(crate) mod scatter_allgather;

use crate::nodes::{place, rank_at};
use crate::problem::Problem;
use crate::schedule::Peer;

/// The place of this process, node by node, counted from the root.
fn from_root(problem: &Problem<'_>) -> u32 {
    let root = place(problem, problem.root_rank());
    (place(problem, problem.rank) + problem.size - root) % problem.size
}

/// The process at a place counted from the root.
fn peer(problem: &Problem<'_>, at: u32) -> Peer {
    let root = place(problem, problem.root_rank());
    Peer::Local(rank_at(problem, (at + root) % problem.size))
}
