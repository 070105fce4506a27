//! Finding the first match without walking the list.
//!
//! Every pattern of wild cards (which match bits are ignored, whether any source is taken) is a *class*. Within a
//! class, matching is equality of a key, so each class has a hash table of chains in list order. An arriving
//! message looks once into each class that has posted entries, and the oldest hit wins. An unexpected message
//! is chained in the exact class; in the others only from the moment a receive or search of that class finds some there until none is left.
//! Patterns beyond the [`CLASSES`] that have tables share one list that is walked.

use crate::record::{ANY, CLASSES, Entry};
use crate::slab::{ListControl, Slab};
use parnass_base::{Placed, Table, Window, Word32, Word64, record};
use parnass_counters::{Counters, MATCH_STEPS};

/// The class of the patterns that have no table.
pub const WALKED: u32 = CLASSES as u32;
/// Buckets of a table at first.
const FIRST_BUCKETS: u32 = 64;
/// Buckets of a table at most.
pub const MOST_BUCKETS: u32 = 1 << 16;
/// Bytes of the tables of one side.
pub const TABLES_BYTES: usize = CLASSES * MOST_BUCKETS as usize * size_of::<Bucket>();

record! {
    /// A chain, in list order.
    #[derive(Debug)]
    pub struct Bucket {
        head: Word32,
        tail: Word32,
    }
}

record! {
    /// A pattern of wild cards.
    #[derive(Debug)]
    pub struct Class {
        ignore_bits: Word64,
        any_source: Word32,
        defined: Word32,
    }
}

record! {
    /// One side (posted or unexpected) of a NIC's index. Zeroed memory is an empty one.
    #[derive(Debug)]
    pub struct SideControl {
        /// All records of this side, in order.
        pub order: ListControl,
        buckets: Word32,
        _pad: Word32,
        /// Posted: entries by class. Unexpected: whether the class is chained.
        classes: [Word32; CLASSES + 2],
    }
}

/// Which classes there are, common to both sides.
#[derive(Debug)]
pub struct Classes(pub Placed<[Class; CLASSES]>);

impl Classes {
    /// The class of a pattern, defined now if there is a table left for it.
    #[inline]
    pub fn of(&self, source: u32, ignore_bits: u64) -> u32 {
        let any_source = u32::from(source == ANY);
        if any_source == 0 && ignore_bits == 0 {
            return 0;
        }
        for (number, class) in self.0.iter().enumerate().skip(1) {
            if class.defined.get() == 0 {
                class.ignore_bits.set(ignore_bits);
                class.any_source.set(any_source);
                class.defined.set(1);
            }
            if class.ignore_bits.get() == ignore_bits && class.any_source.get() == any_source {
                return number as u32;
            }
        }
        WALKED
    }

    #[inline]
    fn hash(&self, class: usize, source: u32, match_bits: u64) -> u32 {
        let pattern = &self.0[class];
        let source = if pattern.any_source.get() != 0 { ANY } else { source };
        let key =
            (match_bits & !pattern.ignore_bits.get()) ^ u64::from(source).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (key.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32) as u32
    }
}

/// Whether an entry of this pattern takes this message.
#[inline(always)]
pub fn fits(entry_source: u32, entry_bits: u64, ignore_bits: u64, source: u32, match_bits: u64) -> bool {
    (entry_source == ANY || entry_source == source) && (entry_bits ^ match_bits) & !ignore_bits == 0
}

/// What an entry asks of messages.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    pub source: u32,
    pub match_bits: u64,
    pub ignore_bits: u64,
    pub portal: u32,
}

/// One side of the index. All methods need the NIC's lock.
#[derive(Debug)]
pub struct Side {
    control: Placed<SideControl>,
    buckets: Table<Bucket>,
    window: Window,
    counters: Counters,
}

impl Side {
    /// The side whose tables fill `window`.
    pub fn new(control: Placed<SideControl>, window: Window, counters: Counters) -> Side {
        let buckets = window.table(0, CLASSES * MOST_BUCKETS as usize);
        Side { control, buckets, window, counters }
    }

    /// Counts entries that were looked at in vain.
    #[inline(always)]
    fn count_steps(&self, steps: u64) {
        if steps != 0 {
            self.counters.count_locked(MATCH_STEPS, steps);
        }
    }

    /// All records, in order.
    pub fn order(&self) -> &ListControl {
        &self.control.order
    }

    #[inline]
    fn bucket(&self, classes: &Classes, class: usize, source: u32, match_bits: u64) -> &Bucket {
        let hash = classes.hash(class, source, match_bits) & (self.control.buckets.get() - 1);
        &self.buckets[class * MOST_BUCKETS as usize + hash as usize]
    }

    fn link(&self, slab: &Slab, classes: &Classes, class: usize, chain: usize, index: u32) {
        let entry = slab.at(index);
        let bucket = self.bucket(classes, class, entry.source.get(), entry.match_bits.get());
        // Almost always the tail; an entry that takes another's place goes before younger ones.
        let (mut before, mut after) = (bucket.tail.get(), 0);
        while before != 0 && slab.at(before).order.get() > entry.order.get() {
            after = before;
            before = slab.at(before).links(chain)[1].get();
        }
        entry.links(chain)[0].set(after);
        entry.links(chain)[1].set(before);
        if before == 0 {
            bucket.head.set(index)
        } else {
            slab.at(before).links(chain)[0].set(index)
        }
        if after == 0 { bucket.tail.set(index) } else { slab.at(after).links(chain)[1].set(index) }
    }

    fn unlink(&self, slab: &Slab, classes: &Classes, class: usize, chain: usize, index: u32) {
        let entry = slab.at(index);
        let bucket = self.bucket(classes, class, entry.source.get(), entry.match_bits.get());
        let (next, previous) = (entry.links(chain)[0].get(), entry.links(chain)[1].get());
        if previous == 0 {
            bucket.head.set(next)
        } else {
            slab.at(previous).links(chain)[0].set(next)
        }
        if next == 0 { bucket.tail.set(previous) } else { slab.at(next).links(chain)[1].set(previous) }
    }

    /// Whether the tables need to be made or enlarged before one more record is added.
    #[inline]
    fn is_tight(&self) -> bool {
        let buckets = self.control.buckets.get();
        buckets == 0 || (self.control.order.count.get() >= 2 * buckets && buckets < MOST_BUCKETS)
    }

    /// Enlarges the tables of the classes in use; `chained` calls back per record to chain it anew. Without
    /// memory the old size stays (and the tables must exist already).
    #[cold]
    fn enlarge(&self, chain_all: impl FnOnce()) -> bool {
        let old = self.control.buckets.get();
        let new = if old == 0 { FIRST_BUCKETS } else { (old * 4).min(MOST_BUCKETS) };
        let bytes = size_of::<Bucket>();
        for class in 0..CLASSES {
            let start = class * MOST_BUCKETS as usize;
            if self.window.reserve(start * bytes, new as usize * bytes).is_err() {
                return old != 0;
            }
        }
        for class in 0..CLASSES {
            let start = class * MOST_BUCKETS as usize;
            for bucket in &self.buckets[start..start + new as usize] {
                bucket.head.set(0);
                bucket.tail.set(0);
            }
        }
        self.control.buckets.set(new);
        chain_all();
        true
    }

    fn each(&self, slab: &Slab, mut visit: impl FnMut(u32)) {
        let mut index = self.control.order.head.get();
        while index != 0 {
            let next = slab.at(index).next.get();
            visit(index);
            index = next;
        }
    }
}

/// The posted side: each entry is chained in its own class.
#[derive(Debug)]
pub struct Posted(pub Side);

impl Posted {
    /// Adds an entry whose source, bits and order are set. `false`: no memory.
    #[inline]
    pub fn add(&self, slab: &Slab, classes: &Classes, index: u32) -> bool {
        let side = &self.0;
        if side.is_tight() && !side.enlarge(|| side.each(slab, |index| self.chain(slab, classes, index))) {
            return false;
        }
        let entry = slab.at(index);
        let class = classes.of(entry.source.get(), entry.ignore_bits.get());
        entry.class.set(class);
        slab.insert(side.order(), index);
        let count = &side.control.classes[class as usize];
        count.set(count.get() + 1);
        self.chain(slab, classes, index);
        true
    }

    #[inline]
    fn chain(&self, slab: &Slab, classes: &Classes, index: u32) {
        let class = slab.at(index).class.get();
        if class != WALKED {
            self.0.link(slab, classes, class as usize, 0, index);
        }
    }

    /// Takes an entry out.
    #[inline]
    pub fn remove(&self, slab: &Slab, classes: &Classes, index: u32) {
        let class = slab.at(index).class.get();
        let count = &self.0.control.classes[class as usize];
        count.set(count.get() - 1);
        if class != WALKED {
            self.0.unlink(slab, classes, class as usize, 0, index);
        }
        slab.remove(self.0.order(), index);
    }

    /// The first entry in order that matches and that `accepts` says yes to, or 0.
    #[inline(always)]
    pub fn find(
        &self,
        slab: &Slab,
        classes: &Classes,
        source: u32,
        match_bits: u64,
        accepts: impl Fn(&Entry) -> bool,
    ) -> u32 {
        let takes = |entry: &Entry| takes(entry, source, match_bits) && accepts(entry);
        let mut best = 0;
        let mut best_order = u64::MAX;
        let mut steps = 0;
        for class in 0..CLASSES {
            if self.0.control.classes[class].get() == 0 {
                continue;
            }
            let mut index = self.0.bucket(classes, class, source, match_bits).head.get();
            while index != 0 {
                let entry = slab.at(index);
                if entry.order.get() >= best_order {
                    break;
                }
                if takes(entry) {
                    best = index;
                    best_order = entry.order.get();
                    break;
                }
                index = entry.links(0)[0].get();
                steps += 1;
            }
        }
        if self.0.control.classes[WALKED as usize].get() != 0 {
            let mut index = self.0.order().head.get();
            while index != 0 {
                let entry = slab.at(index);
                if entry.order.get() >= best_order {
                    break;
                }
                if entry.class.get() == WALKED && takes(entry) {
                    best = index;
                    break;
                }
                index = entry.next.get();
                steps += 1;
            }
        }
        self.0.count_steps(steps);
        best
    }
}

#[inline(always)]
fn takes(entry: &Entry, source: u32, match_bits: u64) -> bool {
    fits(entry.source.get(), entry.match_bits.get(), entry.ignore_bits.get(), source, match_bits)
}

/// The unexpected side: each message is chained in every class that has been asked for since there was none.
#[derive(Debug)]
pub struct Unexpected(pub Side);

impl Unexpected {
    /// Adds a message whose source and bits are set. `false`: no memory.
    pub fn add(&self, slab: &Slab, classes: &Classes, index: u32) -> bool {
        let side = &self.0;
        side.control.classes[0].set(1);
        if side.is_tight() && !side.enlarge(|| side.each(slab, |index| self.chain(slab, classes, index))) {
            return false;
        }
        slab.insert(side.order(), index);
        self.chain(slab, classes, index);
        true
    }

    fn chain(&self, slab: &Slab, classes: &Classes, index: u32) {
        for class in 0..CLASSES {
            if self.0.control.classes[class].get() != 0 {
                self.0.link(slab, classes, class, class, index);
            }
        }
    }

    /// Takes a message out.
    pub fn remove(&self, slab: &Slab, classes: &Classes, index: u32) {
        for class in 0..CLASSES {
            if self.0.control.classes[class].get() != 0 {
                self.0.unlink(slab, classes, class, class, index);
            }
        }
        slab.remove(self.0.order(), index);
        if self.0.order().count.get() == 0 {
            // What comes next is chained in the classes of those alone who ask then.
            self.0.control.classes[1..CLASSES].iter().for_each(|chained| chained.set(0));
        }
    }

    /// The first message in order of arrival that this pattern takes and that `accepts` says yes to, or 0.
    #[inline(always)]
    pub fn find(
        &self,
        slab: &Slab,
        classes: &Classes,
        pattern: &Pattern,
        accepts: impl Fn(&Entry) -> bool,
    ) -> u32 {
        let Pattern { source, match_bits, ignore_bits, portal } = *pattern;
        let side = &self.0;
        if side.order().count.get() == 0 {
            return 0;
        }
        let class = classes.of(source, ignore_bits);
        let fits = |entry: &Entry| {
            fits(source, match_bits, ignore_bits, entry.source.get(), entry.match_bits.get())
                && entry.detail.get() == portal
                && accepts(entry)
        };
        let mut steps = 0;
        if class == WALKED {
            let mut index = side.order().head.get();
            while index != 0 && !fits(slab.at(index)) {
                index = slab.at(index).next.get();
                steps += 1;
            }
            side.count_steps(steps);
            return index;
        }
        let class = class as usize;
        if side.control.classes[class].get() == 0 {
            side.control.classes[class].set(1);
            side.each(slab, |index| side.link(slab, classes, class, class, index));
        }
        let mut index = side.bucket(classes, class, source, match_bits).head.get();
        while index != 0 && !fits(slab.at(index)) {
            index = slab.at(index).links(class)[0].get();
            steps += 1;
        }
        side.count_steps(steps);
        index
    }
}
