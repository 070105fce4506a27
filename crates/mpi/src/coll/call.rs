//! A collective call, its arguments checked, and what it means for the choice of a schedule.

use super::Settings;
use super::blocks::{BlockTypes, Blocks, KeptBlocks};
use super::execution::{Parts, Rest};
use crate::comm::Communicator;
use crate::constants::{MPI_PROC_NULL, MPI_ROOT};
use crate::datatype::Datatype;
use crate::op::Op;
use crate::process::Process;
use parnass_base::UserAddress;
use parnass_collectives::{
    Algorithm, Direct, Element, Kind, Neighborhood, Nodes, Operation, Overrides, Part, Problem, Root,
    Schedule, Shape,
};
use parnass_portals::{Board, Reading};
use std::sync::Arc;

/// One of the two buffers of a call.
#[derive(Clone, Copy, Debug)]
pub enum Side<'a> {
    /// Not significant at this process.
    None,
    /// One buffer, or equal blocks of `count` elements one after the other.
    Even { address: UserAddress, count: u64, datatype: &'a Arc<Datatype> },
    /// Blocks that differ.
    Varied { address: UserAddress, blocks: &'a Blocks<'a> },
}

impl<'a> Side<'a> {
    #[inline]
    pub(super) fn address(&self) -> UserAddress {
        match self {
            Side::None => UserAddress::NULL,
            Side::Even { address, .. } | Side::Varied { address, .. } => *address,
        }
    }

    #[inline]
    pub(super) fn datatype(&self) -> Option<&'a Arc<Datatype>> {
        match self {
            Side::None => None,
            Side::Even { datatype, .. } => Some(datatype),
            Side::Varied { blocks, .. } => match &blocks.datatypes {
                BlockTypes::Same(datatype) => Some(datatype),
                BlockTypes::Each(_) => None,
            },
        }
    }

    #[inline]
    fn blocks(&self) -> Option<&'a Blocks<'a>> {
        match self {
            Side::Varied { blocks, .. } => Some(blocks),
            Side::None | Side::Even { .. } => None,
        }
    }

    /// The datatypes of its blocks, where each has its own.
    #[inline]
    pub(super) fn datatypes(&self) -> &'a [Arc<Datatype>] {
        self.blocks().map_or(&[], Blocks::each)
    }

    #[inline]
    fn part(&self) -> Part {
        match self {
            Side::None => Part::default(),
            Side::Even { count, datatype, .. } => {
                Part { count: *count, element: element_of(datatype, *count) }
            }
            Side::Varied { blocks, .. } => match &blocks.datatypes {
                BlockTypes::Same(datatype) => Part { count: 0, element: element_of(datatype, 1) },
                BlockTypes::Each(_) => Part::default(),
            },
        }
    }
}

/// How `count` elements of a datatype lie in memory.
#[inline]
pub(super) fn element_of(datatype: &Datatype, count: u64) -> Element {
    let layout = datatype.layout();
    Element {
        size: layout.size(),
        extent: layout.extent(),
        true_lower_bound: layout.true_lower_bound(),
        true_extent: layout.true_extent() as u64,
        dense: layout.contiguous(count).is_some(),
    }
}

/// What tells the calls on one communicator apart whose schedules are kept. Where blocks differ, these too must be the same, see
/// [`Call::has_blocks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// Count, and identity of the datatype. For blocks that differ: 0, and identity of the datatype if there is one.
    send: (u64, u64),
    recv: (u64, u64),
    root: i32,
    operation: Operation,
    in_place: bool,
    commutative: bool,
    on_board: bool,
}

impl Key {
    /// One of so many places, a power of two.
    #[inline]
    pub(super) fn place(&self, places: usize) -> usize {
        self.digest() as usize & (places - 1)
    }

    /// A number that tells keys apart, nearly always.
    #[inline]
    pub(super) fn digest(&self) -> u64 {
        let count = self.send.0.wrapping_add(self.recv.0.rotate_left(8));
        let types = self.send.1.wrapping_add(self.recv.1.rotate_left(16));
        let rest = u64::from(self.root as u32) << 8 | self.operation as u64;
        // Odd numbers without a pattern; the upper bits of products depend on all of the factors.
        let mixed = count.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ types.wrapping_mul(0xd6e8_feb8_6659_fd93)
            ^ rest.wrapping_mul(0xa076_1d64_78bd_642f);
        mixed >> 32
    }
}

/// A collective call. What is significant at this process has been checked.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    pub communicator: &'a Arc<Communicator>,
    pub operation: Operation,
    /// As in C, with MPI_ROOT and MPI_PROC_NULL on intercommunicators; -1 for an operation without a root.
    pub root: i32,
    /// Input. [`Side::None`] for a broadcast, and where the operation is in place.
    pub send: Side<'a>,
    /// Output; the buffer of a broadcast. Reductions give count and datatype here at every process.
    pub recv: Side<'a>,
    /// For reductions.
    pub op: Option<&'a Arc<Op>>,
    /// MPI_IN_PLACE was given at this process.
    pub in_place: bool,
}

impl<'a> Call<'a> {
    /// A call without root, buffers and operator.
    #[inline]
    pub fn new(communicator: &'a Arc<Communicator>, operation: Operation) -> Call<'a> {
        Call {
            communicator,
            operation,
            root: -1,
            send: Side::None,
            recv: Side::None,
            op: None,
            in_place: false,
        }
    }

    /// Under which its schedule is kept; `None` where that depends on more.
    #[inline]
    pub(super) fn key(&self, on_board: bool) -> Option<Key> {
        let side = |side: &Side<'_>| match side {
            Side::None => Some((0, 0)),
            Side::Even { count, datatype, .. } => Some((*count, datatype.identity())),
            Side::Varied { blocks, .. } if !blocks.may_be_kept() => None,
            Side::Varied { .. } => Some((0, side.datatype().map_or(0, |datatype| datatype.identity()))),
        };
        Some(Key {
            send: side(&self.send)?,
            recv: side(&self.recv)?,
            root: self.root,
            operation: self.operation,
            in_place: self.in_place,
            commutative: self.op.is_none_or(|op| op.is_commutative()),
            on_board,
        })
    }

    /// The blocks that differ, in what is sent and what is received.
    #[inline]
    fn blocks(&self) -> [Option<&'a Blocks<'a>>; 2] {
        [self.send.blocks(), self.recv.blocks()]
    }

    /// What [`Call::has_blocks`] compares later; for most calls nothing.
    pub(super) fn keep_blocks(&self) -> Option<Box<[Option<KeptBlocks>; 2]>> {
        let blocks = self.blocks();
        (blocks.iter().any(Option::is_some)).then(|| Box::new(blocks.map(|side| side.map(Blocks::keep))))
    }

    /// A number that tells calls with one key apart, nearly always.
    pub(super) fn digest(&self) -> u64 {
        self.blocks().iter().flatten().fold(0, |digest, blocks| blocks.digest(digest))
    }

    /// Whether these were its blocks, of which the key says only so much. With one key blocks differ on the same sides in all calls: which, the operation
    /// and the part that this process has in it say.
    #[inline(always)]
    pub(super) fn has_blocks(&self, kept: Option<&[Option<KeptBlocks>; 2]>) -> bool {
        kept.is_none_or(|kept| self.has_all(kept))
    }

    fn has_all(&self, kept: &[Option<KeptBlocks>; 2]) -> bool {
        self.blocks().into_iter().zip(kept).all(|(blocks, kept)| match (blocks, kept) {
            (Some(blocks), Some(kept)) => blocks.are(kept),
            (blocks, kept) => blocks.is_none() && kept.is_none(),
        })
    }

    /// What the schedule depends on, but for blocks that differ.
    pub(super) fn shape(&self, oversubscribed: bool, board: Option<&Board>) -> Shape {
        let communicator = self.communicator;
        Shape {
            operation: self.operation,
            rank: communicator.rank() as u32,
            size: communicator.size() as u32,
            remote_size: if communicator.is_inter() { communicator.remote_size() as u32 } else { 0 },
            root: match self.root {
                MPI_ROOT => Root::Here,
                MPI_PROC_NULL => Root::Elsewhere,
                rank => u32::try_from(rank).map_or(Root::None, Root::Rank),
            },
            send: self.send.part(),
            recv: self.recv.part(),
            in_place: self.in_place,
            commutative: self.op.is_none_or(|op| op.is_commutative()),
            oversubscribed,
            board: board.map_or(0, |board| board.piece_bytes() as u64),
            direct: match board.map(Board::reading) {
                None | Some(Reading::No) => Direct::No,
                Some(Reading::Slow) => Direct::Slow,
                Some(Reading::Fast) => Direct::Fast,
            },
        }
    }

    /// What the executor needs of it.
    #[inline]
    pub(super) fn parts(&self) -> Parts<'_> {
        Parts {
            communicator: self.communicator,
            send: self.send.address(),
            recv: self.recv.address(),
            rest: Rest::Call(self),
        }
    }

    /// The datatype of a span; none for bytes.
    pub(super) fn datatype(&self, kind: Kind) -> Option<&Arc<Datatype>> {
        match kind {
            Kind::Bytes => None,
            Kind::Send => self.send.datatype(),
            Kind::Recv => self.recv.datatype(),
            Kind::SendAt(index) => self.send.datatypes().get(index as usize),
            Kind::RecvAt(index) => self.recv.datatypes().get(index as usize),
        }
    }

    /// The nodes of an intracommunicator with processes on several.
    fn nodes(&self, settings: &Settings) -> Option<&'a Nodes> {
        if settings.nodes.is_empty() || self.communicator.is_inter() {
            return None;
        }
        self.communicator.collective_cache().nodes(|| {
            let group = self.communicator.group();
            let node = |rank| settings.nodes[group.process(rank).0 as usize];
            Nodes::new(&(0..self.communicator.size()).map(node).collect::<Vec<_>>())
        })
    }

    /// What is to be done, and by which algorithm.
    pub(super) fn solve<T>(
        &self,
        shape: Shape,
        process: &Process,
        with: impl FnOnce(&Problem<'_>, &'static Algorithm) -> T,
    ) -> T {
        let settings = process.collectives(self.communicator);
        let elements = self.blocks().map(|blocks| blocks.map_or(Vec::new(), Blocks::elements));
        let vector = |side: usize| Some(self.blocks()[side]?.vector(&elements[side]));
        let around = if self.operation.is_on_neighbors() { self.communicator.neighborhood() } else { None };
        let neighborhood = around.as_ref().map(|around| Neighborhood {
            sources: &around.sources,
            destinations: &around.destinations,
            order: &around.order,
        });
        let (send, recv) = (vector(0), vector(1));
        let problem = Problem { shape, send, recv, neighborhood, nodes: self.nodes(settings), runner: None };
        // What was changed at one process is not known to those of other worlds.
        let changed = process.changeable.overrides();
        let changed = changed.as_deref().unwrap_or(Overrides::NONE);
        let overrides = if self.communicator.is_mixed() { &settings.overrides } else { changed };
        with(&problem, parnass_collectives::select(&problem, overrides))
    }

    /// The schedule of an algorithm.
    pub(super) fn schedule(&self, problem: &Problem<'_>, algorithm: &Algorithm) -> Schedule {
        (algorithm.build)(problem).with_runs(|span| {
            let datatype = match span.kind {
                Kind::Send => self.send.datatype()?,
                Kind::Recv => self.recv.datatype()?,
                Kind::Bytes | Kind::SendAt(_) | Kind::RecvAt(_) => return None,
            };
            let layout = datatype.layout();
            Some((layout.contiguous(span.count)?, span.count * layout.size()))
        })
    }
}
