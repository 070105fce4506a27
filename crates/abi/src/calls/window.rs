//! Bodies of procedures: windows and their synchronisation (MPI 5.0, sections 12.2 and 12.5).

use super::info::{copy_of, give_info};
use super::prelude::*;
use parnass_base::UserAddress;
use parnass_mpi::rma::{Memory, Setting};

/// The program's handle of a window, for its callbacks.
pub(super) fn handle_of(win: &Arc<Window>) -> usize {
    Window::table().handle_of(win).unwrap_or(MPI_WIN_NULL)
}

fn make(
    call: &Call,
    memory: Memory,
    unit: i64,
    info: Option<&Arc<Info>>,
    comm: &Arc<Communicator>,
    win: &OutHandle<Window>,
) -> Result<usize> {
    let hints = copy_of(info);
    let made = Window::make(call.process(), comm, &Setting { memory, unit, hints: &hints })?;
    let base = made.figures().base;
    win.set(made)?;
    Ok(base)
}

/// MPI_Win_allocate.
pub fn win_allocate(
    call: &Call,
    size: i64,
    disp_unit: i64,
    info: Option<&Arc<Info>>,
    comm: &Arc<Communicator>,
    baseptr: Out<usize>,
    win: OutHandle<Window>,
) -> Result<()> {
    baseptr.set(make(call, Memory::Allocate { size }, disp_unit, info, comm, &win)?);
    Ok(())
}

/// MPI_Win_allocate_shared.
pub fn win_allocate_shared(
    call: &Call,
    size: i64,
    disp_unit: i64,
    info: Option<&Arc<Info>>,
    comm: &Arc<Communicator>,
    baseptr: Out<usize>,
    win: OutHandle<Window>,
) -> Result<()> {
    baseptr.set(make(call, Memory::Share { size }, disp_unit, info, comm, &win)?);
    Ok(())
}

/// MPI_Win_attach.
pub fn win_attach(_call: &Call, win: &Arc<Window>, base: Address, size: i64) -> Result<()> {
    let size = u64::try_from(size)
        .map_err(|_| Error::new(MPI_ERR_SIZE, format!("size is {size}; it must be 0 or more")))?;
    win.attach(base.user(), size)
}

/// MPI_Win_complete.
pub fn win_complete(call: &Call, win: &Arc<Window>) -> Result<()> {
    win.complete(call.process())
}

/// MPI_Win_create.
pub fn win_create(
    call: &Call,
    base: Address,
    size: i64,
    disp_unit: i64,
    info: Option<&Arc<Info>>,
    comm: &Arc<Communicator>,
    win: OutHandle<Window>,
) -> Result<()> {
    let place = super::environment::place_of(base.user(), size);
    make(call, Memory::Own { base: base.user(), size, place }, disp_unit, info, comm, &win).map(drop)
}

/// MPI_Win_create_dynamic.
pub fn win_create_dynamic(
    call: &Call,
    info: Option<&Arc<Info>>,
    comm: &Arc<Communicator>,
    win: OutHandle<Window>,
) -> Result<()> {
    make(call, Memory::Dynamic, 1, info, comm, &win).map(drop)
}

/// MPI_Win_detach.
pub fn win_detach(_call: &Call, win: &Arc<Window>, base: Address) -> Result<()> {
    win.detach(base.user())
}

/// MPI_Win_fence.
pub fn win_fence(call: &Call, assert: i32, win: &Arc<Window>) -> Result<()> {
    win.fence(call.process(), assert)
}

/// MPI_Win_flush.
#[inline(always)]
pub fn win_flush(call: &Call, rank: i32, win: &Arc<Window>) -> Result<()> {
    win.flush(call.process(), rank)
}

/// MPI_Win_flush_all.
pub fn win_flush_all(call: &Call, win: &Arc<Window>) -> Result<()> {
    win.flush_all(call.process())
}

/// MPI_Win_flush_local.
pub fn win_flush_local(call: &Call, rank: i32, win: &Arc<Window>) -> Result<()> {
    win_flush(call, rank, win)
}

/// MPI_Win_flush_local_all.
pub fn win_flush_local_all(call: &Call, win: &Arc<Window>) -> Result<()> {
    win_flush_all(call, win)
}

/// MPI_Win_free.
pub fn win_free(call: &Call, win: InOutHandle<Window>) -> Result<()> {
    let window = Arc::clone(win.get());
    let handle = win.handle();
    call.raise_with_window(&window, handle);
    window.attributes().delete_all(handle)?;
    window.free(call.process())?;
    win.release();
    Ok(())
}

/// MPI_Win_get_group.
pub fn win_get_group(_call: &Call, win: &Arc<Window>, group: OutHandle<Group>) -> Result<()> {
    group.set(Arc::new(win.group().clone()))
}

/// MPI_Win_get_info.
pub fn win_get_info(_call: &Call, win: &Arc<Window>, info_used: OutHandle<Info>) -> Result<()> {
    give_info(win.info(), &info_used)
}

/// MPI_Win_get_name.
pub fn win_get_name(_call: &Call, win: Option<&Arc<Window>>, win_name: StringOut) -> Result<()> {
    match win {
        Some(win) => win_name.set(&win.name()),
        None => win_name.set(b"MPI_WIN_NULL"),
    }
    Ok(())
}

/// MPI_Win_lock.
pub fn win_lock(call: &Call, lock_type: i32, rank: i32, assert: i32, win: &Arc<Window>) -> Result<()> {
    win.lock(call.process(), lock_type, rank, assert)
}

/// MPI_Win_lock_all.
pub fn win_lock_all(call: &Call, assert: i32, win: &Arc<Window>) -> Result<()> {
    win.lock_all(call.process(), assert)
}

/// MPI_Win_post.
pub fn win_post(call: &Call, group: &Arc<Group>, assert: i32, win: &Arc<Window>) -> Result<()> {
    win.post(call.process(), group, assert)
}

/// MPI_Win_set_info.
pub fn win_set_info(_call: &Call, win: &Arc<Window>, info: Option<&Arc<Info>>) -> Result<()> {
    win.set_info(&copy_of(info));
    Ok(())
}

/// MPI_Win_set_name.
pub fn win_set_name(_call: &Call, win: &Arc<Window>, win_name: &[u8]) -> Result<()> {
    win.set_name(win_name)
}

/// MPI_Win_shared_query.
pub fn win_shared_query(
    _call: &Call,
    win: &Arc<Window>,
    rank: i32,
    size: Out<i64>,
    disp_unit: IntOut,
    baseptr: Out<usize>,
) -> Result<()> {
    let (bytes, unit, base): (u64, i64, UserAddress) = win.shared_query(rank)?;
    disp_unit.set_checked(unit, "disp_unit")?;
    size.set(bytes as i64);
    baseptr.set(base.value());
    Ok(())
}

/// MPI_Win_start.
pub fn win_start(call: &Call, group: &Arc<Group>, assert: i32, win: &Arc<Window>) -> Result<()> {
    win.start(call.process(), group, assert)
}

/// MPI_Win_sync.
pub fn win_sync(_call: &Call, win: &Arc<Window>) -> Result<()> {
    win.sync();
    Ok(())
}

/// MPI_Win_test.
pub fn win_test(call: &Call, win: &Arc<Window>, flag: Out<bool>) -> Result<()> {
    flag.set(win.test(call.process())?);
    Ok(())
}

/// MPI_Win_unlock.
pub fn win_unlock(call: &Call, rank: i32, win: &Arc<Window>) -> Result<()> {
    win.unlock(call.process(), rank)
}

/// MPI_Win_unlock_all.
pub fn win_unlock_all(call: &Call, win: &Arc<Window>) -> Result<()> {
    win.unlock_all(call.process())
}

/// MPI_Win_wait.
pub fn win_wait(call: &Call, win: &Arc<Window>) -> Result<()> {
    win.wait(call.process())
}
