//! TCP between the ranks of several machines.
//!
//! What is said over connections, and who may speak, is in `parnass-transport-stream`. Reading order here: `address`, where
//! peers are; `sockets`, the connections of a process; `keeper`, the thread that makes them; `port`, how worlds that know nothing of
//! each other meet; `transport`, how all is put together.
#![forbid(unsafe_code)]

mod address;
#[doc(hidden)]
pub mod fuzzing;
mod keeper;
mod port;
mod sockets;
mod transport;

pub use parnass_transport_stream::{Books, INTERFACE_VARIABLE, Loss, Refusal, Refusals, Selection, Tuning};
pub use parnass_transport_stream::{Pair, pair_key, world_name};
pub use port::{Port, Talk, Visit, call};
pub use transport::{Acquaintance, Listener, Tcp, admit, machine_of};
