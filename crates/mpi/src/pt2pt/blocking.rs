//! Blocking sends and receives. The short way: no request, no allocation.

use crate::comm::{Communicator, Plane};
use crate::constants::{MPI_PROC_NULL, MPI_SUCCESS};
use crate::datatype::Buffer;
use crate::error::Result;
use crate::process::{Process, portal_error};
use crate::pt2pt::described::Data;
use crate::pt2pt::transfer::{Criteria, match_bits, received};
use crate::pt2pt::{Envelope, SendMode};
use crate::request::operation::{Operation, Outcome, lost};
use crate::request::slots::{Completion, SlotName};
use crate::request::{Status, status_of};
use parnass_counters::watch;
use parnass_portals::{Ack, Appended, EntryHandle, Follow, List, ProcessId, Protocol, Put, PutOutcome};

impl Process {
    /// Waits for the events of a borrowed slot and gives it back.
    #[inline]
    fn wait_slot(
        &self,
        name: SlotName,
        awaited: Option<ProcessId>,
        match_bits: u64,
        entry: Option<EntryHandle>,
    ) -> Completion {
        self.wait_for(Some(name), awaited, || {
            let complete = self.slots.is_complete(name)
                || self.faults.is_active() && self.interrupt(name, entry, awaited, match_bits, true);
            complete.then_some(())
        });
        let completion = self.slots.completion(name);
        self.slots.give_back(name);
        completion
    }

    /// Waits for an operation.
    pub fn wait_operation(&self, operation: &mut Operation) -> Result<Outcome> {
        self.wait_for(operation.slot(), operation.awaited(), || operation.poll_at_last(self))
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
            return communicator.check_open();
        }
        if mode == SendMode::Buffered {
            return self.start_buffered_send(communicator, Plane::PointToPoint, target, tag as u32, buffer);
        }
        let (data, _description) = self.described.data(&buffer);
        let match_bits = match_bits(communicator, Plane::PointToPoint, tag as u32);
        self.send_bytes(communicator.peer(target), match_bits, data, mode == SendMode::Synchronous)
    }

    /// Sends, and returns when the data may be written again.
    #[inline]
    pub(crate) fn send_bytes(
        &self,
        target: ProcessId,
        match_bits: u64,
        data: Data,
        synchronous: bool,
    ) -> Result<()> {
        if !synchronous && self.put_short(target, match_bits, data, Follow::Nothing) {
            return Ok(());
        }
        self.send_bytes_longer(target, match_bits, data, synchronous)
    }

    /// As [`Process::send_bytes`], for what does not go through the mailbox at once.
    fn send_bytes_longer(
        &self,
        target: ProcessId,
        match_bits: u64,
        data: Data,
        synchronous: bool,
    ) -> Result<()> {
        self.check_send(target, match_bits)?;
        let name = self.slots.borrow(1 + u32::from(synchronous));
        let put = Put {
            target,
            match_bits,
            header_data: name.user(),
            source: data.memory,
            length: data.length as usize,
            protocol: self.protocol_to(target, data, true),
            blocking: true,
            ack: if synchronous { Ack::Matched } else { Ack::None },
            user: name.user(),
        };
        let waits = put.protocol == Protocol::Direct;
        if waits {
            self.nic().will_wait(Some(target));
        }
        let sent = match self.nic().put(&put) {
            Ok(PutOutcome::Done) if !synchronous => {
                self.slots.untouched(name);
                Ok(())
            }
            Ok(outcome) => return self.wait_sent(name, target, match_bits, outcome),
            Err(error) => {
                self.slots.untouched(name);
                Err(portal_error(error))
            }
        };
        if waits {
            self.nic().leave();
        }
        sent
    }

    fn wait_sent(
        &self,
        name: SlotName,
        target: ProcessId,
        match_bits: u64,
        outcome: PutOutcome,
    ) -> Result<()> {
        if outcome == PutOutcome::Done {
            self.slots.done_at_once(name);
        }
        if self.wait_slot(name, Some(target), match_bits, None).failed {
            return Err(self
                .reason_of_loss(Some(target), match_bits, target)
                .unwrap_or_else(|| lost(Some(target), "sent to")));
        }
        Ok(())
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
            return communicator.check_open().map(|()| Status::NO_PROCESS);
        }
        let criteria = Criteria::new(communicator, Plane::PointToPoint, source, tag);
        let (data, _description) = self.described.data(&buffer);
        self.receive_data(&criteria, data, |completion| {
            // The usual case first: all is well, and the rank is known.
            if completion.requested_length == completion.placed_length && !completion.failed {
                return Ok(Status {
                    source: if source >= 0 { source } else { communicator.rank_of(completion.initiator) },
                    tag: completion.match_bits as u32 as i32,
                    error: MPI_SUCCESS,
                    bytes: completion.placed_length,
                    cancelled: false,
                });
            }
            Ok(status_of(&received(completion, data.length)?, communicator))
        })
    }

    /// Receives, and tells what `tell` makes of it.
    #[inline]
    pub(crate) fn receive_data<T>(
        &self,
        criteria: &Criteria,
        data: Data,
        tell: impl Fn(&Completion) -> Result<T>,
    ) -> Result<T> {
        self.receive_soon(criteria, data, &tell, || self.receive_data_later(criteria, data, &tell))
    }

    /// Receives a message that is there or comes soon, without an entry for it, if this process has nothing else to do meanwhile; the result is what `tell`
    /// makes of it, or `later`.
    #[inline(always)]
    pub(crate) fn receive_soon<T>(
        &self,
        criteria: &Criteria,
        data: Data,
        tell: impl FnOnce(&Completion) -> T,
        later: impl FnOnce() -> T,
    ) -> T {
        if self.slots.is_concurrent() || !self.activities.is_empty() {
            return later();
        }
        self.receive_now(criteria, data, tell, later)
    }

    #[inline(always)]
    fn receive_now<T>(
        &self,
        criteria: &Criteria,
        data: Data,
        tell: impl FnOnce(&Completion) -> T,
        later: impl FnOnce() -> T,
    ) -> T {
        let entry = criteria.entry(data.memory, data.length, SlotName::NONE.user());
        let tell = |received: &Completion| {
            if self.counters().watch() & watch::EVENTS != 0 {
                self.observer().tell();
            }
            tell(received)
        };
        self.nic().receive_soon(&entry, tell, later)
    }

    /// As [`Process::receive_data`], for a message that does not come soon, or where other threads may call.
    #[inline(never)]
    fn receive_data_later<T>(
        &self,
        criteria: &Criteria,
        data: Data,
        tell: impl Fn(&Completion) -> Result<T>,
    ) -> Result<T> {
        let posts = || self.receive_posted(criteria, data, &tell);
        if !self.slots.is_concurrent() || !self.activities.is_empty() || !self.receives_alone() {
            return posts();
        }
        let tell_all = |received: &Completion| {
            self.tell_others();
            tell(received)
        };
        self.receive_now(criteria, data, tell_all, posts)
    }

    /// Receives by an entry that is posted.
    fn receive_posted<T>(
        &self,
        criteria: &Criteria,
        data: Data,
        tell: impl Fn(&Completion) -> Result<T>,
    ) -> Result<T> {
        let name = self.slots.borrow(1);
        let entry = criteria.entry(data.memory, data.length, name.user());
        self.nic().will_wait(criteria.source);
        let received = match self.nic().append(List::Priority, &entry) {
            Ok(Appended::Complete(event)) => {
                self.slots.untouched(name);
                tell(&Completion::from(&event))
            }
            Ok(Appended::Posted(entry)) => {
                let completion = self.wait_slot(name, criteria.source, criteria.match_bits, Some(entry));
                if completion.failed
                    && let Some(error) =
                        self.reason_of_loss(criteria.source, criteria.match_bits, completion.initiator)
                {
                    return Err(error);
                }
                return tell(&completion);
            }
            Err(error) => {
                self.slots.untouched(name);
                Err(portal_error(error))
            }
        };
        self.nic().leave();
        received
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
        if self.sends_first(communicator, &send, to, from)? {
            return self.receive(communicator, receive, from.rank, from.tag);
        }
        let plane = Plane::PointToPoint;
        let mut receiving = self.start_recv(communicator, plane, from.rank, from.tag, receive)?;
        let sent = self.send(communicator, send, to.rank, to.tag, SendMode::Standard);
        let received = self.wait_operation(&mut receiving);
        sent?;
        Ok(status_of(&received?, communicator))
    }

    /// Sends one half of an exchange, if all of it is copied at once, or if nothing comes back: then there is only the receive.
    #[inline]
    fn sends_first(
        &self,
        communicator: &Communicator,
        send: &Buffer<'_>,
        to: Envelope,
        from: Envelope,
    ) -> Result<bool> {
        if to.rank == MPI_PROC_NULL {
            return Ok(true);
        }
        let length = send.size();
        if let Some(address) = send.contiguous() {
            let peer = communicator.peer(to.rank);
            let match_bits = match_bits(communicator, Plane::PointToPoint, to.tag as u32);
            let data = Data { memory: address.into(), length };
            if self.changeable.fits_mailbox(length) && self.put_short(peer, match_bits, data, Follow::Nothing)
                || from.rank != MPI_PROC_NULL && self.put_exchanged(peer, match_bits, data)
            {
                return Ok(true);
            }
        }
        if from.rank != MPI_PROC_NULL {
            return Ok(false);
        }
        self.send(communicator, *send, to.rank, to.tag, SendMode::Standard).map(|()| true)
    }

    /// MPI_Sendrecv_replace: what is received replaces what is sent.
    pub fn send_receive_replace(
        &self,
        communicator: &Communicator,
        buffer: Buffer<'_>,
        to: Envelope,
        from: Envelope,
    ) -> Result<Status> {
        if self.sends_first(communicator, &buffer, to, from)? {
            return self.receive(communicator, buffer, from.rank, from.tag);
        }
        let (mut sending, mut receiving) = self.start_exchange_replace(communicator, buffer, to, from)?;
        let received = self.wait_operation(&mut receiving);
        self.wait_operation(&mut sending)?;
        Ok(status_of(&received?, communicator))
    }
}
