//! The memory that is attached to a dynamic window at this process (MPI 5.0, section 12.2.4).

use super::guard;
use super::transfer::Place;
use crate::constants::*;
use crate::{Error, Result};
use parnass_base::UserAddress;
use std::sync::Mutex;

/// Pieces of memory that do not overlap: first byte and length.
#[derive(Debug, Default)]
pub(super) struct Attached(Mutex<Vec<(usize, u64)>>);

impl Attached {
    /// MPI_Win_attach.
    pub fn attach(&self, base: UserAddress, size: u64) -> Result<()> {
        let mut attached = guard(&self.0);
        let start = base.value();
        let end = start.saturating_add(size as usize);
        let overlapping = attached.iter().find(|(other, length)| {
            start < other.saturating_add(*length as usize) && *other < end && size > 0 && *length > 0
        });
        if let Some((other, length)) = overlapping {
            return Err(Error::new(
                MPI_ERR_RMA_ATTACH,
                format!(
                    "base is {start:#x} and size {size}, but the {length} bytes at {other:#x} are attached already; \
                     attach memory that does not overlap with them, or detach them first"
                ),
            ));
        }
        attached.push((start, size));
        Ok(())
    }

    /// MPI_Win_detach.
    pub fn detach(&self, base: UserAddress) -> Result<()> {
        let mut attached = guard(&self.0);
        let place = attached.iter().position(|(start, _)| *start == base.value()).ok_or_else(|| {
            Error::new(
                MPI_ERR_BASE,
                format!(
                    "base is {:#x}, at which nothing is attached; give the address that MPI_Win_attach was given",
                    base.value()
                ),
            )
        })?;
        attached.swap_remove(place);
        Ok(())
    }

    /// An error unless all data of a place, relative to this address, is attached.
    pub fn require(&self, address: UserAddress, place: &Place<'_>) -> Result<()> {
        let attached = guard(&self.0);
        let mut missing = None;
        place.datatype.layout().visit_runs(place.count, 0, place.size(), &mut |offset, bytes| {
            let start = address.offset(offset).value();
            missing = first_missing(&attached, start, bytes).map(|at| (at, start, bytes));
            missing.is_none()
        });
        match missing {
            None => Ok(()),
            Some((at, start, bytes)) => Err(Error::new(
                MPI_ERR_RMA_RANGE,
                format!(
                    "the operation is about {bytes} bytes at {start:#x} of rank {}, where nothing is attached at {at:#x}; give an \
                     address within memory that MPI_Win_attach was given there, as MPI_Get_address tells it",
                    place.rank
                ),
            )),
        }
    }
}

/// The first byte of a run that is in no piece. A run may go on from one piece into the next.
fn first_missing(attached: &[(usize, u64)], start: usize, bytes: u64) -> Option<usize> {
    let end = start.saturating_add(bytes as usize);
    let mut at = start;
    while at < end {
        let holds = |(from, length): &&(usize, u64)| *from <= at && at - *from < *length as usize;
        match attached.iter().find(holds) {
            Some((from, length)) => at = from.saturating_add(*length as usize),
            None => return Some(at),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_may_go_on_into_the_next_piece() {
        let attached = [(200, 50), (100, 100)];
        assert_eq!(first_missing(&attached, 100, 150), None);
        assert_eq!(first_missing(&attached, 150, 101), Some(250));
        assert_eq!(first_missing(&attached, 99, 1), Some(99));
        assert_eq!(first_missing(&attached, 250, 0), None);
    }
}
