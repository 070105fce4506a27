//! Where the parts are put together: the only place that names a concrete transport.

use crate::{errors, tool};
use outside::{CARD_HEAD_BYTES, Outside, card};
use parnass_bootstrap::Membership;
use parnass_collectives::Overrides;
use parnass_counters::Counters;
use parnass_mpi::coll::Settings as CollectiveSettings;
use parnass_mpi::recovery::{Appeal, News, Recovery};
use parnass_mpi::{Process, Settings, ThreadLevel};
use parnass_portals::Interface;
use parnass_transport::Transport;
use parnass_transport_hybrid::{Duty, Hybrid, waker};
use parnass_transport_ofi::{Listener as Fabric, provider_of};
use parnass_transport_shm::{JobMemory, SharedMemory};
use parnass_transport_tcp::{Books, INTERFACE_VARIABLE, Listener, Loss, Selection, machine_of};
use parnass_tunables::{self as tunables, Settings as Tunables};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

pub mod network;
mod outside;
#[rustfmt::skip]
pub mod tuning;

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
    transport: Arc<dyn Transport>,
    /// The way to processes of other worlds.
    outside: Outside,
    oversubscribed: bool,
    /// Empty where all ranks are on one.
    nodes: Vec<u32>,
}

/// Shared memory, and a network when there are ranks on other nodes, or parents of another world.
fn way(shared: SharedMemory, membership: &Arc<Membership>, settings: &Tunables) -> Result<Way, String> {
    let cores = membership.local_cpus as u32;
    let near = Arc::new(shared);
    let one_node = membership.local_size == membership.size;
    let outside =
        |start| Outside::new(membership.clone(), near.clone(), tuning::transport_stream(settings), start);
    if one_node && membership.parents.is_empty() {
        let oversubscribed = membership.size > cores;
        let outside = outside(None);
        return Ok(Way { transport: near.clone(), outside, oversubscribed, nodes: Vec::new() });
    }
    if settings.switch(parnass_tunables::KEEPERS_ROAM) {
        parnass_base::process::let_keepers_run_on(membership.processors.clone());
    }
    let nodes: Vec<u32> = (0..membership.size).map(|rank| membership.node_of(rank)).collect();
    let selection = selection()?;
    let listener = Listener::new(host(membership), &selection)?;
    let card = card(membership, settings, &listener.contact());
    // A spawned world must be able to talk to its parents, which TCP is for.
    let fabric = match membership.parents.is_empty() {
        true => network::fabric(settings, host(membership), &selection)?,
        false => None,
    };
    let contacts = network::Contacts {
        cores,
        tcp: card.clone(),
        fabric: fabric.as_ref().map(Fabric::contact).unwrap_or_default(),
    };
    let counters = Counters::new(&near.counter_memory(membership.local_rank));
    let books = || Books { counters: counters.clone(), observer: tool::observer().clone() };
    listener.count_in(books());
    fabric.iter().for_each(|fabric| fabric.count_in(books()));
    let places = membership
        .exchange(&contacts.encode())
        .map_err(|error| format!("the launcher does not pass on where the ranks are: {error}"))?;
    let contacts: Option<Vec<network::Contacts>> =
        places.iter().map(|place| network::Contacts::decode(place)).collect();
    let contacts = contacts.ok_or("a rank does not say where it is: use one release on all hosts")?;
    let crowd = Crowd::of(&contacts, membership.rank).ok_or("a rank does not say where it is")?;
    let oversubscribed = crowd.oversubscribed;
    if one_node {
        // The parents were given the cards. What leads to them is a network like that of any world that meets another later.
        let outside = outside(Some((listener, card)));
        return Ok(Way { transport: near.clone(), outside, oversubscribed, nodes: Vec::new() });
    }
    near.count_apart(crowd.here - membership.local_size, cores);
    let (rank, key, tuning) = (membership.rank, membership.key(), tuning::transport_stream(settings));
    // Libfabric where it was asked for, and else where every rank has the same of it.
    let agreed = || {
        let first = contacts.first().and_then(|place| provider_of(&place.fabric));
        first.is_some() && contacts.iter().all(|place| provider_of(&place.fabric) == first)
    };
    let duty = Duty::default();
    let (transport, outside): (Arc<dyn Transport>, Outside) = match fabric {
        Some(fabric) if network::is_asked_for(settings) || agreed() => {
            let contacts: Vec<&[u8]> = contacts.iter().map(|place| &place.fabric[..]).collect();
            let network = fabric
                .join(rank, key, &contacts, waker(&near, &duty), on_loss(membership), tuning)
                .map_err(|error| format!("libfabric cannot be used: {error}"))?;
            (Arc::new(Hybrid::new(near.clone(), network, &nodes, duty)), outside(None).without_way())
        }
        _ => {
            let contacts: Vec<&[u8]> = contacts.iter().map(|place| &place.tcp[CARD_HEAD_BYTES..]).collect();
            let network = listener
                .join(rank, key, &contacts, waker(&near, &duty), on_loss(membership), tuning)
                .map_err(|error| format!("TCP cannot be used: {error}"))?;
            let network = Arc::new(network);
            let outside = outside(None).with_network(network.clone(), card);
            (Arc::new(Hybrid::new(near.clone(), network, &nodes, duty)), outside)
        }
    };
    Ok(Way { transport, outside, oversubscribed, nodes })
}

/// Ends the job when a peer is lost; where the job goes on, it does so without that peer.
fn on_loss(membership: &Arc<Membership>) -> Box<dyn Fn(Loss) + Send> {
    let job = membership.clone();
    Box::new(move |loss: Loss| {
        let text = format!("rank {}: {loss}", job.rank);
        if job.survives {
            let appeal = Appeal::Unreachable { rank: loss.rank, reason: loss.text };
            let _ = job.launcher().appeal(&appeal);
            return;
        }
        if job.launcher().is_connected() {
            job.launcher().abort(LOST, &text);
        } else {
            let _ = writeln!(io::stderr().lock(), "parnass: {text}");
        }
        errors::exit_now(LOST)
    })
}

/// The interfaces that may be used.
fn selection() -> Result<Selection, String> {
    let words = std::env::var(INTERFACE_VARIABLE).unwrap_or_default();
    Selection::parse(&words).map_err(|reason| format!("{INTERFACE_VARIABLE} is '{words}': {reason}"))
}

/// The name of this process's host, as the user wrote it.
fn host(membership: &Membership) -> &str {
    membership.nodes.name(membership.node_of(membership.rank))
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
            let machine = machine_of(place.tcp.get(CARD_HEAD_BYTES..)?)?;
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
    let tunables = tool::decide(tunables(membership.tunables.as_deref())?);
    let overrides = overrides(&tunables)?;
    keep_freed(tunables.number(tunables::KEEP_FREED));
    let job_memory = membership.job_memory.take();
    let shared = shared_memory(job_memory, membership.local_rank, &tunables)
        .map_err(|error| format!("the memory of the job cannot be used: {error}"))?;
    let membership = Arc::new(membership);
    let Way { transport, outside, oversubscribed, nodes } = way(shared, &membership, &tunables)?;
    let cores = parnass_bootstrap::available_processors() as u32;
    let interface = Interface::observed(transport, tuning::portals(&tunables), tool::observer().clone())
        .map_err(|error| format!("the memory of the job cannot be used: {error:?}"))?;
    let settings = Settings {
        app_number: membership.app_number,
        universe_size: membership.size.max(cores) as i32,
        host_name: parnass_mpi::environment::machine_name(),
        thread_level,
        tuning: tuning::mpi(&tunables),
        collectives: CollectiveSettings { overrides, oversubscribed, nodes },
        launcher: Box::new(Launcher(membership.clone())),
        connector: Some(Arc::new(outside)),
        recovery: recovery(&membership),
    };
    let process = Process::new(interface, settings);
    if !membership.parents.is_empty() {
        process.accept_parents(&membership.parents).map_err(|error| error.message().to_owned())?;
    }
    tool::attach(&process);
    Ok(process)
}

/// Has the C library keep what is freed, in blocks up to so many bytes, as it does once a program has freed one so long: glibc's thresholds for
/// giving memory back grow then, unless they were set.
fn keep_freed(bytes: u64) {
    let mut block = Vec::<u8>::new();
    if bytes > 0 && block.try_reserve_exact(bytes as usize).is_ok() {
        // An allocation that nobody sees would be left out.
        black_box(block.as_mut_ptr());
    }
}

/// What the environment says, without a launcher.
///
/// # Errors
/// Which value is wrong, and why.
pub fn settings_of_environment() -> Result<Tunables, String> {
    tunables(None)
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

/// Which algorithms are asked for.
///
/// # Errors
/// What is wrong.
pub fn overrides(settings: &Tunables) -> Result<Overrides, String> {
    let text = settings.text(tunables::COLLECTIVE);
    Overrides::parse(text).map_err(|reason| {
        let row = &tunables::TABLE[tunables::COLLECTIVE];
        format!("{} ({}) is '{text}': {reason}", row.name, row.variable)
    })
}

/// The way to the launcher for what concerns the death of processes; none where it does not do that.
fn recovery(membership: &Arc<Membership>) -> Option<Arc<dyn Recovery>> {
    membership.launcher().has_news().then(|| Arc::new(Launcher(membership.clone())) as Arc<dyn Recovery>)
}

impl Recovery for Launcher {
    fn survives(&self) -> bool {
        self.0.survives
    }

    fn appeal(&self, appeal: &Appeal) -> Result<(), String> {
        self.0.launcher().appeal(appeal).map_err(|error| error.to_string())
    }

    fn hear(&self) -> Option<News> {
        let news = self.0.launcher().hear()?;
        if matches!(&news, News::Failed(dead) if dead.contains(&self.0.rank)) {
            // The others go on without this process, which they cannot reach.
            errors::exit_now(LOST);
        }
        Some(news)
    }
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
