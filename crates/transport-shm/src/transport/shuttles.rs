//! Messages that lie in the lines of the message that they answer, see [`parnass_base::shuttle`].

use super::meeting::{Meeting, TIMED, Timed};
use super::{REACHED, REFUSED, SharedMemory, UNKNOWN};
use crate::layout::{SHUTTLE_BYTES, SHUTTLE_RUNS_AT, SHUTTLES_AT, STRIDE, Station};
use parnass_base::atomics::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use parnass_base::choice::Choice;
use parnass_base::clock;
use parnass_base::lane::{Arrived, FIRST_BYTES, Lane, LaneControl, Producer, Slot};
use parnass_base::shuttle::{self, SLOTS, Shuttle, Turn};
use parnass_base::{PAGE, Placed, Table, UserAddress, Window, place};
use parnass_transport::Answer;
use std::mem::offset_of;

/// Memory that is reserved with the first use.
#[derive(Debug)]
pub(super) struct Runs {
    window: Window,
    address: UserAddress,
    /// Whether memory stands behind it: [`UNKNOWN`], [`REACHED`] or [`REFUSED`].
    stand: AtomicU8,
}

impl Runs {
    pub(super) fn new(window: Window) -> Runs {
        let address = window.address(0, window.len());
        Runs { window, address, stand: AtomicU8::new(UNKNOWN) }
    }

    /// Where they lie, if memory stands behind them.
    pub(super) fn standing(&self) -> Option<UserAddress> {
        if self.stand.load(Ordering::Relaxed) == UNKNOWN {
            let stands = self.window.reserve(0, self.window.len()).is_ok();
            self.stand.store(if stands { REACHED } else { REFUSED }, Ordering::Relaxed);
        }
        let stand = self.stand.load(Ordering::Relaxed) == REACHED;
        stand.then_some(self.address)
    }
}

/// When a peer answers, found out by how often it was looked for in vain.
///
/// Who looks too early takes the line from who is about to write it, so that the answer takes two ways more; who looks too late only loses the time. So after a
/// look in vain the next one comes later by more than it comes sooner after one that was not. Of answers that take long nothing is lost.
///
/// Of two that answer each other only one may learn so: the longer one waits, the later comes the other's answer, and both would wait longer and longer. The
/// other one *leads*: it waits for a while that it changes seldom, so that the first can follow, and tries to shorten.
#[derive(Debug, Default)]
struct Answers {
    /// Steps of [`parnass_base::clock::idle`] above 1; 0: its last message did not come by shuttle.
    after: AtomicU32,
    /// Of who leads: answers since the last change, and looks in vain before them.
    known: AtomicU32,
    vain: AtomicU32,
}

/// Steps by which the first look comes later.
const LATER: u32 = 3;
/// Answers after which who leads changes something, and how many looks for them may be in vain, or are so if it waits by far too short.
const CHANGE: u32 = 32;
const FEW: u32 = CHANGE / 5;
const MANY: u32 = CHANGE * 4;
/// An answer that takes more steps, or more looks, needs no such care.
const LONGEST: u32 = 1300;
const MOST_LOOKS: u32 = 60;

impl Answers {
    #[inline(always)]
    fn came(&self, by_shuttle: bool) {
        let after = self.after.load(Ordering::Relaxed);
        if by_shuttle != (after != 0) {
            self.after.store(u32::from(by_shuttle), Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn after(&self) -> Option<u32> {
        self.after.load(Ordering::Relaxed).checked_sub(1)
    }

    /// One was expected by who leads, or by the other one, and so many looks were in vain.
    #[inline(always)]
    fn learn(&self, leads: bool, looks: u32) {
        let after = match self.after.load(Ordering::Relaxed) {
            0 => return,
            after if looks > MOST_LOOKS || after > LONGEST => 1,
            after if leads => self.lead(after, looks),
            after if looks == 0 => after.max(2) - 1,
            after => after + LATER,
        };
        self.after.store(after, Ordering::Relaxed);
    }

    /// As [`Answers::learn`], of who leads.
    #[inline(always)]
    fn lead(&self, after: u32, looks: u32) -> u32 {
        let vain = self.vain.load(Ordering::Relaxed) + looks;
        let known = self.known.load(Ordering::Relaxed) + 1;
        let ends = known >= CHANGE;
        self.vain.store(if ends { 0 } else { vain }, Ordering::Relaxed);
        self.known.store(if ends { 0 } else { known }, Ordering::Relaxed);
        match vain {
            _ if !ends => after,
            vain if vain > MANY => after + after / 2 + LATER,
            vain if vain > FEW => after + after / 8 + LATER,
            _ => (after - after / 16).max(2) - 1,
        }
    }
}

/// Whether the shuttle is worth while, found out by who leads from the time that exchanges take; the other one follows: it answers by the way by which
/// the message came. Cores that share their caches, as two threads of one core, pass lines on at no cost, and gain nothing by it.
#[derive(Debug, Default)]
struct Worth {
    /// By the length of the messages: 0 the shuttle, 1 the lane.
    ways: [Choice<2>; CLASSES],
    /// The length of those whose time is taken, and how many of the answers came by shuttle.
    class: AtomicU32,
    shuttled: AtomicU32,
    timed: Timed,
}

/// Lengths that are told apart: of one slot, of up to [`SHORT`] bytes, up to [`LONG`], and longer ones.
const CLASSES: usize = 4;
const LONG: usize = 2048;
/// The way of the shuttle in [`Worth::ways`].
const BY_SHUTTLE: usize = 0;

impl Worth {
    /// Whether a message goes by shuttle.
    #[inline(always)]
    fn goes(&self, length: usize) -> bool {
        let class =
            usize::from(length > FIRST_BYTES) + usize::from(length >= SHORT) + usize::from(length > LONG);
        if class as u32 != self.class.load(Ordering::Relaxed) {
            self.class.store(class as u32, Ordering::Relaxed);
            self.begin(0);
        }
        self.ways[class].way() == BY_SHUTTLE
    }

    /// As [`Timed::begin`].
    #[inline(always)]
    fn begin(&self, now: u64) {
        self.shuttled.store(0, Ordering::Relaxed);
        self.timed.begin(now);
    }

    /// A lone message was answered.
    #[inline(always)]
    fn exchanged(&self, by_shuttle: bool) {
        self.shuttled.store(self.shuttled.load(Ordering::Relaxed) + u32::from(by_shuttle), Ordering::Relaxed);
        if self.timed.count() {
            self.learn(clock::nanoseconds());
        }
    }

    #[inline(never)]
    fn learn(&self, now: u64) {
        let choice = &self.ways[self.class.load(Ordering::Relaxed) as usize];
        let way = choice.way();
        // Where messages met, the shuttle was not used. Several threads may come here at once: then some of it is lost.
        let went = way != BY_SHUTTLE || self.shuttled.load(Ordering::Relaxed) > TIMED * 3 / 4;
        if let Some(took) = self.timed.end(now).filter(|_| went) {
            choice.learn(way, TIMED as usize, took);
        }
        self.shuttled.store(0, Ordering::Relaxed);
    }
}

/// What this process has of the shuttle between it and a peer.
#[derive(Debug)]
pub(super) struct Side {
    slots: Table<Slot>,
    /// Nobody uses this.
    control: Placed<LaneControl>,
    run: Runs,
    turn: Placed<Turn>,
    /// Whether this is the earlier rank, which leads.
    first: bool,
    answers: Answers,
    /// Of who leads.
    worth: Worth,
    meeting: Meeting,
    /// Messages to the peer since something came from it, and how often in a row it was one when something came.
    sent: AtomicU32,
    lone: AtomicU32,
    /// Messages to the peer that took bulk memory since something came, and what was read of the lane and of the turns then.
    bulky: AtomicU32,
    heard: AtomicU64,
    /// The place of the thread that sent the last one.
    thread: AtomicU32,
    /// How often it was another one.
    changes: AtomicU32,
    /// Whether the last message by shuttle is not answered yet, and nobody has let the time pass that this takes.
    asked: AtomicBool,
    waits: AtomicBool,
    /// Messages of the peer until it counts as received by nobody who looks for answers.
    looked_for: AtomicU32,
    /// Lone messages in a row before one goes by shuttle, for who leads.
    needed: AtomicU32,
}

/// So many lone messages in a row are answered before one goes by shuttle: what comes in rows is faster by the lane. For who leads eight times as many, up to
/// the most, where that one was not answered by shuttle: it has met a message that was sent at the same time.
const LONE: u32 = 4;
const MOST_LONE: u32 = 512;
/// Messages of a row up to so many bytes go by runs.
const IN_RUNS: usize = 2 << 10;
/// A message that takes bulk memory is part of a row if so many have gone before it.
const ROW: u32 = 3;
/// Shorter messages of several slots go by shuttle only where their answers are looked for when they have come, and so many messages later.
const SHORT: usize = 512;
const LOOKED_FOR: u32 = 8;
/// In the first two of so many turns all that has come is looked at, and not the answer alone.
const ANSWERS: u64 = 32;
/// Threads that take turns so often do so for good.
const MOST_CHANGES: u32 = 8;

/// A message that came by shuttle, and the turn that it has had.
pub(super) struct Shuttled<'a> {
    pub(super) message: Arrived<'a>,
    own: &'a Turn,
    turn: u64,
}

impl Shuttled<'_> {
    /// It is no longer needed.
    #[inline(always)]
    pub(super) fn pass(&self) {
        self.own.pass(self.turn);
    }
}

impl Side {
    /// Of `rank`, whose area lies in `memory`, and `other`; none to oneself.
    pub(super) fn new(memory: &Window, rank: u32, other: u32) -> Option<Side> {
        if rank == other {
            return None;
        }
        let (earlier, keeper) = (rank.min(other) as usize, PAGE + rank.max(other) as usize * STRIDE);
        let station = PAGE + rank as usize * STRIDE;
        let run = memory.window(keeper + SHUTTLE_RUNS_AT + earlier * shuttle::BYTES, shuttle::BYTES);
        let turn = station + offset_of!(Station, turns) + other as usize * size_of::<Turn>();
        Some(Side {
            slots: memory.table(keeper + SHUTTLES_AT + earlier * SHUTTLE_BYTES, SLOTS),
            control: memory.record(keeper + offset_of!(Station, lanes)),
            run: Runs::new(run),
            turn: memory.record(turn),
            first: rank < other,
            answers: Answers::default(),
            worth: Worth::default(),
            meeting: Meeting::default(),
            sent: AtomicU32::new(0),
            lone: AtomicU32::new(0),
            bulky: AtomicU32::new(0),
            heard: AtomicU64::new(0),
            thread: AtomicU32::new(0),
            changes: AtomicU32::new(0),
            asked: AtomicBool::new(false),
            waits: AtomicBool::new(false),
            looked_for: AtomicU32::new(0),
            needed: AtomicU32::new(LONE),
        })
    }

    #[inline(always)]
    fn shuttle(&self) -> Shuttle<'_> {
        // Their number is known where it is not counted again.
        let slots: &[Slot; SLOTS] = self.slots.first_chunk().expect("all slots of a shuttle");
        Shuttle::new(slots, Lane::new(&self.control, slots), self.run.address)
    }

    /// Whether something has come by shuttle.
    #[inline(always)]
    pub(super) fn has_come(&self) -> bool {
        self.turn.there(self.first).is_some_and(|turn| Shuttle::has_come(&self.slots, turn))
    }

    /// What came by shuttle.
    #[inline(always)]
    fn shuttled(&self) -> Option<Shuttled<'_>> {
        let turn = self.turn.there(self.first)?;
        Some(Shuttled { message: self.shuttle().read(turn)?, own: &self.turn, turn })
    }

    /// If what comes probably answers: after how many steps.
    #[inline(always)]
    pub(super) fn answer_after(&self) -> Option<u32> {
        self.looked_for.store(LOOKED_FOR, Ordering::Relaxed);
        if !self.waits.load(Ordering::Relaxed) {
            return None;
        }
        self.waits.store(false, Ordering::Relaxed);
        self.turn.there(self.first)?;
        self.answers.after()
    }

    /// Whether time is to pass before a look at the lane for what comes from the peer.
    #[inline(always)]
    pub(super) fn lets_pass(&self) -> bool {
        self.sent.load(Ordering::Relaxed) == 1 && self.meeting.lets_pass()
    }

    /// Lets it pass.
    pub(super) fn let_pass(&self) {
        self.meeting.let_pass();
    }

    /// Such a look was in vain.
    #[inline(always)]
    pub(super) fn looked_in_vain(&self) {
        self.meeting.looked_in_vain();
    }

    /// See [`parnass_transport::Transport::next_answer`].
    #[inline(always)]
    pub(super) fn next_answer(&self) -> Option<Answer<'_>> {
        let turn = self.turn.there(self.first).filter(|turn| turn % ANSWERS >= 2)?;
        if !Shuttle::has_come(&self.slots, turn) {
            return None;
        }
        Some(self.shuttle().short(turn).map_or(Answer::Other, Answer::Short))
    }

    /// See [`parnass_transport::Transport::pass_answer`].
    #[inline(always)]
    pub(super) fn pass_answer(&self, looks: u32) {
        if let Some(turn) = self.turn.there(self.first) {
            self.turn.pass(turn);
            self.came(true);
            self.answers.learn(self.first, looks);
        }
    }

    /// Offers it; whether it was accepted.
    #[inline(always)]
    fn take(&self, shuttled: &Shuttled<'_>, accept: &mut dyn FnMut(&Arrived) -> bool) -> bool {
        let accepted = accept(&shuttled.message);
        if accepted {
            shuttled.pass();
            self.came(true);
        }
        accepted
    }

    /// The shuttle and its turn, if the next message to the peer goes by it.
    #[inline(always)]
    pub(super) fn claim(
        &self,
        lane: &Lane<'_>,
        producer: Producer<'_>,
        length: usize,
    ) -> Option<(Shuttle<'_>, u64)> {
        self.count();
        self.meeting.sends(length);
        if !producer.alone {
            self.note_thread();
        }
        if self.lone.load(Ordering::Relaxed) < self.needed.load(Ordering::Relaxed)
            || self.changes.load(Ordering::Relaxed) == MOST_CHANGES
            || (FIRST_BYTES + 1..SHORT).contains(&length) && self.looked_for.load(Ordering::Relaxed) == 0
        {
            return None;
        }
        if self.first && !self.worth.goes(length) {
            return None;
        }
        let turn = self.turn.here(self.first)?;
        let goes = producer.overlaps && lane.is_taken_in(producer) && self.turn.claim(turn, producer.alone);
        if !goes {
            return None;
        }
        self.asked.store(true, Ordering::Relaxed);
        self.waits.store(true, Ordering::Relaxed);
        Some((self.shuttle(), turn))
    }

    /// Whether the next message to the peer follows another, and goes by a piece though a run would take it. A run shows its bytes while they are written,
    /// which a lone message gains by. In a row it matters more that its memory is not in the cache of who has just read it: runs of a lane are written again
    /// while they are still there; pieces take turns until they have left that cache.
    #[inline]
    pub(super) fn leaves_runs(&self, length: usize) -> bool {
        let leaves = self.sent.load(Ordering::Relaxed) != 0 && length > IN_RUNS;
        if leaves {
            self.count();
        }
        leaves
    }

    /// See [`parnass_transport::Transport::follows`]; `read`: of the lane, up to where.
    pub(super) fn follows(&self, read: u64) -> bool {
        let turn = self.turn.here(self.first).or_else(|| self.turn.there(self.first));
        let heard = read.wrapping_add(turn.unwrap_or(0));
        let is_new = self.heard.swap(heard, Ordering::Relaxed) != heard;
        let bulky = if is_new { 0 } else { self.bulky.load(Ordering::Relaxed) };
        self.bulky.store(bulky.saturating_add(1), Ordering::Relaxed);
        bulky.saturating_add(self.sent.load(Ordering::Relaxed)) >= ROW
    }

    /// Counts a message to the peer.
    #[inline(always)]
    fn count(&self) {
        self.sent.store(self.sent.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
    }

    /// Notes which thread sends. Messages of several are no row, and where threads take turns again and again none ever is.
    fn note_thread(&self) {
        let thread = place::own() as u32;
        if self.thread.load(Ordering::Relaxed) != thread {
            self.thread.store(thread, Ordering::Relaxed);
            let changes = self.changes.load(Ordering::Relaxed);
            self.changes.store((changes + 1).min(MOST_CHANGES), Ordering::Relaxed);
            self.lone.store(0, Ordering::Relaxed);
        }
    }

    /// Notes that something has come from the peer, `by_shuttle` or otherwise.
    #[inline(always)]
    pub(super) fn came(&self, by_shuttle: bool) {
        self.answers.came(by_shuttle);
        let sent = self.sent.load(Ordering::Relaxed);
        if sent == 0 {
            return;
        }
        self.sent.store(0, Ordering::Relaxed);
        if sent != 1 || by_shuttle {
            self.meeting.is_disturbed();
        } else if self.meeting.met() {
            self.meeting.learn(clock::nanoseconds());
        }
        self.looked_for.store(self.looked_for.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
        let mut lone = if sent == 1 { (self.lone.load(Ordering::Relaxed) + 1).min(MOST_LONE) } else { 0 };
        if !self.first {
            // What came by shuttle is answered by it.
            self.lone.store(if by_shuttle { lone.max(LONE) } else { lone }, Ordering::Relaxed);
            return;
        }
        if sent == 1 {
            self.worth.exchanged(by_shuttle);
        } else {
            self.worth.begin(0);
        }
        if self.asked.load(Ordering::Relaxed) {
            self.asked.store(false, Ordering::Relaxed);
            let needed = self.needed.load(Ordering::Relaxed);
            if by_shuttle {
                self.needed.store((needed / 2).max(LONE), Ordering::Relaxed);
            } else if self.turn.there(self.first).is_some() {
                self.needed.store((needed * 8).min(MOST_LONE), Ordering::Relaxed);
                lone = 0;
            }
        }
        self.lone.store(lone, Ordering::Relaxed);
    }

    /// As [`Side::claim`], for a message whose bytes lie in the run.
    #[inline(always)]
    pub(super) fn claim_run(
        &self,
        lane: &Lane<'_>,
        producer: Producer<'_>,
        length: usize,
    ) -> Option<(Shuttle<'_>, u64, UserAddress)> {
        let run = self.run.standing()?;
        self.claim(lane, producer, length).map(|(shuttle, turn)| (shuttle, turn, run))
    }
}

impl SharedMemory {
    /// Whether something has come by shuttle for `of` from `other`.
    #[inline(always)]
    pub(super) fn is_shuttled(&self, of: u32, other: u32) -> bool {
        if of != self.rank {
            return self.shuttled_for(of, other).is_some();
        }
        self.peer(other).side.as_ref().is_some_and(Side::has_come)
    }

    /// Offers what has come by shuttle for `of` from `other`; whether it was accepted. It precedes all in the lane, if something was seen there before.
    #[inline(never)]
    pub(super) fn take_shuttled(
        &self,
        of: u32,
        other: u32,
        accept: &mut dyn FnMut(&Arrived) -> bool,
    ) -> bool {
        if of == self.rank {
            let side = self.peer(other).side.as_ref();
            return side
                .is_some_and(|side| side.shuttled().is_some_and(|shuttled| side.take(&shuttled, accept)));
        }
        let Some(shuttled) = self.shuttled_for(of, other) else { return false };
        let accepted = accept(&shuttled.message);
        if accepted {
            shuttled.pass();
        }
        accepted
    }

    /// As [`Side::shuttled`], for another process.
    #[inline(never)]
    fn shuttled_for(&self, of: u32, other: u32) -> Option<Shuttled<'_>> {
        if of == other || self.lanes < self.peers.len() {
            return None;
        }
        let own = &self.peer(of).station.turns[other as usize];
        let turn = own.there(of < other)?;
        let (earlier, keeper) = (of.min(other) as usize, self.peer(of.max(other)));
        let slots = &keeper.shuttles[earlier * SLOTS..][..SLOTS];
        let run = keeper.shuttle_runs.offset((earlier * shuttle::BYTES) as i64);
        let message = Shuttle::new(slots, Lane::new(&keeper.station.lanes[0], slots), run).read(turn)?;
        Some(Shuttled { message, own, turn })
    }

    /// See [`parnass_transport::Transport::answer_after`].
    #[inline]
    pub(super) fn expects_answer(&self, source: Option<u32>) -> Option<(u32, u32)> {
        let source = source.or_else(|| (self.peers.len() == 2).then(|| 1 - self.rank))?;
        Some((source, self.peer(source).side.as_ref()?.answer_after()?))
    }

    /// See [`parnass_transport::Transport::take_answer`].
    #[inline]
    pub(super) fn take_expected(
        &self,
        source: u32,
        looks: u32,
        accept: &mut dyn FnMut(&Arrived) -> bool,
    ) -> bool {
        let Some(side) = &self.peer(source).side else { return false };
        let accepted = side
            .shuttled()
            .filter(|shuttled| shuttled.turn % ANSWERS >= 2)
            .is_some_and(|shuttled| side.take(&shuttled, accept));
        if accepted {
            side.answers.learn(side.first, looks);
        }
        accepted
    }

    /// Passes what a dead peer has not written to its end.
    pub(super) fn bury_shuttled(&self, dead: u32) {
        if let Some(shuttled) = self.peer(dead).side.as_ref().and_then(Side::shuttled)
            && !shuttled.message.is_whole()
        {
            shuttled.pass();
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{JobMemory, Tuning};
    use parnass_base::Scratch;
    use parnass_base::lane::HEAD;
    use parnass_transport::{Follow, Posting, Transport};

    /// No process has this number.
    const GONE: u32 = i32::MAX as u32;

    pub(in super::super) fn job(size: u32) -> Vec<SharedMemory> {
        let file = JobMemory::create(size).unwrap();
        let attach = |rank| {
            let memory = JobMemory::open(file.try_clone().unwrap()).unwrap();
            SharedMemory::attach_with(memory, rank, Tuning { yields: 0, ..Tuning::default() }).unwrap()
        };
        (0..size).map(attach).collect()
    }

    pub(in super::super) fn send(from: &SharedMemory, to: u32, number: u32, length: usize) {
        let content = vec![number as u8; length];
        let source = Scratch::new(length.max(1));
        source.address().write(&content);
        let posted =
            from.post_bytes(to, number, [number.into(); HEAD], source.address(), length, Follow::Nothing);
        assert!(matches!(posted, Posting::Posted), "{length} bytes: {posted:?}");
    }

    /// The numbers of what `driver` takes in for `of`, whose bytes are right.
    fn take(driver: &SharedMemory, of: u32, length: usize) -> Vec<u32> {
        let mut numbers = Vec::new();
        let target = Scratch::new(length.max(1));
        assert_eq!(driver.poll(of), length != 0);
        driver.take(of, 100, &mut |message| {
            assert!(message.copy_to(HEAD, target.address(), length));
            let mut seen = vec![0; length];
            target.address().read(&mut seen);
            assert!(seen.iter().all(|byte| *byte == message.tag as u8));
            numbers.push(message.tag);
            true
        });
        numbers
    }

    /// Messages 1 to 21 between two, each the answer of the last: the turn is the later one's.
    pub(in super::super) fn exchange(job: &[SharedMemory]) {
        for number in 1..=21 {
            let (from, to) = (1 - number as usize % 2, number % 2);
            send(&job[from], to, number, 8);
            assert_eq!(take(&job[to as usize], to, 8), [number]);
        }
    }

    fn turn(of: &SharedMemory, other: u32) -> u64 {
        let side = of.peer(other).side.as_ref().unwrap();
        side.turn.here(side.first).or(side.turn.there(side.first)).unwrap()
    }

    #[test]
    fn answers_go_by_shuttle_and_rows_by_the_lane_in_their_order() {
        for (length, drivers) in [(8, [1, 2]), (40, [1, 2]), (1000, [0, 1]), (2000, [1, 2]), (8192, [1, 2])] {
            let job = job(3);
            let before = turn(&job[1], 2);
            let mut number = 0;
            for round in 0..30 {
                for (from, to) in [(1, 2), (2, 1)] {
                    number += 1;
                    send(&job[from], to as u32, number, length);
                    // Now and then somebody else takes it in; after that a long one would count as part of a row.
                    let driver = if round % 10 == 9 && length <= 2000 { drivers[0] } else { to };
                    assert_eq!(take(&job[driver], to as u32, length), [number]);
                    assert_eq!(take(&job[to], to as u32, 0), [0; 0]);
                }
            }
            let answered = turn(&job[1], 2) - before;
            assert!(answered >= 10, "{answered} turns");
            // Longer ones go by pieces in a row.
            let length = length.min(2000);
            for _ in 0..10 {
                let row: Vec<u32> = (number + 1..number + 5).collect();
                row.iter().for_each(|number| send(&job[1], 2, *number, length));
                assert_eq!(take(&job[2], 2, length), row);
                number += 5;
                send(&job[2], 1, number, length);
                assert_eq!(take(&job[1], 1, length), [number]);
            }
            assert!(turn(&job[1], 2) - before - answered <= 2);
        }
    }

    /// Answers are taken one after the other without a look at anything else, but not for ever.
    #[test]
    fn who_takes_answers_alone_keeps_nobody_waiting() {
        let job = job(3);
        exchange(&job[..2]);
        send(&job[2], 1, 99, 8);
        let (mut alone, mut others) = (0, Vec::new());
        for number in 22..62 {
            let (from, to) = (1 - number as usize % 2, number % 2);
            let peer = &job[to as usize];
            assert!(peer.answer_after(Some(from as u32)).is_some());
            assert!(!peer.take_answer(from as u32, 0, &mut |_| unreachable!("it has not come")));
            send(&job[from], to, number, 8);
            assert!(!peer.take_answer(from as u32, 0, &mut |_| false), "it is refused, and stays");
            let mut came = |message: &Arrived| {
                others.push(message.tag);
                true
            };
            if peer.take_answer(from as u32, 0, &mut came) {
                alone += 1;
            } else {
                peer.take(to, 100, &mut came);
            }
            others.retain(|tag| *tag != number);
        }
        assert!(alone >= 30, "{alone} answers");
        assert_eq!(others, [99]);
    }

    #[test]
    fn what_is_refused_stays_and_keeps_what_follows() {
        let job = job(2);
        exchange(&job);
        let before = turn(&job[1], 0);
        (22..25).for_each(|number| send(&job[1], 0, number, 8));
        assert_eq!(turn(&job[1], 0), before + 1, "the first one went by shuttle");
        for _ in 0..3 {
            assert_eq!(job[0].take(0, 100, &mut |message| message.tag != 22), 0);
        }
        assert_eq!(take(&job[0], 0, 8), [22, 23, 24]);
    }

    #[test]
    fn what_a_dead_peer_has_not_written_to_its_end_is_passed() {
        let job = job(2);
        exchange(&job);
        let mut write = |at: usize, _: UserAddress, _: usize| assert_eq!(at, 0);
        let dies = || job[1].post_written(0, 99, [0; HEAD], 8000, &mut write);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(dies)).is_err());
        assert!(job[0].poll(0));
        job[0].peer(1).station.process.store(GONE, Ordering::Relaxed);
        assert!(job[0].bury(&[1]));
        assert!(!job[0].poll(0));
    }

    /// A row now and then, as a collective between exchanges makes one, does not keep those that follow from going by shuttle, whoever sends it.
    #[test]
    fn exchanges_after_a_row_go_by_shuttle_again() {
        for first in [0, 1] {
            let job = job(2);
            let (mut number, mut turns) = (0, 0);
            // Fewer exchanges than another way is tried after.
            for _ in 0..4 {
                number += 1;
                send(&job[first], 1 - first as u32, number, 8);
                let before = turn(&job[0], 1);
                for step in 0..100 {
                    let (from, to) = (first ^ (step % 2), (1 - first) ^ (step % 2));
                    number += 1;
                    send(&job[from], to as u32, number, 8);
                    assert_eq!(take(&job[to], to as u32, 8).last(), Some(&number));
                }
                turns += turn(&job[0], 1) - before;
            }
            assert!(turns >= 320, "{turns} of 400, {first} begins");
        }
    }

    /// Answers that are there after so many steps are looked for about then, and at once if that varies or takes long.
    #[test]
    fn the_first_look_for_an_answer_comes_when_it_is_there() {
        for leads in [false, true] {
            let after = |comes: &dyn Fn(u32) -> u32| {
                let answers = Answers::default();
                answers.came(true);
                (0..20_000).for_each(|round| {
                    let early = comes(round).saturating_sub(answers.after().unwrap());
                    answers.learn(leads, early.div_ceil(30));
                });
                answers.after().unwrap()
            };
            assert_eq!(after(&|_| 0), 0);
            for steps in [60, 150, 1000] {
                let about =
                    if leads { steps * 15 / 16 - 1..=steps * 9 / 8 + LATER } else { steps..=steps + LATER };
                assert!(about.contains(&after(&|_| steps)), "{steps}: {}", after(&|_| steps));
            }
            assert!(after(&|_| 100_000) < LATER);
            let answers = Answers::default();
            answers.learn(leads, 1);
            assert_eq!(answers.after(), None, "nothing is learned of what came by the lane");
        }
    }

    /// Steps that the two wait for each other in the end, where 40 pass between an answer and the next message, and each takes 30, and 30 more if it is looked
    /// for too early.
    fn both_wait(leads: [bool; 2]) -> [u32; 2] {
        let sides = [Answers::default(), Answers::default()];
        sides.iter().for_each(|side| side.came(true));
        let (mut sent, mut comes) = ([0, 0], 30);
        for round in 0..40_000 {
            let me = 1 - round % 2;
            let looks_at = sent[me] + sides[me].after().unwrap();
            let early = u32::saturating_sub(comes, looks_at);
            sides[me].learn(leads[me], early.div_ceil(10));
            let found = if early == 0 { looks_at } else { looks_at + early.next_multiple_of(10) + 30 };
            sent[me] = found + 40;
            comes = sent[me] + 30;
        }
        sides.map(|side| side.after().unwrap())
    }

    /// An answer is there after 100 steps.
    #[test]
    fn two_that_wait_for_each_other_do_not_wait_longer_and_longer() {
        let after = both_wait([true, false]);
        assert!(after.iter().all(|after| *after < 200), "{after:?}");
    }

    /// Long messages are a row from the fourth on, until something comes.
    #[test]
    fn long_messages_without_an_answer_are_a_row() {
        let job = job(2);
        for _ in 0..3 {
            let follows: Vec<bool> = (0..6).map(|_| job[0].follows(1)).collect();
            assert_eq!(follows, [false, false, false, true, true, true]);
            send(&job[1], 0, 7, 8);
            assert_eq!(job[0].take(0, 1, &mut |_| true), 1);
        }
        (0..3).for_each(|number| send(&job[0], 1, number, 8));
        assert!(job[0].follows(1), "short ones count");
    }

    #[test]
    fn the_way_that_takes_less_time_is_gone() {
        for (by_shuttle, by_lane) in [(9000, 6000), (6000, 9000)] {
            let (worth, mut now, mut shuttled) = (Worth::default(), 1, 0);
            for _ in 0..500 {
                let goes = worth.goes(8);
                worth.shuttled.store(if goes { TIMED } else { 0 }, Ordering::Relaxed);
                now += if goes { by_shuttle } else { by_lane };
                worth.learn(now);
                shuttled += u32::from(goes);
            }
            assert_eq!(shuttled > 250, by_shuttle < by_lane, "{shuttled} of 500");
            assert!(worth.goes(1000), "nothing is known of other lengths");
        }
    }
}
