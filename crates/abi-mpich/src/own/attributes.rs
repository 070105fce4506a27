//! Attributes: their keys, and the values of the predefined ones that are constants.

use crate::callbacks;
use crate::codes::code_out;
use crate::generated::standard;
use crate::generated::tables::*;
use crate::handles::{Class, Comm, Datatype, Win};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering};

/// The predefined attributes whose values are constants.
const CONSTANTS: [c_int; 5] =
    [MPI_WIN_CREATE_FLAVOR.0, MPI_WIN_MODEL.0, MPI_IO.0, MPI_HOST.0, MPI_LASTUSEDCODE.0];

/// Converts the value of a predefined attribute that is a constant.
///
/// # Safety
/// A call has written the value of the attribute to the place.
unsafe fn convert(keyval: c_int, place: *mut c_void) {
    static FLAVORS: [c_int; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
    static IO: AtomicI32 = AtomicI32::new(0);
    static HOST: AtomicI32 = AtomicI32::new(0);
    static LAST: AtomicI32 = AtomicI32::new(0);
    if !CONSTANTS.contains(&keyval) {
        return;
    }
    let place = place.cast::<*const c_int>();
    // SAFETY: the caller's promise; the value of each of these is the address of an integer.
    let value = unsafe { **place };
    let stored = |at: &'static AtomicI32, value: c_int| {
        at.store(value, Ordering::Relaxed);
        at.as_ptr().cast_const()
    };
    let constant = |value: c_int| match FLAVORS.get(value as usize) {
        Some(at) => std::ptr::from_ref(at),
        None => std::ptr::null(),
    };
    let address = match keyval {
        _ if keyval == MPI_WIN_CREATE_FLAVOR.0 => constant(flavor_out(value)),
        _ if keyval == MPI_WIN_MODEL.0 => constant(memory_model_out(value)),
        _ if keyval == MPI_IO.0 => stored(&IO, rank_out(value)),
        _ if keyval == MPI_HOST.0 => stored(&HOST, rank_out(value)),
        _ => stored(&LAST, code_out(value)),
    };
    // SAFETY: the caller's promise.
    unsafe { place.write(address) };
}

/// # Safety
/// The places are null, or the program's for an attribute and a flag.
unsafe fn get(
    get: unsafe fn(usize, c_int, *mut c_void, *mut c_int) -> c_int,
    object: usize,
    keyval: c_int,
    attribute_val: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let code = get(object, keyval_in(keyval), attribute_val, flag);
        if code == 0 && *flag != 0 {
            convert(keyval, attribute_val);
        }
        code_out(code)
    }
}

/// # Safety
/// As for the procedure.
pub unsafe fn attr_get(comm: c_int, keyval: c_int, attribute_val: *mut c_void, flag: *mut c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { get(standard::MPI_Attr_get, Comm::input(comm), keyval, attribute_val, flag) }
}

/// # Safety
/// As for the procedure.
pub unsafe fn comm_get_attr(
    comm: c_int,
    comm_keyval: c_int,
    attribute_val: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { get(standard::MPI_Comm_get_attr, Comm::input(comm), comm_keyval, attribute_val, flag) }
}

/// # Safety
/// As for the procedure.
pub unsafe fn win_get_attr(
    win: c_int,
    win_keyval: c_int,
    attribute_val: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { get(standard::MPI_Win_get_attr, Win::input(win), win_keyval, attribute_val, flag) }
}

macro_rules! create_keyval {
    ($($name:ident $procedure:ident $class:ident)*) => {$(
        /// # Safety
        /// As for the procedure.
        pub unsafe fn $name(copy: usize, delete: usize, keyval: *mut c_int, extra_state: *mut c_void) -> c_int {
            let (copy, delete, extra_state) = callbacks::key::<$class>(copy, delete, extra_state);
            // SAFETY: the caller's promise. A new key is no predefined one, and the same in both ABIs.
            code_out(unsafe { standard::$procedure(copy, delete, keyval, extra_state) })
        }
    )*};
}

create_keyval! {
    comm_create_keyval MPI_Comm_create_keyval Comm
    keyval_create MPI_Keyval_create Comm
    type_create_keyval MPI_Type_create_keyval Datatype
    win_create_keyval MPI_Win_create_keyval Win
}
