//! A ledger: pieces of an address space that one process keeps account of, in memory that others look them up in.
//!
//! ```text
//! head      version: odd while the owner writes     count: entries in use, or UNKNOWN
//! entry     start                                   length        in the order of their starts; no two overlap
//! ```
//! The owner never waits. Who looks something up while the owner writes learns nothing, and tries again.

use crate::atomics::{AtomicU64, Ordering};

/// A count that says that the pieces are more than the entries.
const UNKNOWN: u64 = u64::MAX;

/// The head of a ledger: a cache line. Zeroed memory is a ledger without pieces.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Ledger {
    version: AtomicU64,
    count: AtomicU64,
    _line: [AtomicU64; 6],
}

/// The place of one piece.
#[derive(Debug)]
#[repr(C)]
pub struct Entry {
    start: AtomicU64,
    length: AtomicU64,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Ledger>() == 64 && size_of::<Entry>() == 16);

#[cfg(not(loom))]
// SAFETY: repr(C), made of atomics.
unsafe impl crate::record::Record for Ledger {}
#[cfg(not(loom))]
// SAFETY: repr(C), made of atomics.
unsafe impl crate::record::Record for Entry {}

impl Default for Ledger {
    fn default() -> Self {
        Ledger {
            version: AtomicU64::new(0),
            count: AtomicU64::new(0),
            _line: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl Default for Entry {
    fn default() -> Self {
        Entry { start: AtomicU64::new(0), length: AtomicU64::new(0) }
    }
}

/// What a ledger says about a run of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account {
    /// All of it lies in pieces.
    Held,
    /// This is its first byte that lies in none.
    Missing(u64),
    /// The ledger does not know its pieces.
    Unknown,
}

/// The first byte of the run `start .. end` that no piece holds. `end_of` gives the end of the piece that holds a byte. A run may go on
/// from one piece into the next.
pub fn first_missing(start: u64, end: u64, end_of: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    let mut at = start;
    while at < end {
        match end_of(at) {
            Some(next) => at = next,
            None => return Some(at),
        }
    }
    None
}

impl Ledger {
    /// For the owner, one thread at a time: from entry `first` on there are these pieces (start and length), and no others. Those before stay.
    /// If that is more than there are entries, the ledger does not know its pieces until it is written from the first entry on.
    pub fn write(&self, entries: &[Entry], first: usize, pieces: impl ExactSizeIterator<Item = (u64, u64)>) {
        let count = first + pieces.len();
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        // Release pairs with the acquire of each load in `look_up`: who sees something of what is new sees the odd version too.
        if count <= entries.len() {
            for (entry, (start, length)) in entries[first..].iter().zip(pieces) {
                entry.start.store(start, Ordering::Release);
                entry.length.store(length, Ordering::Release);
            }
            self.count.store(count as u64, Ordering::Release);
        } else {
            self.count.store(UNKNOWN, Ordering::Release);
        }
        // Release pairs with the first acquire in `look_up`: who sees this version sees all that it consists of.
        self.version.store(version + 2, Ordering::Release);
    }

    /// For the owner: whether the pieces are known.
    pub fn is_known(&self) -> bool {
        self.count.load(Ordering::Relaxed) != UNKNOWN
    }

    /// What is said about the bytes `start .. end`; `None` while the owner writes.
    #[inline]
    pub fn look_up(&self, entries: &[Entry], start: u64, end: u64) -> Option<Account> {
        let version = self.version.load(Ordering::Acquire);
        if !version.is_multiple_of(2) {
            return None;
        }
        let account = match self.count.load(Ordering::Acquire) {
            UNKNOWN => Account::Unknown,
            count => {
                // What is read in the middle of a change may be anything.
                let used = &entries[..entries.len().min(count as usize)];
                let missing = first_missing(start, end, |at| {
                    let after = used.partition_point(|entry| entry.start.load(Ordering::Acquire) <= at);
                    let entry = used.get(after.checked_sub(1)?)?;
                    let next = entry
                        .start
                        .load(Ordering::Acquire)
                        .saturating_add(entry.length.load(Ordering::Acquire));
                    (next > at).then_some(next)
                });
                missing.map_or(Account::Held, Account::Missing)
            }
        };
        (self.version.load(Ordering::Relaxed) == version).then_some(account)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn entries<const COUNT: usize>() -> [Entry; COUNT] {
        std::array::from_fn(|_| Entry::default())
    }

    #[test]
    fn a_run_may_go_on_into_the_next_piece() {
        let (ledger, entries) = (Ledger::default(), entries::<4>());
        let account = |start, end| ledger.look_up(&entries, start, end).unwrap();
        assert_eq!(account(100, 101), Account::Missing(100));
        ledger.write(&entries, 0, [(100, 100), (200, 50), (300, 1)].into_iter());
        assert_eq!(account(100, 250), Account::Held);
        assert_eq!(account(150, 251), Account::Missing(250));
        assert_eq!(account(99, 100), Account::Missing(99));
        assert_eq!(account(300, 302), Account::Missing(301));
        assert_eq!(account(400, 400), Account::Held, "no bytes are missing nowhere");
        ledger.write(&entries, 1, [(300, 1)].into_iter());
        assert_eq!(account(100, 250), Account::Missing(200));
        assert_eq!(account(300, 301), Account::Held);
    }

    #[test]
    fn more_pieces_than_entries_are_not_known() {
        let (ledger, entries) = (Ledger::default(), entries::<2>());
        ledger.write(&entries, 0, [(10, 1), (20, 1), (30, 1)].into_iter());
        assert!(!ledger.is_known());
        assert_eq!(ledger.look_up(&entries, 10, 11), Some(Account::Unknown));
        ledger.write(&entries, 0, [(10, 1), (30, 1)].into_iter());
        assert!(ledger.is_known());
        assert_eq!(ledger.look_up(&entries, 30, 31), Some(Account::Held));
        assert_eq!(ledger.look_up(&entries, 20, 21), Some(Account::Missing(20)));
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;

    fn account(ledger: &Ledger, entries: &[Entry], start: u64, end: u64) -> Account {
        loop {
            match ledger.look_up(entries, start, end) {
                Some(account) => return account,
                None => loom::thread::yield_now(),
            }
        }
    }

    /// A piece goes, by which another moves up: who looks up meanwhile sees all of it or nothing. What stays is never missed, and two halves
    /// of different states are never taken for a whole.
    #[test]
    fn a_change_is_seen_as_a_whole() {
        loom::model(|| {
            let shared = Arc::new((Ledger::default(), [Entry::default(), Entry::default()]));
            shared.0.write(&shared.1, 0, [(10, 10), (40, 10)].into_iter());
            let other = shared.clone();
            let owner = loom::thread::spawn(move || {
                other.0.write(&other.1, 0, [(40, 10)].into_iter());
            });
            assert_eq!(account(&shared.0, &shared.1, 40, 50), Account::Held);
            let seen = account(&shared.0, &shared.1, 10, 20);
            assert!(matches!(seen, Account::Held | Account::Missing(10)), "{seen:?}");
            owner.join().unwrap();
            assert_eq!(account(&shared.0, &shared.1, 10, 20), Account::Missing(10));
        });
    }

    /// Whoever was told of a change, by whatever orders memory, sees it.
    #[test]
    fn a_change_that_was_told_of_is_seen() {
        loom::model(|| {
            let shared = Arc::new((Ledger::default(), [Entry::default()], AtomicU64::new(0)));
            shared.0.write(&shared.1, 0, [(10, 10)].into_iter());
            let other = shared.clone();
            let owner = loom::thread::spawn(move || {
                other.0.write(&other.1, 0, [].into_iter());
                other.2.store(1, Ordering::Release);
            });
            if shared.2.load(Ordering::Acquire) == 1 {
                assert_eq!(shared.0.look_up(&shared.1, 10, 20), Some(Account::Missing(10)));
            }
            owner.join().unwrap();
        });
    }
}
