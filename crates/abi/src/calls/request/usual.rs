//! MPI_Waitany, MPI_Waitsome and their like on lists in which every request is of a usual kind: none, a send that was complete at once, or a
//! receive that is no request yet. None of them is looked up, and none becomes a request.

use super::{Status, store, store_ended};
use crate::arguments::{Handles, StatusOut, StatusesOut, Usual};
use crate::objects::{Process, end_quickly};
use parnass_mpi::constants::MPI_REQUEST_NULL;
use parnass_mpi::request::Found;

/// The first request that is complete; `None`: before that there is one of another kind.
fn look(process: &Process, handles: Handles) -> Option<Found<usize>> {
    let mut found = Found::NoneActive;
    for index in 0..handles.len() {
        let handle = handles.get(index);
        if handle == MPI_REQUEST_NULL {
            continue;
        }
        match Usual::find(handle)? {
            Usual::Over => return Some(Found::Complete(index)),
            Usual::Quick(quick) if process.is_over(quick) => return Some(Found::Complete(index)),
            Usual::Quick(_) => found = Found::NoneComplete,
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
    let receives = (0..handles.len()).filter_map(|index| match Usual::find(handles.get(index)) {
        Some(Usual::Quick(quick)) => Some(quick),
        _ => None,
    });
    process.wait_for_any(receives, || Some(look(process, handles)).filter(|found| *found != none))
}

/// Ends a request that was found complete; whether it has gone as usual, and no other thread was faster.
fn end(process: &Process, handles: Handles, index: usize, status: StatusOut) -> bool {
    let handle = handles.get(index);
    let ended = match Usual::find(handle) {
        Some(Usual::Over) => {
            store(status, &Status::EMPTY);
            true
        }
        _ => end_quickly(process, handle, |ended| store_ended(status, ended)),
    };
    if ended {
        handles.clear(index);
    }
    ended
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
    if !(0..handles.len()).all(|index| Usual::find(handles.get(index)).is_some()) {
        return None;
    }
    let first = match find(process, handles, waits)? {
        Found::Complete(index) => index,
        none => return Some(none),
    };
    let mut ended = 0;
    for index in first..handles.len() {
        let over = match Usual::find(handles.get(index)) {
            Some(Usual::Over) => handles.get(index) != MPI_REQUEST_NULL,
            Some(Usual::Quick(quick)) => process.is_over(quick),
            None => false,
        };
        // What has not gone as usual is told of by the next call.
        if over && end(process, handles, index, statuses.at(ended)) {
            tell(ended, index);
            ended += 1;
        }
    }
    (ended > 0).then_some(Found::Complete(ended))
}
