//! File pointers (MPI 5.0, sections 14.4.3 and 14.4.4): where they are, and seeking.

use super::{File, Mapping, agree_on, same_everywhere};
use crate::comm::exchange::run;
use crate::constants::*;
use crate::process::Process;
use crate::{Error, Result};
use std::sync::Arc;

/// The offset in etypes at which data behind `size` bytes of the file begins.
fn end_of(mapping: &Mapping, size: u64) -> u64 {
    mapping.view.position_at(size).div_ceil(mapping.view.etype_bytes())
}

/// Where a seek leads, as a position.
fn target(mapping: &Mapping, offset: i64, whence: i32, current: u64, size: u64) -> Result<u64> {
    let etype = mapping.view.etype_bytes();
    let (base, from) = match whence {
        MPI_SEEK_SET => (0, "MPI_SEEK_SET"),
        MPI_SEEK_CUR => (current / etype, "MPI_SEEK_CUR"),
        MPI_SEEK_END => (end_of(mapping, size), "MPI_SEEK_END"),
        _ => {
            return Err(Error::new(
                MPI_ERR_ARG,
                format!("whence is {whence}; it must be MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END"),
            ));
        }
    };
    let wanted = i128::from(base) + i128::from(offset);
    u64::try_from(wanted)
        .ok()
        .and_then(|etypes| etypes.checked_mul(etype))
        .filter(|&position| position <= i64::MAX as u64)
        .ok_or_else(|| {
            Error::new(
                MPI_ERR_ARG,
                format!(
                    "offset is {offset} from {from}, which leads to etype {wanted} of the view; it must lead to 0 or more, and not \
                     beyond 2^63 - 1 bytes"
                ),
            )
        })
}

impl File {
    /// An error for files that have no places, only an order.
    pub(super) fn check_random_access(&self) -> Result<()> {
        match self.amode & MPI_MODE_SEQUENTIAL {
            0 => Ok(()),
            _ => Err(Error::new(
                MPI_ERR_UNSUPPORTED_OPERATION,
                format!(
                    "{} was opened with MPI_MODE_SEQUENTIAL; only the shared file pointer may be used then (MPI_File_read_shared, \
                     MPI_File_write_ordered and their siblings), and it cannot be moved",
                    self.describe()
                ),
            )),
        }
    }

    /// An offset of the program as a position in the stream of the view.
    pub(super) fn position_of(&self, mapping: &Mapping, offset: i64) -> Result<u64> {
        let etype = mapping.view.etype_bytes();
        let position = u64::try_from(offset).ok().and_then(|offset| offset.checked_mul(etype));
        position.filter(|&position| position <= i64::MAX as u64).ok_or_else(|| {
            Error::new(
                MPI_ERR_ARG,
                format!(
                    "offset is {offset}; it counts etypes of {etype} bytes and must be 0 to {} for {}",
                    i64::MAX as u64 / etype,
                    self.describe()
                ),
            )
        })
    }

    /// MPI_File_seek.
    pub fn seek(&self, offset: i64, whence: i32) -> Result<()> {
        self.check_random_access()?;
        let size = if whence == MPI_SEEK_END { self.disk.size()? } else { 0 };
        let mut state = self.state();
        let position = target(&state.mapping, offset, whence, state.position, size)?;
        state.position = position;
        Ok(())
    }

    /// MPI_File_get_position, in etypes.
    pub fn position(&self) -> Result<i64> {
        self.check_random_access()?;
        let state = self.state();
        Ok((state.position / state.mapping.view.etype_bytes()) as i64)
    }

    /// MPI_File_get_byte_offset: from the start of the file.
    pub fn byte_offset(&self, offset: i64) -> Result<i64> {
        self.check_random_access()?;
        let mapping = self.mapping();
        let position = self.position_of(&mapping, offset)?;
        if !mapping.view.reaches(position, 1) {
            return Err(Error::new(
                MPI_ERR_ARG,
                format!(
                    "offset is {offset}, where the view of {} has no data within 2^63 - 1 bytes; use a lower one",
                    self.describe()
                ),
            ));
        }
        Ok(mapping.view.offset_of(position) as i64)
    }

    /// MPI_File_seek_shared. Collective.
    pub fn seek_shared(&self, process: &Arc<Process>, offset: i64, whence: i32) -> Result<()> {
        let own = self.check_random_access().and_then(|()| self.check_no_split());
        let (channel, mapping) = (self.channel(process), self.mapping());
        let (shared, disk) = (Arc::clone(&self.shared), Arc::clone(&self.disk));
        run(process, &self.communicator, async move {
            agree_on(&channel, own).await?;
            same_everywhere(&channel, offset, "offset").await?;
            same_everywhere(&channel, i64::from(whence), "whence").await?;
            let result = match channel.rank() {
                0 => disk.size().and_then(|size| {
                    shared.update(|current| target(&mapping, offset, whence, current, size)).map(|_| ())
                }),
                _ => Ok(()),
            };
            agree_on(&channel, result).await
        })
    }

    /// MPI_File_get_position_shared, in etypes.
    pub fn position_shared(&self) -> Result<i64> {
        let etype = self.mapping().view.etype_bytes();
        Ok((self.shared.get()? / etype) as i64)
    }
}
