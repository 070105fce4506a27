//! The tool interface: objects behind a pointer, and callbacks.

use crate::arguments::{OutHandle, OutInt};
use crate::callbacks;
use crate::codes::code_out;
use crate::generated::standard;
use crate::generated::tables::*;
use crate::handles::*;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

/// The standard's form of the handle that an object pointer points to.
struct Object {
    handle: usize,
    given: *mut c_void,
}

impl Object {
    /// Takes the pointer for an object of a kind, which is the standard's number for what a variable is bound to.
    ///
    /// # Safety
    /// The pointer is null, or points to a handle of the kind.
    unsafe fn new(binding: c_int, given: *mut c_void) -> Object {
        let handle = if given.is_null() {
            0
        } else {
            // SAFETY: the caller's promise.
            unsafe {
                let number = || given.cast::<c_int>().read();
                // The kinds in the order of MPI_T_BIND_MPI_COMM and its siblings.
                match binding_out(binding) - binding_out(1) {
                    1 => Comm::input(number()),
                    2 => Datatype::input(number()),
                    3 => Errhandler::input(number()),
                    4 => File::input(given.cast::<usize>().read()),
                    5 => Group::input(number()),
                    6 => Op::input(number()),
                    7 => Request::input(number()),
                    8 => Win::input(number()),
                    9 => Message::input(number()),
                    10 => Info::input(number()),
                    11 => Session::input(number()),
                    _ => 0,
                }
            }
        };
        Object { handle, given }
    }

    /// What the standard's library gets.
    fn place(&mut self) -> *mut c_void {
        if self.handle == 0 { self.given } else { (&raw mut self.handle).cast() }
    }
}

/// # Safety
/// As for the procedure.
pub unsafe fn t_cvar_handle_alloc(
    cvar_index: c_int,
    obj_handle: *mut c_void,
    handle: *mut usize,
    count: *mut c_int,
) -> c_int {
    let mut bind = 0;
    // SAFETY: the caller's promise; what is not asked for may be null.
    unsafe {
        standard::MPI_T_cvar_get_info(
            cvar_index,
            null_mut(),
            null_mut(),
            null_mut(),
            null_mut(),
            null_mut(),
            null_mut(),
            null_mut(),
            &mut bind,
            null_mut(),
        );
        let mut object = Object::new(bind, obj_handle);
        code_out(standard::MPI_T_cvar_handle_alloc(cvar_index, object.place(), handle, count))
    }
}

/// # Safety
/// As for the procedure.
pub unsafe fn t_pvar_handle_alloc(
    session: usize,
    pvar_index: c_int,
    obj_handle: *mut c_void,
    handle: *mut usize,
    count: *mut c_int,
) -> c_int {
    let mut bind = 0;
    // SAFETY: the caller's promise; what is not asked for may be null.
    unsafe {
        standard::MPI_T_pvar_get_info(
            pvar_index,
            null_mut(),
            null_mut(),
            null_mut(),
            null_mut(),
            null_mut(),
            null_mut(),
            null_mut(),
            null_mut(),
            &mut bind,
            null_mut(),
            null_mut(),
            null_mut(),
        );
        let mut object = Object::new(bind, obj_handle);
        code_out(standard::MPI_T_pvar_handle_alloc(session, pvar_index, object.place(), handle, count))
    }
}

/// # Safety
/// As for the procedure.
pub unsafe fn t_event_handle_alloc(
    event_index: c_int,
    obj_handle: *mut c_void,
    info: c_int,
    event_registration: *mut usize,
) -> c_int {
    let mut bind = 0;
    // SAFETY: the caller's promise; what is not asked for may be null.
    unsafe {
        standard::MPI_T_event_get_info(
            event_index,
            null_mut(),
            null_mut(),
            null_mut(),
            null_mut(),
            null_mut(),
            null_mut(),
            null_mut(),
            null_mut(),
            null_mut(),
            null_mut(),
            &mut bind,
        );
        let mut object = Object::new(bind, obj_handle);
        let info = Info::input(info);
        code_out(standard::MPI_T_event_handle_alloc(event_index, object.place(), info, event_registration))
    }
}

/// # Safety
/// As for the procedure.
#[allow(clippy::too_many_arguments)]
pub unsafe fn t_event_get_info(
    event_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    verbosity: *mut c_int,
    array_of_datatypes: *mut c_int,
    array_of_displacements: *mut i64,
    num_elements: *mut c_int,
    enumtype: *mut usize,
    info: *mut c_int,
    desc: *mut c_char,
    desc_len: *mut c_int,
    bind: *mut c_int,
) -> c_int {
    let mut verbosity = OutInt::new(verbosity, verbosity_out);
    let mut bind = OutInt::new(bind, binding_out);
    let mut info = OutHandle::<Info>::new(info);
    // SAFETY: the caller's promise: the array has as many elements as `num_elements` says before the call.
    unsafe {
        let room = if num_elements.is_null() { 0 } else { usize::try_from(num_elements.read()).unwrap_or(0) };
        let mut datatypes = vec![0; room];
        let place = if array_of_datatypes.is_null() { null_mut() } else { datatypes.as_mut_ptr() };
        let code = standard::MPI_T_event_get_info(
            event_index,
            name,
            name_len,
            verbosity.place(),
            place,
            array_of_displacements,
            num_elements,
            enumtype,
            info.place(),
            desc,
            desc_len,
            bind.place(),
        );
        verbosity.finish();
        bind.finish();
        info.finish();
        if !array_of_datatypes.is_null() {
            for (index, &handle) in datatypes.iter().enumerate().filter(|&(_, &handle)| handle != 0) {
                array_of_datatypes.add(index).write(Datatype::output(handle));
            }
        }
        code_out(code)
    }
}

/// # Safety
/// As for the procedure.
pub unsafe fn t_event_register_callback(
    event_registration: usize,
    cb_safety: c_int,
    info: c_int,
    user_data: *mut c_void,
    event_cb_function: usize,
) -> c_int {
    let (function, user_data) = callbacks::listener(event_cb_function, user_data, false);
    // SAFETY: the caller's promise.
    code_out(unsafe {
        standard::MPI_T_event_register_callback(
            event_registration,
            safety_in(cb_safety),
            Info::input(info),
            user_data,
            function,
        )
    })
}

/// # Safety
/// As for the procedure.
pub unsafe fn t_event_handle_free(
    event_registration: usize,
    user_data: *mut c_void,
    free_cb_function: usize,
) -> c_int {
    callbacks::dropped_listener(event_registration, 0);
    let (function, user_data) = callbacks::listener(free_cb_function, user_data, true);
    // SAFETY: the caller's promise.
    code_out(unsafe { standard::MPI_T_event_handle_free(event_registration, user_data, function) })
}

/// # Safety
/// As for the procedure.
pub unsafe fn t_event_set_dropped_handler(event_registration: usize, dropped_cb_function: usize) -> c_int {
    let function = callbacks::dropped_listener(event_registration, dropped_cb_function);
    // SAFETY: the caller's promise.
    code_out(unsafe { standard::MPI_T_event_set_dropped_handler(event_registration, function) })
}
