//! Communicators whose members die: User-Level Failure Mitigation.
//!
//! Who is dead, what was revoked and what was agreed comes from the launcher, which every process hears in the same order. Where there is none that does this,
//! nobody is ever told of a death, and agreements are made by messages among the members.

use super::create::{Offer, clashes};
use super::exchange::{Channel, decode, encode, start, start_with_status};
use super::{Communicator, Role};
use crate::constants::{MPI_ERR_UNSUPPORTED_OPERATION, MPI_SUCCESS};
use crate::group::Group;
use crate::process::Process;
use crate::recovery::*;
use crate::request::{Request, Status};
use crate::{Error, Result};
use parnass_portals::ProcessId;
use std::future::poll_fn;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

/// Agreements that one call may need.
const ROUNDS: u32 = 1 << 8;

/// The agreements of one call. Made in the order of the program's calls.
struct Assembly {
    process: Arc<Process>,
    communicator: Arc<Communicator>,
    number: u32,
    /// Where the members must agree by themselves.
    channel: Option<Channel>,
}

impl Assembly {
    fn new(process: &Arc<Process>, communicator: &Arc<Communicator>) -> Result<Assembly> {
        let by_launcher = communicator.is_served(process);
        if !by_launcher && communicator.is_inter() {
            return Err(communicator.not_served("agree"));
        }
        Ok(Assembly {
            process: process.clone(),
            communicator: communicator.clone(),
            number: communicator.next_agreement.fetch_add(1, Ordering::Relaxed).wrapping_mul(ROUNDS),
            channel: (!by_launcher).then(|| Channel::all(process, communicator)),
        })
    }

    /// Gives this process's part and waits for the decision: the same at all members that live.
    async fn agree(&mut self, flag: u32, word: u32) -> Result<Decision> {
        let Assembly { process, communicator, number, channel } = self;
        if let Some(channel) = channel {
            let words = decode(&channel.allgather(&encode(&[flag, word])).await?);
            let flag = words.chunks_exact(2).fold(u32::MAX, |flags, part| flags & part[0]);
            return Ok(Decision { flag, word: words[1], unacknowledged: false, failed: Vec::new() });
        }
        let context = communicator.own_context();
        let acknowledged = communicator.acknowledged_members(process);
        let part = Contribution {
            context,
            number: *number,
            members: communicator.everybody().map(|member| member.0).collect(),
            flag,
            word,
            acknowledged: acknowledged.into_iter().map(|member| member.0).collect(),
        };
        process.appeal(&Appeal::Agree(part))?;
        let asked = *number;
        *number += 1;
        Ok(poll_fn(|_| process.decision(context, asked).map_or(Poll::Pending, Poll::Ready)).await)
    }
}

impl Process {
    fn appeal(&self, appeal: &Appeal) -> Result<()> {
        let recovery = self.recovery().expect("there is a launcher that hears this");
        recovery.appeal(appeal).map_err(|text| Error::new(MPI_ERR_UNSUPPORTED_OPERATION, text))
    }

    /// Returns when all living processes of the job have come so far.
    pub(crate) fn meet_survivors(self: &Arc<Self>) -> Result<()> {
        let world = self.world();
        let mut assembly = Assembly::new(self, world)?;
        let request = start(self, world, async move { assembly.agree(0, 0).await.map(drop) });
        self.wait_until(None, || request.poll(self))?;
        Ok(())
    }
}

impl Communicator {
    /// Its context, whether it has been revoked or not.
    pub(crate) fn own_context(&self) -> u32 {
        self.own_context.load(Ordering::Relaxed)
    }

    /// It has been revoked: nothing that is begun from now on has its context.
    pub(crate) fn forget_context(&self) {
        self.context.store(super::UNKNOWN_CONTEXT, Ordering::Relaxed);
    }

    pub(crate) fn acknowledged(&self) -> u32 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// The members of both sides, in an order that is the same at all of them.
    fn everybody(&self) -> impl Iterator<Item = ProcessId> + '_ {
        let (own, other) = (self.group(), self.peers());
        let own_first = !self.is_inter() || own.process(0).0 < other.process(0).0;
        let (first, second) = if own_first { (own, other) } else { (other, own) };
        let second = second.processes().filter(|_| self.is_inter());
        first.processes().chain(second)
    }

    /// Whether the launcher of this world serves all its members.
    fn is_served(&self, process: &Arc<Process>) -> bool {
        !self.is_mixed() && process.listen()
    }

    #[cold]
    fn not_served(&self, what: &str) -> Error {
        let reason = match self.is_mixed() {
            true => "its members are of several worlds, which have no launcher in common",
            false => "the job was not started by the mpiexec of Parnass, which does that",
        };
        Error::new(
            MPI_ERR_UNSUPPORTED_OPERATION,
            format!("the members of {} cannot {what}: {reason}", self.describe()),
        )
    }

    /// MPIX_Comm_revoke.
    ///
    /// # Errors
    /// The others cannot be told.
    pub fn revoke(&self, process: &Arc<Process>) -> Result<()> {
        let context = self.own_context();
        let alone = self.everybody().all(|member| member == process.me());
        if !alone && !self.is_served(process) {
            return Err(self.not_served("be told that it is revoked"));
        }
        if process.is_revoked(context) {
            return Ok(());
        }
        if !alone {
            process.appeal(&Appeal::Revoke { context })?;
        }
        process.revoke_here(context);
        Ok(())
    }

    /// MPIX_Comm_is_revoked.
    pub fn is_revoked(&self, process: &Arc<Process>) -> bool {
        process.listen();
        process.progress();
        process.is_revoked(self.own_context())
    }

    /// MPIX_Comm_get_failed.
    pub fn failed(&self, process: &Arc<Process>) -> Group {
        process.listen();
        process.progress();
        Group::from_processes(process.dead_of(self)).within_session(self.group.session())
    }

    /// MPIX_Comm_ack_failed: the first `count` dead that MPIX_Comm_get_failed tells are acknowledged. How many are now.
    pub fn acknowledge(&self, process: &Arc<Process>, count: i32) -> i32 {
        process.listen();
        process.progress();
        let dead = process.dead_of(self).len() as u32;
        let wanted = u32::try_from(count).unwrap_or(0).min(dead);
        let before = self.acknowledged.fetch_max(wanted, Ordering::Relaxed);
        process.note_acknowledged(self);
        before.max(wanted) as i32
    }

    /// The dead that the program has acknowledged (MPIX_Comm_failure_get_acked).
    pub fn acknowledged_group(&self, process: &Arc<Process>) -> Group {
        Group::from_processes(self.acknowledged_members(process)).within_session(self.group.session())
    }

    fn acknowledged_members(&self, process: &Process) -> Vec<ProcessId> {
        let mut dead = process.dead_of(self);
        dead.truncate(self.acknowledged() as usize);
        dead
    }

    /// MPIX_Comm_iagree: `tell` gets the bitwise and of the flags of all who live, also when the request then fails because a dead member
    /// was not acknowledged by all.
    pub fn start_agree(
        self: &Arc<Self>,
        process: &Arc<Process>,
        flag: i32,
        tell: impl FnOnce(i32) + Send + 'static,
    ) -> Result<Arc<Request>> {
        let mut assembly = Assembly::new(process, self)?;
        Ok(start(process, self, async move {
            let decision = assembly.agree(flag.cast_unsigned(), 0).await?;
            tell(decision.flag.cast_signed());
            if decision.unacknowledged {
                return Err(Error::new(
                    MPIX_ERR_PROC_FAILED,
                    format!(
                        "a dead process of {} is not acknowledged by all others: call MPIX_Comm_ack_failed; the flag that is told \
                         is that of all who live",
                        assembly.communicator.describe()
                    ),
                ));
            }
            Ok(())
        }))
    }

    /// MPIX_Comm_agree.
    pub fn agree(self: &Arc<Self>, process: &Arc<Process>, flag: i32) -> (i32, Result<()>) {
        let place = Arc::new(Mutex::new(flag));
        let told = place.clone();
        let lock = |place: &Mutex<i32>| *place.lock().unwrap_or_else(PoisonError::into_inner);
        let tell = move |flag| *told.lock().unwrap_or_else(PoisonError::into_inner) = flag;
        let result = self.start_agree(process, flag, tell);
        let result = result.and_then(|request| process.wait_until(None, || request.poll(process)).map(drop));
        (lock(&place), result)
    }

    /// MPIX_Comm_ishrink: `done` gets the communicator of those who live.
    pub fn start_shrink(
        self: &Arc<Self>,
        process: &Arc<Process>,
        done: impl FnOnce(Arc<Communicator>) -> Result<()> + Send + 'static,
    ) -> Result<Arc<Request>> {
        let assembly = Assembly::new(process, self)?;
        Ok(start_with_status(process, self, async move {
            done(assembly.shrink().await?)?;
            Ok(Status { error: MPI_SUCCESS, ..Status::EMPTY })
        }))
    }

    /// MPIX_Comm_shrink.
    pub fn shrink(self: &Arc<Self>, process: &Arc<Process>) -> Result<Arc<Communicator>> {
        let place = Arc::new(Mutex::new(None));
        let made = place.clone();
        let done = move |new| {
            *made.lock().unwrap_or_else(PoisonError::into_inner) = Some(new);
            Ok(())
        };
        let request = self.start_shrink(process, done)?;
        process.wait_until(None, || request.poll(process))?;
        let made = place.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(made.expect("a shrink without an error has made a communicator"))
    }
}

impl Assembly {
    /// The communicator of those who live; for an intercommunicator with the same two sides, without the dead.
    async fn shrink(mut self) -> Result<Arc<Communicator>> {
        let process = self.process.clone();
        let old = self.communicator.clone();
        loop {
            // Of all offers that of the first who lives is taken, and with it who counts as alive.
            let mut offer = Offer::new(&process);
            let decision = self.agree(0, offer.to_wire()).await?;
            let told = decision.word;
            let lives = |member: &ProcessId| !decision.failed.contains(&member.0);
            let left = |group: &Group| Group::from_processes(group.processes().filter(lives).collect());
            let free = !clashes(&process, told);
            if told & super::create::SECOND_HAND != 0 && self.agree(u32::from(free), 0).await?.flag & 1 == 0 {
                continue;
            }
            if old.is_inter() && [old.group(), old.peers()].into_iter().any(|side| left(side).is_empty()) {
                let text = "nobody is left on the other side of the intercommunicator; split off a communicator of this side before";
                return Err(Error::new(MPIX_ERR_PROC_FAILED, text));
            }
            let context = offer.settle(told)?;
            let made = match old.is_inter() {
                false => Arc::new(old.child(&process, left(old.group()), Role::Ordinary)),
                true => Arc::new(old.inter_child(&process, left(old.group()), left(old.peers()))),
            };
            if old.is_inter() && !self.give_local_context(&made).await? {
                continue;
            }
            made.set_context(context);
            return Ok(made);
        }
    }

    /// Gives the hidden communicator of each side its context. `false`, everywhere: one of those whose contexts were taken has died.
    async fn give_local_context(&mut self, made: &Communicator) -> Result<bool> {
        let process = self.process.clone();
        let local = made.local()?.clone();
        let (own, other) = (made.group().clone(), made.peers().clone());
        let mine_first = own.process(0).0 < other.process(0).0;
        let sides = if mine_first { [&own, &other] } else { [&other, &own] };
        for side in sides {
            let leads = side.process(0) == process.me();
            let mut offer = if leads { Offer::new(&process) } else { Offer::none(&process) };
            let told = self.word_of(side.process(0), offer.to_wire()).await?;
            if told == u32::MAX {
                return Ok(false);
            }
            if side.contains(process.me()) {
                local.set_context(offer.settle(told)?);
            }
        }
        Ok(true)
    }

    /// The word of one member; all ones if it has died.
    async fn word_of(&mut self, member: ProcessId, word: u32) -> Result<u32> {
        let flag = if member == self.process.me() { word } else { u32::MAX };
        Ok(self.agree(flag, 0).await?.flag)
    }
}
