//! Bulk memory: pieces of a rank's own area that travel inside messages and come back.
//!
//! The owner carves pieces of sizes 64 to 64 Ki bytes (powers of two) from its area, keeps the free ones in
//! stacks of this process, and finds those that receivers gave back on one shared stack, which it empties at
//! once. Nobody but the owner pops, so the stack needs no protection against reuse.

use crate::layout::{BULK_BYTES, Piece, Station};
use parnass_base::atomics::Ordering;
use parnass_base::{Placed, Window};

/// The smallest piece holds `1 << SMALLEST` bytes.
const SMALLEST: u32 = 6;
/// The largest piece holds `1 << LARGEST` bytes.
pub const LARGEST: u32 = 16;
const CLASSES: usize = (LARGEST - SMALLEST + 1) as usize;
/// A piece starts with a line of its own.
pub const HEAD: usize = size_of::<Piece>();
/// Memory is reserved in steps of this many bytes.
const STEP: usize = 64 << 10;

/// The owner's view.
#[derive(Debug)]
pub struct Pool {
    window: Window,
    /// Offsets / 64 of free pieces, by class.
    free: [Vec<u32>; CLASSES],
    /// Where nothing has been carved yet.
    fresh: usize,
    reserved: usize,
}

impl Pool {
    /// A pool over the bulk memory of this rank.
    pub fn new(window: Window) -> Pool {
        // Offset 0 is never a piece, so that 0 can mean none.
        Pool { window, free: Default::default(), fresh: HEAD, reserved: 0 }
    }

    /// A piece for `length` bytes: its offset in the bulk memory.
    pub fn claim(&mut self, station: &Station, length: usize) -> Option<usize> {
        let class = (usize::BITS - length.saturating_sub(1).leading_zeros()).max(SMALLEST) - SMALLEST;
        let class = class as usize;
        if class >= CLASSES {
            return None;
        }
        if self.free[class].is_empty() {
            self.collect(station);
        }
        if let Some(unit) = self.free[class].pop() {
            return Some(unit as usize * 64);
        }
        self.carve(class).or_else(|| {
            let larger = (class + 1..CLASSES).find(|larger| !self.free[*larger].is_empty())?;
            self.free[larger].pop().map(|unit| unit as usize * 64)
        })
    }

    fn carve(&mut self, class: usize) -> Option<usize> {
        let length = HEAD + (1 << (class as u32 + SMALLEST));
        let offset = self.fresh;
        let end = offset + length;
        if end > BULK_BYTES {
            return None;
        }
        if end > self.reserved {
            let step = STEP.max(end - self.reserved).next_multiple_of(STEP).min(BULK_BYTES - self.reserved);
            self.window.reserve(self.reserved, step).ok()?;
            self.reserved += step;
        }
        self.fresh = end;
        self.window.record::<Piece>(offset).class.set(class as u32);
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
            let piece: Placed<Piece> = self.window.record(unit as usize * 64);
            let next = piece.next.load(Ordering::Relaxed);
            self.free[(piece.class.get() as usize).min(CLASSES - 1)].push(unit);
            unit = next;
        }
    }
}

/// Gives a piece at `offset` back to the owner of `window` and `station`.
pub fn give_back(window: &Window, station: &Station, offset: usize) {
    let piece: Placed<Piece> = window.record(offset);
    let unit = (offset / 64) as u32;
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
