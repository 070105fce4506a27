//! MPI_Barrier.

pub(crate) mod binomial;
pub(crate) mod dissemination;
pub(crate) mod linear;
