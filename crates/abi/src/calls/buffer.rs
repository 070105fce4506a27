//! Bodies of procedures: buffer.

use super::prelude::*;

/// MPI_Buffer_attach.
pub fn buffer_attach(call: &Call, buffer: Address, size: i64) -> Result<()> {
    let _ = (buffer, size);
    Err(call.missing())
}

/// MPI_Buffer_detach.
pub fn buffer_detach(call: &Call, buffer_addr: Out<usize>, size: IntOut) -> Result<()> {
    let _ = (buffer_addr, size);
    Err(call.missing())
}

/// MPI_Buffer_flush.
pub fn buffer_flush(call: &Call) -> Result<()> {
    Err(call.missing())
}

/// MPI_Buffer_iflush.
pub fn buffer_iflush(call: &Call, request: OutHandle<Request>) -> Result<()> {
    let _ = request;
    Err(call.missing())
}

/// MPI_Comm_attach_buffer.
pub fn comm_attach_buffer(call: &Call, comm: &Arc<Communicator>, buffer: Address, size: i64) -> Result<()> {
    let _ = (comm, buffer, size);
    Err(call.missing())
}

/// MPI_Comm_detach_buffer.
pub fn comm_detach_buffer(
    call: &Call,
    comm: &Arc<Communicator>,
    buffer_addr: Out<usize>,
    size: IntOut,
) -> Result<()> {
    let _ = (comm, buffer_addr, size);
    Err(call.missing())
}

/// MPI_Comm_flush_buffer.
pub fn comm_flush_buffer(call: &Call, comm: &Arc<Communicator>) -> Result<()> {
    let _ = comm;
    Err(call.missing())
}

/// MPI_Comm_iflush_buffer.
pub fn comm_iflush_buffer(call: &Call, comm: &Arc<Communicator>, request: OutHandle<Request>) -> Result<()> {
    let _ = (comm, request);
    Err(call.missing())
}
