//! Records by index: allocation, and lists linked by index.

use crate::record::{Entry, kind};
use parnass_base::{Placed, Table, Window, Word32, record};

/// Records per step of reservation.
const STEP: u32 = 256;
/// Records that only completions may take, so that what is under way can always be finished.
const FOR_COMPLETIONS: u32 = 4096;
/// Records that arrivals leave for entries, so that a receive can be posted however much has arrived.
const FOR_POSTINGS: u32 = 65536;

record! {
    /// Zeroed memory is an empty slab.
    #[derive(Debug)]
    pub struct SlabControl {
        free: Word32,
        /// Records from here on have never been used; 0 counts as 1, since index 0 means none.
        fresh: Word32,
        reserved: Word32,
        used: Word32,
    }
}

record! {
    /// A list of records, linked by `next` and `previous`. Zeroed memory is an empty list.
    #[derive(Debug)]
    pub struct ListControl {
        pub head: Word32,
        pub tail: Word32,
        pub count: Word32,
        _pad: Word32,
    }
}

/// What an allocation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// An unexpected message: refused first; it waits in its mailbox then, and its sender with it.
    Arrival,
    /// An entry.
    Posting,
    /// An event: must succeed while there is any record left.
    Completion,
}

/// The slab of a NIC. All methods need the NIC's lock.
#[derive(Debug)]
pub struct Slab {
    control: Placed<SlabControl>,
    entries: Table<Entry>,
    window: Window,
}

impl Slab {
    /// The slab whose records fill `window`.
    pub fn new(control: Placed<SlabControl>, window: Window) -> Slab {
        let count = window.len() / size_of::<Entry>();
        Slab { control, entries: window.table(0, count), window }
    }

    /// The record at `index`.
    #[inline(always)]
    pub fn at(&self, index: u32) -> &Entry {
        &self.entries[index as usize]
    }

    /// Records from here on were never used.
    pub fn fresh(&self) -> u32 {
        self.control.fresh.get().min(self.entries.len() as u32)
    }

    /// Why there is no record left.
    pub fn shortage(&self) -> String {
        let used = self.control.used.get();
        if used + FOR_COMPLETIONS >= self.entries.len() as u32 {
            format!(
                "all {used} records of the network interface are in use: receive some of the messages first"
            )
        } else {
            format!("cannot reserve memory for more than {used} match entries and unexpected messages")
        }
    }

    /// A record, or 0 when there is none left for this purpose.
    #[inline]
    pub fn allocate(&self, purpose: Purpose) -> u32 {
        let control = &self.control;
        let left = self.entries.len() as u32 - control.used.get();
        let spared = match purpose {
            Purpose::Arrival => FOR_COMPLETIONS + FOR_POSTINGS,
            Purpose::Posting => FOR_COMPLETIONS,
            Purpose::Completion => 0,
        };
        if left <= spared {
            return 0;
        }
        let index = control.free.get();
        if index != 0 {
            control.free.set(self.at(index).next.get());
            control.used.set(control.used.get() + 1);
            return index;
        }
        self.allocate_fresh()
    }

    #[cold]
    fn allocate_fresh(&self) -> u32 {
        let control = &self.control;
        let index = control.fresh.get().max(1);
        if index as usize >= self.entries.len() {
            return 0;
        }
        if index >= control.reserved.get() {
            let from = control.reserved.get();
            let to = (from + STEP).min(self.entries.len() as u32);
            let bytes = |count: u32| count as usize * size_of::<Entry>();
            if self.window.reserve(bytes(from), bytes(to - from)).is_err() {
                return 0;
            }
            control.reserved.set(to);
        }
        control.fresh.set(index + 1);
        control.used.set(control.used.get() + 1);
        index
    }

    /// Gives a record back. Handles to it become stale.
    #[inline]
    pub fn release(&self, index: u32) {
        let entry = self.at(index);
        debug_assert_ne!(entry.kind.get(), kind::FREE);
        entry.kind.set(kind::FREE);
        entry.generation.set(entry.generation.get().wrapping_add(1));
        entry.next.set(self.control.free.get());
        self.control.free.set(index);
        self.control.used.set(self.control.used.get() - 1);
    }

    /// A handle that names this record until it is given back.
    #[inline]
    pub fn handle(&self, index: u32) -> u64 {
        u64::from(self.at(index).generation.get()) << 32 | u64::from(index)
    }

    /// The index behind a handle, unless it is stale.
    pub fn resolve(&self, handle: u64) -> Option<u32> {
        let index = handle as u32;
        if index == 0 || index >= self.control.fresh.get() {
            return None;
        }
        (self.at(index).generation.get() == (handle >> 32) as u32).then_some(index)
    }

    /// All records that were ever used.
    pub fn all(&self) -> impl Iterator<Item = u32> + use<> {
        1..self.control.fresh.get().max(1)
    }

    /// Appends a record to a list.
    #[inline]
    pub fn push(&self, list: &ListControl, index: u32) {
        let entry = self.at(index);
        let tail = list.tail.get();
        entry.next.set(0);
        entry.previous.set(tail);
        if tail == 0 {
            list.head.set(index)
        } else {
            self.at(tail).next.set(index)
        }
        list.tail.set(index);
        list.count.set(list.count.get() + 1);
    }

    /// Puts a record into a list that is kept by `order`.
    #[inline]
    pub fn insert(&self, list: &ListControl, index: u32) {
        let order = self.at(index).order.get();
        let (mut before, mut after) = (list.tail.get(), 0);
        while before != 0 && self.at(before).order.get() > order {
            after = before;
            before = self.at(before).previous.get();
        }
        let entry = self.at(index);
        entry.next.set(after);
        entry.previous.set(before);
        if before == 0 {
            list.head.set(index)
        } else {
            self.at(before).next.set(index)
        }
        if after == 0 {
            list.tail.set(index)
        } else {
            self.at(after).previous.set(index)
        }
        list.count.set(list.count.get() + 1);
    }

    /// Takes a record out of a list.
    #[inline]
    pub fn remove(&self, list: &ListControl, index: u32) {
        let entry = self.at(index);
        let (next, previous) = (entry.next.get(), entry.previous.get());
        if previous == 0 {
            list.head.set(next)
        } else {
            self.at(previous).next.set(next)
        }
        if next == 0 {
            list.tail.set(previous)
        } else {
            self.at(next).previous.set(previous)
        }
        list.count.set(list.count.get() - 1);
    }
}
