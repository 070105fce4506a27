//! The canonical representation `external32` (MPI 5.0, section 14.5.2): big endian, sizes by table, no gaps.
//!
//! A layout is packed in native form, a stretch at a time, and each stretch is converted element by element as
//! the signature says.

use crate::element::Element;
use crate::layout::Layout;
use parnass_base::UserAddress;
use std::fmt;

/// Bytes of native data that are held for conversion.
const STRETCH: usize = 32 * 1024;

/// A value that has no `external32` form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConversionError {
    /// A `long` beyond 32 bits.
    Long(i64),
    /// An `unsigned long` beyond 32 bits.
    UnsignedLong(u64),
    /// A `wchar_t` beyond 16 bits.
    WideCharacter(u32),
}

impl fmt::Display for ConversionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConversionError::Long(value) => {
                write!(formatter, "the long {value} does not fit the 4 bytes that external32 has for it")
            }
            ConversionError::UnsignedLong(value) => {
                write!(
                    formatter,
                    "the unsigned long {value} does not fit the 4 bytes that external32 has for it"
                )
            }
            ConversionError::WideCharacter(value) => {
                write!(
                    formatter,
                    "the wide character U+{value:04X} does not fit the 2 bytes that external32 has for it"
                )
            }
        }
    }
}

impl std::error::Error for ConversionError {}

impl Layout {
    /// Writes `count` copies at `source` to `target` in `external32` form; returns its length in bytes.
    pub fn pack_external(
        &self,
        count: u64,
        source: UserAddress,
        target: UserAddress,
    ) -> Result<u64, ConversionError> {
        let (mut native, mut external) = (vec![0; STRETCH], Vec::with_capacity(STRETCH));
        // Where in the packed stream the window in `native` starts, and how much of it is there and how much converted.
        let (mut position, mut filled, mut taken) = (0_u64, 0_usize, 0_usize);
        let mut written = 0_u64;
        let mut result = Ok(());
        self.signature().repeated(count).visit(&mut |element, mut left| {
            let size = element.size() as usize;
            while left > 0 && result.is_ok() {
                if filled - taken < size {
                    position += taken as u64;
                    filled =
                        self.pack(count, source, position, address_of(&mut native), STRETCH as u64) as usize;
                    taken = 0;
                }
                let now = left.min(((filled - taken) / size) as u64) as usize;
                external.clear();
                result = to_external(element, &native[taken..taken + now * size], &mut external);
                if result.is_ok() {
                    target.offset(written as i64).write(&external);
                    written += external.len() as u64;
                }
                taken += now * size;
                left -= now as u64;
            }
        });
        result.map(|()| written)
    }

    /// Reads `count` copies at `target` from their `external32` form at `source`; returns its length in bytes.
    pub fn unpack_external(&self, count: u64, target: UserAddress, source: UserAddress) -> u64 {
        let (mut native, mut external) = (Vec::with_capacity(STRETCH), Vec::with_capacity(STRETCH));
        let (mut position, mut read) = (0_u64, 0_u64);
        self.signature().repeated(count).visit(&mut |element, mut left| {
            let size = element.size() as usize;
            while left > 0 {
                if STRETCH - native.len() < size {
                    position +=
                        self.unpack(count, target, position, address_of(&mut native), native.len() as u64);
                    native.clear();
                }
                let now = left.min(((STRETCH - native.len()) / size) as u64) as usize;
                external.resize(now * element.external_size() as usize, 0);
                source.offset(read as i64).read(&mut external);
                read += external.len() as u64;
                from_external(element, &external, &mut native);
                left -= now as u64;
            }
        });
        self.unpack(count, target, position, address_of(&mut native), native.len() as u64);
        read
    }
}

/// The address of working memory of this module.
fn address_of(bytes: &mut [u8]) -> UserAddress {
    // SAFETY: the slice is borrowed exclusively by the caller, and the address is used only while it is.
    unsafe { UserAddress::new(bytes.as_mut_ptr()) }
}

/// Appends values in reverse byte order, where the machine is little endian.
fn swap<const SIZE: usize>(from: &[u8], to: &mut Vec<u8>) {
    let (values, _) = from.as_chunks::<SIZE>();
    to.extend(
        values
            .iter()
            .flat_map(|value| if cfg!(target_endian = "little") { reversed(*value) } else { *value }),
    );
}

fn reversed<const SIZE: usize>(mut value: [u8; SIZE]) -> [u8; SIZE] {
    value.reverse();
    value
}

/// Of a complex element its parts, of another one itself: the unit whose bytes are reversed.
fn real_part(element: Element) -> Element {
    match element {
        Element::Complex16 => Element::Float16,
        Element::Complex32 => Element::Float32,
        Element::Complex64 => Element::Float64,
        Element::ComplexLongDouble => Element::LongDouble,
        Element::Complex128 => Element::Float128,
        other => other,
    }
}

fn swap_by_size(size: u32, from: &[u8], to: &mut Vec<u8>) {
    match size {
        1 => to.extend_from_slice(from),
        2 => swap::<2>(from, to),
        4 => swap::<4>(from, to),
        8 => swap::<8>(from, to),
        _ => swap::<16>(from, to),
    }
}

fn to_external(element: Element, native: &[u8], external: &mut Vec<u8>) -> Result<(), ConversionError> {
    match real_part(element) {
        Element::Long => {
            for value in native.as_chunks().0 {
                let value = i64::from_ne_bytes(*value);
                let narrow = i32::try_from(value).map_err(|_| ConversionError::Long(value))?;
                external.extend(narrow.to_be_bytes());
            }
        }
        Element::UnsignedLong => {
            for value in native.as_chunks().0 {
                let value = u64::from_ne_bytes(*value);
                let narrow = u32::try_from(value).map_err(|_| ConversionError::UnsignedLong(value))?;
                external.extend(narrow.to_be_bytes());
            }
        }
        Element::WideCharacter => {
            for value in native.as_chunks().0 {
                let value = u32::from_ne_bytes(*value);
                let narrow = u16::try_from(value).map_err(|_| ConversionError::WideCharacter(value))?;
                external.extend(narrow.to_be_bytes());
            }
        }
        Element::LongDouble => {
            for value in native.as_chunks().0 {
                external.extend(long_double_to_quad(u128::from_ne_bytes(*value)).to_be_bytes());
            }
        }
        other => swap_by_size(other.size(), native, external),
    }
    Ok(())
}

fn from_external(element: Element, external: &[u8], native: &mut Vec<u8>) {
    match real_part(element) {
        Element::Long => {
            for value in external.as_chunks().0 {
                native.extend((i32::from_be_bytes(*value) as i64).to_ne_bytes());
            }
        }
        Element::UnsignedLong => {
            for value in external.as_chunks().0 {
                native.extend((u32::from_be_bytes(*value) as u64).to_ne_bytes());
            }
        }
        Element::WideCharacter => {
            for value in external.as_chunks().0 {
                native.extend((u16::from_be_bytes(*value) as u32).to_ne_bytes());
            }
        }
        Element::LongDouble => {
            for value in external.as_chunks().0 {
                native.extend(quad_to_long_double(u128::from_be_bytes(*value)).to_ne_bytes());
            }
        }
        other => swap_by_size(other.size(), external, native),
    }
}

/// The bits of a binary128 from those of a `long double`.
///
/// On x86 that is a sign, 15 bits of exponent with the bias of binary128, and 64 bits of significand whose leading one is
/// stored; elsewhere it is binary128 already.
fn long_double_to_quad(bits: u128) -> u128 {
    if !cfg!(any(target_arch = "x86_64", target_arch = "x86")) {
        return bits;
    }
    let sign_and_exponent = bits >> 64 & 0xffff;
    let fraction = bits & 0x7fff_ffff_ffff_ffff;
    // Subnormal numbers have the same scale in both, so they need no care.
    sign_and_exponent << 112 | fraction << 49
}

/// The bits of a `long double` from those of a binary128: the nearest; of two equally near the even one.
fn quad_to_long_double(bits: u128) -> u128 {
    if !cfg!(any(target_arch = "x86_64", target_arch = "x86")) {
        return bits;
    }
    let sign = bits >> 127 << 15;
    let exponent = bits >> 112 & 0x7fff;
    let fraction = bits & ((1 << 112) - 1);
    let leading = if exponent == 0 { 0 } else { 1_u128 << 63 };
    if exponent == 0x7fff {
        // Infinity stays; not-a-number must not become infinity by losing its low bits.
        let quiet = if fraction == 0 { 0 } else { 1 << 62 };
        return (sign | exponent) << 64 | leading | quiet | fraction >> 49;
    }
    let mut significand = leading | fraction >> 49;
    let (rest, half) = (fraction & ((1 << 49) - 1), 1_u128 << 48);
    if rest > half || (rest == half && significand & 1 == 1) {
        significand += 1;
    }
    let mut exponent = exponent;
    if significand >> 64 == 1 {
        (significand, exponent) = (significand >> 1, exponent + 1);
    } else if exponent == 0 && significand >> 63 == 1 {
        exponent = 1;
    }
    (sign | exponent) << 64 | significand
}

#[cfg(test)]
mod tests {
    use super::*;

    fn external(element: Element, native: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        to_external(element, native, &mut bytes).unwrap();
        let mut back = Vec::new();
        from_external(element, &bytes, &mut back);
        assert_eq!(back, native);
        bytes
    }

    #[test]
    fn known_forms() {
        assert_eq!(external(Element::Int32, &0x0102_0304_i32.to_ne_bytes()), [1, 2, 3, 4]);
        assert_eq!(external(Element::Long, &(-2_i64).to_ne_bytes()), [0xff, 0xff, 0xff, 0xfe]);
        assert_eq!(external(Element::Float64, &1.0_f64.to_ne_bytes()), [0x3f, 0xf0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(
            external(Element::Complex32, &[1.0_f32, 2.0].map(f32::to_ne_bytes).concat()),
            [0x3f, 0x80, 0, 0, 0x40, 0, 0, 0]
        );
        assert_eq!(external(Element::WideCharacter, &0x20ac_u32.to_ne_bytes()), [0x20, 0xac]);
    }

    #[test]
    fn a_long_that_does_not_fit_is_an_error() {
        let error = to_external(Element::Long, &(1_i64 << 31).to_ne_bytes(), &mut Vec::new());
        assert_eq!(error, Err(ConversionError::Long(1 << 31)));
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn long_double_is_binary128_outside() {
        let one = 0x3fff_u128 << 64 | 1 << 63;
        assert_eq!(long_double_to_quad(one), 0x3fff << 112);
        assert_eq!(quad_to_long_double(0x3fff << 112), one);
        let minus_three_halves = 0xbfff_u128 << 64 | 3 << 62;
        assert_eq!(long_double_to_quad(minus_three_halves), 0xbfff_8000 << 96);
        let infinity = 0x7fff_u128 << 64 | 1 << 63;
        assert_eq!(quad_to_long_double(long_double_to_quad(infinity)), infinity);
        // The greatest binary128 below 2 rounds up to 2.
        assert_eq!(quad_to_long_double(0x3fff << 112 | ((1 << 112) - 1)), 0x4000 << 64 | 1 << 63);
        for significand in [1_u128, 5 << 20, (1 << 63) - 1] {
            assert_eq!(quad_to_long_double(long_double_to_quad(significand)), significand, "subnormal");
        }
    }
}
