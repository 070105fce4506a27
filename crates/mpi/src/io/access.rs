//! Data access (MPI 5.0, section 14.4): which bytes a call means, and which pointer it moves.

use super::collective::CollectiveAccess;
use super::transfer::Transfer;
use super::worker::perform;
use super::{File, Split};
use crate::comm::exchange::start_with_status;
use crate::constants::*;
use crate::datatype::Buffer;
use crate::process::Process;
use crate::request::{Request, Status};
use crate::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Whether data goes to memory or to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Read,
    Write,
}

/// Where in the view an access begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointer {
    /// At this offset in etypes.
    At(i64),
    /// At the individual file pointer.
    Individual,
    /// At the shared file pointer; in the order of the ranks, if the call is collective.
    Shared,
}

impl Direction {
    fn name(self) -> &'static str {
        match self {
            Direction::Read => "read",
            Direction::Write => "write",
        }
    }
}

impl Pointer {
    /// In the names of the split collective procedures.
    fn ending(self) -> &'static str {
        match self {
            Pointer::At(_) => "at_all",
            Pointer::Individual => "all",
            Pointer::Shared => "ordered",
        }
    }
}

/// Does what a transfer of one process asks, and tells how it went.
fn finish(transfer: &Transfer, direction: Direction, done: Result<u64>) -> Result<Status> {
    match direction {
        Direction::Read => transfer.reconvert(done?),
        Direction::Write => done.map(|_| transfer.written()),
    }
}

pub(super) fn move_data(transfer: &Transfer, direction: Direction) -> Result<u64> {
    match direction {
        Direction::Read => transfer.read(),
        Direction::Write => transfer.write().map(|()| transfer.bytes),
    }
}

impl File {
    /// An error unless the mode in which the file was opened lets it be accessed so.
    fn check_access(&self, direction: Direction, pointer: Pointer) -> Result<()> {
        if pointer != Pointer::Shared {
            self.check_random_access()?;
        }
        match direction {
            Direction::Write => self.check_writable(),
            Direction::Read if self.amode & MPI_MODE_WRONLY != 0 => Err(Error::new(
                MPI_ERR_ACCESS,
                format!(
                    "{} was opened with MPI_MODE_WRONLY and cannot be read; open it with MPI_MODE_RDWR or MPI_MODE_RDONLY",
                    self.describe()
                ),
            )),
            Direction::Read => Ok(()),
        }
    }

    /// The transfer that a call means; the individual pointer moves behind it.
    fn transfer(&self, direction: Direction, pointer: Pointer, buffer: &Buffer<'_>) -> Result<Transfer> {
        self.check_access(direction, pointer)?;
        let (mapping, sieving) = {
            let state = self.state();
            (Arc::clone(&state.mapping), state.hints.sieving)
        };
        let mut transfer = Transfer::new(&self.disk, &mapping, sieving, buffer)?;
        match pointer {
            Pointer::At(offset) => transfer.place(self.position_of(&mapping, offset)?)?,
            Pointer::Individual => {
                let mut state = self.state();
                transfer.place(state.position)?;
                state.position += transfer.bytes;
            }
            Pointer::Shared => {}
        }
        if direction == Direction::Write {
            transfer.convert()?;
        }
        Ok(transfer)
    }

    /// As [`File::transfer`], for one process: the shared pointer moves too.
    fn own_transfer(&self, direction: Direction, pointer: Pointer, buffer: &Buffer<'_>) -> Result<Transfer> {
        let mut transfer = self.transfer(direction, pointer, buffer)?;
        if pointer == Pointer::Shared {
            transfer.place(self.shared.advance(transfer.bytes)?)?;
        }
        Ok(transfer)
    }

    /// A read that met the end of the file leaves the individual pointer there, unless somebody has moved it meanwhile.
    fn stop_at(&self, start: u64, wanted: u64, done: u64) {
        let mut state = self.state();
        if done < wanted && state.position == start + wanted {
            let etype = state.mapping.view.etype_bytes();
            state.position = start + done.div_ceil(etype) * etype;
        }
    }

    /// MPI_File_read, MPI_File_write and their siblings that are neither collective nor nonblocking.
    pub fn access(&self, direction: Direction, pointer: Pointer, buffer: Buffer<'_>) -> Result<Status> {
        let transfer = self.own_transfer(direction, pointer, &buffer)?;
        let done = move_data(&transfer, direction);
        if let (Ok(done), Pointer::Individual) = (&done, pointer) {
            self.stop_at(transfer.start, transfer.bytes, *done);
        }
        finish(&transfer, direction, done)
    }

    /// MPI_File_iread, MPI_File_iwrite and their siblings: a helper thread does the work.
    pub fn start_access(
        &self,
        process: &Arc<Process>,
        direction: Direction,
        pointer: Pointer,
        buffer: Buffer<'_>,
    ) -> Result<Arc<Request>> {
        let transfer = Arc::new(self.own_transfer(direction, pointer, &buffer)?);
        let worker = Arc::clone(process);
        Ok(start_with_status(process, &self.communicator, async move {
            let moved = Arc::clone(&transfer);
            let done = perform(&worker, true, move || move_data(&moved, direction)).await;
            finish(&transfer, direction, done)
        }))
    }

    fn collective(
        &self,
        process: &Arc<Process>,
        direction: Direction,
        pointer: Pointer,
        buffer: &Buffer<'_>,
        background: bool,
    ) -> CollectiveAccess {
        let transfer = self.transfer(direction, pointer, buffer);
        CollectiveAccess {
            process: Arc::clone(process),
            channel: self.channel(process),
            direction,
            transfer,
            ordered: (pointer == Pointer::Shared).then(|| Arc::clone(&self.shared)),
            hints: self.state().hints.clone(),
            background,
            done: Arc::default(),
        }
    }

    /// MPI_File_read_all, MPI_File_write_ordered and their siblings.
    pub fn access_all(
        &self,
        process: &Arc<Process>,
        direction: Direction,
        pointer: Pointer,
        buffer: Buffer<'_>,
    ) -> Result<Status> {
        let access = match self.check_no_split() {
            Ok(()) => self.collective(process, direction, pointer, &buffer, false),
            Err(error) => return Err(error),
        };
        let range = access.transfer.as_ref().ok().map(|transfer| (transfer.start, transfer.bytes));
        let done = Arc::clone(&access.done);
        let request = start_with_status(process, &self.communicator, access.run());
        let status = process.wait_until(None, || request.poll(process))?;
        if let (Some((start, bytes)), Pointer::Individual) = (range, pointer) {
            // Pairs with the store at the end of the access, which was on this thread or passed a lock.
            self.stop_at(start, bytes, done.load(Ordering::Relaxed));
        }
        Ok(status)
    }

    /// MPI_File_iread_all, MPI_File_iwrite_at_all and their siblings.
    pub fn start_access_all(
        &self,
        process: &Arc<Process>,
        direction: Direction,
        pointer: Pointer,
        buffer: Buffer<'_>,
    ) -> Arc<Request> {
        let access = self.collective(process, direction, pointer, &buffer, true);
        start_with_status(process, &self.communicator, access.run())
    }

    /// An error while a split collective access is under way: no other collective may be.
    pub(super) fn check_no_split(&self) -> Result<()> {
        match &self.state().split {
            None => Ok(()),
            Some(split) => Err(Error::new(
                MPI_ERR_IO,
                format!(
                    "MPI_File_{0}_{1}_begin has begun a split collective access on {2}; call MPI_File_{0}_{1}_end first",
                    split.direction.name(),
                    split.pointer.ending(),
                    self.describe()
                ),
            )),
        }
    }

    /// MPI_File_read_all_begin and its siblings.
    pub fn begin_access_all(
        &self,
        process: &Arc<Process>,
        direction: Direction,
        pointer: Pointer,
        buffer: Buffer<'_>,
    ) -> Result<()> {
        self.check_no_split()?;
        let request = self.start_access_all(process, direction, pointer, buffer);
        self.state().split = Some(Split { direction, pointer, request });
        Ok(())
    }

    /// MPI_File_read_all_end and its siblings. Of an offset in `pointer` only the kind counts.
    pub fn end_access_all(
        &self,
        process: &Process,
        direction: Direction,
        pointer: Pointer,
    ) -> Result<Status> {
        let split = {
            let mut state = self.state();
            let fits = |split: &mut Split| {
                split.direction == direction && split.pointer.ending() == pointer.ending()
            };
            state.split.take_if(fits)
        };
        match split {
            Some(split) => process.wait_until(None, || split.request.poll(process)),
            None => {
                self.check_no_split()?;
                Err(Error::new(
                    MPI_ERR_IO,
                    format!(
                        "no split collective access was begun on {}; call MPI_File_{}_{}_begin first",
                        self.describe(),
                        direction.name(),
                        pointer.ending()
                    ),
                ))
            }
        }
    }
}
