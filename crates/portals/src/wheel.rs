//! What a process does for others while it computes, see [`Wheel`]: the place where it is kept.

use crate::interface::Wheel;
use parnass_base::atomics::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// A wheel, once there is one.
#[derive(Default)]
pub struct Wheels {
    any: AtomicBool,
    wheel: RwLock<Option<Arc<dyn Wheel>>>,
}

impl Wheels {
    /// Whoever turns it holds the lock to read: when this returns, the wheel that was there before is turned by nobody.
    pub fn set(&self, wheel: Option<Arc<dyn Wheel>>) {
        let any = wheel.is_some();
        let before =
            std::mem::replace(&mut *self.wheel.write().unwrap_or_else(PoisonError::into_inner), wheel);
        self.any.store(any, Ordering::Release);
        drop(before);
    }

    /// Whether there is one.
    pub fn is_there(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Turns it. `None`: there is none.
    pub fn turn(&self) -> Option<bool> {
        if !self.is_there() {
            return None;
        }
        let wheel = self.wheel.read().unwrap_or_else(PoisonError::into_inner);
        wheel.as_ref().map(|wheel| wheel.turn())
    }

    /// See [`Wheel::is_due`].
    pub fn is_due(&self) -> bool {
        self.is_there() && {
            let wheel = self.wheel.read().unwrap_or_else(PoisonError::into_inner);
            wheel.as_ref().is_some_and(|wheel| wheel.is_due())
        }
    }
}
