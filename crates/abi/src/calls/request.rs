//! Requests and statuses (MPI 5.0, sections 3.2.5, 3.7, 3.8.4, 3.9 and 13.2).

mod usual;

use crate::arguments::{
    Function, IntOut, Out, OutHandle, OutSlice, RequestInOut, Requests, StatusOut, StatusRecord, StatusesOut,
    Usual,
};
use crate::call::Call;
use crate::generated::callbacks;
use crate::handles::Class;
use crate::objects::{Datatype, Process, Request, end_quickly};
use parnass_mpi::constants::{
    MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_ERR_IN_STATUS, MPI_ERR_REQUEST, MPI_SUCCESS, MPI_UNDEFINED,
};
use parnass_mpi::recovery::MPIX_ERR_PROC_FAILED_PENDING;
use parnass_mpi::request::complete::{self, RequestList};
use parnass_mpi::request::{Completed, Ended, Found, GeneralizedCallbacks, Quick, Status};
use parnass_mpi::{Error, Result};
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// Writes a status where the program wants it, all but its error field.
#[inline(always)]
pub fn store(place: StatusOut, status: &Status) {
    place.set(status.source, status.tag, status.bytes, status.cancelled);
}

/// As [`store`], of a receive that is no request.
#[inline(always)]
fn store_ended(place: StatusOut, ended: &Ended<'_>) {
    if !place.is_ignored() {
        store(place, &ended.status());
    }
}

impl RequestList for Requests {
    fn len(&self) -> usize {
        Requests::len(self)
    }

    fn at(&self, index: usize) -> Option<&Arc<Request>> {
        self.get(index)
    }
}

/// Lets an error go to the error handler of the request's communicator, or of its file.
pub(super) fn raise_on(call: &Call, request: &Request) {
    if let Some(communicator) = request.communicator()
        && !super::file::raise_on(call, communicator)
    {
        call.raise_on(communicator);
    }
}

/// The completion of the one request of a call was told: the handle goes, unless the request is persistent.
fn told(call: &Call, request: &mut RequestInOut, result: Result<Status>, status: StatusOut) -> Result<()> {
    let Some(held) = request.get() else {
        status.set_empty();
        return Ok(());
    };
    if result.is_err() {
        raise_on(call, held);
    }
    if !held.is_persistent() && !goes_on(&result) {
        request.release();
    }
    store(status, &result?);
    Ok(())
}

/// As [`told`], for one request of a list.
fn told_of_list(call: &Call, requests: &mut Requests, index: usize, result: &Result<Status>) {
    if let Some(held) = requests.get(index) {
        if result.is_err() {
            raise_on(call, held);
        }
        if !held.is_persistent() && !goes_on(result) {
            requests.release(index);
        }
    }
}

/// Whether the operation is under way all the same: a receive from anybody, one of whom is dead.
fn goes_on(result: &Result<Status>) -> bool {
    result.as_ref().is_err_and(|error| error.class() == MPIX_ERR_PROC_FAILED_PENDING)
}

/// MPI_Wait.
pub fn wait(call: &Call, request: &mut RequestInOut, status: StatusOut) -> Result<()> {
    if let Some(quick) = request.quick()
        && let Some(done) = call.process().wait_quick(quick)
    {
        request.release();
        store(status, &done);
        return Ok(());
    }
    let result = match request.get() {
        Some(held) => complete::wait(call.process(), held),
        None => Ok(Status::EMPTY),
    };
    told(call, request, result, status)
}

/// MPI_Test.
pub fn test(call: &Call, request: &mut RequestInOut, flag: Out<bool>, status: StatusOut) -> Result<()> {
    if let Some(quick) = request.quick() {
        let process = call.process();
        let over = process.is_over(quick) || {
            process.progress_for_test();
            process.is_over(quick)
        };
        if !over {
            flag.set(false);
            return Ok(());
        }
        if let Some(done) = process.wait_quick(quick) {
            flag.set(true);
            request.release();
            store(status, &done);
            return Ok(());
        }
    }
    let result = match request.get() {
        Some(held) => complete::test(call.process(), held),
        None => Some(Ok(Status::EMPTY)),
    };
    flag.set(result.is_some());
    match result {
        Some(result) => told(call, request, result, status),
        None => Ok(()),
    }
}

/// MPI_Request_get_status.
pub fn request_get_status(
    call: &Call,
    request: Option<&Arc<Request>>,
    flag: Out<bool>,
    status: StatusOut,
) -> Result<()> {
    let result = match request {
        Some(held) => {
            raise_on(call, held);
            complete::get_status(call.process(), held)
        }
        None => {
            flag.set(true);
            status.set_empty();
            return Ok(());
        }
    };
    flag.set(result.is_some());
    if let Some(result) = result {
        store(status, &result?);
    }
    Ok(())
}

/// Writes the status of a request of a list, without its error field.
fn store_of_list(status: StatusOut, result: &Result<Status>) {
    match result {
        Ok(Status::EMPTY) => status.set_empty(),
        Ok(result) => store(status, result),
        Err(_) => status.set(MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false),
    }
}

/// What a call tells that completes several requests: each in its status, and MPI_ERR_IN_STATUS if one failed.
struct Tally {
    /// Index and error of the first that failed.
    failed: Option<(usize, Error)>,
    failures: usize,
    total: usize,
    results: Vec<Completed>,
}

impl Tally {
    fn new(results: Vec<Completed>) -> Tally {
        let failed =
            results.iter().find_map(|(index, result)| Some((*index, result.as_ref().err()?.clone())));
        let failures = results.iter().filter(|(_, result)| result.is_err()).count();
        Tally { failed, failures, total: results.len(), results }
    }

    /// Writes the statuses, one after the other; the error fields only if one failed (MPI 5.0, section 3.7.5).
    fn store(&self, statuses: StatusesOut) {
        for (place, (_, result)) in self.results.iter().enumerate() {
            let status = statuses.at(place);
            store_of_list(status, result);
            if self.failed.is_some() {
                status.set_error(result.as_ref().err().map_or(MPI_SUCCESS, Error::class));
            }
        }
    }

    fn result(self) -> Result<()> {
        let Some((index, error)) = self.failed else { return Ok(()) };
        Err(Error::new(
            MPI_ERR_IN_STATUS,
            format!(
                "{} of {} completed requests failed; array_of_requests[{index}]: {}; see the MPI_ERROR field of each status",
                self.failures,
                self.total,
                error.message()
            ),
        ))
    }
}

fn tell_several(
    call: &Call,
    requests: &mut Requests,
    results: Vec<Completed>,
    statuses: StatusesOut,
) -> Result<()> {
    for (index, result) in &results {
        told_of_list(call, requests, *index, result);
    }
    let tally = Tally::new(results);
    tally.store(statuses);
    tally.result()
}

/// MPI_Waitall.
pub fn waitall(call: &Call, requests: &mut Requests, statuses: StatusesOut) -> Result<()> {
    let process: &Process = call.process();
    // The usual ones first: each is ended as soon as it is complete, and looked up once.
    let handles = requests.handles();
    for index in 0..handles.len() {
        let (handle, status) = (handles.get(index), statuses.at(index));
        if !end_quickly(process, handle, |ended| store_ended(status, ended)) {
            match Usual::find(handle) {
                Some(Usual::Over) => status.set_empty(),
                Some(Usual::Quick(quick)) if wait_quickly(process, quick, status) => {}
                None if wait_again(process, handle, status) => continue,
                _ => return waitall_from(call, requests, index, statuses),
            }
        }
        handles.clear(index);
    }
    Ok(())
}

/// Waits for a receive that is no request, and ends it. `false`: it is one now.
#[inline(never)]
fn wait_quickly(process: &Process, quick: Quick, status: StatusOut) -> bool {
    let done = process.wait_quick(quick);
    if let Some(done) = &done {
        store(status, done);
    }
    done.is_some()
}

/// Waits for a persistent request, which stays, and tells its completion. `false`: it is none, or has not gone as usual, and nobody was told.
#[inline(never)]
fn wait_again(process: &Process, handle: usize, status: StatusOut) -> bool {
    let done = Request::table().find(handle).and_then(|held| held.wait_again(process));
    match &done {
        Some(Status::EMPTY) => status.set_empty(),
        Some(done) => store(status, done),
        None => {}
    }
    done.is_some()
}

/// As [`waitall`], for those from `first` on, where the others are over.
#[inline(never)]
fn waitall_from(call: &Call, requests: &mut Requests, first: usize, statuses: StatusesOut) -> Result<()> {
    requests.check("array_of_requests")?;
    let process = call.process();
    // Each is told as soon as it is complete; an error, which is rare, makes another round through the statuses.
    let mut failed: Vec<Completed> = Vec::new();
    for index in first..requests.len() {
        match requests.usual(index) {
            Some(Usual::Over) => {
                requests.forget(index);
                statuses.at(index).set_empty();
                continue;
            }
            Some(Usual::Quick(quick)) => {
                if let Some(done) = process.wait_quick(quick) {
                    requests.forget(index);
                    store(statuses.at(index), &done);
                    continue;
                }
            }
            None => {}
        }
        let result =
            requests.get(index).map_or(Ok(Status::EMPTY), |request| complete::wait(process, request));
        told_of_list(call, requests, index, &result);
        store_of_list(statuses.at(index), &result);
        if result.is_err() {
            failed.push((index, result));
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    for index in 0..requests.len() {
        statuses.at(index).set_error(MPI_SUCCESS);
    }
    for (index, result) in &failed {
        statuses.at(*index).set_error(result.as_ref().err().map_or(MPI_SUCCESS, Error::class));
    }
    Tally { total: requests.len(), ..Tally::new(failed) }.result()
}

/// MPI_Testall.
pub fn testall(call: &Call, requests: &mut Requests, flag: Out<bool>, statuses: StatusesOut) -> Result<()> {
    let process = call.process();
    let complete = match usual::all_over(process, requests.handles()) {
        Some(complete) => complete,
        None => {
            requests.check("array_of_requests")?;
            let all_over = || (0..requests.len()).all(|index| requests.is_over(process, index));
            all_over() || {
                process.progress_for_test();
                all_over()
            }
        }
    };
    flag.set(complete);
    if complete { waitall(call, requests, statuses) } else { Ok(()) }
}

/// MPI_Request_get_status_all.
pub fn request_get_status_all(
    call: &Call,
    requests: &mut Requests,
    flag: Out<bool>,
    statuses: StatusesOut,
) -> Result<()> {
    let mut results = Vec::new();
    let complete =
        complete::get_status_all(call.process(), requests, |index, result| results.push((index, result)));
    flag.set(complete);
    let tally = Tally::new(results);
    tally.store(statuses);
    tally.result()
}

/// What a call tells that completes any one request.
fn tell_any(
    call: &Call,
    requests: &mut Requests,
    found: Found<Completed>,
    indx: Out<i32>,
    status: StatusOut,
    keep: bool,
) -> Result<bool> {
    match found {
        Found::Complete((index, result)) => {
            indx.set(index as i32);
            if !keep {
                told_of_list(call, requests, index, &result);
            }
            store(status, &result?);
            Ok(true)
        }
        none => Ok(tell_none(&none, &indx, status)),
    }
}

/// What such a call tells where no request is complete: whether none is active.
fn tell_none<T>(none: &Found<T>, indx: &Out<i32>, status: StatusOut) -> bool {
    indx.set(MPI_UNDEFINED);
    let over = matches!(none, Found::NoneActive);
    if over {
        status.set_empty();
    }
    over
}

/// MPI_Waitany.
pub fn waitany(call: &Call, requests: &mut Requests, indx: Out<i32>, status: StatusOut) -> Result<()> {
    if any_usual(call, requests, true, &indx, status).is_some() {
        return Ok(());
    }
    requests.check("array_of_requests")?;
    let found = complete::wait_any(call.process(), requests);
    tell_any(call, requests, found, indx, status, false).map(|_| ())
}

/// As [`complete::wait_any`] or [`complete::test_any`] and [`tell_any`], if all requests are usual: whether there is something to tell.
fn any_usual(
    call: &Call,
    requests: &mut Requests,
    waits: bool,
    indx: &Out<i32>,
    status: StatusOut,
) -> Option<bool> {
    let found = usual::any(call.process(), requests.handles(), waits, status)?;
    let Found::Complete(index) = found else { return Some(tell_none(&found, indx, status)) };
    indx.set(index as i32);
    Some(true)
}

/// MPI_Testany.
pub fn testany(
    call: &Call,
    requests: &mut Requests,
    indx: Out<i32>,
    flag: Out<bool>,
    status: StatusOut,
) -> Result<()> {
    if let Some(found) = any_usual(call, requests, false, &indx, status) {
        flag.set(found);
        return Ok(());
    }
    requests.check("array_of_requests")?;
    let found = complete::test_any(call.process(), requests);
    flag.set(found != Found::NoneComplete);
    tell_any(call, requests, found, indx, status, false).map(|_| ())
}

/// MPI_Request_get_status_any.
pub fn request_get_status_any(
    call: &Call,
    requests: &mut Requests,
    indx: Out<i32>,
    flag: Out<bool>,
    status: StatusOut,
) -> Result<()> {
    let found = complete::get_status_any(call.process(), requests);
    flag.set(found != Found::NoneComplete);
    tell_any(call, requests, found, indx, status, true).map(|_| ())
}

/// What a call tells that completes some requests.
fn tell_some(
    call: &Call,
    requests: &mut Requests,
    found: Found<Vec<Completed>>,
    outcount: Out<i32>,
    indices: &mut OutSlice<'_, c_int>,
    statuses: StatusesOut,
    keep: bool,
) -> Result<()> {
    let results = match found {
        Found::Complete(results) => results,
        Found::NoneActive => {
            outcount.set(MPI_UNDEFINED);
            return Ok(());
        }
        Found::NoneComplete => Vec::new(),
    };
    outcount.set(results.len() as i32);
    for (place, (index, _)) in results.iter().enumerate() {
        indices.set(place, *index as c_int);
    }
    if keep {
        let tally = Tally::new(results);
        tally.store(statuses);
        return tally.result();
    }
    tell_several(call, requests, results, statuses)
}

/// MPI_Waitsome.
pub fn waitsome(
    call: &Call,
    requests: &mut Requests,
    outcount: Out<i32>,
    indices: &mut OutSlice<'_, c_int>,
    statuses: StatusesOut,
) -> Result<()> {
    if some_usual(call, requests, true, &outcount, indices, statuses) {
        return Ok(());
    }
    requests.check("array_of_requests")?;
    let found = complete::wait_some(call.process(), requests);
    tell_some(call, requests, found, outcount, indices, statuses, false)
}

/// As [`complete::wait_some`] or [`complete::test_some`] and [`tell_some`], if all requests are usual: whether they are.
fn some_usual(
    call: &Call,
    requests: &mut Requests,
    waits: bool,
    outcount: &Out<i32>,
    indices: &mut OutSlice<'_, c_int>,
    statuses: StatusesOut,
) -> bool {
    let tell = |place, index| indices.set(place, index as c_int);
    let found = usual::some(call.process(), requests.handles(), waits, statuses, tell);
    outcount.set(match &found {
        Some(Found::Complete(count)) => *count as i32,
        Some(Found::NoneActive) => MPI_UNDEFINED,
        Some(Found::NoneComplete) => 0,
        None => return false,
    });
    true
}

/// MPI_Testsome.
pub fn testsome(
    call: &Call,
    requests: &mut Requests,
    outcount: Out<i32>,
    indices: &mut OutSlice<'_, c_int>,
    statuses: StatusesOut,
) -> Result<()> {
    if some_usual(call, requests, false, &outcount, indices, statuses) {
        return Ok(());
    }
    requests.check("array_of_requests")?;
    let found = complete::test_some(call.process(), requests);
    tell_some(call, requests, found, outcount, indices, statuses, false)
}

/// MPI_Request_get_status_some.
pub fn request_get_status_some(
    call: &Call,
    requests: &mut Requests,
    outcount: Out<i32>,
    indices: &mut OutSlice<'_, c_int>,
    statuses: StatusesOut,
) -> Result<()> {
    let found = complete::get_status_some(call.process(), requests);
    tell_some(call, requests, found, outcount, indices, statuses, true)
}

/// MPI_Request_free.
pub fn request_free(call: &Call, request: &mut RequestInOut) -> Result<()> {
    let Some(held) = request.get().cloned() else {
        return Err(Error::new(
            MPI_ERR_REQUEST,
            "request is MPI_REQUEST_NULL, which cannot be freed; it is free already",
        ));
    };
    raise_on(call, &held);
    if held.is_generalized() && !held.is_complete(call.process()) {
        request.detach();
    } else {
        request.release();
    }
    held.free(call.process())
}

/// MPI_Cancel.
pub fn cancel(call: &Call, request: &Arc<Request>) -> Result<()> {
    raise_on(call, request);
    request.cancel(call.process())
}

/// MPI_Start.
pub fn start(call: &Call, request: &mut RequestInOut) -> Result<()> {
    let Some(held) = request.get() else {
        return Err(Error::new(
            MPI_ERR_REQUEST,
            "request is MPI_REQUEST_NULL, which cannot be started; make a persistent request first",
        ));
    };
    held.start(call.process()).inspect_err(|_| raise_on(call, held))
}

/// MPI_Startall.
pub fn startall(call: &Call, requests: &mut Requests) -> Result<()> {
    let handles = requests.handles();
    let find = |index| Request::table().find(handles.get(index));
    // None is started unless all are requests.
    if let Some(index) = (0..handles.len()).find(|index| find(*index).is_none()) {
        requests.check("array_of_requests")?;
        return Err(Error::new(
            MPI_ERR_REQUEST,
            format!(
                "array_of_requests[{index}] is MPI_REQUEST_NULL, which cannot be started; make a persistent request first"
            ),
        ));
    }
    for (index, held) in (0..handles.len()).filter_map(|index| Some((index, find(index)?))) {
        held.start(call.process()).map_err(|error| {
            raise_on(call, &held);
            Error::new(error.class(), format!("array_of_requests[{index}]: {}", error.message()))
        })?;
    }
    Ok(())
}

/// The program's functions behind a generalized request.
struct Callbacks {
    query: callbacks::MPI_Grequest_query_function,
    free: callbacks::MPI_Grequest_free_function,
    cancel: callbacks::MPI_Grequest_cancel_function,
    extra_state: usize,
}

impl Callbacks {
    fn extra_state(&self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.extra_state)
    }
}

/// The error of a callback is the error of the call that made it be called.
fn verdict(code: c_int, which: &str) -> Result<()> {
    if code == MPI_SUCCESS {
        return Ok(());
    }
    Err(Error::new(
        code,
        format!("the {which} function of the generalized request returned the error code {code}"),
    ))
}

impl GeneralizedCallbacks for Callbacks {
    fn query(&self, status: &mut Status) -> Result<()> {
        let mut record = StatusRecord::default();
        record.fill(status.source, status.tag, status.bytes, status.cancelled);
        // SAFETY: the program gave a function of this signature with MPI_Grequest_start.
        let code = unsafe { (self.query)(self.extra_state(), &mut record) };
        *status = Status {
            source: record.source,
            tag: record.tag,
            error: record.error,
            bytes: record.size_bytes(),
            cancelled: record.cancelled(),
        };
        verdict(code, "query")
    }

    fn free(&self) -> Result<()> {
        // SAFETY: as for `query`.
        verdict(unsafe { (self.free)(self.extra_state()) }, "free")
    }

    fn cancel(&self, complete: bool) -> Result<()> {
        // SAFETY: as for `query`.
        verdict(unsafe { (self.cancel)(self.extra_state(), c_int::from(complete)) }, "cancel")
    }
}

/// MPI_Grequest_start.
pub fn grequest_start(
    _call: &Call,
    query_fn: Function<callbacks::MPI_Grequest_query_function>,
    free_fn: Function<callbacks::MPI_Grequest_free_function>,
    cancel_fn: Function<callbacks::MPI_Grequest_cancel_function>,
    extra_state: usize,
    request: OutHandle<Request>,
) -> Result<()> {
    let callbacks = Callbacks {
        query: query_fn.required("query_fn")?,
        free: free_fn.required("free_fn")?,
        cancel: cancel_fn.required("cancel_fn")?,
        extra_state,
    };
    request.set(Request::generalized(Box::new(callbacks)))
}

/// MPI_Grequest_complete.
pub fn grequest_complete(call: &Call, request: &Arc<Request>) -> Result<()> {
    request.complete_generalized(call.process())
}

/// MPI_Get_count.
pub fn get_count(_call: &Call, status: &StatusRecord, datatype: &Arc<Datatype>, count: IntOut) -> Result<()> {
    let size = datatype.layout().size();
    let bytes = status.size_bytes();
    count.set(match (bytes, size) {
        (0, _) => 0,
        (_, 0) => i64::from(MPI_UNDEFINED),
        _ if bytes.is_multiple_of(size) => (bytes / size) as i64,
        _ => i64::from(MPI_UNDEFINED),
    });
    Ok(())
}

/// How many basic elements of a datatype were received.
fn elements(status: &StatusRecord, datatype: &Datatype) -> i64 {
    match datatype.layout().signature().elements_in(status.size_bytes()) {
        (elements, 0) => elements as i64,
        _ => i64::from(MPI_UNDEFINED),
    }
}

/// MPI_Get_elements.
pub fn get_elements(
    _call: &Call,
    status: &StatusRecord,
    datatype: &Arc<Datatype>,
    count: IntOut,
) -> Result<()> {
    count.set(elements(status, datatype));
    Ok(())
}

/// MPI_Get_elements_x.
pub fn get_elements_x(
    _call: &Call,
    status: &StatusRecord,
    datatype: &Arc<Datatype>,
    count: Out<i64>,
) -> Result<()> {
    count.set(elements(status, datatype));
    Ok(())
}

/// The bytes that the first `count` basic elements of a datatype have.
fn bytes_of_elements(datatype: &Datatype, count: u64) -> u64 {
    let signature = datatype.layout().signature();
    let (elements, bytes) = (signature.elements(), signature.bytes());
    if elements == 0 {
        return 0;
    }
    let rest = count % elements;
    // The number of elements grows with the bytes: the fewest bytes that hold them.
    let (mut low, mut high) = (0, bytes);
    while low < high {
        let middle = low.midpoint(high);
        if signature.elements_in(middle).0 >= rest { high = middle } else { low = middle + 1 }
    }
    count / elements * bytes + low
}

/// MPI_Status_set_elements.
pub fn status_set_elements(
    _call: &Call,
    status: &mut StatusRecord,
    datatype: &Arc<Datatype>,
    count: i64,
) -> Result<()> {
    status.set_size_bytes(bytes_of_elements(datatype, count as u64));
    Ok(())
}

/// MPI_Status_set_elements_x.
pub fn status_set_elements_x(
    call: &Call,
    status: &mut StatusRecord,
    datatype: &Arc<Datatype>,
    count: i64,
) -> Result<()> {
    status_set_elements(call, status, datatype, count)
}

/// MPI_Status_set_cancelled.
pub fn status_set_cancelled(_call: &Call, status: &mut StatusRecord, flag: bool) -> Result<()> {
    status.set_cancelled(flag);
    Ok(())
}

/// MPI_Test_cancelled.
pub fn test_cancelled(_call: &Call, status: &StatusRecord, flag: Out<bool>) -> Result<()> {
    flag.set(status.cancelled());
    Ok(())
}

/// MPI_Status_get_source.
pub fn status_get_source(_call: &Call, status: &StatusRecord, source: Out<i32>) -> Result<()> {
    source.set(status.source);
    Ok(())
}

/// MPI_Status_get_tag.
pub fn status_get_tag(_call: &Call, status: &StatusRecord, tag: Out<i32>) -> Result<()> {
    tag.set(status.tag);
    Ok(())
}

/// MPI_Status_get_error.
pub fn status_get_error(_call: &Call, status: &StatusRecord, error: Out<i32>) -> Result<()> {
    error.set(status.error);
    Ok(())
}

/// MPI_Status_set_source.
pub fn status_set_source(_call: &Call, status: &mut StatusRecord, source: i32) -> Result<()> {
    status.source = source;
    Ok(())
}

/// MPI_Status_set_tag.
pub fn status_set_tag(_call: &Call, status: &mut StatusRecord, tag: i32) -> Result<()> {
    status.tag = tag;
    Ok(())
}

/// MPI_Status_set_error.
pub fn status_set_error(_call: &Call, status: &mut StatusRecord, error: i32) -> Result<()> {
    status.error = error;
    Ok(())
}
