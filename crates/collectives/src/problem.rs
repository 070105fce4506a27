//! What a schedule is asked for.

use crate::ints::Ints;
use crate::nodes::Nodes;
use crate::schedule::{Element, Kind, Region, Runner, Span};

/// A collective operation of the standard (MPI 5.0, chapter 6, and section 8.6 for those on neighbourhoods).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    Barrier,
    Bcast,
    Gather,
    Gatherv,
    Scatter,
    Scatterv,
    Allgather,
    Allgatherv,
    Alltoall,
    Alltoallv,
    Alltoallw,
    Reduce,
    Allreduce,
    ReduceScatter,
    ReduceScatterBlock,
    Scan,
    Exscan,
    NeighborAllgather,
    NeighborAllgatherv,
    NeighborAlltoall,
    NeighborAlltoallv,
    NeighborAlltoallw,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 22] = [
        Operation::Barrier,
        Operation::Bcast,
        Operation::Gather,
        Operation::Gatherv,
        Operation::Scatter,
        Operation::Scatterv,
        Operation::Allgather,
        Operation::Allgatherv,
        Operation::Alltoall,
        Operation::Alltoallv,
        Operation::Alltoallw,
        Operation::Reduce,
        Operation::Allreduce,
        Operation::ReduceScatter,
        Operation::ReduceScatterBlock,
        Operation::Scan,
        Operation::Exscan,
        Operation::NeighborAllgather,
        Operation::NeighborAllgatherv,
        Operation::NeighborAlltoall,
        Operation::NeighborAlltoallv,
        Operation::NeighborAlltoallw,
    ];

    /// Its name in lower case, as it stands in the table and in overrides.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Barrier => "barrier",
            Operation::Bcast => "bcast",
            Operation::Gather => "gather",
            Operation::Gatherv => "gatherv",
            Operation::Scatter => "scatter",
            Operation::Scatterv => "scatterv",
            Operation::Allgather => "allgather",
            Operation::Allgatherv => "allgatherv",
            Operation::Alltoall => "alltoall",
            Operation::Alltoallv => "alltoallv",
            Operation::Alltoallw => "alltoallw",
            Operation::Reduce => "reduce",
            Operation::Allreduce => "allreduce",
            Operation::ReduceScatter => "reduce_scatter",
            Operation::ReduceScatterBlock => "reduce_scatter_block",
            Operation::Scan => "scan",
            Operation::Exscan => "exscan",
            Operation::NeighborAllgather => "neighbor_allgather",
            Operation::NeighborAllgatherv => "neighbor_allgatherv",
            Operation::NeighborAlltoall => "neighbor_alltoall",
            Operation::NeighborAlltoallv => "neighbor_alltoallv",
            Operation::NeighborAlltoallw => "neighbor_alltoallw",
        }
    }

    /// Whether data goes along the edges of a topology only.
    pub fn is_on_neighbors(self) -> bool {
        matches!(
            self,
            Operation::NeighborAllgather
                | Operation::NeighborAllgatherv
                | Operation::NeighborAlltoall
                | Operation::NeighborAlltoallv
                | Operation::NeighborAlltoallw
        )
    }
}

/// Where the root is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Root {
    /// The operation has none.
    None,
    /// This rank: of the own group, or of the other one on an intercommunicator.
    Rank(u32),
    /// This process, on an intercommunicator (MPI_ROOT).
    Here,
    /// Another process of this group, on an intercommunicator (MPI_PROC_NULL).
    Elsewhere,
}

/// Elements of one type; for operations on blocks, one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Part {
    pub count: u64,
    pub element: Element,
}

impl Part {
    /// Bytes of data.
    pub fn bytes(&self) -> u64 {
        self.count * self.element.size
    }
}

/// All that the schedule of one process depends on, where all blocks are equal: the key of a cache of schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    pub operation: Operation,
    /// Of this process in its group.
    pub rank: u32,
    /// Of its group.
    pub size: u32,
    /// Of the other group; 0 on an intracommunicator.
    pub remote_size: u32,
    pub root: Root,
    /// What this process gives. Not looked at where the operation is in place. Reductions and broadcasts use
    /// `recv` only: in a reduction it holds count and type of the operands at every process (for a
    /// reduce-scatter, of one block).
    pub send: Part,
    /// What this process gets.
    pub recv: Part,
    /// The input lies in the receive buffer (MPI_IN_PLACE at this process).
    pub in_place: bool,
    /// The operator may be applied in any order. The same at every process.
    pub commutative: bool,
    /// There are more processes than cores. The same at every process.
    pub oversubscribed: bool,
    /// Bytes that a process can put on the board of the communicator in one round; 0 where there is none. The same at
    /// every process.
    pub board: u64,
    /// Whether every process of the communicator reads the memory of every other. The same at every process.
    pub direct: Direct,
}

/// Whether the processes of a communicator read each other's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direct {
    /// Not all of them.
    No,
    /// All of them, but two copies take less time.
    Slow,
    Fast,
}

impl Shape {
    /// Bytes that this process gets as others have them, where all blocks are equal; 0 for operations that work on what they get.
    #[inline]
    pub fn moved_bytes(&self) -> u64 {
        let blocks = match self.operation {
            Operation::Gather | Operation::Allgather | Operation::Alltoall => self.size.max(self.remote_size),
            Operation::Bcast | Operation::Scatter => 1,
            _ => 0,
        };
        self.recv.bytes().saturating_mul(blocks.into())
    }
}

/// The edges of one process in the topology of its communicator. A rank may stand there several times; `None` is a
/// neighbour that does not exist, whose block is left alone.
#[derive(Clone, Copy, Debug)]
pub struct Neighborhood<'a> {
    /// Where each block of the receive buffer comes from.
    pub sources: &'a [Option<u32>],
    /// Where each block of the send buffer goes.
    pub destinations: &'a [Option<u32>],
    /// The blocks of the receive buffer, ordered so that of several edges from one process to another those that are named
    /// first there come first.
    pub order: &'a [u32],
}

/// Blocks that differ in length, place and perhaps type. One entry per process of the group that is talked to, or per
/// neighbour.
#[derive(Clone, Copy, Debug)]
pub struct Vector<'a> {
    /// Elements of each; none is negative.
    pub counts: Ints<'a>,
    /// From the beginning of the buffer. Empty for [`Operation::ReduceScatter`], whose blocks follow
    /// one another.
    pub displacements: Ints<'a>,
    /// Bytes of a displacement.
    pub unit: i64,
    /// One for each block, or empty if all have the type of the [`Shape`].
    pub elements: &'a [Element],
}

impl Vector<'_> {
    #[inline]
    fn count(&self, index: usize) -> u64 {
        self.counts.get(index) as u64
    }
}

/// A collective operation as one process sees it.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    pub shape: Shape,
    /// Where blocks of the send buffer differ.
    pub send: Option<Vector<'a>>,
    /// Where blocks of the receive buffer differ.
    pub recv: Option<Vector<'a>>,
    /// For the operations on neighbours.
    pub neighborhood: Option<Neighborhood<'a>>,
    /// Where the processes are on several nodes.
    pub nodes: Option<&'a Nodes>,
    /// Who takes the steps on a board while they are written; without one they are kept in the schedule.
    pub runner: Option<&'a dyn Runner>,
}

impl std::ops::Deref for Problem<'_> {
    type Target = Shape;

    fn deref(&self) -> &Shape {
        &self.shape
    }
}

impl<'a> Problem<'a> {
    /// One whose blocks are all equal.
    pub fn even(shape: Shape) -> Problem<'a> {
        Problem { shape, send: None, recv: None, neighborhood: None, nodes: None, runner: None }
    }

    /// On an intercommunicator.
    pub fn is_inter(&self) -> bool {
        self.remote_size > 0
    }

    /// The number of processes that blocks come from and go to.
    pub fn partners(&self) -> u32 {
        if self.is_inter() { self.remote_size } else { self.size }
    }

    /// The rank of the root in this group.
    ///
    /// # Panics
    /// If the operation has no root there.
    pub fn root_rank(&self) -> u32 {
        match self.root {
            Root::Rank(rank) => rank,
            other => panic!("the root is {other:?}, not a rank"),
        }
    }

    /// Who its neighbours are.
    ///
    /// # Panics
    /// If the operation is not one on neighbours.
    pub fn neighbors(&self) -> Neighborhood<'a> {
        self.neighborhood.expect("an operation on neighbours is given them")
    }

    /// Whether this process is the root.
    pub fn is_root(&self) -> bool {
        match self.root {
            Root::Rank(rank) => !self.is_inter() && rank == self.rank,
            Root::Here => true,
            Root::None | Root::Elsewhere => false,
        }
    }

    /// Block `index` of the send buffer.
    pub fn send_block(&self, index: u32) -> Span {
        block(Region::Send, &self.shape.send, self.send.as_ref(), index)
    }

    /// Block `index` of the receive buffer.
    pub fn recv_block(&self, index: u32) -> Span {
        block(Region::Recv, &self.shape.recv, self.recv.as_ref(), index)
    }

    /// Bytes of data in block `index` of the receive buffer.
    pub fn recv_block_bytes(&self, index: u32) -> u64 {
        block_bytes(&self.shape.recv, self.recv.as_ref(), index)
    }

    /// Bytes of data in block `index` of the send buffer.
    pub fn send_block_bytes(&self, index: u32) -> u64 {
        block_bytes(&self.shape.send, self.send.as_ref(), index)
    }

    /// `number` equal blocks of the receive buffer from block `first` on.
    pub fn recv_blocks(&self, first: u32, number: u32) -> Span {
        debug_assert!(self.recv.is_none());
        Span { count: self.shape.recv.count * u64::from(number), ..self.recv_block(first) }
    }

    /// `number` equal blocks of the send buffer from block `first` on.
    pub fn send_blocks(&self, first: u32, number: u32) -> Span {
        debug_assert!(self.send.is_none());
        Span { count: self.shape.send.count * u64::from(number), ..self.send_block(first) }
    }

    /// All that this process contributes, where that is one block: to a gather or an allgather.
    pub fn contribution(&self) -> Span {
        if self.in_place {
            self.recv_block(self.rank)
        } else {
            Span { region: Region::Send, kind: Kind::Send, offset: 0, count: self.shape.send.count }
        }
    }

    /// All that this process gets, where that is one block: from a scatter.
    pub fn share(&self) -> Span {
        Span { region: Region::Recv, kind: Kind::Recv, offset: 0, count: self.shape.recv.count }
    }

    /// The operands of a reduction at this process.
    pub fn operands(&self) -> Span {
        let region = if self.in_place { Region::Recv } else { Region::Send };
        Span { region, kind: Kind::Recv, offset: 0, count: self.operand_count() }
    }

    /// The result of a reduction that every receiver gets whole.
    pub fn result(&self) -> Span {
        Span { region: Region::Recv, kind: Kind::Recv, offset: 0, count: self.shape.recv.count }
    }

    /// The number of elements that each process brings to a reduction.
    pub fn operand_count(&self) -> u64 {
        match self.operation {
            Operation::ReduceScatterBlock => self.shape.recv.count * u64::from(self.size),
            Operation::ReduceScatter => {
                self.recv.map_or(0, |vector| vector.counts.iter().sum::<i64>() as u64)
            }
            _ => self.shape.recv.count,
        }
    }

    /// Where block `index` begins among the operands of a reduce-scatter and how long it is, in elements.
    pub fn operand_block(&self, index: u32) -> (u64, u64) {
        match self.recv {
            Some(vector) => {
                let index = index as usize;
                ((0..index).map(|before| vector.count(before)).sum(), vector.count(index))
            }
            None => (u64::from(index) * self.shape.recv.count, self.shape.recv.count),
        }
    }

    /// The type of a reduction.
    pub fn element(&self) -> &Element {
        &self.shape.recv.element
    }

    /// How much data there is, for the choice of an algorithm: the same number at every process. For operations
    /// on equal blocks, of one block; where no process knows all lengths, 0.
    pub fn bytes(&self) -> u64 {
        let recv = &self.shape.recv;
        match self.operation {
            Operation::Barrier
            | Operation::Gatherv
            | Operation::Scatterv
            | Operation::Alltoallv
            | Operation::Alltoallw
            | Operation::NeighborAllgather
            | Operation::NeighborAllgatherv
            | Operation::NeighborAlltoall
            | Operation::NeighborAlltoallv
            | Operation::NeighborAlltoallw => 0,
            Operation::Gather if !self.is_root() => self.shape.send.bytes(),
            Operation::Scatter if self.is_root() => self.shape.send.bytes(),
            Operation::Allgatherv => (0..self.partners()).map(|index| self.recv_block_bytes(index)).sum(),
            Operation::ReduceScatter | Operation::ReduceScatterBlock => {
                self.operand_count() * recv.element.size
            }
            _ => recv.bytes(),
        }
    }
}

fn block(region: Region, part: &Part, vector: Option<&Vector<'_>>, index: u32) -> Span {
    let (plain, typed): (Kind, fn(u32) -> Kind) = match region {
        Region::Send => (Kind::Send, Kind::SendAt),
        _ => (Kind::Recv, Kind::RecvAt),
    };
    match vector {
        None => {
            let offset = i64::from(index) * part.count as i64 * part.element.extent;
            Span { region, kind: plain, offset, count: part.count }
        }
        Some(vector) => Span {
            region,
            kind: if vector.elements.is_empty() { plain } else { typed(index) },
            offset: vector.displacements.get(index as usize).wrapping_mul(vector.unit),
            count: vector.count(index as usize),
        },
    }
}

fn block_bytes(part: &Part, vector: Option<&Vector<'_>>, index: u32) -> u64 {
    match vector {
        None => part.bytes(),
        Some(vector) => {
            let element = vector.elements.get(index as usize).unwrap_or(&part.element);
            vector.count(index as usize) * element.size
        }
    }
}
