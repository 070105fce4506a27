//! One request, and statuses (MPI 5.0, sections 3.2.5, 3.7.3, 3.7.6, 3.8.4, 3.9 and 13.2). Lists of them: `requests.rs`.

use crate::arguments::{Function, IntOut, Out, OutHandle, RequestInOut, StatusOut, StatusRecord};
use crate::call::Call;
use crate::generated::callbacks;
use crate::objects::{Datatype, Request};
use parnass_mpi::constants::{MPI_ERR_REQUEST, MPI_SUCCESS, MPI_UNDEFINED};
use parnass_mpi::recovery::MPIX_ERR_PROC_FAILED_PENDING;
use parnass_mpi::request::{Ended, GeneralizedCallbacks, Status, complete};
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
pub(super) fn store_ended(place: StatusOut, ended: &Ended<'_>) {
    if !place.is_ignored() {
        store(place, &ended.status());
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

/// Whether the operation is under way all the same: a receive from anybody, one of whom is dead.
pub(super) fn goes_on(result: &Result<Status>) -> bool {
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
