//! Datatypes: constants among the arguments of constructors, and among what the decoding calls return.

use crate::arguments::OutHandle;
use crate::codes::{INVALID, code_out};
use crate::generated::standard;
use crate::generated::tables::*;
use crate::handles::{Class, Datatype};
use std::ffi::{c_int, c_void};

/// The length of an argument in elements.
fn length(count: i64, place: *const c_void) -> usize {
    if place.is_null() { 0 } else { usize::try_from(count).unwrap_or(0) }
}

/// An array of the program with each element converted.
///
/// # Safety
/// The place is null or has `count` elements.
unsafe fn converted(place: *const c_int, count: c_int, convert: fn(c_int) -> c_int) -> Vec<c_int> {
    let length = length(i64::from(count), place.cast());
    // SAFETY: the caller's promise.
    (0..length).map(|index| convert(unsafe { place.add(index).read() })).collect()
}

/// The same array as the standard's library gets it.
fn place(array: &[c_int], given: *const c_int) -> *const c_int {
    if given.is_null() { given } else { array.as_ptr() }
}

/// The argument of a distribution. The standard's value for the default is also a number that a program can mean as a size of
/// blocks, which the standard's ABI has no way to say.
fn argument_in(value: c_int) -> c_int {
    match value {
        _ if value == MPI_DISTRIBUTE_DFLT_DARG.0 => MPI_DISTRIBUTE_DFLT_DARG.1,
        _ if value == MPI_DISTRIBUTE_DFLT_DARG.1 => INVALID,
        _ => value,
    }
}

fn argument_out(value: c_int) -> c_int {
    if value == MPI_DISTRIBUTE_DFLT_DARG.1 { MPI_DISTRIBUTE_DFLT_DARG.0 } else { value }
}

macro_rules! create_darray {
    ($($name:ident $procedure:ident $count:ty)*) => {$(
        /// # Safety
        /// As for the procedure.
        #[allow(clippy::too_many_arguments)]
        pub unsafe fn $name(
            size: c_int,
            rank: c_int,
            ndims: c_int,
            array_of_gsizes: *const $count,
            array_of_distribs: *const c_int,
            array_of_dargs: *const c_int,
            array_of_psizes: *const c_int,
            order: c_int,
            oldtype: c_int,
            newtype: *mut c_int,
        ) -> c_int {
            let mut newtype = OutHandle::<Datatype>::new(newtype);
            // SAFETY: the caller's promise.
            unsafe {
                let distributions = converted(array_of_distribs, ndims, distribution_in);
                let arguments = converted(array_of_dargs, ndims, argument_in);
                let code = standard::$procedure(
                    size,
                    rank,
                    ndims,
                    array_of_gsizes,
                    place(&distributions, array_of_distribs),
                    place(&arguments, array_of_dargs),
                    array_of_psizes,
                    order_in(order),
                    Datatype::input(oldtype),
                    newtype.place(),
                );
                newtype.finish();
                code_out(code)
            }
        }
    )*};
}

create_darray! {
    type_create_darray MPI_Type_create_darray c_int
    type_create_darray_c MPI_Type_create_darray_c i64
}

/// Converts the constants among the integers of a datatype's contents (MPI 5.0, section 5.1.13).
///
/// # Safety
/// The call that decodes the datatype has filled the integers.
unsafe fn convert_integers(datatype: usize, integers: *mut c_int, room: i64) {
    let (mut number, mut addresses, mut large, mut types, mut combiner) = (0i64, 0i64, 0i64, 0i64, 0);
    // SAFETY: the places live during the call.
    let code = unsafe {
        standard::MPI_Type_get_envelope_c(
            datatype,
            &mut number,
            &mut addresses,
            &mut large,
            &mut types,
            &mut combiner,
        )
    };
    let length = length(number.min(room), integers.cast_const().cast());
    if code != 0 || length == 0 {
        return;
    }
    // SAFETY: the caller's promise.
    let integers = unsafe { std::slice::from_raw_parts_mut(integers, length) };
    if combiner == MPI_COMBINER_SUBARRAY.1
        && let Some(last) = integers.last_mut()
    {
        *last = order_out(*last);
    } else if combiner == MPI_COMBINER_DARRAY.1 && integers.len() > 3 {
        // size, rank, ndims, gsizes (elsewhere, in the large form), distribs, dargs, psizes, order
        let dimensions = usize::try_from(integers[2]).unwrap_or(0);
        let first = if large == 0 { 3 + dimensions } else { 3 };
        for index in first..(first + dimensions).min(integers.len()) {
            integers[index] = distribution_out(integers[index]);
        }
        for index in first + dimensions..(first + 2 * dimensions).min(integers.len()) {
            integers[index] = argument_out(integers[index]);
        }
        if let Some(last) = integers.last_mut() {
            *last = order_out(*last);
        }
    }
}

/// Writes the handles that a call has put into `handles`.
///
/// # Safety
/// The place has as many elements.
unsafe fn give(handles: &[usize], place: *mut c_int) {
    for (index, &handle) in handles.iter().enumerate().filter(|&(_, &handle)| handle != 0) {
        // SAFETY: the caller's promise.
        unsafe { place.add(index).write(Datatype::output(handle)) };
    }
}

/// # Safety
/// As for the procedure.
pub unsafe fn type_get_contents(
    datatype: c_int,
    max_integers: c_int,
    max_addresses: c_int,
    max_datatypes: c_int,
    array_of_integers: *mut c_int,
    array_of_addresses: *mut i64,
    array_of_datatypes: *mut c_int,
) -> c_int {
    let datatype = Datatype::input(datatype);
    let mut handles = vec![0; length(i64::from(max_datatypes), array_of_datatypes.cast_const().cast())];
    let types = if array_of_datatypes.is_null() { std::ptr::null_mut() } else { handles.as_mut_ptr() };
    // SAFETY: the caller's promise.
    unsafe {
        let code = standard::MPI_Type_get_contents(
            datatype,
            max_integers,
            max_addresses,
            max_datatypes,
            array_of_integers,
            array_of_addresses,
            types,
        );
        if code == 0 {
            convert_integers(datatype, array_of_integers, i64::from(max_integers));
            give(&handles, array_of_datatypes);
        }
        code_out(code)
    }
}

/// # Safety
/// As for the procedure.
#[allow(clippy::too_many_arguments)]
pub unsafe fn type_get_contents_c(
    datatype: c_int,
    max_integers: i64,
    max_addresses: i64,
    max_large_counts: i64,
    max_datatypes: i64,
    array_of_integers: *mut c_int,
    array_of_addresses: *mut i64,
    array_of_large_counts: *mut i64,
    array_of_datatypes: *mut c_int,
) -> c_int {
    let datatype = Datatype::input(datatype);
    let mut handles = vec![0; length(max_datatypes, array_of_datatypes.cast_const().cast())];
    let types = if array_of_datatypes.is_null() { std::ptr::null_mut() } else { handles.as_mut_ptr() };
    // SAFETY: the caller's promise.
    unsafe {
        let code = standard::MPI_Type_get_contents_c(
            datatype,
            max_integers,
            max_addresses,
            max_large_counts,
            max_datatypes,
            array_of_integers,
            array_of_addresses,
            array_of_large_counts,
            types,
        );
        if code == 0 {
            convert_integers(datatype, array_of_integers, max_integers);
            give(&handles, array_of_datatypes);
        }
        code_out(code)
    }
}
