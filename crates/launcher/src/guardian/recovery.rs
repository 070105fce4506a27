//! Ranks that die while the job goes on (`--survive`): who is told, and what the others agree on. All appeals come to the guardian
//! at the top, which alone decides; so all ranks hear the same, in the same order, whoever dies meanwhile.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use parnass_bootstrap::Message;
use parnass_bootstrap::recovery::{Appeal, Contribution, Decision, News};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::Guardian;
use crate::agent::frames::{Order, Report, Verdict};
use crate::report::counted;

/// Between two tries to tell a process that takes nothing.
const AGAIN: Duration = Duration::from_millis(5);

/// The way of news to one process.
#[derive(Debug, Default)]
pub(super) struct Courier {
    /// `None` until it has joined.
    socket: Option<OwnedFd>,
    /// What could not be told yet.
    waiting: VecDeque<Message>,
}

/// What is known of the dead and of agreements under way.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    dead: BTreeSet<u32>,
    /// The exit code that the first of them would have given to the job.
    first_code: Option<u8>,
    /// By wave, communicator and number.
    ballots: BTreeMap<(u32, u32, u32), Ballot>,
}

/// An agreement: the parts that have been given.
#[derive(Debug, Default)]
struct Ballot {
    members: Vec<u32>,
    given: BTreeMap<u32, Contribution>,
}

impl Ballot {
    /// The decision, once every member has given its part or will not any more.
    fn decide(&self, absent: impl Fn(u32) -> bool) -> Option<Decision> {
        let gone: Vec<u32> = self.members.iter().copied().filter(|&member| absent(member)).collect();
        let is_gone = |member: &u32| gone.contains(member);
        if !self.members.iter().all(|member| self.given.contains_key(member) || is_gone(member)) {
            return None;
        }
        let living = || {
            self.members.iter().filter(|member| !is_gone(member)).filter_map(|member| self.given.get(member))
        };
        Some(Decision {
            flag: self.given.values().fold(u32::MAX, |flags, part| flags & part.flag),
            word: living().next().map_or(0, |part| part.word),
            unacknowledged: gone.iter().any(|dead| living().any(|part| !part.acknowledged.contains(dead))),
            failed: gone,
        })
    }
}

impl Guardian {
    /// A socket on which a process that joins is told news; what there is already is on its way.
    pub(super) fn open_news(&mut self, index: usize) -> io::Result<OwnedFd> {
        let (near, far) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        rustix::io::ioctl_fionbio(&near, true)?;
        if let Some(connection) = &mut self.connections[index] {
            connection.news.socket = Some(near);
            if !self.recovery.dead.is_empty() {
                let dead = self.recovery.dead.iter().copied().collect();
                connection.news.waiting.push_back(Message::News(News::Failed(dead).encode()));
            }
        }
        Ok(far)
    }

    /// Tells what waits to be told, as far as it is taken.
    pub(super) fn flush_news(&mut self) {
        for connection in self.connections.iter_mut().flatten() {
            let Courier { socket: Some(socket), waiting } = &mut connection.news else { continue };
            while let Some(message) = waiting.front() {
                match parnass_bootstrap::send(socket.as_fd(), message, &[]) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    // Or the process is gone, which is seen by the end of its connection.
                    _ => waiting.pop_front(),
                };
            }
        }
    }

    /// When something must be tried again to be told.
    pub(super) fn next_telling(&self) -> Option<Instant> {
        let waits = self.connections.iter().flatten().any(|connection| !connection.news.waiting.is_empty());
        waits.then(|| Instant::now() + AGAIN)
    }

    /// News for a rank, or for all, of here and below.
    pub(super) fn pass_news(&mut self, rank: Option<u32>, wave: Option<u32>, bytes: &[u8]) {
        if let Some(News::Failed(dead)) = News::decode(bytes) {
            self.recovery.dead.extend(dead);
        }
        for connection in self.connections.iter_mut().flatten() {
            let concerned = connection.rank.is_some_and(|own| rank.is_none_or(|rank| rank as usize == own))
                && wave.is_none_or(|wave| wave == connection.wave);
            if concerned && connection.news.socket.is_some() {
                connection.news.waiting.push_back(Message::News(bytes.to_vec()));
            }
        }
        let order = Order::News { rank, wave, bytes: bytes.to_vec() };
        match rank {
            Some(rank) if self.own.binary_search(&(rank as usize)).is_err() => self.order_for(rank, &order),
            Some(_) => {}
            None => self.order_all(&order),
        }
    }

    // ---- appeals

    /// A process of this node has something for others: it goes to the top.
    pub(super) fn pass_appeal(&mut self, rank: u32, wave: u32, bytes: Vec<u8>) {
        if self.above.is_some() {
            self.report(Report::Appeal { rank, wave, bytes });
        } else {
            self.take_appeal(rank, wave, &bytes);
        }
    }

    /// What a rank asks for is done.
    pub(super) fn take_appeal(&mut self, rank: u32, wave: u32, bytes: &[u8]) {
        match Appeal::decode(bytes) {
            Some(Appeal::Revoke { context }) => {
                self.pass_news(None, Some(wave), &News::Revoked { context }.encode());
            }
            Some(Appeal::Agree(part)) => {
                let ranks = self.ranks.len() as u32;
                if !part.members.contains(&rank) || part.members.iter().any(|&member| member >= ranks) {
                    return;
                }
                let key = (wave, part.context, part.number);
                let ballot = self.recovery.ballots.entry(key).or_default();
                ballot.members.clone_from(&part.members);
                ballot.given.insert(rank, part);
                self.decide_ballot(key);
            }
            Some(Appeal::Unreachable { rank: other, reason }) if (other as usize) < self.ranks.len() => {
                // It may live, cut off: it ends when it hears that it counts as dead.
                if !self.is_absent(other) {
                    let (name, from) = (self.name(other as usize), self.name(rank as usize));
                    let text = format!("{name} counts as dead, since {from} cannot reach it: {reason}");
                    self.lose_ranks(&[other], 1, &text);
                }
            }
            Some(Appeal::Unreachable { .. }) | None => {}
        }
    }

    /// Whether a rank will take part in no agreement any more.
    fn is_absent(&self, rank: u32) -> bool {
        self.recovery.dead.contains(&rank) || self.ranks[rank as usize].ended.is_some()
    }

    fn decide_ballot(&mut self, key: (u32, u32, u32)) {
        let Some(ballot) = self.recovery.ballots.get(&key) else { return };
        let Some(decision) = ballot.decide(|rank| self.is_absent(rank)) else { return };
        let given: Vec<u32> = ballot.given.keys().copied().collect();
        self.recovery.ballots.remove(&key);
        let (wave, context, number) = key;
        let bytes = News::Agreed { context, number, decision }.encode();
        for rank in given {
            self.pass_news(Some(rank), Some(wave), &bytes);
        }
    }

    /// A rank has ended, well or not: agreements do not wait for it.
    pub(super) fn decide_without(&mut self, rank: u32) {
        let concerned =
            |(key, ballot): (&(u32, u32, u32), &Ballot)| ballot.members.contains(&rank).then_some(*key);
        let keys: Vec<_> = self.recovery.ballots.iter().filter_map(concerned).collect();
        keys.into_iter().for_each(|key| self.decide_ballot(key));
    }

    // ---- deaths

    /// A rank of this node has died. Ends the job, unless it is to go on and can.
    pub(super) fn lose(&mut self, rank: usize, code: u8, report: &str) {
        // Who has never joined leaves the others waiting in MPI_Init, and over several hosts so does who has not said where it is.
        let place = &self.ranks[rank];
        let known =
            place.joined > 0 && (self.roster.description.nodes.count() == 1 || self.exchanges.has_begun());
        if !self.job.survives || !known || self.is_ending() {
            return self.fail(code, report);
        }
        if !self.leave_to_above(Verdict::Lost, code, Some(rank), report) {
            self.lose_ranks(&[rank as u32], code, report);
        }
    }

    /// Ranks have died, here or below.
    pub(super) fn lose_ranks(&mut self, ranks: &[u32], code: u8, report: &str) {
        if !self.job.survives || self.is_ending() {
            return self.fail(code, report);
        }
        let new: Vec<u32> = ranks.iter().copied().filter(|rank| !self.recovery.dead.contains(rank)).collect();
        if self.above.is_some() {
            // An agent below an agent: the top says it, and tells the ranks.
            for (index, rank) in new.into_iter().enumerate() {
                let text = if index == 0 { report } else { "" };
                self.leave_to_above(Verdict::Lost, code, Some(rank as usize), text);
            }
            return;
        }
        if new.is_empty() && !ranks.is_empty() {
            return; // Told before.
        }
        if !report.is_empty() {
            let left = self.ranks.len() - self.recovery.dead.len() - new.len();
            self.say(&format!("{report}; going on with {}", counted(left, "rank")));
        }
        self.recovery.first_code.get_or_insert(code);
        self.pass_news(None, None, &News::Failed(new.clone()).encode());
        new.into_iter().for_each(|rank| self.decide_without(rank));
    }

    /// The exit code of a job that nothing has ended: 0, unless nobody is left who has come to a good end.
    pub(super) fn code_of_survivors(&self) -> u8 {
        let well = |rank: &crate::ranks::Rank| rank.ended.is_some_and(|status| status.success());
        let survivors = (0..).zip(&self.ranks).filter(|(rank, _)| !self.recovery.dead.contains(rank));
        match self.recovery.first_code {
            Some(code) if survivors.map(|(_, rank)| rank).filter(|rank| well(rank)).count() == 0 => code,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ballot(parts: &[(u32, u32, &[u32])]) -> Ballot {
        let members = vec![4, 2, 7, 9];
        let part = |flag, acknowledged: &[u32], word| Contribution {
            context: 6,
            number: 0,
            members: members.clone(),
            flag,
            word,
            acknowledged: acknowledged.to_vec(),
        };
        let given = parts.iter().map(|&(rank, flag, known)| (rank, part(flag, known, 100 + rank))).collect();
        Ballot { members: members.clone(), given }
    }

    #[test]
    fn every_living_member_is_waited_for() {
        let three = ballot(&[(4, 7, &[]), (2, 3, &[]), (9, 6, &[])]);
        assert_eq!(three.decide(|_| false), None);
        let decision = three.decide(|rank| rank == 7).unwrap();
        assert_eq!((decision.flag, decision.word, decision.unacknowledged), (2, 104, true));
        assert_eq!(decision.failed, [7]);
    }

    #[test]
    fn the_word_is_that_of_the_first_who_lives() {
        let all = ballot(&[(4, 1, &[]), (2, 1, &[4]), (7, 1, &[4]), (9, 1, &[4, 2])]);
        let decision = all.decide(|rank| rank == 4).unwrap();
        assert_eq!((decision.word, decision.unacknowledged), (102, false));
        let nobody_dead = all.decide(|_| false).unwrap();
        assert_eq!((nobody_dead.word, nobody_dead.unacknowledged), (104, false));
        assert!(nobody_dead.failed.is_empty());
    }

    #[test]
    fn a_death_counts_as_acknowledged_only_when_all_who_live_say_so() {
        let one_knows = ballot(&[(4, 1, &[7]), (2, 1, &[]), (9, 1, &[7])]);
        assert!(one_knows.decide(|rank| rank == 7).unwrap().unacknowledged);
        let all_know = ballot(&[(4, 1, &[7]), (2, 1, &[7]), (9, 1, &[7])]);
        assert!(!all_know.decide(|rank| rank == 7).unwrap().unacknowledged);
        assert!(all_know.decide(|_| true).is_some(), "nobody is left to be told");
    }
}
