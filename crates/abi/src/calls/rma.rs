//! Bodies of procedures: one-sided transfers (MPI 5.0, section 12.3).

use super::prelude::*;
use parnass_mpi::Status;
use parnass_mpi::rma::Place;

/// Who tells that an operation is complete. It is when its call returns.
pub enum Completion {
    /// The call, and what synchronises the window.
    Call,
    /// A request too.
    Request(OutHandle<Request>),
}

impl Completion {
    #[inline(always)]
    fn tell(self) -> Result<()> {
        match self {
            Completion::Call => Ok(()),
            Completion::Request(request) => request.set(Request::complete(None, Ok(Status::EMPTY))),
        }
    }
}

/// MPI_Put and MPI_Rput.
#[inline(always)]
pub fn put(
    call: &Call,
    completion: Completion,
    origin_addr: Address,
    origin_count: i64,
    origin_datatype: &Arc<Datatype>,
    target_rank: i32,
    target_disp: i64,
    target_count: i64,
    target_datatype: &Arc<Datatype>,
    win: &Arc<Window>,
) -> Result<()> {
    let origin = origin_addr.data(origin_count, origin_datatype);
    win.put(call.process(), &origin, &place(target_rank, target_disp, target_count, target_datatype))?;
    completion.tell()
}

#[inline(always)]
fn place(rank: i32, displacement: i64, count: i64, datatype: &Arc<Datatype>) -> Place<'_> {
    Place { rank, displacement, count: count as u64, datatype }
}

/// MPI_Get and MPI_Rget.
#[inline(always)]
pub fn get(
    call: &Call,
    completion: Completion,
    origin_addr: Address,
    origin_count: i64,
    origin_datatype: &Arc<Datatype>,
    target_rank: i32,
    target_disp: i64,
    target_count: i64,
    target_datatype: &Arc<Datatype>,
    win: &Arc<Window>,
) -> Result<()> {
    let origin = origin_addr.data(origin_count, origin_datatype);
    win.get(call.process(), &origin, &place(target_rank, target_disp, target_count, target_datatype))?;
    completion.tell()
}

/// MPI_Accumulate and MPI_Raccumulate.
#[inline(always)]
pub fn accumulate(
    call: &Call,
    completion: Completion,
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
    let origin = origin_addr.data(origin_count, origin_datatype);
    let place = place(target_rank, target_disp, target_count, target_datatype);
    win.accumulate(call.process(), &origin, None, &place, op)?;
    completion.tell()
}

/// MPI_Get_accumulate and MPI_Rget_accumulate. With MPI_NO_OP the origin arguments are not looked at.
pub fn get_accumulate(
    call: &Call,
    completion: Completion,
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
    let result = result_addr.data(result_count, result_datatype);
    let place = place(target_rank, target_disp, target_count, target_datatype);
    if op.predefined() == Some(MPI_NO_OP) {
        let nothing = origin_addr.data(0, target_datatype);
        win.accumulate(call.process(), &nothing, Some(&result), &place, op)?;
        return completion.tell();
    }
    let origin_datatype = origin_datatype.committed("origin_datatype")?;
    buffer(origin_addr, origin_count, &origin_datatype, "origin_addr")?;
    let origin = origin_addr.data(origin_count, &origin_datatype);
    win.accumulate(call.process(), &origin, Some(&result), &place, op)?;
    completion.tell()
}

/// MPI_Fetch_and_op.
#[inline(always)]
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
#[inline(always)]
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
