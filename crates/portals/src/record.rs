//! The one kind of record a NIC is made of.
//!
//! A record is a posted entry, an unexpected message, a matched transfer or an event, and often one after the
//! other: a posted entry whose message is long becomes the transfer and then its event, in place.

use parnass_base::atomics::AtomicU64;
use parnass_base::{Word32, Word64, record};

/// Index classes that have a chain of their own in a record; see [`crate::index`].
pub const CLASSES: usize = 4;
/// The source of an entry that takes messages from anybody.
pub const ANY: u32 = u32::MAX;
/// Bytes of data that an unexpected message keeps in its own record.
pub const INLINE_BYTES: usize = 40;

/// What a record is.
pub mod kind {
    pub const FREE: u32 = 0;
    /// Waits in a match list.
    pub const POSTED: u32 = 1;
    /// A message that no entry has matched.
    pub const UNEXPECTED: u32 = 2;
    /// An unexpected message that a search took.
    pub const TAKEN: u32 = 3;
    /// A matched message whose data still moves.
    pub const TRANSFER: u32 = 4;
    /// Waits in the event queue.
    pub const EVENT: u32 = 5;
    /// An overflow entry out of its list, in whose memory unexpected messages still lie.
    pub const DRAINING: u32 = 6;
    /// A further memory descriptor of a match entry, which waits for its turn.
    pub const BEHIND: u32 = 7;
}

/// Properties of a message.
pub mod flag {
    /// The initiator wants to know of the match.
    pub const ACK: u32 = 1;
    /// The data is in a bulk piece.
    pub const BULK: u32 = 2;
    /// The data is in the initiator's memory.
    pub const DIRECT: u32 = 4;
    /// Event: one that its initiator has counted on.
    pub const AWAITED: u32 = 8;
    /// The data lies in the memory of an overflow entry.
    pub const OVERFLOW: u32 = 16;
    /// A get, not a put.
    pub const GET: u32 = 32;
    /// The data comes through a pipe.
    pub const PIPED: u32 = 64;
    /// The bulk piece is the owner's own: the message came through the mailbox.
    pub const KEPT: u32 = 128;
    /// The data is a payload that the network keeps.
    pub const STREAM: u32 = 256;
    /// The data was put aside, see [`crate::search`].
    pub const ASIDE: u32 = 512;
}

record! {
    /// The record: three cache lines. What receiving a short unexpected message needs, up to 8 bytes of data among it, is in the first.
    #[derive(Debug)]
    #[repr(align(64))]
    pub struct Entry {
        /// What it is, see [`kind`].
        pub kind: Word32,
        /// Raised whenever the record is freed, so that old handles are recognised.
        pub generation: Word32,
        /// Posted: the source asked for, or [`ANY`]. Else the initiator.
        pub source: Word32,
        /// Posted: its index class. Short unexpected message: its bytes.
        pub class: Word32,
        /// Posted: its [`crate::target::Options`]. Else bits of [`flag`].
        pub flags: Word32,
        /// Posted, unexpected: the portal. Event: its kind. Transfer: whether it has failed.
        pub detail: Word32,
        pub match_bits: Word64,
        pub header_data: Word64,
        /// In the order list, the event queue, the list of transfers or the free list.
        pub next: Word32,
        pub previous: Word32,
        /// Chain of class 0 of the index: next and previous.
        chain: [Word32; 2],
        /// Posted, transfer, event: what the event carries.
        pub user: Word64,
        pub ignore_bits: Word64,
        /// Posted, transfer: memory of the NIC's owner.
        pub address: Word64,
        /// Posted: its room. Transfer, event: bytes placed.
        pub length: Word64,
        /// Direct: the address at the initiator. Bulk: the piece. Posted, plain: for whom it is kept, see [`crate::partial`].
        pub remote: Word64,
        /// Bytes of the message as sent.
        pub requested: Word64,
        /// Position in the order of posting or of arrival.
        pub order: Word64,
        /// What the events at the initiator carry.
        pub remote_user: Word64,
        /// Chains of the other classes.
        chains: [[Word32; 2]; CLASSES - 1],
        /// Transfer: progress, see [`crate::transfer`]. Posted: what its options need, see [`crate::target`].
        pub data: [AtomicU64; 6],
    }
}

impl Entry {
    /// The next and the previous record in the chain of a class.
    #[inline(always)]
    pub fn links(&self, class: usize) -> &[Word32; 2] {
        if class == 0 { &self.chain } else { &self.chains[class - 1] }
    }

    /// The data of an unexpected message, if it is short: in words that are set only when it is received. It leaves alone the word by
    /// which parts of a transfer are claimed: whoever comes late looks there, though the record has been given to somebody else.
    #[inline(always)]
    pub fn short(&self) -> [&Word64; INLINE_BYTES / 8] {
        [&self.user, &self.ignore_bits, &self.address, &self.length, &self.remote]
    }
}

const _: () = assert!(std::mem::offset_of!(Entry, ignore_bits) == 64);

const _: () = assert!(size_of::<Entry>() == 192);
