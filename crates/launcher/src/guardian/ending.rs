//! How a job ends: ranks that end, failures, signals, time, and the last turn.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, exit};
use std::time::{Duration, Instant};

use rustix::event::epoll;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::waiting::Why;
use super::{
    Connection, GRACE, Guardian, KILL_ROUND, LINGER, LOST_DELAY, OUTPUT_CLOSED, Source, TIMED_OUT, timespec,
};
use crate::agent::frames::{Order, Report, Verdict};
use crate::descendants::{self, Reaped};
use crate::leftovers;
use crate::output::Sink;
use crate::ranks::Rank;
use crate::report::{self, counted};

impl Guardian {
    // ---- ends ----

    pub(super) fn reap(&mut self) {
        loop {
            match descendants::reap() {
                Reaped::Ended(process, status, usage) => {
                    if let Some(rank) = self.by_process.remove(&process.as_raw_nonzero().get()) {
                        self.note_usage(rank, usage);
                        self.ended(rank, status);
                    } else if !self.guest_ended(process, status) {
                        self.starter_ended(process, status);
                    }
                }
                Reaped::Stopped(process, signal) => {
                    if let Some(&rank) = self.by_process.get(&process.as_raw_nonzero().get()) {
                        self.stopped(rank, signal);
                    }
                }
                Reaped::Running => return,
                Reaped::None => {
                    self.children_left = !self.all_started() && !self.is_ending();
                    return;
                }
            }
        }
    }

    /// A rank that reaches for the terminal is stopped by the kernel, and would be waited for without a word.
    fn stopped(&mut self, rank: usize, signal: i32) {
        if signal == Signal::TTIN.as_raw() || signal == Signal::TTOU.as_raw() {
            let name = self.name(rank);
            let signal = report::signal_name(signal).0;
            self.say(&format!(
                "{name} was stopped by {signal}: it uses the terminal, which is mpiexec's; interrupt, and let it \
                 use standard input instead"
            ));
        }
    }

    fn ended(&mut self, rank: usize, status: ExitStatus) {
        // What it said last comes first: MPI_Finalize, MPI_Abort, and the end of the connection.
        for index in 0..self.connections.len() {
            if self.connections[index].as_ref().is_some_and(|connection| connection.rank == Some(rank)) {
                self.read_connection(index);
            }
        }
        self.drain(rank);
        self.ranks[rank].ended = Some(status);
        self.decide_without(rank as u32);
        self.report(Report::Ended { rank: rank as u32, status: status.into_raw() });
        let unfinished = self.ranks[rank].lost.is_some();
        let finished = self.ranks[rank].joined > 0 && !unfinished;
        if !status.success() {
            let code = report::exit_code(status);
            let report = format!("{} {}", self.name(rank), report::ending(status));
            match self.forwarded {
                Some(signal) if code == 128 + signal as u8 => self.end_by(signal),
                _ if code == OUTPUT_CLOSED && self.output_is_closed() => self.end(code, ""),
                _ if finished => self.fail_and_go_on(code, &report),
                _ => self.lose(rank, code, &report),
            }
        } else if unfinished {
            let place = &self.ranks[rank];
            let name = self.name(rank);
            let report = match place.lost_process.filter(|&lost| Some(lost) != place.process) {
                Some(lost) => {
                    format!("{name}: its MPI process {} ended without MPI_Finalize", lost.as_raw_nonzero())
                }
                None => format!("{name} exited with code 0 without calling MPI_Finalize"),
            };
            self.lose(rank, 1, &report);
        } else if !finished && self.caller.is_some() && !self.introduced {
            let report = format!("{} ended without calling MPI_Init", self.name(rank));
            self.fail(1, &report);
        }
    }

    /// "rank 3 (./program, process 1234)", with the host where there are several.
    pub(super) fn name(&self, rank: usize) -> String {
        let place = &self.ranks[rank];
        let program = self.job.parts[place.part].program.display();
        let nodes = &self.roster.description.nodes;
        let host = match nodes.count() {
            1 => String::new(),
            _ => format!(" on {}", nodes.name(nodes.of_rank(rank as u32))),
        };
        match place.process {
            Some(process) => format!("rank {rank} ({program}, process {}{host})", process.as_raw_nonzero()),
            None => format!("rank {rank} ({program}{host})"),
        }
    }

    /// The first failure gives the exit code and ends the job; the others are its consequences.
    pub(super) fn fail(&mut self, code: u8, report: &str) {
        self.fail_but(None, code, report);
    }

    /// As [`Guardian::fail`]; rank `ending` ends by itself.
    pub(super) fn fail_but(&mut self, ending: Option<usize>, code: u8, report: &str) {
        if self.leave_to_above(Verdict::Fail, code, ending, report) {
            return;
        }
        // Below, ranks run from the order to start on, whether or not the report of it has come.
        let runs_below = |index: usize, rank: &Rank| {
            self.go && rank.ended.is_none() && self.own.binary_search(&index).is_err()
        };
        let is_other = |(index, rank): &(usize, &Rank)| {
            (rank.is_running() || runs_below(*index, rank)) && Some(*index) != ending
        };
        match self.ranks.iter().enumerate().filter(is_other).count() {
            0 => self.end(code, report),
            others => self.end(code, &format!("{report}; ending {}", counted(others, "other rank"))),
        }
    }

    /// Ends the job, if it is not ending yet.
    pub(super) fn end(&mut self, code: u8, message: &str) {
        if self.is_ending() || self.leave_to_above(Verdict::End, code, None, message) {
            return;
        }
        if self.tell_caller(code, message) {
            return self.end_ranks(0);
        }
        if !message.is_empty() {
            self.say(message);
        }
        self.end_ranks(code);
    }

    /// Begins to end the ranks, here and below.
    pub(super) fn end_ranks(&mut self, code: u8) {
        self.code.get_or_insert(code);
        self.term_at.get_or_insert(Instant::now());
        self.order_all(&Order::End);
        self.drop_strangers();
    }

    /// An agent decides nothing: the guardian at the top does, and gives its order. Tells whether this is an agent.
    pub(super) fn leave_to_above(
        &mut self,
        verdict: Verdict,
        code: u8,
        rank: Option<usize>,
        text: &str,
    ) -> bool {
        if self.above.is_none() {
            return false;
        }
        if !self.is_ending() {
            let rank = rank.map(|rank| rank as u32);
            self.report(Report::Verdict { verdict, code, rank, text: text.to_owned() });
        }
        true
    }

    /// What an agent has left to this guardian.
    pub(super) fn decide(&mut self, verdict: Verdict, code: u8, rank: Option<usize>, text: &str) {
        match verdict {
            _ if code == OUTPUT_CLOSED && self.output_is_closed() => self.end(code, ""),
            Verdict::Fail => self.fail_but(rank, code, text),
            Verdict::FailAndGoOn => self.fail_and_go_on(code, text),
            Verdict::End => self.end(code, text),
            Verdict::EndBy => self.end_by(i32::from(code)),
            Verdict::Lost => match rank {
                Some(rank) => self.lose_ranks(&[rank as u32], code, text),
                None => self.fail(code, text),
            },
        }
    }

    /// Ends the job because the user said so.
    pub(super) fn end_by(&mut self, signal: i32) {
        if self.leave_to_above(Verdict::EndBy, signal as u8, None, "") {
            return;
        }
        let text = match self.caller {
            Some(_) => String::new(), // The mpiexec above says it.
            None => format!("the job was ended by {}{}", report::signal_name(signal).0, self.at_signal),
        };
        self.end(128 + signal as u8, &text);
    }

    fn fail_and_go_on(&mut self, code: u8, report: &str) {
        if self.leave_to_above(Verdict::FailAndGoOn, code, None, report) {
            return;
        }
        if self.code.is_none() && !self.is_ending() {
            self.say(report);
            self.code = Some(code);
        }
    }

    pub(super) fn is_ending(&self) -> bool {
        self.term_at.is_some() || self.kill_at.is_some()
    }

    pub(super) fn output_is_closed(&self) -> bool {
        self.sinks.iter().any(Sink::is_closed)
    }

    // ---- signals ----

    pub(super) fn read_control(&mut self) {
        let mut bytes = [0; 64];
        let Some(control) = &self.control else { return };
        match rustix::io::read(control, &mut bytes) {
            Ok(0) => {
                // mpiexec itself was killed: nobody waits for the ranks or reads what they say.
                self.control = None;
                self.kill_all();
                exit(1);
            }
            Ok(count) => {
                for &signal in &bytes[..count] {
                    self.forward(i32::from(signal));
                }
            }
            Err(_) => {}
        }
    }

    pub(super) fn forward(&mut self, number: i32) {
        let Some(signal) = Signal::from_named_raw(number) else { return };
        if signal == Signal::QUIT {
            // Below, the user asks the guardian at the top.
            if self.above.is_none() {
                self.inquire(Why::Question);
            }
            return;
        }
        if signal == Signal::INT {
            self.interrupts += 1;
            if self.interrupts > 1 {
                self.order_all(&Order::Signal(number));
                self.code.get_or_insert(128 + number as u8);
                self.kill_at = Some(Instant::now());
                self.impatient = true;
                for sink in &mut self.sinks {
                    let _ = sink.flush();
                    sink.close(); // Whoever interrupts twice does not wait for a reader either.
                }
                return;
            }
        }
        // Who ends a job may do so because it hangs.
        let may_hang = self.all_started() && self.ranks.iter().any(Rank::is_running) && !self.is_ending();
        let is_first = self.signals == 0 && !self.is_asked_by_signal();
        let is_users = self.above.is_none() && self.caller.is_none();
        if (signal == Signal::INT || signal == Signal::TERM) && may_hang && is_first && is_users {
            return self.inquire(Why::Signal(number));
        }
        self.pass_on(number);
    }

    /// Gives a signal to the ranks.
    pub(super) fn pass_on(&mut self, number: i32) {
        let Some(signal) = Signal::from_named_raw(number) else { return };
        self.order_all(&Order::Signal(number));
        let deadly = [Signal::INT, Signal::TERM, Signal::HUP].contains(&signal);
        if deadly {
            self.signals += 1;
            self.forwarded = Some(number);
        }
        for &rank in &self.own {
            let Some(process) = self.ranks[rank].process.filter(|_| self.ranks[rank].is_running()) else {
                continue;
            };
            let member = self.ranks[rank].member.and_then(|member| self.connections[member].as_ref());
            // Signals with a meaning of the program's own go to the MPI program, not to the shell around it.
            let _ = match member.and_then(|member| member.process) {
                Some(member) if signal == Signal::USR1 || signal == Signal::USR2 => {
                    kill_process(member, signal)
                }
                _ => kill_process_group(process, signal),
            };
            if deadly {
                let _ = kill_process_group(process, Signal::CONT); // A stopped process does not end.
            }
        }
        self.signal_guests(signal);
        if deadly && !self.all_started() {
            self.end_by(number);
        }
    }

    // ---- time ----

    /// How long to sleep at most.
    pub(super) fn timeout(&self) -> Option<Duration> {
        if self.may_start() {
            return Some(Duration::ZERO);
        }
        let unfinished =
            self.streams.iter().flatten().filter_map(|stream| stream.deadline(&self.sinks[stream.sink]));
        let own = self.own.iter().map(|&rank| &self.ranks[rank]);
        let lost = own.filter(|rank| rank.is_running()).filter_map(|rank| rank.lost);
        let lost = lost.map(|since| since + LOST_DELAY);
        let answered = self.inquiry.as_ref().map(|inquiry| inquiry.until);
        let times = [self.deadline, self.term_at, self.kill_at, answered];
        let times = times.into_iter().flatten().chain(self.next_look()).chain(self.next_telling());
        let next = times.chain(unfinished).chain(lost).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    pub(super) fn look_at_clock(&mut self) {
        let now = Instant::now();
        for stream in self.streams.iter_mut().flatten() {
            let sink = &mut self.sinks[stream.sink];
            if stream.deadline(sink).is_some_and(|deadline| deadline <= now) {
                stream.release(sink);
            }
        }
        for index in 0..self.own.len() {
            let rank = self.own[index];
            let place = &self.ranks[rank];
            if place.is_running() && place.lost.is_some_and(|since| since + LOST_DELAY <= now) {
                let process = place.lost_process.map_or(0, |process| process.as_raw_nonzero().get());
                self.ranks[rank].lost = Some(now + Duration::from_secs(1 << 30)); // Told once.
                let name = self.name(rank);
                self.lose(rank, 1, &format!("{name}: its MPI process {process} ended without MPI_Finalize"));
            }
        }
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            if self.is_ending() {
                self.deadline = Some(now + GRACE); // For the readers of our output.
            } else {
                self.deadline = None;
                self.inquire(Why::TimeLimit);
            }
        }
        self.conclude_inquiry(now);
        self.look_at_agents(now);
        if self.above.is_none() && !self.finishing {
            self.finishing = self.all_started()
                && self.ranks.iter().all(|rank| rank.ended.is_some())
                && !self.has_guests();
            if self.finishing {
                self.order_all(&Order::Finish);
            }
        }
        if self.finishing && self.children_left && !self.is_ending() {
            self.term_at = Some(now + LINGER);
        }
        if self.term_at.is_some_and(|time| time <= now) {
            self.term_at = None;
            self.kill_at = Some(now + GRACE);
            // The guardian of a world that a rank has started ends its ranks itself.
            let spared = [self.starters(|_| true), self.guests.processes()].concat();
            descendants::signal(Signal::TERM, &spared);
            descendants::signal(Signal::CONT, &spared); // A stopped process takes no other signal.
            self.signal_guests(Signal::TERM);
        }
        if self.kill_at.is_some_and(|time| time <= now) {
            self.kill_at = Some(now + KILL_ROUND);
            let spared = self.spared_starters(now);
            descendants::signal(Signal::KILL, &spared);
        }
    }

    /// The starters that a round of SIGKILL leaves alone: at first all, since agents end their ranks themselves; then
    /// those of agents that have only output to deliver, unless the user does not wait for that.
    fn spared_starters(&mut self, now: Instant) -> Vec<Pid> {
        let impatient = self.impatient || self.forwarded.is_some() || self.code == Some(TIMED_OUT);
        match self.starters_killed_at {
            None => {
                self.order_all(&Order::Kill);
                self.starters_killed_at = Some(now + GRACE);
                self.starters(|_| true)
            }
            Some(time) if now < time => self.starters(|_| true),
            Some(_) => self.starters(|agent| agent.gone && !impatient),
        }
    }

    // ---- the end ----

    /// Ends everything below at once. What agents on this machine knew of their ranks goes with them, but then these are this process's
    /// children.
    pub(super) fn kill_all(&mut self) {
        descendants::kill_all_and(|process| {
            if self.leaves_files {
                leftovers::remove(process);
            }
        });
        self.remove_leftovers();
    }

    /// Removes the files of members that did not take their leave; they have ended.
    fn remove_leftovers(&self) {
        self.connections.iter().flatten().for_each(|connection| self.remove_leftovers_of(connection));
    }

    pub(super) fn remove_leftovers_of(&self, connection: &Connection) {
        let left = connection.rank.is_some() && (!connection.finalized || connection.aborted);
        if let Some(process) = connection.process.filter(|_| left && self.leaves_files) {
            leftovers::remove(process);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        !self.children_left && (self.above.is_none() || self.finishing || self.is_ending())
    }

    /// No descendant is left: passes on what they wrote and gives the exit code.
    pub(super) fn finish(&mut self) -> u8 {
        self.remove_leftovers();
        for index in 0..self.own.len() {
            self.drain(self.own[index]);
        }
        self.streams.clear();
        for index in 0..self.agents.len() {
            self.read_agent(index);
        }
        if self.above.is_some() {
            return self.finish_below();
        }
        loop {
            self.flush();
            if !self.sinks.iter().any(Sink::is_waiting) {
                break;
            }
            let patience = match (self.forwarded, self.deadline) {
                (Some(_), _) => Some(GRACE),
                (None, deadline) => deadline.map(|time| time.saturating_duration_since(Instant::now())),
            };
            let mut events = Vec::with_capacity(8);
            let space = rustix::buffer::spare_capacity(&mut events);
            if epoll::wait(&self.epoll, space, patience.map(timespec).as_ref()) == Ok(0) {
                // A reader that takes nothing is not waited for any longer.
                self.code.get_or_insert(self.forwarded.map_or(TIMED_OUT, |signal| 128 + signal as u8));
                break;
            }
            let before = self.signals;
            for event in &events {
                match Source::decode(event.data) {
                    Source::Control => self.read_control(),
                    Source::Child => while self.children.take().is_some() {},
                    _ => {}
                }
            }
            if self.signals != before {
                // The user ends what only waits for its reader.
                self.code.get_or_insert(self.forwarded.map_or(1, |signal| 128 + signal as u8));
                break;
            }
        }
        self.show_accounts();
        self.code.unwrap_or_else(|| self.code_of_survivors())
    }
}
