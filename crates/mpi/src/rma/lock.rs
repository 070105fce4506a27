//! Passive target communication (MPI 5.0, section 12.5.3): locks and flushes. No target takes part in any of it.

use super::Window;
use super::epoch::mark;
use crate::constants::*;
use crate::process::Process;
use crate::{Error, Result};
use parnass_portals::{Access, Segment};
use std::cell::Cell;

fn check_assertion(assertion: i32) -> Result<()> {
    if assertion & !MPI_MODE_NOCHECK == 0 {
        return Ok(());
    }
    Err(Error::new(
        MPI_ERR_ASSERT,
        format!("assert is {assertion}; only 0 and MPI_MODE_NOCHECK ({MPI_MODE_NOCHECK}) are allowed here"),
    ))
}

impl Window {
    /// MPI_Win_lock.
    pub fn lock(&self, process: &Process, kind: i32, rank: i32, assertion: i32) -> Result<()> {
        let (access, kind) = match kind {
            MPI_LOCK_SHARED => (Access::Shared, mark::SHARED),
            MPI_LOCK_EXCLUSIVE => (Access::Exclusive, mark::EXCLUSIVE),
            _ => {
                return Err(Error::new(
                    MPI_ERR_LOCKTYPE,
                    format!("lock_type is {kind}; it must be MPI_LOCK_SHARED or MPI_LOCK_EXCLUSIVE"),
                ));
            }
        };
        check_assertion(assertion)?;
        if rank == MPI_PROC_NULL {
            return Ok(());
        }
        self.check_rank(rank)?;
        if self.epochs.is_all_locked() || self.epochs.marks(rank) != 0 {
            return Err(Error::new(
                MPI_ERR_RMA_SYNC,
                format!(
                    "an epoch for rank {rank} of {} is open already; close it before the next MPI_Win_lock",
                    self.describe()
                ),
            ));
        }
        let unchecked = assertion & MPI_MODE_NOCHECK != 0;
        if !unchecked {
            self.acquire(process, rank, access)?;
        }
        self.epochs.set(rank, if unchecked { kind | mark::UNCHECKED } else { kind });
        Ok(())
    }

    /// MPI_Win_unlock.
    pub fn unlock(&self, process: &Process, rank: i32) -> Result<()> {
        if rank == MPI_PROC_NULL {
            return Ok(());
        }
        self.check_rank(rank)?;
        let marks = self.epochs.marks(rank);
        if marks & mark::LOCKED == 0 {
            return Err(self.not_locked(rank));
        }
        self.epochs.set(rank, 0);
        self.settle(process, rank)?;
        if marks & mark::UNCHECKED != 0 {
            Segment::fence();
            return Ok(());
        }
        let access = if marks & mark::SHARED != 0 { Access::Shared } else { Access::Exclusive };
        self.release(process, rank, access)
    }

    /// MPI_Win_lock_all.
    pub fn lock_all(&self, process: &Process, assertion: i32) -> Result<()> {
        check_assertion(assertion)?;
        self.epochs.require_no_access(self)?;
        let unchecked = assertion & MPI_MODE_NOCHECK != 0;
        if !unchecked {
            self.acquire_all(process)?;
        }
        self.epochs.set_all_locked(true, unchecked);
        Ok(())
    }

    /// MPI_Win_unlock_all.
    pub fn unlock_all(&self, process: &Process) -> Result<()> {
        if !self.epochs.is_all_locked() {
            return Err(Error::new(
                MPI_ERR_RMA_SYNC,
                format!("{} is not locked by MPI_Win_lock_all; call that first", self.describe()),
            ));
        }
        let unchecked = self.epochs.all_unchecked();
        self.epochs.set_all_locked(false, false);
        self.settle_all(process)?;
        Segment::fence();
        if !unchecked {
            for rank in 0..self.size() {
                self.release(process, rank, Access::Shared)?;
            }
        }
        Ok(())
    }

    /// MPI_Win_flush and MPI_Win_flush_local.
    #[inline(always)]
    pub fn flush(&self, process: &Process, rank: i32) -> Result<()> {
        if rank == MPI_PROC_NULL {
            return Ok(());
        }
        self.check_rank(rank)?;
        if !self.epochs.is_locked(rank) {
            return Err(self.not_locked(rank));
        }
        self.settle(process, rank)?;
        self.unordered.order();
        Ok(())
    }

    /// MPI_Win_flush_all and MPI_Win_flush_local_all.
    pub fn flush_all(&self, process: &Process) -> Result<()> {
        if !(0..self.size()).any(|rank| self.epochs.is_locked(rank)) {
            return Err(Error::new(
                MPI_ERR_RMA_SYNC,
                format!(
                    "no rank of {} is locked; call MPI_Win_lock or MPI_Win_lock_all first",
                    self.describe()
                ),
            ));
        }
        self.settle_all(process)?;
        self.unordered.order();
        Ok(())
    }

    /// MPI_Win_sync.
    pub fn sync(&self) {
        Segment::fence();
    }

    #[inline(always)]
    pub(super) fn check_rank(&self, rank: i32) -> Result<()> {
        match self.targets.get(rank as usize) {
            Some(_) => Ok(()),
            None => Err(self.bad_rank(rank)),
        }
    }

    #[cold]
    fn not_locked(&self, rank: i32) -> Error {
        Error::new(
            MPI_ERR_RMA_SYNC,
            format!(
                "rank {rank} of {} is not locked; call MPI_Win_lock or MPI_Win_lock_all first",
                self.describe()
            ),
        )
    }

    /// Takes the lock of a rank, once that can be done.
    fn acquire(&self, process: &Process, rank: i32, access: Access) -> Result<()> {
        let Some(member) = self.targets[rank as usize].member else {
            return self.far_lock(process, rank, access, true);
        };
        if self.segment.try_acquire(member, access) {
            return Ok(());
        }
        self.segment.await_access(member, true);
        let mine = Cell::new(false);
        process.wait_watching(None, &|| {
            if !mine.get() {
                mine.set(self.segment.try_acquire(member, access));
            }
            // Whoever holds it may be dead.
            mine.get() || process.fault_of_all(&self.communicator).is_some()
        });
        self.segment.await_access(member, false);
        if mine.get() { Ok(()) } else { process.check_all(&self.communicator) }
    }

    fn release(&self, process: &Process, rank: i32, access: Access) -> Result<()> {
        match self.targets[rank as usize].member {
            Some(member) => self.segment.release(member, access),
            None => self.far_lock(process, rank, access, false)?,
        }
        Ok(())
    }

    /// Shares the locks of all ranks. Of this node's, nothing is held while one is waited for but that one, so that no two
    /// processes wait for each other.
    fn acquire_all(&self, process: &Process) -> Result<()> {
        let near = |rank: &i32| self.targets[*rank as usize].member;
        for rank in (0..self.size()).filter(|rank| near(rank).is_none()) {
            self.acquire(process, rank, Access::Shared)?;
        }
        let mut held = None;
        loop {
            let others = (0..self.size()).filter(|rank| Some(*rank) != held);
            let mut taken = Vec::new();
            let mut refused = None;
            for (rank, member) in others.filter_map(|rank| Some((rank, near(&rank)?))) {
                if !self.segment.try_acquire(member, Access::Shared) {
                    refused = Some(rank);
                    break;
                }
                taken.push(rank);
            }
            let Some(refused) = refused else { return Ok(()) };
            for rank in taken.into_iter().chain(held) {
                self.release(process, rank, Access::Shared)?;
            }
            self.acquire(process, refused, Access::Shared)?;
            held = Some(refused);
        }
    }
}
