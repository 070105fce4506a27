//! Who waits for whom: what the user is told of a job that has run out of its time.
//!
//! Each guardian reads what its ranks show in the memory that they share: no rank has to answer, and a stopped one is told of like any other.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parnass_portals::{Inside, Lying, look_inside};
use parnass_transport::Waiting;
use parnass_transport_shm::JobMemory;
use rustix::process::Signal;

use super::calls::{self, Doing};
use super::{GRACE, Guardian, TIMED_OUT};
use crate::agent::frames::{Order, Report};
use crate::descendants;
use crate::ranks::Rank;
use crate::report::counted;

/// What a rank does that has not begun.
const OUTSIDE: &str = "before MPI_Init";
/// The same of one whose host did not answer.
const SILENT: &str = "unknown: the host does not answer";
/// So long agents are waited for, at most, and so long the stacks of the ranks of a node are looked at. Who interrupts a job does not wait long.
const ANSWER_DELAY: Duration = Duration::from_secs(5);
const LOOKING: Duration = Duration::from_secs(3);
const ANSWER_DELAY_AT_SIGNAL: Duration = Duration::from_millis(500);
const LOOKING_AT_SIGNAL: Duration = Duration::from_millis(300);
/// Lines of a report, and messages in each of them.
const LINES: usize = 24;
const KINDS: usize = 3;
/// Of the match bits of a message, as `parnass-mpi` makes them: its tag below, its communicator above, and which of that one's two spaces it lies in.
const TAG: u64 = u32::MAX as u64;
const OF_LIBRARY: u64 = 1 << 32;

/// Why it was asked what the ranks do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The time of the job is over.
    TimeLimit,
    /// The user ends the job with this signal, which they are given afterwards.
    Signal(i32),
    /// The user wants to know.
    Question,
}

/// What a rank does.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    /// It sleeps in MPI until something comes.
    sleeps: bool,
    text: String,
}

/// A question that is being answered.
#[derive(Debug)]
pub(super) struct Inquiry {
    why: Why,
    pub(super) until: Instant,
    told: BTreeMap<u32, Told>,
}

impl Guardian {
    /// Begins to find out what the ranks do; replaces a question that is not answered yet.
    pub(super) fn inquire(&mut self, why: Why) {
        let thorough = !matches!(why, Why::Signal(_));
        let delay = if thorough { ANSWER_DELAY } else { ANSWER_DELAY_AT_SIGNAL };
        self.inquiry = Some(Inquiry { why, until: Instant::now() + delay, told: BTreeMap::new() });
        self.ask_ranks(thorough);
    }

    /// Whether the user's signal waits for an answer.
    pub(super) fn is_asked_by_signal(&self) -> bool {
        self.inquiry.as_ref().is_some_and(|inquiry| matches!(inquiry.why, Why::Signal(_)))
    }

    /// Does what was to be done with the answer, if it is there or has been waited for long enough.
    pub(super) fn conclude_inquiry(&mut self, now: Instant) {
        let is_over =
            |inquiry: &mut Inquiry| inquiry.until <= now || has_told_all(&self.ranks, &inquiry.told);
        let Some(Inquiry { why, mut told, .. }) = self.inquiry.take_if(is_over) else { return };
        for (number, _) in self.ranks.iter().enumerate().filter(|(_, rank)| rank.is_running()) {
            let silent = || Told { sleeps: false, text: SILENT.to_owned() };
            told.entry(number as u32).or_insert_with(silent);
        }
        match why {
            Why::TimeLimit => {
                self.deadline = Some(now + GRACE); // For the readers of our output, in the end.
                let seconds = self.job.timeout.unwrap_or_default().as_secs_f64();
                // Of a program that is none of MPI there is nothing to say.
                let is_outside = told.values().all(|told| told.text == OUTSIDE);
                let lines = if is_outside { String::new() } else { lines(&told) };
                self.end(TIMED_OUT, &format!("the job was ended after its time limit of {seconds} s{lines}"));
            }
            Why::Signal(signal) => {
                // Somebody works, or may: then it is no news who waits.
                if told.values().all(|told| told.sleeps) {
                    self.at_signal = lines(&told);
                }
                self.pass_on(signal);
            }
            Why::Question => {
                let world = if self.caller.is_some() { "ranks that were spawned" } else { "ranks" };
                self.say(&format!("what the {world} do (asked by SIGQUIT; they go on):{}", lines(&told)));
            }
        }
    }

    /// Asks what the ranks do that are still running, here and below. `thorough`: to take time for it, and to ask the worlds that they have started.
    pub(super) fn ask_ranks(&mut self, thorough: bool) {
        self.order_all(&Order::Explain { thorough });
        if thorough {
            self.signal_guests(Signal::QUIT);
        }
        let memory =
            self.memory_of_ranks.as_ref().and_then(|file| JobMemory::open(file.try_clone().ok()?).ok());
        let running = self.own.iter().copied().enumerate().filter(|&(_, rank)| self.ranks[rank].is_running());
        let running: Vec<(usize, usize)> = running.collect();
        let connection =
            |rank: usize| self.ranks[rank].member.and_then(|member| self.connections[member].as_ref());
        let process = |rank: usize| connection(rank)?.process.map(|process| process.as_raw_nonzero().get());
        let processes: Vec<(usize, i32)> =
            running.iter().filter_map(|&(_, rank)| Some((rank, process(rank)?))).collect();
        let mut doing = calls::of(&processes, if thorough { LOOKING } else { LOOKING_AT_SIGNAL });
        let size = self.ranks.len();
        let told: Vec<(usize, Told)> = running
            .into_iter()
            .map(|(local, rank)| {
                let doing = doing.remove(&rank).unwrap_or_default();
                let attached = memory.as_ref().and_then(|memory| attached(memory, local as u32));
                let told = match (connection(rank), attached) {
                    (None, _) => Told { sleeps: false, text: OUTSIDE.to_owned() },
                    (Some(connection), _) if connection.finalized => {
                        Told { sleeps: false, text: within(&doing, "in or after MPI_Finalize") }
                    }
                    (Some(_), None) => Told { sleeps: false, text: within(&doing, "in MPI_Init") },
                    (Some(_), Some((state, waiting, inside))) => {
                        describe(state, waiting, &doing, &inside, size)
                    }
                };
                (rank, told)
            })
            .collect();
        for (rank, Told { sleeps, text }) in told {
            self.note_waiting(rank as u32, sleeps, text);
        }
    }

    /// What a rank does, as the guardian of its node has found out.
    pub(super) fn note_waiting(&mut self, rank: u32, sleeps: bool, text: String) {
        if self.above.is_some() {
            self.report(Report::Waits { rank, sleeps, text });
        } else if let Some(inquiry) = &mut self.inquiry {
            inquiry.told.insert(rank, Told { sleeps, text });
        }
    }
}

/// Whether it was found out of every rank.
fn has_told_all(ranks: &[Rank], told: &BTreeMap<u32, Told>) -> bool {
    ranks.iter().enumerate().all(|(number, rank)| !rank.is_running() || told.contains_key(&(number as u32)))
}

/// The state of the process of a rank (proc(5)), for whom it waits, and what lies in its NIC; `None` before it has attached.
fn attached(memory: &JobMemory, local: u32) -> Option<(char, Waiting, Inside)> {
    let (process, waiting) = memory.observe(local);
    let state = descendants::state_and_parent(process as i32).map_or('?', |(state, _)| state);
    let (nic, counters) = memory.nic(local);
    (process != 0).then(|| (state, waiting, look_inside(&nic, &counters)))
}

/// In which procedure a rank is; `unknown` where that was not found out.
fn within(doing: &Doing, unknown: &str) -> String {
    let head = doing.procedure.as_ref().map_or(unknown.to_owned(), |procedure| format!("in {procedure}"));
    with_place(head, doing)
}

fn with_place(head: String, doing: &Doing) -> String {
    if doing.place.is_empty() { head } else { format!("{head}, {}", doing.place) }
}

/// What a rank does.
fn describe(state: char, waiting: Waiting, doing: &Doing, inside: &Inside, size: usize) -> Told {
    let procedure = doing.procedure.as_deref();
    let sleeps = waiting != Waiting::Not && matches!(state, 'S' | 'D');
    let head = match (state, waiting, procedure) {
        ('T' | 't', _, None) => "stopped, by a signal or a debugger".to_owned(),
        ('T' | 't', _, Some(procedure)) => format!("stopped, by a signal or a debugger, in {procedure}"),
        (_, Waiting::For(rank), _) => {
            format!("waiting in {} for {}", procedure.unwrap_or("MPI"), of_job(rank, size))
        }
        (_, Waiting::ForAny | Waiting::ForElse, _) => format!("waiting in {}", procedure.unwrap_or("MPI")),
        (_, Waiting::Not, Some(procedure)) => format!("in {procedure}"),
        ('R', Waiting::Not, None) => "computing, or asking MPI again and again".to_owned(),
        (_, Waiting::Not, None) => "waiting for something outside MPI".to_owned(),
    };
    let mut text = with_place(head, doing);
    for other in &doing.others {
        text += &format!("; another thread in {other}");
    }
    for (what, lying) in [("receives posted", &inside.receives), ("arrived, not received", &inside.messages)]
    {
        if !lying.is_empty() {
            text += &format!("; {what}: {}", listed(lying, size));
        }
    }
    Told { sleeps, text }
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
fn lines(told: &BTreeMap<u32, Told>) -> String {
    let mut groups: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for (&rank, told) in told {
        groups.entry(&told.text).or_default().push(rank);
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

    fn told(text: &str) -> Told {
        Told { sleeps: true, text: text.to_owned() }
    }

    #[test]
    fn a_rank_is_described_by_what_it_waits_for_and_what_lies_there() {
        let inside = Inside {
            receives: vec![lying(Some(1), 7, 0)],
            messages: vec![lying(Some(1), 8, 0), lying(Some(9), 3 << 33 | 2, 0), lying(Some(1), 8, 0)],
        };
        let unknown = Doing::default();
        assert_eq!(
            describe('S', Waiting::For(1), &unknown, &inside, 4),
            told(
                "waiting in MPI for rank 1; receives posted: from rank 1 with tag 7; arrived, not received: \
                 from a process of another world with tag 2, not on MPI_COMM_WORLD, from rank 1 with tag 8 (2 times)"
            )
        );
        let inside =
            Inside { receives: vec![lying(None, 0, TAG), lying(Some(2), OF_LIBRARY, 0)], messages: vec![] };
        assert_eq!(
            describe('S', Waiting::ForElse, &unknown, &inside, 4),
            told(
                "waiting in MPI; receives posted: from any rank with any tag, from rank 2, of a collective operation"
            )
        );
    }

    #[test]
    fn and_by_the_call_that_it_is_in() {
        let text = |state, waiting, doing: &Doing| {
            let told = describe(state, waiting, doing, &Inside::default(), 4);
            (told.sleeps, told.text)
        };
        let outside = Doing { place: "in f at a.c:3".to_owned(), ..Doing::default() };
        let inside = Doing {
            procedure: Some("MPI_Recv".to_owned()),
            place: "called by f at a.c:3".to_owned(),
            others: vec!["MPI_Send, called by g at a.c:4".to_owned()],
        };
        let rest = ", called by f at a.c:3; another thread in MPI_Send, called by g at a.c:4";
        let expected = [
            (false, "stopped, by a signal or a debugger, in f at a.c:3".to_owned()),
            (false, "computing, or asking MPI again and again, in f at a.c:3".to_owned()),
            (false, "waiting for something outside MPI, in f at a.c:3".to_owned()),
            (true, format!("waiting in MPI_Recv for rank 1{rest}")),
            (false, format!("waiting in MPI_Recv{rest}")),
            (false, format!("in MPI_Recv{rest}")),
            (false, format!("stopped, by a signal or a debugger, in MPI_Recv{rest}")),
        ];
        let given = [
            text('T', Waiting::ForAny, &outside),
            text('R', Waiting::Not, &outside),
            text('S', Waiting::Not, &outside),
            text('S', Waiting::For(1), &inside),
            text('R', Waiting::ForAny, &inside),
            text('S', Waiting::Not, &inside),
            text('T', Waiting::ForAny, &inside),
        ];
        assert_eq!(given, expected);
        assert_eq!(within(&Doing::default(), "in MPI_Init"), "in MPI_Init");
        assert_eq!(within(&outside, "in or after MPI_Finalize"), "in or after MPI_Finalize, in f at a.c:3");
    }

    #[test]
    fn many_kinds_and_many_ranks_are_told_in_few_words() {
        let messages = (0..100).map(|tag| lying(Some(0), tag, 0)).collect::<Vec<_>>();
        assert!(listed(&messages, 1).ends_with("and 97 of other kinds"));
        let mut all: BTreeMap<u32, Told> = (0..1000).map(|rank| (rank, told("waiting in MPI"))).collect();
        all.insert(4, told("stopped"));
        assert_eq!(lines(&all), "\n  ranks 0-3, 5-999: waiting in MPI\n  rank 4: stopped");
        let all = (0..100).map(|rank| (rank, told(&format!("waiting in MPI for rank {rank}")))).collect();
        assert_eq!(lines(&all).lines().count(), 1 + LINES + 1);
        assert!(lines(&all).ends_with("and 76 more ranks"));
        assert_eq!(lines(&BTreeMap::new()), "");
        assert_eq!(named(&[0, 1, 3]), "ranks 0, 1, 3:");
    }
}
