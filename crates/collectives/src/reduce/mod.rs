//! MPI_Reduce.

pub(crate) mod binomial;
pub(crate) mod board;
pub(crate) mod direct;
pub(crate) mod linear;
pub(crate) mod nodes;
pub(crate) mod reduce_scatter_gather;
