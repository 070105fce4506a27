//! Libfabric between the ranks of several machines, found at run time.
//!
//! What is said over streams, and who may speak, is in `parnass-transport-stream`. Reading order here: `abi`, libfabric as C has
//! it; `library`, how it is found and what it offers; `provider`, which of it is taken; `endpoint`, sending and receiving
//! with it; `wire` and `address`, packets and where peers are; `engine`, what goes in and out; `fabric`, that as streams;
//! `keeper`, the thread that looks after it; `transport`, how all is put together.

mod abi;
mod address;
mod endpoint;
mod engine;
mod fabric;
#[doc(hidden)]
pub mod fuzzing;
mod keeper;
mod library;
mod provider;
#[cfg(test)]
mod strangers;
mod transport;
mod wire;

pub use parnass_transport_stream::{Books, INTERFACE_VARIABLE, Loss, Refusal, Refusals, Selection, Tuning};
pub use provider::Reads;
pub use transport::{Listener, Ofi, Survey, has_hardware, provider_of, survey};
