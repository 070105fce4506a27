//! Active target communication (MPI 5.0, sections 12.5.1 and 12.5.2): fences, and post, start, complete, wait. The latter four tell each
//! other by empty messages on the window's own communicator.

use super::{Window, guard};
use crate::coll::{Call, Collective};
use crate::comm::Plane;
use crate::constants::*;
use crate::datatype::Buffer;
use crate::group::Group;
use crate::process::{Process, UserBytes};
use crate::pt2pt::SendMode;
use crate::request::Operation;
use crate::{Error, Result};
use parnass_base::UserAddress;
use parnass_portals::Segment;

/// Tag of the message that says: the memory is exposed.
const POSTED: u32 = 1;
/// Tag of the message that says: all operations are complete.
const COMPLETED: u32 = 2;

fn check_assertion(assertion: i32, allowed: i32, names: &str) -> Result<()> {
    if assertion & !allowed == 0 {
        return Ok(());
    }
    Err(Error::new(
        MPI_ERR_ASSERT,
        format!("assert is {assertion}; only 0 and sums of {names} are allowed here"),
    ))
}

fn wait_for(process: &Process, mut operation: Operation) -> Result<()> {
    process.wait_until(operation.awaited(), || operation.poll(process)).map(drop)
}

impl Window {
    /// MPI_Win_fence: collective.
    pub fn fence(&self, process: &Process, assertion: i32) -> Result<()> {
        check_assertion(
            assertion,
            MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED,
            "MPI_MODE_NOSTORE, MPI_MODE_NOPUT, MPI_MODE_NOPRECEDE and MPI_MODE_NOSUCCEED",
        )?;
        self.epochs.require_closed(self)?;
        self.settle_all(process)?;
        // What comes before a barrier is seen by all after it.
        process.collective(&Call::new(&self.communicator, Collective::Barrier))?;
        self.epochs.set_fenced(assertion & MPI_MODE_NOSUCCEED == 0);
        Ok(())
    }

    /// MPI_Win_post.
    pub fn post(&self, process: &Process, group: &Group, assertion: i32) -> Result<()> {
        check_assertion(
            assertion,
            MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT,
            "MPI_MODE_NOCHECK, MPI_MODE_NOSTORE and MPI_MODE_NOPUT",
        )?;
        let origins = self.ranks_of(group)?;
        if self.epochs.is_exposed() {
            return Err(Error::new(
                MPI_ERR_RMA_SYNC,
                format!(
                    "{} is exposed already; call MPI_Win_wait before the next MPI_Win_post",
                    self.describe()
                ),
            ));
        }
        let completions = self.expect(process, &origins, COMPLETED)?;
        self.epochs.expose(completions);
        Segment::fence();
        if assertion & MPI_MODE_NOCHECK == 0 {
            self.tell(process, &origins, POSTED, SendMode::Standard)?;
        }
        Ok(())
    }

    /// MPI_Win_start: returns when all of the group have posted.
    pub fn start(&self, process: &Process, group: &Group, assertion: i32) -> Result<()> {
        check_assertion(assertion, MPI_MODE_NOCHECK, "MPI_MODE_NOCHECK")?;
        let targets = self.ranks_of(group)?;
        self.epochs.require_no_access(self)?;
        self.epochs.set_fenced(false);
        if assertion & MPI_MODE_NOCHECK == 0 {
            for operation in self.expect(process, &targets, POSTED)? {
                wait_for(process, operation)?;
            }
        }
        self.epochs.start(targets);
        Ok(())
    }

    /// MPI_Win_complete.
    pub fn complete(&self, process: &Process) -> Result<()> {
        let targets = self.epochs.complete().ok_or_else(|| self.not_open("MPI_Win_start"))?;
        for rank in &targets {
            self.settle(process, *rank)?;
        }
        Segment::fence();
        // Between nodes another message could come to the target before this one, by way of a third process: MPI_Win_test
        // must not say afterwards that this process has not completed.
        let mode = if self.far.is_some() { SendMode::Synchronous } else { SendMode::Standard };
        self.tell(process, &targets, COMPLETED, mode)
    }

    /// MPI_Win_wait.
    pub fn wait(&self, process: &Process) -> Result<()> {
        let completions = self.epochs.hide().ok_or_else(|| self.not_open("MPI_Win_post"))?;
        for operation in completions {
            wait_for(process, operation)?;
        }
        Segment::fence();
        Ok(())
    }

    /// MPI_Win_test: whether MPI_Win_wait would return at once; if so it has been done.
    pub fn test(&self, process: &Process) -> Result<bool> {
        process.progress_for_test();
        let mut exposed = guard(&self.epochs.exposed);
        let completions = exposed.as_mut().ok_or_else(|| self.not_open("MPI_Win_post"))?;
        while let Some(operation) = completions.last_mut() {
            match operation.poll(process) {
                Some(outcome) => drop(outcome?),
                None => return Ok(false),
            }
            completions.pop();
        }
        drop(exposed);
        self.epochs.hide();
        Segment::fence();
        Ok(true)
    }

    #[cold]
    fn not_open(&self, opener: &str) -> Error {
        Error::new(
            MPI_ERR_RMA_SYNC,
            format!("no epoch of {opener} is open on {}; call that first", self.describe()),
        )
    }

    /// The ranks that a group has in the window.
    fn ranks_of(&self, group: &Group) -> Result<Vec<i32>> {
        group.check_subset_of(self.group(), &format!("the group of {}", self.describe()))?;
        Ok(group.processes().map(|process| self.communicator.rank_of(process)).collect())
    }

    fn expect(&self, process: &Process, ranks: &[i32], tag: u32) -> Result<Vec<Operation>> {
        let receive = |rank: &i32| {
            process.start_receive_bytes(&self.communicator, Plane::PointToPoint, *rank, tag, UserBytes::EMPTY)
        };
        ranks.iter().map(receive).collect()
    }

    fn tell(&self, process: &Process, ranks: &[i32], tag: u32, mode: SendMode) -> Result<()> {
        for rank in ranks {
            let plane = Plane::PointToPoint;
            let nothing = Buffer::new(UserAddress::NULL, 0, process.datatypes().byte());
            let operation = process.start_send(&self.communicator, plane, *rank, tag, nothing, mode)?;
            wait_for(process, operation)?;
        }
        Ok(())
    }
}
