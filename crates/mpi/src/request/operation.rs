//! One send or receive in flight, with what has to be done when its data is there.

use crate::constants::{MPI_ERR_PROC_ABORTED, MPI_ERR_TRUNCATE};
use crate::error::{Error, Result};
use crate::faults::Fault;
use crate::process::Process;
use crate::pt2pt::described::Held;
use crate::request::slots::{Completion, SlotName};
use parnass_portals::{EntryHandle, ProcessId};

/// Stands for MPI_PROC_NULL where a process is named.
pub const NO_PROCESS: ProcessId = ProcessId(u32::MAX);

/// What an operation that is over tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Who sent the message that was received; `None` for a send.
    pub source: Option<ProcessId>,
    /// The tag of the message that was received; 0 for a send.
    pub tag: u32,
    /// How many bytes were received; 0 for a send.
    pub bytes: u64,
    /// Whether it was cancelled, and nothing was sent or received.
    pub cancelled: bool,
}

impl Outcome {
    /// Of a send.
    pub(crate) const SENT: Outcome = Outcome { source: None, tag: 0, bytes: 0, cancelled: false };
    /// Of a receive from MPI_PROC_NULL.
    pub(crate) const NO_PROCESS: Outcome =
        Outcome { source: Some(NO_PROCESS), tag: 0, bytes: 0, cancelled: false };
    /// Of what was cancelled.
    pub(crate) const CANCELLED: Outcome = Outcome { source: None, tag: 0, bytes: 0, cancelled: true };
}

#[derive(Debug)]
pub(crate) enum State {
    InFlight(SlotName),
    /// The result has not been asked for yet.
    Over(Result<Outcome>),
    Taken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Send,
    /// With the length of the buffer in bytes.
    Receive(u64),
}

/// A send or a receive in flight.
///
/// It must be polled until it is over: one that is dropped before keeps its slot, and what it holds, for the
/// life of the process, since the NIC may still use both.
#[derive(Debug)]
pub struct Operation {
    pub(crate) state: State,
    pub(crate) direction: Direction,
    /// Target of a send, source of a receive that names one.
    pub(crate) peer: Option<ProcessId>,
    pub(crate) match_bits: u64,
    /// For a posted receive: how to take it back.
    pub(crate) entry: Option<EntryHandle>,
    /// What the NIC uses besides the user's buffer.
    pub(crate) held: Option<Held>,
}

impl Operation {
    /// One that is over: nothing was to be done, or it was done at once.
    pub(crate) fn over(direction: Direction, outcome: Result<Outcome>) -> Operation {
        Operation {
            state: State::Over(outcome),
            direction,
            peer: None,
            match_bits: 0,
            entry: None,
            held: None,
        }
    }

    /// A receive into one run of bytes, in flight in a slot by whose name its entry is found.
    pub(crate) fn posted(
        name: SlotName,
        capacity: u64,
        peer: Option<ProcessId>,
        match_bits: u64,
    ) -> Operation {
        Operation {
            state: State::InFlight(name),
            direction: Direction::Receive(capacity),
            peer,
            match_bits,
            entry: Some(EntryHandle::BY_USER),
            held: None,
        }
    }

    /// The process whose doing completes the operation, for [`Process::wait_until`]; `None` if it may be any.
    pub fn awaited(&self) -> Option<ProcessId> {
        self.peer
    }

    /// The slot in which its events come, while it is in flight.
    pub(crate) fn slot(&self) -> Option<SlotName> {
        match self.state {
            State::InFlight(name) => Some(name),
            State::Over(_) | State::Taken => None,
        }
    }

    /// Whether it is over. Does not turn the wheel.
    #[inline]
    pub fn is_complete(&self, process: &Process) -> bool {
        match &self.state {
            State::InFlight(name) => {
                process.slots.is_complete(*name)
                    || process.faults.is_active()
                        && (self.is_pending(process) || self.interrupt(process, false))
            }
            State::Over(_) | State::Taken => true,
        }
    }

    /// How it went, once, when it is over; received data is in the user's buffer then. Does not turn the wheel.
    ///
    /// # Panics
    /// When it is called again after it gave the result.
    #[inline]
    pub fn poll(&mut self, process: &Process) -> Option<Result<Outcome>> {
        if let State::InFlight(name) = self.state {
            if !process.slots.is_complete(name) {
                if !process.faults.is_active() {
                    return None;
                }
                if let Some(fault) = self.pending_fault(process) {
                    return Some(Err(fault.error()));
                }
                if !self.interrupt(process, false) {
                    return None;
                }
            }
            let completion = process.slots.completion(name);
            let withdrawn = process.slots.is_withdrawn(name);
            process.slots.release(name);
            self.state = State::Taken;
            if withdrawn {
                self.held = None;
                return Some(Ok(Outcome::CANCELLED));
            }
            return Some(self.finish(process, &completion));
        }
        match std::mem::replace(&mut self.state, State::Taken) {
            State::Over(outcome) => Some(outcome),
            _ => panic!("an operation gives its result once"),
        }
    }

    /// What is to be done when the NIC has done its part.
    pub(crate) fn finish(&mut self, process: &Process, completion: &Completion) -> Result<Outcome> {
        let held = self.held.take();
        if completion.failed
            && let Some(error) = process.reason_of_loss(self.peer, self.match_bits, completion.initiator)
        {
            // Somebody may still read what was to be sent.
            if let Some(held) = held.filter(|_| self.direction == Direction::Send) {
                held.leak();
            }
            return Err(error);
        }
        let capacity = match self.direction {
            Direction::Send if completion.failed => return Err(lost(self.peer, "sent to")),
            Direction::Send => return Ok(Outcome::SENT),
            Direction::Receive(capacity) => capacity,
        };
        if completion.failed {
            return Err(lost(self.peer.or(Some(completion.initiator)), "received from"));
        }
        outcome(completion, capacity)
    }

    /// Why a receive from anybody cannot be waited for, though it goes on.
    fn pending_fault(&self, process: &Process) -> Option<Fault> {
        if self.peer.is_some() {
            return None;
        }
        let fault = process.fault(None, self.match_bits)?;
        matches!(fault, Fault::Unacknowledged(_)).then_some(fault)
    }

    fn is_pending(&self, process: &Process) -> bool {
        self.pending_fault(process).is_some()
    }

    /// See [`Process::interrupt`].
    fn interrupt(&self, process: &Process, any: bool) -> bool {
        let State::InFlight(name) = self.state else { return true };
        process.interrupt(name, self.entry, self.peer, self.match_bits, any)
    }

    /// As [`Operation::poll`], for somebody who cannot leave it be: a receive from anybody ends when one of them is dead.
    pub(crate) fn poll_at_last(&mut self, process: &Process) -> Option<Result<Outcome>> {
        if process.faults.is_active() && self.is_pending(process) && !self.interrupt(process, true) {
            return None;
        }
        self.poll(process)
    }

    /// Whether it has given its result.
    pub(crate) fn is_taken(&self) -> bool {
        matches!(self.state, State::Taken)
    }

    /// Tries to take it back (MPI 5.0, section 3.8.4): it will be over without any doing of the peer's program, cancelled or as if nothing had
    /// been tried.
    pub fn cancel(&mut self, process: &Process) {
        let State::InFlight(name) = self.state else { return };
        match self.direction {
            Direction::Receive(_) => {
                if self.entry.is_some_and(|entry| process.nic().unlink(entry, name.user())) {
                    process.slots.release(name);
                    self.held = None;
                    self.state = State::Over(Ok(Outcome::CANCELLED));
                }
            }
            Direction::Send => {
                if let Some(target) = self.peer {
                    process.nic().ask_back(target, self.match_bits, name.user());
                }
            }
        }
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        if let (State::InFlight(_), Some(held)) = (&self.state, self.held.take()) {
            held.leak();
        }
    }
}

/// What a received message tells; an error if it was longer than the buffer.
pub(crate) fn outcome(completion: &Completion, capacity: u64) -> Result<Outcome> {
    let tag = completion.match_bits as u32;
    if completion.requested_length > completion.placed_length {
        return Err(truncated(completion, capacity));
    }
    Ok(Outcome { source: Some(completion.initiator), tag, bytes: completion.placed_length, cancelled: false })
}

#[cold]
fn truncated(completion: &Completion, capacity: u64) -> Error {
    Error::new(
        MPI_ERR_TRUNCATE,
        format!(
            "the message from process {} with tag {} has {} bytes, but the receive buffer holds {} bytes; give a larger \
             count, or ask for the length first with MPI_Probe and MPI_Get_count",
            completion.initiator.0,
            completion.match_bits as u32 as i32,
            completion.requested_length,
            capacity
        ),
    )
}

#[cold]
pub(crate) fn lost(peer: Option<ProcessId>, done: &str) -> Error {
    let who = peer.map_or_else(|| "a peer".to_owned(), |peer| format!("process {}", peer.0));
    Error::new(
        MPI_ERR_PROC_ABORTED,
        format!(
            "the message {done} {who} is lost: that process has ended, or its memory could not be reached"
        ),
    )
}
