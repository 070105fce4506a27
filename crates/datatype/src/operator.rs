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
    /// Whether the operator is defined on such operands.
    pub fn accepts(self, operand: Operand) -> bool {
        use Operator::*;
        match operand {
            Operand::One(element) => {
                let family = element.family();
                match self {
                    Max | Min => matches!(family, Family::Integer | Family::FloatingPoint),
                    Sum | Product => {
                        matches!(family, Family::Integer | Family::FloatingPoint | Family::Complex)
                    }
                    LogicalAnd | LogicalOr | LogicalXor => {
                        matches!(family, Family::Integer | Family::Logical)
                    }
                    BitwiseAnd | BitwiseOr | BitwiseXor => matches!(family, Family::Integer | Family::Byte),
                    MinLocation | MaxLocation => false,
                    Replace | Nothing => true,
                }
            }
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
