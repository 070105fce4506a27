//! `libmpi.so.12`: the ABI of MPICH and its family, for programs that were built with MPICH's or Intel MPI's compilers.
//!
//! It holds no logic of its own. Each export converts its arguments to the standard's ABI, calls the procedure of
//! `libmpi_abi.so.1`, which lies beside it, and converts the results back. What a value is in either ABI stands in
//! `spec/constants.csv` and `spec/mpich-abi.csv`; the exports are made from `spec/procedures.jsonl` ([`generated`]), but for
//! those that need more than a conversion per argument ([`own`]).
//!
//! The standard's library is opened with a scope of its own and called through a table of addresses ([`load`]): both libraries
//! define MPI_Send, and a program or a tool that defines it too must get what it means.

pub mod arguments;
pub mod callbacks;
pub mod codes;
#[rustfmt::skip]
pub mod generated;
pub mod handles;
pub mod load;
pub mod own;
pub mod status;
