//! Puts and gets (MPI 5.0, sections 12.3.1 and 12.3.2).

use super::{Flavor, Reach, Target, Window};
use crate::constants::*;
use crate::datatype::{Buffer, Datatype};
use crate::process::Process;
use crate::{Error, Result};
use parnass_base::{Scratch, UserAddress};
use parnass_counters::{WINDOW_GET_BYTES, WINDOW_GETS, WINDOW_PUT_BYTES, WINDOW_PUTS};
use parnass_portals::{MemoryError, RemoteCopy};
use std::sync::Arc;

/// The target side of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub rank: i32,
    /// In units of the target.
    pub displacement: i64,
    pub count: u64,
    pub datatype: &'a Arc<Datatype>,
}

impl Place<'_> {
    /// Bytes of data in it.
    #[inline]
    pub(super) fn size(&self) -> u64 {
        self.count.saturating_mul(self.datatype.layout().size())
    }
}

/// Memory of a target that an operation is about, and the way there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot<'a> {
    pub target: &'a Target,
    /// The address that the layout is relative to: in this process, or in the target.
    pub address: UserAddress,
    pub count: u64,
    pub datatype: &'a Arc<Datatype>,
    /// Whether it lies in this process's address space.
    pub direct: bool,
    /// Whether the target may be asked to take part: the memory is known to be there.
    pub asked: bool,
}

/// From so many bytes on a target that waits may take a share of an access over, though this process has the memory itself.
const SHARED_FROM: usize = 256 << 10;

/// Copies between user memory and a window, which a wrong program may let overlap.
#[inline(always)]
pub(super) fn copy(to: UserAddress, from: UserAddress, length: usize) {
    if to.value().abs_diff(from.value()) >= length {
        to.copy_apart(from, length);
    } else {
        to.copy_from(from, length);
    }
}

impl Target {
    /// Copies to (`write`) or from its memory at `here` in this process's address space.
    #[inline(always)]
    fn copy(&self, process: &Process, write: bool, here: UserAddress, local: UserAddress, length: usize) {
        if length >= SHARED_FROM && self.shares_copy(process, write, here, local, length) {
            return;
        }
        let (to, from) = if write { (here, local) } else { (local, here) };
        copy(to, from, length);
    }

    /// As [`Target::copy`], in which the target may take a part. `false`: nothing is done.
    #[inline(never)]
    fn shares_copy(
        &self,
        process: &Process,
        write: bool,
        here: UserAddress,
        local: UserAddress,
        length: usize,
    ) -> bool {
        let Reach::Direct(base) = self.reach else { return false };
        let apart = here.value().abs_diff(local.value()) >= length;
        if !apart || self.there == UserAddress::NULL || self.process == process.me() {
            return false;
        }
        let remote = self.there.offset((here.value() - base.value()) as i64);
        let (target, mapped) = (self.process.0, Some(here));
        process.nic().copy_mapped(&RemoteCopy { target, write, remote, mapped, local, length }).is_ok()
    }
}

impl Spot<'_> {
    /// Where its data starts, if that is one run of bytes.
    #[inline]
    pub fn contiguous(&self) -> Option<UserAddress> {
        self.datatype.layout().contiguous(self.count).map(|offset| self.address.offset(offset))
    }

    /// Puts the first `length` bytes of a packed stream there.
    #[inline]
    pub fn write(&self, process: &Process, packed: UserAddress, length: u64) -> Result<()> {
        match (self.direct, self.contiguous()) {
            (true, Some(to)) => self.target.copy(process, true, to, packed, length as usize),
            (true, None) => drop(self.datatype.layout().unpack(self.count, self.address, 0, packed, length)),
            (false, _) => {
                return self.each_run(length, &mut |remote, skip, bytes| {
                    let (target, local) = (self.target.process, packed.offset(skip as i64));
                    if self.asked {
                        process.nic().write_known(target, remote, local, bytes)
                    } else {
                        process.nic().write_memory(target, remote, local, bytes)
                    }
                });
            }
        }
        Ok(())
    }

    /// Gets the first `length` bytes of its packed stream.
    #[inline]
    pub fn read(&self, process: &Process, packed: UserAddress, length: u64) -> Result<()> {
        match (self.direct, self.contiguous()) {
            (true, Some(from)) => self.target.copy(process, false, from, packed, length as usize),
            (true, None) => drop(self.datatype.layout().pack(self.count, self.address, 0, packed, length)),
            (false, _) => {
                return self.each_run(length, &mut |remote, skip, bytes| {
                    let (target, local) = (self.target.process, packed.offset(skip as i64));
                    if self.asked {
                        process.nic().read_known(target, remote, local, bytes)
                    } else {
                        process.nic().read_memory(target, remote, local, bytes)
                    }
                });
            }
        }
        Ok(())
    }

    /// Hands the runs of bytes to `step`: address at the target, offset in the packed stream, length.
    fn each_run(
        &self,
        length: u64,
        step: &mut dyn FnMut(UserAddress, u64, usize) -> std::result::Result<(), MemoryError>,
    ) -> Result<()> {
        let mut skip = 0;
        let mut result = Ok(());
        self.datatype.layout().visit_runs(self.count, 0, length, &mut |offset, bytes| {
            result = step(self.address.offset(offset), skip, bytes as usize);
            skip += bytes;
            result.is_ok()
        });
        result.map_err(|error| self.not_moved(error))
    }

    #[cold]
    fn not_moved(&self, error: MemoryError) -> Error {
        let why = match error {
            MemoryError::NotPermitted => "the kernel does not permit it",
            MemoryError::Gone => "the process is gone",
            MemoryError::Failed => "there is no such memory",
        };
        Error::new(
            MPI_ERR_RMA_RANGE,
            format!(
                "the memory of process {} at {:#x} cannot be reached: {why}; give an address that the target has attached, \
                 or one inside its window",
                self.target.process.0,
                self.address.value()
            ),
        )
    }
}

impl Window {
    /// The rank that an operation is about; `None` for MPI_PROC_NULL.
    #[inline]
    pub(super) fn target(&self, rank: i32) -> Result<Option<&Target>> {
        match self.targets.get(rank as usize) {
            Some(target) if self.epochs.allow(rank) => Ok(Some(target)),
            None if rank == MPI_PROC_NULL => Ok(None),
            None => Err(self.bad_rank(rank)),
            Some(_) => Err(self.no_epoch(rank)),
        }
    }

    #[cold]
    fn no_epoch(&self, rank: i32) -> Error {
        Error::new(
            MPI_ERR_RMA_SYNC,
            format!(
                "no epoch for rank {rank} is open on {}; call MPI_Win_fence, MPI_Win_start, MPI_Win_lock or \
                 MPI_Win_lock_all before the operation",
                self.describe()
            ),
        )
    }

    #[cold]
    pub(super) fn unreachable(&self, rank: i32) -> Error {
        Error::new(
            MPI_ERR_UNSUPPORTED_OPERATION,
            format!(
                "this process cannot reach the memory of rank {rank} of {}: it is on another node, or the kernel does not permit \
                 it; use ranks of one node, and MPI_Win_allocate where process_vm_readv is denied",
                self.describe()
            ),
        )
    }

    /// Where an operation takes place; an error if that is not inside the window.
    #[inline]
    pub(super) fn spot<'a>(&self, target: &'a Target, place: &Place<'a>) -> Result<Spot<'a>> {
        let (base, direct) = match target.reach {
            Reach::Direct(base) => (base, true),
            Reach::Kernel(base) => (base, false),
            Reach::None => return Err(self.unreachable(place.rank)),
        };
        let address = base.offset(self.start_of(target, place)?);
        match (&self.attached, target.member) {
            (None, _) => {}
            (Some(attached), Some(member)) if !direct => attached.require_at(member, address, place)?,
            (Some(attached), _) => attached.require(address, place)?,
        }
        let asked = !direct && self.flavor == Flavor::Created;
        Ok(Spot { target, address, count: place.count, datatype: place.datatype, direct, asked })
    }

    /// How far from the base an operation takes place; an error if that is not inside the window.
    #[inline]
    pub(super) fn start_of(&self, target: &Target, place: &Place<'_>) -> Result<i64> {
        let start = place.displacement.checked_mul(target.unit);
        if self.flavor == Flavor::Dynamic {
            return Ok(place.displacement.wrapping_mul(target.unit));
        }
        let (low, length) = place.datatype.layout().footprint(place.count);
        let low = start.and_then(|start| start.checked_add(low)).and_then(|low| u64::try_from(low).ok());
        let end = low.and_then(|low| low.checked_add(length));
        match (start, end) {
            (Some(start), Some(end)) if end <= target.size => Ok(start),
            _ if length == 0 => Ok(0),
            _ => Err(self.outside(target, place)),
        }
    }

    #[cold]
    fn outside(&self, target: &Target, place: &Place<'_>) -> Error {
        let (low, length) = place.datatype.layout().footprint(place.count);
        let low = i128::from(place.displacement) * i128::from(target.unit) + i128::from(low);
        Error::new(
            MPI_ERR_RMA_RANGE,
            format!(
                "target_disp is {} (in units of {} bytes), so that the operation is about the bytes {low} to {} of rank {}, whose \
                 part of {} has {} bytes; stay inside it",
                place.displacement,
                target.unit,
                low + i128::from(length) - 1,
                place.rank,
                self.describe(),
                target.size
            ),
        )
    }

    /// Where a place lies whose data is one run of bytes inside the window, reached by loads and stores; and the length of that.
    #[inline(always)]
    pub(super) fn plain(&self, target: &Target, place: &Place<'_>) -> Option<(UserAddress, usize)> {
        let Reach::Direct(base) = target.reach else { return None };
        let length = place.datatype.plain_length(place.count)?;
        let start = u64::try_from(place.displacement.checked_mul(target.unit)?).ok()?;
        // A dynamic window has size 0.
        (start.checked_add(length as u64)? <= target.size).then(|| (base.offset(start as i64), length))
    }

    /// MPI_Put.
    #[inline(always)]
    pub fn put(&self, process: &Process, origin: &Buffer<'_>, place: &Place<'_>) -> Result<()> {
        let Some(target) = self.target(place.rank)? else { return Ok(()) };
        process.counters().count(WINDOW_PUTS, 1);
        match self.plain(target, place) {
            Some((to, length)) if origin.datatype.plain_length(origin.count) == Some(length) => {
                process.counters().count(WINDOW_PUT_BYTES, length as u64);
                target.copy(process, true, to, origin.address, length);
            }
            _ => self.put_any(process, target, origin, place)?,
        }
        self.unordered.note();
        Ok(())
    }

    /// As [`Window::put`], wherever the data is and whatever it looks like.
    #[inline(never)]
    fn put_any(
        &self,
        process: &Process,
        target: &Target,
        origin: &Buffer<'_>,
        place: &Place<'_>,
    ) -> Result<()> {
        process.counters().count(WINDOW_PUT_BYTES, origin.size());
        if target.reach == Reach::None {
            return self.far_put(process, target, origin, place);
        }
        let spot = self.spot(target, place)?;
        let length = origin.size();
        require_room("origin", length, "target", place.size())?;
        if length == 0 {
            return Ok(());
        }
        match origin.contiguous() {
            Some(from) => spot.write(process, from, length),
            None => match spot.contiguous() {
                Some(to) if spot.direct => {
                    origin.datatype.layout().pack(origin.count, origin.address, 0, to, length);
                    Ok(())
                }
                _ => spot.write(process, packed(origin).address(), length),
            },
        }
    }

    /// MPI_Get.
    #[inline(always)]
    pub fn get(&self, process: &Process, origin: &Buffer<'_>, place: &Place<'_>) -> Result<()> {
        let Some(target) = self.target(place.rank)? else { return Ok(()) };
        process.counters().count(WINDOW_GETS, 1);
        match self.plain(target, place) {
            Some((from, length)) if origin.datatype.plain_length(origin.count) == Some(length) => {
                process.counters().count(WINDOW_GET_BYTES, length as u64);
                target.copy(process, false, from, origin.address, length);
                Ok(())
            }
            _ => self.get_any(process, target, origin, place),
        }
    }

    /// As [`Window::get`], wherever the data is and whatever it looks like.
    #[inline(never)]
    fn get_any(
        &self,
        process: &Process,
        target: &Target,
        origin: &Buffer<'_>,
        place: &Place<'_>,
    ) -> Result<()> {
        process.counters().count(WINDOW_GET_BYTES, place.size());
        if target.reach == Reach::None {
            return self.far_get(process, target, origin, place);
        }
        let spot = self.spot(target, place)?;
        let length = place.size();
        require_room("target", length, "origin", origin.size())?;
        if length == 0 {
            return Ok(());
        }
        match origin.contiguous() {
            Some(to) => spot.read(process, to, length),
            None => {
                let layout = origin.datatype.layout();
                match spot.contiguous() {
                    Some(from) if spot.direct => {
                        layout.unpack(origin.count, origin.address, 0, from, length);
                    }
                    _ => {
                        let data = Scratch::new(length as usize);
                        spot.read(process, data.address(), length)?;
                        layout.unpack(origin.count, origin.address, 0, data.address(), length);
                    }
                }
                Ok(())
            }
        }
    }
}

/// The packed data of a buffer.
pub(super) fn packed(buffer: &Buffer<'_>) -> Scratch {
    let length = buffer.size();
    let data = Scratch::new(length as usize);
    buffer.datatype.layout().pack(buffer.count, buffer.address, 0, data.address(), length);
    data
}

/// An error if there is more data on one side than room on the other.
#[inline]
pub(super) fn require_room(from: &str, length: u64, to: &str, room: u64) -> Result<()> {
    if length <= room { Ok(()) } else { Err(no_room(from, length, to, room)) }
}

#[cold]
fn no_room(from: &str, length: u64, to: &str, room: u64) -> Error {
    Error::new(
        MPI_ERR_TRUNCATE,
        format!(
            "count and datatype of the {from} make {length} bytes, those of the {to} {room}; give both sides the same data"
        ),
    )
}
