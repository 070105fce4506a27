//! Runs one command to its end or its time limit, and looks for what it left behind.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// The variable by which a process that a test started is known, whoever its parent has become.
const MARK: &str = "PARNASS_TEST_MARK";

/// As much of each stream is kept, its beginning; the rest is read and dropped.
const KEPT_BYTES: usize = 1 << 20;

/// What leftovers are given to go by themselves once the command has ended.
const GRACE: Duration = Duration::from_secs(5);

/// When everything must have ended; a run that would go beyond is cut short.
static END: OnceLock<Instant> = OnceLock::new();

/// Gives all runs together this long from now on.
pub fn limit_all(limit: Duration) {
    let _ = END.set(Instant::now() + limit);
}

/// How a command ended and what it said.
pub struct Outcome {
    pub status: ExitStatus,
    pub timed_out: bool,
    pub stdout: String,
    pub stderr: String,
    pub elapsed: Duration,
    /// What was still there after the grace, in words; empty when all was clean.
    pub leftovers: Vec<String>,
}

impl Outcome {
    /// The exit status as a shell would give it: 128 plus the signal's number after a signal.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }
}

/// Runs `command` in a process group of its own, with `input` on its standard input, for at most `limit`.
///
/// `scratch` is a folder of the caller's: the command's TMPDIR is made in it, and must be empty afterwards.
pub fn run(mut command: Command, input: &[u8], limit: Duration, scratch: &Path) -> anyhow::Result<Outcome> {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let own = format!("{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
    let temporary = scratch.join(format!("tmp-{own}"));
    // What runs inside a run is found by the outer one too.
    let mark = std::env::var(MARK).map_or_else(|_| own.clone(), |outer| format!("{outer}/{own}"));
    std::fs::create_dir_all(&temporary).with_context(|| temporary.display().to_string())?;
    let before = Residue::now();

    command.env(MARK, &mark).env("TMPDIR", &temporary).process_group(0);
    // What the user of this machine has chosen is not what is tested.
    command.env("PARNASS_CONFIG", "").env("PARNASS_TUNED", "");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let start = Instant::now();
    let limit = END.get().map_or(limit, |end| limit.min(end.saturating_duration_since(start)));
    let mut child = command.spawn().with_context(|| format!("{:?}", command.get_program()))?;
    let group = Pid::from_child(&child);
    let mut stdin = child.stdin.take().context("stdin")?;
    let input = input.to_vec();
    // A program that ends without reading its input is its own affair: the pipe breaks, and that is all.
    std::thread::spawn(move || drop(stdin.write_all(&input)));
    let stdout = collect(child.stdout.take().context("stdout")?);
    let stderr = collect(child.stderr.take().context("stderr")?);

    let (mut timed_out, mut report) = (false, String::new());
    let mut pause = Duration::from_millis(1);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if start.elapsed() > limit && !timed_out {
            timed_out = true;
            report = stacks(&mark);
            let _ = kill_process_group(group, Signal::KILL);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    };
    let elapsed = start.elapsed();

    let mut leftovers = Vec::new();
    let deadline = Instant::now() + GRACE;
    loop {
        let processes = marked_processes(&mark);
        let residue = Residue::now().beyond(&before, &mark);
        if (processes.is_empty() && residue.is_empty()) || Instant::now() > deadline || timed_out {
            // What was ended by force has not had its chance to clean up.
            if !timed_out {
                leftovers.extend(processes.iter().map(|(pid, name)| format!("process {pid} ({name})")));
                leftovers.extend(residue);
            }
            for (pid, _) in processes {
                let _ = kill_process(pid, Signal::KILL);
            }
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    for entry in std::fs::read_dir(&temporary)?.flatten() {
        leftovers.push(format!("temporary file {}", entry.file_name().to_string_lossy()));
    }
    std::fs::remove_dir_all(&temporary)?;
    let (stdout, stderr) = (stdout.text(), stderr.text() + &report);
    Ok(Outcome { status, timed_out, stdout, stderr, elapsed, leftovers })
}

/// What a stream has brought so far, and whether it has come to its end.
struct Collected {
    kept: Arc<Mutex<Vec<u8>>>,
    end: mpsc::Receiver<()>,
}

fn collect(mut stream: impl Read + Send + 'static) -> Collected {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let (ended, end) = mpsc::channel();
    let into = kept.clone();
    std::thread::spawn(move || {
        let mut piece = vec![0; 1 << 16];
        while let Ok(length @ 1..) = stream.read(&mut piece) {
            if let Ok(mut kept) = into.lock() {
                let room = KEPT_BYTES.saturating_sub(kept.len());
                kept.extend_from_slice(&piece[..length.min(room)]);
            }
        }
        drop(ended);
    });
    Collected { kept, end }
}

impl Collected {
    /// Waits for the end, but not for ever: a process without the mark (a daemon has an environment of its own) may
    /// hold the stream.
    fn text(self) -> String {
        let _ = self.end.recv_timeout(GRACE);
        let kept = self.kept.lock().map(|mut kept| std::mem::take(&mut *kept)).unwrap_or_default();
        String::from_utf8_lossy(&kept).into_owned()
    }
}

/// Where the threads of the marked processes are, for a report about one that hangs: from gdb, where there is one.
fn stacks(mark: &str) -> String {
    const PROCESSES: usize = 6;
    let mut report = String::new();
    for (pid, name) in marked_processes(mark).into_iter().take(PROCESSES) {
        let id = pid.as_raw_nonzero();
        let _ = writeln!(report, "--- where process {id} ({name}) was");
        let mut command = Command::new("timeout");
        command.args(["60", "gdb", "-batch", "-nx", "-ex", "thread apply all backtrace 14", "-p"]);
        command.arg(id.to_string()).env_remove(MARK).stdin(Stdio::null());
        let Ok(output) = command.output() else { continue };
        let text = String::from_utf8_lossy(&output.stdout);
        let frames = text.lines().filter(|line| line.starts_with("Thread") || line.starts_with('#'));
        frames.for_each(|line| report.extend(line.chars().take(200).chain(['\n'])));
    }
    report
}

/// The numbers of all processes on the machine.
fn process_ids() -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Living processes that carry `mark` in their environment (zombies have none).
fn marked_processes(mark: &str) -> Vec<(Pid, String)> {
    let wanted = format!("{MARK}={mark}").into_bytes();
    let carries = |entry: &[u8]| {
        entry.strip_prefix(wanted.as_slice()).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    };
    let mut found = Vec::new();
    for id in process_ids() {
        let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        if environment.split(|&byte| byte == 0).any(carries) {
            let name = std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
            found.extend(Pid::from_raw(id).map(|pid| (pid, name.trim().to_owned())));
        }
    }
    found
}

/// What a job could leave on the machine without a process: names in /dev/shm and in /tmp, and named sockets.
struct Residue {
    files: BTreeSet<PathBuf>,
    sockets: BTreeSet<(String, String)>,
}

impl Residue {
    fn now() -> Self {
        let mut files = BTreeSet::new();
        for folder in ["/dev/shm", "/tmp", "/var/tmp", "/run"] {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                // Other programs use these folders too; ours would carry its name.
                if entry.file_name().to_string_lossy().to_lowercase().contains("parnass") {
                    files.insert(entry.path());
                }
            }
        }
        let mut sockets = BTreeSet::new();
        for line in std::fs::read_to_string("/proc/net/unix").unwrap_or_default().lines().skip(1) {
            let mut fields = line.split_whitespace().skip(6);
            if let (Some(inode), Some(name)) = (fields.next(), fields.next())
                && name.to_lowercase().contains("parnass")
            {
                sockets.insert((name.to_owned(), inode.to_owned()));
            }
        }
        Self { files, sockets }
    }

    /// What is there now and was not `before`, without what belongs to living processes of others.
    fn beyond(&self, before: &Self, mark: &str) -> Vec<String> {
        let mut found: Vec<String> =
            self.files.difference(&before.files).map(|path| format!("file {}", path.display())).collect();
        for (name, inode) in self.sockets.difference(&before.sockets) {
            if !held_by_another(inode, mark) {
                found.push(format!("socket {name}"));
            }
        }
        found
    }
}

/// True when a process without `mark` holds the socket with this inode: then it is another job's.
fn held_by_another(inode: &str, mark: &str) -> bool {
    let wanted = PathBuf::from(format!("socket:[{inode}]"));
    let ours: BTreeSet<i32> =
        marked_processes(mark).iter().map(|(pid, _)| pid.as_raw_nonzero().get()).collect();
    process_ids().into_iter().filter(|id| !ours.contains(id)).any(|id| {
        std::fs::read_dir(format!("/proc/{id}/fd"))
            .into_iter()
            .flatten()
            .flatten()
            .any(|entry| std::fs::read_link(entry.path()).is_ok_and(|target| target == wanted))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, input: &[u8], limit_s: u64) -> Outcome {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, input, Duration::from_secs(limit_s), &std::env::temp_dir()).unwrap()
    }

    /// What a command has left, without what other tests on this machine make meanwhile: files and sockets with our name are everybody's.
    fn left(outcome: &Outcome) -> Vec<&str> {
        let others = |left: &&str| left.starts_with("file ") || left.starts_with("socket ");
        outcome.leftovers.iter().map(String::as_str).filter(|left| !others(left)).collect()
    }

    #[test]
    fn streams_and_status_come_back() {
        let outcome = shell("cat; echo no >&2; exit 5", b"in", 20);
        assert_eq!((outcome.code(), outcome.stdout.as_str(), outcome.stderr.as_str()), (5, "in", "no\n"));
        assert!(left(&outcome).is_empty() && !outcome.timed_out);
    }

    #[test]
    fn a_signal_is_a_code_above_128() {
        assert_eq!(shell("kill -9 $$", b"", 20).code(), 137);
    }

    #[test]
    fn what_hangs_is_ended() {
        let outcome = shell("sleep 1000", b"", 1);
        assert!(outcome.timed_out);
    }

    #[test]
    fn a_process_left_behind_is_found_and_ended() {
        // A process has no environment to be known by while it is being replaced by its program, nor for a moment after it
        // has its arguments.
        let script = format!(
            "setsid sleep 1000 >/dev/null 2>&1 </dev/null &
            until grep -q ^sleep /proc/$!/cmdline && grep -q {MARK}= /proc/$!/environ; do sleep 0.01; done"
        );
        let outcome = shell(&script, b"", 20);
        let left = left(&outcome);
        assert!(left.len() == 1 && left[0].contains("sleep"), "{left:?}");
    }

    #[test]
    fn a_file_left_behind_is_found() {
        let outcome = shell("touch \"$TMPDIR/stale\"", b"", 20);
        assert_eq!(left(&outcome), ["temporary file stale"]);
    }
}
