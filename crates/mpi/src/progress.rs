//! Progress: the one function that turns the wheel, and the one loop that waits.
//!
//! [`Process::progress`] drains the events of the NIC, completes the operations that they name, and advances the
//! activities (collectives and other operations of several steps) that waited for one of these operations.
//! Nothing else in this crate asks the NIC for events.
//!
//! No lock of this crate is held while an activity runs, so that it may call user code, which may call MPI.

use crate::error::Result;
use crate::process::Process;
use crate::request::Status;
use crate::request::slots::SlotName;
use parnass_portals::{Company, Event, ProcessId, Sink, Ticket, Wheel};
use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// An operation of several steps: a collective, the creation of a communicator.
///
/// It is advanced once when it is started, and again whenever an operation that it has started completes. The
/// operations that it starts must be started inside [`Activity::advance`], which is how they are known to be its.
pub trait Activity: Send {
    /// Does everything that can be done without waiting. `None`: it waits for operations that it has started;
    /// `Some`: it is over, and will not be advanced again.
    fn advance(&mut self, process: &Process) -> Option<Result<Status>>;
}

/// What an activity is doing.
enum Stage {
    Waiting(Box<dyn Activity>),
    /// Some thread advances it; `again`: another of its operations has completed meanwhile.
    Running {
        again: bool,
    },
    Finished(Option<Result<Status>>),
}

/// For whom an activity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// For the program, which will ask for its result. It may call functions of the program.
    Operation,
    /// For other processes: it goes on while the program computes, and nothing waits for its end but who ends it.
    Service,
}

/// Whether something that no event tells of has happened.
type Watched = Box<dyn Fn() -> bool + Send>;

/// An activity that has been started, shared by its request and the table of activities.
pub(crate) struct Composite {
    purpose: Purpose,
    stage: Mutex<Stage>,
    finished: AtomicBool,
}

impl fmt::Debug for Composite {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Composite").field("finished", &self.is_finished()).finish()
    }
}

impl Composite {
    pub(crate) fn is_finished(&self) -> bool {
        // Pairs with the release in `advance_one`.
        self.finished.load(Ordering::Acquire)
    }

    /// Its result, once, when it is finished.
    pub(crate) fn take_result(&self) -> Option<Result<Status>> {
        match &mut *lock(&self.stage) {
            Stage::Finished(result) => result.take(),
            _ => None,
        }
    }
}

/// The activities of a process that are under way.
#[derive(Debug, Default)]
pub(crate) struct Activities {
    table: Mutex<Table>,
    /// Whether one is to be advanced, or something is watched for one.
    any_ready: AtomicBool,
    /// How many are under way for the program.
    live: AtomicU32,
    /// How many services run, kept under the lock so that the first begins, and the last ends, what they need.
    services: Mutex<u32>,
}

#[derive(Default)]
struct Table {
    activities: Vec<Option<Arc<Composite>>>,
    free: Vec<u32>,
    ready: Vec<u32>,
    watched: Vec<(u32, Watched)>,
}

impl fmt::Debug for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Table").field("activities", &self.activities).finish_non_exhaustive()
    }
}

/// What the activity that this thread advances has done.
#[derive(Clone, Copy)]
struct Current {
    index: u32,
    /// It started an operation that was complete at once, so that no event will ask for its advance.
    immediate: bool,
}

thread_local! {
    /// The activity that this thread advances: the owner of the operations that it starts.
    static CURRENT: Cell<Option<Current>> = const { Cell::new(None) };
}

/// The activity that will own an operation that is started now.
#[inline]
pub(crate) fn current_owner() -> Option<u32> {
    CURRENT.get().map(|current| current.index)
}

/// Tells the activity that advances on this thread that an operation was complete at once.
#[inline]
pub(crate) fn note_immediate() {
    if let Some(current) = CURRENT.get() {
        CURRENT.set(Some(Current { immediate: true, ..current }));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Activities {
    /// One of its operations has completed.
    #[inline(never)]
    pub(crate) fn mark(&self, index: u32) {
        lock(&self.table).ready.push(index);
        // Pairs with the acquire in `take_ready`.
        self.any_ready.store(true, Ordering::Release);
    }

    /// All are to look again: what they wait for may never come.
    pub(crate) fn mark_all(&self) {
        let mut table = lock(&self.table);
        let Table { activities, ready, .. } = &mut *table;
        ready.extend((0..).zip(activities.iter()).filter(|(_, one)| one.is_some()).map(|(index, _)| index));
        // Pairs with the acquire in `take_ready`.
        self.any_ready.store(true, Ordering::Release);
    }

    fn any_ready(&self) -> bool {
        self.any_ready.load(Ordering::Relaxed)
    }

    fn insert(&self, composite: Arc<Composite>) -> u32 {
        if composite.purpose == Purpose::Operation {
            self.live.fetch_add(1, Ordering::Relaxed);
        }
        let mut table = lock(&self.table);
        if let Some(index) = table.free.pop() {
            table.activities[index as usize] = Some(composite);
            return index;
        }
        table.activities.push(Some(composite));
        (table.activities.len() - 1) as u32
    }

    fn remove(&self, index: u32) {
        let mut table = lock(&self.table);
        let composite = table.activities[index as usize].take();
        table.free.push(index);
        table.watched.retain(|(watcher, _)| *watcher != index);
        if composite.is_some_and(|composite| composite.purpose == Purpose::Operation) {
            self.live.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// One that is to be advanced; `services`: none but those.
    fn take_ready(&self, services: bool) -> Option<(u32, Arc<Composite>)> {
        let mut table = lock(&self.table);
        let Table { activities, ready, watched, .. } = &mut *table;
        let mut at = ready.len();
        while at > 0 {
            at -= 1;
            // A mark may outlive its activity; a new activity of the same index then looks once too often.
            match &activities[ready[at] as usize] {
                Some(composite) if services && composite.purpose == Purpose::Operation => {}
                Some(composite) => {
                    let composite = Arc::clone(composite);
                    return Some((ready.swap_remove(at), composite));
                }
                None => drop(ready.swap_remove(at)),
            }
        }
        if ready.is_empty() && watched.is_empty() {
            self.any_ready.store(false, Ordering::Relaxed);
        }
        None
    }

    /// Marks those for which something has happened that they watch.
    fn mark_watched(&self) {
        let mut table = lock(&self.table);
        let Table { ready, watched, .. } = &mut *table;
        ready.extend(watched.iter().filter(|(_, happened)| happened()).map(|(index, _)| *index));
    }

    /// Whether a service has something to do of which no event tells.
    fn is_due(&self) -> bool {
        self.any_ready() && {
            let table = lock(&self.table);
            table.watched.iter().any(|(_, happened)| happened())
        }
    }

    /// Whether none is under way.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.live.load(Ordering::Relaxed) == 0
    }
}

/// Completes the operations that events name.
struct Delivery<'a> {
    process: &'a Process,
    /// Whether several threads may wait.
    concurrent: bool,
    /// The only operation that the caller waits for, if it is one.
    mine: Option<SlotName>,
    /// Whether another thread may wait for what has come.
    for_others: bool,
}

impl Sink for Delivery<'_> {
    #[inline(always)]
    fn hear(&mut self, event: Event) {
        if self.concurrent {
            self.for_others |= self.mine.is_none_or(|mine| mine.user() != event.user);
        }
        if let Some(owner) = self.process.slots.deliver(&event) {
            self.process.activities.mark(owner);
        }
    }
}

impl Process {
    /// Turns the wheel once: takes what the NIC has to tell, completes the operations concerned, and advances the
    /// activities that waited for them. Returns whether anything happened. Never blocks.
    #[inline]
    pub fn progress(&self) -> bool {
        self.progress_among(0, None)
    }

    /// As [`Process::progress`], for a call that tells whether something has happened and that programs repeat until it has:
    /// where ranks share processors, who finds nothing lets another run.
    pub fn progress_for_test(&self) {
        if !self.progress() {
            self.nic().step_aside();
        }
    }

    /// `myself`: 1 when the caller is counted among the waiters, so that it does not wake itself. `mine`: the only
    /// operation that it waits for, if it is one.
    #[inline]
    fn progress_among(&self, myself: u32, mine: Option<SlotName>) -> bool {
        let concurrent = self.slots.is_concurrent();
        let mut delivery = Delivery { process: self, concurrent, mine, for_others: false };
        let happened = self.nic().progress(&mut delivery);
        // Where other threads may wait only since a moment ago, nobody has noted what is theirs.
        let for_others = delivery.for_others || !concurrent;
        if self.faults.has_news() {
            self.take_in_news();
        }
        if self.activities.any_ready() {
            self.advance_ready(false);
        }
        // Threads that probe wait for unexpected messages, which come without an event. Whoever began before the NIC took
        // one in is seen here: the NIC's lock is between the two.
        let for_probers = || happened && self.probers.load(Ordering::Relaxed) != 0;
        if self.slots.is_concurrent() && (for_others || for_probers()) {
            self.wake_waiters(myself);
        }
        self.observer().tell();
        happened
    }

    /// Wakes the threads of this process that sleep in a wait, because something that they may wait for has
    /// happened without the NIC's doing.
    pub(crate) fn wake_waiters(&self, myself: u32) {
        // Pairs with the fence in `sleep`: either the waiter is seen here, or it sees what was done before.
        fence(Ordering::SeqCst);
        if self.waiters.load(Ordering::Relaxed) > myself {
            self.nic().wake();
        }
    }

    /// Has an activity advanced by the next thread that turns the wheel, and wakes those that sleep. For a thread of this
    /// library that has done what the activity waits for, and turns no wheel itself.
    pub(crate) fn advance_soon(&self, activity: u32) {
        self.activities.mark(activity);
        self.nic().wake();
    }

    #[cold]
    fn advance_ready(&self, services: bool) {
        self.activities.mark_watched();
        while let Some((index, composite)) = self.activities.take_ready(services) {
            self.advance_one(index, &composite);
        }
    }

    /// Turns the wheel for the services while the program computes. What has come for its own operations is noted, and is left to it.
    fn turn_for_services(&self) -> bool {
        let mut happened = self.nic().progress(&mut |event: Event| {
            if let Some(owner) = self.slots.deliver(&event) {
                self.activities.mark(owner);
            }
        });
        if self.faults.has_news() {
            self.take_in_news();
        }
        if self.activities.any_ready() {
            happened |= self.activities.is_due();
            self.advance_ready(true);
        }
        if happened {
            self.wake_waiters(0);
        }
        happened
    }

    /// Advances one activity until it waits; if another thread does so already, that one goes round again.
    fn advance_one(&self, index: u32, composite: &Composite) {
        let mut activity = {
            let mut stage = lock(&composite.stage);
            match std::mem::replace(&mut *stage, Stage::Running { again: false }) {
                Stage::Waiting(activity) => activity,
                Stage::Running { .. } => {
                    *stage = Stage::Running { again: true };
                    return;
                }
                Stage::Finished(result) => {
                    *stage = Stage::Finished(result);
                    return;
                }
            }
        };
        let outer = CURRENT.get();
        loop {
            CURRENT.set(Some(Current { index, immediate: false }));
            let result = activity.advance(self);
            let immediate = CURRENT.get().is_some_and(|current| current.immediate);
            if result.is_none() && immediate {
                continue;
            }
            let mut stage = lock(&composite.stage);
            match (result, &*stage) {
                (None, Stage::Running { again: true }) => *stage = Stage::Running { again: false },
                (None, _) => {
                    *stage = Stage::Waiting(activity);
                    break;
                }
                (result, _) => {
                    *stage = Stage::Finished(result);
                    drop(stage);
                    // Pairs with the acquire in `is_finished`.
                    composite.finished.store(true, Ordering::Release);
                    self.activities.remove(index);
                    if self.slots.is_concurrent() {
                        self.wake_waiters(0);
                    }
                    break;
                }
            }
        }
        CURRENT.set(outer);
    }

    /// Starts an activity; it is advanced a first time before this returns.
    pub(crate) fn start_activity(&self, activity: Box<dyn Activity>) -> Arc<Composite> {
        self.start_for(Purpose::Operation, activity)
    }

    /// Starts an activity for other processes, which goes on while the program computes, until [`Process::end_service`].
    pub(crate) fn start_service(self: &Arc<Self>, activity: Box<dyn Activity>) -> Arc<Composite> {
        {
            let mut services = lock(&self.activities.services);
            if *services == 0 {
                // Those who turn the wheel for it are threads beside those of the program.
                self.admit_thread();
                self.nic().set_wheel(Some(Arc::new(ServiceWheel(Arc::downgrade(self)))));
            }
            *services += 1;
        }
        self.start_for(Purpose::Service, activity)
    }

    /// A service is over. To be called by the thread that has ended it.
    pub(crate) fn end_service(&self) {
        let mut services = lock(&self.activities.services);
        *services -= 1;
        if *services == 0 {
            self.nic().set_wheel(None);
        }
    }

    /// Has the activity that advances on this thread advanced when `happened` says so, as long as it is not over: for what no event
    /// tells of, and who does it rings the process and its helper. Replaces what it has watched before.
    pub(crate) fn watch_in_activity(&self, happened: Watched) {
        let Some(index) = current_owner() else { return };
        let mut table = lock(&self.activities.table);
        table.watched.retain(|(watcher, _)| *watcher != index);
        table.watched.push((index, happened));
        // Pairs with the acquire in `take_ready`.
        self.activities.any_ready.store(true, Ordering::Release);
    }

    /// The activity that advances on this thread watches nothing any more.
    pub(crate) fn watch_no_more(&self) {
        let Some(index) = current_owner() else { return };
        lock(&self.activities.table).watched.retain(|(watcher, _)| *watcher != index);
    }

    fn start_for(&self, purpose: Purpose, activity: Box<dyn Activity>) -> Arc<Composite> {
        let composite = Arc::new(Composite {
            purpose,
            stage: Mutex::new(Stage::Waiting(activity)),
            finished: AtomicBool::new(false),
        });
        let index = self.activities.insert(Arc::clone(&composite));
        self.advance_one(index, &composite);
        composite
    }

    /// Waits until `poll` has a value, turning the wheel meanwhile; sleeps when nothing happens.
    ///
    /// `poll` looks at something that progress changes: the state of an operation or of a request. `awaited` is
    /// the process that this one waits for, where it is known: the NIC works for it while waiting.
    #[inline]
    pub fn wait_until<T>(&self, awaited: Option<ProcessId>, poll: impl FnMut() -> Option<T>) -> T {
        self.wait_for(None, awaited, poll)
    }

    /// As [`Process::wait_until`], for what only the operation `mine` changes, if it is given.
    #[inline]
    pub(crate) fn wait_for<T>(
        &self,
        mine: Option<SlotName>,
        awaited: Option<ProcessId>,
        mut poll: impl FnMut() -> Option<T>,
    ) -> T {
        let value = loop {
            if let Some(value) = poll() {
                break value;
            }
            self.nic().will_look(awaited);
            if self.progress_among(0, mine) {
                continue;
            }
            let wait = |ticket, company| self.nic().wait(ticket, awaited, None, company);
            if let Some(value) = self.sleep(mine, &mut poll, wait) {
                break value;
            }
        };
        self.nic().leave();
        value
    }

    /// Waits for something that peers do on a board, turning the wheel meanwhile. They ring when they have done it.
    pub(crate) fn wait_watching(&self, awaited: Option<ProcessId>, ready: &dyn Fn() -> bool) {
        let mut poll = || ready().then_some(());
        while poll().is_none() {
            if !self.progress() {
                self.sleep(None, &mut poll, |ticket, company| {
                    self.nic().wait_watching(ticket, awaited, company, ready);
                });
            }
        }
        self.nic().leave();
    }

    /// One round of sleep, unless there is something to do; what `poll` gave if it gave something.
    #[inline]
    fn sleep<T>(
        &self,
        mine: Option<SlotName>,
        poll: &mut impl FnMut() -> Option<T>,
        wait: impl FnOnce(Ticket, Company),
    ) -> Option<T> {
        let concurrent = self.slots.is_concurrent();
        let mut company = Company::None;
        if concurrent {
            if self.waiters.fetch_add(1, Ordering::SeqCst) > 0 {
                company = Company::Others;
            }
            // Pairs with the fence in `wake_waiters`.
            fence(Ordering::SeqCst);
        }
        let ticket = self.nic().ticket();
        let happened = self.progress_among(u32::from(concurrent), mine);
        let value = poll();
        if value.is_none() && !happened {
            wait(ticket, company);
        }
        if concurrent {
            self.waiters.fetch_sub(1, Ordering::SeqCst);
        }
        value
    }

    /// How many threads sleep in a wait or are about to.
    pub fn waiters(&self) -> u32 {
        self.waiters.load(Ordering::Relaxed)
    }
}

/// Turns the wheel of a process that computes, for its services.
struct ServiceWheel(Weak<Process>);

impl Wheel for ServiceWheel {
    fn turn(&self) -> bool {
        self.0.upgrade().is_some_and(|process| process.turn_for_services())
    }

    fn is_due(&self) -> bool {
        self.0.upgrade().is_some_and(|process| process.activities.is_due())
    }
}

/// The counter of sleepers of a process.
pub(crate) type Waiters = AtomicU32;
