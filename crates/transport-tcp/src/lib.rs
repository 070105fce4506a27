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

pub use parnass_transport_stream::{INTERFACE_VARIABLE, Loss, Refusal, Refusals, Selection, Tuning};
pub use transport::{Listener, Tcp, machine_of};
