//! The arithmetic of parallel files: which bytes of a file a view shows, and which process of several handles which part
//! of it. Knows no file, no process and no message: numbers in, numbers out,
//! but for bytes that it copies between memory that looks like a view's file and a stream.
#![forbid(unsafe_code)]

mod domains;
mod stretch;
mod view;

pub use domains::Domains;
pub use stretch::{LONGEST_HOLE_IN_PAGES, Limits, Stretch, mapping_pays};
pub use view::{Run, View, ViewError};
