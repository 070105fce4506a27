//! Point-to-point communication (MPI 5.0, chapters 3 and 4): blocking and nonblocking sends and
//! receives, probes, partitioned operations.

pub(crate) mod alone;
mod blocking;
pub(crate) mod buffered;
pub(crate) mod described;
mod nonblocking;
pub(crate) mod partitioned;
mod probe;
pub mod protocol;
mod route;
pub(crate) mod staging;
pub(crate) mod transfer;

pub use buffered::BufferOwner;
pub use partitioned::{Incoming, Outgoing, Partitions};
pub use probe::{Matched, Message};
pub use route::Route;

/// When a send is complete (MPI 5.0, section 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendMode {
    /// When the buffer may be reused.
    Standard,
    /// At once: the message goes into the attached buffer if need be.
    Buffered,
    /// When a receive has matched the message.
    Synchronous,
    /// As standard; the program promises that a receive is posted.
    Ready,
}

/// The peer and the tag of one half of an exchange; wildcards where it is the receiving half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub rank: i32,
    pub tag: i32,
}
