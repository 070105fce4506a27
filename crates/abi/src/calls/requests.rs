//! Calls on lists of requests: to complete all, any or some of them, waiting or not (MPI 5.0, sections 3.7.5, 3.7.6 and 3.9).
//!
//! A handle is looked up when it is its turn, each time: many calls find what they look for at the beginning of a long list. What is usual is
//! ended without being looked up: none, a send that was complete at once, and a receive that is no request yet.

use super::request::{goes_on, raise_on, store, store_ended};
use crate::arguments::{Out, OutSlice, Requests, StatusOut, StatusesOut};
use crate::call::Call;
use crate::handles::{self, Class, Held};
use crate::objects::{Process, Request, SENT, end_quickly, quick};
use parnass_mpi::constants::{
    MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_ERR_IN_STATUS, MPI_ERR_REQUEST, MPI_REQUEST_NULL, MPI_SUCCESS,
    MPI_UNDEFINED,
};
use parnass_mpi::request::{Readiness, Status, complete};
use parnass_mpi::{Error, Result};
use std::ffi::c_int;
use std::task::Poll;

#[cold]
fn bad(requests: Requests, index: usize) -> Error {
    handles::bad::<Request>(requests.get(index), &format!("array_of_requests[{index}]"))
}

/// Checks all handles.
#[inline(never)]
fn check(requests: Requests) -> Result<()> {
    for index in 0..requests.len() {
        let handle = requests.get(index);
        if !Request::table().has(handle)
            && !matches!(handle, MPI_REQUEST_NULL | SENT)
            && quick(handle).is_none()
            && Request::table().find(handle).is_none()
        {
            return Err(bad(requests, index));
        }
    }
    Ok(())
}

/// How far the request at a place is.
#[inline(always)]
fn readiness(process: &Process, requests: Requests, index: usize) -> Result<Readiness> {
    let handle = requests.get(index);
    match handle {
        MPI_REQUEST_NULL => return Ok(Readiness::Inactive),
        SENT => return Ok(Readiness::Complete),
        _ => {}
    }
    match quick(handle) {
        Some(quick) if process.is_over(quick) => Ok(Readiness::Complete),
        Some(_) => Ok(Readiness::Pending),
        None => match Request::table().find(handle) {
            Some(held) => Ok(held.readiness(process)),
            None => Err(bad(requests, index)),
        },
    }
}

/// What is done with those that are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Waited for, and ended.
    Wait,
    /// Ended.
    Test,
    /// Told of, and left as they are.
    Peek,
}

/// What a look at a list for one of its requests found: its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// No request of the list is active.
    NoneActive,
    /// Some are active, none is complete.
    NoneComplete,
    Complete(usize),
}

/// The first that is complete.
fn look(process: &Process, requests: Requests) -> Result<Found> {
    let mut found = Found::NoneActive;
    for index in 0..requests.len() {
        match readiness(process, requests, index)? {
            Readiness::Complete => return Ok(Found::Complete(index)),
            Readiness::Pending => found = Found::NoneComplete,
            Readiness::Inactive => {}
        }
    }
    Ok(found)
}

/// The first that is complete: looks until there is one, or twice.
fn find(process: &Process, requests: Requests, way: Way) -> Result<Found> {
    let found = look(process, requests)?;
    if found != Found::NoneComplete {
        return Ok(found);
    }
    if way != Way::Wait {
        process.progress_for_test();
        return look(process, requests);
    }
    let is_pending = |index: &usize| matches!(readiness(process, requests, *index), Ok(Readiness::Pending));
    let peers = (0..requests.len()).filter(is_pending).map(|index| {
        let handle = requests.get(index);
        match quick(handle) {
            Some(quick) => process.awaited_by(quick),
            None => Request::table().find(handle).and_then(|held| held.awaited()),
        }
    });
    process.wait_for_any(peers, || {
        let found = look(process, requests);
        (!matches!(found, Ok(Found::NoneComplete))).then_some(found)
    })
}

/// Whether all are complete; looks twice.
fn all_over(process: &Process, requests: Requests) -> Result<bool> {
    let look = || {
        let mut over = true;
        for index in 0..requests.len() {
            over &= readiness(process, requests, index)? != Readiness::Pending;
        }
        Ok(over)
    };
    if look()? {
        return Ok(true);
    }
    process.progress_for_test();
    look()
}

/// The completion of a request was told: its handle goes, unless it is persistent.
fn told(call: &Call, requests: Requests, index: usize, held: Held<Request>, result: &Result<Status>) {
    if result.is_err() {
        raise_on(call, &held);
    }
    if !held.is_persistent() && !goes_on(result) {
        requests.clear(index);
        Request::table().release(held);
    }
}

/// How a request went that was found complete. `None`: another thread was faster, or there is something unusual about it; it is to be looked at
/// again.
fn take(call: &Call, requests: Requests, index: usize, way: Way) -> Option<Result<Status>> {
    let process: &Process = call.process();
    let handle = requests.get(index);
    let mut status = Status::EMPTY;
    if way != Way::Peek && end_quickly(process, handle, |ended| status = ended.status()) {
        requests.clear(index);
        return Some(Ok(status));
    }
    let held = Request::table().find(handle)?;
    if way == Way::Peek {
        return held.peek(process);
    }
    let result = held.poll(process)?;
    told(call, requests, index, held, &result);
    Some(result)
}

/// Writes the status of a request of a list, without its error field.
fn store_of_list(status: StatusOut, result: &Result<Status>) {
    match result {
        Ok(Status::EMPTY) => status.set_empty(),
        Ok(result) => store(status, result),
        Err(_) => status.set(MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false),
    }
}

/// A request that failed, among several that a call has completed.
struct Failed {
    /// Of its status.
    place: usize,
    index: usize,
    error: Error,
}

/// What a call tells that has completed so many requests and stored their statuses: their error fields only if one failed.
fn tell_failures(failures: &[Failed], total: usize, statuses: StatusesOut) -> Result<()> {
    let Some(Failed { index, error, .. }) = failures.first() else { return Ok(()) };
    for place in 0..total {
        statuses.at(place).set_error(MPI_SUCCESS);
    }
    for Failed { place, error, .. } in failures {
        statuses.at(*place).set_error(error.class());
    }
    Err(Error::new(
        MPI_ERR_IN_STATUS,
        format!(
            "{} of {total} completed requests failed; array_of_requests[{index}]: {}; see the MPI_ERROR field of each status",
            failures.len(),
            error.message()
        ),
    ))
}

/// MPI_Waitall.
pub fn waitall(call: &Call, requests: Requests, statuses: StatusesOut) -> Result<()> {
    let process: &Process = call.process();
    let mut failures = None;
    // Each is ended as soon as it is complete; an error, which is rare, makes another round through the statuses.
    for index in 0..requests.len() {
        let (handle, status) = (requests.get(index), statuses.at(index));
        if !end_quickly(process, handle, |ended| store_ended(status, ended)) {
            match handle {
                MPI_REQUEST_NULL | SENT => status.set_empty(),
                _ if wait_quickly(process, handle, status) => {}
                _ => {
                    wait_at(call, requests, index, status, &mut failures)?;
                    continue;
                }
            }
        }
        requests.clear(index);
    }
    tell_failures(failures.as_deref().unwrap_or_default(), requests.len(), statuses)
}

/// Waits for a receive that is no request, and ends it. `false`: it is one.
#[inline(never)]
fn wait_quickly(process: &Process, handle: usize, status: StatusOut) -> bool {
    let done = quick(handle).and_then(|quick| process.wait_quick(quick));
    if let Some(done) = &done {
        store(status, done);
    }
    done.is_some()
}

/// Waits for one of another kind, and ends it. The first one that may have to be waited for, or goes, checks the others before.
#[inline(never)]
fn wait_at(
    call: &Call,
    requests: Requests,
    index: usize,
    status: StatusOut,
    failures: &mut Option<Vec<Failed>>,
) -> Result<()> {
    let process: &Process = call.process();
    let found = Request::table().find(requests.get(index));
    // The usual case first: a persistent one whose message has gone, or come. It stays, whatever the others are.
    if let Some(Poll::Ready(done)) = found.as_ref().and_then(|held| held.poll_again(process)) {
        store_of_list(status, &Ok(done));
        return Ok(());
    }
    let failures = match failures {
        Some(failures) => failures,
        None => {
            check(requests)?;
            failures.insert(Vec::new())
        }
    };
    let Some(held) = found else {
        // This call has ended it: it is there twice.
        status.set_empty();
        requests.clear(index);
        return Ok(());
    };
    let result = complete::wait(process, &held);
    told(call, requests, index, held, &result);
    store_of_list(status, &result);
    if let Err(error) = result {
        failures.push(Failed { place: index, index, error });
    }
    Ok(())
}

/// MPI_Testall.
pub fn testall(call: &Call, requests: Requests, flag: Out<bool>, statuses: StatusesOut) -> Result<()> {
    let complete = all_over(call.process(), requests)?;
    flag.set(complete);
    if complete { waitall(call, requests, statuses) } else { Ok(()) }
}

/// MPI_Request_get_status_all.
pub fn request_get_status_all(
    call: &Call,
    requests: Requests,
    flag: Out<bool>,
    statuses: StatusesOut,
) -> Result<()> {
    let complete = all_over(call.process(), requests)?;
    flag.set(complete);
    if !complete {
        return Ok(());
    }
    let mut failures = Vec::new();
    for index in 0..requests.len() {
        let result = take(call, requests, index, Way::Peek).unwrap_or(Ok(Status::EMPTY));
        store_of_list(statuses.at(index), &result);
        if let Err(error) = result {
            failures.push(Failed { place: index, index, error });
        }
    }
    tell_failures(&failures, requests.len(), statuses)
}

/// Completes any one request of a list: whether there is something to tell.
fn any(call: &Call, way: Way, requests: Requests, indx: Out<i32>, status: StatusOut) -> Result<bool> {
    loop {
        let index = match find(call.process(), requests, way)? {
            Found::Complete(index) => index,
            none => {
                indx.set(MPI_UNDEFINED);
                if none == Found::NoneActive {
                    status.set_empty();
                }
                return Ok(none == Found::NoneActive);
            }
        };
        if let Some(result) = take(call, requests, index, way) {
            indx.set(index as i32);
            store(status, &result?);
            return Ok(true);
        }
    }
}

/// MPI_Waitany.
pub fn waitany(call: &Call, requests: Requests, indx: Out<i32>, status: StatusOut) -> Result<()> {
    any(call, Way::Wait, requests, indx, status).map(|_| ())
}

/// MPI_Testany and MPI_Request_get_status_any.
pub fn testany(
    call: &Call,
    way: Way,
    requests: Requests,
    indx: Out<i32>,
    flag: Out<bool>,
    status: StatusOut,
) -> Result<()> {
    flag.set(any(call, way, requests, indx, status)?);
    Ok(())
}

/// MPI_Waitsome, MPI_Testsome and MPI_Request_get_status_some.
pub fn some(
    call: &Call,
    way: Way,
    requests: Requests,
    outcount: Out<i32>,
    indices: &mut OutSlice<'_, c_int>,
    statuses: StatusesOut,
) -> Result<()> {
    let process: &Process = call.process();
    // Before any is ended: that must be told of.
    check(requests)?;
    loop {
        let first = match find(process, requests, way)? {
            Found::Complete(index) => index,
            none => {
                outcount.set(if none == Found::NoneActive { MPI_UNDEFINED } else { 0 });
                return Ok(());
            }
        };
        let (mut ended, mut failures) = (0, Vec::new());
        for index in first..requests.len() {
            if !matches!(readiness(process, requests, index), Ok(Readiness::Complete)) {
                continue;
            }
            let Some(result) = take(call, requests, index, way) else { continue };
            indices.set(ended, index as c_int);
            store_of_list(statuses.at(ended), &result);
            if let Err(error) = result {
                failures.push(Failed { place: ended, index, error });
            }
            ended += 1;
        }
        if ended > 0 {
            outcount.set(ended as i32);
            return tell_failures(&failures, ended, statuses);
        }
    }
}

/// MPI_Startall.
pub fn startall(call: &Call, requests: Requests) -> Result<()> {
    let find = |index| Request::table().find(requests.get(index));
    let is_none = |index: &usize| !Request::table().has(requests.get(*index)) && find(*index).is_none();
    // None is started unless all are requests.
    if let Some(index) = (0..requests.len()).find(is_none) {
        check(requests)?;
        return Err(Error::new(
            MPI_ERR_REQUEST,
            format!(
                "array_of_requests[{index}] is MPI_REQUEST_NULL, which cannot be started; make a persistent request first"
            ),
        ));
    }
    for (index, held) in (0..requests.len()).filter_map(|index| Some((index, find(index)?))) {
        held.start(call.process()).map_err(|error| {
            raise_on(call, &held);
            Error::new(error.class(), format!("array_of_requests[{index}]: {}", error.message()))
        })?;
    }
    Ok(())
}
