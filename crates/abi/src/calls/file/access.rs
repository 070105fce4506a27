//! Data access to files (MPI 5.0, section 14.4). The procedures that differ only in direction and pointer share a body.
#![allow(clippy::too_many_arguments, reason = "the signatures are the standard's")]

use crate::calls::prelude::*;
use crate::calls::request::store;
pub use parnass_mpi::io::Direction::{Read, Write};
pub use parnass_mpi::io::Pointer::{At, Individual, Shared};
use parnass_mpi::io::{Direction, Pointer};

/// MPI_File_read and its like.
pub fn access(
    _call: &Call,
    direction: Direction,
    pointer: Pointer,
    fh: &Arc<File>,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    status: StatusOut,
) -> Result<()> {
    store(status, &fh.access(direction, pointer, buf.data(count, datatype))?);
    Ok(())
}

/// MPI_File_iread and its like.
pub fn start_access(
    call: &Call,
    direction: Direction,
    pointer: Pointer,
    fh: &Arc<File>,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    request: OutHandle<Request>,
) -> Result<()> {
    request.set(fh.start_access(call.process(), direction, pointer, buf.data(count, datatype))?)
}

/// MPI_File_read_all and its like.
pub fn access_all(
    call: &Call,
    direction: Direction,
    pointer: Pointer,
    fh: &Arc<File>,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    status: StatusOut,
) -> Result<()> {
    store(status, &fh.access_all(call.process(), direction, pointer, buf.data(count, datatype))?);
    Ok(())
}

/// MPI_File_iread_all and its like.
pub fn start_access_all(
    call: &Call,
    direction: Direction,
    pointer: Pointer,
    fh: &Arc<File>,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    request: OutHandle<Request>,
) -> Result<()> {
    request.set(fh.start_access_all(call.process(), direction, pointer, buf.data(count, datatype)))
}

/// MPI_File_read_all_begin and its like.
pub fn begin_access_all(
    call: &Call,
    direction: Direction,
    pointer: Pointer,
    fh: &Arc<File>,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
) -> Result<()> {
    fh.begin_access_all(call.process(), direction, pointer, buf.data(count, datatype))
}

/// MPI_File_read_all_end and its like.
pub fn end_access_all(
    call: &Call,
    direction: Direction,
    pointer: Pointer,
    fh: &Arc<File>,
    status: StatusOut,
) -> Result<()> {
    store(status, &fh.end_access_all(call.process(), direction, pointer)?);
    Ok(())
}
