//! Boards: memory that the members of a group share for handing data to each other without messages.
//!
//! ```text
//! 0                 head: members that still use it, writers that wait for room, arrivals (a line for each ring place)
//! + HEAD_BYTES      marks: one line for each member
//! ...               notes: a ring of [`depth`] lines for each member
//! next page         a ring of memory for each member, for data that does not fit into a note
//! ...               of two members: pieces that they pass to and fro
//! ```
//! A board lies in the memory of the process that made it, its leader. Everything on it happens in *rounds*, which all
//! members count alike. In a round every member may post one note, and every other member may read it. A note stays until
//! all members are done with its round; its place is used again [`depth`] rounds later. The memory for longer data is
//! taken in turn. Where members are few there is more of it than a core has cache for itself: lines that have left the
//! reader's cache are written several times faster than those that it still holds. Two members pass the memory that they have read
//! to and fro instead, as long as both post (see [`crate::hand`]). Long data need not be copied there: where the members
//! read each other's memory, a note can say where it lies.

use crate::core::Core;
use crate::hand::{Hand, PIECES};
use crate::interface::ProcessId;
use parnass_base::atomics::{AtomicU32, AtomicU64, Ordering, fence, fetch_to_read, fetch_to_write};
use parnass_base::copy::LINE;
use parnass_base::note::{Mark, NOTE_BYTES, NOTE_DATA_AT, Note};
use parnass_base::{PAGE, Placed, Table, UserAddress, Window, record};
use std::sync::{Arc, Mutex, PoisonError};

/// How many rounds a member may be ahead of the slowest, at most and at least.
const DEEPEST: u64 = 256;
const LEAST_DEPTH: u64 = 8;
/// A member that has only read says so in every so manieth round. What it has read and not told is less than what
/// others may be ahead by, and they post one round ahead: so nobody waits for room before it takes part in
/// what comes next.
const TELL_EVERY: u64 = 4;
const _: () = assert!(TELL_EVERY - 1 <= LEAST_DEPTH - 2);

record! {
    /// One word on a line of its own.
    #[derive(Debug)]
    #[repr(align(64))]
    struct Line {
        word: AtomicU32,
        rest: [AtomicU32; 15],
    }
}

record! {
    /// First lines of a board.
    #[derive(Debug)]
    #[repr(align(64))]
    struct Head {
        /// Members that have not left it; 0: it can be used again.
        members: Line,
        /// Members that sleep until others are done with a round.
        blocked: Line,
        /// How many members have arrived in a round, all rounds of a ring place together.
        arrivals: [Line; DEEPEST as usize],
    }
}

const HEAD_BYTES: usize = size_of::<Head>();
const _: () = assert!(HEAD_BYTES == (2 + DEEPEST as usize) * LINE);

/// How many rounds a member may be ahead of the slowest, on a board for so many; data beside the notes it may post only in the round
/// that is [`LEAST_DEPTH`] ahead. All notes together fill no more than a core has cache for itself.
fn depth(members: u32) -> u64 {
    (4096 / u64::from(members.next_power_of_two())).clamp(LEAST_DEPTH, DEEPEST)
}

/// Bytes of data that a member can post in one round, on a board for so many; 0 where there are no boards.
pub fn piece_bytes(members: u32) -> usize {
    match members {
        0..=1 => 0,
        2..=4 => 32 << 10,
        5..=16 => 32 << 10,
        17..=64 => 16 << 10,
        65..=128 => 8 << 10,
        _ => 0,
    }
}

/// Bytes of the ring of memory of a member. What [`LEAST_DEPTH`] rounds hold, and the rest that is left at its end, fit in.
fn ring_bytes(members: u32) -> usize {
    match members {
        0..=4 => 2 << 20,
        _ => 2 * LEAST_DEPTH as usize * piece_bytes(members),
    }
}

/// Memory is reserved in steps of this many bytes.
const STEP: usize = 256 << 10;

/// Where the parts of a board for so many members lie.
struct Places {
    notes: usize,
    depth: u64,
    rings: usize,
    ring: usize,
    piece: usize,
    /// Where the pieces that two pass to and fro begin, seen from the rings on.
    passed: usize,
    end: usize,
}

impl Places {
    fn new(members: u32) -> Places {
        let count = members as usize;
        let notes = HEAD_BYTES + count * LINE;
        let depth = depth(members);
        let rings = (notes + count * depth as usize * LINE).next_multiple_of(PAGE);
        let ring = ring_bytes(members);
        let (piece, passed) = (piece_bytes(members), count * ring);
        let pieces = if members == 2 { PIECES } else { 0 };
        Places { notes, depth, rings, ring, piece, passed, end: rings + passed + pieces * piece }
    }
}

/// The boards that a process has made.
#[derive(Debug)]
pub struct Boards {
    made: Mutex<Made>,
}

#[derive(Debug)]
struct Made {
    /// Where they start, and for how many members they are.
    boards: Vec<(usize, u32)>,
    fresh: usize,
}

impl Default for Boards {
    fn default() -> Self {
        // No board starts at 0, so that 0 can mean none.
        Boards { made: Mutex::new(Made { boards: Vec::new(), fresh: PAGE }) }
    }
}

impl Boards {
    /// A board for so many members, led by this process, clean; its name, or 0 if there is no room.
    pub fn claim(&self, core: &Core, members: u32) -> u64 {
        let places = Places::new(members);
        if places.piece == 0 {
            return 0;
        }
        let Some(memory) = core.transport.board_memory(core.me) else { return 0 };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        // Acquire pairs with the release in the drop of a board: its last user has left it.
        let is_free = |start: usize| memory.record::<Head>(start).members.word.load(Ordering::Acquire) == 0;
        let left = made.boards.iter().find(|(start, size)| *size == members && is_free(*start));
        let start = match left {
            Some((start, _)) => *start,
            None => {
                let start = made.fresh;
                if start + places.end > memory.len() || memory.reserve(start, places.rings).is_err() {
                    return 0;
                }
                made.fresh = (start + places.end).next_multiple_of(PAGE);
                made.boards.push((start, members));
                start
            }
        };
        let head = memory.record::<Head>(start);
        head.blocked.word.store(0, Ordering::Relaxed);
        head.arrivals.iter().for_each(|line| line.word.store(0, Ordering::Relaxed));
        memory.table::<Mark>(start + HEAD_BYTES, members as usize).iter().for_each(|mark| mark.set(0));
        let notes = members as usize * places.depth as usize;
        memory.table::<Note>(start + places.notes, notes).iter().for_each(Note::clear);
        // The message that tells the others its name shows them all this.
        head.members.word.store(members, Ordering::Release);
        u64::from(core.me) << 40 | start as u64
    }
}

/// Whether the members of a board read each other's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Not all of them.
    No,
    /// All of them, but two copies take less time, see [`crate::copies_once`].
    Slow,
    Fast,
}

/// A board, as one of its members sees it. Several threads may use it one after the other, not at once.
pub struct Board {
    core: Arc<Core>,
    window: Window,
    head: Placed<Head>,
    marks: Table<Mark>,
    notes: Table<Note>,
    members: Box<[ProcessId]>,
    me: usize,
    places: Places,
    /// The round that comes next.
    next: AtomicU64,
    /// A round that all members are done with.
    all_done: AtomicU64,
    /// What the arrivals of a ring place must come to.
    expected: [AtomicU32; DEEPEST as usize],
    /// Where the next data goes in the ring of this member, and up to where memory stands behind it.
    cursor: AtomicU64,
    reserved: AtomicU64,
    hand: Hand,
    rings_for_certain: bool,
    /// Whether every member reads the memory of every other, as they have agreed.
    reading: Reading,
}

impl std::fmt::Debug for Board {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "board of {} members, round {}",
            self.members.len(),
            self.next.load(Ordering::Relaxed)
        )
    }
}

/// What is announced instead of a length when there is no memory for the data.
pub const NO_MEMORY: u64 = u64::MAX;
/// What is announced when its writer has taken back what it had offered.
pub const WITHDRAWN: u64 = u64::MAX - 1;
/// Stands in a length: the data is not on the board.
const OFFERED: u64 = 1 << 62;
/// Stands in a length: the data is blocks for several members, behind a table of them.
const DEALT: u64 = 1 << 61;

impl Board {
    /// The board with this name. `members` are the same at every member; the caller is number `me` of them.
    pub(crate) fn open(core: &Arc<Core>, name: u64, members: Box<[ProcessId]>, me: u32) -> Option<Board> {
        let places = Places::new(members.len() as u32);
        let leader = (name >> 40) as u32;
        let start = (name & ((1 << 40) - 1)) as usize;
        let window = core.transport.board_memory(leader)?.window(start, places.end);
        Some(Board {
            core: Arc::clone(core),
            rings_for_certain: core.transport.rings_lightly(),
            head: window.record(0),
            marks: window.table(HEAD_BYTES, members.len()),
            notes: window.table(places.notes, members.len() * places.depth as usize),
            window,
            members,
            me: me as usize,
            places,
            next: AtomicU64::new(1),
            all_done: AtomicU64::new(0),
            expected: std::array::from_fn(|_| AtomicU32::new(0)),
            cursor: AtomicU64::new(0),
            reserved: AtomicU64::new(0),
            hand: Hand::default(),
            reading: Reading::No,
        })
    }

    /// All members have said whether they read the memory of every other one.
    pub fn set_reading(&mut self, reading: Reading) {
        self.reading = reading;
    }

    /// Of what use [`Board::offer`] is: the same at every member.
    #[inline]
    pub fn reading(&self) -> Reading {
        self.reading
    }

    /// How many members it has.
    #[inline]
    pub fn members(&self) -> usize {
        self.members.len()
    }

    /// The number of this member.
    #[inline]
    pub fn me(&self) -> usize {
        self.me
    }

    /// Bytes that a member can post in one round.
    #[inline]
    pub fn piece_bytes(&self) -> usize {
        self.places.piece
    }

    /// The round that comes next.
    #[inline]
    pub fn next_round(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// The next `rounds` rounds are over for this member. All members take the same numbers in the same order.
    #[inline]
    pub fn pass(&self, rounds: u64) {
        self.next.store(self.next_round() + rounds, Ordering::Relaxed);
    }

    /// Which place of a ring a round has. The depth is a power of two.
    #[inline(always)]
    fn place(&self, round: u64) -> usize {
        (round & (self.places.depth - 1)) as usize
    }

    #[inline(always)]
    fn slot(&self, member: usize, round: u64) -> usize {
        member * self.places.depth as usize + self.place(round)
    }

    #[inline(always)]
    fn note(&self, member: usize, round: u64) -> &Note {
        &self.notes[self.slot(member, round)]
    }

    /// Whether this member may post so many bytes in this round: all are done with what stands where they go.
    #[inline]
    pub fn has_room(&self, round: u64, length: u64) -> bool {
        let depth = if length > NOTE_BYTES as u64 { LEAST_DEPTH } else { self.places.depth };
        self.all_done.load(Ordering::Relaxed) + depth >= round || self.look_for_room(round, depth)
    }

    fn look_for_room(&self, round: u64, depth: u64) -> bool {
        let done = self
            .marks
            .iter()
            .enumerate()
            .filter(|(member, _)| *member != self.me)
            .map(|(_, mark)| mark.get());
        let done = done.min().unwrap_or(u64::MAX - DEEPEST);
        self.all_done.store(done, Ordering::Relaxed);
        done + depth >= round
    }

    /// Where the data of `member` in a round stands, `length` bytes of it, once it was posted.
    #[inline(always)]
    pub fn data(&self, member: u32, round: u64, length: u64) -> UserAddress {
        let member = member as usize;
        if length <= NOTE_BYTES as u64 {
            self.in_note(member, round, length)
        } else {
            self.beside_notes(member, round, length)
        }
    }

    fn beside_notes(&self, member: usize, round: u64, length: u64) -> UserAddress {
        let place = self.note(member, round).reference() as usize;
        if place >= self.places.passed && member != self.me {
            self.hand.note_read((place - self.places.passed) / self.places.piece, round);
        }
        self.window.address(self.places.rings + place, length as usize)
    }

    #[inline(always)]
    fn in_note(&self, member: usize, round: u64, length: u64) -> UserAddress {
        let slot = self.slot(member, round);
        self.window.address(self.places.notes + slot * LINE + NOTE_DATA_AT, length as usize)
    }

    /// Where this member is to write `length` bytes, at most [`Board::piece_bytes`], before it posts them in a round for which
    /// there is room, and whether that is a piece which goes to and fro. `None`: there is no memory.
    #[inline]
    pub fn take_place(&self, round: u64, length: u64) -> Option<(UserAddress, bool)> {
        if length <= NOTE_BYTES as u64 {
            return Some((self.in_note(self.me, round, length), false));
        }
        let passed = self.take_passed();
        let start = passed.or_else(|| self.take_in_turn(length as usize))?;
        self.note(self.me, round).refer(start as u64);
        Some((self.window.address(self.places.rings + start, length as usize), passed.is_some()))
    }

    /// A piece that was passed to this member, seen from the rings on.
    fn take_passed(&self) -> Option<usize> {
        if self.members.len() != 2 {
            return None;
        }
        let Places { rings, passed, piece, .. } = self.places;
        let at = |index: usize| passed + index * piece;
        self.hand.take(self.me, |index| self.window.reserve(rings + at(index), piece).is_ok()).map(at)
    }

    /// What comes next in the ring of this member, seen from the rings on.
    fn take_in_turn(&self, length: usize) -> Option<usize> {
        let cursor = self.cursor.load(Ordering::Relaxed) as usize;
        let start = if cursor + length > self.places.ring { 0 } else { cursor };
        let end = start + length;
        if end as u64 > self.reserved.load(Ordering::Relaxed) && !self.reserve(end as u64) {
            return None;
        }
        self.cursor.store(end.next_multiple_of(LINE) as u64, Ordering::Relaxed);
        Some(self.me * self.places.ring + start)
    }

    #[cold]
    fn reserve(&self, end: u64) -> bool {
        let from = self.reserved.load(Ordering::Relaxed) as usize;
        let to = (end as usize).next_multiple_of(STEP).min(self.places.ring);
        let first = self.places.rings + self.me * self.places.ring;
        let reserved = self.window.reserve(first + from, to - from).is_ok();
        if reserved {
            self.reserved.store(to as u64, Ordering::Relaxed);
        }
        reserved
    }

    /// Shows the data that this member has written for a round.
    #[inline]
    pub fn post(&self, round: u64, length: u64) {
        self.note(self.me, round).post(round, length);
        // Whoever has read what stands in the next one is long done with it.
        fetch_to_write(self.note(self.me, round + 1));
    }

    /// Says for a round where data of this member lies, in its own memory.
    #[inline]
    pub fn offer(&self, round: u64, address: UserAddress, length: u64) {
        let note = self.note(self.me, round);
        note.refer(address.value() as u64);
        note.post(round, Board::offered(length));
    }

    /// What [`Board::posted`] says of so many bytes that are offered.
    #[inline]
    pub fn offered(length: u64) -> u64 {
        length | OFFERED
    }

    /// What [`Board::posted`] says of so many bytes that are blocks for several members.
    #[inline]
    pub fn dealt(length: u64) -> u64 {
        length | DEALT
    }

    /// Whether such blocks were posted, as [`Board::posted`] has said it.
    #[inline]
    pub fn is_dealt(posted: u64) -> bool {
        posted & (OFFERED | DEALT) == DEALT
    }

    /// Whether the data lies elsewhere, as [`Board::posted`] has said it.
    #[inline]
    pub fn is_offered(posted: u64) -> bool {
        posted & OFFERED != 0
    }

    /// How many bytes there are, as [`Board::posted`] has said it.
    #[inline]
    pub fn length_of(posted: u64) -> u64 {
        posted & !(OFFERED | DEALT)
    }

    /// Where in its memory `member` has offered data in a round, once that was posted.
    #[inline]
    pub fn offer_of(&self, member: u32, round: u64) -> UserAddress {
        UserAddress::restore(self.note(member as usize, round).reference() as usize)
    }

    /// Whether what has been read of an offer is what was offered: its owner had not taken it back.
    #[inline]
    pub fn still_offers(&self, member: u32, round: u64) -> bool {
        self.note(member as usize, round).still_posted(round).is_some_and(|posted| posted != WITHDRAWN)
    }

    /// Takes back what this member has offered in `rounds`, the last ones that it has begun: its memory is about to be used otherwise,
    /// and others may not have read all.
    pub fn withdraw(&self, rounds: std::ops::Range<u64>) {
        for round in rounds.end.saturating_sub(self.places.depth).max(rounds.start)..rounds.end {
            let note = self.note(self.me, round);
            if note.posted(round).is_some_and(Board::is_offered) {
                note.withdraw(WITHDRAWN);
            }
        }
    }

    /// The length of the data of `member` in a round, if it is there.
    #[inline]
    pub fn posted(&self, member: u32, round: u64) -> Option<u64> {
        self.note(member as usize, round).posted(round)
    }

    /// Has what `member` posts in a round brought to this core meanwhile, if it was posted. Of use only where it probably was: otherwise
    /// the line is taken from its writer.
    #[inline(always)]
    pub fn expect(&self, member: u32, round: u64) {
        fetch_to_read(self.note(member as usize, round));
    }

    /// Counts this member among those that have arrived in a round, after what it has posted there; whether it is the
    /// last. In a round either all members arrive, or none.
    #[inline]
    pub fn arrive(&self, round: u64) -> bool {
        let place = self.place(round);
        let expected = self.expected[place].load(Ordering::Relaxed).wrapping_add(self.members.len() as u32);
        self.expected[place].store(expected, Ordering::Relaxed);
        // Release pairs with the acquire in `is_complete`, acquire with the releases of those who were here before.
        self.head.arrivals[place].word.fetch_add(1, Ordering::AcqRel).wrapping_add(1) == expected
    }

    /// Whether all members have arrived in a round, in which this one has.
    #[inline]
    pub fn is_complete(&self, round: u64) -> bool {
        let place = self.place(round);
        let expected = self.expected[place].load(Ordering::Relaxed);
        // Acquire pairs with the release in `arrive`.
        self.head.arrivals[place].word.load(Ordering::Acquire) == expected
    }

    /// This member has read all that it will read of the rounds up to this one.
    #[inline]
    pub fn done(&self, round: u64) {
        self.hand.done(round);
        self.marks[self.me].set(round);
    }

    /// As [`Board::done`], now or with one of the next rounds; whether now.
    #[inline]
    pub fn done_in_time(&self, round: u64) -> bool {
        self.hand.done(round);
        let mark = &self.marks[self.me];
        let now = round / TELL_EVERY != mark.get() / TELL_EVERY;
        if now {
            mark.set(round);
        }
        now
    }

    /// Orders what this member has written before whether others sleep; to be called before it waits or leaves, if it has
    /// posted or was done since. Then rings those that sleep for want of room.
    #[inline]
    pub fn settle(&self) {
        // Pairs with the fence of a sleeper.
        fence(Ordering::SeqCst);
        if self.head.blocked.word.load(Ordering::Relaxed) != 0 {
            self.ring_all();
        }
    }

    /// This member is about to sleep for want of room, or does so no longer.
    pub fn block(&self, begins: bool) {
        if begins {
            self.head.blocked.word.fetch_add(1, Ordering::Relaxed);
            // Pairs with the fence in `settle`.
            fence(Ordering::SeqCst);
        } else {
            self.head.blocked.word.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Wakes a member if it sleeps. Unless [`Board::rings_for_certain`], it may miss one that falls asleep at this moment, and
    /// must be repeated after [`Board::settle`].
    #[inline]
    pub fn ring(&self, member: u32) {
        self.ring_process(self.members[member as usize]);
    }

    #[inline(always)]
    fn ring_process(&self, process: ProcessId) {
        if self.rings_for_certain {
            self.core.transport.ring(process.0);
        } else {
            self.core.transport.ring_unfenced(process.0);
        }
    }

    /// Whether whoever sleeps is found by the first ring.
    #[inline]
    pub fn rings_for_certain(&self) -> bool {
        self.rings_for_certain
    }

    /// As [`Board::ring`] for all other members, from the one behind this on.
    #[inline]
    pub fn ring_all(&self) {
        let (before, after) = self.members.split_at(self.me);
        for member in after[1..].iter().chain(before) {
            self.ring_process(*member);
        }
    }

    /// The process that is this member.
    #[inline]
    pub fn process(&self, member: u32) -> ProcessId {
        self.members[member as usize]
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        // Release pairs with the acquire in `claim`.
        self.head.members.word.fetch_sub(1, Ordering::Release);
    }
}
