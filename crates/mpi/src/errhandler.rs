//! Error handlers (MPI 5.0, section 9.3): what happens when a call fails.

use crate::attribute::ObjectHandle;
use std::sync::{Arc, PoisonError, RwLock};

/// The kind of object that a user-defined error handler is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrhandlerKind {
    Communicator,
    File,
    Session,
    Window,
}

/// A program's error handler, boxed by the C interface: gets the handle of the object and the error code, and gives the code that the call is to return.
pub struct UserErrhandler {
    kind: ErrhandlerKind,
    callback: Box<dyn Fn(ObjectHandle, i32) -> i32 + Send + Sync>,
}

/// An error handler. Cheap to clone; clones of a user-defined one are the same handler.
#[derive(Clone)]
pub enum Errhandler {
    /// MPI_ERRORS_ARE_FATAL: the job ends.
    Fatal,
    /// MPI_ERRORS_ABORT: the processes of the communicator end (in a job of one launcher: the job).
    Abort,
    /// MPI_ERRORS_RETURN: the call returns the error code.
    Return,
    /// The program's own; then the call returns the code that it leaves.
    User(Arc<UserErrhandler>),
}

impl Errhandler {
    /// MPI_Comm_create_errhandler and its siblings.
    pub fn user(
        kind: ErrhandlerKind,
        callback: Box<dyn Fn(ObjectHandle, i32) -> i32 + Send + Sync>,
    ) -> Errhandler {
        Errhandler::User(Arc::new(UserErrhandler { kind, callback }))
    }

    /// For which kind of object it was created; `None` for a predefined one, which serves all.
    pub fn kind(&self) -> Option<ErrhandlerKind> {
        match self {
            Errhandler::User(user) => Some(user.kind),
            _ => None,
        }
    }

    /// Whether it can be set on an object of this kind.
    pub fn serves(&self, kind: ErrhandlerKind) -> bool {
        self.kind().is_none_or(|own| own == kind)
    }
}

impl UserErrhandler {
    /// Runs the program's function. Returns the error code that it leaves where it was given one (MPI 5.0, section 9.3.1).
    pub fn call(&self, handle: ObjectHandle, code: i32) -> i32 {
        (self.callback)(handle, code)
    }
}

impl PartialEq for Errhandler {
    /// The same handler.
    fn eq(&self, other: &Errhandler) -> bool {
        match (self, other) {
            (Errhandler::User(mine), Errhandler::User(theirs)) => Arc::ptr_eq(mine, theirs),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl Eq for Errhandler {}

impl std::fmt::Debug for Errhandler {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Errhandler::Fatal => "MPI_ERRORS_ARE_FATAL",
            Errhandler::Abort => "MPI_ERRORS_ABORT",
            Errhandler::Return => "MPI_ERRORS_RETURN",
            Errhandler::User(_) => "user-defined error handler",
        })
    }
}

/// The place in an object that holds its error handler.
#[derive(Debug)]
pub struct ErrhandlerSlot(RwLock<Errhandler>);

impl ErrhandlerSlot {
    /// Holds `errhandler`.
    pub const fn new(errhandler: Errhandler) -> ErrhandlerSlot {
        ErrhandlerSlot(RwLock::new(errhandler))
    }

    /// The current one.
    pub fn get(&self) -> Errhandler {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces it.
    pub fn set(&self, errhandler: Errhandler) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = errhandler;
    }
}
