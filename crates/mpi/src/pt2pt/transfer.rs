//! From buffers, ranks and tags to puts and match entries: the one place where a message is handed to the NIC.

use crate::activity::{current_owner, note_immediate};
use crate::comm::{Communicator, Plane};
use crate::constants::{MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_PROC_NULL};
use crate::datatype::Buffer;
use crate::error::Result;
use crate::process::{Process, UserBytes, portal_error};
use crate::pt2pt::SendMode;
use crate::pt2pt::described::{Data, Description, Held};
use crate::request::operation::{Direction, Operation, Outcome, State, outcome};
use crate::request::slots::{Completion, SlotName};
use parnass_portals::{
    Ack, Appended, EntryHandle, Follow, List, MatchEntry, Memory, ProcessId, Protocol, Put, PutOutcome,
};

/// The low half of the match bits: the tag.
const TAG_BITS: u64 = 0xffff_ffff;

/// The 64 bits that a message and a receive must share.
#[inline]
pub(crate) fn match_bits(communicator: &Communicator, plane: Plane, tag: u32) -> u64 {
    u64::from(communicator.context(plane)) << 32 | u64::from(tag)
}

/// What a receive or a probe asks for, in the NIC's words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Criteria {
    pub(crate) source: Option<ProcessId>,
    pub(crate) match_bits: u64,
    pub(crate) ignore_bits: u64,
}

impl Criteria {
    /// `source` may be MPI_ANY_SOURCE, `tag` may be MPI_ANY_TAG.
    #[inline(always)]
    pub(crate) fn new(communicator: &Communicator, plane: Plane, source: i32, tag: i32) -> Criteria {
        let (tag, ignore_bits) = if tag == MPI_ANY_TAG { (0, TAG_BITS) } else { (tag as u32, 0) };
        Criteria {
            source: (source != MPI_ANY_SOURCE).then(|| communicator.peer(source)),
            match_bits: match_bits(communicator, plane, tag),
            ignore_bits,
        }
    }

    #[inline]
    pub(crate) fn entry(&self, memory: Memory, length: u64, user: u64) -> MatchEntry {
        MatchEntry {
            source: self.source,
            match_bits: self.match_bits,
            ignore_bits: self.ignore_bits,
            memory,
            length: length as usize,
            user,
        }
    }
}

/// What has become of a put.
#[derive(Debug)]
pub(crate) enum Started {
    Done,
    InFlight(SlotName),
}

/// What has become of a match entry.
#[derive(Debug)]
pub(crate) enum Posted {
    Done(Completion),
    InFlight(SlotName, EntryHandle),
}

impl Process {
    /// Sends bytes that go through the mailbox of the target at once. `false`: they do not, and nothing was done.
    #[inline(always)]
    pub(crate) fn put_short(&self, target: ProcessId, match_bits: u64, data: Data, follow: Follow) -> bool {
        self.changeable.fits_mailbox(data.length)
            && self.nic().put_short(
                target,
                match_bits,
                SlotName::NONE.user(),
                data.memory,
                data.length as usize,
                follow,
            )
    }

    /// How a message travels that does not go at once.
    pub(crate) fn protocol_to(&self, target: ProcessId, data: Data, blocking: bool) -> Protocol {
        let (memory, length) = (data.memory, data.length as usize);
        let protocol = self.changeable.protocol(data.length);
        if protocol == Protocol::Buffered && self.nic().prefers_one_copy(target, memory, length, blocking) {
            Protocol::Direct
        } else if self.changeable.may_copy(data.length)
            && self.nic().exchanges(target, memory, length, protocol, !blocking)
        {
            Protocol::Exchanged
        } else {
            protocol
        }
    }

    /// Sends bytes to one that sends some meanwhile, if all are copied at once. `false`: they are not, and nothing was done.
    #[cold]
    #[inline(never)]
    pub(crate) fn put_exchanged(&self, target: ProcessId, match_bits: u64, data: Data) -> bool {
        let user = SlotName::NONE.user();
        !self.changeable.fits_mailbox(data.length)
            && self.protocol_to(target, data, false) == Protocol::Exchanged
            && self.nic().put_exchanged(&Put {
                target,
                match_bits,
                header_data: user,
                source: data.memory,
                length: data.length as usize,
                protocol: Protocol::Exchanged,
                blocking: true,
                ack: Ack::None,
                user,
            })
    }

    /// Hands bytes to the NIC. `owner`: the activity that waits for it.
    #[inline]
    pub(crate) fn put(
        &self,
        target: ProcessId,
        match_bits: u64,
        data: Data,
        synchronous: bool,
        owner: Option<u32>,
    ) -> Result<Started> {
        self.check_send(target, match_bits)?;
        let follow = if owner.is_none() { Follow::More } else { Follow::Nothing };
        if !synchronous && self.put_short(target, match_bits, data, follow) {
            if owner.is_some() {
                note_immediate();
            }
            return Ok(Started::Done);
        }
        let name = self.slots.take(1 + u32::from(synchronous), owner);
        let put = Put {
            target,
            match_bits,
            // Names the message, so that it can be found again when its sender cancels it.
            header_data: name.user(),
            source: data.memory,
            length: data.length as usize,
            protocol: self.protocol_to(target, data, false),
            blocking: false,
            ack: if synchronous { Ack::Matched } else { Ack::None },
            user: name.user(),
        };
        match self.nic().put(&put) {
            Ok(PutOutcome::Done) if !synchronous => {
                self.slots.release(name);
                if owner.is_some() {
                    note_immediate();
                }
                Ok(Started::Done)
            }
            Ok(PutOutcome::Done) => {
                self.slots.done_at_once(name);
                if owner.is_some() && self.slots.is_complete(name) {
                    note_immediate();
                }
                Ok(Started::InFlight(name))
            }
            Ok(PutOutcome::Pending) => Ok(Started::InFlight(name)),
            Err(error) => {
                self.slots.release(name);
                Err(portal_error(error))
            }
        }
    }

    /// As [`Process::post`], for a message that is all that is waited for, mostly: it may be kept back.
    pub(crate) fn post_soon(&self, criteria: &Criteria, data: Data, owner: Option<u32>) -> Result<Posted> {
        if owner.is_none() {
            let name = self.slots.take(1, None);
            if self.nic().park(&criteria.entry(data.memory, data.length, name.user())) {
                return Ok(Posted::InFlight(name, EntryHandle::BY_USER));
            }
            self.slots.release(name);
        }
        self.post(criteria, data, owner)
    }

    /// Posts memory for a message.
    #[inline]
    pub(crate) fn post(&self, criteria: &Criteria, data: Data, owner: Option<u32>) -> Result<Posted> {
        let name = self.slots.take(1, owner);
        let entry = criteria.entry(data.memory, data.length, name.user());
        match self.nic().append(List::Priority, &entry) {
            Ok(Appended::Complete(event)) => {
                self.slots.release(name);
                if owner.is_some() {
                    note_immediate();
                }
                Ok(Posted::Done(Completion::from(&event)))
            }
            Ok(Appended::Posted(handle)) => Ok(Posted::InFlight(name, handle)),
            Err(error) => {
                self.slots.release(name);
                Err(portal_error(error))
            }
        }
    }

    /// Starts to send bytes to a rank of `communicator`, on either plane.
    pub fn start_send_bytes(
        &self,
        communicator: &Communicator,
        plane: Plane,
        target: i32,
        tag: u32,
        bytes: UserBytes,
    ) -> Result<Operation> {
        let peer = communicator.peer(target);
        let match_bits = match_bits(communicator, plane, tag);
        let started = self.put(peer, match_bits, bytes.into(), false, current_owner())?;
        Ok(sending(started, peer, match_bits, None))
    }

    /// Starts to receive bytes from a rank of `communicator`, on either plane.
    pub fn start_receive_bytes(
        &self,
        communicator: &Communicator,
        plane: Plane,
        source: i32,
        tag: u32,
        bytes: UserBytes,
    ) -> Result<Operation> {
        let peer = communicator.peer(source);
        let criteria =
            Criteria { source: Some(peer), match_bits: match_bits(communicator, plane, tag), ignore_bits: 0 };
        let posted = self.post(&criteria, bytes.into(), current_owner())?;
        Ok(receiving(posted, &criteria, bytes.length, None))
    }

    /// Starts to send a buffer to a rank of `communicator` (MPI_PROC_NULL: nothing), on either plane. Any mode but
    /// buffered, which keeps an account of its own: [`Process::start_buffered_send`].
    pub fn start_send(
        &self,
        communicator: &Communicator,
        plane: Plane,
        target: i32,
        tag: u32,
        buffer: Buffer<'_>,
        mode: SendMode,
    ) -> Result<Operation> {
        if target == MPI_PROC_NULL {
            communicator.check_open()?;
            return Ok(Operation::over(Direction::Send, Ok(Outcome::SENT)));
        }
        if mode == SendMode::Buffered {
            self.start_buffered_send(communicator, plane, target, tag, buffer)?;
            return Ok(Operation::over(Direction::Send, Ok(Outcome::SENT)));
        }
        let (data, description) = self.described.data(&buffer);
        let peer = communicator.peer(target);
        let match_bits = match_bits(communicator, plane, tag);
        let started = self.put(peer, match_bits, data, mode == SendMode::Synchronous, current_owner())?;
        Ok(sending(started, peer, match_bits, description.map(Held::Description)))
    }

    /// Starts to receive into a buffer from a rank of `communicator` (MPI_ANY_SOURCE: from any; MPI_PROC_NULL:
    /// nothing), on either plane. `tag` may be MPI_ANY_TAG.
    pub fn start_recv(
        &self,
        communicator: &Communicator,
        plane: Plane,
        source: i32,
        tag: i32,
        buffer: Buffer<'_>,
    ) -> Result<Operation> {
        if source == MPI_PROC_NULL {
            communicator.check_open()?;
            return Ok(Operation::over(Direction::Receive(0), Ok(Outcome::NO_PROCESS)));
        }
        let criteria = Criteria::new(communicator, plane, source, tag);
        let (data, description) = self.described.data(&buffer);
        let posted = self.post(&criteria, data, current_owner())?;
        Ok(receiving(posted, &criteria, data.length, description))
    }
}

pub(crate) fn sending(started: Started, peer: ProcessId, match_bits: u64, held: Option<Held>) -> Operation {
    match started {
        Started::Done => Operation::over(Direction::Send, Ok(Outcome::SENT)),
        Started::InFlight(name) => Operation {
            state: State::InFlight(name),
            direction: Direction::Send,
            peer: Some(peer),
            match_bits,
            entry: None,
            held,
        },
    }
}

pub(crate) fn receiving(
    posted: Posted,
    criteria: &Criteria,
    capacity: u64,
    description: Option<Description>,
) -> Operation {
    let direction = Direction::Receive(capacity);
    match posted {
        Posted::Done(completion) => Operation::over(direction, received(&completion, capacity)),
        Posted::InFlight(name, entry) => Operation {
            state: State::InFlight(name),
            direction,
            peer: criteria.source,
            match_bits: criteria.match_bits,
            entry: Some(entry),
            held: description.map(Held::Description),
        },
    }
}

/// What a receive tells that was complete at once.
pub(crate) fn received(completion: &Completion, capacity: u64) -> Result<Outcome> {
    if completion.failed {
        return Err(crate::request::operation::lost(Some(completion.initiator), "received from"));
    }
    outcome(completion, capacity)
}
