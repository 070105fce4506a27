//! The elements that data is made of: how one value lies in this machine's memory and in `external32`.

/// A basic element: one value of a language's own type, by its representation.
///
/// Types of several languages with the same representation share an element (`int32_t`, `int` and a Fortran
/// `INTEGER`); only `long` stands apart, because its `external32` form is narrower than its native one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Element {
    /// Uninterpreted bytes.
    Byte,
    /// Bytes of a packed message.
    Packed,
    /// A character of a string.
    Character,
    /// `wchar_t`: a Unicode code point.
    WideCharacter,
    Int8,
    Int16,
    Int32,
    Int64,
    Int128,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    /// C `long`.
    Long,
    /// C `unsigned long`.
    UnsignedLong,
    /// C `_Bool` and C++ `bool`.
    Bool,
    /// Fortran `LOGICAL` of one byte; the further ones are wider.
    Logical8,
    Logical16,
    Logical32,
    Logical64,
    Logical128,
    /// IEEE binary16.
    Float16,
    Float32,
    Float64,
    /// C `long double`, whatever the platform makes of it.
    LongDouble,
    /// IEEE binary128.
    Float128,
    /// A pair of [`Element::Float16`], real part first; the further ones alike.
    Complex16,
    Complex32,
    Complex64,
    ComplexLongDouble,
    Complex128,
}

/// The families that reduction operators tell apart (MPI 5.0, section 6.9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Integer,
    FloatingPoint,
    Complex,
    Logical,
    Byte,
    /// Characters of text: no operator is defined on them.
    Text,
}

/// Alignment of 16-byte integers and floats in a C structure.
const WIDE_ALIGNMENT: u32 = 16;

impl Element {
    /// All elements, in order of their discriminants.
    pub const ALL: [Element; 31] = [
        Element::Byte,
        Element::Packed,
        Element::Character,
        Element::WideCharacter,
        Element::Int8,
        Element::Int16,
        Element::Int32,
        Element::Int64,
        Element::Int128,
        Element::Uint8,
        Element::Uint16,
        Element::Uint32,
        Element::Uint64,
        Element::Long,
        Element::UnsignedLong,
        Element::Bool,
        Element::Logical8,
        Element::Logical16,
        Element::Logical32,
        Element::Logical64,
        Element::Logical128,
        Element::Float16,
        Element::Float32,
        Element::Float64,
        Element::LongDouble,
        Element::Float128,
        Element::Complex16,
        Element::Complex32,
        Element::Complex64,
        Element::ComplexLongDouble,
        Element::Complex128,
    ];

    /// Bytes of one value in memory.
    pub const fn size(self) -> u32 {
        use Element::*;
        match self {
            Byte | Packed | Character | Int8 | Uint8 | Bool | Logical8 => 1,
            Int16 | Uint16 | Logical16 | Float16 => 2,
            WideCharacter | Int32 | Uint32 | Logical32 | Float32 | Complex16 => 4,
            Int64 | Uint64 | Long | UnsignedLong | Logical64 | Float64 | Complex32 => 8,
            Int128 | Logical128 | LongDouble | Float128 | Complex64 => 16,
            ComplexLongDouble | Complex128 => 32,
        }
    }

    /// The address multiple at which a C compiler places it in a structure.
    pub const fn alignment(self) -> u32 {
        use Element::*;
        match self {
            Complex16 => 2,
            Complex32 => 4,
            Complex64 => 8,
            ComplexLongDouble | Complex128 => WIDE_ALIGNMENT,
            _ => self.size(),
        }
    }

    /// Bytes of one value in `external32` (MPI 5.0, section 14.5.2, table "external32 sizes").
    pub const fn external_size(self) -> u32 {
        use Element::*;
        match self {
            WideCharacter => 2,
            Long | UnsignedLong => 4,
            _ => self.size(),
        }
    }

    /// The family that decides which reductions are defined.
    pub const fn family(self) -> Family {
        use Element::*;
        match self {
            Byte => Family::Byte,
            Packed | Character | WideCharacter => Family::Text,
            Int8 | Int16 | Int32 | Int64 | Int128 | Uint8 | Uint16 | Uint32 | Uint64 | Long
            | UnsignedLong => Family::Integer,
            Bool | Logical8 | Logical16 | Logical32 | Logical64 | Logical128 => Family::Logical,
            Float16 | Float32 | Float64 | LongDouble | Float128 => Family::FloatingPoint,
            Complex16 | Complex32 | Complex64 | ComplexLongDouble | Complex128 => Family::Complex,
        }
    }

    /// Two elements of one signature position agree: the same element, or `long` against the integer of its size.
    pub const fn canonical(self) -> Element {
        match self {
            Element::Long => Element::Int64,
            Element::UnsignedLong => Element::Uint64,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_in_order_of_discriminants() {
        for (index, element) in Element::ALL.iter().enumerate() {
            assert_eq!(*element as usize, index);
        }
    }

    #[test]
    fn sizes_are_those_of_the_c_types() {
        assert_eq!(Element::Long.size() as usize, size_of::<std::ffi::c_long>());
        assert_eq!(Element::Float64.alignment() as usize, align_of::<f64>());
        assert_eq!(Element::Int128.size() as usize, size_of::<i128>());
    }
}
