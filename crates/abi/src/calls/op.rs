//! Bodies of procedures: op.

use super::prelude::*;

/// MPI_Op_commutative.
pub fn op_commutative(call: &Call, op: &Arc<Op>, commute: Out<bool>) -> Result<()> {
    let _ = (op, commute);
    Err(call.missing())
}

/// MPI_Op_create.
pub fn op_create(
    call: &Call,
    user_fn: Function<callbacks::MPI_User_function>,
    commute: bool,
    op: OutHandle<Op>,
) -> Result<()> {
    let _ = (user_fn, commute, op);
    Err(call.missing())
}

/// MPI_Op_create_c.
pub fn op_create_large(
    call: &Call,
    user_fn: Function<callbacks::MPI_User_function_c>,
    commute: bool,
    op: OutHandle<Op>,
) -> Result<()> {
    let _ = (user_fn, commute, op);
    Err(call.missing())
}

/// MPI_Op_free.
pub fn op_free(call: &Call, op: InOutHandle<Op>) -> Result<()> {
    let _ = op;
    Err(call.missing())
}

/// MPI_Reduce_local.
pub fn reduce_local(
    call: &Call,
    inbuf: Address,
    inoutbuf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    op: &Arc<Op>,
) -> Result<()> {
    let _ = (inbuf, inoutbuf, count, datatype, op);
    Err(call.missing())
}
