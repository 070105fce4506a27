//! Pieces of bulk memory that a process has read, and keeps to write what it sends next into them.
//!
//! What a process has read lies in its own cache, and is written without asking anybody. So a message and its answer lie in the same memory, whoever owns
//! that; and those that two processes send each other many at a time swap theirs. The piece that was read last is taken first.
//!
//! One of each size is kept by anybody. A process keeps more where it misses them, which is where it sends as many as it receives, and
//! gives them up again where it only receives. What it does not keep it gives back in bundles: what it has read of one row shares a line to write and an
//! instruction with a lock. Which they are stands in shared memory, so that an owner that has none left may take its own back.

use crate::layout::{BUNDLE, KEPT};
use crate::pool::{CLASSES, bytes_of, class_for};
use parnass_base::Table;
use parnass_base::atomics::{AtomicU32, AtomicU64, Ordering};
use parnass_transport::Bulk;

/// Pieces of each class that a process keeps, at most: of 64 bytes to 512, of 1 KiB to 16, and of longer ones a mebibyte.
const MOST: [usize; CLASSES] = [1, 1, 1, 1, 64, 64, 64, 64, 64, 32, 16, 8, 4, 2, 1, 1];
/// Where those of each class are noted, and where they end.
const FROM: [usize; CLASSES + 1] = {
    let mut from = [0; CLASSES + 1];
    let mut class = 0;
    while class < CLASSES {
        from[class + 1] = from[class] + MOST[class];
        class += 1;
    }
    from
};
const _: () = assert!(FROM[CLASSES] <= KEPT);
/// Up to so many ranks keep as many as that. More ranks keep one of each of the shorter classes, so that all together keep no more than so many bytes of
/// one owner.
const FEW: u32 = 8;
const ALL: usize = 16 << 20;
/// Pieces that find no room, for each that is kept, until all but one are given up.
const IDLE: u32 = 4;
/// What may wait to be given back together.
const BUNDLED: usize = 128 << 10;

/// What a process keeps.
#[derive(Debug)]
pub struct Kept {
    /// The pieces, by class; 0: none.
    pieces: Table<AtomicU64>,
    classes: [Class; CLASSES],
    /// Classes of which pieces are kept, and pieces of each, at most.
    kept: usize,
    most: u32,
}

/// What its process knows of those of one class. Threads may disagree: then a piece that is there is found later, and none is lost.
#[derive(Debug)]
struct Class {
    count: AtomicU32,
    room: AtomicU32,
    /// Pieces that found no room since one was taken.
    idle: AtomicU32,
}

impl Kept {
    /// What the process keeps whose pieces are noted there, in a job of `size` ranks.
    pub fn new(pieces: Table<AtomicU64>, size: u32) -> Kept {
        let class = |_| Class { count: AtomicU32::new(0), room: AtomicU32::new(1), idle: AtomicU32::new(0) };
        let (kept, most) = if size <= FEW {
            (CLASSES, u32::MAX)
        } else {
            (class_for(ALL / size as usize / 2).unwrap_or(CLASSES), 1)
        };
        Kept { pieces, classes: std::array::from_fn(class), kept, most }
    }

    fn of(&self, class: usize) -> (&[AtomicU64], &Class) {
        (&self.pieces[FROM[class]..FROM[class + 1]], &self.classes[class])
    }

    /// Whether there is a piece for `length` bytes.
    pub fn has(&self, length: usize) -> bool {
        class_for(length).is_some_and(|class| self.classes[class].count.load(Ordering::Relaxed) != 0)
    }

    /// Takes the last piece for `length` bytes.
    pub fn take(&self, length: usize) -> Option<Bulk> {
        let (pieces, class) = self.of(class_for(length)?);
        let mut count = class.count.load(Ordering::Relaxed) as usize;
        let mut taken = None;
        while taken.is_none() && count != 0 {
            count -= 1;
            taken = take_from(&pieces[count]);
        }
        class.count.store(count as u32, Ordering::Relaxed);
        if taken.is_some() {
            class.idle.store(0, Ordering::Relaxed);
        } else {
            let room = class.room.load(Ordering::Relaxed);
            class.room.store((2 * room).min(pieces.len() as u32).min(self.most), Ordering::Relaxed);
        }
        taken
    }

    /// How many pieces of a class that find no room are given back together.
    fn bundle(&self, class: usize) -> u32 {
        let most = if self.most == 1 { 1 } else { BUNDLE.min(MOST[class]) };
        (BUNDLED / bytes_of(class)).clamp(1, most) as u32
    }

    /// Keeps a piece of `class` that was read. Those that go back to their owners instead are told to `give_back`, up to [`BUNDLE`] at a time.
    pub fn keep(&self, class: usize, bulk: Bulk, mut give_back: impl FnMut(&[Bulk])) {
        if class >= self.kept {
            return give_back(&[bulk]);
        }
        let bundle = self.bundle(class);
        let (pieces, class) = self.of(class);
        let (count, room) = (class.count.load(Ordering::Relaxed), class.room.load(Ordering::Relaxed));
        let has_room = count < (room + bundle - 1).min(pieces.len() as u32);
        let at = if has_room { count } else { room - 1 };
        // Release pairs with the acquire in `take_from`.
        let earlier = Bulk(pieces[at as usize].swap(bulk.0, Ordering::AcqRel));
        if has_room {
            if earlier.0 != 0 {
                give_back(&[earlier]);
            }
            return class.count.store(count + 1, Ordering::Relaxed);
        }
        let idle = class.idle.load(Ordering::Relaxed) + bundle;
        class.idle.store(idle, Ordering::Relaxed);
        let left = if room > 1 && idle > IDLE * room { 1 } else { room };
        class.room.store(left, Ordering::Relaxed);
        class.count.store(left, Ordering::Relaxed);
        let (mut together, mut number) = ([Bulk(0); BUNDLE], 0);
        let others = pieces[left as usize..count as usize].iter().filter_map(take_from);
        for bulk in Some(earlier).filter(|bulk| bulk.0 != 0).into_iter().chain(others) {
            together[number] = bulk;
            number += 1;
            if number == BUNDLE {
                give_back(&together);
                number = 0;
            }
        }
        if number != 0 {
            give_back(&together[..number]);
        }
    }
}

fn take_from(place: &AtomicU64) -> Option<Bulk> {
    // Mostly there is none where messages go one way.
    if place.load(Ordering::Relaxed) == 0 {
        return None;
    }
    // Acquire pairs with the release in `keep`.
    Some(Bulk(place.swap(0, Ordering::Acquire))).filter(|bulk| bulk.0 != 0)
}

/// Takes a piece for `length` bytes or more that is noted in `pieces`, whoever keeps it: where nothing else is left.
pub fn steal(pieces: &[AtomicU64], length: usize) -> Option<Bulk> {
    pieces[FROM[class_for(length)?]..].iter().find_map(take_from)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use parnass_base::{PAGE, Region};
    use proptest::prelude::*;
    use std::collections::{HashSet, VecDeque};

    const LENGTH: usize = 10_000;

    fn kept() -> Kept {
        Kept::new(Region::private(PAGE).unwrap().window(0, PAGE).table(0, KEPT), 2)
    }

    fn class() -> usize {
        class_for(LENGTH).unwrap()
    }

    /// Two that send each other windows of messages: what each claims, from what it keeps or else new, and what goes back.
    fn exchange(sides: &[Kept; 2], window: usize, next: &mut u64) -> (usize, usize) {
        let (mut claimed, mut back) = (0, 0);
        let mut send = |side: &Kept| -> Vec<Bulk> {
            let mut piece = || {
                side.take(LENGTH).unwrap_or_else(|| {
                    claimed += 1;
                    *next += 1;
                    Bulk(*next)
                })
            };
            (0..window).map(|_| piece()).collect()
        };
        let sent = [send(&sides[0]), send(&sides[1])];
        for (side, pieces) in sides.iter().rev().zip(sent) {
            pieces.into_iter().for_each(|piece| side.keep(class(), piece, |bulks| back += bulks.len()));
        }
        (claimed, back)
    }

    #[test]
    fn two_that_send_each_other_many_swap_them_and_one_that_only_receives_keeps_one() {
        let (sides, mut next) = ([kept(), kept()], 0);
        assert_eq!(exchange(&sides, 1, &mut next), (2, 0));
        assert_eq!(exchange(&sides, 1, &mut next), (0, 0));
        for window in [5, 32, 64] {
            for _ in 0..6 {
                exchange(&sides, window, &mut next);
            }
            assert_eq!(exchange(&sides, window, &mut next), (0, 0), "windows of {window}");
        }
        let (mut back, mut bundles) = (0, 0);
        for _ in 0..1000 {
            next += 1;
            sides[0].keep(class(), Bulk(next), |bulks| {
                back += bulks.len();
                bundles += 1;
            });
        }
        assert!((1000 + 64 - BUNDLE..1000 + 64).contains(&back), "{back} are given back");
        assert!(bundles <= 1000 / BUNDLE + 8 * BUNDLE, "in {bundles} bundles");
        assert!(sides[0].has(LENGTH) && !sides[0].has(100));
        assert_eq!(sides[0].take(LENGTH).map(|bulk| bulk.0), Some(next), "the last one");
    }

    #[test]
    fn many_ranks_keep_little_of_one_owner() {
        for size in [9, 16, 64, 1000, 1 << 20] {
            let table = Region::private(PAGE).unwrap().window(0, PAGE).table(0, KEPT);
            let (kept, mut bytes) = (Kept::new(table, size), 0);
            for class in 0..CLASSES {
                assert!((0..20).all(|_| kept.take(64 << class).is_none()), "it misses them");
                for _ in 0..20 {
                    bytes += 64 << class;
                    kept.keep(class, Bulk(1), |bulks| bytes -= bulks.len() * (64 << class));
                }
            }
            assert!(bytes * size as usize <= ALL, "{size} ranks keep {bytes} bytes each");
            assert!(
                size > 100_000 || bytes > ALL / size as usize / 4,
                "{size} ranks keep {bytes} bytes each"
            );
        }
    }

    #[test]
    fn an_owner_takes_its_own_back_whatever_their_size() {
        let kept = kept();
        for class in 0..CLASSES {
            kept.keep(class, Bulk(class as u64 + 1), |_| unreachable!("there is room for one"));
        }
        let stolen: Vec<u64> =
            std::iter::from_fn(|| steal(&kept.pieces, LENGTH).map(|bulk| bulk.0)).collect();
        assert_eq!(stolen, (class() as u64 + 1..=CLASSES as u64).collect::<Vec<_>>());
        assert!(kept.take(LENGTH).is_none() && kept.take(100).is_some());
    }

    proptest! {
        /// Whatever is kept, taken, stolen and given back, each piece is in one place.
        #[test]
        fn no_piece_is_lost_or_there_twice(steps in prop::collection::vec((0..8u8, 0..40usize), 1..60)) {
            let (kept, mut free) = (kept(), VecDeque::from_iter(1..=200u64));
            for (kind, count) in steps {
                for _ in 0..count {
                    match kind {
                        0..3 => free.extend(kept.take(LENGTH).map(|bulk| bulk.0)),
                        3 => free.extend(steal(&kept.pieces, LENGTH).map(|bulk| bulk.0)),
                        _ => {
                            let Some(piece) = free.pop_front() else { break };
                            kept.keep(class(), Bulk(piece), |bulks| free.extend(bulks.iter().map(|bulk| bulk.0)));
                        }
                    }
                }
            }
            free.extend(std::iter::from_fn(|| steal(&kept.pieces, LENGTH).map(|bulk| bulk.0)));
            prop_assert_eq!(free.len(), 200);
            prop_assert_eq!(free.iter().collect::<HashSet<_>>().len(), 200);
        }
    }
}
