//! Performance variables (MPI 5.0, section 15.3.7): the counters, in the order of their table.
//!
//! A process counts all the time. A handle keeps what it has seen: `kept` while it is stopped, and what has been counted
//! since `base` while it is started. So handles do not disturb each other. A high-water mark is the process's only one: before it begins anew
//! for one handle, the others note what it was.

use crate::handles::Class as _;
use crate::objects::Communicator;
use crate::state;
use crate::tool::{self, Outcome, Place, Tools};
use parnass_counters::{COUNTERS, Class, Counter, Mark, Object, POSTED_NOW, UNEXPECTED_MARK};
use parnass_mpi::constants::*;
use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, Weak};

/// A handle of a performance variable.
#[derive(Debug)]
pub struct Variable {
    session: usize,
    /// Its position in [`COUNTERS`].
    pub row: usize,
    communicator: Weak<Communicator>,
    /// Whether it counts now.
    pub started: bool,
    /// What it had when it was last stopped, or written.
    kept: u64,
    /// What had been counted when it was started.
    base: u64,
}

fn class_of(class: Class) -> c_int {
    match class {
        Class::Counter => MPI_T_PVAR_CLASS_COUNTER,
        Class::Aggregate => MPI_T_PVAR_CLASS_AGGREGATE,
        Class::Timer => MPI_T_PVAR_CLASS_TIMER,
        Class::Highwatermark => MPI_T_PVAR_CLASS_HIGHWATERMARK,
        Class::Level => MPI_T_PVAR_CLASS_LEVEL,
    }
}

/// Whether it is always active, and only read.
fn is_level(counter: &Counter) -> bool {
    counter.class == Class::Level
}

/// MPI_T_pvar_get_num.
pub fn pvar_get_num(num_pvar: Place<c_int>) -> Outcome {
    tool::check()?;
    num_pvar.required()?.set(COUNTERS.len() as c_int);
    Ok(())
}

/// MPI_T_pvar_get_info.
pub fn pvar_get_info(
    pvar_index: c_int,
    name: Place<c_char>,
    name_len: Place<c_int>,
    verbosity: Place<c_int>,
    var_class: Place<c_int>,
    datatype: Place<usize>,
    enumtype: Place<usize>,
    desc: Place<c_char>,
    desc_len: Place<c_int>,
    bind: Place<c_int>,
    readonly: Place<c_int>,
    continuous: Place<c_int>,
    atomic: Place<c_int>,
) -> Outcome {
    tool::check()?;
    let counter = &COUNTERS[super::row(COUNTERS, pvar_index)?];
    name.give(name_len, counter.name);
    verbosity.set(super::verbosity_of(counter.verbosity));
    var_class.set(class_of(counter.class));
    datatype.set(if counter.class == Class::Timer { MPI_DOUBLE } else { MPI_UNSIGNED_LONG_LONG });
    enumtype.set(MPI_T_ENUM_NULL);
    desc.give(desc_len, counter.what);
    bind.set(match counter.object {
        Object::Process => MPI_T_BIND_NO_OBJECT,
        Object::Communicator => MPI_T_BIND_MPI_COMM,
    });
    let level = is_level(counter);
    readonly.set(level.into());
    continuous.set(level.into());
    atomic.set((!level).into());
    Ok(())
}

/// MPI_T_pvar_get_index.
pub fn pvar_get_index(name: Place<c_char>, var_class: c_int, pvar_index: Place<c_int>) -> Outcome {
    tool::check()?;
    let pvar_index = pvar_index.required()?;
    let index = super::named(COUNTERS.iter().map(|counter| counter.name), &name.text()?)?;
    if class_of(COUNTERS[index as usize].class) != var_class {
        return Err(MPI_T_ERR_INVALID_NAME);
    }
    pvar_index.set(index);
    Ok(())
}

/// MPI_T_pvar_session_create.
pub fn pvar_session_create(session: Place<usize>) -> Outcome {
    let mut tools = tool::enter()?;
    let session = session.required()?;
    session.set(tools.sessions.insert(()).ok_or(MPI_T_ERR_OUT_OF_SESSIONS)?);
    Ok(())
}

/// MPI_T_pvar_session_free: its handles go with it.
pub fn pvar_session_free(session: Place<usize>) -> Outcome {
    let mut tools = tool::enter()?;
    let session = session.required()?;
    let handle = session.get();
    tools.sessions.remove(handle).ok_or(MPI_T_ERR_INVALID_SESSION)?;
    for variable in handles_of(&tools, handle) {
        tools.variables.remove(variable);
    }
    tools.watch();
    session.set(MPI_T_PVAR_SESSION_NULL);
    Ok(())
}

/// The handles of a session.
fn handles_of(tools: &Tools, session: usize) -> Vec<usize> {
    let own = tools.variables.iter().filter(|(_, variable)| variable.session == session);
    own.map(|(handle, _)| handle).collect()
}

/// The communicator that a variable is to be bound to.
fn object_of(counter: &Counter, obj_handle: Place<c_void>) -> Result<Weak<Communicator>, c_int> {
    if counter.object == Object::Process {
        return Ok(Weak::new());
    }
    let handle = obj_handle.required()?.cast::<usize>().get();
    if state::running().is_none() {
        return Err(MPI_T_ERR_NOT_ACCESSIBLE);
    }
    let held = Communicator::table().find(handle).ok_or(MPI_T_ERR_INVALID_HANDLE)?;
    Ok(Arc::downgrade(&held))
}

/// MPI_T_pvar_handle_alloc.
pub fn pvar_handle_alloc(
    session: usize,
    pvar_index: c_int,
    obj_handle: Place<c_void>,
    handle: Place<usize>,
    count: Place<c_int>,
) -> Outcome {
    let mut tools = tool::enter()?;
    tools.sessions.get(session).ok_or(MPI_T_ERR_INVALID_SESSION)?;
    let row = super::row(COUNTERS, pvar_index)?;
    let (handle, count) = (handle.required()?, count.required()?);
    let communicator = object_of(&COUNTERS[row], obj_handle)?;
    let variable = Variable { session, row, communicator, started: false, kept: 0, base: 0 };
    handle.set(tools.variables.insert(variable).ok_or(MPI_T_ERR_OUT_OF_HANDLES)?);
    count.set(1);
    Ok(())
}

/// The handle of a variable, if it belongs to the session.
fn find(tools: &Tools, session: usize, handle: usize) -> Result<&Variable, c_int> {
    tools.sessions.get(session).ok_or(MPI_T_ERR_INVALID_SESSION)?;
    let variable = tools.variables.get(handle).filter(|variable| variable.session == session);
    variable.ok_or(MPI_T_ERR_INVALID_HANDLE)
}

/// MPI_T_pvar_handle_free.
pub fn pvar_handle_free(session: usize, handle: Place<usize>) -> Outcome {
    let mut tools = tool::enter()?;
    let handle = handle.required()?;
    find(&tools, session, handle.get())?;
    tools.variables.remove(handle.get());
    tools.watch();
    handle.set(MPI_T_PVAR_HANDLE_NULL);
    Ok(())
}

/// Lets the high-water marks begin anew at the present levels, and gives the one that is asked for.
fn begin_marks(tools: &mut Tools, wanted: Mark) -> u64 {
    let marks = state::running().map_or([(0, 0); 2], |running| running.process.begin_marks());
    let place = |mark: Mark| usize::from(mark != UNEXPECTED_MARK);
    for variable in tools.variables.things_mut().filter(|variable| variable.started) {
        if let Some(mark) = Mark::of(COUNTERS[variable.row].home) {
            variable.kept = variable.kept.max(marks[place(mark)].0);
        }
    }
    marks[place(wanted)].1
}

/// What a handle shows.
fn value_of(tools: &Tools, variable: &Variable) -> Result<u64, c_int> {
    let counter = &COUNTERS[variable.row];
    if is_level(counter) {
        let running = state::running().ok_or(MPI_T_ERR_NOT_ACCESSIBLE)?;
        let communicator = variable.communicator.upgrade().ok_or(MPI_T_ERR_INVALID_HANDLE)?;
        let (unexpected, posted) = running.process.queues(&communicator);
        return Ok(if variable.row == POSTED_NOW { posted } else { unexpected });
    }
    if !variable.started {
        return Ok(variable.kept);
    }
    Ok(match Mark::of(counter.home) {
        Some(mark) => {
            let now = tools.counters.as_ref().map_or(0, |counters| counters.watched_mark(mark));
            variable.kept.max(now)
        }
        None => variable.kept.wrapping_add(tools.read(counter.home).wrapping_sub(variable.base)),
    })
}

fn start(tools: &mut Tools, handle: usize) {
    let Some(variable) = tools.variables.get(handle).filter(|variable| !variable.started) else { return };
    let home = COUNTERS[variable.row].home;
    let level = Mark::of(home).map(|mark| begin_marks(tools, mark));
    let base = tools.read(home);
    if let Some(variable) = tools.variables.get_mut(handle) {
        variable.started = true;
        variable.base = base;
        variable.kept = level.unwrap_or(variable.kept);
    }
}

fn stop(tools: &mut Tools, handle: usize) -> Outcome {
    let Some(variable) = tools.variables.get(handle).filter(|variable| variable.started) else {
        return Ok(());
    };
    let value = value_of(tools, variable)?;
    if let Some(variable) = tools.variables.get_mut(handle) {
        variable.kept = value;
        variable.started = false;
    }
    Ok(())
}

/// Gives a handle another value; its starting value where none is given. What it was.
fn replace(tools: &mut Tools, handle: usize, value: Option<u64>) -> Result<u64, c_int> {
    let variable = tools.variables.get(handle).ok_or(MPI_T_ERR_INVALID_HANDLE)?;
    let home = COUNTERS[variable.row].home;
    if let Some(mark) = Mark::of(home) {
        // First the mark begins anew, so that nothing falls between.
        let level = begin_marks(tools, mark);
        let variable = tools.variables.get_mut(handle).ok_or(MPI_T_ERR_INVALID_HANDLE)?;
        return Ok(std::mem::replace(&mut variable.kept, value.unwrap_or(level)));
    }
    let now = tools.read(home);
    let variable = tools.variables.get_mut(handle).ok_or(MPI_T_ERR_INVALID_HANDLE)?;
    let since = if variable.started { now.wrapping_sub(variable.base) } else { 0 };
    let before = variable.kept.wrapping_add(since);
    (variable.kept, variable.base) = (value.unwrap_or(0), now);
    Ok(before)
}

/// Does something with one handle, or with all of a session that can have it done.
fn with_handles(
    session: usize,
    handle: usize,
    refused: c_int,
    step: impl Fn(&mut Tools, usize) -> Outcome,
) -> Outcome {
    let mut tools = tool::enter()?;
    if handle == MPI_T_PVAR_ALL_HANDLES {
        tools.sessions.get(session).ok_or(MPI_T_ERR_INVALID_SESSION)?;
        for handle in handles_of(&tools, session) {
            let variable = tools.variables.get(handle);
            if variable.is_some_and(|variable| !is_level(&COUNTERS[variable.row])) {
                step(&mut tools, handle)?;
            }
        }
    } else {
        if is_level(&COUNTERS[find(&tools, session, handle)?.row]) {
            return Err(refused);
        }
        step(&mut tools, handle)?;
    }
    tools.watch();
    Ok(())
}

/// MPI_T_pvar_start.
pub fn pvar_start(session: usize, handle: usize) -> Outcome {
    with_handles(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP, |tools, handle| {
        start(tools, handle);
        Ok(())
    })
}

/// MPI_T_pvar_stop.
pub fn pvar_stop(session: usize, handle: usize) -> Outcome {
    with_handles(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP, stop)
}

/// Writes a value as the type of its variable.
fn show(row: usize, value: u64, buf: Place<c_void>) {
    if COUNTERS[row].class == Class::Timer {
        buf.cast::<f64>().set(value as f64 * 1e-9);
    } else {
        buf.cast::<u64>().set(value);
    }
}

/// MPI_T_pvar_read.
pub fn pvar_read(session: usize, handle: usize, buf: Place<c_void>) -> Outcome {
    let tools = tool::enter()?;
    let variable = find(&tools, session, handle)?;
    let buf = buf.required()?;
    show(variable.row, value_of(&tools, variable)?, buf);
    Ok(())
}

/// MPI_T_pvar_readreset.
pub fn pvar_readreset(session: usize, handle: usize, buf: Place<c_void>) -> Outcome {
    let mut tools = tool::enter()?;
    let row = find(&tools, session, handle)?.row;
    let buf = buf.required()?;
    if is_level(&COUNTERS[row]) {
        return Err(MPI_T_ERR_PVAR_NO_ATOMIC);
    }
    let before = replace(&mut tools, handle, None)?;
    show(row, before, buf);
    Ok(())
}

/// MPI_T_pvar_reset.
pub fn pvar_reset(session: usize, handle: usize) -> Outcome {
    with_handles(session, handle, MPI_T_ERR_PVAR_NO_WRITE, |tools, handle| {
        replace(tools, handle, None).map(drop)
    })
}

/// MPI_T_pvar_write.
pub fn pvar_write(session: usize, handle: usize, buf: Place<c_void>) -> Outcome {
    let mut tools = tool::enter()?;
    let row = find(&tools, session, handle)?.row;
    let buf = buf.required()?;
    if is_level(&COUNTERS[row]) {
        return Err(MPI_T_ERR_PVAR_NO_WRITE);
    }
    let value = match COUNTERS[row].class {
        Class::Timer => {
            let seconds = buf.cast::<f64>().get();
            if !(0.0..=1e9).contains(&seconds) {
                return Err(MPI_T_ERR_INVALID);
            }
            (seconds * 1e9) as u64
        }
        _ => buf.cast::<u64>().get(),
    };
    replace(&mut tools, handle, Some(value)).map(drop)
}
