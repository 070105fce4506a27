//! Bodies of procedures: reduction operations (MPI 5.0, section 6.9).

use super::prelude::*;
use parnass_base::UserAddress;

/// MPI_Op_commutative.
pub fn op_commutative(_call: &Call, op: &Arc<Op>, commute: Out<bool>) -> Result<()> {
    commute.set(op.is_commutative());
    Ok(())
}

/// Calls a function of the program with the handle of a datatype. A datatype whose handle the program has freed while an
/// operation uses it gets one for the call.
pub(crate) fn with_handle(datatype: &Arc<Datatype>, function: impl FnOnce(usize)) {
    if let Some(handle) = datatype.predefined().or_else(|| Datatype::table().handle_of(datatype)) {
        return function(handle);
    }
    match Datatype::table().insert(datatype.clone()) {
        Ok(handle) => {
            function(handle);
            if let Some(held) = Datatype::table().find(handle) {
                Datatype::table().release(held);
            }
        }
        Err(_) => function(MPI_DATATYPE_NULL),
    }
}

/// MPI_Op_create.
pub fn op_create(
    _call: &Call,
    user_fn: Function<callbacks::MPI_User_function>,
    commute: bool,
    op: OutHandle<Op>,
) -> Result<()> {
    let function = user_fn.required("user_fn")?;
    let combine = move |input: UserAddress, inout: UserAddress, count: u64, datatype: &Arc<Datatype>| {
        with_handle(datatype, |mut handle| {
            let (mut done, extent) = (0, datatype.layout().extent());
            // The function counts by int, so a longer reduction takes several calls.
            while done < count {
                let mut length = (count - done).min(i32::MAX as u64) as i32;
                let bytes = extent.wrapping_mul(done as i64);
                let (input, inout) = (input.offset(bytes).as_ptr(), inout.offset(bytes).as_ptr());
                done += length as u64;
                // SAFETY: the program's function, called as the standard says: two buffers of `length` elements, its
                // own copies of the length and the handle.
                unsafe { function(input.cast(), inout.cast(), &mut length, &mut handle) };
            }
        });
    };
    op.set(Op::user(Box::new(combine), commute))
}

/// MPI_Op_create_c.
pub fn op_create_large(
    _call: &Call,
    user_fn: Function<callbacks::MPI_User_function_c>,
    commute: bool,
    op: OutHandle<Op>,
) -> Result<()> {
    let function = user_fn.required("user_fn")?;
    let combine = move |input: UserAddress, inout: UserAddress, count: u64, datatype: &Arc<Datatype>| {
        with_handle(datatype, |mut handle| {
            let mut length = count as i64;
            // SAFETY: as in `op_create`.
            unsafe { function(input.as_ptr().cast(), inout.as_ptr().cast(), &mut length, &mut handle) };
        });
    };
    op.set(Op::user(Box::new(combine), commute))
}

/// MPI_Op_free.
pub fn op_free(_call: &Call, op: InOutHandle<Op>) -> Result<()> {
    op.get().require_mortal()?;
    op.release();
    Ok(())
}

/// MPI_Reduce_local.
pub fn reduce_local(
    _call: &Call,
    inbuf: Address,
    inoutbuf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    op: &Arc<Op>,
) -> Result<()> {
    buffer(inbuf, count, datatype, "inbuf")?;
    buffer(inoutbuf, count, datatype, "inoutbuf")?;
    op.reduce_local(datatype, inbuf.user(), inoutbuf.user(), count as u64)
}
