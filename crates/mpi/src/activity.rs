//! Activities: operations of several steps, which are advanced whenever something has come that they wait for.
//!
//! They stand in one table. No lock of this crate is held while one runs, so that it may call user code, which may call MPI.

use crate::error::Result;
use crate::process::Process;
use crate::progress::service_wheel;
use crate::request::Status;
use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An operation of several steps: a collective, the creation of a communicator.
///
/// It is advanced once when it is started, and again whenever an operation that it has started completes. The
/// operations that it starts must be started inside [`Activity::advance`], which is how they are known to be its.
pub trait Activity: Send {
    /// Does everything that can be done without waiting. `None`: it waits for operations that it has started;
    /// `Some`: it is over, and will not be advanced again.
    fn advance(&mut self, process: &Process) -> Option<Result<Status>>;

    /// The same, waiting, if it can do that: then [`Activity::complete`] may be called.
    fn can_wait(&self) -> bool {
        false
    }

    /// Does all of it, waiting, on the only thread that calls; nothing else will ask for its advance.
    fn complete(&mut self, process: &Process) -> Result<Status> {
        loop {
            if let Some(result) = self.advance(process) {
                return result;
            }
            process.progress();
        }
    }
}

/// For whom an activity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// For the program, which will ask for its result. It may call functions of the program.
    Operation,
    /// The same, but nobody asks for its result.
    Errand,
    /// For other processes: it goes on while the program computes, and nothing waits for its end but who ends it.
    Service,
}

/// What an activity is doing.
enum Stage {
    /// It has gone: the place is free.
    Gone,
    Waiting(Box<dyn Activity>),
    /// Some thread advances it; `again`: another of its operations has completed meanwhile.
    Running {
        again: bool,
    },
    Over(Result<Status>),
}

/// Where an activity stands.
struct Place {
    /// How many have gone from here.
    gone: u32,
    purpose: Purpose,
    stage: Stage,
}

impl Place {
    fn is_of_program(&self) -> bool {
        self.purpose != Purpose::Service
    }
}

/// Names an activity, until it has given its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ActivityName {
    index: u32,
    /// How many had gone from its place.
    gone: u32,
}

/// Whether something that no event tells of has happened.
type Watched = Box<dyn Fn() -> bool + Send>;

/// The activities of a process.
#[derive(Debug, Default)]
pub(crate) struct Activities {
    table: Mutex<Table>,
    /// Whether one is to be advanced, or something is watched for one.
    any_ready: AtomicBool,
    /// How many are under way for the program. Changed under the lock of the table.
    live: AtomicU32,
    /// How many are over whose results nobody has taken. Changed under the lock of the table.
    over: AtomicU32,
    /// How many services run, kept under the lock so that the first begins, and the last ends, what they need.
    services: Mutex<u32>,
}

#[derive(Default)]
struct Table {
    places: Vec<Place>,
    free: Vec<u32>,
    ready: Vec<u32>,
    watched: Vec<(u32, Watched)>,
}

impl fmt::Debug for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Table").field("places", &self.places.len()).finish_non_exhaustive()
    }
}

impl Table {
    /// The activity at a place, for who runs it now. `None`: it is over, or runs already, and then goes round again.
    fn take(&mut self, index: u32) -> Option<Box<dyn Activity>> {
        let stage = &mut self.places[index as usize].stage;
        match stage {
            Stage::Waiting(_) => match std::mem::replace(stage, Stage::Running { again: false }) {
                Stage::Waiting(activity) => Some(activity),
                _ => None,
            },
            Stage::Running { again } => {
                *again = true;
                None
            }
            Stage::Over(_) | Stage::Gone => None,
        }
    }

    /// Frees a place; what stood there.
    fn vacate(&mut self, index: u32) -> Stage {
        let place = &mut self.places[index as usize];
        place.gone = place.gone.wrapping_add(1);
        self.free.push(index);
        std::mem::replace(&mut place.stage, Stage::Gone)
    }

    /// Where one stands that has not gone.
    fn find(&self, name: ActivityName) -> Option<&Place> {
        self.places.get(name.index as usize).filter(|place| place.gone == name.gone)
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

/// Adds to a counter that is changed under a lock.
fn add(counter: &AtomicU32, change: i32) {
    // Pairs with the acquire in `Activities::result`.
    counter.store(counter.load(Ordering::Relaxed).wrapping_add_signed(change), Ordering::Release);
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
        let Table { places, ready, .. } = &mut *table;
        ready.extend(
            (0..).zip(&*places).filter(|(_, one)| !matches!(one.stage, Stage::Gone)).map(|(index, _)| index),
        );
        // Pairs with the acquire in `take_ready`.
        self.any_ready.store(true, Ordering::Release);
    }

    #[inline]
    pub(crate) fn any_ready(&self) -> bool {
        self.any_ready.load(Ordering::Relaxed)
    }

    /// Takes in an activity: what it is doing, by its index.
    fn insert(&self, purpose: Purpose, stage: impl FnOnce(u32) -> Stage) -> ActivityName {
        let mut table = lock(&self.table);
        if purpose != Purpose::Service {
            add(&self.live, 1);
        }
        let index = table.free.pop().unwrap_or_else(|| {
            table.places.push(Place { gone: 0, purpose, stage: Stage::Gone });
            (table.places.len() - 1) as u32
        });
        let place = &mut table.places[index as usize];
        (place.purpose, place.stage) = (purpose, stage(index));
        ActivityName { index, gone: place.gone }
    }

    /// One that was taken waits again. Gives it back if it is to go round again.
    fn wait(&self, index: u32, activity: Box<dyn Activity>) -> Option<Box<dyn Activity>> {
        let stage = &mut lock(&self.table).places[index as usize].stage;
        if matches!(stage, Stage::Running { again: true }) {
            *stage = Stage::Running { again: false };
            return Some(activity);
        }
        *stage = Stage::Waiting(activity);
        None
    }

    /// One that was taken is over.
    fn end(&self, index: u32, result: Result<Status>) {
        let mut table = lock(&self.table);
        table.watched.retain(|(watcher, _)| *watcher != index);
        let place = &mut table.places[index as usize];
        if place.is_of_program() {
            add(&self.live, -1);
        }
        if place.purpose == Purpose::Errand {
            table.vacate(index);
        } else {
            place.stage = Stage::Over(result);
            add(&self.over, 1);
        }
    }

    /// The result of one, once, when it is over.
    pub(crate) fn result(&self, name: ActivityName) -> Option<Result<Status>> {
        // Pairs with the release in `add`.
        if self.over.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut table = lock(&self.table);
        if !matches!(table.find(name)?.stage, Stage::Over(_)) {
            return None;
        }
        add(&self.over, -1);
        match table.vacate(name.index) {
            Stage::Over(result) => Some(result),
            _ => None,
        }
    }

    /// Takes one that waits, and can be completed, out of the table.
    fn take_to_complete(&self, name: ActivityName) -> Option<Box<dyn Activity>> {
        let mut table = lock(&self.table);
        if !matches!(&table.find(name)?.stage, Stage::Waiting(activity) if activity.can_wait()) {
            return None;
        }
        table.watched.retain(|(watcher, _)| *watcher != name.index);
        add(&self.live, -1);
        match table.vacate(name.index) {
            Stage::Waiting(activity) => Some(activity),
            _ => None,
        }
    }

    /// One that is to be advanced, taken; `services`: none but those. `looks`: those for which something has happened that they watch
    /// are among them.
    fn take_ready(&self, services: bool, looks: bool) -> Option<(u32, Box<dyn Activity>)> {
        let mut table = lock(&self.table);
        if looks {
            let Table { ready, watched, .. } = &mut *table;
            ready.extend(watched.iter().filter(|(_, happened)| happened()).map(|(index, _)| *index));
        }
        let mut found = None;
        let mut at = table.ready.len();
        while at > 0 && found.is_none() {
            at -= 1;
            // A mark may outlive its activity; a new activity of the same index then looks once too often.
            let index = table.ready[at];
            if !(services && table.places[index as usize].is_of_program()) {
                table.ready.swap_remove(at);
                found = table.take(index).map(|activity| (index, activity));
            }
        }
        if table.ready.is_empty() && table.watched.is_empty() {
            self.any_ready.store(false, Ordering::Relaxed);
        }
        found
    }

    /// Whether a service has something to do of which no event tells.
    pub(crate) fn is_due(&self) -> bool {
        self.any_ready() && lock(&self.table).watched.iter().any(|(_, happened)| happened())
    }

    /// Whether none is under way.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.live.load(Ordering::Relaxed) == 0
    }
}

impl Process {
    #[cold]
    pub(crate) fn advance_ready(&self, services: bool) {
        let mut looks = true;
        while let Some((index, activity)) = self.activities.take_ready(services, looks) {
            self.advance_one(index, activity);
            looks = false;
        }
    }

    /// Advances one that was taken until it waits or is over.
    fn advance_one(&self, index: u32, mut activity: Box<dyn Activity>) {
        let outer = CURRENT.get();
        loop {
            CURRENT.set(Some(Current { index, immediate: false }));
            if let Some(result) = activity.advance(self) {
                self.activities.end(index, result);
                if self.slots.is_concurrent() {
                    self.wake_waiters(0);
                }
                break;
            }
            if !CURRENT.get().is_some_and(|current| current.immediate) {
                match self.activities.wait(index, activity) {
                    Some(again) => activity = again,
                    None => break,
                }
            }
        }
        CURRENT.set(outer);
    }

    /// Starts an activity; it is advanced a first time before this returns.
    pub(crate) fn start_activity(&self, activity: Box<dyn Activity>) -> ActivityName {
        self.start_for(Purpose::Operation, activity)
    }

    /// Starts one whose result nobody will ask for.
    pub(crate) fn start_errand(&self, activity: Box<dyn Activity>) {
        self.start_for(Purpose::Errand, activity);
    }

    fn start_for(&self, purpose: Purpose, activity: Box<dyn Activity>) -> ActivityName {
        let name = self.activities.insert(purpose, |_| Stage::Running { again: false });
        self.advance_one(name.index, activity);
        name
    }

    /// Takes in an activity that has been advanced before, and waits for operations that it has started: `make` makes their owner
    /// the index that it is given. Only where one thread at a time takes events.
    pub(crate) fn adopt_activity(&self, make: impl FnOnce(u32) -> Box<dyn Activity>) -> ActivityName {
        self.activities.insert(Purpose::Operation, |index| Stage::Waiting(make(index)))
    }

    /// See [`Activity::complete`]; `None` also where other threads may call.
    pub(crate) fn complete_activity(&self, name: ActivityName) -> Option<Result<Status>> {
        if self.slots.is_concurrent() {
            return None;
        }
        let mut activity = self.activities.take_to_complete(name)?;
        // What it calls of the program is not its own doing.
        let outer = CURRENT.take();
        let result = activity.complete(self);
        CURRENT.set(outer);
        Some(result)
    }

    /// Starts an activity for other processes, which goes on while the program computes, until [`Process::end_service`].
    pub(crate) fn start_service(self: &Arc<Self>, activity: Box<dyn Activity>) -> ActivityName {
        {
            let mut services = lock(&self.activities.services);
            if *services == 0 {
                // Those who turn the wheel for it are threads beside those of the program.
                self.admit_thread();
                self.nic().set_wheel(Some(service_wheel(self)));
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
}
