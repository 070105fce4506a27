//! Where the parts are put together: the only place that names a concrete transport.

use crate::errors;
use parnass_bootstrap::Membership;
use parnass_collectives::Overrides;
use parnass_mpi::coll::{OVERRIDE_VARIABLE, Settings as CollectiveSettings};
use parnass_mpi::pt2pt::protocol::{Capabilities, DIRECT_THRESHOLD_VARIABLE};
use parnass_mpi::{Process, Settings, ThreadLevel};
use parnass_portals::Interface;
use parnass_transport_shm::{JobMemory, SharedMemory};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The virtual NIC of local rank `rank` over the node's memory, or over memory of this process alone for a world of one.
pub fn interface(job_memory: Option<OwnedFd>, rank: u32) -> io::Result<Interface> {
    let memory = match job_memory {
        Some(file) => JobMemory::open(file)?,
        None => JobMemory::private()?,
    };
    let transport = SharedMemory::attach(memory, rank)?;
    Interface::new(Box::new(transport)).map_err(|error| io::Error::other(format!("{error:?}")))
}

/// Joins the job and makes the process.
///
/// # Errors
/// A sentence for a person: why the job cannot be joined and what to do.
pub fn process(thread_level: ThreadLevel) -> Result<Arc<Process>, String> {
    let mut membership = parnass_bootstrap::join(JobMemory::create).map_err(|error| error.to_string())?;
    if membership.nodes.count() > 1 {
        return Err(
            "the ranks of this job are on several hosts, between which there is no transport yet".to_owned()
        );
    }
    let direct_threshold = direct_threshold()?;
    let job_memory = membership.job_memory.take();
    let interface = interface(job_memory, membership.local_rank)
        .map_err(|error| format!("the memory of the job cannot be used: {error}"))?;
    let settings = Settings {
        app_number: membership.app_number,
        universe_size: membership.size as i32,
        host_name: parnass_mpi::environment::machine_name(),
        thread_level,
        capabilities: Capabilities::default(),
        direct_threshold,
        collectives: CollectiveSettings { overrides: overrides()?, cores: membership.local_cpus as u32 },
        launcher: Box::new(Launcher(membership)),
    };
    Ok(Process::new(interface, settings))
}

fn direct_threshold() -> Result<Option<u64>, String> {
    match std::env::var(DIRECT_THRESHOLD_VARIABLE) {
        Err(_) => Ok(None),
        Ok(value) => value.parse().map(Some).map_err(|_| {
            format!(
                "{DIRECT_THRESHOLD_VARIABLE} is '{value}'; a number of bytes is needed, or unset the variable"
            )
        }),
    }
}

fn overrides() -> Result<Overrides, String> {
    match std::env::var(OVERRIDE_VARIABLE) {
        Err(_) => Ok(Overrides::default()),
        Ok(text) => {
            Overrides::parse(&text).map_err(|reason| format!("{OVERRIDE_VARIABLE} is '{text}': {reason}"))
        }
    }
}

/// The launcher as the process sees it.
struct Launcher(Membership);

impl parnass_mpi::process::Launcher for Launcher {
    fn abort(&self, code: i32, message: &str) -> ! {
        errors::flush_c_output();
        if self.0.launcher().is_connected() {
            self.0.launcher().abort(code, message);
        } else if !message.is_empty() {
            let _ = writeln!(io::stderr().lock(), "parnass: {message}");
        }
        errors::exit_now(code)
    }

    fn finalized(&self) {
        self.0.launcher().finalized();
    }
}
