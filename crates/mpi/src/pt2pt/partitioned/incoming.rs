//! The receiving side: a receive for every partition of the sender, however many there are here.

use super::{Offer, Partitions, lock};
use crate::comm::Communicator;
use crate::constants::{MPI_ERR_COUNT, MPI_ERR_TRUNCATE, MPI_SUCCESS};
use crate::datatype::Buffer;
use crate::error::{Error, Result};
use crate::process::{Process, UserBytes};
use crate::pt2pt::staging::Staging;
use crate::pt2pt::transfer::{Criteria, receiving};
use crate::request::{Operation, Status};
use std::sync::{Arc, Mutex};

/// A message under way.
#[derive(Debug)]
struct Arriving {
    operation: Operation,
    /// Where it goes if the buffer is not one run of bytes, and which byte of the data it begins with.
    packed: Option<(Staging, u64)>,
}

impl Drop for Arriving {
    fn drop(&mut self) {
        if let (Some(_), Some((staging, _))) = (self.operation.slot(), self.packed.take()) {
            // The NIC may still write there.
            staging.leak();
        }
    }
}

#[derive(Debug, Default)]
struct State {
    active: bool,
    /// What the sender has said, once it is known.
    offer: Option<Result<Offer>>,
    /// One for each message of this start; `None` when it is there.
    messages: Vec<Option<Arriving>>,
    /// All messages before this one are there.
    next: usize,
    error: Option<Error>,
}

/// A partitioned receive.
#[derive(Debug)]
pub struct Incoming {
    communicator: Arc<Communicator>,
    partitions: Partitions,
    state: Mutex<State>,
}

impl Incoming {
    pub(super) fn new(communicator: &Arc<Communicator>, partitions: Partitions) -> Incoming {
        Incoming { communicator: Arc::clone(communicator), partitions, state: Mutex::default() }
    }

    pub(super) fn communicator(&self) -> &Arc<Communicator> {
        &self.communicator
    }

    pub(super) fn tag(&self) -> u32 {
        self.partitions.tag as u32
    }

    pub(crate) fn peer(&self) -> i32 {
        self.partitions.peer
    }

    /// Learns which send it belongs to.
    pub(super) fn accept(&self, process: &Process, offer: Result<Offer>) {
        let mut state = lock(&self.state);
        state.offer = Some(offer.and_then(|offer| self.agree(offer)));
        if state.active {
            self.post(process, &mut state);
            drop(state);
            // What was there already completes without an event.
            process.wake_waiters(0);
        }
    }

    /// Both sides must have the same amount of data.
    fn agree(&self, offer: Offer) -> Result<Offer> {
        let expected = self.partitions.bytes();
        if offer.bytes == expected {
            return Ok(offer);
        }
        let class = if offer.bytes > expected { MPI_ERR_TRUNCATE } else { MPI_ERR_COUNT };
        Err(Error::new(
            class,
            format!(
                "rank {} sends {} bytes in {} partitions with tag {}, but this process receives {expected} bytes in {}; both \
                 must have the same amount of data",
                self.partitions.peer,
                offer.bytes,
                offer.messages,
                self.partitions.tag,
                self.partitions.partitions
            ),
        ))
    }

    /// MPI_Start, while it is inactive.
    pub(crate) fn start(&self, process: &Process) {
        let mut state = lock(&self.state);
        state.active = true;
        state.error = None;
        self.post(process, &mut state);
    }

    /// Posts the receives of this start, if the sender is known.
    fn post(&self, process: &Process, state: &mut State) {
        state.messages.clear();
        state.next = 0;
        let offer = match &state.offer {
            None => return,
            Some(Ok(offer)) => *offer,
            Some(Err(error)) => {
                state.error = Some(error.clone());
                return;
            }
        };
        let length = self.partitions.bytes() / u64::from(offer.messages.max(1));
        for message in 0..offer.messages {
            match self.receive(process, &offer, message, length) {
                Ok(arriving) => state.messages.push(Some(arriving)),
                Err(error) => {
                    state.error.get_or_insert(error);
                }
            }
        }
    }

    fn receive(&self, process: &Process, offer: &Offer, message: u32, length: u64) -> Result<Arriving> {
        let Partitions { address, count, datatype, .. } = &self.partitions;
        let skip = u64::from(message) * length;
        let whole = Buffer::new(*address, count * u64::from(self.partitions.number()), datatype);
        let (address, packed) = match whole.contiguous() {
            Some(start) => (start.offset(skip as i64), None),
            None => {
                let staging = process.staging.take(length);
                (staging.address(), Some((staging, skip)))
            }
        };
        let criteria = Criteria {
            source: Some(self.communicator.peer(self.partitions.peer)),
            match_bits: offer.match_bits(&self.communicator, message),
            ignore_bits: 0,
        };
        let posted = process.post(&criteria, UserBytes { address, length }.into(), None)?;
        Ok(Arriving { operation: receiving(posted, &criteria, length, None), packed })
    }

    /// Whether a message of this start is there; then its data is in the buffer.
    fn arrived(&self, process: &Process, state: &mut State, message: usize) -> bool {
        let Some(Some(arriving)) = state.messages.get_mut(message) else { return true };
        match arriving.operation.poll(process) {
            None => return false,
            Some(Err(error)) => {
                state.error.get_or_insert(error);
            }
            Some(Ok(outcome)) => {
                if let Some((staging, skip)) = &arriving.packed {
                    let Partitions { address, count, datatype, .. } = &self.partitions;
                    let count = count * u64::from(self.partitions.number());
                    datatype.layout().unpack(count, *address, *skip, staging.address(), outcome.bytes);
                }
            }
        }
        state.messages[message] = None;
        true
    }

    /// MPI_Parrived, without a turn of the wheel.
    pub(crate) fn has_arrived(&self, process: &Process, partition: i32) -> Result<bool> {
        let partition = self.partitions.check_partition(partition)?;
        let mut state = lock(&self.state);
        if !state.active || !self.partitions.has_peer() {
            return Ok(true);
        }
        let offer = match &state.offer {
            None => return Ok(false),
            Some(Ok(offer)) => *offer,
            Some(Err(error)) => return Err(error.clone()),
        };
        let mut messages = offer.messages_of(partition, self.partitions.number());
        Ok(messages.all(|message| self.arrived(process, &mut state, message)))
    }

    /// How it went, when everything is there; then it is inactive.
    pub(crate) fn result(&self, process: &Process) -> Option<Result<Status>> {
        let mut state = lock(&self.state);
        if !self.partitions.has_peer() {
            state.active = false;
            return Some(Ok(Status::NO_PROCESS));
        }
        if state.offer.is_none() && state.error.is_none() {
            return None;
        }
        while state.next < state.messages.len() {
            let next = state.next;
            if !self.arrived(process, &mut state, next) {
                return None;
            }
            state.next += 1;
        }
        state.active = false;
        Some(match state.error.take() {
            Some(error) => Err(error),
            None => Ok(Status {
                source: self.partitions.peer,
                tag: self.partitions.tag,
                error: MPI_SUCCESS,
                bytes: self.partitions.bytes(),
                cancelled: false,
            }),
        })
    }
}
