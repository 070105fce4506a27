//! Where the bytes of a message lie in the process that sends or receives them.

use crate::core::Core;
use crate::message::{self, INLINE_ROOM};
use parnass_base::atomics::Ordering;
use parnass_base::lane::{self, Arrived};
use parnass_base::{Ahead, Scratch, UserAddress};
use parnass_transport::{Bulk, MemoryError};
use std::fmt;

/// The memory of a message: a run of bytes, or bytes with gaps between them that only their owner knows how to
/// reach, through its [`Descriptions`].
///
/// One word, so that it travels in messages and lies in records as an address does: no user memory lies in the
/// half of the address space in which the top bit is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory(u64);

const DESCRIBED: u64 = 1 << 63;

/// Less is written before the lines that it goes to could have been fetched.
const FETCHED_LEAST: usize = 1024;
/// Longer messages may be written by their sender, from whom the lines would have to come back.
const FETCHED_MOST: usize = 64 << 10;

/// What a [`Memory`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Bytes in a row, from here on.
    Run(UserAddress),
    /// What its owner has described under this number.
    Described(u32),
}

impl Memory {
    /// No bytes.
    pub const NONE: Memory = Memory(0);

    /// What the owner has described under `number`.
    #[inline]
    pub const fn described(number: u32) -> Memory {
        Memory(DESCRIBED | number as u64)
    }

    /// Whether there are gaps, so that nobody but its owner can move its bytes.
    #[inline(always)]
    pub(crate) const fn is_described(self) -> bool {
        self.0 & DESCRIBED != 0
    }

    #[inline(always)]
    pub(crate) fn place(self) -> Place {
        if self.is_described() {
            Place::Described(self.0 as u32)
        } else {
            Place::Run(UserAddress::restore(self.0 as usize))
        }
    }

    /// As a word of a message or a record.
    #[inline(always)]
    pub(crate) const fn word(self) -> u64 {
        self.0
    }

    #[inline(always)]
    pub(crate) const fn from_word(word: u64) -> Memory {
        Memory(word)
    }
}

impl From<UserAddress> for Memory {
    #[inline(always)]
    fn from(address: UserAddress) -> Memory {
        Memory(address.value() as u64)
    }
}

/// The described memory of a process. Given to [`crate::Interface::set_descriptions`] by the layer above, which knows the layouts, and called by
/// whichever thread of that process moves data.
pub trait Descriptions: Send + Sync + fmt::Debug {
    /// Calls `work` with what is described under `number`. A number that is not described any more names no bytes: nothing is done.
    fn with(&self, number: u32, work: &mut dyn FnMut(&dyn Stream));
}

/// Bytes with gaps between them as one stream.
pub trait Stream {
    /// Copies the bytes `skip .. skip + length` of the stream to `target`.
    fn gather(&self, skip: u64, target: UserAddress, length: usize);

    /// Copies `length` bytes from `source` to the places `skip .. skip + length` of the stream.
    fn scatter(&self, skip: u64, source: UserAddress, length: usize);

    /// Fills `target` from the start of the stream.
    fn gather_bytes(&self, target: &mut [u8]);

    /// Copies `source` to the first places of the stream.
    fn scatter_bytes(&self, source: &[u8]);
}

impl Core {
    /// See [`Descriptions::with`].
    pub fn with_described(&self, number: u32, work: &mut dyn FnMut(&dyn Stream)) {
        self.descriptions.get().expect("described memory has its descriptions").with(number, work);
    }

    /// Copies the bytes `skip .. skip + length` of memory of this process to a piece that it has claimed and `reader` will read,
    /// `at` bytes from its start.
    #[inline]
    pub fn fill(&self, reader: u32, bulk: Bulk, at: usize, memory: Memory, skip: u64, length: usize) {
        let pace = &self.tallies.of(reader).pace;
        self.fill_by(|target, source| pace.copy(target, source, length), bulk, at, memory, skip, length);
    }

    /// As [`Core::fill`], of a piece that this process has just read, mostly, and that the reader will answer in: never past the caches.
    pub fn fill_exchanged(&self, bulk: Bulk, memory: Memory, length: usize) {
        self.fill_by(|target, source| target.copy_to_read(source, length), bulk, 0, memory, 0, length);
    }

    /// `copy` is for what is one run of bytes: to the first address, from the second.
    #[inline]
    fn fill_by(
        &self,
        copy: impl Fn(UserAddress, UserAddress),
        bulk: Bulk,
        at: usize,
        memory: Memory,
        skip: u64,
        length: usize,
    ) {
        self.transport.fill(bulk, at, length, &mut |target| match memory.place() {
            Place::Run(source) => copy(target, source.offset(skip as i64)),
            Place::Described(number) => {
                self.with_described(number, &mut |stream| stream.gather(skip, target, length));
            }
        });
    }

    /// Copies `length` bytes of a piece, from `at` on, to the places `skip .. skip + length` of memory of process `of`.
    #[inline]
    pub fn drain(
        &self,
        bulk: Bulk,
        at: usize,
        of: u32,
        memory: Memory,
        skip: u64,
        length: usize,
    ) -> Result<(), MemoryError> {
        match memory.place() {
            Place::Run(address) => self.transport.drain(bulk, at, of, address.offset(skip as i64), length),
            Place::Described(_) if of != self.me => Err(MemoryError::NotPermitted),
            Place::Described(number) => {
                self.transport.drain_by(bulk, at, length, &mut |source| {
                    self.with_described(number, &mut |stream| stream.scatter(skip, source, length));
                });
                Ok(())
            }
        }
    }

    /// Copies `bytes` to the start of memory of process `of`.
    #[inline]
    pub fn place(&self, of: u32, memory: Memory, bytes: &[u8]) -> Result<(), MemoryError> {
        match memory.place() {
            Place::Run(address) => self.transport.place(of, address, bytes),
            Place::Described(_) if of != self.me => Err(MemoryError::NotPermitted),
            Place::Described(number) => {
                self.with_described(number, &mut |stream| stream.scatter_bytes(bytes));
                Ok(())
            }
        }
    }

    /// Copies the first `length` bytes of described memory to `target`.
    pub fn gather(&self, number: u32, target: UserAddress, length: usize) {
        self.with_described(number, &mut |stream| stream.gather(0, target, length));
    }

    /// Copies `length` bytes to the places `skip .. skip + length` of described memory.
    pub fn scatter(&self, number: u32, skip: u64, source: UserAddress, length: usize) {
        self.with_described(number, &mut |stream| stream.scatter(skip, source, length));
    }

    /// Notes the length of a message that this process has written to where it belongs.
    #[inline]
    pub fn note_came(&self, length: usize) {
        if (FETCHED_LEAST..=FETCHED_MOST).contains(&length) {
            self.came.store(length as u32, Ordering::Relaxed);
        }
    }

    /// What this process will write soon, if what it waits for comes to `memory` and is like what came last, and if what it sends then is like
    /// what it sent last.
    #[inline]
    pub fn will_write(&self, memory: Memory, length: usize) -> Ahead {
        let mut ahead = Ahead::default();
        let came = self.came.load(Ordering::Relaxed);
        if came != 0
            && let Place::Run(address) = memory.place()
        {
            self.came.store(0, Ordering::Relaxed);
            ahead.add(address, length.min(came as usize));
        }
        self.transport.will_write(&mut ahead);
        ahead
    }

    /// Copies the bytes of a message in a piece to `memory` of the NIC's owner.
    pub fn place_bulk(
        &self,
        of: u32,
        memory: Memory,
        source: u32,
        bulk: Bulk,
        length: usize,
    ) -> Result<(), MemoryError> {
        if of == self.me {
            self.note_long(source, length);
        }
        self.drain(bulk, 0, of, memory, 0, length)
    }

    /// Copies the bytes of a long message to `memory` of the NIC's owner. [`MemoryError::NotPermitted`]: not now.
    #[inline]
    pub fn place_long(
        &self,
        of: u32,
        memory: Memory,
        source: u32,
        message: &Arrived,
        length: usize,
    ) -> Result<(), MemoryError> {
        // What a dead one has left unfinished stays where it is.
        if self.tallies.of(source).is_dead() && !message.is_whole() {
            return Err(MemoryError::NotPermitted);
        }
        if let Place::Run(address) = memory.place()
            && of == self.me
        {
            self.note_long(source, length);
            self.note_came(length);
            let whole = message.copy_to(lane::HEAD, address, length);
            return if whole { Ok(()) } else { Err(MemoryError::NotPermitted) };
        }
        if memory.is_described() && of != self.me {
            return Err(MemoryError::NotPermitted);
        }
        if let Place::Described(number) = memory.place() {
            let mut whole = None;
            self.with_described(number, &mut |stream| {
                // Of what has only just been written the processor fetches nothing ahead by itself, and short runs would wait for line after line.
                let read = |at: usize, part: UserAddress, length| {
                    part.fetch_to_read(length);
                    stream.scatter(at as u64, part, length);
                };
                whole = message.copy_by(length, read);
            });
            match whole {
                Some(true) => return Ok(()),
                Some(false) => return Err(MemoryError::NotPermitted),
                None => (),
            }
        }
        let together = Scratch::new(length);
        if !message.copy_to(lane::HEAD, together.address(), length) {
            return Err(MemoryError::NotPermitted);
        }
        match memory.place() {
            Place::Run(address) => self.transport.write(of, address, together.address(), length),
            Place::Described(number) => {
                self.scatter(number, 0, together.address(), length);
                Ok(())
            }
        }
    }

    /// The first `length` bytes of memory of this process, up to 40, as words.
    #[inline]
    pub fn words<const WORDS: usize>(&self, memory: Memory, length: usize) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        match memory.place() {
            Place::Run(address) => message::gather(address, length, &mut words),
            Place::Described(number) => {
                let mut bytes = [0; INLINE_ROOM];
                self.with_described(number, &mut |stream| stream.gather_bytes(&mut bytes[..length]));
                for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
                    *word = u64::from_ne_bytes(bytes.try_into().expect("a chunk of eight bytes"));
                }
            }
        }
        words
    }

    /// Copies `length` bytes from one memory of this process to another.
    pub fn copy_within(&self, from: Memory, to: Memory, skip: u64, length: usize) {
        match (from.place(), to.place()) {
            (Place::Run(from), Place::Run(to)) => {
                to.offset(skip as i64).copy_from(from.offset(skip as i64), length);
            }
            (Place::Described(from), Place::Run(to)) => {
                let to = to.offset(skip as i64);
                self.with_described(from, &mut |stream| stream.gather(skip, to, length));
            }
            (Place::Run(from), Place::Described(to)) => {
                self.scatter(to, skip, from.offset(skip as i64), length);
            }
            (Place::Described(from), Place::Described(to)) => {
                let part = Scratch::new(length.min(WITHIN));
                let end = skip + length as u64;
                for skip in (skip..end).step_by(WITHIN) {
                    let length = (end - skip).min(WITHIN as u64) as usize;
                    self.with_described(from, &mut |stream| stream.gather(skip, part.address(), length));
                    self.scatter(to, skip, part.address(), length);
                }
            }
        }
    }
}

/// Bytes that are moved at once between two descriptions of one process.
const WITHIN: usize = 32 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_and_a_description_survive_a_word() {
        let run = Memory::from(UserAddress::restore(0x7fff_ffff_f123));
        let described = Memory::described(u32::MAX);
        assert_eq!(Memory::from_word(run.word()).place(), Place::Run(UserAddress::restore(0x7fff_ffff_f123)));
        assert_eq!(Memory::from_word(described.word()).place(), Place::Described(u32::MAX));
        assert!(described.is_described() && !run.is_described() && !Memory::NONE.is_described());
    }
}
