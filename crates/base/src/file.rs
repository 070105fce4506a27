//! Files that are read and written from user memory at given places, and locks of ranges of them.

use crate::UserAddress;
use crate::torn::Watched;
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

/// File systems of one machine, by their numbers in statfs(2): what is stored into mapped memory of such a file is in the file, byte by
/// byte, for all who read it. A network file system may send whole pages, with what lay between those bytes before.
const LOCAL_FILE_SYSTEMS: [u64; 6] = [
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683E, // Btrfs
    0xF2F5_2010, // F2FS
    0x0102_1994, // tmpfs
    0x794C_7630, // overlayfs
];

/// Whether [`MappedRange`] may be used: a regular file, on a file system of this machine.
pub fn is_local(file: &File) -> bool {
    // SAFETY: a structure of integers.
    let mut about: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills a structure that lives during the call.
    let known = unsafe { libc::fstatfs(file.as_raw_fd(), &mut about) } == 0
        && LOCAL_FILE_SYSTEMS.contains(&(about.f_type as u64 & 0xFFFF_FFFF));
    known && file.metadata().is_ok_and(|metadata| metadata.is_file())
}

/// A range of a file as memory: what is stored there is in the file, and no byte beside it is touched, whoever else writes there.
#[derive(Debug)]
pub struct MappedRange {
    start: *mut libc::c_void,
    length: usize,
    /// Of its first byte, in the file.
    offset: u64,
}

impl MappedRange {
    /// Maps the bytes `first .. end`, which must lie before the end of the file, to be written. All pages are brought into memory and
    /// given storage here, so that a full device is an error of this call and not one of [`MappedRange::store`].
    ///
    /// # Errors
    /// As mmap(2) and madvise(2): the file is not open for both directions, the device is full, or the kernel is older than 5.14.
    pub fn for_writing(file: &File, first: u64, end: u64) -> io::Result<MappedRange> {
        let offset = first - first % crate::PAGE as u64;
        let length = (end - offset) as usize;
        let (descriptor, place) = (file.as_raw_fd(), place(offset)?);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, descriptor, place)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        start.expose_provenance();
        let range = MappedRange { start, length, offset };
        // SAFETY: advice about the mapping that was just made.
        match unsafe { libc::madvise(start, length, libc::MADV_POPULATE_WRITE) } {
            0 => Ok(range),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Has `store` store into the range. It is told where byte 0 of the file would be, and only bytes of the range may be reached from there, and
    /// only meanwhile. False: the file was made shorter, or its device could not be written, and some of what was stored is nowhere.
    ///
    /// # Errors
    /// Too many threads do this at once; nothing was stored.
    pub fn store(&self, store: impl FnOnce(UserAddress)) -> io::Result<bool> {
        let watched = Watched::new(self.start.addr(), self.length)?;
        // SAFETY: the mapping is there to be read and written, and where the file cannot be, it is replaced by memory that can.
        let start = unsafe { UserAddress::new(self.start.cast()) };
        store(start.offset((self.offset as i64).wrapping_neg()));
        Ok(!watched.is_torn())
    }
}

impl Drop for MappedRange {
    fn drop(&mut self) {
        // SAFETY: mapped in `for_writing`; who was given addresses in it was told for how long.
        unsafe { libc::munmap(self.start, self.length) };
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
    fn what_is_stored_into_a_mapped_range_is_in_the_file() {
        let (path, file) = temporary("mapped");
        file.set_len(20_000).unwrap();
        if !is_local(&file) {
            // Elsewhere nobody maps.
            return std::fs::remove_file(path).unwrap();
        }
        let range = MappedRange::for_writing(&file, 5_000, 19_990).unwrap();
        let all_there = range.store(|origin| {
            for offset in [5_000, 9_000, 19_987] {
                origin.offset(offset).write(b"abc");
            }
        });
        assert!(all_there.unwrap());
        drop(range);
        let memory = Scratch::new(20_000);
        assert_eq!(read_at(&file, memory.address(), 20_000, 0).unwrap(), 20_000);
        let mut bytes = vec![0; 20_000];
        memory.address().read(&mut bytes);
        let mut expected = vec![0; 20_000];
        for offset in [5_000, 9_000, 19_987] {
            expected[offset..offset + 3].copy_from_slice(b"abc");
        }
        assert!(bytes == expected, "the bytes of the file are others");
        let reader = File::open(&path).unwrap();
        assert!(MappedRange::for_writing(&reader, 0, 10).is_err(), "not open for writing");
        assert!(MappedRange::for_writing(&file, 40_000, 40_010).is_err(), "behind the end");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_file_that_is_made_shorter_meanwhile_is_found_out() {
        let (path, file) = temporary("torn");
        file.set_len(100_000).unwrap();
        if !is_local(&file) {
            return std::fs::remove_file(path).unwrap();
        }
        // Also in threads that hear no signals, several at once, again and again.
        std::thread::scope(|scope| {
            for first in [0, 40_000] {
                let (file, path) = (&file, &path);
                scope.spawn(move || {
                    crate::process::block_signals();
                    for _ in 0..100 {
                        let own = path.with_extension(first.to_string());
                        let short =
                            File::options().read(true).write(true).create(true).truncate(true).open(&own);
                        let short = short.unwrap();
                        short.set_len(100_000).unwrap();
                        let torn = MappedRange::for_writing(&short, first, 90_000).unwrap();
                        let whole = MappedRange::for_writing(file, first, first + 10_000).unwrap();
                        short.set_len(50_000).unwrap();
                        let store = |origin: UserAddress| {
                            origin.offset(first as i64).write(b"before");
                            origin.offset(89_000).write(b"behind");
                        };
                        assert!(!torn.store(store).unwrap(), "a store behind the end");
                        assert!(whole.store(|origin| origin.offset(first as i64).write(b"x")).unwrap());
                        std::fs::remove_file(own).unwrap();
                    }
                });
            }
        });
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn only_regular_files_of_this_machine_are_mapped() {
        assert!(!is_local(&File::open("/dev/zero").unwrap()));
        assert!(!is_local(&File::open("/proc/self/maps").unwrap()));
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
