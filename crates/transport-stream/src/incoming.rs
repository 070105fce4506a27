//! What arrives: frames are cut out of the streams of all links, and payloads go where they are wanted as they come.
//!
//! A link reads into a small buffer, which holds many small frames at once. When a payload is due, it is read straight into
//! its place, and only what lies behind it into the buffer. The place is decided by whoever takes the message: memory of
//! the user, or nowhere; until then, or if nobody has asked yet, it is kept in memory of its own. A payload that is offered stays
//! with its sender until the place is decided, and is read into it from there.

use crate::books::Refusals;
use crate::offers::{Answer, LONGEST, MOST};
use crate::pipe::{Pipe, Remote};
use crate::seal::Opener;
use crate::wire::{FrameKind, Head, OfferWords};
use parnass_base::lane::{Message, WORDS};
use parnass_base::{Scratch, UserAddress};
use parnass_transport::{BULK_WORD, Bulk, CROSSING_KINDS, KIND_SHIFT, LENGTH_WORD, PROCESS_BITS};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// Bytes of a link's buffer: a payload of 16 KiB comes with its head in one read.
const BUFFER: usize = (16 << 10) + 256;
/// The bits of a tag that are the number of the sender.
const PROCESS_MASK: u32 = (1 << PROCESS_BITS) - 1;
/// Looks at one link that have found something before it is looked at by itself alone.
const STEADY: u32 = 8;
/// Bytes that one round of taking reads at most: who only passes by, as MPI_Irecv does, is not kept longer than 50 microseconds or so.
const BUDGET: usize = 256 << 10;

/// A link's receiving side.
#[derive(Debug)]
struct Stream<P> {
    peer: u32,
    /// The number that the peer has in its own world, in which it sends.
    tag: u32,
    /// `None` when it is over.
    pipe: Option<Arc<P>>,
    /// Where the connection is encrypted.
    opener: Option<Opener>,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// The payload that arrives now.
    payload: Option<usize>,
    /// The longest run that can be read out of the peer's memory, and what it offers: numbers and payloads.
    reads: usize,
    offers: Vec<(u64, usize)>,
    next_offer: u64,
    /// A message that was refused and is offered again.
    held: Option<Message>,
    /// Whether it stands in the row of links that may have something.
    ready: bool,
    /// The last read gave less than it could have: the pipe was empty.
    drained: bool,
    /// It has said goodbye, or is lost.
    over: bool,
    /// Where what is read is counted.
    counted: Option<Arc<Refusals>>,
}

/// Where a payload goes.
#[derive(Debug)]
enum Place {
    Undecided,
    Kept(Scratch),
    /// The first `room` bytes go to `address`.
    Landing {
        address: UserAddress,
        room: usize,
        then: Message,
    },
    Nowhere,
}

/// How far an offer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nobody has asked for it.
    Open,
    /// It is read.
    Reading,
    /// It is sent in parts.
    Sent,
}

/// A payload that lies in the memory of its sender.
#[derive(Clone, Copy, Debug)]
struct Offer {
    number: u64,
    remote: Remote,
    stage: Stage,
}

/// A payload.
#[derive(Debug)]
struct Payload {
    stream: usize,
    length: usize,
    received: usize,
    /// Where the frame ends that brings bytes of it.
    until: usize,
    offer: Option<Offer>,
    counted: bool,
    place: Place,
}

/// What a look at one link has given.
enum Step {
    Message(Message),
    /// Nothing more is there now.
    Dry,
    /// There may be more, but this round has read enough.
    Enough,
    /// Nothing more will come.
    Over,
}

/// What the receiving side tells of its links.
pub trait Notes {
    /// `count` payload bytes from `peer` are used up, or (`given`) `peer` says so of those of this process.
    fn credit(&self, peer: u32, count: usize, given: bool);
    /// Tells `peer` what has become of `count` bytes that it offers.
    fn answer(&self, peer: u32, number: u64, answer: Answer, count: usize);
    /// `peer` says what has become of what this process offers; `false`: it does not.
    fn answered(&self, peer: u32, number: u64, answer: Answer) -> bool;
    /// A payload is in its place.
    fn landed(&self, then: Message);
    /// A peer has said goodbye.
    fn goodbye(&self, peer: u32);
    /// A connection has ended without a goodbye, or does not keep to the protocol.
    fn lost(&self, peer: u32, error: io::Error);
}

/// Memory of payloads that nobody had asked for, for the next ones: pages that the kernel has just given cost more than to copy what
/// comes into them.
#[derive(Debug, Default)]
struct Spares {
    memory: Vec<Scratch>,
    bytes: usize,
}

impl Spares {
    /// Payloads that are shorter get memory of their own.
    const LEAST: usize = 16 << 10;
    /// Bytes that are kept at most.
    const MOST: usize = 4 << 20;

    /// At least `length` bytes.
    fn take(&mut self, length: usize) -> Scratch {
        if length < Self::LEAST {
            return Scratch::new(length);
        }
        let room = length.next_power_of_two();
        match self.memory.iter().rposition(|spare| spare.len() == room) {
            Some(found) => {
                self.bytes -= room;
                self.memory.swap_remove(found)
            }
            None => Scratch::new(room),
        }
    }

    /// Keeps what is not needed any more, unless that is too much.
    fn keep(&mut self, memory: Scratch) {
        if memory.len() >= Self::LEAST && self.bytes + memory.len() <= Self::MOST {
            self.bytes += memory.len();
            self.memory.push(memory);
        }
    }
}

/// All links' receiving sides. One caller at a time.
#[derive(Debug)]
pub struct Incoming<P> {
    streams: Vec<Stream<P>>,
    ready: VecDeque<usize>,
    payloads: Vec<Option<Payload>>,
    spares: Spares,
    free: Vec<usize>,
    /// The link that has spoken last: the first to be looked at.
    hot: usize,
    /// How often in a row something was found by looking at it.
    steady: u32,
}

impl<P> Default for Incoming<P> {
    fn default() -> Incoming<P> {
        Incoming {
            streams: Vec::new(),
            ready: VecDeque::new(),
            payloads: Vec::new(),
            spares: Spares::default(),
            free: Vec::new(),
            hot: 0,
            steady: 0,
        }
    }
}

impl<P: Pipe> Incoming<P> {
    /// Adds a link to `peer`, which sends in the name of `tag`; returns its number.
    pub fn add(
        &mut self,
        peer: u32,
        tag: u32,
        pipe: Arc<P>,
        opener: Option<Opener>,
        counted: Option<Arc<Refusals>>,
    ) -> usize {
        self.streams.push(Stream {
            peer,
            tag,
            // What is read would travel in clear.
            reads: if opener.is_none() { pipe.reads() } else { 0 },
            offers: Vec::new(),
            next_offer: 0,
            pipe: Some(pipe),
            opener,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            start: 0,
            end: 0,
            payload: None,
            held: None,
            ready: false,
            drained: false,
            over: false,
            counted,
        });
        (self.hot, self.steady) = (self.streams.len() - 1, 0);
        self.hot
    }

    /// How many links there are or were.
    pub fn links(&self) -> usize {
        self.streams.len()
    }

    /// Nothing is taken from a peer any more, and its payloads go nowhere. No read from it is under way.
    pub fn give_up(&mut self, peer: u32) {
        for (number, stream) in self.streams.iter_mut().enumerate().filter(|(_, stream)| stream.peer == peer)
        {
            stream.end();
            (stream.held, stream.payload) = (None, None);
            stream.offers.clear();
            let landing =
                |payload: &&mut Payload| payload.stream == number && !matches!(payload.place, Place::Kept(_));
            for payload in self.payloads.iter_mut().flatten().filter(landing) {
                payload.place = Place::Nowhere;
                payload.offer = None;
            }
        }
    }

    /// The peer of a link.
    pub fn peer(&self, stream: usize) -> u32 {
        self.streams[stream].peer
    }

    /// Notes that a link may have something.
    pub fn mark(&mut self, stream: usize) {
        let entry = &mut self.streams[stream];
        if entry.over {
            return;
        }
        // Also of one that stands in the row: what it was found without may have come since.
        entry.drained = false;
        if !entry.ready {
            entry.ready = true;
            self.ready.push_back(stream);
        }
    }

    /// Whether some link may have something.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether something of a link was read that nobody has taken, perhaps.
    pub fn has_read(&self) -> bool {
        // What is encrypted may be read, and lie where it is opened.
        let has_read = |stream: &Stream<P>| {
            stream.held.is_some() || stream.start != stream.end || stream.opener.is_some()
        };
        self.ready.iter().any(|number| has_read(&self.streams[*number]))
    }

    /// Whether this link has spoken last.
    pub fn is_hot(&self, stream: usize) -> bool {
        self.hot == stream
    }

    /// The link that has spoken last, if it alone has for a while, and its connection.
    pub fn steady(&self) -> Option<(usize, &Arc<P>)> {
        let pipe = self.streams.get(self.hot)?.pipe.as_ref()?;
        (self.steady >= STEADY).then_some((self.hot, pipe))
    }

    fn spoke(&mut self, stream: usize) {
        if self.hot != stream {
            (self.hot, self.steady) = (stream, 0);
        }
    }

    /// Notes that a link may have something of a payload that has begun to come.
    pub fn mark_payload(&mut self, stream: usize) {
        if self.streams[stream].payload.is_some() {
            self.mark(stream);
        }
    }

    /// Looks at the link that has spoken last, if it could not be known otherwise. Whether it has something.
    pub fn look_at_hot(&mut self) -> bool {
        let Some(stream) = self.streams.get_mut(self.hot) else { return false };
        if stream.over || stream.ready || stream.payload.is_some() {
            return false;
        }
        let read = stream.read(UserAddress::NULL, 0);
        if read.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            return false;
        }
        // What has come is in the buffer; an end or an error will be met again.
        let drained = stream.drained && read.is_ok_and(|count| count != 0);
        let hot = self.hot;
        self.steady = self.steady.saturating_add(1);
        self.mark(hot);
        self.streams[hot].drained = drained;
        true
    }

    /// Offers up to `limit` messages to `accept`, which is called without the guard: `lock` gives it.
    pub fn take<'a, Guard>(
        lock: impl Fn() -> Guard,
        limit: usize,
        notes: &dyn Notes,
        accept: &mut dyn FnMut(&Message) -> bool,
    ) -> usize
    where
        P: 'a,
        Guard: std::ops::DerefMut<Target = Incoming<P>> + 'a,
    {
        let mut taken = 0;
        let mut budget = BUDGET;
        let mut guard = lock();
        let mut links = guard.ready.len();
        while links != 0
            && let Some(&number) = guard.ready.front()
        {
            let mut of_this = 0;
            let keep = loop {
                if of_this == limit || budget == 0 {
                    break true;
                }
                match guard.step(number, notes, &mut budget) {
                    Step::Dry => break false,
                    Step::Enough => break true,
                    Step::Over => {
                        guard.streams[number].end();
                        break false;
                    }
                    Step::Message(message) => {
                        drop(guard);
                        let accepted = accept(&message);
                        guard = lock();
                        guard.spoke(number);
                        if !accepted {
                            guard.streams[number].held = Some(message);
                            break true;
                        }
                        guard.settle(number);
                        taken += 1;
                        of_this += 1;
                    }
                }
            };
            guard.ready.pop_front();
            if keep {
                guard.ready.push_back(number);
            } else {
                guard.streams[number].ready = false;
            }
            links -= 1;
        }
        taken
    }

    /// A payload about which the taker of its message has not decided is kept.
    fn settle(&mut self, stream: usize) {
        if let Some(payload) = self.streams[stream].payload.and_then(|number| self.payloads[number].as_mut())
            && let Place::Undecided = payload.place
        {
            payload.place = Place::Kept(self.spares.take(payload.length));
        }
    }

    /// The next message of a link.
    fn step(&mut self, number: usize, notes: &dyn Notes, budget: &mut usize) -> Step {
        if let Some(message) = self.streams[number].held.take() {
            return Step::Message(message);
        }
        loop {
            if *budget == 0 {
                return Step::Enough;
            }
            if let Some(payload) = self.streams[number].payload {
                match self.fill(number, payload, notes) {
                    Ok(0) => return self.lose(number, notes, io::ErrorKind::UnexpectedEof.into()),
                    Ok(count) => *budget = budget.saturating_sub(count),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Step::Dry,
                    Err(error) => return self.lose(number, notes, error),
                }
                continue;
            }
            let stream = &mut self.streams[number];
            let bytes = &stream.buffer[stream.start..stream.end];
            if let Some(first) = bytes.first_chunk::<{ Head::BYTES }>() {
                let Some(head) = Head::decode(first) else {
                    let text = "it sent bytes that are no frame";
                    return self.lose(number, notes, io::Error::new(io::ErrorKind::InvalidData, text));
                };
                let length = head.bytes_before_payload();
                if bytes.len() >= length {
                    let mut words = [0; WORDS];
                    for (word, chunk) in words.iter_mut().zip(bytes[Head::BYTES..length].chunks_exact(8)) {
                        *word = u64::from_le_bytes(chunk.try_into().expect("chunks of eight"));
                    }
                    stream.start += length;
                    match self.frame(number, &head, words, notes) {
                        Some(step) => return step,
                        None => continue,
                    }
                }
            }
            if std::mem::take(&mut stream.drained) {
                return Step::Dry;
            }
            match stream.read(UserAddress::NULL, 0) {
                Ok(0) => return self.lose(number, notes, io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => *budget = budget.saturating_sub(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Step::Dry,
                Err(error) => return self.lose(number, notes, error),
            }
        }
    }

    fn lose(&self, number: usize, notes: &dyn Notes, error: io::Error) -> Step {
        notes.lost(self.streams[number].peer, error);
        Step::Over
    }

    /// Takes in a frame. `None`: nothing of it concerns anybody else.
    fn frame(
        &mut self,
        number: usize,
        head: &Head,
        mut words: [u64; WORDS],
        notes: &dyn Notes,
    ) -> Option<Step> {
        let peer = self.streams[number].peer;
        if head.returned != 0 {
            notes.credit(peer, head.returned as usize, true);
        }
        match head.kind {
            FrameKind::Credit => return None,
            FrameKind::Goodbye => {
                notes.goodbye(peer);
                return Some(Step::Over);
            }
            FrameKind::Message => (),
            _ if self.streams[number].reads == 0 => {
                return Some(self.lose_for(
                    number,
                    notes,
                    "it offers memory over a stream that has no reads",
                ));
            }
            FrameKind::Offer => (),
            FrameKind::Taken | FrameKind::Declined | FrameKind::Instead => {
                let answer = match head.kind {
                    FrameKind::Taken => Answer::Taken,
                    FrameKind::Declined => Answer::Declined,
                    _ => Answer::Instead,
                };
                let known = notes.answered(peer, words[0], answer);
                return (!known).then(|| {
                    self.lose_for(number, notes, "it answers an offer that was not made, or not any more")
                });
            }
            FrameKind::Part => return self.part(number, words[0], head.payload as usize, notes),
        }
        if head.tag & PROCESS_MASK != self.streams[number].tag {
            return Some(self.lose_for(number, notes, "it sent a message in the name of another rank"));
        }
        if CROSSING_KINDS >> (head.tag >> KIND_SHIFT) & 1 == 0 {
            let text = "it sent a message of a kind that never travels between nodes";
            return Some(self.lose_for(number, notes, text));
        }
        let tag = head.tag & !PROCESS_MASK | peer;
        if head.kind == FrameKind::Offer {
            return Some(match self.offer(number, &OfferWords::decode(&words)) {
                Some(words) => Step::Message(Message { tag, words }),
                None => self.lose_for(number, notes, "it offers more than it may"),
            });
        }
        if head.payload != 0 {
            let length = head.payload as usize;
            let name = self.keep(Payload {
                stream: number,
                length,
                received: 0,
                until: length,
                offer: None,
                counted: head.counted,
                place: Place::Undecided,
            });
            self.streams[number].payload = Some(name);
            words[BULK_WORD] = name as u64 + 1;
        }
        words[LENGTH_WORD] =
            if head.words <= LENGTH_WORD as u8 { u64::from(head.payload) } else { words[LENGTH_WORD] };
        Some(Step::Message(Message { tag, words }))
    }

    /// The name of a new payload.
    fn keep(&mut self, payload: Payload) -> usize {
        let name = self.free.pop().unwrap_or_else(|| {
            self.payloads.push(None);
            self.payloads.len() - 1
        });
        self.payloads[name] = Some(payload);
        name
    }

    /// Takes in an offer: the words of the message that it is. `None`: it is more than may be offered.
    fn offer(&mut self, number: usize, said: &OfferWords) -> Option<[u64; WORDS]> {
        let stream = &mut self.streams[number];
        let length = usize::try_from(said.length).ok()?;
        let fits = (1..=LONGEST.min(stream.reads)).contains(&length);
        if !fits || stream.offers.len() >= MOST || said.number != stream.next_offer {
            return None;
        }
        stream.next_offer += 1;
        let remote = Remote { key: said.key, address: said.address };
        let name = self.keep(Payload {
            stream: number,
            length,
            received: 0,
            until: 0,
            offer: Some(Offer { number: said.number, remote, stage: Stage::Open }),
            counted: false,
            place: Place::Undecided,
        });
        self.streams[number].offers.push((said.number, name));
        let mut words = [0; WORDS];
        (words[0], words[1]) = (said.word, said.offset);
        (words[BULK_WORD], words[LENGTH_WORD]) = (name as u64 + 1, said.length);
        Some(words)
    }

    /// A frame brings the next `count` bytes of an offer that could not be read.
    fn part(&mut self, number: usize, offer: u64, count: usize, notes: &dyn Notes) -> Option<Step> {
        let found = self.streams[number].offers.iter().find(|(of, _)| *of == offer).map(|(_, name)| *name);
        if let Some(name) = found
            && let Some(payload) = self.payloads[name].as_mut()
            && payload.offer.is_some_and(|offer| offer.stage == Stage::Sent)
            && count <= payload.length - payload.received
        {
            payload.until = payload.received + count;
            self.streams[number].payload = Some(name);
            return None;
        }
        Some(self.lose_for(number, notes, "it sent a part of what nobody has asked for"))
    }

    /// The peer of this stream does not keep to the protocol.
    fn lose_for(&self, number: usize, notes: &dyn Notes, text: &str) -> Step {
        self.lose(number, notes, io::Error::new(io::ErrorKind::InvalidData, text))
    }

    /// Moves what is there of a payload to its place. Returns how many bytes came; 0: the stream has ended.
    fn fill(&mut self, number: usize, name: usize, notes: &dyn Notes) -> io::Result<usize> {
        let stream = &mut self.streams[number];
        let payload = self.payloads[name].as_mut().expect("a payload that arrives");
        let missing = payload.until - payload.received;
        let mut count = stream.move_to(payload, missing);
        if count == 0 {
            // The room behind what is there; what is thrown away goes through the buffer.
            let (address, room) = payload.rest();
            let read = stream.read(address, room)?;
            if read == 0 {
                return Ok(0);
            }
            let direct = read.min(room);
            payload.received += direct;
            count = direct + stream.move_to(payload, payload.until - payload.received);
        }
        if payload.received == payload.until {
            stream.payload = None;
            if payload.received == payload.length && !matches!(payload.place, Place::Kept(_)) {
                self.finish(name, notes);
            }
        }
        Ok(count.max(1))
    }

    /// Forgets a payload that has arrived and is used up.
    fn finish(&mut self, name: usize, notes: &dyn Notes) {
        let Some(payload) = self.payloads[name].take() else { return };
        self.free.push(name);
        let stream = &mut self.streams[payload.stream];
        if payload.offer.is_some() {
            stream.offers.retain(|(_, of)| *of != name);
        }
        if payload.counted {
            notes.credit(stream.peer, payload.length, false);
        }
        if let Place::Landing { then, .. } = payload.place {
            notes.landed(then);
        }
    }

    /// A payload that is not used up. `None`: a peer has said that its message has one, which it has not.
    fn payload(&mut self, bulk: Bulk) -> Option<(usize, &mut Payload, &mut Stream<P>)> {
        let name = usize::try_from(bulk.0).ok()?.checked_sub(1)?;
        let payload = self.payloads.get_mut(name)?.as_mut()?;
        let stream = &mut self.streams[payload.stream];
        Some((name, payload, stream))
    }

    /// See [`parnass_transport::Network::land`].
    pub fn land(
        &mut self,
        bulk: Bulk,
        target: UserAddress,
        length: usize,
        then: Message,
        notes: &dyn Notes,
    ) -> bool {
        let Some((name, payload, stream)) = self.payload(bulk) else { return true };
        let room = length.min(payload.length);
        if let Some(offer) = payload.offer {
            return self.land_offer(name, offer, target, room, then, notes);
        }
        let before = std::mem::replace(&mut payload.place, Place::Landing { address: target, room, then });
        if let Place::Kept(memory) = &before {
            target.copy_from(memory.address(), payload.received.min(room));
        }
        if payload.received != payload.length {
            stream.move_to(payload, payload.length - payload.received);
        }
        let whole = payload.received == payload.length;
        if whole {
            // Complete at once: nobody has to be told.
            payload.place = Place::Nowhere;
            if stream.payload == Some(name) {
                stream.payload = None;
            }
        }
        if let Place::Kept(memory) = before {
            self.spares.keep(memory);
        }
        if whole {
            self.finish(name, notes);
        }
        whole
    }

    /// See [`parnass_transport::Network::land_whole`].
    pub fn land_whole(&mut self, bulk: Bulk, target: UserAddress, length: usize, notes: &dyn Notes) -> bool {
        let Some((name, payload, stream)) = self.payload(bulk) else { return true };
        let there = if stream.payload == Some(name) { stream.end - stream.start } else { 0 };
        let whole = payload.offer.is_none() && payload.received + there >= payload.length;
        whole && self.land(bulk, target, length, Message::default(), notes)
    }

    /// As [`Incoming::land`], for what is read where it lies.
    fn land_offer(
        &mut self,
        name: usize,
        offer: Offer,
        target: UserAddress,
        room: usize,
        then: Message,
        notes: &dyn Notes,
    ) -> bool {
        if offer.stage != Stage::Open {
            return false; // Its name is used up.
        }
        if room == 0 {
            self.decline(name, offer, notes);
            return true;
        }
        let Some(payload) = self.payloads[name].as_mut() else { return true };
        payload.place = Place::Landing { address: target, room, then };
        payload.offer = Some(Offer { stage: Stage::Reading, ..offer });
        // Where the stream is over nothing comes any more.
        let pipe = self.streams[payload.stream].pipe.as_deref();
        if pipe.is_some_and(|pipe| pipe.read(name, offer.remote, target, room).is_err()) {
            self.ask(name, notes);
        }
        false
    }

    /// Asks for the bytes of an offer that cannot be read.
    fn ask(&mut self, name: usize, notes: &dyn Notes) {
        if let Some(payload) = self.payloads[name].as_mut()
            && let Some(offer) = payload.offer.as_mut()
        {
            offer.stage = Stage::Sent;
            let peer = self.streams[payload.stream].peer;
            notes.answer(peer, offer.number, Answer::Instead, payload.length);
        }
    }

    /// An offer that nobody has asked for is wanted nowhere.
    fn decline(&mut self, name: usize, offer: Offer, notes: &dyn Notes) {
        if let Some(payload) = &self.payloads[name] {
            notes.answer(self.streams[payload.stream].peer, offer.number, Answer::Declined, payload.length);
        }
        self.finish(name, notes);
    }

    /// A read that [`Pipe::read`] has begun is over.
    pub fn read(&mut self, name: usize, result: &io::Result<()>, notes: &dyn Notes) {
        let Some(payload) = self.payloads.get(name).and_then(Option::as_ref) else { return };
        let Some(offer) = payload.offer.filter(|offer| offer.stage == Stage::Reading) else { return };
        if result.is_err() {
            return self.ask(name, notes);
        }
        let count = match payload.place {
            Place::Landing { room, .. } => room,
            _ => 0,
        };
        notes.answer(self.streams[payload.stream].peer, offer.number, Answer::Taken, count);
        self.finish(name, notes);
    }

    /// See [`parnass_transport::Network::is_whole`].
    pub fn is_whole(&mut self, bulk: Bulk) -> bool {
        self.payload(bulk).is_some_and(|(_, payload, _)| payload.received == payload.length)
    }

    /// See [`parnass_transport::Network::discard`].
    pub fn discard(&mut self, bulk: Bulk, notes: &dyn Notes) {
        let Some((name, payload, _)) = self.payload(bulk) else { return };
        match payload.offer {
            Some(offer) if offer.stage == Stage::Open => return self.decline(name, offer, notes),
            // Its name is used up.
            Some(_) => return,
            None => (),
        }
        payload.place = Place::Nowhere;
        if payload.received == payload.length {
            self.finish(name, notes);
        }
    }
}

impl<P: Pipe> Stream<P> {
    /// Nothing more will come: what it holds of the system is given back.
    fn end(&mut self) {
        self.over = true;
        self.pipe = None;
        self.opener = None;
        self.buffer = Box::default();
        (self.start, self.end) = (0, 0);
    }

    /// Reads into `length` bytes at `address`, and what comes behind them into the buffer.
    fn read(&mut self, address: UserAddress, length: usize) -> io::Result<usize> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start != 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let room = length + self.buffer.len() - self.end;
        let Some(pipe) = self.pipe.as_deref() else { return Ok(0) };
        let rest = &mut self.buffer[self.end..];
        let read = match &mut self.opener {
            None => pipe.receive(address, length, rest)?,
            Some(opener) => opener.receive(pipe, address, length, rest)?,
        };
        if let Some(books) = self.counted.as_ref().and_then(|counted| counted.books()) {
            books.read(read);
        }
        self.end += read.saturating_sub(length);
        // Of what is encrypted more may have come than was opened.
        self.drained = self.opener.is_none() && read < room;
        Ok(read)
    }

    /// Moves up to `limit` bytes from the buffer into a payload; returns how many.
    fn move_to(&mut self, payload: &mut Payload, limit: usize) -> usize {
        let count = limit.min(self.end - self.start);
        if count == 0 {
            return 0;
        }
        let (address, room) = payload.rest();
        address.write(&self.buffer[self.start..self.start + count.min(room)]);
        self.start += count;
        payload.received += count;
        count
    }
}

impl Payload {
    /// Where the next byte goes, and how many may be put there.
    fn rest(&self) -> (UserAddress, usize) {
        let (address, room) = match &self.place {
            Place::Kept(memory) => (memory.address(), self.length),
            Place::Landing { address, room, .. } => (*address, *room),
            Place::Undecided | Place::Nowhere => (UserAddress::NULL, 0),
        };
        (address.offset(self.received as i64), room.min(self.until).saturating_sub(self.received))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_unexpected_payloads_serves_the_next_and_is_bounded() {
        let mut spares = Spares::default();
        let first = spares.take(100_000);
        let address = first.address();
        assert!(first.len() >= 100_000);
        spares.keep(first);
        assert_ne!(spares.take(20_000).address(), address, "of another class");
        let again = spares.take(120_000);
        assert_eq!((again.address(), spares.bytes), (address, 0));
        let many: Vec<Scratch> = (0..100).map(|_| spares.take(200_000)).collect();
        many.into_iter().for_each(|memory| spares.keep(memory));
        assert!((1..=Spares::MOST).contains(&spares.bytes));
        let short = spares.take(1_000);
        spares.keep(short);
        assert_eq!(spares.memory.iter().map(Scratch::len).sum::<usize>(), spares.bytes);
    }
}
