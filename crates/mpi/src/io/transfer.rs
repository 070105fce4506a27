//! One access of one process: a part of the stream of a view, and memory.

use super::Mapping;
use super::disk::Disk;
use super::hints::Sieving;
use crate::constants::*;
use crate::datatype::{Buffer, Datatype};
use crate::request::Status;
use crate::{Error, Result};
use parnass_base::{Scratch, UserAddress};
use parnass_datatype::Layout;
use parnass_io::{Limits, Stretch};
use std::sync::Arc;

/// Bytes that are packed at once.
const PIECE: u64 = 4 << 20;

/// What is read or written where.
pub(super) struct Transfer {
    disk: Arc<Disk>,
    mapping: Arc<Mapping>,
    sieving: Sieving,
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
    pub(super) fn new(
        disk: &Arc<Disk>,
        mapping: &Arc<Mapping>,
        sieving: Sieving,
        buffer: &Buffer<'_>,
    ) -> Result<Transfer> {
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
            sieving,
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

    /// What is to be accessed next behind `done` bytes, and where its bytes lie in memory one behind the other: where the program has
    /// them, if they do so there, or else in `packed`.
    fn next(&self, done: u64, limits: Limits, packed: &mut Option<Scratch>) -> (Stretch, UserAddress) {
        let left = self.bytes - done;
        let (left, address) = match self.memory().contiguous() {
            Some(address) => (left, address.offset(done as i64)),
            None => {
                let packed = packed.get_or_insert_with(|| Scratch::new(PIECE.min(left) as usize));
                (left.min(packed.len() as u64), packed.address())
            }
        };
        (self.mapping.view.stretch(self.start + done, left, limits), address)
    }

    /// Writes all. [`Transfer::convert`] comes before.
    pub(super) fn write(&self) -> Result<()> {
        let Some((first, end)) = self.range() else { return Ok(()) };
        let _exclusion = self.disk.exclude(first, end, true)?;
        let (memory, mut packed, mut done) = (self.memory(), None, 0);
        while done < self.bytes {
            let (stretch, source) = self.next(done, self.sieving.of_writes(), &mut packed);
            if let Some(packed) = &packed {
                memory.pack(done, packed.address(), stretch.bytes);
            }
            self.write_stretch(done, &stretch, source)?;
            done += stretch.bytes;
        }
        Ok(())
    }

    fn write_stretch(&self, skip: u64, stretch: &Stretch, source: UserAddress) -> Result<()> {
        let view = &self.mapping.view;
        let range = (stretch.offset, stretch.end());
        let (last, others) = (stretch.last, stretch.bytes - stretch.last.length);
        let write_last = || self.disk.write(source.offset(others as i64), last.length, last.offset);
        let store = |file| view.scatter(self.start + skip, stretch.bytes, source, file);
        if self.sieving.maps(stretch.runs, stretch.span())
            && self.disk.write_mapped(range, others, write_last, store)?
        {
            return Ok(());
        }
        let (mut done, mut result) = (0, Ok(()));
        view.visit(self.start + skip, stretch.bytes, &mut |run| {
            result = self.disk.write(source.offset(done as i64), run.length, run.offset);
            done += run.length;
            result.is_ok()
        });
        result
    }

    /// Reads; how many bytes of the stream there were up to the end of the file. [`Transfer::reconvert`] comes behind.
    pub(super) fn read(&self) -> Result<u64> {
        let Some((first, end)) = self.range() else { return Ok(0) };
        let _exclusion = self.disk.exclude(first, end, false)?;
        let (memory, mut packed, mut sieve, mut done) = (self.memory(), None, None, 0);
        while done < self.bytes {
            let (stretch, target) = self.next(done, self.sieving.of_reads(), &mut packed);
            let now = self.read_stretch(done, &stretch, target, &mut sieve)?;
            if let Some(packed) = &packed {
                memory.unpack(done, packed.address(), now);
            }
            done += now;
            if now < stretch.bytes {
                break;
            }
        }
        Ok(done)
    }

    /// Reads the runs of a stretch to where they lie side by side; how many bytes there were.
    fn read_stretch(
        &self,
        skip: u64,
        stretch: &Stretch,
        target: UserAddress,
        sieve: &mut Option<Scratch>,
    ) -> Result<u64> {
        if stretch.runs == 1 {
            return self.disk.read(target, stretch.bytes, stretch.offset);
        }
        let (view, start) = (&self.mapping.view, self.start + skip);
        // Later stretches may be longer.
        let longest = self.sieving.read_bytes.min(self.range().map_or(0, |(_, end)| end - stretch.offset));
        let sieve = sieve.get_or_insert_with(|| Scratch::new(longest as usize)).address();
        let there = self.disk.read(sieve, stretch.span(), stretch.offset)?;
        let now = if there < stretch.span() {
            (view.position_at(stretch.offset + there) - start).min(stretch.bytes)
        } else {
            stretch.bytes
        };
        view.gather(start, now, sieve.offset((stretch.offset as i64).wrapping_neg()), target);
        Ok(now)
    }
}
