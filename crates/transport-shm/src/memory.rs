//! The job's memory file: made and formatted by the launcher, attached by every rank.

use crate::layout::{
    self, COUNTERS_AT, Header, LANES, NIC_AT, SHUTTLE_BYTES, SHUTTLES_AT, SLOTS_AT, STRIDE, Station,
};
use parnass_base::atomics::Ordering;
use parnass_base::lane::Slot;
use parnass_base::{PAGE, Region, Window};
use parnass_counters::Counters;
use parnass_transport::Waiting;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// The memory that the ranks of one machine share. A clone is the same mapping of it.
#[derive(Clone, Debug)]
pub struct JobMemory {
    pub(crate) region: Arc<Region>,
    size: u32,
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

impl JobMemory {
    /// Makes and formats an anonymous memory file for `size` ranks (1 to 2^20). The descriptor is closed on exec;
    /// whoever hands it down clears that flag.
    ///
    /// # Errors
    /// The kernel refuses; the message says what could not be had.
    pub fn create(size: u32) -> io::Result<OwnedFd> {
        if size == 0 || size > 1 << 20 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("a job of {size} ranks")));
        }
        let file = Region::create_file(c"parnass-job", layout::base_bytes(size)).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot make the job's memory file: {error}"))
        })?;
        let region = Self::map(file.try_clone()?, layout::base_bytes(size))?;
        Self::format(&region, size)?;
        Ok(file)
    }

    fn map(file: OwnedFd, length: usize) -> io::Result<Arc<Region>> {
        Region::map_start(file, length).map_err(|error| {
            let advice = "the limit of address space (ulimit -v) must leave room for it";
            io::Error::new(error.kind(), format!("cannot map the job's memory: {error}; {advice}"))
        })
    }

    fn format(region: &Arc<Region>, size: u32) -> io::Result<()> {
        let short = |error: io::Error| {
            io::Error::new(
                error.kind(),
                format!("cannot reserve memory for the mailboxes of {size} ranks: {error}"),
            )
        };
        let whole = region.window(0, region.len());
        whole.reserve(0, PAGE).map_err(short)?;
        let slots = layout::slots_per_lane(size);
        for rank in 0..size as usize {
            let area = PAGE + rank * STRIDE;
            whole.reserve(area, SLOTS_AT + layout::lanes(size) * slots * size_of::<Slot>()).map_err(short)?;
            if size as usize <= LANES {
                whole.reserve(area + SHUTTLES_AT, size as usize * SHUTTLE_BYTES).map_err(short)?;
            }
            whole.reserve(area + NIC_AT, PAGE).map_err(short)?;
        }
        let header = whole.record::<Header>(0);
        header.version.set(layout::LAYOUT_VERSION);
        header.size.set(size);
        header.lanes.set(layout::lanes(size) as u32);
        header.slots.set(slots as u32);
        header.magic.set(layout::MAGIC);
        Ok(())
    }

    /// Maps a file that [`JobMemory::create`] made.
    ///
    /// # Errors
    /// It is none, or of another version.
    pub fn open(file: OwnedFd) -> io::Result<JobMemory> {
        let length = Region::file_length(file.as_fd())?;
        if length < PAGE as u64 {
            return Err(invalid(format!("the job's memory file has only {length} bytes")));
        }
        let header = Self::map(file.try_clone()?, PAGE)?.window(0, PAGE).record::<Header>(0);
        if header.magic.get() != layout::MAGIC {
            return Err(invalid("the descriptor for the job's memory is some other file".into()));
        }
        let (version, size) = (header.version.get(), header.size.get());
        if version != layout::LAYOUT_VERSION {
            return Err(invalid(format!(
                "the job's memory has layout version {version}, this library {}: use mpiexec and libmpi_abi of one release",
                layout::LAYOUT_VERSION
            )));
        }
        // Longer when a rank has made segments already.
        if size == 0 || length < layout::base_bytes(size) as u64 {
            return Err(invalid(format!("the job's memory file has {length} bytes for {size} ranks")));
        }
        Ok(JobMemory { region: Self::map(file, layout::base_bytes(size))?, size })
    }

    /// Memory for a job of one rank, of this process alone.
    pub fn private() -> io::Result<JobMemory> {
        let region = Region::private(layout::base_bytes(1))?;
        Self::format(&region, 1)?;
        Ok(JobMemory { region, size: 1 })
    }

    /// How many ranks it is for.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// For whom a rank waits now, and its process number (0 before it has attached): for tools that explain a
    /// hang from outside.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn observe(&self, rank: u32) -> (u32, Waiting) {
        assert!(rank < self.size, "rank {rank} of {}", self.size);
        let station = self.station(rank);
        (station.process.load(Ordering::Acquire), layout::waiting(station.waits_for.get()))
    }

    /// The memory of the NIC of a rank, and that in which it counts, as [`parnass_transport::Transport`] has them: for tools that read from outside.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn nic(&self, rank: u32) -> (Window, Window) {
        assert!(rank < self.size, "rank {rank} of {}", self.size);
        (self.nic_memory(rank), self.counter_memory(rank))
    }

    pub(crate) fn nic_memory(&self, rank: u32) -> Window {
        self.region.window(PAGE + rank as usize * STRIDE + NIC_AT, layout::NIC_BYTES)
    }

    /// What a rank has counted, and counts: for tools that read from outside.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn counters(&self, rank: u32) -> Counters {
        assert!(rank < self.size, "rank {rank} of {}", self.size);
        Counters::new(&self.counter_memory(rank))
    }

    pub(crate) fn counter_memory(&self, rank: u32) -> Window {
        self.region.window(PAGE + rank as usize * STRIDE + COUNTERS_AT, parnass_counters::BYTES)
    }

    pub(crate) fn station(&self, rank: u32) -> parnass_base::Placed<Station> {
        self.region.window(PAGE + rank as usize * STRIDE, PAGE).record(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_created_opens() {
        let file = JobMemory::create(3).unwrap();
        assert_eq!(JobMemory::open(file).unwrap().size(), 3);
        assert_eq!(JobMemory::private().unwrap().size(), 1);
    }

    #[test]
    fn other_files_are_refused() {
        let file = Region::create_file(c"other", 2 * PAGE).unwrap();
        assert!(JobMemory::open(file).unwrap_err().to_string().contains("some other file"));
        let file = JobMemory::create(1).unwrap();
        let region = Region::map_file(file.try_clone().unwrap()).unwrap();
        region.window(0, PAGE).record::<Header>(0).version.set(99);
        assert!(JobMemory::open(file).unwrap_err().to_string().contains("version 99"));
    }

    #[test]
    fn a_job_of_no_ranks_is_refused() {
        assert!(JobMemory::create(0).is_err());
    }
}
