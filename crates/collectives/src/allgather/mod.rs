//! MPI_Allgather and MPI_Allgatherv.

pub(crate) mod board;
pub(crate) mod bruck;
pub(crate) mod direct;
pub(crate) mod gather_bcast;
pub(crate) mod nodes;
pub(crate) mod recursive_doubling;
pub(crate) mod ring;
