//! Segments: memory that the processes of one node share for as long as they need it, with locks for its parts.
//!
//! ```text
//! 0             head: how many have it open
//! + LINE        guards: two lines for each member
//! next page     data
//! ```
//! One process makes a segment and tells the others its name. The last one that lets go of it gives its memory back, so nobody
//! may let go before all have opened it.
//!
//! To make, map and unmap memory costs many calls of the kernel. So everybody keeps the short segments mapped that it has let go of last, and who has
//! made one takes it again for the next that is as long, once nobody has it open. When its maker keeps it no longer, it ends as others do.

use crate::core::Core;
use crate::interface::{PortalError, ProcessId};
use parnass_base::access::{Access, AccessLock};
use parnass_base::atomics::{AtomicU32, Ordering, full_fence};
use parnass_base::copy::LINE;
use parnass_base::lock::Lock;
use parnass_base::{PAGE, Placed, Record, Table, UserAddress, Window, Word64, record};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

record! {
    #[derive(Debug)]
    #[repr(align(64))]
    struct Head {
        /// How many have it open, and [`KEPT`].
        users: AtomicU32,
        /// How often it has been made again.
        again: AtomicU32,
        rest: [AtomicU32; 14],
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

/// How many segments a process keeps, and the longest of them in bytes.
const MOST_KEPT: usize = 8;
const LONGEST_KEPT: usize = 1 << 20;

/// Stands among the users: its maker keeps it when nobody has it open.
const KEPT: u32 = 1 << 31;

/// A segment that this process has made, for it to open too.
#[derive(Debug)]
pub struct Made {
    name: u64,
    window: Window,
}

impl Made {
    /// By which the others open it.
    pub fn name(&self) -> u64 {
        self.name
    }
}

#[derive(Debug)]
struct Kept {
    name: u64,
    window: Window,
    /// For how many it was.
    members: usize,
    /// This process has made it.
    mine: bool,
}

/// What a process keeps of the segments that it has let go of, the last one at the end.
#[derive(Debug, Default)]
pub struct KeptSegments {
    kept: Mutex<VecDeque<Kept>>,
}

impl KeptSegments {
    fn kept(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One that this process has made, for so many members and of this length, which nobody has open.
    fn take_unused(&self, members: usize, length: usize) -> Option<Made> {
        let mut kept = self.kept();
        // Acquire pairs with the decrement in the drop of a segment: what its users have done comes before.
        let unused = |window: &Window| window.record::<Head>(0).users.load(Ordering::Acquire) == KEPT;
        let is_it = |one: &Kept| one.mine && one.members == members && one.window.len() == length;
        let index = kept.iter().rposition(|one| is_it(one) && unused(&one.window))?;
        kept.remove(index).map(|Kept { name, window, .. }| Made { name, window })
    }

    /// The one with this name.
    fn take(&self, name: u64, length: usize) -> Option<Window> {
        let mut kept = self.kept();
        let index = kept.iter().position(|one| one.name == name && one.window.len() == length)?;
        kept.remove(index).map(|one| one.window)
    }

    fn keep(&self, core: &Core, one: Kept) {
        let mut kept = self.kept();
        kept.push_back(one);
        let oldest = if kept.len() > MOST_KEPT { kept.pop_front() } else { None };
        drop(kept);
        let Some(Kept { name, window, mine: true, .. }) = oldest else { return };
        // As in the drop of a segment: either this process has the last word, or its last user.
        if window.record::<Head>(0).users.fetch_and(!KEPT, Ordering::AcqRel) == KEPT {
            core.transport.end_segment(name, window.len());
        }
    }
}

/// A segment, as one of its members sees it.
pub struct Segment {
    core: Arc<Core>,
    name: u64,
    mine: bool,
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
    /// Makes a segment for so many members and so many bytes of data.
    pub(crate) fn make(core: &Core, members: u32, data_bytes: usize) -> Result<Made, PortalError> {
        let head_bytes = data_at(members as usize);
        let length = head_bytes.saturating_add(data_bytes);
        if let Some(made) = core.segments.take_unused(members as usize, length) {
            made.window.table::<Word64>(LINE, (head_bytes - LINE) / 8).iter().for_each(|word| word.set(0));
            made.window.record::<Head>(0).again.fetch_add(1, Ordering::Relaxed);
            return Ok(made);
        }
        let failed = |error| no_memory("make a segment of", length, &error);
        let name = core.transport.make_segment(length).map_err(failed)?;
        let window = core.transport.open_segment(name, length).map_err(failed)?;
        if let Err(error) = window.reserve(0, head_bytes) {
            core.transport.end_segment(name, length);
            return Err(failed(error));
        }
        if length <= LONGEST_KEPT {
            window.record::<Head>(0).users.store(KEPT, Ordering::Relaxed);
        }
        Ok(Made { name, window })
    }

    /// `made` at its maker.
    pub(crate) fn open(
        core: &Arc<Core>,
        name: u64,
        made: Option<Made>,
        members: Box<[ProcessId]>,
        data_bytes: usize,
    ) -> Result<Segment, PortalError> {
        let length = data_at(members.len()).saturating_add(data_bytes);
        let mine = made.is_some();
        let window = match made.map(|made| made.window).or_else(|| core.segments.take(name, length)) {
            Some(window) => window,
            None => core
                .transport
                .open_segment(name, length)
                .map_err(|error| no_memory("map a segment of", length, &error))?,
        };
        let head = window.record::<Head>(0);
        head.users.fetch_add(1, Ordering::Relaxed);
        Ok(Segment {
            core: Arc::clone(core),
            name,
            mine,
            head,
            guards: window.table(LINE, members.len()),
            window,
            members,
            holder: core.transport.holder(),
            spins: core.transport.spins().min(UPDATE_SPINS),
        })
    }

    /// Makes sure that memory stands behind a part of the data, and that it is zero. To be called once for each part, before it is used.
    ///
    /// # Errors
    /// There is none left.
    pub fn reserve(&self, offset: usize, length: usize) -> Result<(), PortalError> {
        self.window
            .reserve(data_at(self.members.len()) + offset, length)
            .map_err(|error| no_memory("reserve", length, &error))?;
        if self.head.again.load(Ordering::Relaxed) > 0 {
            self.address(offset, length).write_zeros(length);
        }
        Ok(())
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
        let users = self.head.users.fetch_sub(1, Ordering::AcqRel);
        if users & KEPT != 0 {
            let members = self.members.len();
            let kept = Kept { name: self.name, window: self.window.clone(), members, mine: self.mine };
            self.core.segments.keep(&self.core, kept);
        } else if users == 1 {
            self.core.transport.end_segment(self.name, self.window.len());
        }
    }
}
