//! MPI_Barrier.

pub(crate) mod dissemination;
pub(crate) mod linear;
