//! Integers with a meaning: error codes, and those made of bits. (Those that name one thing each are in the generated tables.)
//!
//! Error codes convert without loss, so that a code which a callback of the program returns comes out as it went in.

use crate::generated::tables::{ASSERTION, ERROR_CLASSES, FILE_MODE, MPI_ERR_LASTCODE};
use std::ffi::c_int;

/// What becomes of a value that MPICH's programs cannot mean: the standard's library refuses it.
pub const INVALID: c_int = c_int::MIN;

/// The first code that a program adds: MPICH's, the standard's.
const FIRST_ADDED: (c_int, c_int) = (0x4000_0000, MPI_ERR_LASTCODE.1 + 1);

/// Added to a number that is no code of MPICH, where the number itself means something in the standard.
const UNKNOWN: c_int = 0x2000_0000;

/// An error class or code, from MPICH's to the standard's.
#[inline]
pub fn code_in(code: c_int) -> c_int {
    if code == 0 { 0 } else { other_code_in(code) }
}

fn other_code_in(code: c_int) -> c_int {
    if let Some(&(_, standard)) = ERROR_CLASSES.iter().find(|&&(mpich, _)| mpich == code) {
        return standard;
    }
    match code {
        _ if code == MPI_ERR_LASTCODE.0 => MPI_ERR_LASTCODE.1,
        _ if code >= FIRST_ADDED.0 => FIRST_ADDED.1 + (code - FIRST_ADDED.0),
        0..UNKNOWN if code > MPI_ERR_LASTCODE.1 || is_standard(code) => code + UNKNOWN,
        _ => code,
    }
}

fn is_standard(code: c_int) -> bool {
    code == MPI_ERR_LASTCODE.1 || ERROR_CLASSES.iter().any(|&(_, standard)| standard == code)
}

/// An error class or code, from the standard's to MPICH's.
#[inline]
pub fn code_out(code: c_int) -> c_int {
    if code == 0 { 0 } else { other_code_out(code) }
}

#[cold]
fn other_code_out(code: c_int) -> c_int {
    if let Some(&(mpich, _)) = ERROR_CLASSES.iter().find(|&&(_, standard)| standard == code) {
        return mpich;
    }
    match code {
        _ if code == MPI_ERR_LASTCODE.1 => MPI_ERR_LASTCODE.0,
        UNKNOWN..0x4000_0000 => code - UNKNOWN,
        _ if code >= FIRST_ADDED.1 => FIRST_ADDED.0 + (code - FIRST_ADDED.1),
        _ => code,
    }
}

/// A bit that neither ABI uses: what is unknown stays unknown.
const STRANGE: c_int = 1 << 30;

fn flags(value: c_int, pairs: impl Iterator<Item = (c_int, c_int)> + Clone) -> c_int {
    let known = pairs.clone().fold(0, |all, (from, _)| all | from);
    let strange = if value & !known == 0 { 0 } else { STRANGE };
    pairs.filter(|&(from, _)| value & from != 0).fold(strange, |all, (_, to)| all | to)
}

/// The mode of a file, from MPICH's to the standard's.
pub fn file_mode_in(value: c_int) -> c_int {
    flags(value, FILE_MODE.iter().copied())
}

/// The mode of a file, from the standard's to MPICH's.
pub fn file_mode_out(value: c_int) -> c_int {
    flags(value, FILE_MODE.iter().map(|&(mpich, standard)| (standard, mpich)))
}

/// Assertions about windows, from MPICH's to the standard's.
#[inline]
pub fn assertion_in(value: c_int) -> c_int {
    if value == 0 { 0 } else { flags(value, ASSERTION.iter().copied()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated::tables::*;

    #[test]
    fn error_codes_there_and_back() {
        for &(mpich, standard) in ERROR_CLASSES {
            assert_eq!(code_in(mpich), standard);
            assert_eq!(code_out(standard), mpich);
        }
        for code in (-5..70_000).chain([0x1fff_ffff, 0x3fff_ffff, 0x4000_0000, 0x4000_1234, -1, i32::MIN]) {
            assert_eq!(code_out(code_in(code)), code, "{code:#x}");
        }
        for code in 16_384..20_000 {
            assert_eq!(code_in(code_out(code)), code, "{code}");
            assert!(code_out(code) > MPI_ERR_LASTCODE.0);
        }
    }

    #[test]
    fn ranks_and_tags() {
        for (mpich, standard) in [(-1, -3), (-2, -1), (-3, -4), (0, 0), (7, 7)] {
            assert_eq!(rank_in(mpich), standard);
            assert_eq!(rank_out(standard), mpich);
        }
        assert_eq!((tag_in(-1), tag_out(-2)), (-2, -1));
        // What is none of them stays none of them.
        assert!(![-1, -3, -4].contains(&rank_in(-4)));
        assert_ne!(tag_in(-2), -2);
    }

    #[test]
    fn bits() {
        let all = FILE_MODE.iter().fold(0, |all, &(mpich, _)| all | mpich);
        for value in 0..=all {
            assert_eq!(
                file_mode_out(file_mode_in(value)),
                value & all | if value & !all != 0 { STRANGE } else { 0 }
            );
        }
        assert_eq!(assertion_in(2048), 8192);
        assert_ne!(assertion_in(1), 0);
    }

    #[test]
    fn names_of_one_thing() {
        assert_eq!((thread_level_in(3), thread_level_out(4096)), (4096, 3));
        assert_eq!(lock_type_in(301), INVALID);
        assert_eq!((keyval_in(0x6440_0001), keyval_in(501), keyval_in(4097)), (501, INVALID, 4097));
        assert_eq!(comparison_out(204), 3);
        assert_eq!((whence_in(600), split_type_in(-32766)), (403, -32766));
    }
}
