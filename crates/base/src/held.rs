//! A value that several hold, and that one of them reaches as fast as if it were its own.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

/// An [`Arc`] with the address of what is in it, which need not be worked out at each use (of a trait object it must be: where the
/// object lies depends on its alignment).
#[derive(Debug)]
pub struct Held<T: ?Sized> {
    place: NonNull<T>,
    /// Keeps it where it is.
    _owner: Arc<T>,
}

impl<T: ?Sized> Held<T> {
    /// Holds what others may hold too.
    pub fn new(owner: Arc<T>) -> Held<T> {
        Held { place: NonNull::from(&*owner), _owner: owner }
    }
}

impl<T: ?Sized> Deref for Held<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: what an `Arc` holds does not move and lives as long as it, and only shared references are made.
        unsafe { self.place.as_ref() }
    }
}

// SAFETY: it is an `Arc`, and gives shared references to what is in it.
unsafe impl<T: ?Sized + Send + Sync> Send for Held<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for Held<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_there_as_long_as_somebody_holds_it() {
        let owner: Arc<dyn ToString + Send + Sync> = Arc::new(41_u64);
        let held = Held::new(owner.clone());
        drop(owner);
        assert_eq!(std::thread::spawn(move || held.to_string()).join().unwrap(), "41");
    }
}
