//! Working memory for packed messages, kept for the next message of about the same length.

use parnass_base::{Scratch, UserAddress};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Lengths up to 2^KEPT_CLASSES bytes are kept.
const KEPT_CLASSES: usize = 26;
/// Lengths beyond 2^SMALL_CLASSES bytes are kept only while they are no more than [`LARGE_BYTES`] in all: mapping and clearing
/// fresh pages costs more than packing into them, but an idle process should not sit on much memory.
const SMALL_CLASSES: usize = 20;
const LARGE_BYTES: usize = 64 << 20;
/// The shortest length, as a power of two.
const FIRST_CLASS: usize = 8;
/// How many pieces of one length are kept.
const KEPT_PER_CLASS: usize = 16;

/// The pieces that wait for their next use, by the power of two of their length.
#[derive(Debug, Default)]
pub(crate) struct StagingPool {
    classes: [Mutex<Vec<Scratch>>; KEPT_CLASSES + 1],
    /// Bytes of the large pieces that are kept.
    large: AtomicUsize,
}

/// A piece of working memory; goes back to its pool when it is dropped.
#[derive(Debug)]
pub(crate) struct Staging {
    scratch: Option<Scratch>,
    pool: Arc<StagingPool>,
}

impl StagingPool {
    /// At least `length` bytes.
    pub(crate) fn take(self: &Arc<Self>, length: u64) -> Staging {
        let length = usize::try_from(length).expect("a buffer fits into the address space");
        let class = (length.max(1).next_power_of_two().trailing_zeros() as usize).max(FIRST_CLASS);
        let scratch = if class <= KEPT_CLASSES {
            let kept = self.classes[class].lock().unwrap_or_else(PoisonError::into_inner).pop();
            if class > SMALL_CLASSES && kept.is_some() {
                self.large.fetch_sub(1 << class, Ordering::Relaxed);
            }
            kept.unwrap_or_else(|| Scratch::new(1 << class))
        } else {
            Scratch::new(length)
        };
        Staging { scratch: Some(scratch), pool: Arc::clone(self) }
    }
}

impl Staging {
    /// Where it starts.
    pub(crate) fn address(&self) -> UserAddress {
        self.scratch.as_ref().map_or(UserAddress::NULL, Scratch::address)
    }

    /// Gives the memory up for the life of the process, because somebody may still write to it.
    pub(crate) fn leak(mut self) {
        std::mem::forget(self.scratch.take());
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let Some(scratch) = self.scratch.take() else { return };
        let class = scratch.len().trailing_zeros() as usize;
        if scratch.len().is_power_of_two() && class <= KEPT_CLASSES {
            let mut kept = self.pool.classes[class].lock().unwrap_or_else(PoisonError::into_inner);
            if class <= SMALL_CLASSES {
                if kept.len() < KEPT_PER_CLASS {
                    kept.push(scratch);
                }
            } else if self.pool.large.fetch_add(scratch.len(), Ordering::Relaxed) + scratch.len()
                <= LARGE_BYTES
            {
                kept.push(scratch);
            } else {
                self.pool.large.fetch_sub(scratch.len(), Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_comes_back_for_the_next_message_of_its_length() {
        let pool = Arc::new(StagingPool::default());
        let first = pool.take(1000);
        let address = first.address();
        drop(first);
        assert_eq!(pool.take(600).address(), address);
        let long = pool.take(5 << 20);
        assert!(long.scratch.as_ref().is_some_and(|scratch| scratch.len() >= 5 << 20));
        drop(long);
        let pieces: Vec<Staging> = (0..20).map(|_| pool.take(5 << 20)).collect();
        drop(pieces);
        assert_eq!(pool.large.load(Ordering::Relaxed), LARGE_BYTES);
        let pieces: Vec<Staging> = (0..20).map(|_| pool.take(5 << 20)).collect();
        assert_eq!(pool.large.load(Ordering::Relaxed), 0);
        drop(pieces);
    }
}
