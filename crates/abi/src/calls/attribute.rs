//! Bodies of procedures: attribute.

use super::prelude::*;

/// MPI_Attr_delete.
pub fn attr_delete(call: &Call, comm: &Arc<Communicator>, keyval: i32) -> Result<()> {
    let _ = (comm, keyval);
    Err(call.missing())
}

/// MPI_Attr_get.
pub fn attr_get(
    call: &Call,
    comm: &Arc<Communicator>,
    keyval: i32,
    attribute_val: Out<usize>,
    flag: Out<bool>,
) -> Result<()> {
    let _ = (comm, keyval, attribute_val, flag);
    Err(call.missing())
}

/// MPI_Attr_put.
pub fn attr_put(call: &Call, comm: &Arc<Communicator>, keyval: i32, attribute_val: usize) -> Result<()> {
    let _ = (comm, keyval, attribute_val);
    Err(call.missing())
}

/// MPI_Comm_create_keyval.
pub fn comm_create_keyval(
    call: &Call,
    comm_copy_attr_fn: Function<callbacks::MPI_Comm_copy_attr_function>,
    comm_delete_attr_fn: Function<callbacks::MPI_Comm_delete_attr_function>,
    comm_keyval: Out<i32>,
    extra_state: usize,
) -> Result<()> {
    let _ = (comm_copy_attr_fn, comm_delete_attr_fn, comm_keyval, extra_state);
    Err(call.missing())
}

/// MPI_Comm_delete_attr.
pub fn comm_delete_attr(call: &Call, comm: &Arc<Communicator>, comm_keyval: i32) -> Result<()> {
    let _ = (comm, comm_keyval);
    Err(call.missing())
}

/// MPI_Comm_free_keyval.
pub fn comm_free_keyval(call: &Call, comm_keyval: InOut<i32>) -> Result<()> {
    let _ = comm_keyval;
    Err(call.missing())
}

/// MPI_Comm_get_attr.
pub fn comm_get_attr(
    call: &Call,
    comm: &Arc<Communicator>,
    comm_keyval: i32,
    attribute_val: Out<usize>,
    flag: Out<bool>,
) -> Result<()> {
    let _ = (comm, comm_keyval, attribute_val, flag);
    Err(call.missing())
}

/// MPI_Comm_set_attr.
pub fn comm_set_attr(
    call: &Call,
    comm: &Arc<Communicator>,
    comm_keyval: i32,
    attribute_val: usize,
) -> Result<()> {
    let _ = (comm, comm_keyval, attribute_val);
    Err(call.missing())
}

/// MPI_Keyval_create.
pub fn keyval_create(
    call: &Call,
    copy_fn: Function<callbacks::MPI_Copy_function>,
    delete_fn: Function<callbacks::MPI_Delete_function>,
    keyval: Out<i32>,
    extra_state: usize,
) -> Result<()> {
    let _ = (copy_fn, delete_fn, keyval, extra_state);
    Err(call.missing())
}

/// MPI_Keyval_free.
pub fn keyval_free(call: &Call, keyval: InOut<i32>) -> Result<()> {
    let _ = keyval;
    Err(call.missing())
}

/// MPI_Type_create_keyval.
pub fn type_create_keyval(
    call: &Call,
    type_copy_attr_fn: Function<callbacks::MPI_Type_copy_attr_function>,
    type_delete_attr_fn: Function<callbacks::MPI_Type_delete_attr_function>,
    type_keyval: Out<i32>,
    extra_state: usize,
) -> Result<()> {
    let _ = (type_copy_attr_fn, type_delete_attr_fn, type_keyval, extra_state);
    Err(call.missing())
}

/// MPI_Type_delete_attr.
pub fn type_delete_attr(call: &Call, datatype: &Arc<Datatype>, type_keyval: i32) -> Result<()> {
    let _ = (datatype, type_keyval);
    Err(call.missing())
}

/// MPI_Type_free_keyval.
pub fn type_free_keyval(call: &Call, type_keyval: InOut<i32>) -> Result<()> {
    let _ = type_keyval;
    Err(call.missing())
}

/// MPI_Type_get_attr.
pub fn type_get_attr(
    call: &Call,
    datatype: &Arc<Datatype>,
    type_keyval: i32,
    attribute_val: Out<usize>,
    flag: Out<bool>,
) -> Result<()> {
    let _ = (datatype, type_keyval, attribute_val, flag);
    Err(call.missing())
}

/// MPI_Type_set_attr.
pub fn type_set_attr(
    call: &Call,
    datatype: &Arc<Datatype>,
    type_keyval: i32,
    attribute_val: usize,
) -> Result<()> {
    let _ = (datatype, type_keyval, attribute_val);
    Err(call.missing())
}

/// MPI_Win_create_keyval.
pub fn win_create_keyval(
    call: &Call,
    win_copy_attr_fn: Function<callbacks::MPI_Win_copy_attr_function>,
    win_delete_attr_fn: Function<callbacks::MPI_Win_delete_attr_function>,
    win_keyval: Out<i32>,
    extra_state: usize,
) -> Result<()> {
    let _ = (win_copy_attr_fn, win_delete_attr_fn, win_keyval, extra_state);
    Err(call.missing())
}

/// MPI_Win_free_keyval.
pub fn win_free_keyval(call: &Call, win_keyval: InOut<i32>) -> Result<()> {
    let _ = win_keyval;
    Err(call.missing())
}
