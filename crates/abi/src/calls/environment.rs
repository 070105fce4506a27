//! Bodies of procedures: environment.

use super::prelude::*;
use parnass_base::{PAGE, UserAddress};
use parnass_mpi::environment::{self, Placement};
use parnass_mpi::rma::LentBlock;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where memory of MPI_Alloc_mem comes from.
enum Source {
    /// The C library.
    Library,
    /// The job's memory, where other processes reach it.
    Lent(LentBlock),
}

/// What MPI_Alloc_mem has given out, by its first address, so that MPI_Free_mem of anything else is an error and no crash.
fn allocations() -> MutexGuard<'static, BTreeMap<usize, Source>> {
    static ALLOCATIONS: Mutex<BTreeMap<usize, Source>> = Mutex::new(BTreeMap::new());
    ALLOCATIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// By which other processes map this memory, if it is part of what MPI_Alloc_mem has given out and they can; or else 0.
pub(super) fn place_of(base: UserAddress, size: i64) -> u64 {
    match allocations().range(..=base.value()).next_back() {
        Some((_, Source::Lent(block))) => block.place_of(base, size.max(0) as u64).unwrap_or(0),
        _ => 0,
    }
}

/// Alignment in bytes: a cache line; a huge page for what can use some.
fn alignment(size: usize) -> usize {
    const CACHE_LINE: usize = 64;
    const HUGE_PAGE: usize = 2 << 20;
    if size >= 2 * HUGE_PAGE { HUGE_PAGE } else { CACHE_LINE }
}

/// MPI_Alloc_mem.
pub fn alloc_mem(call: &Call, size: i64, info: Option<&Arc<Info>>, baseptr: Out<usize>) -> Result<()> {
    let size = usize::try_from(size)
        .map_err(|_| Error::new(MPI_ERR_ARG, format!("size is {size}; it must be 0 or more bytes")))?;
    let hints = super::info::copy_of(info);
    let wanted = hints.value(b"mpi_minimum_memory_alignment").and_then(|text| {
        std::str::from_utf8(text).ok()?.trim().parse::<usize>().ok().filter(|wanted| wanted.is_power_of_two())
    });
    if wanted.is_none_or(|wanted| wanted <= PAGE)
        && let Some(block) = call.process().lend(size)
    {
        let base = block.address().value();
        allocations().insert(base, Source::Lent(block));
        baseptr.set(base);
        return Ok(());
    }
    let alignment = alignment(size).max(wanted.unwrap_or(1));
    let mut base = std::ptr::null_mut();
    // SAFETY: `base` is a place for a pointer; the alignment is a power of two and a multiple of a pointer's size.
    let failed = unsafe { libc::posix_memalign(&mut base, alignment, size.max(1)) };
    if failed != 0 {
        return Err(Error::new(
            MPI_ERR_NO_MEM,
            format!("{size} bytes of memory could not be had; free some memory, or ask for less"),
        ));
    }
    let base = base.expose_provenance();
    allocations().insert(base, Source::Library);
    baseptr.set(base);
    Ok(())
}

/// MPI_Free_mem.
pub fn free_mem(_call: &Call, base: Address) -> Result<()> {
    if base.value() == 0 {
        return Ok(());
    }
    match allocations().remove(&base.value()) {
        // SAFETY: it came from `posix_memalign` and was not freed since, as the table of allocations says.
        Some(Source::Library) => unsafe { libc::free(base.user().as_ptr().cast()) },
        Some(Source::Lent(block)) => drop(block),
        None => {
            return Err(Error::new(
                MPI_ERR_BASE,
                format!(
                    "base is {:#x}, which MPI_Alloc_mem has not returned, or which was freed before",
                    base.value()
                ),
            ));
        }
    }
    Ok(())
}

/// MPI_Get_hw_resource_info.
pub fn get_hw_resource_info(_call: &Call, hw_info: OutHandle<Info>) -> Result<()> {
    super::info::give_info(Placement::of_this_process().resource_info(), &hw_info)
}

/// MPI_Get_library_version.
pub fn get_library_version(_call: &Call, version: StringOut) -> Result<()> {
    version.set(environment::library_version().as_bytes());
    Ok(())
}

/// MPI_Get_processor_name.
pub fn get_processor_name(call: &Call, name: StringOut) -> Result<()> {
    match call.process_if_running() {
        Some(process) => name.set(process.host_name().as_bytes()),
        None => name.set(environment::machine_name().as_bytes()),
    }
    Ok(())
}

/// MPI_Get_version.
pub fn get_version(_call: &Call, version: Out<i32>, subversion: Out<i32>) -> Result<()> {
    version.set(environment::STANDARD_VERSION.0);
    subversion.set(environment::STANDARD_VERSION.1);
    Ok(())
}

/// MPI_Pcontrol: for profiling tools that put themselves in front of the library; nothing happens here.
pub fn pcontrol(_call: &Call) -> Result<()> {
    Ok(())
}

/// MPI_Aint_add.
pub fn aint_add(_call: &Call, base: i64, disp: i64) -> i64 {
    base.wrapping_add(disp)
}

/// MPI_Aint_diff.
pub fn aint_diff(_call: &Call, addr1: i64, addr2: i64) -> i64 {
    addr1.wrapping_sub(addr2)
}

fn seconds(read: unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> i32) -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `read` is clock_gettime or clock_getres, which write the time to a place for one. The monotonic clock
    // is there on every system that this library runs on.
    unsafe { read(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// MPI_Wtick.
pub fn wtick(_call: &Call) -> f64 {
    seconds(libc::clock_getres)
}

/// MPI_Wtime: the same clock for all processes of a machine, so that MPI_WTIME_IS_GLOBAL is true.
pub fn wtime(_call: &Call) -> f64 {
    seconds(libc::clock_gettime)
}
