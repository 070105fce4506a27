//! Receives whose request is nothing but the slot in which their event comes.
//!
//! A program that receives many short messages at once starts and completes a request for each: there, a request that is an
//! object of its own costs more than the message. So a receive into one run of bytes is first known by its slot alone, whose
//! name is in the program's handle. Whatever is asked of it besides to wait for it, or to test it, first makes it a [`Request`] like
//! any other ([`Process::settle`]), as does anything unusual about how it ends.
//!
//! It holds no reference to its communicator; so those of a communicator are settled before the program frees it.
//!
//! Several threads may call: whoever ends such a receive, or makes it a request, has claimed it before. The handle of a request that it became
//! has the number of the slot, which is therefore not used again until that handle is gone.

use super::operation::Operation;
pub use super::slots::Ended;
use super::slots::{Quickly, SlotName};
use super::{Request, Status, complete};
use crate::comm::{Communicator, Context, Plane};
use crate::constants::MPI_PROC_NULL;
use crate::datatype::Buffer;
use crate::process::{Process, UserBytes};
use crate::pt2pt::transfer::Criteria;
use parnass_base::UserAddress;
use parnass_counters::watch;
use parnass_portals::{Appended, List, MatchEntry, ProcessId};
use std::sync::Arc;

/// A receive that is no [`Request`] yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quick(SlotName);

impl Quick {
    /// How many of them there can be: their numbers are below.
    pub const MOST: u32 = 1 << 16;

    /// Its number; free for another one when it is complete.
    #[inline(always)]
    pub fn number(self) -> u32 {
        self.0.index()
    }

    /// Which of those with this number it is.
    #[inline(always)]
    pub fn life(self) -> u32 {
        self.0.generation()
    }
}

impl Process {
    /// Starts a receive that is only waited for or tested, mostly. `None`: it is none of the usual kind, and nothing was done.
    #[inline(always)]
    pub fn receive_quickly(
        &self,
        communicator: &Communicator,
        buffer: &Buffer<'_>,
        source: i32,
        tag: i32,
    ) -> Option<Quick> {
        if source == MPI_PROC_NULL || self.faults.is_active() {
            return None;
        }
        // Without its communicator, a rank is known where it was asked for, or where it is the number of the process.
        if source < 0 && !communicator.rank_is_number() {
            return None;
        }
        let bytes = UserBytes { address: buffer.contiguous()?, length: buffer.size() };
        self.start_quickly(source, Criteria::new(communicator, Plane::PointToPoint, source, tag), bytes)
    }

    /// Starts one from the process with this rank, or from any where the rank of a process is its number.
    #[inline(always)]
    pub(crate) fn start_quickly(&self, rank: i32, criteria: Criteria, bytes: UserBytes) -> Option<Quick> {
        let name = self.slots.take_quick(rank, criteria.source, criteria.match_bits, bytes.length);
        // The entry is made where it is needed: one that lay in memory for the long way would be written for the short one too.
        if name.index() < Quick::MOST
            && self.nic().park(&criteria.entry(bytes.address.into(), bytes.length, name.user()))
        {
            return Some(Quick(name));
        }
        self.append_quickly(name, criteria.ignore_bits, bytes.address)
    }

    #[inline(never)]
    fn append_quickly(&self, name: SlotName, ignore_bits: u64, address: UserAddress) -> Option<Quick> {
        if name.index() >= Quick::MOST {
            self.slots.end_quick(name);
            return None;
        }
        let Wanted { peer, match_bits, capacity } = self.slots.wanted(name);
        let entry =
            Criteria { source: peer, match_bits, ignore_bits }.entry(address.into(), capacity, name.user());
        if !self.append_in_slot(&entry) {
            self.slots.end_quick(name);
            return None;
        }
        Some(Quick(name))
    }

    /// Appends an entry whose user is a slot, in which its event comes, at once if its message is there. `false`: it could not be.
    pub(crate) fn append_in_slot(&self, entry: &MatchEntry) -> bool {
        match self.nic().append(List::Priority, entry) {
            Ok(Appended::Posted(_)) => true,
            Ok(Appended::Complete(event)) => {
                self.slots.deliver(&event);
                true
            }
            Err(_) => false,
        }
    }

    /// Ends the receive with a number, in a life of which the low bits are known, if it is one of these, complete, and has gone as usual.
    /// `tell` hears how it went before that, and again if another thread was faster.
    #[inline(always)]
    pub fn end_quickly(&self, number: u32, life: u32, life_mask: u32, tell: impl FnOnce(&Ended<'_>)) -> bool {
        matches!(self.slots.finish_quick(number, life, life_mask, tell), Quickly::Ended)
    }

    /// The receive with a number, in a life of which the low bits are known, if it is still one of these.
    #[inline]
    pub fn quick(&self, number: u32, life: u32, life_mask: u32) -> Option<Quick> {
        self.slots.quick(number, life, life_mask).map(Quick)
    }

    /// All that there are on a communicator.
    pub fn quick_receives(&self, communicator: &Communicator) -> Vec<Quick> {
        let context = communicator.context(Plane::PointToPoint);
        let of_communicator = |name: &SlotName| (self.slots.wanted(*name).match_bits >> 32) as u32 == context;
        self.slots.all_quick().filter(of_communicator).map(Quick).collect()
    }

    /// Waits for it, and ends it. `None`: it is to be settled, and goes on as a request.
    pub fn wait_quick(&self, quick: Quick) -> Option<Status> {
        let mut status = Status::EMPTY;
        loop {
            let tell = |ended: &Ended<'_>| status = ended.status();
            match self.slots.finish_quick(quick.number(), quick.life(), u32::MAX, tell) {
                Quickly::Ended => return Some(status),
                Quickly::Pending if self.faults.is_active() => return None,
                Quickly::Pending => self.wait_for_quick(quick),
                Quickly::Unusual => return None,
            }
        }
    }

    #[inline(never)]
    fn wait_for_quick(&self, quick: Quick) {
        if self.receive_parked(quick.0) {
            return;
        }
        self.wait_for(Some(quick.0), self.awaited_by(quick), || self.is_over(quick).then_some(()));
    }

    /// Receives in the slot of a receive that is not posted yet what comes soon, as a blocking receive does. `false`: it goes on as usual.
    #[inline]
    pub(crate) fn receive_parked(&self, name: SlotName) -> bool {
        if self.slots.is_concurrent() || !self.activities.is_empty() {
            return false;
        }
        let Some(event) = self.nic().receive_parked(name.user()) else { return false };
        self.slots.deliver(&event);
        if self.counters().watch() & watch::EVENTS != 0 {
            self.observer().tell();
        }
        true
    }

    /// Waits for one of several operations, which these processes complete, until `poll` has a value.
    pub fn wait_for_any<T>(
        &self,
        peers: impl Iterator<Item = Option<ProcessId>>,
        poll: impl FnMut() -> Option<T>,
    ) -> T {
        self.wait_until(complete::awaited_by_all(peers), poll)
    }

    /// The process whose doing completes it, where it is known.
    pub fn awaited_by(&self, quick: Quick) -> Option<ProcessId> {
        self.slots.wanted(quick.0).peer
    }

    /// Whether [`Process::wait_quick`] would not wait for it.
    #[inline]
    pub fn is_over(&self, quick: Quick) -> bool {
        !self.slots.is_quick(quick.0) || self.slots.is_complete(quick.0) || self.faults.is_active()
    }

    /// Makes it a request like any other. The caller has looked it up, and forgets it; when the handle of the request is gone, it calls
    /// [`Process::settled_is_gone`]. `None`: another thread has ended it.
    pub fn settle(&self, quick: Quick) -> Option<Arc<Request>> {
        let name = quick.0;
        let wanted = self.slots.wanted(name);
        let context = Context::from_wire((wanted.match_bits >> 32) as u32);
        let communicator = self.context_ids().communicator(context)?;
        if !self.slots.settle(name) {
            return None;
        }
        let operation = Operation::posted(name, wanted.capacity, wanted.peer, wanted.match_bits);
        Some(Request::transfer(&communicator, operation))
    }

    /// The handle of a request is gone that was made of the receive with this number.
    pub fn settled_is_gone(&self, number: u32) {
        self.slots.release_handle(number);
    }
}

/// What a receive that is no request yet asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) peer: Option<ProcessId>,
    /// Once it is complete, those of the message.
    pub(crate) match_bits: u64,
    pub(crate) capacity: u64,
}
