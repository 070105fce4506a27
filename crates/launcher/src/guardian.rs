//! The guardian: one loop over everything that can happen to a job.

mod members;
mod streams;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{ExitStatus, exit};
use std::time::{Duration, Instant};

use parnass_base::process::{SignalQueue, set_name};
use parnass_bootstrap::{Address, Secret};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::arguments::Job;
use crate::descendants::{self, Reaped};
use crate::output::{Sink, Stream, same_file};
use crate::program::{NOT_EXECUTABLE, NOT_FOUND};
use crate::ranks::{Rank, Starter};
use crate::report::{self, counted};

/// Between the request to end (SIGTERM) and the order (SIGKILL).
const GRACE: Duration = Duration::from_secs(2);
/// How long processes that ranks left behind may go on after the last rank has ended.
const LINGER: Duration = Duration::from_millis(500);
/// A process that dies is seen to disconnect a little before it is seen to end.
const LOST_DELAY: Duration = Duration::from_secs(1);
/// Between two rounds of SIGKILL to those that are still there.
const KILL_ROUND: Duration = Duration::from_millis(5);
/// Ranks started between two looks at everything else.
const STARTED_AT_ONCE: usize = 8;
const READ_BYTES: usize = 64 << 10;
/// As of timeout(1).
const TIMED_OUT: u8 = 124;
const OUTPUT_CLOSED: u8 = 128 + 13;

/// What an event of the poll set is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Control,
    Child,
    Listener,
    Connection(usize),
    Stream(usize),
    Sink(usize),
}

impl Source {
    fn encode(self) -> epoll::EventData {
        let (kind, index) = match self {
            Source::Control => (0, 0),
            Source::Child => (1, 0),
            Source::Listener => (2, 0),
            Source::Connection(index) => (3, index),
            Source::Stream(index) => (4, index),
            Source::Sink(index) => (5, index),
        };
        epoll::EventData::new_u64(kind << 32 | index as u64)
    }

    fn decode(data: epoll::EventData) -> Source {
        let index = (data.u64() & 0xffff_ffff) as usize;
        match data.u64() >> 32 {
            0 => Source::Control,
            1 => Source::Child,
            2 => Source::Listener,
            3 => Source::Connection(index),
            4 => Source::Stream(index),
            _ => Source::Sink(index),
        }
    }
}

/// A process that has connected to ask for a rank.
#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    process: Option<Pid>,
    rank: Option<usize>,
    finalized: bool,
}

/// Runs the job in a process that was forked for it, and ends that process.
///
/// `control` gives the signals that mpiexec has received, a byte each; its end means that mpiexec is gone.
/// `input` is what rank 0 reads, where it is not mpiexec's own standard input.
pub fn run(job: Job, programs: Vec<PathBuf>, control: OwnedFd, input: Option<OwnedFd>) -> ! {
    set_name(c"parnass-guard"); // Who kills all processes named mpiexec shall not hit both.
    let code = match Guardian::new(job, programs, control, input) {
        Ok(mut guardian) => guardian.run(),
        Err(error) => {
            eprintln!("mpiexec: the job cannot be started: {error}");
            1
        }
    };
    exit(i32::from(code))
}

struct Guardian {
    job: Job,
    epoll: OwnedFd,
    control: Option<OwnedFd>,
    children: SignalQueue,
    listener: OwnedFd,
    address: Address,
    starter: Starter,
    ranks: Vec<Rank>,
    by_process: BTreeMap<i32, usize>,
    started: usize,
    connections: Vec<Option<Connection>>,
    streams: Vec<Option<Stream>>,
    sinks: Vec<Sink>,
    /// Streams that are not read until their sink has room; by sink.
    paused: Vec<bool>,
    /// Sinks in the poll set.
    polled: Vec<bool>,
    /// The shared memory of the processes that join as the first in their ranks, as the second, ...
    memories: BTreeMap<u32, (OwnedFd, u32)>,
    deadline: Option<Instant>,
    term_at: Option<Instant>,
    kill_at: Option<Instant>,
    /// The exit code, once something has failed.
    code: Option<u8>,
    /// The last signal that was passed on to ranks.
    forwarded: Option<i32>,
    interrupts: u32,
    /// How many signals that end a job have come.
    signals: u32,
    children_left: bool,
    buffer: Vec<u8>,
}

impl Guardian {
    fn new(
        job: Job,
        programs: Vec<PathBuf>,
        control: OwnedFd,
        input: Option<OwnedFd>,
    ) -> io::Result<Guardian> {
        // A group of its own: who kills mpiexec with its whole group shall not hit both. Writing to a terminal
        // from there must not stop it.
        rustix::process::setpgid(None, None)?;
        let stop = [Signal::TTOU.as_raw(), Signal::TTIN.as_raw()];
        drop(SignalQueue::new(&stop)?); // They stay blocked.
        let children = SignalQueue::new(&[Signal::CHILD.as_raw()])?;
        descendants::adopt_orphans();

        let address = Address { name: job_name(), secret: Secret::random() };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        bind(&listener, &SocketAddrUnix::new_abstract_name(address.name.as_bytes())?)?;
        listen(&listener, 4096)?;

        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let readable = epoll::EventFlags::IN;
        epoll::add(&epoll, &control, Source::Control.encode(), readable)?;
        epoll::add(&epoll, &children, Source::Child.encode(), readable)?;
        epoll::add(&epoll, &listener, Source::Listener.encode(), readable)?;

        let (output, error) = (rustix::stdio::stdout(), rustix::stdio::stderr());
        let mut sinks = vec![Sink::new(output, job.label)?];
        if !same_file(output, error) {
            sinks.push(Sink::new(error, job.label)?);
        }
        let input = match input {
            Some(input) => input,
            None => rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?,
        };
        let starter = Starter::new(&job, programs, &address, input)?;
        rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;

        let mut ranks = Vec::new();
        for (part, description) in job.parts.iter().enumerate() {
            ranks.extend((0..description.ranks).map(|_| Rank { part, ..Rank::default() }));
        }
        Ok(Guardian {
            deadline: job.timeout.map(|timeout| Instant::now() + timeout),
            job,
            epoll,
            control: Some(control),
            children,
            listener,
            address,
            starter,
            ranks,
            by_process: BTreeMap::new(),
            started: 0,
            connections: Vec::new(),
            streams: Vec::new(),
            paused: vec![false; sinks.len()],
            polled: vec![false; sinks.len()],
            sinks,
            memories: BTreeMap::new(),
            term_at: None,
            kill_at: None,
            code: None,
            forwarded: None,
            interrupts: 0,
            signals: 0,
            children_left: true,
            buffer: vec![0; READ_BYTES],
        })
    }

    fn run(&mut self) -> u8 {
        if let Some(note) = self.starter.places.note.take() {
            self.say(&note);
        }
        let mut events = Vec::with_capacity(64);
        loop {
            self.start_some();
            let timeout = self.timeout().map(timespec);
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => {
                    self.say(&format!("the poll set failed: {error}"));
                    descendants::kill_all();
                    return 1;
                }
            }
            for event in &events {
                self.handle(Source::decode(event.data));
            }
            self.reap();
            self.look_at_clock();
            self.flush();
            if self.is_over() {
                return self.finish();
            }
        }
    }

    fn handle(&mut self, source: Source) {
        match source {
            Source::Control => self.read_control(),
            Source::Child => while self.children.take().is_some() {},
            Source::Listener => self.accept(),
            Source::Connection(index) => self.read_connection(index),
            Source::Stream(index) => {
                self.read_stream(index);
            }
            Source::Sink(_) => {} // Every turn flushes all of them.
        }
    }

    // ---- starting ----

    fn start_some(&mut self) {
        for _ in 0..STARTED_AT_ONCE {
            if self.started == self.ranks.len() || self.is_ending() {
                return;
            }
            let rank = self.started;
            let part = self.ranks[rank].part;
            match self.starter.start(&self.job, part, rank as u32) {
                Ok((process, pipes)) => {
                    self.started += 1;
                    self.ranks[rank].process = Some(process);
                    self.by_process.insert(process.as_raw_nonzero().get(), rank);
                    for (sink, pipe) in pipes.into_iter().flatten().enumerate() {
                        self.add_stream(rank, sink.min(self.sinks.len() - 1), pipe);
                    }
                }
                Err(error) => {
                    let program = self.job.parts[part].program.display();
                    let (code, advice) = match error.raw_os_error().map(Errno::from_raw_os_error) {
                        Some(Errno::NOENT) => {
                            (NOT_FOUND, " (what its first line or its ELF header names as interpreter)")
                        }
                        Some(Errno::ACCESS | Errno::NOEXEC | Errno::PERM) => (NOT_EXECUTABLE, ""),
                        _ => (1, ""),
                    };
                    self.fail(code, &format!("rank {rank} ({program}) cannot be started: {error}{advice}"));
                }
            }
        }
    }

    // ---- ends ----

    fn reap(&mut self) {
        loop {
            match descendants::reap() {
                Reaped::Ended(process, status) => {
                    if let Some(rank) = self.by_process.remove(&process.as_raw_nonzero().get()) {
                        self.ended(rank, status);
                    }
                }
                Reaped::Stopped(process, signal) => {
                    if let Some(&rank) = self.by_process.get(&process.as_raw_nonzero().get()) {
                        self.stopped(rank, signal);
                    }
                }
                Reaped::Running => return,
                Reaped::None => {
                    self.children_left = self.started < self.ranks.len() && !self.is_ending();
                    return;
                }
            }
        }
    }

    /// A rank that reaches for the terminal is stopped by the kernel, and would be waited for without a word.
    fn stopped(&mut self, rank: usize, signal: i32) {
        if signal == Signal::TTIN.as_raw() || signal == Signal::TTOU.as_raw() {
            let name = self.name(rank);
            let signal = report::signal_name(signal).0;
            self.say(&format!(
                "{name} was stopped by {signal}: it uses the terminal, which is mpiexec's; interrupt, and let it \
                 use standard input instead"
            ));
        }
    }

    fn ended(&mut self, rank: usize, status: ExitStatus) {
        // What it said last comes first: MPI_Finalize, MPI_Abort, and the end of the connection.
        for index in 0..self.connections.len() {
            if self.connections[index].as_ref().is_some_and(|connection| connection.rank == Some(rank)) {
                self.read_connection(index);
            }
        }
        self.drain(rank);
        self.ranks[rank].ended = Some(status);
        let unfinished = self.ranks[rank].lost.is_some();
        let finished = self.ranks[rank].joined > 0 && !unfinished;
        if !status.success() {
            let code = report::exit_code(status);
            let report = format!("{} {}", self.name(rank), report::ending(status));
            match self.forwarded {
                Some(signal) if code == 128 + signal as u8 => self.end_by(signal),
                _ if code == OUTPUT_CLOSED && self.output_is_closed() => self.end(code, ""),
                _ if finished => self.fail_and_go_on(code, &report),
                _ => self.fail(code, &report),
            }
        } else if unfinished {
            let place = &self.ranks[rank];
            let name = self.name(rank);
            let report = match place.lost_process.filter(|&lost| Some(lost) != place.process) {
                Some(lost) => {
                    format!("{name}: its MPI process {} ended without MPI_Finalize", lost.as_raw_nonzero())
                }
                None => format!("{name} exited with code 0 without calling MPI_Finalize"),
            };
            self.fail(1, &report);
        }
    }

    /// "rank 3 (./program, process 1234)"
    fn name(&self, rank: usize) -> String {
        let place = &self.ranks[rank];
        let program = self.job.parts[place.part].program.display();
        match place.process {
            Some(process) => format!("rank {rank} ({program}, process {})", process.as_raw_nonzero()),
            None => format!("rank {rank} ({program})"),
        }
    }

    /// The first failure gives the exit code and ends the job; the others are its consequences.
    fn fail(&mut self, code: u8, report: &str) {
        self.fail_but(None, code, report);
    }

    /// As [`Guardian::fail`]; rank `ending` ends by itself.
    fn fail_but(&mut self, ending: Option<usize>, code: u8, report: &str) {
        let is_other = |(index, rank): &(usize, &Rank)| rank.is_running() && Some(*index) != ending;
        match self.ranks.iter().enumerate().filter(is_other).count() {
            0 => self.end(code, report),
            others => self.end(code, &format!("{report}; ending {}", counted(others, "other rank"))),
        }
    }

    /// Ends the job, if it is not ending yet.
    fn end(&mut self, code: u8, message: &str) {
        if self.is_ending() {
            return;
        }
        if !message.is_empty() {
            self.say(message);
        }
        self.code.get_or_insert(code);
        self.term_at = Some(Instant::now());
    }

    /// Ends the job because the user said so.
    fn end_by(&mut self, signal: i32) {
        self.end(128 + signal as u8, &format!("the job was ended by {}", report::signal_name(signal).0));
    }

    fn fail_and_go_on(&mut self, code: u8, report: &str) {
        if self.code.is_none() && !self.is_ending() {
            self.say(report);
            self.code = Some(code);
        }
    }

    fn is_ending(&self) -> bool {
        self.term_at.is_some() || self.kill_at.is_some()
    }

    fn output_is_closed(&self) -> bool {
        self.sinks.iter().any(Sink::is_closed)
    }

    // ---- signals ----

    fn read_control(&mut self) {
        let mut bytes = [0; 64];
        let Some(control) = &self.control else { return };
        match rustix::io::read(control, &mut bytes) {
            Ok(0) => {
                // mpiexec itself was killed: nobody waits for the ranks or reads what they say.
                self.control = None;
                descendants::kill_all();
                exit(1);
            }
            Ok(count) => {
                for &signal in &bytes[..count] {
                    self.forward(i32::from(signal));
                }
            }
            Err(_) => {}
        }
    }

    fn forward(&mut self, number: i32) {
        let Some(signal) = Signal::from_named_raw(number) else { return };
        if signal == Signal::INT || signal == Signal::QUIT {
            self.interrupts += 1;
            if self.interrupts > 1 {
                self.code.get_or_insert(128 + number as u8);
                self.kill_at = Some(Instant::now());
                for sink in &mut self.sinks {
                    let _ = sink.flush();
                    sink.close(); // Whoever interrupts twice does not wait for a reader either.
                }
                return;
            }
        }
        let deadly = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT].contains(&signal);
        if deadly {
            self.signals += 1;
            self.forwarded = Some(number);
        }
        for rank in 0..self.ranks.len() {
            let Some(process) = self.ranks[rank].process.filter(|_| self.ranks[rank].is_running()) else {
                continue;
            };
            let member = self.ranks[rank].member.and_then(|member| self.connections[member].as_ref());
            // Signals with a meaning of the program's own go to the MPI program, not to the shell around it.
            let _ = match member.and_then(|member| member.process) {
                Some(member) if signal == Signal::USR1 || signal == Signal::USR2 => {
                    kill_process(member, signal)
                }
                _ => kill_process_group(process, signal),
            };
            if deadly {
                let _ = kill_process_group(process, Signal::CONT); // A stopped process does not end.
            }
        }
        if deadly && self.started < self.ranks.len() {
            self.end_by(number);
        }
    }

    // ---- time ----

    /// How long to sleep at most.
    fn timeout(&self) -> Option<Duration> {
        if self.started < self.ranks.len() && !self.is_ending() {
            return Some(Duration::ZERO);
        }
        let unfinished =
            self.streams.iter().flatten().filter_map(|stream| stream.deadline(&self.sinks[stream.sink]));
        let lost = self.ranks.iter().filter(|rank| rank.is_running()).filter_map(|rank| rank.lost);
        let lost = lost.map(|since| since + LOST_DELAY);
        let times = [self.deadline, self.term_at, self.kill_at];
        let next = times.into_iter().flatten().chain(unfinished).chain(lost).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    fn look_at_clock(&mut self) {
        let now = Instant::now();
        for stream in self.streams.iter_mut().flatten() {
            let sink = &mut self.sinks[stream.sink];
            if stream.deadline(sink).is_some_and(|deadline| deadline <= now) {
                stream.release(sink);
            }
        }
        for rank in 0..self.ranks.len() {
            let place = &self.ranks[rank];
            if place.is_running() && place.lost.is_some_and(|since| since + LOST_DELAY <= now) {
                let process = place.lost_process.map_or(0, |process| process.as_raw_nonzero().get());
                self.ranks[rank].lost = Some(now + Duration::from_secs(1 << 30)); // Told once.
                let name = self.name(rank);
                self.fail(1, &format!("{name}: its MPI process {process} ended without MPI_Finalize"));
            }
        }
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.deadline = Some(now + GRACE); // For the readers of our output, in the end.
            let seconds = self.job.timeout.unwrap_or_default().as_secs_f64();
            self.end(TIMED_OUT, &format!("the job was ended after its time limit of {seconds} s"));
        }
        let all_ended =
            self.started == self.ranks.len() && self.ranks.iter().all(|rank| rank.ended.is_some());
        if all_ended && self.children_left && !self.is_ending() {
            self.term_at = Some(now + LINGER);
        }
        if self.term_at.is_some_and(|time| time <= now) {
            self.term_at = None;
            self.kill_at = Some(now + GRACE);
            descendants::signal(Signal::TERM);
            descendants::signal(Signal::CONT); // A stopped process takes no other signal.
        }
        if self.kill_at.is_some_and(|time| time <= now) {
            self.kill_at = Some(now + KILL_ROUND);
            descendants::signal(Signal::KILL);
        }
    }

    // ---- the end ----

    fn is_over(&self) -> bool {
        !self.children_left
    }

    /// No descendant is left: passes on what they wrote and gives the exit code.
    fn finish(&mut self) -> u8 {
        for rank in 0..self.ranks.len() {
            self.drain(rank);
        }
        self.streams.clear();
        loop {
            self.flush();
            if !self.sinks.iter().any(Sink::is_waiting) {
                break;
            }
            let patience = match (self.forwarded, self.deadline) {
                (Some(_), _) => Some(GRACE),
                (None, deadline) => deadline.map(|time| time.saturating_duration_since(Instant::now())),
            };
            let mut events = Vec::with_capacity(8);
            let space = rustix::buffer::spare_capacity(&mut events);
            if epoll::wait(&self.epoll, space, patience.map(timespec).as_ref()) == Ok(0) {
                // A reader that takes nothing is not waited for any longer.
                self.code.get_or_insert(self.forwarded.map_or(TIMED_OUT, |signal| 128 + signal as u8));
                break;
            }
            let before = self.signals;
            for event in &events {
                match Source::decode(event.data) {
                    Source::Control => self.read_control(),
                    Source::Child => while self.children.take().is_some() {},
                    _ => {}
                }
            }
            if self.signals != before {
                // The user ends what only waits for its reader.
                self.code.get_or_insert(self.forwarded.map_or(1, |signal| 128 + signal as u8));
                break;
            }
        }
        self.code.unwrap_or(0)
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) }
}

/// A name that no other job has and nobody can guess in advance.
fn job_name() -> String {
    let mut bytes = [0; 8];
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    format!("parnass-{}-{:016x}", rustix::process::getpid().as_raw_nonzero(), u64::from_ne_bytes(bytes))
}
