//! Every process below this one, found and ended. It works because both processes of `mpiexec` are
//! sub-reapers: a descendant whose parent dies becomes a child of the nearest sub-reaper and never escapes.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use parnass_base::process::take_end_of_child;
use rustix::process::{Pid, Signal, getpid, kill_process};

use crate::stats::Account;

/// Makes this process the one that inherits its orphaned descendants.
pub fn adopt_orphans() {
    // Kernels since 3.4 have it; where it fails, ranks still die with this process.
    let _ = rustix::process::set_child_subreaper(Some(getpid()));
}

/// What [`reap`] found.
#[derive(Debug)]
pub enum Reaped {
    /// This child has ended so, and used so much.
    Ended(Pid, ExitStatus, Account),
    /// This child was stopped, by this signal.
    Stopped(Pid, i32),
    /// Children are left, but none has ended since.
    Running,
    /// There is no descendant.
    None,
}

/// Takes the end of one child, an adopted one too, or that it was stopped.
pub fn reap() -> Reaped {
    loop {
        match take_end_of_child() {
            Ok(Some(child)) => {
                let Some(process) = Pid::from_raw(child.process) else { return Reaped::None };
                let status = ExitStatus::from_raw(child.status);
                if let Some(signal) = status.stopped_signal() {
                    return Reaped::Stopped(process, signal);
                }
                let usage = Account { cpu_us: child.cpu_us, peak_kib: child.peak_kib, counted: Vec::new() };
                return Reaped::Ended(process, status, usage);
            }
            Ok(None) => return Reaped::Running,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Reaped::None,
        }
    }
}

/// The processes below this one, from the table of all processes; those in `spared` and below them are left out.
pub fn list(spared: &[Pid]) -> Vec<Pid> {
    let mut parents: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        if let Some(parent) = parent_of(process) {
            parents.entry(parent).or_default().push(process);
        }
    }
    let mut found = Vec::new();
    let mut open = vec![getpid().as_raw_nonzero().get()];
    while let Some(process) = open.pop() {
        let children = parents.remove(&process).unwrap_or_default();
        for child in children.into_iter().filter_map(Pid::from_raw).filter(|child| !spared.contains(child)) {
            found.push(child);
            open.push(child.as_raw_nonzero().get());
        }
    }
    found
}

/// The parent of a process that has not ended yet.
fn parent_of(process: i32) -> Option<i32> {
    let (state, parent) = state_and_parent(process)?;
    (!matches!(state, 'Z' | 'X')).then_some(parent)
}

/// The state of a process, a letter of proc(5), and its parent.
pub fn state_and_parent(process: i32) -> Option<(char, i32)> {
    // The name in parentheses may hold anything, parentheses too; state and parent follow the last one.
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Sends `signal` to every descendant, once, but to none that is spared.
pub fn signal(signal: Signal, spared: &[Pid]) {
    for process in list(spared) {
        let _ = kill_process(process, signal);
    }
}

/// Kills descendants until there are none.
pub fn kill_all() {
    kill_all_and(|_| ());
}

/// As [`kill_all`]; `doomed` is told of each before it is killed, since a shell between may take its end, and of each whose end comes here.
pub fn kill_all_and(mut doomed: impl FnMut(Pid)) {
    loop {
        for process in list(&[]) {
            doomed(process);
            let _ = kill_process(process, Signal::KILL);
        }
        loop {
            match reap() {
                Reaped::Ended(process, ..) => doomed(process),
                Reaped::Stopped(..) => {}
                Reaped::Running => break,
                Reaped::None => return,
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grandchildren_are_listed() {
        let mut child = std::process::Command::new("sh").args(["-c", "sleep 20 & wait"]).spawn().unwrap();
        let both_run = || {
            let list = list(&[]);
            let grandchild = list
                .iter()
                .copied()
                .find(|process| parent_of(process.as_raw_nonzero().get()) == Some(child.id() as i32));
            grandchild
                .filter(|_| list.iter().any(|process| process.as_raw_nonzero().get() == child.id() as i32))
        };
        let grandchild = (0..500).find_map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            both_run()
        });
        let grandchild = grandchild.expect("sh starts sleep");
        assert!(!list(&[Pid::from_raw(child.id() as i32).unwrap()]).contains(&grandchild));
        kill_process(grandchild, Signal::KILL).unwrap();
        child.wait().unwrap();
    }
}
