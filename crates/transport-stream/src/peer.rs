//! The processes that this one may have streams with: those of its own world, and those of others, of which it is told
//! while it runs.

use crate::handshake::{Acquainted, Identity};
use crate::link::{Link, lock};
use crate::proof::{self, Step};
use crate::wire::{JOB_BYTES, Secret};
use parnass_base::Growing;
use parnass_base::atomics::{AtomicBool, AtomicU32, Ordering};
use parnass_transport::PROCESS_BITS;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, OnceLock};

/// What a process and one of another world have in common.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// Known to the two alone, see [`pair_key`].
    pub key: Secret,
    /// Whether this process is the first of the two: the other is not.
    pub first: bool,
    /// The number of the other one in its own world.
    pub rank: u32,
    /// Whether what they say is encrypted.
    pub encrypted: bool,
}

/// The key of two processes, from what their worlds know together, and the names of the two, the first one first.
pub fn pair_key(common: &Secret, first: &[u8], second: &[u8]) -> Secret {
    proof::make(common, Step::Pair, &[first, second])
}

/// The name of the world with this key, which tells nothing about the key.
pub fn world_name(key: &Secret) -> [u8; JOB_BYTES] {
    proof::job_name(key)
}

/// A process that this one may have a stream with.
#[derive(Debug)]
pub struct Peer<P> {
    /// Who this process is to it.
    pub identity: Identity,
    /// The number by which hellos name it.
    pub name: u32,
    /// The number in which it sends.
    pub tag: u32,
    /// Its end is no loss any more.
    pub let_go: AtomicBool,
    pub(crate) link: OnceLock<Box<Link<P>>>,
}

impl<P> Peer<P> {
    fn new(identity: Identity, name: u32, tag: u32) -> Peer<P> {
        Peer { identity, name, tag, let_go: AtomicBool::new(false), link: OnceLock::new() }
    }

    /// Of two connections that cross that of the one with the lower name is taken: whether that is the peer's.
    pub fn is_before(&self) -> bool {
        self.name < self.identity.me
    }
}

/// All of them, by number: first those of the own world.
#[derive(Debug)]
pub(crate) struct Peers<P> {
    identity: Identity,
    /// Made when they are first met: of a large world each process meets a few.
    own: Box<[OnceLock<Box<Peer<P>>>]>,
    others: Growing<Peer<P>>,
    count: AtomicU32,
    /// Those of other worlds, by the name in their hellos.
    names: Mutex<BTreeMap<[u8; JOB_BYTES], u32>>,
}

impl<P> Peers<P> {
    pub fn new(identity: Identity) -> Peers<P> {
        Peers {
            identity,
            own: (0..identity.size).map(|_| OnceLock::new()).collect(),
            others: Growing::default(),
            count: AtomicU32::new(0),
            names: Mutex::default(),
        }
    }

    /// # Panics
    /// If there is no such peer.
    pub fn get(&self, number: u32) -> &Peer<P> {
        let index = number as usize;
        match self.own.get(index) {
            Some(peer) => peer.get_or_init(|| Box::new(Peer::new(self.identity, number, number))),
            None => self.others.get(index - self.own.len()).expect("a process that was made known"),
        }
    }

    /// Those that were met.
    pub fn all(&self) -> impl Iterator<Item = &Peer<P>> {
        let others = 0..self.count.load(Ordering::Acquire) as usize;
        let own = self.own.iter().filter_map(|peer| peer.get().map(Box::as_ref));
        own.chain(others.filter_map(|number| self.others.get(number)))
    }

    /// Adds processes of other worlds; the number of the first, which `before` is told when none of them can be met yet.
    pub fn admit(&self, pairs: &[Pair], before: impl FnOnce(u32)) -> io::Result<u32> {
        let mut names = lock(&self.names);
        let own = self.own.len() as u32;
        let known = self.count.load(Ordering::Relaxed);
        let most = (1u32 << PROCESS_BITS).min(Growing::<Peer<P>>::MOST as u32) - own;
        if known + pairs.len() as u32 > most {
            let text = "this process has been connected with a million others, the most there can be";
            return Err(io::Error::other(text));
        }
        before(own + known);
        for (number, pair) in (known..).zip(pairs) {
            let identity = Identity::of_pair(&pair.key, pair.first, pair.encrypted);
            let peer = || Peer::new(identity, u32::from(pair.first), pair.rank);
            self.others.get_or_fill(number as usize, peer);
            names.insert(proof::job_name(&identity.key), own + number);
            self.count.store(number + 1, Ordering::Release);
        }
        Ok(own + known)
    }

    /// The one whose hellos have this name.
    pub fn find(&self, name: &[u8; JOB_BYTES]) -> Option<Acquainted> {
        let number = *lock(&self.names).get(name)?;
        Some(Acquainted { identity: self.get(number).identity, number })
    }

    /// Its end is no loss, and nothing new is taken from it.
    pub fn forget(&self, number: u32) {
        let peer = self.get(number);
        peer.let_go.store(true, Ordering::Relaxed);
        lock(&self.names).remove(&proof::job_name(&peer.identity.key));
    }
}
