//! Bodies of procedures: pack.

use super::prelude::*;

/// MPI_Pack.
pub fn pack(
    call: &Call,
    inbuf: Address,
    incount: i64,
    datatype: &Arc<Datatype>,
    outbuf: Address,
    outsize: i64,
    position: IntInOut,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let _ = (inbuf, incount, datatype, outbuf, outsize, position, comm);
    Err(call.missing())
}

/// MPI_Pack_external.
pub fn pack_external(
    call: &Call,
    datarep: &[u8],
    inbuf: Address,
    incount: i64,
    datatype: &Arc<Datatype>,
    outbuf: Address,
    outsize: i64,
    position: InOut<i64>,
) -> Result<()> {
    let _ = (datarep, inbuf, incount, datatype, outbuf, outsize, position);
    Err(call.missing())
}

/// MPI_Pack_external_size.
pub fn pack_external_size(
    call: &Call,
    datarep: &[u8],
    incount: i64,
    datatype: &Arc<Datatype>,
    size: IntOut,
) -> Result<()> {
    let _ = (datarep, incount, datatype, size);
    Err(call.missing())
}

/// MPI_Pack_size.
pub fn pack_size(
    call: &Call,
    incount: i64,
    datatype: &Arc<Datatype>,
    comm: &Arc<Communicator>,
    size: IntOut,
) -> Result<()> {
    let _ = (incount, datatype, comm, size);
    Err(call.missing())
}

/// MPI_Unpack.
pub fn unpack(
    call: &Call,
    inbuf: Address,
    insize: i64,
    position: IntInOut,
    outbuf: Address,
    outcount: i64,
    datatype: &Arc<Datatype>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let _ = (inbuf, insize, position, outbuf, outcount, datatype, comm);
    Err(call.missing())
}

/// MPI_Unpack_external.
pub fn unpack_external(
    call: &Call,
    datarep: &[u8],
    inbuf: Address,
    insize: i64,
    position: InOut<i64>,
    outbuf: Address,
    outcount: i64,
    datatype: &Arc<Datatype>,
) -> Result<()> {
    let _ = (datarep, inbuf, insize, position, outbuf, outcount, datatype);
    Err(call.missing())
}
