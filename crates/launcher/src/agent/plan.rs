//! What an agent is told to do.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use parnass_bootstrap::Description;
use parnass_bootstrap::wire::{Decoder, Encoder};

use super::start::Way;
use crate::arguments::{Bind, Job, Part};

/// The nodes of a job as one guardian sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roster {
    pub description: Description,
    /// The node whose ranks this guardian starts; none where `mpiexec` runs beside the nodes.
    pub node: Option<u32>,
    /// The nodes below it, whose agents it starts or has started by others.
    pub below: Vec<u32>,
    /// How agents are started.
    pub way: Way,
}

impl Roster {
    /// The ranks on this guardian's node.
    pub fn own_ranks(&self) -> Vec<usize> {
        let ranks = self.node.into_iter().flat_map(|node| self.description.nodes.ranks_on(node));
        ranks.map(|rank| rank as usize).collect()
    }

    /// The nodes below in as many groups as this guardian starts agents; the first of each group starts the rest.
    pub fn groups(&self) -> Vec<&[u32]> {
        if self.below.is_empty() {
            return Vec::new();
        }
        let fan_out = match self.way.fan_out {
            0 => self.below.len(),
            limit => limit as usize,
        };
        self.below.chunks(self.below.len().div_ceil(fan_out)).collect()
    }
}

/// Everything that an agent needs to know.
#[derive(Debug)]
pub struct Plan {
    pub roster: Roster,
    pub job: Job,
    /// The variables of each part's ranks, as they are where `mpiexec` was started.
    pub variables: Vec<Variables>,
    /// Where `mpiexec` was started.
    pub directory: PathBuf,
    /// Whether its standard output and error are terminals.
    pub terminals: [bool; 2],
}

/// Environment variables by name.
pub type Variables = BTreeMap<OsString, OsString>;

fn words(encoder: &mut Encoder, words: &[OsString]) {
    encoder.u32(words.len() as u32);
    for word in words {
        encoder.bytes(word.as_bytes());
    }
}

/// Nothing, or one word.
fn maybe(encoder: &mut Encoder, word: Option<&OsStr>) {
    words(encoder, &word.map(OsStr::to_owned).into_iter().collect::<Vec<_>>());
}

fn read_word(decoder: &mut Decoder) -> Option<OsString> {
    decoder.bytes().map(|bytes| OsString::from_vec(bytes.to_vec()))
}

fn read_words(decoder: &mut Decoder) -> Option<Vec<OsString>> {
    (0..decoder.count(4)?).map(|_| read_word(decoder)).collect()
}

const BINDS: [Bind; 4] = [Bind::Share, Bind::None, Bind::Core, Bind::Thread];

impl Plan {
    /// As it travels.
    pub fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::new();
        encoder.bytes(&self.roster.description.encode());
        encoder.u32(self.roster.node.unwrap_or(u32::MAX)).u32(self.roster.below.len() as u32);
        for &node in &self.roster.below {
            encoder.u32(node);
        }
        words(&mut encoder, &self.roster.way.words);
        encoder.bytes(self.roster.way.program.as_bytes()).u32(self.roster.way.fan_out);
        encoder.u32(self.job.parts.len() as u32);
        for (part, variables) in self.job.parts.iter().zip(&self.variables) {
            encoder.u32(part.ranks).bytes(part.program.as_bytes());
            words(&mut encoder, &part.arguments);
            maybe(&mut encoder, part.directory.as_ref().map(|directory| directory.as_os_str()));
            encoder.u32(variables.len() as u32);
            for (name, value) in variables {
                encoder.bytes(name.as_bytes()).bytes(value.as_bytes());
            }
        }
        maybe(&mut encoder, self.job.output.as_ref().map(|directory| directory.as_os_str()));
        encoder.u8(BINDS.iter().position(|&bind| bind == self.job.bind).unwrap_or_default() as u8);
        encoder.bytes(self.directory.as_os_str().as_bytes());
        let stats = self.job.stats.is_some();
        encoder.u8(u8::from(self.terminals[0])
            | u8::from(self.terminals[1]) << 1
            | u8::from(stats) << 2
            | u8::from(self.job.survives) << 3);
        encoder.finish()
    }

    /// `None` when the bytes are no plan, or one that makes no sense.
    pub fn decode(bytes: &[u8]) -> Option<Plan> {
        let mut decoder = Decoder::new(bytes);
        let description = Description::decode(decoder.bytes()?)?;
        let nodes = description.nodes.count();
        let node = Some(decoder.u32()?).filter(|&node| node != u32::MAX);
        let below = (0..decoder.count(4)?).map(|_| decoder.u32()).collect::<Option<Vec<_>>>()?;
        let way = Way {
            words: read_words(&mut decoder)?,
            program: read_word(&mut decoder)?,
            fan_out: decoder.u32()?,
        };
        let mut job = Job::default();
        let mut variables = Vec::new();
        for _ in 0..decoder.count(16)? {
            let mut part =
                Part { ranks: decoder.u32()?, program: read_word(&mut decoder)?, ..Part::default() };
            part.arguments = read_words(&mut decoder)?;
            part.directory = read_words(&mut decoder)?.pop().map(PathBuf::from);
            let count = decoder.count(8)?;
            let pair = |_| Some((read_word(&mut decoder)?, read_word(&mut decoder)?));
            variables.push((0..count).map(pair).collect::<Option<Variables>>()?);
            job.parts.push(part);
        }
        job.output = read_words(&mut decoder)?.pop().map(PathBuf::from);
        job.bind = *BINDS.get(usize::from(decoder.u8()?))?;
        let directory = PathBuf::from(read_word(&mut decoder)?);
        let flags = decoder.u8()?;
        // Only whether, not where: the one at the top writes.
        job.stats = (flags & 4 != 0).then_some(None);
        job.survives = flags & 8 != 0;
        decoder.end()?;
        let ranks = job.parts.iter().map(|part| u64::from(part.ranks)).sum::<u64>();
        let known = node.iter().chain(&below).all(|&node| node < nodes);
        let makes_sense = known && ranks == u64::from(description.nodes.size());
        makes_sense.then_some(Plan {
            roster: Roster { description, node, below, way },
            job,
            variables,
            directory,
            terminals: [flags & 1 != 0, flags & 2 != 0],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parnass_bootstrap::{Key, Nodes};
    use proptest::prelude::*;

    fn plan() -> Plan {
        let names = vec!["a".to_owned(), "b".to_owned()];
        let nodes = Nodes::new(vec![0, 0, 1], names).unwrap();
        let part = Part {
            ranks: 3,
            program: "./program".into(),
            arguments: vec!["one".into(), OsString::from_vec(vec![0xff, 0xfe])],
            directory: Some("/tmp".into()),
            ..Part::default()
        };
        Plan {
            roster: Roster {
                description: Description {
                    nodes,
                    key: Key::random(),
                    tunables: vec!["direct=off".into()],
                    parents: vec![5],
                },
                node: Some(1),
                below: vec![0],
                way: Way {
                    words: vec!["ssh".into(), "{host}".into()],
                    program: "/p/bin/mpiexec".into(),
                    fan_out: 3,
                },
            },
            job: Job {
                parts: vec![part],
                output: Some("out".into()),
                bind: Bind::Core,
                stats: Some(None),
                survives: true,
                ..Job::default()
            },
            variables: vec![[("A".into(), "b=c".into()), ("E".into(), "".into())].into()],
            directory: "/tmp".into(),
            terminals: [false, true],
        }
    }

    #[test]
    fn a_plan_survives() {
        let plan = plan();
        let bytes = plan.encode();
        let other = Plan::decode(&bytes).unwrap();
        assert_eq!(other.encode(), bytes);
        assert_eq!(
            (other.roster, other.variables, other.terminals),
            (plan.roster, plan.variables, plan.terminals)
        );
        assert_eq!(other.job.parts[0].arguments, plan.job.parts[0].arguments);
        assert_eq!((other.job.stats, other.job.survives), (Some(None), true));
        for cut in 0..bytes.len() {
            assert!(Plan::decode(&bytes[..cut]).is_none(), "{cut}");
        }
    }

    #[test]
    fn groups_are_as_many_as_the_fan_out_allows() {
        let mut roster = plan().roster;
        roster.below = (0..10).collect();
        roster.way.fan_out = 3;
        assert_eq!(roster.groups(), [&[0, 1, 2, 3][..], &[4, 5, 6, 7], &[8, 9]]);
        roster.way.fan_out = 0;
        assert_eq!(roster.groups().len(), 10);
        roster.below.clear();
        assert!(roster.groups().is_empty());
    }

    proptest! {
        #[test]
        fn a_changed_plan_is_decoded_or_refused(at: prop::sample::Index, byte: u8) {
            let mut bytes = plan().encode();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = Plan::decode(&bytes);
        }
    }
}
