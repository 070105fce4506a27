//! Worlds that ranks start (MPI_Comm_spawn). Each has an mpiexec of its own, which this guardian starts beside its ranks and ends
//! with them; and the other side: what this guardian tells the process that has started its world.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitStatus;

use parnass_bootstrap::{Launch, Message};
use rustix::process::{Pid, Signal, kill_process};

use super::{Guardian, OUTPUT_CLOSED};
use crate::agent::frames::Report;
use crate::report;

/// The worlds that ranks of a node have started.
#[derive(Debug, Default)]
pub(super) struct Guests {
    /// The rank that has started it, by the process of its mpiexec.
    running: BTreeMap<i32, usize>,
    /// How many there were.
    started: u32,
    /// How many run below, by agent.
    below: BTreeMap<usize, u32>,
}

impl Guests {
    pub(super) fn processes(&self) -> Vec<Pid> {
        self.running.keys().filter_map(|process| Pid::from_raw(*process)).collect()
    }

    fn count(&self) -> u32 {
        self.running.len() as u32 + self.below.values().sum::<u32>()
    }
}

impl Guardian {
    /// Whether worlds that ranks have started still run, here or below.
    pub(super) fn has_guests(&self) -> bool {
        self.guests.count() > 0
    }

    /// A rank wants an mpiexec to be started.
    pub(super) fn start_guest(&mut self, index: usize, mut files: Vec<OwnedFd>) {
        let Some(rank) = self.connections[index].as_ref().and_then(|connection| connection.rank) else {
            return self.disconnected(index);
        };
        let answer = match files.pop().map(Launch::from_file) {
            _ if self.is_ending() => Message::Refused("the job is ending".to_owned()),
            Some(Ok(launch)) => match self.starter.start_guest(&self.job, &launch, self.guests.started + 1) {
                Ok((process, pipes)) => {
                    self.guests.started += 1;
                    self.guests.running.insert(process.as_raw_nonzero().get(), rank);
                    self.children_left = true;
                    for (sink, pipe) in pipes.into_iter().enumerate() {
                        self.add_stream(rank, sink.min(self.sinks.len() - 1), pipe);
                    }
                    self.report(Report::Guests(self.guests.count()));
                    Message::Running(process.as_raw_nonzero().get())
                }
                Err(error) => Message::Refused(format!("mpiexec cannot be started: {error}")),
            },
            _ => return self.disconnected(index),
        };
        if let Some(connection) = &self.connections[index] {
            // Where it cannot be sent the process is gone, which is seen by the end of its connection.
            let _ = parnass_bootstrap::send(connection.socket.as_fd(), &answer, &[]);
        }
    }

    /// Whether this child was the mpiexec of a world that a rank has started.
    pub(super) fn guest_ended(&mut self, process: Pid, status: ExitStatus) -> bool {
        let Some(rank) = self.guests.running.remove(&process.as_raw_nonzero().get()) else { return false };
        self.drain(rank);
        if !status.success() {
            let code = report::exit_code(status);
            let text = format!("a world that {} has spawned ended with code {code}", self.name(rank));
            match self.forwarded {
                Some(signal) if code == 128 + signal as u8 => self.end_by(signal),
                _ if code == OUTPUT_CLOSED && self.output_is_closed() => self.end(code, ""),
                _ => self.fail(code, &text),
            }
        }
        self.report(Report::Guests(self.guests.count()));
        true
    }

    /// So many such worlds run with an agent and below it.
    pub(super) fn count_guests(&mut self, agent: usize, count: u32) {
        self.guests.below.insert(agent, count);
        self.report(Report::Guests(self.guests.count()));
    }

    pub(super) fn signal_guests(&self, signal: Signal) {
        for process in self.guests.processes() {
            let _ = kill_process(process, signal);
        }
    }

    // ---- as a guest ----

    /// All ranks have told what others must know of them; the process that has started them may know it.
    pub(super) fn introduce(&mut self, parts: &[u8]) {
        if let Some(caller) = self.caller.as_ref().filter(|_| !self.introduced) {
            caller.spawned(parts);
            self.introduced = true;
        }
    }

    /// Tells the process that has started this world why it ends. `true`: it never knew of the ranks, so that nobody else
    /// needs to be told.
    pub(super) fn tell_caller(&mut self, code: u8, message: &str) -> bool {
        let Some(caller) = &self.caller else { return false };
        if !self.introduced {
            caller.refuse(message);
            self.introduced = true;
            return true;
        }
        if caller.watch && !self.caller_finalized {
            caller.abort(i32::from(code), message);
        }
        false
    }

    /// The process that has started this world says that it has finalized, or is gone.
    pub(super) fn read_caller(&mut self) {
        let Some(caller) = &self.caller else { return };
        match parnass_bootstrap::receive(caller.socket.as_fd()) {
            Ok((Message::Finalized, _)) => self.caller_finalized = true,
            _ => {
                let _ = rustix::event::epoll::delete(&self.epoll, &caller.socket);
                if !self.caller_finalized {
                    self.end(1, "the process that has spawned this world ended without MPI_Finalize");
                }
            }
        }
    }
}
