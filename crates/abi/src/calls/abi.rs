//! Bodies of procedures: the ABI's own queries (MPI 5.0, section 20.4).

use super::prelude::*;
use std::sync::Mutex;

/// What the Fortran side has said about LOGICAL: the size in bytes and the two values.
static FORTRAN_BOOLEANS: Mutex<Option<Booleans>> = Mutex::new(None);

/// What the Fortran side has said about its types, from MPI_Abi_set_fortran_info.
static FORTRAN_INFO: Mutex<Option<parnass_mpi::Info>> = Mutex::new(None);

#[derive(Clone, Copy)]
struct Booleans {
    size: i32,
    values: [[u8; 16]; 2],
}

fn locked<T>(mutex: &'static Mutex<T>) -> std::sync::MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn check_size(size: i32, values: [*mut c_void; 2]) -> Result<()> {
    if !matches!(size, 1 | 2 | 4 | 8 | 16) {
        return Err(Error::new(
            MPI_ERR_ARG,
            format!("logical_size is {size}; the sizes of Fortran logicals are 1, 2, 4, 8 and 16 bytes"),
        ));
    }
    if values.iter().any(|value| value.is_null()) {
        return Err(Error::new(
            MPI_ERR_ARG,
            "logical_true or logical_false is a null pointer; give the address of a value",
        ));
    }
    Ok(())
}

/// MPI_Abi_get_version.
pub fn abi_get_version(_call: &Call, abi_major: Out<i32>, abi_minor: Out<i32>) -> Result<()> {
    abi_major.set(MPI_ABI_VERSION);
    abi_minor.set(MPI_ABI_SUBVERSION);
    Ok(())
}

/// MPI_Abi_get_info: the sizes of the integer types of the ABI, in bytes.
pub fn abi_get_info(_call: &Call, info: OutHandle<Info>) -> Result<()> {
    let mut content = parnass_mpi::Info::new();
    for key in ["mpi_aint_size", "mpi_count_size", "mpi_offset_size"] {
        content.set(key.as_bytes(), b"8")?;
    }
    info.set(Arc::new(Mutex::new(content)))
}

/// MPI_Abi_get_fortran_info: what was set with MPI_Abi_set_fortran_info; the null handle before.
pub fn abi_get_fortran_info(_call: &Call, info: OutHandle<Info>) -> Result<()> {
    match &*locked(&FORTRAN_INFO) {
        Some(content) => info.set(Arc::new(Mutex::new(content.clone()))),
        None => {
            info.set_null();
            Ok(())
        }
    }
}

/// MPI_Abi_set_fortran_info: once.
pub fn abi_set_fortran_info(_call: &Call, info: &Arc<Info>) -> Result<()> {
    let mut present = locked(&FORTRAN_INFO);
    if present.is_some() {
        return Err(Error::new(
            MPI_ERR_ABI,
            "the Fortran information has been set already; it can be set once",
        ));
    }
    *present = Some(info.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone());
    Ok(())
}

/// MPI_Abi_get_fortran_booleans.
pub fn abi_get_fortran_booleans(
    _call: &Call,
    logical_size: i32,
    logical_true: *mut c_void,
    logical_false: *mut c_void,
    is_set: Out<bool>,
) -> Result<()> {
    check_size(logical_size, [logical_true, logical_false])?;
    let known = (*locked(&FORTRAN_BOOLEANS)).filter(|known| known.size == logical_size);
    if let Some(known) = known {
        for (place, value) in [(logical_true, known.values[0]), (logical_false, known.values[1])] {
            // SAFETY: not null (checked), and the program gives places of `logical_size` bytes, at most 16.
            unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), place.cast(), logical_size as usize) };
        }
    }
    is_set.set(known.is_some());
    Ok(())
}

/// MPI_Abi_set_fortran_booleans: once.
pub fn abi_set_fortran_booleans(
    _call: &Call,
    logical_size: i32,
    logical_true: *mut c_void,
    logical_false: *mut c_void,
) -> Result<()> {
    check_size(logical_size, [logical_true, logical_false])?;
    let mut known = locked(&FORTRAN_BOOLEANS);
    if known.is_some() {
        return Err(Error::new(
            MPI_ERR_ABI,
            "the Fortran logical values have been set already; they can be set once",
        ));
    }
    let values = [logical_true, logical_false].map(|place| {
        let mut bytes = [0; 16];
        // SAFETY: not null (checked), and the program gives values of `logical_size` bytes.
        unsafe { std::ptr::copy_nonoverlapping(place.cast(), bytes.as_mut_ptr(), logical_size as usize) };
        bytes
    });
    *known = Some(Booleans { size: logical_size, values });
    Ok(())
}
