//! Mapped memory, and typed views of it.
//!
//! A [`Region`] is one mapping: of a memory file that processes share, or of memory of this process alone. A
//! [`Window`] is a part of it. Both hand out only records (see [`Record`]), bounds-checked, so that their users
//! need no unsafe code. A view keeps its mapping alive.
//!
//! Address space is taken at once, pages are not: whoever is about to touch a part for the first time calls
//! [`Window::reserve`] first, so that a machine without memory gives an error and not a SIGBUS.

use crate::address::UserAddress;
use crate::copy::copy_from_written;
use crate::record::Record;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

/// The granule of [`Window::reserve`], in bytes.
pub const PAGE: usize = 4096;

/// How files are mapped.
const SHARED: i32 = libc::MAP_SHARED | libc::MAP_NORESERVE;

/// One mapping.
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    length: usize,
    /// One descriptor for all that a process maps of a file.
    file: Option<Arc<OwnedFd>>,
    /// Where the mapping starts in the file.
    offset: u64,
}

// SAFETY: a Region owns its mapping; access goes through records made of atomics or raw copies.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Makes an anonymous memory file of `length` bytes, all zero, no page of it in use yet.
    pub fn create_file(name: &std::ffi::CStr, length: usize) -> io::Result<OwnedFd> {
        // SAFETY: `name` is a C string.
        let descriptor = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a fresh descriptor that nobody else owns.
        let file = unsafe { OwnedFd::from_raw_fd(descriptor) };
        // SAFETY: plain system call on an owned descriptor.
        if unsafe { libc::ftruncate(file.as_raw_fd(), length as libc::off_t) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(file)
    }

    /// Maps a memory file, shared with whoever else maps it.
    pub fn map_file(file: OwnedFd) -> io::Result<Arc<Region>> {
        let length = Self::file_length(file.as_fd())?;
        Self::map_start(file, length as usize)
    }

    /// Maps the first `length` bytes of a memory file, which must be that long.
    pub fn map_start(file: OwnedFd, length: usize) -> io::Result<Arc<Region>> {
        Self::map(length, SHARED, Some(Arc::new(file)), 0)
    }

    /// Maps `length` other bytes of the memory file that this one maps, from `offset` on, a multiple of [`PAGE`]; the file must be that long.
    ///
    /// # Errors
    /// There is no address space, or this one maps no file.
    pub fn map_part(&self, offset: u64, length: usize) -> io::Result<Arc<Region>> {
        let file = self.file.clone().ok_or(io::ErrorKind::NotFound)?;
        Self::map(length, SHARED, Some(file), offset)
    }

    /// How many bytes a memory file has.
    pub fn file_length(file: BorrowedFd<'_>) -> io::Result<u64> {
        // SAFETY: an all-zero stat is a valid value to be overwritten.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: `status` is writable and of the right type.
        if unsafe { libc::fstat(file.as_raw_fd(), &mut status) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(status.st_size as u64)
    }

    /// Makes a memory file at least `length` bytes long, whoever else does so at the same time. Its last page is in use then.
    pub fn lengthen(file: BorrowedFd<'_>, length: u64) -> io::Result<()> {
        let last = length.saturating_sub(1) / PAGE as u64 * PAGE as u64;
        Self::allocate(file, 0, last, length - last)
    }

    /// Gives the memory behind a part of a file back; it is zero then.
    pub fn punch(file: BorrowedFd<'_>, offset: u64, length: u64) -> io::Result<()> {
        Self::allocate(file, libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, offset, length)
    }

    fn allocate(file: BorrowedFd<'_>, mode: i32, offset: u64, length: u64) -> io::Result<()> {
        let (offset, length) = (offset as libc::off_t, length as libc::off_t);
        loop {
            // SAFETY: plain system call on a descriptor that is borrowed.
            if unsafe { libc::fallocate(file.as_raw_fd(), mode, offset, length) } == 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    /// `length` bytes of this process alone, zero.
    pub fn private(length: usize) -> io::Result<Arc<Region>> {
        Self::map(length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, None, 0)
    }

    fn map(length: usize, flags: i32, file: Option<Arc<OwnedFd>>, offset: u64) -> io::Result<Arc<Region>> {
        if length == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a mapping of no bytes"));
        }
        let descriptor = file.as_ref().map_or(-1, |file| file.as_raw_fd());
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), length, protection, flags, descriptor, offset as libc::off_t)
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the range was just mapped; the advice only keeps it out of core files. Failure is harmless.
        unsafe { libc::madvise(base, length, libc::MADV_DONTDUMP) };
        let base = NonNull::new(base.cast::<u8>()).expect("the kernel maps nothing at address 0");
        Ok(Arc::new(Region { base, length, file, offset }))
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Never true: an empty mapping cannot be made.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The memory file, if it maps one.
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(|file| file.as_fd())
    }

    /// The part `[start, start + length)`.
    ///
    /// # Panics
    /// If it does not lie inside.
    pub fn window(self: &Arc<Self>, start: usize, length: usize) -> Window {
        assert!(
            start.checked_add(length).is_some_and(|end| end <= self.length),
            "a window outside its region"
        );
        Window { region: self.clone(), start, length }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: mapped in `map` with this length, and every view holds the Arc, so none is left.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.length) };
    }
}

/// A part of a [`Region`].
#[derive(Clone, Debug)]
pub struct Window {
    region: Arc<Region>,
    start: usize,
    length: usize,
}

impl Window {
    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The part `[start, start + length)` of this part.
    ///
    /// # Panics
    /// If it does not lie inside.
    pub fn window(&self, start: usize, length: usize) -> Window {
        self.check(start, length);
        Window { region: self.region.clone(), start: self.start + start, length }
    }

    #[inline]
    fn check(&self, offset: usize, length: usize) {
        assert!(
            offset.checked_add(length).is_some_and(|end| end <= self.length),
            "{length} bytes at {offset} in a window of {}",
            self.length
        );
    }

    /// A pointer to `length` bytes at `offset`, for the crates that may dereference it.
    #[inline]
    pub fn pointer(&self, offset: usize, length: usize) -> *mut u8 {
        self.check(offset, length);
        // SAFETY: inside the mapping, as just checked and as `window` checked before.
        unsafe { self.region.base.as_ptr().add(self.start + offset) }
    }

    /// The address of `length` bytes at `offset`, for copying. It is good as long as the mapping is.
    #[inline]
    pub fn address(&self, offset: usize, length: usize) -> UserAddress {
        let pointer = self.pointer(offset, length);
        // SAFETY: inside the mapping; whoever keeps the address keeps a view, as is said above.
        unsafe { UserAddress::new(pointer) }
    }

    /// `count` records that start at `offset`.
    ///
    /// # Panics
    /// If they do not lie inside, or not aligned.
    pub fn table<T: Record>(&self, offset: usize, count: usize) -> Table<T> {
        let bytes = count.checked_mul(size_of::<T>()).expect("a table that fits the address space");
        let pointer = self.pointer(offset, bytes).cast::<T>();
        assert!(pointer.is_aligned(), "a table that is not aligned");
        Table {
            first: NonNull::new(pointer).expect("no mapping lies at 0"),
            count,
            _region: self.region.clone(),
        }
    }

    /// The record at `offset`.
    ///
    /// # Panics
    /// If it does not lie inside, or not aligned.
    pub fn record<T: Record>(&self, offset: usize) -> Placed<T> {
        Placed(self.table(offset, 1))
    }

    /// Makes sure that memory stands behind `[offset, offset + length)`, whoever touches it later.
    ///
    /// # Errors
    /// The kernel has no memory left (or the job's limit is reached).
    pub fn reserve(&self, offset: usize, length: usize) -> io::Result<()> {
        if length == 0 {
            return Ok(());
        }
        self.check(offset, length);
        let start = (self.start + offset) / PAGE * PAGE;
        let end = (self.start + offset + length).div_ceil(PAGE) * PAGE;
        let end = end.min(self.region.length.div_ceil(PAGE) * PAGE);
        // SAFETY: inside the mapping, rounded to its pages.
        let pointer = unsafe { self.region.base.as_ptr().add(start) };
        loop {
            // SAFETY: the range is mapped; populating changes no content.
            if unsafe { libc::madvise(pointer.cast(), end - start, libc::MADV_POPULATE_WRITE) } == 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR | libc::EAGAIN) => continue,
                // A kernel before 5.14.
                Some(libc::EINVAL | libc::ENOSYS) => break,
                _ => return Err(error),
            }
        }
        let Some(file) = &self.region.file else { return Ok(()) };
        Region::allocate(file.as_fd(), 0, self.region.offset + start as u64, (end - start) as u64)
    }

    /// The record at `offset`, for as long as this view is borrowed.
    ///
    /// # Panics
    /// As [`Window::record`].
    #[inline]
    pub fn reference<T: Record>(&self, offset: usize) -> &T {
        let pointer = self.pointer(offset, size_of::<T>()).cast::<T>();
        assert!(pointer.is_aligned(), "a record that is not aligned");
        // SAFETY: inside the mapping, which this view keeps; T is valid for any content and made of atomics.
        unsafe { &*pointer }
    }

    /// Copies `length` bytes from `offset`, which another process has just written, to `target`.
    #[inline]
    pub fn copy_out(&self, offset: usize, target: UserAddress, length: usize) {
        let pointer = self.pointer(offset, length);
        // SAFETY: `target` was promised valid when it was made, the source lies inside the mapping, which no user
        // memory overlaps.
        unsafe { copy_from_written(pointer, target.as_ptr(), length) }
    }
}

/// Records in a row, in mapped memory.
#[derive(Debug)]
pub struct Table<T: Record> {
    first: NonNull<T>,
    count: usize,
    _region: Arc<Region>,
}

// SAFETY: like a shared slice of T, which is Sync.
unsafe impl<T: Record> Send for Table<T> {}
// SAFETY: as above.
unsafe impl<T: Record> Sync for Table<T> {}

impl<T: Record> Clone for Table<T> {
    fn clone(&self) -> Table<T> {
        Table { first: self.first, count: self.count, _region: self._region.clone() }
    }
}

impl<T: Record> Deref for Table<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: checked to lie in the mapping, which `_region` keeps; T is valid for any content and made of
        // atomics.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

/// One record in mapped memory.
#[derive(Debug)]
pub struct Placed<T: Record>(Table<T>);

impl<T: Record> Clone for Placed<T> {
    fn clone(&self) -> Placed<T> {
        Placed(self.0.clone())
    }
}

impl<T: Record> Deref for Placed<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: a Placed is a table of one.
        unsafe { self.0.first.as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Word32, Word64};

    #[test]
    fn two_mappings_of_one_file_see_the_same_words() {
        let file = Region::create_file(c"test", 3 * PAGE).unwrap();
        let first = Region::map_file(file.try_clone().unwrap()).unwrap();
        let second = Region::map_file(file).unwrap();
        first.window(PAGE, PAGE).reserve(0, PAGE).unwrap();
        first.window(PAGE, PAGE).table::<Word64>(64, 4)[3].set(7);
        assert_eq!(second.window(PAGE + 64 + 24, 8).record::<Word64>(0).get(), 7);
    }

    #[test]
    fn a_file_grows_at_its_end_and_gives_parts_back() {
        let file = Region::create_file(c"test", PAGE).unwrap();
        let far = 1 << 40;
        Region::lengthen(file.as_fd(), far + 3 * PAGE as u64).unwrap();
        Region::lengthen(file.as_fd(), far).unwrap();
        assert_eq!(Region::file_length(file.as_fd()).unwrap(), far + 3 * PAGE as u64);
        let part =
            Region::map_start(file.try_clone().unwrap(), PAGE).unwrap().map_part(far, 3 * PAGE).unwrap();
        let window = part.window(0, 3 * PAGE);
        window.reserve(0, 3 * PAGE).unwrap();
        let word = window.record::<Word64>(2 * PAGE);
        word.set(9);
        Region::punch(file.as_fd(), far, 3 * PAGE as u64).unwrap();
        assert_eq!(word.get(), 0);
    }

    #[test]
    fn bytes_go_in_and_out() {
        let region = Region::private(PAGE).unwrap();
        let window = region.window(0, PAGE);
        let source = *b"portals";
        let mut target = [0; 7];
        // SAFETY: both arrays outlive the copies.
        let (from, to) =
            unsafe { (UserAddress::new(source.as_ptr()), UserAddress::new(target.as_mut_ptr())) };
        window.address(100, 7).copy_apart(from, 7);
        window.copy_out(100, to, 7);
        assert_eq!(&target, b"portals");
    }

    #[test]
    #[should_panic(expected = "in a window of")]
    fn a_record_outside_is_refused() {
        Region::private(PAGE).unwrap().window(0, PAGE).record::<Word32>(PAGE);
    }

    #[test]
    #[should_panic(expected = "not aligned")]
    fn a_crooked_record_is_refused() {
        Region::private(PAGE).unwrap().window(0, PAGE).record::<Word64>(4);
    }
}
