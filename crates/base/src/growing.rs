//! A table that grows while others read it, without a lock for who reads.

use std::sync::OnceLock;

/// Cells of the first chunk; each further one has twice as many as the one before.
const FIRST: usize = 16;
const CHUNKS: usize = 17;

/// Cells that are filled once each and stay where they are.
#[derive(Debug)]
pub struct Growing<T> {
    chunks: [OnceLock<Box<[OnceLock<T>]>>; CHUNKS],
}

impl<T> Default for Growing<T> {
    fn default() -> Growing<T> {
        Growing { chunks: [const { OnceLock::new() }; CHUNKS] }
    }
}

/// The chunk of a cell, and its place there.
fn place(index: usize) -> (usize, usize) {
    let chunk = (index / FIRST + 1).ilog2() as usize;
    (chunk, index - FIRST * ((1 << chunk) - 1))
}

impl<T> Growing<T> {
    /// How many cells there can be.
    pub const MOST: usize = FIRST * ((1 << CHUNKS) - 1);

    /// What is in a cell, if it was filled.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        let (chunk, at) = place(index);
        self.chunks.get(chunk)?.get()?.get(at)?.get()
    }

    /// What is in a cell, which `make` fills if it is empty.
    ///
    /// # Panics
    /// If `index` is not below [`Growing::MOST`].
    pub fn get_or_fill(&self, index: usize, make: impl FnOnce() -> T) -> &T {
        let (chunk, at) = place(index);
        let cells = self.chunks[chunk].get_or_init(|| (0..FIRST << chunk).map(|_| OnceLock::new()).collect());
        cells[at].get_or_init(make)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_a_place_of_its_own() {
        let table = Growing::default();
        for index in 0..1_000 {
            assert_eq!(table.get(index), None);
            assert_eq!(*table.get_or_fill(index, || index * 3), index * 3);
        }
        assert!((0..1_000).all(|index| table.get(index) == Some(&(index * 3))));
        assert_eq!(table.get(Growing::<usize>::MOST), None);
        assert_eq!(place(Growing::<usize>::MOST - 1).0, CHUNKS - 1);
    }

    #[test]
    fn a_cell_is_filled_once() {
        let table = Growing::default();
        assert_eq!((*table.get_or_fill(20, || 1), *table.get_or_fill(20, || 2)), (1, 1));
    }
}
