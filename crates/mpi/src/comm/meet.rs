//! Processes of several worlds on their way to a communicator: MPI_Comm_accept, MPI_Comm_connect, MPI_Comm_join, and
//! what MPI_Intercomm_create does where worlds meet (MPI 5.0, section 11.9).

use super::create::agree;
use super::exchange::{Channel, decode_array, encode, run};
use super::{Communicator, Context, UNKNOWN_CONTEXT};
use crate::constants::{MPI_ERR_INTERN, MPI_ERR_PORT};
use crate::group::Group;
use crate::process::{CardBytes, Conversation, Process};
use crate::worlds::{pack, unpack};
use crate::{Error, Result};
use std::sync::Arc;

pub(super) fn malformed() -> Error {
    Error::new(
        MPI_ERR_INTERN,
        "what a process of another world has sent is not understood: use one release everywhere",
    )
}

fn key_from(bytes: &[u8]) -> Result<[u8; 32]> {
    bytes.try_into().map_err(|_| malformed())
}

/// The cards of all members. One that has none makes it an error for all.
pub(super) async fn gather_cards(inside: &Channel) -> Result<Vec<CardBytes>> {
    let own = inside.process().card();
    let cards = inside.allgather_any(own.as_deref().unwrap_or_default()).await?;
    own?;
    match cards.iter().position(Vec::is_empty) {
        None => Ok(cards),
        Some(rank) => Err(Error::new(
            MPI_ERR_INTERN,
            format!(
                "rank {rank} of the communicator cannot be reached by processes of other worlds; its own error says why"
            ),
        )),
    }
}

/// Where worlds meet in MPI_Intercomm_create: the leaders, who know each other, hand on what all must know of the other group.
pub(super) async fn introduce(bridge: Option<&Channel>, inside: &Channel, leader: i32) -> Result<Group> {
    let process = inside.process().clone();
    let _expecting = process.expect_others()?;
    let cards = gather_cards(inside).await?;
    let mut told = Vec::new();
    if let Some(bridge) = bridge {
        let half = process.way_out()?.random();
        let theirs = bridge.swap_any(0, &pack(&[half.to_vec(), pack(&cards)])).await?;
        let [their_half, cards] =
            <[Vec<u8>; 2]>::try_from(unpack(&theirs).ok_or_else(malformed)?).map_err(|_| malformed())?;
        let key: Vec<u8> = half.iter().zip(&their_half).map(|(one, other)| one ^ other).collect();
        told = pack(&[key, cards]);
    }
    let told = inside.broadcast_any(leader, told).await?;
    let [key, theirs] =
        <[Vec<u8>; 2]>::try_from(unpack(&told).ok_or_else(malformed)?).map_err(|_| malformed())?;
    let processes = process.introduce(&unpack(&theirs).ok_or_else(malformed)?, &key_from(&key)?)?;
    // Nobody returns before all of a group know the other one.
    inside.allgather(&[0]).await?;
    if let Some(bridge) = bridge {
        bridge.swap(0, &[0], 1).await?;
    }
    inside.broadcast(leader, vec![0]).await?;
    Ok(Group::from_processes(processes))
}

/// How a root begins to talk to the other one.
pub type Begin = Box<dyn FnOnce() -> std::result::Result<Box<dyn Conversation>, String> + Send>;

/// A conversation that another thread holds now and then.
type Talk = Box<dyn Conversation>;

/// Tells the other root something and hears what it tells, while the wheel turns.
fn swap(process: &Arc<Process>, talk: &mut Option<Talk>, own: Vec<u8>) -> Result<Vec<u8>> {
    let Some(mut held) = talk.take() else { return Err(malformed()) };
    let (heard, held) = process.aside(move || (held.swap(&own), held))?;
    *talk = Some(held);
    heard.map_err(|text| Error::new(MPI_ERR_PORT, format!("the other side is gone: {text}")))
}

impl Communicator {
    /// An intercommunicator with the group of a process of another world, with which `begin` starts to talk at the root.
    /// MPI_Comm_accept, MPI_Comm_connect and MPI_Comm_join, which differ in how that is done.
    pub fn meet(
        self: &Arc<Self>,
        process: &Arc<Process>,
        root: i32,
        begin: Option<Begin>,
    ) -> Result<Arc<Communicator>> {
        self.check_intra()?;
        let _expecting = process.expect_others()?;
        let inside = Arc::new(Channel::all(process, self));
        let channel = inside.clone();
        let cards = run(process, self, async move { gather_cards(&channel).await })?;
        let (mut talk, mut failure) = (None, None);
        let mut told = Vec::new();
        if let Some(begin) = begin {
            let begun =
                process.aside(begin)?.map_err(|text| Error::new(MPI_ERR_PORT, text)).and_then(|talk_begun| {
                    let key = talk_begun.key();
                    talk = Some(talk_begun);
                    Ok(pack(&[key.to_vec(), swap(process, &mut talk, pack(&cards))?]))
                });
            match begun {
                Ok(both) => told = both,
                Err(error) => failure = Some(error),
            }
        }
        let told = self.hand_out(process, &inside, root, told)?;
        if told.is_empty() {
            return Err(failure.unwrap_or_else(|| {
                Error::new(
                    MPI_ERR_PORT,
                    format!("the root, rank {root}, could not reach the other side; its own error says why"),
                )
            }));
        }
        let [key, theirs] =
            <[Vec<u8>; 2]>::try_from(unpack(&told).ok_or_else(malformed)?).map_err(|_| malformed())?;
        let remote = process.introduce(&unpack(&theirs).ok_or_else(malformed)?, &key_from(&key)?)?;
        let remote = Group::from_processes(remote);
        let context = self.agree_by_talk(process, &inside, root, &mut talk)?;
        let made = self.inter_child(process, self.group.clone(), remote);
        let channel = inside.clone();
        let made = Arc::new(made);
        made.local()?.set_context(run(process, self, async move { agree(&channel).await })?);
        made.set_context(context);
        Ok(made)
    }

    /// What the root has, at all members.
    fn hand_out(
        self: &Arc<Self>,
        process: &Arc<Process>,
        inside: &Arc<Channel>,
        root: i32,
        bytes: Vec<u8>,
    ) -> Result<Vec<u8>> {
        let channel = inside.clone();
        run(process, self, async move { channel.broadcast_any(root, bytes).await })
    }

    /// A context that all members of both groups have free, found by the roots over their conversation. All know the other
    /// group when it returns.
    fn agree_by_talk(
        self: &Arc<Self>,
        process: &Arc<Process>,
        inside: &Arc<Channel>,
        root: i32,
        talk: &mut Option<Talk>,
    ) -> Result<Context> {
        let ids = process.context_ids();
        let leads = self.rank() == root;
        let mut failure = None;
        loop {
            let mut chosen = UNKNOWN_CONTEXT;
            if leads {
                let own = ids.propose_shared();
                match swap(process, talk, encode(&[own])).and_then(|theirs| decode_array::<1>(&theirs)) {
                    Ok([theirs]) => chosen = own.min(theirs),
                    Err(error) => failure = Some(error),
                }
            }
            let [told] = decode_array(&self.hand_out(process, inside, root, encode(&[chosen]))?)?;
            if told == UNKNOWN_CONTEXT {
                return Err(
                    failure.unwrap_or_else(|| Error::new(MPI_ERR_PORT, "the root has lost the other side"))
                );
            }
            let context = Context::from_wire(told);
            let free = ids.reserve(context);
            let channel = inside.clone();
            let flags = run(process, self, async move { channel.allgather(&[u8::from(!free)]).await })?;
            let mut verdict = vec![u8::from(flags.contains(&1))];
            if leads {
                match swap(process, talk, verdict.clone()) {
                    Ok(theirs) => verdict[0] |= theirs.first().copied().unwrap_or(1),
                    Err(error) => {
                        failure = Some(error);
                        verdict[0] = 2;
                    }
                }
            }
            let verdict = self.hand_out(process, inside, root, verdict)?;
            if verdict == [0] {
                return Ok(context);
            }
            if free {
                ids.leave(context);
            }
            if verdict == [2] {
                return Err(
                    failure.unwrap_or_else(|| Error::new(MPI_ERR_PORT, "the root has lost the other side"))
                );
            }
        }
    }
}
