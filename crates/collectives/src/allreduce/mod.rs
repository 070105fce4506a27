//! MPI_Allreduce. Every algorithm gives bit for bit the same result at all processes.

pub(crate) mod board;
pub(crate) mod direct;
pub(crate) mod linear;
pub(crate) mod nodes;
pub(crate) mod rabenseifner;
pub(crate) mod recursive_doubling;
pub(crate) mod reduce_bcast;
pub(crate) mod ring;
