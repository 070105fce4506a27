//! The predefined datatypes: their handle values in the standard's ABI, names and elements.

use super::Datatype;
use parnass_datatype::{Element, Operand};
use std::sync::Arc;

/// Handle values of predefined datatypes (MPI 5.0, section 20.3) that the layers below the C interface need.
pub mod handle {
    pub const NULL: usize = 0x200;
    pub const PACKED: usize = 0x207;
    pub const INT: usize = 0x209;
    pub const BYTE: usize = 0x247;
    pub const INT32: usize = 0x250;
    pub const INT64: usize = 0x258;
    pub const UINT64: usize = 0x259;
}

/// All predefined datatypes lie from here ...
const FIRST: usize = 0x200;
/// ... to before here.
const END: usize = 0x300;

const fn one(element: Element) -> Operand {
    Operand::One(element)
}

const fn pair(value: Element, index: Element) -> Operand {
    Operand::Pair { value, index }
}

/// Handle value, name, operand.
pub(super) const TABLE: &[(usize, &str, Operand)] = {
    use Element::*;
    &[
        (0x201, "MPI_AINT", one(Int64)),
        (0x202, "MPI_COUNT", one(Int64)),
        (0x203, "MPI_OFFSET", one(Int64)),
        (0x207, "MPI_PACKED", one(Packed)),
        (0x208, "MPI_SHORT", one(Int16)),
        (0x209, "MPI_INT", one(Int32)),
        (0x20a, "MPI_LONG", one(Long)),
        (0x20b, "MPI_LONG_LONG_INT", one(Int64)),
        (0x20c, "MPI_UNSIGNED_SHORT", one(Uint16)),
        (0x20d, "MPI_UNSIGNED", one(Uint32)),
        (0x20e, "MPI_UNSIGNED_LONG", one(UnsignedLong)),
        (0x20f, "MPI_UNSIGNED_LONG_LONG", one(Uint64)),
        (0x210, "MPI_FLOAT", one(Float32)),
        (0x212, "MPI_C_COMPLEX", one(Complex32)),
        (0x213, "MPI_CXX_FLOAT_COMPLEX", one(Complex32)),
        (0x214, "MPI_DOUBLE", one(Float64)),
        (0x216, "MPI_C_DOUBLE_COMPLEX", one(Complex64)),
        (0x217, "MPI_CXX_DOUBLE_COMPLEX", one(Complex64)),
        (0x218, "MPI_LOGICAL", one(Logical32)),
        (0x219, "MPI_INTEGER", one(Int32)),
        (0x21a, "MPI_REAL", one(Float32)),
        (0x21b, "MPI_COMPLEX", one(Complex32)),
        (0x21c, "MPI_DOUBLE_PRECISION", one(Float64)),
        (0x21d, "MPI_DOUBLE_COMPLEX", one(Complex64)),
        (0x21e, "MPI_CHARACTER", one(Character)),
        (0x220, "MPI_LONG_DOUBLE", one(LongDouble)),
        (0x224, "MPI_C_LONG_DOUBLE_COMPLEX", one(ComplexLongDouble)),
        (0x225, "MPI_CXX_LONG_DOUBLE_COMPLEX", one(ComplexLongDouble)),
        (0x228, "MPI_FLOAT_INT", pair(Float32, Int32)),
        (0x229, "MPI_DOUBLE_INT", pair(Float64, Int32)),
        (0x22a, "MPI_LONG_INT", pair(Long, Int32)),
        (0x22b, "MPI_2INT", pair(Int32, Int32)),
        (0x22c, "MPI_SHORT_INT", pair(Int16, Int32)),
        (0x22d, "MPI_LONG_DOUBLE_INT", pair(LongDouble, Int32)),
        (0x230, "MPI_2REAL", pair(Float32, Float32)),
        (0x231, "MPI_2DOUBLE_PRECISION", pair(Float64, Float64)),
        (0x232, "MPI_2INTEGER", pair(Int32, Int32)),
        (0x238, "MPI_C_BOOL", one(Bool)),
        (0x239, "MPI_CXX_BOOL", one(Bool)),
        (0x23c, "MPI_WCHAR", one(WideCharacter)),
        (0x240, "MPI_INT8_T", one(Int8)),
        (0x241, "MPI_UINT8_T", one(Uint8)),
        (0x243, "MPI_CHAR", one(Character)),
        (0x244, "MPI_SIGNED_CHAR", one(Int8)),
        (0x245, "MPI_UNSIGNED_CHAR", one(Uint8)),
        (0x247, "MPI_BYTE", one(Byte)),
        (0x248, "MPI_INT16_T", one(Int16)),
        (0x249, "MPI_UINT16_T", one(Uint16)),
        (0x250, "MPI_INT32_T", one(Int32)),
        (0x251, "MPI_UINT32_T", one(Uint32)),
        (0x258, "MPI_INT64_T", one(Int64)),
        (0x259, "MPI_UINT64_T", one(Uint64)),
        (0x2c0, "MPI_LOGICAL1", one(Logical8)),
        (0x2c1, "MPI_INTEGER1", one(Int8)),
        (0x2c8, "MPI_LOGICAL2", one(Logical16)),
        (0x2c9, "MPI_INTEGER2", one(Int16)),
        (0x2ca, "MPI_REAL2", one(Float16)),
        (0x2d0, "MPI_LOGICAL4", one(Logical32)),
        (0x2d1, "MPI_INTEGER4", one(Int32)),
        (0x2d2, "MPI_REAL4", one(Float32)),
        (0x2d3, "MPI_COMPLEX4", one(Complex16)),
        (0x2d8, "MPI_LOGICAL8", one(Logical64)),
        (0x2d9, "MPI_INTEGER8", one(Int64)),
        (0x2da, "MPI_REAL8", one(Float64)),
        (0x2db, "MPI_COMPLEX8", one(Complex32)),
        (0x2e0, "MPI_LOGICAL16", one(Logical128)),
        (0x2e1, "MPI_INTEGER16", one(Int128)),
        (0x2e2, "MPI_REAL16", one(Float128)),
        (0x2e3, "MPI_COMPLEX16", one(Complex64)),
        (0x2eb, "MPI_COMPLEX32", one(Complex128)),
    ]
};

/// The predefined datatypes of a process: one object each, since names and attributes can be set on them.
#[derive(Debug)]
pub struct PredefinedDatatypes {
    /// By handle value minus [`FIRST`].
    table: Box<[Option<Arc<Datatype>>]>,
}

impl Default for PredefinedDatatypes {
    fn default() -> Self {
        let mut table = vec![None; END - FIRST];
        for &(value, name, operand) in TABLE {
            table[value - FIRST] = Some(Arc::new(Datatype::named(value, name, operand)));
        }
        PredefinedDatatypes { table: table.into() }
    }
}

impl PredefinedDatatypes {
    /// The datatype with this handle value, if it is one of a predefined datatype (MPI_DATATYPE_NULL is not).
    #[inline]
    pub fn get(&self, handle: usize) -> Option<&Arc<Datatype>> {
        self.table.get(handle.wrapping_sub(FIRST))?.as_ref()
    }

    /// MPI_BYTE.
    pub fn byte(&self) -> &Arc<Datatype> {
        self.known(handle::BYTE)
    }

    /// MPI_INT.
    pub fn int(&self) -> &Arc<Datatype> {
        self.known(handle::INT)
    }

    /// MPI_INT32_T.
    pub fn int32(&self) -> &Arc<Datatype> {
        self.known(handle::INT32)
    }

    /// MPI_INT64_T.
    pub fn int64(&self) -> &Arc<Datatype> {
        self.known(handle::INT64)
    }

    /// MPI_UINT64_T.
    pub fn uint64(&self) -> &Arc<Datatype> {
        self.known(handle::UINT64)
    }

    /// MPI_PACKED.
    pub fn packed(&self) -> &Arc<Datatype> {
        self.known(handle::PACKED)
    }

    fn known(&self, handle: usize) -> &Arc<Datatype> {
        self.get(handle).expect("the table has every handle of this module")
    }

    /// All places from MPI_DATATYPE_NULL on, by handle value; empty where no datatype has that value.
    pub fn table(&self) -> &[Option<Arc<Datatype>>] {
        &self.table
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Datatype>> {
        self.table.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_agree_with_the_handle_values_that_carry_one() {
        let predefined = PredefinedDatatypes::default();
        assert_eq!(predefined.iter().count(), TABLE.len());
        for &(value, name, _) in TABLE {
            if (0x240..0x280).contains(&value) || (0x2c0..0x300).contains(&value) {
                let size = predefined.get(value).unwrap().layout().size();
                assert_eq!(size, 1 << (value >> 3 & 7), "{name}");
            }
        }
        assert!(predefined.get(handle::NULL).is_none());
        assert!(predefined.get(0).is_none());
        assert!(predefined.get(usize::MAX).is_none());
    }

    #[test]
    fn pairs_are_c_structures() {
        let predefined = PredefinedDatatypes::default();
        let shape = |value: usize| {
            let layout = predefined.get(value).unwrap().layout();
            (layout.size(), layout.extent())
        };
        assert_eq!(shape(0x228), (8, 8), "float, int");
        assert_eq!(shape(0x229), (12, 16), "double, int");
        assert_eq!(shape(0x22a), (12, 16), "long, int");
        assert_eq!(shape(0x22c), (6, 8), "short, int");
        assert_eq!(shape(0x22d), (20, 32), "long double, int");
        assert_eq!(shape(0x231), (16, 16), "two doubles");
    }
}
