//! Errors: a class of the standard, and a sentence for a person.

use std::fmt;

/// What a call returns.
pub type Result<T> = std::result::Result<T, Error>;

/// An error: decided once, where it is detected. The message says what was wrong, with the value, what was
/// allowed, and what to do; the C interface adds the call, the rank and the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    class: i32,
    message: Box<str>,
}

impl Error {
    /// An error of a class (one of [`crate::constants`]' `MPI_ERR_*`).
    #[cold]
    pub fn new(class: i32, message: impl Into<String>) -> Error {
        Error { class, message: message.into().into_boxed_str() }
    }

    /// The error class, as in the standard's ABI.
    pub fn class(&self) -> i32 {
        self.class
    }

    /// The sentence.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
