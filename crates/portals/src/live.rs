//! The values of [`Tuning`], which may be changed while the process runs.

use crate::tuning::Tuning;
use parnass_base::atomics::{AtomicU32, AtomicU64, Ordering};
use parnass_base::{copy, process};

/// See [`Tuning`] for what each does.
#[derive(Debug)]
pub struct Live {
    receive_spins: AtomicU32,
    piped_most: AtomicU64,
    helper_from_bytes: AtomicU64,
    helper_pause: AtomicU32,
    helper_looks: AtomicU32,
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

impl Live {
    pub fn new(tuning: Tuning) -> Live {
        Live {
            receive_spins: AtomicU32::new(tuning.receive_spins),
            piped_most: AtomicU64::new(piped_most(tuning.piped_most)),
            helper_from_bytes: AtomicU64::new(tuning.helper_from_bytes),
            helper_pause: AtomicU32::new(tuning.helper_pause),
            helper_looks: AtomicU32::new(tuning.helper_looks),
        }
    }

    /// Replaces all values.
    pub fn set(&self, tuning: Tuning) {
        self.receive_spins.store(tuning.receive_spins, Ordering::Relaxed);
        self.piped_most.store(piped_most(tuning.piped_most), Ordering::Relaxed);
        self.helper_from_bytes.store(tuning.helper_from_bytes, Ordering::Relaxed);
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

    #[inline(always)]
    pub fn helper_from_bytes(&self) -> u64 {
        self.helper_from_bytes.load(Ordering::Relaxed)
    }

    pub fn helper_pause(&self) -> u32 {
        self.helper_pause.load(Ordering::Relaxed)
    }

    pub fn helper_looks(&self) -> u32 {
        self.helper_looks.load(Ordering::Relaxed)
    }
}
