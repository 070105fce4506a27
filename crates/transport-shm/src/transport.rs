//! The transport over the job's memory.

mod meeting;
mod pieces;
mod push;
mod short;
mod shuttles;

use crate::kept::Kept;
use crate::layout::{
    self, ANYBODY, BOARD_AT, BOARD_BYTES, BULK_AT, BULK_BYTES, ELSE, Header, KEPT, KEPT_AT, LANE_RUNS_BYTES,
    LANES, Piece, RUNS_AT, SHUTTLE_RUNS_AT, SHUTTLES_AT, SLOTS_AT, STRIDE, Station,
};
use crate::memory::JobMemory;
use crate::patience::Patience;
use crate::pool::{HEAD, LARGEST, Pool};
use crate::process_memory::{self, Way};
use crate::segments::Segments;
use crate::tuning::Tuning;
use parnass_base::atomics::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use parnass_base::clock::nanoseconds;
use parnass_base::doorbell::own_fence;
use parnass_base::lane::{self, Arrived, Lane, LaneControl, Slot};
use parnass_base::remains::Pushing;
use parnass_base::{Ahead, PAGE, Placed, Table, UserAddress, Window, barrier, copy, process, shuttle};
use parnass_counters::{Counters, PROCESS_VM_READ_BYTES, PROCESS_VM_WRITTEN_BYTES};
use parnass_transport::{
    Answer, Bulk, Follow, Gauge, Limits, MemoryError, Network, Next, Posting, Transport, Turns, Waiting,
};
use push::LENGTH_BITS;
use short::Incoming;
use shuttles::{Runs, Side};
use std::io;
use std::mem::offset_of;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// A peer, as seen from here.
#[derive(Debug)]
struct Peer {
    station: Placed<Station>,
    /// The slots of all its lanes, one lane after the other.
    slots: Table<Slot>,
    bulk: Window,
    /// The pieces that it keeps.
    kept: Table<AtomicU64>,
    /// Where the runs of its lanes start, one lane after the other; `slots` keeps the mapping.
    runs: UserAddress,
    /// The slots of the shuttles between it and each rank before it, and where their runs start.
    shuttles: Table<Slot>,
    shuttle_runs: UserAddress,
    /// This process's side of the one between the two; none of its own, and where there are more ranks than lanes.
    side: Option<Side>,
    /// Its lane for this process.
    outgoing: OwnLane,
    /// This process's lane for it, if it is no other's.
    incoming: Option<Incoming>,
    /// How far that was read when last looked.
    known_head: AtomicU64,
    /// Whether its memory can be reached: [`UNKNOWN`], [`REACHED`] or [`REFUSED`].
    reach: AtomicU8,
    /// Its process is known to have ended. Its number may be another's by now.
    gone: AtomicBool,
}

/// Bytes of a message that is not sent while it is received.
const BULK_BYTES_AT_ONCE: usize = 64 << 10;

/// The parts of one lane.
#[derive(Debug)]
struct OwnLane {
    control: Placed<LaneControl>,
    slots: Table<Slot>,
    runs: Runs,
}

/// A turn that another process has had takes at least so long: two changes of context.
const TURN_NS: u64 = 700;
/// For so long a rank whose processor nobody else wants looks before it sleeps: to be woken on an idle processor takes as long.
const IDLE_NS: u64 = 40_000;

const UNKNOWN: u8 = 0;
const REACHED: u8 = 1;
const REFUSED: u8 = 2;

/// For how many bytes pieces of one size take turns in a job of `size` ranks: twice what a core's own cache holds, but not
/// more than it pays to touch all of for the first time.
/// Ranks that share cores share their caches too, and care more for memory.
fn turns(size: u32) -> usize {
    if size as usize > process::processors() { 0 } else { (2 * process::own_cache()).clamp(1 << 20, 2 << 20) }
}

/// Shared memory between the ranks of one machine.
#[derive(Debug)]
pub struct SharedMemory {
    memory: JobMemory,
    rank: u32,
    process: u32,
    lanes: usize,
    slots_per_lane: usize,
    patience: Patience,
    /// Bytes of the longest message that goes through the slots of a lane.
    lane_bytes: usize,
    /// Whether the lanes of this process are its own, and one thread uses them.
    alone: AtomicBool,
    /// Where it shows that it pushes, if its lanes are not its own.
    pushing: Option<Placed<Pushing>>,
    /// Whether one thread sends.
    one_thread: AtomicBool,
    /// Whether sleepers elsewhere can force a fence on this process, so that it rings lightly.
    rings_lightly: bool,
    /// Whether all who ring this process make fences.
    rung_with_fences: AtomicBool,
    /// Whether processes may reach into each other's memory: the user lets them, and the kernel lets this one read its own so.
    cross_memory: bool,
    peers: Vec<Peer>,
    pool: Mutex<Pool>,
    /// The pieces that were read last.
    kept: Kept,
    segments: Segments,
    /// Asked for when the first long message comes.
    past_caches: OnceLock<usize>,
    /// The run that the next message goes into, above the length of the last one; 0: nothing is known.
    next_run: AtomicU64,
    counters: Counters,
    /// At a fixed address while this lives; peers read it to see whether they can.
    _nonce: Box<u64>,
}

impl SharedMemory {
    /// Attaches to the job's memory as `rank`.
    ///
    /// # Errors
    /// There is no such rank, or it is taken.
    pub fn attach(memory: JobMemory, rank: u32) -> io::Result<SharedMemory> {
        Self::attach_with(memory, rank, Tuning::default())
    }

    /// As [`SharedMemory::attach`], with other values than the defaults.
    ///
    /// # Errors
    /// There is no such rank, or it is taken.
    pub fn attach_with(memory: JobMemory, rank: u32, tuning: Tuning) -> io::Result<SharedMemory> {
        let size = memory.size();
        if rank >= size {
            let message = format!("rank {rank} of a job of {size}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let header = memory.region.window(0, PAGE).record::<Header>(0);
        let lanes = header.lanes.get() as usize;
        let slots_per_lane = header.slots.get() as usize;
        let lane = rank as usize % lanes;
        let whole = memory.region.window(0, memory.region.len());
        let peers: Vec<Peer> = (0..size)
            .map(|number| {
                let area = memory.region.window(PAGE + number as usize * STRIDE, STRIDE);
                let control = offset_of!(Station, lanes) + lane * size_of::<LaneControl>();
                let slots = SLOTS_AT + lane * slots_per_lane * size_of::<Slot>();
                Peer {
                    outgoing: OwnLane {
                        control: area.record(control),
                        slots: area.table(slots, slots_per_lane),
                        runs: Runs::new(area.window(RUNS_AT + lane * LANE_RUNS_BYTES, LANE_RUNS_BYTES)),
                    },
                    incoming: (size as usize <= lanes)
                        .then(|| Incoming::new(&whole, rank, number, slots_per_lane)),
                    station: memory.station(number),
                    slots: area.table(SLOTS_AT, lanes * slots_per_lane),
                    bulk: area.window(BULK_AT, BULK_BYTES),
                    kept: area.table(KEPT_AT, KEPT),
                    runs: area.address(RUNS_AT, LANES * LANE_RUNS_BYTES),
                    shuttles: area.table(SHUTTLES_AT, LANES * shuttle::SLOTS),
                    shuttle_runs: area.address(SHUTTLE_RUNS_AT, LANES * shuttle::BYTES),
                    side: Some(&whole)
                        .filter(|_| size as usize <= lanes)
                        .and_then(|whole| Side::new(whole, rank, number)),
                    known_head: AtomicU64::new(0),
                    reach: AtomicU8::new(UNKNOWN),
                    gone: AtomicBool::new(false),
                }
            })
            .collect();
        let process = process_memory::process_number();
        let nonce = Box::new(0x5061_726e_6173_7300 ^ u64::from(process) << 20 ^ u64::from(rank));
        process_memory::permit_peers();
        let rings_lightly = barrier::register();
        if !rings_lightly {
            // Then it cannot force others either.
            peers[rank as usize].station.bell.demand_fences();
        }
        let station = &peers[rank as usize].station;
        station.nonce.set(*nonce);
        station.nonce_address.set(std::ptr::from_ref(&*nonce).expose_provenance() as u64);
        // Shown before this rank counts as there: a rank without processors would be nobody's neighbour.
        let patience = Patience::new(station, &tuning);
        // Release pairs with the acquire in `reaches` and in `Patience::decide`.
        if station.process.compare_exchange(0, process, Ordering::Release, Ordering::Relaxed).is_err() {
            let message = format!("rank {rank} of the job is taken by another process");
            return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
        }
        let kept = Kept::new(whole.table(PAGE + rank as usize * STRIDE + KEPT_AT, KEPT), size);
        let pool = Mutex::new(Pool::new(peers[rank as usize].bulk.clone(), turns(size)));
        let mut transport = SharedMemory {
            patience,
            lane_bytes: layout::lane_bytes(slots_per_lane),
            alone: AtomicBool::new(size as usize <= lanes),
            pushing: (size as usize > lanes).then(|| {
                let at = PAGE + rank as usize * STRIDE + offset_of!(Station, pushing);
                memory.region.window(0, memory.region.len()).record(at)
            }),
            one_thread: AtomicBool::new(true),
            rings_lightly,
            rung_with_fences: AtomicBool::new(!rings_lightly),
            cross_memory: false,
            counters: memory.counters(rank),
            memory,
            rank,
            process,
            lanes,
            slots_per_lane,
            peers,
            pool,
            kept,
            segments: Segments::new(rank, size),
            past_caches: OnceLock::new(),
            next_run: AtomicU64::new(0),
            _nonce: nonce,
        };
        transport.cross_memory = tuning.direct && transport.reads_nonce_of(transport.own(), process);
        Ok(transport)
    }

    /// Says that so many ranks of the job run on this machine and have other memory: its `processors` are shared with them too.
    pub fn count_apart(&self, ranks: u32, processors: u32) {
        self.patience.count_apart(ranks, processors);
    }

    #[inline(always)]
    fn own(&self) -> &Peer {
        self.peer(self.rank)
    }

    #[inline(always)]
    fn peer(&self, rank: u32) -> &Peer {
        &self.peers[rank as usize]
    }

    #[inline(always)]
    fn lane<'a>(&self, of: &'a Peer, lane: usize) -> Lane<'a> {
        let first = lane * self.slots_per_lane;
        let slots = &of.slots[first..first + self.slots_per_lane];
        Lane::new(&of.station.lanes[lane], slots).with_runs(of.runs.offset((lane * LANE_RUNS_BYTES) as i64))
    }

    /// Tells a peer of a message.
    #[inline(always)]
    fn ring_for(&self, peer: &Peer) {
        if self.rings_lightly { peer.station.bell.ring_lightly() } else { peer.station.bell.ring() }
    }

    /// What a sleeper of this process does between announcing itself and looking once more.
    fn sleepers_barrier(&self) {
        if self.rung_with_fences.load(Ordering::Relaxed) {
            return own_fence();
        }
        // What is known for certain only: a rank that begins may not have found out yet that it has a processor to itself, and what is
        // demanded once costs every sender of its a fence for good.
        let shares = self.patience.certainly_shares(self.size());
        if shares {
            // Where ranks share processors they sleep often, and each fence of a sender is cheaper than to interrupt it.
            self.own().station.bell.demand_fences();
        }
        if !barrier::force() {
            own_fence();
        } else if shares {
            self.rung_with_fences.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the kernel lets this process reach the memory of `peer`; asked once.
    fn reaches_memory_of(&self, peer: &Peer) -> bool {
        match peer.reach.load(Ordering::Relaxed) {
            UNKNOWN if !self.cross_memory => false,
            UNKNOWN => {
                // Acquire pairs with the release in `attach`.
                let process = peer.station.process.load(Ordering::Acquire);
                if process == 0 {
                    // Not attached yet: ask again.
                    return false;
                }
                let reached = process == self.process || self.reads_nonce_of(peer, process);
                peer.reach.store(if reached { REACHED } else { REFUSED }, Ordering::Relaxed);
                reached
            }
            reach => reach == REACHED,
        }
    }

    fn reads_nonce_of(&self, peer: &Peer, process: u32) -> bool {
        let mut seen = 0u64;
        // SAFETY: the word outlives the call.
        let local = unsafe { UserAddress::new((&raw mut seen).cast()) };
        let remote = UserAddress::restore(peer.station.nonce_address.get() as usize);
        process_memory::transfer(Way::Read, process, remote, local, 8).is_ok()
            && seen == peer.station.nonce.get()
    }

    fn move_bytes(
        &self,
        way: Way,
        peer: u32,
        remote: UserAddress,
        local: UserAddress,
        length: usize,
    ) -> Result<(), MemoryError> {
        let peer = self.peer(peer);
        let process = peer.station.process.load(Ordering::Relaxed);
        if !std::ptr::eq(peer, self.own()) && !self.reaches_memory_of(peer) {
            return Err(MemoryError::NotPermitted);
        }
        if process == self.process {
            match way {
                Way::Read => local.copy_from(remote, length),
                Way::Write => remote.copy_from(local, length),
            }
            return Ok(());
        }
        process_memory::transfer(way, process, remote, local, length)?;
        let counter = match way {
            Way::Read => PROCESS_VM_READ_BYTES,
            Way::Write => PROCESS_VM_WRITTEN_BYTES,
        };
        self.counters.count_any(counter, length as u64);
        Ok(())
    }
}

impl Transport for SharedMemory {
    fn me(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.memory.size()
    }

    fn limits(&self) -> Limits {
        Limits { bulk_bytes: BULK_BYTES_AT_ONCE, processes: 20 }
    }

    fn shares(&self, peer: u32) -> bool {
        peer < self.size()
    }

    fn network(&self) -> Option<&dyn Network> {
        None
    }

    fn nic_memory(&self, of: u32) -> Window {
        self.memory.nic_memory(of)
    }

    fn counter_memory(&self, of: u32) -> Window {
        self.memory.counter_memory(of)
    }

    fn board_memory(&self, of: u32) -> Option<Window> {
        Some(self.memory.region.window(PAGE + of as usize * STRIDE + BOARD_AT, BOARD_BYTES))
    }

    fn make_segment(&self, length: usize) -> io::Result<u64> {
        self.segments.make(&self.memory.region, length)
    }

    fn open_segment(&self, name: u64, length: usize) -> io::Result<Window> {
        self.segments.open(&self.memory.region, name, length)
    }

    fn end_segment(&self, name: u64, length: usize) {
        self.segments.end(&self.memory.region, name, length);
    }

    fn holder(&self) -> u32 {
        self.process
    }

    fn holder_lives(&self) -> fn(u32) -> bool {
        process::lives
    }

    #[inline]
    fn post(&self, target: u32, tag: u32, words: &[u64]) -> bool {
        let peer = self.peer(target);
        let posted = self.push(peer, tag, words);
        if posted {
            self.ring_for(peer);
        }
        posted
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
        if self.pushing.is_some() {
            self.post_bytes_beside_others(target, tag, head, source, length, follow)
        } else {
            self.post_bytes_as::<false, false>(target, tag, head, source, length, follow)
        }
    }

    fn post_written(
        &self,
        target: u32,
        tag: u32,
        head: [u64; lane::HEAD],
        length: usize,
        write: &mut dyn FnMut(usize, UserAddress, usize),
    ) -> Posting {
        self.post_run(target, tag, head, length, Follow::Nothing, write)
    }

    #[inline]
    fn answer_after(&self, source: Option<u32>) -> Option<(u32, u32)> {
        self.expects_answer(source)
    }

    #[inline]
    fn take_answer(&self, source: u32, looks: u32, accept: &mut dyn FnMut(&Arrived) -> bool) -> bool {
        self.take_expected(source, looks, accept)
    }

    #[inline]
    fn next(&self, source: u32) -> Next<'_> {
        self.next_from(source)
    }

    #[inline]
    fn pass_next(&self, source: u32, slots: u64) {
        self.pass_from(source, slots);
    }

    #[inline]
    fn next_answer(&self, source: u32) -> Option<Answer<'_>> {
        self.peer(source).side.as_ref()?.next_answer()
    }

    #[inline]
    fn pass_answer(&self, source: u32, looks: u32) {
        if let Some(side) = &self.peer(source).side {
            side.pass_answer(looks);
        }
    }

    fn will_write(&self, ahead: &mut Ahead) {
        let next = self.next_run.load(Ordering::Relaxed) as usize;
        if next != 0 {
            self.next_run.store(0, Ordering::Relaxed);
            let run = UserAddress::restore(next >> LENGTH_BITS);
            ahead.add(run, next & ((1 << LENGTH_BITS) - 1));
        }
    }

    fn several_threads(&self) {
        self.alone.store(false, Ordering::Relaxed);
        self.one_thread.store(false, Ordering::Relaxed);
    }

    #[inline]
    fn poll(&self, of: u32) -> bool {
        let peer = self.peer(of);
        (0..self.lanes).any(|lane| !self.lane(peer, lane).looks_empty() || self.is_shuttled(of, lane as u32))
    }

    fn has_taken_in(&self, target: u32) -> bool {
        let (lane, producer) = self.outgoing(self.peer(target), Follow::Nothing);
        lane.is_taken_in(producer)
    }

    #[inline]
    fn take(&self, of: u32, limit: usize, accept: &mut dyn FnMut(&Arrived) -> bool) -> usize {
        let peer = self.peer(of);
        let mut taken = 0;
        for number in 0..self.lanes {
            let lane = self.lane(peer, number);
            let first = lane.head();
            let (mut position, mut here) = (first, 0);
            while here < limit {
                // What came by shuttle precedes what was seen in the lane before. (With one look at the lane for both cases the message is copied to and fro.)
                let Some((message, slots)) = lane.read(position) else {
                    if self.is_shuttled(of, number as u32) && self.take_shuttled(of, number as u32, accept) {
                        taken += 1;
                        continue;
                    }
                    break;
                };
                if self.is_shuttled(of, number as u32) {
                    if self.take_shuttled(of, number as u32, accept) {
                        taken += 1;
                        continue;
                    }
                    break;
                }
                // One that comes alone is not followed by another that is there already.
                if here != 0 {
                    lane.read_ahead(position);
                }
                if !accept(&message) {
                    break;
                }
                position += slots as u64;
                here += 1;
                // Who takes in for another one may die before the next: this one is not taken a second time then.
                if of != self.rank {
                    lane.advance(position);
                }
            }
            if here != 0 {
                lane.advance(position);
                taken += here;
                if of == self.rank
                    && let Some(side) = &self.peer(number as u32).side
                {
                    side.came(false);
                }
            }
        }
        taken
    }

    fn bury(&self, dead: &[u32]) -> bool {
        self.bury_in_own(dead)
    }

    fn runs_ahead(&self, length: usize) -> bool {
        // Shorter ones need no bulk memory, mostly.
        length > self.lane_bytes && self.uses_up_pieces(length)
    }

    fn follows(&self, target: u32) -> bool {
        let peer = self.peer(target);
        let (Some(side), Some(incoming)) = (&peer.side, &peer.incoming) else { return false };
        side.follows(incoming.head())
    }

    fn claim(&self, length: usize) -> Option<Bulk> {
        self.claim_for(length, false)
    }

    fn keep(&self, message: &Arrived, length: usize) -> Option<Bulk> {
        let bulk = self.claim_for(length, true)?;
        if message.copy_to(lane::HEAD, self.bytes_of(bulk, 0, length), length) {
            return Some(bulk);
        }
        self.discard(bulk);
        None
    }

    fn accept_long(&self, accept: bool) {
        self.own().station.refuses_long.set(u32::from(!accept));
    }

    fn fill(&self, bulk: Bulk, skip: usize, length: usize, write: &mut dyn FnMut(UserAddress)) {
        write(self.bytes_of(bulk, skip, length));
    }

    fn drain(
        &self,
        bulk: Bulk,
        skip: usize,
        owner: u32,
        target: UserAddress,
        length: usize,
    ) -> Result<(), MemoryError> {
        if owner == self.rank {
            let (peer, offset) = self.piece(bulk);
            peer.bulk.copy_out(offset + HEAD + skip, target, length);
            return Ok(());
        }
        self.move_bytes(Way::Write, owner, target, self.bytes_of(bulk, skip, length), length)
    }

    fn drain_by(&self, bulk: Bulk, skip: usize, length: usize, read: &mut dyn FnMut(UserAddress)) {
        read(self.bytes_of(bulk, skip, length));
    }

    fn past_caches(&self) -> usize {
        // Other processors than Intel's also keep the buffers of the other rank there.
        *self.past_caches.get_or_init(|| process::last_cache() / if copy::is_intels() { 2 } else { 4 })
    }

    fn discard(&self, bulk: Bulk) {
        self.has_read(bulk);
    }

    fn pipe_bytes(&self, _peer: u32) -> usize {
        1 << LARGEST
    }

    fn gauge(&self, bulk: Bulk) -> Option<Gauge<'_>> {
        let (peer, offset) = self.piece(bulk);
        let piece = peer.bulk.reference::<Piece>(offset);
        Some(Gauge { filled: &piece.filled, drained: &piece.drained })
    }

    fn place(&self, owner: u32, target: UserAddress, bytes: &[u8]) -> Result<(), MemoryError> {
        if owner == self.rank {
            target.write(bytes);
            return Ok(());
        }
        // SAFETY: the slice outlives the call.
        let local = unsafe { UserAddress::new(bytes.as_ptr()) };
        self.move_bytes(Way::Write, owner, target, local, bytes.len())
    }

    fn reaches(&self, peer: u32) -> bool {
        peer == self.rank || self.reaches_memory_of(self.peer(peer))
    }

    fn reaches_peers(&self) -> bool {
        self.cross_memory
    }

    fn read(
        &self,
        peer: u32,
        remote: UserAddress,
        local: UserAddress,
        length: usize,
    ) -> Result<(), MemoryError> {
        self.move_bytes(Way::Read, peer, remote, local, length)
    }

    fn write(
        &self,
        peer: u32,
        remote: UserAddress,
        local: UserAddress,
        length: usize,
    ) -> Result<(), MemoryError> {
        self.move_bytes(Way::Write, peer, remote, local, length)
    }

    fn ring(&self, target: u32) {
        self.ring_for(self.peer(target));
    }

    #[inline]
    fn rings_lightly(&self) -> bool {
        self.rings_lightly
    }

    fn fence_all(&self) -> bool {
        barrier::force()
    }

    #[inline]
    fn ring_unfenced(&self, target: u32) {
        self.peer(target).station.bell.ring_unfenced();
    }

    fn ring_always(&self) {
        self.own().station.bell.ring_always();
    }

    fn rings(&self) -> u32 {
        self.own().station.bell.rings()
    }

    fn spins(&self) -> u32 {
        self.patience.spins(self.size(), &|rank| &self.peer(rank).station)
    }

    fn has_spare_processor(&self) -> bool {
        self.patience.has_spare(self.size(), &|rank| &self.peer(rank).station)
    }

    fn step_aside(&self, turns: &mut Turns) -> bool {
        let more = turns.given < self.patience.yields() && turns.idle < IDLE_NS;
        if more {
            let aside = &self.own().station.aside;
            let before = nanoseconds();
            aside.set(1);
            std::thread::yield_now();
            aside.set(0);
            let took = nanoseconds() - before;
            if took < TURN_NS { turns.idle += took } else { turns.given += 1 }
        }
        more
    }

    fn sleep(&self, rings: u32, deadline: Option<Instant>, changed: &mut dyn FnMut() -> bool) {
        let limit = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        self.own().station.bell.sleep_behind(rings, limit, || self.sleepers_barrier(), changed);
    }

    fn meets_crowd(&self) -> bool {
        self.patience.meets_crowd()
    }

    #[inline]
    fn show(&self, waiting: Waiting) {
        self.own().station.waits_for.set(match waiting {
            Waiting::Not => 0,
            Waiting::ForAny => ANYBODY,
            Waiting::ForElse => ELSE,
            Waiting::For(rank) => rank + 1,
        });
    }

    fn shown(&self, of: u32) -> Waiting {
        layout::waiting(self.peer(of).station.waits_for.get())
    }

    fn runs_beside(&self, of: u32) -> bool {
        let station = &self.peer(of).station;
        station.aside.get() == 0 && !self.sleeps(of) && self.patience.may_be_beside(station)
    }

    fn is_across(&self, of: u32) -> bool {
        self.patience.is_across(&self.peer(of).station)
    }

    fn sleeps(&self, of: u32) -> bool {
        self.peer(of).station.bell.has_sleepers()
    }

    fn lives(&self, of: u32) -> bool {
        process::lives(self.peer(of).station.process.load(Ordering::Relaxed))
    }

    fn ring_helper(&self, target: u32) {
        self.peer(target).station.ring_helper();
    }

    fn was_helper_rung(&self) -> bool {
        self.own().station.was_helper_rung()
    }

    fn ring_helper_that_waits(&self, target: u32) {
        self.peer(target).station.ring_helper_that_waits();
    }

    fn rest_helper(&self, rests: bool) {
        self.own().station.helper_rests.set(u32::from(rests));
    }

    fn sleep_helper(&self, limit: Option<Duration>, changed: &mut dyn FnMut() -> bool) {
        let bell = &self.own().station.helper_bell;
        bell.sleep(bell.rings(), limit, changed);
    }
}

const _: () = assert!(layout::STRIDE.is_multiple_of(PAGE));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_shares_processors_looks_for_a_while_and_then_sleeps() {
        let size = process::processors() as u32 + 1;
        let memory = JobMemory::open(JobMemory::create(size).unwrap()).unwrap();
        let transport = SharedMemory::attach(memory, 0).unwrap();
        let (mut turns, mut looks) = (Turns::default(), 0);
        assert_eq!(transport.spins(), 0);
        while transport.step_aside(&mut turns) {
            looks += 1;
        }
        assert!(looks > 0 && (turns.given == transport.patience.yields() || turns.idle >= IDLE_NS));
    }

    #[test]
    fn a_helper_that_rests_is_woken_only_for_what_cannot_wait() {
        let memory = JobMemory::open(JobMemory::create(1).unwrap()).unwrap();
        let transport = SharedMemory::attach(memory, 0).unwrap();
        let bell = &transport.own().station.helper_bell;
        transport.rest_helper(true);
        std::thread::scope(|scope| {
            let sleeper =
                scope.spawn(|| transport.sleep_helper(Some(Duration::from_secs(60)), &mut || false));
            while !bell.has_sleepers() {
                std::thread::yield_now();
            }
            let rings = bell.rings();
            transport.ring_helper_that_waits(0);
            assert_eq!(bell.rings(), rings);
            transport.rest_helper(false);
            transport.ring_helper_that_waits(0);
            sleeper.join().unwrap();
            assert_eq!(bell.rings(), rings + 1);
        });
    }

    #[test]
    fn who_gives_its_turn_away_or_is_bound_to_the_same_processor_runs_beside_nobody() {
        let size = process::processors() as u32 + 1;
        let file = JobMemory::create(size).unwrap();
        let attach =
            |rank| SharedMemory::attach(JobMemory::open(file.try_clone().unwrap()).unwrap(), rank).unwrap();
        let (one, other) = (attach(0), attach(1));
        assert_eq!((one.spins(), one.runs_beside(1)), (0, size > 2));
        assert!(!one.is_across(1), "both may run on the same processors");
        let theirs = &other.own().station;
        theirs.aside.set(1);
        assert!(!one.runs_beside(1));
        theirs.aside.set(0);
        // Bound to a processor that this one does not use.
        theirs.processors.iter().for_each(|word| word.set(0));
        theirs.processors[7].set(1 << 63);
        assert!(one.runs_beside(1) && one.is_across(1));
    }

    /// Its senders would make a fence for each message for good, though there may be a processor for each rank.
    #[test]
    fn who_sleeps_before_the_others_are_there_demands_no_fences() {
        let size = process::processors() as u32 + 1;
        let memory = JobMemory::open(JobMemory::create(size).unwrap()).unwrap();
        let transport = SharedMemory::attach(memory, 0).unwrap();
        assert_eq!(transport.spins(), 0);
        transport.sleep(transport.rings(), Some(Instant::now()), &mut || false);
        assert_ne!(transport.rung_with_fences.load(Ordering::Relaxed), transport.rings_lightly);
    }

    #[test]
    fn a_process_answers_in_what_it_has_read_and_a_peer_takes_that_where_nothing_is_left() {
        let file = JobMemory::create(2).unwrap();
        let attach =
            |rank| SharedMemory::attach(JobMemory::open(file.try_clone().unwrap()).unwrap(), rank).unwrap();
        let (one, two) = (attach(0), attach(1));
        let sent = one.claim(100_000).unwrap();
        two.discard(sent);
        assert_ne!(two.claim(10_000).unwrap().0, sent.0, "another size");
        assert_eq!(two.claim(100_000).unwrap().0, sent.0);
        assert_ne!(two.claim(100_000).unwrap().0, sent.0, "there is one of it");
        two.discard(sent);
        let all: Vec<Bulk> = std::iter::from_fn(|| one.claim(2 << 20)).collect();
        let least = std::iter::from_fn(|| one.claim(100_000)).last().unwrap();
        assert_eq!(least.0, sent.0, "what a peer keeps comes last");
        // What comes back beside the one that is kept is its owner's again.
        all.iter().for_each(|bulk| two.discard(*bulk));
        assert_eq!(std::iter::from_fn(|| one.claim(2 << 20)).count(), all.len());
    }
}
