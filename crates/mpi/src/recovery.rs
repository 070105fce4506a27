//! The error classes and the door to the launcher of fault tolerance (User-Level Failure Mitigation): see docs/fault-tolerance.md.

pub use parnass_bootstrap::recovery::{Appeal, Contribution, Decision, News};

/// A process that the call needs has died. The classes of fault tolerance lie below MPI_ERR_LASTCODE, so that no program is ever given one
/// of them by MPI_Add_error_class, and far above those of the standard.
pub const MPIX_ERR_PROC_FAILED: i32 = 0x3f01;
/// A receive from any source could be from a process that has died; it goes on all the same.
pub const MPIX_ERR_PROC_FAILED_PENDING: i32 = 0x3f02;
/// The communicator was revoked.
pub const MPIX_ERR_REVOKED: i32 = 0x3f03;

/// The way to the launcher, which knows who dies and joins the parts of agreements.
pub trait Recovery: Send + Sync {
    /// Whether the job goes on when a process dies.
    fn survives(&self) -> bool;
    /// Has the launcher tell others something.
    ///
    /// # Errors
    /// A sentence for a person.
    fn appeal(&self, appeal: &Appeal) -> Result<(), String>;
    /// Waits for news; `None`: none will come. Called by one thread of its own.
    fn hear(&self) -> Option<News>;
}
