//! Receives that have been asked for and are not posted yet.
//!
//! For a receive of few bytes there is mostly nothing to do before its message is there. So its process notes such an entry in a
//! list beside its NIC, and mostly gives it its message straight out of the mailbox: no lock at the posting, no record, no
//! table. Whoever else drives the NIC, and the process itself before it appends, searches or sleeps, first posts all of them, in
//! their order. Matching sees no difference (MPI 5.0, section 3.5), as they are younger than all that is posted.
//!
//! The thread of the program adds to the list without the NIC's lock; all else is done with the lock held, by others than that
//! thread behind a door that keeps it out ([`Favoured`]).

use crate::core::{Core, Driver, Outcome, pattern_of};
use crate::index::fits;
use crate::interface::*;
use crate::memory::{Memory, Place};
use crate::nic::Nic;
use crate::receive_soon::Soon;
use crate::record::{ANY, kind};
use parnass_base::atomics::Ordering;
use parnass_base::favoured::Favoured;
use parnass_base::{PAGE, Placed, Table, UserAddress, Window, Word32, Word64, record};

/// Longest receive that is not posted at once, in bytes: one whose message comes through the mailbox, or, where each process has a processor, in a piece that
/// nobody but its target empties.
const MOST_BYTES: usize = 1024;
const MOST_BYTES_APART: usize = 64 << 10;
/// So many are in the list at most.
const MOST: u32 = 127;
/// Bytes of the list.
pub const PARKED_BYTES: usize = 2 * PAGE;

record! {
    /// Zeroed memory is an empty list.
    #[derive(Debug)]
    #[repr(align(64))]
    struct Control {
        door: Favoured,
        first: Word32,
        count: Word32,
    }
}

record! {
    #[derive(Debug)]
    #[repr(align(64))]
    struct Waiting {
        source: Word32,
        _pad: Word32,
        match_bits: Word64,
        ignore_bits: Word64,
        address: Word64,
        length: Word64,
        user: Word64,
    }
}

const _: () = assert!(size_of::<Control>() + MOST as usize * size_of::<Waiting>() == PARKED_BYTES);

/// The entries of a NIC's owner that are not posted yet, oldest first.
#[derive(Debug)]
pub struct Parked {
    control: Placed<Control>,
    entries: Table<Waiting>,
    window: Window,
}

/// An entry that has got its message.
#[derive(Clone, Copy, Debug)]
pub struct Unparked {
    pub memory: UserAddress,
    pub length: usize,
    pub user: u64,
}

impl Parked {
    /// The list that lies in `window`.
    pub fn new(window: Window) -> Parked {
        Parked {
            control: window.record(0),
            entries: window
                .window(size_of::<Control>(), window.len() - size_of::<Control>())
                .table(0, MOST as usize),
            window,
        }
    }

    #[inline(always)]
    pub fn any(&self) -> bool {
        self.control.count.get() != 0
    }

    /// The entries, oldest first.
    #[inline(always)]
    fn all(&self) -> &[Waiting] {
        let first = self.control.first.get() as usize;
        &self.entries[first..first + self.control.count.get() as usize]
    }

    /// Adds an entry, unless somebody else is at the list or it is full.
    #[inline(always)]
    fn push(&self, entry: &MatchEntry) -> bool {
        let control = &self.control;
        if !control.door.enter() {
            return false;
        }
        let count = control.count.get();
        if count == 0 {
            control.first.set(0);
        }
        let place = control.first.get() + count;
        if place < MOST {
            let waiting = &self.entries[place as usize];
            waiting.source.set(entry.source.map_or(ANY, |source| source.0));
            waiting.match_bits.set(entry.match_bits);
            waiting.ignore_bits.set(entry.ignore_bits);
            waiting.address.set(entry.memory.word());
            waiting.length.set(entry.length as u64);
            waiting.user.set(entry.user);
            control.count.set(count + 1);
        }
        control.door.leave();
        place < MOST
    }

    /// The one who kept the owner's thread out has died. The lock is held.
    #[cold]
    pub fn let_in(&self) {
        self.control.door.open();
    }

    /// The first entry that takes this message.
    pub fn look(&self, source: u32, match_bits: u64) -> Option<MatchEntry> {
        self.all().iter().find(|entry| entry.takes(source, match_bits)).map(Waiting::entry)
    }

    /// Whether there is one entry, and it is this user's.
    #[inline(always)]
    fn is_only(&self, user: u64) -> bool {
        matches!(self.all(), [waiting] if waiting.user.get() == user)
    }

    /// Takes out the first entry that takes this message.
    #[inline(always)]
    pub fn take(&self, source: u32, match_bits: u64) -> Option<Unparked> {
        let (first, count) = (self.control.first.get(), self.control.count.get());
        if count == 0 {
            return None;
        }
        // The usual case first: messages come in the order of their receives.
        let entry = &self.entries[first as usize];
        if !entry.takes(source, match_bits) {
            return self.take_later(source, match_bits);
        }
        let unparked = entry.unparked()?;
        self.control.first.set(first + 1);
        self.control.count.set(count - 1);
        Some(unparked)
    }

    #[inline(never)]
    fn take_later(&self, source: u32, match_bits: u64) -> Option<Unparked> {
        let all = self.all();
        let place = all.iter().position(|entry| entry.takes(source, match_bits))?;
        let unparked = all[place].unparked()?;
        // Those before it move up.
        for place in (0..place).rev() {
            all[place + 1].copy(&all[place]);
        }
        self.control.first.set(self.control.first.get() + 1);
        self.control.count.set(self.control.count.get() - 1);
        Some(unparked)
    }
}

impl Waiting {
    #[inline(always)]
    fn takes(&self, source: u32, match_bits: u64) -> bool {
        fits(self.source.get(), self.match_bits.get(), self.ignore_bits.get(), source, match_bits)
    }

    /// It with a message, if its memory is one run.
    #[inline(always)]
    fn unparked(&self) -> Option<Unparked> {
        match Memory::from_word(self.address.get()).place() {
            Place::Run(memory) => {
                Some(Unparked { memory, length: self.length.get() as usize, user: self.user.get() })
            }
            Place::Described(_) => None,
        }
    }

    fn entry(&self) -> MatchEntry {
        let source = self.source.get();
        MatchEntry {
            source: (source != ANY).then_some(ProcessId(source)),
            match_bits: self.match_bits.get(),
            ignore_bits: self.ignore_bits.get(),
            memory: Memory::from_word(self.address.get()),
            length: self.length.get() as usize,
            user: self.user.get(),
        }
    }

    fn copy(&self, other: &Waiting) {
        self.source.set(other.source.get());
        self.match_bits.set(other.match_bits.get());
        self.ignore_bits.set(other.ignore_bits.get());
        self.address.set(other.address.get());
        self.length.set(other.length.get());
        self.user.set(other.user.get());
    }
}

impl Core {
    /// Lets entries be kept back from now on, if others can be kept out of the list and can place a message that comes, and there is
    /// memory for it.
    pub fn may_park(&self) {
        if self.transport.rings_lightly()
            && !self.is_secluded()
            && self.own().parked.window.reserve(0, PARKED_BYTES).is_ok()
        {
            self.parks.store(true, Ordering::Relaxed);
        }
    }

    /// From now on nothing is kept back: several threads call.
    pub fn park_never(&self) {
        self.post_all();
        self.parks.store(false, Ordering::Relaxed);
    }

    /// Keeps an entry back instead of posting it. `false`: it must be posted now.
    #[inline(always)]
    pub fn park(&self, entry: &MatchEntry) -> bool {
        if entry.length > MOST_BYTES {
            // A copy, so that the entry itself need not lie in memory.
            let entry = *entry;
            return self.park_long(&entry);
        }
        self.park_any(entry)
    }

    #[inline(never)]
    fn park_long(&self, entry: &MatchEntry) -> bool {
        entry.length <= MOST_BYTES_APART && self.transport.spins() != 0 && self.park_any(entry)
    }

    #[inline(always)]
    fn park_any(&self, entry: &MatchEntry) -> bool {
        let nic = self.own();
        self.parks.load(Ordering::Relaxed)
            && nic.unexpected.0.order().count.get() == 0
            && matches!(entry.memory.place(), Place::Run(_))
            && self.may_come_near(entry.source)
            && nic.parked.push(entry)
    }

    /// Whether all that an entry of this source takes comes from this node.
    #[inline(always)]
    pub fn may_come_near(&self, source: Option<ProcessId>) -> bool {
        match source {
            Some(source) => !self.is_far(source.0),
            None => !self.networked.load(Ordering::Relaxed),
        }
    }

    /// As [`Core::receive_soon`], for an entry that has been kept back, if it is the only one. `None`: it is not, or it is posted now, and an event comes.
    #[inline]
    pub fn receive_parked(&self, user: u64) -> Option<Received> {
        let nic = self.own();
        if !nic.parked.is_only(user) {
            return None;
        }
        self.lock(nic);
        // Somebody else may have posted it.
        if !nic.parked.is_only(user) {
            nic.lock().release();
            return None;
        }
        let entry = nic.parked.all()[0].entry();
        nic.parked.control.count.set(0);
        let mut result = self.look_with_lock(&entry);
        if matches!(result, Soon::NotYet) && self.transport.spins() == 0 {
            result = self.receive_after_others(&entry);
        }
        match result {
            Soon::Received(received) => Some(received),
            Soon::NotYet | Soon::NeedsEntry => self.post_unparked(&entry),
        }
    }

    #[inline(never)]
    fn post_unparked(&self, entry: &MatchEntry) -> Option<Received> {
        match self.append(List::Priority, entry) {
            Ok(Appended::Complete(event)) => Some(Received::from(&event)),
            Ok(Appended::Posted(_)) => None,
            Err(_) => Some(Received::from(&never_posted(entry))),
        }
    }

    /// Posts what has been kept back. Its process calls it before it looks at the lists of its NIC.
    #[inline(always)]
    pub fn post_all(&self) {
        if self.own().parked.any() {
            self.post_all_now();
        }
    }

    #[cold]
    fn post_all_now(&self) {
        let nic = self.own();
        let mut outcome = Outcome::default();
        self.lock(nic);
        self.post_parked(nic, Driver::Other, &mut outcome);
        nic.lock().release();
        self.finish(&mut outcome);
    }

    /// Whether somebody has taken in what may be for one that was kept back meanwhile.
    #[inline(always)]
    pub fn parked_are_met(&self, nic: &Nic) -> bool {
        nic.parked.any() && nic.unexpected.0.order().count.get() != 0
    }

    /// As [`Core::post_parked`], for others than the thread of the program. `false`: it cannot be done now, and nothing may be taken in.
    pub fn post_parked_of(&self, nic: &Nic, of: u32, outcome: &mut Outcome) -> bool {
        // What is added from here on is younger than what is taken in.
        if !nic.parked.any() {
            return true;
        }
        if !nic.parked.control.door.bar(|| self.transport.fence_all()) {
            return false;
        }
        // What has come before can be received by the owner's process alone.
        let posts = of == self.me || !self.parked_are_met(nic);
        if posts {
            self.post_parked(nic, Driver::Other, outcome);
        }
        nic.parked.control.door.open();
        posts
    }

    /// Posts what has been kept back, or gives it what is there already. The lock is held, and the thread of the program is the
    /// caller or kept out.
    #[cold]
    pub fn post_parked(&self, nic: &Nic, driver: Driver, outcome: &mut Outcome) {
        for waiting in nic.parked.all() {
            let entry = waiting.entry();
            let pattern = pattern_of(&entry);
            let found = nic.unexpected.find(&nic.slab, &nic.classes, &pattern, |_| true);
            if found == 0 {
                if self.post(nic, pattern.source, &entry).is_err() {
                    self.tell(nic, driver, &never_posted(&entry), 0, outcome);
                }
                continue;
            }
            nic.unexpected.remove(&nic.slab, &nic.classes, found);
            match self.receive_record(nic, found, entry.memory, entry.length, entry.user, outcome) {
                Appended::Complete(event) => self.tell(nic, driver, &event, 0, outcome),
                Appended::Posted(_) => (),
            }
        }
        nic.parked.control.count.set(0);
    }

    /// The entry of `user`, if it is posted.
    pub fn posted_by(nic: &Nic, user: u64) -> Option<u32> {
        let mut index = nic.posted.0.order().head.get();
        while index != 0 {
            let record = nic.slab.at(index);
            if record.user.get() == user && record.kind.get() == kind::POSTED {
                return Some(index);
            }
            index = record.next.get();
        }
        None
    }
}

/// The event of an entry for which there was no memory.
fn never_posted(entry: &MatchEntry) -> Event {
    Event {
        kind: EventKind::Failed,
        user: entry.user,
        initiator: entry.source.unwrap_or(ProcessId(u32::MAX)),
        match_bits: entry.match_bits,
        header_data: 0,
        requested_length: 0,
        placed_length: 0,
        taken: 0,
    }
}
