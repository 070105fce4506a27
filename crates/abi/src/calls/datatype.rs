//! Bodies of procedures: datatype.

use super::prelude::*;

/// MPI_Get_address.
pub fn get_address(call: &Call, location: Address, address: Out<i64>) -> Result<()> {
    let _ = (location, address);
    Err(call.missing())
}

/// MPI_Type_commit.
pub fn type_commit(call: &Call, datatype: InOutHandle<Datatype>) -> Result<()> {
    let _ = datatype;
    Err(call.missing())
}

/// MPI_Type_contiguous.
pub fn type_contiguous(
    call: &Call,
    count: i64,
    oldtype: &Arc<Datatype>,
    newtype: OutHandle<Datatype>,
) -> Result<()> {
    let _ = (count, oldtype, newtype);
    Err(call.missing())
}

/// MPI_Type_create_darray.
pub fn type_create_darray(
    call: &Call,
    size: i32,
    rank: i32,
    ndims: i64,
    array_of_gsizes: Ints<'_>,
    array_of_distribs: &[i32],
    array_of_dargs: &[i32],
    array_of_psizes: &[i32],
    order: i32,
    oldtype: &Arc<Datatype>,
    newtype: OutHandle<Datatype>,
) -> Result<()> {
    let _ = (
        size,
        rank,
        ndims,
        array_of_gsizes,
        array_of_distribs,
        array_of_dargs,
        array_of_psizes,
        order,
        oldtype,
        newtype,
    );
    Err(call.missing())
}

/// MPI_Type_create_f90_complex.
pub fn type_create_f90_complex(call: &Call, p: i32, r: i32, newtype: OutHandle<Datatype>) -> Result<()> {
    let _ = (p, r, newtype);
    Err(call.missing())
}

/// MPI_Type_create_f90_integer.
pub fn type_create_f90_integer(call: &Call, r: i32, newtype: OutHandle<Datatype>) -> Result<()> {
    let _ = (r, newtype);
    Err(call.missing())
}

/// MPI_Type_create_f90_real.
pub fn type_create_f90_real(call: &Call, p: i32, r: i32, newtype: OutHandle<Datatype>) -> Result<()> {
    let _ = (p, r, newtype);
    Err(call.missing())
}

/// MPI_Type_create_hindexed.
pub fn type_create_hindexed(
    call: &Call,
    count: i64,
    array_of_blocklengths: Ints<'_>,
    array_of_displacements: Ints<'_>,
    oldtype: &Arc<Datatype>,
    newtype: OutHandle<Datatype>,
) -> Result<()> {
    let _ = (count, array_of_blocklengths, array_of_displacements, oldtype, newtype);
    Err(call.missing())
}

/// MPI_Type_create_hindexed_block.
pub fn type_create_hindexed_block(
    call: &Call,
    count: i64,
    blocklength: i64,
    array_of_displacements: Ints<'_>,
    oldtype: &Arc<Datatype>,
    newtype: OutHandle<Datatype>,
) -> Result<()> {
    let _ = (count, blocklength, array_of_displacements, oldtype, newtype);
    Err(call.missing())
}

/// MPI_Type_create_hvector.
pub fn type_create_hvector(
    call: &Call,
    count: i64,
    blocklength: i64,
    stride: i64,
    oldtype: &Arc<Datatype>,
    newtype: OutHandle<Datatype>,
) -> Result<()> {
    let _ = (count, blocklength, stride, oldtype, newtype);
    Err(call.missing())
}

/// MPI_Type_create_indexed_block.
pub fn type_create_indexed_block(
    call: &Call,
    count: i64,
    blocklength: i64,
    array_of_displacements: Ints<'_>,
    oldtype: &Arc<Datatype>,
    newtype: OutHandle<Datatype>,
) -> Result<()> {
    let _ = (count, blocklength, array_of_displacements, oldtype, newtype);
    Err(call.missing())
}

/// MPI_Type_create_resized.
pub fn type_create_resized(
    call: &Call,
    oldtype: &Arc<Datatype>,
    lb: i64,
    extent: i64,
    newtype: OutHandle<Datatype>,
) -> Result<()> {
    let _ = (oldtype, lb, extent, newtype);
    Err(call.missing())
}

/// MPI_Type_create_struct.
pub fn type_create_struct(
    call: &Call,
    count: i64,
    array_of_blocklengths: Ints<'_>,
    array_of_displacements: Ints<'_>,
    array_of_types: &[Handle<Datatype>],
    newtype: OutHandle<Datatype>,
) -> Result<()> {
    let _ = (count, array_of_blocklengths, array_of_displacements, array_of_types, newtype);
    Err(call.missing())
}

/// MPI_Type_create_subarray.
pub fn type_create_subarray(
    call: &Call,
    ndims: i64,
    array_of_sizes: Ints<'_>,
    array_of_subsizes: Ints<'_>,
    array_of_starts: Ints<'_>,
    order: i32,
    oldtype: &Arc<Datatype>,
    newtype: OutHandle<Datatype>,
) -> Result<()> {
    let _ = (ndims, array_of_sizes, array_of_subsizes, array_of_starts, order, oldtype, newtype);
    Err(call.missing())
}

/// MPI_Type_dup.
pub fn type_dup(call: &Call, oldtype: &Arc<Datatype>, newtype: OutHandle<Datatype>) -> Result<()> {
    let _ = (oldtype, newtype);
    Err(call.missing())
}

/// MPI_Type_free.
pub fn type_free(call: &Call, datatype: InOutHandle<Datatype>) -> Result<()> {
    let _ = datatype;
    Err(call.missing())
}

/// MPI_Type_get_contents.
pub fn type_get_contents(
    call: &Call,
    datatype: &Arc<Datatype>,
    max_integers: i64,
    max_addresses: i64,
    max_datatypes: i64,
    array_of_integers: &mut OutSlice<'_, i32>,
    array_of_addresses: &mut OutSlice<'_, i64>,
    array_of_datatypes: &mut OutHandles<'_, Datatype>,
) -> Result<()> {
    let _ = (
        datatype,
        max_integers,
        max_addresses,
        max_datatypes,
        array_of_integers,
        array_of_addresses,
        array_of_datatypes,
    );
    Err(call.missing())
}

/// MPI_Type_get_contents_c.
pub fn type_get_contents_large(
    call: &Call,
    datatype: &Arc<Datatype>,
    max_integers: i64,
    max_addresses: i64,
    max_large_counts: i64,
    max_datatypes: i64,
    array_of_integers: &mut OutSlice<'_, i32>,
    array_of_addresses: &mut OutSlice<'_, i64>,
    array_of_large_counts: &mut OutSlice<'_, i64>,
    array_of_datatypes: &mut OutHandles<'_, Datatype>,
) -> Result<()> {
    let _ = (
        datatype,
        max_integers,
        max_addresses,
        max_large_counts,
        max_datatypes,
        array_of_integers,
        array_of_addresses,
        array_of_large_counts,
        array_of_datatypes,
    );
    Err(call.missing())
}

/// MPI_Type_get_envelope.
pub fn type_get_envelope(
    call: &Call,
    datatype: &Arc<Datatype>,
    num_integers: IntOut,
    num_addresses: IntOut,
    num_datatypes: IntOut,
    combiner: Out<i32>,
) -> Result<()> {
    let _ = (datatype, num_integers, num_addresses, num_datatypes, combiner);
    Err(call.missing())
}

/// MPI_Type_get_envelope_c.
pub fn type_get_envelope_large(
    call: &Call,
    datatype: &Arc<Datatype>,
    num_integers: IntOut,
    num_addresses: IntOut,
    num_large_counts: IntOut,
    num_datatypes: IntOut,
    combiner: Out<i32>,
) -> Result<()> {
    let _ = (datatype, num_integers, num_addresses, num_large_counts, num_datatypes, combiner);
    Err(call.missing())
}

/// MPI_Type_get_extent.
pub fn type_get_extent(call: &Call, datatype: &Arc<Datatype>, lb: Out<i64>, extent: Out<i64>) -> Result<()> {
    let _ = (datatype, lb, extent);
    Err(call.missing())
}

/// MPI_Type_get_extent_x.
pub fn type_get_extent_x(
    call: &Call,
    datatype: &Arc<Datatype>,
    lb: Out<i64>,
    extent: Out<i64>,
) -> Result<()> {
    let _ = (datatype, lb, extent);
    Err(call.missing())
}

/// MPI_Type_get_name.
pub fn type_get_name(call: &Call, datatype: &Arc<Datatype>, type_name: StringOut) -> Result<()> {
    let _ = (datatype, type_name);
    Err(call.missing())
}

/// MPI_Type_get_true_extent.
pub fn type_get_true_extent(
    call: &Call,
    datatype: &Arc<Datatype>,
    true_lb: Out<i64>,
    true_extent: Out<i64>,
) -> Result<()> {
    let _ = (datatype, true_lb, true_extent);
    Err(call.missing())
}

/// MPI_Type_get_true_extent_x.
pub fn type_get_true_extent_x(
    call: &Call,
    datatype: &Arc<Datatype>,
    true_lb: Out<i64>,
    true_extent: Out<i64>,
) -> Result<()> {
    let _ = (datatype, true_lb, true_extent);
    Err(call.missing())
}

/// MPI_Type_get_value_index.
pub fn type_get_value_index(
    call: &Call,
    value_type: &Arc<Datatype>,
    index_type: &Arc<Datatype>,
    pair_type: OutHandle<Datatype>,
) -> Result<()> {
    let _ = (value_type, index_type, pair_type);
    Err(call.missing())
}

/// MPI_Type_indexed.
pub fn type_indexed(
    call: &Call,
    count: i64,
    array_of_blocklengths: Ints<'_>,
    array_of_displacements: Ints<'_>,
    oldtype: &Arc<Datatype>,
    newtype: OutHandle<Datatype>,
) -> Result<()> {
    let _ = (count, array_of_blocklengths, array_of_displacements, oldtype, newtype);
    Err(call.missing())
}

/// MPI_Type_match_size.
pub fn type_match_size(call: &Call, typeclass: i32, size: i32, datatype: OutHandle<Datatype>) -> Result<()> {
    let _ = (typeclass, size, datatype);
    Err(call.missing())
}

/// MPI_Type_set_name.
pub fn type_set_name(call: &Call, datatype: &Arc<Datatype>, type_name: &[u8]) -> Result<()> {
    let _ = (datatype, type_name);
    Err(call.missing())
}

/// MPI_Type_size.
pub fn type_size(call: &Call, datatype: &Arc<Datatype>, size: IntOut) -> Result<()> {
    let _ = (datatype, size);
    Err(call.missing())
}

/// MPI_Type_size_x.
pub fn type_size_x(call: &Call, datatype: &Arc<Datatype>, size: Out<i64>) -> Result<()> {
    let _ = (datatype, size);
    Err(call.missing())
}

/// MPI_Type_vector.
pub fn type_vector(
    call: &Call,
    count: i64,
    blocklength: i64,
    stride: i64,
    oldtype: &Arc<Datatype>,
    newtype: OutHandle<Datatype>,
) -> Result<()> {
    let _ = (count, blocklength, stride, oldtype, newtype);
    Err(call.missing())
}
