//! The arguments of C procedures as Rust values: what the generated wrappers make and the bodies get.

use crate::handles::{self, Class, Held};
use crate::objects::{Communicator, Datatype, Message, Request};
use parnass_base::UserAddress;
use parnass_mpi::constants::*;
use parnass_mpi::{Error, Result};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::sync::Arc;

/// A buffer argument, which may be one of the special addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Address(UserAddress);

impl Address {
    /// Takes the program's pointer.
    ///
    /// # Safety
    /// As [`UserAddress::new`]: the program promises that the buffer stays valid until the operation is complete.
    #[inline(always)]
    pub unsafe fn new(pointer: *const c_void) -> Address {
        // SAFETY: the caller's promise.
        Address(unsafe { UserAddress::new(pointer.cast()) })
    }

    /// The address as the layers below know it.
    #[inline(always)]
    pub fn user(self) -> UserAddress {
        self.0
    }

    /// The address as a number.
    #[inline(always)]
    pub fn value(self) -> usize {
        self.0.value()
    }

    /// Whether it is MPI_IN_PLACE.
    #[inline(always)]
    pub fn is_in_place(self) -> bool {
        self.value() == MPI_IN_PLACE
    }

    /// Whether it is null, which is also MPI_BOTTOM.
    #[inline(always)]
    pub fn is_bottom(self) -> bool {
        self.value() == MPI_BOTTOM
    }

    /// Whether it is MPI_BUFFER_AUTOMATIC.
    pub fn is_automatic(self) -> bool {
        self.value() == MPI_BUFFER_AUTOMATIC
    }
}

/// Checks the buffer of a point-to-point call.
#[inline(always)]
pub fn buffer(address: Address, count: i64, datatype: &Arc<Datatype>, name: &str) -> Result<()> {
    if address.value() <= MPI_IN_PLACE && count > 0 {
        doubtful_buffer(address, count, datatype, name)
    } else {
        Ok(())
    }
}

/// MPI_BOTTOM is the null pointer: right for a datatype with absolute addresses, wrong for one that starts at 0.
#[cold]
fn doubtful_buffer(address: Address, count: i64, datatype: &Arc<Datatype>, name: &str) -> Result<()> {
    if address.is_in_place() {
        return Err(Error::new(
            MPI_ERR_BUFFER,
            format!(
                "{name} is MPI_IN_PLACE, which only some collective procedures take; give the address of the data"
            ),
        ));
    }
    let layout = datatype.layout();
    if layout.size() > 0 && layout.true_lower_bound() == 0 {
        return Err(Error::new(
            MPI_ERR_BUFFER,
            format!(
                "{name} is a null pointer, but the count is {count}; give the address of the data, or count 0 \
                 (MPI_BOTTOM needs a datatype with absolute addresses)"
            ),
        ));
    }
    Ok(())
}

#[cold]
fn null_pointer(name: &str) -> Error {
    Error::new(
        MPI_ERR_ARG,
        format!("{name} is a null pointer; give the address of a variable for the result"),
    )
}

/// A count that must not be negative.
#[inline(always)]
pub fn count(value: i64, name: &str) -> Result<i64> {
    if value < 0 { Err(negative_count(value, name)) } else { Ok(value) }
}

#[cold]
fn negative_count(value: i64, name: &str) -> Error {
    let class = if matches!(name, "n" | "ndims") { MPI_ERR_ARG } else { MPI_ERR_COUNT };
    Error::new(class, format!("{name} is {value}; it must be 0 or more"))
}

/// The rank of a target: a rank of the communicator (of the remote group if it is an intercommunicator), or MPI_PROC_NULL.
#[inline(always)]
pub fn destination(rank: c_int, comm: &Communicator, name: &str) -> Result<()> {
    if (rank as u32) < comm.remote_size() as u32 || rank == MPI_PROC_NULL {
        Ok(())
    } else {
        Err(bad_rank(rank, comm, name, " or MPI_PROC_NULL"))
    }
}

/// The rank of a source: as a target, or MPI_ANY_SOURCE.
#[inline(always)]
pub fn source(rank: c_int, comm: &Communicator, name: &str) -> Result<()> {
    if (rank as u32) < comm.remote_size() as u32 || rank == MPI_PROC_NULL || rank == MPI_ANY_SOURCE {
        Ok(())
    } else {
        Err(bad_rank(rank, comm, name, ", MPI_ANY_SOURCE or MPI_PROC_NULL"))
    }
}

#[cold]
fn bad_rank(rank: c_int, comm: &Communicator, name: &str, or: &str) -> Error {
    let highest = comm.remote_size() - 1;
    let whose = if comm.is_inter() { "the remote group of " } else { "" };
    Error::new(
        MPI_ERR_RANK,
        format!("{name} is {rank}; allowed are the ranks 0 to {highest} of {whose}{}{or}", comm.describe()),
    )
}

/// The root of a collective: a rank; on an intercommunicator a rank of the remote group, MPI_ROOT or MPI_PROC_NULL.
#[inline(always)]
pub fn root(rank: c_int, comm: &Communicator, name: &str) -> Result<()> {
    if (rank as u32) < comm.remote_size() as u32
        || (comm.is_inter() && (rank == MPI_ROOT || rank == MPI_PROC_NULL))
    {
        Ok(())
    } else {
        Err(bad_root(rank, comm, name))
    }
}

#[cold]
fn bad_root(rank: c_int, comm: &Communicator, name: &str) -> Error {
    let (highest, on) = (comm.remote_size() - 1, comm.describe());
    let text = if comm.is_inter() {
        format!(
            "{name} is {rank}; on the intercommunicator {on} it is MPI_ROOT at the root, MPI_PROC_NULL elsewhere in \
             the root's group, and the root's rank (0 to {highest}) in the other group"
        )
    } else {
        format!("{name} is {rank}; allowed are the ranks 0 to {highest} of {on}")
    };
    Error::new(MPI_ERR_ROOT, text)
}

/// The tag of a message to send: 0 to MPI_TAG_UB, which is the greatest int.
#[inline(always)]
pub fn tag_send(tag: c_int, name: &str) -> Result<()> {
    if tag >= 0 { Ok(()) } else { Err(bad_tag(tag, name, "")) }
}

/// The tag of a message to receive: as of one to send, or MPI_ANY_TAG.
#[inline(always)]
pub fn tag_receive(tag: c_int, name: &str) -> Result<()> {
    if tag >= 0 || tag == MPI_ANY_TAG { Ok(()) } else { Err(bad_tag(tag, name, " and MPI_ANY_TAG")) }
}

#[cold]
fn bad_tag(tag: c_int, name: &str, or: &str) -> Error {
    Error::new(MPI_ERR_TAG, format!("{name} is {tag}; allowed are 0 to {} (MPI_TAG_UB){or}", c_int::MAX))
}

/// A datatype for communication: it must be committed.
#[inline(always)]
pub fn committed(handle: usize, name: &str) -> Result<Held<Datatype>> {
    let datatype = handles::get::<Datatype>(handle, name)?;
    if datatype.is_committed() { Ok(datatype) } else { Err(uncommitted(name)) }
}

#[cold]
fn uncommitted(name: &str) -> Error {
    Error::new(
        MPI_ERR_TYPE,
        format!("{name} has not been committed; call MPI_Type_commit before using it in communication"),
    )
}

/// A handle that is looked up only if the call needs it (arguments that are significant at the root only).
#[repr(transparent)]
pub struct Handle<T> {
    value: usize,
    class: PhantomData<T>,
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> Handle<T> {
    /// Wraps the program's value.
    #[inline(always)]
    pub fn new(value: usize) -> Handle<T> {
        Handle { value, class: PhantomData }
    }

    /// The handle's value.
    pub fn value(self) -> usize {
        self.value
    }
}

impl<T: Class> Handle<T> {
    /// Whether it is the null handle of its class.
    pub fn is_null(self) -> bool {
        self.value == T::NULL
    }

    /// The object; `name` is the argument's name, for the message.
    #[inline]
    pub fn get(self, name: &str) -> Result<Held<T>> {
        handles::get(self.value, name)
    }
}

impl Handle<Datatype> {
    /// The datatype, which must be committed.
    #[inline]
    pub fn committed(self, name: &str) -> Result<Held<Datatype>> {
        committed(self.value, name)
    }
}

/// A numeric array whose length is known to the body only.
#[derive(Clone, Copy, Debug)]
pub enum IntArray {
    /// Of C int.
    Int(*const i32),
    /// Of MPI_Count or MPI_Aint.
    Large(*const i64),
}

impl IntArray {
    /// Takes a pointer to int.
    #[inline(always)]
    pub fn int(pointer: *const c_int) -> IntArray {
        IntArray::Int(pointer)
    }

    /// Takes a pointer to MPI_Count or MPI_Aint.
    #[inline(always)]
    pub fn large(pointer: *const i64) -> IntArray {
        IntArray::Large(pointer)
    }

    /// Whether the pointer is null.
    pub fn is_null(self) -> bool {
        match self {
            IntArray::Int(pointer) => pointer.is_null(),
            IntArray::Large(pointer) => pointer.is_null(),
        }
    }

    /// The array, of the length that the standard says it has; `name` is the argument's name. The program promises
    /// that length (as it does to C).
    pub fn with_length<'a>(self, length: usize, name: &str) -> Result<Ints<'a>> {
        Ok(match self {
            // SAFETY: the program promises an array of this length.
            IntArray::Int(pointer) => Ints::Int(unsafe { slice(pointer, length as i64, name) }?),
            // SAFETY: as above.
            IntArray::Large(pointer) => Ints::Large(unsafe { slice(pointer, length as i64, name) }?),
        })
    }
}

/// A numeric array of either width.
#[derive(Clone, Copy, Debug)]
pub enum Ints<'a> {
    /// Of C int.
    Int(&'a [i32]),
    /// Of MPI_Count or MPI_Aint.
    Large(&'a [i64]),
}

impl Ints<'_> {
    /// Its length.
    pub fn len(&self) -> usize {
        match self {
            Ints::Int(values) => values.len(),
            Ints::Large(values) => values.len(),
        }
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An element.
    #[inline]
    pub fn get(&self, index: usize) -> i64 {
        match self {
            Ints::Int(values) => i64::from(values[index]),
            Ints::Large(values) => values[index],
        }
    }

    /// The elements.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = i64> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The elements in a vector.
    pub fn to_vec(&self) -> Vec<i64> {
        self.iter().collect()
    }
}

/// An array of handles whose length is known to the body only.
pub struct HandleArray<T>(*const Handle<T>);

impl<T> Clone for HandleArray<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for HandleArray<T> {}

impl<T> HandleArray<T> {
    /// Takes the program's pointer.
    #[inline(always)]
    pub fn new(pointer: *const usize) -> HandleArray<T> {
        HandleArray(pointer.cast())
    }

    /// As [`IntArray::with_length`].
    pub fn with_length<'a>(self, length: usize, name: &str) -> Result<&'a [Handle<T>]> {
        // SAFETY: the program promises an array of this length; a Handle is transparent over its value.
        unsafe { slice(self.0, length as i64, name) }
    }
}

/// A slice of the program's memory.
///
/// # Safety
/// The program promises `length` readable elements at `pointer` for the duration of the call.
#[inline]
pub unsafe fn slice<'a, T>(pointer: *const T, length: i64, name: &str) -> Result<&'a [T]> {
    if length <= 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(Error::new(
            MPI_ERR_ARG,
            format!("{name} is a null pointer; an array of {length} elements is needed"),
        ));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(pointer, length as usize) })
}

/// A value as C sees it.
pub trait Stored: Copy {
    /// The C type.
    type Raw: Copy;
    /// As C stores it.
    fn store(self) -> Self::Raw;
    /// As Rust reads it.
    fn load(raw: Self::Raw) -> Self;
}

macro_rules! stored_as_itself {
    ($($type:ty),*) => {$(
        impl Stored for $type {
            type Raw = $type;
            #[inline(always)]
            fn store(self) -> $type {
                self
            }
            #[inline(always)]
            fn load(raw: $type) -> $type {
                raw
            }
        }
    )*};
}
stored_as_itself!(i32, i64, usize);

impl Stored for bool {
    type Raw = c_int;
    #[inline(always)]
    fn store(self) -> c_int {
        c_int::from(self)
    }
    #[inline(always)]
    fn load(raw: c_int) -> bool {
        raw != 0
    }
}

/// A result of a fixed width (`bool` for a logical, stored as int).
pub struct Out<T: Stored>(*mut T::Raw);

impl<T: Stored> Out<T> {
    /// Takes the program's pointer, which must not be null.
    #[inline(always)]
    pub fn new(pointer: *mut T::Raw, name: &str) -> Result<Out<T>> {
        if pointer.is_null() { Err(null_pointer(name)) } else { Ok(Out(pointer)) }
    }

    /// Writes the result.
    #[inline(always)]
    pub fn set(&self, value: T) {
        // SAFETY: the program gave the address of a variable; it was checked not to be null. C promises alignment.
        unsafe { self.0.write(value.store()) }
    }
}

/// An argument that is read and written.
pub struct InOut<T: Stored>(*mut T::Raw);

impl<T: Stored> InOut<T> {
    /// Takes the program's pointer, which must not be null.
    #[inline(always)]
    pub fn new(pointer: *mut T::Raw, name: &str) -> Result<InOut<T>> {
        if pointer.is_null() { Err(null_pointer(name)) } else { Ok(InOut(pointer)) }
    }

    /// The present value.
    pub fn get(&self) -> T {
        // SAFETY: as for `Out::set`; the program has initialised it.
        T::load(unsafe { self.0.read() })
    }

    /// Replaces it.
    pub fn set(&self, value: T) {
        // SAFETY: as for `Out::set`.
        unsafe { self.0.write(value.store()) }
    }
}

/// A numeric result that is an int in one form of the procedure and 64 bits wide in the other.
pub enum IntOut {
    /// A C int.
    Int(*mut c_int),
    /// An MPI_Count or MPI_Aint.
    Large(*mut i64),
}

impl IntOut {
    /// Takes a pointer to int, not null.
    #[inline(always)]
    pub fn int(pointer: *mut c_int, name: &str) -> Result<IntOut> {
        if pointer.is_null() { Err(null_pointer(name)) } else { Ok(IntOut::Int(pointer)) }
    }

    /// Takes a pointer to MPI_Count or MPI_Aint, not null.
    #[inline(always)]
    pub fn large(pointer: *mut i64, name: &str) -> Result<IntOut> {
        if pointer.is_null() { Err(null_pointer(name)) } else { Ok(IntOut::Large(pointer)) }
    }

    /// Writes the result; MPI_UNDEFINED if an int cannot hold it (as MPI_Get_count, MPI_Type_size and MPI_Pack_size
    /// ask).
    #[inline]
    pub fn set(&self, value: i64) {
        match *self {
            // SAFETY: as for `Out::set`.
            IntOut::Int(pointer) => unsafe { pointer.write(c_int::try_from(value).unwrap_or(MPI_UNDEFINED)) },
            // SAFETY: as for `Out::set`.
            IntOut::Large(pointer) => unsafe { pointer.write(value) },
        }
    }

    /// Writes the result; MPI_ERR_VALUE_TOO_LARGE if an int cannot hold it.
    pub fn set_checked(&self, value: i64, name: &str) -> Result<()> {
        if matches!(self, IntOut::Int(_)) && c_int::try_from(value).is_err() {
            return Err(too_large(value, name));
        }
        self.set(value);
        Ok(())
    }
}

#[cold]
fn too_large(value: i64, name: &str) -> Error {
    Error::new(
        MPI_ERR_VALUE_TOO_LARGE,
        format!(
            "{name} would be {value}, which an int cannot hold; call the large-count form of the procedure (name ending in _c)"
        ),
    )
}

/// As [`IntOut`], read and written.
pub struct IntInOut(IntOut);

impl IntInOut {
    /// Takes a pointer to int, not null.
    pub fn int(pointer: *mut c_int, name: &str) -> Result<IntInOut> {
        IntOut::int(pointer, name).map(IntInOut)
    }

    /// Takes a pointer to MPI_Count or MPI_Aint, not null.
    pub fn large(pointer: *mut i64, name: &str) -> Result<IntInOut> {
        IntOut::large(pointer, name).map(IntInOut)
    }

    /// The present value.
    pub fn get(&self) -> i64 {
        match self.0 {
            // SAFETY: as for `InOut::get`.
            IntOut::Int(pointer) => i64::from(unsafe { pointer.read() }),
            // SAFETY: as for `InOut::get`.
            IntOut::Large(pointer) => unsafe { pointer.read() },
        }
    }

    /// Replaces it; MPI_ERR_VALUE_TOO_LARGE if an int cannot hold it.
    pub fn set(&self, value: i64, name: &str) -> Result<()> {
        self.0.set_checked(value, name)
    }
}

/// An array of results.
pub struct OutSlice<'a, T>(&'a mut [T]);

impl<'a, T: Copy> OutSlice<'a, T> {
    /// Takes the program's pointer to `length` elements; null only if the length is 0.
    ///
    /// # Safety
    /// The program promises `length` writable elements at `pointer` for the duration of the call.
    pub unsafe fn new(pointer: *mut T, length: i64, name: &str) -> Result<OutSlice<'a, T>> {
        if length <= 0 {
            return Ok(OutSlice(&mut []));
        }
        if pointer.is_null() {
            return Err(null_pointer(name));
        }
        // SAFETY: the caller's promise.
        Ok(OutSlice(unsafe { std::slice::from_raw_parts_mut(pointer, length as usize) }))
    }

    /// Its length.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What the program has there, for an array that is read and written.
    pub fn get(&self, index: usize) -> T {
        self.0[index]
    }

    /// Writes an element.
    #[inline]
    pub fn set(&mut self, index: usize, value: T) {
        self.0[index] = value;
    }
}

/// Where the handle of a new object goes.
pub struct OutHandle<T> {
    place: *mut usize,
    class: PhantomData<T>,
}

// SAFETY: a place for a handle may be written by another thread than the one that got it: the program keeps the
// variable valid until the operation that fills it is complete (MPI_Comm_idup).
unsafe impl<T> Send for OutHandle<T> {}
// SAFETY: writing needs only the promise above.
unsafe impl<T> Sync for OutHandle<T> {}

impl<T: Class> OutHandle<T> {
    /// Takes the program's pointer, which must not be null.
    #[inline(always)]
    pub fn new(place: *mut usize, name: &str) -> Result<OutHandle<T>> {
        if place.is_null() { Err(null_pointer(name)) } else { Ok(OutHandle { place, class: PhantomData }) }
    }

    /// Gives the object a handle (its own, if it is predefined or already known) and writes it.
    #[inline]
    pub fn set(&self, object: Arc<T>) -> Result<()> {
        let handle = T::table().insert(object)?;
        self.set_raw(handle);
        Ok(())
    }

    /// Writes the null handle.
    pub fn set_null(&self) {
        self.set_raw(T::NULL);
    }

    /// Writes a predefined handle.
    #[inline]
    pub fn set_raw(&self, handle: usize) {
        // SAFETY: the program gave the address of a handle variable; it was checked not to be null.
        unsafe { self.place.write(handle) }
    }
}

/// Where the handles of several objects go.
pub struct OutHandles<'a, T> {
    places: OutSlice<'a, usize>,
    class: PhantomData<T>,
}

impl<'a, T: Class> OutHandles<'a, T> {
    /// As [`OutSlice::new`].
    ///
    /// # Safety
    /// As [`OutSlice::new`].
    pub unsafe fn new(pointer: *mut usize, length: i64, name: &str) -> Result<OutHandles<'a, T>> {
        // SAFETY: the caller's promise.
        Ok(OutHandles { places: unsafe { OutSlice::new(pointer, length, name) }?, class: PhantomData })
    }

    /// How many there is room for.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is room for none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// As [`OutHandle::set`].
    pub fn set(&mut self, index: usize, object: Arc<T>) -> Result<()> {
        let handle = T::table().insert(object)?;
        self.places.set(index, handle);
        Ok(())
    }
}

/// A handle that the call may free or replace (`MPI_Comm *comm` of MPI_Comm_free).
pub struct InOutHandle<T: Class> {
    place: *mut usize,
    held: Held<T>,
}

impl<T: Class> InOutHandle<T> {
    /// Takes the program's pointer to a valid handle.
    ///
    /// # Safety
    /// A `place` that is not null must point to an initialised handle variable.
    #[inline]
    pub unsafe fn new(place: *mut usize, name: &str) -> Result<InOutHandle<T>> {
        if place.is_null() {
            return Err(null_pointer(name));
        }
        // SAFETY: the caller's promise.
        let handle = unsafe { place.read() };
        Ok(InOutHandle { place, held: handles::get(handle, name)? })
    }

    /// The object.
    pub fn get(&self) -> &Arc<T> {
        &self.held
    }

    /// Whether it is a predefined object.
    pub fn is_predefined(&self) -> bool {
        self.held.is_predefined()
    }

    /// The handle.
    pub fn handle(&self) -> usize {
        // SAFETY: checked when it was made.
        unsafe { self.place.read() }
    }

    /// Whether releasing it leaves the program no handle of the object.
    pub fn is_last(&self) -> bool {
        self.held.is_last()
    }

    /// Frees the handle (the object lives on while operations hold it) and writes the null handle. Returns whether
    /// the program has now no handle of the object.
    pub fn release(self) -> bool {
        // SAFETY: checked when it was made.
        unsafe { self.place.write(T::NULL) };
        T::table().release(self.held)
    }
}

/// A request that the call may complete: null, or live.
pub struct RequestInOut {
    place: *mut usize,
    held: Option<Held<Request>>,
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
        Ok(RequestInOut { place, held: handles::get_nullable(handle, name)? })
    }

    /// The request, unless it is MPI_REQUEST_NULL.
    #[inline]
    pub fn get(&self) -> Option<&Arc<Request>> {
        self.held.as_deref()
    }

    /// Frees the handle and writes MPI_REQUEST_NULL.
    #[inline]
    pub fn release(&mut self) {
        if let Some(held) = self.held.take() {
            // SAFETY: checked when it was made.
            unsafe { self.place.write(MPI_REQUEST_NULL) };
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

/// An array of requests, each live or MPI_REQUEST_NULL.
pub struct Requests {
    place: *mut usize,
    held: Vec<Option<Held<Request>>>,
}

impl Requests {
    /// Takes the program's array of `length` handles.
    ///
    /// # Safety
    /// A `place` that is not null must point to that many initialised handle variables.
    pub unsafe fn new(place: *mut usize, length: i64, name: &str) -> Result<Requests> {
        // SAFETY: the caller's promise.
        let handles = unsafe { slice(place, length, name) }
            .map_err(|error| Error::new(MPI_ERR_REQUEST, error.message()))?;
        let held = handles
            .iter()
            .enumerate()
            .map(|(index, &handle)| match handle {
                MPI_REQUEST_NULL => Ok(None),
                _ => match Request::table().find(handle) {
                    Some(held) => Ok(Some(held)),
                    None => Err(handles::bad::<Request>(handle, &format!("{name}[{index}]"))),
                },
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Requests { place, held })
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// A request, unless it is MPI_REQUEST_NULL (or was released).
    #[inline]
    pub fn get(&self, index: usize) -> Option<&Arc<Request>> {
        self.held[index].as_deref()
    }

    /// All, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<&Arc<Request>>> + '_ {
        self.held.iter().map(|held| held.as_deref())
    }

    /// Frees a handle and writes MPI_REQUEST_NULL in its place.
    #[inline]
    pub fn release(&mut self, index: usize) {
        if let Some(held) = self.held[index].take() {
            // SAFETY: the array was readable up to its length when this was made; the program lets the call write it
            // (the procedures that take a constant array never release).
            unsafe { self.place.add(index).write(MPI_REQUEST_NULL) };
            Request::table().release(held);
        }
    }
}

/// A message that a matched probe returned: a message, or MPI_MESSAGE_NO_PROC.
pub struct MessageInOut {
    place: *mut usize,
    held: Option<Held<Message>>,
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
        let held = if handle == MPI_MESSAGE_NO_PROC { None } else { Some(handles::get(handle, name)?) };
        Ok(MessageInOut { place, held })
    }

    /// The message; `None` for MPI_MESSAGE_NO_PROC.
    pub fn get(&self) -> Option<&Arc<Message>> {
        self.held.as_deref()
    }

    /// Writes MPI_MESSAGE_NULL and gives the message to the receive; `None` for MPI_MESSAGE_NO_PROC.
    pub fn take(self) -> Option<Arc<Message>> {
        // SAFETY: checked when it was made.
        unsafe { self.place.write(MPI_MESSAGE_NULL) };
        let held = self.held?;
        let message = Arc::clone(&held);
        Message::table().release(held);
        Some(message)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_int_that_cannot_hold_the_result_is_undefined_or_an_error() {
        let (mut narrow, mut wide) = (0, 0i64);
        let big = i64::from(i32::MAX) + 1;
        IntOut::int(&mut narrow, "size").unwrap().set(big);
        assert_eq!(narrow, MPI_UNDEFINED);
        IntOut::large(&mut wide, "size").unwrap().set(big);
        assert_eq!(wide, big);
        narrow = 5;
        let position = IntInOut::int(&mut narrow, "position").unwrap();
        assert_eq!(position.get(), 5);
        assert_eq!(position.set(big, "position").unwrap_err().class(), MPI_ERR_VALUE_TOO_LARGE);
        assert_eq!(position.get(), 5);
        assert!(IntOut::int(std::ptr::null_mut(), "size").is_err());
    }

    #[test]
    fn strings_are_cut_and_terminated() {
        let mut text = [b'x'; 8];
        let mut length = -1;
        StringOut::new(text.as_mut_ptr().cast(), 6, Some(&mut length), "name").unwrap().set(b"abcdefgh");
        assert_eq!((&text, length), (b"abcde\0xx", 5));
        StringOut::unsized_at(text.as_mut_ptr().cast()).set_within(b"ZZZ", 0);
        assert_eq!(text[0], b'a');
    }

    #[test]
    fn a_status_keeps_a_size_beyond_32_bits() {
        // SAFETY: a record of integers.
        let mut record: StatusRecord = unsafe { std::mem::zeroed() };
        StatusOut::new(&mut record).set(3, 4, 0x1_2345_6789_abcd, true);
        assert_eq!((record.source, record.tag, record.error), (3, 4, 0));
        assert_eq!(record.size_bytes(), 0x1_2345_6789_abcd);
        assert!(record.cancelled());
        StatusOut::new(std::ptr::null_mut()).set_empty();
    }

    #[test]
    fn predefined_functions_are_not_called() {
        type F = extern "C" fn();
        assert!(Function::<F>::new(0).get().is_none());
        assert!(Function::<F>::new(1).required("copy_fn").is_err());
    }
}
