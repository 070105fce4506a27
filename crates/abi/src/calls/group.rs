//! Bodies of procedures: group.

use super::prelude::*;
use parnass_mpi::group::{Comparison, RankRange};

/// The standard's number for a comparison.
pub(super) fn comparison_code(comparison: Comparison) -> i32 {
    match comparison {
        Comparison::Identical => MPI_IDENT,
        Comparison::Congruent => MPI_CONGRUENT,
        Comparison::Similar => MPI_SIMILAR,
        Comparison::Unequal => MPI_UNEQUAL,
    }
}

/// Hands a new group to the program; an empty one is MPI_GROUP_EMPTY.
fn give(group: Group, newgroup: &OutHandle<Group>) -> Result<()> {
    if group.is_empty() {
        newgroup.set_raw(MPI_GROUP_EMPTY);
        return Ok(());
    }
    newgroup.set(Arc::new(group))
}

fn rank_ranges(ranges: &[[i32; 3]]) -> Vec<RankRange> {
    ranges.iter().map(|&[first, last, stride]| RankRange { first, last, stride }).collect()
}

/// MPI_Group_compare.
pub fn group_compare(_call: &Call, group1: &Arc<Group>, group2: &Arc<Group>, result: Out<i32>) -> Result<()> {
    result.set(comparison_code(group1.compare(group2)));
    Ok(())
}

/// MPI_Group_difference.
pub fn group_difference(
    _call: &Call,
    group1: &Arc<Group>,
    group2: &Arc<Group>,
    newgroup: OutHandle<Group>,
) -> Result<()> {
    give(group1.difference(group2), &newgroup)
}

/// MPI_Group_excl.
pub fn group_excl(_call: &Call, group: &Arc<Group>, ranks: &[i32], newgroup: OutHandle<Group>) -> Result<()> {
    give(group.exclude(ranks)?, &newgroup)
}

/// MPI_Group_free.
pub fn group_free(_call: &Call, group: InOutHandle<Group>) -> Result<()> {
    // MPI_GROUP_EMPTY may be freed: a group operation may have returned it (MPI 5.0, section 7.3.3).
    group.release();
    Ok(())
}

/// MPI_Group_incl.
pub fn group_incl(_call: &Call, group: &Arc<Group>, ranks: &[i32], newgroup: OutHandle<Group>) -> Result<()> {
    give(group.include(ranks)?, &newgroup)
}

/// MPI_Group_intersection.
pub fn group_intersection(
    _call: &Call,
    group1: &Arc<Group>,
    group2: &Arc<Group>,
    newgroup: OutHandle<Group>,
) -> Result<()> {
    give(group1.intersection(group2), &newgroup)
}

/// MPI_Group_range_excl.
pub fn group_range_excl(
    _call: &Call,
    group: &Arc<Group>,
    ranges: &[[i32; 3]],
    newgroup: OutHandle<Group>,
) -> Result<()> {
    give(group.range_exclude(&rank_ranges(ranges))?, &newgroup)
}

/// MPI_Group_range_incl.
pub fn group_range_incl(
    _call: &Call,
    group: &Arc<Group>,
    ranges: &[[i32; 3]],
    newgroup: OutHandle<Group>,
) -> Result<()> {
    give(group.range_include(&rank_ranges(ranges))?, &newgroup)
}

/// MPI_Group_rank.
pub fn group_rank(call: &Call, group: &Arc<Group>, rank: Out<i32>) -> Result<()> {
    rank.set(group.rank_of(call.process().me()).unwrap_or(MPI_UNDEFINED));
    Ok(())
}

/// MPI_Group_size.
pub fn group_size(_call: &Call, group: &Arc<Group>, size: Out<i32>) -> Result<()> {
    size.set(group.size());
    Ok(())
}

/// MPI_Group_translate_ranks.
pub fn group_translate_ranks(
    _call: &Call,
    group1: &Arc<Group>,
    ranks1: &[i32],
    group2: &Arc<Group>,
    ranks2: &mut OutSlice<'_, i32>,
) -> Result<()> {
    for (index, &rank) in ranks1.iter().enumerate() {
        ranks2.set(index, group1.translate(rank, group2)?);
    }
    Ok(())
}

/// MPI_Group_union.
pub fn group_union(
    _call: &Call,
    group1: &Arc<Group>,
    group2: &Arc<Group>,
    newgroup: OutHandle<Group>,
) -> Result<()> {
    give(group1.union(group2), &newgroup)
}
