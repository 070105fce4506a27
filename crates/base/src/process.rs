//! The few things about processes and signals that the standard library and safe system-call crates do not
//! offer, each as a small safe function. Used by the launcher and by the link of a rank to its launcher.

use crate::clock;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Which side of a [`fork_alone`] this is.
#[derive(Debug, PartialEq, Eq)]
pub enum Fork {
    /// The process that forked, with the process id of its new child.
    Parent(i32),
    /// The new process.
    Child,
}

/// Forks a process that has a single thread.
///
/// # Errors
/// `ErrorKind::Unsupported` when other threads run: the child of a threaded process may only make
/// async-signal-safe calls, which a safe function cannot promise. Else what fork(2) says.
pub fn fork_alone() -> io::Result<Fork> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "fork of a process with several threads"));
    }
    // SAFETY: this is the only thread, so that the child's copy of every lock and of the allocator is in a
    // consistent state.
    match check(unsafe { libc::fork() })? {
        0 => Ok(Fork::Child),
        child => Ok(Fork::Parent(child)),
    }
}

/// Whether a process with this number exists.
pub fn lives(process: u32) -> bool {
    // SAFETY: signal 0 only asks.
    let result = unsafe { libc::kill(process as libc::pid_t, 0) };
    result == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// How many processors the machine has, allowed or not.
pub fn processors() -> usize {
    // SAFETY: only asks.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(1)
}

/// Bytes of the largest cache that a core has for itself (the second level), or a usual value where that is not known.
pub fn own_cache() -> usize {
    #[cfg(target_env = "gnu")]
    // SAFETY: only asks.
    let known = unsafe { libc::sysconf(libc::_SC_LEVEL2_CACHE_SIZE) };
    #[cfg(not(target_env = "gnu"))]
    let known = 0;
    usize::try_from(known).ok().filter(|bytes| *bytes != 0).unwrap_or(1 << 20)
}

/// Bytes of the largest cache that a core has, alone or with others (the last level), or a usual value where that is not known.
pub fn last_cache() -> usize {
    let caches = std::fs::read_dir("/sys/devices/system/cpu/cpu0/cache").into_iter().flatten().flatten();
    let size_of = |cache: std::fs::DirEntry| {
        let size = std::fs::read_to_string(cache.path().join("size")).ok()?;
        size.trim().strip_suffix('K')?.parse::<usize>().ok()
    };
    caches.filter_map(size_of).max().filter(|kib| *kib != 0).map_or(32 << 20, |kib| kib << 10)
}

/// The processors that the calling thread may run on.
pub fn allowed_processors() -> Vec<usize> {
    // SAFETY: all-zero is the empty set of processors.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is writable and of the size given.
    if unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) } != 0 {
        return Vec::new();
    }
    // SAFETY: every index is below the size of the set.
    (0..libc::CPU_SETSIZE as usize).filter(|processor| unsafe { libc::CPU_ISSET(*processor, &set) }).collect()
}

/// How long a thread had a processor, how long it was kept waiting for one, and how long all threads of the process had one, in nanoseconds; and how often it
/// was given one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scheduled {
    pub ran: u64,
    pub waited: u64,
    pub all_ran: u64,
    pub turns: u64,
}

/// What the kernel counts for the calling thread; `None` where it does not say.
pub fn scheduled() -> Option<Scheduled> {
    let line = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let mut words = line.split_ascii_whitespace().map(|word| word.parse().ok());
    let all_ran = clock::processor_nanoseconds();
    Some(Scheduled { ran: words.next()??, waited: words.next()??, all_ran, turns: words.next()?? })
}

/// Has the calling thread run on these processors.
///
/// # Errors
/// It may run on none of them.
pub fn bind_to(processors: &[usize]) -> io::Result<()> {
    let set = set_of(processors);
    // SAFETY: the set is of the size given.
    check(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) })?;
    Ok(())
}

fn set_of(processors: &[usize]) -> libc::cpu_set_t {
    // SAFETY: all-zero is the empty set of processors.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &processor in processors.iter().filter(|&&processor| processor < libc::CPU_SETSIZE as usize) {
        // SAFETY: the index was checked.
        unsafe { libc::CPU_SET(processor, &mut set) }
    }
    set
}

/// Where [`become_keeper`] lets threads run; empty: where the process may.
static KEEPERS_RUN_ON: OnceLock<Vec<usize>> = OnceLock::new();

/// From now on the threads that look after a network may run on these processors, though the process may not: on those of the whole job, so that they
/// take the time of who waits, if the kernel can choose, and not of who computes. To wake a thread on the processor of who sends costs a tenth of what
/// it costs on another one, in a virtual machine (2 and 17 us).
pub fn let_keepers_run_on(processors: Vec<usize>) {
    // A second world of the process is on the same machine.
    let _ = KEEPERS_RUN_ON.set(processors);
}

/// Makes the calling thread one that looks after a network: it takes no signals, [is prompt](be_prompt), and runs where [`let_keepers_run_on`] says.
pub fn become_keeper() -> Berth {
    block_signals();
    be_prompt();
    let own = allowed_processors();
    let everywhere = KEEPERS_RUN_ON.get().cloned().unwrap_or_default();
    let elsewhere: Vec<usize> =
        everywhere.iter().filter(|processor| !own.contains(processor)).copied().collect();
    // Where the kernel refuses it stays with the process.
    let roams = !elsewhere.is_empty() && bind_to(&everywhere).is_ok();
    Berth { roams, own, everywhere, elsewhere, away: false, disturbed: 0, needless: 0 }
}

/// Where the thread of a keeper runs.
#[derive(Debug, Default)]
pub struct Berth {
    roams: bool,
    /// The processors of its process, of the job, and those of the job that are not the process's.
    own: Vec<usize>,
    everywhere: Vec<usize>,
    elsewhere: Vec<usize>,
    /// Whether it keeps away from the process's.
    away: bool,
    /// How often in a row it was on one of these while the process computed, and since it keeps away was not needed because that waited.
    disturbed: u32,
    needless: u32,
}

impl Berth {
    /// After it has worked for a process that computes. Where it has taken that one's processor again and again, it keeps away: the kernel does not know
    /// that a rank on another one only waits.
    pub fn has_served(&mut self) {
        const AGAIN: u32 = 4;
        self.needless = 0;
        if !self.roams || self.away {
            return;
        }
        // SAFETY: it takes nothing.
        let here = unsafe { libc::sched_getcpu() };
        let disturbs = usize::try_from(here).is_ok_and(|here| self.own.contains(&here));
        self.disturbed = if disturbs { self.disturbed + 1 } else { 0 };
        if self.disturbed == AGAIN {
            self.disturbed = 0;
            self.away = bind_to(&self.elsewhere).is_ok();
        }
    }

    /// The process was found waiting. Where it mostly is, it is woken soonest by who is near.
    pub fn was_needless(&mut self) {
        const AGAIN: u32 = 16;
        if !self.away {
            return;
        }
        self.needless += 1;
        if self.needless == AGAIN {
            self.needless = 0;
            self.away = bind_to(&self.everywhere).is_err();
        }
    }
}

/// Asks the kernel to let this thread run as soon as it is woken, though others want the processor, and only for a short while at a time: for
/// threads that sleep, and do little when they are woken. Where the kernel cannot (before Linux 6.12) nothing changes.
pub fn be_prompt() {
    /// `struct sched_attr`, its first version.
    #[repr(C)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        /// For the usual policy: how long a turn is, in nanoseconds.
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    const TURN_NS: u64 = 100_000;
    const _: () = assert!(size_of::<Attributes>() == 48);
    let mut attributes = Attributes {
        size: 48,
        policy: 0,
        flags: 0,
        nice: 0,
        priority: 0,
        runtime: 0,
        deadline: 0,
        period: 0,
    };
    // SAFETY: a record of the size that is told, to be filled for the calling thread.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, 48, 0) };
    if got == 0 && attributes.policy == libc::SCHED_OTHER as u32 {
        attributes.runtime = TURN_NS;
        // SAFETY: as above, to be read.
        let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    }
}

/// Keeps every signal of the process away from the calling thread, so that handlers run in the program's own
/// threads.
pub fn block_signals() {
    // SAFETY: all-zero is a valid set to be overwritten; the calls change the mask of this thread alone.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
    }
}

/// What a new process does between fork and exec; see [`prepare`].
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// Becomes the leader of its own process group.
    pub own_process_group: bool,
    /// The process id of the process that starts it: the new one is killed when that one dies.
    pub dies_with: Option<i32>,
    /// The processors that it may run on; all that its parent may, when empty.
    pub processors: Vec<usize>,
    /// Its soft limit of open files, where that of its parent is another.
    pub open_files: Option<u64>,
}

/// Has `command` start as `start` says, with no signal blocked.
pub fn prepare(command: &mut Command, start: Start) {
    let set = set_of(&start.processors);
    let bind = !start.processors.is_empty();
    let (own_process_group, dies_with, open_files) =
        (start.own_process_group, start.dies_with, start.open_files);
    let between = move || {
        // SAFETY: only async-signal-safe calls on values of this frame; nothing is allocated.
        unsafe {
            if own_process_group {
                check(libc::setpgid(0, 0))?;
            }
            if let Some(parent) = dies_with {
                check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
                if libc::getppid() != parent {
                    libc::_exit(127); // It died before it could be watched.
                }
            }
            if bind {
                check(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set))?;
            }
            if let Some(soft) = open_files {
                let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                check(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit))?;
                limit.rlim_cur = soft;
                check(libc::setrlimit(libc::RLIMIT_NOFILE, &limit))?;
            }
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            check(libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut()))?;
        }
        Ok(())
    };
    // SAFETY: the closure makes async-signal-safe calls only.
    unsafe { command.pre_exec(between) };
}

/// A child that has ended or was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildEnd {
    pub process: i32,
    /// As wait(2) gives it.
    pub status: i32,
    /// Processor time of it and of what it has waited for, in microseconds.
    pub cpu_us: u64,
    /// Most resident memory, in KiB.
    pub peak_kib: u64,
}

/// Takes the end of one child, or that it was stopped; `None` if that happened to none.
///
/// # Errors
/// What wait4(2) says: there is no child, or a signal came.
pub fn take_end_of_child() -> io::Result<Option<ChildEnd>> {
    let mut status = 0;
    // SAFETY: all-zero is a valid record of usage, and the kernel writes to local variables only.
    let (process, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let process = check(libc::wait4(-1, &mut status, libc::WNOHANG | libc::WUNTRACED, &mut usage))?;
        (process, usage)
    };
    let us = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    Ok((process != 0).then(|| ChildEnd {
        process,
        status,
        cpu_us: us(usage.ru_utime) + us(usage.ru_stime),
        peak_kib: usage.ru_maxrss as u64,
    }))
}

/// Signals taken from a descriptor instead of by handlers. They stay blocked in this process and its forks.
#[derive(Debug)]
pub struct SignalQueue(OwnedFd);

impl SignalQueue {
    /// Takes those of `signals` that are not ignored (as under nohup, or in the background of a script).
    pub fn new(signals: &[i32]) -> io::Result<SignalQueue> {
        // SAFETY: plain system calls on local values; an all-zero sigaction and sigset are valid.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for &signal in signals {
                let mut action: libc::sigaction = std::mem::zeroed();
                check(libc::sigaction(signal, std::ptr::null(), &mut action))?;
                if action.sa_sigaction != libc::SIG_IGN || signal == libc::SIGCHLD {
                    libc::sigaddset(&mut set, signal);
                }
            }
            check(libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()))?;
            let descriptor = check(libc::signalfd(-1, &set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC))?;
            Ok(SignalQueue(OwnedFd::from_raw_fd(descriptor)))
        }
    }

    /// The next signal that has come, if any.
    pub fn take(&self) -> Option<i32> {
        // SAFETY: all-zero is a valid record, and the kernel writes at most its size.
        unsafe {
            let mut record: libc::signalfd_siginfo = std::mem::zeroed();
            let size = size_of::<libc::signalfd_siginfo>();
            let read = libc::read(self.0.as_raw_fd(), (&raw mut record).cast(), size);
            (read == size as isize).then_some(record.ssi_signo as i32)
        }
    }
}

impl std::os::fd::AsFd for SignalQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Ignores `signal` in this process; a program started from it inherits that.
pub fn ignore(signal: i32) {
    // SAFETY: installs no handler.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Gives `signal` its default action and unblocks it.
pub fn restore(signal: i32) {
    // SAFETY: installs no handler; the set is a local value.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
    }
}

/// Has the kernel kill this process as soon as `socket` is closed at its other end: the watch on the launcher that needs
/// no thread. Nothing may ever be sent to it: not even before, since a message can be received before its sender has
/// come to the point where the kernel tells those who watch.
pub fn die_with(socket: BorrowedFd<'_>) -> io::Result<()> {
    let descriptor = socket.as_raw_fd();
    // SAFETY: fcntl on an open descriptor with integer arguments.
    unsafe {
        check(libc::fcntl(descriptor, libc::F_SETOWN, libc::getpid()))?;
        check(libc::fcntl(descriptor, F_SETSIG, libc::SIGKILL))?;
        let flags = check(libc::fcntl(descriptor, libc::F_GETFL))?;
        check(libc::fcntl(descriptor, libc::F_SETFL, flags | libc::O_ASYNC))?;
    }
    // What was closed before the watch began raises nothing any more.
    let mut poll = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: one record, a timeout of zero.
    if unsafe { libc::poll(&mut poll, 1, 0) } > 0 {
        return Err(io::Error::from(io::ErrorKind::ConnectionReset));
    }
    Ok(())
}

/// From linux/fcntl.h; the same on every architecture that Rust supports but not named by the libc crate.
const F_SETSIG: libc::c_int = 10;

/// The name of this process in tools such as ps and pkill; at most 15 bytes count.
pub fn set_name(name: &CStr) {
    // SAFETY: a terminated string that outlives the call.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// Whether this process may read the memory of process `process`, tried on one byte at `address` there.
///
/// # Errors
/// What process_vm_readv(2) says: `PermissionDenied` where the kernel forbids it, `Unsupported` where it has
/// no such call.
pub fn read_memory_of(process: i32, address: usize) -> io::Result<()> {
    let mut byte = 0u8;
    let near = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let far = libc::iovec { iov_base: std::ptr::without_provenance_mut(address), iov_len: 1 };
    // SAFETY: one byte is written to a local variable; the kernel checks the remote address.
    match unsafe { libc::process_vm_readv(process, &near, 1, &far, 1, 0) } {
        1 => Ok(()),
        0 => Err(io::ErrorKind::InvalidData.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_prepared_command_leads_its_own_group() {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n; [ $(ps -o pgid= -p $$) = $$ ]"]);
        let start = Start {
            own_process_group: true,
            dies_with: Some(std::process::id() as i32),
            open_files: Some(100),
            ..Start::default()
        };
        prepare(&mut command, start);
        let output = command.output().unwrap();
        assert_eq!(output.stdout, b"100\n");
        assert!(output.status.success());
    }

    #[test]
    fn a_keeper_that_disturbs_its_process_keeps_away_until_that_mostly_waits() {
        let all = allowed_processors();
        let [first, .., last] = all[..] else { return };
        let keeper = move || {
            bind_to(&[first]).unwrap();
            let_keepers_run_on(all.clone());
            let mut berth = become_keeper();
            assert_eq!(allowed_processors(), all);
            bind_to(&[last]).unwrap();
            (0..10).for_each(|_| berth.has_served());
            assert_eq!(allowed_processors(), [last], "nobody is disturbed there");
            bind_to(&[first]).unwrap();
            (0..10).for_each(|_| berth.has_served());
            assert_eq!(allowed_processors(), all[1..]);
            (0..10).for_each(|_| berth.was_needless());
            berth.has_served();
            (0..10).for_each(|_| berth.was_needless());
            assert_eq!(allowed_processors(), all[1..], "now and then it is needed");
            (0..10).for_each(|_| berth.was_needless());
            assert_eq!(allowed_processors(), all);
        };
        std::thread::spawn(keeper).join().unwrap();
    }

    #[test]
    fn a_threaded_process_is_not_forked() {
        let (_keep, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || wait.recv());
        assert_eq!(fork_alone().unwrap_err().kind(), io::ErrorKind::Unsupported);
        drop(_keep);
        let _ = thread.join();
    }

    #[test]
    fn a_closed_socket_is_reported_when_the_watch_begins() {
        let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        drop(far);
        assert!(die_with(near.as_fd()).is_err());
    }
}
