//! The shapes of grids (MPI 5.0, section 8.5.2). Communicators with a topology: [`crate::comm::topology`].

use crate::constants::{MPI_ERR_ARG, MPI_ERR_DIMS};
use crate::{Error, Result};

/// MPI_Dims_create: fills in the dimensions that are 0, so that the product of all is `processes` and the ones filled in are
/// as near to each other as possible, the greatest first.
pub fn balance(processes: i32, dimensions: &mut [i32]) -> Result<()> {
    if processes < 1 {
        return Err(Error::new(MPI_ERR_ARG, format!("nnodes is {processes}; it must be at least 1")));
    }
    let mut given = 1_i64;
    for (index, &dimension) in dimensions.iter().enumerate() {
        if dimension < 0 {
            let message = format!("dims[{index}] is {dimension}; it must be positive, or 0 to be filled in");
            return Err(Error::new(MPI_ERR_DIMS, message));
        }
        given = given.saturating_mul(i64::from(dimension.max(1)));
    }
    let free = dimensions.iter().filter(|dimension| **dimension == 0).count();
    let rest = i64::from(processes) / given;
    if rest * given != i64::from(processes) || (free == 0 && rest != 1) {
        let message = format!(
            "dims {dimensions:?} does not divide {processes} processes; the product of what is given must be a divisor of \
             nnodes, and nnodes itself when nothing is left to fill in"
        );
        return Err(Error::new(MPI_ERR_DIMS, message));
    }
    let divisors: Vec<i64> =
        (1..=rest).take_while(|low| low * low <= rest).filter(|low| rest % low == 0).collect();
    let mut divisors: Vec<i64> = divisors.iter().flat_map(|low| [*low, rest / low]).collect();
    divisors.sort_unstable();
    divisors.dedup();
    let mut factors = Vec::with_capacity(free);
    let found = factor(rest, free, rest, &divisors, &mut factors);
    debug_assert!(found, "every number is its own product");
    let places = dimensions.iter_mut().filter(|dimension| **dimension == 0);
    places.zip(&factors).for_each(|(place, factor)| *place = *factor as i32);
    Ok(())
}

/// Appends `count` factors of `product`, none above `limit`, in falling order, the greatest of them as small as possible.
fn factor(product: i64, count: usize, limit: i64, divisors: &[i64], factors: &mut Vec<i64>) -> bool {
    if count == 0 {
        return product == 1;
    }
    for &first in divisors.iter().filter(|divisor| **divisor <= limit && product % **divisor == 0) {
        // The first factor is the greatest, so its power must reach the product.
        if first.checked_pow(count as u32).is_some_and(|power| power < product) {
            continue;
        }
        factors.push(first);
        if factor(product / first, count - 1, first, divisors, factors) {
            return true;
        }
        factors.pop();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn balanced(processes: i32, given: &[i32]) -> Vec<i32> {
        let mut dimensions = given.to_vec();
        balance(processes, &mut dimensions).unwrap();
        dimensions
    }

    #[test]
    fn the_examples_of_the_standard() {
        assert_eq!(balanced(6, &[0, 0]), [3, 2]);
        assert_eq!(balanced(7, &[0, 0]), [7, 1]);
        assert_eq!(balanced(6, &[0, 3, 0]), [2, 3, 1]);
        assert_eq!(balance(7, &mut [0, 3, 0]).unwrap_err().class(), MPI_ERR_DIMS);
    }

    #[test]
    fn factors_are_near_to_each_other() {
        assert_eq!(balanced(12, &[0, 0]), [4, 3]);
        assert_eq!(balanced(64, &[0, 0, 0]), [4, 4, 4]);
        assert_eq!(balanced(48, &[0, 0, 0]), [4, 4, 3]);
        assert_eq!(balanced(1, &[0, 0, 0]), [1, 1, 1]);
        assert_eq!(balanced(1 << 30, &[0; 30]), [2; 30]);
        assert_eq!(balanced(2_147_483_647, &[0, 0]), [2_147_483_647, 1]);
        assert_eq!(balanced(1, &[]), [] as [i32; 0]);
        assert!(balance(4, &mut [2]).is_err());
        assert!(balance(4, &mut [-1]).is_err());
        assert!(balance(0, &mut [0]).is_err());
    }
}
