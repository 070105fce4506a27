//! Control variables (MPI 5.0, section 15.3.6): the tunables, in the order of their table.

use crate::assemble::tuning;
use crate::state::{self, Stage};
use crate::tool::{self, Outcome, Place};
use parnass_mpi::constants::*;
use parnass_mpi::observe::Unchanged;
use parnass_tunables::{self as tunables, Changes, Kind, Origin, Scope, TABLE, Value};
use std::ffi::{c_char, c_int, c_void};

/// Characters of a text at most, with the terminating zero.
const TEXT_ROOM: usize = 1024;

fn datatype_of(kind: Kind) -> usize {
    match kind {
        Kind::Count | Kind::Microseconds => MPI_UNSIGNED,
        Kind::Bytes => MPI_UINT64_T,
        Kind::Switch => MPI_INT,
        Kind::Text => MPI_CHAR,
    }
}

/// MPI_T_cvar_get_num.
pub fn cvar_get_num(num_cvar: Place<c_int>) -> Outcome {
    tool::check()?;
    num_cvar.required()?.set(TABLE.len() as c_int);
    Ok(())
}

/// MPI_T_cvar_get_info.
pub fn cvar_get_info(
    cvar_index: c_int,
    name: Place<c_char>,
    name_len: Place<c_int>,
    verbosity: Place<c_int>,
    datatype: Place<usize>,
    enumtype: Place<usize>,
    desc: Place<c_char>,
    desc_len: Place<c_int>,
    bind: Place<c_int>,
    scope: Place<c_int>,
) -> Outcome {
    tool::check()?;
    let tunable = &TABLE[super::row(TABLE, cvar_index)?];
    name.give(name_len, tunable.name);
    verbosity.set(if tunable.measured { MPI_T_VERBOSITY_TUNER_BASIC } else { MPI_T_VERBOSITY_TUNER_DETAIL });
    datatype.set(datatype_of(tunable.kind));
    enumtype.set(if tunable.kind == Kind::Switch { super::enumerations::switch() } else { MPI_T_ENUM_NULL });
    let when = match tunable.changes {
        Changes::Start => "before MPI is initialised",
        Changes::Running => "until MPI is finalised",
    };
    let whole = match tunable.scope {
        Scope::Local => "in any process",
        Scope::All => "in all processes alike",
    };
    let allowed = tunable.allowed();
    desc.give(desc_len, &format!("{} It is {allowed}. It may be written {when}, {whole}.", tunable.what));
    bind.set(MPI_T_BIND_NO_OBJECT);
    scope.set(match tunable.scope {
        Scope::Local => MPI_T_SCOPE_LOCAL,
        Scope::All => MPI_T_SCOPE_ALL_EQ,
    });
    Ok(())
}

/// MPI_T_cvar_get_index.
pub fn cvar_get_index(name: Place<c_char>, cvar_index: Place<c_int>) -> Outcome {
    tool::check()?;
    let cvar_index = cvar_index.required()?;
    cvar_index.set(super::named(TABLE.iter().map(|tunable| tunable.name), &name.text()?)?);
    Ok(())
}

/// MPI_T_cvar_handle_alloc.
pub fn cvar_handle_alloc(
    cvar_index: c_int,
    obj_handle: Place<c_void>,
    handle: Place<usize>,
    count: Place<c_int>,
) -> Outcome {
    // No variable is bound to an object.
    let _ = obj_handle;
    let mut tools = tool::enter()?;
    let row = super::row(TABLE, cvar_index)?;
    let (handle, count) = (handle.required()?, count.required()?);
    handle.set(tools.controls.insert(row).ok_or(MPI_T_ERR_OUT_OF_HANDLES)?);
    count.set(if TABLE[row].kind == Kind::Text { TEXT_ROOM as c_int } else { 1 });
    Ok(())
}

/// MPI_T_cvar_handle_free.
pub fn cvar_handle_free(handle: Place<usize>) -> Outcome {
    let mut tools = tool::enter()?;
    let handle = handle.required()?;
    tools.controls.remove(handle.get()).ok_or(MPI_T_ERR_INVALID_HANDLE)?;
    handle.set(MPI_T_CVAR_HANDLE_NULL);
    Ok(())
}

/// MPI_T_cvar_read.
pub fn cvar_read(handle: usize, buf: Place<c_void>) -> Outcome {
    let tools = tool::enter()?;
    let row = *tools.controls.get(handle).ok_or(MPI_T_ERR_INVALID_HANDLE)?;
    let buf = buf.required()?;
    match (tools.settings().of(row).0, TABLE[row].kind) {
        (Value::Number(number), Kind::Bytes) => buf.cast::<u64>().set(*number),
        (Value::Number(number), _) => buf.cast::<u32>().set(*number as u32),
        (Value::Switch(on), _) => buf.cast::<c_int>().set((*on).into()),
        (Value::Text(text), _) => buf.cast::<c_char>().put(text),
    }
    Ok(())
}

/// The value that the program wants to write.
fn given(row: usize, buf: Place<c_void>) -> Result<Value, c_int> {
    let tunable = &TABLE[row];
    let text = match tunable.kind {
        Kind::Bytes => buf.cast::<u64>().get().to_string(),
        Kind::Count | Kind::Microseconds => buf.cast::<u32>().get().to_string(),
        Kind::Switch => buf.cast::<c_int>().get().to_string(),
        Kind::Text => buf.cast::<c_char>().text()?,
    };
    if tunable.kind == Kind::Text && text.len() >= TEXT_ROOM {
        return Err(MPI_T_ERR_INVALID);
    }
    tunable.read(&text).map_err(|_| MPI_T_ERR_INVALID)
}

/// MPI_T_cvar_write.
pub fn cvar_write(handle: usize, buf: Place<c_void>) -> Outcome {
    let mut tools = tool::enter()?;
    let row = *tools.controls.get(handle).ok_or(MPI_T_ERR_INVALID_HANDLE)?;
    let value = given(row, buf.required()?)?;
    let Some(running) = state::running() else {
        if state::stage() == Stage::Starting {
            return Err(MPI_T_ERR_CVAR_SET_NOT_NOW);
        }
        if tools.settings.is_some() {
            return Err(MPI_T_ERR_CVAR_SET_NEVER);
        }
        if row == tunables::COLLECTIVE {
            let mut settings = tools.settings();
            settings.replace(row, value.clone(), Origin::Tool);
            crate::assemble::overrides(&settings).map_err(|_| MPI_T_ERR_INVALID)?;
        }
        tools.written.retain(|(written, _)| *written != row);
        tools.written.push((row, value));
        return Ok(());
    };
    if TABLE[row].changes == Changes::Start {
        return Err(MPI_T_ERR_CVAR_SET_NEVER);
    }
    let process = &running.process;
    let mut settings = tools.settings();
    settings.replace(row, value, Origin::Tool);
    match row {
        tunables::COLLECTIVE => {
            process.set_algorithms(settings.text(row)).map_err(|unchanged| match unchanged {
                Unchanged::NotNow => MPI_T_ERR_CVAR_SET_NOT_NOW,
                Unchanged::Wrong(_) => MPI_T_ERR_INVALID,
            })?;
        }
        tunables::DIRECT_THRESHOLD => process.set_direct_threshold(settings.number(row)),
        // Those of the network interface.
        _ => process.retune(tuning::portals(&settings)),
    }
    tools.settings = Some(settings);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_change_at_any_time_is_what_can() {
        for (row, tunable) in
            TABLE.iter().enumerate().filter(|(_, tunable)| tunable.changes == Changes::Running)
        {
            let known = [tunables::COLLECTIVE, tunables::DIRECT_THRESHOLD].contains(&row);
            assert!(known || tunable.room == "portals", "{} cannot be changed while MPI runs", tunable.name);
        }
    }
}
