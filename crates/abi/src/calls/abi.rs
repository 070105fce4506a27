//! Bodies of procedures: abi.

use super::prelude::*;

/// MPI_Abi_get_fortran_booleans.
pub fn abi_get_fortran_booleans(
    call: &Call,
    logical_size: i32,
    logical_true: *mut c_void,
    logical_false: *mut c_void,
    is_set: Out<bool>,
) -> Result<()> {
    let _ = (logical_size, logical_true, logical_false, is_set);
    Err(call.missing())
}

/// MPI_Abi_get_fortran_info.
pub fn abi_get_fortran_info(call: &Call, info: OutHandle<Info>) -> Result<()> {
    let _ = info;
    Err(call.missing())
}

/// MPI_Abi_get_info.
pub fn abi_get_info(call: &Call, info: OutHandle<Info>) -> Result<()> {
    let _ = info;
    Err(call.missing())
}

/// MPI_Abi_get_version.
pub fn abi_get_version(call: &Call, abi_major: Out<i32>, abi_minor: Out<i32>) -> Result<()> {
    let _ = (abi_major, abi_minor);
    Err(call.missing())
}

/// MPI_Abi_set_fortran_booleans.
pub fn abi_set_fortran_booleans(
    call: &Call,
    logical_size: i32,
    logical_true: *mut c_void,
    logical_false: *mut c_void,
) -> Result<()> {
    let _ = (logical_size, logical_true, logical_false);
    Err(call.missing())
}

/// MPI_Abi_set_fortran_info.
pub fn abi_set_fortran_info(call: &Call, info: &Arc<Info>) -> Result<()> {
    let _ = info;
    Err(call.missing())
}
