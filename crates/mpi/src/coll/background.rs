//! Collective operations for which the call does not wait: those that a request completes, started once or again and again.

use super::call::Call;
use super::execution::{Execution, OwnedParts, Parts};
use crate::activity::{Activity, ActivityName};
use crate::error::Result;
use crate::process::Process;
use crate::request::{Request, Status};
use std::sync::Arc;

/// What is needed of an operation until it is over, and takes back what its run has used.
pub(super) trait Keeper: Send + 'static {
    fn parts(&self) -> Parts<'_>;

    /// The run is over: how it went.
    fn end(&self, execution: Execution) -> Result<()>;
}

impl Keeper for OwnedParts {
    fn parts(&self) -> Parts<'_> {
        OwnedParts::parts(self)
    }

    fn end(&self, execution: Execution) -> Result<()> {
        execution.finish(self.parts().communicator)
    }
}

/// An operation under way.
struct Background<K> {
    keeper: K,
    /// `None` when it is over.
    execution: Option<Execution>,
}

impl<K: Keeper> Background<K> {
    fn end(&mut self) -> Option<Result<Status>> {
        let result = self.keeper.end(self.execution.take()?);
        Some(result.map(|()| Status::EMPTY))
    }
}

impl<K: Keeper> Activity for Background<K> {
    fn advance(&mut self, process: &Process) -> Option<Result<Status>> {
        let parts = self.keeper.parts();
        if !self.execution.as_mut()?.advance(process, &parts) {
            return None;
        }
        self.end()
    }

    fn can_wait(&self) -> bool {
        self.execution.is_some()
    }

    fn complete(&mut self, process: &Process) -> Result<Status> {
        if let Some(execution) = &mut self.execution {
            execution.belongs_to(process, None);
            execution.complete(process, &self.keeper.parts());
        }
        self.end().unwrap_or(Ok(Status::EMPTY))
    }
}

/// How far what was started is.
pub(crate) enum Begun {
    Over(Result<()>),
    UnderWay(ActivityName),
}

/// Does of a run what can be done at once. What is over then needs no more than the parts of the call; what is not becomes an activity,
/// with the keeper that `keep` makes.
pub(super) fn begin<K: Keeper>(
    process: &Process,
    parts: &Parts<'_>,
    mut execution: Execution,
    end: impl FnOnce(Execution) -> Result<()>,
    keep: impl FnOnce(&Execution) -> K,
) -> Begun {
    if process.slots.is_concurrent() {
        // Another thread may take in at any time what has been started: only what an activity starts finds its way back to it.
        let background = Background { keeper: keep(&execution), execution: Some(execution) };
        return Begun::UnderWay(process.start_activity(Box::new(background)));
    }
    if execution.advance(process, parts) {
        return Begun::Over(end(execution));
    }
    Begun::UnderWay(process.adopt_activity(|owner| {
        execution.belongs_to(process, Some(owner));
        Box::new(Background { keeper: keep(&execution), execution: Some(execution) })
    }))
}

impl Process {
    /// Starts a collective operation. `None`: it is over, and went well.
    pub fn start_collective(&self, call: &Call<'_>) -> Option<Arc<Request>> {
        let communicator = call.communicator;
        if let Err(error) = self.check_all(communicator) {
            return Some(Request::complete(Some(communicator), Err(error)));
        }
        let execution = Execution::new(self, call, self.work(call));
        let end = |execution: Execution| execution.finish(communicator);
        let keep = |execution: &Execution| OwnedParts::new(call, execution.schedule());
        match begin(self, &call.parts(), execution, end, keep) {
            Begun::Over(Ok(())) => None,
            Begun::Over(Err(error)) => Some(Request::complete(Some(communicator), Err(error))),
            Begun::UnderWay(activity) => Some(Request::begun(communicator, activity)),
        }
    }
}
