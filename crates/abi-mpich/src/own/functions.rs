//! Procedures that take functions of the program.

use crate::arguments::OutHandle;
use crate::callbacks::{self, Generalized, OperationKind, create_errhandler, create_operation};
use crate::codes::code_out;
use crate::generated::standard;
use crate::handles::{Comm, Errhandler, File, Op, Request, Session, Win};
use std::ffi::{c_char, c_int, c_void};

/// # Safety
/// As for the procedure.
pub unsafe fn op_create(user_fn: usize, commute: c_int, op: *mut c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { operation(OperationKind::Int, user_fn, commute, 0, std::ptr::null_mut(), op) }
}

/// # Safety
/// As for the procedure.
pub unsafe fn op_create_c(user_fn: usize, commute: c_int, op: *mut c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { operation(OperationKind::Large, user_fn, commute, 0, std::ptr::null_mut(), op) }
}

/// # Safety
/// `user_fn` is 0 or a function of this kind, `op` null or a place for a handle.
pub(super) unsafe fn operation(
    kind: OperationKind,
    user_fn: usize,
    commute: c_int,
    destructor: usize,
    extra_state: *mut c_void,
    op: *mut c_int,
) -> c_int {
    let mut op = OutHandle::<Op>::new(op);
    // SAFETY: the caller's promise.
    unsafe {
        let code = create_operation(kind, user_fn, commute, destructor, extra_state, op.place());
        op.finish();
        code_out(code)
    }
}

macro_rules! errhandlers {
    ($($name:ident $with_extra_state:ident $entry:ident $class:ident)*) => {$(
        /// # Safety
        /// As for the procedure.
        pub unsafe fn $name(function: usize, errhandler: *mut c_int) -> c_int {
            let mut errhandler = OutHandle::<Errhandler>::new(errhandler);
            // SAFETY: the caller's promise.
            unsafe {
                let code = create_errhandler::<$class>(standard::$entry, function, None, errhandler.place());
                errhandler.finish();
                code_out(code)
            }
        }

        /// # Safety
        /// As for the procedure.
        pub(super) unsafe fn $with_extra_state(
            function: usize,
            destructor: usize,
            extra_state: *mut c_void,
            errhandler: *mut c_int,
        ) -> c_int {
            let mut errhandler = OutHandle::<Errhandler>::new(errhandler);
            let more = Some((destructor, extra_state));
            // SAFETY: the caller's promise.
            unsafe {
                let code = create_errhandler::<$class>(standard::$entry, function, more, errhandler.place());
                errhandler.finish();
                code_out(code)
            }
        }
    )*};
}

errhandlers! {
    comm_create_errhandler comm_create_errhandler_x MPIX_Comm_create_errhandler_extra Comm
    file_create_errhandler file_create_errhandler_x MPIX_File_create_errhandler_extra File
    session_create_errhandler session_create_errhandler_x MPIX_Session_create_errhandler_extra Session
    win_create_errhandler win_create_errhandler_x MPIX_Win_create_errhandler_extra Win
}

/// # Safety
/// As for the procedure.
pub unsafe fn grequest_start(
    query_fn: usize,
    free_fn: usize,
    cancel_fn: usize,
    extra_state: *mut c_void,
    request: *mut c_int,
) -> c_int {
    let mut request = OutHandle::<Request>::new(request);
    let given = Generalized { query: query_fn, free: free_fn, cancel: cancel_fn, extra_state };
    // SAFETY: the caller's promise.
    unsafe {
        let code = callbacks::start(given, request.place());
        request.finish();
        code_out(code)
    }
}

/// # Safety
/// As for the procedure.
pub unsafe fn register_datarep(
    datarep: *const c_char,
    read_conversion_fn: usize,
    write_conversion_fn: usize,
    dtype_file_extent_fn: usize,
    extra_state: *mut c_void,
) -> c_int {
    let given = [read_conversion_fn, write_conversion_fn, dtype_file_extent_fn];
    let ([read, write, extent], extra_state) = callbacks::representation::<c_int>(given, extra_state);
    // SAFETY: the caller's promise.
    code_out(unsafe { standard::MPI_Register_datarep(datarep, read, write, extent, extra_state) })
}

/// # Safety
/// As for the procedure.
pub unsafe fn register_datarep_c(
    datarep: *const c_char,
    read_conversion_fn: usize,
    write_conversion_fn: usize,
    dtype_file_extent_fn: usize,
    extra_state: *mut c_void,
) -> c_int {
    let given = [read_conversion_fn, write_conversion_fn, dtype_file_extent_fn];
    let ([read, write, extent], extra_state) = callbacks::representation::<i64>(given, extra_state);
    // SAFETY: the caller's promise.
    code_out(unsafe { standard::MPI_Register_datarep_c(datarep, read, write, extent, extra_state) })
}
