//! Buffered sends and the buffers that the program gives for them (MPI 5.0, section 3.6).
//!
//! A buffer belongs to a communicator, to a session, or to the whole process; a send takes the one of its communicator if
//! there is one, else that of the session that the communicator comes from, or that of the process. Each message that is not on its way yet takes its length and [`OVERHEAD_BYTES`] from the
//! buffer's account, whether or not the library had to store it there.

use crate::comm::{Communicator, Plane};
use crate::constants::{MPI_BSEND_OVERHEAD, MPI_ERR_ARG, MPI_ERR_BUFFER};
use crate::datatype::Buffer;
use crate::error::{Error, Result};
use crate::process::{Process, UserBytes};
use crate::pt2pt::staging::Staging;
use crate::pt2pt::transfer::{Started, match_bits};
use crate::request::Request;
use crate::request::slots::SlotName;
use crate::session::Session;
use parnass_base::UserAddress;
use parnass_portals::ProcessId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What each message takes from the buffer beyond its data, in bytes. MPI_BSEND_OVERHEAD is an upper bound of it; programs of
/// MPICH's ABI were compiled with this smaller one.
pub const OVERHEAD_BYTES: u64 = 96;

const _: () = assert!(OVERHEAD_BYTES <= MPI_BSEND_OVERHEAD as u64);

/// How long a message waits for those before it, of which it may not have been told yet that they have gone.
const PATIENCE: Duration = Duration::from_millis(10);

/// The address that stands for a buffer that the library provides itself (MPI_BUFFER_AUTOMATIC).
pub const AUTOMATIC: usize = 2;

/// Which buffer a call is about.
#[derive(Clone, Copy, Debug)]
pub enum BufferOwner<'a> {
    Process,
    Communicator(&'a Arc<Communicator>),
    Session(&'a Session),
}

/// [`BufferOwner`] as a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Owner {
    Process,
    Context(u32),
    Session(u32),
}

/// The buffers of a process.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    accounts: Mutex<HashMap<Owner, Arc<BufferAccount>>>,
    /// Of communicators that were freed before their messages were on their way.
    retired: Mutex<Vec<Arc<BufferAccount>>>,
}

/// One attached buffer and what is stored there.
#[derive(Debug)]
pub(crate) struct BufferAccount {
    address: UserAddress,
    /// `None`: as much as there is (MPI_BUFFER_AUTOMATIC).
    size: Option<u64>,
    pending: Mutex<Vec<Pending>>,
}

/// A message that is not on its way yet.
#[derive(Debug)]
struct Pending {
    /// Where in the buffer its data is stored; `None`: in working memory of the library.
    offset: Option<u64>,
    length: u64,
    /// Holds that memory until the message is on its way.
    _staging: Option<Staging>,
    /// `None`: its sender is just about to hand it to the NIC.
    name: Option<SlotName>,
    /// Where it goes.
    envelope: Option<(ProcessId, u64)>,
    number: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl BufferAccount {
    /// Whether no message needs the buffer any more.
    pub(crate) fn is_idle(&self, process: &Process) -> bool {
        self.settled(process).is_empty()
    }

    /// The messages that still need the buffer.
    fn settled(&self, process: &Process) -> MutexGuard<'_, Vec<Pending>> {
        let mut pending = lock(&self.pending);
        settle(&mut pending, process);
        pending
    }

    /// Takes room for a message. Returns its number and where its data is to be stored.
    fn reserve(&self, process: &Process, length: u64) -> Result<(u64, UserAddress)> {
        let mut pending = self.settled(process);
        if let Some(size) = self.size {
            let used = |pending: &[Pending]| -> u64 {
                pending.iter().map(|message| message.length + OVERHEAD_BYTES).sum()
            };
            let fits = |pending: &[Pending]| used(pending) + length + OVERHEAD_BYTES <= size;
            // What has been received long ago may not have been told yet: a barrier, for one, asks the NIC nothing. And who has moved a message may have
            // told its receiver, and be about to tell this process.
            let mut end = None;
            while !fits(&pending)
                && fits(&[])
                && Instant::now() < *end.get_or_insert_with(|| Instant::now() + PATIENCE)
            {
                drop(pending);
                if !process.progress() {
                    std::thread::yield_now();
                }
                pending = self.settled(process);
            }
            if !fits(&pending) {
                return Err(does_not_fit(length, used(&pending), pending.len(), size));
            }
        }
        let offset = self.size.and_then(|size| first_fit(&pending, length, size));
        let staging = offset.is_none().then(|| process.staging.take(length));
        let address = match (&staging, offset) {
            (Some(staging), _) => staging.address(),
            (None, offset) => self.address.offset(offset.unwrap_or(0) as i64),
        };
        let number = pending.last().map_or(0, |last| last.number + 1);
        pending.push(Pending { offset, length, _staging: staging, name: None, envelope: None, number });
        Ok((number, address))
    }

    /// Tells what became of the message after it was handed to the NIC.
    fn started(&self, number: u64, name: Option<SlotName>, envelope: (ProcessId, u64)) {
        let mut pending = lock(&self.pending);
        let Some(index) = pending.iter().position(|message| message.number == number) else { return };
        match name {
            Some(name) => {
                pending[index].name = Some(name);
                pending[index].envelope = Some(envelope);
            }
            None => drop(pending.remove(index)),
        }
    }
}

/// Lets go of the messages that are on their way.
fn settle(pending: &mut Vec<Pending>, process: &Process) {
    pending.retain(|message| {
        let Some(name) = message.name else { return true };
        let hopeless = || {
            process.faults.is_active()
                && message
                    .envelope
                    .is_some_and(|(target, bits)| process.interrupt(name, None, Some(target), bits, false))
        };
        let complete = process.slots.is_complete(name) || hopeless();
        if complete {
            process.slots.release(name);
        }
        !complete
    });
}

/// The first gap of the buffer that holds `length` bytes. The messages' overhead is not stored, so that mostly there is one.
fn first_fit(pending: &[Pending], length: u64, size: u64) -> Option<u64> {
    let mut stored: Vec<(u64, u64)> =
        pending.iter().filter_map(|message| Some((message.offset?, message.length))).collect();
    stored.sort_unstable();
    let mut start = 0;
    for (offset, stored_length) in stored {
        if offset - start >= length {
            return Some(start);
        }
        start = offset + stored_length;
    }
    (size - start >= length).then_some(start)
}

#[cold]
fn does_not_fit(length: u64, used: u64, messages: usize, size: u64) -> Error {
    Error::new(
        MPI_ERR_BUFFER,
        format!(
            "a message of {length} bytes (and {OVERHEAD_BYTES} bytes of what MPI_BSEND_OVERHEAD allows for) does not fit into the attached \
             buffer of {size} bytes, of which {messages} messages under way use {used}; attach a larger buffer or \
             MPI_BUFFER_AUTOMATIC, or flush it first"
        ),
    )
}

impl Buffers {
    fn key(owner: BufferOwner<'_>) -> Owner {
        match owner {
            BufferOwner::Process => Owner::Process,
            BufferOwner::Communicator(communicator) => {
                Owner::Context(communicator.context(Plane::PointToPoint))
            }
            BufferOwner::Session(session) => Owner::Session(session.number()),
        }
    }

    fn get(&self, owner: BufferOwner<'_>) -> Option<Arc<BufferAccount>> {
        lock(&self.accounts).get(&Self::key(owner)).cloned()
    }

    fn account_for(&self, communicator: &Communicator) -> Result<Arc<BufferAccount>> {
        let accounts = lock(&self.accounts);
        let own = accounts.get(&Owner::Context(communicator.context(Plane::PointToPoint)));
        let common = match communicator.group().session() {
            0 => Owner::Process,
            session => Owner::Session(session),
        };
        own.or_else(|| accounts.get(&common)).cloned().ok_or_else(|| {
            Error::new(
                MPI_ERR_BUFFER,
                "no buffer is attached, so that nothing can be sent in buffered mode; call MPI_Buffer_attach (MPI_Session_attach_buffer for what comes from a session) or MPI_Comm_attach_buffer first",
            )
        })
    }

    /// Waits until no message needs any of the buffers.
    pub(crate) fn flush_all(&self, process: &Process) {
        let mut accounts: Vec<_> = lock(&self.accounts).values().cloned().collect();
        accounts.append(&mut lock(&self.retired));
        for account in accounts {
            process.wait_until(None, || account.is_idle(process).then_some(()));
        }
    }
}

impl Process {
    /// MPI_Buffer_attach, MPI_Comm_attach_buffer: gives a buffer of `size` bytes; the address [`AUTOMATIC`] asks the
    /// library to find memory itself.
    pub fn attach_buffer(&self, owner: BufferOwner<'_>, address: UserAddress, size: u64) -> Result<()> {
        let automatic = address.value() == AUTOMATIC;
        if !automatic && address == UserAddress::NULL && size > 0 {
            return Err(Error::new(
                MPI_ERR_ARG,
                format!(
                    "the buffer is NULL, but its size is {size}; give memory of that size, or MPI_BUFFER_AUTOMATIC"
                ),
            ));
        }
        let mut accounts = lock(&self.buffers.accounts);
        let key = Buffers::key(owner);
        if let Some(attached) = accounts.get(&key) {
            let whose = match key {
                Owner::Process => "the process",
                Owner::Context(_) => "the communicator",
                Owner::Session(_) => "the session",
            };
            return Err(Error::new(
                MPI_ERR_BUFFER,
                format!(
                    "{whose} has a buffer already, of {} bytes at {:#x}; detach it first",
                    attached.size.unwrap_or(0),
                    attached.address.value()
                ),
            ));
        }
        let size = (!automatic).then_some(size);
        accounts.insert(key, Arc::new(BufferAccount { address, size, pending: Mutex::new(Vec::new()) }));
        Ok(())
    }

    /// MPI_Buffer_detach, MPI_Comm_detach_buffer: waits until no message needs the buffer, and gives it back. The
    /// size of an automatic one is 0.
    pub fn detach_buffer(&self, owner: BufferOwner<'_>) -> Result<(UserAddress, u64)> {
        let account = self.buffers.get(owner).ok_or_else(|| {
            Error::new(
                MPI_ERR_BUFFER,
                "no buffer is attached, so that there is none to detach; attach one first",
            )
        })?;
        self.wait_until(None, || account.is_idle(self).then_some(()));
        lock(&self.buffers.accounts).remove(&Buffers::key(owner));
        Ok((account.address, account.size.unwrap_or(0)))
    }

    /// For MPI_Comm_free and MPI_Comm_disconnect: the communicator's buffer is its no more. Its messages still go.
    pub fn retire_buffer(&self, communicator: &Arc<Communicator>) {
        let key = Buffers::key(BufferOwner::Communicator(communicator));
        let Some(account) = lock(&self.buffers.accounts).remove(&key) else { return };
        if !account.is_idle(self) {
            lock(&self.buffers.retired).push(account);
        }
    }

    /// MPI_Buffer_flush, MPI_Comm_flush_buffer: waits until no message needs the buffer.
    pub fn flush_buffer(&self, owner: BufferOwner<'_>) -> Result<()> {
        if let Some(account) = self.buffers.get(owner) {
            self.wait_until(None, || account.is_idle(self).then_some(()));
        }
        Ok(())
    }

    /// MPI_Buffer_iflush, MPI_Comm_iflush_buffer.
    pub fn start_flush_buffer(&self, owner: BufferOwner<'_>) -> Result<Arc<Request>> {
        let communicator = match owner {
            BufferOwner::Process | BufferOwner::Session(_) => None,
            BufferOwner::Communicator(communicator) => Some(communicator),
        };
        Ok(match self.buffers.get(owner) {
            Some(account) => Request::flush(communicator, account),
            None => Request::complete(communicator, Ok(crate::request::Status::EMPTY)),
        })
    }

    /// Sends in buffered mode: the buffer may be reused when this returns.
    pub(crate) fn start_buffered_send(
        &self,
        communicator: &Communicator,
        plane: Plane,
        target: i32,
        tag: u32,
        buffer: Buffer<'_>,
    ) -> Result<()> {
        let account = self.buffers.account_for(communicator)?;
        let layout = buffer.datatype.layout();
        let length = buffer.size();
        let (number, address) = account.reserve(self, length)?;
        layout.pack(buffer.count, buffer.address, 0, address, length);
        let match_bits = match_bits(communicator, plane, tag);
        let bytes = UserBytes { address, length };
        let started = self.put(communicator.peer(target), match_bits, bytes.into(), false, None);
        account.started(
            number,
            match &started {
                Ok(Started::InFlight(name)) => Some(*name),
                _ => None,
            },
            (communicator.peer(target), match_bits),
        );
        started.map(|_| ())
    }
}
