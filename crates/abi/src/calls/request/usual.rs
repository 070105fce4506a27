//! MPI_Waitany, MPI_Waitsome and their like on lists in which every request is of a usual kind: none, a send that was complete at once, or a
//! receive that is no request yet. None of them is looked up, and none becomes a request.

use super::{Status, store, store_ended};
use crate::arguments::{Handles, StatusOut, StatusesOut, Usual};
use crate::objects::{Process, end_quickly};
use parnass_mpi::constants::MPI_REQUEST_NULL;

/// How far the requests of a list are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// This one is complete.
    Complete(usize),
    NoneComplete,
    NoneActive,
    /// There is one of another kind, before any that is complete.
    Unusual,
}

/// What was ended of a list.
pub enum Usually {
    /// How many, and it was told of each; at least one.
    Ended(usize),
    NoneComplete,
    NoneActive,
    /// Nothing was done: the requests have to be looked up.
    No,
}

fn look(process: &Process, handles: Handles) -> Look {
    let mut found = Look::NoneActive;
    for index in 0..handles.len() {
        let handle = handles.get(index);
        if handle == MPI_REQUEST_NULL {
            continue;
        }
        match Usual::find(handle) {
            Some(Usual::Over) => return Look::Complete(index),
            Some(Usual::Quick(quick)) if process.is_over(quick) => return Look::Complete(index),
            Some(Usual::Quick(_)) => found = Look::NoneComplete,
            None => return Look::Unusual,
        }
    }
    found
}

/// Looks until something is complete, or twice.
fn find(process: &Process, handles: Handles, waits: bool) -> Look {
    let found = look(process, handles);
    if found != Look::NoneComplete {
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
    process
        .wait_for_any(receives, || Some(look(process, handles)).filter(|found| *found != Look::NoneComplete))
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

/// Ends the first that is complete, and tells which.
pub fn any(
    process: &Process,
    handles: Handles,
    waits: bool,
    status: StatusOut,
    tell: impl FnOnce(usize),
) -> Usually {
    match find(process, handles, waits) {
        Look::Complete(index) if end(process, handles, index, status) => {
            tell(index);
            Usually::Ended(1)
        }
        Look::Complete(_) | Look::Unusual => Usually::No,
        Look::NoneComplete => Usually::NoneComplete,
        Look::NoneActive => Usually::NoneActive,
    }
}

/// Ends all that are complete, and tells of each which it is.
pub fn some(
    process: &Process,
    handles: Handles,
    waits: bool,
    statuses: StatusesOut,
    mut tell: impl FnMut(usize, usize),
) -> Usually {
    // Where one is of another kind, all are asked in the other way.
    if !(0..handles.len()).all(|index| Usual::find(handles.get(index)).is_some()) {
        return Usually::No;
    }
    let first = match find(process, handles, waits) {
        Look::Complete(index) => index,
        Look::Unusual => return Usually::No,
        Look::NoneComplete => return Usually::NoneComplete,
        Look::NoneActive => return Usually::NoneActive,
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
    if ended > 0 { Usually::Ended(ended) } else { Usually::No }
}
