//! Segments: memory that the processes of one node share for as long as they need it, with locks for its parts.
//!
//! ```text
//! 0             head: how many have it open
//! + LINE        guards: two lines for each member
//! next page     data
//! ```
//! One process makes a segment and tells the others its name. The last one that lets go of it gives its memory back, so nobody
//! may let go before all have opened it.

use crate::core::Core;
use crate::interface::{PortalError, ProcessId};
use parnass_base::access::{Access, AccessLock};
use parnass_base::atomics::{AtomicU32, Ordering, full_fence};
use parnass_base::copy::LINE;
use parnass_base::lock::Lock;
use parnass_base::{PAGE, Placed, Record, Table, UserAddress, Window, record};
use std::io;
use std::sync::Arc;

record! {
    #[derive(Debug)]
    #[repr(align(64))]
    struct Head {
        users: AtomicU32,
        rest: [AtomicU32; 15],
    }
}

record! {
    /// What guards the part of one member.
    #[derive(Debug)]
    #[repr(align(64))]
    struct Guard {
        /// Held by programs, for as long as they like.
        access: AccessLock,
        rest: [AtomicU32; 14],
        /// Held for the time of one update.
        update: Lock,
        rest_of_line: [AtomicU32; 15],
    }
}

const _: () = assert!(size_of::<Head>() == LINE && size_of::<Guard>() == 2 * LINE);

/// Tries for the lock of an update before sleeping, where there is a core for every rank.
const UPDATE_SPINS: u32 = 1000;

fn data_at(members: usize) -> usize {
    (LINE + members * size_of::<Guard>()).next_multiple_of(PAGE)
}

/// A segment, as one of its members sees it.
pub struct Segment {
    core: Arc<Core>,
    name: u64,
    window: Window,
    head: Placed<Head>,
    guards: Table<Guard>,
    members: Box<[ProcessId]>,
    holder: u32,
    spins: u32,
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "segment of {} members, {} bytes", self.members.len(), self.window.len())
    }
}

#[cold]
fn no_memory(what: &str, length: usize, error: &io::Error) -> PortalError {
    PortalError::OutOfMemory(format!("cannot {what} {length} bytes of shared memory: {error}"))
}

/// The right to update a part of a segment, until it is dropped, which orders memory as [`Segment::fence`] does on x86-64.
#[derive(Debug)]
pub struct Update<'a>(&'a Lock);

impl Drop for Update<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.release();
    }
}

impl Segment {
    /// Makes a segment for so many members and so many bytes of data; its name.
    pub(crate) fn make(core: &Core, members: u32, data_bytes: usize) -> Result<u64, PortalError> {
        let length = data_at(members as usize).saturating_add(data_bytes);
        let failed = |error| no_memory("make a segment of", length, &error);
        let name = core.transport.make_segment(length).map_err(failed)?;
        let window = core.transport.open_segment(name, length).map_err(failed)?;
        if let Err(error) = window.reserve(0, data_at(members as usize)) {
            core.transport.end_segment(name, length);
            return Err(failed(error));
        }
        Ok(name)
    }

    pub(crate) fn open(
        core: &Arc<Core>,
        name: u64,
        members: Box<[ProcessId]>,
        data_bytes: usize,
    ) -> Result<Segment, PortalError> {
        let length = data_at(members.len()).saturating_add(data_bytes);
        let window = core
            .transport
            .open_segment(name, length)
            .map_err(|error| no_memory("map a segment of", length, &error))?;
        let head = window.record::<Head>(0);
        head.users.fetch_add(1, Ordering::Relaxed);
        Ok(Segment {
            core: Arc::clone(core),
            name,
            head,
            guards: window.table(LINE, members.len()),
            window,
            members,
            holder: core.transport.holder(),
            spins: core.transport.spins().min(UPDATE_SPINS),
        })
    }

    /// Makes sure that memory stands behind a part of the data.
    ///
    /// # Errors
    /// There is none left.
    pub fn reserve(&self, offset: usize, length: usize) -> Result<(), PortalError> {
        self.window
            .reserve(data_at(self.members.len()) + offset, length)
            .map_err(|error| no_memory("reserve", length, &error))
    }

    /// The address of a part of the data in this process. It is good for as long as the segment is.
    pub fn address(&self, offset: usize, length: usize) -> UserAddress {
        self.window.address(data_at(self.members.len()) + offset, length)
    }

    /// A record in the data, which [`Segment::reserve`] has been called for.
    ///
    /// # Panics
    /// If it does not lie inside, or not aligned.
    pub fn record<T: Record>(&self, offset: usize) -> Placed<T> {
        self.window.record(data_at(self.members.len()) + offset)
    }

    /// Records in a row in the data. Those that are touched must have been reserved.
    ///
    /// # Panics
    /// As [`Segment::record`].
    pub fn table<T: Record>(&self, offset: usize, count: usize) -> Table<T> {
        self.window.table(data_at(self.members.len()) + offset, count)
    }

    /// Takes the access lock of a member, if that can be done now.
    #[inline]
    pub fn try_acquire(&self, member: u32, access: Access) -> bool {
        self.guards[member as usize].access.try_acquire(access)
    }

    /// Gives the access lock of a member back, and wakes those who wait for it; a full fence.
    #[inline]
    pub fn release(&self, member: u32, access: Access) {
        if self.guards[member as usize].access.release(access) {
            self.ring_all(member);
        }
    }

    /// Whether the access lock of a member can be had now.
    pub fn may_acquire(&self, member: u32, access: Access) -> bool {
        self.guards[member as usize].access.is_open(access)
    }

    /// This process is about to wait for the access lock of a member, or does so no longer.
    pub fn await_access(&self, member: u32, begins: bool) {
        let lock = &self.guards[member as usize].access;
        if begins { lock.begin_wait() } else { lock.end_wait() }
    }

    #[cold]
    fn ring_all(&self, owner: u32) {
        for member in &self.members {
            if member.0 != self.core.me {
                self.core.transport.ring_unfenced(member.0);
            }
        }
        // Another thread of this process may wait.
        self.core.transport.ring_always();
        // Or the owner for others, while it computes.
        self.core.transport.ring_helper(self.members[owner as usize].0);
    }

    /// Takes the lock under which the part of a member is updated.
    #[inline]
    pub fn update(&self, member: u32) -> Update<'_> {
        let lock = &self.guards[member as usize].update;
        if !lock.try_acquire(self.holder) {
            self.update_later(lock);
        }
        Update(lock)
    }

    #[cold]
    fn update_later(&self, lock: &Lock) {
        // Whoever died in an update has taken the job with him: what he left is looked at by nobody.
        lock.acquire(self.holder, self.spins, self.core.transport.holder_lives());
    }

    /// Everything that this process has done to memory comes before all that it does from now on.
    #[inline]
    pub fn fence() {
        full_fence();
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // AcqRel: what the others have done comes before its end.
        if self.head.users.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.core.transport.end_segment(self.name, self.window.len());
        }
    }
}
