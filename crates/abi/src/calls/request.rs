//! Bodies of procedures: request.

use super::prelude::*;

/// MPI_Cancel.
pub fn cancel(call: &Call, request: &Arc<Request>) -> Result<()> {
    let _ = request;
    Err(call.missing())
}

/// MPI_Get_count.
pub fn get_count(call: &Call, status: &StatusRecord, datatype: &Arc<Datatype>, count: IntOut) -> Result<()> {
    let _ = (status, datatype, count);
    Err(call.missing())
}

/// MPI_Get_elements.
pub fn get_elements(
    call: &Call,
    status: &StatusRecord,
    datatype: &Arc<Datatype>,
    count: IntOut,
) -> Result<()> {
    let _ = (status, datatype, count);
    Err(call.missing())
}

/// MPI_Get_elements_x.
pub fn get_elements_x(
    call: &Call,
    status: &StatusRecord,
    datatype: &Arc<Datatype>,
    count: Out<i64>,
) -> Result<()> {
    let _ = (status, datatype, count);
    Err(call.missing())
}

/// MPI_Grequest_complete.
pub fn grequest_complete(call: &Call, request: &Arc<Request>) -> Result<()> {
    let _ = request;
    Err(call.missing())
}

/// MPI_Grequest_start.
pub fn grequest_start(
    call: &Call,
    query_fn: Function<callbacks::MPI_Grequest_query_function>,
    free_fn: Function<callbacks::MPI_Grequest_free_function>,
    cancel_fn: Function<callbacks::MPI_Grequest_cancel_function>,
    extra_state: usize,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (query_fn, free_fn, cancel_fn, extra_state, request);
    Err(call.missing())
}

/// MPI_Request_free.
pub fn request_free(call: &Call, request: &mut RequestInOut) -> Result<()> {
    let _ = request;
    Err(call.missing())
}

/// MPI_Request_get_status.
pub fn request_get_status(
    call: &Call,
    request: Option<&Arc<Request>>,
    flag: Out<bool>,
    status: StatusOut,
) -> Result<()> {
    let _ = (request, flag, status);
    Err(call.missing())
}

/// MPI_Request_get_status_all.
pub fn request_get_status_all(
    call: &Call,
    count: i64,
    array_of_requests: &mut Requests,
    flag: Out<bool>,
    array_of_statuses: StatusesOut,
) -> Result<()> {
    let _ = (count, array_of_requests, flag, array_of_statuses);
    Err(call.missing())
}

/// MPI_Request_get_status_any.
pub fn request_get_status_any(
    call: &Call,
    count: i64,
    array_of_requests: &mut Requests,
    indx: Out<i32>,
    flag: Out<bool>,
    status: StatusOut,
) -> Result<()> {
    let _ = (count, array_of_requests, indx, flag, status);
    Err(call.missing())
}

/// MPI_Request_get_status_some.
pub fn request_get_status_some(
    call: &Call,
    incount: i64,
    array_of_requests: &mut Requests,
    outcount: Out<i32>,
    array_of_indices: &mut OutSlice<'_, i32>,
    array_of_statuses: StatusesOut,
) -> Result<()> {
    let _ = (incount, array_of_requests, outcount, array_of_indices, array_of_statuses);
    Err(call.missing())
}

/// MPI_Start.
pub fn start(call: &Call, request: &mut RequestInOut) -> Result<()> {
    let _ = request;
    Err(call.missing())
}

/// MPI_Startall.
pub fn startall(call: &Call, count: i64, array_of_requests: &mut Requests) -> Result<()> {
    let _ = (count, array_of_requests);
    Err(call.missing())
}

/// MPI_Status_get_error.
pub fn status_get_error(call: &Call, status: &StatusRecord, error: Out<i32>) -> Result<()> {
    let _ = (status, error);
    Err(call.missing())
}

/// MPI_Status_get_source.
pub fn status_get_source(call: &Call, status: &StatusRecord, source: Out<i32>) -> Result<()> {
    let _ = (status, source);
    Err(call.missing())
}

/// MPI_Status_get_tag.
pub fn status_get_tag(call: &Call, status: &StatusRecord, tag: Out<i32>) -> Result<()> {
    let _ = (status, tag);
    Err(call.missing())
}

/// MPI_Status_set_cancelled.
pub fn status_set_cancelled(call: &Call, status: &mut StatusRecord, flag: bool) -> Result<()> {
    let _ = (status, flag);
    Err(call.missing())
}

/// MPI_Status_set_elements.
pub fn status_set_elements(
    call: &Call,
    status: &mut StatusRecord,
    datatype: &Arc<Datatype>,
    count: i64,
) -> Result<()> {
    let _ = (status, datatype, count);
    Err(call.missing())
}

/// MPI_Status_set_elements_x.
pub fn status_set_elements_x(
    call: &Call,
    status: &mut StatusRecord,
    datatype: &Arc<Datatype>,
    count: i64,
) -> Result<()> {
    let _ = (status, datatype, count);
    Err(call.missing())
}

/// MPI_Status_set_error.
pub fn status_set_error(call: &Call, status: &mut StatusRecord, error: i32) -> Result<()> {
    let _ = (status, error);
    Err(call.missing())
}

/// MPI_Status_set_source.
pub fn status_set_source(call: &Call, status: &mut StatusRecord, source: i32) -> Result<()> {
    let _ = (status, source);
    Err(call.missing())
}

/// MPI_Status_set_tag.
pub fn status_set_tag(call: &Call, status: &mut StatusRecord, tag: i32) -> Result<()> {
    let _ = (status, tag);
    Err(call.missing())
}

/// MPI_Test.
pub fn test(call: &Call, request: &mut RequestInOut, flag: Out<bool>, status: StatusOut) -> Result<()> {
    let _ = (request, flag, status);
    Err(call.missing())
}

/// MPI_Test_cancelled.
pub fn test_cancelled(call: &Call, status: &StatusRecord, flag: Out<bool>) -> Result<()> {
    let _ = (status, flag);
    Err(call.missing())
}

/// MPI_Testall.
pub fn testall(
    call: &Call,
    count: i64,
    array_of_requests: &mut Requests,
    flag: Out<bool>,
    array_of_statuses: StatusesOut,
) -> Result<()> {
    let _ = (count, array_of_requests, flag, array_of_statuses);
    Err(call.missing())
}

/// MPI_Testany.
pub fn testany(
    call: &Call,
    count: i64,
    array_of_requests: &mut Requests,
    indx: Out<i32>,
    flag: Out<bool>,
    status: StatusOut,
) -> Result<()> {
    let _ = (count, array_of_requests, indx, flag, status);
    Err(call.missing())
}

/// MPI_Testsome.
pub fn testsome(
    call: &Call,
    incount: i64,
    array_of_requests: &mut Requests,
    outcount: Out<i32>,
    array_of_indices: &mut OutSlice<'_, i32>,
    array_of_statuses: StatusesOut,
) -> Result<()> {
    let _ = (incount, array_of_requests, outcount, array_of_indices, array_of_statuses);
    Err(call.missing())
}

/// MPI_Wait.
pub fn wait(call: &Call, request: &mut RequestInOut, status: StatusOut) -> Result<()> {
    let _ = (request, status);
    Err(call.missing())
}

/// MPI_Waitall.
pub fn waitall(
    call: &Call,
    count: i64,
    array_of_requests: &mut Requests,
    array_of_statuses: StatusesOut,
) -> Result<()> {
    let _ = (count, array_of_requests, array_of_statuses);
    Err(call.missing())
}

/// MPI_Waitany.
pub fn waitany(
    call: &Call,
    count: i64,
    array_of_requests: &mut Requests,
    indx: Out<i32>,
    status: StatusOut,
) -> Result<()> {
    let _ = (count, array_of_requests, indx, status);
    Err(call.missing())
}

/// MPI_Waitsome.
pub fn waitsome(
    call: &Call,
    incount: i64,
    array_of_requests: &mut Requests,
    outcount: Out<i32>,
    array_of_indices: &mut OutSlice<'_, i32>,
    array_of_statuses: StatusesOut,
) -> Result<()> {
    let _ = (incount, array_of_requests, outcount, array_of_indices, array_of_statuses);
    Err(call.missing())
}
