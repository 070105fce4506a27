//! Sleeping until something has happened, without a system call for those who make it happen while nobody
//! sleeps.
//!
//! A sleeper announces itself, looks once more, and sleeps on the count of rings. Whoever changes something
//! rings afterwards; the ring costs a fence and a load unless somebody has announced himself. The two fences
//! forbid that the sleeper misses the change *and* the ringer misses the sleeper.

use crate::atomics::{AtomicU32, Ordering, fence};
use std::time::Duration;

/// The bell. Zeroed memory is a bell that nobody listens to.
#[derive(Debug)]
#[repr(C)]
pub struct Doorbell {
    rings: AtomicU32,
    sleepers: AtomicU32,
}

#[cfg(not(loom))]
// SAFETY: repr(C), two atomics.
unsafe impl crate::record::Record for Doorbell {}

impl Default for Doorbell {
    fn default() -> Self {
        Doorbell { rings: AtomicU32::new(0), sleepers: AtomicU32::new(0) }
    }
}

impl Doorbell {
    /// How often it was rung while somebody slept. Taken before looking, given to [`Doorbell::sleep`].
    #[inline(always)]
    pub fn rings(&self) -> u32 {
        // Acquire pairs with the increment in `ring_always`: who sees a ring sees what it was rung for.
        self.rings.load(Ordering::Acquire)
    }

    /// Tells sleepers that something has changed. The change must have been made before, by this thread.
    #[inline(always)]
    pub fn ring(&self) {
        // Pairs with the fence in `sleep`.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) != 0 {
            self.ring_always();
        }
    }

    /// As [`Doorbell::ring`], where the caller has just made the fence itself, or will ring once more after one.
    #[inline(always)]
    pub fn ring_unfenced(&self) {
        if self.sleepers.load(Ordering::Relaxed) != 0 {
            self.ring_always();
        }
    }

    /// Tells sleepers, and also those who took [`Doorbell::rings`] and do not sleep yet.
    #[cold]
    pub fn ring_always(&self) {
        self.rings.fetch_add(1, Ordering::AcqRel);
        wake(&self.rings);
    }

    /// Whether somebody has announced that he sleeps or is about to.
    #[inline]
    pub fn has_sleepers(&self) -> bool {
        self.sleepers.load(Ordering::Relaxed) != 0
    }

    /// Sleeps until the bell has been rung since `rings` was taken, unless `changed` already says that there is
    /// something, or until `limit` has passed. May return early.
    pub fn sleep(&self, rings: u32, limit: Option<Duration>, changed: impl FnOnce() -> bool) {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        // Pairs with the fence in `ring`.
        fence(Ordering::SeqCst);
        if !changed() {
            wait(&self.rings, rings, limit);
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(not(loom))]
fn wait(word: &AtomicU32, seen: u32, limit: Option<Duration>) {
    crate::futex::wait(word, seen, limit);
}

#[cfg(not(loom))]
fn wake(word: &AtomicU32) {
    crate::futex::wake(word, u32::MAX);
}

#[cfg(loom)]
fn wait(word: &AtomicU32, seen: u32, _limit: Option<Duration>) {
    while word.load(Ordering::Acquire) == seen {
        loom::thread::yield_now();
    }
}

#[cfg(loom)]
fn wake(_word: &AtomicU32) {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_ring_ends_a_sleep() {
        let bell = Arc::new(Doorbell::default());
        let rings = bell.rings();
        let other = bell.clone();
        let sleeper = std::thread::spawn(move || {
            while other.rings() == rings {
                other.sleep(rings, None, || false);
            }
        });
        while !bell.has_sleepers() {
            std::thread::yield_now();
        }
        bell.ring();
        sleeper.join().unwrap();
    }

    #[test]
    fn a_change_that_is_seen_keeps_awake() {
        Doorbell::default().sleep(0, None, || true);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;

    /// The sleeper never sleeps for ever: either it sees the change, or the ringer sees the sleeper.
    #[test]
    fn no_change_is_slept_through() {
        loom::model(|| {
            let shared = Arc::new((Doorbell::default(), AtomicU32::new(0)));
            let other = shared.clone();
            let ringer = loom::thread::spawn(move || {
                other.1.store(1, Ordering::Release);
                other.0.ring();
            });
            loop {
                let rings = shared.0.rings();
                if shared.1.load(Ordering::Acquire) == 1 {
                    break;
                }
                shared.0.sleep(rings, None, || shared.1.load(Ordering::Acquire) == 1);
            }
            ringer.join().unwrap();
        });
    }

    /// The same with two ringers.
    #[test]
    fn two_changes_are_not_slept_through() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let shared = Arc::new((Doorbell::default(), AtomicU32::new(0)));
            let ringers: Vec<_> = (0..2)
                .map(|_| {
                    let other = shared.clone();
                    loom::thread::spawn(move || {
                        other.1.fetch_add(1, Ordering::Release);
                        other.0.ring();
                    })
                })
                .collect();
            loop {
                let rings = shared.0.rings();
                if shared.1.load(Ordering::Acquire) == 2 {
                    break;
                }
                shared.0.sleep(rings, None, || shared.1.load(Ordering::Acquire) == 2);
            }
            for ringer in ringers {
                ringer.join().unwrap();
            }
        });
    }
}
