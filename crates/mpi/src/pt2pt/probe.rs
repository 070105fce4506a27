//! Probes, matched probes, and the receives of what they matched (MPI 5.0, section 3.8).

use crate::comm::{Communicator, Plane};
use crate::constants::{MPI_PROC_NULL, MPI_SUCCESS};
use crate::datatype::Buffer;
use crate::error::Result;
use crate::process::Process;
use crate::progress::current_owner;
use crate::pt2pt::described::Data;
use crate::pt2pt::transfer::{Criteria, Posted, received, receiving};
use crate::request::slots::Completion;
use crate::request::{Request, Status, status_of};
use parnass_base::atomics::Ordering;
use parnass_portals::{Appended, Event, Memory, SearchOperation};
use std::sync::Arc;

/// A message that a matched probe has taken out of the queue (MPI_Message).
#[derive(Debug)]
pub struct Message {
    communicator: Arc<Communicator>,
    /// `None`: MPI_MESSAGE_NO_PROC.
    event: Option<Event>,
}

impl Message {
    /// MPI_MESSAGE_NO_PROC: what a matched probe for MPI_PROC_NULL gives.
    pub fn no_process(communicator: &Arc<Communicator>) -> Message {
        Message { communicator: Arc::clone(communicator), event: None }
    }

    /// Whether it is MPI_MESSAGE_NO_PROC.
    pub fn is_no_process(&self) -> bool {
        self.event.is_none()
    }

    /// The communicator that it came on.
    pub fn communicator(&self) -> &Arc<Communicator> {
        &self.communicator
    }
}

fn probed(event: &Event, communicator: &Communicator) -> Status {
    Status {
        source: communicator.rank_of(event.initiator),
        tag: event.match_bits as u32 as i32,
        error: MPI_SUCCESS,
        bytes: event.requested_length,
        cancelled: false,
    }
}

impl Process {
    /// MPI_Iprobe: the message that a receive with these arguments would get, if there is one.
    pub fn iprobe(&self, communicator: &Communicator, source: i32, tag: i32) -> Result<Option<Status>> {
        if source == MPI_PROC_NULL {
            communicator.check_open()?;
            return Ok(Some(Status::NO_PROCESS));
        }
        let criteria = Criteria::new(communicator, Plane::PointToPoint, source, tag);
        // What has just come is best looked at before it is taken in.
        let event = self.nic().has_work().then(|| self.search(SearchOperation::Look, &criteria)).flatten();
        let event = event.or_else(|| {
            self.progress();
            self.search(SearchOperation::Look, &criteria)
        });
        self.found_or_hopeless(event.map(|event| probed(&event, communicator)), &criteria)
    }

    /// MPI_Probe.
    pub fn probe(&self, communicator: &Communicator, source: i32, tag: i32) -> Result<Status> {
        if source == MPI_PROC_NULL {
            communicator.check_open()?;
            return Ok(Status::NO_PROCESS);
        }
        let criteria = Criteria::new(communicator, Plane::PointToPoint, source, tag);
        let event = self.wait_to_find(SearchOperation::Look, &criteria)?;
        Ok(probed(&event, communicator))
    }

    /// MPI_Improbe.
    pub fn improbe(
        &self,
        communicator: &Arc<Communicator>,
        source: i32,
        tag: i32,
    ) -> Result<Option<(Message, Status)>> {
        if source == MPI_PROC_NULL {
            communicator.check_open()?;
            return Ok(Some((Message::no_process(communicator), Status::NO_PROCESS)));
        }
        self.progress();
        let criteria = Criteria::new(communicator, Plane::PointToPoint, source, tag);
        let found = self.search(SearchOperation::Take, &criteria).map(|event| taken(event, communicator));
        self.found_or_hopeless(found, &criteria)
    }

    /// What a probe has found; an error if it has found nothing, and cannot find what it looks for.
    fn found_or_hopeless<T>(&self, found: Option<T>, criteria: &Criteria) -> Result<Option<T>> {
        match found {
            None => {
                self.nic().step_aside();
                self.reason(criteria.source, criteria.match_bits).map_or(Ok(None), Err)
            }
            found => Ok(found),
        }
    }

    /// MPI_Mprobe.
    pub fn mprobe(
        &self,
        communicator: &Arc<Communicator>,
        source: i32,
        tag: i32,
    ) -> Result<(Message, Status)> {
        if source == MPI_PROC_NULL {
            communicator.check_open()?;
            return Ok((Message::no_process(communicator), Status::NO_PROCESS));
        }
        let criteria = Criteria::new(communicator, Plane::PointToPoint, source, tag);
        let event = self.wait_to_find(SearchOperation::Take, &criteria)?;
        Ok(taken(event, communicator))
    }

    fn wait_to_find(&self, operation: SearchOperation, criteria: &Criteria) -> Result<Event> {
        self.count_prober(1);
        let mut looked = false;
        let event = loop {
            let before = self.nic().arrivals();
            if let Some(event) = self.search(operation, criteria) {
                break Ok(event);
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
        event
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

    fn search(&self, operation: SearchOperation, criteria: &Criteria) -> Option<Event> {
        self.nic().search(operation, &criteria.entry(Memory::NONE, 0, 0))
    }

    /// MPI_Mrecv.
    pub fn receive_message(&self, message: &Message, buffer: Buffer<'_>) -> Result<Status> {
        let Some(event) = &message.event else { return Ok(Status::NO_PROCESS) };
        let (data, description) = self.described.data(&buffer);
        let outcome = match self.receive_taken(event.taken, data) {
            // The usual case: all of it is there.
            Posted::Done(completion) => received(&completion, data.length),
            posted => {
                let mut operation = receiving(posted, &criteria_of(event), data.length, description);
                self.wait_operation(&mut operation)
            }
        };
        outcome.map(|outcome| status_of(&outcome, &message.communicator))
    }

    /// MPI_Imrecv.
    pub fn ireceive_message(&self, message: &Message, buffer: Buffer<'_>) -> Arc<Request> {
        let Some(event) = &message.event else {
            return Request::complete(Some(&message.communicator), Ok(Status::NO_PROCESS));
        };
        let (data, description) = self.described.data(&buffer);
        let posted = self.receive_taken(event.taken, data);
        let operation = receiving(posted, &criteria_of(event), data.length, description);
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

/// What the receive of a message asks for that was taken.
fn criteria_of(event: &Event) -> Criteria {
    Criteria { source: Some(event.initiator), match_bits: event.match_bits, ignore_bits: 0 }
}

fn taken(event: Event, communicator: &Arc<Communicator>) -> (Message, Status) {
    let status = probed(&event, communicator);
    (Message { communicator: Arc::clone(communicator), event: Some(event) }, status)
}
