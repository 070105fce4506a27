//! One access of one process: a part of the stream of a view, and memory.

use super::Mapping;
use super::disk::Disk;
use crate::constants::*;
use crate::datatype::{Buffer, Datatype};
use crate::request::Status;
use crate::{Error, Result};
use parnass_base::{Scratch, UserAddress};
use parnass_datatype::Layout;
use parnass_io::Run;
use std::sync::Arc;

/// Bytes that are packed, or read with the holes between them, at once.
const PIECE: u64 = 4 << 20;
/// Runs are read together with the holes between them if at most so many times their bytes are read, or one [`SMALL`] piece.
const SIEVE: u64 = 4;
const SMALL: u64 = 64 << 10;

/// What is read or written where.
pub(super) struct Transfer {
    disk: Arc<Disk>,
    mapping: Arc<Mapping>,
    /// Position in the stream of the view.
    pub(super) start: u64,
    /// Bytes of the stream, in the file's representation.
    pub(super) bytes: u64,
    address: UserAddress,
    count: u64,
    datatype: Arc<Datatype>,
    /// The data in the file's representation, where that is not the memory's.
    converted: Option<Scratch>,
}

/// A stream of bytes in memory.
pub(super) struct Memory<'a> {
    address: UserAddress,
    count: u64,
    layout: &'a Layout,
}

impl Memory<'_> {
    /// Copies a part of the stream out.
    pub(super) fn pack(&self, skip: u64, target: UserAddress, length: u64) {
        self.layout.pack(self.count, self.address, skip, target, length);
    }

    /// Copies a part of the stream in.
    pub(super) fn unpack(&self, skip: u64, source: UserAddress, length: u64) {
        self.layout.unpack(self.count, self.address, skip, source, length);
    }

    fn contiguous(&self) -> Option<UserAddress> {
        self.layout.contiguous(self.count).map(|offset| self.address.offset(offset))
    }
}

impl Transfer {
    /// An access from position 0 on; [`Transfer::place`] says where it really is.
    pub(super) fn new(disk: &Arc<Disk>, mapping: &Arc<Mapping>, buffer: &Buffer<'_>) -> Result<Transfer> {
        let bytes = mapping.representation.file_bytes(buffer.count, buffer.datatype)?;
        let etype = mapping.view.etype_bytes();
        if !bytes.is_multiple_of(etype) {
            return Err(Error::new(
                MPI_ERR_TYPE,
                format!(
                    "count and datatype say {bytes} bytes, which are no whole etypes of {etype} bytes; access the file \
                     \"{}\" in whole etypes of its view",
                    disk.path().display()
                ),
            ));
        }
        let converted = match mapping.representation.converts() {
            true => Some(Scratch::new(bytes as usize)),
            false => None,
        };
        Ok(Transfer {
            disk: Arc::clone(disk),
            mapping: Arc::clone(mapping),
            start: 0,
            bytes,
            address: buffer.address,
            count: buffer.count,
            datatype: Arc::clone(buffer.datatype),
            converted,
        })
    }

    /// Sets the position, which the bytes must fit behind.
    pub(super) fn place(&mut self, start: u64) -> Result<()> {
        if !self.mapping.view.reaches(start, self.bytes) {
            return Err(Error::new(
                MPI_ERR_ARG,
                format!(
                    "{} bytes at offset {} of the view of \"{}\" would end behind what the view shows, or what a file can \
                     hold (2^63 - 1 bytes); use a lower offset, and a filetype with data{}",
                    self.bytes,
                    start / self.mapping.view.etype_bytes(),
                    self.disk.path().display(),
                    match self.mapping.view.is_interleaved() {
                        true =>
                            " and an extent no smaller than its span, without which the view shows one filetype",
                        false => "",
                    }
                ),
            ));
        }
        self.start = start;
        Ok(())
    }

    pub(super) fn disk(&self) -> &Arc<Disk> {
        &self.disk
    }

    pub(super) fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// The first byte of the file and one past the last, if there is any.
    pub(super) fn range(&self) -> Option<(u64, u64)> {
        let last = self.bytes.checked_sub(1)?;
        let view = &self.mapping.view;
        Some((view.offset_of(self.start), view.offset_of(self.start + last) + 1))
    }

    /// The bytes of the stream, as they are in the file.
    pub(super) fn memory(&self) -> Memory<'_> {
        match &self.converted {
            Some(converted) => {
                Memory { address: converted.address(), count: self.bytes, layout: &self.mapping.byte }
            }
            None => Memory { address: self.address, count: self.count, layout: self.datatype.layout() },
        }
    }

    fn buffer(&self) -> Buffer<'_> {
        Buffer::new(self.address, self.count, &self.datatype)
    }

    /// Before a write: brings the data into the file's representation.
    pub(super) fn convert(&self) -> Result<()> {
        match &self.converted {
            Some(converted) => self.mapping.representation.encode(&self.buffer(), converted.address()),
            None => Ok(()),
        }
    }

    /// After a read of so many bytes of the stream: brings them into the memory's representation.
    pub(super) fn reconvert(&self, bytes: u64) -> Result<Status> {
        let bytes = match &self.converted {
            Some(converted) => {
                self.mapping.representation.decode(&self.buffer(), converted.address(), bytes)?
            }
            None => bytes,
        };
        Ok(Status { bytes, ..Status::EMPTY })
    }

    /// The status of a write that is done.
    pub(super) fn written(&self) -> Status {
        Status { bytes: self.buffer().size(), ..Status::EMPTY }
    }

    /// Writes all. [`Transfer::convert`] comes before.
    pub(super) fn write(&self) -> Result<()> {
        let Some((first, end)) = self.range() else { return Ok(()) };
        let _exclusion = self.disk.exclude(first, end, true)?;
        let memory = self.memory();
        if let Some(address) = memory.contiguous() {
            return self.write_part(0, address, self.bytes);
        }
        let packed = Scratch::new(PIECE.min(self.bytes) as usize);
        let mut done = 0;
        while done < self.bytes {
            let now = PIECE.min(self.bytes - done);
            memory.pack(done, packed.address(), now);
            self.write_part(done, packed.address(), now)?;
            done += now;
        }
        Ok(())
    }

    fn write_part(&self, skip: u64, address: UserAddress, length: u64) -> Result<()> {
        let (mut done, mut result) = (0, Ok(()));
        self.mapping.view.visit(self.start + skip, length, &mut |run| {
            result = self.disk.write(address.offset(done as i64), run.length, run.offset);
            done += run.length;
            result.is_ok()
        });
        result
    }

    /// Reads; how many bytes of the stream there were up to the end of the file. [`Transfer::reconvert`] comes behind.
    pub(super) fn read(&self) -> Result<u64> {
        let Some((first, end)) = self.range() else { return Ok(0) };
        let _exclusion = self.disk.exclude(first, end, false)?;
        let memory = self.memory();
        let contiguous = memory.contiguous();
        if let Some(address) = contiguous
            && end - first == self.bytes
        {
            return self.disk.read(address, self.bytes, first);
        }
        let packed = contiguous.is_none().then(|| Scratch::new(PIECE.min(self.bytes) as usize));
        let mut sieve = None;
        let mut done = 0;
        while done < self.bytes {
            let runs = self.runs(done);
            let wanted: u64 = runs.iter().map(|run| run.length).sum();
            let target = match (contiguous, &packed) {
                (Some(address), _) => address.offset(done as i64),
                (None, Some(packed)) => packed.address(),
                (None, None) => UserAddress::NULL,
            };
            let now = self.read_runs(&runs, target, &mut sieve)?;
            if packed.is_some() {
                memory.unpack(done, target, now);
            }
            done += now;
            if now < wanted {
                break;
            }
        }
        Ok(done)
    }

    /// The next runs: at most [`PIECE`] bytes, and at most so far apart.
    fn runs(&self, skip: u64) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        let mut left = PIECE.min(self.bytes - skip);
        self.mapping.view.visit(self.start + skip, left, &mut |run| {
            if runs.first().is_some_and(|first| run.end() - first.offset > PIECE) {
                return false;
            }
            left -= run.length;
            runs.push(run);
            left > 0
        });
        runs
    }

    /// Reads runs to where they lie side by side; how many bytes there were.
    fn read_runs(&self, runs: &[Run], target: UserAddress, sieve: &mut Option<Scratch>) -> Result<u64> {
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return Ok(0) };
        let hull = last.end() - first.offset;
        let wanted: u64 = runs.iter().map(|run| run.length).sum();
        let mut done = 0;
        if runs.len() > 1 && (hull <= SMALL || hull <= wanted * SIEVE) {
            let sieve = sieve.get_or_insert_with(|| Scratch::new(PIECE as usize)).address();
            let there = self.disk.read(sieve, hull, first.offset)?;
            for run in runs {
                let skip = run.offset - first.offset;
                let now = run.length.min(there.saturating_sub(skip));
                target.offset(done as i64).copy_apart(sieve.offset(skip as i64), now as usize);
                done += now;
            }
            return Ok(done);
        }
        for run in runs {
            let now = self.disk.read(target.offset(done as i64), run.length, run.offset)?;
            done += now;
            if now < run.length {
                break;
            }
        }
        Ok(done)
    }
}
