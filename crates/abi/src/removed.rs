//! Names that MPI 3.0 removed (MPI 5.0, section 18.1) and that old programs still link to. They are not in `mpi.h`.

use crate::generated::{datatype, error};
use std::ffi::{c_int, c_void};

macro_rules! removed {
    ($($(#[$doc:meta])* $name:ident, $profiling:ident ($($parameter:ident: $type:ty),*) $body:block)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As the procedure that replaced it.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name($($parameter: $type),*) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { $profiling($($parameter),*) }
        }

        $(#[$doc])*
        ///
        /// # Safety
        /// As the procedure that replaced it.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $profiling($($parameter: $type),*) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { $body }
        }
    )*};
}

removed! {
    /// Now MPI_Get_address.
    MPI_Address, PMPI_Address(location: *const c_void, address: *mut i64) {
        datatype::MPI_Get_address(location, address)
    }
    /// Now MPI_Type_create_hindexed.
    MPI_Type_hindexed, PMPI_Type_hindexed(
        count: c_int, lengths: *const c_int, displacements: *const i64, old: usize, new: *mut usize
    ) {
        datatype::MPI_Type_create_hindexed(count, lengths, displacements, old, new)
    }
    /// Now MPI_Type_create_hvector.
    MPI_Type_hvector, PMPI_Type_hvector(count: c_int, length: c_int, stride: i64, old: usize, new: *mut usize) {
        datatype::MPI_Type_create_hvector(count, length, stride, old, new)
    }
    /// Now MPI_Type_create_struct.
    MPI_Type_struct, PMPI_Type_struct(
        count: c_int, lengths: *const c_int, displacements: *const i64, types: *const usize, new: *mut usize
    ) {
        datatype::MPI_Type_create_struct(count, lengths, displacements, types, new)
    }
    /// Now MPI_Type_get_extent.
    MPI_Type_extent, PMPI_Type_extent(datatype: usize, extent: *mut i64) {
        let mut lower_bound = 0;
        datatype::MPI_Type_get_extent(datatype, &mut lower_bound, extent)
    }
    /// Now MPI_Type_get_extent.
    MPI_Type_lb, PMPI_Type_lb(datatype: usize, lower_bound: *mut i64) {
        let mut extent = 0;
        datatype::MPI_Type_get_extent(datatype, lower_bound, &mut extent)
    }
    /// Now the lower bound plus the extent that MPI_Type_get_extent gives.
    MPI_Type_ub, PMPI_Type_ub(datatype: usize, upper_bound: *mut i64) {
        let mut lower_bound = 0;
        let code = datatype::MPI_Type_get_extent(datatype, &mut lower_bound, upper_bound);
        if code == 0 && !upper_bound.is_null() {
            *upper_bound += lower_bound;
        }
        code
    }
    /// Now MPI_Comm_create_errhandler.
    MPI_Errhandler_create, PMPI_Errhandler_create(function: usize, errhandler: *mut usize) {
        error::MPI_Comm_create_errhandler(function, errhandler)
    }
    /// Now MPI_Comm_get_errhandler.
    MPI_Errhandler_get, PMPI_Errhandler_get(comm: usize, errhandler: *mut usize) {
        error::MPI_Comm_get_errhandler(comm, errhandler)
    }
    /// Now MPI_Comm_set_errhandler.
    MPI_Errhandler_set, PMPI_Errhandler_set(comm: usize, errhandler: usize) {
        error::MPI_Comm_set_errhandler(comm, errhandler)
    }
}
