//! The arguments of C procedures as Rust values: what the generated wrappers make and the bodies get.

use crate::handles::{self, Class, Held};
use crate::objects::{Communicator, Datatype};
use parnass_base::UserAddress;
pub use parnass_mpi::Ints;
use parnass_mpi::constants::*;
use parnass_mpi::{Buffer, Error, Result};
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::sync::Arc;

mod results;

pub use results::*;

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

    /// The data here: `count` items, not negative.
    #[inline(always)]
    pub fn data(self, count: i64, datatype: &Arc<Datatype>) -> Buffer<'_> {
        Buffer::new(self.0, count as u64, datatype)
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
