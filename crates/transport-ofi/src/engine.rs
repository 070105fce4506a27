//! What goes through the endpoint of a process: packets of many peers come in and are looked at here, and go out.
//!
//! An endpoint hears everybody, and libfabric does not say who speaks. So every packet says it, and bears a token that only the
//! two sides of a handshake know; whatever bears none is refused, counted, and changes nothing. What bytes arrive for a peer wait in
//! its queue; a sender has at most a window of bytes out that were not taken from there.

mod handshakes;
mod peer;
mod reads;

use crate::address::Contact;
use crate::endpoint::{Completion, Endpoint, READING, RECEIVING, SENDING, SLOT};
use crate::wire::{Head, Kind};
use handshakes::{AGAIN, Answering, Call};
use parnass_base::UserAddress;
use parnass_base::socket::Part;
use parnass_transport_stream::handshake::Identity;
use parnass_transport_stream::seal::Keys;
use parnass_transport_stream::{Refusal, Refusals};
use peer::{Chunk, Failure, Peer, failure};
use reads::Reads;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// Longest message of a handshake, in bytes.
const LETTER: usize = 128;
/// What is longer waits where it has come in; what is shorter is copied, and its slot receives again.
const COPIED: usize = 4 << 10;
/// Copies are collected in runs of about so many bytes.
const RUN: usize = 64 << 10;

/// See the module's description.
pub struct Engine {
    pub endpoint: Endpoint,
    identity: Identity,
    contacts: Arc<[Contact]>,
    refusals: Arc<Refusals>,
    /// Addresses as the endpoint knows them.
    names: BTreeMap<u32, u64>,
    peers: BTreeMap<u32, Peer>,
    calls: BTreeMap<u32, Call>,
    answering: BTreeMap<u64, Answering>,
    /// Messages of handshakes that are still to be sent.
    letters: VecDeque<(u32, Vec<u8>)>,
    /// Slots to send with that are free, and for whom the others are.
    free: Vec<usize>,
    owners: Vec<u32>,
    /// Slots that could not be made ready to receive again.
    unposted: Vec<usize>,
    /// Slots that hold what was not taken.
    held: usize,
    /// Peers that are to be told what was taken.
    due: Vec<u32>,
    /// Peers that have come up; numbers of those that have something; those that took no more.
    pub up: Vec<(u32, Option<Keys>)>,
    pub readable: Vec<usize>,
    blocked: BTreeMap<u32, usize>,
    completed: Vec<Completion>,
    pub reads: Reads,
    window: u32,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:?} with {} peers over {:?}", self.identity, self.peers.len(), self.endpoint)
    }
}

impl Engine {
    /// Over an open endpoint; `contacts` says where the other ranks are.
    pub fn new(
        endpoint: Endpoint,
        identity: Identity,
        contacts: Arc<[Contact]>,
        refusals: Arc<Refusals>,
    ) -> Engine {
        let window = ((64 << 20) / u64::from(identity.size)).clamp(128 << 10, 1 << 20) as u32;
        Engine {
            endpoint,
            identity,
            contacts,
            refusals,
            names: BTreeMap::new(),
            peers: BTreeMap::new(),
            calls: BTreeMap::new(),
            answering: BTreeMap::new(),
            letters: VecDeque::new(),
            free: SENDING.collect(),
            owners: vec![0; SENDING.end],
            unposted: Vec::new(),
            held: 0,
            due: Vec::new(),
            up: Vec::new(),
            readable: Vec::new(),
            blocked: BTreeMap::new(),
            completed: Vec::new(),
            reads: Reads::default(),
            window,
        }
    }

    /// Lets the provider work and looks at what has come.
    pub fn progress(&mut self) {
        let mut completed = std::mem::take(&mut self.completed);
        if let Err(error) = self.endpoint.progress(&mut completed) {
            let peers: Vec<u32> = self.peers.keys().copied().collect();
            peers.into_iter().for_each(|peer| self.fail(peer, failure(&error)));
        }
        for completion in completed.drain(..) {
            match completion {
                Completion::Received(slot, length) => self.arrived(slot, length),
                Completion::Sent(slot) => {
                    self.sent(slot);
                }
                Completion::Read(read) => self.read_is_over(read, Ok(())),
                Completion::Failed(read, error) if READING.contains(&read) => {
                    self.read_is_over(read, Err(error));
                }
                // Longer than any packet is.
                Completion::Failed(slot, _) if RECEIVING.contains(&slot) => {
                    self.refusals.count(Refusal::Garbage);
                    self.repost(slot);
                }
                Completion::Failed(slot, error) => {
                    let peer = self.sent(slot);
                    self.failed(peer, &error);
                }
            }
        }
        self.completed = completed;
        for slot in std::mem::take(&mut self.unposted) {
            self.repost(slot);
        }
        self.start_reads();
        self.send_letters();
        for peer in std::mem::take(&mut self.due) {
            self.tell_taken(peer);
        }
    }

    /// A slot is free again; for whom it was.
    fn sent(&mut self, slot: usize) -> u32 {
        self.free.push(slot);
        let owner = self.owners[slot];
        if let Some(peer) = self.peers.get_mut(&owner) {
            peer.outstanding = peer.outstanding.saturating_sub(1);
        }
        owner
    }

    fn repost(&mut self, slot: usize) {
        if self.endpoint.receive(slot).is_err() {
            self.unposted.push(slot);
        }
    }

    /// A send to `peer` has failed.
    fn failed(&mut self, peer: u32, error: &io::Error) {
        if let Some(call) = self.calls.get_mut(&peer) {
            call.failures.push(error.to_string());
            call.failures.dedup();
            call.next = Instant::now() + AGAIN;
        } else {
            self.fail(peer, failure(error));
        }
    }

    /// The stream of a peer ends.
    fn fail(&mut self, number: u32, failure: Failure) {
        if let Some(peer) = self.peers.get_mut(&number)
            && !peer.over
        {
            peer.failure.get_or_insert(failure);
            self.note(number);
        }
    }

    /// Breaks the stream of a peer: for tests.
    pub fn cut(&mut self, peer: u32) {
        self.fail(peer, (io::ErrorKind::ConnectionReset, "it was cut".to_owned()));
    }

    /// A peer has something.
    fn note(&mut self, number: u32) {
        if let Some(peer) = self.peers.get_mut(&number)
            && let Some(place) = peer.number
            && !peer.noted
        {
            peer.noted = true;
            self.readable.push(place);
        }
    }

    // ---- what comes in

    fn arrived(&mut self, slot: usize, length: usize) {
        let mut bytes = [0; Head::BYTES];
        let head = if length < Head::BYTES {
            None
        } else {
            self.endpoint.slot(slot).read(&mut bytes);
            Head::decode(&bytes)
        };
        let Some(head) = head else {
            self.refusals.count(Refusal::Garbage);
            return self.repost(slot);
        };
        let body = length - Head::BYTES;
        if head.kind.is_streamed() {
            return self.data(&head, slot, body);
        }
        let mut letter = vec![0; body.min(LETTER)];
        self.endpoint.slot(slot).offset(Head::BYTES as i64).read(&mut letter);
        self.repost(slot);
        if let Err(refusal) = self.letter(&head, &letter) {
            self.refusals.count(refusal);
        }
    }

    fn data(&mut self, head: &Head, slot: usize, length: usize) {
        let window = self.window;
        let Some(peer) = self.peers.get_mut(&head.from).filter(|peer| peer.tokens[1] == head.token) else {
            self.refusals.count(Refusal::Proof);
            return self.repost(slot);
        };
        match head.kind {
            Kind::Last => {
                (peer.leaving, peer.owed) = (true, true);
                self.due.push(head.from);
            }
            Kind::Heard => peer.heard = true,
            _ => (),
        }
        if peer.over || peer.failure.is_some() {
            return self.repost(slot);
        }
        let order = head.sequence == peer.next[1];
        let room = peer.queued + length <= window as usize;
        let taken = head.taken.wrapping_sub(peer.taken) <= peer.sent.wrapping_sub(peer.taken);
        if !order || !room || !taken {
            let text = match (order, room) {
                (false, _) => "a packet is lost, repeated or out of its place",
                (true, false) => "it has sent more than it may",
                (true, true) => "it has taken more than it was sent",
            };
            self.repost(slot);
            return self.fail(head.from, (io::ErrorKind::InvalidData, text.to_owned()));
        }
        peer.next[1] = peer.next[1].wrapping_add(1);
        peer.taken = head.taken;
        if length == 0 {
            return self.repost(slot);
        }
        peer.queued += length;
        let end = Head::BYTES + length;
        // Half of the slots receive, whoever does not take what is his.
        if length > COPIED && self.held < RECEIVING.len() / 2 {
            self.held += 1;
            peer.queue.push_back(Chunk::Slot { slot, start: Head::BYTES, end });
        } else {
            let open = matches!(peer.queue.back(), Some(Chunk::Copy { bytes, .. }) if bytes.len() < RUN);
            if !open {
                let bytes = std::mem::take(&mut peer.spare);
                peer.queue.push_back(Chunk::Copy { bytes, start: 0 });
            }
            if let Some(Chunk::Copy { bytes, .. }) = peer.queue.back_mut() {
                let at = bytes.len();
                bytes.resize(at + length, 0);
                self.endpoint.slot(slot).offset(Head::BYTES as i64).read(&mut bytes[at..]);
            }
            self.repost(slot);
        }
        self.note(head.from);
    }

    /// Takes bytes of a peer: as [`parnass_transport_stream::Pipe::receive`].
    pub fn receive(
        &mut self,
        number: u32,
        address: UserAddress,
        length: usize,
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        if self.peers.get(&number).is_none_or(|peer| peer.queue.is_empty()) {
            self.progress();
        }
        let Some(peer) = self.peers.get_mut(&number) else { return Err(io::ErrorKind::NotConnected.into()) };
        peer.noted = false;
        let room = length + buffer.len();
        let mut done = 0;
        let mut freed = Vec::new();
        while done < room
            && let Some(chunk) = peer.queue.front_mut()
        {
            let (source, there) = match chunk {
                Chunk::Copy { bytes, start } => (Err(&bytes[*start..]), bytes.len() - *start),
                Chunk::Slot { slot, start, end } => {
                    (Ok(self.endpoint.slot(*slot).offset(*start as i64)), *end - *start)
                }
            };
            let first = there.min(length.saturating_sub(done));
            let rest = (there - first).min(room - done - first);
            let at = done.max(length) - length;
            match source {
                Ok(source) => {
                    if first != 0 {
                        address.offset(done as i64).copy_apart(source, first);
                    }
                    source.offset(first as i64).read(&mut buffer[at..at + rest]);
                }
                Err(bytes) => {
                    if first != 0 {
                        address.offset(done as i64).write(&bytes[..first]);
                    }
                    buffer[at..at + rest].copy_from_slice(&bytes[first..first + rest]);
                }
            }
            let step = first + rest;
            done += step;
            match chunk {
                Chunk::Copy { start, .. } | Chunk::Slot { start, .. } => *start += step,
            }
            if step == there {
                match peer.queue.pop_front() {
                    Some(Chunk::Copy { mut bytes, .. }) => {
                        bytes.clear();
                        peer.spare = bytes;
                    }
                    Some(Chunk::Slot { slot, .. }) => freed.push(slot),
                    None => (),
                }
            }
        }
        if done == 0 {
            return match &peer.failure {
                Some((kind, text)) => Err(io::Error::new(*kind, text.clone())),
                None => Err(io::ErrorKind::WouldBlock.into()),
            };
        }
        peer.queued -= done;
        peer.consumed = peer.consumed.wrapping_add(done as u32);
        let owed = peer.consumed.wrapping_sub(peer.told);
        self.held -= freed.len();
        freed.into_iter().for_each(|slot| self.repost(slot));
        if owed >= self.window / 4 {
            self.tell_taken(number);
        }
        Ok(done)
    }

    /// Tells a peer how much of what it has sent was taken, or that its last packet has arrived.
    fn tell_taken(&mut self, number: u32) {
        let Some(peer) = self.peers.get(&number) else { return };
        let quiet = peer.over || peer.leaving || peer.consumed == peer.told;
        if peer.failure.is_some() || quiet && !peer.owed {
            return;
        }
        let kind = if peer.owed { Kind::Heard } else { Kind::Data };
        match self.packet(number, kind, &[]) {
            Ok(_) => {
                if let Some(peer) = self.peers.get_mut(&number) {
                    peer.owed = false;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.due.push(number),
            Err(_) => (),
        }
    }

    // ---- what goes out

    /// The address of a peer, as the endpoint knows it.
    pub(super) fn name(&mut self, peer: u32) -> io::Result<u64> {
        if let Some(name) = self.names.get(&peer) {
            return Ok(*name);
        }
        let name = self.endpoint.insert(&self.contacts[peer as usize].address)?;
        self.names.insert(peer, name);
        Ok(name)
    }

    /// Sends bytes to a peer: as [`parnass_transport_stream::Pipe::send`].
    pub fn send(&mut self, number: u32, parts: &[Part<'_>]) -> io::Result<usize> {
        if self.peers.get(&number).is_some_and(|peer| peer.leaving) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if self.room(number)? == 0 || self.free.is_empty() {
            self.progress();
        }
        if self.room(number)? == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.packet(number, Kind::Data, parts).or_else(|error| {
            if error.kind() != io::ErrorKind::WouldBlock {
                return Err(error);
            }
            // The provider may have to work before it takes more.
            self.progress();
            self.packet(number, Kind::Data, parts)
        })
    }

    /// How many bytes may be sent to a peer now.
    fn room(&self, number: u32) -> io::Result<u32> {
        let peer = self.peers.get(&number).ok_or(io::ErrorKind::NotConnected)?;
        match &peer.failure {
            Some((kind, text)) => Err(io::Error::new(*kind, text.clone())),
            None => Ok(self.window - peer.sent.wrapping_sub(peer.taken)),
        }
    }

    /// Sends a packet with the first of these bytes; how many.
    fn packet(&mut self, number: u32, kind: Kind, parts: &[Part<'_>]) -> io::Result<usize> {
        // What was said in the handshake goes before.
        if self.letters.iter().any(|(peer, _)| *peer == number) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let limit = SLOT.min(Head::BYTES + self.room(number)? as usize);
        let name = self.name(number)?;
        let Some(slot) = self.free.pop() else { return Err(io::ErrorKind::WouldBlock.into()) };
        let base = self.endpoint.slot(slot);
        let mut at = Head::BYTES;
        for part in parts {
            let place = base.offset(at as i64);
            at += match *part {
                Part::Bytes(bytes) => {
                    let count = bytes.len().min(limit - at);
                    place.write(&bytes[..count]);
                    count
                }
                Part::User(address, length) => {
                    let count = length.min(limit - at);
                    place.copy_apart(address, count);
                    count
                }
            };
        }
        let Some(peer) = self.peers.get_mut(&number) else { return Err(io::ErrorKind::NotConnected.into()) };
        let from = self.identity.me;
        let head = Head { kind, from, sequence: peer.next[0], taken: peer.consumed, token: peer.tokens[0] };
        base.write(&head.encode());
        match self.endpoint.send(slot, at, name, kind == Kind::Data) {
            Err(error) => {
                self.free.push(slot);
                if error.kind() != io::ErrorKind::WouldBlock {
                    self.fail(number, failure(&error));
                }
                Err(error)
            }
            Ok(done) => {
                if done {
                    self.free.push(slot);
                } else {
                    self.owners[slot] = number;
                    peer.outstanding += 1;
                }
                let count = at - Head::BYTES;
                peer.next[0] = peer.next[0].wrapping_add(1);
                peer.sent = peer.sent.wrapping_add(count as u32);
                peer.told = peer.consumed;
                Ok(count)
            }
        }
    }

    /// Sends the last packet to a peer.
    pub fn send_last(&mut self, peer: u32) -> io::Result<()> {
        self.packet(peer, Kind::Last, &[]).map(drop)
    }

    /// Whether a peer has heard everything, or wants to hear nothing.
    pub fn has_parted(&self, peer: u32) -> bool {
        self.peers.get(&peer).is_none_or(|peer| {
            let told = peer.heard || peer.leaving && !peer.owed;
            peer.failure.is_some() || told && peer.outstanding == 0
        })
    }

    /// Whether all peers have that have said goodbye, or to whom this side has. Who has said it first sends a last packet behind it, and waits
    /// for the answer.
    pub fn have_parted(&self) -> bool {
        self.peers.iter().all(|(number, peer)| !peer.over || self.has_parted(*number))
    }

    // ---- what the streams say

    /// Whether all other ranks have streams to this one.
    pub fn is_whole(&self) -> bool {
        self.peers.len() + 1 >= self.identity.size as usize
    }

    /// Whether something waits for the provider to take it.
    pub fn is_waiting(&self) -> bool {
        !self.letters.is_empty()
            || !self.due.is_empty()
            || !self.unposted.is_empty()
            || !self.blocked.is_empty()
            || self.reads.is_waiting()
    }

    /// From now on a peer is known by this number.
    pub fn watch(&mut self, number: u32, place: usize) {
        if let Some(peer) = self.peers.get_mut(&number) {
            peer.number = Some(place);
            if !peer.queue.is_empty() || peer.failure.is_some() {
                self.note(number);
            }
        }
    }

    /// A peer took no more, or takes again. How many take no more now.
    pub fn block(&mut self, peer: u32, place: usize, blocked: bool) -> u32 {
        if blocked {
            self.blocked.insert(peer, place);
        } else {
            self.blocked.remove(&peer);
        }
        self.blocked.len() as u32
    }

    /// The numbers of those that took no more and may take again.
    pub fn writable(&self) -> Vec<usize> {
        if self.free.is_empty() {
            return Vec::new();
        }
        let may = |peer: &u32| self.room(*peer).map_or(true, |room| room != 0);
        self.blocked.iter().filter(|(peer, _)| may(peer)).map(|(_, place)| *place).collect()
    }

    /// Nothing of a peer is wanted any more. How many take no more now.
    pub fn forget(&mut self, number: u32) -> u32 {
        self.blocked.remove(&number);
        if let Some(peer) = self.peers.get_mut(&number) {
            peer.over = true;
            for chunk in std::mem::take(&mut peer.queue) {
                if let Chunk::Slot { slot, .. } = chunk {
                    self.held -= 1;
                    self.unposted.push(slot);
                }
            }
        }
        self.blocked.len() as u32
    }
}
