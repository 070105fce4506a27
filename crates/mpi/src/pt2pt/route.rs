//! What messages have in common that go between the same processes and have the same datatype and count.

use crate::comm::{Communicator, Plane};
use crate::constants::MPI_SUCCESS;
use crate::datatype::{Buffer, Datatype};
use crate::error::Result;
use crate::process::{Process, UserBytes};
use crate::pt2pt::transfer::{Criteria, match_bits, received};
use crate::request::operation::Operation;
use crate::request::slots::SlotName;
use crate::request::{Quick, Status};
use parnass_base::UserAddress;
use parnass_portals::{Follow, ProcessId};
use std::sync::Arc;

/// What a communicator, a rank, a datatype and a count come to where the data is one run of bytes: all of a message but its memory and
/// its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// In the communicator.
    rank: i32,
    peer: ProcessId,
    /// Those of the tag 0.
    match_bits: u64,
    /// Where the run starts, from the address of the buffer.
    offset: i64,
    length: u64,
}

impl Route {
    /// `None`: the data has gaps. `rank` is one of the peers.
    pub fn new(
        communicator: &Communicator,
        rank: i32,
        datatype: &Arc<Datatype>,
        count: u64,
    ) -> Option<Route> {
        Some(Route {
            rank,
            peer: communicator.peer(rank),
            match_bits: match_bits(communicator, Plane::PointToPoint, 0),
            offset: datatype.layout().contiguous(count)?,
            length: Buffer::new(UserAddress::NULL, count, datatype).size(),
        })
    }

    /// The rank that it leads to, or comes from.
    #[inline(always)]
    pub fn rank(&self) -> i32 {
        self.rank
    }

    /// The process that it leads to, or comes from.
    #[inline(always)]
    pub(crate) fn peer(&self) -> ProcessId {
        self.peer
    }

    /// A receive on it that is in flight in a slot, see [`Process::post_on`].
    pub(crate) fn operation(&self, name: SlotName, tag: i32) -> Operation {
        Operation::posted(name, self.length, Some(self.peer), self.match_bits(tag))
    }

    /// It in words, for [`Route::from_words`].
    pub fn words(&self) -> [u64; 4] {
        let ends = u64::from(self.rank as u32) | u64::from(self.peer.0) << 32;
        [ends, self.match_bits, self.offset as u64, self.length]
    }

    /// One that was put into words.
    #[inline(always)]
    pub fn from_words([ends, match_bits, offset, length]: [u64; 4]) -> Route {
        let (rank, peer) = (ends as u32 as i32, ProcessId((ends >> 32) as u32));
        Route { rank, peer, match_bits, offset: offset as i64, length }
    }

    #[inline(always)]
    fn bytes(&self, buffer: UserAddress) -> UserBytes {
        UserBytes { address: buffer.offset(self.offset), length: self.length }
    }

    #[inline(always)]
    fn match_bits(&self, tag: i32) -> u64 {
        self.match_bits | u64::from(tag as u32)
    }

    /// `tag` is no wild card.
    #[inline(always)]
    fn criteria(&self, tag: i32) -> Criteria {
        Criteria { source: Some(self.peer), match_bits: self.match_bits(tag), ignore_bits: 0 }
    }
}

impl Process {
    /// MPI_Send and MPI_Rsend of a message that goes at once. `false`: it does not, and nothing was done.
    #[inline(always)]
    pub fn sends_on(&self, route: &Route, buffer: UserAddress, tag: i32) -> bool {
        self.put_short(route.peer, route.match_bits(tag), route.bytes(buffer).into(), Follow::Nothing)
    }

    /// As [`Process::sends_on`], for MPI_Isend and MPI_Irsend.
    #[inline(always)]
    pub fn starts_sending_on(&self, route: &Route, buffer: UserAddress, tag: i32) -> bool {
        self.put_short(route.peer, route.match_bits(tag), route.bytes(buffer).into(), Follow::More)
    }

    /// As [`Process::starts_sending_on`], of what is exchanged and too long for that.
    pub(crate) fn exchanges_on(&self, route: &Route, buffer: UserAddress, tag: i32) -> bool {
        self.put_exchanged(route.peer, route.match_bits(tag), route.bytes(buffer).into())
    }

    /// MPI_Recv. `tag` is no wild card.
    #[inline(always)]
    pub fn receive_on(&self, route: &Route, buffer: UserAddress, tag: i32) -> Result<Status> {
        let (rank, length) = (route.rank, route.length);
        self.receive_data(&route.criteria(tag), route.bytes(buffer).into(), |completion| {
            // The usual case first: all is well.
            if completion.requested_length != completion.placed_length || completion.failed {
                received(completion, length)?;
            }
            Ok(Status {
                source: rank,
                tag: completion.match_bits as u32 as i32,
                error: MPI_SUCCESS,
                bytes: completion.placed_length,
                cancelled: false,
            })
        })
    }

    /// As [`Process::receive_quickly`]. `tag` is no wild card.
    #[inline(always)]
    pub fn receive_quickly_on(&self, route: &Route, buffer: UserAddress, tag: i32) -> Option<Quick> {
        if self.faults.is_active() {
            return None;
        }
        self.start_quickly(route.rank, route.criteria(tag), route.bytes(buffer))
    }

    /// Posts a receive whose slot says all that will be asked of it. `tag` is no wild card. `None`: nothing was done.
    pub(crate) fn post_on(&self, route: &Route, buffer: UserAddress, tag: i32) -> Option<SlotName> {
        if self.faults.is_active() {
            return None;
        }
        let name = self.slots.take(1, None);
        let bytes = route.bytes(buffer);
        let entry = route.criteria(tag).entry(bytes.address.into(), bytes.length, name.user());
        if !self.nic().park(&entry) && !self.append_in_slot(&entry) {
            self.slots.release(name);
            return None;
        }
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back_from_words() {
        let route = Route {
            rank: i32::MAX,
            peer: ProcessId(u32::MAX - 1),
            match_bits: u64::MAX << 32,
            offset: -5,
            length: u64::MAX,
        };
        assert_eq!(Route::from_words(route.words()), route);
    }
}
