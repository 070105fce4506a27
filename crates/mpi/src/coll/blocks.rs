//! Blocks that differ, as a call names them: its arrays are read where the program has them, and nothing is copied of them unless
//! a schedule is to be kept.

use super::call::element_of;
use crate::datatype::Datatype;
use parnass_collectives::{Element, Ints, Vector};
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

    /// A number that tells blocks apart, nearly always, that stand behind others with a number.
    pub(super) fn digest(&self, before: u64) -> u64 {
        let numbers = self.counts.iter().chain(self.displacements.iter());
        let numbers = numbers.chain(self.each().iter().map(|datatype| datatype.identity() as i64));
        // An odd number without a pattern.
        numbers.fold(before, |digest, number| {
            (digest.rotate_left(5) ^ number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        })
    }

    /// Where each has its own datatype: what a schedule is to know of these.
    pub(super) fn elements(&self) -> Vec<Element> {
        self.each().iter().map(|datatype| element_of(datatype, 1)).collect()
    }

    /// What a schedule is made for.
    pub(super) fn vector<'a>(&'a self, elements: &'a [Element]) -> Vector<'a> {
        Vector { counts: self.counts, displacements: self.displacements, unit: self.unit, elements }
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
