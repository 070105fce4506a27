//! Sleeping until something has happened, without a system call for those who make it happen while nobody
//! sleeps.
//!
//! A sleeper announces itself, looks once more, and sleeps on the count of rings. Whoever changes something
//! rings afterwards. Two fences, one between announcing and looking, one between changing and ringing, forbid that the
//! sleeper misses the change *and* the ringer misses the sleeper.
//!
//! The ringer's fence would make every sender wait until its message has left the processor. So a sleeper can execute
//! it on behalf of the ringers ([`crate::barrier`]); then [`Doorbell::ring_lightly`] costs a load. Where sleeping is
//! the rule, or ringers cannot be forced, the bell demands fences ([`Doorbell::demand_fences`]), and they make their own.

use crate::atomics::{AtomicU32, Ordering, fence};
use std::time::Duration;

/// In [`Doorbell::sleepers`]: who rings makes a fence first.
const FENCES: u32 = 1 << 31;

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
        // Pairs with the barrier in `sleep`.
        fence(Ordering::SeqCst);
        if self.has_sleepers() {
            self.ring_always();
        }
    }

    /// As [`Doorbell::ring`], where the caller has just made the fence itself, or will ring once more after one.
    #[inline(always)]
    pub fn ring_unfenced(&self) {
        if self.has_sleepers() {
            self.ring_always();
        }
    }

    /// As [`Doorbell::ring`], for ringers whom sleepers can force to make a fence.
    #[inline(always)]
    pub fn ring_lightly(&self) {
        // The change and this load may pass each other: then the sleeper's barrier comes after the change, and he sees it.
        if self.sleepers.load(Ordering::Relaxed) != 0 {
            self.ring_fully();
        }
    }

    #[cold]
    fn ring_fully(&self) {
        self.ring();
    }

    /// From now on who rings lightly makes a fence too. The caller lets a barrier follow that reaches all of them;
    /// then sleepers need only fences of their own.
    pub fn demand_fences(&self) {
        self.sleepers.fetch_or(FENCES, Ordering::Relaxed);
    }

    /// Tells sleepers, and also those who took [`Doorbell::rings`] and do not sleep yet.
    #[cold]
    pub fn ring_always(&self) {
        self.rings.fetch_add(1, Ordering::AcqRel);
        // Pairs with the fence in `sleep`: a sleeper that is not seen here finds that the count is another.
        fence(Ordering::SeqCst);
        if self.has_sleepers() {
            wake(&self.rings);
        }
    }

    /// Whether somebody has announced that he sleeps or is about to.
    #[inline]
    pub fn has_sleepers(&self) -> bool {
        self.sleepers.load(Ordering::Relaxed) & !FENCES != 0
    }

    /// Sleeps until the bell has been rung since `rings` was taken, unless `changed` already says that there is
    /// something, or until `limit` has passed. May return early. For a bell that is rung with fences.
    pub fn sleep(&self, rings: u32, limit: Option<Duration>, changed: impl FnOnce() -> bool) {
        self.sleep_behind(rings, limit, own_fence, changed);
    }

    /// As [`Doorbell::sleep`]. `barrier` is a fence, in this thread and, where
    /// somebody rings lightly and no fences are demanded, in all those.
    pub fn sleep_behind(
        &self,
        rings: u32,
        limit: Option<Duration>,
        barrier: impl FnOnce(),
        changed: impl FnOnce() -> bool,
    ) {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        // Pairs with the fence in `ring`.
        barrier();
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

/// The barrier of a sleeper whose ringers make fences.
#[inline(always)]
pub fn own_fence() {
    fence(Ordering::SeqCst);
}

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

    /// A light ringer, and a sleeper whose barrier makes the ringer execute a fence, at whatever point of its way it is:
    /// the barrier returns when it has.
    #[test]
    fn a_light_ring_is_not_slept_through() {
        for point in 0..3 {
            loom::model(move || {
                let shared = Arc::new((Doorbell::default(), AtomicU32::new(0), AtomicU32::new(0)));
                let other = shared.clone();
                let ringer = loom::thread::spawn(move || {
                    let interrupt = |here: u32| {
                        if here == point {
                            while other.2.load(Ordering::Acquire) != 1 {
                                loom::thread::yield_now();
                            }
                            fence(Ordering::SeqCst);
                            other.2.store(2, Ordering::Release);
                        }
                    };
                    interrupt(0);
                    other.1.store(1, Ordering::Release);
                    interrupt(1);
                    other.0.ring_lightly();
                    interrupt(2);
                });
                let rings = shared.0.rings();
                let barrier = || {
                    shared.2.store(1, Ordering::Release);
                    while shared.2.load(Ordering::Acquire) != 2 {
                        loom::thread::yield_now();
                    }
                    fence(Ordering::SeqCst);
                };
                shared.0.sleep_behind(rings, None, barrier, || shared.1.load(Ordering::Acquire) == 1);
                ringer.join().unwrap();
                assert_eq!(shared.1.load(Ordering::Acquire), 1);
            });
        }
    }

    /// A light ringer and a sleeper that relies on fences, which it has demanded by a barrier before.
    #[test]
    fn demanded_fences_are_made() {
        loom::model(|| {
            let shared = Arc::new((Doorbell::default(), AtomicU32::new(0)));
            shared.0.demand_fences();
            let other = shared.clone();
            let ringer = loom::thread::spawn(move || {
                other.1.store(1, Ordering::Release);
                other.0.ring_lightly();
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
}
