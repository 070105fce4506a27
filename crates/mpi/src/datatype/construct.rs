//! The constructors of derived datatypes (MPI 5.0, section 5.1.2 to 5.1.4), with their recipes.

use super::{Datatype, Recipe};
use crate::constants::*;
use crate::{Error, Result};
use parnass_datatype::{Dealing, Layout, LayoutError, Share, Slice};
use std::sync::Arc;

/// Whether a constructor's counts were of type `int` or `MPI_Count`: this decides in which lists of the recipe they
/// stand (MPI 5.0, section 5.1.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountForm {
    Int,
    Large,
}

/// Which index of an array varies fastest in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The last (MPI_ORDER_C).
    C,
    /// The first (MPI_ORDER_FORTRAN).
    Fortran,
}

/// One dimension of a distributed array as the program gives it.
#[derive(Clone, Copy, Debug)]
pub struct DistributedDimension {
    pub size: i64,
    /// One of `MPI_DISTRIBUTE_*`.
    pub distribution: i32,
    /// A block size or MPI_DISTRIBUTE_DFLT_DARG.
    pub argument: i32,
    pub processes: i32,
}

/// The procedure that makes datatypes with this combiner.
pub(super) fn constructor_name(combiner: i32) -> &'static str {
    match combiner {
        MPI_COMBINER_DUP => "MPI_Type_dup",
        MPI_COMBINER_CONTIGUOUS => "MPI_Type_contiguous",
        MPI_COMBINER_VECTOR => "MPI_Type_vector",
        MPI_COMBINER_HVECTOR => "MPI_Type_create_hvector",
        MPI_COMBINER_INDEXED => "MPI_Type_indexed",
        MPI_COMBINER_HINDEXED => "MPI_Type_create_hindexed",
        MPI_COMBINER_INDEXED_BLOCK => "MPI_Type_create_indexed_block",
        MPI_COMBINER_HINDEXED_BLOCK => "MPI_Type_create_hindexed_block",
        MPI_COMBINER_STRUCT => "MPI_Type_create_struct",
        MPI_COMBINER_SUBARRAY => "MPI_Type_create_subarray",
        MPI_COMBINER_DARRAY => "MPI_Type_create_darray",
        MPI_COMBINER_F90_REAL => "MPI_Type_create_f90_real",
        MPI_COMBINER_F90_COMPLEX => "MPI_Type_create_f90_complex",
        MPI_COMBINER_F90_INTEGER => "MPI_Type_create_f90_integer",
        MPI_COMBINER_RESIZED => "MPI_Type_create_resized",
        MPI_COMBINER_VALUE_INDEX => "MPI_Type_get_value_index",
        _ => "the library",
    }
}

fn too_large(error: LayoutError) -> Error {
    Error::new(MPI_ERR_ARG, format!("{error}; use smaller counts or displacements"))
}

/// A count or block length as an unsigned number.
fn natural(value: i64, name: &str, class: i32) -> Result<u64> {
    u64::try_from(value).map_err(|_| Error::new(class, format!("{name} is {value}; it must not be negative")))
}

fn count_of(value: i64) -> Result<u64> {
    natural(value, "count", MPI_ERR_COUNT)
}

fn same_length(name: &str, length: usize, count: i64) -> Result<()> {
    if length as i64 == count {
        Ok(())
    } else {
        Err(Error::new(
            MPI_ERR_ARG,
            format!("{name} has {length} entries for a count of {count}; give one for each"),
        ))
    }
}

/// Lists of a recipe from numbers of a call: `int` arguments stand among the integers, `MPI_Aint` ones among the
/// addresses; in the large form both stand among the large counts.
struct RecipeBuilder {
    form: CountForm,
    recipe: Recipe,
}

impl RecipeBuilder {
    fn new(combiner: i32, form: CountForm) -> RecipeBuilder {
        RecipeBuilder { form, recipe: Recipe { combiner, ..Recipe::default() } }
    }

    /// Arguments of type `int` in the small form.
    fn counts(mut self, values: impl IntoIterator<Item = i64>) -> Self {
        match self.form {
            CountForm::Int => self.recipe.integers.extend(values.into_iter().map(|value| value as i32)),
            CountForm::Large => self.recipe.large_counts.extend(values),
        }
        self
    }

    /// Arguments of type `MPI_Aint` in the small form.
    fn addresses(mut self, values: impl IntoIterator<Item = i64>) -> Self {
        match self.form {
            CountForm::Int => self.recipe.addresses.extend(values),
            CountForm::Large => self.recipe.large_counts.extend(values),
        }
        self
    }

    /// Arguments of type `int` in both forms.
    fn integers(mut self, values: impl IntoIterator<Item = i32>) -> Self {
        self.recipe.integers.extend(values);
        self
    }

    fn datatypes<'a>(mut self, datatypes: impl IntoIterator<Item = &'a Arc<Datatype>>) -> Recipe {
        self.recipe.datatypes.extend(datatypes.into_iter().cloned());
        self.recipe
    }
}

impl Datatype {
    /// MPI_Type_contiguous.
    pub fn contiguous(form: CountForm, count: i64, old: &Arc<Datatype>) -> Result<Arc<Datatype>> {
        let layout = Layout::repeat(count_of(count)?, &old.layout).map_err(too_large)?;
        let recipe = RecipeBuilder::new(MPI_COMBINER_CONTIGUOUS, form).counts([count]).datatypes([old]);
        Ok(Datatype::derived(layout, recipe))
    }

    /// MPI_Type_vector; `stride` in extents of `old`.
    pub fn vector(
        form: CountForm,
        count: i64,
        block: i64,
        stride: i64,
        old: &Arc<Datatype>,
    ) -> Result<Arc<Datatype>> {
        let block_length = natural(block, "blocklength", MPI_ERR_ARG)?;
        let layout =
            Layout::vector(count_of(count)?, block_length, stride, &old.layout).map_err(too_large)?;
        let recipe =
            RecipeBuilder::new(MPI_COMBINER_VECTOR, form).counts([count, block, stride]).datatypes([old]);
        Ok(Datatype::derived(layout, recipe))
    }

    /// MPI_Type_create_hvector; `stride` in bytes.
    pub fn hvector(
        form: CountForm,
        count: i64,
        block: i64,
        stride: i64,
        old: &Arc<Datatype>,
    ) -> Result<Arc<Datatype>> {
        let block_length = natural(block, "blocklength", MPI_ERR_ARG)?;
        let layout =
            Layout::hvector(count_of(count)?, block_length, stride, &old.layout).map_err(too_large)?;
        let builder =
            RecipeBuilder::new(MPI_COMBINER_HVECTOR, form).counts([count, block]).addresses([stride]);
        Ok(Datatype::derived(layout, builder.datatypes([old])))
    }

    /// MPI_Type_indexed; displacements in extents of `old`.
    pub fn indexed(
        form: CountForm,
        blocks: &[i64],
        displacements: &[i64],
        old: &Arc<Datatype>,
    ) -> Result<Arc<Datatype>> {
        let pairs = block_pairs(blocks, displacements)?;
        let layout = Layout::indexed(pairs.into_iter(), &old.layout).map_err(too_large)?;
        let count = blocks.len() as i64;
        let builder = RecipeBuilder::new(MPI_COMBINER_INDEXED, form).counts([count]);
        let builder = builder.counts(blocks.iter().copied()).counts(displacements.iter().copied());
        Ok(Datatype::derived(layout, builder.datatypes([old])))
    }

    /// MPI_Type_create_hindexed; displacements in bytes.
    pub fn hindexed(
        form: CountForm,
        blocks: &[i64],
        displacements: &[i64],
        old: &Arc<Datatype>,
    ) -> Result<Arc<Datatype>> {
        let pairs = block_pairs(blocks, displacements)?;
        let layout = Layout::hindexed(pairs.into_iter(), &old.layout).map_err(too_large)?;
        let count = blocks.len() as i64;
        let builder = RecipeBuilder::new(MPI_COMBINER_HINDEXED, form).counts([count]);
        let builder = builder.counts(blocks.iter().copied()).addresses(displacements.iter().copied());
        Ok(Datatype::derived(layout, builder.datatypes([old])))
    }

    /// MPI_Type_create_indexed_block; displacements in extents of `old`.
    pub fn indexed_block(
        form: CountForm,
        block: i64,
        displacements: &[i64],
        old: &Arc<Datatype>,
    ) -> Result<Arc<Datatype>> {
        let length = natural(block, "blocklength", MPI_ERR_ARG)?;
        let pairs = displacements.iter().map(|displacement| (length, *displacement));
        let layout = Layout::indexed(pairs, &old.layout).map_err(too_large)?;
        let builder = RecipeBuilder::new(MPI_COMBINER_INDEXED_BLOCK, form);
        let builder =
            builder.counts([displacements.len() as i64, block]).counts(displacements.iter().copied());
        Ok(Datatype::derived(layout, builder.datatypes([old])))
    }

    /// MPI_Type_create_hindexed_block; displacements in bytes.
    pub fn hindexed_block(
        form: CountForm,
        block: i64,
        displacements: &[i64],
        old: &Arc<Datatype>,
    ) -> Result<Arc<Datatype>> {
        let length = natural(block, "blocklength", MPI_ERR_ARG)?;
        let pairs = displacements.iter().map(|displacement| (length, *displacement));
        let layout = Layout::hindexed(pairs, &old.layout).map_err(too_large)?;
        let builder = RecipeBuilder::new(MPI_COMBINER_HINDEXED_BLOCK, form);
        let builder =
            builder.counts([displacements.len() as i64, block]).addresses(displacements.iter().copied());
        Ok(Datatype::derived(layout, builder.datatypes([old])))
    }

    /// MPI_Type_create_struct; displacements in bytes.
    pub fn structure(
        form: CountForm,
        blocks: &[i64],
        displacements: &[i64],
        datatypes: &[Arc<Datatype>],
    ) -> Result<Arc<Datatype>> {
        let pairs = block_pairs(blocks, displacements)?;
        same_length("array_of_types", datatypes.len(), blocks.len() as i64)?;
        let items = pairs
            .iter()
            .zip(datatypes)
            .map(|(&(length, displacement), old)| (length, displacement, &old.layout));
        let layout = Layout::structure(items).map_err(too_large)?;
        let builder = RecipeBuilder::new(MPI_COMBINER_STRUCT, form).counts([blocks.len() as i64]);
        let builder = builder.counts(blocks.iter().copied()).addresses(displacements.iter().copied());
        Ok(Datatype::derived(layout, builder.datatypes(datatypes)))
    }

    /// MPI_Type_create_resized.
    pub fn resized(
        form: CountForm,
        lower_bound: i64,
        extent: i64,
        old: &Arc<Datatype>,
    ) -> Result<Arc<Datatype>> {
        let layout = Layout::resized(lower_bound, extent, &old.layout).map_err(too_large)?;
        let builder = RecipeBuilder::new(MPI_COMBINER_RESIZED, form).addresses([lower_bound, extent]);
        Ok(Datatype::derived(layout, builder.datatypes([old])))
    }

    /// MPI_Type_create_subarray; sizes, subsizes and starts of each dimension in elements of `old`.
    pub fn subarray(
        form: CountForm,
        sizes: &[i64],
        subsizes: &[i64],
        starts: &[i64],
        order: i32,
        old: &Arc<Datatype>,
    ) -> Result<Arc<Datatype>> {
        let dimensions = dimension_count(sizes.len())?;
        same_length("array_of_subsizes", subsizes.len(), dimensions as i64)?;
        same_length("array_of_starts", starts.len(), dimensions as i64)?;
        let mut slices = Vec::with_capacity(sizes.len());
        for (index, ((&size, &part), &start)) in sizes.iter().zip(subsizes).zip(starts).enumerate() {
            if size < 1 {
                return Err(Error::new(
                    MPI_ERR_ARG,
                    format!("array_of_sizes[{index}] is {size}; it must be at least 1"),
                ));
            }
            if part < 1 || part > size {
                let message = format!(
                    "array_of_subsizes[{index}] is {part}; it must be 1 to {size}, the size of that dimension"
                );
                return Err(Error::new(MPI_ERR_ARG, message));
            }
            if start < 0 || start > size - part {
                let message = format!(
                    "array_of_starts[{index}] is {start}; it must be 0 to {}, so that the part fits",
                    size - part
                );
                return Err(Error::new(MPI_ERR_ARG, message));
            }
            slices.push(Slice { size: size as u64, part: part as u64, start: start as u64 });
        }
        if order_of(order)? == Order::C {
            slices.reverse();
        }
        let layout = Layout::subarray(&slices, &old.layout).map_err(too_large)?;
        let all = || sizes.iter().chain(subsizes).chain(starts).copied();
        let builder = RecipeBuilder::new(MPI_COMBINER_SUBARRAY, form)
            .integers([dimensions])
            .counts(all())
            .integers([order]);
        Ok(Datatype::derived(layout, builder.datatypes([old])))
    }

    /// MPI_Type_create_darray: the part of process `rank` of `size` processes.
    pub fn darray(
        form: CountForm,
        size: i32,
        rank: i32,
        dimensions: &[DistributedDimension],
        order: i32,
        old: &Arc<Datatype>,
    ) -> Result<Arc<Datatype>> {
        let count = dimension_count(dimensions.len())?;
        if size < 1 {
            return Err(Error::new(MPI_ERR_ARG, format!("size is {size}; it must be at least 1")));
        }
        if !(0..size).contains(&rank) {
            return Err(Error::new(MPI_ERR_RANK, format!("rank is {rank}; it must be 0 to {}", size - 1)));
        }
        let processes = dimensions.iter().try_fold(1_i64, |product, dimension| {
            if dimension.processes < 1 { None } else { product.checked_mul(dimension.processes as i64) }
        });
        if processes != Some(size as i64) {
            let shape: Vec<i32> = dimensions.iter().map(|dimension| dimension.processes).collect();
            let message = format!(
                "array_of_psizes {shape:?} does not make a grid of {size} processes; its product must be the size"
            );
            return Err(Error::new(MPI_ERR_ARG, message));
        }
        // The process grid is in row-major order whatever the order of the array.
        let mut shares = Vec::with_capacity(dimensions.len());
        let mut rest = rank as i64;
        for (index, dimension) in dimensions.iter().enumerate().rev() {
            let coordinate = rest % dimension.processes as i64;
            rest /= dimension.processes as i64;
            shares.push(share_of(index, dimension, coordinate as u64)?);
        }
        // Now the last dimension stands first, as C has it.
        if order_of(order)? == Order::Fortran {
            shares.reverse();
        }
        let layout = Layout::distributed_array(&shares, &old.layout).map_err(too_large)?;
        let builder = RecipeBuilder::new(MPI_COMBINER_DARRAY, form)
            .integers([size, rank, count])
            .counts(dimensions.iter().map(|dimension| dimension.size))
            .integers(dimensions.iter().map(|dimension| dimension.distribution))
            .integers(dimensions.iter().map(|dimension| dimension.argument))
            .integers(dimensions.iter().map(|dimension| dimension.processes))
            .integers([order]);
        Ok(Datatype::derived(layout, builder.datatypes([old])))
    }

    /// MPI_Type_dup: the same type, committed if the old one is, with the attributes that the copy callbacks give.
    /// `handle` names the old datatype to those.
    pub fn duplicate(old: &Arc<Datatype>, handle: usize) -> Result<Arc<Datatype>> {
        let attributes = old.attributes.copy(handle)?;
        let recipe = RecipeBuilder::new(MPI_COMBINER_DUP, CountForm::Int).datatypes([old]);
        Ok(Arc::new(Datatype {
            identity: old.identity,
            layout: old.layout.clone(),
            plain: old.plain,
            operand: old.operand,
            predefined: None,
            permanent: false,
            recipe,
            committed: old.is_committed().into(),
            name: Default::default(),
            attributes,
        }))
    }
}

fn block_pairs(blocks: &[i64], displacements: &[i64]) -> Result<Vec<(u64, i64)>> {
    same_length("array_of_displacements", displacements.len(), blocks.len() as i64)?;
    let mut pairs = Vec::with_capacity(blocks.len());
    for (index, (&length, &displacement)) in blocks.iter().zip(displacements).enumerate() {
        let Ok(length) = u64::try_from(length) else {
            let message = format!("array_of_blocklengths[{index}] is {length}; it must not be negative");
            return Err(Error::new(MPI_ERR_ARG, message));
        };
        pairs.push((length, displacement));
    }
    Ok(pairs)
}

fn dimension_count(count: usize) -> Result<i32> {
    match i32::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(Error::new(MPI_ERR_ARG, format!("ndims is {count}; it must be at least 1"))),
    }
}

fn order_of(order: i32) -> Result<Order> {
    match order {
        MPI_ORDER_C => Ok(Order::C),
        MPI_ORDER_FORTRAN => Ok(Order::Fortran),
        _ => Err(Error::new(
            MPI_ERR_ARG,
            format!("order is {order}; it must be MPI_ORDER_C or MPI_ORDER_FORTRAN"),
        )),
    }
}

fn share_of(index: usize, dimension: &DistributedDimension, coordinate: u64) -> Result<Share> {
    let &DistributedDimension { size, distribution, argument, processes } = dimension;
    if size < 1 {
        return Err(Error::new(
            MPI_ERR_ARG,
            format!("array_of_gsizes[{index}] is {size}; it must be at least 1"),
        ));
    }
    let (size, processes) = (size as u64, processes as u64);
    let by_default = argument == MPI_DISTRIBUTE_DFLT_DARG;
    if distribution != MPI_DISTRIBUTE_NONE && !by_default && argument < 1 {
        let message = format!(
            "array_of_dargs[{index}] is {argument}; it must be at least 1, or MPI_DISTRIBUTE_DFLT_DARG"
        );
        return Err(Error::new(MPI_ERR_ARG, message));
    }
    let dealing = match distribution {
        MPI_DISTRIBUTE_NONE if processes == 1 => Dealing::All,
        MPI_DISTRIBUTE_NONE => {
            let message = format!(
                "array_of_psizes[{index}] is {processes}, but the dimension is not distributed: it must be 1"
            );
            return Err(Error::new(MPI_ERR_ARG, message));
        }
        MPI_DISTRIBUTE_BLOCK => {
            let block = if by_default { size.div_ceil(processes) } else { argument as u64 };
            if block.saturating_mul(processes) < size {
                let message = format!(
                    "array_of_dargs[{index}] is {block}: {processes} blocks of it do not hold the {size} elements; use at least {}",
                    size.div_ceil(processes)
                );
                return Err(Error::new(MPI_ERR_ARG, message));
            }
            Dealing::Block(block)
        }
        MPI_DISTRIBUTE_CYCLIC => Dealing::Cyclic(if by_default { 1 } else { argument as u64 }),
        _ => {
            let message = format!(
                "array_of_distribs[{index}] is {distribution}; it must be MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC or MPI_DISTRIBUTE_NONE"
            );
            return Err(Error::new(MPI_ERR_ARG, message));
        }
    };
    Ok(Share { size, dealing, processes, coordinate })
}
