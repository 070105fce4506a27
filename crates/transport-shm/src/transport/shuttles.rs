//! Messages that lie in the lines of the message that they answer, see [`parnass_base::shuttle`].

use super::{REACHED, REFUSED, SharedMemory, UNKNOWN};
use crate::layout::{SHUTTLE_BYTES, SHUTTLE_RUNS_AT, SHUTTLES_AT, STRIDE, Station};
use parnass_base::atomics::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use parnass_base::lane::{Arrived, FIRST_BYTES, Lane, LaneControl, Producer, Slot};
use parnass_base::shuttle::{self, SLOTS, Shuttle, Turn};
use parnass_base::{PAGE, Placed, Table, UserAddress, Window, place};
use std::mem::offset_of;

/// Memory that is reserved with the first use.
#[derive(Debug)]
pub(super) struct Runs {
    window: Window,
    /// Whether memory stands behind it: [`UNKNOWN`], [`REACHED`] or [`REFUSED`].
    stand: AtomicU8,
}

impl Runs {
    pub(super) fn new(window: Window) -> Runs {
        Runs { window, stand: AtomicU8::new(UNKNOWN) }
    }

    #[inline(always)]
    fn address(&self) -> UserAddress {
        self.window.address(0, self.window.len())
    }

    /// Where they lie, if memory stands behind them.
    pub(super) fn standing(&self) -> Option<UserAddress> {
        if self.stand.load(Ordering::Relaxed) == UNKNOWN {
            let stands = self.window.reserve(0, self.window.len()).is_ok();
            self.stand.store(if stands { REACHED } else { REFUSED }, Ordering::Relaxed);
        }
        let stand = self.stand.load(Ordering::Relaxed) == REACHED;
        stand.then(|| self.address())
    }
}

/// When a peer answers, found out by how often it was looked for in vain.
///
/// Who looks too early takes the line from who is about to write it, so that the answer takes two ways more; who looks too late only loses the time. So after a
/// look in vain the next one comes later by more than it comes sooner after one that was not. Of answers that take long nothing is lost.
#[derive(Debug, Default)]
struct Answers {
    /// Steps of [`parnass_base::clock::idle`] above 1; 0: its last message did not come by shuttle.
    after: AtomicU32,
}

/// Steps by which the first look comes later.
const LATER: u32 = 8;
/// An answer that takes more steps, or more looks, needs no such care.
const LONGEST: u32 = 4000;
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

    /// One was expected, and so many looks were in vain.
    #[inline(always)]
    fn learn(&self, looks: u32) {
        let after = match self.after.load(Ordering::Relaxed) {
            0 => return,
            after if looks == 0 => after.max(2) - 1,
            after if looks > MOST_LOOKS || after > LONGEST => 1,
            after => after + LATER,
        };
        self.after.store(after, Ordering::Relaxed);
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
    first: bool,
    answers: Answers,
    /// Messages to the peer since something came from it, and how often in a row it was one when something came.
    sent: AtomicU32,
    lone: AtomicU32,
    /// The place of the thread that sent the last one.
    thread: AtomicU32,
    /// How often it was another one.
    changes: AtomicU32,
    /// Whether the last message by shuttle is not answered yet, and nobody has let the time pass that this takes.
    asked: AtomicBool,
    waits: AtomicBool,
    /// Messages of the peer until it counts as received by nobody who looks for answers.
    looked_for: AtomicU32,
    /// Lone messages in a row before one goes by shuttle.
    needed: AtomicU32,
}

/// So many lone messages in a row are answered before one goes by shuttle: what comes in rows is faster by the lane. Eight times as many, up to the most, where
/// that one was not answered by shuttle: it has met a message that was sent at the same time.
const LONE: u32 = 4;
const MOST_LONE: u32 = 16_384;
/// Shorter messages of several slots go by shuttle only where their answers are looked for when they have come, and so many messages later.
const SHORT: usize = 512;
const LOOKED_FOR: u32 = 8;
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
            sent: AtomicU32::new(0),
            lone: AtomicU32::new(0),
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
        Shuttle::new(&self.slots, Lane::new(&self.control, &self.slots), self.run.address())
    }

    /// The shuttle and its turn, if the next message to the peer goes by it.
    #[inline(always)]
    pub(super) fn claim(
        &self,
        lane: &Lane<'_>,
        producer: Producer<'_>,
        length: usize,
    ) -> Option<(Shuttle<'_>, u64)> {
        self.sent.store(self.sent.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
        if !producer.alone {
            self.note_thread();
        }
        if self.lone.load(Ordering::Relaxed) < self.needed.load(Ordering::Relaxed)
            || self.changes.load(Ordering::Relaxed) == MOST_CHANGES
            || (FIRST_BYTES + 1..SHORT).contains(&length) && self.looked_for.load(Ordering::Relaxed) == 0
        {
            return None;
        }
        let turn = self.turn.here(self.first)?;
        let goes = producer.overlaps && lane.is_taken_in(producer) && self.turn.claim(turn, producer.alone);
        goes.then(|| {
            self.asked.store(true, Ordering::Relaxed);
            self.waits.store(true, Ordering::Relaxed);
            (self.shuttle(), turn)
        })
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
        self.looked_for.store(self.looked_for.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
        let mut lone = if sent == 1 { (self.lone.load(Ordering::Relaxed) + 1).min(MOST_LONE) } else { 0 };
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
    ) -> Option<(Shuttle<'_>, u64, UserAddress)> {
        let run = self.run.standing()?;
        self.claim(lane, producer, SHORT).map(|(shuttle, turn)| (shuttle, turn, run))
    }
}

impl SharedMemory {
    /// Whether something has come by shuttle for `of` from `other`.
    #[inline(always)]
    pub(super) fn is_shuttled(&self, of: u32, other: u32) -> bool {
        if of != self.rank {
            return self.shuttled_for(of, other).is_some();
        }
        self.peer(other).side.as_ref().is_some_and(|side| {
            side.turn.there(side.first).is_some_and(|turn| Shuttle::has_come(&side.slots, turn))
        })
    }

    /// Offers what has come by shuttle for `of` from `other`; whether it was accepted. It precedes all in the lane, if something was seen there before.
    #[inline(never)]
    pub(super) fn take_shuttled(
        &self,
        of: u32,
        other: u32,
        accept: &mut dyn FnMut(&Arrived) -> bool,
    ) -> bool {
        let Some(shuttled) = self.shuttled(of, other) else { return false };
        let accepted = accept(&shuttled.message);
        if accepted {
            shuttled.pass();
            if of == self.rank
                && let Some(side) = &self.peer(other).side
            {
                side.came(true);
            }
        }
        accepted
    }

    /// What came by shuttle.
    #[inline(always)]
    fn shuttled(&self, of: u32, other: u32) -> Option<Shuttled<'_>> {
        if of != self.rank {
            return self.shuttled_for(of, other);
        }
        let side = self.peer(other).side.as_ref()?;
        let turn = side.turn.there(side.first)?;
        Some(Shuttled { message: side.shuttle().read(turn)?, own: &side.turn, turn })
    }

    /// As [`SharedMemory::shuttled`], for another process.
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
        let side = self.peer(source).side.as_ref()?;
        side.looked_for.store(LOOKED_FOR, Ordering::Relaxed);
        if !side.waits.load(Ordering::Relaxed) {
            return None;
        }
        side.waits.store(false, Ordering::Relaxed);
        side.turn.there(side.first)?;
        Some((source, side.answers.after()?))
    }

    /// See [`parnass_transport::Transport::answered`].
    #[inline]
    pub(super) fn learn_answer(&self, source: u32, looks: u32) {
        self.peer(source).side.as_ref().inspect(|side| side.answers.learn(looks));
    }

    /// Passes what a dead peer has not written to its end.
    pub(super) fn bury_shuttled(&self, dead: u32) {
        if let Some(shuttled) = self.shuttled(self.rank, dead)
            && !shuttled.message.is_whole()
        {
            shuttled.pass();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JobMemory, Tuning};
    use parnass_base::Scratch;
    use parnass_base::lane::HEAD;
    use parnass_transport::{Follow, Posting, Transport};

    /// No process has this number.
    const GONE: u32 = i32::MAX as u32;

    fn job(size: u32) -> Vec<SharedMemory> {
        let file = JobMemory::create(size).unwrap();
        let attach = |rank| {
            let memory = JobMemory::open(file.try_clone().unwrap()).unwrap();
            SharedMemory::attach_with(memory, rank, Tuning { yields: 0, ..Tuning::default() }).unwrap()
        };
        (0..size).map(attach).collect()
    }

    fn send(from: &SharedMemory, to: u32, number: u32, length: usize) {
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
    fn exchange(job: &[SharedMemory]) {
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
        for (length, drivers) in [(8, [1, 2]), (40, [1, 2]), (1000, [0, 1]), (8192, [1, 2])] {
            let job = job(3);
            let before = turn(&job[1], 2);
            let mut number = 0;
            for round in 0..30 {
                for (from, to) in [(1, 2), (2, 1)] {
                    number += 1;
                    send(&job[from], to as u32, number, length);
                    // Now and then somebody else takes it in.
                    let driver = if round % 10 == 9 { drivers[0] } else { to };
                    assert_eq!(take(&job[driver], to as u32, length), [number]);
                    assert_eq!(take(&job[to], to as u32, 0), [0; 0]);
                }
            }
            let answered = turn(&job[1], 2) - before;
            assert!(answered >= 10, "{answered} turns");
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

    /// Answers that are there after so many steps are looked for about then, and at once if that varies or takes long.
    #[test]
    fn the_first_look_for_an_answer_comes_when_it_is_there() {
        let after = |comes: &dyn Fn(u32) -> u32| {
            let answers = Answers::default();
            answers.came(true);
            (0..2000).for_each(|round| {
                let early = comes(round).saturating_sub(answers.after().unwrap());
                answers.learn(early.div_ceil(30));
            });
            answers.after().unwrap()
        };
        assert_eq!(after(&|_| 0), 0);
        for steps in [60, 150, 1000] {
            assert!((steps..=steps + LATER).contains(&after(&|_| steps)), "{steps}");
        }
        assert!(after(&|_| 100_000) < LATER);
        let answers = Answers::default();
        answers.learn(1);
        assert_eq!(answers.after(), None, "nothing is learned of what came by the lane");
    }
}
