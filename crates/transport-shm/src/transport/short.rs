//! Short messages that are taken where they lie, see [`parnass_transport::Transport::next`].

use super::SharedMemory;
use super::shuttles::Side;
use crate::layout::{LANE_RUNS_BYTES, RUNS_AT, SLOTS_AT, STRIDE, Station};
use parnass_base::atomics::AtomicU64;
use parnass_base::lane::{Lane, LaneControl, Slot};
use parnass_base::{PAGE, Placed, Table, UserAddress, Window};
use parnass_transport::Next;
use std::mem::offset_of;

/// A message that lies where so many positions end is left to who looks at all lanes.
const LEFT_TO_ALL: u64 = 32;

/// The lane of this process for one peer alone.
#[derive(Debug)]
pub(super) struct Incoming {
    control: Placed<LaneControl>,
    slots: Table<Slot>,
    runs: UserAddress,
    /// See [`Lane::read_on`].
    fetched: AtomicU64,
}

impl Incoming {
    /// Of `rank`, in the memory of all, for `peer`, which no other peer has the same lane as.
    pub(super) fn new(memory: &Window, rank: u32, peer: u32, slots: usize) -> Incoming {
        let (station, peer) = (PAGE + rank as usize * STRIDE, peer as usize);
        let control = station + offset_of!(Station, lanes) + peer * size_of::<LaneControl>();
        let first = station + SLOTS_AT + peer * slots * size_of::<Slot>();
        let runs = station + RUNS_AT + peer * LANE_RUNS_BYTES;
        Incoming {
            control: memory.record(control),
            slots: memory.table(first, slots),
            runs: memory.address(runs, LANE_RUNS_BYTES),
            fetched: AtomicU64::new(0),
        }
    }

    /// How far the lane has been read.
    pub(super) fn head(&self) -> u64 {
        self.lane().head()
    }

    #[inline(always)]
    fn lane(&self) -> Lane<'_> {
        Lane::new(&self.control, &self.slots).with_runs(self.runs)
    }
}

impl SharedMemory {
    /// See [`parnass_transport::Transport::next`].
    #[inline]
    pub(super) fn next_from(&self, source: u32) -> Next<'_> {
        let peer = self.peer(source);
        let side = peer.side.as_ref();
        if let Some(steps) = side.and_then(Side::answer_after) {
            return Next::AnswerAfter(steps);
        }
        let Some(incoming) = &peer.incoming else { return Next::Other };
        // Where ranks share processors, others would use the time.
        if let Some(side) = side
            && side.lets_pass()
            && self.patience.yields() == 0
        {
            side.let_pass();
        }
        let lane = incoming.lane();
        let position = lane.head();
        let Some(short) = lane.short(position) else {
            side.inspect(|side| side.looked_in_vain());
            return Next::Other;
        };
        let next = position + short.slots();
        lane.read_on(next, &incoming.fetched);
        // What comes by shuttle precedes what was seen in the lane before.
        if next / LEFT_TO_ALL != position / LEFT_TO_ALL || side.is_some_and(Side::has_come) {
            return Next::Other;
        }
        Next::Short(short)
    }

    /// See [`parnass_transport::Transport::pass_next`].
    #[inline]
    pub(super) fn pass_from(&self, source: u32, slots: u64) {
        let peer = self.peer(source);
        let Some(incoming) = &peer.incoming else { return };
        let lane = incoming.lane();
        lane.advance(lane.head() + slots);
        if let Some(side) = &peer.side {
            side.came(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::shuttles::tests::{exchange, job, send};
    use super::*;
    use parnass_base::Scratch;
    use parnass_transport::{Answer, Transport};

    /// The number of a short message whose bytes are right.
    fn number(short: parnass_base::lane::Short<'_>, length: usize) -> u32 {
        let target = Scratch::new(length.max(1));
        let bytes = short.bytes(parnass_base::lane::last_bytes(length));
        assert_eq!(bytes, length);
        short.copy_to(target.address(), length);
        let mut seen = vec![0; length];
        target.address().read(&mut seen);
        assert!(seen.iter().all(|byte| *byte == short.tag() as u8));
        short.tag()
    }

    /// Each is taken where it lies, in order, but for one now and then, so that other peers' messages are taken in too.
    #[test]
    fn short_messages_are_taken_where_they_lie_and_some_are_left_to_who_looks_at_all() {
        for length in [0, 8, 40, 41, 96, 300, 2000] {
            let job = job(3);
            let (mut there, mut left) = (0, 0);
            send(&job[2], 1, 99, 8);
            for round in 0..30 {
                let row = round * 3..round * 3 + 3;
                row.clone().for_each(|number| send(&job[0], 1, number, length));
                for expected in row {
                    match job[1].next(0) {
                        Next::Short(short) => {
                            assert_eq!(number(short, length), expected);
                            job[1].pass_next(0, short.slots());
                            there += 1;
                        }
                        Next::Other => {
                            let mut came = Vec::new();
                            job[1].take(1, 1, &mut |message| {
                                came.push(message.tag);
                                true
                            });
                            assert_eq!(came[0], expected);
                            left += 1;
                            assert!(left > 1 || came.contains(&99), "all lanes are looked at");
                        }
                        Next::AnswerAfter(_) => unreachable!("nothing was asked"),
                    }
                }
                assert!(matches!(job[1].next(0), Next::Other));
            }
            assert!(there >= 80 && left >= 1, "{length} bytes: {there} where they lie, {left} left");
        }
    }

    #[test]
    fn what_is_not_short_is_left() {
        let job = job(2);
        for length in [97, 200, 255] {
            send(&job[0], 1, 1, length);
            assert!(matches!(job[1].next(0), Next::Other), "{length} bytes");
            assert_eq!(job[1].take(1, 1, &mut |_| true), 1);
        }
    }

    /// What has come by shuttle came before what lies in the lane.
    #[test]
    fn nothing_is_taken_before_what_has_come_by_shuttle() {
        let job = job(2);
        exchange(&job);
        (22..25).for_each(|number| send(&job[1], 0, number, 8));
        assert!(matches!(job[0].next(1), Next::AnswerAfter(_)));
        assert!(matches!(job[0].next(1), Next::Other));
        let answer = job[0].next_answer(1);
        let Some(Answer::Short(short)) = answer else { unreachable!("{answer:?}") };
        assert_eq!(number(short, 8), 22);
        job[0].pass_answer(1, 0);
        for expected in 23..25 {
            let next = job[0].next(1);
            let Next::Short(short) = next else { unreachable!("{next:?}") };
            assert_eq!(number(short, 8), expected);
            job[0].pass_next(1, short.slots());
        }
    }

    /// Answers are taken where they lie, but for some, see [`Transport::take_answer`].
    #[test]
    fn short_answers_are_taken_where_they_lie() {
        let job = job(2);
        exchange(&job);
        let (mut there, mut left) = (0, 0);
        for number in 22..122 {
            let (from, to) = (1 - number as usize % 2, number % 2);
            let peer = &job[to as usize];
            assert!(matches!(peer.next(from as u32), Next::AnswerAfter(_)), "message {number}");
            assert!(peer.next_answer(from as u32).is_none());
            send(&job[from], to, number, 8);
            match peer.next_answer(from as u32) {
                Some(Answer::Short(short)) => {
                    assert_eq!(self::number(short, 8), number);
                    peer.pass_answer(from as u32, 1);
                    there += 1;
                }
                _ => {
                    assert_eq!(peer.take(to, 1, &mut |message| message.tag == number), 1);
                    left += 1;
                }
            }
        }
        assert!(there >= 80 && left >= 1, "{there} where they lie, {left} left");
    }
}
