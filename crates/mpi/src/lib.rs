//! The MPI standard's semantics. Knows no wire and no C.
#![forbid(unsafe_code)]

pub mod error;

pub use error::{Error, Result};
