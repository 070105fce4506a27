//! Blocking sends and receives. The short way: no request, no allocation.

use crate::comm::{Communicator, Plane};
use crate::constants::MPI_PROC_NULL;
use crate::datatype::Buffer;
use crate::error::Result;
use crate::process::{Process, UserBytes};
use crate::pt2pt::transfer::{Criteria, Posted, Started, contiguous, match_bits, received};
use crate::pt2pt::{Envelope, SendMode};
use crate::request::operation::{Operation, Outcome, lost};
use crate::request::slots::{Completion, SlotName};
use crate::request::{Status, status_of};
use parnass_portals::ProcessId;

impl Process {
    /// Waits for the events of a slot and gives it back.
    #[inline]
    fn wait_slot(&self, name: SlotName, awaited: Option<ProcessId>) -> Completion {
        self.wait_until(awaited, || self.slots.is_complete(name).then_some(()));
        let completion = self.slots.completion(name);
        self.slots.release(name);
        completion
    }

    /// Waits for an operation.
    pub fn wait_operation(&self, operation: &mut Operation) -> Result<Outcome> {
        self.wait_until(operation.awaited(), || operation.poll(self))
    }

    /// MPI_Send, MPI_Bsend, MPI_Ssend, MPI_Rsend. `target` is a rank of `communicator` or MPI_PROC_NULL.
    #[inline]
    pub fn send(
        &self,
        communicator: &Communicator,
        buffer: Buffer<'_>,
        target: i32,
        tag: i32,
        mode: SendMode,
    ) -> Result<()> {
        if target == MPI_PROC_NULL {
            return Ok(());
        }
        if mode == SendMode::Buffered {
            return self.start_buffered_send(communicator, Plane::PointToPoint, target, tag as u32, buffer);
        }
        let (bytes, _staging) = self.packed(&buffer);
        let peer = communicator.peer(target);
        let match_bits = match_bits(communicator, Plane::PointToPoint, tag as u32);
        match self.put(peer, match_bits, bytes, mode == SendMode::Synchronous, None)? {
            Started::Done => Ok(()),
            Started::InFlight(name) => {
                if self.wait_slot(name, Some(peer)).failed {
                    return Err(lost(Some(peer), "sent to"));
                }
                Ok(())
            }
        }
    }

    /// MPI_Recv. `source` may be MPI_ANY_SOURCE or MPI_PROC_NULL, `tag` MPI_ANY_TAG.
    #[inline]
    pub fn receive(
        &self,
        communicator: &Communicator,
        buffer: Buffer<'_>,
        source: i32,
        tag: i32,
    ) -> Result<Status> {
        if source == MPI_PROC_NULL {
            return Ok(Status::NO_PROCESS);
        }
        let criteria = Criteria::new(communicator, Plane::PointToPoint, source, tag);
        if let Some(bytes) = contiguous(&buffer) {
            let completion = self.receive_bytes(&criteria, bytes)?;
            return Ok(status_of(&received(&completion, bytes.length)?, communicator));
        }
        let layout = buffer.datatype.layout();
        let length = buffer.size();
        let staging = self.staging.take(length);
        let completion = self.receive_bytes(&criteria, UserBytes { address: staging.address(), length })?;
        layout.unpack(buffer.count, buffer.address, 0, staging.address(), completion.placed_length);
        Ok(status_of(&received(&completion, length)?, communicator))
    }

    #[inline]
    fn receive_bytes(&self, criteria: &Criteria, bytes: UserBytes) -> Result<Completion> {
        Ok(match self.post(criteria, bytes, None)? {
            Posted::Done(completion) => completion,
            Posted::InFlight(name, _) => self.wait_slot(name, criteria.source),
        })
    }

    /// MPI_Sendrecv. The status is that of the receive.
    pub fn send_receive(
        &self,
        communicator: &Communicator,
        send: Buffer<'_>,
        to: Envelope,
        receive: Buffer<'_>,
        from: Envelope,
    ) -> Result<Status> {
        let plane = Plane::PointToPoint;
        let mut receiving = self.start_recv(communicator, plane, from.rank, from.tag, receive)?;
        let sent = self.send(communicator, send, to.rank, to.tag, SendMode::Standard);
        let received = self.wait_operation(&mut receiving);
        sent?;
        Ok(status_of(&received?, communicator))
    }

    /// MPI_Sendrecv_replace: what is received replaces what is sent.
    pub fn send_receive_replace(
        &self,
        communicator: &Communicator,
        buffer: Buffer<'_>,
        to: Envelope,
        from: Envelope,
    ) -> Result<Status> {
        let (mut sending, mut receiving) = self.start_exchange_replace(communicator, buffer, to, from)?;
        let received = self.wait_operation(&mut receiving);
        self.wait_operation(&mut sending)?;
        Ok(status_of(&received?, communicator))
    }
}
