//! Errands: what one process asks another to do to its own memory, while that waits and looks at its [`Desk`].
//!
//! Memory that processes do not share can be reached through the kernel, which takes as long as it takes for two cache lines to go there
//! and back several times; and there one processor does all the copying. A target that waits anyway does better: short data lies in the
//! question, longer data goes through a piece of shared memory of who asks, which one side fills while the other drains it.
//!
//! A target that computes, sleeps, or lost its processor is not waited for. Who asks takes the question back, and goes another way.
//!
//! Of two that access each other's memory at the same time neither waits. But who has asked does what is short and asked of itself meanwhile: so both ask,
//! as long as it is worth while ([`Bold`]).

use crate::core::Core;
use crate::interface::Interface;
use crate::remote::{Remote, RemoteCopy};
use parnass_base::UserAddress;
use parnass_base::atomics::{AtomicU32, Ordering};
use parnass_base::desk::{Desk, Seat, Words};
use parnass_base::lane::{read_words, write_words};
use parnass_counters::WINDOW_ERRANDS;
use parnass_transport::{Bulk, Gauge, Waiting};
use std::sync::OnceLock;

/// The words of an update that the layer above gives meaning to.
pub type UpdateWords = [u64; INLINE_WORDS];
/// Carries out an update at this process: code, address, length, and the words, in which it leaves its answer.
pub type Updater = fn(u32, UserAddress, usize, &mut UpdateWords);

const INLINE_WORDS: usize = 4;
/// The longest data that lies in the question itself, in bytes.
pub const INLINE: usize = INLINE_WORDS * 8;

/// Bytes of the piece that longer data goes through, and bytes after which the other side is told.
const ROOM: usize = 256 << 10;
const UNIT: usize = 16 << 10;
/// Where both sides copy, one claims an eighth or so at a time, in whole pages of memory.
const UNITS: usize = 8;
const LEAST_UNIT: usize = 16 << 10;
/// The longest errand, in bytes: its target does nothing else meanwhile.
const LONGEST: usize = 4 << 20;

/// Looks at a question that nobody takes up. A target that waits looks at its desk several times meanwhile.
const LOOKS: u32 = 300;
/// How many accesses do not ask a target that does not wait, after a question in vain, at least and at most.
const LEAST_PAUSE: u32 = 64;
const MOST_PAUSE: u32 = 1 << 14;
/// Short accesses that go another way after an errand that was taken back. A longer one counts as several.
const SHY: u32 = 32;
/// A target that sleeps while it waits is woken for every so many accesses: then it serves those that follow.
const WAKE_EVERY: u32 = 16;
/// Bytes that take another way about as long as a short access.
const SHORT: usize = 4 << 10;
/// Looks at the other side of an errand before the processor is given away, and before the kernel is asked whether it lives.
const YIELD_EVERY: u32 = 2_000;
const ASK_EVERY: u32 = 1_000_000;

const WRITE: u64 = 1;
const READ: u64 = 2;
const UPDATE: u64 = 3;
const SHARED_WRITE: u64 = 4;
const SHARED_READ: u64 = 5;
const KIND_BITS: u32 = 8;

/// What a process knows about errands.
#[derive(Debug, Default)]
pub struct Errands {
    /// How many are not tried any more.
    shy: AtomicU32,
    bold: Bold,
    /// Accesses to targets that slept.
    met_asleep: AtomicU32,
    updater: OnceLock<Updater>,
    /// What is known of the ways to the memory of others.
    pub remote: Remote,
}

/// Whether a target is asked that does not wait: if that had an answer the last time, and else now and then. Threads may disagree.
#[derive(Debug)]
struct Bold {
    /// Accesses until the next question; 0: the last one had an answer.
    rest: AtomicU32,
    /// How many they are after a question in vain.
    pause: AtomicU32,
}

impl Default for Bold {
    fn default() -> Bold {
        Bold { rest: AtomicU32::new(LEAST_PAUSE), pause: AtomicU32::new(LEAST_PAUSE) }
    }
}

impl Bold {
    /// Whether to ask now. `weight`: of how many short accesses this one is worth.
    fn asks(&self, weight: u32) -> bool {
        let rest = self.rest.load(Ordering::Relaxed);
        if rest > weight {
            self.rest.store(rest - weight, Ordering::Relaxed);
        }
        rest <= weight
    }

    fn learn(&self, answered: bool) {
        let pause = if answered { LEAST_PAUSE } else { self.pause.load(Ordering::Relaxed) };
        self.rest.store(if answered { 0 } else { pause }, Ordering::Relaxed);
        self.pause.store(if answered { pause } else { (2 * pause).min(MOST_PAUSE) }, Ordering::Relaxed);
    }
}

/// How asking a target went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Done,
    /// It was not asked at all.
    Away,
    /// It did not take the question up, or could not do it all.
    InVain,
}

impl Asked {
    fn of(done: bool) -> Asked {
        if done { Asked::Done } else { Asked::InVain }
    }
}

impl Errands {
    pub fn set_updater(&self, updater: Updater) {
        let _ = self.updater.set(updater);
    }
}

/// Whether to go on waiting for the other side.
struct Patience<'a> {
    core: &'a Core,
    other: u32,
    looks: u32,
}

impl Patience<'_> {
    /// One more look in vain. `false`: the other side is dead.
    #[inline]
    fn look(&mut self) -> bool {
        self.looks += 1;
        if self.looks.is_multiple_of(YIELD_EVERY) {
            std::thread::yield_now();
            return !self.looks.is_multiple_of(ASK_EVERY) || self.core.transport.lives(self.other);
        }
        std::hint::spin_loop();
        true
    }
}

impl Interface {
    /// Does what is short and others ask of this process, to be called while it looks for something else than its NIC's work.
    #[inline(always)]
    pub fn answer_others(&self) {
        self.core.answer_others();
    }
}

impl Core {
    fn patience(&self, other: u32) -> Patience<'_> {
        Patience { core: self, other, looks: 0 }
    }

    fn desk_of(&self, process: u32) -> &Desk {
        &self.nic_of(process).control.desk
    }

    /// A seat at the desk of a process that will look there now, and whether that is known: it waits.
    #[inline]
    fn seat_at(&self, process: u32, length: usize) -> Option<(Seat<'_>, bool)> {
        if self.transport.spins() == 0 || self.is_far(process) {
            return None;
        }
        let weight = || 1 + (length / SHORT) as u32;
        let waits = self.transport.shown(process) != Waiting::Not;
        if !waits {
            if length > UNIT || !self.errands.bold.asks(weight()) {
                return None;
            }
        } else if self.transport.sleeps(process) {
            self.meet_asleep(process, weight());
            return None;
        } else {
            let shy = self.errands.shy.load(Ordering::Relaxed);
            if shy != 0 {
                self.errands.shy.store(shy.saturating_sub(weight()), Ordering::Relaxed);
                return None;
            }
        }
        Some((self.desk_of(process).sit(self.transport.holder())?, waits))
    }

    #[cold]
    fn meet_asleep(&self, process: u32, weight: u32) {
        let met = self.errands.met_asleep.load(Ordering::Relaxed).saturating_add(weight);
        self.errands.met_asleep.store(met % WAKE_EVERY, Ordering::Relaxed);
        if met >= WAKE_EVERY {
            self.transport.ring(process);
        }
    }

    /// Does what is short and asked of this process, which accesses memory of others itself: whoever has asked had better be asked too.
    #[inline(always)]
    pub fn answer_others(&self) {
        if self.answers_one() {
            self.errands.bold.learn(true);
        }
    }

    /// Whether something short was asked, which is done now.
    #[inline(always)]
    fn answers_one(&self) -> bool {
        self.own().control.desk.is_asked() && self.carry_out_short()
    }

    /// Asks, and does its own part by `step` until the answer is there, and what is short and asked of this process. `step` says whether it has got anywhere.
    #[inline]
    fn ask(
        &self,
        (seat, waits): &(Seat<'_>, bool),
        target: u32,
        words: Words,
        mut step: impl FnMut() -> bool,
    ) -> Option<Words> {
        seat.ask(self.me, words);
        let mut patience = self.patience(target);
        let answer = loop {
            if let Some(answer) = seat.answer() {
                break Some(answer);
            }
            if step() || self.answers_one() {
                continue;
            }
            if !patience.look() {
                return None;
            }
            if patience.looks.is_multiple_of(LOOKS) && seat.withdraw() {
                break None;
            }
        };
        if !waits {
            self.errands.bold.learn(answer.is_some());
        } else if answer.is_none() {
            self.errands.shy.store(SHY, Ordering::Relaxed);
        }
        answer
    }

    #[inline]
    pub fn ask_update(
        &self,
        target: u32,
        code: u32,
        remote: UserAddress,
        length: usize,
        words: UpdateWords,
    ) -> Option<UpdateWords> {
        self.answer_others();
        let seat = self.seat_at(target, length)?;
        let question = question(UPDATE | u64::from(code) << KIND_BITS, remote, length, words);
        Some(inline_of(self.ask(&seat, target, question, || false)?))
    }

    /// Has the target copy, which lies in the question or goes through a piece of shared memory.
    #[inline]
    pub fn ask_for(&self, copy: &RemoteCopy) -> Asked {
        let &RemoteCopy { target, write, remote, local, length, .. } = copy;
        if length > INLINE {
            return self.ask_parts(copy, |seat, part| self.ask_long(seat, part));
        }
        let Some(seat) = self.seat_at(target, length) else { return Asked::Away };
        if write {
            let question = question(WRITE, remote, length, read_words(local, length));
            return Asked::of(self.ask(&seat, target, question, || false).is_some());
        }
        let question = question(READ, remote, length, [0; INLINE_WORDS]);
        let Some(answer) = self.ask(&seat, target, question, || false) else { return Asked::InVain };
        write_words(&inline_of(answer), local, length);
        Asked::Done
    }

    /// Has the target copy a share, by the kernel, and copies the other as [`Core::copy_alone`].
    pub fn ask_to_share(&self, copy: &RemoteCopy) -> Asked {
        self.ask_parts(copy, |seat, part| self.ask_shared(seat, part))
    }

    /// One errand after the other. What was done before one fails is done again by whoever goes another way then.
    fn ask_parts(&self, copy: &RemoteCopy, ask: impl Fn(&(Seat<'_>, bool), &RemoteCopy) -> bool) -> Asked {
        for skip in (0..copy.length).step_by(LONGEST) {
            let Some(seat) = self.seat_at(copy.target, copy.length) else {
                return if skip == 0 { Asked::Away } else { Asked::InVain };
            };
            let part = RemoteCopy { length: LONGEST.min(copy.length - skip), ..copy.from(skip) };
            if !ask(&seat, &part) {
                return Asked::InVain;
            }
        }
        Asked::Done
    }

    /// Whether all of it has been copied. Nothing is lost where the target does not look: then this side copies all.
    fn ask_shared(&self, (seat, _): &(Seat<'_>, bool), copy: &RemoteCopy) -> bool {
        let &RemoteCopy { target, write, remote, local, length, .. } = copy;
        let Some((piece, gauge)) = self.claim_pipe(0) else { return false };
        let share = Share { core: self, gauge, copy };
        let kind = if write { SHARED_WRITE } else { SHARED_READ };
        seat.ask(self.me, question(kind, remote, length, [piece.0, local.value() as u64, 0, 0]));
        let mut done = share.copy(1);
        if !seat.withdraw() {
            let mut patience = self.patience(target);
            let answer = loop {
                let answer = seat.answer();
                if answer.is_some() || !patience.look() {
                    break answer;
                }
            };
            done &= answer.is_some_and(|words| inline_of(words)[0] != 0);
        }
        self.transport.discard(piece);
        done
    }

    fn ask_long(&self, seat: &(Seat<'_>, bool), copy: &RemoteCopy) -> bool {
        let &RemoteCopy { target, write, remote, local, length, .. } = copy;
        if length <= UNIT {
            return self.ask_whole(seat, copy);
        }
        let Some((piece, gauge)) = self.claim_pipe(length.min(ROOM)) else { return false };
        let mut stream = Stream { core: self, other: target, piece, gauge, user: local, length, done: 0 };
        let kind = if write { WRITE } else { READ };
        let question = question(kind, remote, length, [piece.0, 0, 0, 0]);
        let answered = if write {
            // The first part is there when the target looks; with more it would look in vain too long.
            stream.fill();
            self.ask(seat, target, question, || stream.fill()).is_some()
        } else {
            let answered = self.ask(seat, target, question, || stream.drain()).is_some();
            while answered && stream.drain() {}
            answered
        };
        self.transport.discard(piece);
        answered
    }

    /// All is in the piece when the target looks, or when it has answered.
    fn ask_whole(&self, seat: &(Seat<'_>, bool), copy: &RemoteCopy) -> bool {
        let &RemoteCopy { target, write, remote, local, length, .. } = copy;
        let Some(piece) = self.transport.claim(length) else { return false };
        if write {
            self.fill(target, piece, 0, local.into(), 0, length);
        }
        let kind = if write { WRITE } else { READ };
        let question = question(kind, remote, length, [piece.0, 0, 0, 0]);
        let answered = self.ask(seat, target, question, || false).is_some();
        let copied = answered && (write || self.transport.drain(piece, 0, self.me, local, length).is_ok());
        self.transport.discard(piece);
        copied
    }

    // ---- at the target

    /// Carries out what is asked at the desk of this process. Whether there was anything.
    #[cold]
    pub fn carry_out(&self) -> bool {
        self.desk_of(self.me).take().map(|(asker, words)| self.carry_out_one(asker, words)).is_some()
    }

    /// As [`Core::carry_out`], of what needs nothing more of who asks: it may be asking while this process does.
    #[cold]
    fn carry_out_short(&self) -> bool {
        let is_short = |&[what, _, length, ..]: &Words| {
            matches!(what & ((1 << KIND_BITS) - 1), WRITE | READ | UPDATE) && length <= UNIT as u64
        };
        let taken = self.desk_of(self.me).take_if(is_short);
        taken.map(|(asker, words)| self.carry_out_one(asker, words)).is_some()
    }

    fn carry_out_one(&self, asker: u32, words: Words) {
        let [what, address, length, ..] = words;
        let address = UserAddress::restore(address as usize);
        let length = length as usize;
        let mut inline = inline_of(words);
        match what & ((1 << KIND_BITS) - 1) {
            WRITE | READ if length > INLINE => {
                self.carry_out_long(asker, what == WRITE, address, length, Bulk(inline[0]))
            }
            WRITE => write_words(&inline, address, length),
            SHARED_WRITE | SHARED_READ => {
                let remote = UserAddress::restore(inline[1] as usize);
                let write = what == SHARED_READ;
                let copy = RemoteCopy { target: asker, write, remote, mapped: None, local: address, length };
                inline[0] = u64::from(self.carry_out_share(&copy, Bulk(inline[0])));
            }
            READ => inline = read_words(address, length),
            _ => {
                if let Some(updater) = self.errands.updater.get() {
                    updater((what >> KIND_BITS) as u32, address, length, &mut inline);
                }
            }
        }
        self.desk_of(self.me).answer(question(what, address, length, inline));
        self.counters.count_any(WINDOW_ERRANDS, 1);
    }

    /// Whether all went well that was claimed.
    fn carry_out_share(&self, copy: &RemoteCopy, piece: Bulk) -> bool {
        self.transport.gauge(piece).is_some_and(|gauge| Share { core: self, gauge, copy }.copy(1 << BACK))
    }

    fn carry_out_long(&self, asker: u32, write: bool, address: UserAddress, length: usize, piece: Bulk) {
        if length <= UNIT {
            if write {
                let copied = self.transport.drain(piece, 0, self.me, address, length);
                debug_assert!(copied.is_ok(), "into memory of this process");
            } else {
                self.fill(asker, piece, 0, address.into(), 0, length);
            }
            return;
        }
        let Some(gauge) = self.transport.gauge(piece) else { return };
        let mut stream = Stream { core: self, other: asker, piece, gauge, user: address, length, done: 0 };
        let mut patience = self.patience(asker);
        while stream.done < length {
            let moved = if write { stream.drain() } else { stream.fill() };
            if !moved && !patience.look() {
                return;
            }
        }
    }
}

#[inline]
fn question(what: u64, address: UserAddress, length: usize, inline: [u64; INLINE_WORDS]) -> Words {
    let [first, second, third, fourth] = inline;
    [what, address.value() as u64, length as u64, first, second, third, fourth]
}

#[inline]
fn inline_of(words: Words) -> [u64; INLINE_WORDS] {
    let [_, _, _, inline @ ..] = words;
    inline
}

/// One side's view of an access of which both sides copy what they claim: who asks from the start on, the other one from the end on, so that each
/// finds in its own cache what it copied the last time.
struct Share<'a> {
    core: &'a Core,
    /// How much is claimed is in `filled`: units from the start, and above [`BACK`] units from the end.
    gauge: Gauge<'a>,
    copy: &'a RemoteCopy,
}

const BACK: u32 = 32;

impl Share<'_> {
    /// Copies units until none is left. `one`: a unit from the start or from the end. `false`: one that this side has claimed could not be copied.
    fn copy(&self, one: u64) -> bool {
        let length = self.copy.length;
        let unit = (length / UNITS).next_multiple_of(LEAST_UNIT);
        let units = length.div_ceil(unit);
        loop {
            let claimed = self.gauge.filled.fetch_add(one, Ordering::Relaxed);
            let (front, back) = ((claimed & (u64::MAX >> BACK)) as usize, (claimed >> BACK) as usize);
            if front + back >= units {
                return true;
            }
            let at = unit * if one == 1 { front } else { units - 1 - back };
            let part = RemoteCopy { length: unit.min(length - at), ..self.copy.from(at) };
            if self.core.copy_alone(&part).is_err() {
                return false;
            }
        }
    }
}

/// One side's part of a long errand.
struct Stream<'a> {
    core: &'a Core,
    other: u32,
    piece: Bulk,
    gauge: Gauge<'a>,
    /// Memory of this process.
    user: UserAddress,
    length: usize,
    done: usize,
}

impl Stream<'_> {
    fn room(&self) -> usize {
        self.length.min(ROOM)
    }

    /// Bytes of the next step, if `most` can be moved now.
    fn step(&self, most: usize) -> usize {
        let room = self.room();
        UNIT.min(most).min(room - self.done % room).min(self.length - self.done)
    }

    /// Fills the next unit of the piece from user memory, if there is room. Whether there was.
    fn fill(&mut self) -> bool {
        // Acquire pairs with the release in `drain`: what was there has been read.
        let drained = self.gauge.drained.load(Ordering::Acquire) as usize;
        let bytes = self.step((drained + self.room()).saturating_sub(self.done));
        if bytes == 0 {
            return false;
        }
        let at = self.done % self.room();
        self.core.fill(self.other, self.piece, at, self.user.into(), self.done as u64, bytes);
        self.done += bytes;
        // Release pairs with the acquire in `drain`.
        self.gauge.filled.store(self.done as u64, Ordering::Release);
        true
    }

    /// Drains the next unit of the piece to user memory, if there is anything in it. Whether there was.
    fn drain(&mut self) -> bool {
        // Acquire pairs with the release in `fill`.
        let filled = self.gauge.filled.load(Ordering::Acquire) as usize;
        let bytes = self.step(filled.saturating_sub(self.done));
        if bytes == 0 {
            return false;
        }
        let (at, to) = (self.done % self.room(), self.user.offset(self.done as i64));
        let moved = self.core.transport.drain(self.piece, at, self.core.me, to, bytes);
        debug_assert!(moved.is_ok(), "into memory of this process");
        self.done += bytes;
        // Release pairs with the acquire in `fill`.
        self.gauge.drained.store(self.done as u64, Ordering::Release);
        true
    }
}
