//! User memory as an opaque value.
//!
//! The layers between the C interface and the transports hand user buffers on without ever looking into
//! them; they are compiled with `forbid(unsafe_code)`. A [`UserAddress`] is made once, in an unsafe call by
//! whoever received the pointer, and is from then on a plain number that can be offset, stored in shared
//! memory and given to a transport.

use std::alloc::{Layout, alloc, dealloc};

/// An address in the memory of the process that made it.
///
/// It carries no length and no lifetime: the promise that the bytes behind it stay valid until the operation
/// that uses them has completed is given by the caller of [`UserAddress::new`], as MPI asks of its users
/// (MPI 5.0, section 3.7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct UserAddress(usize);

impl UserAddress {
    /// The null address, for buffers of length zero.
    pub const NULL: UserAddress = UserAddress(0);

    /// Takes a pointer that came from the user.
    ///
    /// # Safety
    /// Every byte that an operation reaches through this address must stay readable (and, for a receive,
    /// writable) until that operation has completed.
    #[inline]
    pub const unsafe fn new(pointer: *const u8) -> UserAddress {
        // A pointer-to-integer transmute is not allowed in const evaluation; the union read is.
        union Bits {
            pointer: *const u8,
            value: usize,
        }
        // SAFETY: a thin pointer and usize have the same size and every bit pattern is a usize.
        UserAddress(unsafe { Bits { pointer }.value })
    }

    /// An address again, from the number that [`UserAddress::value`] gave: one that went through shared memory
    /// or through a message. The promise given when it was made still holds for it, and for it alone.
    #[inline]
    pub const fn restore(value: usize) -> UserAddress {
        UserAddress(value)
    }

    /// The address as a number.
    #[inline]
    pub const fn value(self) -> usize {
        self.0
    }

    /// The address `bytes` further on. Wraps, since absolute displacements start from address 0 (MPI_BOTTOM).
    #[inline]
    #[must_use]
    pub const fn offset(self, bytes: i64) -> UserAddress {
        UserAddress(self.0.wrapping_add_signed(bytes as isize))
    }

    /// The address as a pointer, for the crates that may dereference it.
    #[inline]
    pub fn as_ptr(self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.0)
    }

    /// Copies `length` bytes from `source` to `self`; the two ranges may overlap.
    #[inline]
    pub fn copy_from(self, source: UserAddress, length: usize) {
        if length > 0 {
            // SAFETY: both addresses were promised valid for the operation when they were made.
            unsafe { std::ptr::copy(source.as_ptr(), self.as_ptr(), length) }
        }
    }

    /// As [`UserAddress::copy_from`], for two ranges that do not overlap.
    #[inline]
    pub fn copy_apart(self, source: UserAddress, length: usize) {
        // SAFETY: both addresses were promised valid for the operation when they were made.
        unsafe {
            if length == size_of::<u64>() {
                self.as_ptr().cast::<u64>().write_unaligned(source.as_ptr().cast::<u64>().read_unaligned());
            } else {
                crate::copy::copy(source.as_ptr(), self.as_ptr(), length);
            }
        }
    }

    /// As [`UserAddress::copy_apart`], to memory that another core has read.
    #[inline]
    pub fn copy_to_read(self, source: UserAddress, length: usize) {
        // SAFETY: both addresses were promised valid for the operation when they were made.
        unsafe { crate::copy::copy_to_read(source.as_ptr(), self.as_ptr(), length) }
    }

    /// As [`UserAddress::copy_to_read`], of what is read when all is there.
    #[inline]
    pub fn copy_to_read_later(self, source: UserAddress, length: usize) {
        // SAFETY: both addresses were promised valid for the operation when they were made.
        unsafe { crate::copy::copy_to_read_later(source.as_ptr(), self.as_ptr(), length) }
    }

    /// As [`UserAddress::copy_apart`], of what another core has written.
    #[inline]
    pub fn copy_from_written(self, source: UserAddress, length: usize) {
        // SAFETY: both addresses were promised valid for the operation when they were made.
        unsafe { crate::copy::copy_from_written(source.as_ptr(), self.as_ptr(), length) }
    }

    /// Has `length` bytes from here on, which this core is about to read, brought to it all at once. Only a hint.
    #[inline]
    pub fn fetch_to_read(self, length: usize) {
        for at in (0..length).step_by(crate::copy::LINE) {
            crate::atomics::fetch_to_read(std::ptr::without_provenance::<u8>(self.0.wrapping_add(at)));
        }
    }

    /// As [`UserAddress::copy_apart`], past the caches. Never inlined: who calls it mostly copies little.
    #[inline(never)]
    pub fn stream_from(self, source: UserAddress, length: usize) {
        // SAFETY: both addresses were promised valid for the operation when they were made.
        unsafe { crate::copy::stream(source.as_ptr(), self.as_ptr(), length) }
    }

    /// Copies `bytes` to this address.
    #[inline]
    pub fn write(self, bytes: &[u8]) {
        // SAFETY: the address was promised valid and writable for the operation when it was made, and a
        // `&[u8]` cannot overlap memory that somebody else may write.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.as_ptr(), bytes.len()) }
    }

    /// Writes `length` zeros to this address.
    pub fn write_zeros(self, length: usize) {
        // SAFETY: as for `write`.
        unsafe { self.as_ptr().write_bytes(0, length) }
    }

    /// The eight bytes at this address.
    #[inline(always)]
    pub fn read_word(self) -> u64 {
        // SAFETY: as for `write`.
        unsafe { self.as_ptr().cast::<u64>().read_unaligned() }
    }

    /// Writes eight bytes at this address.
    #[inline(always)]
    pub fn write_word(self, word: u64) {
        // SAFETY: as for `write`.
        unsafe { self.as_ptr().cast::<u64>().write_unaligned(word) }
    }

    /// The first `length` bytes, fewer than eight, of a word that starts at this address; the others are 0.
    #[inline]
    pub fn read_part(self, length: usize) -> u64 {
        let mut bytes = [0; 8];
        for (index, byte) in bytes.iter_mut().enumerate().take(length) {
            // SAFETY: as for `write`.
            *byte = unsafe { self.offset(index as i64).as_ptr().read() };
        }
        u64::from_ne_bytes(bytes)
    }

    /// Writes the first `length` bytes, fewer than eight, of a word to this address.
    #[inline]
    pub fn write_part(self, word: u64, length: usize) {
        for (index, byte) in word.to_ne_bytes().into_iter().enumerate().take(length) {
            // SAFETY: as for `write`.
            unsafe { self.offset(index as i64).as_ptr().write(byte) };
        }
    }

    /// Copies `bytes.len()` bytes from this address.
    #[inline]
    pub fn read(self, bytes: &mut [u8]) {
        // SAFETY: as for `write`.
        unsafe { std::ptr::copy_nonoverlapping(self.as_ptr(), bytes.as_mut_ptr(), bytes.len()) }
    }
}

/// Working memory that is addressed like a user buffer: packed messages, partial results of reductions.
/// Aligned to a cache line; its content is whatever was written to it.
#[derive(Debug)]
pub struct Scratch {
    address: *mut u8,
    length: usize,
}

// SAFETY: a Scratch owns its memory and gives out only addresses, never references.
unsafe impl Send for Scratch {}
// SAFETY: as above.
unsafe impl Sync for Scratch {}

impl Scratch {
    const ALIGNMENT: usize = 64;

    /// `length` bytes, zeroed only if the allocator does so.
    pub fn new(length: usize) -> Scratch {
        let layout = Self::layout(length);
        // SAFETY: the layout has a size of at least 1.
        let address = unsafe { alloc(layout) };
        if address.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        address.expose_provenance();
        Scratch { address, length }
    }

    fn layout(length: usize) -> Layout {
        Layout::from_size_align(length.max(1), Self::ALIGNMENT).expect("a length below isize::MAX")
    }

    /// Where it starts.
    #[inline]
    pub fn address(&self) -> UserAddress {
        UserAddress(self.address as usize)
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with the same layout.
        unsafe { dealloc(self.address, Self::layout(self.length)) }
    }
}
