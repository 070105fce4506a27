//! The one process-wide state of the library: whether MPI is running, and its process.

use crate::objects::Process;
use parnass_mpi::constants::MPI_ERR_OTHER;
use parnass_mpi::{Error, Result, ThreadLevel};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What exists while MPI is in use: from MPI_Init, or the first MPI_Session_init, to the last end of either. Never freed: a call that is late may still look at it.
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
    // SAFETY: null, or leaked by `enter` (the Acquire pairs with its Release) and never freed.
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

/// Who uses MPI in this process: MPI_Init and MPI_Finalize count as one user, each session as one.
struct Users {
    count: usize,
    /// The last one has left. The launcher has been told then: there is no way back.
    ended: bool,
}

static USERS: Mutex<Users> = Mutex::new(Users { count: 0, ended: false });

/// MPI runs, and at no level that lets several threads be inside at once.
static ONE_THREAD_AT_A_TIME: AtomicBool = AtomicBool::new(false);

/// The program has said that it calls the tools interface from several threads, at whatever level MPI runs.
static SEVERAL_TOOL_THREADS: AtomicBool = AtomicBool::new(false);

/// Several threads may be inside the tools interface from now on; they look up objects of MPI.
pub fn several_tool_threads() {
    SEVERAL_TOOL_THREADS.store(true, Ordering::Relaxed);
    ONE_THREAD_AT_A_TIME.store(false, Ordering::Relaxed);
    crate::calls::again::forget();
}

/// Whether calls that need MPI to run come from one thread at a time (MPI 5.0, section 11.6).
#[inline(always)]
pub fn one_thread_at_a_time() -> bool {
    ONE_THREAD_AT_A_TIME.load(Ordering::Relaxed)
}

/// Adds a user; the first makes the process. A process that is there provides at least this thread level afterwards.
pub fn enter(
    level: ThreadLevel,
    make: impl FnOnce() -> std::result::Result<Running, String>,
) -> std::result::Result<&'static Running, String> {
    let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
    if users.ended {
        return Err("MPI was in use and has ended in this process; it cannot be started again".to_owned());
    }
    let running = match running() {
        Some(running) => {
            if running.process.thread_level() < level {
                running.process.set_thread_level(level);
            }
            running
        }
        None => {
            let pointer = Box::into_raw(Box::new(make()?));
            // Release pairs with the Acquire in `running`.
            RUNNING.store(pointer, Ordering::Release);
            // SAFETY: from a box that is leaked; only shared references are made from here on.
            unsafe { &*pointer }
        }
    };
    users.count += 1;
    let alone = running.process.thread_level() != ThreadLevel::Multiple
        && !SEVERAL_TOOL_THREADS.load(Ordering::Relaxed);
    ONE_THREAD_AT_A_TIME.store(alone, Ordering::Relaxed);
    if !alone {
        crate::calls::again::forget();
    }
    // SAFETY: what is guarded so are requests, which only calls use that need MPI to run; at a level below MPI_THREAD_MULTIPLE the
    // program makes one such call at a time (MPI 5.0, section 11.6). No request is in use while MPI is started.
    unsafe {
        parnass_base::guarded::promise_one_thread(running.process.thread_level() != ThreadLevel::Multiple)
    };
    Ok(running)
}

/// Takes a user away; after the last one the process is finalized with `end`.
pub fn leave(end: impl FnOnce(&Arc<Process>) -> Result<()>) -> Result<()> {
    let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
    users.count = users.count.checked_sub(1).ok_or_else(|| Error::new(MPI_ERR_OTHER, "MPI is not in use"))?;
    if users.count > 0 {
        return Ok(());
    }
    users.ended = true;
    drop(users);
    if let Some(running) = running() {
        end(&running.process)?;
    }
    RUNNING.store(std::ptr::null_mut(), Ordering::Release);
    Ok(())
}

/// MPI_Init is done.
pub fn started() {
    STAGE.store(Stage::Running as u32, Ordering::Release);
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
    STAGE.store(Stage::After as u32, Ordering::Release);
}
