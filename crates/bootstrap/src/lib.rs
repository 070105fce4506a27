//! How a rank learns its place in the job, and keeps in touch with its launcher.
//!
//! The launcher gives each program two words in its environment: the address of the launcher's local socket
//! with the job's secret (`PARNASS_JOB`), and the rank (`PARNASS_RANK`). The first process in that slot which
//! calls [`join`] connects, says who it is, and receives everything else in one answer: the description of the
//! job, its processors, and the descriptor of the memory that the ranks of this node share. The connection stays open for the life of the
//! process. So nothing has to survive a wrapper that closes descriptors, programs that never call MPI carry
//! nothing, and each side sees at once when the other is gone.
//!
//! The socket has an abstract name: there is no file to leave behind.

#![forbid(unsafe_code)]

pub mod description;
mod foreign;
#[doc(hidden)]
pub mod fuzzing;
mod link;
mod pmi;
mod pmi2;
mod pmix;
mod protocol;
pub mod recovery;
mod services;
mod spawn;
pub mod wire;

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;

pub use description::{Description, Key, Nodes};
use link::Given;
pub use link::LauncherLink;
pub use protocol::{Address, Message, PART_BYTES_MAXIMUM, Secret, VERSION, Welcome, receive, send};
pub use services::{Services, look_up};
pub use spawn::{Caller, Errand, Launch, SPAWN_VARIABLE, Started, installed_launcher};

/// Environment variable with the [`Address`] of the launcher.
pub const JOB_VARIABLE: &str = "PARNASS_JOB";
/// Environment variable with the rank of the slot that a program was started in.
pub const RANK_VARIABLE: &str = "PARNASS_RANK";
/// Environment variable with the number of ranks; for scripts and for what is told before MPI_Init, never read by [`join`].
pub const SIZE_VARIABLE: &str = "PARNASS_SIZE";

/// Environment variable with the place of the rank among those of its node; for scripts too.
pub const LOCAL_RANK_VARIABLE: &str = "PARNASS_LOCAL_RANK";

/// The place of this process in its job.
#[derive(Debug)]
pub struct Membership {
    /// This process's rank in the job, from 0.
    pub rank: u32,
    /// Number of ranks in the job.
    pub size: u32,
    /// Which rank is on which node.
    pub nodes: Nodes,
    /// The place of this process among the ranks of its node, from 0: its place in the memory that they share.
    pub local_rank: u32,
    /// How many ranks of the job are on this node.
    pub local_size: u32,
    /// The memory file that the ranks of this node share; none in a world of one without a launcher.
    pub job_memory: Option<OwnedFd>,
    /// Which of the colon-separated parts of the command line started this rank, from 0
    /// (MPI_APPNUM; MPI 5.0, section 11.10.3). -1 without a launcher.
    pub app_number: i32,
    /// Names the job among those of this machine.
    pub job_id: String,
    /// Processors that the local ranks of this job may use together: the affinity mask, bounded by the
    /// control group's limit.
    pub local_cpus: usize,
    /// The processors of this machine that the job may use, where the launcher has said it; this process may be bound to some of them.
    pub processors: Vec<usize>,
    /// Whether each rank was bound to processors of its own.
    pub bound: bool,
    /// The tunables that do not have their defaults, as the launcher has decided; `None` without one.
    pub tunables: Option<Vec<String>>,
    /// What the processes that have started this world tell it; empty where it was started by a user.
    pub parents: Vec<u8>,
    /// Whether the job goes on when a rank dies.
    pub survives: bool,
    key: Key,
    launcher: LauncherLink,
}

impl Membership {
    /// The connection to the launcher; silent in a world of one.
    pub fn launcher(&self) -> &LauncherLink {
        &self.launcher
    }

    /// The node of a rank. Ranks of one node share its memory.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn node_of(&self, rank: u32) -> u32 {
        self.nodes.of_rank(rank)
    }

    /// What the ranks of this job know and nobody else: fresh for each job.
    pub fn key(&self) -> &[u8; 32] {
        &self.key.0
    }

    /// Gives `bytes` ([`PART_BYTES_MAXIMUM`] at most) and gets those of all ranks, in their order. Every rank of the
    /// job must call it, and where it is called several times, in the same order.
    ///
    /// # Errors
    /// There are too many bytes, or the launcher is gone.
    pub fn exchange(&self, bytes: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        self.launcher.exchange(bytes)
    }

    /// A world of one, as of a program that was started without a launcher.
    pub fn alone() -> Membership {
        Membership {
            rank: 0,
            size: 1,
            nodes: Nodes::one(1, "localhost"),
            local_rank: 0,
            local_size: 1,
            job_memory: None,
            app_number: -1,
            job_id: format!("alone-{}", std::process::id()),
            local_cpus: available_processors(),
            processors: Vec::new(),
            bound: false,
            tunables: None,
            parents: Vec::new(),
            survives: false,
            key: Key::random(),
            launcher: LauncherLink::none(),
        }
    }
}

/// Takes the place that the environment names: a rank of our launcher's job, or of another's that speaks PMI or PMIx, or a
/// world of one. Under another's launcher the first rank of each node has `make_memory` make the memory for so many
/// ranks.
///
/// # Errors
/// When the environment names a launcher that is gone, that refuses (the rank is taken by another process),
/// or that speaks another version; or when it is of another launcher that is not understood. There is no quiet fallback: N
/// programs that each believe to be alone would be worse than an error.
pub fn join(make_memory: impl FnOnce(u32) -> io::Result<OwnedFd>) -> Result<Membership, Error> {
    let variable = |name: &str| std::env::var(name).ok();
    if let Some(job) = variable(JOB_VARIABLE) {
        return join_as(&job, &variable(RANK_VARIABLE).unwrap_or_default());
    }
    match other_launcher(variable) {
        Other::Pmi(variables) => foreign::join(&variables, make_memory),
        Other::Pmix => foreign::join_pmix(make_memory),
        Other::Unknown(complaint) => Err(complaint),
        Other::None => Ok(Membership::alone()),
    }
}

/// [`join`] with the values of the two variables.
pub fn join_as(job: &str, rank: &str) -> Result<Membership, Error> {
    let address = Address::parse(job)
        .ok_or_else(|| Error::new(format!("{JOB_VARIABLE} is '{job}', which mpiexec never sets; {UNSET}")))?;
    let rank: u32 = rank
        .parse()
        .map_err(|_| Error::new(format!("{RANK_VARIABLE} is '{rank}' and not a rank; {UNSET}")))?;
    let (link, Given { welcome, memory, description }) = LauncherLink::connect(&address, rank)?;
    let (local_rank, local_size) = description.nodes.local(rank);
    Ok(Membership {
        rank,
        size: description.nodes.size(),
        nodes: description.nodes,
        local_rank,
        local_size,
        job_memory: Some(memory),
        app_number: welcome.app_number,
        job_id: address.name,
        local_cpus: welcome.local_cpus,
        processors: welcome.processors,
        bound: welcome.bound,
        tunables: Some(description.tunables),
        parents: description.parents,
        survives: welcome.survives,
        key: description.key,
        launcher: link,
    })
}

/// Launchers that are not understood: the variable in which each says how many ranks there are, whose it is, and what
/// to do.
const NOT_UNDERSTOOD: [(&str, &str, &str); 7] = [
    ("OMPI_COMM_WORLD_SIZE", "Open MPI's launcher", ""),
    ("MV2_COMM_WORLD_SIZE", "MVAPICH's launcher", ""),
    ("JSM_NAMESPACE_SIZE", "IBM's jsrun", ""),
    ("PALS_SIZE", "HPE's PALS", ""),
    ("FLUX_JOB_SIZE", "Flux", "`flux run -o pmi=simple`, or "),
    ("PMI_SIZE", "an MPICH-like launcher that gives no PMI_FD", ""),
    ("SLURM_STEP_NUM_TASKS", "Slurm's srun without PMI-2", "`srun --mpi=pmi2`, or "),
];

/// Whose launcher the environment is of, when it is not ours.
enum Other {
    None,
    Pmi(foreign::Variables),
    Pmix,
    Unknown(Error),
}

fn other_launcher(variable: impl Fn(&str) -> Option<String>) -> Other {
    if let (Some(descriptor), Some(rank), Some(size)) =
        (variable("PMI_FD"), variable("PMI_RANK"), variable("PMI_SIZE"))
    {
        return Other::Pmi(foreign::Variables {
            descriptor,
            rank,
            size,
            job: variable("PMI_JOBID").unwrap_or_else(|| "0".to_owned()),
            version: variable("PMI_VERSION"),
            slurm: variable("SLURM_STEP_ID").is_some(),
        });
    }
    if pmix::VARIABLES.iter().all(|name| variable(name).is_some()) {
        return Other::Pmix;
    }
    let unknown = NOT_UNDERSTOOD.iter().find_map(|(name, whose, way)| {
        let size: u32 = variable(name)?.parse().ok().filter(|size| *size > 1)?;
        Some(Error::new(format!(
            "this program uses Parnass, but {whose} has started it ({name}={size}): its {size} processes would each \
             be alone; start it with {way}the mpiexec of Parnass, or unset {name} if alone is what you want"
        )))
    });
    unknown.map_or(Other::None, Other::Unknown)
}

const UNSET: &str = "start the program with mpiexec, or unset PARNASS_JOB and PARNASS_RANK to run it alone";

/// Processors that this process may use: its affinity mask, bounded by the limit of its control group.
pub fn available_processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Why a process could not join its job, with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(String);

impl Error {
    fn new(message: impl Into<String>) -> Error {
        Error(message.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_that_is_gone_is_named() {
        let address = Address { name: "parnass-nobody".into(), secret: Secret::random() };
        let error = join_as(&address.to_string(), "0").unwrap_err().to_string();
        assert!(error.contains("is gone") && error.contains("unset PARNASS_JOB"), "{error}");
    }

    #[test]
    fn ranks_of_another_launcher_are_not_quietly_alone() {
        let of = |wanted: &'static str, value: &'static str| {
            other_launcher(move |name| (name == wanted).then(|| value.to_owned()))
        };
        for (name, whose) in [
            ("PMI_SIZE", "MPICH-like"),
            ("OMPI_COMM_WORLD_SIZE", "Open MPI"),
            ("SLURM_STEP_NUM_TASKS", "srun --mpi=pmi2"),
        ] {
            let Other::Unknown(complaint) = of(name, "4") else { panic!("{name}") };
            let complaint = complaint.to_string();
            assert!(complaint.contains(&format!("{name}=4")) && complaint.contains(whose), "{complaint}");
            assert!(complaint.contains("mpiexec of Parnass"), "{complaint}");
        }
        for (name, value) in
            [("PMI_SIZE", "1"), ("PMI_SIZE", ""), ("SLURM_NTASKS", "4"), ("SLURM_STEP_NUM_TASKS", "1")]
        {
            assert!(matches!(of(name, value), Other::None), "{name}={value}");
        }
    }

    #[test]
    fn words_that_mpiexec_never_sets_are_refused() {
        assert!(join_as("rubbish", "0").unwrap_err().to_string().contains("'rubbish'"));
        let address = Address { name: "x".into(), secret: Secret::random() }.to_string();
        assert!(join_as(&address, "-1").unwrap_err().to_string().contains("'-1' and not a rank"));
    }
}
