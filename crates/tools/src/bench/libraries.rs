//! The MPI libraries that take part: how each is found, compiled for and started, and which settings suit it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};

use super::hosts::Hosts;
use super::process::Runner;
use super::yardsticks::FLOOR_TCP;
use crate::prefix::Prefix;

/// The name of this library in results.
pub const OURS: &str = "parnass";

/// The ending of the name of a library at its best.
pub const BEST: &str = "-best";

/// How long a compiler or a question may take.
const SHORT: Duration = Duration::from_secs(60);
/// How long an installation may take.
const LONG: Duration = Duration::from_secs(900);

/// Which library it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Parnass,
    Mpich,
    OpenMpi,
    Intel,
    /// Something else that has `mpicc` and `mpiexec -n`.
    Other,
}

/// Command-line words and environment of a launcher.
#[derive(Debug, Default, PartialEq, Eq)]
struct Settings {
    words: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

/// How a kind is started when there is a core for each rank (`few`) and when there is not (`many`).
#[derive(Debug, Default)]
struct Manner {
    few: Settings,
    many: Settings,
}

impl Manner {
    /// The settings for so many ranks on the cores that there are.
    fn of(&self, ranks: u32) -> &Settings {
        let cores = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count());
        if ranks <= cores { &self.few } else { &self.many }
    }
}

/// What is between the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Way {
    /// One machine's memory.
    Memory,
    /// TCP, as if each rank had a machine of its own; two ranks.
    Tcp,
    /// TCP between two hosts on this machine, network namespaces joined by a pair of virtual Ethernet interfaces; two ranks.
    Veth,
}

/// Open MPI's settings for UCX.
const UCX: &[(&str, &str)] = &[
    ("OMPI_MCA_pml", "ucx"),
    ("OMPI_MCA_opal_common_ucx_tls", "any"),
    ("OMPI_MCA_opal_common_ucx_devices", "any"),
    ("UCX_TLS", "self,sm"),
];
/// The same over TCP.
const UCX_TCP: &[(&str, &str)] = &[
    ("OMPI_MCA_pml", "ucx"),
    ("OMPI_MCA_opal_common_ucx_tls", "any"),
    ("OMPI_MCA_opal_common_ucx_devices", "any"),
    ("UCX_TLS", "self,tcp"),
];
/// The same between the two hosts.
const UCX_VETH: &[(&str, &str)] = &[
    ("OMPI_MCA_pml", "ucx"),
    ("OMPI_MCA_opal_common_ucx_tls", "any"),
    ("OMPI_MCA_opal_common_ucx_devices", "any"),
    ("UCX_TLS", "self,tcp"),
    ("UCX_NET_DEVICES", "veth0"),
];

impl Kind {
    /// From what `mpiexec --version` says.
    fn of(version: &str) -> Kind {
        let holds = |text: &str| version.contains(text);
        if holds("(Parnass)") {
            Kind::Parnass
        } else if holds("Intel(R) MPI") {
            Kind::Intel
        } else if holds("HYDRA") {
            Kind::Mpich
        } else if holds("Open MPI") || holds("OpenRTE") || holds("PRRTE") {
            Kind::OpenMpi
        } else {
            Kind::Other
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Parnass => OURS,
            Kind::Mpich => "mpich",
            Kind::OpenMpi => "openmpi",
            Kind::Intel => "impi",
            Kind::Other => "other",
        }
    }

    /// As it comes: each rank bound to a core where there are enough, and told no more than it needs to start at all.
    fn default_manner(self, way: Way) -> Manner {
        match way {
            Way::Memory => {}
            Way::Tcp => return Manner { few: self.over_tcp(), many: Settings::default() },
            Way::Veth => return Manner { few: self.over_veth(), many: Settings::default() },
        }
        let few = match self {
            Kind::Parnass => &["--bind", "core"][..],
            Kind::Mpich => &["-bind-to", "core"],
            Kind::OpenMpi => &["--bind-to", "core"],
            Kind::Intel | Kind::Other => &[],
        };
        let many = match self {
            Kind::OpenMpi => &["--bind-to", "none", "--oversubscribe"][..],
            _ => &[],
        };
        Manner {
            few: Settings { words: few, environment: &[] },
            many: Settings { words: many, environment: &[] },
        }
    }

    /// Over TCP though both ranks are on one machine.
    fn over_tcp(self) -> Settings {
        let (words, environment) = match self {
            Kind::Parnass => (&["--starter", "local", "--host", "a:1,b:1", "--bind", "core"][..], &[][..]),
            // Some builds have UCX below, others libfabric.
            Kind::Mpich => (
                &["-bind-to", "core"][..],
                &[("MPIR_CVAR_NOLOCAL", "1"), ("UCX_TLS", "self,tcp"), ("FI_PROVIDER", "tcp")][..],
            ),
            Kind::OpenMpi => {
                (&["--bind-to", "core", "--mca", "pml", "ob1", "--mca", "btl", "tcp,self"][..], &[][..])
            }
            Kind::Intel => (&[][..], &[("I_MPI_FABRICS", "ofi"), ("FI_PROVIDER", "tcp")][..]),
            Kind::Other => (&[][..], &[][..]),
        };
        Settings { words, environment }
    }

    /// Between the two hosts, each of which has one core: nothing is left to bind.
    fn over_veth(self) -> Settings {
        let (words, environment) = match self {
            Kind::Parnass => (&["--host", "veth-a:1,veth-b:1", "--interface", "veth0"][..], &[][..]),
            Kind::Mpich => (
                &["-hosts", "veth-a,veth-b", "-ppn", "1"][..],
                &[
                    ("UCX_TLS", "self,tcp"),
                    ("UCX_NET_DEVICES", "veth0"),
                    ("FI_PROVIDER", "tcp"),
                    ("FI_TCP_IFACE", "veth0"),
                ][..],
            ),
            Kind::OpenMpi => (
                &[
                    "--host",
                    "veth-a:1,veth-b:1",
                    "--bind-to",
                    "none",
                    "--mca",
                    "pml",
                    "ob1",
                    "--mca",
                    "btl",
                    "tcp,self",
                    "--mca",
                    "btl_tcp_if_include",
                    "veth0",
                ][..],
                &[][..],
            ),
            Kind::Intel => (
                &["-hosts", "veth-a,veth-b", "-ppn", "1"][..],
                &[
                    ("I_MPI_FABRICS", "ofi"),
                    ("I_MPI_PIN", "off"),
                    ("FI_PROVIDER", "tcp"),
                    ("FI_TCP_IFACE", "veth0"),
                ][..],
            ),
            Kind::Other => (&["-host", "veth-a,veth-b"][..], &[][..]),
        };
        Settings { words, environment }
    }

    /// With the settings that are known to suit it best; none where there are no such.
    fn best_manner(self, way: Way) -> Option<Manner> {
        if way != Way::Memory {
            let few = if way == Way::Tcp {
                Settings { words: &["--bind-to", "core"], environment: UCX_TCP }
            } else {
                let words = &["--host", "veth-a:1,veth-b:1", "--bind-to", "none"];
                Settings { words, environment: UCX_VETH }
            };
            return (self == Kind::OpenMpi).then(|| Manner { few, many: Settings::default() });
        }
        Some(match self {
            Kind::Parnass | Kind::Other => return None,
            Kind::Mpich => Manner {
                few: Settings { words: &["-bind-to", "core"], environment: &[] },
                many: Settings {
                    words: &["-bind-to", "none"],
                    environment: &[
                        ("MPIR_CVAR_POLLS_BEFORE_YIELD", "1"),
                        ("MPIR_CVAR_ENABLE_HEAVY_YIELD", "1"),
                    ],
                },
            },
            Kind::OpenMpi => Manner {
                // UCX over shared memory, which Open MPI takes by itself only where there is a network for it too.
                few: Settings { words: &["--bind-to", "core"], environment: UCX },
                many: Settings { words: &["--bind-to", "none", "--oversubscribe"], environment: UCX },
            },
            Kind::Intel => Manner {
                few: Settings { words: &[], environment: &[("I_MPI_FABRICS", "shm")] },
                many: Settings {
                    words: &[],
                    environment: &[
                        ("I_MPI_FABRICS", "shm"),
                        ("I_MPI_THREAD_YIELD", "3"),
                        ("I_MPI_PIN", "off"),
                    ],
                },
            },
        })
    }

    /// Its packages in the Python package index.
    fn packages(self) -> &'static [&'static str] {
        match self {
            Kind::Mpich => &["mpich"],
            Kind::OpenMpi => &["openmpi"],
            Kind::Intel => &["impi-rt", "impi-devel"],
            Kind::Parnass | Kind::Other => &[],
        }
    }
}

/// The peers that can be installed, by the names that `--install` knows.
const INSTALLABLE: [Kind; 3] = [Kind::Mpich, Kind::OpenMpi, Kind::Intel];

/// The names of the peers that can be installed.
pub fn installable() -> Vec<&'static str> {
    INSTALLABLE.iter().map(|kind| kind.name()).collect()
}

/// An MPI library that takes part.
#[derive(Debug)]
pub struct Library {
    /// Its name in results.
    pub name: String,
    /// Its version, as its launcher says it.
    pub version: String,
    kind: Kind,
    way: Way,
    manner: Manner,
    mpicc: PathBuf,
    mpiexec: PathBuf,
    /// Where it is installed, if that is a tree of its own.
    prefix: Option<PathBuf>,
    programs: PathBuf,
    is_best: bool,
}

impl Library {
    /// The installation that the running program belongs to.
    ///
    /// # Errors
    /// The program does not lie in one.
    pub fn ours(runner: &Runner) -> anyhow::Result<Library> {
        let prefix = Prefix::of_this_program()?;
        if !prefix.library_file().exists() {
            bail!(
                "{} does not exist: this program belongs to no installation; in a source tree, `cargo xtask dist` makes one",
                prefix.library_file().display()
            );
        }
        let bin = prefix.directory().join("bin");
        Library::at(runner, OURS, bin.join("mpicc"), bin.join("mpiexec"), None)
    }

    /// The installation at `prefix`.
    ///
    /// # Errors
    /// There is no launcher or no compiler wrapper, or it does not run.
    pub fn in_prefix(runner: &Runner, name: &str, prefix: &Path) -> anyhow::Result<Library> {
        let prefix = std::path::absolute(prefix)?;
        let bin = prefix.join("bin");
        Library::at(runner, name, bin.join("mpicc"), bin.join("mpiexec"), Some(prefix))
    }

    fn at(
        runner: &Runner,
        name: &str,
        mpicc: PathBuf,
        mpiexec: PathBuf,
        prefix: Option<PathBuf>,
    ) -> anyhow::Result<Library> {
        for program in [&mpicc, &mpiexec] {
            if !program.exists() {
                bail!("{name}: {} does not exist", program.display());
            }
        }
        let mut library = Library {
            name: name.to_owned(),
            version: String::new(),
            kind: Kind::Other,
            way: Way::Memory,
            manner: Manner::default(),
            mpicc,
            mpiexec,
            prefix,
            programs: PathBuf::new(),
            is_best: false,
        };
        let mut question = library.command(&library.mpiexec);
        let answer = runner.run(question.arg("--version"), SHORT)?;
        if !answer.succeeded() {
            bail!("{name}: {} --version: {}", library.mpiexec.display(), answer.failure(SHORT));
        }
        library.kind = Kind::of(&answer.stdout);
        library.version = version(&answer.stdout);
        library.manner = library.kind.default_manner(library.way);
        Ok(library)
    }

    /// The same library, started so that this is between its ranks.
    #[must_use]
    pub fn over(mut self, way: Way) -> Library {
        self.way = way;
        self.manner = self.kind.default_manner(way);
        self
    }

    /// The libraries on PATH, without this one. What is called mpiexec but does not run is left out.
    ///
    /// # Errors
    /// Only when interrupted.
    pub fn on_path(runner: &Runner) -> anyhow::Result<Vec<Library>> {
        let mut seen: Vec<PathBuf> = Prefix::of_this_program()
            .into_iter()
            .filter_map(|prefix| prefix.directory().join("bin/mpiexec").canonicalize().ok())
            .collect();
        let mut found: Vec<Library> = Vec::new();
        for folder in std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()) {
            // Debian gives each of several libraries an ending.
            for ending in [".openmpi", ".mpich", ""] {
                let mpiexec = folder.join(format!("mpiexec{ending}"));
                let mpicc = folder.join(format!("mpicc{ending}"));
                let Ok(file) = mpiexec.canonicalize() else { continue };
                if !mpicc.exists() || seen.contains(&file) {
                    continue;
                }
                seen.push(file);
                match Library::at(runner, "", mpicc, mpiexec, None) {
                    Ok(mut library) if library.kind != Kind::Parnass => {
                        let name = library.kind.name();
                        let same = found.iter().filter(|other| other.kind == library.kind).count();
                        library.name =
                            if same == 0 { name.to_owned() } else { format!("{name}-{}", same + 1) };
                        found.push(library);
                    }
                    Err(error) if error.is::<super::process::Interrupted>() => return Err(error),
                    Ok(_) | Err(_) => {}
                }
            }
        }
        Ok(found)
    }

    /// Installs the peer of this name from the Python package index into an environment of its own in `folder`,
    /// unless it is there.
    ///
    /// # Errors
    /// No peer has this name, or the installation fails.
    pub fn install(runner: &Runner, name: &str, folder: &Path) -> anyhow::Result<Library> {
        let Some(kind) = INSTALLABLE.into_iter().find(|kind| kind.name() == name) else {
            bail!("{name} cannot be installed, only {}", installable().join(", "));
        };
        let done = folder.join("installed");
        if !done.exists() {
            let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
            let mut make = Command::new(python);
            step(runner, make.args(["-m", "venv", "--clear"]).arg(folder), LONG).with_context(|| {
                format!("{name}: a virtual environment is needed (Debian: apt install python3-venv)")
            })?;
            let mut pip = Command::new(folder.join("bin/python"));
            pip.args(["-m", "pip", "--disable-pip-version-check", "--quiet", "--no-input", "install"]);
            step(runner, pip.args(kind.packages()), LONG)
                .with_context(|| format!("{name}: {} could not be installed", kind.packages().join(" ")))?;
            std::fs::write(&done, "")?;
        }
        Library::in_prefix(runner, name, folder)
    }

    /// The same library with the settings that suit it best, if there are such.
    pub fn at_its_best(&self) -> Option<Library> {
        Some(Library {
            name: format!("{}{BEST}", self.name),
            version: self.version.clone(),
            kind: self.kind,
            way: self.way,
            manner: self.kind.best_manner(self.way)?,
            mpicc: self.mpicc.clone(),
            mpiexec: self.mpiexec.clone(),
            prefix: self.prefix.clone(),
            programs: self.programs.clone(),
            is_best: true,
        })
    }

    /// The settings in words, for the report.
    pub fn settings(&self) -> String {
        let words = |settings: &Settings| {
            let environment = settings.environment.iter().map(|(name, value)| format!("{name}={value}"));
            let all: Vec<String> =
                environment.chain(settings.words.iter().map(|word| (*word).to_owned())).collect();
            if all.is_empty() { "none".to_owned() } else { all.join(" ") }
        };
        let Manner { few, many } = &self.manner;
        if self.way != Way::Memory {
            return words(few);
        }
        format!("{}; with more ranks than cores: {}", words(few), words(many))
    }

    /// Compiles the programs of these names from `sources` into a folder of its own below `output`.
    ///
    /// # Errors
    /// The compiler wrapper fails.
    pub fn compile(
        &mut self,
        runner: &Runner,
        names: &[&str],
        sources: &Path,
        output: &Path,
    ) -> anyhow::Result<()> {
        self.programs = output.join(format!("programs-{}", self.name));
        std::fs::create_dir_all(&self.programs).with_context(|| self.programs.display().to_string())?;
        for name in names {
            let mut arguments: Vec<OsString> =
                ["-O2", "-std=gnu11", "-pthread"].into_iter().map(OsString::from).collect();
            arguments.push(sources.join(format!("{name}.c")).into());
            arguments.extend(["-o".into(), self.programs.join(name).into(), "-lm".into()]);
            let mut wrapper = self.command(&self.mpicc);
            let outcome = step(runner, wrapper.args(&arguments), SHORT);
            let outcome = match (outcome, &self.prefix) {
                (Err(error), Some(prefix)) if self.kind == Kind::Intel => {
                    // Its wrapper may be made for compilers that are not here; its header and library are enough.
                    let mut plain = self.command(Path::new("cc"));
                    plain.arg("-I").arg(prefix.join("include")).args(&arguments);
                    plain.arg("-L").arg(prefix.join("lib")).arg("-lmpi");
                    step(runner, &mut plain, SHORT).map_err(|_| error)
                }
                (outcome, _) => outcome,
            };
            outcome.with_context(|| format!("{}: {name}.c does not compile", self.name))?;
        }
        Ok(())
    }

    /// Whether this is a library at its best with the very settings that it has by default for so many ranks.
    pub fn repeats_default(&self, ranks: u32) -> bool {
        self.is_best && self.manner.of(ranks) == self.kind.default_manner(self.way).of(ranks)
    }

    /// The command that runs a program of [`Library::compile`] on so many ranks, on the hosts if there are such; on 0, without a launcher.
    pub fn job(&self, name: &str, ranks: u32, hosts: Option<&Hosts>) -> Command {
        let program = self.programs.join(name);
        if ranks == 0 {
            let mut command = Command::new(program);
            if let Some(hosts) = hosts.filter(|_| name == FLOOR_TCP) {
                command.args(hosts.other());
            }
            return command;
        }
        let settings = self.manner.of(ranks);
        let mut command = match hosts {
            None => self.command(&self.mpiexec),
            Some(hosts) => {
                // The launcher runs on the first host, on its core.
                let mut command = self.command(Path::new("taskset"));
                command.arg("-c").arg(hosts.core().to_string()).arg(&self.mpiexec);
                let known = command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, path)| path);
                let path = known.map(OsString::from).or_else(|| std::env::var_os("PATH")).unwrap_or_default();
                let folders = std::iter::once(hosts.folder().to_owned()).chain(std::env::split_paths(&path));
                if let Ok(path) = std::env::join_paths(folders) {
                    command.env("PATH", path);
                }
                command
            }
        };
        command.args(settings.words).arg("-n").arg(ranks.to_string()).arg(program);
        command.envs(settings.environment.iter().copied());
        command
    }

    /// A program of this library, with what it has to find in its environment.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        // Open MPI refuses root without it; the others do not look.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        let Some(prefix) = &self.prefix else { return command };
        let mut path = vec![prefix.join("bin")];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        if let Ok(path) = std::env::join_paths(path) {
            command.env("PATH", path);
        }
        if self.kind != Kind::Parnass {
            let libfabric = prefix.join("opt/mpi/libfabric/lib");
            let folders = [prefix.join("lib"), libfabric.clone()];
            if let Ok(folders) = std::env::join_paths(folders.iter().filter(|folder| folder.is_dir())) {
                command.env("LD_LIBRARY_PATH", folders);
            }
            if libfabric.is_dir() {
                command.env("I_MPI_ROOT", prefix).env("FI_PROVIDER_PATH", libfabric.join("prov"));
            } else if self.kind == Kind::Intel {
                command.env("I_MPI_ROOT", prefix).env("FI_PROVIDER_PATH", prefix.join("lib"));
            }
        }
        command
    }
}

/// Runs a command whose output matters only when it fails.
///
/// # Errors
/// It cannot be started, it fails, it takes too long, or [`super::process::Interrupted`].
pub fn step(runner: &Runner, command: &mut Command, limit: Duration) -> anyhow::Result<()> {
    let outcome = runner.run(command, limit)?;
    if !outcome.succeeded() {
        bail!("{}: {}", command.get_program().to_string_lossy(), outcome.failure(limit));
    }
    Ok(())
}

/// The first word of the answer that looks like a version.
fn version(answer: &str) -> String {
    let number = |word: &&str| {
        word.starts_with(|character: char| character.is_ascii_digit())
            && word.contains('.')
            && word.chars().all(|character| character.is_ascii_alphanumeric() || character == '.')
    };
    answer.split_whitespace().find(number).unwrap_or("of unknown version").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_known_by_what_its_launcher_says() {
        let answers = [
            ("mpiexec (Parnass) 0.1.0\nMPI 5.0\n", Kind::Parnass, "0.1.0"),
            ("HYDRA build details:\n    Version:       5.0.2\n    CC: cc\n", Kind::Mpich, "5.0.2"),
            ("mpiexec (Open MPI) 5.0.11\n\nReport bugs\n", Kind::OpenMpi, "5.0.11"),
            ("mpirun (OpenRTE) 4.1.4\n", Kind::OpenMpi, "4.1.4"),
            ("Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 2\n", Kind::Intel, "2021.18.1"),
            ("mpiexec of another kind\n", Kind::Other, "of unknown version"),
        ];
        for (answer, kind, number) in answers {
            assert_eq!((Kind::of(answer), version(answer).as_str()), (kind, number));
        }
    }
}
