//! Intercommunicators: making them, and making others from them (MPI 5.0, section 7.6).
//!
//! The two groups talk through their leaders; within its group a leader talks over a hidden intracommunicator.

use super::create::{agree, agree_across, check_user_tag, hash};
use super::exchange::{Channel, decode, decode_array, encode, run, start};
use super::{Communicator, FIRST_USER_TAG_ON_COLLECTIVE_PLANE, Remote, Role};
use crate::attribute::AttributeStore;
use crate::constants::{MPI_ERR_COMM, MPI_ERR_GROUP, MPI_ERR_OTHER, MPI_ERR_RANK};
use crate::group::Group;
use crate::info::Info;
use crate::process::Process;
use crate::request::Request;
use crate::{Error, Result};
use parnass_portals::ProcessId;
use std::sync::Arc;

/// The processes of a group, as they travel within a world.
fn members_of(group: &Group) -> Vec<u8> {
    encode(&group.processes().map(|process| process.0).collect::<Vec<_>>())
}

/// With the size of a group: some of its processes are of several worlds.
const MIXED: u32 = 1 << 31;

fn group_from(members: &[u8]) -> Group {
    Group::from_processes(decode(members).into_iter().map(ProcessId).collect())
}

/// What a leader tells its group instead of the size of the other group when its arguments are wrong.
const REFUSED: u32 = u32::MAX;

/// The leaders tell each other their groups over `bridge` and then tell their own groups: returns the other group.
/// Only the leader, of rank `leader` inside, has a bridge; it leads to one process.
async fn introduce(bridge: Option<&Channel>, inside: &Channel, leader: i32, own: &Group) -> Result<Group> {
    let ids = inside.process().context_ids();
    let mut size = 0;
    if let Some(bridge) = bridge {
        let mixed = ids.is_mixed(own) || ids.is_mixed(bridge.members());
        let own = own.size() as u32 | if mixed { MIXED } else { 0 };
        [size] = decode_array(&bridge.swap(0, &encode(&[own]), 4).await?)?;
        size |= own & MIXED;
    }
    let [size] = decode_array(&inside.broadcast(leader, encode(&[size])).await?)?;
    if size != REFUSED && size & MIXED != 0 {
        return super::meet::introduce(bridge, inside, leader).await;
    }
    if size == REFUSED {
        return Err(Error::new(
            MPI_ERR_OTHER,
            "the leader of the local group could not reach the other group; its own error says why",
        ));
    }
    let mut members = vec![0; 4 * size as usize];
    if let Some(bridge) = bridge {
        members = bridge.swap(0, &members_of(own), members.len()).await?;
    }
    Ok(group_from(&inside.broadcast(leader, members).await?))
}

/// Gives a new intercommunicator its contexts. `inside` joins its local group; the leader's `bridge` leads to the other
/// group's leader.
async fn connect(
    made: &Arc<Communicator>,
    bridge: Option<&Channel>,
    inside: &Channel,
    leader: i32,
) -> Result<()> {
    let context = agree_across(bridge, inside, leader, made.is_mixed()).await?;
    made.local()?.set_context(agree(inside).await?);
    made.set_context(context);
    Ok(())
}

impl Communicator {
    /// An intercommunicator without contexts yet, whose hidden local communicator has none either.
    pub(super) fn inter_child(&self, process: &Process, local: Group, remote: Group) -> Communicator {
        let hidden = Arc::new(self.child(process, local.clone(), Role::Internal));
        let mut child = self.child(process, local, Role::Ordinary);
        child.mixed |= self.ids.is_mixed(&remote);
        child.remote = Some(Remote { group: remote, local: hidden });
        child
    }

    pub(super) fn local(&self) -> Result<&Arc<Communicator>> {
        self.local_communicator().ok_or_else(|| self.not_inter())
    }

    /// MPI_Intercomm_create. `peer` and `remote_leader` count only at the process of rank `local_leader`.
    pub fn create_intercommunicator(
        self: &Arc<Self>,
        process: &Arc<Process>,
        local_leader: i32,
        peer: Option<&Arc<Communicator>>,
        remote_leader: i32,
        tag: i32,
    ) -> Result<Arc<Communicator>> {
        self.check_intra()?;
        let tag = check_user_tag(tag)?;
        if !(0..self.size()).contains(&local_leader) {
            return Err(Error::new(
                MPI_ERR_RANK,
                format!(
                    "local_leader is {local_leader}; it must be a rank of {}, 0 to {}",
                    self.describe(),
                    self.size() - 1
                ),
            ));
        }
        let leads = self.rank() == local_leader;
        let bridge = leads.then(|| self.bridge(process, peer, remote_leader, tag));
        self.join_groups(process, local_leader, bridge)
    }

    /// The leader's way to the other leader: rank 0 of the channel's group.
    fn bridge(
        &self,
        process: &Arc<Process>,
        peer: Option<&Arc<Communicator>>,
        remote_leader: i32,
        tag: u32,
    ) -> Result<Channel> {
        let peer = peer.ok_or_else(|| {
            Error::new(
                MPI_ERR_COMM,
                "peer_comm is MPI_COMM_NULL at the local leader; the leaders need a communicator that has both of them",
            )
        })?;
        if !(0..peer.remote_size()).contains(&remote_leader) {
            return Err(Error::new(
                MPI_ERR_RANK,
                format!(
                    "remote_leader is {remote_leader}; it must be a rank of {}, 0 to {}",
                    peer.describe(),
                    peer.remote_size() - 1
                ),
            ));
        }
        let other = peer.peer(remote_leader);
        if self.group.contains(other) {
            return Err(Error::new(
                MPI_ERR_RANK,
                format!(
                    "remote_leader is {remote_leader}, a process of the local group; it must be one of the other group, \
                     which must not overlap with the local one"
                ),
            ));
        }
        Ok(Channel::some(process, peer, Group::single(other), FIRST_USER_TAG_ON_COLLECTIVE_PLANE | tag))
    }

    fn join_groups(
        self: &Arc<Self>,
        process: &Arc<Process>,
        leader: i32,
        bridge: Option<Result<Channel>>,
    ) -> Result<Arc<Communicator>> {
        let inside = Channel::all(process, self);
        let parent = self.clone();
        run(process, self, async move {
            let bridge = match bridge.transpose() {
                Ok(bridge) => bridge,
                Err(error) => {
                    inside.broadcast(leader, encode(&[REFUSED])).await?;
                    return Err(error);
                }
            };
            let remote = introduce(bridge.as_ref(), &inside, leader, parent.group()).await?;
            if let Some(both) = remote.processes().find(|&process| parent.group().contains(process)) {
                return Err(Error::new(
                    MPI_ERR_GROUP,
                    format!(
                        "process {} of the job is in both groups; the groups of an intercommunicator must not overlap",
                        both.0
                    ),
                ));
            }
            let made = Arc::new(parent.inter_child(inside.process(), parent.group().clone(), remote));
            connect(&made, bridge.as_ref(), &inside, leader).await?;
            Ok(made)
        })
    }

    /// MPI_Intercomm_create_from_groups, over MPI_COMM_WORLD. The remote group's members count at the local leader only.
    pub fn create_intercommunicator_from_groups(
        process: &Arc<Process>,
        local: &Group,
        local_leader: i32,
        remote: &Group,
        remote_leader: i32,
        name_tag: &[u8],
        hints: &Info,
        errhandler: crate::Errhandler,
    ) -> Result<Option<Arc<Communicator>>> {
        let tag = (hash(name_tag) >> 1) as i32;
        let world = process.world();
        let Some(base) = world.create_group(process, local, tag)? else { return Ok(None) };
        let remote_rank = if base.rank() == local_leader {
            if !(0..remote.size()).contains(&remote_leader) {
                return Err(Error::new(
                    MPI_ERR_RANK,
                    format!(
                        "remote_leader is {remote_leader}; it must be a rank of the remote group, 0 to {}",
                        remote.size() - 1
                    ),
                ));
            }
            world.rank_of(remote.process(remote_leader))
        } else {
            0
        };
        let made = base.create_intercommunicator(process, local_leader, Some(world), remote_rank, tag)?;
        made.set_info(hints);
        made.set_errhandler(errhandler);
        Ok(Some(made))
    }

    pub(super) fn start_duplicate_inter(
        self: &Arc<Self>,
        process: &Arc<Process>,
        attributes: AttributeStore,
        hints: &Info,
    ) -> Result<(Arc<Communicator>, Arc<Request>)> {
        let local = self.local()?;
        let duplicate = self.inter_child(process, self.group.clone(), self.peers().clone());
        let duplicate = Arc::new(duplicate.with(attributes, hints));
        let bridge = self.bridge_of_leader(process);
        let inside = Channel::all(process, local);
        let target = duplicate.clone();
        let request =
            start(process, self, async move { connect(&target, bridge.as_ref(), &inside, 0).await });
        Ok((duplicate, request))
    }

    /// From the local leader to the other one, at the local leader. Draws a tag everywhere.
    pub(super) fn bridge_of_leader(self: &Arc<Self>, process: &Arc<Process>) -> Option<Channel> {
        let tag = self.next_collective_tag();
        (self.rank() == 0).then(|| Channel::some(process, self, Group::single(self.peer(0)), tag))
    }

    /// An intercommunicator of subsets of the two groups of `self`, at the members; the tags are of `self` and of its
    /// hidden local communicator.
    pub(super) async fn connect_subsets(
        self: &Arc<Self>,
        process: &Arc<Process>,
        local: Group,
        remote: Group,
        tags: [u32; 2],
    ) -> Result<Option<Arc<Communicator>>> {
        if remote.is_empty() || !local.contains(process.me()) {
            return Ok(None);
        }
        let leads = local.process(0) == process.me();
        let bridge = leads.then(|| Channel::some(process, self, Group::single(remote.process(0)), tags[0]));
        let inside = Channel::some(process, self.local()?, local.clone(), tags[1]);
        let made = Arc::new(self.inter_child(process, local, remote));
        connect(&made, bridge.as_ref(), &inside, 0).await?;
        Ok(Some(made))
    }

    /// MPI_Comm_create on an intercommunicator: all processes of a side name the same group of that side.
    pub(super) fn create_inter(
        self: &Arc<Self>,
        process: &Arc<Process>,
        group: &Group,
    ) -> Result<Option<Arc<Communicator>>> {
        let local = self.local()?;
        let bridge = self.bridge_of_leader(process);
        let inside = Channel::all(process, local);
        let tags = [self.next_collective_tag(), local.next_collective_tag()];
        let (parent, group) = (self.clone(), group.clone());
        run(process, self, async move {
            // Ranks, since the sides may number processes differently.
            let ranks: Vec<u32> = group
                .processes()
                .map(|process| parent.group().rank_of(process).unwrap_or(0) as u32)
                .collect();
            let mut theirs = Vec::new();
            if let Some(bridge) = &bridge {
                theirs = bridge.swap_any(0, &encode(&ranks)).await?;
            }
            let theirs = decode(&inside.broadcast_any(0, theirs).await?);
            let remote = theirs.into_iter().map(|rank| parent.peers().process(rank as i32)).collect();
            let remote = Group::from_processes(remote);
            parent.connect_subsets(inside.process(), group, remote, tags).await
        })
    }

    /// MPI_Intercomm_merge: the group whose processes gave `high` false comes first; if both gave the same, the
    /// group of the leader with the lower process number.
    pub fn merge(self: &Arc<Self>, process: &Arc<Process>, high: bool) -> Result<Arc<Communicator>> {
        let local = self.local()?;
        let bridge = self.bridge_of_leader(process);
        let inside = Channel::all(process, local);
        let parent = self.clone();
        run(process, self, async move {
            let mut first = false;
            if let Some(bridge) = &bridge {
                let their_high = bridge.swap(0, &[u8::from(high)], 1).await? == [1];
                let [ours, theirs] = [parent.group(), parent.peers()].map(|group| group.process(0));
                let lower = match parent.is_mixed() {
                    true => bridge.process().is_named_before(ours, theirs),
                    false => ours.0 < theirs.0,
                };
                first = if their_high == high { lower } else { !high };
            }
            let first = inside.broadcast(0, vec![u8::from(first)]).await? == [1];
            let context = agree_across(bridge.as_ref(), &inside, 0, parent.is_mixed()).await?;
            let (low, up) = match first {
                true => (parent.group(), parent.peers()),
                false => (parent.peers(), parent.group()),
            };
            let group = Group::from_processes(low.processes().chain(up.processes()).collect());
            let made = parent.child(inside.process(), group, Role::Ordinary);
            let made = Arc::new(made);
            made.set_context(context);
            Ok(made)
        })
    }
}
