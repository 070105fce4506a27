//! Running mpiexec on small programs, each within a time limit.
#![allow(dead_code)] // Each test file uses a part of it.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// No job of a test runs longer.
const LIMIT: Duration = Duration::from_secs(60);

/// mpiexec with these arguments, in an environment of its own job.
pub fn mpiexec(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpiexec"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs to the end and gives what was written.
pub fn run(command: &mut Command) -> Ended {
    finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

/// Waits for the end of a job whose outputs are pipes.
pub fn finish(child: Child) -> Ended {
    let pid = child.id();
    let (done, alarm) = std::sync::mpsc::channel::<()>();
    let watchdog = std::thread::spawn(move || {
        if alarm.recv_timeout(LIMIT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(done);
    watchdog.join().unwrap();
    Ended(output)
}

/// How a job ended.
#[derive(Debug)]
pub struct Ended(pub Output);

impl Ended {
    pub fn code(&self) -> i32 {
        self.0.status.code().unwrap_or(-1)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    /// The lines of standard output, sorted.
    pub fn sorted(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.text().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }
}

/// `mpiexec -n RANKS sh -c SCRIPT`.
pub fn shell(ranks: u32, script: &str) -> Ended {
    run(&mut mpiexec(&["-n", &ranks.to_string(), "sh", "-c", script]))
}

/// Gives the job `bytes` as standard input.
pub fn run_with_input(command: &mut Command, bytes: Vec<u8>) -> Ended {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        let _ = input.write_all(&bytes); // A job that does not read it may end before.
    });
    let ended = finish(child);
    writer.join().unwrap();
    ended
}

/// A directory that is removed at the end of the test.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new() -> Directory {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("parnass-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A file that can be run. It is written by a process of its own: what is open for writing here is so in whatever another test starts
    /// meanwhile, and cannot be run before that has its own program.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let file = self.file(name);
        let mut writer = Command::new("sh");
        writer.args(["-c", "printf %s \"$1\" >\"$0\" && chmod 755 \"$0\""]).arg(&file).arg(text);
        assert!(writer.status().unwrap().success());
        file
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A word that marks the processes of one test in their environment.
pub fn mark() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("mark-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// The processes with `MARK=mark` in their environment.
pub fn marked(mark: &str) -> Vec<i32> {
    let wanted = format!("MARK={mark}");
    let has_mark = |process: &i32| {
        let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()))
        .filter(has_mark)
        .collect()
}

/// Waits until no process with this mark is there.
pub fn nothing_is_left(mark: &str) {
    await_until("no process of the job is left", || marked(mark).is_empty());
}

/// Waits until `condition` holds.
pub fn await_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LIMIT, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
