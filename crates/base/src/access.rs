//! A lock that many may share or one may hold alone, in memory that processes share. Who cannot have it waits on
//! something else (a bell), so that it can go on working meanwhile: the lock only says whether somebody waits.

use crate::atomics::{AtomicU32, Ordering, full_fence};

/// The lock. Zeroed memory is a free lock.
///
/// One word: how many share it, or [`ALONE`]; and how many wait for it.
#[derive(Debug)]
#[repr(C)]
pub struct AccessLock {
    word: AtomicU32,
    waiters: AtomicU32,
}

#[cfg(not(loom))]
// SAFETY: repr(C), made of atomics.
unsafe impl crate::record::Record for AccessLock {}

const ALONE: u32 = 1 << 31;

/// How the lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// With others who share it.
    Shared,
    /// By nobody else.
    Exclusive,
}

impl Default for AccessLock {
    fn default() -> Self {
        AccessLock { word: AtomicU32::new(0), waiters: AtomicU32::new(0) }
    }
}

impl AccessLock {
    /// Takes the lock if that can be done now.
    #[inline]
    pub fn try_acquire(&self, access: Access) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            let next = match access {
                Access::Exclusive if seen != 0 => return false,
                Access::Exclusive => ALONE,
                Access::Shared if seen == ALONE => return false,
                Access::Shared => seen + 1,
            };
            // Acquire pairs with the release in `release`.
            match self.word.compare_exchange_weak(seen, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    /// Whether [`AccessLock::try_acquire`] would take it now.
    pub fn is_open(&self, access: Access) -> bool {
        match (access, self.word.load(Ordering::Relaxed)) {
            (Access::Exclusive, word) => word == 0,
            (Access::Shared, word) => word != ALONE,
        }
    }

    /// Gives the lock back; a full fence. Whether somebody waits, who must then be woken.
    #[inline]
    #[must_use]
    pub fn release(&self, access: Access) -> bool {
        match access {
            // Release pairs with the acquire in `try_acquire`.
            Access::Exclusive => self.word.store(0, Ordering::Release),
            Access::Shared => drop(self.word.fetch_sub(1, Ordering::Release)),
        }
        // Pairs with the fence in `begin_wait`: either the waiter finds the lock free, or it is seen here.
        full_fence();
        self.waiters.load(Ordering::Relaxed) != 0
    }

    /// From now on whoever releases the lock learns that somebody waits. To be called before the last try.
    pub fn begin_wait(&self) {
        self.waiters.fetch_add(1, Ordering::Relaxed);
        // Pairs with the fence in `release`.
        full_fence();
    }

    /// The wait is over.
    pub fn end_wait(&self) {
        self.waiters.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn sharers_keep_others_out_and_let_sharers_in() {
        let lock = AccessLock::default();
        assert!(lock.try_acquire(Access::Shared) && lock.try_acquire(Access::Shared));
        assert!(!lock.try_acquire(Access::Exclusive));
        assert!(!lock.release(Access::Shared));
        assert!(!lock.try_acquire(Access::Exclusive));
        assert!(!lock.is_open(Access::Exclusive) && lock.is_open(Access::Shared));
        lock.begin_wait();
        assert!(lock.release(Access::Shared), "somebody waits");
        assert!(lock.try_acquire(Access::Exclusive));
        lock.end_wait();
        assert!(!lock.try_acquire(Access::Shared) && !lock.try_acquire(Access::Exclusive));
        assert!(!lock.release(Access::Exclusive));
        assert!(lock.try_acquire(Access::Shared));
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::doorbell::Doorbell;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;

    struct Guarded {
        lock: AccessLock,
        bells: [Doorbell; 2],
        value: UnsafeCell<u32>,
    }

    fn acquire(shared: &Guarded, me: usize, access: Access) {
        if shared.lock.try_acquire(access) {
            return;
        }
        shared.lock.begin_wait();
        loop {
            let rings = shared.bells[me].rings();
            let mut mine = shared.lock.try_acquire(access);
            if !mine {
                shared.bells[me].sleep(rings, None, || {
                    mine = shared.lock.try_acquire(access);
                    mine
                });
            }
            if mine {
                break;
            }
        }
        shared.lock.end_wait();
    }

    fn release(shared: &Guarded, me: usize, access: Access) {
        if shared.lock.release(access) {
            shared.bells[1 - me].ring();
        }
    }

    fn guarded() -> Arc<Guarded> {
        Arc::new(Guarded {
            lock: AccessLock::default(),
            bells: [Doorbell::default(), Doorbell::default()],
            value: UnsafeCell::new(0),
        })
    }

    fn raise(shared: &Guarded, me: usize) {
        acquire(shared, me, Access::Exclusive);
        // SAFETY: the lock is held alone; loom checks exactly this claim.
        shared.value.with_mut(|value| unsafe { *value += 1 });
        release(shared, me, Access::Exclusive);
    }

    /// Holders exclude each other, see what the one before wrote, and nobody sleeps for ever.
    #[test]
    fn a_writer_and_a_writer() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let shared = guarded();
            let other = shared.clone();
            let thread = loom::thread::spawn(move || raise(&other, 1));
            raise(&shared, 0);
            thread.join().unwrap();
            // SAFETY: no other thread is left.
            assert_eq!(shared.value.with(|value| unsafe { *value }), 2);
        });
    }

    #[test]
    fn a_writer_and_a_reader() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let shared = guarded();
            let other = shared.clone();
            let thread = loom::thread::spawn(move || raise(&other, 1));
            acquire(&shared, 0, Access::Shared);
            // SAFETY: the lock is shared; loom checks that nobody writes.
            shared.value.with(|value| unsafe { *value });
            release(&shared, 0, Access::Shared);
            thread.join().unwrap();
        });
    }
}
