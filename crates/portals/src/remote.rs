//! Copies to and from memory of another process of the node that is known to be there: by the kernel, or, if this process has that memory
//! too, without it; or with the help of the other process, see [`crate::errand`]. What lies in the question itself a target that waits is always asked to do; else it is found out which is
//! the fastest, for each process and class of lengths.

use crate::core::Core;
use crate::errand::{Asked, INLINE};
use parnass_base::UserAddress;
use parnass_base::atomics::{AtomicU32, Ordering};
use parnass_base::choice::{Choice, Choices};
use parnass_transport::MemoryError;
use std::sync::OnceLock;
use std::time::Instant;

/// The ways: the kernel copies, or this process itself where it has the memory; the target copies what it is given; both have the kernel copy.
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
    /// The same memory in the address space of this process, where that has it.
    pub mapped: Option<UserAddress>,
    pub local: UserAddress,
    pub length: usize,
}

impl RemoteCopy {
    /// All but the first `skip` bytes.
    pub fn from(&self, skip: usize) -> RemoteCopy {
        RemoteCopy {
            remote: self.remote.offset(skip as i64),
            mapped: self.mapped.map(|mapped| mapped.offset(skip as i64)),
            local: self.local.offset(skip as i64),
            length: self.length - skip,
            ..*self
        }
    }
}

/// What is known of the ways to one process, in one direction.
#[derive(Debug, Default)]
struct Known {
    /// Up to 64 B, 128 B and so on to 32 KiB.
    short: Choices<2, 10, 6>,
    /// Up to 64 KiB and so on to 8 MiB, and what is longer.
    long: Choices<3, 8, 16>,
    /// The same for memory that this process has too, up to 512 KiB and so on; of the ways only two: this process alone, or [`BOTH`].
    mapped: Choices<2, 6, 19>,
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
        self.answer_others();
        if copy.length <= INLINE {
            return self.copy_by(copy, TARGET).map(drop);
        }
        let known = self.errands.remote.known(copy, self.size());
        if copy.length > SHORT {
            self.copy_chosen(copy, known.long.of(copy.length), [KERNEL, TARGET, BOTH])
        } else {
            self.copy_chosen(copy, known.short.of(copy.length), [KERNEL, TARGET])
        }
    }

    /// As [`Core::copy_known`], for long copies to or from memory that this process has in its own address space.
    pub fn copy_mapped(&self, copy: &RemoteCopy) -> Result<(), MemoryError> {
        let known = self.errands.remote.known(copy, self.size());
        self.copy_chosen(copy, known.mapped.of(copy.length), [KERNEL, BOTH])
    }

    /// Copies by the one of some `ways` that is chosen, of which the first is that without the target.
    fn copy_chosen<const WAYS: usize>(
        &self,
        copy: &RemoteCopy,
        choice: &Choice<WAYS>,
        ways: [usize; WAYS],
    ) -> Result<(), MemoryError> {
        let chosen = choice.way();
        let way = ways[chosen];
        if !self.errands.remote.is_timed(copy.length) {
            return self.copy_by(copy, way).map(drop);
        }
        let start = Instant::now();
        let gone = if self.copy_by(copy, way)? == way { chosen } else { 0 };
        choice.learn(gone, copy.length, start.elapsed().as_nanos() as u64);
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
            self.copy_alone(copy)?;
        }
        Ok(if asked == Asked::Away { KERNEL } else { way })
    }

    /// Copies by the kernel, or without it where this process has the memory itself.
    #[inline]
    pub fn copy_alone(&self, copy: &RemoteCopy) -> Result<(), MemoryError> {
        let &RemoteCopy { target, write, remote, mapped, local, length } = copy;
        match mapped {
            Some(mapped) if write => mapped.copy_apart(local, length),
            Some(mapped) => local.copy_apart(mapped, length),
            None if write => return self.transport.write(target, remote, local, length),
            None => return self.transport.read(target, remote, local, length),
        }
        Ok(())
    }
}
