//! MPI_Bcast. The buffer is the receive buffer at every process.

pub(crate) mod binomial;
pub(crate) mod board;
pub(crate) mod chain;
pub(crate) mod linear;
pub(crate) mod scatter_allgather;

use crate::problem::Problem;
use crate::schedule::Peer;

/// The place of this process counted from the root.
fn from_root(problem: &Problem<'_>) -> u32 {
    (problem.rank + problem.size - problem.root_rank()) % problem.size
}

/// The process at a place counted from the root.
fn peer(problem: &Problem<'_>, place: u32) -> Peer {
    Peer::Local((place + problem.root_rank()) % problem.size)
}
