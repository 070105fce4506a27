//! A mutex that costs no atomic instruction while the process promises to be one thread.

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

static ONE_THREAD: AtomicBool = AtomicBool::new(false);

/// Says whether all guarded data of this process is used by one thread at a time from now on.
///
/// # Safety
/// While it is, two threads must not lock one [`Guarded`] without an order between them that something else makes; and nothing may be
/// locked while this is called.
pub unsafe fn promise_one_thread(one: bool) {
    ONE_THREAD.store(one, Ordering::SeqCst);
}

/// Data that one thread at a time uses.
#[derive(Default)]
pub struct Guarded<T> {
    mutex: Mutex<()>,
    in_use: AtomicBool,
    data: UnsafeCell<T>,
}

// SAFETY: the data is handed to one thread at a time: by the mutex, or by the promise.
unsafe impl<T: Send> Sync for Guarded<T> {}

/// The data, until it is dropped.
pub struct Guard<'a, T> {
    guarded: &'a Guarded<T>,
    /// None while one thread at a time is promised.
    _lock: Option<MutexGuard<'a, ()>>,
}

impl<T> Guarded<T> {
    /// Guards data.
    pub const fn new(data: T) -> Guarded<T> {
        Guarded { mutex: Mutex::new(()), in_use: AtomicBool::new(false), data: UnsafeCell::new(data) }
    }

    /// Waits until nobody uses it, and takes it.
    ///
    /// # Panics
    /// The thread that calls has it already.
    #[inline(always)]
    pub fn lock(&self) -> Guard<'_, T> {
        let one = ONE_THREAD.load(Ordering::Relaxed);
        let lock = (!one).then(|| self.mutex.lock().unwrap_or_else(PoisonError::into_inner));
        assert!(!self.in_use.load(Ordering::Relaxed), "locked twice by one thread");
        self.in_use.store(true, Ordering::Relaxed);
        Guard { guarded: self, _lock: lock }
    }

    /// The data, of which there is no other user.
    #[inline(always)]
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: `in_use` was false, and nobody else sets it: by the mutex, or by the promise.
        unsafe { &*self.guarded.data.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`, and this guard is borrowed alone.
        unsafe { &mut *self.guarded.data.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // The mutex, which is given back after this, orders it before the next lock.
        self.guarded.in_use.store(false, Ordering::Relaxed);
    }
}

impl<T> fmt::Debug for Guarded<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Guarded")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_take_turns() {
        let shared = Guarded::new(0u64);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..10_000).for_each(|_| *shared.lock() += 1));
            }
        });
        assert_eq!(*shared.lock(), 30_000);
    }
}
