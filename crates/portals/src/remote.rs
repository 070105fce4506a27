//! Copies to and from memory of another process of the node that is known to be there: by the kernel, or with the help of that
//! process, see [`crate::errand`]. What lies in the question itself a target that waits is always asked to do; else it is found out which is
//! the fastest, for each process and class of lengths.

use crate::core::Core;
use crate::errand::{Asked, INLINE};
use parnass_base::UserAddress;
use parnass_base::atomics::{AtomicU32, Ordering};
use parnass_base::choice::{Choice, Choices};
use parnass_transport::MemoryError;
use std::sync::OnceLock;
use std::time::Instant;

/// The ways: the kernel copies; the target copies what it is given; both have the kernel copy.
const KERNEL: usize = 0;
const TARGET: usize = 1;
const BOTH: usize = 2;

/// What is not longer is not worth being shared, and only one in so many is timed: the clock takes a tenth as long as they do.
const SHORT: usize = 32 << 10;
const TIMED: u32 = 8;

/// An access of this process to memory of another one.
#[derive(Clone, Copy, Debug)]
pub struct RemoteCopy {
    pub target: u32,
    /// To the target, and not from there.
    pub write: bool,
    pub remote: UserAddress,
    pub local: UserAddress,
    pub length: usize,
}

/// What is known of the ways to one process, in one direction.
#[derive(Debug, Default)]
struct Known {
    /// Up to 64 B, 128 B and so on to 32 KiB.
    short: Choices<2, 10, 6>,
    /// Up to 64 KiB and so on to 8 MiB, and what is longer.
    long: Choices<3, 8, 16>,
}

/// What a process knows of the ways to the memory of others.
#[derive(Debug, Default)]
pub struct Remote {
    /// By process, and whether it is written to.
    known: OnceLock<Box<[OnceLock<Box<[Known; 2]>>]>>,
    untimed: AtomicU32,
}

impl Remote {
    fn known(&self, copy: &RemoteCopy, processes: u32) -> &Known {
        let all = self.known.get_or_init(|| (0..processes).map(|_| OnceLock::new()).collect());
        &all[copy.target as usize].get_or_init(Box::default)[usize::from(copy.write)]
    }

    fn is_timed(&self, length: usize) -> bool {
        if length > SHORT {
            return true;
        }
        let untimed = self.untimed.load(Ordering::Relaxed) + 1;
        self.untimed.store(untimed % TIMED, Ordering::Relaxed);
        untimed == TIMED
    }
}

impl Core {
    /// Copies to or from memory that is known to be there.
    pub fn copy_known(&self, copy: &RemoteCopy) -> Result<(), MemoryError> {
        if copy.length <= INLINE {
            return self.copy_by(copy, TARGET).map(drop);
        }
        let known = self.errands.remote.known(copy, self.size());
        if copy.length > SHORT {
            self.copy_chosen(copy, known.long.of(copy.length))
        } else {
            self.copy_chosen(copy, known.short.of(copy.length))
        }
    }

    fn copy_chosen<const WAYS: usize>(
        &self,
        copy: &RemoteCopy,
        choice: &Choice<WAYS>,
    ) -> Result<(), MemoryError> {
        let way = choice.way();
        if !self.errands.remote.is_timed(copy.length) {
            return self.copy_by(copy, way).map(drop);
        }
        let start = Instant::now();
        let way = self.copy_by(copy, way)?;
        choice.learn(way, copy.length, start.elapsed().as_nanos() as u64);
        Ok(())
    }

    /// Goes a way, and the kernel's where that leads nowhere. Which one it was that took the time.
    #[inline]
    fn copy_by(&self, copy: &RemoteCopy, way: usize) -> Result<usize, MemoryError> {
        let asked = match way {
            TARGET => self.ask_for(copy),
            BOTH => self.ask_to_share(copy),
            _ => Asked::Away,
        };
        if asked != Asked::Done {
            self.copy_by_kernel(copy)?;
        }
        Ok(if asked == Asked::Away { KERNEL } else { way })
    }

    #[inline]
    pub fn copy_by_kernel(&self, copy: &RemoteCopy) -> Result<(), MemoryError> {
        let &RemoteCopy { target, write, remote, local, length } = copy;
        if write {
            self.transport.write(target, remote, local, length)
        } else {
            self.transport.read(target, remote, local, length)
        }
    }
}
