//! Bodies of procedures: datatypes (MPI 5.0, chapter 5).

use super::prelude::*;
use parnass_mpi::datatype::{
    CountForm, DistributedDimension, ParameterisedDatatypes, Recipe, match_size, value_index,
};
use std::sync::LazyLock;

/// The parameterised datatypes that the program has asked for. They live as long as the predefined ones.
static PARAMETERISED: LazyLock<ParameterisedDatatypes> = LazyLock::new(ParameterisedDatatypes::default);

/// Which form of a constructor the program has called.
fn form(call: &Call) -> CountForm {
    if call.name().ends_with("_c") { CountForm::Large } else { CountForm::Int }
}

/// The recipe of a datatype that was not made by a large-count constructor: the int forms cannot tell of those.
fn small_recipe(datatype: &Datatype) -> Result<&Recipe> {
    let recipe = datatype.recipe();
    if recipe.large_counts.is_empty() {
        return Ok(recipe);
    }
    Err(Error::new(
        MPI_ERR_TYPE,
        format!(
            "the datatype {} was made by a large-count constructor; call the large-count form of this procedure (name \
             ending in _c)",
            datatype.description()
        ),
    ))
}

/// Checks that the arrays for the contents are large enough, and that there are contents.
fn require_contents(datatype: &Datatype, rooms: &[(&str, i64, usize)]) -> Result<()> {
    if datatype.recipe().combiner == MPI_COMBINER_NAMED {
        return Err(Error::new(
            MPI_ERR_TYPE,
            format!(
                "the datatype {} is predefined and has no contents; ask MPI_Type_get_envelope for the combiner first",
                datatype.description()
            ),
        ));
    }
    for &(name, room, needed) in rooms {
        if room < needed as i64 {
            return Err(Error::new(
                MPI_ERR_ARG,
                format!(
                    "{name} is {room}, but there are {needed}; ask MPI_Type_get_envelope for the numbers first"
                ),
            ));
        }
    }
    Ok(())
}

/// Hands the datatypes of a recipe out. Each derived one is a new reference, which the program frees.
fn set_datatypes(recipe: &Recipe, places: &mut OutHandles<'_, Datatype>) -> Result<()> {
    for (index, datatype) in recipe.datatypes.iter().enumerate() {
        places.set(index, datatype.clone())?;
    }
    Ok(())
}

fn set_all<T: Copy>(values: &[T], places: &mut OutSlice<'_, T>) {
    for (index, value) in values.iter().enumerate() {
        places.set(index, *value);
    }
}

/// MPI_Get_address.
pub fn get_address(_call: &Call, location: Address, address: Out<i64>) -> Result<()> {
    address.set(location.value() as i64);
    Ok(())
}

/// MPI_Type_commit.
pub fn type_commit(_call: &Call, datatype: InOutHandle<Datatype>) -> Result<()> {
    datatype.get().commit();
    Ok(())
}

/// MPI_Type_contiguous.
pub fn type_contiguous(
    call: &Call,
    count: i64,
    oldtype: &Arc<Datatype>,
    newtype: OutHandle<Datatype>,
) -> Result<()> {
    newtype.set(Datatype::contiguous(form(call), count, oldtype)?)
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
    let dimensions: Vec<DistributedDimension> = (0..ndims as usize)
        .map(|index| DistributedDimension {
            size: array_of_gsizes.get(index),
            distribution: array_of_distribs[index],
            argument: array_of_dargs[index],
            processes: array_of_psizes[index],
        })
        .collect();
    newtype.set(Datatype::darray(form(call), size, rank, &dimensions, order, oldtype)?)
}

/// MPI_Type_create_f90_complex.
pub fn type_create_f90_complex(_call: &Call, p: i32, r: i32, newtype: OutHandle<Datatype>) -> Result<()> {
    newtype.set(PARAMETERISED.f90_complex(p, r)?)
}

/// MPI_Type_create_f90_integer.
pub fn type_create_f90_integer(_call: &Call, r: i32, newtype: OutHandle<Datatype>) -> Result<()> {
    newtype.set(PARAMETERISED.f90_integer(r)?)
}

/// MPI_Type_create_f90_real.
pub fn type_create_f90_real(_call: &Call, p: i32, r: i32, newtype: OutHandle<Datatype>) -> Result<()> {
    newtype.set(PARAMETERISED.f90_real(p, r)?)
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
    debug_assert_eq!(count as usize, array_of_blocklengths.len());
    let (blocks, displacements) = (array_of_blocklengths.to_vec(), array_of_displacements.to_vec());
    newtype.set(Datatype::hindexed(form(call), &blocks, &displacements, oldtype)?)
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
    debug_assert_eq!(count as usize, array_of_displacements.len());
    newtype.set(Datatype::hindexed_block(form(call), blocklength, &array_of_displacements.to_vec(), oldtype)?)
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
    newtype.set(Datatype::hvector(form(call), count, blocklength, stride, oldtype)?)
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
    debug_assert_eq!(count as usize, array_of_displacements.len());
    newtype.set(Datatype::indexed_block(form(call), blocklength, &array_of_displacements.to_vec(), oldtype)?)
}

/// MPI_Type_create_resized.
pub fn type_create_resized(
    call: &Call,
    oldtype: &Arc<Datatype>,
    lb: i64,
    extent: i64,
    newtype: OutHandle<Datatype>,
) -> Result<()> {
    newtype.set(Datatype::resized(form(call), lb, extent, oldtype)?)
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
    debug_assert_eq!(count as usize, array_of_types.len());
    let (blocks, displacements) = (array_of_blocklengths.to_vec(), array_of_displacements.to_vec());
    let mut datatypes = Vec::with_capacity(array_of_types.len());
    for handle in array_of_types {
        datatypes.push(Arc::clone(&*handle.get("an element of array_of_types")?));
    }
    newtype.set(Datatype::structure(form(call), &blocks, &displacements, &datatypes)?)
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
    debug_assert_eq!(ndims as usize, array_of_sizes.len());
    let (sizes, subsizes, starts) =
        (array_of_sizes.to_vec(), array_of_subsizes.to_vec(), array_of_starts.to_vec());
    newtype.set(Datatype::subarray(form(call), &sizes, &subsizes, &starts, order, oldtype)?)
}

/// MPI_Type_dup.
pub fn type_dup(_call: &Call, oldtype: &Arc<Datatype>, newtype: OutHandle<Datatype>) -> Result<()> {
    let handle = Datatype::table().handle_of(oldtype).or(oldtype.predefined()).unwrap_or(MPI_DATATYPE_NULL);
    newtype.set(Datatype::duplicate(oldtype, handle)?)
}

/// MPI_Type_free.
pub fn type_free(_call: &Call, datatype: InOutHandle<Datatype>) -> Result<()> {
    datatype.get().require_mortal()?;
    if datatype.is_last() {
        datatype.get().attributes().delete_all(datatype.handle())?;
    }
    datatype.release();
    Ok(())
}

/// MPI_Type_get_contents.
pub fn type_get_contents(
    _call: &Call,
    datatype: &Arc<Datatype>,
    max_integers: i64,
    max_addresses: i64,
    max_datatypes: i64,
    array_of_integers: &mut OutSlice<'_, i32>,
    array_of_addresses: &mut OutSlice<'_, i64>,
    array_of_datatypes: &mut OutHandles<'_, Datatype>,
) -> Result<()> {
    let recipe = small_recipe(datatype)?;
    let rooms = [
        ("max_integers", max_integers, recipe.integers.len()),
        ("max_addresses", max_addresses, recipe.addresses.len()),
        ("max_datatypes", max_datatypes, recipe.datatypes.len()),
    ];
    require_contents(datatype, &rooms)?;
    set_all(&recipe.integers, array_of_integers);
    set_all(&recipe.addresses, array_of_addresses);
    set_datatypes(recipe, array_of_datatypes)
}

/// MPI_Type_get_contents_c.
pub fn type_get_contents_large(
    _call: &Call,
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
    let recipe = datatype.recipe();
    let rooms = [
        ("max_integers", max_integers, recipe.integers.len()),
        ("max_addresses", max_addresses, recipe.addresses.len()),
        ("max_large_counts", max_large_counts, recipe.large_counts.len()),
        ("max_datatypes", max_datatypes, recipe.datatypes.len()),
    ];
    require_contents(datatype, &rooms)?;
    set_all(&recipe.integers, array_of_integers);
    set_all(&recipe.addresses, array_of_addresses);
    set_all(&recipe.large_counts, array_of_large_counts);
    set_datatypes(recipe, array_of_datatypes)
}

/// MPI_Type_get_envelope.
pub fn type_get_envelope(
    _call: &Call,
    datatype: &Arc<Datatype>,
    num_integers: IntOut,
    num_addresses: IntOut,
    num_datatypes: IntOut,
    combiner: Out<i32>,
) -> Result<()> {
    let recipe = small_recipe(datatype)?;
    num_integers.set(recipe.integers.len() as i64);
    num_addresses.set(recipe.addresses.len() as i64);
    num_datatypes.set(recipe.datatypes.len() as i64);
    combiner.set(recipe.combiner);
    Ok(())
}

/// MPI_Type_get_envelope_c.
pub fn type_get_envelope_large(
    _call: &Call,
    datatype: &Arc<Datatype>,
    num_integers: IntOut,
    num_addresses: IntOut,
    num_large_counts: IntOut,
    num_datatypes: IntOut,
    combiner: Out<i32>,
) -> Result<()> {
    let recipe = datatype.recipe();
    num_integers.set(recipe.integers.len() as i64);
    num_addresses.set(recipe.addresses.len() as i64);
    num_large_counts.set(recipe.large_counts.len() as i64);
    num_datatypes.set(recipe.datatypes.len() as i64);
    combiner.set(recipe.combiner);
    Ok(())
}

/// MPI_Type_get_extent.
pub fn type_get_extent(_call: &Call, datatype: &Arc<Datatype>, lb: Out<i64>, extent: Out<i64>) -> Result<()> {
    lb.set(datatype.layout().lower_bound());
    extent.set(datatype.layout().extent());
    Ok(())
}

/// MPI_Type_get_extent_x.
pub fn type_get_extent_x(
    _call: &Call,
    datatype: &Arc<Datatype>,
    lb: Out<i64>,
    extent: Out<i64>,
) -> Result<()> {
    lb.set(datatype.layout().lower_bound());
    extent.set(datatype.layout().extent());
    Ok(())
}

/// MPI_Type_get_name.
pub fn type_get_name(_call: &Call, datatype: Option<&Arc<Datatype>>, type_name: StringOut) -> Result<()> {
    match datatype {
        Some(datatype) => type_name.set(&datatype.name()),
        None => type_name.set(b"MPI_DATATYPE_NULL"),
    }
    Ok(())
}

/// MPI_Type_get_true_extent.
pub fn type_get_true_extent(
    _call: &Call,
    datatype: &Arc<Datatype>,
    true_lb: Out<i64>,
    true_extent: Out<i64>,
) -> Result<()> {
    true_lb.set(datatype.layout().true_lower_bound());
    true_extent.set(datatype.layout().true_extent());
    Ok(())
}

/// MPI_Type_get_true_extent_x.
pub fn type_get_true_extent_x(
    _call: &Call,
    datatype: &Arc<Datatype>,
    true_lb: Out<i64>,
    true_extent: Out<i64>,
) -> Result<()> {
    true_lb.set(datatype.layout().true_lower_bound());
    true_extent.set(datatype.layout().true_extent());
    Ok(())
}

/// MPI_Type_get_value_index.
pub fn type_get_value_index(
    _call: &Call,
    value_type: &Arc<Datatype>,
    index_type: &Arc<Datatype>,
    pair_type: OutHandle<Datatype>,
) -> Result<()> {
    pair_type.set_raw(value_index(value_type, index_type).unwrap_or(MPI_DATATYPE_NULL));
    Ok(())
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
    debug_assert_eq!(count as usize, array_of_blocklengths.len());
    let (blocks, displacements) = (array_of_blocklengths.to_vec(), array_of_displacements.to_vec());
    newtype.set(Datatype::indexed(form(call), &blocks, &displacements, oldtype)?)
}

/// MPI_Type_match_size.
pub fn type_match_size(_call: &Call, typeclass: i32, size: i32, datatype: OutHandle<Datatype>) -> Result<()> {
    datatype.set_raw(match_size(typeclass, size)?);
    Ok(())
}

/// MPI_Type_set_name.
pub fn type_set_name(_call: &Call, datatype: &Arc<Datatype>, type_name: &[u8]) -> Result<()> {
    datatype.set_name(type_name);
    Ok(())
}

/// MPI_Type_size.
pub fn type_size(_call: &Call, datatype: &Arc<Datatype>, size: IntOut) -> Result<()> {
    size.set(datatype.layout().size() as i64);
    Ok(())
}

/// MPI_Type_size_x.
pub fn type_size_x(_call: &Call, datatype: &Arc<Datatype>, size: Out<i64>) -> Result<()> {
    size.set(datatype.layout().size() as i64);
    Ok(())
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
    newtype.set(Datatype::vector(form(call), count, blocklength, stride, oldtype)?)
}
