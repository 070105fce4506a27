//! Reductions: `inout[i] = input[i] op inout[i]`.

use crate::element::Element;
use crate::half;
use crate::operator::{Operand, Operator};
use parnass_base::UserAddress;

/// Combines `count` units of `input` into `inout`. Returns false, and does nothing, if the operator is not defined on the
/// operand. The buffers hold units one extent apart; they may be unaligned, and may be the same.
#[must_use]
pub fn reduce(
    operator: Operator,
    operand: Operand,
    input: UserAddress,
    inout: UserAddress,
    count: u64,
) -> bool {
    if !operator.accepts(operand) {
        return false;
    }
    let (input, inout, count) = (input.as_ptr() as *const u8, inout.as_ptr(), count as usize);
    if count == 0 {
        return true;
    }
    // SAFETY: both addresses were promised valid for the operation when they were made.
    unsafe {
        match (operator, operand) {
            (Operator::Nothing, _) => {}
            (Operator::Replace, _) => std::ptr::copy(input, inout, operand.extent() as usize * count),
            (_, Operand::One(element)) if count == 1 => one(operator, element, input, inout, 1),
            (_, Operand::One(element)) => widest(operator, element, input, inout, count),
            (_, Operand::Pair { value, index }) => {
                pair(operator == Operator::MinLocation, value, index, input, inout, count);
            }
        }
    }
    true
}

/// As [`reduce`] for one element of eight bytes on which the operator is defined, where that is a matter of one instruction.
#[inline(always)]
pub fn combine_word(operator: Operator, operand: Operand, input: u64, inout: u64) -> Option<u64> {
    use Element::{Float64, Int64, Long, Uint64, UnsignedLong};
    match (operator, operand) {
        (Operator::Sum, Operand::One(Int64 | Uint64 | Long | UnsignedLong)) => {
            Some(input.wrapping_add(inout))
        }
        (Operator::Sum, Operand::One(Float64)) => {
            Some((f64::from_bits(input) + f64::from_bits(inout)).to_bits())
        }
        (Operator::Replace, _) => Some(input),
        _ => None,
    }
}

/// Every loop: the buffers may be unaligned, which costs nothing where it is not so.
#[inline(always)]
unsafe fn apply<T: Copy>(input: *const u8, inout: *mut u8, count: usize, combine: impl Fn(T, T) -> T) {
    let (input, inout) = (input.cast::<T>(), inout.cast::<T>());
    for index in 0..count {
        // SAFETY: the caller promises `count` values in both buffers.
        unsafe {
            let result = combine(input.add(index).read_unaligned(), inout.add(index).read_unaligned());
            inout.add(index).write_unaligned(result);
        }
    }
}

macro_rules! integer {
    ($type:ty, $operator:expr, $input:expr, $inout:expr, $count:expr) => {
        match $operator {
            Operator::Max => apply::<$type>($input, $inout, $count, |a, b| a.max(b)),
            Operator::Min => apply::<$type>($input, $inout, $count, |a, b| a.min(b)),
            Operator::Sum => apply::<$type>($input, $inout, $count, |a, b| a.wrapping_add(b)),
            Operator::Product => apply::<$type>($input, $inout, $count, |a, b| a.wrapping_mul(b)),
            Operator::BitwiseAnd => apply::<$type>($input, $inout, $count, |a, b| a & b),
            Operator::BitwiseOr => apply::<$type>($input, $inout, $count, |a, b| a | b),
            Operator::BitwiseXor => apply::<$type>($input, $inout, $count, |a, b| a ^ b),
            Operator::LogicalAnd => {
                apply::<$type>($input, $inout, $count, |a, b| (a != 0 && b != 0) as $type)
            }
            Operator::LogicalOr => apply::<$type>($input, $inout, $count, |a, b| (a != 0 || b != 0) as $type),
            Operator::LogicalXor => {
                apply::<$type>($input, $inout, $count, |a, b| ((a != 0) != (b != 0)) as $type)
            }
            _ => unreachable!("not accepted"),
        }
    };
}

/// The greater and the lesser number are those of IEEE's maxNum and minNum: a not-a-number gives way to a number.
macro_rules! float {
    ($type:ty, $operator:expr, $input:expr, $inout:expr, $count:expr) => {
        match $operator {
            Operator::Max => apply::<$type>($input, $inout, $count, |a, b| a.max(b)),
            Operator::Min => apply::<$type>($input, $inout, $count, |a, b| a.min(b)),
            Operator::Sum => apply::<$type>($input, $inout, $count, |a, b| a + b),
            Operator::Product => apply::<$type>($input, $inout, $count, |a, b| a * b),
            _ => unreachable!("not accepted"),
        }
    };
}

macro_rules! complex {
    ($type:ty, $operator:expr, $input:expr, $inout:expr, $count:expr) => {
        match $operator {
            Operator::Sum => apply::<$type>($input, $inout, 2 * $count, |a, b| a + b),
            Operator::Product => {
                apply::<[$type; 2]>($input, $inout, $count, |[a, b], [c, d]| [a * c - b * d, a * d + b * c])
            }
            _ => unreachable!("not accepted"),
        }
    };
}

/// Runs [`one`] as compiled for what this processor has.
///
/// Minima and maxima do without AVX2: with it the compiler stores only what changes, by masked stores, which makes them five
/// times slower on AMD processors. SSE 4.2 gives them the comparison of 64-bit integers.
#[cfg(target_arch = "x86_64")]
unsafe fn widest(operator: Operator, element: Element, input: *const u8, inout: *mut u8, count: usize) {
    #[target_feature(enable = "avx2")]
    unsafe fn with_avx2(
        operator: Operator,
        element: Element,
        input: *const u8,
        inout: *mut u8,
        count: usize,
    ) {
        // SAFETY: the caller promises what `one` asks.
        unsafe { one(operator, element, input, inout, count) }
    }
    #[target_feature(enable = "sse4.2")]
    unsafe fn with_sse42(
        operator: Operator,
        element: Element,
        input: *const u8,
        inout: *mut u8,
        count: usize,
    ) {
        // SAFETY: the caller promises what `one` asks.
        unsafe { one(operator, element, input, inout, count) }
    }
    let extremum = matches!(operator, Operator::Max | Operator::Min);
    // SAFETY: the caller promises what `one` asks, and the processor was asked for the instructions.
    unsafe {
        if !extremum && std::arch::is_x86_feature_detected!("avx2") {
            with_avx2(operator, element, input, inout, count);
        } else if extremum && std::arch::is_x86_feature_detected!("sse4.2") {
            with_sse42(operator, element, input, inout, count);
        } else {
            one(operator, element, input, inout, count);
        }
    }
}

/// Runs [`one`].
#[cfg(not(target_arch = "x86_64"))]
unsafe fn widest(operator: Operator, element: Element, input: *const u8, inout: *mut u8, count: usize) {
    // SAFETY: the caller promises what `one` asks.
    unsafe { one(operator, element, input, inout, count) }
}

#[inline(always)]
unsafe fn one(operator: Operator, element: Element, input: *const u8, inout: *mut u8, count: usize) {
    use Element::*;
    // SAFETY: the caller promises `count` values of the element in both buffers.
    unsafe {
        match element {
            Int8 => integer!(i8, operator, input, inout, count),
            Int16 => integer!(i16, operator, input, inout, count),
            Int32 => integer!(i32, operator, input, inout, count),
            Int64 | Long => integer!(i64, operator, input, inout, count),
            Int128 => integer!(i128, operator, input, inout, count),
            Uint8 | Byte | Bool | Logical8 => integer!(u8, operator, input, inout, count),
            Uint16 | Logical16 => integer!(u16, operator, input, inout, count),
            Uint32 | Logical32 => integer!(u32, operator, input, inout, count),
            Uint64 | UnsignedLong | Logical64 => integer!(u64, operator, input, inout, count),
            Logical128 => integer!(u128, operator, input, inout, count),
            Float16 => half_float(operator, input, inout, count),
            Float32 => float!(f32, operator, input, inout, count),
            Float64 => float!(f64, operator, input, inout, count),
            LongDouble => parnass_reduce_long_double(wide_code(operator), input, inout, count),
            Float128 => parnass_reduce_quad(wide_code(operator), input, inout, count),
            Complex16 => half_complex(operator, input, inout, count),
            Complex32 => complex!(f32, operator, input, inout, count),
            Complex64 => complex!(f64, operator, input, inout, count),
            ComplexLongDouble => parnass_reduce_complex_long_double(wide_code(operator), input, inout, count),
            Complex128 => parnass_reduce_complex_quad(wide_code(operator), input, inout, count),
            Packed | Character | WideCharacter => unreachable!("not accepted"),
        }
    }
}

unsafe fn half_float(operator: Operator, input: *const u8, inout: *mut u8, count: usize) {
    let with = |combine: fn(f32, f32) -> f32| {
        // SAFETY: the caller promises `count` values in both buffers.
        unsafe {
            apply::<u16>(input, inout, count, |a, b| {
                half::from_single(combine(half::to_single(a), half::to_single(b)))
            });
        }
    };
    match operator {
        Operator::Max => with(f32::max),
        Operator::Min => with(f32::min),
        Operator::Sum => with(|a, b| a + b),
        Operator::Product => with(|a, b| a * b),
        _ => unreachable!("not accepted"),
    }
}

unsafe fn half_complex(operator: Operator, input: *const u8, inout: *mut u8, count: usize) {
    let single = |pair: [u16; 2]| pair.map(half::to_single);
    let half = |pair: [f32; 2]| pair.map(half::from_single);
    // SAFETY: the caller promises `count` values in both buffers.
    unsafe {
        apply::<[u16; 2]>(input, inout, count, |left, right| {
            let ([a, b], [c, d]) = (single(left), single(right));
            match operator {
                Operator::Sum => half([a + c, b + d]),
                _ => half([a * c - b * d, a * d + b * c]),
            }
        });
    }
}

// The kernels of kernels/wide.c. The types of the buffers are those of the names; these platforms load and store them
// at any address.
unsafe extern "C" {
    fn parnass_reduce_long_double(operator: i32, input: *const u8, inout: *mut u8, count: usize);
    fn parnass_reduce_quad(operator: i32, input: *const u8, inout: *mut u8, count: usize);
    fn parnass_reduce_complex_long_double(operator: i32, input: *const u8, inout: *mut u8, count: usize);
    fn parnass_reduce_complex_quad(operator: i32, input: *const u8, inout: *mut u8, count: usize);
    fn parnass_compare_long_double(left: *const u8, right: *const u8) -> i32;
    fn parnass_compare_quad(left: *const u8, right: *const u8) -> i32;
}

/// The operator codes of kernels/wide.c.
fn wide_code(operator: Operator) -> i32 {
    match operator {
        Operator::Max => 0,
        Operator::Min => 1,
        Operator::Sum => 2,
        Operator::Product => 3,
        _ => unreachable!("not accepted"),
    }
}

/// MINLOC and MAXLOC.
unsafe fn pair(
    minimum: bool,
    value: Element,
    index: Element,
    input: *const u8,
    inout: *mut u8,
    count: usize,
) {
    // SAFETY: the caller promises `count` pairs in both buffers.
    unsafe {
        match (value, index) {
            (Element::Float32, Element::Int32) => typed_pair::<f32, i32>(minimum, input, inout, count),
            (Element::Float64, Element::Int32) => typed_pair::<f64, i32>(minimum, input, inout, count),
            (Element::Long | Element::Int64, Element::Int32) => {
                typed_pair::<i64, i32>(minimum, input, inout, count)
            }
            (Element::Int32, Element::Int32) => typed_pair::<i32, i32>(minimum, input, inout, count),
            (Element::Int16, Element::Int32) => typed_pair::<i16, i32>(minimum, input, inout, count),
            (Element::Float32, Element::Float32) => typed_pair::<f32, f32>(minimum, input, inout, count),
            (Element::Float64, Element::Float64) => typed_pair::<f64, f64>(minimum, input, inout, count),
            (Element::Float64, Element::Int64) => typed_pair::<f64, i64>(minimum, input, inout, count),
            (Element::Int64, Element::Int64) => typed_pair::<i64, i64>(minimum, input, inout, count),
            _ => any_pair(minimum, value, index, input, inout, count),
        }
    }
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Pair<V, I> {
    value: V,
    index: I,
}

unsafe fn typed_pair<V: Copy + PartialOrd, I: Copy + PartialOrd>(
    minimum: bool,
    input: *const u8,
    inout: *mut u8,
    count: usize,
) {
    let least_index = |a: I, b: I| if a < b { a } else { b };
    // SAFETY: the caller promises `count` pairs in both buffers.
    unsafe {
        apply::<Pair<V, I>>(input, inout, count, |a, b| {
            let better = if minimum { a.value < b.value } else { a.value > b.value };
            if better {
                a
            } else if a.value == b.value {
                Pair { value: b.value, index: least_index(a.index, b.index) }
            } else {
                b
            }
        });
    }
}

/// As [`typed_pair`], for any two elements with an order.
unsafe fn any_pair(
    minimum: bool,
    value: Element,
    index: Element,
    input: *const u8,
    inout: *mut u8,
    count: usize,
) {
    let extent = Operand::Pair { value, index }.extent() as usize;
    let offset = Operand::index_offset(value, index) as usize;
    let wanted = if minimum { -1 } else { 1 };
    for unit in 0..count {
        // SAFETY: the caller promises `count` pairs in both buffers.
        unsafe {
            let (input, inout) = (input.add(unit * extent), inout.add(unit * extent));
            let order = compare(value, input, inout);
            if order == wanted {
                std::ptr::copy(input, inout, extent);
            } else if order == 0 && compare(index, input.add(offset), inout.add(offset)) == -1 {
                std::ptr::copy(input.add(offset), inout.add(offset), index.size() as usize);
            }
        }
    }
}

/// -1, 0 or 1; 2 where there is no order.
unsafe fn compare(element: Element, left: *const u8, right: *const u8) -> i32 {
    unsafe fn typed<T: Copy + PartialOrd>(left: *const u8, right: *const u8) -> i32 {
        // SAFETY: the caller promises a value at both addresses.
        let order =
            unsafe { left.cast::<T>().read_unaligned().partial_cmp(&right.cast::<T>().read_unaligned()) };
        order.map_or(2, |order| order as i32)
    }
    use Element::*;
    // SAFETY: the caller promises a value of the element at both addresses.
    unsafe {
        match element {
            Int8 => typed::<i8>(left, right),
            Int16 => typed::<i16>(left, right),
            Int32 => typed::<i32>(left, right),
            Int64 | Long => typed::<i64>(left, right),
            Int128 => typed::<i128>(left, right),
            Uint8 => typed::<u8>(left, right),
            Uint16 => typed::<u16>(left, right),
            Uint32 => typed::<u32>(left, right),
            Uint64 | UnsignedLong => typed::<u64>(left, right),
            Float16 => {
                let (left, right) =
                    (left.cast::<u16>().read_unaligned(), right.cast::<u16>().read_unaligned());
                half::to_single(left).partial_cmp(&half::to_single(right)).map_or(2, |order| order as i32)
            }
            Float32 => typed::<f32>(left, right),
            Float64 => typed::<f64>(left, right),
            LongDouble => parnass_compare_long_double(left, right),
            Float128 => parnass_compare_quad(left, right),
            _ => unreachable!("not accepted"),
        }
    }
}
