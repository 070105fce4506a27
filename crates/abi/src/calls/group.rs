//! Bodies of procedures: group.

use super::prelude::*;

/// MPI_Group_compare.
pub fn group_compare(call: &Call, group1: &Arc<Group>, group2: &Arc<Group>, result: Out<i32>) -> Result<()> {
    let _ = (group1, group2, result);
    Err(call.missing())
}

/// MPI_Group_difference.
pub fn group_difference(
    call: &Call,
    group1: &Arc<Group>,
    group2: &Arc<Group>,
    newgroup: OutHandle<Group>,
) -> Result<()> {
    let _ = (group1, group2, newgroup);
    Err(call.missing())
}

/// MPI_Group_excl.
pub fn group_excl(
    call: &Call,
    group: &Arc<Group>,
    n: i64,
    ranks: &[i32],
    newgroup: OutHandle<Group>,
) -> Result<()> {
    let _ = (group, n, ranks, newgroup);
    Err(call.missing())
}

/// MPI_Group_free.
pub fn group_free(call: &Call, group: InOutHandle<Group>) -> Result<()> {
    let _ = group;
    Err(call.missing())
}

/// MPI_Group_incl.
pub fn group_incl(
    call: &Call,
    group: &Arc<Group>,
    n: i64,
    ranks: &[i32],
    newgroup: OutHandle<Group>,
) -> Result<()> {
    let _ = (group, n, ranks, newgroup);
    Err(call.missing())
}

/// MPI_Group_intersection.
pub fn group_intersection(
    call: &Call,
    group1: &Arc<Group>,
    group2: &Arc<Group>,
    newgroup: OutHandle<Group>,
) -> Result<()> {
    let _ = (group1, group2, newgroup);
    Err(call.missing())
}

/// MPI_Group_range_excl.
pub fn group_range_excl(
    call: &Call,
    group: &Arc<Group>,
    n: i64,
    ranges: &[[i32; 3]],
    newgroup: OutHandle<Group>,
) -> Result<()> {
    let _ = (group, n, ranges, newgroup);
    Err(call.missing())
}

/// MPI_Group_range_incl.
pub fn group_range_incl(
    call: &Call,
    group: &Arc<Group>,
    n: i64,
    ranges: &[[i32; 3]],
    newgroup: OutHandle<Group>,
) -> Result<()> {
    let _ = (group, n, ranges, newgroup);
    Err(call.missing())
}

/// MPI_Group_rank.
pub fn group_rank(call: &Call, group: &Arc<Group>, rank: Out<i32>) -> Result<()> {
    let _ = (group, rank);
    Err(call.missing())
}

/// MPI_Group_size.
pub fn group_size(call: &Call, group: &Arc<Group>, size: Out<i32>) -> Result<()> {
    let _ = (group, size);
    Err(call.missing())
}

/// MPI_Group_translate_ranks.
pub fn group_translate_ranks(
    call: &Call,
    group1: &Arc<Group>,
    n: i64,
    ranks1: &[i32],
    group2: &Arc<Group>,
    ranks2: &mut OutSlice<'_, i32>,
) -> Result<()> {
    let _ = (group1, n, ranks1, group2, ranks2);
    Err(call.missing())
}

/// MPI_Group_union.
pub fn group_union(
    call: &Call,
    group1: &Arc<Group>,
    group2: &Arc<Group>,
    newgroup: OutHandle<Group>,
) -> Result<()> {
    let _ = (group1, group2, newgroup);
    Err(call.missing())
}
