//! What reduction operators there are, and on what they are defined.

use crate::element::{Element, Family};

/// A predefined reduction operator (MPI 5.0, section 6.9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    Max,
    Min,
    Sum,
    Product,
    LogicalAnd,
    BitwiseAnd,
    LogicalOr,
    BitwiseOr,
    LogicalXor,
    BitwiseXor,
    /// The lesser value with its index; of equal values the lesser index.
    MinLocation,
    /// The greater value with its index; of equal values the lesser index.
    MaxLocation,
    /// The input replaces what was there.
    Replace,
    /// What was there stays.
    Nothing,
}

/// What one unit of a reduction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// One element.
    One(Element),
    /// A C structure of a value and an index.
    Pair { value: Element, index: Element },
}

impl Operand {
    /// Where the index of a pair lies, in bytes.
    pub const fn index_offset(value: Element, index: Element) -> u32 {
        value.size().next_multiple_of(index.alignment())
    }

    /// Distance of successive units, in bytes: the extent of the type.
    pub const fn extent(self) -> u32 {
        match self {
            Operand::One(element) => element.size(),
            Operand::Pair { value, index } => {
                let alignment =
                    if value.alignment() > index.alignment() { value.alignment() } else { index.alignment() };
                (Operand::index_offset(value, index) + index.size()).next_multiple_of(alignment)
            }
        }
    }
}

impl Operator {
    /// In the order of their discriminants.
    const ALL: [Operator; 14] = {
        use Operator::*;
        [
            Max,
            Min,
            Sum,
            Product,
            LogicalAnd,
            BitwiseAnd,
            LogicalOr,
            BitwiseOr,
            LogicalXor,
            BitwiseXor,
            MinLocation,
            MaxLocation,
            Replace,
            Nothing,
        ]
    };

    /// The operator with this number, which is its discriminant.
    pub fn from_number(number: u32) -> Option<Operator> {
        Operator::ALL.get(number as usize).copied()
    }

    /// For each operator a bit for each element that it is defined on.
    const ACCEPTED: [u32; Operator::ALL.len()] = {
        let mut accepted = [0; Operator::ALL.len()];
        let mut which = 0;
        while which < accepted.len() {
            let mut element = 0;
            while element < Element::ALL.len() {
                let takes = Operator::ALL[which].takes(Element::ALL[element].family());
                accepted[which] |= (takes as u32) << Element::ALL[element] as u32;
                element += 1;
            }
            which += 1;
        }
        accepted
    };

    /// Whether the operator is defined on single elements of a family.
    const fn takes(self, family: Family) -> bool {
        use Operator::*;
        match self {
            Max | Min => matches!(family, Family::Integer | Family::FloatingPoint),
            Sum | Product => matches!(family, Family::Integer | Family::FloatingPoint | Family::Complex),
            LogicalAnd | LogicalOr | LogicalXor => matches!(family, Family::Integer | Family::Logical),
            BitwiseAnd | BitwiseOr | BitwiseXor => matches!(family, Family::Integer | Family::Byte),
            MinLocation | MaxLocation => false,
            Replace | Nothing => true,
        }
    }

    /// Whether the operator is defined on such operands.
    #[inline]
    pub fn accepts(self, operand: Operand) -> bool {
        use Operator::*;
        match operand {
            Operand::One(element) => Operator::ACCEPTED[self as usize] & 1 << element as u32 != 0,
            Operand::Pair { value, index } => match self {
                MinLocation | MaxLocation => {
                    let ordered = |element: Element| {
                        matches!(element.family(), Family::Integer | Family::FloatingPoint)
                    };
                    ordered(value) && ordered(index)
                }
                Replace | Nothing => true,
                _ => false,
            },
        }
    }
}
