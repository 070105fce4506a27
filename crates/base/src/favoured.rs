//! A door between one side that passes often and others that come rarely: the one pays no atomic read-modify-write and no
//! fence, the others force it to make one ([`crate::barrier`]).

use crate::atomics::{AtomicU32, Ordering, spin_loop};

/// Looks at whether the favoured side has left, which takes it a few instructions, before it counts as having lost its processor.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 1_000 };

/// The door. Zeroed memory is an open door with nobody inside.
#[derive(Debug)]
#[repr(C)]
pub struct Favoured {
    inside: AtomicU32,
    barred: AtomicU32,
}

#[cfg(not(loom))]
// SAFETY: repr(C), two atomics.
unsafe impl crate::record::Record for Favoured {}

impl Default for Favoured {
    fn default() -> Self {
        Favoured { inside: AtomicU32::new(0), barred: AtomicU32::new(0) }
    }
}

impl Favoured {
    /// The favoured side enters. `false`: another one is there.
    #[inline(always)]
    pub fn enter(&self) -> bool {
        self.inside.store(1, Ordering::Relaxed);
        // These two must not pass each other in the program; in the processor they may: then the barrier in `bar` comes after the
        // store, and the other side sees it.
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
        // Acquire pairs with the release in `open`.
        if self.barred.load(Ordering::Acquire) == 0 {
            return true;
        }
        self.leave();
        false
    }

    /// The favoured side has entered, and leaves.
    #[inline(always)]
    pub fn leave(&self) {
        // Release pairs with the acquire in `bar`.
        self.inside.store(0, Ordering::Release);
    }

    /// Keeps the favoured side out. `barrier` is a fence in this thread and in those of that side; `false`: there is none. Only one other at
    /// a time (something else sees to that); it [`open`](Favoured::open)s if this was `true`. `false`: the favoured side does not leave.
    pub fn bar(&self, barrier: impl FnOnce() -> bool) -> bool {
        self.barred.store(1, Ordering::Relaxed);
        // Pairs with the store and the load in `enter`.
        let shut = barrier()
            && (0..LOOKS).any(|_| {
                let left = self.inside.load(Ordering::Acquire) == 0;
                if !left {
                    spin_loop();
                }
                left
            });
        if !shut {
            self.open();
        }
        shut
    }

    /// Lets the favoured side in again.
    pub fn open(&self) {
        // Release pairs with the acquire in `enter`.
        self.barred.store(0, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::record::Word64;

    #[test]
    fn only_one_side_is_inside() {
        if !crate::barrier::register() {
            return;
        }
        let (door, value) = (Favoured::default(), Word64::default());
        let raise = || value.set(value.get() + 1);
        let mut entered = 0;
        let barred = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let mut barred = 0;
                for _ in 0..2_000 {
                    if door.bar(crate::barrier::force) {
                        raise();
                        barred += 1;
                        door.open();
                    }
                }
                barred
            });
            while !other.is_finished() {
                if door.enter() {
                    raise();
                    entered += 1;
                    door.leave();
                }
            }
            other.join().unwrap()
        });
        assert_eq!(value.get(), entered + barred);
        assert!(barred > 0);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::atomics::fence;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;

    struct Guarded {
        door: Favoured,
        value: UnsafeCell<u32>,
        /// The barrier asks for a fence of the favoured side (1), which makes it (2).
        asked: AtomicU32,
    }

    fn raise(shared: &Guarded) {
        // SAFETY: one side is inside; loom checks exactly this claim.
        shared.value.with_mut(|value| unsafe { *value += 1 });
    }

    /// The barrier makes the favoured side execute a fence at whatever point of its way it is, and returns when it has.
    #[test]
    fn the_favoured_side_and_another_exclude_each_other() {
        for point in 0..4 {
            loom::model(move || {
                let shared = Arc::new(Guarded {
                    door: Favoured::default(),
                    value: UnsafeCell::new(0),
                    asked: AtomicU32::new(0),
                });
                let other = shared.clone();
                let favoured = loom::thread::spawn(move || {
                    let interrupt = |here: u32| {
                        if here == point {
                            while other.asked.load(Ordering::Acquire) != 1 {
                                loom::thread::yield_now();
                            }
                            fence(Ordering::SeqCst);
                            other.asked.store(2, Ordering::Release);
                        }
                    };
                    interrupt(0);
                    // As `enter`, with an interrupt between its two halves.
                    other.door.inside.store(1, Ordering::Relaxed);
                    interrupt(1);
                    let entered = other.door.barred.load(Ordering::Acquire) == 0;
                    interrupt(2);
                    if entered {
                        raise(&other);
                    }
                    other.door.leave();
                    interrupt(3);
                    u32::from(entered)
                });
                let barrier = || {
                    shared.asked.store(1, Ordering::Release);
                    while shared.asked.load(Ordering::Acquire) != 2 {
                        loom::thread::yield_now();
                    }
                    fence(Ordering::SeqCst);
                    true
                };
                let shut = shared.door.bar(barrier);
                if shut {
                    raise(&shared);
                    shared.door.open();
                }
                let entered = favoured.join().unwrap();
                // SAFETY: no other thread is left.
                assert_eq!(shared.value.with(|value| unsafe { *value }), u32::from(shut) + entered);
            });
        }
    }
}
