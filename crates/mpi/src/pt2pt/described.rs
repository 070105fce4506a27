//! Buffers that are not one run of bytes, as the NIC sees them: by number.
//!
//! The NIC moves such a buffer in parts, each copied between the user's memory and memory shared with the peer, without
//! a packed copy of the whole anywhere.

use crate::datatype::Buffer;
use crate::process::UserBytes;
use crate::pt2pt::staging::Staging;
use parnass_base::UserAddress;
use parnass_datatype::Layout;
use parnass_portals::{Descriptions, Memory, Stream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A buffer that an operation uses.
#[derive(Clone, Debug)]
struct Described {
    address: UserAddress,
    count: u64,
    layout: Layout,
}

#[derive(Debug, Default)]
struct Table {
    buffers: Vec<Option<Described>>,
    free: Vec<u32>,
}

/// The buffers with gaps that operations of a process use.
#[derive(Debug, Default)]
pub(crate) struct DescribedBuffers(Mutex<Table>);

/// Keeps a buffer described; its number is forgotten when this is dropped.
#[derive(Debug)]
pub(crate) struct Description {
    number: u32,
    table: Arc<DescribedBuffers>,
}

/// The data of a message: where it is, and its length in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    pub(crate) memory: Memory,
    pub(crate) length: u64,
}

/// What an operation keeps until it is over, because the NIC uses it.
#[derive(Debug)]
pub(crate) enum Held {
    /// A description of the user's buffer.
    Description(Description),
    /// Working memory.
    Staging(Staging),
}

impl From<UserBytes> for Data {
    #[inline]
    fn from(bytes: UserBytes) -> Data {
        Data { memory: bytes.address.into(), length: bytes.length }
    }
}

impl DescribedBuffers {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The data of a buffer, and what keeps it described if it has gaps.
    #[inline]
    pub(crate) fn data(self: &Arc<Self>, buffer: &Buffer<'_>) -> (Data, Option<Description>) {
        let length = buffer.size();
        match buffer.contiguous() {
            Some(address) => (Data { memory: address.into(), length }, None),
            None => {
                let description = self.describe(buffer);
                (Data { memory: Memory::described(description.number), length }, Some(description))
            }
        }
    }

    fn describe(self: &Arc<Self>, buffer: &Buffer<'_>) -> Description {
        let layout = buffer.datatype.layout().clone();
        let described = Some(Described { address: buffer.address, count: buffer.count, layout });
        let mut table = self.table();
        let number = match table.free.pop() {
            Some(number) => {
                table.buffers[number as usize] = described;
                number
            }
            None => {
                table.buffers.push(described);
                u32::try_from(table.buffers.len() - 1).expect("fewer than 2^32 operations in flight")
            }
        };
        Description { number, table: Arc::clone(self) }
    }
}

impl Descriptions for DescribedBuffers {
    fn with(&self, number: u32, work: &mut dyn FnMut(&dyn Stream)) {
        // Not under the lock: to move data takes long.
        let described = self.table().buffers.get(number as usize).cloned().flatten();
        if let Some(described) = described {
            work(&described);
        }
    }
}

impl Stream for Described {
    fn gather(&self, skip: u64, target: UserAddress, length: usize) {
        self.layout.pack(self.count, self.address, skip, target, length as u64);
    }

    fn scatter(&self, skip: u64, source: UserAddress, length: usize) {
        self.layout.unpack(self.count, self.address, skip, source, length as u64);
    }

    fn gather_bytes(&self, target: &mut [u8]) {
        self.layout.pack_into(self.count, self.address, 0, target);
    }

    fn scatter_bytes(&self, source: &[u8]) {
        self.layout.unpack_from(self.count, self.address, 0, source);
    }
}

impl Drop for Description {
    fn drop(&mut self) {
        let mut table = self.table.table();
        let described = table.buffers[self.number as usize].take();
        table.free.push(self.number);
        drop(table);
        drop(described);
    }
}

impl Held {
    /// Gives it up for the life of the process, because the NIC may still use it.
    pub(crate) fn leak(self) {
        match self {
            Held::Description(description) => std::mem::forget(description),
            Held::Staging(staging) => staging.leak(),
        }
    }
}
