//! The other worlds that a process knows: those that MPI_Comm_spawn has started, those that have started it, and those
//! that it was connected with (MPI 5.0, chapter 11).
//!
//! A process numbers the processes of its own world by their ranks, and those of others from there on, as it is told of them; so
//! the numbers differ from world to world, and what travels between worlds are names.

use crate::comm::Communicator;
use crate::constants::{MPI_ERR_INTERN, MPI_ERR_UNSUPPORTED_OPERATION};
use crate::process::{CardBytes, Connector, NAME_BYTES, Process, WORLD_BYTES};
use crate::{Error, Result};
use parnass_portals::ProcessId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The name of a process among all worlds.
pub type Name = [u8; NAME_BYTES];

/// What a process knows of other worlds.
#[derive(Debug, Default)]
pub(crate) struct Worlds {
    /// What decides about collectives in which several worlds take part: the same everywhere.
    pub collectives: crate::coll::Settings,
    own: OnceLock<Name>,
    known: Mutex<Known>,
    parent: Mutex<Option<Arc<Communicator>>>,
}

#[derive(Debug, Default)]
struct Known {
    numbers: HashMap<Name, u32>,
    names: HashMap<u32, Name>,
}

/// Several byte strings as one.
pub(crate) fn pack(parts: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut bytes = (parts.len() as u32).to_le_bytes().to_vec();
    for part in parts {
        bytes.extend((part.as_ref().len() as u32).to_le_bytes());
        bytes.extend(part.as_ref());
    }
    bytes
}

/// The inverse of [`pack`]; what comes is another process's.
pub(crate) fn unpack(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (count, mut rest) = bytes.split_first_chunk::<4>()?;
    let mut parts = Vec::new();
    for _ in 0..u32::from_le_bytes(*count) {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let (part, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        parts.push(part.to_vec());
        rest = behind;
    }
    rest.is_empty().then_some(parts)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While it lives this process is about to be told of processes of other worlds.
pub(crate) struct Expecting(Arc<dyn Connector>);

impl Drop for Expecting {
    fn drop(&mut self) {
        self.0.expect(false);
    }
}

impl Process {
    /// The way to other worlds.
    pub(crate) fn way_out(&self) -> Result<&Arc<dyn Connector>> {
        self.connector().ok_or_else(|| {
            Error::new(MPI_ERR_UNSUPPORTED_OPERATION, "this process has no way to processes of other worlds")
        })
    }

    /// The way to other worlds, for what has nothing to do with a communicator: ports and services.
    ///
    /// # Errors
    /// There is none.
    pub fn other_worlds(&self) -> Result<Arc<dyn Connector>> {
        self.way_out().cloned()
    }

    /// What others must know of this process to reach it; from now on they can.
    pub(crate) fn card(&self) -> Result<CardBytes> {
        let card = self.way_out()?.card(self.nic()).map_err(|text| Error::new(MPI_ERR_INTERN, text))?;
        if let Some(name) = card.first_chunk() {
            let _ = self.worlds.own.set(*name);
            let seed =
                name.iter().fold(0u32, |seed, byte| seed.wrapping_mul(31).wrapping_add(u32::from(*byte)));
            self.context_ids().begin_shared_at(seed);
        }
        Ok(card)
    }

    /// Says that others may soon know of this process before it knows of them.
    pub(crate) fn expect_others(&self) -> Result<Expecting> {
        let connector = self.way_out()?.clone();
        connector.expect(true);
        Ok(Expecting(connector))
    }

    /// The processes with these cards, in their order. Those that are not known yet become peers; `key` is known to all of
    /// them, to this process, and to nobody else.
    pub(crate) fn introduce(&self, cards: &[CardBytes], key: &[u8; 32]) -> Result<Vec<ProcessId>> {
        let malformed = || {
            Error::new(
                MPI_ERR_INTERN,
                "a process of another world tells its name in a way that is not understood",
            )
        };
        let own = self.worlds.own.get().ok_or_else(malformed)?;
        let mut known = lock(&self.worlds.known);
        let mut found = Vec::with_capacity(cards.len());
        let mut unknown = Vec::new();
        for card in cards {
            let name: &Name = card.first_chunk().ok_or_else(malformed)?;
            let (world, rank) = name.split_at(WORLD_BYTES);
            let rank = u32::from_le_bytes(rank.try_into().map_err(|_| malformed())?);
            let number = match known.numbers.get(name) {
                _ if own.starts_with(world) && rank < self.size() => Some(rank),
                number => number.copied(),
            };
            if number.is_none() {
                unknown.push((found.len(), *name));
            }
            found.push(number.unwrap_or(0));
        }
        if !unknown.is_empty() {
            let cards: Vec<CardBytes> = unknown.iter().map(|(place, _)| cards[*place].clone()).collect();
            let first =
                self.way_out()?.admit(&cards, key).map_err(|text| Error::new(MPI_ERR_INTERN, text))?;
            self.nic().admit(first..first + cards.len() as u32);
            for (number, (place, name)) in (first..).zip(unknown) {
                known.numbers.insert(name, number);
                known.names.insert(number, name);
                found[place] = number;
            }
        }
        Ok(found.into_iter().map(ProcessId).collect())
    }

    /// Nothing is shared with this process of another world any more: should it be met again, it is another one.
    pub(crate) fn let_go(&self, process: ProcessId) {
        let mut known = lock(&self.worlds.known);
        if let Some(name) = known.names.remove(&process.0) {
            known.numbers.remove(&name);
        }
        drop(known);
        if let Some(connector) = self.connector() {
            connector.let_go(process.0);
        }
    }

    fn name_of(&self, process: ProcessId) -> Option<Name> {
        let own = self.worlds.own.get()?;
        if process.0 < self.size() {
            let mut name = *own;
            name[WORLD_BYTES..].copy_from_slice(&process.0.to_le_bytes());
            return Some(name);
        }
        lock(&self.worlds.known).names.get(&process.0).copied()
    }

    /// Which of two processes comes first, in an order that is the same in all worlds.
    pub(crate) fn is_named_before(&self, one: ProcessId, other: ProcessId) -> bool {
        self.name_of(one) < self.name_of(other)
    }

    /// The name of this process's world; empty as long as it knows of no other.
    pub(crate) fn world_name(&self) -> Vec<u8> {
        self.worlds.own.get().map_or(Vec::new(), |name| name[..WORLD_BYTES].to_vec())
    }

    /// The communicator with the processes that have started this world (MPI_Comm_get_parent), until it is given up.
    pub fn parent(&self) -> Option<Arc<Communicator>> {
        lock(&self.worlds.parent).clone()
    }

    pub(crate) fn set_parent(&self, parent: Option<Arc<Communicator>>) {
        *lock(&self.worlds.parent) = parent;
    }

    /// The program gives this communicator up, which may be that with the parents.
    pub fn give_up(&self, communicator: &Arc<Communicator>) {
        let mut parent = lock(&self.worlds.parent);
        if parent.as_ref().is_some_and(|parent| Arc::ptr_eq(parent, communicator)) {
            *parent = None;
        }
    }

    /// Does what may take long in a thread of its own, while this one turns the wheel.
    pub(crate) fn aside<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let place = Arc::new(Mutex::new(None));
        let (result, process) = (place.clone(), self.clone());
        let thread = std::thread::Builder::new().name("parnass-aside".into()).spawn(move || {
            let value = work();
            *lock(&result) = Some(value);
            process.nic().wake();
        });
        let thread = thread
            .map_err(|error| Error::new(MPI_ERR_INTERN, format!("no thread can be started: {error}")))?;
        let value = self.wait_until(None, || {
            lock(&place).take().map(Ok).or_else(|| thread.is_finished().then_some(Err(())))
        });
        value
            .or_else(|()| lock(&place).take().ok_or(()))
            .map_err(|()| Error::new(MPI_ERR_INTERN, "a thread of the library has ended before its work"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_survive(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..9)) {
            let bytes = pack(&parts);
            prop_assert_eq!(unpack(&bytes), Some(parts));
            for cut in 0..bytes.len() {
                prop_assert_eq!(unpack(&bytes[..cut]), None);
            }
        }

        #[test]
        fn whatever_comes_is_taken_apart_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some(parts) = unpack(&bytes) {
                prop_assert_eq!(pack(&parts), bytes);
            }
        }
    }
}
