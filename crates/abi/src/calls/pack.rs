//! Bodies of procedures: packing and unpacking (MPI 5.0, sections 5.2 and 5.3).

use super::prelude::*;
use parnass_mpi::datatype::{self, Buffer};

fn buffer(address: Address, count: i64, datatype: &Arc<Datatype>) -> Buffer<'_> {
    Buffer::new(address.user(), count as u64, datatype)
}

/// MPI_Pack.
pub fn pack(
    _call: &Call,
    inbuf: Address,
    incount: i64,
    datatype: &Arc<Datatype>,
    outbuf: Address,
    outsize: i64,
    position: IntInOut,
    _comm: &Arc<Communicator>,
) -> Result<()> {
    let end = datatype::pack(buffer(inbuf, incount, datatype), outbuf.user(), outsize, position.get())?;
    position.set(end, "position")
}

/// MPI_Pack_external.
pub fn pack_external(
    _call: &Call,
    datarep: &[u8],
    inbuf: Address,
    incount: i64,
    datatype: &Arc<Datatype>,
    outbuf: Address,
    outsize: i64,
    position: InOut<i64>,
) -> Result<()> {
    let input = buffer(inbuf, incount, datatype);
    let end = datatype::pack_external(datarep, input, outbuf.user(), outsize, position.get())?;
    position.set(end);
    Ok(())
}

/// MPI_Pack_external_size.
pub fn pack_external_size(
    _call: &Call,
    datarep: &[u8],
    incount: i64,
    datatype: &Arc<Datatype>,
    size: IntOut,
) -> Result<()> {
    size.set(datatype::external_size(datarep, incount as u64, datatype)?);
    Ok(())
}

/// MPI_Pack_size.
pub fn pack_size(
    _call: &Call,
    incount: i64,
    datatype: &Arc<Datatype>,
    _comm: &Arc<Communicator>,
    size: IntOut,
) -> Result<()> {
    size.set(datatype::pack_size(incount as u64, datatype)?);
    Ok(())
}

/// MPI_Unpack.
pub fn unpack(
    _call: &Call,
    inbuf: Address,
    insize: i64,
    position: IntInOut,
    outbuf: Address,
    outcount: i64,
    datatype: &Arc<Datatype>,
    _comm: &Arc<Communicator>,
) -> Result<()> {
    let end = datatype::unpack(inbuf.user(), insize, position.get(), buffer(outbuf, outcount, datatype))?;
    position.set(end, "position")
}

/// MPI_Unpack_external.
pub fn unpack_external(
    _call: &Call,
    datarep: &[u8],
    inbuf: Address,
    insize: i64,
    position: InOut<i64>,
    outbuf: Address,
    outcount: i64,
    datatype: &Arc<Datatype>,
) -> Result<()> {
    let output = buffer(outbuf, outcount, datatype);
    let end = datatype::unpack_external(datarep, inbuf.user(), insize, position.get(), output)?;
    position.set(end);
    Ok(())
}
