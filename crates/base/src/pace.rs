//! Which sort of copy puts data fastest where another process has read before.
//!
//! A store to a line that another core has read waits until that core has given it up. Where the two share a cache this is
//! fast; where they do not (another socket, another part of the chip, or a virtual machine whose cores were placed so) it is ten
//! times slower than a store past the caches. So the time of plain copies is taken, and when they are slow, copies go past
//! the caches for a while.

use crate::UserAddress;
use crate::atomics::{AtomicU32, Ordering};
use std::time::Instant;

/// Shorter copies are over before the lines that they write could have been fetched.
const SHORT: usize = 512;
/// Shorter copies are always plain.
const LEAST: usize = 1024;
/// A plain copy of fewer bytes in a nanosecond is slow.
const SLOW: u128 = 6;
/// So many slow ones in a row are no accident.
const STRIKES: u32 = 3;
/// Copies past the caches before a plain one is tried again.
const AWAY: u32 = 1000;
/// While none was slow, the time of one copy in so many is taken: the clock costs (AMD Zen 4: of half a round trip of 64 KiB a tenth).
const TIMED: u32 = 8;

/// What was learned from the last copies.
#[derive(Debug)]
pub struct Pace {
    strikes: AtomicU32,
    away: AtomicU32,
    /// Copies until one whose time is taken.
    untimed: AtomicU32,
}

impl Default for Pace {
    fn default() -> Self {
        Pace { strikes: AtomicU32::new(0), away: AtomicU32::new(0), untimed: AtomicU32::new(0) }
    }
}

impl Pace {
    /// Copies to memory that other processes have read; the two ranges do not overlap.
    #[inline]
    pub fn copy(&self, target: UserAddress, source: UserAddress, length: usize) {
        if length < SHORT {
            target.copy_apart(source, length)
        } else if length < LEAST {
            target.copy_to_read(source, length)
        } else {
            self.copy_long(target, source, length)
        }
    }

    fn copy_long(&self, target: UserAddress, source: UserAddress, length: usize) {
        let away = self.away.load(Ordering::Relaxed);
        if away > 0 {
            self.away.store(away - 1, Ordering::Relaxed);
            return target.stream_from(source, length);
        }
        let untimed = self.untimed.load(Ordering::Relaxed);
        if untimed > 0 {
            self.untimed.store(untimed - 1, Ordering::Relaxed);
            return target.copy_to_read_later(source, length);
        }
        let start = Instant::now();
        target.copy_to_read_later(source, length);
        self.learn(length, start.elapsed().as_nanos());
    }

    fn learn(&self, length: usize, nanoseconds: u128) {
        if length as u128 >= nanoseconds * SLOW {
            self.untimed.store(TIMED - 1, Ordering::Relaxed);
            return self.strikes.store(0, Ordering::Relaxed);
        }
        let strikes = self.strikes.load(Ordering::Relaxed) + 1;
        if strikes < STRIKES {
            return self.strikes.store(strikes, Ordering::Relaxed);
        }
        // One more slow copy is enough after the while.
        self.strikes.store(STRIKES - 1, Ordering::Relaxed);
        self.away.store(AWAY, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn slow_copies_in_a_row_change_the_way_for_a_while() {
        let pace = Pace::default();
        let away = || pace.away.load(Ordering::Relaxed);
        pace.learn(8192, 10_000);
        pace.learn(8192, 10_000);
        pace.learn(8192, 1000);
        pace.learn(8192, 10_000);
        pace.learn(8192, 10_000);
        assert_eq!(away(), 0);
        pace.learn(8192, 10_000);
        assert_eq!(away(), AWAY);
        let (from, to) = (crate::Scratch::new(8192), crate::Scratch::new(8192));
        from.address().write(&[7; 8192]);
        pace.copy(to.address(), from.address(), 8192);
        assert_eq!(away(), AWAY - 1);
        let mut seen = [0; 8192];
        to.address().read(&mut seen);
        assert_eq!(seen, [7; 8192]);
    }
}
