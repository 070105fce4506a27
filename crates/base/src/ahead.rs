//! Lines that this core will write soon, and that other cores hold or none does: fetched few at a time by who waits anyway, so that the
//! stores find them there.

use crate::address::UserAddress;
use crate::atomics::fetch_to_write;
use crate::copy::LINE;

/// Lines of one call: more would keep who waits from seeing what he waits for.
const LINES: usize = 2;

/// What is still to be fetched: one range after the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ahead {
    now: Range,
    then: Range,
}

/// Addresses.
#[derive(Clone, Copy, Debug, Default)]
struct Range {
    at: usize,
    end: usize,
}

impl Ahead {
    /// Adds memory that will be written. At most two pieces; a third takes the place of the second.
    pub fn add(&mut self, target: UserAddress, length: usize) {
        let range = Range { at: target.value(), end: target.value() + length };
        if self.now.at >= self.now.end {
            self.now = range;
        } else {
            self.then = range;
        }
    }

    /// Fetches the next lines. `false`: there are none.
    #[inline(always)]
    pub fn fetch(&mut self) -> bool {
        if self.now.at >= self.now.end {
            if self.then.at >= self.then.end {
                return false;
            }
            self.now = std::mem::take(&mut self.then);
        }
        for line in 0..LINES {
            fetch_to_write(std::ptr::without_provenance::<u8>(self.now.at + line * LINE));
        }
        self.now.at += LINES * LINE;
        true
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn both_pieces_are_fetched_to_their_ends() {
        let (first, second) = (crate::Scratch::new(1000), crate::Scratch::new(4096));
        let mut ahead = Ahead::default();
        assert!(!ahead.fetch());
        ahead.add(first.address(), 1000);
        ahead.add(second.address(), 4096);
        let calls = std::iter::repeat_with(|| ahead.fetch()).take_while(|fetched| *fetched).count();
        assert_eq!(calls, 8 + 32);
        ahead.add(second.address(), 1);
        assert!(ahead.fetch() && !ahead.fetch());
    }
}
