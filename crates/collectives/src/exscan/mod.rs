//! MPI_Exscan. All algorithms keep the order of the ranks; the result of rank 0 is not written.

pub(crate) mod board;
pub(crate) mod linear;
pub(crate) mod recursive_doubling;
