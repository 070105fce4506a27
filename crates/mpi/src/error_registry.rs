//! Error classes, error codes and their texts (MPI 5.0, sections 9.4 and 9.5).
//!
//! A code of the standard is its own class. Programs may add classes, codes of any class, and texts for what they added.

use crate::constants::*;
use crate::recovery::*;
use crate::{Error, Result};
use std::sync::{Mutex, PoisonError};

/// What the standard's error classes mean: (class, name, text).
pub const CLASSES: &[(i32, &str, &str)] = &[
    (MPI_SUCCESS, "MPI_SUCCESS", "no error"),
    (MPI_ERR_BUFFER, "MPI_ERR_BUFFER", "invalid buffer pointer"),
    (MPI_ERR_COUNT, "MPI_ERR_COUNT", "invalid count argument"),
    (MPI_ERR_TYPE, "MPI_ERR_TYPE", "invalid datatype argument"),
    (MPI_ERR_TAG, "MPI_ERR_TAG", "invalid tag argument"),
    (MPI_ERR_COMM, "MPI_ERR_COMM", "invalid communicator"),
    (MPI_ERR_RANK, "MPI_ERR_RANK", "invalid rank"),
    (MPI_ERR_REQUEST, "MPI_ERR_REQUEST", "invalid request handle"),
    (MPI_ERR_ROOT, "MPI_ERR_ROOT", "invalid root argument"),
    (MPI_ERR_GROUP, "MPI_ERR_GROUP", "invalid group"),
    (MPI_ERR_OP, "MPI_ERR_OP", "invalid reduction operation"),
    (MPI_ERR_TOPOLOGY, "MPI_ERR_TOPOLOGY", "invalid communicator topology"),
    (MPI_ERR_DIMS, "MPI_ERR_DIMS", "invalid dimension argument"),
    (MPI_ERR_ARG, "MPI_ERR_ARG", "invalid argument"),
    (MPI_ERR_UNKNOWN, "MPI_ERR_UNKNOWN", "unknown error"),
    (MPI_ERR_TRUNCATE, "MPI_ERR_TRUNCATE", "message longer than the receive buffer"),
    (MPI_ERR_OTHER, "MPI_ERR_OTHER", "an error that no other class describes"),
    (MPI_ERR_INTERN, "MPI_ERR_INTERN", "internal error of the MPI library"),
    (MPI_ERR_PENDING, "MPI_ERR_PENDING", "the request is still pending"),
    (MPI_ERR_IN_STATUS, "MPI_ERR_IN_STATUS", "the error code is in the status"),
    (MPI_ERR_ACCESS, "MPI_ERR_ACCESS", "permission denied"),
    (MPI_ERR_AMODE, "MPI_ERR_AMODE", "invalid access mode for MPI_File_open"),
    (MPI_ERR_ASSERT, "MPI_ERR_ASSERT", "invalid assertion argument"),
    (MPI_ERR_BAD_FILE, "MPI_ERR_BAD_FILE", "invalid file name"),
    (MPI_ERR_BASE, "MPI_ERR_BASE", "invalid base address passed to MPI_Free_mem"),
    (MPI_ERR_CONVERSION, "MPI_ERR_CONVERSION", "error in a data conversion function"),
    (MPI_ERR_DISP, "MPI_ERR_DISP", "invalid displacement argument"),
    (MPI_ERR_DUP_DATAREP, "MPI_ERR_DUP_DATAREP", "the data representation is already defined"),
    (MPI_ERR_FILE_EXISTS, "MPI_ERR_FILE_EXISTS", "the file exists"),
    (MPI_ERR_FILE_IN_USE, "MPI_ERR_FILE_IN_USE", "the file is in use by some process"),
    (MPI_ERR_FILE, "MPI_ERR_FILE", "invalid file handle"),
    (MPI_ERR_INFO_KEY, "MPI_ERR_INFO_KEY", "the info key is empty or longer than MPI_MAX_INFO_KEY"),
    (MPI_ERR_INFO_NOKEY, "MPI_ERR_INFO_NOKEY", "the info key is not set"),
    (MPI_ERR_INFO_VALUE, "MPI_ERR_INFO_VALUE", "the info value is longer than MPI_MAX_INFO_VAL"),
    (MPI_ERR_INFO, "MPI_ERR_INFO", "invalid info object"),
    (MPI_ERR_IO, "MPI_ERR_IO", "input or output error"),
    (MPI_ERR_KEYVAL, "MPI_ERR_KEYVAL", "invalid attribute key"),
    (MPI_ERR_LOCKTYPE, "MPI_ERR_LOCKTYPE", "invalid lock type argument"),
    (MPI_ERR_NAME, "MPI_ERR_NAME", "the service name is not published"),
    (MPI_ERR_NO_MEM, "MPI_ERR_NO_MEM", "out of memory"),
    (MPI_ERR_NOT_SAME, "MPI_ERR_NOT_SAME", "the collective argument is not the same on all processes"),
    (MPI_ERR_NO_SPACE, "MPI_ERR_NO_SPACE", "not enough space on the storage device"),
    (MPI_ERR_NO_SUCH_FILE, "MPI_ERR_NO_SUCH_FILE", "the file does not exist"),
    (MPI_ERR_PORT, "MPI_ERR_PORT", "invalid port name"),
    (MPI_ERR_QUOTA, "MPI_ERR_QUOTA", "quota exceeded"),
    (MPI_ERR_READ_ONLY, "MPI_ERR_READ_ONLY", "the file or file system is read-only"),
    (MPI_ERR_RMA_ATTACH, "MPI_ERR_RMA_ATTACH", "the memory cannot be attached to the window"),
    (MPI_ERR_RMA_CONFLICT, "MPI_ERR_RMA_CONFLICT", "conflicting accesses to the window"),
    (MPI_ERR_RMA_RANGE, "MPI_ERR_RMA_RANGE", "the target memory is not part of the window"),
    (MPI_ERR_RMA_SHARED, "MPI_ERR_RMA_SHARED", "the memory cannot be shared"),
    (MPI_ERR_RMA_SYNC, "MPI_ERR_RMA_SYNC", "wrong synchronization of one-sided calls"),
    (MPI_ERR_SERVICE, "MPI_ERR_SERVICE", "the service name cannot be published"),
    (MPI_ERR_SIZE, "MPI_ERR_SIZE", "invalid size argument"),
    (MPI_ERR_SPAWN, "MPI_ERR_SPAWN", "processes could not be spawned"),
    (MPI_ERR_UNSUPPORTED_DATAREP, "MPI_ERR_UNSUPPORTED_DATAREP", "the data representation is not supported"),
    (MPI_ERR_UNSUPPORTED_OPERATION, "MPI_ERR_UNSUPPORTED_OPERATION", "the operation is not supported"),
    (MPI_ERR_WIN, "MPI_ERR_WIN", "invalid window"),
    (MPI_ERR_RMA_FLAVOR, "MPI_ERR_RMA_FLAVOR", "the window has the wrong flavor for this call"),
    (MPI_ERR_PROC_ABORTED, "MPI_ERR_PROC_ABORTED", "a peer process has ended"),
    (
        MPI_ERR_VALUE_TOO_LARGE,
        "MPI_ERR_VALUE_TOO_LARGE",
        "the value does not fit the output argument; use the large-count form of the call",
    ),
    (MPI_ERR_SESSION, "MPI_ERR_SESSION", "invalid session"),
    (MPI_ERR_ERRHANDLER, "MPI_ERR_ERRHANDLER", "invalid error handler"),
    (MPI_ERR_ABI, "MPI_ERR_ABI", "error of the application binary interface"),
    (MPI_T_ERR_CANNOT_INIT, "MPI_T_ERR_CANNOT_INIT", "the tool information interface cannot be initialized"),
    (MPI_T_ERR_NOT_ACCESSIBLE, "MPI_T_ERR_NOT_ACCESSIBLE", "the tool information is not accessible now"),
    (
        MPI_T_ERR_NOT_INITIALIZED,
        "MPI_T_ERR_NOT_INITIALIZED",
        "the tool information interface is not initialized",
    ),
    (MPI_T_ERR_NOT_SUPPORTED, "MPI_T_ERR_NOT_SUPPORTED", "the tool information call is not supported"),
    (MPI_T_ERR_MEMORY, "MPI_T_ERR_MEMORY", "the tool information interface is out of memory"),
    (MPI_T_ERR_INVALID, "MPI_T_ERR_INVALID", "invalid use of the tool information interface"),
    (MPI_T_ERR_INVALID_INDEX, "MPI_T_ERR_INVALID_INDEX", "invalid index of a tool variable"),
    (MPI_T_ERR_INVALID_ITEM, "MPI_T_ERR_INVALID_ITEM", "invalid item of an enumeration"),
    (MPI_T_ERR_INVALID_SESSION, "MPI_T_ERR_INVALID_SESSION", "invalid performance variable session"),
    (MPI_T_ERR_INVALID_HANDLE, "MPI_T_ERR_INVALID_HANDLE", "invalid tool variable handle"),
    (MPI_T_ERR_INVALID_NAME, "MPI_T_ERR_INVALID_NAME", "the tool variable or category name is unknown"),
    (MPI_T_ERR_OUT_OF_HANDLES, "MPI_T_ERR_OUT_OF_HANDLES", "no more tool variable handles"),
    (MPI_T_ERR_OUT_OF_SESSIONS, "MPI_T_ERR_OUT_OF_SESSIONS", "no more performance variable sessions"),
    (MPI_T_ERR_CVAR_SET_NOT_NOW, "MPI_T_ERR_CVAR_SET_NOT_NOW", "the control variable cannot be set now"),
    (MPI_T_ERR_CVAR_SET_NEVER, "MPI_T_ERR_CVAR_SET_NEVER", "the control variable can never be set"),
    (MPI_T_ERR_PVAR_NO_WRITE, "MPI_T_ERR_PVAR_NO_WRITE", "the performance variable cannot be written"),
    (
        MPI_T_ERR_PVAR_NO_STARTSTOP,
        "MPI_T_ERR_PVAR_NO_STARTSTOP",
        "the performance variable cannot be started or stopped",
    ),
    (
        MPI_T_ERR_PVAR_NO_ATOMIC,
        "MPI_T_ERR_PVAR_NO_ATOMIC",
        "the performance variable cannot be read and written at once",
    ),
    (MPIX_ERR_PROC_FAILED, "MPIX_ERR_PROC_FAILED", "a process that the operation needs is dead"),
    (
        MPIX_ERR_PROC_FAILED_PENDING,
        "MPIX_ERR_PROC_FAILED_PENDING",
        "a process is dead from which the message could come",
    ),
    (MPIX_ERR_REVOKED, "MPIX_ERR_REVOKED", "the communicator was revoked"),
    (MPI_ERR_LASTCODE, "MPI_ERR_LASTCODE", "the last error code of the standard"),
];

fn standard(code: i32) -> Option<&'static (i32, &'static str, &'static str)> {
    CLASSES.iter().find(|&&(class, ..)| class == code)
}

/// What a program has added under one number.
#[derive(Debug)]
struct Added {
    /// Its own number when it is a class.
    class: i32,
    text: Option<Box<[u8]>>,
}

/// The error classes and codes that a program has added. Numbers start after MPI_ERR_LASTCODE and are not given out twice.
#[derive(Debug, Default)]
pub struct ErrorRegistry {
    added: Mutex<Vec<Option<Added>>>,
}

const FIRST_ADDED: i32 = MPI_ERR_LASTCODE + 1;

/// The longest text in bytes; MPI_MAX_ERROR_STRING counts the terminating zero.
pub const LONGEST_TEXT_BYTES: usize = MPI_MAX_ERROR_STRING as usize - 1;

impl ErrorRegistry {
    /// Nothing added.
    pub const fn new() -> ErrorRegistry {
        ErrorRegistry { added: Mutex::new(Vec::new()) }
    }

    fn added(&self) -> std::sync::MutexGuard<'_, Vec<Option<Added>>> {
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// MPI_Add_error_class.
    pub fn add_class(&self) -> i32 {
        let mut added = self.added();
        let class = FIRST_ADDED + added.len() as i32;
        added.push(Some(Added { class, text: None }));
        class
    }

    /// MPI_Add_error_code: a new code of a class of the standard or of the program.
    pub fn add_code(&self, class: i32) -> Result<i32> {
        let mut added = self.added();
        if standard(class).is_none() && !find(&added, class).is_ok_and(|entry| entry.class == class) {
            return Err(Error::new(
                MPI_ERR_ARG,
                format!(
                    "{class} is not an error class; use one of the standard or one that MPI_Add_error_class returned"
                ),
            ));
        }
        let code = FIRST_ADDED + added.len() as i32;
        added.push(Some(Added { class, text: None }));
        Ok(code)
    }

    /// MPI_Add_error_string: sets or replaces the text of a class or code that the program has added.
    pub fn set_text(&self, code: i32, text: &[u8]) -> Result<()> {
        if text.len() > LONGEST_TEXT_BYTES {
            return Err(Error::new(
                MPI_ERR_ARG,
                format!("the text has {} bytes; at most {LONGEST_TEXT_BYTES} are allowed", text.len()),
            ));
        }
        find_mut(&mut self.added(), code)?.text = Some(text.into());
        Ok(())
    }

    /// MPI_Remove_error_class: the class must have no text and no codes any more.
    pub fn remove_class(&self, class: i32) -> Result<()> {
        let mut added = self.added();
        let entry = find(&added, class)?;
        if entry.class != class {
            return Err(Error::new(
                MPI_ERR_ARG,
                format!("{class} is an error code, not a class; remove it with MPI_Remove_error_code"),
            ));
        }
        check_no_text(entry, class)?;
        let code = (FIRST_ADDED..)
            .zip(added.iter())
            .find(|(code, entry)| *code != class && entry.as_ref().is_some_and(|entry| entry.class == class));
        if let Some((code, _)) = code {
            return Err(Error::new(
                MPI_ERR_ARG,
                format!(
                    "error class {class} still has the code {code}; remove that with MPI_Remove_error_code first"
                ),
            ));
        }
        added[(class - FIRST_ADDED) as usize] = None;
        Ok(())
    }

    /// MPI_Remove_error_code: the code must have no text any more.
    pub fn remove_code(&self, code: i32) -> Result<()> {
        let mut added = self.added();
        let entry = find(&added, code)?;
        if entry.class == code {
            return Err(Error::new(
                MPI_ERR_ARG,
                format!("{code} is an error class, not a code; remove it with MPI_Remove_error_class"),
            ));
        }
        check_no_text(entry, code)?;
        added[(code - FIRST_ADDED) as usize] = None;
        Ok(())
    }

    /// MPI_Remove_error_string.
    pub fn remove_text(&self, code: i32) -> Result<()> {
        let mut added = self.added();
        match find_mut(&mut added, code)?.text.take() {
            Some(_) => Ok(()),
            None => Err(Error::new(
                MPI_ERR_ARG,
                format!("error code {code} has no text; there is nothing to remove"),
            )),
        }
    }

    /// MPI_Error_class.
    pub fn class_of(&self, code: i32) -> Result<i32> {
        match standard(code) {
            Some(_) => Ok(code),
            None => find(&self.added(), code).map(|entry| entry.class),
        }
    }

    /// MPI_Error_string: empty for a code that the program has added and not yet described.
    pub fn text_of(&self, code: i32) -> Result<Box<[u8]>> {
        match standard(code) {
            Some((_, name, text)) => Ok(format!("{name}: {text}").into_bytes().into()),
            None => find(&self.added(), code).map(|entry| entry.text.clone().unwrap_or_default()),
        }
    }

    /// MPI_LASTUSEDCODE: the highest number given out so far.
    pub fn last_used_code(&self) -> i32 {
        MPI_ERR_LASTCODE + self.added().len() as i32
    }
}

fn find(added: &[Option<Added>], code: i32) -> Result<&Added> {
    let slot = code.checked_sub(FIRST_ADDED).and_then(|index| added.get(usize::try_from(index).ok()?));
    slot.and_then(Option::as_ref).ok_or_else(|| not_added(code))
}

fn find_mut(added: &mut [Option<Added>], code: i32) -> Result<&mut Added> {
    let slot = code.checked_sub(FIRST_ADDED).and_then(|index| added.get_mut(usize::try_from(index).ok()?));
    slot.and_then(Option::as_mut).ok_or_else(|| not_added(code))
}

#[cold]
fn not_added(code: i32) -> Error {
    Error::new(
        MPI_ERR_ARG,
        match standard(code) {
            Some((_, name, _)) => {
                format!(
                    "{code} is {name} of the standard; only what the program has added itself can be changed"
                )
            }
            None => format!("{code} is not an error code of the standard, and the program has not added it"),
        },
    )
}

fn check_no_text(entry: &Added, code: i32) -> Result<()> {
    match entry.text {
        None => Ok(()),
        Some(_) => Err(Error::new(
            MPI_ERR_ARG,
            format!("error code {code} still has a text; remove that with MPI_Remove_error_string first"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_of_the_standard_has_a_text() {
        let registry = ErrorRegistry::default();
        for class in (MPI_SUCCESS..=MPI_ERR_ABI).chain(MPI_T_ERR_CANNOT_INIT..=MPI_T_ERR_PVAR_NO_ATOMIC) {
            assert_eq!(registry.class_of(class), Ok(class));
            let text = registry.text_of(class).unwrap();
            assert!(text.len() > 10 && text.len() <= LONGEST_TEXT_BYTES, "{class}");
        }
        for unknown in [-1, 63, 1000, 1019, MPI_ERR_LASTCODE + 1, i32::MIN, i32::MAX] {
            assert_eq!(registry.text_of(unknown).unwrap_err().class(), MPI_ERR_ARG);
            assert_eq!(registry.class_of(unknown).unwrap_err().class(), MPI_ERR_ARG);
        }
    }

    #[test]
    fn additions_are_removed_from_the_leaves() {
        let registry = ErrorRegistry::default();
        assert_eq!(registry.last_used_code(), MPI_ERR_LASTCODE);
        let class = registry.add_class();
        assert_eq!(registry.last_used_code(), class);
        let code = registry.add_code(class).unwrap();
        assert_eq!((registry.class_of(class), registry.class_of(code)), (Ok(class), Ok(class)));
        assert_eq!(&*registry.text_of(code).unwrap(), b"");
        registry.set_text(code, b"too hot").unwrap();
        registry.set_text(class, b"temperature").unwrap();
        assert_eq!(&*registry.text_of(code).unwrap(), b"too hot");
        assert!(registry.remove_class(class).is_err());
        assert!(registry.remove_code(code).is_err());
        registry.remove_text(class).unwrap();
        assert!(registry.remove_class(class).unwrap_err().message().contains("still has the code"));
        registry.remove_text(code).unwrap();
        assert!(registry.remove_text(code).is_err());
        assert!(registry.remove_class(code).unwrap_err().message().contains("MPI_Remove_error_code"));
        registry.remove_code(code).unwrap();
        assert!(registry.remove_code(code).is_err());
        registry.remove_class(class).unwrap();
        assert!(registry.class_of(class).is_err());
        let other = registry.add_code(MPI_ERR_OTHER).unwrap();
        assert!(other > code);
        assert_eq!(registry.class_of(other), Ok(MPI_ERR_OTHER));
        assert!(registry.add_code(other).is_err());
        assert!(registry.remove_class(MPI_ERR_OTHER).unwrap_err().message().contains("of the standard"));
    }
}
