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

/// Has the line of `place`, which this core has written last and another core is about to read, moved out of this core's own caches
/// to where the other one finds it sooner. Only a hint; processors that do not know it take it for a no-operation.
#[inline(always)]
pub fn hand_over<T>(place: &T) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: nothing but the place of a line in the caches changes.
    unsafe {
        std::arch::asm!("cldemote [{}]", in(reg) place, options(readonly, nostack, preserves_flags));
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    let _ = place;
}

/// Has the line of `place`, which this core is about to write, brought to it meanwhile, taken from all others. Only a hint: many lines
/// come at once so, where stores would wait for one after the other.
#[inline(always)]
pub fn fetch_to_write<T>(place: *const T) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: nothing but the place of a line in the caches changes, and an address that leads nowhere is ignored.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) place, options(readonly, nostack, preserves_flags));
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    let _ = place;
}

/// Has the line of `place`, which this core is about to read, brought to it meanwhile. Only a hint.
#[inline(always)]
pub fn fetch_to_read<T>(place: *const T) {
    fetch::<false, T>(place);
}

/// Has the line of `place`, which this core will read, brought to its second cache meanwhile. Only a hint.
#[inline(always)]
pub fn fetch_to_read_later<T>(place: *const T) {
    fetch::<true, T>(place);
}

#[inline(always)]
fn fetch<const LATER: bool, T>(place: *const T) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: nothing but the place of a line in the caches changes, and an address that leads nowhere is ignored.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        if LATER {
            _mm_prefetch::<_MM_HINT_T1>(place.cast());
        } else {
            _mm_prefetch::<_MM_HINT_T0>(place.cast());
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    let _ = place;
}
