//! Bulk memory: pieces of a rank's own area that travel inside messages and come back.
//!
//! The owner carves pieces of sizes 64 bytes to 2 MiB (powers of two) from its area, keeps the free ones in
//! queues of this process, and finds those that receivers gave back on one shared stack, which it empties at
//! once. Nobody but the owner pops, so the stack needs no protection against reuse.
//!
//! Where memory is written that lies in another core's own cache, that core has to be asked first, line by line; on
//! some machines (virtual ones above all) this runs at a tenth of the speed of a copy. So pieces of a size that is in
//! use take turns, enough of them that a piece has left the cache of whoever read it when its turn comes again.

use crate::layout::{BULK_BYTES, Piece, Station};
use parnass_base::Window;
use parnass_base::atomics::Ordering;
use std::collections::VecDeque;

/// The smallest piece holds `1 << SMALLEST` bytes.
const SMALLEST: u32 = 6;
/// The largest piece holds `1 << LARGEST` bytes.
pub const LARGEST: u32 = 21;
pub const CLASSES: usize = (LARGEST - SMALLEST + 1) as usize;
/// A piece starts with lines of its own.
pub const HEAD: usize = size_of::<Piece>();
/// Where the first piece starts: offset 0 is never one.
const FIRST: usize = 64;
const _: () = assert!(BULK_BYTES <= u32::MAX as usize);
/// What sends leave for messages that arrive in the mailbox and are kept.
const FOR_KEEPING: usize = 20 << 20;
/// Of pieces that do not take turns there are so many bytes before a process runs ahead.
const FEW: usize = 256 << 10;
/// Memory is reserved in steps of this many bytes.
const STEP: usize = 64 << 10;

/// The owner's view.
#[derive(Debug)]
pub struct Pool {
    window: Window,
    /// Offsets / 64 of free pieces, by class: those that take turns, and more that a flood once needed.
    free: [VecDeque<u32>; CLASSES],
    spare: [Vec<u32>; CLASSES],
    /// Bytes carved, by class, and up to how many more are carved while there are free ones.
    carved: [usize; CLASSES],
    turns: usize,
    /// Pieces just taken from the stack, with their classes. Empty between calls.
    back: Vec<(u32, usize)>,
    /// Where nothing has been carved yet.
    fresh: usize,
    reserved: usize,
}

impl Pool {
    /// A pool over the bulk memory of this rank. Pieces of one size take turns until they make up `turns` bytes.
    pub fn new(window: Window, turns: usize) -> Pool {
        // Offset 0 is never a piece, so that 0 can mean none.
        Pool {
            window,
            turns,
            back: Vec::new(),
            carved: [0; CLASSES],
            free: Default::default(),
            spare: Default::default(),
            fresh: FIRST,
            reserved: 0,
        }
    }

    /// A piece for `length` bytes: its offset in the bulk memory. Only what is kept may use the last [`FOR_KEEPING`] bytes.
    pub fn claim(&mut self, station: &Station, length: usize, keep: bool) -> Option<usize> {
        let class = class_for(length)?;
        let limit = if keep { BULK_BYTES } else { BULK_BYTES - FOR_KEEPING };
        if self.carved[class] < self.turns
            && let Some(fresh) = self.carve(class, limit)
        {
            return Some(fresh);
        }
        if self.free[class].is_empty() {
            self.collect(station);
        }
        self.take(class)
            .or_else(|| self.carve(class, limit))
            .or_else(|| (class + 1..CLASSES).find_map(|larger| self.take(larger)))
    }

    fn take(&mut self, class: usize) -> Option<usize> {
        let unit = self.free[class].pop_front().or_else(|| self.spare[class].pop())?;
        Some(unit as usize * 64)
    }

    /// Whether all pieces for `length` bytes that take turns are under way.
    pub fn runs_ahead(&mut self, station: &Station, length: usize) -> bool {
        let is_used_up = |class: &usize| self.carved[*class] >= self.turns.max(FEW);
        let Some(class) = class_for(length).filter(is_used_up) else {
            return false;
        };
        if self.free[class].is_empty() {
            self.collect(station);
        }
        self.free[class].is_empty()
    }

    fn carve(&mut self, class: usize, limit: usize) -> Option<usize> {
        let length = bytes_of(class);
        let offset = self.fresh;
        let end = offset + length;
        if end > limit {
            return None;
        }
        if end > self.reserved {
            let step = STEP.max(end - self.reserved).next_multiple_of(STEP).min(BULK_BYTES - self.reserved);
            self.window.reserve(self.reserved, step).ok()?;
            self.reserved += step;
        }
        self.fresh = end;
        self.carved[class] += length;
        self.window.reference::<Piece>(offset).class.set(class as u32);
        Some(offset)
    }

    /// Takes over what came back.
    fn collect(&mut self, station: &Station) {
        if station.returned.load(Ordering::Relaxed) == 0 {
            return;
        }
        // Acquire pairs with the release in `give_back`: the receiver has read the piece.
        let mut unit = station.returned.swap(0, Ordering::Acquire);
        while unit != 0 {
            let piece = self.window.reference::<Piece>(unit as usize * 64);
            let class = (piece.class.get() as usize).min(CLASSES - 1);
            let bundle = piece.bundle.each_ref().map(|unit| unit.load(Ordering::Relaxed));
            let others = bundle.iter().position(|unit| *unit == 0).unwrap_or(bundle.len());
            self.back.extend(bundle[..others].iter().rev().map(|unit| (*unit, class)));
            self.back.push((unit, class));
            unit = piece.next.load(Ordering::Relaxed);
        }
        // The one that came back last was on top.
        for (unit, class) in self.back.drain(..).rev() {
            if self.free[class].len() * bytes_of(class) < self.turns {
                self.free[class].push_back(unit);
            } else {
                self.spare[class].push(unit);
            }
        }
    }
}

/// Bytes of a piece of this class, its head among them.
pub fn bytes_of(class: usize) -> usize {
    HEAD + (1 << (class as u32 + SMALLEST))
}

/// The class of the pieces for `length` bytes.
pub fn class_for(length: usize) -> Option<usize> {
    let class = (usize::BITS - length.saturating_sub(1).leading_zeros()).max(SMALLEST) - SMALLEST;
    Some(class as usize).filter(|class| *class < CLASSES)
}

/// Gives pieces of one class back to the owner of `window` and `station`: those at `first` and at the others, fewer than [`crate::layout::BUNDLE`] of them.
pub fn give_back(window: &Window, station: &Station, first: usize, others: impl Iterator<Item = usize>) {
    let piece = window.reference::<Piece>(first);
    let unit = |offset: usize| (offset / 64) as u32;
    let others = others.map(unit).chain(std::iter::repeat(0));
    for (place, other) in piece.bundle.iter().zip(others) {
        place.store(other, Ordering::Relaxed);
        if other == 0 {
            break;
        }
    }
    let unit = unit(first);
    let mut top = station.returned.load(Ordering::Relaxed);
    loop {
        piece.next.store(top, Ordering::Relaxed);
        // Release pairs with the acquire in `collect`.
        match station.returned.compare_exchange_weak(top, unit, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => top = now,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::layout::BUNDLE;
    use parnass_base::{PAGE, Region};
    use std::collections::HashSet;

    /// What a flood has needed is not used any more afterwards: what takes turns stays in a cache.
    #[test]
    fn after_a_flood_few_pieces_take_turns() {
        const LENGTH: usize = 16 << 10;
        const TURNS: usize = 256 << 10;
        let memory = Region::private(BULK_BYTES).unwrap().window(0, BULK_BYTES);
        let station = Region::private(PAGE).unwrap().window(0, PAGE).record::<Station>(0);
        let mut pool = Pool::new(memory.clone(), TURNS);
        let turns = TURNS.div_ceil(LENGTH + HEAD);
        let claim = |pool: &mut Pool| pool.claim(&station, LENGTH, false).expect("there is room");
        let give_back = |offset: usize| give_back(&memory, &station, offset, std::iter::empty());

        let mut sent: Vec<usize> = (0..turns).map(|_| claim(&mut pool)).collect();
        assert!(pool.runs_ahead(&station, LENGTH) && !pool.runs_ahead(&station, 4 * LENGTH));
        give_back(sent.remove(0));
        assert!(!pool.runs_ahead(&station, LENGTH), "one was read");
        sent.extend((0..10 * turns).map(|_| claim(&mut pool)));
        assert_eq!(sent.iter().collect::<HashSet<_>>().len(), sent.len());

        sent.drain(..).for_each(give_back);
        let used: HashSet<usize> = (0..20 * turns)
            .map(|_| {
                let offset = claim(&mut pool);
                give_back(offset);
                offset
            })
            .collect();
        assert!(used.len() <= turns, "{} pieces take turns, not {turns}", used.len());
        let all: HashSet<usize> = (0..11 * turns).map(|_| claim(&mut pool)).collect();
        assert!(all.len() == 11 * turns, "nothing is lost, and nothing is given out twice");
    }

    /// Bundles of every length, of which shorter ones follow longer ones in the same lines.
    #[test]
    fn what_comes_back_in_bundles_comes_back_in_order() {
        const LENGTH: usize = 1 << 10;
        let memory = Region::private(BULK_BYTES).unwrap().window(0, BULK_BYTES);
        let station = Region::private(PAGE).unwrap().window(0, PAGE).record::<Station>(0);
        let mut pool = Pool::new(memory.clone(), 64 << 10);
        let lengths = (1..=BUNDLE).rev();
        let pieces: Vec<usize> =
            (0..lengths.clone().sum()).map(|_| pool.claim(&station, LENGTH, false).unwrap()).collect();
        for round in 0..20 {
            let mut left = &pieces[..];
            // The first bundle of a round is a longer one than that which the same piece began before.
            for length in lengths.clone().cycle().skip(round).take(BUNDLE) {
                let (bundle, rest) = left.split_at(length);
                give_back(&memory, &station, bundle[0], bundle[1..].iter().copied());
                left = rest;
            }
            assert!(left.is_empty());
            pool.collect(&station);
            let back: Vec<usize> = std::iter::from_fn(|| pool.take(class_for(LENGTH).unwrap())).collect();
            assert_eq!(back, pieces);
        }
    }
}
