//! The guardian: one loop over everything that can happen to a job.
//!
//! A job over several hosts has a guardian on each, in a tree: the one of `mpiexec` at the top, agents below. Each
//! starts the ranks of its own node (the top may have none) and the agents below it (`agents.rs`). The top
//! alone talks to the user and decides; an agent reports to the one above it, and obeys (`above.rs`).

mod above;
mod agents;
mod books;
mod calls;
mod ending;
mod exchange;
mod guests;
mod members;
mod recovery;
mod streams;
mod waiting;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::exit;
use std::time::{Duration, Instant};

use parnass_base::process::{SignalQueue, set_name};
use parnass_bootstrap::{Address, Caller};
use parnass_transport_shm::JobMemory;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use rustix::process::{Pid, Signal};

use crate::agent::frames::Report;
use crate::agent::plan::{Roster, Variables};
use crate::arguments::Job;
use crate::output::{Sink, Stream, same_file};
use crate::program::{NOT_EXECUTABLE, NOT_FOUND, Problem};
use crate::ranks::{Rank, Starter};
use crate::stats::Account;
use crate::{descendants, leftovers};
use above::Above;
use agents::{Agent, Feed};
use exchange::Exchanges;
use guests::Guests;
use waiting::Inquiry;

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
    Above,
    RankInput,
    Agent(usize),
    AgentErrors(usize),
    Input,
    /// The process that has started this world.
    Caller,
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
            Source::Above => (6, 0),
            Source::RankInput => (7, 0),
            Source::Agent(index) => (8, index),
            Source::AgentErrors(index) => (9, index),
            Source::Input => (10, 0),
            Source::Caller => (11, 0),
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
            5 => Source::Sink(index),
            6 => Source::Above,
            7 => Source::RankInput,
            8 => Source::Agent(index),
            9 => Source::AgentErrors(index),
            11 => Source::Caller,
            _ => Source::Input,
        }
    }
}

/// A process that has connected to ask for a rank.
#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    /// The other end of what the member watches; closed with this record, which ends the member.
    watched: Option<OwnedFd>,
    process: Option<Pid>,
    rank: Option<usize>,
    /// How many have joined as this rank before it, and in how many exchanges it has taken part.
    wave: u32,
    rounds: u32,
    finalized: bool,
    /// It has called MPI_Abort.
    aborted: bool,
    news: recovery::Courier,
}

/// What a guardian has to do, and for whom.
pub struct Work {
    pub job: Job,
    pub roster: Roster,
    /// The file of each part's program on this node; none where no rank runs here.
    pub programs: Vec<PathBuf>,
    /// The environment of each part's ranks.
    pub variables: Vec<Variables>,
    /// Whether the user's outputs are terminals.
    pub terminals: [bool; 2],
    /// The process that starts this world, where it is no user.
    pub caller: Option<Caller>,
}

/// Runs the job in a process that was forked for it, and ends that process.
///
/// `control` gives the signals that mpiexec has received, a byte each; its end means that mpiexec is gone.
/// `input` is what rank 0 reads, where it is not mpiexec's own standard input. `members` takes the numbers of processes that may leave files.
pub fn run(work: Work, control: OwnedFd, input: Option<OwnedFd>, members: OwnedFd) -> ! {
    set_name(c"parnass-guard"); // Who kills all processes named mpiexec shall not hit both.
    let code = match Guardian::new(work, control, input, None, members) {
        Ok(mut guardian) => guardian.run(),
        Err(error) => {
            eprintln!("mpiexec: the job cannot be started: {error}");
            1
        }
    };
    exit(i32::from(code))
}

/// As [`run`], for an agent: what there is to do comes from the guardian above.
pub fn run_agent(control: OwnedFd, members: OwnedFd) -> ! {
    set_name(c"parnass-agent");
    let code = match above::receive(&control) {
        Ok(None) => 0,
        Ok(Some((work, problem, above))) => match Guardian::new(work, control, None, Some(above), members) {
            Ok(mut guardian) => {
                guardian.problem = problem;
                guardian.run()
            }
            Err(error) => {
                eprintln!("the agent cannot work here: {error}");
                1
            }
        },
        Err(error) => {
            eprintln!("{error}");
            2
        }
    };
    exit(i32::from(code))
}

struct Guardian {
    job: Job,
    roster: Roster,
    variables: Vec<Variables>,
    terminals: [bool; 2],
    /// The guardian above this one; none at the top.
    above: Option<Above>,
    agents: Vec<Agent>,
    /// What rank 0 reads, where it is below.
    feed: Option<Feed>,
    exchanges: Exchanges,
    /// The dead, and what the living agree on.
    recovery: recovery::Recovery,
    /// The process that has started this world, where it is no user.
    caller: Option<Caller>,
    /// It knows of the ranks.
    introduced: bool,
    /// It has called MPI_Finalize.
    caller_finalized: bool,
    /// Worlds that ranks of this node have started.
    guests: Guests,
    /// Why this node can start nothing.
    problem: Option<Problem>,
    /// Every node of the job is ready.
    go: bool,
    /// All ranks of the job have ended.
    finishing: bool,
    /// A rank could not be started; the rest is not tried.
    stuck: bool,
    /// The user does not wait for output either.
    impatient: bool,
    starters_killed_at: Option<Instant>,
    pinged: Instant,
    /// When the agents were looked at last.
    looked: Instant,
    epoll: OwnedFd,
    control: Option<OwnedFd>,
    children: SignalQueue,
    listener: OwnedFd,
    address: Address,
    starter: Starter,
    /// All ranks of the job.
    ranks: Vec<Rank>,
    /// Those on this node, ascending.
    own: Vec<usize>,
    by_process: BTreeMap<i32, usize>,
    /// Whether ranks that are killed leave files.
    leaves_files: bool,
    /// Tells the process that started this one of them.
    members: OwnedFd,
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
    /// The one that was made last.
    memory_of_ranks: Option<OwnedFd>,
    /// What is being found out of the ranks, and what was found out before the user's signal was passed on, where all have slept.
    inquiry: Option<Inquiry>,
    at_signal: String,
    /// All such memories, and what is known of each rank, for `--stats`.
    kept: Vec<JobMemory>,
    accounts: BTreeMap<u32, Account>,
    /// The description of the job, as the processes that join are given it.
    description: Option<OwnedFd>,
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
        work: Work,
        control: OwnedFd,
        input: Option<OwnedFd>,
        mut above: Option<Above>,
        members: OwnedFd,
    ) -> io::Result<Guardian> {
        let Work { job, roster, programs, variables, terminals, caller } = work;
        // A group of its own: who kills mpiexec with its whole group shall not hit both. Writing to a terminal
        // from there must not stop it.
        rustix::process::setpgid(None, None)?;
        let stop = [Signal::TTOU.as_raw(), Signal::TTIN.as_raw()];
        drop(SignalQueue::new(&stop)?); // They stay blocked.
        let children = SignalQueue::new(&[Signal::CHILD.as_raw()])?;
        descendants::adopt_orphans();

        let address = Address::unique("parnass");
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        bind(&listener, &SocketAddrUnix::new_abstract_name(address.name.as_bytes())?)?;
        listen(&listener, 4096)?;

        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let readable = epoll::EventFlags::IN;
        epoll::add(&epoll, &control, Source::Control.encode(), readable)?;
        epoll::add(&epoll, &children, Source::Child.encode(), readable)?;
        epoll::add(&epoll, &listener, Source::Listener.encode(), readable)?;

        if let Some(caller) = caller.as_ref().filter(|caller| caller.watch) {
            epoll::add(&epoll, &caller.socket, Source::Caller.encode(), readable)?;
        }

        let leaves_files = leftovers::are_possible(&roster.description.tunables);
        let own = roster.own_ranks();
        let mut sinks = Vec::new();
        if let Some(above) = &above {
            above.watch(&epoll)?;
            sinks.extend(terminals.map(Sink::above));
        } else {
            let (output, error) = (rustix::stdio::stdout(), rustix::stdio::stderr());
            sinks.push(Sink::new(output, job.label)?);
            if !same_file(output, error) {
                sinks.push(Sink::new(error, job.label)?);
            }
        }
        let has_first = own.first() == Some(&0);
        let (mut rank_input, mut feed) = (None, None);
        match (&mut above, input) {
            (Some(above), _) if has_first => rank_input = Some(above.make_input(&epoll)?),
            (Some(_), _) => {}
            (None, input) => {
                let input = match input {
                    Some(input) => input,
                    None => rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?,
                };
                if has_first {
                    rank_input = Some(input)
                } else {
                    feed = Some(Feed::new(input))
                }
                rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
            }
        }
        let starter = Starter::new(&job, programs, &variables, &address, rank_input, own.len())?;

        let mut ranks = Vec::new();
        for (part, description) in job.parts.iter().enumerate() {
            ranks.extend((0..description.ranks).map(|_| Rank { part, ..Rank::default() }));
        }
        let now = Instant::now();
        Ok(Guardian {
            deadline: job.timeout.map(|timeout| now + timeout),
            job,
            go: above.is_none() && roster.below.is_empty(),
            roster,
            variables,
            terminals,
            above,
            agents: Vec::new(),
            feed,
            exchanges: Exchanges::default(),
            recovery: recovery::Recovery::default(),
            caller,
            introduced: false,
            caller_finalized: false,
            guests: Guests::default(),
            problem: None,
            finishing: false,
            stuck: false,
            impatient: false,
            starters_killed_at: None,
            pinged: now,
            looked: now,
            epoll,
            control: Some(control),
            children,
            listener,
            address,
            starter,
            ranks,
            own,
            by_process: BTreeMap::new(),
            leaves_files,
            members,
            started: 0,
            connections: Vec::new(),
            streams: Vec::new(),
            paused: vec![false; sinks.len()],
            polled: vec![false; sinks.len()],
            sinks,
            memories: BTreeMap::new(),
            memory_of_ranks: None,
            inquiry: None,
            at_signal: String::new(),
            kept: Vec::new(),
            accounts: BTreeMap::new(),
            description: None,
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
        self.begin();
        let mut events = Vec::with_capacity(64);
        loop {
            self.start_some();
            self.flush_channels();
            self.flush_news();
            let timeout = self.timeout().map(timespec);
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => {
                    self.say(&format!("the poll set failed: {error}"));
                    self.kill_all();
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
            Source::Above => self.read_above(),
            Source::RankInput => self.feed_rank(),
            Source::Agent(index) => self.read_agent(index),
            Source::AgentErrors(index) => self.read_agent_errors(index),
            Source::Input => self.read_input(),
            Source::Caller => self.read_caller(),
        }
    }

    // ---- starting ----

    /// Whether every rank of this node has been started, or is not to be.
    fn all_started(&self) -> bool {
        self.go && self.started == self.own.len()
    }

    fn may_start(&self) -> bool {
        self.go && !self.stuck && self.started < self.own.len() && !self.is_ending()
    }

    /// Starts the agents below, or says why this node can do nothing.
    fn begin(&mut self) {
        if let Some(problem) = self.problem.take() {
            return self.fail(problem.exit_code, &problem.message);
        }
        self.start_agents();
        self.ready_if_all_are();
    }

    fn start_some(&mut self) {
        for _ in 0..STARTED_AT_ONCE {
            if !self.may_start() {
                return;
            }
            let rank = self.own[self.started];
            let part = self.ranks[rank].part;
            match self.starter.start(&self.job, part, rank as u32, self.started) {
                Ok((process, pipes)) => {
                    self.started += 1;
                    self.ranks[rank].process = Some(process);
                    self.by_process.insert(process.as_raw_nonzero().get(), rank);
                    let process = process.as_raw_nonzero().get();
                    self.report(Report::Started { rank: rank as u32, process });
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
                    self.stuck = true;
                    self.fail(code, &format!("rank {rank} ({program}) cannot be started: {error}{advice}"));
                }
            }
        }
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) }
}
