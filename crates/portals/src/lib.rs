//! The virtual NIC. See ARCHITECTURE.md, "The virtual NIC: the heart".
#![forbid(unsafe_code)]

mod interface;

pub use interface::{
    Ack, Appended, EntryHandle, Event, EventKind, Interface, List, MatchEntry, PortalError, ProcessId,
    Protocol, Put, PutOutcome, SearchOperation, Ticket,
};
