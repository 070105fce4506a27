//! Bodies of procedures: beginning and end of MPI (MPI 5.0, chapter 11).

use super::prelude::*;
use crate::assemble;
use crate::state::{self, Running, Stage};
use parnass_mpi::ThreadLevel;
use std::thread;

/// The constant of a level.
fn level_value(level: ThreadLevel) -> i32 {
    match level {
        ThreadLevel::Single => MPI_THREAD_SINGLE,
        ThreadLevel::Funneled => MPI_THREAD_FUNNELED,
        ThreadLevel::Serialized => MPI_THREAD_SERIALIZED,
        ThreadLevel::Multiple => MPI_THREAD_MULTIPLE,
    }
}

/// The lowest level that gives what was asked for; every level is provided (MPI 5.0, section 11.6.2).
fn level_for(required: i32) -> ThreadLevel {
    use ThreadLevel::{Funneled, Multiple, Serialized, Single};
    let levels = [Single, Funneled, Serialized];
    levels.into_iter().find(|&level| required <= level_value(level)).unwrap_or(Multiple)
}

fn start(level: ThreadLevel) -> Result<()> {
    if !state::begin_start() {
        let when = match state::stage() {
            Stage::After => {
                "MPI has been initialised and finalised; it can be initialised only once in a process"
            }
            _ => "MPI is already initialised; ask MPI_Initialized before a second initialisation",
        };
        return Err(Error::new(MPI_ERR_OTHER, when));
    }
    match state::enter(level, || assemble_process(level)) {
        Ok(_) => {
            state::started();
            Ok(())
        }
        Err(reason) => {
            state::start_failed();
            Err(cannot_start(&reason))
        }
    }
}

/// For MPI_Session_init, which may come before, between and after MPI_Init and MPI_Finalize.
pub(super) fn open_session(level: ThreadLevel) -> Result<&'static Running> {
    state::enter(level, || assemble_process(level)).map_err(|reason| cannot_start(&reason))
}

fn cannot_start(reason: &str) -> Error {
    Error::new(MPI_ERR_OTHER, format!("MPI cannot start: {reason}"))
}

fn assemble_process(level: ThreadLevel) -> std::result::Result<Running, String> {
    crate::errors::install_panic_hook();
    let process = assemble::process(level)?;
    Communicator::table().define(MPI_COMM_WORLD, process.world().clone());
    Communicator::table().define(MPI_COMM_SELF, process.self_communicator().clone());
    Ok(Running { process, main_thread: thread::current().id() })
}

/// MPI_Init. The arguments of the program are left as they are.
pub fn init(_call: &Call, argc: *mut c_void, argv: *mut c_void) -> Result<()> {
    let _ = (argc, argv);
    start(ThreadLevel::Single)
}

/// MPI_Init_thread.
pub fn init_thread(
    _call: &Call,
    argc: *mut c_void,
    argv: *mut c_void,
    required: i32,
    provided: Out<i32>,
) -> Result<()> {
    let _ = (argc, argv);
    let level = level_for(required);
    start(level)?;
    provided.set(level_value(level));
    Ok(())
}

/// MPI_Initialized.
pub fn initialized(_call: &Call, flag: Out<bool>) -> Result<()> {
    flag.set(!matches!(state::stage(), Stage::Before | Stage::Starting));
    Ok(())
}

/// MPI_Finalized.
pub fn finalized(_call: &Call, flag: Out<bool>) -> Result<()> {
    flag.set(state::stage() == Stage::After);
    Ok(())
}

/// MPI_Finalize: first the attributes of MPI_COMM_SELF are deleted, while MPI still works (MPI 5.0, section 11.2.4).
pub fn finalize(call: &Call) -> Result<()> {
    let process = call.process();
    if !state::begin_finalize() {
        return Err(Error::new(
            MPI_ERR_OTHER,
            "MPI_Finalize is already under way, in another thread or in a callback of it; call it once",
        ));
    }
    process.self_communicator().attributes().delete_all(MPI_COMM_SELF)?;
    state::leave(|process| process.finalize())?;
    state::finalized();
    Ok(())
}

/// MPI_Abort: ends the job, not only the group of the communicator (which the standard allows).
pub fn abort(call: &Call, comm: &Arc<Communicator>, errorcode: i32) -> Result<()> {
    let process = call.process();
    let text = format!(
        "MPI_Abort: rank {} on host {} ends the job with error code {errorcode} (on {})",
        process.rank(),
        process.host_name(),
        comm.describe()
    );
    process.abort(errorcode, &text)
}

/// MPI_Query_thread.
pub fn query_thread(call: &Call, provided: Out<i32>) -> Result<()> {
    provided.set(level_value(call.process().thread_level()));
    Ok(())
}

/// MPI_Is_thread_main.
pub fn is_thread_main(call: &Call, flag: Out<bool>) -> Result<()> {
    flag.set(call.running().is_some_and(|running| running.main_thread == thread::current().id()));
    Ok(())
}
