//! `mpiexec`: starts the ranks of a job and stays with them until nothing of them is left.
//!
//! Two processes share the work, each watching the other:
//!
//! ```text
//! mpiexec (front)      what the user sees: receives signals, reads a terminal, gives the exit code
//!    |  control socket: signals down; its end means that mpiexec was killed
//! guardian             starts the ranks, hands out the job's memory, carries their output, reports deaths;
//!    |                 the sub-reaper of all descendants, so that none escapes
//! ranks                each in a process group of its own
//! ```
//!
//! Whichever of the two dies, the other one ends every descendant. Both have one thread.
//!
//! On other hosts the same pair runs as an agent (`agent/`), started by ssh, Slurm, or a command of the user's, and
//! obeys the guardian above it over the standard input and output of that command.

#![forbid(unsafe_code)]

mod agent;
mod arguments;
pub mod descendants;
mod environment;
mod front;
#[doc(hidden)]
pub mod fuzzing;
mod guardian;
mod hosts;
mod leftovers;
mod output;
mod places;
mod plan;
mod program;
mod ranks;
mod report;
mod stats;
mod tunables;

use std::ffi::OsString;
use std::process::ExitCode;

use arguments::Request;
use parnass_bootstrap::{Caller, SPAWN_VARIABLE};
use program::Problem;

/// Exit code for a wrong command line.
const USAGE_ERROR: u8 = 2;

/// Runs `mpiexec` with these arguments (without the program's name).
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    // For a world that a running process starts, that process is told what goes wrong, and not the user.
    let caller = match std::env::var(SPAWN_VARIABLE).ok().map(|address| Caller::call(&address)) {
        None => None,
        Some(Ok(caller)) => Some(caller),
        Some(Err(error)) => return fail(&format!("the process that starts this world is gone: {error}"), 1),
    };
    if let Some(caller) = caller {
        return run_spawned(arguments, caller);
    }
    match arguments::parse(arguments) {
        Ok(Request::Help) => print(&arguments::help()),
        Ok(Request::Version) => print(&version()),
        Ok(Request::Agent) => front::run_agent(),
        Ok(Request::Run(job)) => match plan::work(*job, |name| std::env::var(name).ok()) {
            Ok(work) => front::run(work),
            Err(problem) => fail(&problem.message, problem.exit_code),
        },
        Err(message) => fail(&message, USAGE_ERROR),
    }
}

/// Runs a world that a running process starts.
fn run_spawned(arguments: Vec<OsString>, mut caller: Caller) -> ExitCode {
    let request = arguments::parse(arguments);
    let work = request.map_err(|message| Problem { message, exit_code: USAGE_ERROR }).and_then(|request| {
        let Request::Run(job) = request else {
            let message = "a program is to be started, and nothing else".to_owned();
            return Err(Problem { message, exit_code: USAGE_ERROR });
        };
        plan::work(*job, |name| std::env::var(name).ok())
    });
    match work {
        Ok(mut work) => {
            work.roster.description.parents = std::mem::take(&mut caller.parents);
            work.caller = Some(caller);
            front::run(work)
        }
        Err(problem) => {
            caller.refuse(&problem.message);
            ExitCode::SUCCESS
        }
    }
}

/// The hosts that `--host` would make of this list.
///
/// # Errors
/// What is wrong, and with which word.
pub fn host_names(list: &str) -> Result<Vec<String>, String> {
    Ok(hosts::parse_list(list)?.into_iter().map(|host| host.name).collect())
}

/// The first line of `mpiexec --version`.
pub fn version() -> String {
    format!(
        "mpiexec (Parnass) {}\nMPI 5.0 with the standard ABI 1.0 (libmpi_abi.so.1)\n",
        env!("CARGO_PKG_VERSION")
    )
}

fn print(text: &str) -> ExitCode {
    use std::io::Write;
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE, // The reader has gone; there is nobody to tell.
    }
}

fn fail(message: &str, code: u8) -> ExitCode {
    eprintln!("mpiexec: {message}");
    ExitCode::from(code)
}
