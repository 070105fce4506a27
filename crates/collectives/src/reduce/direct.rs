//! Everybody offers its operands, reads and folds those of all for its share, and offers its result, which the root reads where it lies.
//! Cost: 3 rounds on the board; `(n - 1) / n` of `m` read and folded per process, and as much read by the root.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::Operation;
use crate::shares;

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Reduce],
    name: "direct",
    cost: "3 rounds on the board; (n - 1) / n of m read and folded, and as much read by the root",
    groups: Groups::One,
    needs: Needs::Direct,
    build: shares::where_they_lie,
};
