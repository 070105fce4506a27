//! Files (MPI 5.0, chapter 14): opening, views, pointers, consistency, data representations.

mod access;

pub use access::*;

use super::info::{copy_of, give_info};
use super::prelude::*;
use parnass_base::UserAddress;
use parnass_mpi::comm::Role;
use parnass_mpi::io::{self, Conversion, ExtentFunction, UserRepresentation};
use std::collections::HashMap;
use std::ffi::c_int;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The handles of the open files by the communicators that carry their operations, which their requests name.
static CARRIERS: Mutex<Option<HashMap<usize, usize>>> = Mutex::new(None);

fn carriers() -> MutexGuard<'static, Option<HashMap<usize, usize>>> {
    CARRIERS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn carrier_of(file: &File) -> usize {
    Arc::as_ptr(file.communicator()) as usize
}

/// Lets an error of a request go to the error handler of the file that this communicator carries; `false` if it carries none.
pub(super) fn raise_on(call: &Call, communicator: &Arc<Communicator>) -> bool {
    if communicator.role() != Role::Internal {
        return false;
    }
    let carrier = Arc::as_ptr(communicator) as usize;
    let handle = carriers().as_ref().and_then(|carriers| carriers.get(&carrier).copied());
    if let Some(handle) = handle {
        let (errhandler, handle, holder) = super::error::of_file(handle);
        call.raise_with(errhandler, handle, &holder);
    }
    handle.is_some()
}

/// MPI_File_open.
pub fn file_open(
    call: &Call,
    comm: &Arc<Communicator>,
    filename: &[u8],
    amode: i32,
    info: Option<&Arc<Info>>,
    fh: OutHandle<File>,
) -> Result<()> {
    let errhandler = super::error::of_file(MPI_FILE_NULL).0;
    let file = File::open(call.process(), comm, filename, amode, &copy_of(info), errhandler)?;
    let carrier = carrier_of(&file);
    let handle = File::table().insert(file)?;
    carriers().get_or_insert_default().insert(carrier, handle);
    fh.set_raw(handle);
    Ok(())
}

/// MPI_File_close. The handle is gone also if the file cannot be deleted, but not while a split collective access is under way.
pub fn file_close(call: &Call, fh: InOutHandle<File>) -> Result<()> {
    let (errhandler, handle, holder) = super::error::of_file(fh.handle());
    call.raise_with(errhandler, handle, &holder);
    fh.get().check_closable()?;
    let result = fh.get().close(call.process());
    if let Some(carriers) = carriers().as_mut() {
        carriers.remove(&carrier_of(fh.get()));
    }
    fh.release();
    result
}

/// MPI_File_delete.
pub fn file_delete(_call: &Call, filename: &[u8]) -> Result<()> {
    io::delete(Path::new(std::ffi::OsStr::from_bytes(filename)))
}

/// MPI_File_set_size.
pub fn file_set_size(call: &Call, fh: &Arc<File>, size: i64) -> Result<()> {
    fh.set_size(call.process(), size)
}

/// MPI_File_preallocate.
pub fn file_preallocate(call: &Call, fh: &Arc<File>, size: i64) -> Result<()> {
    fh.preallocate(call.process(), size)
}

/// MPI_File_get_size.
pub fn file_get_size(_call: &Call, fh: &Arc<File>, size: Out<i64>) -> Result<()> {
    size.set(fh.size()?);
    Ok(())
}

/// MPI_File_get_group.
pub fn file_get_group(_call: &Call, fh: &Arc<File>, group: OutHandle<Group>) -> Result<()> {
    group.set(Arc::new(fh.group().clone()))
}

/// MPI_File_get_amode.
pub fn file_get_amode(_call: &Call, fh: &Arc<File>, amode: Out<i32>) -> Result<()> {
    amode.set(fh.amode());
    Ok(())
}

/// MPI_File_set_info.
pub fn file_set_info(_call: &Call, fh: &Arc<File>, info: Option<&Arc<Info>>) -> Result<()> {
    fh.set_info(&copy_of(info));
    Ok(())
}

/// MPI_File_get_info.
pub fn file_get_info(_call: &Call, fh: &Arc<File>, info_used: OutHandle<Info>) -> Result<()> {
    give_info(fh.info(), &info_used)
}

/// MPI_File_set_view.
pub fn file_set_view(
    call: &Call,
    fh: &Arc<File>,
    disp: i64,
    etype: &Arc<Datatype>,
    filetype: &Arc<Datatype>,
    datarep: &[u8],
    info: Option<&Arc<Info>>,
) -> Result<()> {
    fh.set_view(call.process(), disp, etype, filetype, datarep, &copy_of(info))
}

/// MPI_File_get_view.
pub fn file_get_view(
    _call: &Call,
    fh: &Arc<File>,
    disp: Out<i64>,
    etype: OutHandle<Datatype>,
    filetype: OutHandle<Datatype>,
    datarep: StringOut,
) -> Result<()> {
    let view = fh.view();
    disp.set(view.displacement);
    etype.set(view.etype)?;
    filetype.set(view.filetype)?;
    datarep.set(&view.representation);
    Ok(())
}

/// MPI_File_seek.
pub fn file_seek(_call: &Call, fh: &Arc<File>, offset: i64, whence: i32) -> Result<()> {
    fh.seek(offset, whence)
}

/// MPI_File_get_position.
pub fn file_get_position(_call: &Call, fh: &Arc<File>, offset: Out<i64>) -> Result<()> {
    offset.set(fh.position()?);
    Ok(())
}

/// MPI_File_get_byte_offset.
pub fn file_get_byte_offset(_call: &Call, fh: &Arc<File>, offset: i64, disp: Out<i64>) -> Result<()> {
    disp.set(fh.byte_offset(offset)?);
    Ok(())
}

/// MPI_File_seek_shared.
pub fn file_seek_shared(call: &Call, fh: &Arc<File>, offset: i64, whence: i32) -> Result<()> {
    fh.seek_shared(call.process(), offset, whence)
}

/// MPI_File_get_position_shared.
pub fn file_get_position_shared(_call: &Call, fh: &Arc<File>, offset: Out<i64>) -> Result<()> {
    offset.set(fh.position_shared()?);
    Ok(())
}

/// MPI_File_get_type_extent.
pub fn file_get_type_extent(
    call: &Call,
    fh: &Arc<File>,
    datatype: &Arc<Datatype>,
    extent: Out<i64>,
) -> Result<()> {
    extent.set(fh.type_extent(call.process(), datatype)?);
    Ok(())
}

/// MPI_File_set_atomicity.
pub fn file_set_atomicity(call: &Call, fh: &Arc<File>, flag: bool) -> Result<()> {
    fh.set_atomicity(call.process(), flag)
}

/// MPI_File_get_atomicity.
pub fn file_get_atomicity(_call: &Call, fh: &Arc<File>, flag: Out<bool>) -> Result<()> {
    flag.set(fh.atomicity());
    Ok(())
}

/// MPI_File_sync.
pub fn file_sync(call: &Call, fh: &Arc<File>) -> Result<()> {
    fh.sync(call.process())
}

/// Calls `function` with a handle of the datatype, which is valid meanwhile.
fn with_handle<T>(
    datatype: &Arc<Datatype>,
    function: impl FnOnce(usize) -> T,
) -> std::result::Result<T, i32> {
    let handle = Datatype::table().insert(Arc::clone(datatype)).map_err(|error| error.class())?;
    let result = function(handle);
    if let Some(held) = Datatype::table().find(handle) {
        Datatype::table().release(held);
    }
    Ok(result)
}

fn pointer(address: UserAddress) -> *mut c_void {
    address.as_ptr().cast()
}

fn state(extra_state: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(extra_state)
}

fn extent_function(
    function: Function<callbacks::MPI_Datarep_extent_function>,
    extra_state: usize,
) -> Result<ExtentFunction> {
    let function = function.required("dtype_file_extent_fn")?;
    Ok(Box::new(move |datatype| {
        let mut extent = 0;
        // SAFETY: the program gave a function of this signature; the place lives during the call.
        let code =
            with_handle(datatype, |handle| unsafe { function(handle, &mut extent, state(extra_state)) })?;
        if code == MPI_SUCCESS { Ok(extent) } else { Err(code) }
    }))
}

/// MPI_Register_datarep.
pub fn register_datarep(
    call: &Call,
    datarep: &[u8],
    read_conversion_fn: Function<callbacks::MPI_Datarep_conversion_function>,
    write_conversion_fn: Function<callbacks::MPI_Datarep_conversion_function>,
    dtype_file_extent_fn: Function<callbacks::MPI_Datarep_extent_function>,
    extra_state: usize,
) -> Result<()> {
    let boxed = |function: callbacks::MPI_Datarep_conversion_function| -> Conversion {
        Box::new(move |memory, datatype, count, file, position| {
            let Ok(count) = c_int::try_from(count) else { return MPI_ERR_COUNT };
            let call = |handle| {
                // SAFETY: the program gave a function of this signature; both buffers live during the call.
                unsafe {
                    function(pointer(memory), handle, count, pointer(file), position, state(extra_state))
                }
            };
            with_handle(datatype, call).unwrap_or_else(|code| code)
        })
    };
    let representation = UserRepresentation {
        name: datarep.into(),
        read: read_conversion_fn.get().map(boxed),
        write: write_conversion_fn.get().map(boxed),
        extent: extent_function(dtype_file_extent_fn, extra_state)?,
    };
    io::register_representation(call.process(), representation)
}

/// MPI_Register_datarep_c.
pub fn register_datarep_c(
    call: &Call,
    datarep: &[u8],
    read_conversion_fn: Function<callbacks::MPI_Datarep_conversion_function_c>,
    write_conversion_fn: Function<callbacks::MPI_Datarep_conversion_function_c>,
    dtype_file_extent_fn: Function<callbacks::MPI_Datarep_extent_function>,
    extra_state: usize,
) -> Result<()> {
    let boxed = |function: callbacks::MPI_Datarep_conversion_function_c| -> Conversion {
        Box::new(move |memory, datatype, count, file, position| {
            let call = |handle| {
                // SAFETY: the program gave a function of this signature; both buffers live during the call.
                unsafe {
                    function(pointer(memory), handle, count, pointer(file), position, state(extra_state))
                }
            };
            with_handle(datatype, call).unwrap_or_else(|code| code)
        })
    };
    let representation = UserRepresentation {
        name: datarep.into(),
        read: read_conversion_fn.get().map(boxed),
        write: write_conversion_fn.get().map(boxed),
        extent: extent_function(dtype_file_extent_fn, extra_state)?,
    };
    io::register_representation(call.process(), representation)
}
