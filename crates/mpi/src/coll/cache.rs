//! What a communicator keeps of its collective operations, so that the next one of the same shape allocates nothing.

use super::blocks::KeptBlocks;
use super::call::{Call, Key};
use super::execution::Flight;
use crate::process::Process;
use crate::pt2pt::staging::Staging;
use parnass_base::guarded::Guarded;
use parnass_base::{Scratch, UserAddress};
use parnass_collectives::{Nodes, Schedule};
use std::fmt;
use std::sync::OnceLock;

/// How many pairs of schedules are kept.
const PAIRS: usize = 16;
/// Working memory of at most so many bytes is kept with its schedule; longer comes from the pool each time.
const KEPT_SCRATCH: u64 = 16 << 10;

/// What one run of a schedule needs besides the buffers of the call. Only one run at a time has it.
pub(super) struct Work {
    /// `None` if the schedule depends on more, so that it cannot be kept.
    key: Option<Key>,
    /// The pair of the cache that it stands in.
    place: usize,
    /// Where the key does not say all.
    blocks: Option<Box<[Option<KeptBlocks>; 2]>>,
    /// When it was chosen, see [`crate::observe::Changeable`].
    era: u32,
    /// The row of the counter of its algorithm.
    pub(super) row: u32,
    pub(super) schedule: Schedule,
    /// As [`parnass_collectives::Shape::moved_bytes`].
    pub(super) moved_bytes: u64,
    pub(super) in_flight: Vec<Flight>,
    scratch: Memory,
}

enum Memory {
    None,
    Kept(Scratch),
    Borrowed(Staging),
}

impl Work {
    /// For a schedule that is run for the first time.
    pub(super) fn new(
        kept_for: Option<(Key, &Call<'_>)>,
        era: u32,
        (row, schedule): (u32, Schedule),
        moved_bytes: u64,
    ) -> Box<Work> {
        let in_flight = Vec::with_capacity(schedule.width());
        let scratch = match schedule.scratch_bytes() {
            bytes @ 1..=KEPT_SCRATCH => Memory::Kept(Scratch::new(bytes as usize)),
            _ => Memory::None,
        };
        let (key, blocks) = kept_for.map(|(key, call)| (key, call.keep_blocks())).unzip();
        let (blocks, place) = (blocks.flatten(), key.map_or(0, |key| key.place(PAIRS)));
        Box::new(Work { key, place, blocks, era, row, schedule, moved_bytes, in_flight, scratch })
    }

    /// Leaves of its messages what can be done still, see [`Schedule::amid_errors`]; it is not kept.
    #[cold]
    pub(super) fn give_up(&mut self, astray: &[(u32, bool)]) {
        self.key = None;
        self.schedule = std::mem::take(&mut self.schedule).amid_errors(astray);
    }

    #[inline(always)]
    fn is_for(&self, key: &Key, call: &Call<'_>, era: u32) -> bool {
        self.era == era && self.key.as_ref() == Some(key) && call.has_blocks(self.blocks.as_deref())
    }

    /// The working memory of the run that begins.
    pub(super) fn scratch(&mut self, process: &Process) -> UserAddress {
        let bytes = self.schedule.scratch_bytes();
        if bytes == 0 {
            return UserAddress::NULL;
        }
        if bytes > KEPT_SCRATCH && matches!(self.scratch, Memory::None) {
            self.scratch = Memory::Borrowed(process.staging.take(bytes));
        }
        match &self.scratch {
            Memory::None => UserAddress::NULL,
            Memory::Kept(scratch) => scratch.address(),
            Memory::Borrowed(staging) => staging.address(),
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if self.in_flight.is_empty() {
            return;
        }
        // The NIC may still write here.
        match std::mem::replace(&mut self.scratch, Memory::None) {
            Memory::None => {}
            Memory::Kept(scratch) => std::mem::forget(scratch),
            Memory::Borrowed(staging) => staging.leak(),
        }
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Work")
            .field("key", &self.key)
            .field("in_flight", &self.in_flight)
            .finish_non_exhaustive()
    }
}

/// The schedules of the calls whose keys have one place, and the two calls there that were made last without one.
#[derive(Default)]
struct Pair {
    works: [Option<Box<Work>>; 2],
    missed: [u64; 2],
}

impl Pair {
    /// Whether a call for which nothing was kept, by its digest, is one of the last two: then what is made for it is worth keeping.
    fn comes_again(&mut self, digest: u64) -> bool {
        let again = self.missed.contains(&digest);
        if !again {
            self.missed = [digest, self.missed[0]];
        }
        again
    }
}

/// The schedules that a communicator has used last, in pairs: which pair one stands in, its key says, and the first of a pair is the one
/// used last. A program whose counts change from call to call so looks at two, and makes one where another was. A box moves as one word: they
/// are taken and given back with every call.
#[derive(Default)]
struct Kept {
    /// Empty until there is something to keep.
    pairs: Vec<Pair>,
    /// The pair of the one that was given back last.
    last: usize,
}

impl Kept {
    #[inline]
    fn pair(&mut self, place: usize) -> &mut Pair {
        if self.pairs.is_empty() {
            self.pairs.resize_with(PAIRS, Default::default);
        }
        &mut self.pairs[place]
    }
}

/// The schedules that a communicator has used last. One in every communicator.
#[derive(Default)]
pub(crate) struct Cache {
    kept: Guarded<Kept>,
    /// The nodes of its processes, if they are on several.
    nodes: OnceLock<Option<Nodes>>,
}

impl Cache {
    /// The nodes of its processes, found once.
    pub(super) fn nodes(&self, find: impl FnOnce() -> Option<Nodes>) -> Option<&Nodes> {
        self.nodes.get_or_init(find).as_ref()
    }

    /// What was kept for a key, unless there is nothing or it is in use.
    #[inline(always)]
    pub(super) fn take(&self, key: &Key, call: &Call<'_>, era: u32) -> Option<Box<Work>> {
        let mut kept = self.kept.lock();
        let last = kept.last;
        let first = &mut kept.pairs.get_mut(last)?.works[0];
        if first.as_ref().is_some_and(|work| work.is_for(key, call, era)) {
            return first.take();
        }
        Cache::take_earlier(&mut kept, key, call, era)
    }

    #[inline(never)]
    fn take_earlier(kept: &mut Kept, key: &Key, call: &Call<'_>, era: u32) -> Option<Box<Work>> {
        let pair = &mut kept.pairs[key.place(PAIRS)];
        let is_it =
            |work: &&mut Option<Box<Work>>| work.as_ref().is_some_and(|work| work.is_for(key, call, era));
        pair.works.iter_mut().find(is_it)?.take()
    }

    /// See [`Pair::comes_again`].
    pub(super) fn comes_again(&self, key: &Key, call: &Call<'_>) -> bool {
        let digest = key.digest().rotate_left(32) ^ call.digest();
        self.kept.lock().pair(key.place(PAIRS)).comes_again(digest)
    }

    /// Takes back what a run has used.
    #[inline]
    pub(super) fn give_back(&self, mut work: Box<Work>) {
        if work.key.is_none() {
            return;
        }
        if matches!(work.scratch, Memory::Borrowed(_)) {
            work.scratch = Memory::None;
        }
        let place = work.place;
        let mut kept = self.kept.lock();
        kept.last = place;
        let [first, second] = &mut kept.pair(place).works;
        if let Some(earlier) = first.replace(work) {
            *second = Some(earlier);
        }
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.kept.lock().pairs.iter().flat_map(|pair| &pair.works).flatten().count();
        formatter.debug_struct("Cache").field("kept", &kept).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_calls_that_take_turns_come_again_and_those_that_change_do_not() {
        let mut pair = Pair::default();
        assert_eq!([7, 9, 7, 9].map(|digest| pair.comes_again(digest)), [false, false, true, true]);
        assert!(!(100..200).any(|digest| pair.comes_again(digest)));
    }
}
