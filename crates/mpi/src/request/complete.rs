//! The ways to complete one request (MPI 5.0, sections 3.7.3 and 3.7.6): waiting or not, once or to be asked for again.

use super::{Request, Status};
use crate::error::Result;
use crate::process::Process;
use parnass_portals::ProcessId;

/// MPI_Wait.
pub fn wait(process: &Process, request: &Request) -> Result<Status> {
    if let Some(status) = request.wait_again(process) {
        return Ok(status);
    }
    if let Some(result) = request.poll(process) {
        return result;
    }
    if let Some(result) = request.complete_composite(process) {
        return result;
    }
    process.wait_until(request.awaited(), || request.poll(process))
}

/// MPI_Test.
pub fn test(process: &Process, request: &Request) -> Option<Result<Status>> {
    request.poll(process).or_else(|| {
        process.progress_for_test();
        request.poll(process)
    })
}

/// MPI_Request_get_status.
pub fn get_status(process: &Process, request: &Request) -> Option<Result<Status>> {
    request.peek(process).or_else(|| {
        process.progress_for_test();
        request.peek(process)
    })
}

/// Whom to work for, if all that is waited for depends on one process.
pub(crate) fn awaited_by_all(mut peers: impl Iterator<Item = Option<ProcessId>>) -> Option<ProcessId> {
    peers.next().flatten().filter(|first| peers.all(|peer| peer == Some(*first)))
}
