//! The file as the operating system has it: reads, writes and locks, with errors in the standard's classes.

use crate::constants::*;
use crate::{Error, Result};
use parnass_base::UserAddress;
use parnass_base::file::{self, MappedRange, RangeLock};
use parnass_counters::{Counters, FILE_READ_BYTES, FILE_READS, FILE_WRITES, FILE_WRITTEN_BYTES};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An open file, without anything of MPI: what a helper thread works on.
#[derive(Debug)]
pub(super) struct Disk {
    file: fs::File,
    path: PathBuf,
    atomic: AtomicBool,
    /// Whether runs with holes between them may be stored into mapped memory of the file.
    maps: AtomicBool,
    /// In atomic mode, who of this process's threads is at work: the lock of the range excludes only other opens.
    turn: Mutex<()>,
    counters: Counters,
}

/// Error numbers that have no [`ErrorKind`].
const EFAULT: i32 = 14;
const ELOOP: i32 = 40;

/// What an error of the system means: its class, and what to do.
fn meaning(error: &io::Error) -> (i32, &'static str) {
    match error.kind() {
        ErrorKind::NotFound => (MPI_ERR_NO_SUCH_FILE, "check the name, or open it with MPI_MODE_CREATE"),
        ErrorKind::PermissionDenied => (MPI_ERR_ACCESS, "check the permissions of the file and its folder"),
        ErrorKind::AlreadyExists => {
            (MPI_ERR_FILE_EXISTS, "choose another name, or open it without MPI_MODE_EXCL")
        }
        ErrorKind::StorageFull => (MPI_ERR_NO_SPACE, "free space on that file system, or write less"),
        ErrorKind::QuotaExceeded => (MPI_ERR_QUOTA, "free some of your space on that file system"),
        ErrorKind::ReadOnlyFilesystem => {
            (MPI_ERR_READ_ONLY, "open it with MPI_MODE_RDONLY, or write elsewhere")
        }
        ErrorKind::IsADirectory
        | ErrorKind::NotADirectory
        | ErrorKind::InvalidFilename
        | ErrorKind::InvalidInput => (MPI_ERR_BAD_FILE, "give the name of a file"),
        ErrorKind::ExecutableFileBusy | ErrorKind::ResourceBusy => {
            (MPI_ERR_FILE_IN_USE, "wait until nobody else uses it")
        }
        ErrorKind::FileTooLarge => {
            (MPI_ERR_IO, "use lower offsets; the file system or a limit of the shell allows no longer file")
        }
        ErrorKind::NotSeekable => {
            (MPI_ERR_UNSUPPORTED_OPERATION, "use a file whose bytes have places: no pipe, socket or terminal")
        }
        ErrorKind::OutOfMemory => (MPI_ERR_NO_MEM, "use less memory"),
        _ => match error.raw_os_error() {
            Some(EFAULT) => (MPI_ERR_BUFFER, "give a buffer of the size that count and datatype say"),
            Some(ELOOP) => (MPI_ERR_BAD_FILE, "give a name without a circle of symbolic links"),
            _ => (MPI_ERR_IO, "see whether the device or the file server works"),
        },
    }
}

/// An error of the system while `doing` something with a file, as in "cannot open".
#[cold]
pub(super) fn failed(doing: &str, path: &Path, error: &io::Error) -> Error {
    let (class, remedy) = meaning(error);
    Error::new(class, format!("cannot {doing} the file \"{}\": {error}; {remedy}", path.display()))
}

/// A range of the file that nobody else touches meanwhile, in atomic mode.
pub(super) struct Exclusion<'a> {
    _range: RangeLock<'a>,
    _turn: MutexGuard<'a, ()>,
}

impl Disk {
    pub(super) fn new(file: fs::File, path: PathBuf, counters: Counters) -> Disk {
        let maps = AtomicBool::new(file::is_local(&file));
        Disk { file, path, atomic: AtomicBool::new(false), maps, turn: Mutex::new(()), counters }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn is_atomic(&self) -> bool {
        self.atomic.load(Ordering::Relaxed)
    }

    pub(super) fn set_atomic(&self, atomic: bool) {
        self.atomic.store(atomic, Ordering::Relaxed);
    }

    /// As `error`, of this file.
    #[cold]
    fn failed(&self, doing: &str, error: &io::Error) -> Error {
        failed(doing, &self.path, error)
    }

    /// In atomic mode: waits for the bytes `first .. end`.
    pub(super) fn exclude(&self, first: u64, end: u64, alone: bool) -> Result<Option<Exclusion<'_>>> {
        if !self.is_atomic() {
            return Ok(None);
        }
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let range = RangeLock::wait(&self.file, first, end - first, alone)
            .map_err(|error| self.failed("lock, for atomic mode, a part of", &error))?;
        Ok(Some(Exclusion { _range: range, _turn: turn }))
    }

    /// Reads; fewer bytes only at the end of the file.
    pub(super) fn read(&self, address: UserAddress, length: u64, offset: u64) -> Result<u64> {
        match file::read_at(&self.file, address, length as usize, offset) {
            Ok(done) => {
                self.counters.count_any(FILE_READS, 1);
                self.counters.count_any(FILE_READ_BYTES, done as u64);
                Ok(done as u64)
            }
            Err(error) => Err(self.failed(&format!("read {length} bytes at byte {offset} of"), &error)),
        }
    }

    /// Writes all.
    pub(super) fn write(&self, address: UserAddress, length: u64, offset: u64) -> Result<()> {
        file::write_at(&self.file, address, length as usize, offset)
            .map_err(|error| self.failed(&format!("write {length} bytes at byte {offset} of"), &error))?;
        self.counters.count_any(FILE_WRITES, 1);
        self.counters.count_any(FILE_WRITTEN_BYTES, length);
        Ok(())
    }

    /// Writes runs in the range `first .. end` through a mapping, `bytes` bytes without the last of them: `store` is told where byte 0 of the file would be, and
    /// touches no holes. Before, `write_last` is called, which writes the last of the data with a call. That makes the file long
    /// enough, and never takes back what others have appended, as setting the size could. It is done even where the file is that
    /// long already: Linux tells the new size of a file before it has zeroed what lies between the old end and the data behind it, and
    /// a store in between would be lost. A write waits until whoever made the file longer is done.
    ///
    /// False if not all was stored, as the file cannot be mapped, its device is full or somebody has made it shorter meanwhile: then the
    /// runs are to be written one by one, which also finds out what is wrong.
    pub(super) fn write_mapped(
        &self,
        (first, end): (u64, u64),
        bytes: u64,
        write_last: impl FnOnce() -> Result<()>,
        store: impl FnOnce(UserAddress),
    ) -> Result<bool> {
        if !self.maps.load(Ordering::Relaxed) {
            return Ok(false);
        }
        write_last()?;
        match MappedRange::for_writing(&self.file, first, end).and_then(|range| range.store(store)) {
            Ok(all_there) => {
                if all_there {
                    self.counters.count_any(FILE_WRITES, 1);
                    self.counters.count_any(FILE_WRITTEN_BYTES, bytes);
                }
                Ok(all_there)
            }
            Err(error) => {
                // A file that is open for writing only, or a kernel that cannot do this, stays so; a full device may not.
                if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidInput) {
                    self.maps.store(false, Ordering::Relaxed);
                }
                Ok(false)
            }
        }
    }

    /// Its length in bytes.
    pub(super) fn size(&self) -> Result<u64> {
        let metadata = self.file.metadata().map_err(|error| self.failed("ask for the size of", &error))?;
        Ok(metadata.len())
    }

    pub(super) fn set_size(&self, size: u64) -> Result<()> {
        self.file.set_len(size).map_err(|error| {
            let error = self.failed(&format!("make {size} bytes the size of"), &error);
            // What is no regular file has no size to set.
            if error.class() == MPI_ERR_BAD_FILE {
                Error::new(MPI_ERR_UNSUPPORTED_OPERATION, error.message())
            } else {
                error
            }
        })
    }

    pub(super) fn allocate(&self, size: u64) -> Result<()> {
        file::allocate(&self.file, size)
            .map_err(|error| self.failed(&format!("allocate {size} bytes for"), &error))
    }

    /// Has the device take what was written. What cannot be synchronised, such as a device of characters, needs not be.
    pub(super) fn sync(&self) -> Result<()> {
        match self.file.sync_data() {
            Err(error) if error.kind() != ErrorKind::InvalidInput => Err(self.failed("synchronise", &error)),
            _ => Ok(()),
        }
    }
}

/// MPI_File_delete.
pub fn delete(path: &Path) -> Result<()> {
    fs::remove_file(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::new(
            MPI_ERR_NO_SUCH_FILE,
            format!("cannot delete the file \"{}\": {error}; check the name", path.display()),
        ),
        _ => failed("delete", path, &error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_have_their_classes() {
        let class = |number| meaning(&io::Error::from_raw_os_error(number)).0;
        let expected = [
            (1, MPI_ERR_ACCESS),
            (2, MPI_ERR_NO_SUCH_FILE),
            (5, MPI_ERR_IO),
            (13, MPI_ERR_ACCESS),
            (14, MPI_ERR_BUFFER),
            (16, MPI_ERR_FILE_IN_USE),
            (17, MPI_ERR_FILE_EXISTS),
            (20, MPI_ERR_BAD_FILE),
            (21, MPI_ERR_BAD_FILE),
            (26, MPI_ERR_FILE_IN_USE),
            (27, MPI_ERR_IO),
            (28, MPI_ERR_NO_SPACE),
            (29, MPI_ERR_UNSUPPORTED_OPERATION),
            (30, MPI_ERR_READ_ONLY),
            (36, MPI_ERR_BAD_FILE),
            (40, MPI_ERR_BAD_FILE),
            (122, MPI_ERR_QUOTA),
        ];
        for (number, wanted) in expected {
            assert_eq!(class(number), wanted, "error number {number}");
        }
    }
}
