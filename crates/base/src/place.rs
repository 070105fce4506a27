//! Places that threads have to themselves, where each writes words of its own without a locked instruction.

use std::sync::atomic::{AtomicU32, Ordering};

/// How many places there are, the shared one among them.
pub const PLACES: usize = 7;
/// The place of all threads that have none to themselves.
pub const SHARED: usize = PLACES - 1;

/// The places that no thread has, a bit each.
static FREE: AtomicU32 = AtomicU32::new((1 << SHARED) - 1);

struct Place(usize);

impl Place {
    fn claim() -> Place {
        // Acquire pairs with the release in `drop`: what its last owner has written is visible.
        let claimed = FREE.fetch_update(Ordering::Acquire, Ordering::Relaxed, |free| {
            (free != 0).then(|| free & (free - 1))
        });
        Place(claimed.map_or(SHARED, |free| free.trailing_zeros() as usize))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.0 != SHARED {
            FREE.fetch_or(1 << self.0, Ordering::Release);
        }
    }
}

thread_local! {
    static OWN: Place = Place::claim();
}

/// The place of this thread.
#[inline]
pub fn own() -> usize {
    // A thread that ends may still come here when its place is gone.
    OWN.try_with(|own| own.0).unwrap_or(SHARED)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn no_two_threads_have_one_place() {
        for _ in 0..3 {
            let taken = std::sync::Barrier::new(2 * PLACES);
            let places = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..2 * PLACES)
                    .map(|_| {
                        scope.spawn(|| {
                            let place = own();
                            taken.wait();
                            place
                        })
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            });
            let mut own: Vec<_> = places.into_iter().filter(|place| *place != SHARED).collect();
            own.sort_unstable();
            assert!(own.iter().all(|place| *place < SHARED) && own.windows(2).all(|pair| pair[0] != pair[1]));
        }
    }
}
