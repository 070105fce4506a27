//! Every operator on every element, against values worked out one at a time in wide arithmetic.

use parnass_base::Scratch;
use parnass_datatype::{Element, Family, Operand, Operator, combine_word, reduce};

const OPERATORS: [Operator; 14] = [
    Operator::Max,
    Operator::Min,
    Operator::Sum,
    Operator::Product,
    Operator::LogicalAnd,
    Operator::BitwiseAnd,
    Operator::LogicalOr,
    Operator::BitwiseOr,
    Operator::LogicalXor,
    Operator::BitwiseXor,
    Operator::MinLocation,
    Operator::MaxLocation,
    Operator::Replace,
    Operator::Nothing,
];

/// Runs a reduction at an odd address, and returns what is in the buffer afterwards.
fn run(operator: Operator, operand: Operand, input: &[u8], inout: &[u8], count: usize) -> Vec<u8> {
    let (left, right) = (Scratch::new(input.len() + 1), Scratch::new(inout.len() + 1));
    let (left, right) = (left.address().offset(1), right.address().offset(1));
    left.write(input);
    right.write(inout);
    assert!(reduce(operator, operand, left, right, count as u64), "{operator:?} on {operand:?}");
    let mut result = vec![0; inout.len()];
    right.read(&mut result);
    result
}

/// Bytes that are different at every place.
fn noise(length: usize, seed: u32) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn signed(element: Element) -> bool {
    !matches!(
        element,
        Element::Uint8 | Element::Uint16 | Element::Uint32 | Element::Uint64 | Element::UnsignedLong
    )
}

/// The integer in little-endian bytes, widened.
fn widen(bytes: &[u8], signed: bool) -> i128 {
    let fill = if signed && bytes[bytes.len() - 1] & 0x80 != 0 { 0xff } else { 0 };
    let mut wide = [fill; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(wide)
}

#[test]
#[cfg(target_endian = "little")]
fn integers_logicals_and_bytes() {
    let count = 37;
    for element in Element::ALL {
        if !matches!(element.family(), Family::Integer | Family::Logical | Family::Byte) {
            continue;
        }
        let size = element.size() as usize;
        let (mut input, mut inout) = (noise(size * count, 1), noise(size * count, 2));
        // Some zeros, for the logical operators.
        input[..size * 5].fill(0);
        inout[size * 3..size * 8].fill(0);
        for operator in OPERATORS {
            let operand = Operand::One(element);
            if !operator.accepts(operand) {
                continue;
            }
            let result = run(operator, operand, &input, &inout, count);
            for place in 0..count {
                let range = place * size..(place + 1) * size;
                let (a, b) = (
                    widen(&input[range.clone()], signed(element)),
                    widen(&inout[range.clone()], signed(element)),
                );
                let expected = match operator {
                    Operator::Max => a.max(b),
                    Operator::Min => a.min(b),
                    Operator::Sum => a.wrapping_add(b),
                    Operator::Product => a.wrapping_mul(b),
                    Operator::LogicalAnd => (a != 0 && b != 0).into(),
                    Operator::LogicalOr => (a != 0 || b != 0).into(),
                    Operator::LogicalXor => ((a != 0) != (b != 0)).into(),
                    Operator::BitwiseAnd => a & b,
                    Operator::BitwiseOr => a | b,
                    Operator::BitwiseXor => a ^ b,
                    Operator::Replace => a,
                    Operator::Nothing => b,
                    Operator::MinLocation | Operator::MaxLocation => unreachable!("only on pairs"),
                };
                assert_eq!(
                    &result[range],
                    &expected.to_le_bytes()[..size],
                    "{operator:?} on {element:?} of {a} and {b}"
                );
            }
        }
    }
}

/// The bits of a binary128 for a small integer.
fn quad(value: i32) -> u128 {
    if value == 0 {
        return 0;
    }
    let magnitude = u128::from(value.unsigned_abs());
    let exponent = 127 - magnitude.leading_zeros();
    let fraction = (magnitude << (112 - exponent)) & ((1 << 112) - 1);
    u128::from(value < 0) << 127 | u128::from(exponent + 16383) << 112 | fraction
}

/// The bits of a `long double` for a small integer.
fn long_double(value: i32) -> u128 {
    if cfg!(not(any(target_arch = "x86_64", target_arch = "x86"))) || value == 0 {
        return quad(value);
    }
    let quad = quad(value);
    (quad >> 112) << 64 | 1 << 63 | (quad & ((1 << 112) - 1)) >> 49
}

/// The bits of a binary16 for an integer that it holds exactly.
fn half(value: i32) -> u16 {
    if value == 0 {
        return 0;
    }
    let magnitude = value.unsigned_abs();
    let exponent = magnitude.ilog2();
    let fraction = if exponent <= 10 { magnitude << (10 - exponent) } else { magnitude >> (exponent - 10) };
    (u32::from(value < 0) << 15 | (exponent + 15) << 10 | (fraction & 0x3ff)) as u16
}

/// A number as the element, or as the real part of the complex element, has it.
fn real(element: Element, value: i32) -> Vec<u8> {
    match element {
        Element::Float16 | Element::Complex16 => half(value).to_ne_bytes().to_vec(),
        Element::Float32 | Element::Complex32 => (value as f32).to_ne_bytes().to_vec(),
        Element::Float64 | Element::Complex64 => f64::from(value).to_ne_bytes().to_vec(),
        Element::LongDouble | Element::ComplexLongDouble => long_double(value).to_ne_bytes().to_vec(),
        Element::Float128 | Element::Complex128 => quad(value).to_ne_bytes().to_vec(),
        other => i128::from(value).to_le_bytes()[..other.size() as usize].to_vec(),
    }
}

/// `long double` has bytes of padding whose content means nothing.
fn significant(element: Element, bytes: &[u8]) -> Vec<u8> {
    let padded = matches!(element, Element::LongDouble | Element::ComplexLongDouble);
    match padded && cfg!(target_arch = "x86_64") {
        true => bytes.chunks(16).flat_map(|number| &number[..10]).copied().collect(),
        false => bytes.to_vec(),
    }
}

#[test]
fn floating_point_numbers() {
    let pairs = [(3, 4), (-5, 2), (0, 7), (-1, -1), (12, -30), (2, 0)];
    for element in Element::ALL.into_iter().filter(|element| element.family() == Family::FloatingPoint) {
        let column = |side: fn(&(i32, i32)) -> i32| {
            pairs.iter().flat_map(|pair| real(element, side(pair))).collect::<Vec<u8>>()
        };
        let (input, inout) = (column(|pair| pair.0), column(|pair| pair.1));
        for (operator, by_hand) in [
            (Operator::Max, (|(a, b)| *a.max(b)) as fn(&(i32, i32)) -> i32),
            (Operator::Min, |(a, b)| *a.min(b)),
            (Operator::Sum, |(a, b)| a + b),
            (Operator::Product, |(a, b)| a * b),
        ] {
            let result = run(operator, Operand::One(element), &input, &inout, pairs.len());
            let mut expected = column(by_hand);
            // 0 times a negative number is the negative zero.
            if operator == Operator::Product {
                let size = element.size() as usize;
                expected[2 * size..3 * size].copy_from_slice(&real(element, 0));
            }
            assert_eq!(
                significant(element, &result),
                significant(element, &expected),
                "{operator:?} on {element:?}"
            );
        }
    }
}

#[test]
fn a_not_a_number_gives_way_to_a_number() {
    let not_a_number = |element: Element| match element {
        Element::Float16 => 0x7e00_u16.to_ne_bytes().to_vec(),
        Element::Float32 => f32::NAN.to_ne_bytes().to_vec(),
        Element::Float64 => f64::NAN.to_ne_bytes().to_vec(),
        Element::LongDouble if cfg!(target_arch = "x86_64") => {
            (0x7fff_u128 << 64 | 3 << 62).to_ne_bytes().to_vec()
        }
        _ => (0x7fff_8000_u128 << 96).to_ne_bytes().to_vec(),
    };
    for element in Element::ALL.into_iter().filter(|element| element.family() == Family::FloatingPoint) {
        for operator in [Operator::Max, Operator::Min] {
            let (number, nothing) = (real(element, 5), not_a_number(element));
            let input = [number.clone(), nothing.clone()].concat();
            let inout = [nothing, number.clone()].concat();
            let result = run(operator, Operand::One(element), &input, &inout, 2);
            assert_eq!(
                significant(element, &result),
                significant(element, &[number.clone(), number].concat()),
                "{element:?}"
            );
        }
    }
}

#[test]
fn complex_numbers() {
    let numbers = [((1, 2), (3, -4)), ((0, 1), (0, 1)), ((-7, 3), (2, 5))];
    for element in Element::ALL.into_iter().filter(|element| element.family() == Family::Complex) {
        let bytes = |number: (i32, i32)| [real(element, number.0), real(element, number.1)].concat();
        let input: Vec<u8> = numbers.iter().flat_map(|pair| bytes(pair.0)).collect();
        let inout: Vec<u8> = numbers.iter().flat_map(|pair| bytes(pair.1)).collect();
        let sums: Vec<u8> = numbers.iter().flat_map(|((a, b), (c, d))| bytes((a + c, b + d))).collect();
        let products: Vec<u8> =
            numbers.iter().flat_map(|((a, b), (c, d))| bytes((a * c - b * d, a * d + b * c))).collect();
        for (operator, expected) in [(Operator::Sum, sums), (Operator::Product, products)] {
            let result = run(operator, Operand::One(element), &input, &inout, numbers.len());
            assert_eq!(
                significant(element, &result),
                significant(element, &expected),
                "{operator:?} on {element:?}"
            );
        }
    }
}

#[test]
fn pairs_of_value_and_index() {
    let ordered = |element: &Element| matches!(element.family(), Family::Integer | Family::FloatingPoint);
    let cases = [((1, 5), (2, 3)), ((2, 5), (1, 3)), ((4, 5), (4, 3)), ((4, 3), (4, 5)), ((7, 1), (7, 1))];
    for value in Element::ALL.into_iter().filter(ordered) {
        for index in Element::ALL.into_iter().filter(ordered) {
            let operand = Operand::Pair { value, index };
            let offset = Operand::index_offset(value, index) as usize;
            let unit = |pair: (i32, i32)| {
                let mut bytes = real(value, pair.0);
                bytes.resize(offset, 0);
                bytes.extend(real(index, pair.1));
                bytes.resize(operand.extent() as usize, 0);
                bytes
            };
            let input: Vec<u8> = cases.iter().flat_map(|case| unit(case.0)).collect();
            let inout: Vec<u8> = cases.iter().flat_map(|case| unit(case.1)).collect();
            for (operator, minimum) in [(Operator::MinLocation, true), (Operator::MaxLocation, false)] {
                let result = run(operator, operand, &input, &inout, cases.len());
                for (place, &(a, b)) in cases.iter().enumerate() {
                    let expected = match a.0.cmp(&b.0) {
                        std::cmp::Ordering::Equal => (a.0, a.1.min(b.1)),
                        order => {
                            if (order == std::cmp::Ordering::Less) == minimum {
                                a
                            } else {
                                b
                            }
                        }
                    };
                    let got = &result[place * operand.extent() as usize..][..offset + index.size() as usize];
                    let wanted = &unit(expected)[..offset + index.size() as usize];
                    let value_size = value.size() as usize;
                    assert_eq!(
                        significant(value, &got[..value_size]),
                        significant(value, &wanted[..value_size]),
                        "{operand:?}"
                    );
                    assert_eq!(
                        significant(index, &got[offset..]),
                        significant(index, &wanted[offset..]),
                        "{operand:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_word_is_combined_as_memory_is() {
    let mut combined = 0;
    for element in Element::ALL.into_iter().filter(|element| element.size() == 8) {
        for operator in OPERATORS.into_iter().filter(|operator| operator.accepts(Operand::One(element))) {
            for seed in 0..50 {
                let (input, inout) = (noise(8, 2 * seed), noise(8, 2 * seed + 1));
                let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap());
                let operand = Operand::One(element);
                let Some(result) = combine_word(operator, operand, word(&input), word(&inout)) else {
                    continue;
                };
                assert_eq!(
                    result,
                    word(&run(operator, operand, &input, &inout, 1)),
                    "{operator:?} {element:?}"
                );
                combined += 1;
            }
        }
    }
    assert!(combined > 0);
}

#[test]
fn what_is_not_defined_changes_nothing() {
    let scratch = Scratch::new(64);
    scratch.address().write(&[7; 64]);
    for (operator, element) in [
        (Operator::BitwiseAnd, Element::Float64),
        (Operator::Max, Element::Complex32),
        (Operator::Sum, Element::Character),
        (Operator::Sum, Element::Byte),
        (Operator::Sum, Element::Bool),
        (Operator::LogicalOr, Element::Float32),
        (Operator::MinLocation, Element::Int32),
    ] {
        assert!(!reduce(operator, Operand::One(element), scratch.address(), scratch.address().offset(32), 1));
    }
    let pair = Operand::Pair { value: Element::Float64, index: Element::Int32 };
    assert!(!reduce(Operator::Sum, pair, scratch.address(), scratch.address().offset(32), 1));
    let mut bytes = [0; 64];
    scratch.address().read(&mut bytes);
    assert_eq!(bytes, [7; 64]);
}
