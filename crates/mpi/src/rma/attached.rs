//! The memory that is attached to a dynamic window (MPI 5.0, section 12.2.4).
//!
//! Every process publishes its list in the segment, in a [`Ledger`] of its own, so that others of the node know what is attached before
//! they have the kernel copy: no message is needed, and the program of the target takes no part.

use super::guard;
use super::transfer::Place;
use crate::constants::*;
use crate::process::portal_error;
use crate::{Error, Result};
use parnass_base::ledger::{Account, Entry, Ledger, first_missing};
use parnass_base::{PAGE, Placed, Table, UserAddress};
use parnass_portals::Segment;
use std::sync::{Arc, Mutex};

/// Bytes of address space that each member has in the segment. Memory stands behind what it has used.
pub(super) const ROOM_BYTES: usize = 1 << 20;
/// How many pieces a process can publish. Where more are attached, the kernel alone decides what can be reached.
const MOST_PIECES: usize = (ROOM_BYTES - size_of::<Ledger>()) / size_of::<Entry>();

/// Looks at a ledger that is being written before the processor is given away, and before its owner is taken for dead.
const YIELD_EVERY: u32 = 64;
const MOST_LOOKS: u32 = 1 << 16;

/// What one member has published.
#[derive(Debug)]
struct Published {
    ledger: Placed<Ledger>,
    entries: Table<Entry>,
}

/// The pieces of this process.
#[derive(Debug, Default)]
struct Own {
    /// First byte and length, in the order of the first bytes. They do not overlap.
    pieces: Vec<(u64, u64)>,
    /// Where nothing was attached: pieces of length 0.
    empty: Vec<u64>,
    /// Bytes of this member's part of the segment behind which memory stands.
    reserved: usize,
}

/// What is attached at the processes of this node.
#[derive(Debug)]
pub(super) struct Attached {
    segment: Arc<Segment>,
    /// This process among the members of the segment.
    me: usize,
    own: Mutex<Own>,
    members: Box<[Published]>,
}

impl Attached {
    /// Nothing. `segment` has [`ROOM_BYTES`] for each of so many members, and every member has called [`Attached::reserve_first`].
    pub fn new(segment: &Arc<Segment>, members: usize, me: usize) -> Attached {
        let published = |member: usize| Published {
            ledger: segment.record(member * ROOM_BYTES),
            entries: segment.table(member * ROOM_BYTES + size_of::<Ledger>(), MOST_PIECES),
        };
        Attached {
            segment: Arc::clone(segment),
            me,
            own: Mutex::new(Own { reserved: PAGE, ..Own::default() }),
            members: (0..members).map(published).collect(),
        }
    }

    /// Has memory for the first pieces of a member.
    pub fn reserve_first(
        segment: &Segment,
        me: usize,
    ) -> std::result::Result<(), parnass_portals::PortalError> {
        segment.reserve(me * ROOM_BYTES, PAGE)
    }

    /// MPI_Win_attach.
    pub fn attach(&self, base: UserAddress, size: u64) -> Result<()> {
        let mut own = guard(&self.own);
        let start = base.value() as u64;
        if size == 0 {
            own.empty.push(start);
            return Ok(());
        }
        let at = own.pieces.partition_point(|(other, _)| *other < start);
        let before = at.checked_sub(1).map(|before| own.pieces[before]);
        let overlapping = before.filter(|(other, length)| other.saturating_add(*length) > start).or(own
            .pieces
            .get(at)
            .copied()
            .filter(|(other, _)| *other < start.saturating_add(size)));
        if let Some((other, length)) = overlapping {
            return Err(Error::new(
                MPI_ERR_RMA_ATTACH,
                format!(
                    "base is {start:#x} and size {size}, but the {length} bytes at {other:#x} are attached already; \
                     attach memory that does not overlap with them, or detach them first"
                ),
            ));
        }
        self.reserve_for(&mut own)?;
        own.pieces.insert(at, (start, size));
        self.publish(&own, at);
        Ok(())
    }

    /// Has memory for one more piece than there are.
    fn reserve_for(&self, own: &mut Own) -> Result<()> {
        let count = (own.pieces.len() + 1).min(MOST_PIECES);
        if size_of::<Ledger>() + count * size_of::<Entry>() <= own.reserved {
            return Ok(());
        }
        self.segment.reserve(self.me * ROOM_BYTES + own.reserved, PAGE).map_err(portal_error)?;
        own.reserved += PAGE;
        Ok(())
    }

    /// MPI_Win_detach.
    pub fn detach(&self, base: UserAddress) -> Result<()> {
        let mut own = guard(&self.own);
        let start = base.value() as u64;
        if let Ok(at) = own.pieces.binary_search_by_key(&start, |(other, _)| *other) {
            own.pieces.remove(at);
            self.publish(&own, at);
            return Ok(());
        }
        let at = own.empty.iter().position(|other| *other == start).ok_or_else(|| {
            Error::new(
                MPI_ERR_BASE,
                format!(
                    "base is {start:#x}, at which nothing is attached; give the address that MPI_Win_attach was given"
                ),
            )
        })?;
        own.empty.swap_remove(at);
        Ok(())
    }

    /// Lets the others know of the pieces from this one on.
    fn publish(&self, own: &Own, first: usize) {
        let Published { ledger, entries } = &self.members[self.me];
        let first = if ledger.is_known() { first } else { 0 };
        ledger.write(entries, first, own.pieces[first..].iter().copied());
    }

    /// An error unless all data of a place at this process, relative to this address, is attached.
    pub fn require(&self, address: UserAddress, place: &Place<'_>) -> Result<()> {
        let own = guard(&self.own);
        let end_of = |at: u64| {
            let (start, length) =
                own.pieces[..own.pieces.partition_point(|(start, _)| *start <= at)].last()?;
            let end = start.saturating_add(*length);
            (end > at).then_some(end)
        };
        require_runs(address, place, |start, end| first_missing(start, end, end_of))
    }

    /// The same for a place at another member. What that has attached may be more than it can publish: then the kernel alone decides.
    #[inline]
    pub fn require_at(&self, member: u32, address: UserAddress, place: &Place<'_>) -> Result<()> {
        let published = &self.members[member as usize];
        require_runs(address, place, |start, end| match published.account(start, end) {
            Account::Held | Account::Unknown => None,
            Account::Missing(at) => Some(at),
        })
    }
}

impl Published {
    #[inline]
    fn account(&self, start: u64, end: u64) -> Account {
        for look in 1..=MOST_LOOKS {
            if let Some(account) = self.ledger.look_up(&self.entries, start, end) {
                return account;
            }
            if look.is_multiple_of(YIELD_EVERY) {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        Account::Unknown
    }
}

/// An error if there is a byte missing in one of the runs of a place, relative to this address.
#[inline]
fn require_runs(
    address: UserAddress,
    place: &Place<'_>,
    mut missing: impl FnMut(u64, u64) -> Option<u64>,
) -> Result<()> {
    let mut found = None;
    place.datatype.layout().visit_runs(place.count, 0, place.size(), &mut |offset, bytes| {
        let start = address.offset(offset).value() as u64;
        // Nothing is attached across the end of the address space.
        let first = match start.checked_add(bytes) {
            Some(end) => missing(start, end),
            None => Some(start),
        };
        found = first.map(|at| (at, start, bytes));
        found.is_none()
    });
    match found {
        None => Ok(()),
        Some((at, start, bytes)) => Err(not_attached(place.rank, at, start, bytes)),
    }
}

#[cold]
fn not_attached(rank: i32, at: u64, start: u64, bytes: u64) -> Error {
    Error::new(
        MPI_ERR_RMA_RANGE,
        format!(
            "the operation is about {bytes} bytes at {start:#x} of rank {rank}, where nothing is attached at {at:#x}; give an \
             address within memory that MPI_Win_attach was given there, as MPI_Get_address tells it"
        ),
    )
}
