//! Packing and unpacking by call (MPI 5.0, sections 5.2 and 5.3).

use super::{Buffer, Datatype};
use crate::constants::*;
use crate::{Error, Result};
use parnass_base::UserAddress;

/// MPI_Pack_size: the most bytes that packing takes.
pub fn pack_size(count: u64, datatype: &Datatype) -> Result<i64> {
    whole_size(count, datatype.layout().size())
}

/// MPI_Pack_external_size: as [`pack_size`], for `external32`.
pub fn external_size(representation: &[u8], count: u64, datatype: &Datatype) -> Result<i64> {
    require_external32(representation)?;
    whole_size(count, datatype.layout().signature().external_bytes())
}

/// MPI_Pack: appends the data at `position` of a packed buffer of `size` bytes; returns the position behind it.
pub fn pack(input: Buffer<'_>, packed: UserAddress, size: i64, position: i64) -> Result<i64> {
    let length = pack_size(input.count, input.datatype)?;
    let end = end_of(position, length, size, "outsize", "larger outbuf")?;
    input.datatype.layout().pack(input.count, input.address, 0, packed.offset(position), length as u64);
    Ok(end)
}

/// MPI_Unpack: takes the data from `position` of a packed buffer of `size` bytes; returns the position behind it.
pub fn unpack(packed: UserAddress, size: i64, position: i64, output: Buffer<'_>) -> Result<i64> {
    let length = pack_size(output.count, output.datatype)?;
    let end = end_of(position, length, size, "insize", "smaller outcount")?;
    output.datatype.layout().unpack(output.count, output.address, 0, packed.offset(position), length as u64);
    Ok(end)
}

/// MPI_Pack_external.
pub fn pack_external(
    representation: &[u8],
    input: Buffer<'_>,
    packed: UserAddress,
    size: i64,
    position: i64,
) -> Result<i64> {
    let length = external_size(representation, input.count, input.datatype)?;
    let end = end_of(position, length, size, "outsize", "larger outbuf")?;
    let result = input.datatype.layout().pack_external(input.count, input.address, packed.offset(position));
    match result {
        Ok(_) => Ok(end),
        Err(error) => Err(Error::new(
            MPI_ERR_CONVERSION,
            format!("{error}; send it as a type of fixed size, such as MPI_INT64_T"),
        )),
    }
}

/// MPI_Unpack_external.
pub fn unpack_external(
    representation: &[u8],
    packed: UserAddress,
    size: i64,
    position: i64,
    output: Buffer<'_>,
) -> Result<i64> {
    let length = external_size(representation, output.count, output.datatype)?;
    let end = end_of(position, length, size, "insize", "smaller outcount")?;
    output.datatype.layout().unpack_external(output.count, output.address, packed.offset(position));
    Ok(end)
}

fn whole_size(count: u64, size: u64) -> Result<i64> {
    let whole = count.checked_mul(size).and_then(|whole| i64::try_from(whole).ok());
    whole.ok_or_else(|| {
        Error::new(
            MPI_ERR_COUNT,
            format!("{count} times {size} bytes are more than 2^63 - 1; use a smaller count"),
        )
    })
}

fn require_external32(representation: &[u8]) -> Result<()> {
    if representation == b"external32" {
        return Ok(());
    }
    let message =
        format!("datarep is \"{}\"; it must be \"external32\"", String::from_utf8_lossy(representation));
    Err(Error::new(MPI_ERR_ARG, message))
}

/// Where `length` bytes from `position` end, which must be within `size`.
fn end_of(position: i64, length: i64, size: i64, size_name: &str, remedy: &str) -> Result<i64> {
    if position < 0 {
        return Err(Error::new(MPI_ERR_ARG, format!("position is {position}; it must not be negative")));
    }
    match position.checked_add(length) {
        Some(end) if end <= size => Ok(end),
        _ => Err(Error::new(
            MPI_ERR_TRUNCATE,
            format!(
                "the data takes {length} bytes from position {position}, but {size_name} is {size}; give a {remedy}"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::{CountForm, PredefinedDatatypes};
    use parnass_base::Scratch;

    #[test]
    fn a_column_goes_out_and_comes_back() {
        let predefined = PredefinedDatatypes::default();
        let column = Datatype::vector(CountForm::Int, 3, 1, 4, predefined.int()).unwrap();
        let matrix = Scratch::new(48);
        matrix.address().write(&(0..12_i32).flat_map(i32::to_ne_bytes).collect::<Vec<_>>());
        let packed = Scratch::new(16);
        let input = Buffer::new(matrix.address(), 1, &column);
        assert_eq!(pack(input, packed.address(), 16, 4).unwrap(), 16);
        assert_eq!(pack(input, packed.address(), 16, 5).unwrap_err().class(), MPI_ERR_TRUNCATE);
        assert_eq!(pack(input, packed.address(), 16, -1).unwrap_err().class(), MPI_ERR_ARG);
        let mut bytes = [0; 12];
        packed.address().offset(4).read(&mut bytes);
        assert_eq!(bytes.to_vec(), [0_i32, 4, 8].map(i32::to_ne_bytes).concat());
        let output = Buffer::new(matrix.address().offset(4), 1, &column);
        assert_eq!(unpack(packed.address(), 16, 4, output).unwrap(), 16);
        let mut second = [0; 4];
        matrix.address().offset(20).read(&mut second);
        assert_eq!(i32::from_ne_bytes(second), 4);
    }

    #[test]
    fn only_external32_is_known() {
        let predefined = PredefinedDatatypes::default();
        assert_eq!(external_size(b"external32", 3, predefined.get(0x20a).unwrap()).unwrap(), 12);
        let error = external_size(b"native", 3, predefined.int()).unwrap_err();
        assert!(error.message().contains("native"), "{error}");
    }
}
