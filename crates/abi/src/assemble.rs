//! Where the parts are put together: the only place that names a concrete transport.

use crate::errors;
use parnass_bootstrap::Membership;
use parnass_collectives::Overrides;
use parnass_mpi::coll::Settings as CollectiveSettings;
use parnass_mpi::{Process, Settings, ThreadLevel};
use parnass_portals::Interface;
use parnass_transport::Transport;
use parnass_transport_hybrid::{Hybrid, waker};
use parnass_transport_shm::{JobMemory, SharedMemory};
use parnass_transport_tcp::{INTERFACE_VARIABLE, Listener, Loss, Selection, Tcp};
use parnass_tunables::{self as tunables, Settings as Tunables};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

#[rustfmt::skip]
mod tuning;

/// Shared memory with the ranks of this node, or memory of this process alone for a world of one.
fn shared_memory(
    job_memory: Option<OwnedFd>,
    local_rank: u32,
    settings: &Tunables,
) -> io::Result<SharedMemory> {
    let memory = match job_memory {
        Some(file) => JobMemory::open(file)?,
        None => JobMemory::private()?,
    };
    SharedMemory::attach_with(memory, local_rank, tuning::transport_shm(settings))
}

/// The way to all ranks: shared memory, and TCP when there are ranks on other nodes.
fn transport(shared: SharedMemory, membership: &Arc<Membership>) -> Result<Box<dyn Transport>, String> {
    if membership.local_size == membership.size {
        return Ok(Box::new(shared));
    }
    let words = std::env::var(INTERFACE_VARIABLE).unwrap_or_default();
    let selection =
        Selection::parse(&words).map_err(|reason| format!("{INTERFACE_VARIABLE} is '{words}': {reason}"))?;
    let nodes: Vec<u32> = (0..membership.size).map(|rank| membership.node_of(rank)).collect();
    let host = membership.nodes.name(membership.node_of(membership.rank));
    let listener = Listener::new(host, &selection)?;
    let contacts = membership
        .exchange(&listener.contact())
        .map_err(|error| format!("the launcher does not pass on where the ranks are: {error}"))?;
    let job = membership.clone();
    let on_loss = move |loss: Loss| {
        job.launcher().abort(LOST, &format!("rank {}: {loss}", job.rank));
        errors::exit_now(LOST)
    };
    let near = Arc::new(shared);
    let network =
        Tcp::new(listener, membership.rank, membership.key(), &contacts, waker(&near), Box::new(on_loss))
            .map_err(|error| format!("TCP cannot be used: {error}"))?;
    Ok(Box::new(Hybrid::new(near, network, &nodes)))
}

/// The exit code of a job that has lost a connection.
const LOST: i32 = 1;

/// Joins the job and makes the process.
///
/// # Errors
/// A sentence for a person: why the job cannot be joined and what to do.
pub fn process(thread_level: ThreadLevel) -> Result<Arc<Process>, String> {
    let mut membership = parnass_bootstrap::join(JobMemory::create).map_err(|error| error.to_string())?;
    let tunables = tunables(membership.tunables.as_deref())?;
    let overrides = overrides(&tunables)?;
    let job_memory = membership.job_memory.take();
    let shared = shared_memory(job_memory, membership.local_rank, &tunables)
        .map_err(|error| format!("the memory of the job cannot be used: {error}"))?;
    let membership = Arc::new(membership);
    let interface = Interface::with(transport(shared, &membership)?, tuning::portals(&tunables))
        .map_err(|error| format!("the memory of the job cannot be used: {error:?}"))?;
    let settings = Settings {
        app_number: membership.app_number,
        universe_size: membership.size as i32,
        host_name: parnass_mpi::environment::machine_name(),
        thread_level,
        tuning: tuning::mpi(&tunables),
        collectives: CollectiveSettings { overrides, cores: membership.local_cpus as u32 },
        launcher: Box::new(Launcher(membership)),
    };
    Ok(Process::new(interface, settings))
}

/// What the launcher has decided; without one, what the environment says.
fn tunables(decided: Option<&[String]>) -> Result<Tunables, String> {
    let variables: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name.starts_with(tunables::PREFIX))
        .collect();
    let variables = variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let Some(words) = decided else {
        let mut settings = Tunables::default();
        settings.read_environment(variables)?;
        return Ok(settings);
    };
    let settings = Tunables::from_words(words.iter().map(String::as_str))?;
    settings.check_environment(variables)?;
    Ok(settings)
}

fn overrides(settings: &Tunables) -> Result<Overrides, String> {
    let text = settings.text(tunables::COLLECTIVE);
    Overrides::parse(text).map_err(|reason| {
        let row = &tunables::TABLE[tunables::COLLECTIVE];
        format!("{} ({}) is '{text}': {reason}", row.name, row.variable)
    })
}

/// The launcher as the process sees it.
struct Launcher(Arc<Membership>);

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
