//! Two hosts on this machine, for `--over veth`: namespaces of network, names, System V memory and mounts, joined by a pair of virtual Ethernet
//! interfaces. Each has one core, one address, and a `/dev/shm` of its own.
//!
//! The namespaces have no names. The first host is where this program itself lives from then on, the second is held by open files of this program; when
//! it ends, however it ends, and the jobs with it, the system takes them away with all that is in them. Launchers reach the hosts by what they know as
//! `ssh`: a script that enters the namespaces.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};
use parnass_base::process::allowed_processors;
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount,
};
use rustix::process::{getegid, geteuid, getpid};
use rustix::system::sethostname;
use rustix::thread::UnshareFlags;

use super::libraries::step;
use super::process::{Interrupted, Runner};
use super::results::Line;

/// The name of each host's interface.
const INTERFACE: &str = "veth0";
/// The hosts' names and addresses.
const HOSTS: [(&str, &str); 2] = [("veth-a", "10.213.7.1"), ("veth-b", "10.213.7.2")];
/// What tells one start of a machine from another.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// How long a command that makes them may take.
const SHORT: Duration = Duration::from_secs(20);
/// What is missing where the system refuses.
const PERMISSION: &str = "the hosts of --over veth are namespaces, which the system does not let this user make. Run it as root (in a container: with the \
                          capability SYS_ADMIN, as docker's --privileged gives it), or permit user namespaces (by the sysctls \
                          user.max_user_namespaces, kernel.unprivileged_userns_clone=1 or kernel.apparmor_restrict_unprivileged_userns=0)";

/// The two hosts. There is one such pair in a process, and no thread but the main one when it is made.
#[derive(Debug)]
pub struct Hosts {
    /// Where `ssh`, `/etc/hosts` and the numbers of their starts lie.
    folder: PathBuf,
    /// The core of each host.
    cores: [usize; 2],
    /// The namespaces of both; the second host's are held by nothing else.
    namespaces: [Vec<File>; 2],
    /// All that has gone over the interface in jobs.
    carried: u64,
}

impl Hosts {
    /// Makes both, and moves this process into the first. The script lies in `folder`, which goes with the value.
    ///
    /// # Errors
    /// A program is missing, there is one core only, the system refuses, or [`Interrupted`].
    pub fn new(runner: &Runner, folder: &Path) -> anyhow::Result<Hosts> {
        for program in ["ip", "nsenter", "taskset"] {
            let folders = std::env::var_os("PATH").unwrap_or_default();
            if !std::env::split_paths(&folders).any(|folder| folder.join(program).exists()) {
                bail!("--over veth needs the program `{program}` (Debian: apt install iproute2 util-linux)");
            }
        }
        let cores: Vec<usize> = allowed_processors().into_iter().take(2).collect();
        let [first, second] = cores[..] else { bail!("--over veth needs two cores, one for each host") };
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let mut hosts = Hosts {
            folder: folder.to_owned(),
            cores: [first, second],
            namespaces: [Vec::new(), Vec::new()],
            carried: 0,
        };
        hosts
            .make(runner)
            .map_err(|error| if error.is::<Interrupted>() { error } else { error.context(PERMISSION) })?;
        Ok(hosts)
    }

    fn make(&mut self, runner: &Runner) -> anyhow::Result<()> {
        let names = self.folder.join("hosts");
        let lines: String = HOSTS.iter().map(|(name, address)| format!("{address} {name}\n")).collect();
        std::fs::write(&names, format!("127.0.0.1 localhost\n{lines}"))?;
        become_able(&names)?;
        // The second one first, so that this process ends up in the first.
        enter_new(HOSTS[1].0, &self.folder)?;
        let second = namespaces()?;
        enter_new(HOSTS[0].0, &self.folder)?;
        self.namespaces = [namespaces()?, second];
        let script = self.folder.join("ssh");
        std::fs::write(&script, starter(self.namespaces.each_ref().map(|host| entrance(host)), self.cores))?;
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755))?;
        let ip = |words: &str| step(runner, Command::new("ip").args(words.split(' ')), SHORT);
        ip(&format!("link add name {INTERFACE} type veth peer name {INTERFACE} netns {}", self.network()))?;
        for (name, address) in HOSTS {
            for words in [
                "link set lo up".to_owned(),
                format!("address add {address}/24 dev {INTERFACE}"),
                format!("link set {INTERFACE} up"),
            ] {
                step(runner, Command::new(&script).arg(name).arg(format!("ip {words}")), SHORT)?;
            }
        }
        Ok(())
    }

    /// Where the launchers find what they start their agents with.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The core of the host that launchers run on.
    pub fn core(&self) -> usize {
        self.cores[0]
    }

    /// The second host's network as a file.
    fn network(&self) -> String {
        path_of(&self.namespaces[1][0])
    }

    /// The second host's network as a file, and its address.
    pub fn other(&self) -> [String; 2] {
        [self.network(), HOSTS[1].1.to_owned()]
    }

    /// The bytes that the first host's interface has sent and received.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn bytes(&self) -> anyhow::Result<u64> {
        let table = std::fs::read_to_string("/proc/thread-self/net/dev")?;
        counted(&table).with_context(|| format!("nothing is known of the interface {INTERFACE}"))
    }

    /// Files what a job has sent, and refuses it when its values say that it was more than the interface carried.
    ///
    /// # Errors
    /// It took another way.
    pub fn file(&mut self, carried: u64, least: u64) -> anyhow::Result<()> {
        if carried < least {
            bail!(
                "{carried} bytes went over {INTERFACE}, and at least {least} by the values it printed: they took another way"
            );
        }
        self.carried += carried;
        Ok(())
    }

    /// All that has gone between the hosts.
    pub fn carried(&self) -> u64 {
        self.carried
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The least number of bytes that a job must have sent for what it printed: a value of some bytes is of one message at least, a bandwidth or a rate of a
/// quarter of the time that was given to it.
pub fn least_bytes(lines: &[Line<'_>], milliseconds: u32) -> u64 {
    let of = |line: &Line<'_>| match *line {
        Line::Note { .. } | Line::Result { unit: "MiB", .. } => 0.0,
        Line::Result { bytes, value, unit, .. } => {
            let a_second = match unit {
                "GB/s" => value * 1e9,
                "M/s" => value * 1e6 * bytes as f64,
                _ => 0.0,
            };
            (a_second * f64::from(milliseconds) / 1e3 / 4.0).max(0.0)
        }
    };
    let once = |line: &Line<'_>| match *line {
        Line::Result { bytes, unit: "us" | "ns" | "GB/s" | "M/s" | "share", .. } => bytes,
        _ => 0,
    };
    lines.iter().map(|line| (of(line) as u64).max(once(line))).sum()
}

/// Gives this process mounts of its own, and makes it able to make the rest: where it is not, in a user namespace in which it is root.
fn become_able(names: &Path) -> anyhow::Result<()> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    match unshare(UnshareFlags::NEWNS) {
        Err(Errno::PERM) => {
            unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS).context("a user namespace")?;
            std::fs::write("/proc/self/setgroups", "deny").context("a user namespace's groups")?;
            std::fs::write("/proc/self/uid_map", format!("0 {user} 1"))
                .context("a user namespace's users")?;
            std::fs::write("/proc/self/gid_map", format!("0 {group} 1"))
                .context("a user namespace's groups")?;
        }
        result => result.context("mounts of its own")?,
    }
    // What is mounted from here on is seen nowhere else.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .context("mounts of its own")?;
    mount_bind(names, "/etc/hosts").context("/etc/hosts of its own")
}

/// Moves this process into a new host.
fn enter_new(name: &str, folder: &Path) -> anyhow::Result<()> {
    let boot = folder.join(format!("boot-of-{name}"));
    let last = name.bytes().last().unwrap_or(0);
    std::fs::write(&boot, format!("{last:08x}-0000-4000-8000-{:012x}\n", getpid().as_raw_nonzero()))?;
    let all = UnshareFlags::NEWNS | UnshareFlags::NEWNET | UnshareFlags::NEWUTS | UnshareFlags::NEWIPC;
    unshare(all).context("namespaces")?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", "/dev/shm", "tmpfs", flags, None).context("/dev/shm of its own")?;
    // Two machines were not started together; for Parnass two hosts of one start are one machine, whose cores their ranks share.
    let _ = unmount(BOOT, UnmountFlags::DETACH);
    mount_bind(&boot, BOOT).context("a boot of its own")?;
    // What the machine has may be for long ways: BBR sends by the clock, and moves a third of what Reno does here.
    let _ = std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "reno");
    // Some libraries look for interfaces there, and find this host's. A container may refuse it.
    let _ = mount("sysfs", "/sys", "sysfs", flags | MountFlags::RDONLY | MountFlags::NOEXEC, None);
    sethostname(name.as_bytes()).context("a name of its own")
}

#[allow(deprecated)] // The successor is unsafe for the sake of a flag that is not used here.
fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    rustix::thread::unshare(flags)
}

/// The namespaces that this process is in: network, names, System V memory, mounts.
fn namespaces() -> std::io::Result<Vec<File>> {
    KINDS.iter().map(|(kind, _)| File::open(format!("/proc/thread-self/ns/{kind}"))).collect()
}

/// The kinds of namespaces, as /proc calls them and nsenter.
const KINDS: [(&str, &str); 4] = [("net", "net"), ("uts", "uts"), ("ipc", "ipc"), ("mnt", "mount")];

/// The file as other processes can open it.
fn path_of(file: &File) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/{}/fd/{}", getpid().as_raw_nonzero(), file.as_raw_fd())
}

/// The options of nsenter for a host.
fn entrance(namespaces: &[File]) -> String {
    let options: Vec<String> =
        KINDS.iter().zip(namespaces).map(|((_, kind), file)| format!("--{kind}={}", path_of(file))).collect();
    options.join(" ")
}

/// What the launchers know as `ssh`.
fn starter(entrances: [String; 2], cores: [usize; 2]) -> String {
    let mut text = String::from(
        "#!/bin/sh\n# In the place of ssh for `parnass bench --over veth`: runs a command on one of its two hosts.\n\
         while :; do\n    case $1 in\n    -[BbcDEeFIiJLlmOopQRSWw]) shift 2 ;;\n    -*) shift ;;\n    *) break ;;\n    esac\ndone\n\
         host=$1\nshift\ncase $host in\n",
    );
    for (((name, address), entrance), core) in HOSTS.iter().zip(entrances).zip(cores) {
        text += &format!(
            "{name} | *@{name} | {address}) exec taskset -c {core} nsenter {entrance} -- sh -c \"$*\" ;;\n"
        );
    }
    text + "*) echo \"there is no host $host\" >&2; exit 255 ;;\nesac\n"
}

/// Received and sent, of a table as in /proc/net/dev.
fn counted(table: &str) -> Option<u64> {
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix(INTERFACE)?.strip_prefix(':'))?;
    let fields: Vec<u64> = line.split_whitespace().map_while(|field| field.parse().ok()).collect();
    Some(fields.first()? + fields.get(8)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_both_ways() {
        let table = "Inter-|   Receive  |  Transmit\n face |bytes packets\n    lo:  7 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n veth0: 100 2 0 0 0 0 0 0 23 2 0 0 0 0 0 0\n";
        assert_eq!(counted(table), Some(123));
        assert_eq!(counted("lo: 1 2\n"), None);
    }

    #[test]
    fn values_say_what_must_have_been_sent() {
        let line = |bytes, value, unit| Line::Result { name: "x", bytes, value, unit };
        // 50 ms of 2 GB/s, and a message that takes longer than them.
        assert_eq!(least_bytes(&[line(65536, 2.0, "GB/s")], 50), 25_000_000);
        assert_eq!(least_bytes(&[line(64 << 20, 1.0, "GB/s")], 50), 64 << 20);
        assert_eq!(least_bytes(&[line(8, 4.0, "M/s"), line(1024, 3.0, "us")], 50), 400_000 + 1024);
        assert_eq!(least_bytes(&[line(8, 3.0, "MiB"), line(1000, 0.5, "share")], 50), 1000);
        assert_eq!(least_bytes(&[line(8, 1.1, ""), Line::Note { name: "x", text: "y" }], 50), 0);
    }

    #[test]
    fn the_starter_knows_both_hosts_and_no_other() {
        let script = starter(["--net=/a".to_owned(), "--net=/b".to_owned()], [0, 1]);
        assert!(
            script.contains(
                "veth-b | *@veth-b | 10.213.7.2) exec taskset -c 1 nsenter --net=/b -- sh -c \"$*\""
            )
        );
        let asked = Command::new("sh")
            .args(["-c", &script, "ssh", "-x", "-o", "BatchMode=yes", "elsewhere", "true"])
            .output();
        let answer = asked.unwrap();
        assert_eq!(answer.status.code(), Some(255));
        assert!(String::from_utf8_lossy(&answer.stderr).contains("no host elsewhere"));
    }
}
