//! The one process-wide state of the library: whether MPI is running, and its process.

use crate::objects::Process;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// What exists between MPI_Init and MPI_Finalize. Never freed: a call that is late may still look at it.
pub struct Running {
    pub process: Arc<Process>,
    /// The thread that called MPI_Init.
    pub main_thread: std::thread::ThreadId,
}

static RUNNING: AtomicPtr<Running> = AtomicPtr::new(std::ptr::null_mut());
static STAGE: AtomicU32 = AtomicU32::new(Stage::Before as u32);

/// Where a process is in the life of MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Stage {
    /// MPI_Init has not been called.
    Before,
    /// A thread is in MPI_Init.
    Starting,
    /// Between MPI_Init and MPI_Finalize.
    Running,
    /// A thread is in MPI_Finalize: callbacks may still call MPI.
    Finalizing,
    /// MPI_Finalize has returned.
    After,
}

/// Where the process is.
pub fn stage() -> Stage {
    const STAGES: [Stage; 5] =
        [Stage::Before, Stage::Starting, Stage::Running, Stage::Finalizing, Stage::After];
    STAGES[STAGE.load(Ordering::Acquire) as usize]
}

/// The running process, if there is one.
#[inline(always)]
pub fn running() -> Option<&'static Running> {
    let running = RUNNING.load(Ordering::Acquire);
    // SAFETY: null, or leaked by `start` (the Acquire pairs with its Release) and never freed.
    unsafe { running.as_ref() }
}

/// Claims the right to initialise; `false` when MPI was or is being initialised.
pub fn begin_start() -> bool {
    STAGE
        .compare_exchange(Stage::Before as u32, Stage::Starting as u32, Ordering::AcqRel, Ordering::Acquire)
        .is_ok()
}

/// Ends an initialisation that failed.
pub fn start_failed() {
    STAGE.store(Stage::Before as u32, Ordering::Release);
}

/// From here on MPI is running.
pub fn start(running: Running) -> &'static Running {
    let running: &'static mut Running = Box::leak(Box::new(running));
    let pointer: *mut Running = running;
    // Release pairs with the Acquire in `running`.
    RUNNING.store(pointer, Ordering::Release);
    STAGE.store(Stage::Running as u32, Ordering::Release);
    // SAFETY: leaked above; only shared references are made from here on.
    unsafe { &*pointer }
}

/// MPI_Finalize has begun; `false` when it had begun before.
pub fn begin_finalize() -> bool {
    STAGE
        .compare_exchange(
            Stage::Running as u32,
            Stage::Finalizing as u32,
            Ordering::AcqRel,
            Ordering::Acquire,
        )
        .is_ok()
}

/// MPI_Finalize is done.
pub fn finalized() {
    RUNNING.store(std::ptr::null_mut(), Ordering::Release);
    STAGE.store(Stage::After as u32, Ordering::Release);
}
