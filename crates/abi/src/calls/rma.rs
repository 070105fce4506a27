//! Bodies of procedures: one-sided transfers (MPI 5.0, section 12.3).

use super::prelude::*;
use parnass_mpi::rma::Place;
use parnass_mpi::{Buffer, Status};

/// The request of an operation that was complete when its call returned.
fn give_complete(request: &OutHandle<Request>) -> Result<()> {
    request.set(Request::complete(None, Ok(Status::EMPTY)))
}

/// MPI_Put.
pub fn put(
    call: &Call,
    origin_addr: Address,
    origin_count: i64,
    origin_datatype: &Arc<Datatype>,
    target_rank: i32,
    target_disp: i64,
    target_count: i64,
    target_datatype: &Arc<Datatype>,
    win: &Arc<Window>,
) -> Result<()> {
    let origin = Buffer::new(origin_addr.user(), origin_count as u64, origin_datatype);
    win.put(call.process(), &origin, &place(target_rank, target_disp, target_count, target_datatype))
}

fn place(rank: i32, displacement: i64, count: i64, datatype: &Arc<Datatype>) -> Place<'_> {
    Place { rank, displacement, count: count as u64, datatype }
}

/// MPI_Get.
pub fn get(
    call: &Call,
    origin_addr: Address,
    origin_count: i64,
    origin_datatype: &Arc<Datatype>,
    target_rank: i32,
    target_disp: i64,
    target_count: i64,
    target_datatype: &Arc<Datatype>,
    win: &Arc<Window>,
) -> Result<()> {
    let origin = Buffer::new(origin_addr.user(), origin_count as u64, origin_datatype);
    win.get(call.process(), &origin, &place(target_rank, target_disp, target_count, target_datatype))
}

/// MPI_Rput.
pub fn rput(
    call: &Call,
    origin_addr: Address,
    origin_count: i64,
    origin_datatype: &Arc<Datatype>,
    target_rank: i32,
    target_disp: i64,
    target_count: i64,
    target_datatype: &Arc<Datatype>,
    win: &Arc<Window>,
    request: OutHandle<Request>,
) -> Result<()> {
    put(
        call,
        origin_addr,
        origin_count,
        origin_datatype,
        target_rank,
        target_disp,
        target_count,
        target_datatype,
        win,
    )?;
    give_complete(&request)
}

/// MPI_Rget.
pub fn rget(
    call: &Call,
    origin_addr: Address,
    origin_count: i64,
    origin_datatype: &Arc<Datatype>,
    target_rank: i32,
    target_disp: i64,
    target_count: i64,
    target_datatype: &Arc<Datatype>,
    win: &Arc<Window>,
    request: OutHandle<Request>,
) -> Result<()> {
    get(
        call,
        origin_addr,
        origin_count,
        origin_datatype,
        target_rank,
        target_disp,
        target_count,
        target_datatype,
        win,
    )?;
    give_complete(&request)
}

/// MPI_Accumulate.
pub fn accumulate(
    call: &Call,
    origin_addr: Address,
    origin_count: i64,
    origin_datatype: &Arc<Datatype>,
    target_rank: i32,
    target_disp: i64,
    target_count: i64,
    target_datatype: &Arc<Datatype>,
    op: &Arc<Op>,
    win: &Arc<Window>,
) -> Result<()> {
    let origin = Buffer::new(origin_addr.user(), origin_count as u64, origin_datatype);
    let place = place(target_rank, target_disp, target_count, target_datatype);
    win.accumulate(call.process(), &origin, None, &place, op)
}

/// MPI_Raccumulate.
pub fn raccumulate(
    call: &Call,
    origin_addr: Address,
    origin_count: i64,
    origin_datatype: &Arc<Datatype>,
    target_rank: i32,
    target_disp: i64,
    target_count: i64,
    target_datatype: &Arc<Datatype>,
    op: &Arc<Op>,
    win: &Arc<Window>,
    request: OutHandle<Request>,
) -> Result<()> {
    accumulate(
        call,
        origin_addr,
        origin_count,
        origin_datatype,
        target_rank,
        target_disp,
        target_count,
        target_datatype,
        op,
        win,
    )?;
    give_complete(&request)
}

/// MPI_Get_accumulate. With MPI_NO_OP the origin arguments are not looked at.
pub fn get_accumulate(
    call: &Call,
    origin_addr: Address,
    origin_count: i64,
    origin_datatype: Handle<Datatype>,
    result_addr: Address,
    result_count: i64,
    result_datatype: &Arc<Datatype>,
    target_rank: i32,
    target_disp: i64,
    target_count: i64,
    target_datatype: &Arc<Datatype>,
    op: &Arc<Op>,
    win: &Arc<Window>,
) -> Result<()> {
    let result = Buffer::new(result_addr.user(), result_count as u64, result_datatype);
    let place = place(target_rank, target_disp, target_count, target_datatype);
    if op.predefined() == Some(MPI_NO_OP) {
        let nothing = Buffer::new(origin_addr.user(), 0, target_datatype);
        return win.accumulate(call.process(), &nothing, Some(&result), &place, op);
    }
    let origin_datatype = origin_datatype.committed("origin_datatype")?;
    buffer(origin_addr, origin_count, &origin_datatype, "origin_addr")?;
    let origin = Buffer::new(origin_addr.user(), origin_count as u64, &origin_datatype);
    win.accumulate(call.process(), &origin, Some(&result), &place, op)
}

/// MPI_Rget_accumulate.
pub fn rget_accumulate(
    call: &Call,
    origin_addr: Address,
    origin_count: i64,
    origin_datatype: Handle<Datatype>,
    result_addr: Address,
    result_count: i64,
    result_datatype: &Arc<Datatype>,
    target_rank: i32,
    target_disp: i64,
    target_count: i64,
    target_datatype: &Arc<Datatype>,
    op: &Arc<Op>,
    win: &Arc<Window>,
    request: OutHandle<Request>,
) -> Result<()> {
    get_accumulate(
        call,
        origin_addr,
        origin_count,
        origin_datatype,
        result_addr,
        result_count,
        result_datatype,
        target_rank,
        target_disp,
        target_count,
        target_datatype,
        op,
        win,
    )?;
    give_complete(&request)
}

/// MPI_Fetch_and_op.
pub fn fetch_and_op(
    call: &Call,
    origin_addr: Address,
    result_addr: Address,
    datatype: &Arc<Datatype>,
    target_rank: i32,
    target_disp: i64,
    op: &Arc<Op>,
    win: &Arc<Window>,
) -> Result<()> {
    if target_rank != MPI_PROC_NULL {
        buffer(result_addr, 1, datatype, "result_addr")?;
        if op.predefined() != Some(MPI_NO_OP) {
            buffer(origin_addr, 1, datatype, "origin_addr")?;
        }
    }
    let place = place(target_rank, target_disp, 1, datatype);
    win.fetch_and_op(call.process(), origin_addr.user(), result_addr.user(), &place, op)
}

/// MPI_Compare_and_swap.
pub fn compare_and_swap(
    call: &Call,
    origin_addr: Address,
    compare_addr: Address,
    result_addr: Address,
    datatype: &Arc<Datatype>,
    target_rank: i32,
    target_disp: i64,
    win: &Arc<Window>,
) -> Result<()> {
    if target_rank != MPI_PROC_NULL {
        for (address, name) in
            [(origin_addr, "origin_addr"), (compare_addr, "compare_addr"), (result_addr, "result_addr")]
        {
            buffer(address, 1, datatype, name)?;
        }
    }
    let place = place(target_rank, target_disp, 1, datatype);
    win.compare_and_swap(call.process(), origin_addr.user(), compare_addr.user(), result_addr.user(), &place)
}
