//! What MPICH's library has beyond the standard, where the standard's library can serve it; and its variables.

use super::functions::*;
use super::removed::both;
use crate::arguments::OutHandle;
use crate::callbacks::OperationKind;
use crate::codes::code_out;
use crate::generated::standard;
use crate::generated::tables;
use crate::handles::{Class, Comm, Group, Request};
use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicUsize;

/// # Safety
/// `place` is null or the program's, for a handle that `make` writes.
unsafe fn made<C: Class>(place: *mut C::Raw, make: impl FnOnce(*mut usize) -> c_int) -> c_int {
    let mut handle = OutHandle::<C>::new(place);
    let code = make(handle.place());
    // SAFETY: the caller's promise.
    unsafe { handle.finish() };
    code_out(code)
}

both! {
    MPIX_Op_create_x, PMPIX_Op_create_x(
        function: usize, destructor: usize, commute: c_int, extra_state: *mut c_void, op: *mut c_int
    ) -> c_int {
        operation(OperationKind::Extra, function, commute, destructor, extra_state, op)
    }
    MPIX_Comm_create_errhandler_x, PMPIX_Comm_create_errhandler_x(
        function: usize, destructor: usize, extra_state: *mut c_void, errhandler: *mut c_int
    ) -> c_int {
        comm_create_errhandler_x(function, destructor, extra_state, errhandler)
    }
    MPIX_File_create_errhandler_x, PMPIX_File_create_errhandler_x(
        function: usize, destructor: usize, extra_state: *mut c_void, errhandler: *mut c_int
    ) -> c_int {
        file_create_errhandler_x(function, destructor, extra_state, errhandler)
    }
    MPIX_Session_create_errhandler_x, PMPIX_Session_create_errhandler_x(
        function: usize, destructor: usize, extra_state: *mut c_void, errhandler: *mut c_int
    ) -> c_int {
        session_create_errhandler_x(function, destructor, extra_state, errhandler)
    }
    MPIX_Win_create_errhandler_x, PMPIX_Win_create_errhandler_x(
        function: usize, destructor: usize, extra_state: *mut c_void, errhandler: *mut c_int
    ) -> c_int {
        win_create_errhandler_x(function, destructor, extra_state, errhandler)
    }
    MPIX_Comm_revoke, PMPIX_Comm_revoke(comm: c_int) -> c_int {
        code_out(standard::MPIX_Comm_revoke(Comm::input(comm)))
    }
    MPIX_Comm_shrink, PMPIX_Comm_shrink(comm: c_int, newcomm: *mut c_int) -> c_int {
        made::<Comm>(newcomm, |handle| standard::MPIX_Comm_shrink(Comm::input(comm), handle))
    }
    MPIX_Comm_agree, PMPIX_Comm_agree(comm: c_int, flag: *mut c_int) -> c_int {
        code_out(standard::MPIX_Comm_agree(Comm::input(comm), flag))
    }
    MPIX_Comm_get_failed, PMPIX_Comm_get_failed(comm: c_int, failedgrp: *mut c_int) -> c_int {
        made::<Group>(failedgrp, |handle| standard::MPIX_Comm_get_failed(Comm::input(comm), handle))
    }
    MPIX_Comm_failure_ack, PMPIX_Comm_failure_ack(comm: c_int) -> c_int {
        code_out(standard::MPIX_Comm_failure_ack(Comm::input(comm)))
    }
    MPIX_Comm_failure_get_acked, PMPIX_Comm_failure_get_acked(comm: c_int, failedgrp: *mut c_int) -> c_int {
        made::<Group>(failedgrp, |handle| standard::MPIX_Comm_failure_get_acked(Comm::input(comm), handle))
    }
    // Buffers of accelerators are not taken.
    MPIX_GPU_query_support, PMPIX_GPU_query_support(_kind: c_int, supported: *mut c_int) -> c_int {
        supported.write(0);
        0
    }
    MPIX_Query_cuda_support, PMPIX_Query_cuda_support() -> c_int { 0 }
    MPIX_Query_hip_support, PMPIX_Query_hip_support() -> c_int { 0 }
    MPIX_Query_ze_support, PMPIX_Query_ze_support() -> c_int { 0 }
    MPIX_Request_is_complete, PMPIX_Request_is_complete(request: c_int) -> c_int {
        let mut flag = 0;
        let request = Request::input(request);
        let code = standard::MPI_Request_get_status(request, &mut flag, std::ptr::null_mut());
        c_int::from(code_out(code) == 0 && flag != 0)
    }
}

/// MPI_UNWEIGHTED.
#[unsafe(no_mangle)]
pub static MPI_UNWEIGHTED: usize = tables::MPI_UNWEIGHTED;

/// MPI_WEIGHTS_EMPTY.
#[unsafe(no_mangle)]
pub static MPI_WEIGHTS_EMPTY: usize = tables::MPI_WEIGHTS_EMPTY;

/// MPI_T_PVAR_ALL_HANDLES.
#[unsafe(no_mangle)]
pub static MPI_T_PVAR_ALL_HANDLES: usize = tables::MPI_T_PVAR_ALL_HANDLES;

/// MPI_F_STATUS_IGNORE, which a Fortran library may set.
#[unsafe(no_mangle)]
pub static MPI_F_STATUS_IGNORE: AtomicUsize = AtomicUsize::new(0);

/// MPI_F_STATUSES_IGNORE, which a Fortran library may set.
#[unsafe(no_mangle)]
pub static MPI_F_STATUSES_IGNORE: AtomicUsize = AtomicUsize::new(0);
