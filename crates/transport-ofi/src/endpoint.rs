//! One endpoint of libfabric with all that belongs to it. What is unsafe in this crate besides finding the library is here;
//! what is here knows no packets.
//!
//! Buffers for what is sent and received lie in one piece of memory, and are named by their numbers, *slots*. All calls are
//! made by one thread at a time: an endpoint is behind a lock.

use crate::abi;
use crate::library::{Library, Signals, Way, Ways};
use parnass_base::{Scratch, UserAddress};
use parnass_transport_stream::proof::fresh;
use parnass_transport_stream::{Region, Remote};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::io;
use std::ops::Range;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;

/// Bytes of a slot: what providers send at once, without asking whether they may.
pub const SLOT: usize = 16 << 10;
/// Slots for what is received and for what is sent.
pub const RECEIVING: Range<usize> = 0..64;
pub const SENDING: Range<usize> = 64..128;
/// What stands for a read, beside the slots.
pub const READING: Range<usize> = 128..160;
/// The first key of memory that this side chooses; that of the slots is the one before.
const FIRST_KEY: u64 = 2;
/// Bytes that an operation's context may take, for the provider (`struct fi_context2`).
const CONTEXT: usize = 64;
/// Longest address of an endpoint, in bytes.
pub const ADDRESS: usize = 256;

/// What has become of an operation.
#[derive(Debug)]
pub enum Completion {
    /// So many bytes have come into this slot.
    Received(usize, usize),
    /// This slot is sent, and free.
    Sent(usize),
    /// What this read was to bring is in its place.
    Read(usize),
    /// The operation of this slot, or this read, has failed.
    Failed(usize, io::Error),
}

/// See the module's description.
pub struct Endpoint {
    library: Arc<Library>,
    fabric: *mut abi::Fabric,
    domain: *mut abi::Domain,
    vector: *mut abi::Vector,
    queue: *mut abi::Queue,
    endpoint: *mut abi::Endpoint,
    /// The memory of the slots, as the provider knows it; null where it need not.
    memory: *mut abi::Memory,
    /// Other memory that it knows, by names that begin at [`FIRST_KEY`].
    regions: BTreeMap<u64, *mut abi::Memory>,
    next_region: u64,
    /// What the provider asks of memory that it is to know, and bytes of a key.
    mode: c_int,
    key_size: usize,
    /// The longest run that can be read at once; 0: none.
    reads: usize,
    slots: Scratch,
    contexts: Scratch,
    inject_size: usize,
    wait: Option<RawFd>,
    provider: String,
}

// SAFETY: the objects belong to no thread; that one call is made at a time is seen to by exclusive access, which all methods
// that make calls ask for.
unsafe impl Send for Endpoint {}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} of {:?}", self.provider, self.library)
    }
}

/// The `fid` of an object, null for null.
macro_rules! fid {
    ($object:expr) => {
        $object.cast::<abi::Fid>()
    };
}

impl Endpoint {
    /// An endpoint that is open; `reads`: it is to read the memory of others, and let them read its own, if it can.
    ///
    /// # Errors
    /// A sentence: which step has failed, and why.
    pub fn open(ways: &Ways, way: &Way, reads: bool) -> Result<Endpoint, String> {
        let _signals = Signals::keep();
        let library = ways.library().clone();
        let mut new = Endpoint {
            library: library.clone(),
            fabric: std::ptr::null_mut(),
            domain: std::ptr::null_mut(),
            vector: std::ptr::null_mut(),
            queue: std::ptr::null_mut(),
            endpoint: std::ptr::null_mut(),
            memory: std::ptr::null_mut(),
            regions: BTreeMap::new(),
            next_region: FIRST_KEY,
            mode: 0,
            key_size: 0,
            reads: if reads { way.reads() } else { 0 },
            slots: Scratch::new(SLOT * SENDING.end),
            contexts: Scratch::new(CONTEXT * READING.end),
            inject_size: 0,
            wait: None,
            provider: way.provider.clone(),
        };
        let check = |step: &str, result: c_int| {
            let said =
                || format!("{} of {}: {step}: {}", way.domain, way.provider, library.error(result as isize));
            if result == 0 { Ok(()) } else { Err(said()) }
        };
        let info = ways.info(way, reads);
        let none = std::ptr::null_mut();
        // SAFETY: the list is whole. Nothing else is done with its entries meanwhile; providers may write to them.
        let attributes = unsafe {
            new.inject_size = (*(*info).transmit).inject_size;
            new.mode = (*(*info).domain).memory_mode;
            new.key_size = (*(*info).domain).memory_key_size;
            (*info).fabric
        };
        // SAFETY: attributes that libfabric has made itself, and a place for the object.
        check("fabric", unsafe { (library.open_fabric)(attributes, &mut new.fabric, none) })?;
        // SAFETY: an object that was opened has a whole table; the entry is one of this fabric.
        let result = unsafe { ((*(*new.fabric).ops).domain)(new.fabric, info, &mut new.domain, none) };
        check("domain", result)?;
        let mut vector = abi::VectorAttributes {
            kind: abi::AV_UNSPEC,
            receive_context_bits: 0,
            count: 0,
            endpoints_per_node: 0,
            name: std::ptr::null(),
            map_address: none,
            flags: 0,
        };
        // SAFETY: whole attributes, a place for the object, and the table of an open object.
        let result =
            unsafe { ((*(*new.domain).ops).open_vector)(new.domain, &mut vector, &mut new.vector, none) };
        check("address vector", result)?;
        new.open_queue().map_err(|error| format!("{} of {}: queue: {error}", way.domain, way.provider))?;
        // SAFETY: an entry of this domain, a place for the object, the table of an open object.
        let result = unsafe { ((*(*new.domain).ops).endpoint)(new.domain, info, &mut new.endpoint, none) };
        check("endpoint", result)?;
        // SAFETY: open objects, which the endpoint may be bound to, and its own table.
        let (vector, queue, enable) = unsafe {
            let ops = &*(*new.endpoint).fid.ops;
            let own = fid!(new.endpoint);
            let vector = (ops.bind)(own, fid!(new.vector), 0);
            let queue = (ops.bind)(own, fid!(new.queue), abi::SEND | abi::RECV);
            (vector, queue, (ops.control)(own, abi::ENABLE, none))
        };
        check("binding the address vector", vector)?;
        check("binding the queue", queue)?;
        check("enabling", enable)?;
        if new.mode & abi::MR_LOCAL != 0 {
            let (slots, length) = (new.slots.address(), new.slots.len());
            let known = new.register(slots, length, abi::SEND | abi::RECV, FIRST_KEY - 1);
            new.memory = known.map_err(|error| {
                format!("{} of {}: registering memory: {error}", way.domain, way.provider)
            })?;
        }
        for slot in RECEIVING {
            new.receive(slot)
                .map_err(|error| format!("{} of {}: receiving: {error}", way.domain, way.provider))?;
        }
        Ok(new)
    }

    /// The completion queue: one that a poll set can watch, if the provider has such.
    fn open_queue(&mut self) -> io::Result<()> {
        for wait in [abi::WAIT_FD, abi::WAIT_NONE] {
            let mut attributes = abi::QueueAttributes {
                size: 2 * READING.end,
                flags: 0,
                format: abi::CQ_FORMAT_MSG,
                wait,
                signaling_vector: 0,
                wait_condition: 0,
                wait_set: std::ptr::null_mut(),
            };
            let none = std::ptr::null_mut();
            // SAFETY: whole attributes, a place for the object, the table of an open object.
            let result = unsafe {
                ((*(*self.domain).ops).open_queue)(self.domain, &mut attributes, &mut self.queue, none)
            };
            if result == 0 && wait == abi::WAIT_NONE {
                return Ok(());
            }
            if result == 0 {
                let mut descriptor: c_int = -1;
                // SAFETY: an open queue with a descriptor to wait for, and a place for its number.
                let result = unsafe {
                    let ops = &*(*self.queue).fid.ops;
                    (ops.control)(fid!(self.queue), abi::GETWAIT, (&raw mut descriptor).cast())
                };
                if result == 0 && descriptor >= 0 {
                    self.wait = Some(descriptor);
                    return Ok(());
                }
                self.close(fid!(self.queue));
                self.queue = std::ptr::null_mut();
            } else if wait == abi::WAIT_NONE {
                return Err(self.library.error(result as isize));
            }
        }
        Ok(())
    }

    /// Makes memory known to the provider, for these accesses; under this key, unless the provider chooses one.
    fn register(
        &self,
        address: UserAddress,
        length: usize,
        access: u64,
        key: u64,
    ) -> io::Result<*mut abi::Memory> {
        let (start, none) = (address.as_ptr().cast(), std::ptr::null_mut());
        let mut memory = std::ptr::null_mut();
        // SAFETY: an open domain, its own table, and a place for the object. The memory is that of the slots, or the user's,
        // promised for an operation that is over only after the registration was closed.
        let result = unsafe {
            let register = (*(*self.domain).memory).register;
            register(fid!(self.domain), start, length, access, 0, key, 0, &mut memory, none)
        };
        if result != 0 {
            return Err(self.library.error(result as isize));
        }
        if self.mode & abi::MR_ENDPOINT != 0 {
            // SAFETY: an open registration, and the endpoint that it is for.
            let result = unsafe {
                let ops = &*(*memory).fid.ops;
                match (ops.bind)(fid!(memory), fid!(self.endpoint), 0) {
                    0 => (ops.control)(fid!(memory), abi::ENABLE, none),
                    result => result,
                }
            };
            if result != 0 {
                self.close(fid!(memory));
                return Err(self.library.error(result as isize));
            }
        }
        Ok(memory)
    }

    /// As [`Endpoint::register`], under the next name.
    fn register_next(&mut self, address: UserAddress, length: usize, access: u64) -> io::Result<u64> {
        let name = self.next_region;
        let key = match self.key_size {
            // Nobody is to guess it.
            8.. => u64::from_le_bytes(*fresh()?.first_chunk().expect("a secret is longer")).max(FIRST_KEY),
            short if name >> (8 * short) == 0 => name,
            _ => return Err(io::Error::other("all keys of memory were used")),
        };
        let memory = self.register(address, length, access, key)?;
        self.next_region += 1;
        self.regions.insert(name, memory);
        Ok(name)
    }

    /// The longest run of memory that can be read at once; 0: none can.
    pub fn reads(&self) -> usize {
        self.reads
    }

    /// Lets others read `length` bytes of the user.
    pub fn open_region(&mut self, address: UserAddress, length: usize) -> io::Result<Region> {
        self.is_open()?;
        let name = self.register_next(address, length, abi::REMOTE_READ)?;
        // SAFETY: an open registration.
        let key = unsafe { (*self.regions[&name]).key };
        let start = if self.mode & abi::MR_VIRT_ADDR != 0 { address.value() as u64 } else { 0 };
        Ok(Region { name, remote: Remote { key, address: start } })
    }

    /// Forgets memory that it knows.
    pub fn close_region(&mut self, name: u64) {
        if let Some(memory) = self.regions.remove(&name) {
            self.close(fid!(memory));
        }
    }

    /// Makes memory known into which is to be read, where it must be; the name of the region.
    pub fn prepare(&mut self, target: UserAddress, length: usize) -> io::Result<Option<u64>> {
        self.is_open()?;
        let needed = self.mode & abi::MR_LOCAL != 0;
        if needed { self.register_next(target, length, abi::READ).map(Some) } else { Ok(None) }
    }

    /// Begins to read memory of `source` into `length` bytes of the user at `target`, which [`Endpoint::prepare`] has made known as
    /// `region`. The completion of `read` tells when that is over.
    ///
    /// # Errors
    /// `WouldBlock`: not now. Else what libfabric says.
    pub fn read(
        &mut self,
        read: usize,
        source: u64,
        from: Remote,
        target: UserAddress,
        length: usize,
        region: Option<u64>,
    ) -> io::Result<()> {
        debug_assert!(READING.contains(&read), "{read} is not for reading");
        self.is_open()?;
        let memory = region.and_then(|name| self.regions.get(&name)).copied();
        // SAFETY: an open registration.
        let descriptor = memory.map_or(std::ptr::null_mut(), |memory| unsafe { (*memory).descriptor });
        let (buffer, context) = (target.as_ptr().cast(), self.context(read));
        // SAFETY: the memory is the user's, promised until the operation that it is for is over, which it is only after the
        // completion, or after this endpoint was closed; the context lives as long as the endpoint. A table of reads is there, since
        // the endpoint is of a way that has them.
        let result = unsafe {
            let read = (*(*self.endpoint).remote).read;
            read(self.endpoint, buffer, length, descriptor, source, from.address, from.key, context)
        };
        if result == 0 { Ok(()) } else { Err(self.library.error(result)) }
    }

    fn descriptor(&self) -> *mut c_void {
        // SAFETY: null, or an open registration.
        unsafe { self.memory.as_ref() }.map_or(std::ptr::null_mut(), |memory| memory.descriptor)
    }

    /// Where a slot lies.
    pub fn slot(&self, slot: usize) -> UserAddress {
        assert!(slot < SENDING.end, "no slot {slot}");
        self.slots.address().offset((slot * SLOT) as i64)
    }

    fn context(&self, slot: usize) -> *mut c_void {
        self.contexts.address().offset((slot * CONTEXT) as i64).as_ptr().cast()
    }

    /// The slot or the read whose operation has completed.
    fn slot_of(&self, context: *mut c_void) -> Option<usize> {
        let offset = (context as usize).checked_sub(self.contexts.address().value())?;
        (offset % CONTEXT == 0 && offset / CONTEXT < READING.end).then_some(offset / CONTEXT)
    }

    /// The address of this endpoint, for others.
    pub fn name(&mut self) -> io::Result<Vec<u8>> {
        self.is_open()?;
        let mut bytes = [0u8; ADDRESS];
        let mut length = bytes.len();
        // SAFETY: an enabled endpoint, its own table, and room of the length given.
        let result = unsafe {
            let get_name = (*(*self.endpoint).connections).get_name;
            get_name(fid!(self.endpoint), bytes.as_mut_ptr().cast(), &mut length)
        };
        if result != 0 {
            return Err(self.library.error(result as isize));
        }
        Ok(bytes[..length.min(ADDRESS)].to_vec())
    }

    /// Makes an address of an endpoint of the same kind usable.
    pub fn insert(&mut self, address: &[u8]) -> io::Result<u64> {
        let mut bytes = [0u8; ADDRESS];
        let length = address.len().min(ADDRESS);
        bytes[..length].copy_from_slice(&address[..length]);
        let mut name = abi::ADDRESS_UNSPECIFIED;
        // SAFETY: one address, with nothing but zeros behind it in case its own idea of its length is longer, and a place
        // for one name.
        let inserted = unsafe {
            let insert = (*(*self.vector).ops).insert;
            insert(self.vector, bytes.as_ptr().cast(), 1, &mut name, 0, std::ptr::null_mut())
        };
        if inserted == 1 {
            return Ok(name);
        }
        let number = if inserted < 0 { inserted as isize } else { libc::EADDRNOTAVAIL as isize };
        Err(self.library.error(number))
    }

    /// Makes a slot ready for the next message.
    pub fn receive(&mut self, slot: usize) -> io::Result<()> {
        debug_assert!(RECEIVING.contains(&slot), "slot {slot} is not for receiving");
        self.is_open()?;
        let (buffer, context, descriptor) = (self.slot(slot).as_ptr(), self.context(slot), self.descriptor());
        // SAFETY: the slot lives until the endpoint is closed, and nobody uses it before its completion.
        let result = unsafe {
            let receive = (*(*self.endpoint).messages).receive;
            receive(self.endpoint, buffer.cast(), SLOT, descriptor, abi::ADDRESS_UNSPECIFIED, context)
        };
        if result == 0 { Ok(()) } else { Err(self.library.error(result)) }
    }

    /// Sends the first `length` bytes of a slot; `may_inject`: without a completion, if they are few. `true`: the slot is free at
    /// once; else its completion will say so.
    ///
    /// # Errors
    /// `WouldBlock`: not now. Else what libfabric says.
    pub fn send(&mut self, slot: usize, length: usize, target: u64, may_inject: bool) -> io::Result<bool> {
        debug_assert!(SENDING.contains(&slot) && length <= SLOT, "slot {slot} is not for sending");
        self.is_open()?;
        let (buffer, context, descriptor) = (self.slot(slot).as_ptr(), self.context(slot), self.descriptor());
        let inject = may_inject && length <= self.inject_size;
        // SAFETY: the slot lives until the endpoint is closed, and nobody writes to it before its completion; what is
        // injected may be reused at once.
        let result = unsafe {
            let messages = &*(*self.endpoint).messages;
            if inject {
                (messages.inject)(self.endpoint, buffer.cast(), length, target)
            } else {
                (messages.send)(self.endpoint, buffer.cast(), length, descriptor, target, context)
            }
        };
        match result {
            0 => Ok(inject),
            number => Err(self.library.error(number)),
        }
    }

    /// Lets the provider work, and takes what has completed.
    ///
    /// # Errors
    /// The queue is of no use any more.
    pub fn progress(&mut self, completed: &mut Vec<Completion>) -> io::Result<()> {
        if self.is_open().is_err() {
            // The queue of some providers works on endpoints that are gone.
            return Ok(());
        }
        const NONE: abi::Entry = abi::Entry { context: std::ptr::null_mut(), flags: 0, length: 0 };
        loop {
            let mut entries = [NONE; 32];
            // SAFETY: an open queue, its own table, and room for so many entries of the format that it was opened with.
            let count = unsafe {
                ((*(*self.queue).ops).read)(self.queue, entries.as_mut_ptr().cast(), entries.len())
            };
            match count {
                number if number == -abi::EAGAIN => return Ok(()),
                number if number == -abi::EAVAIL => self.failed(completed)?,
                number if number < 0 => return Err(self.library.error(number)),
                count => {
                    for entry in &entries[..count as usize] {
                        let Some(slot) = self.slot_of(entry.context) else { continue };
                        completed.push(match slot {
                            slot if RECEIVING.contains(&slot) => {
                                Completion::Received(slot, entry.length.min(SLOT))
                            }
                            slot if READING.contains(&slot) => Completion::Read(slot),
                            slot => Completion::Sent(slot),
                        });
                    }
                    if (count as usize) < entries.len() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Takes an operation that has failed.
    fn failed(&mut self, completed: &mut Vec<Completion>) -> io::Result<()> {
        // SAFETY: all-zero is a valid entry, to be overwritten.
        let mut entry: abi::ErrorEntry = unsafe { std::mem::zeroed() };
        // SAFETY: an open queue, its own table, and room for an entry of any version.
        let count = unsafe { ((*(*self.queue).ops).read_error)(self.queue, &mut entry, 0) };
        if count == -abi::EAGAIN {
            return Ok(());
        }
        if count < 0 {
            return Err(self.library.error(count));
        }
        if let Some(slot) = self.slot_of(entry.context) {
            completed.push(Completion::Failed(slot, self.library.error(entry.error as isize)));
        }
        Ok(())
    }

    /// What a poll set can watch, if there is such. It belongs to the provider.
    pub fn wait_descriptor(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the descriptor is open as long as the queue, and so as long as this value.
        self.wait.map(|descriptor| unsafe { BorrowedFd::borrow_raw(descriptor) })
    }

    /// Whether the descriptor will tell of whatever comes from now on: nothing is there already.
    pub fn may_wait(&mut self) -> bool {
        if self.wait.is_none() || self.is_open().is_err() {
            return true;
        }
        let mut queue = fid!(self.queue);
        // SAFETY: an open fabric, its own table, and one open queue of it.
        unsafe { ((*(*self.fabric).ops).try_wait)(self.fabric, &mut queue, 1) == 0 }
    }

    /// Ends it: nothing is sent or received by it any more, no completion comes, and what it holds of the system is given back.
    pub fn shut(&mut self) {
        self.close(fid!(self.endpoint));
        self.endpoint = std::ptr::null_mut();
        std::mem::take(&mut self.regions).values().for_each(|memory| self.close(fid!(*memory)));
    }

    /// Whether it can be used.
    fn is_open(&self) -> io::Result<()> {
        if self.endpoint.is_null() { Err(io::ErrorKind::NotConnected.into()) } else { Ok(()) }
    }

    fn close(&self, object: *mut abi::Fid) {
        if !object.is_null() {
            // SAFETY: an open object, closed once, before those that it was made of. A failure leaves it open, which does no
            // harm.
            let _ = unsafe { ((*(*object).ops).close)(object) };
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.shut();
        for object in
            [fid!(self.memory), fid!(self.queue), fid!(self.vector), fid!(self.domain), fid!(self.fabric)]
        {
            self.close(object);
        }
    }
}
