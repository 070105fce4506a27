//! Names that MPI 3.0 removed, and the conversions to and from Fortran, all of which MPICH's library still has.

use crate::generated::datatype::*;
use crate::generated::{comm, file};
use crate::status::Status;
use std::ffi::{c_int, c_void};

macro_rules! both {
    ($($name:ident, $profiling:ident ($($parameter:ident: $type:ty),*) -> $result:ty $body:block)*) => {$(
        /// # Safety
        /// As in MPICH's header.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name($($parameter: $type),*) -> $result {
            #[allow(unused_unsafe)]
            // SAFETY: the caller's promise.
            unsafe { $body }
        }

        /// # Safety
        /// As in MPICH's header.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $profiling($($parameter: $type),*) -> $result {
            #[allow(unused_unsafe)]
            // SAFETY: the caller's promise.
            unsafe { $body }
        }
    )*};
}

pub(super) use both;

both! {
    MPI_Address, PMPI_Address(location: *mut c_void, address: *mut i64) -> c_int {
        crate::generated::other_a_to_h::PMPI_Get_address(location, address)
    }
    MPI_Type_hindexed, PMPI_Type_hindexed(
        count: c_int, lengths: *const c_int, displacements: *const i64, old: c_int, new: *mut c_int
    ) -> c_int {
        PMPI_Type_create_hindexed(count, lengths, displacements, old, new)
    }
    MPI_Type_hvector, PMPI_Type_hvector(
        count: c_int, length: c_int, stride: i64, old: c_int, new: *mut c_int
    ) -> c_int {
        PMPI_Type_create_hvector(count, length, stride, old, new)
    }
    MPI_Type_struct, PMPI_Type_struct(
        count: c_int, lengths: *const c_int, displacements: *const i64, types: *const c_int, new: *mut c_int
    ) -> c_int {
        PMPI_Type_create_struct(count, lengths, displacements, types, new)
    }
    MPI_Type_extent, PMPI_Type_extent(datatype: c_int, extent: *mut i64) -> c_int {
        let mut lower_bound = 0;
        PMPI_Type_get_extent(datatype, &mut lower_bound, extent)
    }
    MPI_Type_lb, PMPI_Type_lb(datatype: c_int, lower_bound: *mut i64) -> c_int {
        let mut extent = 0;
        PMPI_Type_get_extent(datatype, lower_bound, &mut extent)
    }
    MPI_Type_ub, PMPI_Type_ub(datatype: c_int, upper_bound: *mut i64) -> c_int {
        let mut lower_bound = 0;
        let code = PMPI_Type_get_extent(datatype, &mut lower_bound, upper_bound);
        if code == 0 && !upper_bound.is_null() {
            *upper_bound += lower_bound;
        }
        code
    }
    MPI_Errhandler_create, PMPI_Errhandler_create(function: usize, errhandler: *mut c_int) -> c_int {
        comm::PMPI_Comm_create_errhandler(function, errhandler)
    }
    MPI_Errhandler_get, PMPI_Errhandler_get(comm: c_int, errhandler: *mut c_int) -> c_int {
        comm::PMPI_Comm_get_errhandler(comm, errhandler)
    }
    MPI_Errhandler_set, PMPI_Errhandler_set(comm: c_int, errhandler: c_int) -> c_int {
        comm::PMPI_Comm_set_errhandler(comm, errhandler)
    }
    MPI_File_c2f, PMPI_File_c2f(file: usize) -> c_int { file::PMPI_File_toint(file) }
    MPI_File_f2c, PMPI_File_f2c(file: c_int) -> usize { file::PMPI_File_fromint(file) }
    MPI_Status_c2f, PMPI_Status_c2f(from: *const Status, to: *mut Status) -> c_int { copy(from, to) }
    MPI_Status_f2c, PMPI_Status_f2c(from: *const Status, to: *mut Status) -> c_int { copy(from, to) }
    MPI_Status_c2f08, PMPI_Status_c2f08(from: *const Status, to: *mut Status) -> c_int { copy(from, to) }
    MPI_Status_f082c, PMPI_Status_f082c(from: *const Status, to: *mut Status) -> c_int { copy(from, to) }
    MPI_Status_f2f08, PMPI_Status_f2f08(from: *const Status, to: *mut Status) -> c_int { copy(from, to) }
    MPI_Status_f082f, PMPI_Status_f082f(from: *const Status, to: *mut Status) -> c_int { copy(from, to) }
}

/// Copies a status, which is laid out alike in C and in Fortran.
///
/// # Safety
/// Each is a status, or the constant for none, which is an error.
unsafe fn copy(from: *const Status, to: *mut Status) -> c_int {
    const MPI_ERR_ARG: c_int = 12;
    if from.addr() <= 1 || to.addr() <= 1 {
        return MPI_ERR_ARG;
    }
    // SAFETY: the caller's promise.
    unsafe { to.write_unaligned(from.read_unaligned()) };
    0
}

macro_rules! numbers {
    ($($to:ident $profiling_to:ident $from:ident $profiling_from:ident;)*) => {$(
        both! {
            $to, $profiling_to(handle: c_int) -> c_int { handle }
            $from, $profiling_from(handle: c_int) -> c_int { handle }
        }
    )*};
}

numbers! {
    MPI_Comm_c2f PMPI_Comm_c2f MPI_Comm_f2c PMPI_Comm_f2c;
    MPI_Errhandler_c2f PMPI_Errhandler_c2f MPI_Errhandler_f2c PMPI_Errhandler_f2c;
    MPI_Group_c2f PMPI_Group_c2f MPI_Group_f2c PMPI_Group_f2c;
    MPI_Info_c2f PMPI_Info_c2f MPI_Info_f2c PMPI_Info_f2c;
    MPI_Message_c2f PMPI_Message_c2f MPI_Message_f2c PMPI_Message_f2c;
    MPI_Op_c2f PMPI_Op_c2f MPI_Op_f2c PMPI_Op_f2c;
    MPI_Request_c2f PMPI_Request_c2f MPI_Request_f2c PMPI_Request_f2c;
    MPI_Session_c2f PMPI_Session_c2f MPI_Session_f2c PMPI_Session_f2c;
    MPI_Type_c2f PMPI_Type_c2f MPI_Type_f2c PMPI_Type_f2c;
    MPI_Win_c2f PMPI_Win_c2f MPI_Win_f2c PMPI_Win_f2c;
}
