//! Handles: the standard's are pointers, MPICH's are integers.
//!
//! A predefined handle is converted by the tables. Any other handle of the standard's library is 4096 plus 31 bits or less
//! (`crates/abi/src/handles.rs`), and no such number is a predefined handle of MPICH in the same class, so that it is used as
//! it is. The library looks up what it is given, so that a number which is no handle is an error there.
//!
//! The library may give out handles below 4096 that no program can name as a constant; they go as [`UNNAMED`] and the number.

use crate::generated::tables;
use std::ffi::c_int;

/// The first handle of the standard's library that is not predefined.
const FIRST_DYNAMIC: usize = 4096;

/// The bits above a handle below [`FIRST_DYNAMIC`] that the tables do not name.
const UNNAMED: u32 = 0xf000_0000;

/// Set in what becomes of an integer that is no handle, so that it cannot be taken for a predefined one.
const GARBAGE: usize = 1 << 32;

/// A class of handles.
pub trait Class {
    /// What MPICH's programs hold.
    type Raw: Copy;

    /// From MPICH's to the standard's.
    fn input(raw: Self::Raw) -> usize;

    /// From the standard's to MPICH's.
    fn output(handle: usize) -> Self::Raw;
}

/// A handle that is not in the table of its class.
#[inline(always)]
fn other_in(raw: c_int) -> usize {
    let bits = raw as u32;
    if bits & !(FIRST_DYNAMIC as u32 - 1) == UNNAMED {
        return (bits & !UNNAMED) as usize;
    }
    match bits as usize {
        0 => 0,
        small if small < FIRST_DYNAMIC => small | GARBAGE,
        handle => handle,
    }
}

#[inline(always)]
fn other_out(handle: usize) -> c_int {
    if handle < FIRST_DYNAMIC { (handle as u32 | UNNAMED) as c_int } else { handle as u32 as c_int }
}

macro_rules! classes {
    ($($name:ident $table:ident)*) => {$(
        /// Handles of this class.
        pub struct $name;

        impl Class for $name {
            type Raw = c_int;

            #[inline(always)]
            fn input(raw: c_int) -> usize {
                let mut index = 0;
                while index < tables::$table.len() {
                    if tables::$table[index].0 == raw {
                        return tables::$table[index].1;
                    }
                    index += 1;
                }
                other_in(raw)
            }

            #[inline(always)]
            fn output(handle: usize) -> c_int {
                if handle < FIRST_DYNAMIC {
                    for &(raw, standard) in tables::$table {
                        if standard == handle {
                            return raw;
                        }
                    }
                }
                other_out(handle)
            }
        }
    )*};
}

classes! {
    Comm COMM
    Errhandler ERRHANDLER
    Group GROUP
    Info INFO
    Message MESSAGE
    Op OP
    Request REQUEST
    Session SESSION
    Win WIN
}

/// Datatypes: those that MPICH calls builtin have an index in their low eight bits.
pub struct Datatype;

/// The predefined handles by the index: MPICH's whole value, the standard's.
const BY_INDEX: [(c_int, usize); 256] = {
    let mut by_index = [(0, 0); 256];
    let mut place = 0;
    while place < tables::DATATYPE.len() + tables::OTHER_DATATYPES.len() {
        let (raw, standard) = match place < tables::DATATYPE.len() {
            true => tables::DATATYPE[place],
            false => tables::OTHER_DATATYPES[place - tables::DATATYPE.len()],
        };
        if is_builtin(raw) {
            assert!(by_index[(raw & 0xff) as usize].0 == 0);
            by_index[(raw & 0xff) as usize] = (raw, standard);
        }
        place += 1;
    }
    by_index
};

/// MPICH's predefined handles by the standard's value less MPI_DATATYPE_NULL; 0 where there is none.
const BY_STANDARD: [c_int; 256] = {
    let mut by_standard = [0; 256];
    let mut place = 0;
    while place < tables::DATATYPE.len() {
        let (raw, standard) = tables::DATATYPE[place];
        by_standard[standard - FIRST_DATATYPE] = raw;
        place += 1;
    }
    // Where MPICH has two names for what the standard has one for, the program gets MPICH's own: programs in C know that one.
    let mut place = 0;
    while place < tables::OTHER_DATATYPES.len() {
        let (raw, standard) = tables::OTHER_DATATYPES[place];
        by_standard[standard - FIRST_DATATYPE] = raw;
        place += 1;
    }
    by_standard
};

const FIRST_DATATYPE: usize = 0x200;

const fn is_builtin(raw: c_int) -> bool {
    raw as u32 >> 24 == 0x4c
}

impl Class for Datatype {
    type Raw = c_int;

    #[inline(always)]
    fn input(raw: c_int) -> usize {
        if is_builtin(raw) {
            let (named, standard) = BY_INDEX[(raw & 0xff) as usize];
            return if named == raw { standard } else { other_in(raw) };
        }
        // The null handle and the pairs with gaps.
        if raw as u32 >> 24 == 0x8c || raw as u32 >> 24 == 0x0c {
            for &(named, standard) in tables::DATATYPE {
                if named == raw {
                    return standard;
                }
            }
        }
        other_in(raw)
    }

    #[inline(always)]
    fn output(handle: usize) -> c_int {
        match BY_STANDARD.get(handle.wrapping_sub(FIRST_DATATYPE)) {
            Some(&raw) if raw != 0 => raw,
            _ => other_out(handle),
        }
    }
}

/// Files, whose handles are pointers in both ABIs.
pub struct File;

impl Class for File {
    type Raw = usize;

    #[inline(always)]
    fn input(raw: usize) -> usize {
        match raw {
            0 => tables::FILE[0].1,
            small if small < FIRST_DYNAMIC => small | GARBAGE,
            handle => handle,
        }
    }

    #[inline(always)]
    fn output(handle: usize) -> usize {
        if handle == tables::FILE[0].1 { 0 } else { handle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tag of each class in the handles of the standard's library (`crates/abi/src/objects.rs`).
    const TAGS: [(u32, &[(c_int, usize)]); 10] = [
        (0, tables::REQUEST),
        (1, tables::COMM),
        (2, tables::DATATYPE),
        (3, tables::GROUP),
        (4, tables::OP),
        (5, tables::ERRHANDLER),
        (6, tables::INFO),
        (7, tables::MESSAGE),
        (9, tables::WIN),
        (10, tables::SESSION),
    ];

    #[test]
    fn no_predefined_handle_of_mpich_is_a_dynamic_one_of_the_standard_in_its_class() {
        for (tag, table) in TAGS {
            let first = FIRST_DYNAMIC + ((tag as usize) << 27);
            for &(raw, _) in table {
                let bits = raw as u32 as usize;
                assert!(!(first..first + (1 << 27)).contains(&bits), "{bits:#x} is in class {tag}");
            }
        }
    }

    fn there_and_back<C: Class<Raw = c_int>>(table: &[(c_int, usize)]) {
        for &(raw, standard) in table {
            assert_eq!(C::input(raw), standard, "{raw:#x}");
            let other = tables::OTHER_DATATYPES.iter().find(|&&(_, one)| one == standard);
            assert_eq!(C::output(standard), other.map_or(raw, |&(raw, _)| raw), "{standard:#x}");
        }
        for handle in [0x1000, 0x1001, 0x0800_1000, 0x5800_0fff, 0x181, 0xfff] {
            if table.iter().all(|&(_, standard)| standard != handle) {
                assert_eq!(C::input(C::output(handle)), handle, "{handle:#x}");
            }
        }
        for garbage in [1, 2, 0x101, 0x200, 4095] {
            assert!(C::input(garbage) > u32::MAX as usize, "{garbage:#x}");
        }
        assert_eq!(C::input(0), 0);
    }

    #[test]
    fn every_class_there_and_back() {
        there_and_back::<Comm>(tables::COMM);
        there_and_back::<Datatype>(tables::DATATYPE);
        there_and_back::<Errhandler>(tables::ERRHANDLER);
        there_and_back::<Group>(tables::GROUP);
        there_and_back::<Info>(tables::INFO);
        there_and_back::<Message>(tables::MESSAGE);
        there_and_back::<Op>(tables::OP);
        there_and_back::<Request>(tables::REQUEST);
        there_and_back::<Session>(tables::SESSION);
        there_and_back::<Win>(tables::WIN);
        assert_eq!(File::output(File::input(0)), 0);
        assert_eq!(File::input(0x4000_1000), 0x4000_1000);
        assert!(File::input(0x118) > u32::MAX as usize);
    }
}
