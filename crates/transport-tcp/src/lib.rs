//! TCP between the ranks of several machines.
//!
//! Reading order: `wire` and `proof`, what is said; `handshake`, who may speak; `seal`, what is encrypted; `address`, where peers are;
//! `outgoing` and `incoming`, the two directions of a stream; `link`, the connections of a process; `keeper`, the thread
//! that makes them; `transport`, what the layers above see.
#![forbid(unsafe_code)]

mod address;
#[doc(hidden)]
pub mod fuzzing;
mod handshake;
mod incoming;
mod keeper;
mod link;
mod outgoing;
mod proof;
mod seal;
mod transport;
#[rustfmt::skip]
#[expect(clippy::derivable_impls, reason = "generated: with other defaults it could not be derived")]
mod tuning;
mod wire;

pub use address::{INTERFACE_VARIABLE, Selection};
pub use handshake::Refusal;
pub use link::{Loss, Refusals};
pub use transport::{Listener, Tcp, machine_of};
pub use tuning::Tuning;
