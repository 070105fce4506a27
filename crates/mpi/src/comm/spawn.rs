//! Starting processes (MPI_Comm_spawn, MPI_Comm_spawn_multiple; MPI 5.0, section 11.8), and being started.

use super::create::agree;
use super::exchange::{Channel, run};
use super::meet::{gather_cards, malformed};
use super::{Communicator, Context, Remote, Role};
use crate::constants::{MPI_ERR_INTERN, MPI_ERR_SPAWN, MPI_SUCCESS};
use crate::errhandler::Errhandler;
use crate::group::Group;
use crate::process::{CardBytes, Process, Program};
use crate::worlds::{pack, unpack};
use crate::{Error, Result};
use std::sync::Arc;

/// What has become of a request to start processes.
#[derive(Debug)]
pub struct Spawned {
    /// With the processes that were started, if they were.
    pub intercommunicator: Result<Arc<Communicator>>,
    /// For each process that was asked for, at all members of the communicator.
    pub codes: Vec<i32>,
}

/// What the processes of a new world are told of those that have started it.
struct Parents {
    key: [u8; 32],
    context: Context,
    cards: Vec<CardBytes>,
}

impl Parents {
    fn encode(&self) -> Vec<u8> {
        pack(&[self.key.to_vec(), self.context.to_wire().to_le_bytes().to_vec(), pack(&self.cards)])
    }

    fn decode(bytes: &[u8]) -> Option<Parents> {
        let [key, context, cards] = <[Vec<u8>; 3]>::try_from(unpack(bytes)?).ok()?;
        let context = Context::from_wire(u32::from_le_bytes(context.try_into().ok()?));
        Some(Parents { key: key.try_into().ok()?, context, cards: unpack(&cards)? })
    }
}

impl Communicator {
    /// MPI_Comm_spawn and MPI_Comm_spawn_multiple: starts `programs`, which count at the root, as one world.
    ///
    /// # Errors
    /// Those of the communicator itself. That processes could not be started is told in the result.
    pub fn spawn(
        self: &Arc<Self>,
        process: &Arc<Process>,
        root: i32,
        programs: Result<Vec<Program>>,
    ) -> Result<Spawned> {
        self.check_intra()?;
        let _expecting = process.expect_others()?;
        let inside = Arc::new(Channel::all(process, self));
        let channel = inside.clone();
        let (cards, context) = run(process, self, async move {
            let cards = gather_cards(&channel).await?;
            Ok((cards, super::create::agree_among_worlds(&channel).await?))
        })?;
        let mut told = Vec::new();
        let mut failure = None;
        if self.rank() == root {
            let key = process.way_out()?.random();
            let parents = Parents { key, context, cards }.encode();
            let count = programs
                .as_ref()
                .map_or(1, |programs| programs.iter().map(|program| program.processes).sum());
            let outcome = programs.and_then(|programs| {
                let connector = process.way_out()?.clone();
                let spawned = process.aside(move || connector.spawn(&programs, &parents))?;
                spawned.map_err(|text| Error::new(MPI_ERR_SPAWN, text))
            });
            told = match outcome {
                Ok(cards) => pack(&[key.to_vec(), pack(&cards), u32::to_le_bytes(count).to_vec()]),
                Err(error) => {
                    let words = [error.class().to_le_bytes().to_vec(), u32::to_le_bytes(count).to_vec()];
                    let told =
                        pack(&[words[0].clone(), words[1].clone(), error.message().as_bytes().to_vec()]);
                    failure = Some(error);
                    told
                }
            };
        }
        let channel = inside.clone();
        let told = run(process, self, async move { channel.broadcast_any(root, told).await })?;
        let told = unpack(&told).ok_or_else(malformed)?;
        let number = |bytes: &[u8]| bytes.try_into().map(u32::from_le_bytes).unwrap_or_default();
        let (key, cards, count) = match &told[..] {
            [key, cards, count] if key.len() == 32 => (key, cards, number(count) as usize),
            [class, count, text] => {
                process.context_ids().leave(context);
                let (class, count) = (number(class) as i32, number(count));
                let text = String::from_utf8_lossy(text).into_owned();
                let error = failure.unwrap_or_else(|| Error::new(class, text));
                return Ok(Spawned { intercommunicator: Err(error), codes: vec![class; count as usize] });
            }
            _ => return Err(malformed()),
        };
        let cards = unpack(cards).ok_or_else(malformed)?;
        // With the info key soft fewer may have been started than were asked for.
        let mut codes = vec![MPI_SUCCESS; cards.len()];
        codes.resize(count.max(cards.len()), MPI_ERR_SPAWN);
        let key: [u8; 32] = key.as_slice().try_into().map_err(|_| malformed())?;
        let remote = Group::from_processes(process.introduce(&cards, &key)?);
        let made = self.inter_child(process, self.group.clone(), remote);
        let channel = inside.clone();
        let made = Arc::new(made);
        made.local()?.set_context(run(process, self, async move { agree(&channel).await })?);
        made.set_context(context);
        Ok(Spawned { intercommunicator: Ok(made), codes })
    }
}

impl Process {
    /// Takes the place that the processes which have started this world keep for it; `parents` is what they tell. To be
    /// called once, before the program uses the process.
    ///
    /// # Errors
    /// What they tell is not understood.
    pub fn accept_parents(self: &Arc<Self>, parents: &[u8]) -> Result<()> {
        let parents = Parents::decode(parents).ok_or_else(malformed)?;
        self.card()?;
        let remote = Group::from_processes(self.introduce(&parents.cards, &parents.key)?);
        if !self.context_ids().reserve(parents.context) {
            return Err(Error::new(
                MPI_ERR_INTERN,
                "the context of the communicator with the parents is in use",
            ));
        }
        let ids = self.context_ids();
        let group = Group::world(self.size());
        let local = Arc::new(Communicator::new(None, Role::Internal, self.me(), group.clone(), None, ids));
        local.set_context(Context::OF_SPAWNED);
        let mut made = Communicator::new(None, Role::Ordinary, self.me(), group, None, ids);
        made.mixed = true;
        made.remote = Some(Remote { group: remote, local });
        let made = Arc::new(made);
        made.set_context(parents.context);
        made.set_errhandler(Errhandler::Fatal);
        made.rename(b"MPI_COMM_PARENT");
        self.set_parent(Some(made));
        Ok(())
    }
}
