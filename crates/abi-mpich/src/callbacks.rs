//! The program's functions: each that takes handles, codes or statuses is called through a function of this library, which
//! finds it in a record behind the extra state.
//!
//! A record lives as long as what it was made for, where the standard's library tells the end (operations, error handlers,
//! generalized requests). Records of attribute keys, data representations and event callbacks live for ever, one for each set
//! of functions and extra state.

use crate::codes::{code_in, code_out};
use crate::generated::standard;
use crate::generated::tables::{keyval_out, safety_out};
use crate::handles::{Class, Datatype};
use crate::status::{StandardStatus, Status};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::{LazyLock, Mutex, PoisonError};

/// The address of a function as the standard's library takes it.
pub fn word(function: *const ()) -> usize {
    function.expose_provenance()
}

/// A function pointer of the program, given as a number.
///
/// # Safety
/// `F` is the type of the function, and the number is not 0.
unsafe fn function<F: Copy>(value: usize) -> F {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    // SAFETY: the caller's promise; a function pointer has the size of a word.
    unsafe { std::mem::transmute_copy::<usize, F>(&value) }
}

/// The record behind an extra state.
///
/// # Safety
/// The extra state is that of a record of this type, which is alive.
unsafe fn record<'a, T>(extra_state: *mut c_void) -> &'a T {
    // SAFETY: the caller's promise.
    unsafe { &*extra_state.cast::<T>() }
}

/// Ends a record that [`Box::into_raw`] has given away.
unsafe extern "C" fn destroy<T>(extra_state: *mut c_void) {
    // SAFETY: the standard's library calls this once, when nothing uses the record any more.
    drop(unsafe { Box::from_raw(extra_state.cast::<T>()) });
}

/// The one record of these words; it lives for ever.
fn interned<const N: usize>(words: [usize; N]) -> *mut c_void {
    static ALL: LazyLock<Mutex<HashMap<Vec<usize>, usize>>> = LazyLock::new(Mutex::default);
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let place =
        all.entry(words.to_vec()).or_insert_with(|| Box::into_raw(Box::new(words)).expose_provenance());
    std::ptr::with_exposed_provenance_mut(*place)
}

// Operations.

type UserFunction = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut c_int);
type UserFunctionLarge = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut i64, *mut c_int);
type UserFunctionX = unsafe extern "C" fn(*mut c_void, *mut c_void, i64, c_int, *mut c_void);
type Destructor = unsafe extern "C" fn(*mut c_void);

/// An operation of the program.
struct Operation {
    function: usize,
    extra_state: usize,
    destructor: usize,
}

impl Drop for Operation {
    fn drop(&mut self) {
        if self.destructor != 0 {
            // SAFETY: the program gave it to be called with its extra state at the end.
            unsafe {
                function::<Destructor>(self.destructor)(std::ptr::with_exposed_provenance_mut(
                    self.extra_state,
                ));
            }
        }
    }
}

unsafe extern "C" fn operate(
    input: *mut c_void,
    inout: *mut c_void,
    count: i64,
    datatype: usize,
    extra_state: *mut c_void,
) {
    // SAFETY: made by `create_operation`; the standard's library hands on the buffers, and each is as long as `count` says.
    unsafe {
        let call = function::<UserFunction>(record::<Operation>(extra_state).function);
        let (mut done, mut lower_bound, mut extent) = (0, 0, 0);
        if count > i64::from(c_int::MAX) {
            standard::MPI_Type_get_extent_c(datatype, &mut lower_bound, &mut extent);
        }
        // The function counts by int, so that a longer reduction takes several calls.
        while done < count {
            let mut length = (count - done).min(i64::from(c_int::MAX)) as c_int;
            let mut handle = Datatype::output(datatype);
            let offset = done.wrapping_mul(extent) as isize;
            call(
                input.wrapping_byte_offset(offset),
                inout.wrapping_byte_offset(offset),
                &mut length,
                &mut handle,
            );
            done += i64::from(length.max(1));
        }
    }
}

unsafe extern "C" fn operate_large(
    input: *mut c_void,
    inout: *mut c_void,
    mut count: i64,
    datatype: usize,
    extra_state: *mut c_void,
) {
    // SAFETY: as in `operate`.
    unsafe {
        let call = function::<UserFunctionLarge>(record::<Operation>(extra_state).function);
        call(input, inout, &mut count, &mut Datatype::output(datatype));
    }
}

unsafe extern "C" fn operate_x(
    input: *mut c_void,
    inout: *mut c_void,
    count: i64,
    datatype: usize,
    extra_state: *mut c_void,
) {
    // SAFETY: as in `operate`.
    unsafe {
        let record = record::<Operation>(extra_state);
        let call = function::<UserFunctionX>(record.function);
        let own = std::ptr::with_exposed_provenance_mut(record.extra_state);
        call(input, inout, count, Datatype::output(datatype), own);
    }
}

/// How the program's function of an operation is called.
#[derive(Clone, Copy)]
pub enum OperationKind {
    /// MPI_User_function.
    Int,
    /// MPI_User_function_c.
    Large,
    /// MPIX_User_function_x.
    Extra,
}

/// Creates an operation.
///
/// # Safety
/// `given` is 0 or a function of this kind; `op` is null or a place for a handle.
pub unsafe fn create_operation(
    kind: OperationKind,
    given: usize,
    commute: c_int,
    destructor: usize,
    extra_state: *mut c_void,
    op: *mut usize,
) -> c_int {
    let through = match kind {
        _ if given == 0 => 0,
        OperationKind::Int => word(operate as *const ()),
        OperationKind::Large => word(operate_large as *const ()),
        OperationKind::Extra => word(operate_x as *const ()),
    };
    let record = Operation { function: given, extra_state: extra_state.expose_provenance(), destructor };
    let record = Box::into_raw(Box::new(record)).cast::<c_void>();
    let end = word(destroy::<Operation> as *const ());
    // SAFETY: the functions are of the types that the entry takes.
    let code = unsafe { standard::MPIX_Op_create_x(through, end, commute, record, op) };
    if code != 0 {
        // SAFETY: the failed call has not kept it. The program's destructor belongs to an operation that there is not.
        let mut record = unsafe { Box::from_raw(record.cast::<Operation>()) };
        record.destructor = 0;
    }
    code
}

// Error handlers.

type Errhandler<Raw> = unsafe extern "C" fn(*mut Raw, *mut c_int, ...);
type ErrhandlerX<Raw> = unsafe extern "C" fn(Raw, c_int, *mut c_void);

/// An entry of the standard's library that makes an error handler.
pub type CreateErrhandler = unsafe fn(usize, usize, *mut c_void, *mut usize) -> c_int;

unsafe extern "C" fn handle_error<C: Class>(handle: usize, code: *mut c_int, extra_state: *mut c_void) {
    // SAFETY: made by `create_errhandler`; all places live during the call.
    unsafe {
        let call = function::<Errhandler<C::Raw>>(record::<Operation>(extra_state).function);
        let mut changed = code_out(*code);
        call(&mut C::output(handle), &mut changed);
        *code = code_in(changed);
    }
}

unsafe extern "C" fn handle_error_x<C: Class>(handle: usize, code: *mut c_int, extra_state: *mut c_void) {
    // SAFETY: made by `create_errhandler`; the code's place lives during the call.
    unsafe {
        let record = record::<Operation>(extra_state);
        let call = function::<ErrhandlerX<C::Raw>>(record.function);
        call(C::output(handle), code_out(*code), std::ptr::with_exposed_provenance_mut(record.extra_state));
    }
}

/// Creates an error handler for objects of the class; of the form with an extra state if there is a `more`, which is the
/// destructor and the extra state.
///
/// # Safety
/// `given` is 0 or a function of this kind; `errhandler` is null or a place for a handle.
pub unsafe fn create_errhandler<C: Class>(
    create: CreateErrhandler,
    given: usize,
    more: Option<(usize, *mut c_void)>,
    errhandler: *mut usize,
) -> c_int {
    let through = match more {
        _ if given == 0 => 0,
        None => word(handle_error::<C> as *const ()),
        Some(_) => word(handle_error_x::<C> as *const ()),
    };
    let (destructor, extra_state) = more.unwrap_or((0, std::ptr::null_mut()));
    let record = Operation { function: given, extra_state: extra_state.expose_provenance(), destructor };
    let record = Box::into_raw(Box::new(record)).cast::<c_void>();
    // SAFETY: the functions are of the types that the entry takes.
    let code = unsafe { create(through, word(destroy::<Operation> as *const ()), record, errhandler) };
    if code != 0 {
        // SAFETY: the failed call has not kept it.
        let mut record = unsafe { Box::from_raw(record.cast::<Operation>()) };
        record.destructor = 0;
    }
    code
}

// Attributes.

type CopyAttribute =
    unsafe extern "C" fn(c_int, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
type DeleteAttribute = unsafe extern "C" fn(c_int, c_int, *mut c_void, *mut c_void) -> c_int;

/// The functions of an attribute key, copy and delete, and the program's extra state.
type Key = [usize; 3];

unsafe extern "C" fn copy_attribute<C: Class<Raw = c_int>>(
    handle: usize,
    keyval: c_int,
    extra_state: *mut c_void,
    value: *mut c_void,
    copied: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: made by `key`; the standard's library gives the places.
    unsafe {
        let &[copy, _, own] = record::<Key>(extra_state);
        let own = std::ptr::with_exposed_provenance_mut(own);
        let call = function::<CopyAttribute>(copy);
        code_in(call(C::output(handle), keyval_out(keyval), own, value, copied, flag))
    }
}

unsafe extern "C" fn delete_attribute<C: Class<Raw = c_int>>(
    handle: usize,
    keyval: c_int,
    value: *mut c_void,
    extra_state: *mut c_void,
) -> c_int {
    // SAFETY: made by `key`.
    unsafe {
        let &[_, delete, own] = record::<Key>(extra_state);
        let own = std::ptr::with_exposed_provenance_mut(own);
        let call = function::<DeleteAttribute>(delete);
        code_in(call(C::output(handle), keyval_out(keyval), value, own))
    }
}

/// What the standard's library gets for the functions and the extra state of an attribute key.
pub fn key<C: Class<Raw = c_int>>(
    copy: usize,
    delete: usize,
    extra_state: *mut c_void,
) -> (usize, usize, *mut c_void) {
    let record = interned::<3>([copy, delete, extra_state.expose_provenance()]);
    let copy = match copy {
        // The null functions are null in both ABIs.
        0 => 0,
        given if given == word(MPIR_Dup_fn as *const ()) => crate::generated::tables::MPI_COMM_DUP_FN,
        _ => word(copy_attribute::<C> as *const ()),
    };
    let delete = if delete == 0 { 0 } else { word(delete_attribute::<C> as *const ()) };
    (copy, delete, record)
}

/// MPI_DUP_FN and its siblings: in MPICH's ABI a function of the library.
///
/// # Safety
/// `copied` and `flag` are places for an attribute and an integer.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn MPIR_Dup_fn(
    _object: c_int,
    _keyval: c_int,
    _extra_state: *mut c_void,
    value: *mut c_void,
    copied: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        copied.cast::<*mut c_void>().write(value);
        flag.write(1);
    }
    0
}

// Generalized requests.

type Query = unsafe extern "C" fn(*mut c_void, *mut Status) -> c_int;
type Free = unsafe extern "C" fn(*mut c_void) -> c_int;
type Cancel = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;

/// A generalized request.
pub struct Generalized {
    pub query: usize,
    pub free: usize,
    pub cancel: usize,
    pub extra_state: *mut c_void,
}

unsafe extern "C" fn query_request(extra_state: *mut c_void, place: *mut StandardStatus) -> c_int {
    // SAFETY: made by `start`; the standard's library gives a status.
    unsafe {
        let record = record::<Generalized>(extra_state);
        let mut status = Status { count_lo: 0, count_hi_and_cancelled: 0, source: -2, tag: -1, error: 0 };
        (*place).give(&mut status);
        let code = function::<Query>(record.query)(record.extra_state, &mut status);
        *place = StandardStatus::of(&status);
        code_in(code)
    }
}

unsafe extern "C" fn free_request(extra_state: *mut c_void) -> c_int {
    // SAFETY: made by `start`; this is the last call with it.
    let record = unsafe { Box::from_raw(extra_state.cast::<Generalized>()) };
    if record.free == 0 {
        return 0;
    }
    // SAFETY: the program's function, with its extra state.
    code_in(unsafe { function::<Free>(record.free)(record.extra_state) })
}

unsafe extern "C" fn cancel_request(extra_state: *mut c_void, complete: c_int) -> c_int {
    // SAFETY: made by `start`.
    unsafe {
        let record = record::<Generalized>(extra_state);
        code_in(function::<Cancel>(record.cancel)(record.extra_state, complete))
    }
}

/// MPI_Grequest_start.
///
/// # Safety
/// The functions are 0 or of their types; `request` is null or a place for a handle.
pub unsafe fn start(given: Generalized, request: *mut usize) -> c_int {
    let through = |own: usize, function: *const ()| if own == 0 { 0 } else { word(function) };
    let query = through(given.query, query_request as *const ());
    let free = through(given.free, free_request as *const ());
    let cancel = through(given.cancel, cancel_request as *const ());
    let record = Box::into_raw(Box::new(given));
    // SAFETY: the functions are of the types that the procedure takes.
    let code = unsafe { standard::MPI_Grequest_start(query, free, cancel, record.cast(), request) };
    if code != 0 {
        // SAFETY: the failed call has not kept it.
        drop(unsafe { Box::from_raw(record) });
    }
    code
}

// Data representations.

type Convert<Count> = unsafe extern "C" fn(*mut c_void, c_int, Count, *mut c_void, i64, *mut c_void) -> c_int;
type Extent = unsafe extern "C" fn(c_int, *mut i64, *mut c_void) -> c_int;

/// A data representation: read, write, extent, and the program's extra state.
type Representation = [usize; 4];

unsafe extern "C" fn convert<Count, const WRITES: bool>(
    buffer: *mut c_void,
    datatype: usize,
    count: Count,
    file: *mut c_void,
    position: i64,
    extra_state: *mut c_void,
) -> c_int {
    // SAFETY: made by `representation`.
    unsafe {
        let &[read, write, _, own] = record::<Representation>(extra_state);
        let call = function::<Convert<Count>>(if WRITES { write } else { read });
        let own = std::ptr::with_exposed_provenance_mut(own);
        code_in(call(buffer, Datatype::output(datatype), count, file, position, own))
    }
}

unsafe extern "C" fn file_extent(datatype: usize, extent: *mut i64, extra_state: *mut c_void) -> c_int {
    // SAFETY: made by `representation`.
    unsafe {
        let &[_, _, of_file, own] = record::<Representation>(extra_state);
        let own = std::ptr::with_exposed_provenance_mut(own);
        code_in(function::<Extent>(of_file)(Datatype::output(datatype), extent, own))
    }
}

/// What the standard's library gets for the functions (read, write, extent) and the extra state of a data representation, whose
/// conversions count by `Count`.
pub fn representation<Count>(
    [read, write, extent]: [usize; 3],
    extra_state: *mut c_void,
) -> ([usize; 3], *mut c_void) {
    let record = interned::<4>([read, write, extent, extra_state.expose_provenance()]);
    let through = |own: usize, function: *const ()| if own == 0 { 0 } else { word(function) };
    let functions = [
        through(read, convert::<Count, false> as *const ()),
        through(write, convert::<Count, true> as *const ()),
        through(extent, file_extent as *const ()),
    ];
    (functions, record)
}

// Events of the tool interface.

type EventCallback = unsafe extern "C" fn(usize, usize, c_int, *mut c_void);
type EventFreed = unsafe extern "C" fn(usize, c_int, *mut c_void);
type EventsDropped = unsafe extern "C" fn(i64, usize, c_int, c_int, *mut c_void);

/// A function of the tool interface, and the user data for it.
type Listener = [usize; 2];

unsafe extern "C" fn event(instance: usize, registration: usize, safety: c_int, user_data: *mut c_void) {
    // SAFETY: made by `listener`.
    unsafe {
        let &[call, own] = record::<Listener>(user_data);
        let own = std::ptr::with_exposed_provenance_mut(own);
        function::<EventCallback>(call)(instance, registration, safety_out(safety), own);
    }
}

unsafe extern "C" fn freed(registration: usize, safety: c_int, user_data: *mut c_void) {
    // SAFETY: made by `listener`.
    unsafe {
        let &[call, own] = record::<Listener>(user_data);
        let own = std::ptr::with_exposed_provenance_mut(own);
        function::<EventFreed>(call)(registration, safety_out(safety), own);
    }
}

/// What the standard's library gets for a callback of events, or of the end of a registration, and its user data.
pub fn listener(own: usize, user_data: *mut c_void, of_end: bool) -> (usize, *mut c_void) {
    if own == 0 {
        return (0, user_data);
    }
    let record = interned::<2>([own, user_data.expose_provenance()]);
    (if of_end { word(freed as *const ()) } else { word(event as *const ()) }, record)
}

/// The functions that hear of dropped events, by the registration: they have no user data of their own.
static DROPPED: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

unsafe extern "C" fn dropped(
    count: i64,
    registration: usize,
    source: c_int,
    safety: c_int,
    user_data: *mut c_void,
) {
    let own = {
        let all = DROPPED.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|&&(one, _)| one == registration).map(|&(_, own)| own)
    };
    let Some(own) = own else { return };
    // SAFETY: the program's function. What it gets is the record of its event callback, if that had one.
    unsafe {
        let user_data = match user_data.is_null() {
            true => user_data,
            false => std::ptr::with_exposed_provenance_mut(record::<Listener>(user_data)[1]),
        };
        function::<EventsDropped>(own)(count, registration, source, safety_out(safety), user_data);
    }
}

/// What the standard's library gets for the function that hears of dropped events.
pub fn dropped_listener(registration: usize, own: usize) -> usize {
    let mut all = DROPPED.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|&(one, _)| one != registration);
    if own == 0 {
        return 0;
    }
    all.push((registration, own));
    word(dropped as *const ())
}
