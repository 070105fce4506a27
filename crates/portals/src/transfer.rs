//! A matched long message: chunks that whoever waits claims and moves.
//!
//! The record's data words are: the claim word (generation in the high 24 bits, next chunk below), and the bytes
//! that have been moved. A claim checks the generation, so that a worker who comes late, with a record that has
//! been given to somebody else, gets nothing. Whoever moves the last bytes finishes the transfer.

use crate::nic::Nic;
use crate::record::kind;
use parnass_base::atomics::Ordering;

/// Bytes of a chunk.
pub const CHUNK: u64 = 256 << 10;

const CLAIM: usize = 0;
const DONE: usize = 1;
const CHUNK_BITS: u32 = 40;

/// Turns a record that is in no list into a transfer. Lock held.
pub fn start(nic: &Nic, index: u32) {
    let record = nic.slab.at(index);
    record.kind.set(kind::TRANSFER);
    record.detail.set(0);
    record.data[DONE].store(0, Ordering::Relaxed);
    record.data[CLAIM].store(u64::from(record.generation.get()) << CHUNK_BITS, Ordering::Release);
    nic.slab.push(&nic.control.transfers, index);
}

/// What a worker knows of a transfer.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    pub index: u32,
    pub initiator: u32,
    /// At the initiator.
    pub remote: u64,
    /// At the target.
    pub address: u64,
    pub length: u64,
    mark: u64,
}

impl Work {
    /// Reads a transfer. Lock held.
    pub fn of(nic: &Nic, index: u32) -> Work {
        let record = nic.slab.at(index);
        Work {
            index,
            initiator: record.source.get(),
            remote: record.remote.get(),
            address: record.address.get(),
            length: record.length.get(),
            mark: u64::from(record.generation.get()) << CHUNK_BITS >> CHUNK_BITS << CHUNK_BITS,
        }
    }

    /// The next chunk to move: its offset and length.
    pub fn claim(&self, nic: &Nic) -> Option<(u64, usize)> {
        let word = &nic.slab.at(self.index).data[CLAIM];
        let mut seen = word.load(Ordering::Acquire);
        loop {
            let chunk = seen & ((1 << CHUNK_BITS) - 1);
            if seen >> CHUNK_BITS << CHUNK_BITS != self.mark || chunk * CHUNK >= self.length {
                return None;
            }
            match word.compare_exchange_weak(seen, seen + 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    let offset = chunk * CHUNK;
                    return Some((offset, (self.length - offset).min(CHUNK) as usize));
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Notes that `length` claimed bytes are moved. `true`: they were the last ones.
    pub fn done(&self, nic: &Nic, length: usize) -> bool {
        let word = &nic.slab.at(self.index).data[DONE];
        word.fetch_add(length as u64, Ordering::AcqRel) + length as u64 == self.length
    }

    /// Notes that a chunk could not be moved.
    pub fn fail(&self, nic: &Nic) {
        nic.slab.at(self.index).detail.set(1);
    }
}
