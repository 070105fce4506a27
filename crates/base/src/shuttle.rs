//! A shuttle: lines of memory that two processes write in turn, so that a message and its answer lie in the same place.
//!
//! Whoever waits for a message looks at its line, and so has a copy of it, which the sender's core must ask to be given up before it may write: that is one
//! way from core to core, and the message is the second. The line of a message that was just read is already here, and its sender looks nowhere
//! else: the answer takes one way. For longer messages all of their lines need not be fetched before they are written.
//!
//! The slots are those of a [lane](crate::lane), without head and tail. Each side keeps the number of the turn, in which one of the two may send: the even
//! ones are the first side's. The message of turn `t` lies from position `t * SLOTS + 1` on: a core that looks at the first slot of a pair fetches the other
//! one too, and would take it from who writes there. Who has sent waits for the other to have its turn, and takes the
//! lane for what it sends meanwhile; who has taken a message has the next turn.
//!
//! Only what finds the lane empty goes by the shuttle. So a message here came before all that lies in the lane, if it is looked for once more after
//! something was seen there.

use crate::UserAddress;
use crate::atomics::{AtomicU64, Ordering};
use crate::lane::{Arrived, HEAD, Lane, MOST_FURTHER, Producer, RUN_BYTES, RUNS, Short, Slot};

/// Slots of a shuttle.
pub const SLOTS: usize = 64;
/// Bytes of its run.
pub const BYTES: usize = RUN_BYTES;
/// Where a message starts.
const START: u64 = if cfg!(loom) { 0 } else { 1 };
/// Turns after which slots that few messages use are wiped: the sequence in a slot would repeat after more.
const WIPED: u64 = if cfg!(loom) { 2 } else { 1 << 18 };

const _: () = assert!(SLOTS.is_multiple_of(RUNS) && SLOTS <= MOST_FURTHER && WIPED.is_multiple_of(2));

/// The number of the turn, as one side knows it.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Turn(AtomicU64);

#[cfg(not(loom))]
// SAFETY: repr(C), made of atomics.
unsafe impl crate::record::Record for Turn {}

impl Turn {
    /// The turn, if the side may send; `first`: whether it has the even ones.
    #[inline(always)]
    pub fn here(&self, first: bool) -> Option<u64> {
        // Acquire pairs with the release in `pass`: what was there has been read.
        let turn = self.0.load(Ordering::Acquire);
        (turn.is_multiple_of(2) == first).then_some(turn)
    }

    /// The turn, if the other side may send, or has.
    #[inline(always)]
    pub fn there(&self, first: bool) -> Option<u64> {
        let turn = self.0.load(Ordering::Relaxed);
        (turn.is_multiple_of(2) != first).then_some(turn)
    }

    /// Takes a turn that was here for one message, which is to be put then; `alone`: nobody else of this side may do so now.
    #[inline(always)]
    pub fn claim(&self, turn: u64, alone: bool) -> bool {
        if alone {
            self.0.store(turn + 1, Ordering::Relaxed);
            return true;
        }
        self.0.compare_exchange(turn, turn + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// The message of a turn that was there has been read, and is no longer needed: the next turn is here.
    #[inline(always)]
    pub fn pass(&self, turn: u64) {
        // Release pairs with the acquire in `here`.
        self.0.store(turn + 1, Ordering::Release);
    }
}

/// The lines of a shuttle.
#[derive(Clone, Copy, Debug)]
pub struct Shuttle<'a> {
    slots: &'a [Slot],
    /// Its slots, seen as those of a lane whose head and tail nobody uses.
    lane: Lane<'a>,
}

impl<'a> Shuttle<'a> {
    /// A shuttle from its parts: `lane` is one over `slots`, without runs.
    #[inline(always)]
    pub fn new(slots: &'a [Slot], lane: Lane<'a>, run: UserAddress) -> Shuttle<'a> {
        // The only run that a message in these slots has.
        let lane = lane.with_runs(run.offset(-Lane::run_offset(START)));
        Shuttle { slots, lane }
    }

    /// As [`Lane::push_bytes`], in a turn that was claimed.
    #[inline(always)]
    pub fn put_bytes(
        &self,
        turn: u64,
        producer: Producer<'_>,
        tag: u32,
        head: [u64; HEAD],
        source: UserAddress,
        length: usize,
    ) {
        self.lane.put_bytes(self.begin(turn), producer, tag, head, source, length);
    }

    /// As [`Lane::push_run`], in a turn that was claimed; `run`: its run.
    #[inline]
    pub fn put_run(
        &self,
        turn: u64,
        run: UserAddress,
        tag: u32,
        head: [u64; HEAD],
        length: usize,
        write: impl FnMut(usize, UserAddress, usize),
    ) {
        self.lane.put_run(self.begin(turn), run, tag, head, length, write);
    }

    /// The position of the message of a turn that begins.
    #[inline(always)]
    fn begin(&self, turn: u64) -> u64 {
        if turn.is_multiple_of(WIPED) {
            self.wipe();
        }
        self.position(turn)
    }

    #[inline(always)]
    fn position(&self, turn: u64) -> u64 {
        turn * self.slots.len() as u64 + START
    }

    /// Whether the message of a turn that is there has come.
    #[inline(always)]
    pub fn has_come(slots: &[Slot], turn: u64) -> bool {
        slots[START as usize].is_at(turn * slots.len() as u64 + START)
    }

    /// No slot says any more that it belongs to a message of long ago.
    #[cold]
    fn wipe(&self) {
        self.slots.iter().for_each(Slot::wipe);
    }

    /// As [`Shuttle::read`], if it is short.
    #[inline(always)]
    pub fn short(&self, turn: u64) -> Option<Short<'a>> {
        self.lane.short(self.position(turn))
    }

    /// The message of a turn that is there, if it has come. Only who may consume what comes to that side may rely on it.
    #[inline(always)]
    pub fn read(&self, turn: u64) -> Option<Arrived<'a>> {
        let (message, _) = self.lane.read(self.position(turn))?;
        Some(message)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Scratch;
    use crate::lane::LaneControl;
    use std::sync::atomic::AtomicU64 as Plain;

    /// Messages of every length, to and fro, over turns in which slots are wiped.
    #[test]
    fn messages_and_answers_of_every_length_arrive_whole() {
        let (control, slots) =
            (LaneControl::default(), (0..SLOTS).map(|_| Slot::default()).collect::<Vec<_>>());
        let run = Scratch::new(BYTES);
        let lane = Lane::new(&control, &slots);
        for start in [0, WIPED - 2000, (1 << 19) - 2000] {
            let turns = [Turn(AtomicU64::new(start)), Turn(AtomicU64::new(start))];
            let shuttle = Shuttle::new(&slots, lane, run.address());
            let known = Plain::new(0);
            let content: Vec<u8> = (0..BYTES).map(|at| (at * 7 + at / 251) as u8).collect();
            let (source, target) = (Scratch::new(BYTES), Scratch::new(BYTES));
            source.address().write(&content);
            let mut last = 0;
            for step in 0..4000u64 {
                let first = step % 2 == 0;
                let (from, to) = (&turns[usize::from(!first)], &turns[usize::from(first)]);
                assert!(to.here(!first).is_none() && from.there(first).is_none());
                assert!(to.there(!first).is_some_and(|turn| shuttle.read(turn).is_none()));
                let turn = from.here(first).unwrap();
                assert_eq!(turn, start + step);
                assert!(from.claim(turn, step % 7 == 0));
                let length = if step % 3 == 0 { step as usize * 4 + 1 } else { step as usize % 1000 };
                let producer =
                    Producer { known_head: &known, alone: true, overlaps: step % 5 != 0, hands_over: false };
                let tag = step as u32 + 1;
                if length > 1000 {
                    shuttle.put_run(turn, run.address(), tag, [step, 1], length, |at, to, length| {
                        to.copy_apart(source.address().offset(at as i64), length);
                    });
                } else {
                    shuttle.put_bytes(turn, producer, tag, [step, 1], source.address(), length);
                }
                let turn = to.there(!first).unwrap();
                let message = shuttle.read(turn).unwrap();
                assert_eq!((message.tag, message.words[0]), (tag, step));
                assert!(message.is_whole() && message.copy_to(HEAD, target.address(), length));
                let mut seen = vec![0; length];
                target.address().read(&mut seen);
                assert_eq!(seen, content[..length]);
                to.pass(turn);
                last = turn;
            }
            assert_eq!(last, start + 3999);
        }
    }

    /// A slot that no message has used for so many turns that its sequence fits again is not taken for a part of one that is not whole.
    #[test]
    fn what_is_left_of_a_message_of_long_ago_is_no_part_of_a_new_one() {
        let (control, slots) =
            (LaneControl::default(), (0..SLOTS).map(|_| Slot::default()).collect::<Vec<_>>());
        let (lane, run) = (Lane::new(&control, &slots), Scratch::new(BYTES));
        let shuttle = Shuttle::new(&slots, lane, run.address());
        let known = Plain::new(0);
        let producer = Producer { known_head: &known, alone: true, overlaps: true, hands_over: false };
        let source = Scratch::new(1000);
        shuttle.put_bytes(2, producer, 1, [0; 2], source.address(), 1000);
        let again = 2 + (1 << 19);
        for turn in (3..again).step_by(101).chain([WIPED, again - 1]) {
            shuttle.put_bytes(turn, producer, 1, [0; 2], source.address(), 8);
        }
        // As if its producer had died behind the first slot.
        slots[1].commit(again * SLOTS as u64 + 1, 17, 1);
        assert!(!shuttle.read(again).unwrap().is_whole());
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::lane::LaneControl;
    use loom::sync::Arc;
    use std::sync::atomic::AtomicU64 as Plain;

    struct Pair {
        shuttle: Vec<Slot>,
        /// Head and tail of nothing.
        idle: LaneControl,
        turns: [Turn; 2],
        lanes: [(LaneControl, Vec<Slot>); 2],
        alone: bool,
    }

    impl Pair {
        fn shuttle(&self) -> Shuttle<'_> {
            Shuttle::new(&self.shuttle, Lane::new(&self.idle, &self.shuttle), UserAddress::restore(0))
        }

        fn lane(&self, to: usize) -> Lane<'_> {
            Lane::new(&self.lanes[to].0, &self.lanes[to].1)
        }

        /// As a transport does.
        fn send(&self, side: usize, known: &Plain, number: u64) {
            let producer = Producer { known_head: known, alone: true, overlaps: true, hands_over: false };
            let (shuttle, lane, own) = (self.shuttle(), self.lane(1 - side), &self.turns[side]);
            let may = |turn: &u64| lane.is_taken_in(producer) && own.claim(*turn, self.alone);
            match own.here(side == 0).filter(may) {
                Some(turn) => {
                    let word = [number; 2];
                    shuttle.put_bytes(turn, producer, 1, word, UserAddress::restore(0), 0);
                }
                None => assert!(lane.push(producer, 1, &[number])),
            }
        }

        fn take(&self, side: usize) -> Option<u64> {
            let (shuttle, lane, own) = (self.shuttle(), self.lane(side), &self.turns[side]);
            let next = lane.read(lane.head());
            if let Some(turn) = own.there(side == 0)
                && let Some(message) = shuttle.read(turn)
            {
                own.pass(turn);
                return Some(message.words[0]);
            }
            let (message, slots) = next?;
            lane.advance(lane.head() + slots as u64);
            Some(message.words[0])
        }
    }

    /// Each side sends what it has whenever it likes: all arrives once, in its order, by whichever way.
    #[test]
    fn what_goes_by_shuttle_and_by_lane_comes_in_order() {
        comes_in_order(true);
        comes_in_order(false);
    }

    fn comes_in_order(alone: bool) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let slots = |count| (0..count).map(|_| Slot::default()).collect::<Vec<_>>();
            let pair = Arc::new(Pair {
                shuttle: slots(1),
                idle: LaneControl::default(),
                turns: [Turn::default(), Turn::default()],
                lanes: [(LaneControl::default(), slots(2)), (LaneControl::default(), slots(2))],
                alone,
            });
            let other = {
                let pair = Arc::clone(&pair);
                loom::thread::spawn(move || side(&pair, 1, 1, 3))
            };
            side(&pair, 0, 3, 1);
            other.join().unwrap();
        });
    }

    fn side(pair: &Pair, me: usize, sends: u64, comes: u64) {
        let known = Plain::new(0);
        let (mut sent, mut came) = (0, 0);
        while sent < sends || came < comes {
            if sent < sends && sent <= came + 1 {
                sent += 1;
                pair.send(me, &known, sent);
            }
            match pair.take(me) {
                Some(number) => {
                    came += 1;
                    assert_eq!(number, came);
                }
                None => loom::thread::yield_now(),
            }
        }
    }
}
