//! Who waits for whom: what the user is told of a job that has run out of its time.
//!
//! Each guardian reads what its ranks show in the memory that they share: no rank has to answer, and a stopped one is told of like any other.

use std::collections::BTreeMap;
use std::time::Duration;

use parnass_portals::{Inside, Lying, look_inside};
use parnass_transport::Waiting;
use parnass_transport_shm::JobMemory;

use super::Guardian;
use crate::agent::frames::{Order, Report};
use crate::descendants;
use crate::report::counted;

/// What a rank does that has not begun.
const OUTSIDE: &str = "before MPI_Init";
/// So long are agents waited for, at most.
pub(super) const ANSWER_DELAY: Duration = Duration::from_secs(1);
/// Lines of a report, and messages in each of them.
const LINES: usize = 24;
const KINDS: usize = 3;
/// Of the match bits of a message, as `parnass-mpi` makes them: its tag below, its communicator above, and which of that one's two spaces it lies in.
const TAG: u64 = u32::MAX as u64;
const OF_LIBRARY: u64 = 1 << 32;

impl Guardian {
    /// Asks what the ranks do that are still running, here and below.
    pub(super) fn ask_ranks(&mut self) {
        self.order_all(&Order::Explain);
        let memory =
            self.memory_of_ranks.as_ref().and_then(|file| JobMemory::open(file.try_clone().ok()?).ok());
        let size = self.ranks.len();
        for local in 0..self.own.len() {
            let rank = self.own[local];
            if !self.ranks[rank].is_running() {
                continue;
            }
            let connection = self.ranks[rank].member.and_then(|member| self.connections[member].as_ref());
            let attached = memory.as_ref().and_then(|memory| attached(memory, local as u32));
            let told = match (connection, attached) {
                (None, _) => OUTSIDE.to_owned(),
                (Some(connection), _) if connection.finalized => "in or after MPI_Finalize".to_owned(),
                (Some(_), None) => "in MPI_Init".to_owned(),
                (Some(_), Some((state, waiting, inside))) => describe(state, waiting, &inside, size),
            };
            self.note_waiting(rank as u32, told);
        }
    }

    /// What a rank does, as the guardian of its node has found out.
    pub(super) fn note_waiting(&mut self, rank: u32, text: String) {
        if self.above.is_some() {
            self.report(Report::Waits { rank, text });
        } else {
            self.waiting.insert(rank, text);
        }
    }

    /// Whether it was found out of every rank.
    pub(super) fn have_told(&self) -> bool {
        let told = |rank: usize| self.waiting.contains_key(&(rank as u32));
        self.ranks.iter().enumerate().all(|(number, rank)| !rank.is_running() || told(number))
    }

    /// What was found out, for the user: empty, as of a program that is none of MPI, or lines that begin with a line's end.
    pub(super) fn told_of_waiting(&self) -> String {
        if self.waiting.values().all(|text| text == OUTSIDE) { String::new() } else { lines(&self.waiting) }
    }
}

/// The state of the process of a rank (proc(5)), for whom it waits, and what lies in its NIC; `None` before it has attached.
fn attached(memory: &JobMemory, local: u32) -> Option<(char, Waiting, Inside)> {
    let (process, waiting) = memory.observe(local);
    let state = descendants::state_and_parent(process as i32).map_or('?', |(state, _)| state);
    let (nic, counters) = memory.nic(local);
    (process != 0).then(|| (state, waiting, look_inside(&nic, &counters)))
}

/// What a rank does.
fn describe(state: char, waiting: Waiting, inside: &Inside, size: usize) -> String {
    let mut text = match (state, waiting) {
        ('T' | 't', _) => "stopped, by a signal or a debugger".to_owned(),
        (_, Waiting::For(rank)) => format!("waiting in MPI for {}", of_job(rank, size)),
        (_, Waiting::ForAny | Waiting::ForElse) => "waiting in MPI".to_owned(),
        ('R', Waiting::Not) => "computing, or asking MPI again and again".to_owned(),
        (_, Waiting::Not) => "waiting for something outside MPI".to_owned(),
    };
    for (what, lying) in [("receives posted", &inside.receives), ("arrived, not received", &inside.messages)]
    {
        if !lying.is_empty() {
            text += &format!("; {what}: {}", listed(lying, size));
        }
    }
    text
}

fn listed(lying: &[Lying], size: usize) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for one in lying {
        *counts.entry(name(one, size)).or_default() += 1;
    }
    let mut names: Vec<String> = counts
        .iter()
        .map(|(name, &count)| if count == 1 { name.clone() } else { format!("{name} ({count} times)") })
        .collect();
    let more = names.len().saturating_sub(KINDS);
    names.truncate(KINDS);
    let end = if more == 0 { String::new() } else { format!(", and {more} of other kinds") };
    names.join(", ") + &end
}

fn of_job(rank: u32, size: usize) -> String {
    if (rank as usize) < size { format!("rank {rank}") } else { "a process of another world".to_owned() }
}

fn name(lying: &Lying, size: usize) -> String {
    let source = match lying.source {
        None => "from any rank".to_owned(),
        Some(source) => format!("from {}", of_job(source, size)),
    };
    if lying.match_bits & OF_LIBRARY != 0 {
        return format!("{source}, of a collective operation");
    }
    let tag = match lying.ignore_bits & TAG {
        0 => format!("tag {}", lying.match_bits & TAG),
        _ => "any tag".to_owned(),
    };
    let communicator = if lying.match_bits >> 32 == 0 { "" } else { ", not on MPI_COMM_WORLD" };
    format!("{source} with {tag}{communicator}")
}

/// A line for all ranks that do the same.
fn lines(told: &BTreeMap<u32, String>) -> String {
    let mut groups: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for (&rank, text) in told {
        groups.entry(text).or_default().push(rank);
    }
    let mut groups: Vec<(&str, Vec<u32>)> = groups.into_iter().collect();
    groups.sort_by_key(|(_, ranks)| ranks[0]);
    let mut lines: String =
        groups.iter().take(LINES).map(|(text, ranks)| format!("\n  {} {text}", named(ranks))).collect();
    let left: usize = groups.iter().skip(LINES).map(|(_, ranks)| ranks.len()).sum();
    if left > 0 {
        lines += &format!("\n  and {}", counted(left, "more rank"));
    }
    lines
}

/// "rank 3:", "ranks 0-2, 5:". Ascending.
fn named(ranks: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == rank => *last = rank,
            _ => runs.push((rank, rank)),
        }
    }
    let run = |&(first, last): &(u32, u32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}-{last}"),
    };
    let runs: Vec<String> = runs.iter().map(run).collect();
    format!("{} {}:", if ranks.len() == 1 { "rank" } else { "ranks" }, runs.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lying(source: Option<u32>, match_bits: u64, ignore_bits: u64) -> Lying {
        Lying { source, match_bits, ignore_bits }
    }

    #[test]
    fn a_rank_is_described_by_what_it_waits_for_and_what_lies_there() {
        let inside = Inside {
            receives: vec![lying(Some(1), 7, 0)],
            messages: vec![lying(Some(1), 8, 0), lying(Some(9), 3 << 33 | 2, 0), lying(Some(1), 8, 0)],
        };
        assert_eq!(
            describe('S', Waiting::For(1), &inside, 4),
            "waiting in MPI for rank 1; receives posted: from rank 1 with tag 7; arrived, not received: \
             from a process of another world with tag 2, not on MPI_COMM_WORLD, from rank 1 with tag 8 (2 times)"
        );
        let inside =
            Inside { receives: vec![lying(None, 0, TAG), lying(Some(2), OF_LIBRARY, 0)], messages: vec![] };
        assert_eq!(
            describe('S', Waiting::ForElse, &inside, 4),
            "waiting in MPI; receives posted: from any rank with any tag, from rank 2, of a collective operation"
        );
        assert!(describe('T', Waiting::ForAny, &Inside::default(), 4).starts_with("stopped"));
        assert!(describe('R', Waiting::Not, &Inside::default(), 4).starts_with("computing"));
        assert!(describe('S', Waiting::Not, &Inside::default(), 4).ends_with("outside MPI"));
    }

    #[test]
    fn many_kinds_and_many_ranks_are_told_in_few_words() {
        let messages = (0..100).map(|tag| lying(Some(0), tag, 0)).collect::<Vec<_>>();
        assert!(listed(&messages, 1).ends_with("and 97 of other kinds"));
        let mut told: BTreeMap<u32, String> =
            (0..1000).map(|rank| (rank, "waiting in MPI".to_owned())).collect();
        told.insert(4, "stopped".to_owned());
        assert_eq!(lines(&told), "\n  ranks 0-3, 5-999: waiting in MPI\n  rank 4: stopped");
        let told = (0..100).map(|rank| (rank, format!("waiting in MPI for rank {rank}"))).collect();
        assert_eq!(lines(&told).lines().count(), 1 + LINES + 1);
        assert!(lines(&told).ends_with("and 76 more ranks"));
        assert_eq!(lines(&BTreeMap::new()), "");
        assert_eq!(named(&[0, 1, 3]), "ranks 0, 1, 3:");
    }
}
