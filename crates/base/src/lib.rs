//! The ground that every other room stands on: opaque user addresses, mapped memory, slabs, rings, the
//! atomics facade and the futex. Nothing here knows messages.

mod address;
pub mod process;

pub use address::{Scratch, UserAddress};
