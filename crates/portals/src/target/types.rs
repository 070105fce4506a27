//! What the state machine is asked, and what it answers.

use crate::interface::{List, ProcessId};

/// Properties of an entry, combined with `|`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options(pub(super) u32);

impl Options {
    /// Nothing in particular: the entry accepts no operation.
    pub const NONE: Options = Options(0);
    /// Puts are accepted.
    pub const PUT: Options = Options(1);
    /// Gets are accepted.
    pub const GET: Options = Options(1 << 1);
    /// Consumed by the first operation.
    pub const USE_ONCE: Options = Options(1 << 2);
    /// Each operation starts behind the previous one; else at the offset that the initiator gives.
    pub const MANAGE_LOCAL: Options = Options(1 << 3);
    /// What does not fit is not accepted; else it is truncated.
    pub const NO_TRUNCATE: Options = Options(1 << 4);
    /// No acknowledgement, even where the initiator asks for one.
    pub const ACK_DISABLE: Options = Options(1 << 5);
    /// When consumed, it stays in its list, inactive (Portals 3 without the unlink option).
    pub const KEEP_CONSUMED: Options = Options(1 << 6);
    /// No event when it is linked.
    pub const EVENT_LINK_DISABLE: Options = Options(1 << 7);
    /// No event when it is consumed and unlinked, or free.
    pub const EVENT_UNLINK_DISABLE: Options = Options(1 << 8);
    /// No event for operations on it.
    pub const EVENT_COMM_DISABLE: Options = Options(1 << 9);
    /// No event for messages that had arrived before it.
    pub const EVENT_OVER_DISABLE: Options = Options(1 << 10);
    /// Operations are counted.
    pub const COUNT_COMM: Options = Options(1 << 11);
    /// Messages that had arrived before it are counted.
    pub const COUNT_OVERFLOW: Options = Options(1 << 12);
    /// Counts bytes, not operations.
    pub const COUNT_BYTES: Options = Options(1 << 13);
    /// Overflow: messages are placed and then forgotten.
    pub const UNEXPECTED_HEADER_DISABLE: Options = Options(1 << 14);

    /// Whether all of `other` are set.
    pub const fn has(self, other: Options) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for Options {
    type Output = Options;

    fn bitor(self, other: Options) -> Options {
        Options(self.0 | other.0)
    }
}

/// A match entry with its memory descriptor.
#[derive(Clone, Copy, Debug)]
pub struct TargetEntry {
    /// 1 to 63.
    pub portal: u32,
    pub list: List,
    /// `None` matches any initiator.
    pub source: Option<ProcessId>,
    pub match_bits: u64,
    pub ignore_bits: u64,
    /// Where its memory starts; opaque.
    pub address: u64,
    pub length: u64,
    pub options: Options,
    /// Consumed when less than this is left behind the local offset; 0 for never.
    pub min_free: u64,
    /// Consumed when the local offset passes this (Portals 3.1).
    pub maximum_offset: Option<u64>,
    /// Operations until it is consumed; `Some(0)` is inactive, `None` never consumed by their number.
    pub threshold: Option<u32>,
    /// Where it counts.
    pub counter: Option<u32>,
    /// Where its events go, 0 to 7.
    pub queue: u32,
    /// Comes back in its events.
    pub user: u64,
}

/// What the initiator wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Put,
    Get,
}

/// An operation that arrives.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub operation: Operation,
    pub portal: u32,
    pub initiator: ProcessId,
    pub match_bits: u64,
    pub header_data: u64,
    pub length: u64,
    /// Used where the entry does not manage its offset itself.
    pub offset: u64,
    pub ack: bool,
}

/// Where the bytes of an accepted operation are: `[address, address + length)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    pub address: u64,
    pub length: u64,
}

/// What has become of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Accepted by an entry of this list, with so many bytes at this offset.
    Accepted { list: List, length: u64, offset: u64, acknowledge: bool },
    /// No entry wanted it, or its portal is closed; it has disappeared.
    Dropped,
}

/// What an event of the target tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetEventKind {
    Put,
    Get,
    /// A message that had arrived before this entry; its bytes are at `start`.
    PutOverflow,
    GetOverflow,
    Link,
    /// The entry was consumed and has left its list.
    AutoUnlink,
    /// No message lies in the memory of this overflow entry any more.
    AutoFree,
    Search,
    /// A search found nothing.
    SearchFailed,
    /// The first drop has closed the portal.
    PortalClosed,
}

pub(super) const KINDS: [TargetEventKind; 10] = [
    TargetEventKind::Put,
    TargetEventKind::Get,
    TargetEventKind::PutOverflow,
    TargetEventKind::GetOverflow,
    TargetEventKind::Link,
    TargetEventKind::AutoUnlink,
    TargetEventKind::AutoFree,
    TargetEventKind::Search,
    TargetEventKind::SearchFailed,
    TargetEventKind::PortalClosed,
];

/// A full event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetEvent {
    pub kind: TargetEventKind,
    pub user: u64,
    pub initiator: ProcessId,
    pub portal: u32,
    pub match_bits: u64,
    pub header_data: u64,
    pub requested_length: u64,
    pub placed_length: u64,
    /// Address of the first byte.
    pub start: u64,
    /// Local offset of the entry afterwards.
    pub local_offset: u64,
}

/// Why an entry was not taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnlinkError {
    /// Messages lie in its memory.
    InUse,
    /// It is not there any more.
    Gone,
}

/// What has become of a conditional update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Updated {
    Yes,
    /// The queue was not empty.
    NotUpdated,
    /// The entry is not there any more.
    Gone,
}
