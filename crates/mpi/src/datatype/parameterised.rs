//! Datatypes that are asked for by what they can hold (MPI 5.0, sections 5.1.8 and 19.1.9).

use super::{Datatype, Recipe, layout_of};
use crate::attribute::AttributeStore;
use crate::constants::*;
use crate::{Error, Result};
use parnass_datatype::{Element, Operand};
use std::sync::{Arc, Mutex, PoisonError};

/// The parameterised datatypes that a process has asked for.
#[derive(Debug, Default)]
pub struct ParameterisedDatatypes {
    made: Mutex<Vec<Arc<Datatype>>>,
}

/// The predefined pairs, by the handle values of their value and index types.
const PAIRS: &[(usize, usize, usize)] = &[
    (0x210, 0x209, 0x228),
    (0x214, 0x209, 0x229),
    (0x20a, 0x209, 0x22a),
    (0x209, 0x209, 0x22b),
    (0x208, 0x209, 0x22c),
    (0x220, 0x209, 0x22d),
    (0x21a, 0x21a, 0x230),
    (0x21c, 0x21c, 0x231),
    (0x219, 0x219, 0x232),
];

impl ParameterisedDatatypes {
    /// MPI_Type_create_f90_real: at least `precision` decimal digits and a decimal exponent of `range`.
    pub fn f90_real(&self, precision: i32, range: i32) -> Result<Arc<Datatype>> {
        let element = real_of(precision, range)?;
        Ok(self.make(MPI_COMBINER_F90_REAL, vec![precision, range], element))
    }

    /// MPI_Type_create_f90_complex: two such reals.
    pub fn f90_complex(&self, precision: i32, range: i32) -> Result<Arc<Datatype>> {
        let element = match real_of(precision, range)? {
            Element::Float32 => Element::Complex32,
            Element::Float64 => Element::Complex64,
            Element::LongDouble => Element::ComplexLongDouble,
            _ => Element::Complex128,
        };
        Ok(self.make(MPI_COMBINER_F90_COMPLEX, vec![precision, range], element))
    }

    /// MPI_Type_create_f90_integer: all numbers of up to `range` decimal digits.
    pub fn f90_integer(&self, range: i32) -> Result<Arc<Datatype>> {
        let element = match range {
            i32::MIN..0 => {
                return Err(Error::new(MPI_ERR_ARG, format!("r is {range}; it must not be negative")));
            }
            0..=2 => Element::Int8,
            3..=4 => Element::Int16,
            5..=9 => Element::Int32,
            10..=18 => Element::Int64,
            19..=38 => Element::Int128,
            39.. => {
                let message = format!(
                    "r is {range}, but the widest integer has a decimal range of 38; ask for no more"
                );
                return Err(Error::new(MPI_ERR_ARG, message));
            }
        };
        Ok(self.make(MPI_COMBINER_F90_INTEGER, vec![range], element))
    }

    fn make(&self, combiner: i32, integers: Vec<i32>, element: Element) -> Arc<Datatype> {
        let operand = Operand::One(element);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |datatype: &&Arc<Datatype>| {
            let recipe = datatype.recipe();
            recipe.combiner == combiner && recipe.integers == integers
        };
        if let Some(datatype) = made.iter().find(same) {
            return datatype.clone();
        }
        let layout = layout_of(operand);
        let datatype = Arc::new(Datatype {
            identity: super::next_identity(),
            plain: layout.plain_size(),
            layout,
            operand: Some(operand),
            predefined: None,
            permanent: true,
            recipe: Recipe { combiner, integers, ..Recipe::default() },
            committed: true.into(),
            name: Default::default(),
            attributes: AttributeStore::new(),
        });
        made.push(datatype.clone());
        datatype
    }
}

/// The real that Fortran's SELECTED_REAL_KIND would choose: the narrowest that holds it.
fn real_of(precision: i32, range: i32) -> Result<Element> {
    if precision == MPI_UNDEFINED && range == MPI_UNDEFINED {
        return Err(Error::new(MPI_ERR_ARG, "p and r are both MPI_UNDEFINED; give at least one of them"));
    }
    let requested = |value: i32, name: &str| match value {
        MPI_UNDEFINED => Ok(0),
        0.. => Ok(value),
        _ => Err(Error::new(
            MPI_ERR_ARG,
            format!("{name} is {value}; it must not be negative, or be MPI_UNDEFINED"),
        )),
    };
    let (digits, exponent) = (requested(precision, "p")?, requested(range, "r")?);
    // Fortran compilers offer the 80-bit format of x86 between the 64-bit and the 128-bit one.
    let extended_digits = if cfg!(target_arch = "x86_64") { 18 } else { 0 };
    match (digits, exponent) {
        (..=6, ..=37) => Ok(Element::Float32),
        (..=15, ..=307) => Ok(Element::Float64),
        (digits, ..=4931) if digits <= extended_digits => Ok(Element::LongDouble),
        (..=33, ..=4931) => Ok(Element::Float128),
        _ => Err(Error::new(
            MPI_ERR_ARG,
            format!(
                "no real has {digits} decimal digits and a decimal exponent of {exponent}; ask for at most 33 and 4931"
            ),
        )),
    }
}

/// MPI_Type_get_value_index: the handle value of the pair for MPI_MINLOC and MPI_MAXLOC of these two types. There are only the
/// named pairs, as the standard allows.
pub fn value_index(value: &Datatype, index: &Datatype) -> Option<usize> {
    let wanted = (value.predefined()?, index.predefined()?);
    PAIRS.iter().find(|&&(value, index, _)| (value, index) == wanted).map(|&(.., pair)| pair)
}

/// MPI_Type_match_size: the handle value of the predefined datatype of this class with a size in bytes.
pub fn match_size(class: i32, size: i32) -> Result<usize> {
    let (name, sizes): (&str, &[(i32, usize)]) = match class {
        MPI_TYPECLASS_INTEGER => ("integer", &[(1, 0x2c1), (2, 0x2c9), (4, 0x2d1), (8, 0x2d9), (16, 0x2e1)]),
        MPI_TYPECLASS_REAL => ("real", &[(2, 0x2ca), (4, 0x2d2), (8, 0x2da), (16, 0x2e2)]),
        MPI_TYPECLASS_COMPLEX => ("complex", &[(4, 0x2d3), (8, 0x2db), (16, 0x2e3), (32, 0x2eb)]),
        MPIX_TYPECLASS_LOGICAL => ("logical", &[(1, 0x2c0), (2, 0x2c8), (4, 0x2d0), (8, 0x2d8), (16, 0x2e0)]),
        _ => {
            let message = format!(
                "typeclass is {class}; it must be MPI_TYPECLASS_INTEGER, MPI_TYPECLASS_REAL or MPI_TYPECLASS_COMPLEX"
            );
            return Err(Error::new(MPI_ERR_ARG, message));
        }
    };
    let found = sizes.iter().find(|(bytes, _)| *bytes == size);
    found.map(|&(_, handle)| handle).ok_or_else(|| {
        let allowed: Vec<String> = sizes.iter().map(|(bytes, _)| bytes.to_string()).collect();
        Error::new(MPI_ERR_ARG, format!("size is {size}; a {name} type has {} bytes", allowed.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::PredefinedDatatypes;

    #[test]
    fn matched_sizes_are_what_they_say() {
        let predefined = PredefinedDatatypes::default();
        for class in
            [MPI_TYPECLASS_INTEGER, MPI_TYPECLASS_REAL, MPI_TYPECLASS_COMPLEX, MPIX_TYPECLASS_LOGICAL]
        {
            for size in 1..40 {
                if let Ok(handle) = match_size(class, size) {
                    assert_eq!(predefined.get(handle).unwrap().layout().size(), size as u64);
                }
            }
        }
        assert!(match_size(MPI_TYPECLASS_REAL, 3).unwrap_err().message().contains("2, 4, 8, 16"));
        assert!(match_size(0, 4).is_err());
    }

    #[test]
    fn reals_by_precision_and_range() {
        assert_eq!(real_of(6, 37).unwrap(), Element::Float32);
        assert_eq!(real_of(6, MPI_UNDEFINED).unwrap(), Element::Float32);
        assert_eq!(real_of(MPI_UNDEFINED, 100).unwrap(), Element::Float64);
        assert_eq!(real_of(15, 307).unwrap(), Element::Float64);
        assert_eq!(real_of(33, 4931).unwrap(), Element::Float128);
        assert!(real_of(34, 1).is_err());
        assert!(real_of(MPI_UNDEFINED, MPI_UNDEFINED).is_err());
    }

    #[test]
    fn the_same_question_gives_the_same_datatype() {
        let made = ParameterisedDatatypes::default();
        let (one, two) = (made.f90_integer(9).unwrap(), made.f90_integer(9).unwrap());
        assert!(Arc::ptr_eq(&one, &two));
        assert!(one.require_mortal().is_err());
        assert_eq!((one.recipe().combiner, &one.recipe().integers[..]), (MPI_COMBINER_F90_INTEGER, &[9][..]));
    }

    #[test]
    fn pairs_of_value_and_index() {
        let predefined = PredefinedDatatypes::default();
        let get = |handle| predefined.get(handle).unwrap();
        assert_eq!(value_index(get(0x214), get(0x209)), Some(0x229));
        assert_eq!(value_index(get(0x21a), get(0x21a)), Some(0x230));
        assert_eq!(value_index(get(0x241), get(0x258)), None);
        for &(value, index, pair) in PAIRS {
            let (value, index) = (get(value).operand().unwrap(), get(index).operand().unwrap());
            let Some(Operand::Pair { value: first, index: second }) = get(pair).operand() else {
                panic!("a pair")
            };
            assert_eq!((Operand::One(first), Operand::One(second)), (value, index));
        }
    }
}
