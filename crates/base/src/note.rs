//! Notes that one process writes and others read: how the members of a group hand data to each other without messages.
//!
//! ```text
//! note      word 0: round (0: never written)     word 1: length of the data     words 2..8: the data, if it is
//!                                                                              short; else word 2: where it stands
//! mark      word 0: the last round of which its writer has read everything
//! ```
//! A writer has a ring of notes and uses them in turn, one per round. It writes data and length, and the round last. Who
//! has seen the round may read the data, until it says in its own mark that it is done with that round: a writer uses a
//! note again only when every mark has reached the round that the note was used for before.
//!
//! A note may also name memory of its writer's that others read directly. If the writer must have that memory back before they all have
//! said that they are done, it withdraws the note; who reads looks at the note once more when it has read.

use crate::atomics::{AtomicU64, Ordering, fence};

/// Bytes of data that fit into a note itself.
pub const NOTE_BYTES: usize = 48;
/// Where they start in it.
pub const NOTE_DATA_AT: usize = 16;

/// One note: a cache line. Zeroed memory is a note that was never written.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Note {
    round: AtomicU64,
    length: AtomicU64,
    /// Written and read as plain memory, by its address.
    data: [AtomicU64; NOTE_BYTES / 8],
}

/// How far one reader has come: a cache line of its own. Zeroed memory has read nothing.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Mark {
    done: AtomicU64,
    _line: [AtomicU64; 7],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Note>() == 64 && size_of::<Mark>() == 64);
#[cfg(not(loom))]
const _: () = assert!(std::mem::offset_of!(Note, data) == NOTE_DATA_AT);

#[cfg(not(loom))]
// SAFETY: repr(C), made of atomics.
unsafe impl crate::record::Record for Note {}
#[cfg(not(loom))]
// SAFETY: repr(C), made of atomics.
unsafe impl crate::record::Record for Mark {}

fn zeros<const N: usize>() -> [AtomicU64; N] {
    std::array::from_fn(|_| AtomicU64::new(0))
}

impl Default for Note {
    fn default() -> Self {
        Note { round: AtomicU64::new(0), length: AtomicU64::new(0), data: zeros() }
    }
}

impl Default for Mark {
    fn default() -> Self {
        Mark { done: AtomicU64::new(0), _line: zeros() }
    }
}

impl Note {
    /// Says where data that is not in the note stands. Before it is posted, by its writer.
    #[inline(always)]
    pub fn refer(&self, place: u64) {
        self.data[0].store(place, Ordering::Relaxed);
    }

    /// What [`Note::refer`] said, once it was posted.
    #[inline(always)]
    pub fn reference(&self) -> u64 {
        self.data[0].load(Ordering::Relaxed)
    }

    /// Announces `length` bytes, which stand in the note or elsewhere. Only its writer may call it, and only when the
    /// readers are done with what stood there.
    #[inline(always)]
    pub fn post(&self, round: u64, length: u64) {
        self.length.store(length, Ordering::Relaxed);
        // Release pairs with the acquire in `posted`.
        self.round.store(round, Ordering::Release);
    }

    /// The length that was announced for this round, if it was.
    #[inline(always)]
    pub fn posted(&self, round: u64) -> Option<u64> {
        // Acquire pairs with the release in `post`.
        (self.round.load(Ordering::Acquire) == round).then(|| self.length.load(Ordering::Relaxed))
    }

    /// Puts `length` in the place of what was announced. What the writer does afterwards to memory that the note names is seen by nobody
    /// who still finds the old length with [`Note::still_posted`].
    pub fn withdraw(&self, length: u64) {
        self.length.store(length, Ordering::Relaxed);
        // Pairs with the fence in `still_posted`.
        fence(Ordering::Release);
    }

    /// What [`Note::posted`] says, after everything that was read before.
    #[inline]
    pub fn still_posted(&self, round: u64) -> Option<u64> {
        // Pairs with the fence in `withdraw`.
        fence(Ordering::Acquire);
        self.posted(round)
    }

    /// As never written.
    pub fn clear(&self) {
        self.round.store(0, Ordering::Relaxed);
    }
}

impl Mark {
    /// Its writer has read everything up to and with this round.
    #[inline(always)]
    pub fn set(&self, round: u64) {
        // Release pairs with the acquire in `get`: what was read is read before it is overwritten.
        self.done.store(round, Ordering::Release);
    }

    /// The last round of which everything has been read.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        // Acquire pairs with the release in `set`.
        self.done.load(Ordering::Acquire)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_there_for_its_round_only() {
        let note = Note::default();
        assert_eq!(note.posted(1), None);
        note.refer(4096);
        note.post(1, 50);
        assert_eq!((note.posted(1), note.posted(2), note.reference()), (Some(50), None, 4096));
        note.clear();
        assert_eq!(note.posted(1), None);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;

    /// A writer takes back what it has offered while another reads it: the other keeps nothing that was written after that.
    #[test]
    fn what_is_read_after_a_withdrawal_is_found_out() {
        loom::model(|| {
            let offer = Arc::new((Note::default(), AtomicU64::new(7)));
            let other = offer.clone();
            let reader = loom::thread::spawn(move || {
                let (note, memory) = &*other;
                if note.posted(1) == Some(8) {
                    let seen = memory.load(Ordering::Relaxed);
                    if note.still_posted(1) == Some(8) {
                        assert_eq!(seen, 7);
                    }
                }
            });
            let (note, memory) = &*offer;
            note.post(1, 8);
            note.withdraw(0);
            memory.store(9, Ordering::Relaxed);
            reader.join().unwrap();
        });
    }

    struct Board {
        notes: [Note; 2],
        marks: [Mark; 2],
        /// The data beside the notes: plain memory, whose races loom finds.
        data: [loom::cell::UnsafeCell<u64>; 2],
    }

    // SAFETY: the cells are what the protocol under test protects.
    unsafe impl Sync for Board {}

    fn exchange(board: &Board, me: usize, rounds: u64) {
        for round in 1..=rounds {
            // One note each: the peer must have read what stood in it.
            while board.marks[1 - me].get() + 1 < round {
                loom::thread::yield_now();
            }
            // SAFETY: loom checks that nobody reads meanwhile.
            board.data[me].with_mut(|cell| unsafe { *cell = round * 10 + me as u64 });
            board.notes[me].post(round, 8);
            while board.notes[1 - me].posted(round).is_none() {
                loom::thread::yield_now();
            }
            // SAFETY: loom checks that nobody writes meanwhile.
            let seen = board.data[1 - me].with(|cell| unsafe { *cell });
            assert_eq!(seen, round * 10 + 1 - me as u64);
            board.marks[me].set(round);
        }
    }

    /// Two members who use their notes again and again: nothing is overwritten while it is read.
    #[test]
    fn notes_are_used_again_only_when_read() {
        loom::model(|| {
            let board = Arc::new(Board {
                notes: Default::default(),
                marks: Default::default(),
                data: [loom::cell::UnsafeCell::new(0), loom::cell::UnsafeCell::new(0)],
            });
            let other = board.clone();
            let peer = loom::thread::spawn(move || exchange(&other, 1, 2));
            exchange(&board, 0, 2);
            peer.join().unwrap();
        });
    }
}
