//! A lock in memory that processes share.
//!
//! One word: 0 when free, else the holder's process number, with the top bit set when somebody sleeps for it.
//! A sleeper whose holder has died inherits the lock, and is told so.

use crate::atomics::{AtomicU32, Ordering, spin_loop};

const WAITED_FOR: u32 = 1 << 31;

/// The lock. Zeroed memory is a free lock.
#[derive(Debug)]
#[repr(transparent)]
pub struct Lock {
    word: AtomicU32,
}

#[cfg(not(loom))]
// SAFETY: transparent over an atomic.
unsafe impl crate::record::Record for Lock {}

/// How a lock was had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// From a holder who released it.
    Clean,
    /// From a holder who died with it: what it guards may be half changed.
    Inherited,
}

impl Default for Lock {
    fn default() -> Self {
        Lock { word: AtomicU32::new(0) }
    }
}

impl Lock {
    /// Takes the lock if it is free. `holder` is the process number of the caller (not 0, below 2^31).
    #[inline(always)]
    pub fn try_acquire(&self, holder: u32) -> bool {
        // Acquire pairs with the release in `release`.
        self.word.compare_exchange(0, holder, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Takes the lock, trying `spins` times before it sleeps. `alive` says whether a process number is still
    /// one of a living process.
    #[inline(always)]
    pub fn acquire(&self, holder: u32, spins: u32, alive: fn(u32) -> bool) -> Acquired {
        if self.try_acquire(holder) { Acquired::Clean } else { self.acquire_slowly(holder, spins, alive) }
    }

    #[cold]
    fn acquire_slowly(&self, holder: u32, spins: u32, alive: fn(u32) -> bool) -> Acquired {
        for _ in 0..spins {
            if self.word.load(Ordering::Relaxed) == 0 && self.try_acquire(holder) {
                return Acquired::Clean;
            }
            spin_loop();
        }
        loop {
            let seen = self.word.load(Ordering::Relaxed);
            if seen == 0 {
                // Others may sleep for it too, so the mark stays until a release finds nobody.
                let marked = holder | WAITED_FOR;
                if self.word.compare_exchange(0, marked, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                    return Acquired::Clean;
                }
                continue;
            }
            let marked = seen | WAITED_FOR;
            if seen != marked
                && self.word.compare_exchange(seen, marked, Ordering::Relaxed, Ordering::Relaxed).is_err()
            {
                continue;
            }
            wait(&self.word, marked);
            if self.word.load(Ordering::Relaxed) == marked && !alive(marked & !WAITED_FOR) {
                let mine = holder | WAITED_FOR;
                if self.word.compare_exchange(marked, mine, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                    return Acquired::Inherited;
                }
            }
        }
    }

    /// Gives the lock back.
    #[inline(always)]
    pub fn release(&self) {
        // Release pairs with the acquire of the next holder.
        if self.word.swap(0, Ordering::Release) & WAITED_FOR != 0 {
            wake(&self.word);
        }
    }

    /// Whether somebody sleeps for it.
    #[inline(always)]
    pub fn is_awaited(&self) -> bool {
        self.word.load(Ordering::Relaxed) & WAITED_FOR != 0
    }

    /// Whether somebody holds it now.
    pub fn is_held(&self) -> bool {
        self.word.load(Ordering::Relaxed) != 0
    }
}

#[cfg(not(loom))]
fn wait(word: &AtomicU32, seen: u32) {
    crate::futex::wait(word, seen, Some(std::time::Duration::from_millis(50)));
}

#[cfg(not(loom))]
#[cold]
fn wake(word: &AtomicU32) {
    crate::futex::wake(word, 1);
}

#[cfg(loom)]
fn wait(word: &AtomicU32, seen: u32) {
    while word.load(Ordering::Relaxed) == seen {
        loom::thread::yield_now();
    }
}

#[cfg(loom)]
fn wake(_word: &AtomicU32) {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::record::Word64;
    use std::sync::Arc;

    #[test]
    fn threads_exclude_each_other() {
        let shared = Arc::new((Lock::default(), Word64::default()));
        let threads: Vec<_> = (1..=4)
            .map(|number| {
                let shared = shared.clone();
                std::thread::spawn(move || {
                    for _ in 0..2_000 {
                        shared.0.acquire(number, 10, |_| true);
                        shared.1.set(shared.1.get() + 1);
                        shared.0.release();
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(shared.1.get(), 8_000);
        assert!(!shared.0.is_held());
    }

    #[test]
    fn a_dead_holder_is_inherited() {
        let lock = Lock::default();
        assert!(lock.try_acquire(77));
        assert!(!lock.try_acquire(5));
        assert_eq!(lock.acquire(5, 1, |number| number != 77), Acquired::Inherited);
        lock.release();
        assert_eq!(lock.acquire(5, 1, |_| true), Acquired::Clean);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;

    struct Guarded {
        lock: Lock,
        value: UnsafeCell<u32>,
    }

    fn raise(shared: &Guarded, holder: u32) {
        shared.lock.acquire(holder, 0, |_| true);
        // SAFETY: the lock is held; loom checks exactly this claim.
        shared.value.with_mut(|value| unsafe { *value += 1 });
        shared.lock.release();
    }

    #[test]
    fn holders_hand_over_what_they_wrote() {
        loom::model(|| {
            let shared = Arc::new(Guarded { lock: Lock::default(), value: UnsafeCell::new(0) });
            let other = shared.clone();
            let thread = loom::thread::spawn(move || raise(&other, 2));
            raise(&shared, 1);
            thread.join().unwrap();
            // SAFETY: no other thread is left.
            assert_eq!(shared.value.with(|value| unsafe { *value }), 2);
        });
    }
}
