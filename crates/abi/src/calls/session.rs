//! Bodies of procedures: sessions (MPI 5.0, section 11.3).

use super::info::{copy_of, give_info};
use super::prelude::*;
use crate::state;
use parnass_mpi::ThreadLevel;
use parnass_mpi::errhandler::ErrhandlerKind;
use parnass_mpi::session::{PROCESS_SETS, wanted_thread_level};
use std::sync::atomic::{AtomicU32, Ordering};

/// From here on errors of the call go to the session's error handler.
fn in_session(call: &Call, session: &Arc<Session>) {
    let handle = Session::table().handle_of(session).unwrap_or(MPI_SESSION_NULL);
    call.raise_with(session.errhandler(), handle, "the session");
}

/// MPI_Session_init.
pub fn session_init(
    call: &Call,
    info: Option<&Arc<Info>>,
    errhandler: &Arc<Errhandler>,
    session: OutHandle<Session>,
) -> Result<()> {
    call.raise_with(Errhandler::clone(errhandler), MPI_SESSION_NULL, "the session");
    super::error::check_kind(errhandler, ErrhandlerKind::Session, "session")?;
    let level = wanted_thread_level(&copy_of(info))?.unwrap_or(ThreadLevel::Single);
    let running = super::process::open_session(level)?;
    static NUMBERS: AtomicU32 = AtomicU32::new(1);
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    session.set(Arc::new(Session::new(number, Errhandler::clone(errhandler), running.process.thread_level())))
}

/// MPI_Session_finalize.
pub fn session_finalize(call: &Call, session: InOutHandle<Session>) -> Result<()> {
    in_session(call, session.get());
    session.release();
    state::leave(|process| process.finalize())
}

/// MPI_Session_get_num_psets.
pub fn session_get_num_psets(_call: &Call, npset_names: Out<i32>) -> Result<()> {
    npset_names.set(PROCESS_SETS.len() as i32);
    Ok(())
}

/// MPI_Session_get_nth_pset.
pub fn session_get_nth_pset(
    call: &Call,
    session: &Arc<Session>,
    n: i32,
    pset_len: InOut<i32>,
    pset_name: StringOut,
) -> Result<()> {
    in_session(call, session);
    let name = session.process_set(n)?;
    let capacity = usize::try_from(pset_len.get()).map_err(|_| {
        Error::new(
            MPI_ERR_ARG,
            format!("pset_len is {}; it must be 0 or more, the size of pset_name", pset_len.get()),
        )
    })?;
    pset_name.set_within(name.as_bytes(), capacity);
    pset_len.set(name.len() as i32 + 1);
    Ok(())
}

/// MPI_Session_get_pset_info.
pub fn session_get_pset_info(
    call: &Call,
    session: &Arc<Session>,
    pset_name: &[u8],
    info: OutHandle<Info>,
) -> Result<()> {
    in_session(call, session);
    give_info(session.process_set_info(call.process(), pset_name)?, &info)
}

/// MPI_Session_get_info.
pub fn session_get_info(_call: &Call, session: &Arc<Session>, info_used: OutHandle<Info>) -> Result<()> {
    give_info(session.info().clone(), &info_used)
}

/// MPI_Group_from_session_pset.
pub fn group_from_session_pset(
    call: &Call,
    session: &Arc<Session>,
    pset_name: &[u8],
    newgroup: OutHandle<Group>,
) -> Result<()> {
    in_session(call, session);
    newgroup.set(Arc::new(session.group(call.process(), pset_name)?))
}

/// MPI_Session_get_errhandler.
pub fn session_get_errhandler(
    _call: &Call,
    session: &Arc<Session>,
    errhandler: OutHandle<Errhandler>,
) -> Result<()> {
    errhandler.set(Arc::new(session.errhandler()))
}

/// MPI_Session_set_errhandler.
pub fn session_set_errhandler(
    call: &Call,
    session: &Arc<Session>,
    errhandler: &Arc<Errhandler>,
) -> Result<()> {
    in_session(call, session);
    super::error::check_kind(errhandler, ErrhandlerKind::Session, "session")?;
    session.set_errhandler(Errhandler::clone(errhandler));
    Ok(())
}

/// MPI_Session_call_errhandler.
pub fn session_call_errhandler(call: &Call, session: &Arc<Session>, errorcode: i32) -> Result<()> {
    in_session(call, session);
    let handle = Session::table().handle_of(session).unwrap_or(MPI_SESSION_NULL);
    super::error::run(session.errhandler(), handle, errorcode)
}
