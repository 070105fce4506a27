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

/// A fence as `fence(Ordering::SeqCst)` is one.
///
/// On x86-64 compilers make that one of an instruction which also holds up what comes after it, and takes several times as long
/// as any instruction with a lock prefix, which orders loads and stores of ordinary memory just as well.
#[inline(always)]
pub fn full_fence() {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: the word on top of the stack stays what it is.
    unsafe {
        std::arch::asm!("lock or dword ptr [rsp], 0");
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    fence(Ordering::SeqCst);
}
