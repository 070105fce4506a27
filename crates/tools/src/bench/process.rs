//! Starts a program, waits for it or for what ends it early, and leaves no process of it behind.

use std::fmt;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use parnass_base::process::{SignalQueue, Start, prepare, restore};
use parnass_launcher::descendants::{self, Reaped};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid};

/// The signals that end a run.
const ENDING: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];
/// As much of each stream is kept, its beginning.
const KEPT_BYTES: usize = 4 << 20;
/// What a job is given to end by itself once it has been told to.
const GRACE: Duration = Duration::from_secs(3);

/// Somebody wants this program to end, by this signal.
#[derive(Debug)]
pub struct Interrupted(pub i32);

impl fmt::Display for Interrupted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "interrupted by signal {}; everything that was started has been ended", self.0)
    }
}

impl std::error::Error for Interrupted {}

/// How a program ended, and what it said.
#[derive(Debug)]
pub struct Outcome {
    /// None when it was ended because its time was up.
    pub status: Option<ExitStatus>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// From before its start to its end.
    pub elapsed: Duration,
}

impl Outcome {
    /// Whether it ended by itself, with status 0.
    pub fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// Why it did not succeed: how it ended, and the first lines of what it said.
    pub fn failure(&self, limit: Duration) -> String {
        let how = match self.status {
            Some(status) => status.to_string(),
            None => format!("ended after {} s", limit.as_secs()),
        };
        let said = if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr };
        // The first lines name the cause; frames, blank lines and values do not.
        let telling = |line: &&str| line.chars().any(char::is_alphabetic) && !line.starts_with("result ");
        let lines: Vec<&str> = said.lines().map(str::trim).filter(telling).take(4).collect();
        if lines.is_empty() { how } else { format!("{how}: {}", lines.join(" / ")) }
    }
}

/// Runs programs one at a time. There is one in a process: it takes the signals that end it, and adopts whatever
/// its programs leave behind.
#[derive(Debug)]
pub struct Runner(SignalQueue);

impl Runner {
    /// Takes the signals of this process, which has no other thread.
    ///
    /// # Errors
    /// The system refuses.
    pub fn new() -> std::io::Result<Runner> {
        restore(Signal::CHILD.as_raw()); // Where it is ignored, ends of children are not told.
        descendants::adopt_orphans();
        let mut watched: Vec<i32> = ENDING.iter().map(|signal| signal.as_raw()).collect();
        watched.push(Signal::CHILD.as_raw());
        Ok(Runner(SignalQueue::new(&watched)?))
    }

    /// Runs `command`, without input, for at most `limit`. Whatever it started is gone when this returns.
    ///
    /// # Errors
    /// It cannot be started, or [`Interrupted`].
    pub fn run(&self, command: &mut Command, limit: Duration) -> anyhow::Result<Outcome> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let own = getpid().as_raw_nonzero().get();
        prepare(command, Start { own_process_group: true, dies_with: Some(own), ..Start::default() });
        let start = Instant::now();
        let mut child = command.spawn().map_err(|error| {
            anyhow::anyhow!("{} cannot be run: {error}", command.get_program().to_string_lossy())
        })?;
        let mut stdout = Stream::new(child.stdout.take());
        let mut stderr = Stream::new(child.stderr.take());
        let outcome = self.wait(Pid::from_child(&child), start + limit, &mut stdout, &mut stderr);
        let elapsed = start.elapsed();
        if !matches!(outcome, Ok(Some(_))) {
            descendants::signal(Signal::TERM, &[]);
        }
        clear();
        stdout.read();
        stderr.read();
        Ok(Outcome { status: outcome?, stdout: stdout.text(), stderr: stderr.text(), elapsed })
    }

    /// Whether somebody wants this program to end.
    ///
    /// # Errors
    /// [`Interrupted`].
    fn check(&self) -> Result<(), Interrupted> {
        while let Some(signal) = self.0.take() {
            if signal != Signal::CHILD.as_raw() {
                return Err(Interrupted(signal));
            }
        }
        Ok(())
    }

    /// The child's status, or none when the deadline has come.
    fn wait(
        &self,
        child: Pid,
        deadline: Instant,
        stdout: &mut Stream,
        stderr: &mut Stream,
    ) -> Result<Option<ExitStatus>, Interrupted> {
        loop {
            self.check()?;
            loop {
                match descendants::reap() {
                    Reaped::Ended(process, status, _) if process == child => return Ok(Some(status)),
                    Reaped::Ended(..) | Reaped::Stopped(..) => {}
                    Reaped::Running | Reaped::None => break,
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let mut watched = vec![PollFd::new(&self.0, PollFlags::IN)];
            watched.extend([stdout.descriptor(), stderr.descriptor()].into_iter().flatten());
            let left = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 3600, tv_nsec: 0 });
            match poll(&mut watched, Some(&left)) {
                Ok(_) | Err(Errno::INTR) => {}
                // Nothing to wait with: the next look is soon.
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
            drop(watched);
            stdout.read();
            stderr.read();
        }
    }
}

/// Gives the rest of a job a moment to end, then kills it.
fn clear() {
    let deadline = Instant::now() + GRACE;
    let mut pause = Duration::from_millis(1);
    while Instant::now() < deadline {
        match descendants::reap() {
            Reaped::None => return,
            Reaped::Ended(..) | Reaped::Stopped(..) => {}
            Reaped::Running => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(50));
            }
        }
    }
    descendants::kill_all();
}

/// One stream of a program, read without waiting.
#[derive(Debug)]
struct Stream {
    pipe: Option<std::fs::File>,
    kept: Vec<u8>,
}

impl Stream {
    fn new(pipe: Option<impl Into<std::os::fd::OwnedFd>>) -> Stream {
        let pipe = pipe.map(|pipe| std::fs::File::from(pipe.into()));
        // A pipe that cannot be made so would be waited for, which is not fatal: its program ends sometime.
        let _ = pipe.as_ref().map(|pipe| rustix::io::ioctl_fionbio(pipe, true));
        Stream { pipe, kept: Vec::new() }
    }

    fn descriptor(&self) -> Option<PollFd<'_>> {
        let descriptor: BorrowedFd<'_> = self.pipe.as_ref()?.as_fd();
        Some(PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
    }

    /// Takes what is there; at the end the pipe is let go.
    fn read(&mut self) {
        let mut piece = [0; 1 << 14];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut piece) {
                Ok(length @ 1..) => {
                    let room = KEPT_BYTES.saturating_sub(self.kept.len());
                    self.kept.extend_from_slice(&piece[..length.min(room)]);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => self.pipe = None,
            }
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}
