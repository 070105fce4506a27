//! The layout of the job's memory file. The document is docs/wire/shared-memory.md.
//!
//! ```text
//! page 0                  header
//! PAGE + rank * STRIDE    the rank's area:
//!   + 0                   station, and behind it the counters (laid out by the counters crate): one page
//!   + KEPT_AT             the bulk pieces that the rank keeps, a word each, 0 for none: one page
//!   + SLOTS_AT            lanes * slots_per_lane message slots, 64 bytes each
//!   + RUNS_AT             memory for the runs of each lane
//!   + NIC_AT              memory of the virtual NIC (laid out by the portals crate)
//!   + BULK_AT             bulk memory that this rank sends from
//!   + BOARD_AT            boards of the communicators that this rank leads (laid out by the portals crate)
//!   + SHUTTLES_AT         a shuttle for each rank before this one, where there are at most LANES; behind them their runs
//! further on              segments, where the ranks put them (see `segments_of`); the file is as long as the last one needs
//! ```

use parnass_base::atomics::{AtomicU32, AtomicU64, Ordering};
use parnass_base::doorbell::Doorbell;
use parnass_base::lane::{LaneControl, MOST_FURTHER, RUNS_BYTES, Slot};
use parnass_base::remains::Pushing;
use parnass_base::shuttle::{self, Turn};
use parnass_base::{PAGE, Record, Word32, Word64};
use parnass_counters::BYTES as COUNTERS_BYTES;
use parnass_transport::Waiting;

/// "Parnass1" as a little-endian number.
pub const MAGIC: u64 = u64::from_le_bytes(*b"Parnass1");
/// The version of the layout. A process attaches only to its own version.
pub const LAYOUT_VERSION: u32 = 26;
/// Mailbox lanes of a rank; senders share them when there are more senders than lanes.
pub const LANES: usize = 8;
/// Room for the slots of all lanes.
pub const SLOTS_BYTES: usize = 256 << 10;
/// Where the counters start in a rank's area: at the end of the station's page.
pub const COUNTERS_AT: usize = PAGE - COUNTERS_BYTES;
/// Where a rank notes the bulk pieces that it keeps; how many they may be.
pub const KEPT_AT: usize = PAGE;
pub const KEPT: usize = PAGE / size_of::<AtomicU64>();
/// Where the slots start in a rank's area.
pub const SLOTS_AT: usize = KEPT_AT + KEPT * size_of::<AtomicU64>();
/// Where the runs start in a rank's area.
pub const RUNS_AT: usize = SLOTS_AT + SLOTS_BYTES;
/// Room for the runs of one lane.
pub const LANE_RUNS_BYTES: usize = RUNS_BYTES.next_multiple_of(PAGE);
/// Where the NIC's memory starts in a rank's area.
pub const NIC_AT: usize = RUNS_AT + LANES * LANE_RUNS_BYTES;
/// How much there is of it.
pub const NIC_BYTES: usize = 128 << 20;
/// Where the bulk memory starts in a rank's area.
pub const BULK_AT: usize = NIC_AT + NIC_BYTES;
/// How much there is of it.
pub const BULK_BYTES: usize = 64 << 20;
/// Where the boards start in a rank's area.
pub const BOARD_AT: usize = BULK_AT + BULK_BYTES;
/// How much room there is for them.
pub const BOARD_BYTES: usize = 512 << 20;
/// Where the shuttles start in a rank's area.
pub const SHUTTLES_AT: usize = BOARD_AT + BOARD_BYTES;
/// Room for the slots of one.
pub const SHUTTLE_BYTES: usize = shuttle::SLOTS * size_of::<Slot>();
/// Where their runs start.
pub const SHUTTLE_RUNS_AT: usize = SHUTTLES_AT + LANES * SHUTTLE_BYTES;
/// From one rank's area to the next.
pub const STRIDE: usize = (SHUTTLE_RUNS_AT + LANES * shuttle::BYTES).next_multiple_of(2 << 20);

/// Bytes of the file before the segments, for so many ranks.
pub fn base_bytes(size: u32) -> usize {
    PAGE + size as usize * STRIDE
}

/// The part of the file in which a rank makes segments: where it starts, and how long it is. Much longer than all memory, so that no
/// part of it is ever used twice.
pub fn segments_of(rank: u32, size: u32) -> (u64, u64) {
    const ALIGNMENT: u64 = 1 << 30;
    let length = ((1 << 62) / u64::from(size) / ALIGNMENT * ALIGNMENT).min(1 << 48);
    let first = (base_bytes(size) as u64).next_multiple_of(ALIGNMENT);
    (first + u64::from(rank) * length, length)
}

/// [`Station::waits_for`] of a rank that waits for more than one.
pub const ANYBODY: u32 = u32::MAX;
/// The same of a rank that waits for something else than a message that it receives.
pub const ELSE: u32 = u32::MAX - 1;

/// What [`Station::waits_for`] says.
pub fn waiting(number: u32) -> Waiting {
    match number {
        0 => Waiting::Not,
        ANYBODY => Waiting::ForAny,
        ELSE => Waiting::ForElse,
        number => Waiting::For(number - 1),
    }
}

/// Start of the file.
#[derive(Debug)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`], written last.
    pub magic: Word64,
    /// [`LAYOUT_VERSION`].
    pub version: Word32,
    /// How many ranks there are.
    pub size: Word32,
    /// How many lanes of a rank are in use: min(size, [`LANES`]).
    pub lanes: Word32,
    /// Slots of one lane, a power of two.
    pub slots: Word32,
}

// SAFETY: repr(C), made of atomics.
unsafe impl Record for Header {}

/// What a rank shows to its peers.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Station {
    /// The process number, 0 until it has attached.
    pub process: AtomicU32,
    _pad0: Word32,
    /// An address in that process at which `nonce` stands, for proving that its memory can be reached.
    pub nonce_address: Word64,
    /// What stands there.
    pub nonce: Word64,
    _pad1: [Word64; 5],
    /// Rung for arrivals and events.
    pub bell: Doorbell,
    /// Not 0: no messages of several slots now. On the line of the bell, which senders look at anyway.
    pub refuses_long: Word32,
    _pad2a: Word32,
    _pad2: [Word64; 6],
    /// Bulk pieces that their receivers gave back: a stack, 0 or offset / 64 of the topmost piece.
    pub returned: AtomicU32,
    _pad3: Word32,
    _pad4: [Word64; 7],
    /// For whom it waits: 0 for nobody, [`ANYBODY`], or the rank + 1.
    pub waits_for: Word32,
    /// Not 0: it has given its turn away.
    pub aside: Word32,
    _pad6: [Word64; 7],
    /// Rung for the helper thread.
    pub helper_bell: Doorbell,
    /// Not 0: that thread sleeps for a while only, and is not to be woken for what its process is about to do itself.
    pub helper_rests: Word32,
    /// Not 0: it was rung since it looked here.
    pub helper_rung: AtomicU32,
    _pad7: [Word64; 6],
    /// The processors it may run on, 0 to 511.
    pub processors: [Word64; 8],
    /// Threads that are pushing to lanes that other ranks use too.
    pub pushing: Pushing,
    /// The turns of its shuttles, by the rank of the other side.
    pub turns: [Turn; LANES],
    _reserved: [Word64; 8 * 8],
    /// Heads and tails of the lanes.
    pub lanes: [LaneControl; LANES],
}

// SAFETY: repr(C), made of records.
unsafe impl Record for Station {}

impl Station {
    /// Wakes its helper thread, if that sleeps.
    pub fn ring_helper(&self) {
        // Release pairs with the swap in `was_helper_rung`: who finds it does what it was rung for.
        self.helper_rung.store(1, Ordering::Release);
        self.helper_bell.ring();
    }

    /// The same unless it rests.
    pub fn ring_helper_that_waits(&self) {
        if self.helper_rests.get() == 0 {
            self.ring_helper();
        }
    }

    /// Whether it was rung since the last question.
    pub fn was_helper_rung(&self) -> bool {
        self.helper_rung.swap(0, Ordering::Acquire) != 0
    }
}

const _: () = assert!(size_of::<Station>() == 1024 + 128 * LANES && size_of::<Station>() <= COUNTERS_AT);

/// Pieces that are returned together, at most.
pub const BUNDLE: usize = 8;

/// First lines of a bulk piece; its data follows.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Piece {
    /// Below it and its bundle in the stack of returned pieces.
    pub next: AtomicU32,
    /// Its size class.
    pub class: Word32,
    /// Bytes that its owner has put into it, if it is drained meanwhile.
    pub filled: AtomicU64,
    /// The others of its bundle: offsets / 64 of pieces of the same class that were returned with it, up to the first 0.
    pub bundle: [AtomicU32; BUNDLE - 1],
    _pad0: [AtomicU32; 12 - (BUNDLE - 1)],
    /// Bytes that the receiver has taken out of it, if it is filled meanwhile.
    pub drained: AtomicU64,
    _pad1: [AtomicU64; 7],
}

// SAFETY: repr(C), made of atomics.
unsafe impl Record for Piece {}

const _: () = assert!(size_of::<Piece>() == 128);

/// Slots of one lane for a job of `size` ranks: fewer when there are many ranks, to keep the file small.
pub fn slots_per_lane(size: u32) -> usize {
    if size <= 16 { SLOTS_BYTES / LANES / size_of::<Slot>() } else { 64 }
}

/// Bytes of the longest message that goes through the slots of a lane: at most a quarter of the lane, and no longer than
/// the receiver's looking at every slot is worth it.
pub fn lane_bytes(slots: usize) -> usize {
    ((slots / 4).min(MOST_FURTHER) * 56).min(1024)
}

/// Lanes in use.
pub fn lanes(size: u32) -> usize {
    (size as usize).min(LANES)
}
