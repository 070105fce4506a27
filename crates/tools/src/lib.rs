//! The programs around the library: the compiler wrappers and the `parnass` command.

#![forbid(unsafe_code)]

pub mod bench;
pub mod counters;
pub mod doctor;
pub mod fortran;
pub mod info;
pub mod prefix;
pub mod probe;
pub mod protocols;
pub mod tune;
pub mod wrapper;
