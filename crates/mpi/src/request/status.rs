//! What a completed operation tells (MPI 5.0, section 3.2.5).

use crate::constants::{MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_PROC_NULL, MPI_SUCCESS};

/// A status. `bytes` is the length of the data that was received, in bytes of the datatype's type map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Rank of the sender in the communicator (its remote group for an intercommunicator), or a wildcard.
    pub source: i32,
    pub tag: i32,
    /// An error class or code.
    pub error: i32,
    pub bytes: u64,
    pub cancelled: bool,
}

impl Status {
    /// The empty status: of an inactive or null request, of a send.
    pub const EMPTY: Status =
        Status { source: MPI_ANY_SOURCE, tag: MPI_ANY_TAG, error: MPI_SUCCESS, bytes: 0, cancelled: false };

    /// Of a receive from MPI_PROC_NULL (MPI 5.0, section 3.10).
    pub const NO_PROCESS: Status =
        Status { source: MPI_PROC_NULL, tag: MPI_ANY_TAG, error: MPI_SUCCESS, bytes: 0, cancelled: false };
}

impl Default for Status {
    fn default() -> Self {
        Status::EMPTY
    }
}
