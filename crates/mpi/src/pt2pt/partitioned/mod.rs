//! Partitioned communication (MPI 5.0, chapter 4): one buffer in parts, each of which is sent when some thread says that it is
//! ready, and may be looked at when it has arrived.
//!
//! Every partition of the sender is a message with match bits of its own. When a send is initialised, it *offers* itself to the
//! receiver: how many messages there will be, and where their match bits begin. Offers of one sender come in order, so each
//! goes to the receive of that tag that was initialised first among those without one. Nothing else is agreed
//! upon: partitions that become ready before the receive is started are unexpected messages like any other, and those of one
//! start cannot be taken for those of the next, since messages with the same match bits match in order.

mod incoming;
mod outgoing;

pub use incoming::Incoming;
pub use outgoing::Outgoing;

use crate::activity::{Activity, current_owner};
use crate::comm::{Communicator, FIRST_PARTITIONED_TAG, FIRST_USER_TAG_ON_COLLECTIVE_PLANE, Plane};
use crate::constants::{MPI_ERR_ARG, MPI_PROC_NULL};
use crate::datatype::Datatype;
use crate::error::{Error, Result};
use crate::process::{Process, UserBytes};
use crate::pt2pt::described::Held;
use crate::pt2pt::transfer::{Criteria, match_bits, receiving, sending};
use crate::request::{Operation, Request, Specification, Status};
use parnass_base::{Scratch, UserAddress};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The tag of offers, on the collective plane; those of partitions follow.
const OFFER_TAG: u32 = FIRST_PARTITIONED_TAG;
/// How many tags there are for partitions.
const PARTITION_TAGS: u32 = FIRST_USER_TAG_ON_COLLECTIVE_PLANE - OFFER_TAG - 1;
/// As many partitions as an operation may have: a part of the tags, so that those of live operations differ.
const MOST_PARTITIONS: u32 = 1 << 24;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a send tells the receiver when it is initialised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offer {
    /// The program's tag.
    tag: u32,
    /// Where the tags of the messages begin.
    first: u32,
    /// One for each partition of the sender.
    messages: u32,
    /// In all of them together.
    bytes: u64,
}

impl Offer {
    const BYTES: usize = 20;

    fn encode(&self) -> [u8; Offer::BYTES] {
        let mut bytes = [0; Offer::BYTES];
        bytes[0..4].copy_from_slice(&self.tag.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.first.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.messages.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.bytes.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; Offer::BYTES]) -> Offer {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Offer {
            tag: word(0),
            first: word(4),
            messages: word(8),
            bytes: u64::from(word(12)) | u64::from(word(16)) << 32,
        }
    }

    /// The match bits of a message.
    fn match_bits(&self, communicator: &Communicator, message: u32) -> u64 {
        let tag = OFFER_TAG + 1 + (self.first + message) % PARTITION_TAGS;
        match_bits(communicator, Plane::Collective, tag)
    }

    /// The messages with the data of partition `partition` of `partitions` at the receiver.
    fn messages_of(&self, partition: u32, partitions: u32) -> Range<usize> {
        let (messages, partitions) = (u64::from(self.messages), u64::from(partitions));
        let first = u64::from(partition) * messages / partitions;
        let end = ((u64::from(partition) + 1) * messages).div_ceil(partitions);
        first as usize..end as usize
    }
}

/// What a communicator knows of its partitioned operations.
#[derive(Debug, Default)]
pub(crate) struct Partitioned {
    next_tag: AtomicU32,
    /// By the rank that sends.
    lines: Mutex<BTreeMap<i32, Line>>,
}

/// What is between this process and one that sends to it.
#[derive(Debug, Default)]
struct Line {
    /// Offers without a receive, and receives without an offer, in order; never both of one tag.
    offers: Vec<Offer>,
    receives: Vec<Wanting>,
    /// A [`Listener`] is there.
    listening: bool,
}

/// A receive without an offer. One that was freed has its place still: the next offer of its tag is for it, and for nobody else.
#[derive(Debug)]
struct Wanting {
    tag: u32,
    receive: Option<Arc<Incoming>>,
}

impl Line {
    /// Takes an offer in; the receive that it is for, if there is one.
    fn offered(&mut self, offer: Offer) -> Option<Arc<Incoming>> {
        let Some(place) = self.receives.iter().position(|wanting| wanting.tag == offer.tag) else {
            self.offers.push(offer);
            return None;
        };
        self.receives.remove(place).receive
    }

    /// The offer for a receive that is initialised; without one it is noted.
    fn wanted(&mut self, receive: &Arc<Incoming>) -> Option<Offer> {
        let place = self.offers.iter().position(|offer| offer.tag == receive.tag());
        if place.is_none() {
            self.receives.push(Wanting { tag: receive.tag(), receive: Some(Arc::clone(receive)) });
        }
        place.map(|place| self.offers.remove(place))
    }

    /// A receive was freed. Whether it waited for an offer.
    fn freed(&mut self, receive: &Incoming) -> bool {
        let is_it = |wanting: &&mut Wanting| {
            wanting.receive.as_ref().is_some_and(|waiting| std::ptr::eq(&**waiting, receive))
        };
        self.receives.iter_mut().find(is_it).is_some_and(|wanting| wanting.receive.take().is_some())
    }

    /// Whether a receive waits that was not freed.
    fn is_awaited(&self) -> bool {
        self.receives.iter().any(|wanting| wanting.receive.is_some())
    }
}

/// Receives the offers of one process, as long as receives wait for them.
struct Listener {
    communicator: Arc<Communicator>,
    source: i32,
    arriving: Option<(Operation, Scratch)>,
}

impl Listener {
    fn listen(&mut self, process: &Process) -> Result<()> {
        let memory = Scratch::new(Offer::BYTES);
        let criteria = Criteria {
            source: Some(self.communicator.peer(self.source)),
            match_bits: match_bits(&self.communicator, Plane::Collective, OFFER_TAG),
            ignore_bits: 0,
        };
        let bytes = UserBytes { address: memory.address(), length: Offer::BYTES as u64 };
        let posted = process.post(&criteria, bytes.into(), current_owner())?;
        self.arriving = Some((receiving(posted, &criteria, bytes.length, None), memory));
        Ok(())
    }

    /// Finds the receive for an offer; whether more are waited for.
    fn take_in(&self, process: &Process, memory: &Scratch) -> bool {
        let mut bytes = [0; Offer::BYTES];
        memory.address().read(&mut bytes);
        let offer = Offer::decode(&bytes);
        let (receive, go_on) = {
            let mut lines = lock(&self.communicator.partitioned().lines);
            let line = lines.entry(self.source).or_default();
            let receive = line.offered(offer);
            line.listening = line.is_awaited();
            (receive, line.listening)
        };
        if let Some(receive) = receive {
            receive.accept(process, Ok(offer));
        }
        go_on
    }

    /// Takes the receive of offers back when nobody waits for one any more, so that the communicator can go; whether it did. An offer
    /// that is on its way in is taken in first.
    fn give_up(&mut self, process: &Process) -> bool {
        let Listener { communicator, source, arriving } = self;
        let mut lines = lock(&communicator.partitioned().lines);
        let line = lines.entry(*source).or_default();
        if !line.is_awaited() {
            if let Some((operation, _)) = arriving {
                operation.cancel(process);
            }
            if arriving.as_ref().is_none_or(|(operation, _)| operation.slot().is_none()) {
                *arriving = None;
                line.listening = false;
            }
        }
        !line.listening
    }

    /// No more offers will come.
    fn fail(&self, process: &Process, error: &Error) {
        let receives = {
            let mut lines = lock(&self.communicator.partitioned().lines);
            let line = lines.entry(self.source).or_default();
            line.listening = false;
            std::mem::take(&mut line.receives)
        };
        for receive in receives.into_iter().filter_map(|wanting| wanting.receive) {
            receive.accept(process, Err(error.clone()));
        }
    }
}

impl Activity for Listener {
    fn advance(&mut self, process: &Process) -> Option<Result<Status>> {
        loop {
            let heard = match &mut self.arriving {
                None => Ok(None),
                Some((operation, _)) => {
                    let Some(outcome) = operation.poll(process) else {
                        return self.give_up(process).then_some(Ok(Status::EMPTY));
                    };
                    let memory = self.arriving.take().map(|(_, memory)| memory);
                    outcome.map(|_| memory)
                }
            };
            let go_on = heard.and_then(|memory| match memory {
                Some(memory) if !self.take_in(process, &memory) => Ok(false),
                _ => self.listen(process).map(|()| true),
            });
            match go_on {
                Ok(true) => {}
                Ok(false) => return Some(Ok(Status::EMPTY)),
                Err(error) => {
                    self.fail(process, &error);
                    return Some(Ok(Status::EMPTY));
                }
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some((_, memory)) = self.arriving.take() {
            // The NIC may still write there.
            std::mem::forget(memory);
        }
    }
}

/// A buffer in partitions of `count` elements each, and who is at the other end.
#[derive(Clone, Debug)]
pub struct Partitions {
    pub address: UserAddress,
    pub partitions: i32,
    pub count: u64,
    pub datatype: Arc<Datatype>,
    pub peer: i32,
    pub tag: i32,
}

impl Partitions {
    fn number(&self) -> u32 {
        self.partitions as u32
    }

    /// Bytes of data in all of them.
    fn bytes(&self) -> u64 {
        u64::from(self.number()).saturating_mul(self.count).saturating_mul(self.datatype.layout().size())
    }

    fn has_peer(&self) -> bool {
        self.peer != MPI_PROC_NULL
    }

    /// An error unless there may be as many.
    fn check(&self) -> Result<()> {
        if (0..=MOST_PARTITIONS as i32).contains(&self.partitions) {
            return Ok(());
        }
        Err(Error::new(
            MPI_ERR_ARG,
            format!("partitions is {}; it must be 0 to {MOST_PARTITIONS}", self.partitions),
        ))
    }

    /// An error unless there is a partition of that number.
    fn check_partition(&self, partition: i32) -> Result<u32> {
        if (0..self.partitions).contains(&partition) {
            return Ok(partition as u32);
        }
        Err(Error::new(
            MPI_ERR_ARG,
            match self.partitions {
                0 => format!("partition is {partition}, but the operation has no partitions"),
                most => {
                    format!("partition is {partition}; the partitions of the operation are 0 to {}", most - 1)
                }
            },
        ))
    }
}

impl Process {
    /// MPI_Psend_init: an inactive request.
    pub fn partitioned_send(
        &self,
        communicator: &Arc<Communicator>,
        partitions: Partitions,
    ) -> Result<Arc<Request>> {
        partitions.check()?;
        let first = communicator.partitioned().next_tag.fetch_add(partitions.number(), Ordering::Relaxed);
        let offer = Offer {
            tag: partitions.tag as u32,
            first: first % PARTITION_TAGS,
            messages: partitions.number(),
            bytes: partitions.bytes(),
        };
        if partitions.has_peer() {
            let staging = self.staging.take(Offer::BYTES as u64);
            staging.address().write(&offer.encode());
            let bytes = UserBytes { address: staging.address(), length: Offer::BYTES as u64 };
            let peer = communicator.peer(partitions.peer);
            let bits = match_bits(communicator, Plane::Collective, OFFER_TAG);
            let started = self.put(peer, bits, bytes.into(), false, None)?;
            let operation = sending(started, peer, bits, Some(Held::Staging(staging)));
            if !operation.is_complete(self) {
                self.adopt(Request::transfer(communicator, operation));
            }
        }
        let outgoing = Outgoing::new(partitions, offer);
        Ok(Request::persistent(communicator, Specification::PartitionedSend(outgoing)))
    }

    /// MPI_Precv_init: an inactive request.
    pub fn partitioned_receive(
        &self,
        communicator: &Arc<Communicator>,
        partitions: Partitions,
    ) -> Result<Arc<Request>> {
        partitions.check()?;
        let source = partitions.peer;
        let incoming = Arc::new(Incoming::new(communicator, partitions));
        if source != MPI_PROC_NULL {
            let (offer, listen) = {
                let mut lines = lock(&communicator.partitioned().lines);
                let line = lines.entry(source).or_default();
                let offer = line.wanted(&incoming);
                let listen = offer.is_none() && !std::mem::replace(&mut line.listening, true);
                (offer, listen)
            };
            if let Some(offer) = offer {
                incoming.accept(self, Ok(offer));
            }
            if listen {
                let communicator = Arc::clone(communicator);
                self.start_errand(Box::new(Listener { communicator, source, arriving: None }));
            }
        }
        Ok(Request::persistent(communicator, Specification::PartitionedReceive(incoming)))
    }

    /// An inactive partitioned receive is freed.
    pub(crate) fn free_partitioned_receive(&self, incoming: &Incoming) {
        let unheard = lock(&incoming.communicator().partitioned().lines)
            .get_mut(&incoming.peer())
            .is_some_and(|line| line.freed(incoming) && !line.is_awaited());
        if unheard {
            // Among them the listener, for which nothing more may come.
            self.activities.mark_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_survive_the_wire() {
        let offer = Offer { tag: 7, first: 0x0102_0304, messages: 99, bytes: 0x1122_3344_5566_7788 };
        assert_eq!(Offer::decode(&offer.encode()), offer);
    }

    #[test]
    fn the_messages_of_a_partition_cover_it_and_no_more() {
        for messages in 1..20u32 {
            for partitions in 1..20u32 {
                let offer = Offer { tag: 0, first: 0, messages, bytes: 0 };
                for partition in 0..partitions {
                    // In units of 1 / (messages * partitions) of the data.
                    let (low, high) = (partition * messages, (partition + 1) * messages);
                    let expected: Vec<u32> = (0..messages)
                        .filter(|message| message * partitions < high && (message + 1) * partitions > low)
                        .collect();
                    let found = offer.messages_of(partition, partitions);
                    assert_eq!(found.map(|message| message as u32).collect::<Vec<_>>(), expected);
                }
            }
        }
        assert!(Offer { tag: 0, first: 0, messages: 0, bytes: 0 }.messages_of(2, 3).is_empty());
    }
}
