//! The agents below a guardian: how they are started, watched, and heard.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use parnass_base::process::{Start, prepare};
use rustix::event::epoll;
use rustix::process::{Pid, Signal, getpid, kill_process_group};

use super::{Guardian, Source};
use crate::agent::channel::Channel;
use crate::agent::frames::{Order, Report};
use crate::agent::plan::{Plan, Roster};
use crate::agent::start::AGENT_OPTION;
use crate::agent::{Greeting, take_greeting};
use crate::report;

/// An agent that is not ready after this time never will be.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Each agent is asked in this interval whether it lives, ...
const PING: Duration = Duration::from_secs(2);
/// ... and given up when it has said nothing for so long.
const SILENCE: Duration = Duration::from_secs(10);
/// Between the end of an agent's output and that of its starter, or the other way round.
const CLOSING: Duration = Duration::from_secs(1);
/// The most that is kept of what a starter says before its agent is there.
const SAID_BYTES: usize = 2048;
/// Input for rank 0 that is on its way.
const INPUT_WINDOW: usize = 64 << 10;

/// An agent that this guardian has started, with those that it starts in turn.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) host: String,
    /// The ranks there and below, ascending.
    pub(super) ranks: Vec<u32>,
    /// No process of it is left; what is still to come is output.
    pub(super) gone: bool,
    roster: Roster,
    starter: Pid,
    starter_ended: Option<ExitStatus>,
    channel: Channel,
    errors: Option<File>,
    said: Vec<u8>,
    greeted: bool,
    ready: bool,
    lost: bool,
    heard: Instant,
    started: Instant,
    /// Since when its end is known.
    closing: Option<Instant>,
    /// Bytes of output that have come and are not acknowledged.
    owed: u32,
}

/// Standard input on its way to rank 0, which is below.
#[derive(Debug)]
pub(super) struct Feed {
    input: Option<OwnedFd>,
    /// Whether it is in the poll set.
    polled: bool,
    /// It is a file, which can always be read and never waited for.
    always_ready: bool,
    /// How much more may be on its way.
    window: usize,
}

impl Feed {
    pub(super) fn new(input: OwnedFd) -> Feed {
        Feed { input: Some(input), polled: false, always_ready: false, window: INPUT_WINDOW }
    }
}

impl Guardian {
    // ---- starting ----

    /// Starts an agent for each group of the nodes below.
    pub(super) fn start_agents(&mut self) {
        let groups: Vec<Vec<u32>> = self.roster.groups().into_iter().map(<[u32]>::to_vec).collect();
        for group in groups {
            if let Err(error) = self.start_agent(&group) {
                let host = self.roster.description.nodes.name(group[0]);
                let command = self.roster.way.shown(host);
                let message = format!("no agent can be started on {host}: `{command}`: {error}");
                return self.fail(1, &message);
            }
        }
    }

    fn start_agent(&mut self, group: &[u32]) -> std::io::Result<()> {
        let roster = Roster { node: Some(group[0]), below: group[1..].to_vec(), ..self.roster.clone() };
        let nodes = &roster.description.nodes;
        let host = nodes.name(group[0]).to_owned();
        let ranks = (0..nodes.size()).filter(|&rank| group.contains(&nodes.of_rank(rank))).collect();
        let mut command = roster.way.prepare(&host);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let own = getpid().as_raw_nonzero().get();
        prepare(&mut command, Start { own_process_group: true, dies_with: Some(own), ..Start::default() });
        let mut child = command.spawn()?;
        let starter = Pid::from_raw(child.id() as i32).expect("a process id above 0");
        let (Some(input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        };
        let channel = Channel::new(output.into(), input.into())?;
        rustix::io::ioctl_fionbio(&errors, true)?;
        let errors = File::from(OwnedFd::from(errors));
        let index = self.agents.len();
        let edge = epoll::EventFlags::OUT | epoll::EventFlags::ET;
        epoll::add(&self.epoll, channel.input(), Source::Agent(index).encode(), epoll::EventFlags::IN)?;
        epoll::add(&self.epoll, channel.output(), Source::Agent(index).encode(), edge)?;
        epoll::add(&self.epoll, &errors, Source::AgentErrors(index).encode(), epoll::EventFlags::IN)?;
        let now = Instant::now();
        self.agents.push(Agent {
            host,
            ranks,
            gone: false,
            roster,
            starter,
            starter_ended: None,
            channel,
            errors: Some(errors),
            said: Vec::new(),
            greeted: false,
            ready: false,
            lost: false,
            heard: now,
            started: now,
            closing: None,
            owed: 0,
        });
        Ok(())
    }

    fn send_plan(&mut self, index: usize) {
        let directory = std::env::current_dir().unwrap_or_else(|_| "/".into());
        let plan = Plan {
            roster: self.agents[index].roster.clone(),
            job: self.job.clone(),
            variables: self.variables.clone(),
            directory,
            terminals: if self.above.is_some() {
                self.terminals
            } else {
                [rustix::stdio::stdout(), rustix::stdio::stderr()].map(rustix::termios::isatty)
            },
        };
        self.agents[index].channel.queue(&Order::Plan(plan.encode()));
    }

    /// When this node and all below are ready, says so, or has all start.
    pub(super) fn ready_if_all_are(&mut self) {
        if self.is_ending() || !self.agents.iter().all(|agent| agent.ready) {
            return;
        }
        if self.above.is_some() {
            self.report(Report::Ready);
        } else if !self.go {
            self.go = true;
            self.order_all(&Order::Start);
            self.watch_input();
        }
    }

    // ---- hearing ----

    pub(super) fn read_agent(&mut self, index: usize) {
        loop {
            let agent = &mut self.agents[index];
            let came = agent.channel.read();
            if came {
                agent.heard = Instant::now();
            }
            if !agent.greeted {
                match take_greeting(agent.channel.arrived()) {
                    Greeting::Incomplete => {}
                    Greeting::Known if self.term_at.is_some() || self.kill_at.is_some() => {
                        return self.drop_strangers();
                    }
                    Greeting::Known => {
                        agent.greeted = true;
                        self.send_plan(index);
                    }
                    Greeting::Other(line) => {
                        let version = line.split(' ').nth(2).unwrap_or("unknown").to_owned();
                        let reason = format!(
                            "it is of Parnass {version} and mpiexec of {}; have the same release on both, or name it \
                             with --prefix",
                            env!("CARGO_PKG_VERSION")
                        );
                        return self.lose_agent(index, &reason);
                    }
                }
            }
            while self.agents[index].greeted
                && let Some(report) = self.agents[index].channel.next()
            {
                self.hear(index, report);
            }
            let agent = &mut self.agents[index];
            if agent.channel.is_closed() && agent.closing.is_none() {
                agent.closing = Some(Instant::now());
            }
            if agent.channel.is_closed() {
                let _ = epoll::delete(&self.epoll, agent.channel.input());
            }
            if !came {
                return;
            }
        }
    }

    /// What a starter or an agent says on its standard error: kept until the agent is ready, then passed on.
    pub(super) fn read_agent_errors(&mut self, index: usize) {
        let mut bytes = [0; 4096];
        let Some(errors) = &mut self.agents[index].errors else { return };
        match errors.read(&mut bytes) {
            Ok(0) => self.agents[index].errors = None,
            Ok(count) => {
                let agent = &mut self.agents[index];
                agent.said.extend_from_slice(&bytes[..count]);
                let excess = agent.said.len().saturating_sub(SAID_BYTES);
                agent.said.drain(..excess);
                if agent.ready && !agent.gone {
                    self.pass_on_said(index);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => self.agents[index].errors = None,
        }
    }

    fn pass_on_said(&mut self, index: usize) {
        let agent = &mut self.agents[index];
        let Some(end) = memchr::memrchr(b'\n', &agent.said) else { return };
        let lines: Vec<u8> = agent.said.drain(..=end).collect();
        let host = agent.host.clone();
        for line in String::from_utf8_lossy(&lines).lines() {
            self.say(&format!("{host}: {}", line.trim_start_matches("mpiexec: ")));
        }
    }

    fn hear(&mut self, index: usize, report: Report) {
        let agent = &mut self.agents[index];
        let known = |rank: u32| agent.ranks.binary_search(&rank).is_ok();
        let sensible = match &report {
            Report::Started { rank, .. } | Report::Output { rank, .. } | Report::Ended { rank, .. } => {
                known(*rank)
            }
            Report::Account { rank, .. } | Report::Appeal { rank, .. } | Report::Waits { rank, .. } => {
                known(*rank)
            }
            Report::Verdict { rank, .. } => rank.is_none_or(known),
            Report::Exchange { parts, .. } => parts.iter().all(|(rank, _)| known(*rank)),
            _ => true,
        };
        if !sensible {
            return self.lose_agent(index, "it speaks of ranks that it does not have");
        }
        match report {
            Report::Ready => {
                agent.ready = true;
                agent.said.clear();
                self.ready_if_all_are();
            }
            Report::Output { rank, stream, bytes } => {
                agent.owed = agent.owed.saturating_add(bytes.len() as u32);
                let sink = usize::from(stream).min(self.sinks.len() - 1);
                // Streams of this node have small numbers.
                let key = usize::MAX - (rank as usize * 2 + usize::from(stream));
                self.sinks[sink].push(key, rank, &bytes);
            }
            Report::Exchange { wave, round, parts } => self.collect(wave, round, parts),
            Report::Gone => agent.gone = true,
            Report::Pong => {}
            Report::Guests(count) => self.count_guests(index, count),
            Report::Account { rank, account } if self.above.is_none() => {
                self.accounts.insert(rank, account);
            }
            Report::Started { rank, process } => {
                self.ranks[rank as usize].process = Pid::from_raw(process.max(1));
                self.report(report);
            }
            Report::Ended { rank, status } => {
                self.ranks[rank as usize].ended = Some(ExitStatus::from_raw(status));
                self.decide_without(rank);
                self.report(report);
            }
            Report::Say(text) if self.above.is_none() => {
                let host = agent.host.clone();
                self.say(&format!("{host}: {text}"));
            }
            Report::Verdict { verdict, code, rank, text } if self.above.is_none() => {
                self.decide(verdict, code, rank.map(|rank| rank as usize), &text);
            }
            Report::Appeal { rank, wave, bytes } if self.above.is_none() => {
                self.take_appeal(rank, wave, &bytes);
            }
            Report::Waits { rank, sleeps, text } => self.note_waiting(rank, sleeps, text),
            Report::InputTaken(bytes) if self.above.is_none() => {
                if let Some(feed) = &mut self.feed {
                    feed.window += bytes as usize;
                }
                self.watch_input();
            }
            report => self.report(report),
        }
    }

    // ---- telling ----

    /// Gives an order to every agent below.
    pub(super) fn order_all(&mut self, order: &Order) {
        for agent in self.agents.iter_mut().filter(|agent| agent.greeted && !agent.lost) {
            agent.channel.queue(order);
        }
    }

    /// Ends the starters of agents that have no plan yet: they have nothing to end themselves.
    pub(super) fn drop_strangers(&self) {
        for agent in self.agents.iter().filter(|agent| !agent.greeted && agent.starter_ended.is_none()) {
            let _ = kill_process_group(agent.starter, Signal::TERM);
        }
    }

    /// Gives an order to the agent that a rank is with.
    pub(super) fn order_for(&mut self, rank: u32, order: &Order) {
        let there = |agent: &&mut Agent| agent.ranks.binary_search(&rank).is_ok();
        if let Some(agent) = self.agents.iter_mut().find(there).filter(|agent| agent.greeted && !agent.lost) {
            agent.channel.queue(order);
        }
    }

    /// Gives an order to the agent that rank 0 is with.
    pub(super) fn order_first(&mut self, order: &Order) {
        if let Some(agent) = self.agents.iter_mut().find(|agent| agent.ranks.first() == Some(&0)) {
            agent.channel.queue(order);
        }
    }

    /// Writes what it can to agents and above, and takes more output from agents where there is room for it.
    pub(super) fn flush_channels(&mut self) {
        let room = !self.sinks.iter().any(crate::output::Sink::is_full);
        for agent in &mut self.agents {
            if room && agent.owed > 0 {
                agent.channel.queue(&Order::Credit(std::mem::take(&mut agent.owed)));
            }
            agent.channel.flush();
        }
        self.flush_above();
    }

    // ---- input of rank 0 ----

    /// Polls standard input while more of it may be on its way.
    fn watch_input(&mut self) {
        let Some(feed) = &mut self.feed else { return };
        let Some(input) = &feed.input else { return };
        if feed.always_ready {
            return self.read_input();
        }
        let wanted = self.go && feed.window > 0;
        if wanted == feed.polled {
            return;
        }
        let changed = if wanted {
            epoll::add(&self.epoll, input, Source::Input.encode(), epoll::EventFlags::IN)
        } else {
            epoll::delete(&self.epoll, input)
        };
        match changed {
            Err(rustix::io::Errno::PERM) => {
                feed.always_ready = true;
                self.read_input();
            }
            _ => feed.polled = wanted,
        }
    }

    pub(super) fn read_input(&mut self) {
        let mut bytes = vec![0; INPUT_WINDOW];
        loop {
            let Some(feed) = &mut self.feed else { return };
            let Some(input) = &feed.input else { return };
            let room = feed.window.min(bytes.len());
            if room == 0 {
                break;
            }
            let count = match rustix::io::read(input, &mut bytes[..room]) {
                Ok(count) => count,
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => break,
                Err(_) => 0,
            };
            feed.window -= count;
            let always_ready = feed.always_ready;
            if count == 0 {
                if feed.polled {
                    let _ = epoll::delete(&self.epoll, input); // Closing it does not: mpiexec has it open too.
                }
                feed.input = None;
            }
            self.order_first(&Order::Input(bytes[..count].to_vec()));
            if count == 0 {
                return;
            }
            if !always_ready {
                break;
            }
        }
        if self.feed.as_ref().is_some_and(|feed| !feed.always_ready) {
            self.watch_input();
        }
    }

    // ---- watching ----

    /// A child that is no rank has ended.
    pub(super) fn starter_ended(&mut self, process: Pid, status: ExitStatus) {
        if let Some(index) = self.agents.iter().position(|agent| agent.starter == process) {
            self.agents[index].starter_ended = Some(status);
            self.agents[index].closing.get_or_insert(Instant::now());
            self.read_agent(index);
            self.read_agent_errors(index);
        }
    }

    /// The starters of the agents that `choose` picks, as long as they run.
    pub(super) fn starters(&self, choose: impl Fn(&Agent) -> bool) -> Vec<Pid> {
        let running = self.agents.iter().filter(|agent| agent.starter_ended.is_none());
        running.filter(|agent| choose(agent)).map(|agent| agent.starter).collect()
    }

    /// When the agents must be looked at again.
    pub(super) fn next_look(&self) -> Option<Instant> {
        let closing = self.agents.iter().filter(|agent| !agent.lost && !agent.gone);
        let closing = closing.filter_map(|agent| agent.closing.map(|since| since + CLOSING));
        let watches = !self.agents.is_empty() || self.above.is_some();
        closing.chain(watches.then(|| self.looked + PING)).min()
    }

    /// Asks the agents whether they live, and gives up those that do not.
    pub(super) fn look_at_agents(&mut self, now: Instant) {
        if self.agents.is_empty() && self.above.is_none() {
            return;
        }
        // Time in which this process itself did not run (a suspended machine, a debugger) counts for nobody.
        let asleep = now.saturating_duration_since(self.looked).saturating_sub(2 * PING);
        self.looked = now;
        self.look_above(now, asleep);
        for agent in &mut self.agents {
            agent.heard += asleep;
            agent.started += asleep;
        }
        if now >= self.pinged + PING {
            self.pinged = now;
            for agent in self.agents.iter_mut().filter(|agent| agent.ready && !agent.lost) {
                agent.channel.queue(&Order::Ping);
            }
        }
        for index in 0..self.agents.len() {
            let agent = &self.agents[index];
            if agent.lost || agent.gone {
                continue;
            }
            let both_ended = agent.channel.is_closed() && agent.starter_ended.is_some();
            let reason = match agent.closing {
                Some(since) if both_ended || since + CLOSING <= now => match agent.starter_ended {
                    Some(status) => format!("its starter {}", report::ending(status)),
                    None => "its connection was closed".to_owned(),
                },
                Some(_) => continue,
                None if agent.ready && agent.heard + SILENCE <= now => {
                    format!("it has not answered for {} s; is the host frozen or cut off?", SILENCE.as_secs())
                }
                None if !agent.ready && agent.started + START_LIMIT <= now => {
                    format!("it was not ready after {} s", START_LIMIT.as_secs())
                }
                None => continue,
            };
            self.lose_agent(index, &reason);
        }
    }

    /// An agent is there no more, or was never: its ranks are lost, and the job with them.
    fn lose_agent(&mut self, index: usize, reason: &str) {
        if self.agents[index].lost {
            return;
        }
        self.read_agent_errors(index);
        let agent = &mut self.agents[index];
        agent.lost = true;
        let said = String::from_utf8_lossy(&agent.said).trim().to_owned();
        let (host, command) = (agent.host.clone(), agent.roster.way.shown(&agent.host));
        let mut message = if agent.ready {
            format!("the agent on {host} is lost: {reason}")
        } else {
            format!("no agent could be started on {host}: {reason}\n  the command: {command}")
        };
        if !said.is_empty() {
            message.push_str(&format!("\n  it said: {}", said.replace('\n', "\n           ")));
        }
        if !agent.ready {
            let code = agent.starter_ended.and_then(|status| status.code());
            let advice = match code {
                Some(126 | 127) if !agent.roster.way.is_local() => format!(
                    "is Parnass installed there as {}? Else name its place with --prefix",
                    agent.roster.way.program.display()
                ),
                Some(2) if said.contains(AGENT_OPTION) => "another mpiexec is installed there".to_owned(),
                _ => agent.roster.way.advice(&host),
            };
            if !advice.is_empty() {
                message.push_str(&format!("\n  {advice}"));
            }
        }
        let mut gone = Vec::new();
        for rank in agent.ranks.clone() {
            let place = &mut self.ranks[rank as usize];
            if place.ended.is_none() {
                gone.push(rank);
                place.ended = Some(ExitStatus::from_raw(Signal::KILL.as_raw()));
                self.report(Report::Ended { rank, status: Signal::KILL.as_raw() });
            }
        }
        let agent = &self.agents[index];
        if agent.starter_ended.is_none() {
            let _ = kill_process_group(agent.starter, Signal::KILL);
        }
        if agent.ready && self.go {
            return self.lose_ranks(&gone, 1, &message);
        }
        self.fail(1, &message);
    }
}
