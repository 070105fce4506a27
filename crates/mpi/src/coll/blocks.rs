//! Blocks that differ, as a call names them: its arrays are read where the program has them, and nothing is copied of them unless
//! a schedule is to be made.

use super::call::element_of;
use crate::datatype::Datatype;
use crate::ints::Ints;
use parnass_collectives::{Element, Vector};
use std::sync::Arc;

/// Blocks that differ, one for each process of the group that is talked to, or for each neighbour.
#[derive(Clone, Debug)]
pub struct Blocks<'a> {
    /// Elements of each; none is negative.
    pub counts: Ints<'a>,
    /// Where each begins. Empty for a reduce-scatter, whose blocks follow one another.
    pub displacements: Ints<'a>,
    /// Bytes of a displacement.
    pub unit: i64,
    pub datatypes: BlockTypes<'a>,
}

/// The datatypes of blocks.
#[derive(Clone, Debug)]
pub enum BlockTypes<'a> {
    Same(&'a Arc<Datatype>),
    /// One for each block.
    Each(Vec<Arc<Datatype>>),
}

impl Blocks<'_> {
    /// The schedules of calls with more are not kept.
    const MOST_KEPT: usize = 1024;

    /// Whether the schedule of a call with these may be kept.
    #[inline]
    pub(super) fn may_be_kept(&self) -> bool {
        self.counts.len() <= Blocks::MOST_KEPT
    }

    /// The datatypes, where each has its own.
    #[inline]
    pub(super) fn each(&self) -> &[Arc<Datatype>] {
        match &self.datatypes {
            BlockTypes::Same(_) => &[],
            BlockTypes::Each(datatypes) => datatypes,
        }
    }

    pub(super) fn keep(&self) -> KeptBlocks {
        KeptBlocks {
            counts: self.counts.to_vec(),
            displacements: self.displacements.to_vec(),
            datatypes: self.each().iter().map(|datatype| datatype.identity()).collect(),
        }
    }

    /// Whether they are those that were kept with one datatype of all blocks, or with one for each.
    #[inline]
    pub(super) fn are(&self, kept: &KeptBlocks) -> bool {
        let identities = self.each().iter().map(|datatype| datatype.identity());
        self.counts.are(&kept.counts)
            && self.displacements.are(&kept.displacements)
            && identities.eq(kept.datatypes.iter().copied())
    }

    /// What a schedule is made for.
    pub(super) fn read(&self) -> Read {
        Read {
            counts: self.counts.iter().map(|count| count as u64).collect(),
            offsets: self.displacements.iter().map(|place| place.wrapping_mul(self.unit)).collect(),
            elements: self.each().iter().map(|datatype| element_of(datatype, 1)).collect(),
        }
    }
}

/// Blocks that differ, as they are kept beside the schedule that was made for them.
#[derive(Debug)]
pub(super) struct KeptBlocks {
    counts: Vec<i64>,
    displacements: Vec<i64>,
    /// Identities; empty if all are of one datatype, which stands in the key and says the unit of the displacements.
    datatypes: Vec<u64>,
}

/// Blocks that differ, while a schedule is made for them.
#[derive(Debug)]
pub(super) struct Read {
    counts: Vec<u64>,
    offsets: Vec<i64>,
    elements: Vec<Element>,
}

impl Read {
    pub(super) fn vector(&self) -> Vector<'_> {
        Vector { counts: &self.counts, offsets: &self.offsets, elements: &self.elements }
    }
}
