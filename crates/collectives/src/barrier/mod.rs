//! MPI_Barrier.

pub(crate) mod binomial;
pub(crate) mod board;
pub(crate) mod dissemination;
pub(crate) mod linear;
pub(crate) mod nodes;
