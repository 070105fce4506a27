//! The command line of `mpiexec`: one table of options, read by the parser and by the help.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::environment;
use crate::hosts::{self, Host, Map, Order};

/// A process is named by sixteen bits in match bits and context ids.
pub const RANKS_MAXIMUM: u32 = 65_535;

/// Which interfaces the ranks use between hosts.
const INTERFACE_VARIABLE: &str = "PARNASS_INTERFACE";

/// What the command line asks for.
#[derive(Debug)]
pub enum Request {
    Help,
    Version,
    Run(Box<Job>),
    /// To be an agent of another mpiexec.
    Agent,
}

/// A job: one or more parts, started together as one MPI_COMM_WORLD.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// The colon-separated parts; their ranks follow one another.
    pub parts: Vec<Part>,
    /// Each line of output is preceded by the rank that wrote it.
    pub label: bool,
    /// The job is ended after this time.
    pub timeout: Option<Duration>,
    /// A file per rank and stream is written here, instead of this process's output.
    pub output: Option<PathBuf>,
    /// Where ranks may run.
    pub bind: Bind,
    /// Values of tunables, as given.
    pub tunables: Vec<(String, String)>,
    /// The hosts that are named on the command line or in a file; none where the batch system or nobody names any.
    pub hosts: Vec<Host>,
    /// Which ranks go to which host.
    pub map: Map,
    /// How agents are started on hosts, where the user says it.
    pub starter: Option<String>,
    /// Where this installation lies on hosts, where that is another place than here.
    pub prefix: Option<PathBuf>,
    /// How many agents one guardian starts, where the user says it.
    pub fan_out: Option<u32>,
    /// What the ranks did is told at the end: to the user, or as JSON in a file.
    pub stats: Option<Option<PathBuf>>,
    /// The job goes on when a rank dies.
    pub survives: bool,
}

impl Job {
    /// Number of ranks in all parts.
    pub fn size(&self) -> u32 {
        self.parts.iter().map(|part| part.ranks).sum()
    }
}

/// One program with its arguments, as between two colons.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// How many; 0 where it was not said.
    pub ranks: u32,
    pub program: OsString,
    pub arguments: Vec<OsString>,
    pub environment: Environment,
    pub directory: Option<PathBuf>,
}

/// The environment of a part's ranks.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// Which of mpiexec's variables are handed on: all of them when `None`.
    pub only: Option<Vec<OsString>>,
    /// Set in this order.
    pub set: Vec<(OsString, OsString)>,
}

/// Where ranks may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bind {
    /// Each on its share of the cores, where there is one at least for each; else where the kernel puts them.
    #[default]
    Share,
    /// Where the kernel puts them.
    None,
    /// One rank to a core, where there is a core for each.
    Core,
    /// One rank to a hardware thread, where there is one for each.
    Thread,
}

/// What an option does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Ranks,
    Set,
    SetAll,
    Export,
    Only,
    OnlyAll,
    All,
    Nothing,
    NothingAll,
    Directory,
    Label,
    Timeout,
    Output,
    Bind,
    Tunable,
    Hosts,
    HostFile,
    MapBy,
    RankBy,
    PerHost,
    Starter,
    Prefix,
    FanOut,
    Interface,
    Encrypt,
    MpichAbi,
    Stats,
    Survive,
    FaultTolerance,
    Agent,
    Ignored,
    Help,
    Version,
}

struct Opt {
    names: &'static [&'static str],
    values: &'static [&'static str],
    what: What,
    /// Empty for those that are only accepted for the sake of other launchers' users.
    help: &'static str,
}

const OPTIONS: &[Opt] = &[
    Opt {
        names: &["n", "np", "c"],
        values: &["RANKS"],
        what: What::Ranks,
        help: "number of ranks (1 if not given)",
    },
    Opt {
        names: &["env"],
        values: &["NAME", "VALUE"],
        what: What::Set,
        help: "set a variable for this part",
    },
    Opt {
        names: &["genv"],
        values: &["NAME", "VALUE"],
        what: What::SetAll,
        help: "set a variable for all parts",
    },
    Opt {
        names: &["x"],
        values: &["NAME[=VALUE]"],
        what: What::Export,
        help: "as -env; without a value it is mpiexec's own",
    },
    Opt {
        names: &["envlist"],
        values: &["NAME,..."],
        what: What::Only,
        help: "hand on only these variables to this part",
    },
    Opt {
        names: &["genvlist"],
        values: &["NAME,..."],
        what: What::OnlyAll,
        help: "hand on only these variables to all parts",
    },
    Opt { names: &["envnone"], values: &[], what: What::Nothing, help: "hand on no variables to this part" },
    Opt {
        names: &["genvnone"],
        values: &[],
        what: What::NothingAll,
        help: "hand on no variables to any part",
    },
    Opt {
        names: &["wdir", "wd"],
        values: &["DIR"],
        what: What::Directory,
        help: "working directory of this part",
    },
    Opt {
        names: &["l", "label", "tag-output", "prepend-rank"],
        values: &[],
        what: What::Label,
        help: "begin each line of output with its rank",
    },
    Opt {
        names: &["timeout"],
        values: &["SECONDS"],
        what: What::Timeout,
        help: "end the job after this time; say who waits for whom",
    },
    Opt {
        names: &["output", "output-filename"],
        values: &["DIR"],
        what: What::Output,
        help: "write DIR/rank.N.out and DIR/rank.N.err",
    },
    Opt {
        names: &["bind", "bind-to"],
        values: &["share|none|core|thread"],
        what: What::Bind,
        help: "bind each rank to its share of the cores (the default)",
    },
    Opt {
        names: &["tunable"],
        values: &["NAME=VALUE"],
        what: What::Tunable,
        help: "choose a value (parnass info --tunables lists them)",
    },
    Opt {
        names: &["host", "hosts", "H"],
        values: &["HOST[:SLOTS],..."],
        what: What::Hosts,
        help: "run on these hosts; ranges as n[01-16]",
    },
    Opt {
        names: &["hostfile", "machinefile", "f"],
        values: &["FILE"],
        what: What::HostFile,
        help: "run on the hosts in FILE, a line each: HOST slots=N",
    },
    Opt {
        names: &["map-by"],
        values: &["slot|node|ppr:N:node"],
        what: What::MapBy,
        help: "fill one host after the other (the default), or in turn",
    },
    Opt {
        names: &["rank-by"],
        values: &["slot|node"],
        what: What::RankBy,
        help: "number ranks host by host, or in turn",
    },
    Opt {
        names: &["ppn", "perhost", "N"],
        values: &["RANKS"],
        what: What::PerHost,
        help: "so many ranks on each host",
    },
    Opt {
        names: &["starter", "launcher", "bootstrap"],
        values: &["ssh|slurm|local|COMMAND"],
        what: What::Starter,
        help: "how hosts are reached; COMMAND has {host} in it",
    },
    Opt {
        names: &["prefix"],
        values: &["DIR"],
        what: What::Prefix,
        help: "where Parnass is installed on the hosts",
    },
    Opt {
        names: &["fan-out"],
        values: &["N"],
        what: What::FanOut,
        help: "start N hosts from each at most; 0: all from here",
    },
    Opt {
        names: &["interface", "iface"],
        values: &["NAME|NETWORK,..."],
        what: What::Interface,
        help: "let ranks on different hosts talk over these only",
    },
    Opt {
        names: &["encrypt"],
        values: &[],
        what: What::Encrypt,
        help: "encrypt and authenticate what hosts tell each other",
    },
    Opt {
        names: &["mpich-abi"],
        values: &[],
        what: What::MpichAbi,
        help: "load our libmpi.so.12 first, whatever the program's run path says",
    },
    Opt {
        names: &["stats"],
        values: &[],
        what: What::Stats,
        help: "tell at the end what each rank did; --stats=FILE: as JSON",
    },
    Opt {
        names: &["survive", "enable-recovery", "disable-auto-cleanup"],
        values: &[],
        what: What::Survive,
        help: "go on when a rank dies: see docs/fault-tolerance.md",
    },
    Opt { names: &["with-ft"], values: &["ulfm|none"], what: What::FaultTolerance, help: "" },
    Opt { names: &["agent"], values: &[], what: What::Agent, help: "" },
    Opt { names: &["help", "h", "?"], values: &[], what: What::Help, help: "show this" },
    Opt { names: &["version", "V"], values: &[], what: What::Version, help: "show the version" },
    Opt { names: &["envall", "genvall"], values: &[], what: What::All, help: "" },
    Opt {
        names: &["oversubscribe", "allow-run-as-root", "q", "quiet"],
        values: &[],
        what: What::Ignored,
        help: "",
    },
    Opt { names: &["mca"], values: &["NAME", "VALUE"], what: What::Ignored, help: "" },
];

/// The text of `mpiexec --help`.
pub fn help() -> String {
    let mut text = String::from(
        "mpiexec starts the ranks of an MPI program, on this machine or on several.\n\n\
         usage: mpiexec [options] PROGRAM [arguments] [: [options] PROGRAM [arguments]]...\n\n\
         examples:\n  \
         mpiexec -n 4 ./hello                        four ranks\n  \
         mpiexec -n 4 python3 hello.py               of a Python program\n  \
         mpiexec -l --timeout 60 -n 2 ./a            two, their lines marked, at most a minute\n  \
         mpiexec -n 1 ./server : -n 8 ./worker       two programs as one job\n  \
         mpiexec --host a:2,b:2 ./hello              two ranks on each of two hosts\n\noptions:\n",
    );
    for option in OPTIONS.iter().filter(|option| !option.help.is_empty()) {
        let names: Vec<String> = option.names.iter().map(|name| dashed(name)).collect();
        let left = format!("{} {}", names.join(", "), option.values.join(" "));
        let left = if left.len() > 38 { format!("{left}\n  {:38}", "") } else { format!("{left:<38}") };
        let _ = writeln!(text, "  {left} {}", option.help);
    }
    text.push_str(
        "\nA part is what stands between colons. One dash or two are the same, and --name=value is --name value.\n\
         Standard input goes to rank 0. The exit code is that of the first rank that fails, 128 + N if it was\n\
         killed by signal N, or the code given to MPI_Abort. Interrupt twice (Ctrl-C) to kill the job at once;\n\
         SIGQUIT (Ctrl-\\) asks what the ranks do, and for whom they wait.\n\
         `parnass info` tells what this installation can do.\n",
    );
    text
}

fn dashed(name: &str) -> String {
    if name.len() == 1 { format!("-{name}") } else { format!("--{name}") }
}

/// Reads a command line.
///
/// # Errors
/// One sentence or two that say what is wrong and what is allowed.
pub fn parse(arguments: Vec<OsString>) -> Result<Request, String> {
    let mut job = Job::default();
    let mut for_all = Environment::default();
    let mut rest = arguments.into_iter().peekable();
    loop {
        let mut part = Part::default();
        while let Some(word) = rest.next_if(|word| is_option(word)) {
            let mut words = Words { option: word.to_string_lossy().into_owned(), inline: None };
            let option = words.find()?;
            let mut values = Vec::new();
            for metavariable in option.values {
                values.push(words.value(metavariable, &mut rest)?);
            }
            if option.what == What::Stats {
                job.stats = Some(words.inline.take().map(PathBuf::from));
                if job
                    .stats
                    .as_ref()
                    .is_some_and(|file| file.as_ref().is_some_and(|file| file.as_os_str().is_empty()))
                {
                    return Err(format!(
                        "{}= names no file; it must be --stats or --stats=FILE",
                        words.option
                    ));
                }
            }
            words.no_more()?;
            match option.what {
                What::Help => return Ok(Request::Help),
                What::Version => return Ok(Request::Version),
                What::Agent => return Ok(Request::Agent),
                what => apply(what, &words.option, values, &mut job, &mut part, &mut for_all)?,
            }
        }
        match rest.next() {
            Some(word) if word != ":" => part.program = word,
            found => {
                let before = if found.is_some() { " before ':'" } else { "" };
                return Err(format!(
                    "no program is given{before}; try: mpiexec -n 4 ./program   (or mpiexec --help)"
                ));
            }
        }
        while let Some(word) = rest.next_if(|word| word != ":") {
            part.arguments.push(word);
        }
        job.parts.push(part);
        if rest.next().is_none() {
            break; // Else it was a colon, and another part follows.
        }
    }
    for part in &mut job.parts {
        part.environment = merged(&for_all, std::mem::take(&mut part.environment));
    }
    if job.parts.iter().map(|part| u64::from(part.ranks)).sum::<u64>() > u64::from(RANKS_MAXIMUM) {
        return Err(format!("a job has at most {RANKS_MAXIMUM} ranks"));
    }
    if job.timeout.is_none()
        && let Ok(seconds) = std::env::var("MPIEXEC_TIMEOUT")
    {
        job.timeout = Some(duration(&seconds).ok_or("MPIEXEC_TIMEOUT must be a number of seconds above 0")?);
    }
    Ok(Request::Run(Box::new(job)))
}

/// What a part asks for itself comes after, and so overrides, what is asked for all.
fn merged(for_all: &Environment, own: Environment) -> Environment {
    let mut set = for_all.set.clone();
    set.extend(own.set);
    Environment { only: own.only.or_else(|| for_all.only.clone()), set }
}

fn is_option(word: &OsStr) -> bool {
    word.len() > 1 && word.as_bytes()[0] == b'-'
}

/// One option as it was written.
struct Words {
    option: String,
    inline: Option<String>,
}

impl Words {
    fn find(&mut self) -> Result<&'static Opt, String> {
        if let Some((name, value)) = self.option.clone().split_once('=') {
            (self.option, self.inline) = (name.to_owned(), Some(value.to_owned()));
        }
        let name = self.option.trim_start_matches('-');
        if let Some(found) = OPTIONS.iter().find(|option| option.names.contains(&name)) {
            return Ok(found);
        }
        // -n4, as some type it.
        if let Some(number) = name.strip_prefix("np").or_else(|| name.strip_prefix('n'))
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            self.inline = Some(number.to_owned());
            return Ok(&OPTIONS[0]);
        }
        Err(unknown(&self.option, name))
    }

    fn value(
        &mut self,
        metavariable: &str,
        rest: &mut impl Iterator<Item = OsString>,
    ) -> Result<OsString, String> {
        if let Some(value) = self.inline.take() {
            return Ok(value.into());
        }
        rest.next().ok_or_else(|| format!("{} needs {metavariable}", self.option))
    }

    fn no_more(&self) -> Result<(), String> {
        match &self.inline {
            None => Ok(()),
            Some(value) => Err(format!("{} takes no value, but '{value}' is given", self.option)),
        }
    }
}

fn unknown(written: &str, name: &str) -> String {
    let names = || OPTIONS.iter().flat_map(|option| option.names.iter().copied());
    let nearest = names().filter(|known| known.len() > 1).min_by_key(|known| distance(known, name));
    let mut message = format!("there is no option {written}");
    if let Some(nearest) = nearest.filter(|nearest| distance(nearest, name) <= 1 + nearest.len() / 4) {
        let _ = write!(message, "; did you mean {}?", dashed(nearest));
    }
    let shown = OPTIONS.iter().filter(|option| !option.help.is_empty()).map(|option| dashed(option.names[0]));
    let _ = write!(message, "\n  options: {}", shown.collect::<Vec<_>>().join(" "));
    message
}

/// Number of bytes to insert, delete or replace between two words.
fn distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, byte) in left.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in right.bytes().enumerate() {
            let replaced = diagonal + usize::from(byte != other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

fn duration(text: &str) -> Option<Duration> {
    let seconds: f64 = text.trim_end_matches('s').parse().ok()?;
    (seconds > 0.0).then(|| Duration::try_from_secs_f64(seconds).ok())?
}

fn apply(
    what: What,
    option: &str,
    values: Vec<OsString>,
    job: &mut Job,
    part: &mut Part,
    for_all: &mut Environment,
) -> Result<(), String> {
    let mut values = values.into_iter();
    let mut value = || values.next().unwrap_or_default();
    match what {
        What::Ranks => {
            let text = value();
            part.ranks = text
                .to_str()
                .and_then(|text| text.parse().ok())
                .filter(|ranks| (1..=RANKS_MAXIMUM).contains(ranks))
                .ok_or_else(|| {
                    format!("{option} is {text:?}; it must be a number of ranks, 1 to {RANKS_MAXIMUM}")
                })?;
        }
        What::Set => part.environment.set.push((variable(option, value())?, value())),
        What::SetAll => for_all.set.push((variable(option, value())?, value())),
        What::Export => {
            let text = value().into_vec();
            let (name, set) = match text.iter().position(|&byte| byte == b'=') {
                Some(at) => (text[..at].to_vec(), Some(OsString::from_vec(text[at + 1..].to_vec()))),
                None => (text, None),
            };
            let name = variable(option, OsString::from_vec(name))?;
            if let Some(set) = set.or_else(|| std::env::var_os(&name)) {
                part.environment.set.push((name, set));
            }
        }
        What::Only => part.environment.only = Some(names(&value())),
        What::OnlyAll => for_all.only = Some(names(&value())),
        What::Nothing => part.environment.only = Some(Vec::new()),
        What::NothingAll => for_all.only = Some(Vec::new()),
        What::Directory => part.directory = Some(value().into()),
        What::Label => job.label = true,
        What::Timeout => {
            let text = value();
            job.timeout =
                Some(text.to_str().and_then(duration).ok_or_else(|| {
                    format!("{option} is {text:?}; it must be a number of seconds above 0")
                })?);
        }
        What::Output => job.output = Some(value().into()),
        What::Bind => {
            let text = value();
            job.bind = match text.to_str() {
                Some("share" | "auto") => Bind::Share,
                Some("none" | "no") => Bind::None,
                Some("core" | "cores") => Bind::Core,
                Some("thread" | "hwthread" | "cpu" | "pu") => Bind::Thread,
                _ => return Err(format!("{option} is {text:?}; allowed are share, none, core and thread")),
            };
        }
        What::Tunable => {
            let text = value();
            let pair = text.to_str().and_then(|text| text.split_once('='));
            let (name, value) = pair.ok_or_else(|| format!("{option} is {text:?}; it must be NAME=VALUE"))?;
            job.tunables.push((name.to_owned(), value.to_owned()));
        }
        What::Encrypt => job.tunables.push(("encrypt".to_owned(), "on".to_owned())),
        What::MpichAbi => {
            environment::mpich_library().map_err(|error| format!("{option}: {error}"))?;
            for_all.set.push((environment::MPICH_ABI_VARIABLE.into(), "on".into()));
        }
        What::Stats => {} // Taken above, with the file.
        What::Survive => job.survives = true,
        What::FaultTolerance => {
            let text = value();
            job.survives = match text.to_str() {
                Some("ulfm" | "mpi" | "mpift" | "yes" | "true" | "1") => true,
                Some("none" | "no" | "false" | "0") => false,
                _ => return Err(format!("{option} is {text:?}; allowed are ulfm and none")),
            };
        }
        What::Hosts => {
            let text = value();
            let hosts = hosts::parse_list(&text.to_string_lossy());
            add_hosts(job, hosts.map_err(|error| format!("{option}: {error}"))?);
        }
        What::HostFile => {
            let hosts = hosts::read_file(Path::new(&value()));
            add_hosts(job, hosts.map_err(|error| format!("{option}: {error}"))?);
        }
        What::MapBy => {
            let text = value();
            let text = text.to_string_lossy();
            match text.strip_prefix("ppr:").map(|rest| rest.trim_end_matches(":node")) {
                Some(ranks) => job.map.per_host = Some(per_host(option, ranks)?),
                None => job.map.by = order(option, &text)?,
            }
        }
        What::RankBy => job.map.rank_by = Some(order(option, &value().to_string_lossy())?),
        What::PerHost => job.map.per_host = Some(per_host(option, &value().to_string_lossy())?),
        What::Starter => job.starter = Some(value().to_string_lossy().into_owned()),
        What::Prefix => job.prefix = Some(value().into()),
        What::FanOut => {
            let text = value();
            let number = text.to_str().and_then(|text| text.parse().ok());
            job.fan_out = Some(number.ok_or_else(|| format!("{option} is {text:?}; it must be a number"))?);
        }
        What::Interface => for_all.set.push((INTERFACE_VARIABLE.into(), value())),
        What::All | What::Ignored | What::Help | What::Version | What::Agent => {}
    }
    Ok(())
}

fn variable(option: &str, name: OsString) -> Result<OsString, String> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.contains(&b'=') || bytes.contains(&0) {
        return Err(format!("{option}: {name:?} is not the name of a variable"));
    }
    Ok(name)
}

fn names(list: &OsStr) -> Vec<OsString> {
    let pieces = list.as_bytes().split(|&byte| byte == b',');
    pieces.filter(|name| !name.is_empty()).map(|name| OsStr::from_bytes(name).to_owned()).collect()
}

/// Hosts may be named by several options.
fn add_hosts(job: &mut Job, hosts: Vec<Host>) {
    for host in hosts {
        match job.hosts.iter_mut().find(|known| known.name == host.name) {
            Some(known) => known.slots = Some(known.slots.unwrap_or(1) + host.slots.unwrap_or(1)),
            None => job.hosts.push(host),
        }
    }
}

fn order(option: &str, text: &str) -> Result<Order, String> {
    match text {
        "slot" | "core" | "hwthread" | "socket" | "package" | "numa" => Ok(Order::Slot),
        "node" | "host" => Ok(Order::Node),
        _ => Err(format!("{option} is '{text}'; allowed are slot and node, and ppr:N:node for --map-by")),
    }
}

fn per_host(option: &str, text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|ranks| (1..=RANKS_MAXIMUM).contains(ranks));
    number.ok_or_else(|| format!("{option} is '{text}'; it must be a number of ranks, 1 to {RANKS_MAXIMUM}"))
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
