//! MPI_Scatter and MPI_Scatterv. In place, the root keeps its block where it is.

pub(crate) mod binomial;
pub(crate) mod board;
pub(crate) mod linear;
pub(crate) mod vector;
