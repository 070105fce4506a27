//! The process that the user started: it passes signals on, reads a terminal for rank 0, and gives the exit
//! code. All else is the guardian's.

use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;

use parnass_base::process::{Fork, SignalQueue, fork_alone, restore};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, getpgrp, kill_process};

use crate::descendants::{self, Reaped};
use crate::guardian::{self, Work};
use crate::leftovers;
use crate::report;

/// The signals that a user or a batch system sends to a job.
const FORWARDED: [i32; 9] = [
    Signal::HUP.as_raw(),
    Signal::INT.as_raw(),
    Signal::QUIT.as_raw(),
    Signal::USR1.as_raw(),
    Signal::USR2.as_raw(),
    Signal::TERM.as_raw(),
    Signal::TSTP.as_raw(),
    Signal::CONT.as_raw(),
    Signal::WINCH.as_raw(),
];

/// Runs the job to its end.
pub fn run(work: Work) -> ExitCode {
    match start(Some(work)) {
        Ok(code) => code,
        Err(error) => crate::fail(&format!("the job cannot be started: {error}"), 1),
    }
}

/// Runs an agent to its end.
pub fn run_agent() -> ExitCode {
    match start(None) {
        Ok(code) => code,
        Err(error) => crate::fail(&format!("the agent cannot be started: {error}"), 1),
    }
}

/// Starts the guardian with its work; that of an agent comes from elsewhere.
fn start(work: Option<Work>) -> std::io::Result<ExitCode> {
    restore(Signal::CHILD.as_raw()); // Where it is ignored, ends of children are not told.
    let mut watched = FORWARDED.to_vec();
    watched.push(Signal::CHILD.as_raw());
    let signals = SignalQueue::new(&watched)?;
    let (control, commands) = pipe_with(PipeFlags::CLOEXEC)?;
    let (known, members) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    // Ranks are in process groups of their own, where they may not read the terminal.
    let terminal = if work.is_some() && rustix::termios::isatty(rustix::stdio::stdin()) {
        Some(pipe_with(PipeFlags::CLOEXEC)?)
    } else {
        None
    };
    let (rank_input, terminal) = terminal.unzip();
    // An agent's tunables are told to its guardian, and not before.
    let leaves_files =
        work.as_ref().is_none_or(|work| leftovers::are_possible(&work.roster.description.tunables));
    descendants::adopt_orphans();
    match fork_alone()? {
        Fork::Child => {
            drop((commands, terminal, signals, known));
            match work {
                Some(work) => guardian::run(work, control, rank_input, members),
                None => guardian::run_agent(control, members),
            }
        }
        Fork::Parent(guardian) => {
            drop((control, rank_input, work, members)); // Who has started this world watches the guardian alone.
            let guardian = Pid::from_raw(guardian).expect("fork gives a process id above 0");
            if let Some(pipe) = &terminal {
                rustix::io::ioctl_fionbio(pipe, true)?;
            }
            let front = Front {
                guardian,
                leaves_files,
                known,
                signals,
                commands,
                terminal,
                typed: Vec::new(),
                interrupted: false,
            };
            Ok(front.wait())
        }
    }
}

struct Front {
    guardian: Pid,
    /// Whether ranks that are killed may leave files.
    leaves_files: bool,
    /// The process numbers of those that have spoken to the guardian, where they may.
    known: OwnedFd,
    signals: SignalQueue,
    commands: OwnedFd,
    /// The way to rank 0, where standard input is a terminal.
    terminal: Option<OwnedFd>,
    /// What was typed and rank 0 has not taken yet.
    typed: Vec<u8>,
    interrupted: bool,
}

impl Front {
    fn wait(mut self) -> ExitCode {
        loop {
            let (from_user, to_rank) = self.poll();
            while let Some(signal) = self.signals.take() {
                if signal != Signal::CHILD.as_raw() {
                    self.forward(signal);
                }
            }
            loop {
                match descendants::reap() {
                    Reaped::Ended(child, status, _) if child == self.guardian => return self.end(status),
                    // It was the guardian's: that is gone, and its end is about to be told.
                    Reaped::Ended(orphan, ..) => self.remove_leftovers(orphan),
                    Reaped::Stopped(..) => {}
                    Reaped::Running | Reaped::None => break,
                }
            }
            if from_user {
                self.read_terminal();
            }
            if from_user || to_rank {
                self.write_typed();
            }
        }
    }

    /// Waits; tells whether the terminal can be read, and the pipe to rank 0 written.
    fn poll(&self) -> (bool, bool) {
        let terminal = rustix::stdio::stdin();
        let mut set = vec![PollFd::new(&self.signals, PollFlags::IN)];
        let mut timeout = None;
        match &self.terminal {
            Some(pipe) if !self.typed.is_empty() => set.push(PollFd::new(pipe, PollFlags::OUT)),
            Some(_) if in_foreground() => set.push(PollFd::new(&terminal, PollFlags::IN)),
            // In the background the terminal is another's; look again after a while.
            Some(_) => timeout = Some(Timespec { tv_sec: 1, tv_nsec: 0 }),
            None => {}
        }
        if poll(&mut set, timeout.as_ref()).is_err() {
            return (false, false);
        }
        let ready = set.get(1).is_some_and(|entry| !entry.revents().is_empty());
        (ready && self.typed.is_empty(), ready && !self.typed.is_empty())
    }

    fn read_terminal(&mut self) {
        let mut bytes = [0; 4096];
        match std::io::stdin().lock().read(&mut bytes) {
            Ok(0) => self.terminal = None,
            Ok(count) => self.typed.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => self.terminal = None,
        }
    }

    fn write_typed(&mut self) {
        let Some(pipe) = &self.terminal else { return };
        match rustix::io::write(pipe, &self.typed) {
            Ok(count) => drop(self.typed.drain(..count)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(_) => {
                self.terminal = None; // Rank 0 has closed its input.
                self.typed.clear();
            }
        }
    }

    fn forward(&mut self, signal: i32) {
        self.interrupted |= signal == Signal::INT.as_raw();
        // When it cannot be written the guardian is gone, and its end is on its way here.
        let _ = rustix::io::write(&self.commands, &[signal as u8]);
        if signal == Signal::TSTP.as_raw() {
            let _ = kill_process(rustix::process::getpid(), Signal::STOP);
        }
    }

    /// Removes the files of a process that has ended.
    fn remove_leftovers(&self, process: Pid) {
        if self.leaves_files {
            leftovers::remove(process);
        }
    }

    /// Removes the files of those that have spoken to the guardian and are gone: a shell may have taken their end.
    fn remove_leftovers_of_known(&self) {
        let mut number = [0; 4];
        while rustix::io::read(&self.known, &mut number) == Ok(number.len()) {
            let process = Pid::from_raw(i32::from_ne_bytes(number));
            if let Some(process) =
                process.filter(|process| rustix::process::test_kill_process(*process).is_err())
            {
                self.remove_leftovers(process);
            }
        }
    }

    fn end(self, status: std::process::ExitStatus) -> ExitCode {
        let Some(code) = status.code() else {
            // What the guardian knew of the ranks is gone with it, but they are this process's children now.
            descendants::kill_all_and(|process| self.remove_leftovers(process));
            self.remove_leftovers_of_known();
            let ending = report::ending(status);
            return crate::fail(
                &format!("the guardian of the ranks {ending}; they were ended"),
                report::exit_code(status),
            );
        };
        if self.interrupted && code == 128 + Signal::INT.as_raw() {
            // A shell's loop goes on to its next command unless this one visibly died of the interrupt.
            restore(Signal::INT.as_raw());
            let _ = kill_process(rustix::process::getpid(), Signal::INT);
        }
        ExitCode::from(code as u8)
    }
}

fn in_foreground() -> bool {
    rustix::termios::tcgetpgrp(rustix::stdio::stdin().as_fd()).is_ok_and(|group| group == getpgrp())
}
