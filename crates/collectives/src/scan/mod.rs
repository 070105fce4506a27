//! MPI_Scan. All algorithms keep the order of the ranks.

pub(crate) mod board;
pub(crate) mod linear;
pub(crate) mod recursive_doubling;
