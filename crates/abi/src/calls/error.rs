//! Bodies of procedures: error.

use super::prelude::*;

/// MPI_Add_error_class.
pub fn add_error_class(call: &Call, errorclass: Out<i32>) -> Result<()> {
    let _ = errorclass;
    Err(call.missing())
}

/// MPI_Add_error_code.
pub fn add_error_code(call: &Call, errorclass: i32, errorcode: Out<i32>) -> Result<()> {
    let _ = (errorclass, errorcode);
    Err(call.missing())
}

/// MPI_Add_error_string.
pub fn add_error_string(call: &Call, errorcode: i32, string: &[u8]) -> Result<()> {
    let _ = (errorcode, string);
    Err(call.missing())
}

/// MPI_Comm_call_errhandler.
pub fn comm_call_errhandler(call: &Call, comm: &Arc<Communicator>, errorcode: i32) -> Result<()> {
    let _ = (comm, errorcode);
    Err(call.missing())
}

/// MPI_Comm_create_errhandler.
pub fn comm_create_errhandler(
    call: &Call,
    comm_errhandler_fn: Function<callbacks::MPI_Comm_errhandler_function>,
    errhandler: OutHandle<Errhandler>,
) -> Result<()> {
    let _ = (comm_errhandler_fn, errhandler);
    Err(call.missing())
}

/// MPI_Comm_get_errhandler.
pub fn comm_get_errhandler(
    call: &Call,
    comm: &Arc<Communicator>,
    errhandler: OutHandle<Errhandler>,
) -> Result<()> {
    let _ = (comm, errhandler);
    Err(call.missing())
}

/// MPI_Comm_set_errhandler.
pub fn comm_set_errhandler(
    call: &Call,
    comm: &Arc<Communicator>,
    errhandler: &Arc<Errhandler>,
) -> Result<()> {
    let _ = (comm, errhandler);
    Err(call.missing())
}

/// MPI_Errhandler_free.
pub fn errhandler_free(call: &Call, errhandler: InOutHandle<Errhandler>) -> Result<()> {
    let _ = errhandler;
    Err(call.missing())
}

/// MPI_Error_class.
pub fn error_class(call: &Call, errorcode: i32, errorclass: Out<i32>) -> Result<()> {
    let _ = (errorcode, errorclass);
    Err(call.missing())
}

/// MPI_Error_string.
pub fn error_string(call: &Call, errorcode: i32, string: StringOut) -> Result<()> {
    let _ = (errorcode, string);
    Err(call.missing())
}

/// MPI_File_call_errhandler.
pub fn file_call_errhandler(call: &Call, fh: Handle<File>, errorcode: i32) -> Result<()> {
    let _ = (fh, errorcode);
    Err(call.missing())
}

/// MPI_File_create_errhandler.
pub fn file_create_errhandler(
    call: &Call,
    file_errhandler_fn: Function<callbacks::MPI_File_errhandler_function>,
    errhandler: OutHandle<Errhandler>,
) -> Result<()> {
    let _ = (file_errhandler_fn, errhandler);
    Err(call.missing())
}

/// MPI_File_get_errhandler.
pub fn file_get_errhandler(call: &Call, file: Handle<File>, errhandler: OutHandle<Errhandler>) -> Result<()> {
    let _ = (file, errhandler);
    Err(call.missing())
}

/// MPI_File_set_errhandler.
pub fn file_set_errhandler(call: &Call, file: Handle<File>, errhandler: &Arc<Errhandler>) -> Result<()> {
    let _ = (file, errhandler);
    Err(call.missing())
}

/// MPI_Remove_error_class.
pub fn remove_error_class(call: &Call, errorclass: i32) -> Result<()> {
    let _ = errorclass;
    Err(call.missing())
}

/// MPI_Remove_error_code.
pub fn remove_error_code(call: &Call, errorcode: i32) -> Result<()> {
    let _ = errorcode;
    Err(call.missing())
}

/// MPI_Remove_error_string.
pub fn remove_error_string(call: &Call, errorcode: i32) -> Result<()> {
    let _ = errorcode;
    Err(call.missing())
}

/// MPI_Session_create_errhandler.
pub fn session_create_errhandler(
    call: &Call,
    session_errhandler_fn: Function<callbacks::MPI_Session_errhandler_function>,
    errhandler: OutHandle<Errhandler>,
) -> Result<()> {
    let _ = (session_errhandler_fn, errhandler);
    Err(call.missing())
}

/// MPI_Win_create_errhandler.
pub fn win_create_errhandler(
    call: &Call,
    win_errhandler_fn: Function<callbacks::MPI_Win_errhandler_function>,
    errhandler: OutHandle<Errhandler>,
) -> Result<()> {
    let _ = (win_errhandler_fn, errhandler);
    Err(call.missing())
}
