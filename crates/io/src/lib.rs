//! The arithmetic of parallel files: which bytes of a file a view shows, and which process of several handles which part
//! of it. Knows no file, no process and no message: numbers in, numbers out.
#![forbid(unsafe_code)]

mod domains;
mod view;

pub use domains::Domains;
pub use view::{Run, View, ViewError};
