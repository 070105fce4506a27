//! The ranks of a job: how each is started, and what is known of it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use parnass_base::process::{Start, prepare};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Resource, getpid, getrlimit, setrlimit};

use parnass_bootstrap::{Address, LOCAL_RANK_VARIABLE, Launch, RANK_VARIABLE};

use crate::agent::plan::Variables;
use crate::arguments::Job;
use crate::environment;
use crate::places::Places;

/// One rank of the job.
#[derive(Debug, Default)]
pub struct Rank {
    /// Which part of the command line it belongs to.
    pub part: usize,
    /// Its process, once started.
    pub process: Option<Pid>,
    /// How that process ended.
    pub ended: Option<ExitStatus>,
    /// Index of the connection of the process that has joined as this rank.
    pub member: Option<usize>,
    /// How many processes have joined as this rank, one after the other.
    pub joined: u32,
    /// Since when the joined process is gone without MPI_Finalize.
    pub lost: Option<Instant>,
    /// The joined process that is gone, for the report.
    pub lost_process: Option<Pid>,
}

impl Rank {
    pub fn is_running(&self) -> bool {
        self.process.is_some() && self.ended.is_none()
    }
}

/// Starts ranks one after the other.
#[derive(Debug)]
pub struct Starter {
    programs: Vec<PathBuf>,
    environments: Vec<Variables>,
    output: Option<PathBuf>,
    input: Option<OwnedFd>,
    /// The soft limit of open files that mpiexec was given.
    open_files: Option<u64>,
    pub places: Places,
}

/// The ends of the pipes of a rank that was started; none with `--output`.
pub type Pipes = Option<[OwnedFd; 2]>;

impl Starter {
    /// For the `ranks` ranks of this node. `input` is what rank 0 reads, where it is one of them.
    pub fn new(
        job: &Job,
        programs: Vec<PathBuf>,
        variables: &[Variables],
        address: &Address,
        input: Option<OwnedFd>,
        ranks: usize,
    ) -> io::Result<Starter> {
        let size = job.size();
        if let Some(directory) = &job.output {
            std::fs::create_dir_all(directory).map_err(|error| {
                io::Error::new(error.kind(), format!("--output {}: {error}", directory.display()))
            })?;
        }
        let of_part = |variables: &Variables| environment::of_ranks(variables.clone(), address, size);
        let environments = variables.iter().map(of_part).collect();
        Ok(Starter {
            programs,
            environments,
            output: job.output.clone(),
            input,
            open_files: raise_open_files(),
            places: crate::places::choose(job.bind, ranks),
        })
    }

    /// Starts `rank` of `part`, which is the `local`-th of this node.
    ///
    /// # Errors
    /// What fork or exec says; nothing is then left of the rank.
    pub fn start(&mut self, job: &Job, part: usize, rank: u32, local: usize) -> io::Result<(Pid, Pipes)> {
        let description = &job.parts[part];
        let mut command = Command::new(&self.programs[part]);
        command.arg0(&description.program).args(&description.arguments);
        command.env_clear().envs(&self.environments[part]).env(RANK_VARIABLE, rank.to_string());
        command.env(LOCAL_RANK_VARIABLE, local.to_string());
        if let Some(directory) = &description.directory {
            command.current_dir(directory);
        }
        command.stdin(self.input.take().map_or_else(Stdio::null, Stdio::from));
        let pipes = match &self.output {
            Some(directory) => {
                let digits = (job.size() - 1).max(1).ilog10() as usize + 1;
                let create = |kind: &str| create_file(directory, &format!("rank.{rank:0digits$}.{kind}"));
                command.stdout(create("out")?).stderr(create("err")?);
                None
            }
            None => {
                let (output, output_end) = pipe_with(PipeFlags::CLOEXEC)?;
                let (error, error_end) = pipe_with(PipeFlags::CLOEXEC)?;
                rustix::io::ioctl_fionbio(&output, true)?;
                rustix::io::ioctl_fionbio(&error, true)?;
                command.stdout(output_end).stderr(error_end);
                Some([output, error])
            }
        };
        let start = Start {
            own_process_group: true,
            dies_with: Some(getpid().as_raw_nonzero().get()),
            processors: self.places.of_rank.get(local).cloned().unwrap_or_default(),
            open_files: self.open_files,
        };
        prepare(&mut command, start);
        let child = command.spawn()?;
        let process = Pid::from_raw(child.id() as i32).expect("a process id above 0");
        Ok((process, pipes))
    }
}

impl Starter {
    /// Starts the mpiexec of a world that a rank starts, the `number`-th of this node.
    ///
    /// # Errors
    /// What fork or exec says.
    pub fn start_guest(
        &mut self,
        job: &Job,
        launch: &Launch,
        number: u32,
    ) -> io::Result<(Pid, [OwnedFd; 2])> {
        let mut launch = launch.clone();
        let mut words = Vec::new();
        if job.label {
            words.push("-l".into());
        }
        if let Some(directory) = &self.output {
            let directory = std::path::absolute(directory)?.join(format!("spawned.{number}"));
            words.extend(["--output".into(), directory.into_os_string()]);
        }
        launch.words.splice(0..0, words);
        let mut command = launch.command(&std::env::current_exe()?);
        let (output, output_end) = pipe_with(PipeFlags::CLOEXEC)?;
        let (error, error_end) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&output, true)?;
        rustix::io::ioctl_fionbio(&error, true)?;
        command.stdout(output_end).stderr(error_end);
        let start = Start {
            own_process_group: true,
            dies_with: Some(getpid().as_raw_nonzero().get()),
            processors: Vec::new(),
            open_files: self.open_files,
        };
        prepare(&mut command, start);
        let child = command.spawn()?;
        Ok((Pid::from_raw(child.id() as i32).expect("a process id above 0"), [output, error]))
    }
}

fn create_file(directory: &Path, name: &str) -> io::Result<File> {
    let path = directory.join(name);
    File::create(&path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// Three descriptors per rank may be more than the soft limit allows. Gives the limit that was, for the ranks.
fn raise_open_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let soft = limit.current?;
    let mut raised = limit;
    raised.current = limit.maximum;
    setrlimit(Resource::Nofile, raised).ok()?;
    Some(soft)
}
