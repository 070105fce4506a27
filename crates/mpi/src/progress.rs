//! Progress: the one function that turns the wheel, and the one loop that waits.
//!
//! [`Process::progress`] drains the events of the NIC, completes the operations that they name, and advances the
//! activities (collectives and other operations of several steps) that waited for one of these operations.
//! Nothing else in this crate asks the NIC for events.
//!
//! No lock of this crate is held while an activity runs, so that it may call user code, which may call MPI.

use crate::process::Process;
use crate::request::slots::SlotName;
use parnass_portals::{Company, Event, ProcessId, Sink, Ticket, Wheel};
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::sync::{Arc, Weak};

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

/// What turns the wheel of a process while it computes.
pub(crate) fn service_wheel(process: &Arc<Process>) -> Arc<dyn Wheel> {
    Arc::new(ServiceWheel(Arc::downgrade(process)))
}

/// The counter of sleepers of a process.
pub(crate) type Waiters = AtomicU32;
