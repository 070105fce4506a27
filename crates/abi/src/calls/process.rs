//! Bodies of procedures: process.

use super::prelude::*;

/// MPI_Abort.
pub fn abort(call: &Call, comm: &Arc<Communicator>, errorcode: i32) -> Result<()> {
    let _ = (comm, errorcode);
    Err(call.missing())
}

/// MPI_Finalize.
pub fn finalize(call: &Call) -> Result<()> {
    Err(call.missing())
}

/// MPI_Finalized.
pub fn finalized(call: &Call, flag: Out<bool>) -> Result<()> {
    let _ = flag;
    Err(call.missing())
}

/// MPI_Init.
pub fn init(call: &Call, argc: *mut c_void, argv: *mut c_void) -> Result<()> {
    let _ = (argc, argv);
    Err(call.missing())
}

/// MPI_Init_thread.
pub fn init_thread(
    call: &Call,
    argc: *mut c_void,
    argv: *mut c_void,
    required: i32,
    provided: Out<i32>,
) -> Result<()> {
    let _ = (argc, argv, required, provided);
    Err(call.missing())
}

/// MPI_Initialized.
pub fn initialized(call: &Call, flag: Out<bool>) -> Result<()> {
    let _ = flag;
    Err(call.missing())
}

/// MPI_Is_thread_main.
pub fn is_thread_main(call: &Call, flag: Out<bool>) -> Result<()> {
    let _ = flag;
    Err(call.missing())
}

/// MPI_Query_thread.
pub fn query_thread(call: &Call, provided: Out<i32>) -> Result<()> {
    let _ = provided;
    Err(call.missing())
}
