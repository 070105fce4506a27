//! Shared memory within a node and a network between nodes, as one transport.
//!
//! Ranks of this process's node are reached by the near transport, which numbers them by their places among the ranks of the
//! node, in ascending order; all others by the network. Within a node everything is as without a network: its NICs lie
//! in shared memory and whoever waits drives them. What the network brings is taken by its target alone.
//!
//! Polling a network costs a call of the kernel, so it is done less often while a rank of this node is awaited. A
//! sleeper sleeps on the bell of the near transport; the network's waker rings it. While no thread of the process waits, the
//! waker has what has come taken in at once, by the [`Attendant`]: so messages are received while the program computes.
#![forbid(unsafe_code)]

use parnass_base::atomics::{AtomicBool, AtomicU32, Ordering};
use parnass_base::lane::{self, Arrived};
use parnass_base::{Ahead, UserAddress, Window};
use parnass_transport::{
    Answer, Attendant, Bulk, Follow, Gauge, Limits, MemoryError, Network, Next, Posting, Prospect, Transport,
    Turns, Waiting, Waker,
};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The place of a rank on another node.
const FAR: u32 = u32::MAX;
/// Polls of the near transport for one of the network, while a rank of this node is awaited.
const NEAR_AWAITED: u32 = 64;
/// The same while it is not known who is awaited, and the last message came from this node.
const NEAR_LATELY: u32 = 16;
/// How much longer a poll of the network takes than one of shared memory.
const POLL_COST: u32 = 8;

/// See the crate's description.
#[derive(Debug)]
pub struct Hybrid<T, N> {
    near: Arc<T>,
    network: N,
    me: u32,
    /// The place of each rank on this node, or [`FAR`].
    places: Vec<u32>,
    /// Polls of the near transport for one of the network.
    every: AtomicU32,
    polls: AtomicU32,
    /// Whether the network has something.
    pending: AtomicBool,
    /// Whether the last message came from another node.
    far_lately: AtomicBool,
    duty: Duty,
}

/// The attendant of a process, once there is one.
#[derive(Clone, Default)]
pub struct Duty(Arc<Mutex<Option<Attendant>>>);

impl fmt::Debug for Duty {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the attendant of a network")
    }
}

impl Duty {
    /// Has the attendant take in what has come. Whether there was anything.
    fn call(&self) -> bool {
        let mut attendant = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        attendant.as_mut().is_some_and(|attendant| attendant())
    }

    fn give(&self, attendant: Option<Attendant>) {
        let before =
            std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), attendant);
        // What it holds may be the last of something: not under the lock.
        drop(before);
    }
}

/// What wakes a process for arrivals of its network: rings the bell of one that waits, and calls the attendant of one that computes.
pub fn waker<T: Transport + 'static>(near: &Arc<T>, duty: &Duty) -> Waker {
    let (near, duty) = (near.clone(), duty.clone());
    Box::new(move || {
        let me = near.me();
        let taken = near.shown(me) == Waiting::Not && duty.call();
        // Also of a process that computes a thread may sleep.
        near.ring(me);
        taken
    })
}

impl<T: Transport, N: Network> Hybrid<T, N> {
    /// Puts the two together; `nodes` says for each rank on which node it is, and `duty` is that of the network's [`waker`].
    ///
    /// # Panics
    /// If the near transport is not that of this process's node.
    pub fn new(near: Arc<T>, network: N, nodes: &[u32], duty: Duty) -> Hybrid<T, N> {
        let me = network.me();
        let mut places = vec![FAR; nodes.len()];
        let own = nodes[me as usize];
        for (number, place) in (0..).zip(places.iter_mut().zip(nodes).filter(|(_, node)| **node == own)) {
            *place.0 = number;
        }
        let count = places.iter().filter(|place| **place != FAR).count();
        assert_eq!(
            (near.me(), near.size() as usize),
            (places[me as usize], count),
            "the place of a rank on its node"
        );
        Hybrid {
            near,
            network,
            me,
            places,
            every: AtomicU32::new(1),
            polls: AtomicU32::new(0),
            pending: AtomicBool::new(false),
            far_lately: AtomicBool::new(false),
            duty,
        }
    }

    /// The network.
    pub fn inner(&self) -> &N {
        &self.network
    }

    /// The place of a rank of this node. Processes of other worlds have numbers from the size of this one on, and none.
    #[inline(always)]
    fn place(&self, rank: u32) -> u32 {
        self.places.get(rank as usize).copied().unwrap_or(FAR)
    }

    fn is_far(&self, rank: u32) -> bool {
        self.place(rank) == FAR
    }

    #[inline]
    fn poll_network(&self) -> bool {
        // What was found by somebody who did not take it is still there.
        if self.pending.load(Ordering::Relaxed) {
            return true;
        }
        let turn = self.polls.fetch_add(1, Ordering::Relaxed);
        if !turn.is_multiple_of(self.every.load(Ordering::Relaxed)) {
            return false;
        }
        let found = self.network.poll();
        if found {
            self.pending.store(true, Ordering::Relaxed);
        }
        found
    }

    fn look(&self) -> bool {
        let found = self.network.look();
        if found {
            self.pending.store(true, Ordering::Relaxed);
        }
        found
    }
}

impl<T: Transport, N: Network> Transport for Hybrid<T, N> {
    fn me(&self) -> u32 {
        self.me
    }

    fn size(&self) -> u32 {
        self.places.len() as u32
    }

    fn limits(&self) -> Limits {
        self.near.limits()
    }

    fn shares(&self, peer: u32) -> bool {
        !self.is_far(peer)
    }

    fn network(&self) -> Option<&dyn Network> {
        Some(&self.network)
    }

    fn nic_memory(&self, of: u32) -> Window {
        self.near.nic_memory(self.place(of))
    }

    fn counter_memory(&self, of: u32) -> Window {
        self.near.counter_memory(self.place(of))
    }

    fn board_memory(&self, of: u32) -> Option<Window> {
        match self.place(of) {
            FAR => None,
            place => self.near.board_memory(place),
        }
    }

    fn make_segment(&self, length: usize) -> io::Result<u64> {
        self.near.make_segment(length)
    }

    fn open_segment(&self, name: u64, length: usize) -> io::Result<Window> {
        self.near.open_segment(name, length)
    }

    fn end_segment(&self, name: u64, length: usize) {
        self.near.end_segment(name, length);
    }

    fn holder(&self) -> u32 {
        self.near.holder()
    }

    fn holder_lives(&self) -> fn(u32) -> bool {
        self.near.holder_lives()
    }

    #[inline]
    fn post(&self, target: u32, tag: u32, words: &[u64]) -> bool {
        match self.place(target) {
            FAR => self.network.post(target, tag, words),
            place => self.near.post(place, tag, words),
        }
    }

    #[inline]
    fn post_bytes(
        &self,
        target: u32,
        tag: u32,
        head: [u64; lane::HEAD],
        source: UserAddress,
        length: usize,
        follow: Follow,
    ) -> Posting {
        let place = self.place(target);
        if place != FAR {
            return self.near.post_bytes(place, tag, head, source, length, follow);
        }
        let room = (lane::WORDS - lane::HEAD) * 8;
        if length > room {
            return Posting::TooLong;
        }
        let mut bytes = [0; (lane::WORDS - lane::HEAD) * 8];
        source.read(&mut bytes[..length]);
        let mut words = [0; lane::WORDS];
        words[..lane::HEAD].copy_from_slice(&head);
        for (word, chunk) in words[lane::HEAD..].iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(chunk.try_into().expect("chunks of eight"));
        }
        let used = lane::HEAD + length.div_ceil(8);
        if self.network.post(target, tag, &words[..used]) { Posting::Posted } else { Posting::Full }
    }

    fn post_written(
        &self,
        target: u32,
        tag: u32,
        head: [u64; lane::HEAD],
        length: usize,
        write: &mut dyn FnMut(usize, UserAddress, usize),
    ) -> Posting {
        match self.place(target) {
            FAR => Posting::TooLong,
            place => self.near.post_written(place, tag, head, length, write),
        }
    }

    fn answer_after(&self, source: Option<u32>) -> Option<(u32, u32)> {
        // From anybody means from another node too.
        let source = source?;
        match self.place(source) {
            FAR => None,
            place => self.near.answer_after(Some(place)).map(|(_, after)| (source, after)),
        }
    }

    fn take_answer(&self, source: u32, looks: u32, accept: &mut dyn FnMut(&Arrived) -> bool) -> bool {
        match self.place(source) {
            FAR => false,
            place => self.near.take_answer(place, looks, accept),
        }
    }

    fn next_answer(&self, source: u32) -> Option<Answer<'_>> {
        match self.place(source) {
            FAR => None,
            place => self.near.next_answer(place),
        }
    }

    fn pass_answer(&self, source: u32, looks: u32) {
        self.near.pass_answer(self.place(source), looks);
    }

    fn next(&self, source: u32) -> Next<'_> {
        match self.place(source) {
            FAR => Next::Other,
            place => self.near.next(place),
        }
    }

    fn pass_next(&self, source: u32, slots: u64) {
        self.near.pass_next(self.place(source), slots);
    }

    fn will_write(&self, ahead: &mut Ahead) {
        self.near.will_write(ahead);
    }

    fn several_threads(&self) {
        self.near.several_threads();
    }

    fn keep(&self, message: &Arrived, length: usize) -> Option<Bulk> {
        self.near.keep(message, length)
    }

    fn accept_long(&self, accept: bool) {
        self.near.accept_long(accept);
    }

    #[inline]
    fn poll(&self, of: u32) -> bool {
        self.near.poll(self.place(of)) || of == self.me && self.poll_network()
    }

    fn has_taken_in(&self, target: u32) -> bool {
        match self.place(target) {
            FAR => true,
            place => self.near.has_taken_in(place),
        }
    }

    #[inline]
    fn take(&self, of: u32, limit: usize, accept: &mut dyn FnMut(&Arrived) -> bool) -> usize {
        let near = self.near.take(self.place(of), limit, accept);
        if of != self.me {
            return near;
        }
        // Those of this node who never stop must not keep the network waiting.
        if !self.poll_network() {
            if near != 0 && self.far_lately.load(Ordering::Relaxed) {
                self.far_lately.store(false, Ordering::Relaxed);
            }
            return near;
        }
        self.pending.store(false, Ordering::Relaxed);
        let far = self.network.take(limit, &mut |message| {
            let accepted = accept(&Arrived::short(*message));
            if !accepted {
                // It is there for who comes next, however seldom that one looks at the network.
                self.pending.store(true, Ordering::Relaxed);
            }
            accepted
        });
        if far >= limit {
            // And so may be what lies behind the last one of this round.
            self.pending.store(true, Ordering::Relaxed);
        }
        if far != 0 {
            self.far_lately.store(true, Ordering::Relaxed);
        }
        near + far
    }

    fn bury(&self, dead: &[u32]) -> bool {
        let near: Vec<u32> =
            dead.iter().map(|peer| self.place(*peer)).filter(|place| *place != FAR).collect();
        self.near.bury(&near)
    }

    fn runs_ahead(&self, length: usize) -> bool {
        self.near.runs_ahead(length)
    }

    fn follows(&self, target: u32) -> bool {
        match self.place(target) {
            FAR => false,
            place => self.near.follows(place),
        }
    }

    fn claim(&self, length: usize) -> Option<Bulk> {
        self.near.claim(length)
    }

    fn fill(&self, bulk: Bulk, skip: usize, length: usize, write: &mut dyn FnMut(UserAddress)) {
        self.near.fill(bulk, skip, length, write);
    }

    fn drain(
        &self,
        bulk: Bulk,
        skip: usize,
        owner: u32,
        target: UserAddress,
        length: usize,
    ) -> Result<(), MemoryError> {
        match self.place(owner) {
            FAR => Err(MemoryError::NotPermitted),
            place => self.near.drain(bulk, skip, place, target, length),
        }
    }

    fn past_caches(&self) -> usize {
        self.near.past_caches()
    }

    fn drain_by(&self, bulk: Bulk, skip: usize, length: usize, read: &mut dyn FnMut(UserAddress)) {
        self.near.drain_by(bulk, skip, length, read);
    }

    fn discard(&self, bulk: Bulk) {
        self.near.discard(bulk);
    }

    fn pipe_bytes(&self, peer: u32) -> usize {
        match self.place(peer) {
            FAR => 0,
            place => self.near.pipe_bytes(place),
        }
    }

    fn gauge(&self, bulk: Bulk) -> Option<Gauge<'_>> {
        self.near.gauge(bulk)
    }

    #[inline]
    fn place(&self, owner: u32, target: UserAddress, bytes: &[u8]) -> Result<(), MemoryError> {
        match self.place(owner) {
            FAR => Err(MemoryError::NotPermitted),
            place => self.near.place(place, target, bytes),
        }
    }

    fn reaches(&self, peer: u32) -> bool {
        !self.is_far(peer) && self.near.reaches(self.place(peer))
    }

    fn reaches_peers(&self) -> bool {
        self.near.reaches_peers()
    }

    fn read(
        &self,
        peer: u32,
        remote: UserAddress,
        local: UserAddress,
        length: usize,
    ) -> Result<(), MemoryError> {
        match self.place(peer) {
            FAR => Err(MemoryError::NotPermitted),
            place => self.near.read(place, remote, local, length),
        }
    }

    fn write(
        &self,
        peer: u32,
        remote: UserAddress,
        local: UserAddress,
        length: usize,
    ) -> Result<(), MemoryError> {
        match self.place(peer) {
            FAR => Err(MemoryError::NotPermitted),
            place => self.near.write(place, remote, local, length),
        }
    }

    fn ring(&self, target: u32) {
        if !self.is_far(target) {
            self.near.ring(self.place(target));
        }
    }

    #[inline]
    fn rings_lightly(&self) -> bool {
        self.near.rings_lightly()
    }

    fn fence_all(&self) -> bool {
        self.near.fence_all()
    }

    #[inline]
    fn ring_unfenced(&self, target: u32) {
        if !self.is_far(target) {
            self.near.ring_unfenced(self.place(target));
        }
    }

    fn ring_always(&self) {
        self.near.ring_always();
    }

    fn rings(&self) -> u32 {
        self.near.rings()
    }

    fn spins(&self) -> u32 {
        let spins = self.near.spins();
        if self.every.load(Ordering::Relaxed) == 1 { spins / POLL_COST } else { spins }
    }

    fn has_spare_processor(&self) -> bool {
        self.near.has_spare_processor()
    }

    fn step_aside(&self, turns: &mut Turns) -> bool {
        self.near.step_aside(turns)
    }

    fn sleep(&self, rings: u32, deadline: Option<Instant>, changed: &mut dyn FnMut() -> bool) {
        // Armed before the last look, so that what comes after the look wakes.
        self.network.arm();
        self.near.sleep(rings, deadline, &mut || changed() || self.look());
    }

    fn meets_crowd(&self) -> bool {
        self.near.meets_crowd()
    }

    #[inline]
    fn show(&self, waiting: Waiting) {
        let lately = || if self.far_lately.load(Ordering::Relaxed) { 1 } else { NEAR_LATELY };
        let every = match waiting {
            Waiting::For(rank) if self.is_far(rank) => 1,
            Waiting::For(_) => NEAR_AWAITED,
            Waiting::ForAny | Waiting::ForElse | Waiting::Not => lately(),
        };
        self.every.store(every, Ordering::Relaxed);
        self.near.show(waiting);
    }

    fn shown(&self, of: u32) -> Waiting {
        match self.place(of) {
            FAR => Waiting::Not,
            place => self.near.shown(place),
        }
    }

    fn runs_beside(&self, of: u32) -> bool {
        match self.place(of) {
            FAR => false,
            place => self.near.runs_beside(place),
        }
    }

    fn is_across(&self, of: u32) -> bool {
        match self.place(of) {
            FAR => false,
            place => self.near.is_across(place),
        }
    }

    fn sleeps(&self, of: u32) -> bool {
        match self.place(of) {
            FAR => true,
            place => self.near.sleeps(place),
        }
    }

    fn lives(&self, of: u32) -> bool {
        match self.place(of) {
            FAR => true,
            place => self.near.lives(place),
        }
    }

    fn more_follows(&self, target: u32) {
        if self.is_far(target) {
            self.network.more_follows(target);
        }
    }

    fn ring_helper(&self, target: u32) {
        if !self.is_far(target) {
            self.near.ring_helper(self.place(target));
        }
    }

    fn ring_helper_that_waits(&self, target: u32) {
        if !self.is_far(target) {
            self.near.ring_helper_that_waits(self.place(target));
        }
    }

    fn rest_helper(&self, rests: bool) {
        self.near.rest_helper(rests);
    }

    fn sleep_helper(&self, limit: Option<Duration>, changed: &mut dyn FnMut() -> bool) {
        self.near.sleep_helper(limit, changed);
    }

    fn was_helper_rung(&self) -> bool {
        self.near.was_helper_rung()
    }

    fn attend(&self, attendant: Option<Attendant>) {
        self.duty.give(attendant);
    }

    fn holds(&self, me: u32) -> bool {
        self.near.poll(self.place(me)) || self.network.holds()
    }

    fn look_afar(&self) -> bool {
        self.look()
    }

    #[inline]
    fn attended(&self) {
        self.network.attended();
    }

    #[inline]
    fn attend_soon(&self, prospect: Prospect) {
        self.network.arm_lightly(prospect);
    }
}
