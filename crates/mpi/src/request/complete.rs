//! The ways to complete requests (MPI 5.0, sections 3.7.3 to 3.7.6): one or many, waiting or not.
//!
//! Null requests are `None` in the lists; they and inactive requests count as complete with the empty status.

use super::{Readiness, Request, Status};
use crate::error::Result;
use crate::process::Process;
use parnass_portals::ProcessId;
use std::sync::Arc;

/// What a look at a list for any or some of its requests found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found<T> {
    /// No request of the list is active.
    NoneActive,
    /// Some are active, none is complete.
    NoneComplete,
    Complete(T),
}

/// A request of a list, by its index, and how it went.
pub type Completed = (usize, Result<Status>);

/// A list of requests, of which some may be null.
pub trait RequestList {
    /// How many places the list has.
    fn len(&self) -> usize;

    /// Whether it has none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The request at a place below [`RequestList::len`]; `None` if it is null.
    fn at(&self, index: usize) -> Option<&Arc<Request>>;
}

impl RequestList for [Option<Arc<Request>>] {
    fn len(&self) -> usize {
        <[_]>::len(self)
    }

    fn at(&self, index: usize) -> Option<&Arc<Request>> {
        self[index].as_ref()
    }
}

/// The requests of a list that are not null.
fn live<L: RequestList + ?Sized>(requests: &L) -> impl Iterator<Item = &Arc<Request>> {
    (0..requests.len()).filter_map(|index| requests.at(index))
}

/// MPI_Wait.
pub fn wait(process: &Process, request: &Request) -> Result<Status> {
    if let Some(result) = request.poll(process) {
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

/// MPI_Waitall: `tell` gets the result of each request, in the order of the list, once all are complete.
pub fn wait_all(
    process: &Process,
    requests: &(impl RequestList + ?Sized),
    mut tell: impl FnMut(usize, Result<Status>),
) {
    for request in live(requests) {
        if !request.is_complete(process) {
            process.wait_until(request.awaited(), || request.is_complete(process).then_some(()));
        }
    }
    poll_all(process, requests, &mut tell);
}

/// MPI_Testall: whether all are complete; only then `tell` gets their results.
pub fn test_all(
    process: &Process,
    requests: &(impl RequestList + ?Sized),
    mut tell: impl FnMut(usize, Result<Status>),
) -> bool {
    let complete = all_complete(process, requests);
    if complete {
        poll_all(process, requests, &mut tell);
    }
    complete
}

/// MPI_Request_get_status_all.
pub fn get_status_all(
    process: &Process,
    requests: &(impl RequestList + ?Sized),
    mut tell: impl FnMut(usize, Result<Status>),
) -> bool {
    let complete = all_complete(process, requests);
    if complete {
        for index in 0..requests.len() {
            let status = requests.at(index).and_then(|request| request.peek(process));
            tell(index, status.unwrap_or(Ok(Status::EMPTY)));
        }
    }
    complete
}

fn all_complete(process: &Process, requests: &(impl RequestList + ?Sized)) -> bool {
    let complete = || live(requests).all(|request| request.is_complete(process));
    complete() || {
        process.progress_for_test();
        complete()
    }
}

fn poll_all(
    process: &Process,
    requests: &(impl RequestList + ?Sized),
    tell: &mut dyn FnMut(usize, Result<Status>),
) {
    for index in 0..requests.len() {
        let status = requests.at(index).and_then(|request| request.poll(process));
        tell(index, status.unwrap_or(Ok(Status::EMPTY)));
    }
}

/// The first request of the list that is complete, but not inactive.
fn look_any(process: &Process, requests: &(impl RequestList + ?Sized)) -> Found<usize> {
    let mut found = Found::NoneActive;
    for index in 0..requests.len() {
        let Some(request) = requests.at(index) else { continue };
        match request.readiness(process) {
            Readiness::Inactive => {}
            Readiness::Pending => found = Found::NoneComplete,
            Readiness::Complete => return Found::Complete(index),
        }
    }
    found
}

/// All requests of the list that are complete, but not inactive.
fn look_some(process: &Process, requests: &(impl RequestList + ?Sized)) -> Found<Vec<usize>> {
    let mut complete = Vec::new();
    let mut active = false;
    for index in 0..requests.len() {
        let Some(request) = requests.at(index) else { continue };
        match request.readiness(process) {
            Readiness::Inactive => {}
            Readiness::Pending => active = true,
            Readiness::Complete => complete.push(index),
        }
    }
    match (complete.is_empty(), active) {
        (false, _) => Found::Complete(complete),
        (true, true) => Found::NoneComplete,
        (true, false) => Found::NoneActive,
    }
}

/// Looks; if nothing is complete, turns the wheel and looks again.
fn look_twice<T>(process: &Process, look: impl Fn() -> Found<T>) -> Found<T> {
    match look() {
        Found::NoneComplete => {
            process.progress_for_test();
            look()
        }
        found => found,
    }
}

/// Whom to work for, if all that is waited for depends on one process.
pub(crate) fn awaited_by_all(mut peers: impl Iterator<Item = Option<ProcessId>>) -> Option<ProcessId> {
    peers.next().flatten().filter(|first| peers.all(|peer| peer == Some(*first)))
}

fn wait_for<T>(
    process: &Process,
    requests: &(impl RequestList + ?Sized),
    look: impl Fn() -> Found<T>,
) -> Found<T> {
    let peers = live(requests).filter(|request| request.is_active()).map(|request| request.awaited());
    process.wait_until(awaited_by_all(peers), || match look() {
        Found::NoneComplete => None,
        found => Some(found),
    })
}

fn tell_one(
    process: &Process,
    requests: &(impl RequestList + ?Sized),
    index: usize,
    keep: bool,
) -> Completed {
    let request = requests.at(index).expect("only requests that are not null are found complete");
    let result = if keep { request.peek(process) } else { request.poll(process) };
    (index, result.unwrap_or(Ok(Status::EMPTY)))
}

fn tell_any(
    process: &Process,
    requests: &(impl RequestList + ?Sized),
    found: Found<usize>,
    keep: bool,
) -> Found<Completed> {
    match found {
        Found::Complete(index) => Found::Complete(tell_one(process, requests, index, keep)),
        Found::NoneActive => Found::NoneActive,
        Found::NoneComplete => Found::NoneComplete,
    }
}

fn tell_some(
    process: &Process,
    requests: &(impl RequestList + ?Sized),
    found: Found<Vec<usize>>,
    keep: bool,
) -> Found<Vec<Completed>> {
    match found {
        Found::Complete(indices) => Found::Complete(
            indices.into_iter().map(|index| tell_one(process, requests, index, keep)).collect(),
        ),
        Found::NoneActive => Found::NoneActive,
        Found::NoneComplete => Found::NoneComplete,
    }
}

/// MPI_Waitany. Never [`Found::NoneComplete`].
pub fn wait_any(process: &Process, requests: &(impl RequestList + ?Sized)) -> Found<Completed> {
    let found = wait_for(process, requests, || look_any(process, requests));
    tell_any(process, requests, found, false)
}

/// MPI_Testany.
pub fn test_any(process: &Process, requests: &(impl RequestList + ?Sized)) -> Found<Completed> {
    let found = look_twice(process, || look_any(process, requests));
    tell_any(process, requests, found, false)
}

/// MPI_Request_get_status_any.
pub fn get_status_any(process: &Process, requests: &(impl RequestList + ?Sized)) -> Found<Completed> {
    let found = look_twice(process, || look_any(process, requests));
    tell_any(process, requests, found, true)
}

/// MPI_Waitsome. Never [`Found::NoneComplete`].
pub fn wait_some(process: &Process, requests: &(impl RequestList + ?Sized)) -> Found<Vec<Completed>> {
    let found = wait_for(process, requests, || look_some(process, requests));
    tell_some(process, requests, found, false)
}

/// MPI_Testsome.
pub fn test_some(process: &Process, requests: &(impl RequestList + ?Sized)) -> Found<Vec<Completed>> {
    let found = look_twice(process, || look_some(process, requests));
    tell_some(process, requests, found, false)
}

/// MPI_Request_get_status_some.
pub fn get_status_some(process: &Process, requests: &(impl RequestList + ?Sized)) -> Found<Vec<Completed>> {
    let found = look_twice(process, || look_some(process, requests));
    tell_some(process, requests, found, true)
}
