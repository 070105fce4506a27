//! Bytes written in hexadecimal digits, and summed up in a number.

use std::fmt::Write;

/// Two digits a byte.
pub fn digits(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// What [`digits`] has written. `None`: it is nothing of the kind.
pub fn of_digits(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    digits.chunks_exact(2).map(|pair| Some(value(pair[0])? << 4 | value(pair[1])?)).collect()
}

/// Where FNV-1a begins.
pub const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a of 64 bits, from [`FNV_BASIS`] or another beginning. It guards against accidents only.
pub fn fnv(beginning: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(beginning, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_again_and_nothing_else_is() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(of_digits(&digits(&bytes)), Some(bytes));
        for wrong in ["0", "0g", "+1", "\u{e9}", "00 0"] {
            assert_eq!(of_digits(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_hash_is_that_of_its_authors() {
        assert_eq!(fnv(FNV_BASIS, b""), FNV_BASIS);
        assert_eq!(fnv(FNV_BASIS, b"a"), 0xaf63_dc4c_8601_ec8c);
    }
}
