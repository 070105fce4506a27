//! Making intracommunicators from intracommunicators: duplicates and subsets (MPI 5.0, section 7.4.2).

use super::exchange::{Channel, decode_array, encode, run, start};
use super::{Allocated, Communicator, Context, FIRST_USER_TAG_ON_COLLECTIVE_PLANE, Role};
use crate::attribute::{AttributeStore, ObjectHandle};
use crate::constants::{MPI_ERR_COMM, MPI_ERR_GROUP, MPI_ERR_OTHER, MPI_ERR_TAG};
use crate::group::Group;
use crate::info::Info;
use crate::process::Process;
use crate::request::Request;
use crate::{Error, Result};
use parnass_portals::ProcessId;
use std::sync::Arc;

/// What the leader tells instead of a context when it has none left.
const NO_CONTEXT: u32 = super::UNKNOWN_CONTEXT;

/// The lowest bit of a context is zero; as told by the leader it says that the context is second-hand.
pub(super) const SECOND_HAND: u32 = 1;

/// A context that may become that of a new communicator: taken from this process's own ids, offered to the other
/// members, and given back unless it is used.
pub(super) struct Offer {
    process: Arc<Process>,
    allocated: Option<Allocated>,
}

impl Offer {
    /// Takes an id. If there is none, what is offered is an error for all.
    pub(super) fn new(process: &Arc<Process>) -> Offer {
        Offer { process: process.clone(), allocated: process.context_ids().allocate().ok() }
    }

    /// Nothing is offered, since this process cannot become the leader.
    pub(super) fn none(process: &Arc<Process>) -> Offer {
        Offer { process: process.clone(), allocated: None }
    }

    pub(super) fn to_wire(&self) -> u32 {
        self.allocated.map_or(NO_CONTEXT, |Allocated { context, second_hand }| {
            context.to_wire() | if second_hand { SECOND_HAND } else { 0 }
        })
    }

    /// What was `told` is the context of the new communicator: this offer is used up if it was the one.
    pub(super) fn settle(&mut self, told: u32) -> Result<Context> {
        if told == NO_CONTEXT {
            return Err(Error::new(
                MPI_ERR_OTHER,
                "the first process of the new communicator already leads as many communicators as it can; free \
                 communicators that are no longer used",
            ));
        }
        let context = Context::from_wire(told);
        self.allocated = self.allocated.filter(|own| own.context != context);
        Ok(context)
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        if let Some(allocated) = self.allocated {
            self.process.context_ids().withdraw(allocated);
        }
    }
}

/// Whether a context that was told is second-hand and still names another communicator at this process.
pub(super) fn clashes(process: &Process, told: u32) -> bool {
    told & SECOND_HAND != 0 && process.context_ids().is_in_use(Context::from_wire(told))
}

/// The leader's context for all members of the channel, whose rank 0 leads. Repeated with another id in the rare case
/// that a second-hand one is still in use somewhere.
pub(super) async fn agree(channel: &Channel) -> Result<Context> {
    let process = channel.process();
    if process.context_ids().is_mixed(channel.members()) {
        return agree_between_worlds(None, channel, 0).await;
    }
    loop {
        let mut offer = if channel.rank() == 0 { Offer::new(process) } else { Offer::none(process) };
        let [told] = decode_array(&channel.broadcast(0, encode(&[offer.to_wire()])).await?)?;
        if told & SECOND_HAND != 0 {
            let clashing = channel.allgather(&[u8::from(clashes(process, told))]).await?;
            if clashing.contains(&1) {
                continue;
            }
        }
        return offer.settle(told);
    }
}

/// As [`agree`], for two groups whose leaders are joined by a bridge. `inside` joins a group; `leader` is the rank of its
/// leader. Of the leaders' offers that of the process with the lower number is taken. It is a member of what is made,
/// so that the id comes back to it in the end.
pub(super) async fn agree_across(
    bridge: Option<&Channel>,
    inside: &Channel,
    leader: i32,
    mixed: bool,
) -> Result<Context> {
    let process = inside.process();
    if mixed {
        return agree_between_worlds(bridge, inside, leader).await;
    }
    loop {
        let mut offer = if bridge.is_some() { Offer::new(process) } else { Offer::none(process) };
        let mut chosen = offer.to_wire();
        if let Some(bridge) = bridge {
            let [theirs] = decode_array(&bridge.swap(0, &encode(&[chosen]), 4).await?)?;
            if bridge.member(0).0 < process.me().0 {
                chosen = theirs;
            }
        }
        let [told] = decode_array(&inside.broadcast(leader, encode(&[chosen])).await?)?;
        if told & SECOND_HAND != 0 {
            let mut clashing = inside.allgather(&[u8::from(clashes(process, told))]).await?.contains(&1);
            if let Some(bridge) = bridge {
                clashing |= bridge.swap(0, &[u8::from(clashing)], 1).await? == [1];
            }
            if inside.broadcast(leader, vec![u8::from(clashing)]).await? == [1] {
                continue;
            }
        }
        return offer.settle(told);
    }
}

/// A context for members of several worlds, of which only those of this channel are there yet.
pub(super) async fn agree_among_worlds(channel: &Channel) -> Result<Context> {
    agree_between_worlds(None, channel, 0).await
}

/// As [`agree_across`], or [`agree`] where there is no bridge at all, for members of several worlds: they have no common
/// numbers, so that one is proposed which all of them have free. It is theirs when this returns.
async fn agree_between_worlds(bridge: Option<&Channel>, inside: &Channel, leader: i32) -> Result<Context> {
    let ids = inside.process().context_ids();
    loop {
        let mut chosen = 0;
        if inside.rank() == leader {
            chosen = ids.propose_shared();
        }
        if let Some(bridge) = bridge {
            let [theirs] = decode_array(&bridge.swap(0, &encode(&[chosen]), 4).await?)?;
            chosen = chosen.min(theirs);
        }
        let [told] = decode_array(&inside.broadcast(leader, encode(&[chosen])).await?)?;
        let context = Context::from_wire(told);
        let free = ids.reserve(context);
        let mut clashing = inside.allgather(&[u8::from(!free)]).await?.contains(&1);
        if let Some(bridge) = bridge {
            clashing |= bridge.swap(0, &[u8::from(clashing)], 1).await? == [1];
        }
        if inside.broadcast(leader, vec![u8::from(clashing)]).await? != [1] {
            return Ok(context);
        }
        if free {
            ids.leave(context);
        }
    }
}

impl Communicator {
    /// A communicator with the error handler of `self`, and a context once [`Communicator::set_context`] gives it one.
    pub(super) fn child(&self, process: &Process, group: Group, role: Role) -> Communicator {
        let group = group.within_session(self.group.session());
        let child = Communicator::new(None, role, process.me(), group, None, &self.ids);
        child.set_errhandler(self.errhandler());
        child
    }

    /// MPI_Comm_dup, and MPI_Comm_dup_with_info when `hints` are given. `handle` is the program's name for `self`,
    /// for its copy callbacks.
    ///
    /// # Errors
    /// That of a copy callback; then no process has been told anything.
    pub fn duplicate(
        self: &Arc<Self>,
        process: &Arc<Process>,
        handle: ObjectHandle,
        hints: Option<&Info>,
    ) -> Result<Arc<Communicator>> {
        let (duplicate, request) = self.start_duplicate(process, handle, hints)?;
        process.wait_until(None, || request.poll(process))?;
        Ok(duplicate)
    }

    /// MPI_Comm_idup and MPI_Comm_idup_with_info: the new communicator is usable when the request is complete.
    pub fn start_duplicate(
        self: &Arc<Self>,
        process: &Arc<Process>,
        handle: ObjectHandle,
        hints: Option<&Info>,
    ) -> Result<(Arc<Communicator>, Arc<Request>)> {
        let attributes = self.attributes.copy(handle)?;
        let hints = hints.cloned().unwrap_or_else(|| self.info());
        if self.is_inter() {
            return self.start_duplicate_inter(process, attributes, &hints);
        }
        let duplicate =
            Arc::new(self.child(process, self.group.clone(), Role::Ordinary).with(attributes, &hints));
        if let Some(topology) = self.topology.get() {
            duplicate.set_topology(topology.clone());
        }
        let channel = Channel::all(process, self);
        let target = duplicate.clone();
        let request = start(process, self, async move {
            target.set_context(agree(&channel).await?);
            Ok(())
        });
        Ok((duplicate, request))
    }

    /// A communicator of the same processes for the library's own use: no attributes, no hints, no topology. Collective.
    pub(crate) fn duplicate_for_library(
        self: &Arc<Self>,
        process: &Arc<Process>,
    ) -> Result<Arc<Communicator>> {
        let duplicate = Arc::new(self.child(process, self.group.clone(), Role::Internal));
        let channel = Channel::all(process, self);
        duplicate.set_context(run(process, self, async move { agree(&channel).await })?);
        Ok(duplicate)
    }

    pub(super) fn with(mut self, attributes: AttributeStore, hints: &Info) -> Communicator {
        self.attributes = attributes;
        self.set_info(hints);
        self
    }

    /// MPI_Comm_create: the members of `group` get a communicator, the others nothing. Processes may name different
    /// groups as long as no two overlap.
    pub fn create(
        self: &Arc<Self>,
        process: &Arc<Process>,
        group: &Group,
    ) -> Result<Option<Arc<Communicator>>> {
        group.check_subset_of(&self.group, &format!("the group of {}", self.describe()))?;
        if self.is_inter() {
            return self.create_inter(process, group);
        }
        let tag = self.next_collective_tag();
        if !group.contains(process.me()) {
            return Ok(None);
        }
        self.create_among(process, group, tag).map(Some)
    }

    /// MPI_Comm_create_group: the members of `group` make the communicator, with a tag of their own, and need nobody else.
    /// Who calls it without being a member gets none at once.
    pub fn create_group(
        self: &Arc<Self>,
        process: &Arc<Process>,
        group: &Group,
        tag: i32,
    ) -> Result<Option<Arc<Communicator>>> {
        self.check_intra()?;
        let tag = check_user_tag(tag)?;
        group.check_subset_of(&self.group, &format!("the group of {}", self.describe()))?;
        if !group.contains(process.me()) {
            return Ok(None);
        }
        self.create_among(process, group, FIRST_USER_TAG_ON_COLLECTIVE_PLANE | tag).map(Some)
    }

    /// MPI_Comm_create_from_group, over MPI_COMM_WORLD: `name_tag` tells creations of overlapping groups apart.
    pub fn create_from_group(
        process: &Arc<Process>,
        group: &Group,
        name_tag: &[u8],
        hints: &Info,
        errhandler: crate::Errhandler,
    ) -> Result<Option<Arc<Communicator>>> {
        let world = process.world();
        if !group.is_empty() {
            world.check_member(group, process.me())?;
        }
        let made = world.create_group(process, group, (hash(name_tag) >> 1) as i32)?;
        if let Some(made) = &made {
            made.set_info(hints);
            made.set_errhandler(errhandler);
        }
        Ok(made)
    }

    /// A communicator of the same group for the library's own use; its errors end nothing.
    pub(crate) fn internal(self: &Arc<Self>, process: &Arc<Process>) -> Result<Arc<Communicator>> {
        self.check_intra()?;
        let made = Arc::new(self.child(process, self.group.clone(), Role::Internal));
        made.set_errhandler(crate::Errhandler::Return);
        let channel = Channel::all(process, self);
        made.set_context(run(process, self, async move { agree(&channel).await })?);
        Ok(made)
    }

    fn create_among(
        self: &Arc<Self>,
        process: &Arc<Process>,
        group: &Group,
        tag: u32,
    ) -> Result<Arc<Communicator>> {
        let made = Arc::new(self.child(process, group.clone(), Role::Ordinary));
        let channel = Channel::some(process, self, group.clone(), tag);
        made.set_context(run(process, self, async move { agree(&channel).await })?);
        Ok(made)
    }

    fn check_member(&self, group: &Group, me: ProcessId) -> Result<()> {
        if group.contains(me) {
            return Ok(());
        }
        Err(Error::new(
            MPI_ERR_GROUP,
            "the calling process is not in the group; only its members may make this call",
        ))
    }

    pub(crate) fn check_intra(&self) -> Result<()> {
        if self.is_inter() {
            return Err(Error::new(
                MPI_ERR_COMM,
                format!("{} is an intercommunicator; an intracommunicator is needed here", self.describe()),
            ));
        }
        Ok(())
    }
}

/// A tag of the program, from 0 to MPI_TAG_UB.
pub(super) fn check_user_tag(tag: i32) -> Result<u32> {
    u32::try_from(tag)
        .map_err(|_| Error::new(MPI_ERR_TAG, format!("tag {tag} is negative; tags are 0 to {}", i32::MAX)))
}

/// FNV-1a, 32 bits.
pub(super) fn hash(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
