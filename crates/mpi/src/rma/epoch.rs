//! Epochs: when a process may reach a target (MPI 5.0, section 12.5).

use super::{Window, guard};
use crate::constants::*;
use crate::request::Operation;
use crate::{Error, Result};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// Opened by a fence.
const FENCED: u32 = 1;
/// Opened by MPI_Win_lock_all.
const ALL: u32 = 2;
/// MPI_Win_start has been called, and opened those of its targets.
const STARTED: u32 = 4;
/// MPI_Win_post has been called: not an epoch of this process's own accesses.
const EXPOSED: u32 = 8;

/// What opened the epoch for one target.
pub mod mark {
    /// MPI_Win_lock, with MPI_LOCK_SHARED.
    pub const SHARED: u8 = 1;
    /// MPI_Win_lock, with MPI_LOCK_EXCLUSIVE.
    pub const EXCLUSIVE: u8 = 2;
    /// The lock was not really taken (MPI_MODE_NOCHECK).
    pub const UNCHECKED: u8 = 4;
    /// MPI_Win_start.
    pub const STARTED: u8 = 8;
    /// Any lock.
    pub const LOCKED: u8 = SHARED | EXCLUSIVE;
}

/// The epochs of a process on a window.
#[derive(Debug)]
pub struct Epochs {
    /// Epochs for all targets, and what else is open.
    all: AtomicU32,
    /// Those for single targets.
    each: Box<[AtomicU8]>,
    /// Whether MPI_Win_lock_all was told that no lock is needed.
    unchecked: AtomicU32,
    /// The targets of MPI_Win_start, in its order.
    started: Mutex<Option<Vec<i32>>>,
    /// What MPI_Win_wait waits for, while this process exposes its memory.
    pub exposed: Mutex<Option<Vec<Operation>>>,
}

impl Epochs {
    /// None.
    pub fn new(size: usize) -> Epochs {
        Epochs {
            all: AtomicU32::new(0),
            each: (0..size).map(|_| AtomicU8::new(0)).collect(),
            unchecked: AtomicU32::new(0),
            started: Mutex::new(None),
            exposed: Mutex::new(None),
        }
    }

    /// Whether operations on a target are allowed now.
    #[inline]
    pub fn allow(&self, rank: i32) -> bool {
        self.all.load(Ordering::Relaxed) & (FENCED | ALL) != 0
            || self.each[rank as usize].load(Ordering::Relaxed) != 0
    }

    /// Whether a target is locked, alone or with all.
    #[inline]
    pub fn is_locked(&self, rank: i32) -> bool {
        self.is_all_locked() || self.marks(rank) & mark::LOCKED != 0
    }

    /// Whether MPI_Win_lock_all has been called.
    #[inline]
    pub fn is_all_locked(&self) -> bool {
        self.all.load(Ordering::Relaxed) & ALL != 0
    }

    /// The marks of a target.
    #[inline]
    pub fn marks(&self, rank: i32) -> u8 {
        self.each[rank as usize].load(Ordering::Relaxed)
    }

    /// Opens or closes the epoch of one target.
    pub fn set(&self, rank: i32, marks: u8) {
        self.each[rank as usize].store(marks, Ordering::Relaxed);
    }

    /// A fence opens an epoch, or does not.
    pub fn set_fenced(&self, opens: bool) {
        self.mark_all(FENCED, opens);
    }

    /// MPI_Win_lock_all has been called, with or without real locks, or MPI_Win_unlock_all.
    pub fn set_all_locked(&self, locked: bool, unchecked: bool) {
        self.unchecked.store(u32::from(unchecked), Ordering::Relaxed);
        self.mark_all(ALL, locked);
    }

    fn mark_all(&self, bit: u32, set: bool) {
        let before = self.all.load(Ordering::Relaxed);
        if (before & bit != 0) == set {
            return;
        }
        match set {
            true => self.all.fetch_or(bit, Ordering::Relaxed),
            false => self.all.fetch_and(!bit, Ordering::Relaxed),
        };
    }

    /// MPI_Win_start has been called.
    pub fn start(&self, targets: Vec<i32>) {
        for rank in &targets {
            self.set(*rank, mark::STARTED);
        }
        *guard(&self.started) = Some(targets);
        self.mark_all(STARTED, true);
    }

    /// MPI_Win_complete: the targets of MPI_Win_start, if it was called.
    pub fn complete(&self) -> Option<Vec<i32>> {
        let targets = guard(&self.started).take()?;
        for rank in &targets {
            self.set(*rank, 0);
        }
        self.mark_all(STARTED, false);
        Some(targets)
    }

    /// MPI_Win_post has been called; these tell that its epoch is over.
    pub fn expose(&self, completions: Vec<Operation>) {
        *guard(&self.exposed) = Some(completions);
        self.mark_all(EXPOSED, true);
    }

    /// MPI_Win_wait: what [`Epochs::expose`] was given.
    pub fn hide(&self) -> Option<Vec<Operation>> {
        let completions = guard(&self.exposed).take()?;
        self.mark_all(EXPOSED, false);
        Some(completions)
    }

    /// Whether MPI_Win_post has been called.
    pub fn is_exposed(&self) -> bool {
        self.all.load(Ordering::Relaxed) & EXPOSED != 0
    }

    /// Whether MPI_Win_lock_all took no locks.
    pub fn all_unchecked(&self) -> bool {
        self.unchecked.load(Ordering::Relaxed) != 0
    }

    /// An error if an epoch of locks or of MPI_Win_start is open.
    pub fn require_no_access(&self, window: &Window) -> Result<()> {
        if self.is_all_locked() {
            return Err(still_open(window, "MPI_Win_lock_all", "MPI_Win_unlock_all"));
        }
        if self.all.load(Ordering::Relaxed) & STARTED != 0 {
            return Err(still_open(window, "MPI_Win_start", "MPI_Win_complete"));
        }
        match (0..window.size()).find(|rank| self.marks(*rank) & mark::LOCKED != 0) {
            Some(rank) => Err(still_open(window, &format!("MPI_Win_lock of rank {rank}"), "MPI_Win_unlock")),
            None => Ok(()),
        }
    }

    /// An error if any epoch but one of a fence is open.
    pub fn require_closed(&self, window: &Window) -> Result<()> {
        self.require_no_access(window)?;
        match self.is_exposed() {
            true => Err(still_open(window, "MPI_Win_post", "MPI_Win_wait")),
            false => Ok(()),
        }
    }
}

#[cold]
fn still_open(window: &Window, opened: &str, close: &str) -> Error {
    Error::new(
        MPI_ERR_RMA_SYNC,
        format!("the epoch that {opened} opened on {} is still open; call {close} first", window.describe()),
    )
}
