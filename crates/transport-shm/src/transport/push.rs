//! How messages are put into the lanes of peers, and what those who died while they did so have left in the own ones.

use super::{Peer, SharedMemory};
use crate::process_memory;
use parnass_base::atomics::{Ordering, spin_loop};
use parnass_base::lane::{self, Lane, Producer, RUN_BYTES};
use parnass_base::remains::Pushing;
use parnass_base::{UserAddress, place};
use parnass_transport::{Follow, Posting};

/// Messages that slots would take go by a run from so many bytes on, if they do not go by shuttle: their lines are written and read one after the other.
const LEAST_IN_RUN: usize = 256;

/// Looks at whether a peer still pushes a message, before it counts as having lost its processor.
const LOOKS_AT_PUSHING: u32 = 1_000;

/// Bits of the length of a run in `next_run`.
pub(super) const LENGTH_BITS: u32 = 16;
const _: () = assert!(RUN_BYTES < 1 << LENGTH_BITS);

impl SharedMemory {
    #[inline(always)]
    pub(super) fn outgoing<'a>(&self, peer: &'a Peer, follow: Follow) -> (Lane<'a>, Producer<'a>) {
        let lane = Lane::new(&peer.outgoing.control, &peer.outgoing.slots);
        let alone = self.alone.load(Ordering::Relaxed);
        let overlaps = self.patience.yields() == 0;
        // Who is not alone locks with each message.
        let hands_over = overlaps && (alone || follow == Follow::Nothing);
        (lane, Producer { known_head: &peer.known_head, alone, overlaps, hands_over })
    }

    /// Does what pushes a message into a lane that others use too, and shows it.
    #[inline(always)]
    fn beside_others<R>(&self, pushing: &Pushing, push: impl FnOnce() -> R) -> R {
        let place = if self.one_thread.load(Ordering::Relaxed) { 0 } else { place::own() };
        pushing.during(place, push)
    }

    /// As [`Lane::push`], into the lane that this process has at a peer.
    #[inline(always)]
    pub(super) fn push(&self, peer: &Peer, tag: u32, words: &[u64]) -> bool {
        let (lane, producer) = self.outgoing(peer, Follow::Nothing);
        match &self.pushing {
            Some(pushing) => self.beside_others(pushing, || lane.push(producer, tag, words)),
            None => lane.push(producer, tag, words),
        }
    }

    /// As [`Transport::post_bytes`]; `BESIDE`: into a lane that others use too; `LONG`: of [`LEAST_IN_RUN`] and more that slots would take.
    #[inline(always)]
    pub(super) fn post_bytes_as<const BESIDE: bool, const LONG: bool>(
        &self,
        target: u32,
        tag: u32,
        head: [u64; lane::HEAD],
        source: UserAddress,
        length: usize,
        follow: Follow,
    ) -> Posting {
        let peer = self.peer(target);
        if !LONG
            && length > lane::FIRST_BYTES
            && (length >= LEAST_IN_RUN || peer.station.refuses_long.get() != 0)
        {
            return self.post_long::<BESIDE>(target, tag, head, source, length, follow);
        }
        let (lane, producer) = self.outgoing(peer, follow);
        if !BESIDE
            && let Some(side) = &peer.side
            && let Some((shuttle, turn)) = side.claim(&lane, producer, length)
        {
            let producer = Producer { hands_over: false, ..producer };
            shuttle.put_bytes(turn, producer, tag, head, source, length);
            self.ring_for(peer);
            return Posting::Posted;
        }
        if LONG && producer.overlaps {
            let write = |at, part: UserAddress, length| part.copy_to_read(source.offset(at as i64), length);
            if self.push_run(peer, lane, producer, tag, head, length, write) {
                return Posting::Posted;
            }
        }
        let push = || lane.push_bytes(producer, tag, head, source, length);
        let posted = match &self.pushing {
            Some(pushing) if BESIDE => self.beside_others(pushing, push),
            _ => push(),
        };
        if !posted {
            return Posting::Full;
        }
        self.ring_for(peer);
        Posting::Posted
    }

    /// As [`Transport::post_bytes`], of what may be too long for slots.
    #[inline(never)]
    fn post_long<const BESIDE: bool>(
        &self,
        target: u32,
        tag: u32,
        head: [u64; lane::HEAD],
        source: UserAddress,
        length: usize,
        follow: Follow,
    ) -> Posting {
        let peer = self.peer(target);
        if (LEAST_IN_RUN..=self.lane_bytes).contains(&length) && peer.station.refuses_long.get() == 0 {
            return self.post_bytes_as::<BESIDE, true>(target, tag, head, source, length, follow);
        }
        let write = |at, part: UserAddress, length| part.copy_to_read(source.offset(at as i64), length);
        self.post_run(target, tag, head, length, follow, write)
    }

    /// Not in line, so that the other way is as short as if this one did not exist.
    #[inline(never)]
    pub(super) fn post_bytes_beside_others(
        &self,
        target: u32,
        tag: u32,
        head: [u64; lane::HEAD],
        source: UserAddress,
        length: usize,
        follow: Follow,
    ) -> Posting {
        self.post_bytes_as::<true, false>(target, tag, head, source, length, follow)
    }

    /// Posts what is too long for slots, where the two have a core each and the lane a run for it.
    pub(super) fn post_run(
        &self,
        target: u32,
        tag: u32,
        head: [u64; lane::HEAD],
        length: usize,
        follow: Follow,
        write: impl FnMut(usize, UserAddress, usize),
    ) -> Posting {
        let peer = self.peer(target);
        if length > RUN_BYTES || peer.station.refuses_long.get() != 0 {
            return Posting::TooLong;
        }
        let (lane, producer) = self.outgoing(peer, Follow::Nothing);
        if !producer.overlaps {
            return Posting::TooLong;
        }
        if peer.side.as_ref().is_some_and(|side| side.leaves_runs(length)) {
            return Posting::TooLong;
        }
        if let Some(side) = &peer.side
            && let Some((shuttle, turn, run)) = side.claim_run(&lane, producer, length)
        {
            shuttle.put_run(turn, run, tag, head, length, write);
            self.ring_for(peer);
            return Posting::Posted;
        }
        if follow == Follow::Exchange {
            return Posting::TooLong;
        }
        let pushed = self.push_run(peer, lane, producer, tag, head, length, write);
        if pushed { Posting::Posted } else { Posting::TooLong }
    }

    /// As [`Lane::push_run`], into the lane that this process has at a peer.
    fn push_run(
        &self,
        peer: &Peer,
        lane: Lane<'_>,
        producer: Producer<'_>,
        tag: u32,
        head: [u64; lane::HEAD],
        length: usize,
        write: impl FnMut(usize, UserAddress, usize),
    ) -> bool {
        let Some(runs) = peer.outgoing.runs.standing() else { return false };
        let lane = lane.with_runs(runs);
        let push = || lane.push_run(producer, tag, head, length, write);
        let pushed = match &self.pushing {
            Some(pushing) => self.beside_others(pushing, push),
            None => push(),
        };
        let Some(next) = pushed else { return false };
        self.ring_for(peer);
        self.next_run.store((next.value() << LENGTH_BITS | length) as u64, Ordering::Relaxed);
        true
    }

    /// See [`Transport::bury`].
    pub(super) fn bury_in_own(&self, dead: &[u32]) -> bool {
        // One that counts as dead may live on for a while, cut off from others.
        let is_gone = |rank| {
            let peer = self.peer(rank);
            let ends = || !process_memory::runs(peer.station.process.load(Ordering::Relaxed));
            if dead.contains(&rank) && !peer.gone.load(Ordering::Relaxed) && ends() {
                peer.gone.store(true, Ordering::Relaxed);
            }
            peer.gone.load(Ordering::Relaxed)
        };
        let mut lanes: Vec<usize> = dead.iter().map(|rank| *rank as usize % self.lanes).collect();
        lanes.sort_unstable();
        lanes.dedup();
        let bury = |number: usize| {
            let lane = self.lane(self.own(), number);
            let end = lane.tail();
            if self.pushing.is_none() {
                // Nobody else uses it, so that nothing is shown, and nobody waits behind what is left there.
                if is_gone(number as u32) {
                    lane.bury(end);
                    self.bury_shuttled(number as u32);
                }
                return true;
            }
            let is_over = |rank| {
                let mut looks = 0;
                self.peer(rank).station.pushing.is_over(|| {
                    looks += 1;
                    spin_loop();
                    looks < LOOKS_AT_PUSHING
                })
            };
            let mut senders = (number as u32..self.memory.size()).step_by(self.lanes);
            let over = senders.all(|rank| is_over(rank) || is_gone(rank));
            if over {
                lane.bury(end);
            }
            over
        };
        lanes.into_iter().all(bury)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JobMemory, Tuning};
    use parnass_transport::Transport;

    /// No process has this number.
    const GONE: u32 = i32::MAX as u32;

    /// Ranks 1, 9 and 17 use the same lane.
    #[test]
    fn what_the_dead_have_left_is_passed_once_nobody_living_writes() {
        let file = JobMemory::create(18).unwrap();
        let tuning = Tuning { yields: 0, ..Tuning::default() };
        let attach = |rank| {
            let memory = JobMemory::open(file.try_clone().unwrap()).unwrap();
            SharedMemory::attach_with(memory, rank, tuning).unwrap()
        };
        let (owner, one, nine, seventeen) = (attach(0), attach(1), attach(9), attach(17));
        let take = |transport: &SharedMemory| {
            let mut tags = Vec::new();
            transport.take(0, 100, &mut |message| {
                let whole = message.is_whole();
                tags.extend((whole && message.tag != lane::NOTHING).then_some(message.tag));
                whole
            });
            tags
        };
        let dies = |transport: &SharedMemory| {
            let mut write = |at: usize, _: UserAddress, _: usize| assert_eq!(at, 0);
            let post = || transport.post_written(0, 99, [0; 2], 8000, &mut write);
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(post)).is_err());
        };
        assert!(one.post(0, 1, &[]));
        dies(&one);
        dies(&nine);
        assert!(seventeen.post(0, 17, &[]));
        assert_eq!(take(&owner), [1]);
        let is_gone =
            |transport: &SharedMemory| transport.own().station.process.store(GONE, Ordering::Relaxed);
        assert!(!owner.bury(&[1]), "both may still write");
        is_gone(&one);
        assert!(!owner.bury(&[1]), "9 may still write");
        is_gone(&nine);
        assert_eq!(take(&owner), [0; 0]);
        assert!(owner.bury(&[9, 1]));
        assert_eq!(take(&owner), [17]);
        assert!(!owner.poll(0));
        // In a lane that only one uses nothing is shown.
        let file = JobMemory::create(2).unwrap();
        let attach = |rank| {
            let memory = JobMemory::open(file.try_clone().unwrap()).unwrap();
            SharedMemory::attach_with(memory, rank, tuning).unwrap()
        };
        let (owner, one) = (attach(0), attach(1));
        dies(&one);
        assert!(one.pushing.is_none() && take(&owner).is_empty() && owner.poll(0));
        assert!(owner.bury(&[1]) && owner.poll(0), "it may go on");
        is_gone(&one);
        assert!(owner.bury(&[1]) && take(&owner).is_empty() && !owner.poll(0));
    }

    #[test]
    fn what_one_has_taken_in_for_another_before_it_dies_is_not_taken_again() {
        let file = JobMemory::create(2).unwrap();
        let attach =
            |rank| SharedMemory::attach(JobMemory::open(file.try_clone().unwrap()).unwrap(), rank).unwrap();
        let (owner, one) = (attach(0), attach(1));
        (1..=3).for_each(|tag| assert!(one.post(0, tag, &[])));
        let mut dies = |message: &lane::Arrived| {
            assert_ne!(message.tag, 2);
            true
        };
        let take = || one.take(0, 100, &mut dies);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(take)).is_err());
        let mut tags = Vec::new();
        owner.take(0, 100, &mut |message| {
            tags.push(message.tag);
            true
        });
        assert_eq!(tags, [2, 3]);
    }
}
