//! The virtual NIC. See ARCHITECTURE.md, "The virtual NIC: the heart".
#![forbid(unsafe_code)]

mod core;
mod event_list;
mod helper;
mod index;
mod interface;
mod message;
mod nic;
mod progress;
mod receive_soon;
mod record;
mod send;
mod slab;
pub mod target;
mod transfer;

pub use interface::{
    Ack, Appended, EntryHandle, Event, EventKind, Interface, List, MatchEntry, PortalError, ProcessId,
    Protocol, Put, PutOutcome, SearchOperation, Ticket,
};
