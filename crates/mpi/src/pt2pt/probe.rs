//! Probes, matched probes, and the receives of what they matched (MPI 5.0, section 3.8).

use crate::activity::current_owner;
use crate::comm::{Communicator, Plane};
use crate::constants::{MPI_PROC_NULL, MPI_SUCCESS};
use crate::datatype::Buffer;
use crate::error::Result;
use crate::process::Process;
use crate::pt2pt::described::Data;
use crate::pt2pt::transfer::{Criteria, Posted, received, receiving};
use crate::request::slots::Completion;
use crate::request::{Outcome, Request, Status};
use parnass_base::Scratch;
use parnass_base::atomics::Ordering;
use parnass_portals::{Appended, Memory, ProcessId, SearchOperation, ShortBytes, write_words};
use std::sync::Arc;

/// A message that a matched probe has taken out of the queue (MPI_Message).
#[derive(Debug)]
pub struct Message {
    communicator: Arc<Communicator>,
    initiator: ProcessId,
    /// The rank of that in the communicator.
    source: i32,
    match_bits: u64,
    body: Body,
}

#[derive(Debug)]
enum Body {
    /// All of it: its bytes, and how many there are.
    Short(ShortBytes, u64),
    /// What the NIC knows it by.
    Taken(u64),
}

impl Message {
    /// The communicator that it came on.
    pub fn communicator(&self) -> &Arc<Communicator> {
        &self.communicator
    }

    /// What its receive asks for.
    fn criteria(&self) -> Criteria {
        Criteria { source: Some(self.initiator), match_bits: self.match_bits, ignore_bits: 0 }
    }
}

/// What a matched probe finds: a message, or MPI_MESSAGE_NO_PROC where it looked for one of MPI_PROC_NULL; and what a probe tells of it.
pub type Matched = (Option<Message>, Status);

fn status(source: i32, match_bits: u64, bytes: u64) -> Status {
    Status { source, tag: match_bits as u32 as i32, error: MPI_SUCCESS, bytes, cancelled: false }
}

impl Process {
    /// MPI_Iprobe: the message that a receive with these arguments would get, if there is one.
    pub fn iprobe(&self, communicator: &Communicator, source: i32, tag: i32) -> Result<Option<Status>> {
        if source == MPI_PROC_NULL {
            communicator.check_open()?;
            return Ok(Some(Status::NO_PROCESS));
        }
        let criteria = Criteria::new(communicator, Plane::PointToPoint, source, tag);
        self.look(&criteria, || self.seek(&criteria, communicator))
    }

    /// MPI_Probe.
    pub fn probe(&self, communicator: &Communicator, source: i32, tag: i32) -> Result<Status> {
        if source == MPI_PROC_NULL {
            communicator.check_open()?;
            return Ok(Status::NO_PROCESS);
        }
        let criteria = Criteria::new(communicator, Plane::PointToPoint, source, tag);
        self.wait_to_find(&criteria, || self.seek(&criteria, communicator))
    }

    /// MPI_Improbe.
    pub fn improbe(
        &self,
        communicator: &Arc<Communicator>,
        source: i32,
        tag: i32,
    ) -> Result<Option<Matched>> {
        if source == MPI_PROC_NULL {
            communicator.check_open()?;
            return Ok(Some((None, Status::NO_PROCESS)));
        }
        let criteria = Criteria::new(communicator, Plane::PointToPoint, source, tag);
        self.look(&criteria, || self.take(&criteria, communicator))
    }

    /// MPI_Mprobe.
    pub fn mprobe(&self, communicator: &Arc<Communicator>, source: i32, tag: i32) -> Result<Matched> {
        if source == MPI_PROC_NULL {
            communicator.check_open()?;
            return Ok((None, Status::NO_PROCESS));
        }
        let criteria = Criteria::new(communicator, Plane::PointToPoint, source, tag);
        self.wait_to_find(&criteria, || self.take(&criteria, communicator))
    }

    /// What a probe finds that does not wait; an error if it finds nothing, and cannot find what it looks for.
    #[inline(always)]
    fn look<T>(&self, criteria: &Criteria, find: impl Fn() -> Option<T>) -> Result<Option<T>> {
        // What has just come is best looked at before it is taken in.
        let found = find();
        if found.is_some() {
            return Ok(found);
        }
        let happened = self.progress();
        match happened.then(find).flatten() {
            None => {
                self.nic().step_aside();
                self.reason(criteria.source, criteria.match_bits).map_or(Ok(None), Err)
            }
            found => Ok(found),
        }
    }

    #[inline(always)]
    fn wait_to_find<T>(&self, criteria: &Criteria, find: impl Fn() -> Option<T>) -> Result<T> {
        self.count_prober(1);
        let mut looked = false;
        let found = loop {
            let before = self.nic().arrivals();
            if let Some(found) = find() {
                break Ok(found);
            }
            // Mostly it comes soon, and is best looked at before it is taken in.
            looked = !looked && self.nic().awaits_arrival(criteria.source);
            if looked {
                continue;
            }
            if let Some(error) = self.reason(criteria.source, criteria.match_bits) {
                break Err(error);
            }
            let hopeless = || self.reason(criteria.source, criteria.match_bits).is_some();
            self.wait_watching(criteria.source, &|| self.nic().arrivals() != before || hopeless());
        };
        self.count_prober(u32::MAX);
        found
    }

    /// Adds to the number of threads that probe, modulo 2^32.
    #[inline]
    fn count_prober(&self, more: u32) {
        if self.slots.is_concurrent() {
            self.probers.fetch_add(more, Ordering::Relaxed);
        } else {
            self.probers.store(self.probers.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
        }
    }

    /// Looks for a message once.
    #[inline(always)]
    fn seek(&self, criteria: &Criteria, communicator: &Communicator) -> Option<Status> {
        let event = self.nic().search(SearchOperation::Look, &criteria.entry(Memory::NONE, 0, 0))?;
        Some(status(communicator.rank_of(event.initiator), event.match_bits, event.requested_length))
    }

    /// The same, and takes it.
    #[inline(always)]
    fn take(&self, criteria: &Criteria, communicator: &Arc<Communicator>) -> Option<Matched> {
        let entry = criteria.entry(Memory::NONE, 0, 0);
        let (initiator, match_bits, bytes, body) = match self.nic().take_short(&entry) {
            // The usual case.
            Some((received, words)) => {
                let bytes = received.requested_length;
                (received.initiator, received.match_bits, bytes, Body::Short(words, bytes))
            }
            None => {
                let event = self.nic().search(SearchOperation::Take, &entry)?;
                (event.initiator, event.match_bits, event.requested_length, Body::Taken(event.taken))
            }
        };
        let (communicator, source) = (Arc::clone(communicator), communicator.rank_of(initiator));
        let message = Message { communicator, initiator, source, match_bits, body };
        Some((Some(message), status(source, match_bits, bytes)))
    }

    /// MPI_Mrecv.
    pub fn receive_message(&self, message: &Message, buffer: Buffer<'_>) -> Result<Status> {
        let outcome = match &message.body {
            Body::Short(words, length) => receive_short(message, words, *length, &buffer),
            Body::Taken(taken) => {
                let (data, description) = self.described.data(&buffer);
                match self.receive_taken(*taken, data) {
                    // The usual case: all of it is there.
                    Posted::Done(completion) => received(&completion, data.length),
                    posted => {
                        let mut operation = receiving(posted, &message.criteria(), data.length, description);
                        self.wait_operation(&mut operation)
                    }
                }
            }
        }?;
        Ok(status(message.source, message.match_bits, outcome.bytes))
    }

    /// MPI_Imrecv.
    pub fn ireceive_message(&self, message: &Message, buffer: Buffer<'_>) -> Arc<Request> {
        let Body::Taken(taken) = message.body else {
            let result = self.receive_message(message, buffer);
            return Request::complete(Some(&message.communicator), result);
        };
        let (data, description) = self.described.data(&buffer);
        let posted = self.receive_taken(taken, data);
        let operation = receiving(posted, &message.criteria(), data.length, description);
        Request::transfer(&message.communicator, operation)
    }

    fn receive_taken(&self, taken: u64, data: Data) -> Posted {
        if let Some(received) = self.nic().receive_held(taken, data.memory, data.length as usize) {
            return Posted::Done(received);
        }
        let name = self.slots.take(1, current_owner());
        match self.nic().receive_taken(taken, data.memory, data.length as usize, name.user()) {
            Appended::Complete(event) => {
                self.slots.release(name);
                Posted::Done(Completion::from(&event))
            }
            // What was matched cannot be cancelled.
            Appended::Posted(handle) => Posted::InFlight(name, handle),
        }
    }
}

/// Gives a message of which all is here to its receive.
fn receive_short(message: &Message, words: &ShortBytes, length: u64, buffer: &Buffer<'_>) -> Result<Outcome> {
    let placed = length.min(buffer.size());
    match buffer.contiguous() {
        Some(address) => write_words(words, address, placed as usize),
        None => {
            let bytes = Scratch::new(size_of_val(words));
            write_words(words, bytes.address(), bytes.len());
            buffer.datatype.layout().unpack(buffer.count, buffer.address, 0, bytes.address(), placed);
        }
    }
    let completion = Completion {
        failed: false,
        initiator: message.initiator,
        match_bits: message.match_bits,
        header_data: 0,
        requested_length: length,
        placed_length: placed,
    };
    received(&completion, buffer.size())
}
