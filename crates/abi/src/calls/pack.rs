//! Bodies of procedures: packing and unpacking (MPI 5.0, sections 5.2 and 5.3).

use super::prelude::*;
use parnass_base::UserAddress;
use parnass_mpi::datatype::{self, Buffer};

/// The data argument `name`, which must have an address if there is data.
fn data<'a>(address: Address, count: i64, datatype: &'a Arc<Datatype>, name: &str) -> Result<Buffer<'a>> {
    buffer(address, count, datatype, name)?;
    Ok(Buffer::new(address.user(), count as u64, datatype))
}

/// The packed argument `name`, which must have an address if data goes in or out.
fn packed(address: Address, size: i64, data: Buffer<'_>, name: &str) -> Result<UserAddress> {
    if address.value() <= MPI_IN_PLACE && size > 0 && data.size() > 0 {
        return Err(Error::new(
            MPI_ERR_BUFFER,
            format!(
                "{name} is {:#x}, which is no address; give the address of the packed buffer",
                address.value()
            ),
        ));
    }
    Ok(address.user())
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
) -> Result<()> {
    let input = data(inbuf, incount, datatype, "inbuf")?;
    let packed = packed(outbuf, outsize, input, "outbuf")?;
    let end = datatype::pack(input, packed, outsize, position.get())?;
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
    let input = data(inbuf, incount, datatype, "inbuf")?;
    let packed = packed(outbuf, outsize, input, "outbuf")?;
    let end = datatype::pack_external(datarep, input, packed, outsize, position.get())?;
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
pub fn pack_size(_call: &Call, incount: i64, datatype: &Arc<Datatype>, size: IntOut) -> Result<()> {
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
) -> Result<()> {
    let output = data(outbuf, outcount, datatype, "outbuf")?;
    let packed = packed(inbuf, insize, output, "inbuf")?;
    let end = datatype::unpack(packed, insize, position.get(), output)?;
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
    let output = data(outbuf, outcount, datatype, "outbuf")?;
    let packed = packed(inbuf, insize, output, "inbuf")?;
    let end = datatype::unpack_external(datarep, packed, insize, position.get(), output)?;
    position.set(end);
    Ok(())
}
