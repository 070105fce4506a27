//! The transport over the job's memory.

use crate::layout::{
    self, ANYBODY, BOARD_AT, BOARD_BYTES, BULK_AT, BULK_BYTES, Header, NIC_AT, NIC_BYTES, Piece, SLOTS_AT,
    STRIDE, Station,
};
use crate::memory::JobMemory;
use crate::patience::Patience;
use crate::pool::{self, HEAD, LARGEST, Pool};
use crate::process_memory::{self, Way};
use parnass_base::atomics::{AtomicU8, AtomicU64, Ordering};
use parnass_base::lane::{Lane, Message, Slot};
use parnass_base::process;
use parnass_base::{PAGE, Placed, Table, UserAddress, Window};
use parnass_transport::{Bulk, Gauge, Limits, MemoryError, Transport, Waiting};
use std::io;
use std::sync::Mutex;
use std::time::Instant;

/// A peer, as seen from here.
#[derive(Debug)]
struct Peer {
    station: Placed<Station>,
    /// The slots of all its lanes, one lane after the other.
    slots: Table<Slot>,
    bulk: Window,
    /// How far its lane for this process was read when last looked.
    known_head: AtomicU64,
    /// Whether its memory can be reached: [`UNKNOWN`], [`REACHED`] or [`REFUSED`].
    reach: AtomicU8,
}

/// Bytes of a message that is not sent while it is received.
const BULK_BYTES_AT_ONCE: usize = 64 << 10;

const UNKNOWN: u8 = 0;
const REACHED: u8 = 1;
const REFUSED: u8 = 2;

/// For how many bytes pieces of one size take turns in a job of `size` ranks: twice what a core's own cache holds.
/// Ranks that share cores share their caches too, and care more for memory.
fn turns(size: u32) -> usize {
    if size as usize > process::processors() { 0 } else { (2 * process::own_cache()).clamp(1 << 20, 4 << 20) }
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
    cross_memory: bool,
    peers: Vec<Peer>,
    pool: Mutex<Pool>,
    /// At a fixed address while this lives; peers read it to see whether they can.
    _nonce: Box<u64>,
}

/// What can be chosen when attaching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether the kernel may be asked to reach the memory of other processes.
    pub cross_memory: bool,
}

impl Options {
    /// From the environment: `PARNASS_DIRECT=off` takes the way of kernels that forbid cross-memory calls.
    pub fn from_environment() -> Options {
        let off = std::env::var("PARNASS_DIRECT").is_ok_and(|value| value == "off");
        Options { cross_memory: !off }
    }
}

impl SharedMemory {
    /// Attaches to the job's memory as `rank`.
    ///
    /// # Errors
    /// There is no such rank, or it is taken.
    pub fn attach(memory: JobMemory, rank: u32) -> io::Result<SharedMemory> {
        Self::attach_with(memory, rank, Options::from_environment())
    }

    /// As [`SharedMemory::attach`], with options that do not come from the environment.
    ///
    /// # Errors
    /// There is no such rank, or it is taken.
    pub fn attach_with(memory: JobMemory, rank: u32, options: Options) -> io::Result<SharedMemory> {
        let size = memory.size();
        if rank >= size {
            let message = format!("rank {rank} of a job of {size}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let header = memory.region.window(0, PAGE).record::<Header>(0);
        let lanes = header.lanes.get() as usize;
        let slots_per_lane = header.slots.get() as usize;
        let peers: Vec<Peer> = (0..size)
            .map(|rank| {
                let area = memory.region.window(PAGE + rank as usize * STRIDE, STRIDE);
                Peer {
                    station: memory.station(rank),
                    slots: area.table(SLOTS_AT, lanes * slots_per_lane),
                    bulk: area.window(BULK_AT, BULK_BYTES),
                    known_head: AtomicU64::new(0),
                    reach: AtomicU8::new(UNKNOWN),
                }
            })
            .collect();
        let process = process_memory::process_number();
        let nonce = Box::new(0x5061_726e_6173_7300 ^ u64::from(process) << 20 ^ u64::from(rank));
        process_memory::permit_peers();
        let station = &peers[rank as usize].station;
        station.nonce.set(*nonce);
        station.nonce_address.set(std::ptr::from_ref(&*nonce).expose_provenance() as u64);
        // Release pairs with the acquire in `reaches`.
        if station.process.compare_exchange(0, process, Ordering::Release, Ordering::Relaxed).is_err() {
            let message = format!("rank {rank} of the job is taken by another process");
            return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
        }
        let pool = Mutex::new(Pool::new(peers[rank as usize].bulk.clone(), turns(size)));
        Ok(SharedMemory {
            patience: Patience::new(&peers[rank as usize].station),
            cross_memory: options.cross_memory,
            memory,
            rank,
            process,
            lanes,
            slots_per_lane,
            peers,
            pool,
            _nonce: nonce,
        })
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
        Lane::new(&of.station.lanes[lane], &of.slots[first..first + self.slots_per_lane])
    }

    fn piece(&self, bulk: Bulk) -> (&Peer, usize) {
        (self.peer((bulk.0 >> 40) as u32), (bulk.0 & ((1 << 40) - 1)) as usize)
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
        process_memory::transfer(way, process, remote, local, length)
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

    fn nic_memory(&self, of: u32) -> Window {
        self.memory.region.window(PAGE + of as usize * STRIDE + NIC_AT, NIC_BYTES)
    }

    fn board_memory(&self, of: u32) -> Option<Window> {
        Some(self.memory.region.window(PAGE + of as usize * STRIDE + BOARD_AT, BOARD_BYTES))
    }

    fn holder(&self) -> u32 {
        self.process
    }

    fn holder_lives(&self) -> fn(u32) -> bool {
        process_memory::lives
    }

    #[inline]
    fn post(&self, target: u32, tag: u32, words: &[u64]) -> bool {
        let peer = self.peer(target);
        let posted = self.lane(peer, self.rank as usize % self.lanes).push(&peer.known_head, tag, words);
        if posted {
            peer.station.bell.ring();
        }
        posted
    }

    #[inline]
    fn poll(&self, of: u32) -> bool {
        let peer = self.peer(of);
        (0..self.lanes).any(|lane| !self.lane(peer, lane).looks_empty())
    }

    #[inline]
    fn take(&self, of: u32, limit: usize, accept: &mut dyn FnMut(&Message) -> bool) -> usize {
        let peer = self.peer(of);
        let mut taken = 0;
        for number in 0..self.lanes {
            let lane = self.lane(peer, number);
            let first = lane.head();
            let mut position = first;
            while position - first < limit as u64
                && let Some(message) = lane.read(position)
                && accept(&message)
            {
                position += 1;
            }
            if position != first {
                lane.advance(position);
                taken += (position - first) as usize;
            }
        }
        taken
    }

    fn claim(&self, length: usize) -> Option<Bulk> {
        let mut pool = self.pool.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let offset = pool.claim(&self.peer(self.rank).station, length)?;
        Some(Bulk(u64::from(self.rank) << 40 | offset as u64))
    }

    fn fill(&self, bulk: Bulk, skip: usize, source: UserAddress, length: usize) {
        let (peer, offset) = self.piece(bulk);
        peer.bulk.copy_in(offset + HEAD + skip, source, length);
    }

    fn drain(
        &self,
        bulk: Bulk,
        skip: usize,
        owner: u32,
        target: UserAddress,
        length: usize,
    ) -> Result<(), MemoryError> {
        let (peer, offset) = self.piece(bulk);
        let offset = offset + HEAD + skip;
        if owner == self.rank {
            peer.bulk.copy_out(offset, target, length);
            return Ok(());
        }
        // SAFETY: inside the mapping, which `self` keeps.
        let local = unsafe { UserAddress::new(peer.bulk.pointer(offset, length)) };
        self.move_bytes(Way::Write, owner, target, local, length)
    }

    fn discard(&self, bulk: Bulk) {
        let (peer, offset) = self.piece(bulk);
        pool::give_back(&peer.bulk, &peer.station, offset);
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
        self.peer(target).station.bell.ring();
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

    fn step_aside(&self, tries: u32) -> bool {
        let more = tries < self.patience.yields();
        if more {
            std::thread::yield_now();
        }
        more
    }

    fn sleep(&self, rings: u32, deadline: Option<Instant>, changed: &mut dyn FnMut() -> bool) {
        let limit = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        self.own().station.bell.sleep(rings, limit, changed);
    }

    #[inline]
    fn show(&self, waiting: Waiting) {
        self.own().station.waits_for.set(match waiting {
            Waiting::Not => 0,
            Waiting::ForAny => ANYBODY,
            Waiting::For(rank) => rank + 1,
        });
    }

    fn shown(&self, of: u32) -> Waiting {
        layout::waiting(self.peer(of).station.waits_for.get())
    }

    fn ring_helper(&self, target: u32) {
        self.peer(target).station.helper_bell.ring();
    }

    fn sleep_helper(&self, changed: &mut dyn FnMut() -> bool) {
        let bell = &self.own().station.helper_bell;
        bell.sleep(bell.rings(), None, changed);
    }
}

const _: () = assert!(layout::STRIDE.is_multiple_of(PAGE));
