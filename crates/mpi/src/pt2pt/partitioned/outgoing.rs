//! The sending side: any thread says that a partition is ready.

use super::{Offer, Partitions, lock};
use crate::comm::Communicator;
use crate::constants::MPI_ERR_REQUEST;
use crate::datatype::Buffer;
use crate::error::{Error, Result};
use crate::process::Process;
use crate::pt2pt::described::Held;
use crate::pt2pt::transfer::sending;
use crate::request::{Operation, Status};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

#[derive(Debug)]
enum Part {
    Awaited,
    Sending(Operation),
    Sent,
}

/// A partitioned send.
#[derive(Debug)]
pub struct Outgoing {
    partitions: Partitions,
    offer: Offer,
    active: AtomicBool,
    parts: Box<[Mutex<Part>]>,
    /// How many are not ready yet.
    awaited: AtomicU32,
    /// How far the completion has been followed, and what went wrong.
    followed: Mutex<(usize, Option<Error>)>,
}

impl Outgoing {
    pub(super) fn new(partitions: Partitions, offer: Offer) -> Outgoing {
        Outgoing {
            parts: (0..partitions.number()).map(|_| Mutex::new(Part::Sent)).collect(),
            partitions,
            offer,
            active: AtomicBool::new(false),
            awaited: AtomicU32::new(0),
            followed: Mutex::new((0, None)),
        }
    }

    pub(crate) fn peer(&self) -> i32 {
        self.partitions.peer
    }

    /// MPI_Start, while it is inactive.
    pub(crate) fn start(&self) {
        for part in &self.parts {
            *lock(part) = Part::Awaited;
        }
        *lock(&self.followed) = (0, None);
        self.awaited.store(self.partitions.number(), Ordering::Relaxed);
        // Pairs with the load in `ready`.
        self.active.store(true, Ordering::Release);
    }

    /// An error unless there is such a partition.
    pub(crate) fn check_partition(&self, partition: i32) -> Result<()> {
        self.partitions.check_partition(partition).map(|_| ())
    }

    /// MPI_Pready.
    pub(crate) fn ready(&self, process: &Process, communicator: &Communicator, partition: i32) -> Result<()> {
        let partition = self.partitions.check_partition(partition)?;
        // Pairs with the store in `start`.
        if !self.active.load(Ordering::Acquire) {
            return Err(Error::new(
                MPI_ERR_REQUEST,
                "the partitioned send is inactive; start it with MPI_Start before its partitions are ready",
            ));
        }
        let mut part = lock(&self.parts[partition as usize]);
        if !matches!(*part, Part::Awaited) {
            return Err(Error::new(
                MPI_ERR_REQUEST,
                format!(
                    "partition {partition} was said to be ready before; each is ready once after every MPI_Start"
                ),
            ));
        }
        *part = Part::Sent;
        let sent =
            if self.partitions.has_peer() { self.send(process, communicator, partition) } else { Ok(None) };
        let result = sent.map(|operation| {
            if let Some(operation) = operation {
                *part = Part::Sending(operation);
            }
        });
        drop(part);
        // Pairs with the load in `result`: whoever sees 0 sees all operations.
        if self.awaited.fetch_sub(1, Ordering::AcqRel) == 1 {
            process.wake_waiters(0);
        }
        result
    }

    /// Sends a partition; what is still under way.
    fn send(
        &self,
        process: &Process,
        communicator: &Communicator,
        partition: u32,
    ) -> Result<Option<Operation>> {
        let Partitions { address, count, datatype, .. } = &self.partitions;
        let step = (*count as i64).wrapping_mul(datatype.layout().extent());
        let start = address.offset(step.wrapping_mul(i64::from(partition)));
        let (data, description) = process.described.data(&Buffer::new(start, *count, datatype));
        let peer = communicator.peer(self.partitions.peer);
        let bits = self.offer.match_bits(communicator, partition);
        let started = process.put(peer, bits, data, false, None)?;
        let operation = sending(started, peer, bits, description.map(Held::Description));
        Ok((!operation.is_complete(process)).then_some(operation))
    }

    /// How it went, when all partitions were ready and are sent; then it is inactive.
    pub(crate) fn result(&self, process: &Process) -> Option<Result<Status>> {
        // Pairs with the subtraction in `ready`.
        if self.awaited.load(Ordering::Acquire) > 0 {
            return None;
        }
        let mut followed = lock(&self.followed);
        let (next, error) = &mut *followed;
        while let Some(part) = self.parts.get(*next) {
            let mut part = lock(part);
            if let Part::Sending(operation) = &mut *part {
                if let Err(failure) = operation.poll(process)? {
                    error.get_or_insert(failure);
                }
                *part = Part::Sent;
            }
            *next += 1;
        }
        self.active.store(false, Ordering::Relaxed);
        Some(error.take().map_or(Ok(Status::EMPTY), Err))
    }
}
