//! Bodies of procedures: processes that come while others run (MPI 5.0, chapter 11).

use super::info::copy_of;
use super::prelude::*;
use parnass_mpi::comm::Begin;
use parnass_mpi::process::Program;
use std::ffi::{CStr, c_char};
use std::time::Duration;

/// A string that is significant at the root only.
fn text(place: *const c_char, name: &str) -> Result<Vec<u8>> {
    if place.is_null() {
        return Err(Error::new(MPI_ERR_ARG, format!("{name} is NULL; it must be a string")));
    }
    // SAFETY: not null; the program gives a zero-terminated string.
    Ok(unsafe { CStr::from_ptr(place) }.to_bytes().to_vec())
}

/// The strings of an array that ends with a null pointer; none where there is no array.
fn arguments(array: *const *const c_char) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while !array.is_null() {
        // SAFETY: the program gives an array of strings that ends with a null pointer, which has not come yet.
        let entry = unsafe { array.add(all.len()).read() };
        if entry.is_null() {
            break;
        }
        // SAFETY: not null, so a zero-terminated string.
        all.push(unsafe { CStr::from_ptr(entry) }.to_bytes().to_vec());
    }
    all
}

/// The hints at the root, where they are significant.
fn hints(info: Handle<Info>, name: &str) -> Result<parnass_mpi::Info> {
    if info.is_null() {
        return Ok(parnass_mpi::Info::new());
    }
    let info = info.get(name)?;
    Ok(copy_of(Some(&info)))
}

fn program(
    command: *const c_char,
    argv: *const *const c_char,
    maxprocs: i32,
    info: Handle<Info>,
) -> Result<Program> {
    let processes = u32::try_from(maxprocs)
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| Error::new(MPI_ERR_ARG, format!("maxprocs is {maxprocs}; it must be 1 or more")))?;
    let command = text(command, "command")?;
    if command.is_empty() {
        return Err(Error::new(MPI_ERR_ARG, "command is empty; it must name a program"));
    }
    Ok(Program { command, arguments: arguments(argv), processes, hints: hints(info, "info")? })
}

/// Only the root says what is to be started.
fn nothing_here() -> Result<Vec<Program>> {
    Ok(Vec::new())
}

fn spawn(
    call: &Call,
    comm: &Arc<Communicator>,
    root: i32,
    programs: Result<Vec<Program>>,
    intercomm: &OutHandle<Communicator>,
    errcodes: *mut c_void,
) -> Result<()> {
    let spawned = comm.spawn(call.process(), root, programs)?;
    let errcodes = errcodes.cast::<i32>();
    if !errcodes.is_null() {
        for (index, code) in spawned.codes.iter().enumerate() {
            // SAFETY: not MPI_ERRCODES_IGNORE, so the program gives room for each process that was asked for.
            unsafe { errcodes.add(index).write(*code) }
        }
    }
    match spawned.intercommunicator {
        Ok(made) => intercomm.set(made),
        Err(error) => {
            intercomm.set_null();
            Err(error)
        }
    }
}

/// MPI_Comm_spawn.
pub fn comm_spawn(
    call: &Call,
    command: *mut c_void,
    argv: *mut c_void,
    maxprocs: i32,
    info: Handle<Info>,
    root: i32,
    comm: &Arc<Communicator>,
    intercomm: OutHandle<Communicator>,
    array_of_errcodes: *mut c_void,
) -> Result<()> {
    let programs = match comm.rank() == root {
        true => program(command.cast(), argv.cast(), maxprocs, info).map(|program| vec![program]),
        false => nothing_here(),
    };
    spawn(call, comm, root, programs, &intercomm, array_of_errcodes)
}

/// MPI_Comm_spawn_multiple.
pub fn comm_spawn_multiple(
    call: &Call,
    count: i32,
    array_of_commands: *mut c_void,
    array_of_argv: *mut c_void,
    array_of_maxprocs: *mut c_void,
    array_of_info: HandleArray<Info>,
    root: i32,
    comm: &Arc<Communicator>,
    intercomm: OutHandle<Communicator>,
    array_of_errcodes: *mut c_void,
) -> Result<()> {
    let programs = || -> Result<Vec<Program>> {
        let count = usize::try_from(count)
            .ok()
            .filter(|count| *count > 0)
            .ok_or_else(|| Error::new(MPI_ERR_ARG, format!("count is {count}; it must be 1 or more")))?;
        let (commands, maxprocs) =
            (array_of_commands.cast::<*const c_char>(), array_of_maxprocs.cast::<i32>());
        for (array, name) in
            [(array_of_commands, "array_of_commands"), (array_of_maxprocs, "array_of_maxprocs")]
        {
            if array.is_null() {
                return Err(Error::new(MPI_ERR_ARG, format!("{name} is NULL; it must have {count} entries")));
            }
        }
        let infos = array_of_info.with_length(count, "array_of_info")?;
        let argvs = array_of_argv.cast::<*const *const c_char>();
        let one = |index: usize| -> Result<Program> {
            // SAFETY: the program gives arrays of `count` entries.
            let (command, most) = unsafe { (commands.add(index).read(), maxprocs.add(index).read()) };
            // SAFETY: as above, unless it is MPI_ARGVS_NULL.
            let argv = if argvs.is_null() { std::ptr::null() } else { unsafe { argvs.add(index).read() } };
            program(command, argv, most, infos[index])
        };
        (0..count).map(one).collect()
    };
    let programs = if comm.rank() == root { programs() } else { nothing_here() };
    spawn(call, comm, root, programs, &intercomm, array_of_errcodes)
}

/// MPI_Comm_get_parent: the same handle each time, until the program frees it.
pub fn comm_get_parent(call: &Call, parent: OutHandle<Communicator>) -> Result<()> {
    match call.process().parent() {
        None => {
            parent.set_null();
            Ok(())
        }
        Some(known) => match Communicator::table().handle_of(&known) {
            Some(handle) => {
                parent.set_raw(handle);
                Ok(())
            }
            None => parent.set(known),
        },
    }
}

/// As a string for a port's or a service's name.
fn name_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn error_of(class: i32) -> impl Fn(String) -> Error {
    move |text| Error::new(class, text)
}

/// The way to other worlds.
fn connector(call: &Call) -> Result<Arc<dyn parnass_mpi::process::Connector>> {
    call.process().other_worlds()
}

/// MPI_Open_port.
pub fn open_port(call: &Call, info: Option<&Arc<Info>>, port_name: StringOut) -> Result<()> {
    let _ = info; // No hints are known.
    let name = connector(call)?.open_port().map_err(error_of(MPI_ERR_PORT))?;
    port_name.set_within(name.as_bytes(), MPI_MAX_PORT_NAME as usize);
    Ok(())
}

/// MPI_Close_port.
pub fn close_port(call: &Call, port_name: &[u8]) -> Result<()> {
    connector(call)?.close_port(&name_of(port_name)).map_err(error_of(MPI_ERR_PORT))
}

/// What a process does at a port.
enum Side {
    Accepts,
    /// And waits, as long as the hints say, until somebody accepts.
    Connects(Result<parnass_mpi::Info>),
}

/// How long MPI_Comm_connect waits, if its info does not say otherwise (MPI 5.0, section 11.9.3, leaves it to the implementation).
const PATIENCE: Duration = Duration::from_secs(180);

/// The info key `timeout`: seconds. What is no number of seconds is no hint.
fn patience(hints: &parnass_mpi::Info) -> Duration {
    let text = hints.value(b"timeout").and_then(|text| std::str::from_utf8(text).ok());
    let seconds: Option<u32> = text.and_then(|text| text.trim().parse().ok());
    seconds.map_or(PATIENCE, |seconds| Duration::from_secs(seconds.into()))
}

/// The port's name at the root, and what is done there.
fn begin(
    call: &Call,
    comm: &Arc<Communicator>,
    root: i32,
    port_name: *mut c_void,
    side: Side,
) -> Result<Option<Begin>> {
    if comm.rank() != root {
        return Ok(None);
    }
    let port = text(port_name.cast_const().cast(), "port_name");
    let connector = connector(call)?;
    Ok(Some(Box::new(move || {
        let port = name_of(&port.map_err(|error| error.message().to_owned())?);
        match side {
            Side::Accepts => connector.accept(&port),
            Side::Connects(hints) => {
                let hints = hints.map_err(|error| error.message().to_owned())?;
                connector.call(&port, patience(&hints))
            }
        }
    })))
}

/// MPI_Comm_accept.
pub fn comm_accept(
    call: &Call,
    port_name: *mut c_void,
    info: Handle<Info>,
    root: i32,
    comm: &Arc<Communicator>,
    newcomm: OutHandle<Communicator>,
) -> Result<()> {
    let _ = info; // No hints are known.
    let begin = begin(call, comm, root, port_name, Side::Accepts)?;
    newcomm.set(comm.meet(call.process(), root, begin)?)
}

/// MPI_Comm_connect.
pub fn comm_connect(
    call: &Call,
    port_name: *mut c_void,
    info: Handle<Info>,
    root: i32,
    comm: &Arc<Communicator>,
    newcomm: OutHandle<Communicator>,
) -> Result<()> {
    let begin = begin(call, comm, root, port_name, Side::Connects(hints(info, "info")))?;
    newcomm.set(comm.meet(call.process(), root, begin)?)
}

/// MPI_Comm_join.
pub fn comm_join(call: &Call, fd: i32, intercomm: OutHandle<Communicator>) -> Result<()> {
    let process = call.process();
    let connector = connector(call)?;
    let begin: Begin = Box::new(move || connector.join(fd));
    let made = process.self_communicator().meet(process, 0, Some(begin));
    intercomm.set(made.map_err(|error| Error::new(MPI_ERR_OTHER, error.message().to_owned()))?)
}

/// The longest name of a service.
const SERVICE_BYTES_MAXIMUM: usize = 1024;

fn service_of(service_name: &[u8]) -> Result<&[u8]> {
    if service_name.is_empty() || service_name.len() > SERVICE_BYTES_MAXIMUM {
        return Err(Error::new(
            MPI_ERR_ARG,
            format!(
                "service_name has {} bytes; it must have 1 to {SERVICE_BYTES_MAXIMUM}",
                service_name.len()
            ),
        ));
    }
    Ok(service_name)
}

/// MPI_Publish_name.
pub fn publish_name(
    call: &Call,
    service_name: &[u8],
    info: Option<&Arc<Info>>,
    port_name: &[u8],
) -> Result<()> {
    let _ = info; // No hints are known.
    connector(call)?.publish(service_of(service_name)?, port_name).map_err(error_of(MPI_ERR_SERVICE))
}

/// MPI_Unpublish_name.
pub fn unpublish_name(
    call: &Call,
    service_name: &[u8],
    info: Option<&Arc<Info>>,
    port_name: &[u8],
) -> Result<()> {
    let _ = info; // No hints are known.
    connector(call)?.unpublish(service_of(service_name)?, port_name).map_err(error_of(MPI_ERR_SERVICE))
}

/// MPI_Lookup_name.
pub fn lookup_name(
    call: &Call,
    service_name: &[u8],
    info: Option<&Arc<Info>>,
    port_name: StringOut,
) -> Result<()> {
    let _ = info; // No hints are known.
    let found = connector(call)?.look_up(service_of(service_name)?).map_err(error_of(MPI_ERR_NAME))?;
    let found = found.ok_or_else(|| {
        Error::new(
            MPI_ERR_NAME,
            format!(
                "no process of this user on this machine has published the service '{}'",
                service_name.escape_ascii()
            ),
        )
    })?;
    port_name.set_within(&found, MPI_MAX_PORT_NAME as usize);
    Ok(())
}
