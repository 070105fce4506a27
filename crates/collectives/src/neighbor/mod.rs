//! The collective operations on the neighbours in a topology (MPI 5.0, section 8.6).

pub(crate) mod linear;
