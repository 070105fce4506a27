//! Parts of arrays: subarrays and distributed arrays (MPI 5.0, sections 5.1.3 and 5.1.4).

use crate::layout::{Layout, LayoutError};

/// One dimension of a subarray, in elements.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// Of the whole array.
    pub size: u64,
    /// Of the part.
    pub part: u64,
    /// Where the part starts.
    pub start: u64,
}

/// One dimension of a distributed array.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Elements of the whole array.
    pub size: u64,
    /// How they are dealt out.
    pub dealing: Dealing,
    /// Processes in this dimension, and which of them this is.
    pub processes: u64,
    pub coordinate: u64,
}

/// How the elements of a dimension are dealt out to processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dealing {
    /// One process has all.
    All,
    /// One block of this many elements each.
    Block(u64),
    /// Blocks of this many elements, round after round.
    Cyclic(u64),
}

impl Layout {
    /// A subarray; the dimensions are given from the one that varies fastest.
    pub fn subarray(dimensions: &[Slice], old: &Layout) -> Result<Layout, LayoutError> {
        let mut part = old.clone();
        let mut stride = old.extent();
        let mut displacement = 0_i64;
        for slice in dimensions {
            part = Layout::hvector(slice.part, 1, stride, &part)?;
            displacement = add(displacement, scale(stride, slice.start)?)?;
            stride = scale(stride, slice.size)?;
        }
        part = Layout::hindexed([(1, displacement)].into_iter(), &part)?;
        Layout::resized(0, stride, &part)
    }

    /// This process's part of a distributed array; the dimensions are given from the one that varies fastest.
    pub fn distributed_array(dimensions: &[Share], old: &Layout) -> Result<Layout, LayoutError> {
        let mut part = old.clone();
        let mut stride = old.extent();
        let mut displacement = 0_i64;
        for share in dimensions {
            let (part_of_dimension, start) = share.layout(stride, &part)?;
            part = part_of_dimension;
            displacement = add(displacement, scale(stride, start)?)?;
            stride = scale(stride, share.size)?;
        }
        part = Layout::hindexed([(1, displacement)].into_iter(), &part)?;
        Layout::resized(0, stride, &part)
    }
}

impl Share {
    /// This process's elements of `old`, `stride` bytes apart, relative to the first of them, and which that is.
    fn layout(&self, stride: i64, old: &Layout) -> Result<(Layout, u64), LayoutError> {
        let (block, rounds_apart) = match self.dealing {
            Dealing::All => return Ok((Layout::hvector(self.size, 1, stride, old)?, 0)),
            Dealing::Block(block) => {
                let start = block.saturating_mul(self.coordinate);
                let count = block.min(self.size.saturating_sub(start));
                let start = if count == 0 { 0 } else { start };
                return Ok((Layout::hvector(count, 1, stride, old)?, start));
            }
            Dealing::Cyclic(block) => (block, block.saturating_mul(self.processes)),
        };
        let start = block.saturating_mul(self.coordinate);
        let left = self.size.saturating_sub(start);
        if left == 0 {
            return Ok((Layout::hvector(0, 1, stride, old)?, 0));
        }
        let rounds = left / rounds_apart;
        let rest = block.min(left % rounds_apart);
        let (rounds, rest) = if rest == block { (rounds + 1, 0) } else { (rounds, rest) };
        let round_stride =
            if rounds > 0 && rounds_apart < self.size { scale(stride, rounds_apart)? } else { 0 };
        let one_round = Layout::hvector(block, 1, stride, old)?;
        let whole = Layout::hvector(rounds, 1, round_stride, &one_round)?;
        if rest == 0 {
            return Ok((whole, start));
        }
        let rest_layout = Layout::hvector(rest, 1, stride, old)?;
        let rest_at = scale(round_stride, rounds)?;
        Ok((Layout::structure([(1, 0, &whole), (1, rest_at, &rest_layout)].into_iter())?, start))
    }
}

fn scale(stride: i64, count: u64) -> Result<i64, LayoutError> {
    i64::try_from(stride as i128 * count as i128).map_err(|_| LayoutError::TooLarge)
}

fn add(left: i64, right: i64) -> Result<i64, LayoutError> {
    left.checked_add(right).ok_or(LayoutError::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Element;

    /// The elements of the whole array that the layout touches, in packed order.
    fn elements(layout: &Layout, size: i64) -> Vec<i64> {
        let mut touched = Vec::new();
        layout.visit_runs(1, 0, u64::MAX, &mut |offset, length| {
            touched.extend((0..length as i64 / size).map(|index| offset / size + index));
            true
        });
        touched
    }

    #[test]
    fn subarray_of_a_matrix() {
        let int = Layout::element(Element::Int32);
        // Fastest first: 5 columns of which 2 from column 1; 4 rows of which 3 from row 1.
        let dimensions = [Slice { size: 5, part: 2, start: 1 }, Slice { size: 4, part: 3, start: 1 }];
        let part = Layout::subarray(&dimensions, &int).unwrap();
        assert_eq!(elements(&part, 4), [6, 7, 11, 12, 16, 17]);
        assert_eq!((part.lower_bound(), part.extent(), part.size()), (0, 80, 24));
    }

    #[test]
    fn shares_of_all_processes_cover_the_array_once() {
        let int = Layout::element(Element::Int32);
        for dealing in [
            Dealing::Block(4),
            Dealing::Cyclic(1),
            Dealing::Cyclic(2),
            Dealing::Cyclic(3),
            Dealing::Cyclic(100),
        ] {
            for size in [1_u64, 7, 10, 12] {
                let mut all = Vec::new();
                for coordinate in 0..3 {
                    let rows = Share { size, dealing, processes: 3, coordinate };
                    let columns = Share { size: 2, dealing: Dealing::All, processes: 1, coordinate: 0 };
                    let part = Layout::distributed_array(&[columns, rows], &int).unwrap();
                    assert_eq!(part.extent(), size as i64 * 8);
                    all.extend(elements(&part, 4));
                }
                all.sort_unstable();
                assert_eq!(all, (0..size as i64 * 2).collect::<Vec<_>>(), "{dealing:?} of {size}");
            }
        }
    }

    #[test]
    fn cyclic_order_is_by_rounds() {
        let int = Layout::element(Element::Int32);
        let share = Share { size: 11, dealing: Dealing::Cyclic(2), processes: 2, coordinate: 1 };
        let part = Layout::distributed_array(&[share], &int).unwrap();
        assert_eq!(elements(&part, 4), [2, 3, 6, 7, 10]);
    }
}
