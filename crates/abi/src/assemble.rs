//! Where the parts are put together: the only place that names a concrete transport.

use crate::errors;
use parnass_bootstrap::Membership;
use parnass_collectives::Overrides;
use parnass_mpi::coll::Settings as CollectiveSettings;
use parnass_mpi::{Process, Settings, ThreadLevel};
use parnass_portals::Interface;
use parnass_transport::Transport;
use parnass_transport_hybrid::{Hybrid, waker};
use parnass_transport_ofi::{Listener as Fabric, provider_of};
use parnass_transport_shm::{JobMemory, SharedMemory};
use parnass_transport_tcp::{INTERFACE_VARIABLE, Listener, Loss, Selection, machine_of};
use parnass_tunables::{self as tunables, Settings as Tunables};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

pub mod network;
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

/// The way to all ranks, and what of their places matters to collectives.
struct Way {
    transport: Box<dyn Transport>,
    oversubscribed: bool,
    /// Empty where all ranks are on one.
    nodes: Vec<u32>,
}

/// Shared memory, and a network when there are ranks on other nodes.
fn way(shared: SharedMemory, membership: &Arc<Membership>, settings: &Tunables) -> Result<Way, String> {
    let cores = membership.local_cpus as u32;
    if membership.local_size == membership.size {
        let oversubscribed = membership.size > cores;
        return Ok(Way { transport: Box::new(shared), oversubscribed, nodes: Vec::new() });
    }
    let selection = selection()?;
    let nodes: Vec<u32> = (0..membership.size).map(|rank| membership.node_of(rank)).collect();
    let host = membership.nodes.name(membership.node_of(membership.rank));
    let listener = Listener::new(host, &selection)?;
    let fabric = network::fabric(settings, host, &selection)?;
    let contacts = network::Contacts {
        cores,
        tcp: listener.contact(),
        fabric: fabric.as_ref().map(Fabric::contact).unwrap_or_default(),
    };
    let places = membership
        .exchange(&contacts.encode())
        .map_err(|error| format!("the launcher does not pass on where the ranks are: {error}"))?;
    let contacts: Option<Vec<network::Contacts>> =
        places.iter().map(|place| network::Contacts::decode(place)).collect();
    let contacts = contacts.ok_or("a rank does not say where it is: use one release on all hosts")?;
    let crowd = Crowd::of(&contacts, membership.rank).ok_or("a rank does not say where it is")?;
    shared.count_apart(crowd.here - membership.local_size);
    let near = Arc::new(shared);
    let oversubscribed = crowd.oversubscribed;
    let job = membership.clone();
    let on_loss = Box::new(move |loss: Loss| {
        job.launcher().abort(LOST, &format!("rank {}: {loss}", job.rank));
        errors::exit_now(LOST)
    });
    let (rank, key, tuning) = (membership.rank, membership.key(), tuning::transport_stream(settings));
    // Libfabric where it was asked for, and else where every rank has the same of it.
    let agreed = || {
        let first = contacts.first().and_then(|place| provider_of(&place.fabric));
        first.is_some() && contacts.iter().all(|place| provider_of(&place.fabric) == first)
    };
    let transport: Box<dyn Transport> = match fabric {
        Some(fabric) if network::is_asked_for(settings) || agreed() => {
            let contacts: Vec<&[u8]> = contacts.iter().map(|place| &place.fabric[..]).collect();
            let network = fabric
                .join(rank, key, &contacts, waker(&near), on_loss, tuning)
                .map_err(|error| format!("libfabric cannot be used: {error}"))?;
            Box::new(Hybrid::new(near, network, &nodes))
        }
        _ => {
            let contacts: Vec<&[u8]> = contacts.iter().map(|place| &place.tcp[..]).collect();
            let network = listener
                .join(rank, key, &contacts, waker(&near), on_loss, tuning)
                .map_err(|error| format!("TCP cannot be used: {error}"))?;
            Box::new(Hybrid::new(near, network, &nodes))
        }
    };
    Ok(Way { transport, oversubscribed, nodes })
}

/// The interfaces that may be used.
fn selection() -> Result<Selection, String> {
    let words = std::env::var(INTERFACE_VARIABLE).unwrap_or_default();
    Selection::parse(&words).map_err(|reason| format!("{INTERFACE_VARIABLE} is '{words}': {reason}"))
}

/// How many ranks share machines, from what all have told. The same at every rank, but for `here`.
struct Crowd {
    /// Ranks on the machine of this one.
    here: u32,
    /// A machine has more ranks than cores for them.
    oversubscribed: bool,
}

impl Crowd {
    fn of(places: &[network::Contacts], me: u32) -> Option<Crowd> {
        let mut machines: BTreeMap<String, (u32, u32)> = BTreeMap::new();
        let mut here = None;
        for (rank, place) in (0..).zip(places) {
            let machine = machine_of(&place.tcp)?;
            if rank == me {
                here = Some(machine.clone());
            }
            let (ranks, least) = machines.entry(machine).or_insert((0, u32::MAX));
            *ranks += 1;
            *least = place.cores.min(*least);
        }
        let (here, _) = machines[&here?];
        Some(Crowd { here, oversubscribed: machines.values().any(|(ranks, cores)| ranks > cores) })
    }
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
    let Way { transport, oversubscribed, nodes } = way(shared, &membership, &tunables)?;
    let interface = Interface::with(transport, tuning::portals(&tunables))
        .map_err(|error| format!("the memory of the job cannot be used: {error:?}"))?;
    let settings = Settings {
        app_number: membership.app_number,
        universe_size: membership.size as i32,
        host_name: parnass_mpi::environment::machine_name(),
        thread_level,
        tuning: tuning::mpi(&tunables),
        collectives: CollectiveSettings { overrides, oversubscribed, nodes },
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
