//! Arrays of numbers as programs give them: of C int, or of MPI_Count or MPI_Aint.

/// A numeric array of either width.
#[derive(Clone, Copy, Debug)]
pub enum Ints<'a> {
    /// Of C int.
    Int(&'a [i32]),
    /// Of MPI_Count or MPI_Aint.
    Large(&'a [i64]),
}

impl Ints<'_> {
    /// No numbers.
    pub const NONE: Ints<'static> = Ints::Int(&[]);

    /// Its length.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Ints::Int(values) => values.len(),
            Ints::Large(values) => values.len(),
        }
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An element.
    #[inline]
    pub fn get(&self, index: usize) -> i64 {
        match self {
            Ints::Int(values) => i64::from(values[index]),
            Ints::Large(values) => values[index],
        }
    }

    /// The elements.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = i64> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The elements in a vector.
    pub fn to_vec(&self) -> Vec<i64> {
        self.iter().collect()
    }

    /// The least and the greatest element, or 0 beyond either; 0 for both if there are none.
    #[inline]
    pub fn range(&self) -> (i64, i64) {
        let wider = |(least, most): (i64, i64), value: i64| (least.min(value), most.max(value));
        match self {
            Ints::Int(values) => values.iter().fold((0, 0), |range, value| wider(range, (*value).into())),
            Ints::Large(values) => values.iter().fold((0, 0), |range, value| wider(range, *value)),
        }
    }

    /// Whether these are its elements.
    #[inline]
    pub fn are(&self, others: &[i64]) -> bool {
        match self {
            Ints::Int(values) => {
                values.len() == others.len()
                    && values.iter().zip(others).all(|(value, other)| i64::from(*value) == *other)
            }
            Ints::Large(values) => *values == others,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_widths_say_the_same() {
        let (narrow, wide) = ([3, -7, 5], [3, -7, 5]);
        for ints in [Ints::Int(&narrow), Ints::Large(&wide)] {
            assert_eq!(ints.to_vec(), [3, -7, 5]);
            assert_eq!((ints.get(1), ints.range()), (-7, (-7, 5)));
            assert!(ints.are(&[3, -7, 5]));
            assert!(!ints.are(&[3, -7]) && !ints.are(&[3, -7, 6]) && !ints.are(&[3, -7, 5, 0]));
        }
        assert_eq!((Ints::NONE.len(), Ints::NONE.range()), (0, (0, 0)));
        assert!(Ints::NONE.is_empty() && Ints::NONE.are(&[]));
    }
}
