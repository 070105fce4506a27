//! A datatype made again from its recipe, of other elements.

use super::{CountForm, Datatype, DistributedDimension, Recipe};
use crate::Result;
use crate::constants::*;
use std::sync::Arc;

impl Datatype {
    /// The datatype that the same constructors make of other elements: `element` gives what stands in the place of each
    /// predefined datatype. Displacements in bytes stay as they are; strides and displacements that are counted in extents follow
    /// the extents of the new elements (MPI 5.0, section 14.5.1).
    pub fn with_elements(
        self: &Arc<Self>,
        element: &mut dyn FnMut(&Arc<Datatype>) -> Result<Arc<Datatype>>,
    ) -> Result<Arc<Datatype>> {
        let recipe = self.recipe();
        let [old, ..] = recipe.datatypes.as_slice() else { return element(self) };
        if recipe.combiner == MPI_COMBINER_STRUCT {
            let mut olds = Vec::with_capacity(recipe.datatypes.len());
            for old in &recipe.datatypes {
                olds.push(old.with_elements(element)?);
            }
            let numbers = Numbers::of(recipe);
            let count = numbers.counts[0] as usize;
            let blocks = &numbers.counts[1..=count];
            return Datatype::structure(CountForm::Large, blocks, &numbers.after(1 + count), &olds);
        }
        let old = &old.with_elements(element)?;
        let form = CountForm::Large;
        let numbers = Numbers::of(recipe);
        let counts = &numbers.counts;
        match recipe.combiner {
            MPI_COMBINER_CONTIGUOUS => Datatype::contiguous(form, counts[0], old),
            MPI_COMBINER_VECTOR => Datatype::vector(form, counts[0], counts[1], counts[2], old),
            MPI_COMBINER_HVECTOR => Datatype::hvector(form, counts[0], counts[1], numbers.after(2)[0], old),
            MPI_COMBINER_INDEXED => {
                let (blocks, displacements) = counts[1..].split_at(counts[0] as usize);
                Datatype::indexed(form, blocks, displacements, old)
            }
            MPI_COMBINER_HINDEXED => {
                let count = counts[0] as usize;
                Datatype::hindexed(form, &counts[1..=count], &numbers.after(1 + count), old)
            }
            MPI_COMBINER_INDEXED_BLOCK => Datatype::indexed_block(form, counts[1], &counts[2..], old),
            MPI_COMBINER_HINDEXED_BLOCK => Datatype::hindexed_block(form, counts[1], &numbers.after(2), old),
            MPI_COMBINER_RESIZED => {
                let bounds = numbers.after(0);
                Datatype::resized(form, bounds[0], bounds[1], old)
            }
            MPI_COMBINER_SUBARRAY => {
                let (dimensions, order) =
                    (recipe.integers[0] as usize, recipe.integers[recipe.integers.len() - 1]);
                let all: Vec<i64> = match recipe.large_counts.is_empty() {
                    true => {
                        recipe.integers[1..=3 * dimensions].iter().map(|&value| i64::from(value)).collect()
                    }
                    false => recipe.large_counts.clone(),
                };
                let (sizes, rest) = all.split_at(dimensions);
                let (parts, starts) = rest.split_at(dimensions);
                Datatype::subarray(form, sizes, parts, starts, order, old)
            }
            MPI_COMBINER_DARRAY => {
                let integers = &recipe.integers;
                let (size, rank, dimensions) = (integers[0], integers[1], integers[2] as usize);
                let (sizes, rest): (Vec<i64>, &[i32]) = match recipe.large_counts.is_empty() {
                    true => {
                        let (sizes, rest) = integers[3..].split_at(dimensions);
                        (sizes.iter().map(|&size| i64::from(size)).collect(), rest)
                    }
                    false => (recipe.large_counts.clone(), &integers[3..]),
                };
                let list: Vec<DistributedDimension> = (0..dimensions)
                    .map(|index| DistributedDimension {
                        size: sizes[index],
                        distribution: rest[index],
                        argument: rest[dimensions + index],
                        processes: rest[2 * dimensions + index],
                    })
                    .collect();
                Datatype::darray(form, size, rank, &list, rest[3 * dimensions], old)
            }
            _ => Ok(Arc::clone(old)),
        }
    }
}

/// The numbers of a recipe, of either form: counts and displacements in one row.
struct Numbers<'a> {
    recipe: &'a Recipe,
    /// The `int` arguments, or all of a large-count constructor.
    counts: Vec<i64>,
}

impl Numbers<'_> {
    fn of(recipe: &Recipe) -> Numbers<'_> {
        let counts = match recipe.large_counts.is_empty() {
            true => recipe.integers.iter().map(|&value| i64::from(value)).collect(),
            false => recipe.large_counts.clone(),
        };
        Numbers { recipe, counts }
    }

    /// The displacements in bytes, which stand behind so many counts in the large form and in a list of their own else.
    fn after(&self, counts: usize) -> Vec<i64> {
        match self.recipe.large_counts.is_empty() {
            true => self.recipe.addresses.clone(),
            false => self.counts[counts..].to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::PredefinedDatatypes;

    /// The runs of one copy.
    fn runs(datatype: &Datatype) -> Vec<(i64, u64)> {
        let mut runs = Vec::new();
        datatype.layout().visit_runs(1, 0, datatype.layout().size(), &mut |offset, length| {
            runs.push((offset, length));
            true
        });
        runs
    }

    #[test]
    fn the_same_elements_make_the_same_type() {
        let predefined = PredefinedDatatypes::default();
        let int = predefined.int();
        let long = predefined.get(0x20a).unwrap();
        for form in [CountForm::Int, CountForm::Large] {
            let dimension = |size, distribution, processes| DistributedDimension {
                size,
                distribution,
                argument: MPI_DISTRIBUTE_DFLT_DARG,
                processes,
            };
            let grid = [dimension(7, MPI_DISTRIBUTE_CYCLIC, 2), dimension(6, MPI_DISTRIBUTE_BLOCK, 3)];
            let made = [
                Datatype::contiguous(form, 3, int).unwrap(),
                Datatype::vector(form, 3, 2, 4, int).unwrap(),
                Datatype::hvector(form, 3, 2, 20, int).unwrap(),
                Datatype::indexed(form, &[2, 1], &[1, 9], int).unwrap(),
                Datatype::hindexed(form, &[2, 1], &[4, 36], int).unwrap(),
                Datatype::indexed_block(form, 2, &[1, 9], int).unwrap(),
                Datatype::hindexed_block(form, 2, &[4, 36], int).unwrap(),
                Datatype::structure(form, &[2, 1], &[0, 16], &[int.clone(), long.clone()]).unwrap(),
                Datatype::resized(form, -4, 40, int).unwrap(),
                Datatype::subarray(form, &[5, 6], &[2, 3], &[1, 2], MPI_ORDER_FORTRAN, int).unwrap(),
                Datatype::darray(form, 6, 4, &grid, MPI_ORDER_C, int).unwrap(),
            ];
            for datatype in made {
                let again = datatype.with_elements(&mut |element| Ok(element.clone())).unwrap();
                assert_eq!(runs(&again), runs(&datatype), "{datatype:?}");
                assert_eq!(again.layout().extent(), datatype.layout().extent(), "{datatype:?}");
                let nested = Datatype::vector(form, 2, 1, 3, &datatype).unwrap();
                let again = nested.with_elements(&mut |element| Ok(element.clone())).unwrap();
                assert_eq!(runs(&again), runs(&nested), "{nested:?}");
            }
        }
    }

    #[test]
    fn extents_follow_the_elements_and_displacements_stay() {
        let predefined = PredefinedDatatypes::default();
        let (int, byte) = (predefined.int(), predefined.byte());
        let mut half = |_: &Arc<Datatype>| Datatype::contiguous(CountForm::Int, 2, byte);
        let vector = Datatype::vector(CountForm::Int, 2, 1, 3, int).unwrap();
        assert_eq!(runs(&vector.with_elements(&mut half).unwrap()), [(0, 2), (6, 2)]);
        let hvector = Datatype::hvector(CountForm::Int, 2, 1, 12, int).unwrap();
        assert_eq!(runs(&hvector.with_elements(&mut half).unwrap()), [(0, 2), (12, 2)]);
    }
}
