//! Bodies of procedures: the tool information interface (MPI 5.0, section 15.3). They raise no error, but return its code, and take
//! pointers as the program gave them: those to results may be null.

mod categories;
mod control;
mod enumerations;
mod events;
mod performance;

pub use categories::*;
pub use control::*;
pub use enumerations::*;
pub use events::*;
pub use performance::*;

use crate::handles::Class;
use crate::objects::Info;
use crate::tool::{self, Outcome, Place};
use parnass_counters::Verbosity;
use parnass_mpi::constants::*;
use std::ffi::c_int;
use std::sync::{Arc, Mutex};

/// MPI_T_init_thread. Every level is provided.
pub fn init_thread(required: c_int, provided: Place<c_int>) -> Outcome {
    let provided = provided.required()?;
    let levels = [MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE];
    if !levels.contains(&required) {
        return Err(MPI_T_ERR_INVALID);
    }
    tool::lock().begin()?;
    if required == MPI_THREAD_MULTIPLE {
        crate::state::several_tool_threads();
    }
    provided.set(MPI_THREAD_MULTIPLE);
    Ok(())
}

/// MPI_T_finalize.
pub fn finalize() -> Outcome {
    tool::lock().end()
}

/// The constant of a verbosity.
fn verbosity_of(verbosity: Verbosity) -> c_int {
    match verbosity {
        Verbosity::UserBasic => MPI_T_VERBOSITY_USER_BASIC,
        Verbosity::UserDetail => MPI_T_VERBOSITY_USER_DETAIL,
        Verbosity::TunerBasic => MPI_T_VERBOSITY_TUNER_BASIC,
        Verbosity::TunerDetail => MPI_T_VERBOSITY_TUNER_DETAIL,
    }
}

/// A row of a table, by an index that the program gave.
fn row<T>(table: &[T], index: c_int) -> Result<usize, c_int> {
    usize::try_from(index).ok().filter(|row| *row < table.len()).ok_or(MPI_T_ERR_INVALID_INDEX)
}

/// The position of a name.
fn named<'a>(names: impl IntoIterator<Item = &'a str>, wanted: &str) -> Result<c_int, c_int> {
    let position = names.into_iter().position(|name| name == wanted);
    position.map(|position| position as c_int).ok_or(MPI_T_ERR_INVALID_NAME)
}

/// Hands an info object without keys to the program, if it wants one.
fn give_info(place: Place<usize>) -> Outcome {
    if place.is_null() {
        return Ok(());
    }
    let info = Arc::new(Mutex::new(parnass_mpi::Info::new()));
    place.set(Info::table().insert(info).map_err(|_| MPI_T_ERR_MEMORY)?);
    Ok(())
}

/// An error unless it is an info object or MPI_INFO_NULL. No hint is supported, so that nothing of it matters.
fn check_info(info: usize) -> Outcome {
    if info == MPI_INFO_NULL || Info::table().find(info).is_some() { Ok(()) } else { Err(MPI_T_ERR_INVALID) }
}
