//! The memory of one virtual NIC, as seen by whoever holds its lock.
//!
//! ```text
//! 0                control: lock, slab, lists, index
//! PAGE             tables of the priority list
//! + TABLES_BYTES   tables of the unexpected messages
//! + TABLES_BYTES   tables of the overflow list
//! + TABLES_BYTES   receives that are not posted yet
//! + PARKED_BYTES   records
//! ```

use crate::index::{Class, Classes, Posted, Side, SideControl, TABLES_BYTES, Unexpected};
use crate::parked::{PARKED_BYTES, Parked};
use crate::record::{CLASSES, kind};
use crate::slab::{ListControl, Slab, SlabControl};
use parnass_base::atomics::AtomicU32;
use parnass_base::desk::Desk;
use parnass_base::lock::Lock;
use parnass_base::{PAGE, Placed, Window, Word32, Word64, record};
use parnass_counters::Counters;
use std::mem::offset_of;

/// Portal table entries.
pub const PORTALS: usize = 64;
/// Event queues besides the owner's main one.
pub const QUEUES: usize = 8;
/// Counting events.
pub const COUNTERS: usize = 64;

record! {
    /// A portal table entry.
    #[derive(Debug)]
    pub struct Portal {
        /// 0 open, 1 open until the first drop, 2 closed.
        pub state: Word32,
        /// The queue of its events.
        pub queue: Word32,
        /// Messages that nobody accepted.
        pub dropped: Word64,
    }
}

record! {
    /// A counting event.
    #[derive(Debug)]
    pub struct Counter {
        pub success: Word64,
        pub failure: Word64,
    }
}

record! {
    /// First page of a NIC. Zeroed memory is a NIC in which nothing has happened.
    #[derive(Debug)]
    #[repr(align(64))]
    pub struct Control {
        pub lock: [Lock; 16],
        /// What others ask the owner to do to its memory. Needs no lock.
        pub desk: Desk,
        /// Direct puts of the owner that were matched, since it last looked.
        pub calls: AtomicU32,
        /// Transfers of which the owner may claim something.
        pub unclaimed: AtomicU32,
        /// Pipes to the owner that were ever begun.
        pub piped: AtomicU32,
        /// The record of the message that is held, see [`crate::search`]; or 0.
        pub held: Word32,
        /// Events for the owner.
        pub events: ListControl,
        /// Further event queues.
        pub queues: [ListControl; QUEUES],
        pub portals: [Portal; PORTALS],
        pub counters: [Counter; COUNTERS],
        /// Matched messages whose data moves.
        pub transfers: ListControl,
        pub order: Word64,
        /// Messages dropped since they were of no known kind.
        pub dropped: Word64,
        /// Bytes of bulk memory that the owner uses for unexpected messages.
        pub kept: Word64,
        slab: SlabControl,
        posted: SideControl,
        unexpected: SideControl,
        overflow: SideControl,
        classes: [Class; CLASSES],
    }
}

const _: () = assert!(size_of::<Control>() <= PAGE);

/// A view of a NIC. Everything in it needs the lock, except hints.
#[derive(Debug)]
pub struct Nic {
    pub control: Placed<Control>,
    pub slab: Slab,
    pub posted: Posted,
    pub unexpected: Unexpected,
    pub overflow: Posted,
    pub classes: Classes,
    pub parked: Parked,
    /// What its owner counts.
    pub counters: Counters,
}

impl Nic {
    /// The NIC that lies in `memory`, whose owner counts in `counters`.
    pub fn new(memory: &Window, counters: &Window) -> Nic {
        let tables = PAGE;
        let parked = tables + 3 * TABLES_BYTES;
        let records = parked + PARKED_BYTES;
        let side = |control: usize, number: usize| {
            let window = memory.window(tables + number * TABLES_BYTES, TABLES_BYTES);
            Side::new(memory.record(control), window, Counters::new(counters))
        };
        Nic {
            control: memory.record(0),
            slab: Slab::new(
                memory.record(offset_of!(Control, slab)),
                memory.window(records, memory.len() - records),
            ),
            posted: Posted(side(offset_of!(Control, posted), 0)),
            unexpected: Unexpected(side(offset_of!(Control, unexpected), 1)),
            overflow: Posted(side(offset_of!(Control, overflow), 2)),
            classes: Classes(memory.record(offset_of!(Control, classes))),
            parked: Parked::new(memory.window(parked, PARKED_BYTES)),
            counters: Counters::new(counters),
        }
    }

    /// Whether the program has asked for any message that has not come.
    #[inline(always)]
    pub fn receives(&self) -> bool {
        self.posted.0.order().count.get() != 0 || self.parked.any()
    }

    /// The lock of this NIC.
    #[inline(always)]
    pub fn lock(&self) -> &Lock {
        &self.control.lock[0]
    }

    /// The next position in the order of postings and arrivals.
    #[inline(always)]
    pub fn next_order(&self) -> u64 {
        let order = self.control.order.get() + 1;
        self.control.order.set(order);
        order
    }

    /// Turns a record into an event in the queue.
    pub fn queue_event(&self, index: u32, detail: u32) {
        let entry = self.slab.at(index);
        entry.kind.set(kind::EVENT);
        entry.detail.set(detail);
        self.slab.push(&self.control.events, index);
    }
}
