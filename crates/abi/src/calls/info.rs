//! Bodies of procedures: info.

use super::prelude::*;
use parnass_mpi::environment;
use std::ffi::{CStr, c_char};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The pairs of an info object.
pub(super) fn lock(info: &Info) -> MutexGuard<'_, parnass_mpi::Info> {
    info.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pairs of an argument that may be MPI_INFO_NULL: none then.
pub(super) fn copy_of(info: Option<&Arc<Info>>) -> parnass_mpi::Info {
    info.map(|info| lock(info).clone()).unwrap_or_default()
}

/// Hands a new info object to the program.
pub(super) fn give_info(info: parnass_mpi::Info, place: &OutHandle<Info>) -> Result<()> {
    place.set(Arc::new(Mutex::new(info)))
}

/// What MPI_INFO_ENV holds. The same is told before MPI_Init and after MPI_Finalize, where only our launcher's variable knows how many
/// processes there are.
pub fn environment_info(arguments: &[Vec<u8>], call: &Call) -> parnass_mpi::Info {
    let running =
        call.process_if_running().filter(|process| process.app_number() >= 0).map(|process| process.size());
    let started = || std::env::var(parnass_bootstrap::SIZE_VARIABLE).ok()?.parse().ok();
    environment::start_information(arguments, running.or_else(started))
}

/// MPI_INFO_ENV gets its content when it is first looked at after MPI_Init.
fn fill_environment(call: &Call, info: &Info) {
    let known = Info::table().find(MPI_INFO_ENV);
    if known.is_some_and(|known| std::ptr::eq(&**known, info)) && call.process_if_running().is_some() {
        let mut pairs = lock(info);
        if pairs.is_empty() {
            *pairs = environment_info(&environment::program_arguments(), call);
        }
    }
}

fn read<'a>(call: &Call, info: &'a Info) -> MutexGuard<'a, parnass_mpi::Info> {
    fill_environment(call, info);
    lock(info)
}

fn writable<'a>(info: &'a Arc<Info>) -> Result<MutexGuard<'a, parnass_mpi::Info>> {
    match Info::table().find(MPI_INFO_ENV) {
        Some(environment) if Arc::ptr_eq(&environment, info) => Err(Error::new(
            MPI_ERR_INFO,
            "info is MPI_INFO_ENV, which cannot be changed; change a copy made with MPI_Info_dup",
        )),
        _ => Ok(lock(info)),
    }
}

/// MPI_Info_create.
pub fn info_create(_call: &Call, info: OutHandle<Info>) -> Result<()> {
    give_info(parnass_mpi::Info::new(), &info)
}

/// MPI_Info_create_env.
pub fn info_create_env(call: &Call, argc: i32, argv: *mut c_void, info: OutHandle<Info>) -> Result<()> {
    let argv = argv.cast::<*const c_char>();
    let mut arguments = Vec::new();
    if argc > 0 && !argv.is_null() {
        for index in 0..argc as usize {
            // SAFETY: the program gives an array of `argc` strings, as main got it.
            let argument = unsafe { argv.add(index).read() };
            if argument.is_null() {
                break;
            }
            // SAFETY: as above; zero-terminated.
            arguments.push(unsafe { CStr::from_ptr(argument) }.to_bytes().to_vec());
        }
    }
    if arguments.is_empty() {
        arguments = environment::program_arguments();
    }
    give_info(environment_info(&arguments, call), &info)
}

/// MPI_Info_delete.
pub fn info_delete(_call: &Call, info: &Arc<Info>, key: &[u8]) -> Result<()> {
    writable(info)?.delete(key)
}

/// MPI_Info_dup.
pub fn info_dup(call: &Call, info: &Arc<Info>, newinfo: OutHandle<Info>) -> Result<()> {
    let copy = read(call, info).clone();
    give_info(copy, &newinfo)
}

/// MPI_Info_free.
pub fn info_free(_call: &Call, info: InOutHandle<Info>) -> Result<()> {
    if info.is_predefined() {
        return Err(Error::new(MPI_ERR_INFO, "info is MPI_INFO_ENV, which cannot be freed"));
    }
    info.release();
    Ok(())
}

/// MPI_Info_get.
pub fn info_get(
    call: &Call,
    info: &Arc<Info>,
    key: &[u8],
    valuelen: i32,
    value: StringOut,
    flag: Out<bool>,
) -> Result<()> {
    let capacity = usize::try_from(valuelen).map_err(|_| {
        Error::new(
            MPI_ERR_ARG,
            format!("valuelen is {valuelen}; it must be 0 or more, the characters that value can hold"),
        )
    })?;
    let pairs = read(call, info);
    let found = pairs.get(key)?;
    if let Some(found) = found {
        // The array has one character more than `valuelen`, for the terminating zero.
        value.set_within(found, capacity + 1);
    }
    flag.set(found.is_some());
    Ok(())
}

/// MPI_Info_get_nkeys.
pub fn info_get_nkeys(call: &Call, info: &Arc<Info>, nkeys: Out<i32>) -> Result<()> {
    nkeys.set(read(call, info).len() as i32);
    Ok(())
}

/// MPI_Info_get_nthkey.
pub fn info_get_nthkey(call: &Call, info: &Arc<Info>, n: i32, key: StringOut) -> Result<()> {
    key.set(read(call, info).nth_key(n)?);
    Ok(())
}

/// MPI_Info_get_string.
pub fn info_get_string(
    call: &Call,
    info: &Arc<Info>,
    key: &[u8],
    buflen: InOut<i32>,
    value: StringOut,
    flag: Out<bool>,
) -> Result<()> {
    let capacity = usize::try_from(buflen.get()).map_err(|_| {
        Error::new(
            MPI_ERR_ARG,
            format!("buflen is {}; it must be 0 or more, the size of value", buflen.get()),
        )
    })?;
    let pairs = read(call, info);
    let found = pairs.get(key)?;
    if let Some(found) = found {
        value.set_within(found, capacity);
        buflen.set(found.len() as i32 + 1);
    }
    flag.set(found.is_some());
    Ok(())
}

/// MPI_Info_get_valuelen.
pub fn info_get_valuelen(
    call: &Call,
    info: &Arc<Info>,
    key: &[u8],
    valuelen: Out<i32>,
    flag: Out<bool>,
) -> Result<()> {
    let pairs = read(call, info);
    let found = pairs.get(key)?;
    if let Some(found) = found {
        valuelen.set(found.len() as i32);
    }
    flag.set(found.is_some());
    Ok(())
}

/// MPI_Info_set.
pub fn info_set(_call: &Call, info: &Arc<Info>, key: &[u8], value: &[u8]) -> Result<()> {
    writable(info)?.set(key, value)
}
