//! Type signatures: the sequence of elements of a layout, compressed.

use crate::element::Element;
use std::sync::Arc;

/// The sequence of elements that a layout consists of, in packed order, without their places in memory
/// (MPI 5.0, section 5.1.1).
///
/// Equal sequences have equal [`fingerprints`](Signature::fingerprint), however they were composed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    shape: Shape,
    elements: u64,
    bytes: u64,
    external_bytes: u64,
    hash: u64,
    /// `BASE` to the power of `elements`: what appending this signature multiplies a hash by.
    weight: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Shape {
    Empty,
    Element(Element),
    Repeat(u64, Arc<Signature>),
    Sequence(Arc<[Signature]>),
}

/// A Mersenne prime: hashes are polynomials over the field of that order.
const MODULUS: u64 = (1 << 61) - 1;
const BASE: u64 = 0x0f1e_9b3c_55d2_a847 % MODULUS;
/// A sequence inside a sequence is spliced in up to this many items.
const SPLICE_LIMIT: usize = 4096;
const DEPTH_LIMIT: u32 = 128;

/// Of two numbers below the modulus. What stands above its 61 bits counts once more below, since 2^61 is 1 there.
fn multiply(left: u64, right: u64) -> u64 {
    let product = left as u128 * right as u128;
    let sum = (product as u64 & MODULUS) + (product >> 61) as u64;
    if sum >= MODULUS { sum - MODULUS } else { sum }
}

fn power(mut base: u64, mut exponent: u64) -> u64 {
    let mut result = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = multiply(result, base);
        }
        base = multiply(base, base);
        exponent >>= 1;
    }
    result
}

/// 1 + base + base^2 + ... over `count` terms.
fn geometric(base: u64, count: u64) -> u64 {
    // Doubling: s(2n) = s(n) * (1 + base^n), s(n + 1) = s(n) * base + 1.
    let mut sum = 0;
    let mut weight = 1;
    for bit in (0..64 - count.leading_zeros()).rev() {
        sum = (sum + multiply(sum, weight)) % MODULUS;
        weight = multiply(weight, weight);
        if count >> bit & 1 == 1 {
            sum = (multiply(sum, base) + 1) % MODULUS;
            weight = multiply(weight, base);
        }
    }
    sum
}

impl Signature {
    pub(crate) const EMPTY: Signature =
        Signature { shape: Shape::Empty, elements: 0, bytes: 0, external_bytes: 0, hash: 0, weight: 1 };

    pub(crate) fn element(element: Element) -> Signature {
        Signature {
            shape: Shape::Element(element),
            elements: 1,
            bytes: element.size() as u64,
            external_bytes: element.external_size() as u64,
            hash: multiply(element.canonical() as u64 + 1, 0x1357_9bdf_0246_8ace),
            weight: BASE,
        }
    }

    /// This signature `count` times. The caller has checked that the bytes fit.
    pub(crate) fn repeated(&self, count: u64) -> Signature {
        if count == 0 || self.elements == 0 {
            return Signature::EMPTY;
        }
        if count == 1 {
            return self.clone();
        }
        let shape = match &self.shape {
            Shape::Repeat(inner, unit) => Shape::Repeat(inner * count, unit.clone()),
            _ => Shape::Repeat(count, Arc::new(self.clone())),
        };
        Signature {
            shape,
            elements: self.elements * count,
            bytes: self.bytes * count,
            external_bytes: self.external_bytes * count,
            hash: multiply(self.hash, geometric(self.weight, count)),
            weight: power(self.weight, count),
        }
    }

    pub(crate) fn sequence(signatures: impl IntoIterator<Item = Signature>) -> Signature {
        let mut items = Vec::new();
        for signature in signatures {
            append(&mut items, signature);
        }
        match items.len() {
            0 => return Signature::EMPTY,
            1 => return items.remove(0),
            _ => {}
        }
        let mut whole = Signature::EMPTY;
        for item in &items {
            whole.elements += item.elements;
            whole.bytes += item.bytes;
            whole.external_bytes += item.external_bytes;
            whole.hash = (multiply(whole.hash, item.weight) + item.hash) % MODULUS;
            whole.weight = multiply(whole.weight, item.weight);
        }
        whole.shape = Shape::Sequence(items.into());
        whole
    }

    fn depth(&self) -> u32 {
        match &self.shape {
            Shape::Empty | Shape::Element(_) => 0,
            Shape::Repeat(_, unit) => 1 + unit.depth(),
            Shape::Sequence(items) => 1 + items.iter().map(Signature::depth).max().unwrap_or(0),
        }
    }

    /// The number of elements.
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// Bytes of the elements in native form: the length of the packed stream.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of the elements in `external32` form.
    pub fn external_bytes(&self) -> u64 {
        self.external_bytes
    }

    /// A hash of the sequence, the same for every way to compose it. Two signatures that differ collide with
    /// a probability of about 2^-61.
    pub fn fingerprint(&self) -> u64 {
        self.hash
    }

    /// The element that the signature consists of entirely, if it is only one kind.
    pub fn uniform(&self) -> Option<Element> {
        match &self.shape {
            Shape::Element(element) => Some(*element),
            Shape::Repeat(_, unit) => unit.uniform(),
            Shape::Empty | Shape::Sequence(_) => None,
        }
    }

    /// How many elements lie completely in the first `bytes` of this signature repeated without end, and how many
    /// bytes of a further, incomplete element follow them.
    pub fn elements_in(&self, bytes: u64) -> (u64, u64) {
        if self.bytes == 0 {
            return (0, bytes);
        }
        let rounds = bytes / self.bytes;
        let (elements, rest) = self.prefix(bytes % self.bytes);
        (rounds * self.elements + elements, rest)
    }

    /// As [`Signature::elements_in`], for bytes in `external32` form.
    pub fn external_elements_in(&self, bytes: u64) -> (u64, u64) {
        if self.external_bytes == 0 {
            return (0, bytes);
        }
        let rounds = bytes / self.external_bytes;
        let (mut elements, mut left) = (rounds * self.elements, bytes % self.external_bytes);
        match &self.shape {
            Shape::Empty | Shape::Element(_) => {}
            Shape::Repeat(_, unit) => {
                let (inside, rest) = unit.external_elements_in(left);
                (elements, left) = (elements + inside, rest);
            }
            Shape::Sequence(items) => {
                for item in items.iter() {
                    if left < item.external_bytes {
                        let (inside, rest) = item.external_elements_in(left);
                        return (elements + inside, rest);
                    }
                    elements += item.elements;
                    left -= item.external_bytes;
                }
            }
        }
        (elements, left)
    }

    /// As [`Signature::elements_in`], for `bytes` less than the whole.
    fn prefix(&self, bytes: u64) -> (u64, u64) {
        match &self.shape {
            Shape::Empty | Shape::Element(_) => (0, bytes),
            Shape::Repeat(_, unit) => unit.elements_in(bytes),
            Shape::Sequence(items) => {
                let (mut elements, mut left) = (0, bytes);
                for item in items.iter() {
                    if left < item.bytes {
                        let (inside, rest) = item.prefix(left);
                        return (elements + inside, rest);
                    }
                    elements += item.elements;
                    left -= item.bytes;
                }
                (elements, left)
            }
        }
    }

    /// The native bytes of the first `elements` elements of this signature repeated without end; none if that is beyond 2^63 - 1,
    /// or if there are no elements to count.
    pub fn bytes_of(&self, elements: u64) -> Option<u64> {
        if elements == 0 {
            return Some(0);
        }
        let rounds = elements.checked_div(self.elements)?;
        let bytes =
            rounds.checked_mul(self.bytes)?.checked_add(self.bytes_of_prefix(elements % self.elements))?;
        (bytes <= i64::MAX as u64).then_some(bytes)
    }

    /// As [`Signature::bytes_of`], for less elements than the whole has.
    fn bytes_of_prefix(&self, elements: u64) -> u64 {
        match &self.shape {
            Shape::Empty | Shape::Element(_) => 0,
            Shape::Repeat(_, unit) => {
                elements / unit.elements * unit.bytes + unit.bytes_of_prefix(elements % unit.elements)
            }
            Shape::Sequence(items) => {
                let (mut bytes, mut left) = (0, elements);
                for item in items.iter() {
                    if left < item.elements {
                        return bytes + item.bytes_of_prefix(left);
                    }
                    bytes += item.bytes;
                    left -= item.elements;
                }
                bytes
            }
        }
    }

    /// Visits the elements in order, as runs of one kind.
    pub(crate) fn visit(&self, visit: &mut dyn FnMut(Element, u64)) {
        match &self.shape {
            Shape::Empty => {}
            Shape::Element(element) => visit(*element, 1),
            Shape::Repeat(count, unit) => match unit.shape {
                Shape::Element(element) => visit(element, *count),
                _ => (0..*count).for_each(|_| unit.visit(visit)),
            },
            Shape::Sequence(items) => items.iter().for_each(|item| item.visit(visit)),
        }
    }
}

/// Appends to a list of items in which no two neighbours repeat the same unit.
fn append(items: &mut Vec<Signature>, signature: Signature) {
    match &signature.shape {
        Shape::Empty => return,
        Shape::Sequence(inner) if inner.len() <= SPLICE_LIMIT || signature.depth() > DEPTH_LIMIT => {
            for item in inner.iter() {
                append(items, item.clone());
            }
            return;
        }
        _ => {}
    }
    if let Some(last) = items.last_mut() {
        let (last_count, last_unit) = unit(last);
        let (count, unit) = unit(&signature);
        if last_unit == unit {
            *last = unit.repeated(last_count + count);
            return;
        }
    }
    items.push(signature);
}

fn unit(signature: &Signature) -> (u64, &Signature) {
    match &signature.shape {
        Shape::Repeat(count, unit) => (*count, unit),
        _ => (1, signature),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_field() {
        let numbers = [0, 1, 2, BASE, 0x1357_9bdf_0246_8ace, 1 << 60, MODULUS / 2, MODULUS - 2, MODULUS - 1];
        for (left, right) in numbers.iter().flat_map(|left| numbers.map(|right| (*left, right))) {
            let product = left as u128 * right as u128 % MODULUS as u128;
            assert_eq!(multiply(left, right) as u128, product, "{left} {right}");
        }
    }

    #[test]
    fn fingerprint_does_not_depend_on_composition() {
        let (int, float) = (Signature::element(Element::Int32), Signature::element(Element::Float32));
        let pair = Signature::sequence([int.clone(), float.clone()]);
        let flat = Signature::sequence([
            int.clone(),
            float.clone(),
            int.clone(),
            float.clone(),
            int.clone(),
            float.clone(),
        ]);
        assert_eq!(pair.repeated(3).fingerprint(), flat.fingerprint());
        assert_ne!(pair.fingerprint(), Signature::sequence([float, int.clone()]).fingerprint());
        assert_eq!(int.repeated(1000).fingerprint(), int.repeated(10).repeated(100).fingerprint());
        assert_ne!(int.repeated(1000).fingerprint(), int.repeated(1001).fingerprint());
    }

    #[test]
    fn neighbours_merge() {
        let int = Signature::element(Element::Int32);
        assert_eq!(Signature::sequence([int.clone(), int.repeated(4)]), int.repeated(5));
    }

    #[test]
    fn elements_of_a_prefix() {
        let (int, double) = (Signature::element(Element::Int32), Signature::element(Element::Float64));
        let pair = Signature::sequence([int, double]);
        assert_eq!(pair.elements_in(0), (0, 0));
        assert_eq!(pair.elements_in(3), (0, 3));
        assert_eq!(pair.elements_in(4), (1, 0));
        assert_eq!(pair.elements_in(12), (2, 0));
        assert_eq!(pair.elements_in(12 * 7 + 5), (15, 1));
        let long = Signature::sequence([Signature::element(Element::Long), pair.clone()]);
        assert_eq!((long.bytes(), long.external_bytes()), (20, 16));
        assert_eq!(long.repeated(3).external_elements_in(0), (0, 0));
        assert_eq!(long.repeated(3).external_elements_in(4), (1, 0));
        assert_eq!(long.repeated(3).external_elements_in(17), (3, 1));
        assert_eq!(long.repeated(3).external_elements_in(16 + 8 + 3), (5, 3));
        for elements in 0..20 {
            assert_eq!(pair.elements_in(pair.bytes_of(elements).unwrap()), (elements, 0));
        }
        assert_eq!(Signature::EMPTY.bytes_of(1), None);
        assert_eq!(pair.bytes_of(u64::MAX), None);
    }
}
