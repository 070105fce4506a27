//! The buffers for buffered sends (MPI 5.0, section 3.6).

use crate::arguments::{Address, IntOut, Out, OutHandle};
use crate::call::Call;
use crate::objects::{Communicator, Request, Session};
use parnass_mpi::Result;
use parnass_mpi::pt2pt::BufferOwner;
use std::sync::Arc;

fn detach(call: &Call, owner: BufferOwner<'_>, buffer_addr: Out<usize>, size: IntOut) -> Result<()> {
    let (address, bytes) = call.process().detach_buffer(owner)?;
    buffer_addr.set(address.value());
    size.set(bytes as i64);
    Ok(())
}

/// MPI_Buffer_attach.
pub fn buffer_attach(call: &Call, buffer: Address, size: i64) -> Result<()> {
    call.process().attach_buffer(BufferOwner::Process, buffer.user(), size as u64)
}

/// MPI_Buffer_detach.
pub fn buffer_detach(call: &Call, buffer_addr: Out<usize>, size: IntOut) -> Result<()> {
    detach(call, BufferOwner::Process, buffer_addr, size)
}

/// MPI_Buffer_flush.
pub fn buffer_flush(call: &Call) -> Result<()> {
    call.process().flush_buffer(BufferOwner::Process)
}

/// MPI_Buffer_iflush.
pub fn buffer_iflush(call: &Call, request: OutHandle<Request>) -> Result<()> {
    request.set(call.process().start_flush_buffer(BufferOwner::Process)?)
}

/// MPI_Comm_attach_buffer.
pub fn comm_attach_buffer(call: &Call, comm: &Arc<Communicator>, buffer: Address, size: i64) -> Result<()> {
    call.process().attach_buffer(BufferOwner::Communicator(comm), buffer.user(), size as u64)
}

/// MPI_Comm_detach_buffer.
pub fn comm_detach_buffer(
    call: &Call,
    comm: &Arc<Communicator>,
    buffer_addr: Out<usize>,
    size: IntOut,
) -> Result<()> {
    detach(call, BufferOwner::Communicator(comm), buffer_addr, size)
}

/// MPI_Comm_flush_buffer.
pub fn comm_flush_buffer(call: &Call, comm: &Arc<Communicator>) -> Result<()> {
    call.process().flush_buffer(BufferOwner::Communicator(comm))
}

/// MPI_Comm_iflush_buffer.
pub fn comm_iflush_buffer(call: &Call, comm: &Arc<Communicator>, request: OutHandle<Request>) -> Result<()> {
    request.set(call.process().start_flush_buffer(BufferOwner::Communicator(comm))?)
}

/// MPI_Session_attach_buffer.
pub fn session_attach_buffer(call: &Call, session: &Arc<Session>, buffer: Address, size: i64) -> Result<()> {
    call.process().attach_buffer(BufferOwner::Session(session), buffer.user(), size as u64)
}

/// MPI_Session_detach_buffer.
pub fn session_detach_buffer(
    call: &Call,
    session: &Arc<Session>,
    buffer_addr: Out<usize>,
    size: IntOut,
) -> Result<()> {
    detach(call, BufferOwner::Session(session), buffer_addr, size)
}

/// MPI_Session_flush_buffer.
pub fn session_flush_buffer(call: &Call, session: &Arc<Session>) -> Result<()> {
    call.process().flush_buffer(BufferOwner::Session(session))
}

/// MPI_Session_iflush_buffer.
pub fn session_iflush_buffer(call: &Call, session: &Arc<Session>, request: OutHandle<Request>) -> Result<()> {
    request.set(call.process().start_flush_buffer(BufferOwner::Session(session))?)
}
