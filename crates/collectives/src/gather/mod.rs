//! MPI_Gather and MPI_Gatherv.

pub(crate) mod binomial;
pub(crate) mod board;
pub(crate) mod linear;
pub(crate) mod vector;
