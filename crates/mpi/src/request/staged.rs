//! Requests whose operation works on memory that stands in for the program's own: Fortran's array sections with gaps.

use super::{Request, Status};
use crate::error::Result;
use crate::process::Process;
use std::sync::Arc;

/// When the data must be carried between the program's memory and what stands in for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A persistent operation is about to start.
    Start,
    /// The program has said that this partition of its memory is ready.
    Ready(i32),
    /// The program is about to be told that this partition has arrived.
    Arrived(i32),
    /// The operation is complete, and the program is about to be told.
    Complete,
}

/// Carries the data. Called with the request locked, so that it may not call MPI; several threads may say at once that
/// partitions are ready.
pub type Carry = Box<dyn Fn(Moment) + Send + Sync>;

/// The request of the operation itself, and what is done around it.
pub(super) struct Staged {
    pub(super) inner: Arc<Request>,
    carry: Carry,
}

impl Staged {
    pub(super) fn new(inner: Arc<Request>, carry: Carry) -> Staged {
        Staged { inner, carry }
    }

    pub(super) fn start(&self, process: &Process) -> Result<()> {
        if self.inner.is_persistent() {
            (self.carry)(Moment::Start);
        }
        self.inner.start(process)
    }

    pub(super) fn poll(&self, process: &Process) -> Option<Result<Status>> {
        let result = self.inner.poll(process)?;
        if !self.goes_on() {
            (self.carry)(Moment::Complete);
        }
        Some(result)
    }

    /// Whether the operation is under way all the same: a receive from anybody, one of whom is dead.
    pub(super) fn goes_on(&self) -> bool {
        self.inner.is_active() && !matches!(self.inner.kind, super::Kind::Sent)
    }

    pub(super) fn ready(
        &self,
        process: &Process,
        partitions: impl Iterator<Item = i32> + Clone,
    ) -> Result<()> {
        partitions.clone().for_each(|partition| (self.carry)(Moment::Ready(partition)));
        self.inner.ready(process, partitions)
    }

    pub(super) fn has_arrived(&self, process: &Process, partition: i32) -> Result<bool> {
        let arrived = self.inner.has_arrived(process, partition)?;
        if arrived {
            (self.carry)(Moment::Arrived(partition));
        }
        Ok(arrived)
    }
}
