//! Enumerations (MPI 5.0, section 15.3.5).

use crate::tool::{self, Outcome, Place};
use parnass_counters::{EVENTS, EventName};
use parnass_mpi::constants::*;
use std::ffi::{c_char, c_int};

/// What handles of enumerations have in their high bits; the low ones are a position in [`all`].
const CLASS: usize = 0x60 << 56;

/// A set of named values.
struct Enumeration {
    name: String,
    items: Vec<&'static str>,
}

/// Switches first, then the elements of each event.
fn all() -> Vec<Enumeration> {
    let switch = Enumeration { name: "switch".to_owned(), items: vec!["off", "on"] };
    let elements = EVENTS.iter().map(|event| Enumeration {
        name: format!("{}_elements", event.name),
        items: event.elements.iter().map(|(name, _)| *name).collect(),
    });
    std::iter::once(switch).chain(elements).collect()
}

/// The enumeration of the values of a switch.
pub(super) fn switch() -> usize {
    CLASS
}

/// The enumeration that names the elements of an event.
pub(super) fn elements_of(event: EventName) -> usize {
    CLASS | (event.0 as usize + 1)
}

fn find(handle: usize) -> Result<Enumeration, c_int> {
    if handle >> 56 != CLASS >> 56 {
        return Err(MPI_T_ERR_INVALID_HANDLE);
    }
    all().into_iter().nth(handle & !CLASS).ok_or(MPI_T_ERR_INVALID_HANDLE)
}

/// MPI_T_enum_get_info.
pub fn enum_get_info(
    enumtype: usize,
    num: Place<c_int>,
    name: Place<c_char>,
    name_len: Place<c_int>,
) -> Outcome {
    tool::check()?;
    let enumeration = find(enumtype)?;
    num.set(enumeration.items.len() as c_int);
    name.give(name_len, &enumeration.name);
    Ok(())
}

/// MPI_T_enum_get_item.
pub fn enum_get_item(
    enumtype: usize,
    indx: c_int,
    value: Place<c_int>,
    name: Place<c_char>,
    name_len: Place<c_int>,
) -> Outcome {
    tool::check()?;
    let enumeration = find(enumtype)?;
    let row = super::row(&enumeration.items, indx)?;
    value.set(row as c_int);
    name.give(name_len, enumeration.items[row]);
    Ok(())
}
