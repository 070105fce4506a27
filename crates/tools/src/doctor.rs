//! `parnass doctor`: whether this machine and others have what jobs need, and what to change where they have not.
//!
//! On each host that is named it runs itself by ssh (the *visit*), which looks at that machine, tries to reach a port
//! here, and opens one there, which is then tried from here.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mpi_abi::assemble::network::report;
use parnass_tunables::files;
use rustix::process::{Resource, getrlimit};

use crate::prefix::Prefix;
use crate::probe;

/// The hidden command that runs on a host.
pub const VISIT: &str = "visit";
/// A port that has not answered after this time is taken to be closed.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);
/// Clocks that differ by more are worth a word: times in logs and of files then mislead.
const CLOCK_SECONDS: u64 = 2;
/// Descriptors that a rank needs on a machine with many of them.
const OPEN_FILES: u64 = 1024;

/// What a check has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Good,
    /// It works, but not as well as it could.
    Worse,
    Bad,
}

impl Level {
    const ALL: [(Level, &'static str); 3] =
        [(Level::Good, "ok"), (Level::Worse, "note"), (Level::Bad, "BAD")];

    fn word(self) -> &'static str {
        Level::ALL.iter().find(|(level, _)| *level == self).map_or("", |(_, word)| word)
    }
}

/// One line of the report: what was looked at, what was found, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    level: Level,
    what: String,
    found: String,
    advice: String,
}

fn finding(level: Level, what: &str, found: impl Into<String>, advice: &str) -> Finding {
    let advice = if level == Level::Good { String::new() } else { advice.to_owned() };
    Finding { level, what: what.to_owned(), found: found.into(), advice }
}

impl Finding {
    /// As a visit tells it: fields between tabs.
    fn line(&self) -> String {
        let clean = |text: &str| text.replace(['\t', '\n'], " ");
        format!(
            "{}\t{}\t{}\t{}",
            self.level.word(),
            clean(&self.what),
            clean(&self.found),
            clean(&self.advice)
        )
    }

    /// Reads what [`Finding::line`] wrote.
    fn read(line: &str) -> Option<Finding> {
        let mut fields = line.split('\t');
        let word = fields.next()?;
        let level = Level::ALL.iter().find(|(_, known)| *known == word)?.0;
        let (what, found, advice) =
            (fields.next()?.to_owned(), fields.next()?.to_owned(), fields.next()?.to_owned());
        fields.next().is_none().then_some(Finding { level, what, found, advice })
    }
}

/// Runs `parnass doctor`: 0 when nothing is bad.
pub fn run(lists: &[String], prefix: Option<&Path>) -> ExitCode {
    let mut hosts = Vec::new();
    for list in lists {
        match parnass_launcher::host_names(list) {
            Ok(names) => hosts.extend(names),
            Err(message) => {
                eprintln!("parnass doctor: {message}");
                return ExitCode::from(2);
            }
        }
    }
    let own_prefix = Prefix::of_this_program().ok();
    let mut bad = show("this machine", &machine());
    let at = prefix.or(own_prefix.as_ref().map(Prefix::directory)).unwrap_or(Path::new("/usr"));
    for host in &hosts {
        bad += show(host, &remote(host, at));
    }
    if hosts.is_empty() {
        println!("\nTo check other hosts too: parnass doctor HOST...");
    }
    if bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints findings; gives how many are bad.
fn show(title: &str, findings: &[Finding]) -> usize {
    let mut text = format!("\n{title}\n");
    for Finding { level, what, found, advice } in findings {
        let _ = writeln!(text, "  {:<5} {what:<16} {found}", level.word());
        if !advice.is_empty() {
            let _ = writeln!(text, "  {:<5} {:<16} -> {advice}", "", "");
        }
    }
    let _ = io::stdout().write_all(text.as_bytes()); // A reader that has gone needs no report.
    findings.iter().filter(|finding| finding.level == Level::Bad).count()
}

// ---- one machine ----

fn machine() -> Vec<Finding> {
    let mut findings =
        vec![installation(), abis(), name(), shared_memory(), direct_copy(), open_files(), address_space()];
    findings.extend(interfaces());
    findings.extend(network());
    findings.push(launchers());
    findings
}

fn installation() -> Finding {
    let release = format!("Parnass {}", env!("CARGO_PKG_VERSION"));
    match Prefix::of_this_program() {
        Ok(prefix) if prefix.library_file().exists() => {
            finding(Level::Good, "installation", format!("{release} in {}", prefix.directory().display()), "")
        }
        Ok(prefix) => finding(
            Level::Bad,
            "installation",
            format!("{release}, but {} is not there", prefix.library_file().display()),
            "install all of it: cargo xtask dist --prefix DIR",
        ),
        Err(error) => finding(Level::Bad, "installation", error.to_string(), "mount /proc"),
    }
}

/// Which programs the installed libraries serve.
fn abis() -> Finding {
    const STANDARD: &str = "the standard ABI (libmpi_abi.so.1)";
    match Prefix::of_this_program() {
        Ok(prefix) if !prefix.mpich_library_file().exists() => finding(
            Level::Worse,
            "programs",
            format!("those of {STANDARD}; those of MPICH's ABI need libmpi.so.12, which is not installed"),
            "to run them, install all of it: cargo xtask dist --prefix DIR",
        ),
        _ => {
            finding(Level::Good, "programs", format!("those of {STANDARD} and of MPICH's (libmpi.so.12)"), "")
        }
    }
}

fn name() -> Finding {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let advice = "add the name to /etc/hosts or to the name server, with the address that other hosts reach";
    match (name.as_str(), 0).to_socket_addrs() {
        Err(error) => finding(Level::Worse, "name", format!("{name} cannot be resolved: {error}"), advice),
        Ok(addresses) => {
            let mut addresses: Vec<IpAddr> = addresses.map(|address| address.ip()).collect();
            addresses.dedup();
            let shown: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
            finding(Level::Good, "name", format!("{name} is {}", shown.join(", ")), "")
        }
    }
}

fn shared_memory() -> Finding {
    let tried = parnass_base::Region::create_file(c"parnass-doctor", 1 << 20)
        .and_then(parnass_base::Region::map_file)
        .and_then(|region| region.window(0, region.len()).reserve(0, region.len()));
    match tried {
        Ok(()) => finding(Level::Good, "shared memory", "anonymous memory files can be made and filled", ""),
        Err(error) => finding(
            Level::Bad,
            "shared memory",
            format!("an anonymous memory file of 1 MiB cannot be had: {error}"),
            "allow memfd_create(2), and more memory in the control group",
        ),
    }
}

fn direct_copy() -> Finding {
    match probe::direct_copy() {
        Ok(()) => finding(Level::Good, "direct copy", "process_vm_readv is allowed", ""),
        Err(reason) => finding(
            Level::Worse,
            "direct copy",
            format!("{reason}: long messages go through shared memory in pieces"),
            "in a container: --cap-add=SYS_PTRACE, or a seccomp profile that allows process_vm_readv",
        ),
    }
}

fn open_files() -> Finding {
    let limit = getrlimit(Resource::Nofile).maximum;
    match limit {
        Some(files) if files < OPEN_FILES => finding(
            Level::Worse,
            "open files",
            format!("at most {files}: mpiexec needs three for each rank"),
            "raise the hard limit (ulimit -Hn, /etc/security/limits.conf)",
        ),
        Some(files) => finding(Level::Good, "open files", format!("at most {files}"), ""),
        None => finding(Level::Good, "open files", "no limit", ""),
    }
}

fn address_space() -> Finding {
    match getrlimit(Resource::As).current {
        None => finding(Level::Good, "address space", "no limit", ""),
        Some(bytes) => finding(
            Level::Worse,
            "address space",
            format!("at most {} MiB; each rank maps some 200 MiB for each rank of its node", bytes >> 20),
            "ulimit -v unlimited",
        ),
    }
}

/// The network interfaces that are up. Those of containers and virtual machines usually lead to no other host.
fn interfaces() -> Vec<Finding> {
    let mut findings = Vec::new();
    let read = |name: &str, file: &str| {
        std::fs::read_to_string(format!("/sys/class/net/{name}/{file}")).unwrap_or_default().trim().to_owned()
    };
    let mut names: Vec<String> = std::fs::read_dir("/sys/class/net")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name != "lo")
        .collect();
    names.sort();
    for name in names {
        let (state, mtu, speed) = (read(&name, "operstate"), read(&name, "mtu"), read(&name, "speed"));
        let inner = ["docker", "br-", "virbr", "veth", "cni", "flannel", "tun", "tap", "wg"];
        let inner = inner.iter().any(|start| name.starts_with(start));
        let speed = speed.parse::<u32>().map_or_else(|_| String::new(), |speed| format!(", {speed} Mbit/s"));
        let kind = if inner { ", of containers, machines or a tunnel inside" } else { "" };
        findings.push(finding(
            Level::Good,
            "interface",
            format!("{name}: {state}, MTU {mtu}{speed}{kind}"),
            "",
        ));
    }
    if findings.is_empty() {
        let advice = "jobs over several hosts need one";
        findings.push(finding(Level::Worse, "interface", "none but the loopback", advice));
    }
    findings
}

/// What carries messages between hosts, and what libfabric has.
fn network() -> Vec<Finding> {
    let decided = files::decide([], &files::environment());
    let report = match decided {
        Ok(decision) => report(&decision.settings),
        Err(error) => {
            return vec![finding(Level::Bad, "tunables", error, "correct the file or the variable")];
        }
    };
    let taken = match report.taken {
        Ok(taken) => finding(Level::Good, "between hosts", taken, ""),
        Err(error) => finding(
            Level::Bad,
            "between hosts",
            error,
            "change the tunables network and provider, or PARNASS_INTERFACE",
        ),
    };
    let found = match report.libfabric {
        Ok(found) => found,
        Err(reason) => format!("none: {reason}"),
    };
    vec![taken, finding(Level::Good, "libfabric", found, "")]
}

/// Which launchers could start programs here.
fn launchers() -> Finding {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = |name: &str| std::env::split_paths(&path).any(|place| place.join(name).is_file());
    let mut known = vec!["mpiexec of Parnass"];
    known.extend(found("srun").then_some("srun --mpi=pmi2 (Slurm)"));
    known.extend(found("mpiexec.hydra").then_some("mpiexec.hydra (MPICH)"));
    if !found("ssh") {
        let advice = "install an ssh client to start jobs on other hosts";
        return finding(Level::Worse, "launchers", format!("{}; no ssh", known.join(", ")), advice);
    }
    finding(Level::Good, "launchers", known.join(", "), "")
}

// ---- another machine ----

/// The command that visits a host.
fn ssh(host: &str, program: &Path, port: u16) -> Command {
    let mut command = Command::new("ssh");
    command.args(["-T", "-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", host]);
    let program = program.display().to_string().replace('\'', r"'\''");
    command.arg(format!("exec '{program}' {VISIT} {port}"));
    command
}

fn remote(host: &str, prefix: &Path) -> Vec<Finding> {
    let listener =
        match TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).or_else(|_| TcpListener::bind(("0.0.0.0", 0))) {
            Ok(listener) => listener,
            Err(error) => {
                return vec![finding(Level::Bad, "ports", error.to_string(), "allow listening on TCP ports")];
            }
        };
    let port = listener.local_addr().map_or(0, |address| address.port());
    let mut command = ssh(host, &prefix.join("bin/parnass"), port);
    let begun = SystemTime::now();
    match command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() {
        Ok(child) => visited(host, prefix, child, begun),
        Err(error) => vec![finding(Level::Bad, "ssh", error.to_string(), "install an ssh client")],
    }
}

fn visited(host: &str, prefix: &Path, mut child: Child, begun: SystemTime) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut finished = false;
    let mut release = None;
    for line in child
        .stdout
        .take()
        .into_iter()
        .flat_map(|output| BufReader::new(output).lines())
        .map_while(Result::ok)
    {
        if let Some(found) = Finding::read(&line) {
            findings.push(found);
        } else if let Some(text) = line.strip_prefix("release ") {
            release = Some(text.to_owned());
        } else if let Some(time) = line.strip_prefix("time ") {
            findings.extend(time.parse().ok().map(|there| clock(there, begun)));
        } else if let Some(text) = line.strip_prefix("listen ") {
            findings.push(reach("port there", text));
        } else if line == "end" {
            finished = true;
            break;
        }
    }
    drop(child.stdin.take()); // It waits for this.
    let mut said = String::new();
    if let Some(mut errors) = child.stderr.take() {
        let _ = errors.read_to_string(&mut said);
    }
    let code = child.wait().ok().and_then(|status| status.code());
    if finished {
        findings.insert(0, finding(Level::Good, "ssh", "works without a password", ""));
        let own = env!("CARGO_PKG_VERSION");
        if let Some(other) = release.filter(|other| other != own) {
            let found = format!("{other} there, {own} here");
            findings.push(finding(Level::Bad, "release", found, "install the same release on all hosts"));
        }
    } else {
        findings.insert(0, refused(host, prefix, code, said.trim()));
    }
    findings
}

/// Why a visit did not come about, from what ssh said.
fn refused(host: &str, prefix: &Path, code: Option<i32>, said: &str) -> Finding {
    let has = |text: &str| said.contains(text);
    let advice = if matches!(code, Some(126 | 127)) {
        format!("install Parnass there in {}, or name its place with --prefix", prefix.display())
    } else if has("Permission denied") {
        format!("let this user in by key: ssh-copy-id {host}")
    } else if has("Host key verification failed") {
        format!("make the host known: ssh {host} once by hand, or ssh-keyscan {host} >> ~/.ssh/known_hosts")
    } else if has("Could not resolve") {
        "give an address, or add the name to /etc/hosts or ~/.ssh/config".to_owned()
    } else if has("Connection refused") {
        "start sshd there (Debian: apt install openssh-server)".to_owned()
    } else if has("No route") || has("timed out") || has("unreachable") {
        "check that the host is up, and the firewall between".to_owned()
    } else {
        format!("try by hand: ssh -o BatchMode=yes {host} true")
    };
    let said = if said.is_empty() { "it said nothing" } else { said };
    let code = code.map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
    finding(Level::Bad, "ssh", format!("{said} ({code})"), &advice)
}

fn clock(there: u64, begun: SystemTime) -> Finding {
    let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let (before, after) = (seconds(begun), seconds(SystemTime::now()));
    let off = before.saturating_sub(there).max(there.saturating_sub(after));
    let advice = "let both follow a time server (chrony, systemd-timesyncd)";
    match off {
        0..=CLOCK_SECONDS => finding(Level::Good, "clock", "as here", ""),
        _ => finding(Level::Worse, "clock", format!("{off} s off"), advice),
    }
}

/// Tries an address.
fn reach(what: &str, address: &str) -> Finding {
    let advice = "open TCP ports above 1023 between the hosts in the firewall: ranks connect to each other";
    let tried = address
        .parse::<SocketAddr>()
        .map_err(io::Error::other)
        .and_then(|address| TcpStream::connect_timeout(&address, CONNECT_LIMIT));
    match tried {
        Ok(_) => finding(Level::Good, what, format!("{address} can be reached"), ""),
        Err(error) => finding(Level::Bad, what, format!("{address} cannot be reached: {error}"), advice),
    }
}

/// What runs on a host that is visited, by ssh from a machine that listens on `port`.
pub fn visit(port: u16) -> ExitCode {
    let mut lines = vec![format!("release {}", env!("CARGO_PKG_VERSION"))];
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    lines.push(format!("time {now}"));
    lines.extend(machine().iter().map(Finding::line));
    // The addresses that the two machines have for each other: client, its port, server, its port.
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let fields: Vec<IpAddr> = connection.split(' ').filter_map(|field| field.parse().ok()).collect();
    let mut listener = None;
    if let [client, server] = fields[..] {
        lines.push(reach("port here", &SocketAddr::new(client, port).to_string()).line());
        if let Ok(opened) = TcpListener::bind((server, 0)) {
            lines.extend(opened.local_addr().map(|address| format!("listen {address}")));
            listener = Some(opened);
        }
    }
    lines.push("end".to_owned());
    for line in lines {
        if writeln!(io::stdout(), "{line}").is_err() {
            return ExitCode::FAILURE;
        }
    }
    let _ = io::stdin().read(&mut [0]); // Until the other side has tried the port, or is gone.
    drop(listener);
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_survive_their_lines() {
        let found = finding(Level::Worse, "clock", "7 s\toff", "do\nsomething");
        let read = Finding::read(&found.line()).unwrap();
        assert_eq!(
            (read.level, read.found.as_str(), read.advice.as_str()),
            (Level::Worse, "7 s off", "do something")
        );
        for line in ["", "ok", "ok\ta\tb", "fine\ta\tb\tc", "ok\ta\tb\tc\td"] {
            assert_eq!(Finding::read(line), None, "{line}");
        }
    }

    #[test]
    fn what_ssh_says_becomes_advice() {
        let advice = |code, said| refused("b", Path::new("/opt/p"), Some(code), said).advice;
        assert!(advice(255, "me@b: Permission denied (publickey).").contains("ssh-copy-id b"));
        assert!(advice(255, "ssh: connect to host b port 22: Connection refused").contains("sshd"));
        assert!(advice(127, "sh: not found").contains("/opt/p"));
        assert!(advice(255, "").contains("by hand"));
    }

    #[test]
    fn ports_are_tried() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        assert_eq!(reach("port", &address).level, Level::Good);
        // A port that is taken, so that nobody else comes to listen there, and refuses.
        let taken = TcpStream::connect(&address).unwrap();
        let refusing = taken.local_addr().unwrap().to_string();
        assert_eq!(reach("port", &refusing).level, Level::Bad);
        assert_eq!(reach("port", "nonsense").level, Level::Bad);
    }

    #[test]
    fn clocks_are_compared_with_the_time_that_passed() {
        let now = SystemTime::now();
        let seconds = now.duration_since(UNIX_EPOCH).unwrap().as_secs();
        assert_eq!(clock(seconds, now).level, Level::Good);
        assert_eq!(clock(seconds + 60, now).level, Level::Worse);
        assert_eq!(clock(seconds - 60, now).level, Level::Worse);
    }
}
