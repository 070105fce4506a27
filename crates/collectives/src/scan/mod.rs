//! MPI_Scan. All algorithms keep the order of the ranks.

pub(crate) mod linear;
pub(crate) mod recursive_doubling;
