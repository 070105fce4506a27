//! MPI_Waitany, MPI_Waitsome, MPI_Testall and their like on lists in which every request is of a usual kind: none, a send that was complete at
//! once, a receive that is no request yet, or a persistent send or receive. None of these becomes a request that was none.

use super::{Status, store, store_ended};
use crate::arguments::{Handles, StatusOut, StatusesOut, Usual};
use crate::handles::Class;
use crate::objects::{Process, Request, end_quickly};
use parnass_mpi::constants::MPI_REQUEST_NULL;
use parnass_mpi::request::{Found, Readiness};

/// How far a request is. `None`: it is of another kind.
#[inline(always)]
fn readiness(process: &Process, handle: usize) -> Option<Readiness> {
    if handle == MPI_REQUEST_NULL {
        return Some(Readiness::Inactive);
    }
    match Usual::find(handle) {
        Some(Usual::Over) => Some(Readiness::Complete),
        Some(Usual::Quick(quick)) if process.is_over(quick) => Some(Readiness::Complete),
        Some(Usual::Quick(_)) => Some(Readiness::Pending),
        None => Request::table().find(handle)?.readiness_again(process),
    }
}

/// The first request that is complete; `None`: before that there is one of another kind.
fn look(process: &Process, handles: Handles) -> Option<Found<usize>> {
    let mut found = Found::NoneActive;
    for index in 0..handles.len() {
        match readiness(process, handles.get(index))? {
            Readiness::Complete => return Some(Found::Complete(index)),
            Readiness::Pending => found = Found::NoneComplete,
            Readiness::Inactive => {}
        }
    }
    Some(found)
}

/// Looks until something is complete, or twice.
fn find(process: &Process, handles: Handles, waits: bool) -> Option<Found<usize>> {
    let none = Some(Found::NoneComplete);
    let found = look(process, handles);
    if found != none {
        return found;
    }
    if !waits {
        process.progress_for_test();
        return look(process, handles);
    }
    let pending = (0..handles.len())
        .map(|index| handles.get(index))
        .filter(|handle| readiness(process, *handle) == Some(Readiness::Pending));
    let peers = pending.map(|handle| match Usual::find(handle) {
        Some(Usual::Quick(quick)) => process.awaited_by(quick),
        _ => Request::table().find(handle).and_then(|held| held.awaited()),
    });
    process.wait_for_any(peers, || Some(look(process, handles)).filter(|found| *found != none))
}

/// Whether all are complete; looks twice. `None`: one is of another kind.
pub fn all_over(process: &Process, handles: Handles) -> Option<bool> {
    let look = || {
        let mut over = true;
        for index in 0..handles.len() {
            over &= readiness(process, handles.get(index))? != Readiness::Pending;
        }
        Some(over)
    };
    if look()? {
        return Some(true);
    }
    process.progress_for_test();
    look()
}

/// Ends a request that was found complete; whether it has gone as usual, and no other thread was faster.
fn end(process: &Process, handles: Handles, index: usize, status: StatusOut) -> bool {
    let handle = handles.get(index);
    match Usual::find(handle) {
        Some(Usual::Over) => store(status, &Status::EMPTY),
        Some(Usual::Quick(_)) => {
            if !end_quickly(process, handle, |ended| store_ended(status, ended)) {
                return false;
            }
        }
        None => {
            let done = Request::table().find(handle).and_then(|held| held.poll_again(process));
            if let Some(done) = &done {
                store(status, done);
            }
            return done.is_some();
        }
    }
    handles.clear(index);
    true
}

/// Ends the first that is complete. `None`: nothing was done, and the requests have to be looked up.
pub fn any(process: &Process, handles: Handles, waits: bool, status: StatusOut) -> Option<Found<usize>> {
    let found = find(process, handles, waits)?;
    match found {
        Found::Complete(index) if !end(process, handles, index, status) => None,
        found => Some(found),
    }
}

/// Ends all that are complete, and tells of each which it is: how many. `None` as in [`any`].
pub fn some(
    process: &Process,
    handles: Handles,
    waits: bool,
    statuses: StatusesOut,
    mut tell: impl FnMut(usize, usize),
) -> Option<Found<usize>> {
    // Where one is of another kind, all are asked in the other way.
    if !(0..handles.len()).all(|index| readiness(process, handles.get(index)).is_some()) {
        return None;
    }
    let first = match find(process, handles, waits)? {
        Found::Complete(index) => index,
        none => return Some(none),
    };
    let mut ended = 0;
    for index in first..handles.len() {
        let over = readiness(process, handles.get(index)) == Some(Readiness::Complete);
        // What has not gone as usual is told of by the next call.
        if over && end(process, handles, index, statuses.at(ended)) {
            tell(ended, index);
            ended += 1;
        }
    }
    (ended > 0).then_some(Found::Complete(ended))
}
