//! The memory of one virtual NIC, as seen by whoever holds its lock.
//!
//! ```text
//! 0                control: lock, slab, lists, index
//! PAGE             tables of the posted side
//! + TABLES_BYTES   tables of the unexpected side
//! + TABLES_BYTES   records
//! ```

use crate::index::{Class, Classes, Posted, Side, SideControl, TABLES_BYTES, Unexpected};
use crate::record::{CLASSES, kind};
use crate::slab::{ListControl, Slab, SlabControl};
use parnass_base::atomics::AtomicU32;
use parnass_base::lock::Lock;
use parnass_base::{PAGE, Placed, Window, Word64, record};
use std::mem::offset_of;

record! {
    /// First page of a NIC. Zeroed memory is a NIC in which nothing has happened.
    #[derive(Debug)]
    #[repr(align(64))]
    pub struct Control {
        pub lock: [Lock; 16],
        /// Direct puts of the owner that were matched, since it last looked.
        pub calls: AtomicU32,
        /// Transfers of which the owner may claim something.
        pub unclaimed: AtomicU32,
        /// Events for the owner.
        pub events: ListControl,
        /// Matched messages whose data moves.
        pub transfers: ListControl,
        pub order: Word64,
        /// Messages dropped since they were of no known kind.
        pub dropped: Word64,
        slab: SlabControl,
        posted: SideControl,
        unexpected: SideControl,
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
    pub classes: Classes,
}

impl Nic {
    /// The NIC that lies in `memory`.
    pub fn new(memory: &Window) -> Nic {
        let tables = PAGE;
        let records = tables + 2 * TABLES_BYTES;
        let posted =
            Side::new(memory.record(offset_of!(Control, posted)), memory.window(tables, TABLES_BYTES));
        let unexpected = Side::new(
            memory.record(offset_of!(Control, unexpected)),
            memory.window(tables + TABLES_BYTES, TABLES_BYTES),
        );
        Nic {
            control: memory.record(0),
            slab: Slab::new(
                memory.record(offset_of!(Control, slab)),
                memory.window(records, memory.len() - records),
            ),
            posted: Posted(posted),
            unexpected: Unexpected(unexpected),
            classes: Classes(memory.record(offset_of!(Control, classes))),
        }
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
