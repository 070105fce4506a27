//! Whether ranks may copy directly between their memories, tried out between two processes as of a job: one
//! that permits it, and a sibling that reads.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitCode, Stdio};

/// The first argument of the process that is read.
pub const TARGET: &str = "probe-target";
/// The first argument of the process that reads.
pub const READER: &str = "probe-reader";

/// Whether a process may read its sibling's memory; the error says why not.
pub fn direct_copy() -> Result<(), String> {
    let trouble = |error: io::Error| format!("cannot be tried out: {error}");
    let program = std::env::current_exe().map_err(trouble)?;
    let start = |arguments: &[&str]| -> io::Result<Child> {
        Command::new(&program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
    };
    let mut target = start(&[TARGET]).map_err(trouble)?;
    let mut address = String::new();
    let told = target.stdout.take().map(|output| BufReader::new(output).read_line(&mut address));
    let answer = match told {
        Some(Ok(_)) => start(&[READER, &target.id().to_string(), address.trim()])
            .and_then(Child::wait_with_output)
            .map_err(trouble),
        _ => Err("cannot be tried out".to_owned()),
    };
    drop(target.stdin.take());
    let _ = target.wait();
    let answer = answer?;
    if answer.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&answer.stdout).trim().to_owned())
    }
}

/// Says where a byte of it lies, and stays until its input is closed.
pub fn target() -> ExitCode {
    // As each rank does; without the Yama module there is nothing to permit.
    let _ = rustix::process::set_ptracer(rustix::process::PTracer::Any);
    let byte = Box::new(1u8);
    println!("{}", (&raw const *byte).expose_provenance());
    let _ = io::stdout().flush();
    let _ = io::stdin().lock().read(&mut [0]);
    ExitCode::SUCCESS
}

/// Reads that byte.
pub fn reader(process: &str, address: &str) -> ExitCode {
    let (Ok(process), Ok(address)) = (process.parse(), address.parse()) else { return ExitCode::FAILURE };
    match parnass_base::process::read_memory_of(process, address) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}
