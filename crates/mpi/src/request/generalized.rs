//! Generalized requests (MPI 5.0, section 13.2): operations of the program behind a request of MPI.

use super::{Kind, Request, State, Status};
use crate::constants::MPI_ERR_REQUEST;
use crate::error::{Error, Result};
use crate::process::Process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The program's functions. They are called without any lock held, and may call MPI.
pub trait GeneralizedCallbacks: Send + Sync {
    /// Fills in the status of the completed operation.
    fn query(&self, status: &mut Status) -> Result<()>;
    /// Frees what the operation has kept; called once.
    fn free(&self) -> Result<()>;
    /// Asked to cancel; `complete` tells whether the operation is complete already.
    fn cancel(&self, complete: bool) -> Result<()>;
}

pub(super) struct Generalized {
    callbacks: Box<dyn GeneralizedCallbacks>,
    complete: AtomicBool,
    /// The user has freed the request before it was complete.
    abandoned: AtomicBool,
    freed: AtomicBool,
}

impl Generalized {
    pub(super) fn is_complete(&self) -> bool {
        // Pairs with the swap in `complete_generalized`.
        self.complete.load(Ordering::Acquire)
    }

    pub(super) fn query(&self, mut status: Status) -> Result<Status> {
        self.callbacks.query(&mut status)?;
        Ok(status)
    }

    /// Calls the free function, the first time that it is asked to.
    fn free_once(&self) -> Result<()> {
        if self.freed.swap(true, Ordering::AcqRel) { Ok(()) } else { self.callbacks.free() }
    }

    /// After the status was told; an error of the query counts more than one of the free function.
    pub(super) fn freed(&self, result: Result<Status>) -> Result<Status> {
        let freed = self.free_once();
        result.and_then(|status| freed.map(|()| status))
    }

    pub(super) fn cancel(&self) -> Result<()> {
        self.callbacks.cancel(self.is_complete())
    }

    /// The user gives up the request: freed at once if it is complete, else when it is.
    pub(super) fn abandon(&self) -> Result<()> {
        self.abandoned.store(true, Ordering::SeqCst);
        if self.is_complete() { self.free_once() } else { Ok(()) }
    }
}

impl Request {
    /// MPI_Grequest_start.
    pub fn generalized(callbacks: Box<dyn GeneralizedCallbacks>) -> Arc<Request> {
        let generalized = Generalized {
            callbacks,
            complete: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            freed: AtomicBool::new(false),
        };
        Request::new(None, Kind::Generalized(generalized), State::Generalized)
    }

    /// MPI_Grequest_complete: the program says that its operation is complete. Wakes who waits for it.
    pub fn complete_generalized(&self, process: &Process) -> Result<()> {
        let Kind::Generalized(generalized) = &self.kind else {
            return Err(Error::new(
                MPI_ERR_REQUEST,
                "the request was not made by MPI_Grequest_start; only a generalized request is completed by the program",
            ));
        };
        if generalized.complete.swap(true, Ordering::SeqCst) {
            return Err(Error::new(MPI_ERR_REQUEST, "the generalized request was completed before"));
        }
        process.wake_waiters(0);
        if generalized.abandoned.load(Ordering::SeqCst) { generalized.free_once() } else { Ok(()) }
    }
}
