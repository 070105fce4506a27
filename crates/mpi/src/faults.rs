//! What a process knows of the death of others, and what follows for its operations.
//!
//! A thread of its own hears the launcher's news and wakes the others; the next thread that turns the wheel takes them in
//! ([`Process::take_in_news`]). From then on every operation that is asked whether it is complete, and is not, is compared with
//! what is known: if it waits for a dead process, or on a revoked communicator, it is ended with an error. As long as nobody has died and nothing was
//! revoked, one flag says so.

use crate::Communicator;
use crate::activity::current_owner;
use crate::comm::{Context, FIRST_PARTITIONED_TAG, Plane, Role, UNKNOWN_CONTEXT};
use crate::error::{Error, Result};
use crate::process::Process;
use crate::recovery::*;
use crate::request::slots::SlotName;
use parnass_portals::{EntryHandle, ProcessId};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What ends an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Revoked,
    /// It needs this process, which is dead.
    Failed(ProcessId),
    /// It takes a message from anybody, and this one of them is dead, which the program has not acknowledged.
    Unacknowledged(ProcessId),
}

impl Fault {
    #[cold]
    pub(crate) fn error(self) -> Error {
        match self {
            Fault::Revoked => Error::new(
                MPIX_ERR_REVOKED,
                "the communicator was revoked, by this process or another; get one that works with MPIX_Comm_shrink, or free it",
            ),
            Fault::Failed(process) => Error::new(
                MPIX_ERR_PROC_FAILED,
                format!(
                    "process {} is dead, and this operation needs it; MPIX_Comm_get_failed tells who is, and MPIX_Comm_shrink \
                     makes a communicator of those who live",
                    process.0
                ),
            ),
            Fault::Unacknowledged(process) => Error::new(
                MPIX_ERR_PROC_FAILED_PENDING,
                format!(
                    "process {} is dead, from which the message might have come; the receive goes on: call MPIX_Comm_ack_failed \
                     to wait for the others, or cancel it",
                    process.0
                ),
            ),
        }
    }
}

/// Whether an error is of those that end a collective operation at once.
pub(crate) fn interrupts(error: &Error) -> bool {
    [MPIX_ERR_PROC_FAILED, MPIX_ERR_REVOKED].contains(&error.class())
}

/// What a process knows.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// There is news that no thread of the program has taken in yet.
    news: AtomicBool,
    inbox: Mutex<VecDeque<News>>,
    /// Somebody has died, or something was revoked.
    active: AtomicBool,
    known: Mutex<Known>,
    /// Whether a thread hears news.
    listens: Mutex<bool>,
}

#[derive(Debug, Default)]
struct Known {
    /// The dead, in the order in which this process has heard of them.
    failed: Vec<ProcessId>,
    /// Contexts of communicators with a dead member, and one such.
    broken: HashMap<u32, ProcessId>,
    /// Contexts of communicators with a dead member that the program has not acknowledged, among those it receives from.
    unacknowledged: HashMap<u32, ProcessId>,
    revoked: HashSet<u32>,
    /// By context and number: what was agreed and nobody has asked for yet, and the activities that wait for it.
    decisions: HashMap<(u32, u32), Decision>,
    waiting: HashMap<(u32, u32), u32>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Faults {
    /// Whether there is news.
    #[inline(always)]
    pub(crate) fn has_news(&self) -> bool {
        self.news.load(Ordering::Relaxed)
    }

    /// Whether anything can be wrong.
    #[inline(always)]
    pub(crate) fn is_active(&self) -> bool {
        self.active.load(Ordering::Relaxed)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }
}

impl Known {
    /// Notes what the dead mean for a communicator.
    fn look_at(&mut self, communicator: &Communicator) {
        let context = communicator.own_context();
        let dead: Vec<ProcessId> = self.dead_of(communicator);
        let Some(first) = dead.first() else { return };
        self.broken.insert(context, *first);
        if communicator.role() == Role::Internal {
            return;
        }
        let unknown = &dead[dead.len().min(communicator.acknowledged() as usize)..];
        match unknown.iter().find(|process| communicator.peers().contains(**process)) {
            Some(process) => self.unacknowledged.insert(context, *process),
            None => self.unacknowledged.remove(&context),
        };
    }

    fn dead_of(&self, communicator: &Communicator) -> Vec<ProcessId> {
        let is_member = |process: &&ProcessId| {
            communicator.group().contains(**process) || communicator.peers().contains(**process)
        };
        self.failed.iter().filter(is_member).copied().collect()
    }
}

impl Process {
    /// Whether the job goes on when a process dies.
    pub fn survives(&self) -> bool {
        self.recovery().is_some_and(|recovery| recovery.survives())
    }

    /// Begins to hear news, unless that was done. `false`: there is nobody who tells any.
    pub(crate) fn listen(self: &Arc<Self>) -> bool {
        let Some(recovery) = self.recovery() else { return false };
        let mut listens = lock(&self.faults.listens);
        if !*listens {
            let (process, recovery) = (Arc::downgrade(self), recovery.clone());
            let hear = move || {
                parnass_base::process::block_signals();
                while let Some(news) = recovery.hear() {
                    let Some(process) = process.upgrade() else { return };
                    process.tell_news(news);
                }
            };
            let thread = std::thread::Builder::new().name("parnass-news".into()).stack_size(128 << 10);
            *listens = thread.spawn(hear).is_ok();
        }
        *listens
    }

    /// News for this process, from whatever thread.
    pub(crate) fn tell_news(&self, news: News) {
        lock(&self.faults.inbox).push_back(news);
        // Pairs with the swap in `take_in_news`.
        self.faults.news.store(true, Ordering::Release);
        self.nic().wake();
    }

    /// Takes in what was told. By a thread of the program that turns the wheel.
    #[cold]
    pub(crate) fn take_in_news(&self) {
        self.faults.news.swap(false, Ordering::Acquire);
        let told = {
            let mut inbox = lock(&self.faults.inbox);
            if !self.bury(&inbox) {
                // What the dead had sent whole is not all here: they count as alive a little longer.
                self.faults.news.store(true, Ordering::Release);
                return;
            }
            std::mem::take(&mut *inbox)
        };
        for news in told {
            match news {
                News::Failed(ranks) => self.note_failed(&ranks),
                News::Revoked { context } => self.note_revoked(context),
                News::Agreed { context, number, decision } => {
                    self.note_failed(&decision.failed);
                    let mut known = self.faults.known();
                    known.decisions.insert((context, number), decision);
                    if let Some(activity) = known.waiting.remove(&(context, number)) {
                        self.activities.mark(activity);
                    }
                }
            }
        }
        // Some wait for what will never come.
        self.activities.mark_all();
        if self.slots.is_concurrent() {
            self.nic().wake();
        }
    }

    /// The processes of these ranks, but for this one.
    fn others(&self, ranks: &[u32]) -> impl Iterator<Item = ProcessId> {
        ranks.iter().copied().filter(|rank| *rank < self.size() && *rank != self.me().0).map(ProcessId)
    }

    /// Buries those whose death is told in the news. `false`: to be called again.
    fn bury(&self, told: &VecDeque<News>) -> bool {
        let mut dead = self.faults.known().failed.clone();
        let known = dead.len();
        for news in told {
            let ranks = match news {
                News::Failed(ranks) => ranks,
                News::Agreed { decision, .. } => &decision.failed,
                News::Revoked { .. } => continue,
            };
            dead.extend(self.others(ranks));
        }
        dead.len() == known || self.nic().bury(&dead)
    }

    fn note_failed(&self, ranks: &[u32]) {
        let new: Vec<ProcessId> = {
            let mut known = self.faults.known();
            let new: Vec<ProcessId> =
                self.others(ranks).filter(|process| !known.failed.contains(process)).collect();
            known.failed.extend(&new);
            new
        };
        if new.is_empty() {
            return;
        }
        new.iter().for_each(|process| self.nic().fail(*process));
        for communicator in self.context_ids().communicators() {
            self.faults.known().look_at(&communicator);
        }
        self.faults.active.store(true, Ordering::Release);
    }

    fn note_revoked(&self, context: u32) {
        if !self.faults.known().revoked.insert(context) {
            return;
        }
        if let Some(communicator) = self.context_ids().communicator(Context::from_wire(context)) {
            self.close(&communicator);
        }
        self.faults.active.store(true, Ordering::Release);
    }

    /// A communicator has got its context: what was heard before concerns it too.
    #[cold]
    pub(crate) fn look_at_new(&self, communicator: &Communicator) {
        let mut known = self.faults.known();
        known.look_at(communicator);
        if known.revoked.contains(&communicator.own_context()) {
            self.close(communicator);
        }
    }

    /// Nothing begins on a revoked communicator any more. What is sent there looks for that from now on.
    fn close(&self, communicator: &Communicator) {
        communicator.forget_context();
        self.nic().look_before_sending(communicator.peers().processes());
    }

    /// What is wrong with an operation with these match bits that needs `peer`, or takes a message from anybody.
    #[cold]
    pub(crate) fn fault(&self, peer: Option<ProcessId>, match_bits: u64) -> Option<Fault> {
        let bits = (match_bits >> 32) as u32;
        let (context, plane) = (bits & !1, bits & 1);
        let known = self.faults.known();
        if context == UNKNOWN_CONTEXT || known.revoked.contains(&context) {
            return Some(Fault::Revoked);
        }
        if let Some(peer) = peer.filter(|peer| known.failed.contains(peer)) {
            return Some(Fault::Failed(peer));
        }
        if plane == Plane::Collective as u32 {
            // What is done with the library's tags is between two, or among a subset of the members.
            let among_all = (match_bits as u32) < FIRST_PARTITIONED_TAG;
            return known.broken.get(&context).filter(|_| among_all).map(|dead| Fault::Failed(*dead));
        }
        match peer {
            Some(_) => None,
            None => known.unacknowledged.get(&context).map(|dead| Fault::Unacknowledged(*dead)),
        }
    }

    /// What is wrong with a collective operation on a communicator.
    #[inline]
    pub(crate) fn fault_of_all(&self, communicator: &Communicator) -> Option<Fault> {
        if !self.faults.is_active() {
            return None;
        }
        self.fault(None, u64::from(communicator.context(Plane::Collective)) << 32)
    }

    /// An error if nothing can be sent to a process with these match bits.
    #[inline]
    pub(crate) fn check_send(&self, target: ProcessId, match_bits: u64) -> Result<()> {
        if !self.faults.is_active() {
            return Ok(());
        }
        self.fault(Some(target), match_bits).map_or(Ok(()), |fault| Err(fault.error()))
    }

    /// An error if a collective operation on a communicator must fail.
    #[inline]
    pub(crate) fn check_all(&self, communicator: &Communicator) -> Result<()> {
        self.fault_of_all(communicator).map_or(Ok(()), |fault| Err(fault.error()))
    }

    /// Ends an operation that something is wrong with, if it is still to be had: its slot is complete then, and has failed. `entry`:
    /// that of a receive. `any`: whether one that takes a message from anybody ends too. Whether it is complete.
    #[cold]
    pub(crate) fn interrupt(
        &self,
        name: SlotName,
        entry: Option<EntryHandle>,
        peer: Option<ProcessId>,
        match_bits: u64,
        any: bool,
    ) -> bool {
        match self.fault(peer, match_bits) {
            None => return false,
            Some(Fault::Unacknowledged(_)) if !any => return false,
            Some(_) => {}
        }
        // What has come counts.
        self.nic().progress(&mut |event| {
            if let Some(owner) = self.slots.deliver(&event) {
                self.activities.mark(owner);
            }
        });
        if self.slots.is_complete(name) {
            return true;
        }
        // What has matched comes, or fails by itself: its bytes may be on their way into the user's memory.
        if entry.is_some_and(|entry| !self.nic().unlink(entry, name.user())) {
            return self.slots.is_complete(name);
        }
        self.slots.fail(name);
        true
    }

    /// Why an operation has failed, where that is known.
    #[cold]
    pub(crate) fn reason(&self, peer: Option<ProcessId>, match_bits: u64) -> Option<Error> {
        if !self.faults.is_active() {
            return None;
        }
        match self.fault(peer, match_bits)? {
            // A blocking receive does not go on.
            Fault::Unacknowledged(process) => Some(Fault::Failed(process).error()),
            fault => Some(fault.error()),
        }
    }

    /// Why an operation has failed whose peer is gone, or could not be reached: this process may not have heard of its death yet.
    #[cold]
    pub(crate) fn reason_of_loss(
        &self,
        peer: Option<ProcessId>,
        match_bits: u64,
        initiator: ProcessId,
    ) -> Option<Error> {
        let unheard = || self.survives().then(|| Fault::Failed(peer.unwrap_or(initiator)).error());
        self.reason(peer, match_bits).or_else(unheard)
    }

    /// Those of a communicator's members that are dead, in the order in which this process has heard of them.
    pub(crate) fn dead_of(&self, communicator: &Communicator) -> Vec<ProcessId> {
        if self.faults.has_news() {
            self.progress();
        }
        self.faults.known().dead_of(communicator)
    }

    /// The program has acknowledged dead members of a communicator.
    pub(crate) fn note_acknowledged(&self, communicator: &Communicator) {
        self.faults.known().look_at(communicator);
    }

    pub(crate) fn is_revoked(&self, context: u32) -> bool {
        self.faults.known().revoked.contains(&context)
    }

    /// The decision of an agreement, once it is there; otherwise the activity that asks is advanced when it is.
    pub(crate) fn decision(&self, context: u32, number: u32) -> Option<Decision> {
        let mut known = self.faults.known();
        let decision = known.decisions.remove(&(context, number));
        if decision.is_none()
            && let Some(activity) = current_owner()
        {
            known.waiting.insert((context, number), activity);
        }
        decision
    }

    /// A communicator is gone: its context may name another one.
    pub(crate) fn forget_faults(&self, context: u32) {
        let mut known = self.faults.known();
        known.broken.remove(&context);
        known.unacknowledged.remove(&context);
        known.revoked.remove(&context);
    }

    /// This process revokes a communicator.
    pub(crate) fn revoke_here(&self, context: u32) {
        self.tell_news(News::Revoked { context });
        self.take_in_news();
    }
}
