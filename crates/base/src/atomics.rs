//! The atomics of the house. Under `--cfg loom` they are loom's, so that the lock-free structures of this
//! crate can be checked by exhausting their interleavings.

#[cfg(not(loom))]
mod real {
    pub use std::hint::spin_loop;
    pub use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
}

#[cfg(loom)]
mod real {
    pub use loom::hint::spin_loop;
    pub use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
}

pub use real::*;
