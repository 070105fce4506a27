//! Bodies of procedures: info.

use super::prelude::*;

/// MPI_Info_create.
pub fn info_create(call: &Call, info: OutHandle<Info>) -> Result<()> {
    let _ = info;
    Err(call.missing())
}

/// MPI_Info_create_env.
pub fn info_create_env(call: &Call, argc: i32, argv: *mut c_void, info: OutHandle<Info>) -> Result<()> {
    let _ = (argc, argv, info);
    Err(call.missing())
}

/// MPI_Info_delete.
pub fn info_delete(call: &Call, info: &Arc<Info>, key: &[u8]) -> Result<()> {
    let _ = (info, key);
    Err(call.missing())
}

/// MPI_Info_dup.
pub fn info_dup(call: &Call, info: &Arc<Info>, newinfo: OutHandle<Info>) -> Result<()> {
    let _ = (info, newinfo);
    Err(call.missing())
}

/// MPI_Info_free.
pub fn info_free(call: &Call, info: InOutHandle<Info>) -> Result<()> {
    let _ = info;
    Err(call.missing())
}

/// MPI_Info_get.
pub fn info_get(
    call: &Call,
    info: &Arc<Info>,
    key: &[u8],
    valuelen: i32,
    value: StringOut,
    flag: Out<bool>,
) -> Result<()> {
    let _ = (info, key, valuelen, value, flag);
    Err(call.missing())
}

/// MPI_Info_get_nkeys.
pub fn info_get_nkeys(call: &Call, info: &Arc<Info>, nkeys: Out<i32>) -> Result<()> {
    let _ = (info, nkeys);
    Err(call.missing())
}

/// MPI_Info_get_nthkey.
pub fn info_get_nthkey(call: &Call, info: &Arc<Info>, n: i32, key: StringOut) -> Result<()> {
    let _ = (info, n, key);
    Err(call.missing())
}

/// MPI_Info_get_string.
pub fn info_get_string(
    call: &Call,
    info: &Arc<Info>,
    key: &[u8],
    buflen: InOut<i32>,
    value: StringOut,
    flag: Out<bool>,
) -> Result<()> {
    let _ = (info, key, buflen, value, flag);
    Err(call.missing())
}

/// MPI_Info_get_valuelen.
pub fn info_get_valuelen(
    call: &Call,
    info: &Arc<Info>,
    key: &[u8],
    valuelen: Out<i32>,
    flag: Out<bool>,
) -> Result<()> {
    let _ = (info, key, valuelen, flag);
    Err(call.missing())
}

/// MPI_Info_set.
pub fn info_set(call: &Call, info: &Arc<Info>, key: &[u8], value: &[u8]) -> Result<()> {
    let _ = (info, key, value);
    Err(call.missing())
}
