//! Data access to files (MPI 5.0, section 14.4): each procedure is a direction, a pointer, and who waits for it.

use crate::arguments::{Address, OutHandle, StatusOut};
use crate::call::Call;
use crate::calls::request::store;
use crate::objects::{Datatype, File, Request};
use parnass_mpi::Result;
use parnass_mpi::datatype::Buffer;
use parnass_mpi::io::Direction::{Read, Write};
use parnass_mpi::io::Pointer::{At, Individual, Shared};
use std::sync::Arc;

fn buffer(address: Address, count: i64, datatype: &Arc<Datatype>) -> Buffer<'_> {
    Buffer::new(address.user(), count as u64, datatype)
}

/// MPI_File_read_at.
pub fn file_read_at(
    _call: &Call,
    fh: &Arc<File>,
    offset: i64,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    status: StatusOut,
) -> Result<()> {
    store(status, &fh.access(Read, At(offset), buffer(buf, count, datatype))?);
    Ok(())
}

/// MPI_File_iread_at.
pub fn file_iread_at(
    call: &Call,
    fh: &Arc<File>,
    offset: i64,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    request: OutHandle<Request>,
) -> Result<()> {
    request.set(fh.start_access(call.process(), Read, At(offset), buffer(buf, count, datatype))?)
}

/// MPI_File_read.
pub fn file_read(
    _call: &Call,
    fh: &Arc<File>,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    status: StatusOut,
) -> Result<()> {
    store(status, &fh.access(Read, Individual, buffer(buf, count, datatype))?);
    Ok(())
}

/// MPI_File_iread.
pub fn file_iread(
    call: &Call,
    fh: &Arc<File>,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    request: OutHandle<Request>,
) -> Result<()> {
    request.set(fh.start_access(call.process(), Read, Individual, buffer(buf, count, datatype))?)
}

/// MPI_File_read_shared.
pub fn file_read_shared(
    _call: &Call,
    fh: &Arc<File>,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    status: StatusOut,
) -> Result<()> {
    store(status, &fh.access(Read, Shared, buffer(buf, count, datatype))?);
    Ok(())
}

/// MPI_File_iread_shared.
pub fn file_iread_shared(
    call: &Call,
    fh: &Arc<File>,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    request: OutHandle<Request>,
) -> Result<()> {
    request.set(fh.start_access(call.process(), Read, Shared, buffer(buf, count, datatype))?)
}

/// MPI_File_read_at_all.
pub fn file_read_at_all(
    call: &Call,
    fh: &Arc<File>,
    offset: i64,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    status: StatusOut,
) -> Result<()> {
    store(status, &fh.access_all(call.process(), Read, At(offset), buffer(buf, count, datatype))?);
    Ok(())
}

/// MPI_File_iread_at_all.
pub fn file_iread_at_all(
    call: &Call,
    fh: &Arc<File>,
    offset: i64,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    request: OutHandle<Request>,
) -> Result<()> {
    request.set(fh.start_access_all(call.process(), Read, At(offset), buffer(buf, count, datatype)))
}

/// MPI_File_read_at_all_begin.
pub fn file_read_at_all_begin(
    call: &Call,
    fh: &Arc<File>,
    offset: i64,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
) -> Result<()> {
    fh.begin_access_all(call.process(), Read, At(offset), buffer(buf, count, datatype))
}

/// MPI_File_read_at_all_end.
pub fn file_read_at_all_end(call: &Call, fh: &Arc<File>, _buf: Address, status: StatusOut) -> Result<()> {
    store(status, &fh.end_access_all(call.process(), Read, At(0))?);
    Ok(())
}

/// MPI_File_read_all.
pub fn file_read_all(
    call: &Call,
    fh: &Arc<File>,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    status: StatusOut,
) -> Result<()> {
    store(status, &fh.access_all(call.process(), Read, Individual, buffer(buf, count, datatype))?);
    Ok(())
}

/// MPI_File_iread_all.
pub fn file_iread_all(
    call: &Call,
    fh: &Arc<File>,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    request: OutHandle<Request>,
) -> Result<()> {
    request.set(fh.start_access_all(call.process(), Read, Individual, buffer(buf, count, datatype)))
}

/// MPI_File_read_all_begin.
pub fn file_read_all_begin(
    call: &Call,
    fh: &Arc<File>,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
) -> Result<()> {
    fh.begin_access_all(call.process(), Read, Individual, buffer(buf, count, datatype))
}

/// MPI_File_read_all_end.
pub fn file_read_all_end(call: &Call, fh: &Arc<File>, _buf: Address, status: StatusOut) -> Result<()> {
    store(status, &fh.end_access_all(call.process(), Read, Individual)?);
    Ok(())
}

/// MPI_File_read_ordered.
pub fn file_read_ordered(
    call: &Call,
    fh: &Arc<File>,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    status: StatusOut,
) -> Result<()> {
    store(status, &fh.access_all(call.process(), Read, Shared, buffer(buf, count, datatype))?);
    Ok(())
}

/// MPI_File_read_ordered_begin.
pub fn file_read_ordered_begin(
    call: &Call,
    fh: &Arc<File>,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
) -> Result<()> {
    fh.begin_access_all(call.process(), Read, Shared, buffer(buf, count, datatype))
}

/// MPI_File_read_ordered_end.
pub fn file_read_ordered_end(call: &Call, fh: &Arc<File>, _buf: Address, status: StatusOut) -> Result<()> {
    store(status, &fh.end_access_all(call.process(), Read, Shared)?);
    Ok(())
}

/// MPI_File_write_at.
pub fn file_write_at(
    _call: &Call,
    fh: &Arc<File>,
    offset: i64,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    status: StatusOut,
) -> Result<()> {
    store(status, &fh.access(Write, At(offset), buffer(buf, count, datatype))?);
    Ok(())
}

/// MPI_File_iwrite_at.
pub fn file_iwrite_at(
    call: &Call,
    fh: &Arc<File>,
    offset: i64,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    request: OutHandle<Request>,
) -> Result<()> {
    request.set(fh.start_access(call.process(), Write, At(offset), buffer(buf, count, datatype))?)
}

/// MPI_File_write.
pub fn file_write(
    _call: &Call,
    fh: &Arc<File>,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    status: StatusOut,
) -> Result<()> {
    store(status, &fh.access(Write, Individual, buffer(buf, count, datatype))?);
    Ok(())
}

/// MPI_File_iwrite.
pub fn file_iwrite(
    call: &Call,
    fh: &Arc<File>,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    request: OutHandle<Request>,
) -> Result<()> {
    request.set(fh.start_access(call.process(), Write, Individual, buffer(buf, count, datatype))?)
}

/// MPI_File_write_shared.
pub fn file_write_shared(
    _call: &Call,
    fh: &Arc<File>,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    status: StatusOut,
) -> Result<()> {
    store(status, &fh.access(Write, Shared, buffer(buf, count, datatype))?);
    Ok(())
}

/// MPI_File_iwrite_shared.
pub fn file_iwrite_shared(
    call: &Call,
    fh: &Arc<File>,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    request: OutHandle<Request>,
) -> Result<()> {
    request.set(fh.start_access(call.process(), Write, Shared, buffer(buf, count, datatype))?)
}

/// MPI_File_write_at_all.
pub fn file_write_at_all(
    call: &Call,
    fh: &Arc<File>,
    offset: i64,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    status: StatusOut,
) -> Result<()> {
    store(status, &fh.access_all(call.process(), Write, At(offset), buffer(buf, count, datatype))?);
    Ok(())
}

/// MPI_File_iwrite_at_all.
pub fn file_iwrite_at_all(
    call: &Call,
    fh: &Arc<File>,
    offset: i64,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    request: OutHandle<Request>,
) -> Result<()> {
    request.set(fh.start_access_all(call.process(), Write, At(offset), buffer(buf, count, datatype)))
}

/// MPI_File_write_at_all_begin.
pub fn file_write_at_all_begin(
    call: &Call,
    fh: &Arc<File>,
    offset: i64,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
) -> Result<()> {
    fh.begin_access_all(call.process(), Write, At(offset), buffer(buf, count, datatype))
}

/// MPI_File_write_at_all_end.
pub fn file_write_at_all_end(call: &Call, fh: &Arc<File>, _buf: Address, status: StatusOut) -> Result<()> {
    store(status, &fh.end_access_all(call.process(), Write, At(0))?);
    Ok(())
}

/// MPI_File_write_all.
pub fn file_write_all(
    call: &Call,
    fh: &Arc<File>,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    status: StatusOut,
) -> Result<()> {
    store(status, &fh.access_all(call.process(), Write, Individual, buffer(buf, count, datatype))?);
    Ok(())
}

/// MPI_File_iwrite_all.
pub fn file_iwrite_all(
    call: &Call,
    fh: &Arc<File>,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    request: OutHandle<Request>,
) -> Result<()> {
    request.set(fh.start_access_all(call.process(), Write, Individual, buffer(buf, count, datatype)))
}

/// MPI_File_write_all_begin.
pub fn file_write_all_begin(
    call: &Call,
    fh: &Arc<File>,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
) -> Result<()> {
    fh.begin_access_all(call.process(), Write, Individual, buffer(buf, count, datatype))
}

/// MPI_File_write_all_end.
pub fn file_write_all_end(call: &Call, fh: &Arc<File>, _buf: Address, status: StatusOut) -> Result<()> {
    store(status, &fh.end_access_all(call.process(), Write, Individual)?);
    Ok(())
}

/// MPI_File_write_ordered.
pub fn file_write_ordered(
    call: &Call,
    fh: &Arc<File>,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    status: StatusOut,
) -> Result<()> {
    store(status, &fh.access_all(call.process(), Write, Shared, buffer(buf, count, datatype))?);
    Ok(())
}

/// MPI_File_write_ordered_begin.
pub fn file_write_ordered_begin(
    call: &Call,
    fh: &Arc<File>,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
) -> Result<()> {
    fh.begin_access_all(call.process(), Write, Shared, buffer(buf, count, datatype))
}

/// MPI_File_write_ordered_end.
pub fn file_write_ordered_end(call: &Call, fh: &Arc<File>, _buf: Address, status: StatusOut) -> Result<()> {
    store(status, &fh.end_access_all(call.process(), Write, Shared)?);
    Ok(())
}
