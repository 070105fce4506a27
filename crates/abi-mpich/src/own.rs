//! Procedures that need more than a conversion for each argument, and those that MPICH's library has beyond the standard.

mod attributes;
mod datatypes;
mod functions;
mod further;
mod processes;
mod removed;
mod tool;

pub use attributes::*;
pub use datatypes::*;
pub use functions::*;
pub use processes::*;
pub use tool::*;
