//! What every rank of a job knows of the whole: which rank is on which node, and the job's key.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, memfd_create};

use crate::wire::{Decoder, Encoder};

/// First bytes of the file.
const MAGIC: &[u8; 8] = b"ParnassJ";
/// A description of the largest job is far below.
const BYTES_MAXIMUM: u64 = 64 << 20;

/// What only the ranks of one job know: every connection between them proves it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(pub [u8; 32]);

impl Key {
    /// A new one, from the kernel.
    pub fn random() -> Key {
        let mut bytes = [0; 32];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
            .expect("the kernel gives thirty-two random bytes");
        Key(bytes)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(..)") // It shall never stand in a log.
    }
}

/// Which rank is on which node. Nodes are numbered from 0; ranks of one node share its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes {
    of_rank: Vec<u32>,
    names: Vec<String>,
}

impl Nodes {
    /// All of `ranks` on one node.
    pub fn one(ranks: u32, name: impl Into<String>) -> Nodes {
        Nodes { of_rank: vec![0; ranks as usize], names: vec![name.into()] }
    }

    /// Rank `r` is on node `of_rank[r]`; `None` where that has no name.
    pub fn new(of_rank: Vec<u32>, names: Vec<String>) -> Option<Nodes> {
        let known = of_rank.iter().all(|&node| (node as usize) < names.len());
        known.then_some(Nodes { of_rank, names })
    }

    /// The node of a rank.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn of_rank(&self, rank: u32) -> u32 {
        self.of_rank[rank as usize]
    }

    /// The nodes of all ranks, in the order of the ranks.
    pub fn of_ranks(&self) -> &[u32] {
        &self.of_rank
    }

    /// How many ranks there are.
    pub fn size(&self) -> u32 {
        self.of_rank.len() as u32
    }

    /// How many nodes there are.
    pub fn count(&self) -> u32 {
        self.names.len() as u32
    }

    /// The host as the user wrote it.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn name(&self, node: u32) -> &str {
        &self.names[node as usize]
    }

    /// The ranks of a node, ascending.
    pub fn ranks_on(&self, node: u32) -> impl Iterator<Item = u32> {
        (0..self.size()).filter(move |&rank| self.of_rank[rank as usize] == node)
    }

    /// The place of `rank` among the ranks of its node, and how many those are.
    pub fn local(&self, rank: u32) -> (u32, u32) {
        let node = self.of_rank(rank);
        let before = self.of_rank[..rank as usize].iter().filter(|&&other| other == node).count();
        (before as u32, self.ranks_on(node).count() as u32)
    }
}

/// What the launcher tells each rank about the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    pub nodes: Nodes,
    pub key: Key,
    /// The tunables that do not have their defaults, as NAME=VALUE.
    pub tunables: Vec<String>,
    /// What the processes that have started this world tell it; empty where it was started by a user.
    pub parents: Vec<u8>,
}

impl Description {
    /// As it is written on the wire and in the file that ranks are given.
    pub fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::new();
        encoder.raw(MAGIC).u32(crate::VERSION).raw(&self.key.0);
        encoder.u32(self.nodes.count());
        for name in &self.nodes.names {
            encoder.bytes(name.as_bytes());
        }
        encoder.u32(self.nodes.size());
        for &node in &self.nodes.of_rank {
            encoder.u32(node);
        }
        encoder.u32(self.tunables.len() as u32);
        for tunable in &self.tunables {
            encoder.bytes(tunable.as_bytes());
        }
        encoder.bytes(&self.parents);
        encoder.finish()
    }

    /// `None` when the bytes are no description of this version.
    pub fn decode(bytes: &[u8]) -> Option<Description> {
        let mut decoder = Decoder::new(bytes);
        if decoder.raw(MAGIC.len())? != MAGIC || decoder.u32()? != crate::VERSION {
            return None;
        }
        let key = Key(decoder.raw(32)?.try_into().ok()?);
        let names = (0..decoder.count(4)?).map(|_| decoder.text()).collect::<Option<Vec<_>>>()?;
        let of_rank = (0..decoder.count(4)?).map(|_| decoder.u32()).collect::<Option<Vec<_>>>()?;
        let tunables = (0..decoder.count(4)?).map(|_| decoder.text()).collect::<Option<Vec<_>>>()?;
        let parents = decoder.bytes()?.to_vec();
        decoder.end()?;
        Some(Description { nodes: Nodes::new(of_rank, names)?, key, tunables, parents })
    }

    /// An anonymous file with the description, to be handed to ranks.
    pub fn to_file(&self) -> io::Result<OwnedFd> {
        file_of(c"parnass-description", &self.encode())
    }

    /// Reads what [`Description::to_file`] made.
    pub fn from_file(file: OwnedFd) -> io::Result<Description> {
        Description::decode(&bytes_of(file)?).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "the launcher's description of the job is malformed")
        })
    }
}

/// What all ranks have given to an exchange, in their order.
pub fn encode_parts(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.u32(parts.len() as u32);
    for part in parts {
        encoder.bytes(part);
    }
    encoder.finish()
}

/// Reads what [`encode_parts`] wrote.
pub fn decode_parts(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut decoder = Decoder::new(bytes);
    let count = decoder.count(4)?;
    let parts = (0..count).map(|_| decoder.bytes().map(<[u8]>::to_vec)).collect::<Option<Vec<_>>>()?;
    decoder.end().map(|()| parts)
}

/// An anonymous file with these bytes. It is closed on exec.
pub fn file_of(name: &std::ffi::CStr, bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create(name, MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    Ok(file.into())
}

/// Everything in such a file. Others may read it at the same time: no offset is shared.
pub fn bytes_of(file: OwnedFd) -> io::Result<Vec<u8>> {
    let file = File::from(file);
    let mut bytes = vec![0; file.metadata()?.len().min(BYTES_MAXIMUM) as usize];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranks_of_a_node_are_counted_from_nought() {
        let nodes = Nodes::new(vec![1, 0, 1, 0, 1], vec!["a".into(), "b".into()]).unwrap();
        assert_eq!([0, 1, 2, 3, 4].map(|rank| nodes.local(rank)), [(0, 3), (0, 2), (1, 3), (1, 2), (2, 3)]);
        assert_eq!(nodes.ranks_on(1).collect::<Vec<_>>(), [0, 2, 4]);
        assert!(Nodes::new(vec![0, 2], vec!["a".into(), "b".into()]).is_none());
    }

    #[test]
    fn a_key_is_not_shown() {
        assert_eq!(format!("{:?}", Key::random()), "Key(..)");
        assert_ne!(Key::random(), Key::random());
    }

    #[test]
    fn files_are_read_from_their_beginning_by_all() {
        let file = file_of(c"test", b"all of it").unwrap();
        for _ in 0..2 {
            assert_eq!(bytes_of(file.try_clone().unwrap()).unwrap(), b"all of it");
        }
    }

    proptest! {
        #[test]
        fn descriptions_survive(of_rank in prop::collection::vec(0u32..3, 1..40), key: [u8; 32]) {
            let names = ["a", "b.example", "c"].map(str::to_owned).to_vec();
            let tunables = (0..key[0] % 3).map(|number| format!("spins={number}")).collect();
            let nodes = Nodes::new(of_rank, names).unwrap();
            let description = Description { nodes, key: Key(key), tunables, parents: key[1..].to_vec() };
            let bytes = description.encode();
            prop_assert_eq!(Description::decode(&bytes), Some(description));
            for cut in 0..bytes.len() {
                prop_assert!(Description::decode(&bytes[..cut]).is_none());
            }
        }

        #[test]
        fn parts_survive(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20)) {
            prop_assert_eq!(decode_parts(&encode_parts(&parts)), Some(parts));
        }

        #[test]
        fn whatever_comes_is_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode_parts(&bytes);
            let mut framed = MAGIC.to_vec();
            framed.extend(crate::VERSION.to_le_bytes());
            framed.extend(&bytes);
            if let Some(description) = Description::decode(&framed) {
                prop_assert_eq!(description.encode(), framed);
            }
        }
    }
}
