//! Bodies of procedures: environment.

use super::prelude::*;

/// MPI_Alloc_mem.
pub fn alloc_mem(call: &Call, size: i64, info: Option<&Arc<Info>>, baseptr: Out<usize>) -> Result<()> {
    let _ = (size, info, baseptr);
    Err(call.missing())
}

/// MPI_Free_mem.
pub fn free_mem(call: &Call, base: Address) -> Result<()> {
    let _ = base;
    Err(call.missing())
}

/// MPI_Get_hw_resource_info.
pub fn get_hw_resource_info(call: &Call, hw_info: OutHandle<Info>) -> Result<()> {
    let _ = hw_info;
    Err(call.missing())
}

/// MPI_Get_library_version.
pub fn get_library_version(call: &Call, version: StringOut) -> Result<()> {
    let _ = version;
    Err(call.missing())
}

/// MPI_Get_processor_name.
pub fn get_processor_name(call: &Call, name: StringOut) -> Result<()> {
    let _ = name;
    Err(call.missing())
}

/// MPI_Get_version.
pub fn get_version(call: &Call, version: Out<i32>, subversion: Out<i32>) -> Result<()> {
    let _ = (version, subversion);
    Err(call.missing())
}

/// MPI_Pcontrol.
pub fn pcontrol(call: &Call, level: i32) -> Result<()> {
    let _ = level;
    Err(call.missing())
}

/// MPI_Aint_add: addresses are numbers here.
pub fn aint_add(_call: &Call, base: i64, disp: i64) -> i64 {
    base.wrapping_add(disp)
}

/// MPI_Aint_diff.
pub fn aint_diff(_call: &Call, addr1: i64, addr2: i64) -> i64 {
    addr1.wrapping_sub(addr2)
}

/// MPI_Wtick.
pub fn wtick(_call: &Call) -> f64 {
    0.0 /* call.missing() */
}

/// MPI_Wtime.
pub fn wtime(_call: &Call) -> f64 {
    0.0 /* call.missing() */
}
