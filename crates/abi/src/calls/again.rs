//! Sends and receives whose arguments were right before.
//!
//! Most messages of a program have a communicator, a rank, a datatype and a count in common with one before. What these come to is
//! kept, so that their call looks up no handle and checks none of them once more: an MPI_Irecv takes 0.6 of the instructions.
//! All is forgotten when a communicator or a datatype is freed; and it is kept only while calls come from one thread at a time, so
//! that no other thread can free one meanwhile. Whatever is unusual, or wrong, takes the long way.

use crate::arguments::{Address, StatusOut, StatusRecord};
use crate::call::Call;
use crate::calls::request::store;
use crate::handles::Class;
use crate::objects::{Communicator, Datatype, Process, SENT, quick_handle};
use crate::state;
use parnass_base::UserAddress;
use parnass_mpi::Error;
use parnass_mpi::constants::{MPI_IN_PLACE, MPI_SUCCESS};
use parnass_mpi::pt2pt::Route;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};

/// How much is kept. A place is found by rank and count.
const PLACES: usize = 16;

/// Arguments that were right, and what they come to.
#[repr(align(64))]
struct Known {
    /// 0, which is no handle: none.
    comm: AtomicUsize,
    datatype: AtomicUsize,
    count: AtomicI64,
    route: [AtomicU64; 4],
}

static KNOWN: [Known; PLACES] = [const {
    Known {
        comm: AtomicUsize::new(0),
        datatype: AtomicUsize::new(0),
        count: AtomicI64::new(0),
        route: [const { AtomicU64::new(0) }; 4],
    }
}; PLACES];

/// A communicator or a datatype was freed, or several threads may call from now on.
pub fn forget() {
    KNOWN.iter().for_each(|known| known.comm.store(0, Ordering::Relaxed));
}

/// What these arguments come to. `None`: they are not of the usual kind, or not right.
#[inline(always)]
fn find(comm: usize, datatype: usize, count: i64, rank: c_int) -> Option<Route> {
    let known = &KNOWN[(rank as usize ^ count as usize) % PLACES];
    // Acquire pairs with the release in `learn`.
    let same = known.comm.load(Ordering::Acquire) == comm;
    let route = Route::from_words(std::array::from_fn(|word| known.route[word].load(Ordering::Relaxed)));
    if same
        && known.datatype.load(Ordering::Relaxed) == datatype
        && known.count.load(Ordering::Relaxed) == count
        && route.rank() == rank
    {
        return Some(route);
    }
    learn(known, comm, datatype, count, rank)
}

#[cold]
fn learn(known: &Known, comm: usize, datatype: usize, count: i64, rank: c_int) -> Option<Route> {
    if rank < 0 || count < 0 || !state::one_thread_at_a_time() {
        return None;
    }
    let communicator = Communicator::table().find(comm)?;
    let element = Datatype::table().find(datatype)?;
    if rank >= communicator.remote_size() || !element.is_committed() {
        return None;
    }
    let route = Route::new(&communicator, rank, &element, count as u64)?;
    known.comm.store(0, Ordering::Relaxed);
    known.datatype.store(datatype, Ordering::Relaxed);
    known.count.store(count, Ordering::Relaxed);
    for (place, word) in known.route.iter().zip(route.words()) {
        place.store(word, Ordering::Relaxed);
    }
    // Release, so that who sees it sees the rest.
    known.comm.store(comm, Ordering::Release);
    Some(route)
}

/// The process, what the arguments come to, and the memory, if the others are of the usual kind too.
///
/// # Safety
/// The arguments are as for the procedure.
#[inline(always)]
unsafe fn usual(
    buf: *const c_void,
    count: i64,
    datatype: usize,
    rank: c_int,
    tag: c_int,
    comm: usize,
) -> Option<(&'static Arc<Process>, Route, UserAddress)> {
    let process = &state::running()?.process;
    let route = find(comm, datatype, count, rank)?;
    // SAFETY: the caller's promise.
    let buffer = unsafe { Address::new(buf) }.user();
    (buf.addr() > MPI_IN_PLACE && tag >= 0).then_some((process, route, buffer))
}

/// MPI_Send and MPI_Rsend. `None`: it takes the long way.
///
/// # Safety
/// The arguments are as for the procedure.
#[inline(always)]
pub unsafe fn send(
    _name: &'static str,
    buf: *const c_void,
    count: i64,
    datatype: usize,
    dest: c_int,
    tag: c_int,
    comm: usize,
) -> Option<c_int> {
    // SAFETY: the caller's promise.
    let (process, route, buffer) = unsafe { usual(buf, count, datatype, dest, tag, comm) }?;
    process.sends_on(&route, buffer, tag).then_some(MPI_SUCCESS)
}

/// MPI_Isend and MPI_Irsend. `None`: it takes the long way.
///
/// # Safety
/// The arguments are as for the procedure.
#[inline(always)]
pub unsafe fn isend(
    _name: &'static str,
    buf: *const c_void,
    count: i64,
    datatype: usize,
    dest: c_int,
    tag: c_int,
    comm: usize,
    request: *mut usize,
) -> Option<c_int> {
    // SAFETY: the caller's promise.
    let (process, route, buffer) = unsafe { usual(buf, count, datatype, dest, tag, comm) }?;
    if request.is_null() {
        return None;
    }
    if !process.starts_sending_on(&route, buffer, tag) {
        return None;
    }
    // SAFETY: the program gave the address of a variable, which is not null.
    unsafe { request.write(SENT) };
    Some(MPI_SUCCESS)
}

/// MPI_Recv. `None`: it takes the long way.
///
/// # Safety
/// The arguments are as for the procedure.
#[inline(always)]
pub unsafe fn recv(
    name: &'static str,
    buf: *mut c_void,
    count: i64,
    datatype: usize,
    source: c_int,
    tag: c_int,
    comm: usize,
    status: *mut StatusRecord,
) -> Option<c_int> {
    // SAFETY: the caller's promise.
    let (process, route, buffer) = unsafe { usual(buf, count, datatype, source, tag, comm) }?;
    match process.receive_on(&route, buffer, tag) {
        Ok(received) => {
            store(StatusOut::new(status), &received);
            Some(MPI_SUCCESS)
        }
        Err(error) => Some(failed(name, comm, error)),
    }
}

#[cold]
fn failed(name: &'static str, comm: usize, error: Error) -> c_int {
    Call::enter(name).fail_on(comm, error)
}

/// MPI_Irecv. `None`: it takes the long way.
///
/// # Safety
/// The arguments are as for the procedure.
#[inline(always)]
pub unsafe fn irecv(
    _name: &'static str,
    buf: *mut c_void,
    count: i64,
    datatype: usize,
    source: c_int,
    tag: c_int,
    comm: usize,
    request: *mut usize,
) -> Option<c_int> {
    // SAFETY: the caller's promise.
    let (process, route, buffer) = unsafe { usual(buf, count, datatype, source, tag, comm) }?;
    if request.is_null() {
        return None;
    }
    let quick = process.receive_quickly_on(&route, buffer, tag)?;
    // SAFETY: the program gave the address of a variable, which is not null.
    unsafe { request.write(quick_handle(quick)) };
    Some(MPI_SUCCESS)
}
