//! Arguments in which a call gives its results back: requests and messages that it completes, statuses, strings; and the program's functions.

use super::{null_pointer, slice};
use crate::handles::{self, Class, Held};
use crate::messages;
use crate::objects::{Message, Request, quick, quick_handle};
use parnass_mpi::constants::*;
use parnass_mpi::request::Quick;
use parnass_mpi::{Error, Result};
use std::cell::OnceCell;
use std::ffi::{CStr, c_char, c_int};
use std::marker::PhantomData;
use std::sync::Arc;

/// A request that the call may complete: null, or live.
pub struct RequestInOut {
    place: *mut usize,
    item: Item,
}

/// What a handle of a request names.
enum Item {
    Null,
    Held(Held<Request>),
    /// A receive that is no request yet; and the request that it becomes when something asks for one.
    Quick(Quick, OnceCell<Option<Held<Request>>>),
}

impl Item {
    #[inline(always)]
    fn find(handle: usize) -> Option<Item> {
        if handle == MPI_REQUEST_NULL {
            return Some(Item::Null);
        }
        match quick(handle) {
            Some(quick) => Some(Item::Quick(quick, OnceCell::new())),
            None => Request::table().find(handle).map(Item::Held),
        }
    }

    #[inline(always)]
    fn get(&self) -> Option<&Arc<Request>> {
        match self {
            Item::Null => None,
            Item::Held(held) => Some(held),
            Item::Quick(quick, request) => {
                let request = request.get_or_init(|| Request::table().find(quick_handle(*quick)));
                request.as_deref()
            }
        }
    }

    /// The receive, as long as it is no request.
    #[inline(always)]
    fn quick(&self) -> Option<Quick> {
        match self {
            Item::Quick(quick, request) if request.get().is_none() => Some(*quick),
            _ => None,
        }
    }

    #[inline(always)]
    fn into_held(self) -> Option<Held<Request>> {
        match self {
            Item::Null => None,
            Item::Held(held) => Some(held),
            Item::Quick(_, request) => request.into_inner().flatten(),
        }
    }
}

impl RequestInOut {
    /// Takes the program's pointer to a handle that is live or MPI_REQUEST_NULL.
    ///
    /// # Safety
    /// A `place` that is not null must point to an initialised handle variable.
    #[inline]
    pub unsafe fn new(place: *mut usize, name: &str) -> Result<RequestInOut> {
        if place.is_null() {
            return Err(null_request(name));
        }
        // SAFETY: the caller's promise.
        let handle = unsafe { place.read() };
        match Item::find(handle) {
            Some(item) => Ok(RequestInOut { place, item }),
            None => Err(handles::bad::<Request>(handle, name)),
        }
    }

    /// The request, unless it is MPI_REQUEST_NULL.
    #[inline]
    pub fn get(&self) -> Option<&Arc<Request>> {
        self.item.get()
    }

    /// The receive, if it is no request yet.
    #[inline]
    pub fn quick(&self) -> Option<Quick> {
        self.item.quick()
    }

    /// Writes MPI_REQUEST_NULL, but keeps the handle: a generalized request that is freed before it is complete is still
    /// named by the copies of its handle, for MPI_Grequest_complete.
    pub fn detach(&mut self) {
        self.item = Item::Null;
        // SAFETY: checked when it was made.
        unsafe { self.place.write(MPI_REQUEST_NULL) };
    }

    /// Frees the handle and writes MPI_REQUEST_NULL.
    #[inline]
    pub fn release(&mut self) {
        // SAFETY: checked when it was made.
        unsafe { self.place.write(MPI_REQUEST_NULL) };
        if let Some(held) = std::mem::replace(&mut self.item, Item::Null).into_held() {
            Request::table().release(held);
        }
    }
}

#[cold]
fn null_request(name: &str) -> Error {
    Error::new(MPI_ERR_REQUEST, format!("{name} is a null pointer; give the address of a request"))
}

/// The live request at a place that the call leaves as it is (MPI_Cancel).
///
/// # Safety
/// A `place` that is not null must point to an initialised handle variable.
pub unsafe fn request_at(place: *const usize, name: &str) -> Result<Held<Request>> {
    if place.is_null() {
        return Err(null_request(name));
    }
    // SAFETY: the caller's promise.
    handles::get(unsafe { place.read() }, name)
}

/// An array of requests, which may be none: each is looked up when something is asked of it.
#[derive(Clone, Copy)]
pub struct Requests {
    place: *mut usize,
    length: usize,
}

impl Requests {
    /// Takes the program's array of `length` handles.
    ///
    /// # Safety
    /// A `place` that is not null must point to that many initialised handle variables, which stay so as long as this lives.
    pub unsafe fn new(place: *mut usize, length: i64, name: &str) -> Result<Requests> {
        // SAFETY: the caller's promise.
        let handles = unsafe { slice(place, length, name) }
            .map_err(|error| Error::new(MPI_ERR_REQUEST, error.message()))?;
        Ok(Requests { place, length: handles.len() })
    }

    /// How many.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.length == 0
    }

    /// The handle at a place below the length.
    #[inline(always)]
    pub fn get(self, index: usize) -> usize {
        assert!(index < self.length);
        // SAFETY: as `Requests::new` was promised.
        unsafe { self.place.add(index).read() }
    }

    /// Writes MPI_REQUEST_NULL in its place.
    #[inline(always)]
    pub fn clear(self, index: usize) {
        assert!(index < self.length);
        // SAFETY: as `Requests::new` was promised; the program lets the call write the array (the procedures that take a constant array
        // end nothing).
        unsafe { self.place.add(index).write(MPI_REQUEST_NULL) };
    }
}

/// A message that a matched probe returned, or MPI_MESSAGE_NO_PROC.
pub struct MessageInOut {
    place: *mut usize,
    handle: usize,
}

impl MessageInOut {
    /// Takes the program's pointer to a live handle or MPI_MESSAGE_NO_PROC.
    ///
    /// # Safety
    /// A `place` that is not null must point to an initialised handle variable.
    pub unsafe fn new(place: *mut usize, name: &str) -> Result<MessageInOut> {
        if place.is_null() {
            return Err(null_pointer(name));
        }
        // SAFETY: the caller's promise.
        let handle = unsafe { place.read() };
        if handle == MPI_MESSAGE_NO_PROC || messages::is_kept(handle) {
            return Ok(MessageInOut { place, handle });
        }
        Err(handles::bad::<Message>(handle, name))
    }

    /// Writes MPI_MESSAGE_NULL and gives the message to the receive; `None` for MPI_MESSAGE_NO_PROC.
    pub fn take(self) -> Option<Message> {
        // SAFETY: checked when it was made.
        unsafe { self.place.write(MPI_MESSAGE_NULL) };
        messages::take(self.handle)
    }
}

/// MPI_Status as the ABI lays it out.
///
/// ```text
///   0            4         8            12          16              24        28
///   | MPI_SOURCE | MPI_TAG | MPI_ERROR | cancelled | size in bytes | unused  |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct StatusRecord {
    pub source: c_int,
    pub tag: c_int,
    pub error: c_int,
    cancelled: c_int,
    /// The received size in bytes, low half first.
    size: [c_int; 2],
    unused: [c_int; 2],
}

const _: () = assert!(size_of::<StatusRecord>() == 32 && align_of::<StatusRecord>() == 4);

impl StatusRecord {
    /// Writes all but the error field.
    #[inline]
    pub fn fill(&mut self, source: i32, tag: i32, size_bytes: u64, cancelled: bool) {
        self.source = source;
        self.tag = tag;
        self.set_size_bytes(size_bytes);
        self.set_cancelled(cancelled);
    }

    /// The received size in bytes.
    pub fn size_bytes(&self) -> u64 {
        u64::from(self.size[0] as u32) | (u64::from(self.size[1] as u32) << 32)
    }

    /// Sets the received size in bytes.
    #[inline]
    pub fn set_size_bytes(&mut self, size_bytes: u64) {
        self.size = [size_bytes as c_int, (size_bytes >> 32) as c_int];
    }

    /// Whether the operation was cancelled.
    pub fn cancelled(&self) -> bool {
        self.cancelled != 0
    }

    /// Sets whether the operation was cancelled.
    #[inline]
    pub fn set_cancelled(&mut self, cancelled: bool) {
        self.cancelled = c_int::from(cancelled);
    }
}

/// Where a status goes, if the program wants it.
#[derive(Clone, Copy)]
pub struct StatusOut(*mut StatusRecord);

impl StatusOut {
    /// Takes the program's pointer; null is MPI_STATUS_IGNORE.
    #[inline(always)]
    pub fn new(pointer: *mut StatusRecord) -> StatusOut {
        StatusOut(pointer)
    }

    /// Whether it is MPI_STATUS_IGNORE.
    #[inline]
    pub fn is_ignored(self) -> bool {
        self.0.is_null()
    }

    /// Writes all but the error field (calls that return one status leave it as it was).
    #[inline]
    pub fn set(self, source: i32, tag: i32, size_bytes: u64, cancelled: bool) {
        if !self.is_ignored() {
            // SAFETY: not MPI_STATUS_IGNORE, so the program gave the address of a status; its fields are integers, for
            // which any content is valid.
            unsafe { (*self.0).fill(source, tag, size_bytes, cancelled) }
        }
    }

    /// Writes the error field.
    #[inline]
    pub fn set_error(self, error: i32) {
        if !self.is_ignored() {
            // SAFETY: as for `set`.
            unsafe { (*self.0).error = error }
        }
    }

    /// The empty status (MPI 5.0, section 3.7.3): any source, any tag, size 0, not cancelled.
    #[inline]
    pub fn set_empty(self) {
        self.set(MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false);
        self.set_error(MPI_SUCCESS);
    }

    /// Replaces the whole status.
    pub fn write(self, record: StatusRecord) {
        if !self.is_ignored() {
            // SAFETY: as for `set`.
            unsafe { self.0.write(record) }
        }
    }

    /// The program's pointer, for callbacks (null: ignored).
    pub fn as_ptr(self) -> *mut StatusRecord {
        self.0
    }
}

/// Where an array of statuses goes, if the program wants it.
#[derive(Clone, Copy)]
pub struct StatusesOut(*mut StatusRecord);

impl StatusesOut {
    /// Takes the program's pointer; null is MPI_STATUSES_IGNORE.
    #[inline(always)]
    pub fn new(pointer: *mut StatusRecord) -> StatusesOut {
        StatusesOut(pointer)
    }

    /// Whether it is MPI_STATUSES_IGNORE.
    pub fn is_ignored(self) -> bool {
        self.0.is_null()
    }

    /// The status at `index`, which must be below the count that the program gave.
    #[inline]
    pub fn at(self, index: usize) -> StatusOut {
        StatusOut(if self.0.is_null() { self.0 } else { self.0.wrapping_add(index) })
    }
}

/// A status that the call reads.
///
/// # Safety
/// A pointer that is not null must point to a status.
#[inline]
pub unsafe fn status<'a>(pointer: *const StatusRecord, name: &str) -> Result<&'a StatusRecord> {
    if pointer.is_null() {
        return Err(Error::new(
            MPI_ERR_ARG,
            format!(
                "{name} is MPI_STATUS_IGNORE (or a null pointer); a status that a call has filled is needed"
            ),
        ));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { &*pointer })
}

/// A status that the call changes.
///
/// # Safety
/// A pointer that is not null must point to a status that nobody else uses during the call.
pub unsafe fn status_mut<'a>(pointer: *mut StatusRecord, name: &str) -> Result<&'a mut StatusRecord> {
    // SAFETY: the caller's promise.
    unsafe { status(pointer, name) }?;
    // SAFETY: the caller's promise; not null, as `status` has checked.
    Ok(unsafe { &mut *pointer })
}

/// A string of the program, without its terminating zero. Bytes: MPI names no encoding.
///
/// # Safety
/// A pointer that is not null must point to a zero-terminated string.
pub unsafe fn string<'a>(pointer: *const c_char, name: &str) -> Result<&'a [u8]> {
    if pointer.is_null() {
        return Err(Error::new(MPI_ERR_ARG, format!("{name} is a null pointer; a string is needed")));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { CStr::from_ptr(pointer) }.to_bytes())
}

/// Where a string goes.
pub struct StringOut {
    place: *mut u8,
    capacity: usize,
    length: *mut c_int,
}

impl StringOut {
    /// Takes the program's array of `capacity` characters (the standard's MPI_MAX_* for it, which counts the
    /// terminating zero), and the place for its length.
    pub fn new(
        place: *mut c_char,
        capacity: usize,
        length: Option<*mut c_int>,
        name: &str,
    ) -> Result<StringOut> {
        if place.is_null() && capacity > 0 {
            return Err(null_pointer(name));
        }
        let length = match length {
            Some(length) if length.is_null() => return Err(null_pointer("resultlen")),
            Some(length) => length,
            None => std::ptr::null_mut(),
        };
        Ok(StringOut { place: place.cast(), capacity, length })
    }

    /// For a procedure that is told the capacity by another argument: use [`StringOut::set_within`].
    pub fn unsized_at(place: *mut c_char) -> StringOut {
        StringOut { place: place.cast(), capacity: 0, length: std::ptr::null_mut() }
    }

    /// Writes the string (cut if it is too long), a terminating zero, and the length without the zero.
    pub fn set(&self, text: &[u8]) {
        let written = self.write(text, self.capacity);
        if !self.length.is_null() {
            // SAFETY: not null, and the program gave it for the length.
            unsafe { self.length.write(written as c_int) }
        }
    }

    /// Writes at most `capacity` characters, the terminating zero among them; nothing if `capacity` is 0 or the
    /// pointer is null. Returns how many characters of the text were written.
    pub fn set_within(&self, text: &[u8], capacity: usize) -> usize {
        self.write(text, capacity)
    }

    fn write(&self, text: &[u8], capacity: usize) -> usize {
        if capacity == 0 || self.place.is_null() {
            return 0;
        }
        let length = text.len().min(capacity - 1);
        // SAFETY: the program promises `capacity` characters; length + 1 is not more.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), self.place, length);
            self.place.add(length).write(0);
        }
        length
    }
}

/// A function of the program. The predefined "functions" (MPI_COMM_NULL_COPY_FN, MPI_COMM_DUP_FN) are the values 0
/// and 1: they are compared, never called.
pub struct Function<F> {
    value: usize,
    signature: PhantomData<F>,
}

impl<F> Clone for Function<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Function<F> {}

impl<F: Copy> Function<F> {
    /// Takes the program's function pointer.
    #[inline(always)]
    pub fn new(value: usize) -> Function<F> {
        const { assert!(size_of::<F>() == size_of::<usize>()) };
        Function { value, signature: PhantomData }
    }

    /// The pointer as a number.
    pub fn value(self) -> usize {
        self.value
    }

    /// The function, unless it is one of the predefined values 0 and 1.
    pub fn get(self) -> Option<F> {
        // SAFETY: the program gave a pointer to a function of this signature, and F is a function pointer type of
        // the same size (asserted in `new`).
        (self.value > 1).then(|| unsafe { std::mem::transmute_copy::<usize, F>(&self.value) })
    }

    /// The function, which is needed.
    pub fn required(self, name: &str) -> Result<F> {
        self.get().ok_or_else(|| {
            Error::new(
                MPI_ERR_ARG,
                format!("{name} is {:#x}, not a function; give the address of a function", self.value),
            )
        })
    }
}
