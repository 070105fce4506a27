//! The virtual NIC: matching, memory descriptors, events. It knows no MPI, no socket, no clock and no pointer.
//!
//! Every process has a NIC, which lies in memory that its peers see too. [`Interface`] is a process's door to it.
//! Reading order:
//!
//! * [`Interface`]: what the layer above may ask, and what it is told;
//! * `message`: what travels; `record`, `slab`, `index`, `nic`: what a NIC's memory holds, and how a match is found;
//! * `core`: taking in arrivals, matching, receiving; `send`: puts on their way out;
//! * `memory`: where the bytes of a message lie, and how they are copied;
//! * `transfer`: long messages, moved by whoever waits; `progress`: turning the wheel, and waiting;
//! * `far`: peers on other nodes; `travel`: what is counted of messages;
//! * `receive_soon`: the short way of a blocking receive; `parked`: that of a nonblocking one; `search`: probes; `helper`: the thread for a process that computes;
//! * `board`: memory that a group shares, for collectives that do without messages;
//! * `remote`: memory of another process, reached by the kernel or, see `errand`, with its help;
//! * `segment`: memory that a group shares, with locks, for one-sided communication;
//! * [`target`]: the semantics of Portals 4 and Portals 3 in full, on the same records.
//!
//! **Whoever holds a NIC's lock may drive it, and nobody holds two.** What a driver finds out for others is delivered after
//! the release.
#![forbid(unsafe_code)]

mod attendance;
mod board;
mod core;
mod errand;
mod event_list;
mod failure;
mod far;
mod hand;
mod helper;
mod index;
mod interface;
mod lent;
mod live;
mod memory;
mod message;
mod named;
mod nic;
mod outside;
mod parked;
mod partial;
mod pipe;
mod progress;
mod receive_soon;
mod record;
mod remote;
mod search;
mod segment;
mod send;
mod slab;
mod stay;
pub mod target;
mod transfer;
mod travel;
#[rustfmt::skip]
mod tuning;
mod usual;
mod ways;
mod wheel;
mod withdraw;

pub use board::{Board, NO_MEMORY, Reading, WITHDRAWN, piece_bytes as board_bytes};
pub use errand::{UpdateWords, Updater};
pub use lent::LentBlock;
pub use live::{CROWD, copies_once, piped_most};
pub use memory::{Descriptions, Memory, Stream};

pub use interface::{
    Ack, Appended, Company, EntryHandle, Event, EventKind, Interface, List, MatchEntry, PortalError,
    ProcessId, Protocol, Put, PutOutcome, Received, SearchOperation, Sink, Ticket, Wheel,
};
pub use outside::{Inside, Lying, look_inside};
pub use parnass_base::access::Access;
pub use parnass_base::lane::{ShortBytes, write_words};
pub use parnass_transport::{Follow, MemoryError};
pub use remote::RemoteCopy;
pub use segment::{Made as MadeSegment, Segment, Update};
pub use send::{EXCHANGED_IN_MAILBOX, EXCHANGED_MOST};
pub use tuning::Tuning;

/// Longest message, in bytes, that travels inside one record of a mailbox.
pub const RECORD_BYTES: usize = message::INLINE_ROOM;
