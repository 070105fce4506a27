//! What this side reads out of the memory of its peers.

use super::Engine;
use super::peer::failure;
use crate::endpoint::READING;
use parnass_base::UserAddress;
use parnass_base::atomics::{AtomicU32, Ordering};
use parnass_transport_stream::{Region, Remote};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

/// A read that is not over.
#[derive(Debug)]
struct Read {
    peer: u32,
    /// What it is called where its end is told.
    name: usize,
    from: Remote,
    target: UserAddress,
    length: usize,
    /// What the provider knows the target as, where it must.
    region: Option<u64>,
}

/// All of them.
#[derive(Debug)]
pub struct Reads {
    /// Contexts that are free, and what the others are for.
    free: Vec<usize>,
    running: BTreeMap<usize, Read>,
    /// Those that the provider has not taken yet.
    waiting: VecDeque<Read>,
    /// Those that are over, until that is told: peers, names, and how they have ended.
    over: Vec<(u32, usize, io::Result<()>)>,
    /// How many there are.
    pub count: Arc<AtomicU32>,
}

impl Default for Reads {
    fn default() -> Reads {
        Reads {
            free: READING.collect(),
            running: BTreeMap::new(),
            waiting: VecDeque::new(),
            over: Vec::new(),
            count: Arc::default(),
        }
    }
}

impl Reads {
    fn recount(&self) {
        let count = self.running.len() + self.waiting.len() + self.over.len();
        self.count.store(count as u32, Ordering::Relaxed);
    }

    /// Whether some wait for the provider to take them.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the end of some is to be told.
    pub fn has_over(&self) -> bool {
        !self.over.is_empty()
    }

    /// Those that are over: names, and how they have ended.
    pub fn take_over(&mut self) -> Vec<(usize, io::Result<()>)> {
        let over = std::mem::take(&mut self.over).into_iter().map(|(_, name, result)| (name, result));
        let over = over.collect();
        self.recount();
        over
    }
}

impl Engine {
    /// Reads memory of a peer: as [`parnass_transport_stream::Pipe::read`].
    pub fn read(
        &mut self,
        peer: u32,
        name: usize,
        from: Remote,
        target: UserAddress,
        length: usize,
    ) -> io::Result<()> {
        let region = self.endpoint.prepare(target, length)?;
        self.reads.waiting.push_back(Read { peer, name, from, target, length, region });
        self.start_reads();
        Ok(())
    }

    /// Hands reads to the provider, as far as it takes them.
    pub(super) fn start_reads(&mut self) {
        while !self.reads.waiting.is_empty()
            && let Some(context) = self.reads.free.pop()
            && let Some(read) = self.reads.waiting.pop_front()
        {
            let Read { peer, from, target, length, region, .. } = read;
            let begun = self
                .name(peer)
                .and_then(|source| self.endpoint.read(context, source, from, target, length, region));
            match begun {
                Ok(()) => drop(self.reads.running.insert(context, read)),
                Err(error) => {
                    self.reads.free.push(context);
                    if error.kind() == io::ErrorKind::WouldBlock {
                        self.reads.waiting.push_front(read);
                        break;
                    }
                    self.end_read(read, Err(error));
                }
            }
        }
        self.reads.recount();
    }

    /// The provider is done with a read.
    pub(super) fn read_is_over(&mut self, context: usize, result: io::Result<()>) {
        let Some(read) = self.reads.running.remove(&context) else { return };
        self.reads.free.push(context);
        self.end_read(read, result);
        self.reads.recount();
    }

    fn end_read(&mut self, read: Read, result: io::Result<()>) {
        read.region.into_iter().for_each(|region| self.endpoint.close_region(region));
        self.reads.over.push((read.peer, read.name, result));
    }

    /// Nobody wants to hear of the reads from this peer any more. Whether none of them is under way.
    pub fn forget_reads(&mut self, peer: u32) -> bool {
        let waiting = std::mem::take(&mut self.reads.waiting);
        let (kept, forgotten): (VecDeque<Read>, VecDeque<Read>) =
            waiting.into_iter().partition(|read| read.peer != peer);
        self.reads.waiting = kept;
        forgotten.into_iter().for_each(|read| self.end_read(read, Ok(())));
        self.reads.over.retain(|(of, ..)| *of != peer);
        self.reads.recount();
        self.reads.running.values().all(|read| read.peer != peer)
    }

    /// Closes the endpoint, since a read from a peer does not end: whatever its provider does, nothing is written any more.
    pub fn shut_for(&mut self, peer: u32) {
        self.endpoint.shut();
        let text = format!("this side had to close its endpoint, to end what it read from rank {peer}");
        let error = io::Error::new(io::ErrorKind::ConnectionAborted, text);
        let running = std::mem::take(&mut self.reads.running);
        for read in running.into_values() {
            self.end_read(read, Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let peers: Vec<u32> = self.peers.keys().copied().collect();
        peers.into_iter().for_each(|peer| self.fail(peer, failure(&error)));
        self.forget_reads(peer);
    }

    /// Lets peers read memory of the user: as [`parnass_transport_stream::Carrier::open_region`].
    pub fn open_region(&mut self, address: UserAddress, length: usize) -> io::Result<Region> {
        self.endpoint.open_region(address, length)
    }

    /// The longest run that can be read out of the memory of a peer, and of this side's by it; 0: none can.
    pub fn reads_from(&self, peer: u32) -> usize {
        if self.contacts[peer as usize].reads { self.endpoint.reads() } else { 0 }
    }
}
