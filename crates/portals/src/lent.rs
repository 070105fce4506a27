//! Memory of a program that the other processes of its node map too, so that they reach it by loads and stores, like that of a segment: what
//! MPI_Alloc_mem gives.
//!
//! A process takes such blocks out of the job's memory. Each of their bytes has a *place* in that, by which the others map it. No place is ever used for anything
//! else, so what somebody has mapped stays right, or is never asked for again, when its owner has given the block back.

use crate::core::Core;
use crate::interface::Interface;
use crate::pipe::lock;
use parnass_base::{PAGE, UserAddress, Window};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, Weak};

/// Blocks that a process has at a time, at most: each needs pages and a mapping of its own.
const MOST_BLOCKS: usize = 256;
/// What a process keeps of the blocks that it gives back: so many, of so many bytes each at most.
const MOST_KEPT: usize = 8;
const LONGEST_KEPT: usize = 1 << 20;
/// Parts of others' blocks that stay mapped, and their bytes together.
const MOST_MAPPED: usize = 32;
const MAPPED_BYTES: usize = 256 << 20;

/// A block of this process. Its memory goes back with it.
pub struct LentBlock {
    /// It may outlive the NIC: a program need not free it.
    core: Weak<Core>,
    place: u64,
    window: Window,
}

/// What a process has lent to its program, and what of others it has mapped.
#[derive(Debug, Default)]
pub struct Lent {
    lent: Mutex<Blocks>,
    mapped: Mutex<VecDeque<(u64, Window)>>,
}

#[derive(Debug, Default)]
struct Blocks {
    count: usize,
    bytes: usize,
    /// What was given back and waits to be taken again, the last one at the end.
    kept: VecDeque<(u64, Window)>,
}

impl LentBlock {
    /// A block of at least `length` bytes, on a page of its own. `None`: nobody else is on this node, or there are so many already that the program had better
    /// have other memory.
    fn take(core: &Arc<Core>, length: usize) -> Option<LentBlock> {
        let length = length.max(1).checked_next_multiple_of(PAGE)?;
        let mut is_near = (0..core.size()).filter(|rank| *rank != core.me);
        if !is_near.any(|rank| core.transport.board_memory(rank).is_some()) {
            return None;
        }
        let mut lent = lock(&core.lent.lent);
        let bytes = lent.bytes.checked_add(length)?;
        if lent.count >= MOST_BLOCKS || bytes as u64 > core.tuning.alloc_mem_shared() {
            return None;
        }
        let kept = lent.kept.iter().rposition(|(_, window)| window.len() == length);
        let (place, window) = match kept.and_then(|kept| lent.kept.remove(kept)) {
            Some(kept) => kept,
            None => make(core, length).ok()?,
        };
        lent.count += 1;
        lent.bytes = bytes;
        drop(lent);
        Some(LentBlock { core: Arc::downgrade(core), place, window })
    }

    /// Where it starts in this process.
    pub fn address(&self) -> UserAddress {
        self.window.address(0, self.window.len())
    }

    /// The place of `length` bytes from `address` on, if they lie in this block.
    pub fn place_of(&self, address: UserAddress, length: u64) -> Option<u64> {
        let skip = address.value().checked_sub(self.address().value())? as u64;
        (skip.checked_add(length)? <= self.window.len() as u64).then_some(self.place + skip)
    }
}

fn make(core: &Core, length: usize) -> io::Result<(u64, Window)> {
    let place = core.transport.make_segment(length)?;
    let opened = core.transport.open_segment(place, length);
    let reserved = opened.and_then(|window| window.reserve(0, length).map(|()| window));
    if reserved.is_err() {
        core.transport.end_segment(place, length);
    }
    reserved.map(|window| (place, window))
}

impl Drop for LentBlock {
    fn drop(&mut self) {
        let Some(core) = self.core.upgrade() else { return };
        let mut lent = lock(&core.lent.lent);
        lent.count -= 1;
        lent.bytes -= self.window.len();
        let ended = if self.window.len() > LONGEST_KEPT {
            Some((self.place, self.window.clone()))
        } else {
            lent.kept.push_back((self.place, self.window.clone()));
            if lent.kept.len() > MOST_KEPT { lent.kept.pop_front() } else { None }
        };
        drop(lent);
        if let Some((place, window)) = ended {
            core.transport.end_segment(place, window.len());
        }
    }
}

impl Interface {
    /// Memory for the program that others of this node can [map](Interface::map_lent). `None`: it had better have other memory.
    pub fn lend(&self, length: usize) -> Option<LentBlock> {
        LentBlock::take(&self.core, length)
    }

    /// Maps memory that a process of this node has lent to its program, from this [place](LentBlock::place_of) on.
    ///
    /// # Errors
    /// There is no address space.
    pub fn map_lent(&self, place: u64, length: usize) -> io::Result<Window> {
        let core = &self.core;
        let mut mapped = lock(&core.lent.mapped);
        if let Some(index) = mapped.iter().position(|(at, window)| *at == place && window.len() == length) {
            let (_, found) = mapped.remove(index).expect("it was just found");
            mapped.push_back((place, found.clone()));
            return Ok(found);
        }
        let skip = (place % PAGE as u64) as usize;
        let whole = skip.checked_add(length).ok_or(io::ErrorKind::OutOfMemory)?;
        let window = core.transport.open_segment(place - skip as u64, whole)?.window(skip, length);
        mapped.push_back((place, window.clone()));
        let bytes = |mapped: &VecDeque<(u64, Window)>| mapped.iter().map(|(_, one)| one.len()).sum::<usize>();
        while mapped.len() > MOST_MAPPED || bytes(&mapped) > MAPPED_BYTES {
            mapped.pop_front();
        }
        Ok(window)
    }
}
