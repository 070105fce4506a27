//! The C interface of MPI 5.0.

pub mod assemble;
