//! TCP between the ranks of several machines.
//!
//! What is said over connections, and who may speak, is in `parnass-transport-stream`. Reading order here: `address`, where
//! peers are; `sockets`, the connections of a process; `keeper`, the thread that makes them; `transport`, how all is put
//! together.
#![forbid(unsafe_code)]

mod address;
#[doc(hidden)]
pub mod fuzzing;
mod keeper;
mod sockets;
mod transport;
#[rustfmt::skip]
#[expect(clippy::derivable_impls, reason = "generated: with other defaults it could not be derived")]
mod tuning;

pub use parnass_transport_stream::{INTERFACE_VARIABLE, Loss, Refusal, Refusals, Selection};
pub use transport::{Listener, Tcp, machine_of};
pub use tuning::Tuning;
