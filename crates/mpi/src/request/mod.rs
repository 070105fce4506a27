//! Requests (MPI 5.0, section 3.7): what a nonblocking call returns, of whatever kind its operation is.

pub mod complete;
mod generalized;
pub(crate) mod operation;
mod persistent;
mod quick;
pub(crate) mod slots;
mod staged;
mod status;

pub use generalized::GeneralizedCallbacks;
pub use operation::{NO_PROCESS, Operation, Outcome};
pub use persistent::Specification;
pub use quick::{Ended, Quick};
pub use staged::{Carry, Moment};
pub use status::Status;

use crate::activity::{Activity, ActivityName};
use crate::comm::Communicator;
use crate::constants::{MPI_ERR_REQUEST, MPI_SUCCESS};
use crate::error::{Error, Result};
use crate::process::Process;
use crate::pt2pt::Route;
use crate::pt2pt::buffered::BufferAccount;
use generalized::Generalized;
use parnass_base::guarded::{Guard, Guarded};
use parnass_portals::ProcessId;
use slots::SlotName;
use staged::Staged;
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::task::Poll;

/// A request. One type for all of them: a send or receive, one that can be started again, a generalized one, and
/// one of several steps.
pub struct Request {
    /// The communicator whose error handler hears of failures, and whose ranks the status speaks of.
    communicator: Option<Arc<Communicator>>,
    kind: Kind,
    state: Guarded<State>,
}

enum Kind {
    /// Complete once, then gone.
    Once,
    /// See [`Request::sent`]: nothing of it ever changes.
    Sent,
    /// Inactive until it is started; inactive again when its completion was told. With the route of a message of the usual kind.
    Persistent(Specification, Option<Route>),
    Generalized(Generalized),
    /// Another request, and what is done when it starts and completes.
    Staged(Staged),
}

#[derive(Debug)]
enum State {
    /// Not started, or its completion was told.
    Inactive,
    Transfer(Operation),
    /// A send and a receive as one operation (MPI_Isendrecv); the status is that of the receive.
    Exchange(Box<Exchange>),
    Composite(ActivityName),
    /// Until all messages that stand in this account are on their way (MPI_Buffer_iflush).
    Flush(Arc<BufferAccount>),
    Generalized,
    /// See the specification of the request.
    Partitioned,
    /// See the request inside.
    Staged,
    /// A receive of a persistent request, in flight, of the usual kind.
    Posted(SlotName),
    /// A send that was complete at once; for ever, if it is [`Request::sent`].
    Sent,
    /// Complete, but nobody was told yet.
    Complete(Result<Status>),
}

impl State {
    /// Changes one that holds nothing to be dropped.
    #[inline(always)]
    fn become_plain(&mut self, new: State) {
        debug_assert!(matches!(self, State::Inactive | State::Posted(_) | State::Sent));
        std::mem::forget(std::mem::replace(self, new));
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Once | Kind::Sent => "once",
            Kind::Persistent(..) => "persistent",
            Kind::Generalized(_) => "generalized",
            Kind::Staged(_) => "staged",
        };
        formatter
            .debug_struct("Request")
            .field("kind", &kind)
            .field("state", &*self.state())
            .finish_non_exhaustive()
    }
}

/// A send and a receive that complete together.
#[derive(Debug)]
struct Exchange {
    /// `None` once it was polled.
    send: Option<Operation>,
    receive: Operation,
}

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    Inactive,
    Pending,
    Complete,
}

/// What an outcome says in terms of a communicator's ranks.
#[inline]
pub(crate) fn status_of(outcome: &Outcome, communicator: &Communicator) -> Status {
    match outcome.source {
        Some(NO_PROCESS) => Status::NO_PROCESS,
        Some(source) => Status {
            source: communicator.rank_of(source),
            tag: outcome.tag as i32,
            error: MPI_SUCCESS,
            bytes: outcome.bytes,
            cancelled: outcome.cancelled,
        },
        None => Status { cancelled: outcome.cancelled, ..Status::EMPTY },
    }
}

/// Requests whose memory a thread keeps for those to come.
const MOST_SPARE: usize = 128;

thread_local! {
    /// They come and go with every nonblocking call, faster than the C library's allocator is in bursts.
    static SPARE: RefCell<Vec<Arc<Request>>> = const { RefCell::new(Vec::new()) };
}

impl Request {
    fn new(communicator: Option<Arc<Communicator>>, kind: Kind, state: State) -> Arc<Request> {
        let spare = SPARE.try_with(|spare| spare.borrow_mut().pop());
        if let Ok(Some(mut spare)) = spare
            && let Some(request) = Arc::get_mut(&mut spare)
        {
            request.communicator = communicator;
            request.kind = kind;
            *request.state.get_mut() = state;
            return spare;
        }
        Arc::new(Request { communicator, kind, state: Guarded::new(state) })
    }

    /// Ends a request whose handle is gone; its memory is kept for the next, unless somebody else still holds it.
    pub fn end(mut ended: Arc<Request>) {
        let Some(request) = Arc::get_mut(&mut ended) else { return };
        if !matches!(request.kind, Kind::Once) {
            return;
        }
        request.communicator = None;
        *request.state.get_mut() = State::Inactive;
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < MOST_SPARE {
                spare.push(ended);
            }
        });
    }

    /// For a send or a receive that has been started on a communicator.
    pub fn transfer(communicator: &Arc<Communicator>, operation: Operation) -> Arc<Request> {
        Request::new(Some(Arc::clone(communicator)), Kind::Once, State::Transfer(operation))
    }

    /// The one request of all sends that were complete at once: it stays complete, however often that is told.
    pub fn sent() -> Arc<Request> {
        Request::new(None, Kind::Sent, State::Sent)
    }

    /// For a send and a receive that complete together.
    pub(crate) fn exchange(
        communicator: &Arc<Communicator>,
        send: Operation,
        receive: Operation,
    ) -> Arc<Request> {
        let state = State::Exchange(Box::new(Exchange { send: Some(send), receive }));
        Request::new(Some(Arc::clone(communicator)), Kind::Once, state)
    }

    /// Starts an activity on a communicator.
    pub fn composite(
        process: &Process,
        communicator: &Arc<Communicator>,
        activity: Box<dyn Activity>,
    ) -> Arc<Request> {
        Request::begun(communicator, process.start_activity(activity))
    }

    /// For an activity on a communicator that has been started.
    pub(crate) fn begun(communicator: &Arc<Communicator>, activity: ActivityName) -> Arc<Request> {
        Request::new(Some(Arc::clone(communicator)), Kind::Once, State::Composite(activity))
    }

    /// For what is complete already.
    pub fn complete(communicator: Option<&Arc<Communicator>>, result: Result<Status>) -> Arc<Request> {
        Request::new(communicator.cloned(), Kind::Once, State::Complete(result))
    }

    /// Puts another request around `inner`: `carry` is called at the moments at which the program's data must be carried to or
    /// from the memory that the operation works on. What has been started is assumed to have got its data.
    pub fn staged(inner: Arc<Request>, carry: Carry) -> Arc<Request> {
        let communicator = inner.communicator.clone();
        let state = if inner.is_active() { State::Staged } else { State::Inactive };
        Request::new(communicator, Kind::Staged(Staged::new(inner, carry)), state)
    }

    pub(crate) fn flush(
        communicator: Option<&Arc<Communicator>>,
        account: Arc<BufferAccount>,
    ) -> Arc<Request> {
        Request::new(communicator.cloned(), Kind::Once, State::Flush(account))
    }

    #[inline(always)]
    fn state(&self) -> Guard<'_, State> {
        self.state.lock()
    }

    /// The communicator whose error handler hears of its failure.
    pub fn communicator(&self) -> Option<&Arc<Communicator>> {
        self.communicator.as_ref()
    }

    /// Whether it lives on after its completion was told, until it is freed.
    pub fn is_persistent(&self) -> bool {
        match &self.kind {
            Kind::Persistent(..) => true,
            Kind::Staged(staged) => staged.inner.is_persistent(),
            _ => false,
        }
    }

    /// Whether the program completes it.
    pub fn is_generalized(&self) -> bool {
        matches!(self.kind, Kind::Generalized(_))
    }

    /// Whether there is an operation to wait for, or one whose completion was not told yet.
    pub fn is_active(&self) -> bool {
        !matches!(*self.state(), State::Inactive)
    }

    /// The process whose doing completes it, where it is known.
    pub fn awaited(&self) -> Option<ProcessId> {
        match &*self.state() {
            State::Transfer(operation) => operation.awaited(),
            State::Posted(_) => self.route().map(Route::peer),
            State::Exchange(exchange) => exchange.receive.awaited(),
            State::Staged => match &self.kind {
                Kind::Staged(staged) => staged.inner.awaited(),
                _ => None,
            },
            State::Partitioned => match (&self.kind, &self.communicator) {
                (Kind::Persistent(specification, _), Some(communicator)) => {
                    specification.partner(communicator)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// How far it is. Does not turn the wheel.
    pub fn readiness(&self, process: &Process) -> Readiness {
        if let Some(readiness) = self.readiness_again(process) {
            return readiness;
        }
        match self.look(process, |state| matches!(state, State::Inactive)) {
            None => Readiness::Pending,
            Some(true) => Readiness::Inactive,
            Some(false) => Readiness::Complete,
        }
    }

    /// Whether its operation is complete (or it is inactive). Does not turn the wheel.
    pub fn is_complete(&self, process: &Process) -> bool {
        self.look(process, |_| ()).is_some()
    }

    /// The status of a completed operation, without telling it: it can be asked for again
    /// (MPI_Request_get_status). Does not turn the wheel.
    pub fn peek(&self, process: &Process) -> Option<Result<Status>> {
        let result = self.look(process, |state| match state {
            State::Complete(result) => result.clone(),
            _ => Ok(Status::EMPTY),
        })?;
        Some(self.queried(result))
    }

    /// Completes an operation of several steps as the call would that does not return before. `None`: it cannot be done so.
    pub(super) fn complete_composite(&self, process: &Process) -> Option<Result<Status>> {
        let State::Composite(activity) = *self.state() else { return None };
        let result = process.complete_activity(activity)?;
        *self.state() = State::Inactive;
        Some(result)
    }

    /// The status of a completed operation, once; then the request is inactive, or over if it is not persistent.
    /// An inactive request gives the empty status. Does not turn the wheel.
    #[inline]
    pub fn poll(&self, process: &Process) -> Option<Result<Status>> {
        match self.kind {
            Kind::Sent => return Some(Ok(Status::EMPTY)),
            // The usual case: what is complete is told at once, and kept nowhere.
            Kind::Once => {
                let mut state = self.state();
                if let State::Transfer(operation) = &mut *state {
                    let outcome = operation.poll(process)?;
                    // A receive from anybody may be pending all the same.
                    if operation.is_taken() {
                        *state = State::Inactive;
                    }
                    return Some(outcome.map(|outcome| self.status(&outcome)));
                }
            }
            Kind::Persistent(..) => match self.poll_again(process) {
                Some(Poll::Ready(status)) => return Some(Ok(status)),
                Some(Poll::Pending) => return None,
                None => {}
            },
            Kind::Generalized(_) | Kind::Staged(_) => {}
        }
        self.poll_any(process)
    }

    #[inline(never)]
    fn poll_any(&self, process: &Process) -> Option<Result<Status>> {
        let (active, result) =
            self.look(process, |state| match std::mem::replace(state, State::Inactive) {
                State::Complete(result) => (true, result),
                _ => (false, Ok(Status::EMPTY)),
            })?;
        let result = self.queried(result);
        if active && let Kind::Generalized(generalized) = &self.kind {
            return Some(generalized.freed(result));
        }
        Some(result)
    }

    /// Runs `seen` on the state if it is inactive or complete.
    fn look<T>(&self, process: &Process, seen: impl FnOnce(&mut State) -> T) -> Option<T> {
        let mut state = self.state();
        if let State::Posted(name) = *state {
            if !process.slots.is_complete(name) && !process.faults.is_active() {
                return None;
            }
            *state = State::Transfer(self.posted(name));
        }
        let result = match &mut *state {
            State::Inactive | State::Complete(_) => return Some(seen(&mut state)),
            State::Sent if matches!(self.kind, Kind::Sent) => {
                return Some(seen(&mut State::Complete(Ok(Status::EMPTY))));
            }
            State::Sent => Some(Ok(Status::EMPTY)),
            State::Posted(_) => return None,
            State::Transfer(operation) => {
                let result = operation.poll(process)?.map(|outcome| self.status(&outcome));
                if !operation.is_taken() {
                    return Some(seen(&mut State::Complete(result)));
                }
                Some(result)
            }
            State::Exchange(exchange) => {
                let Exchange { send, receive } = &mut **exchange;
                let sent = send.as_ref().is_none_or(|send| send.is_complete(process));
                if sent && receive.is_complete(process) {
                    let sent = send.as_mut().and_then(|send| send.poll(process)).unwrap_or(Ok(Outcome::SENT));
                    let received = receive.poll_at_last(process);
                    received.map(|received| sent.and(received).map(|outcome| self.status(&outcome)))
                } else {
                    None
                }
            }
            State::Composite(activity) => process.activities.result(*activity),
            State::Flush(account) => account.is_idle(process).then_some(Ok(Status::EMPTY)),
            State::Partitioned => match &self.kind {
                Kind::Persistent(specification, _) => specification.partitioned_result(process),
                _ => Some(Ok(Status::EMPTY)),
            },
            State::Staged => match &self.kind {
                Kind::Staged(staged) => {
                    let result = staged.poll(process)?;
                    if staged.goes_on() {
                        return Some(seen(&mut State::Complete(result)));
                    }
                    Some(result)
                }
                _ => Some(Ok(Status::EMPTY)),
            },
            State::Generalized => match &self.kind {
                Kind::Generalized(generalized) => generalized.is_complete().then_some(Ok(Status::EMPTY)),
                _ => Some(Ok(Status::EMPTY)),
            },
        }?;
        *state = State::Complete(result);
        Some(seen(&mut state))
    }

    fn status(&self, outcome: &Outcome) -> Status {
        match &self.communicator {
            Some(communicator) => status_of(outcome, communicator),
            None => Status::EMPTY,
        }
    }

    /// For a generalized request, what the user's query function makes of the status. No lock is held meanwhile.
    fn queried(&self, result: Result<Status>) -> Result<Status> {
        match &self.kind {
            Kind::Generalized(generalized) => result.and_then(|status| generalized.query(status)),
            _ => result,
        }
    }

    /// Whether it is a persistent collective operation, which nobody may cancel, however far it is.
    fn is_collective(&self) -> bool {
        matches!(self.kind, Kind::Persistent(Specification::Collective(_), _))
    }

    /// MPI_Cancel: the operation will complete, cancelled or not (MPI 5.0, section 3.8.4).
    pub fn cancel(&self, process: &Process) -> Result<()> {
        if let Kind::Generalized(generalized) = &self.kind {
            return generalized.cancel();
        }
        if let Kind::Staged(staged) = &self.kind {
            return staged.inner.cancel(process);
        }
        let mut state = self.state();
        if let State::Posted(name) = *state {
            *state = State::Transfer(self.posted(name));
        }
        match &mut *state {
            State::Transfer(operation) => {
                operation.cancel(process);
                Ok(())
            }
            State::Inactive => Err(Error::new(
                MPI_ERR_REQUEST,
                "the request is inactive, so that there is nothing to cancel; start it first",
            )),
            // Complete operations complete, whatever is cancelled.
            State::Complete(_) | State::Sent if !self.is_collective() => Ok(()),
            State::Complete(_)
            | State::Sent
            | State::Exchange(_)
            | State::Composite(_)
            | State::Flush(_)
            | State::Generalized
            | State::Posted(_)
            | State::Staged
            | State::Partitioned => Err(Error::new(
                MPI_ERR_REQUEST,
                "this request cannot be cancelled: only sends, receives and generalized requests can; wait for it",
            )),
        }
    }

    /// MPI_Request_free: the operation goes on, but nobody will be told of its completion. The caller has given
    /// up the handle.
    pub fn free(self: &Arc<Self>, process: &Process) -> Result<()> {
        if let Kind::Generalized(generalized) = &self.kind {
            return generalized.abandon();
        }
        if !self.is_complete(process) {
            process.adopt(Arc::clone(self));
        } else if let Some(incoming) = self.partitioned_receive() {
            process.free_partitioned_receive(incoming);
        }
        Ok(())
    }
}
