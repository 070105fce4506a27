//! Arguments on their way between the ABIs: places for results, arrays of handles, addresses with a meaning.

use crate::generated::standard;
use crate::generated::tables::{MPI_BUFFER_AUTOMATIC, MPI_IN_PLACE};
use crate::handles::{Class, Comm};
use std::ffi::{c_int, c_void};

/// The address of a buffer, which may be MPI_IN_PLACE or MPI_BUFFER_AUTOMATIC.
#[inline(always)]
pub fn buffer_in(address: *const c_void) -> *const c_void {
    match address.addr() as isize {
        special if special == MPI_IN_PLACE.0 => std::ptr::without_provenance(MPI_IN_PLACE.1 as usize),
        special if special == MPI_BUFFER_AUTOMATIC.0 => {
            std::ptr::without_provenance(MPI_BUFFER_AUTOMATIC.1 as usize)
        }
        _ => address,
    }
}

/// As [`buffer_in`].
#[inline(always)]
pub fn buffer_in_mut(address: *mut c_void) -> *mut c_void {
    buffer_in(address).cast_mut()
}

/// The address of a buffer that the library gives back.
///
/// # Safety
/// The place is null, or holds an address.
pub unsafe fn buffer_out(place: *mut c_void) {
    let place = place.cast::<usize>();
    // SAFETY: the caller's promise.
    if !place.is_null() && unsafe { place.read_unaligned() } == MPI_BUFFER_AUTOMATIC.1 as usize {
        // SAFETY: the caller's promise.
        unsafe { place.write_unaligned(MPI_BUFFER_AUTOMATIC.0 as usize) };
    }
}

/// A place for a handle that the call makes. It is written if the call has written it.
pub struct OutHandle<C: Class> {
    place: *mut C::Raw,
    handle: usize,
}

impl<C: Class> OutHandle<C> {
    /// Takes the program's place.
    #[inline(always)]
    pub fn new(place: *mut C::Raw) -> OutHandle<C> {
        // No handle is 0.
        OutHandle { place, handle: 0 }
    }

    /// What the standard's library gets: a null pointer for a null pointer.
    #[inline(always)]
    pub fn place(&mut self) -> *mut usize {
        if self.place.is_null() { std::ptr::null_mut() } else { &mut self.handle }
    }

    /// Writes the handle.
    ///
    /// # Safety
    /// The place is null or the program's, for a handle.
    #[inline(always)]
    pub unsafe fn finish(&self) {
        if self.handle != 0 && !self.place.is_null() {
            // SAFETY: the caller's promise.
            unsafe { self.place.write(C::output(self.handle)) };
        }
    }
}

/// A handle that the call changes.
pub struct InOutHandle<C: Class> {
    place: *mut C::Raw,
    handle: usize,
    before: usize,
}

impl<C: Class> InOutHandle<C> {
    /// Takes the program's variable.
    ///
    /// # Safety
    /// The place is null, or holds a handle.
    #[inline(always)]
    pub unsafe fn new(place: *mut C::Raw) -> InOutHandle<C> {
        // SAFETY: the caller's promise.
        let handle = if place.is_null() { 0 } else { C::input(unsafe { place.read() }) };
        InOutHandle { place, handle, before: handle }
    }

    /// What the standard's library gets.
    #[inline(always)]
    pub fn place(&mut self) -> *mut usize {
        if self.place.is_null() { std::ptr::null_mut() } else { &mut self.handle }
    }

    /// Writes the handle if the call has changed it.
    ///
    /// # Safety
    /// As for [`InOutHandle::new`].
    #[inline(always)]
    pub unsafe fn finish(&self) {
        if self.handle != self.before && !self.place.is_null() {
            // SAFETY: the caller's promise.
            unsafe { self.place.write(C::output(self.handle)) };
        }
    }
}

/// An array of handles that the call reads.
pub struct Handles {
    handles: Vec<usize>,
    is_null: bool,
}

impl Handles {
    /// Takes the program's array.
    ///
    /// # Safety
    /// It is null or has `length` handles.
    pub unsafe fn new<C: Class>(place: *const C::Raw, length: i64) -> Handles {
        // SAFETY: the caller's promise.
        Handles { handles: unsafe { read::<C>(place, length) }, is_null: place.is_null() }
    }

    /// What the standard's library gets.
    pub fn place(&self) -> *const usize {
        if self.is_null { std::ptr::null() } else { self.handles.as_ptr() }
    }
}

/// # Safety
/// It is null or has `length` handles.
unsafe fn read<C: Class>(place: *const C::Raw, length: i64) -> Vec<usize> {
    let length = if place.is_null() { 0 } else { usize::try_from(length).unwrap_or(0) };
    // SAFETY: the caller's promise.
    (0..length).map(|index| C::input(unsafe { place.add(index).read() })).collect()
}

/// An array of handles that the call changes.
pub struct InOutHandles<C: Class> {
    place: *mut C::Raw,
    handles: Vec<usize>,
    before: Vec<usize>,
}

impl<C: Class> InOutHandles<C> {
    /// Takes the program's array.
    ///
    /// # Safety
    /// It is null or has `length` handles.
    pub unsafe fn new(place: *mut C::Raw, length: i64) -> InOutHandles<C> {
        // SAFETY: the caller's promise.
        let handles = unsafe { read::<C>(place, length) };
        InOutHandles { place, before: handles.clone(), handles }
    }

    /// What the standard's library gets.
    pub fn place(&mut self) -> *mut usize {
        if self.place.is_null() { std::ptr::null_mut() } else { self.handles.as_mut_ptr() }
    }

    /// Writes the handles that the call has changed.
    ///
    /// # Safety
    /// As for [`InOutHandles::new`].
    pub unsafe fn finish(&self) {
        for (index, (handle, before)) in self.handles.iter().zip(&self.before).enumerate() {
            if handle != before {
                // SAFETY: the caller's promise.
                unsafe { self.place.add(index).write(C::output(*handle)) };
            }
        }
    }
}

/// In an integer that the call has not written.
const UNTOUCHED: c_int = c_int::MIN + 0x5a5a;

/// A place for an integer that needs a conversion.
pub struct OutInt {
    place: *mut c_int,
    value: c_int,
    output: fn(c_int) -> c_int,
}

impl OutInt {
    /// Takes the program's place.
    #[inline(always)]
    pub fn new(place: *mut c_int, output: fn(c_int) -> c_int) -> OutInt {
        OutInt { place, value: UNTOUCHED, output }
    }

    /// What the standard's library gets.
    #[inline(always)]
    pub fn place(&mut self) -> *mut c_int {
        if self.place.is_null() { std::ptr::null_mut() } else { &mut self.value }
    }

    /// Writes the integer if the call has written it.
    ///
    /// # Safety
    /// The place is null or the program's, for an integer.
    #[inline(always)]
    pub unsafe fn finish(&self) {
        if self.value != UNTOUCHED && !self.place.is_null() {
            // SAFETY: the caller's promise.
            unsafe { self.place.write((self.output)(self.value)) };
        }
    }
}

/// An integer that the call changes.
pub struct InOutInt {
    place: *mut c_int,
    value: c_int,
    output: fn(c_int) -> c_int,
}

impl InOutInt {
    /// Takes the program's variable.
    ///
    /// # Safety
    /// The place is null, or holds an integer.
    pub unsafe fn new(place: *mut c_int, input: fn(c_int) -> c_int, output: fn(c_int) -> c_int) -> InOutInt {
        // SAFETY: the caller's promise.
        let value = if place.is_null() { 0 } else { input(unsafe { place.read() }) };
        InOutInt { place, value, output }
    }

    /// What the standard's library gets.
    pub fn place(&mut self) -> *mut c_int {
        if self.place.is_null() { std::ptr::null_mut() } else { &mut self.value }
    }

    /// Writes the integer.
    ///
    /// # Safety
    /// As for [`InOutInt::new`].
    pub unsafe fn finish(&self) {
        if !self.place.is_null() && self.value != crate::codes::INVALID {
            // SAFETY: the caller's promise.
            unsafe { self.place.write((self.output)(self.value)) };
        }
    }
}

/// How long the arrays of an exchange with a datatype for each partner are.
pub struct Sizes {
    /// For what is received.
    pub senders: Length,
    /// For what is sent.
    pub receivers: Length,
}

/// The length of one array.
pub struct Length(i64);

impl Sizes {
    /// Asks the standard's library. Where the communicator is none the lengths are 0, and the call itself finds the error.
    pub fn of(comm: c_int, neighbors: bool) -> Sizes {
        let (mut senders, mut receivers) = (0, 0);
        // SAFETY: the entry takes any number as a handle; the places live during the call.
        unsafe {
            standard::MPIX_Comm_exchange_sizes(
                Comm::input(comm),
                c_int::from(neighbors),
                &mut senders,
                &mut receivers,
            );
        }
        Sizes { senders: Length(senders), receivers: Length(receivers) }
    }
}

impl Length {
    /// 0 where `buffer` is MPI_IN_PLACE: then the array is not looked at.
    pub fn unless_in_place(&self, buffer: *const c_void) -> i64 {
        if buffer.addr() as isize == MPI_IN_PLACE.0 { 0 } else { self.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handles::Request;

    #[test]
    fn only_what_has_changed_is_written() {
        let mut requests = [0x2c00_0000, 0x1005, 77, 0x1006];
        // SAFETY: an array of four.
        let mut array = unsafe { InOutHandles::<Request>::new(requests.as_mut_ptr(), 4) };
        assert_eq!(array.handles[1], 0x1005);
        array.handles[3] = 0x180;
        // SAFETY: as above.
        unsafe { array.finish() };
        assert_eq!(requests, [0x2c00_0000, 0x1005, 77, 0x2c00_0000]);
    }

    #[test]
    fn null_places_and_bad_lengths() {
        // SAFETY: null pointers are allowed.
        unsafe {
            assert!(InOutHandles::<Request>::new(std::ptr::null_mut(), 5).place().is_null());
            assert!(InOutHandle::<Request>::new(std::ptr::null_mut()).place().is_null());
            assert!(Handles::new::<Request>(std::ptr::null(), -1).place().is_null());
        }
        assert!(OutHandle::<Request>::new(std::ptr::null_mut()).place().is_null());
        assert!(OutInt::new(std::ptr::null_mut(), |value| value).place().is_null());
    }

    #[test]
    fn addresses() {
        assert_eq!(buffer_in(std::ptr::without_provenance(usize::MAX)).addr(), 1);
        assert_eq!(buffer_in(std::ptr::without_provenance(usize::MAX - 1)).addr(), 2);
        assert_eq!(buffer_in(std::ptr::null()).addr(), 0);
        assert_eq!(buffer_in(std::ptr::without_provenance(0x7000)).addr(), 0x7000);
    }
}
