//! Pieces of memory that two members of a board pass to and fro.
//!
//! What a process has just read lies in its own cache, and is written there sooner than memory that the other one has read. So who has read a piece
//! owns it from then on, and posts its next data in it. Where both post, two pieces go from hand to hand; where one does, the other ends up with all
//! of them.

use parnass_base::atomics::{AtomicU64, Ordering};

/// Pieces that each of the two has at first. More than one, since data may be posted before that of the round before is read.
pub const EACH: usize = 4;
/// All pieces there are.
pub const PIECES: usize = 2 * EACH;

/// Bits of the number of a piece on the stack of those that are held; 0 is none.
const BITS: u32 = 4;
const _: () = assert!(PIECES < 1 << BITS && PIECES as u32 * BITS <= u64::BITS);

/// The pieces of one member, who alone uses this.
#[derive(Debug, Default)]
pub struct Hand {
    /// The piece that was read last is on top.
    held: AtomicU64,
    /// How many of the first ones have been used.
    used: AtomicU64,
    /// Bits of the pieces that are being read, and the last round in which one was.
    read: AtomicU64,
    round: AtomicU64,
}

impl Hand {
    /// A piece to write into, for member `me`, or none. `reserve` gives memory to one that nobody has used.
    pub fn take(&self, me: usize, reserve: impl FnOnce(usize) -> bool) -> Option<usize> {
        let held = self.held.load(Ordering::Relaxed);
        if held != 0 {
            self.held.store(held >> BITS, Ordering::Relaxed);
            return Some((held & ((1 << BITS) - 1)) as usize - 1);
        }
        let used = self.used.load(Ordering::Relaxed) as usize;
        let piece = me * EACH + used;
        if used == EACH || !reserve(piece) {
            return None;
        }
        self.used.store(used as u64 + 1, Ordering::Relaxed);
        Some(piece)
    }

    /// The data of a round stands in a piece, and is about to be read.
    pub fn note_read(&self, piece: usize, round: u64) {
        self.read.store(self.read.load(Ordering::Relaxed) | 1 << piece, Ordering::Relaxed);
        self.round.store(round, Ordering::Relaxed);
    }

    /// Nothing of the rounds up to this one is read any more.
    #[inline]
    pub fn done(&self, round: u64) {
        let read = self.read.load(Ordering::Relaxed);
        if read != 0 && self.round.load(Ordering::Relaxed) <= round {
            self.gain(read);
        }
    }

    fn gain(&self, read: u64) {
        let pieces = (0..PIECES as u64).filter(|piece| read & 1 << piece != 0);
        let held = pieces.fold(self.held.load(Ordering::Relaxed), |held, piece| held << BITS | (piece + 1));
        self.held.store(held, Ordering::Relaxed);
        self.read.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_piece_is_in_one_hand() {
        let hands = [Hand::default(), Hand::default()];
        let take = |me: usize| hands[me].take(me, |_| true);
        // One gives: the other has all in the end.
        for round in 0..EACH as u64 {
            let piece = take(0).unwrap();
            hands[1].note_read(piece, round);
            hands[1].done(round);
        }
        assert_eq!(take(0), None);
        let mut all: Vec<usize> = (0..PIECES).map(|_| take(1).unwrap()).collect();
        assert_eq!(take(1), None);
        assert_eq!(all[0], EACH - 1, "what was read last is written first");
        all.sort_unstable();
        assert_eq!(all, (0..PIECES).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_still_read_is_not_written() {
        let hand = Hand::default();
        hand.note_read(7, 3);
        hand.done(2);
        assert_eq!(hand.take(0, |_| false), None);
        hand.note_read(7, 3);
        hand.done(3);
        assert_eq!(hand.take(0, |_| false), Some(7));
        assert_eq!(hand.take(0, |_| false), None, "without memory there is no piece");
    }
}
