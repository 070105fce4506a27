//! Files that are read and written from user memory at given places, and locks of ranges of them.

use crate::UserAddress;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// The most bytes of one system call; the kernel takes a little less than 2 GiB.
const MOST_BYTES: usize = 1 << 30;

fn place(offset: u64) -> io::Result<libc::off_t> {
    libc::off_t::try_from(offset).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))
}

/// Calls `transfer` with successive parts of `0 .. length` until all is done, nothing more is to be had, or it fails.
fn by_parts(length: usize, mut transfer: impl FnMut(usize, usize) -> io::Result<isize>) -> io::Result<usize> {
    let mut done = 0;
    while done < length {
        match transfer(done, (length - done).min(MOST_BYTES))? {
            0 => break,
            now if now > 0 => done += now as usize,
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(done)
}

/// Reads up to `length` bytes from a place of the file; fewer only if the file ends before.
///
/// # Errors
/// As pread(2).
pub fn read_at(file: &File, address: UserAddress, length: usize, offset: u64) -> io::Result<usize> {
    by_parts(length, |done, now| {
        let (target, place) =
            (address.offset(done as i64).as_ptr(), place(offset.saturating_add(done as u64))?);
        // SAFETY: the address was promised valid for the operation when it was made; the kernel checks it once more.
        Ok(unsafe { libc::pread(file.as_raw_fd(), target.cast(), now, place) })
    })
}

/// Writes `length` bytes to a place of the file.
///
/// # Errors
/// As pwrite(2); a part may have been written.
pub fn write_at(file: &File, address: UserAddress, length: usize, offset: u64) -> io::Result<()> {
    let done = by_parts(length, |done, now| {
        let (source, place) =
            (address.offset(done as i64).as_ptr(), place(offset.saturating_add(done as u64))?);
        // SAFETY: as in `read_at`.
        Ok(unsafe { libc::pwrite(file.as_raw_fd(), source.cast(), now, place) })
    })?;
    if done < length { Err(io::Error::from(io::ErrorKind::WriteZero)) } else { Ok(()) }
}

/// Gives the file storage for its first `size` bytes; a file that is shorter becomes so long, a longer one stays.
///
/// # Errors
/// As posix_fallocate(3).
pub fn allocate(file: &File, size: u64) -> io::Result<()> {
    if size == 0 {
        return Ok(());
    }
    loop {
        // SAFETY: a call with integers only.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, place(size)?) } {
            0 => return Ok(()),
            libc::EINTR => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// A range of a file that others who lock it have to wait for, until this is dropped.
///
/// The lock belongs to the open file: it excludes other processes and other opens of the same file, but not other threads
/// that use the same one.
#[derive(Debug)]
pub struct RangeLock<'a> {
    file: &'a File,
    start: libc::off_t,
    length: libc::off_t,
}

impl RangeLock<'_> {
    /// Waits for the range `start .. start + length`: alone, or together with others that do not lock it alone.
    ///
    /// # Errors
    /// As fcntl(2): the file system has no locks, or has too many.
    pub fn wait(file: &File, start: u64, length: u64, alone: bool) -> io::Result<RangeLock<'_>> {
        let (start, length) = (place(start)?, place(length)?);
        let kind = if alone { libc::F_WRLCK } else { libc::F_RDLCK };
        set_lock(file, kind, start, length)?;
        Ok(RangeLock { file, start, length })
    }
}

impl Drop for RangeLock<'_> {
    fn drop(&mut self) {
        // Unlocking what is locked fails only for a closed descriptor, which has no locks.
        let _ = set_lock(self.file, libc::F_UNLCK, self.start, self.length);
    }
}

fn set_lock(file: &File, kind: libc::c_int, start: libc::off_t, length: libc::off_t) -> io::Result<()> {
    // SAFETY: a structure of integers.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = kind as libc::c_short;
    range.l_whence = libc::SEEK_SET as libc::c_short;
    range.l_start = start;
    // A length of 0 would be to the end of the file.
    range.l_len = length.max(1);
    loop {
        // SAFETY: fcntl with a lock description that lives during the call.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLKW, &range) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scratch;
    use std::sync::mpsc;

    fn temporary(name: &str) -> (std::path::PathBuf, File) {
        let path = std::env::temp_dir().join(format!("parnass-file-{name}-{}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        (path, file)
    }

    #[test]
    fn what_is_written_is_read_up_to_the_end() {
        let (path, file) = temporary("rw");
        let memory = Scratch::new(16);
        memory.address().write(b"0123456789abcdef");
        write_at(&file, memory.address(), 10, 5).unwrap();
        assert_eq!(read_at(&file, memory.address(), 16, 3).unwrap(), 12);
        let mut bytes = [0; 12];
        memory.address().read(&mut bytes);
        assert_eq!(&bytes, b"\0\x000123456789");
        assert_eq!(read_at(&file, memory.address(), 4, 15).unwrap(), 0);
        allocate(&file, 100).unwrap();
        allocate(&file, 10).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 100);
        assert!(write_at(&file, memory.address(), 1, u64::MAX).is_err());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_full_device_is_an_error() {
        let file = File::options().write(true).open("/dev/full").unwrap();
        let memory = Scratch::new(4);
        memory.address().write(b"full");
        let error = write_at(&file, memory.address(), 4, 0).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    }

    #[test]
    fn who_locks_alone_waits_for_the_others() {
        let (path, file) = temporary("lock");
        let other = File::options().read(true).write(true).open(&path).unwrap();
        let lock = RangeLock::wait(&file, 0, 10, true).unwrap();
        let (said, heard) = mpsc::channel();
        std::thread::scope(|scope| {
            let inside = said.clone();
            scope.spawn(move || {
                drop(RangeLock::wait(&other, 10, 5, true).unwrap());
                inside.send("apart").unwrap();
                drop(RangeLock::wait(&other, 9, 5, false).unwrap());
                inside.send("together").unwrap();
            });
            assert_eq!(heard.recv().unwrap(), "apart");
            said.send("unlocking").unwrap();
            drop(lock);
            assert_eq!([heard.recv().unwrap(), heard.recv().unwrap()], ["unlocking", "together"]);
        });
        std::fs::remove_file(path).unwrap();
    }
}
