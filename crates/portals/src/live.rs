//! The values of [`Tuning`], which may be changed while the process runs.

use crate::tuning::Tuning;
use parnass_base::atomics::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use parnass_base::{copy, process};

/// See [`Tuning`] for what each does.
#[derive(Debug)]
pub struct Live {
    receive_spins: AtomicU32,
    piped_most: AtomicU64,
    alloc_mem_shared: AtomicU64,
    helper_from_bytes: AtomicU64,
    helper_always: AtomicBool,
    helper_pause: AtomicU32,
    helper_looks: AtomicU32,
    /// See [`copies_once`].
    pub copies_once: bool,
}

/// So many buffers of a message that may go through a pipe fit into a core's own cache.
const CACHED: usize = 4;

/// The longest message, in bytes, that goes through a pipe where both wait and the kernel could copy it, if this was chosen; 0: none was. On processors that
/// are not Intel's a pipe is faster at any length (AMD Zen 4, 1 MiB: 60 / 87 us, 16 MiB: 2.2 / 3.3 ms).
pub fn piped_most(chosen: u64) -> u64 {
    match chosen {
        0 if copy::is_intels() => (process::own_cache() / CACHED) as u64,
        0 => u64::MAX,
        chosen => chosen,
    }
}

/// So many ranks for each processor, of others than Intel's, have their buffers and pieces in its own cache.
pub const CROWD: usize = 8;

/// Whether ranks that share processors, so many of them, had better copy a longer message once, by the kernel, than twice. On processors that are not Intel's two
/// copies take less time as long as all is in their caches (AMD Zen 4, 2 processors, pairs that exchange 64 KiB, 8 ranks: 33 / 18 us, 64 ranks: 450 / 600 us).
pub fn copies_once(ranks: usize) -> bool {
    copy::is_intels() || ranks > CROWD * process::processors()
}

impl Live {
    /// Of one of so many ranks.
    pub fn new(tuning: Tuning, ranks: u32) -> Live {
        Live {
            copies_once: copies_once(ranks as usize),
            receive_spins: AtomicU32::new(tuning.receive_spins),
            piped_most: AtomicU64::new(piped_most(tuning.piped_most)),
            alloc_mem_shared: AtomicU64::new(tuning.alloc_mem_shared),
            helper_from_bytes: AtomicU64::new(tuning.helper_from_bytes),
            helper_always: AtomicBool::new(tuning.helper_always),
            helper_pause: AtomicU32::new(tuning.helper_pause),
            helper_looks: AtomicU32::new(tuning.helper_looks),
        }
    }

    /// Replaces all values.
    pub fn set(&self, tuning: Tuning) {
        self.receive_spins.store(tuning.receive_spins, Ordering::Relaxed);
        self.piped_most.store(piped_most(tuning.piped_most), Ordering::Relaxed);
        self.alloc_mem_shared.store(tuning.alloc_mem_shared, Ordering::Relaxed);
        self.helper_from_bytes.store(tuning.helper_from_bytes, Ordering::Relaxed);
        self.helper_always.store(tuning.helper_always, Ordering::Relaxed);
        self.helper_pause.store(tuning.helper_pause, Ordering::Relaxed);
        self.helper_looks.store(tuning.helper_looks, Ordering::Relaxed);
    }

    #[inline(always)]
    pub fn receive_spins(&self) -> u32 {
        self.receive_spins.load(Ordering::Relaxed)
    }

    /// In bytes, never 0.
    #[inline(always)]
    pub fn piped_most(&self) -> u64 {
        self.piped_most.load(Ordering::Relaxed)
    }

    pub fn alloc_mem_shared(&self) -> u64 {
        self.alloc_mem_shared.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub fn helper_from_bytes(&self) -> u64 {
        self.helper_from_bytes.load(Ordering::Relaxed)
    }

    pub fn helper_always(&self) -> bool {
        self.helper_always.load(Ordering::Relaxed)
    }

    pub fn helper_pause(&self) -> u32 {
        self.helper_pause.load(Ordering::Relaxed)
    }

    pub fn helper_looks(&self) -> u32 {
        self.helper_looks.load(Ordering::Relaxed)
    }
}
