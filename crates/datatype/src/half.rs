//! IEEE binary16 by way of binary32.

/// The value of a binary16, exactly.
pub(crate) fn to_single(bits: u16) -> f32 {
    let sign = (bits as u32 & 0x8000) << 16;
    let magnitude = (bits as u32 & 0x7fff) << 13;
    let exponent = magnitude & 0x0f80_0000;
    if exponent == 0x0f80_0000 {
        // Infinity and not-a-number: the exponent is all ones here and there.
        return f32::from_bits(sign | magnitude | 0x7f80_0000);
    }
    // Multiplying moves the exponent by the difference of the biases, and makes subnormal numbers normal.
    let value = f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23);
    f32::from_bits(sign | value.to_bits())
}

/// The nearest binary16; of two equally near the even one.
pub(crate) fn from_single(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return sign | 0x7e00 | (magnitude >> 13) as u16 & 0x03ff;
    }
    if magnitude >= 0x4780_0000 {
        // At least 65536: infinite. What lies between the greatest binary16 and that rounds below.
        return sign | 0x7c00;
    }
    if magnitude < 0x3880_0000 {
        // Subnormal: adding one half puts the result, rounded, into the lowest bits of the sum.
        let shifted = f32::from_bits(magnitude) + 0.5;
        return sign | (shifted.to_bits() - 0.5_f32.to_bits()) as u16;
    }
    let odd = magnitude >> 13 & 1;
    let rounded = magnitude.wrapping_sub(112 << 23).wrapping_add(0x0fff + odd);
    sign | (rounded >> 13) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_back() {
        for bits in 0..=u16::MAX {
            let value = to_single(bits);
            if value.is_nan() {
                assert_eq!(bits & 0x7c00, 0x7c00);
                assert!(to_single(from_single(value)).is_nan());
            } else {
                assert_eq!(from_single(value), bits, "{value}");
            }
        }
    }

    #[test]
    fn known_values_and_rounding() {
        assert_eq!(to_single(0x3c00), 1.0);
        assert_eq!(to_single(0x0001), 2.0_f32.powi(-24));
        assert_eq!(from_single(65504.0), 0x7bff);
        assert_eq!(from_single(65519.9), 0x7bff);
        assert_eq!(from_single(65520.0), 0x7c00);
        assert_eq!(from_single(1.0 + 2.0_f32.powi(-11)), 0x3c00, "half way, to even");
        assert_eq!(from_single(1.0 + 3.0 * 2.0_f32.powi(-11)), 0x3c02, "half way, to even");
        assert_eq!(from_single(2.0_f32.powi(-25)), 0);
        assert_eq!(from_single(2.0_f32.powi(-25) * 1.01), 1);
    }
}
