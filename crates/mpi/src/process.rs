//! A process of an MPI job, as a value: everything that an MPI program keeps between two calls hangs here.

use crate::activity::Activities;
use crate::coll::{Call, Collective};
use crate::comm::{Communicator, ContextIds};
use crate::datatype::PredefinedDatatypes;
use crate::error::{Error, Result};
use crate::observe::Changeable;
use crate::progress::Waiters;
use crate::pt2pt::alone::Lone;
use crate::pt2pt::buffered::Buffers;
use crate::pt2pt::described::DescribedBuffers;
use crate::pt2pt::protocol::Table;
use crate::pt2pt::staging::StagingPool;
use crate::recovery::Recovery;
use crate::request::Request;
use crate::request::slots::Slots;
use crate::tuning::Tuning;
use parnass_portals::{Interface, PortalError, ProcessId};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The thread levels of the standard (MPI 5.0, section 11.6), in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThreadLevel {
    Single,
    Funneled,
    Serialized,
    Multiple,
}

impl ThreadLevel {
    /// From the lowest to the highest.
    pub const ALL: [ThreadLevel; 4] =
        [ThreadLevel::Single, ThreadLevel::Funneled, ThreadLevel::Serialized, ThreadLevel::Multiple];

    /// Its name in the standard.
    pub fn name(self) -> &'static str {
        match self {
            ThreadLevel::Single => "MPI_THREAD_SINGLE",
            ThreadLevel::Funneled => "MPI_THREAD_FUNNELED",
            ThreadLevel::Serialized => "MPI_THREAD_SERIALIZED",
            ThreadLevel::Multiple => "MPI_THREAD_MULTIPLE",
        }
    }
}

/// What connects a process with whoever started it.
pub trait Launcher: Send + Sync {
    /// Ends the whole job with this exit code.
    fn abort(&self, code: i32, message: &str) -> !;
    /// This process has finalized: its end is no failure from now on.
    fn finalized(&self);
}

/// What a process is told about itself when it is made.
pub struct Settings {
    /// Number of the application context of `mpiexec` that this process belongs to (MPI_APPNUM).
    pub app_number: i32,
    /// How many processes the job could have (MPI_UNIVERSE_SIZE).
    pub universe_size: i32,
    pub host_name: String,
    pub thread_level: ThreadLevel,
    pub tuning: Tuning,
    pub collectives: crate::coll::Settings,
    pub launcher: Box<dyn Launcher>,
    /// `None` where there can be no other worlds.
    pub connector: Option<Arc<dyn Connector>>,
    /// `None` where nobody tells of the death of others.
    pub recovery: Option<Arc<dyn Recovery>>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Settings")
            .field("app_number", &self.app_number)
            .field("universe_size", &self.universe_size)
            .field("host_name", &self.host_name)
            .field("thread_level", &self.thread_level)
            .field("tuning", &self.tuning)
            .field("collectives", &self.collectives)
            .finish_non_exhaustive()
    }
}

/// What a process is told of another one, or tells of itself: its [`Card`] as bytes. The first [`NAME_BYTES`] are its name:
/// that of its world, and its rank there.
pub type CardBytes = Vec<u8>;

/// Bytes of the name of a process.
pub const NAME_BYTES: usize = WORLD_BYTES + 4;
/// Bytes of the name of a world.
pub const WORLD_BYTES: usize = 16;

/// What to start in a new world.
#[derive(Clone, Debug)]
pub struct Program {
    pub command: Vec<u8>,
    pub arguments: Vec<Vec<u8>>,
    pub processes: u32,
    pub hints: crate::Info,
}

/// Two processes of worlds that know nothing of each other, on their way to a communicator.
pub trait Conversation: Send {
    /// Known to the two sides alone.
    fn key(&self) -> [u8; 32];
    /// Tells the other side something, and hears what it tells. May take as long as the other side does.
    ///
    /// # Errors
    /// A sentence for a person: the other side is gone.
    fn swap(&mut self, own: &[u8]) -> std::result::Result<Vec<u8>, String>;
}

/// The way to processes of other worlds. The texts of errors are sentences for a person. What may take long is called by a
/// thread of its own.
pub trait Connector: Send + Sync {
    /// Makes sure that processes of other worlds can reach this one; what they must know for that.
    ///
    /// # Errors
    /// There is no network.
    fn card(&self, nic: &Interface) -> std::result::Result<CardBytes, String>;
    /// Processes of other worlds are about to be introduced (`true`), or were.
    fn expect(&self, more: bool);
    /// Makes the processes with these cards peers. `key` is known to them and to this process. The number of the first; the
    /// others follow.
    ///
    /// # Errors
    /// A card is not understood.
    fn admit(&self, cards: &[CardBytes], key: &[u8; 32]) -> std::result::Result<u32, String>;
    /// Nothing is shared with this process any more.
    fn let_go(&self, process: u32);
    /// Bytes that nobody can guess.
    fn random(&self) -> [u8; 32];
    /// Starts a world, whose processes are told `parents`; the cards of its processes, by rank.
    ///
    /// # Errors
    /// Why it cannot be started.
    fn spawn(&self, programs: &[Program], parents: &[u8]) -> std::result::Result<Vec<CardBytes>, String>;
    /// The name of a new port.
    ///
    /// # Errors
    /// There is no network.
    fn open_port(&self) -> std::result::Result<String, String>;
    /// # Errors
    /// There is no such port of this process.
    fn close_port(&self, port: &str) -> std::result::Result<(), String>;
    /// Waits for somebody who calls at a port of this process.
    ///
    /// # Errors
    /// There is no such port of this process.
    fn accept(&self, port: &str) -> std::result::Result<Box<dyn Conversation>, String>;
    /// Calls at a port, and waits for an answer for as long as `patience`.
    ///
    /// # Errors
    /// It is no name of a port, or nobody is there.
    fn call(&self, port: &str, patience: Duration) -> std::result::Result<Box<dyn Conversation>, String>;
    /// Over a connected socket of the program's, whose other end another process of MPI holds.
    ///
    /// # Errors
    /// It is none, or nobody speaks there.
    fn join(&self, descriptor: i32) -> std::result::Result<Box<dyn Conversation>, String>;
    /// Makes the name of a port known under the name of a service.
    ///
    /// # Errors
    /// The service is published already, or cannot be.
    fn publish(&self, service: &[u8], port: &[u8]) -> std::result::Result<(), String>;
    /// # Errors
    /// This process has not published that.
    fn unpublish(&self, service: &[u8], port: &[u8]) -> std::result::Result<(), String>;
    /// The port of a service; `None`: nobody has published it.
    ///
    /// # Errors
    /// It cannot be found out.
    fn look_up(&self, service: &[u8]) -> std::result::Result<Option<Vec<u8>>, String>;
    /// This process is finalized: its end is no failure from now on.
    fn finalized(&self);
}

/// A launcher for processes that have none: abort panics, finalize is told to nobody.
#[derive(Clone, Copy, Debug)]
pub struct NoLauncher;

impl Launcher for NoLauncher {
    fn abort(&self, code: i32, message: &str) -> ! {
        panic!("abort with code {code}: {message}")
    }

    fn finalized(&self) {}
}

/// How many requests may be freed while active before the complete ones among them are let go.
const ORPHANS_BETWEEN_LOOKS: usize = 64;

/// A process of an MPI job.
pub struct Process {
    nic: Interface,
    settings: Settings,
    started: Instant,
    context_ids: Arc<ContextIds>,
    datatypes: PredefinedDatatypes,
    protocols: Table,
    pub(crate) changeable: Changeable,
    pub(crate) slots: Slots,
    pub(crate) activities: Activities,
    pub(crate) waiters: Waiters,
    /// How many of its threads wait for a message to be found (MPI_Probe, MPI_Mprobe).
    pub(crate) probers: Waiters,
    pub(crate) lone: Lone,
    pub(crate) staging: Arc<StagingPool>,
    pub(crate) described: Arc<DescribedBuffers>,
    pub(crate) buffers: Buffers,
    pub(crate) pace: parnass_base::Pace,
    pub(crate) files: crate::io::Files,
    pub(crate) worlds: crate::worlds::Worlds,
    pub(crate) faults: crate::faults::Faults,
    /// Requests that the user has freed before they were complete.
    orphans: Mutex<Vec<Arc<Request>>>,
    any_orphans: AtomicBool,
    thread_level: AtomicI32,
    finalized: AtomicBool,
    world: OnceLock<Arc<Communicator>>,
    self_communicator: OnceLock<Arc<Communicator>>,
}

impl fmt::Debug for Process {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Process")
            .field("rank", &self.rank())
            .field("size", &self.size())
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Process {
    /// A process on its NIC, with MPI_COMM_WORLD and MPI_COMM_SELF.
    pub fn new(nic: Interface, settings: Settings) -> Arc<Process> {
        let protocols = Table::new(settings.tuning.direct_threshold);
        let changeable = Changeable::new(protocols.rows()[1].limit, settings.collectives.overrides.clone());
        let level = settings.thread_level;
        let context_ids = Arc::new(ContextIds::in_world(nic.me(), nic.size()));
        let described = Arc::new(DescribedBuffers::default());
        nic.set_descriptions(described.clone());
        nic.set_updater(crate::rma::carry_out);
        let process = Arc::new(Process {
            nic,
            settings,
            started: Instant::now(),
            context_ids,
            datatypes: PredefinedDatatypes::default(),
            protocols,
            changeable,
            slots: Slots::new(),
            activities: Activities::default(),
            waiters: Waiters::new(0),
            probers: Waiters::new(0),
            lone: Lone::default(),
            staging: Arc::new(StagingPool::default()),
            described,
            buffers: Buffers::default(),
            pace: parnass_base::Pace::default(),
            files: crate::io::Files::default(),
            worlds: crate::worlds::Worlds::default(),
            faults: crate::faults::Faults::default(),
            orphans: Mutex::new(Vec::new()),
            any_orphans: AtomicBool::new(false),
            thread_level: AtomicI32::new(0),
            finalized: AtomicBool::new(false),
            world: OnceLock::new(),
            self_communicator: OnceLock::new(),
        });
        process.set_thread_level(level);
        let ids = &process.context_ids;
        let _ = process.world.set(Communicator::world(process.me(), process.size(), ids));
        let _ = process.self_communicator.set(Communicator::self_only(process.me(), ids));
        ids.belong_to(&process);
        if process.survives() {
            process.listen();
        }
        process
    }

    /// Its virtual NIC.
    #[inline]
    pub(crate) fn nic(&self) -> &Interface {
        &self.nic
    }

    /// Its number in the job.
    #[inline]
    pub fn me(&self) -> ProcessId {
        self.nic.me()
    }

    /// Its rank in MPI_COMM_WORLD.
    pub fn rank(&self) -> u32 {
        self.nic.me().0
    }

    /// How many processes MPI_COMM_WORLD has.
    pub fn size(&self) -> u32 {
        self.nic.size()
    }

    /// MPI_COMM_WORLD.
    pub fn world(&self) -> &Arc<Communicator> {
        self.world.get().expect("made with the process")
    }

    /// MPI_COMM_SELF.
    pub fn self_communicator(&self) -> &Arc<Communicator> {
        self.self_communicator.get().expect("made with the process")
    }

    /// The contexts that this process may give out.
    pub fn context_ids(&self) -> &Arc<ContextIds> {
        &self.context_ids
    }

    /// The predefined datatypes.
    #[inline]
    pub fn datatypes(&self) -> &PredefinedDatatypes {
        &self.datatypes
    }

    /// MPI_APPNUM.
    pub fn app_number(&self) -> i32 {
        self.settings.app_number
    }

    /// MPI_UNIVERSE_SIZE.
    pub fn universe_size(&self) -> i32 {
        self.settings.universe_size
    }

    /// Name of the machine (MPI_Get_processor_name).
    pub fn host_name(&self) -> &str {
        &self.settings.host_name
    }

    /// The moment from which MPI_Wtime counts.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Seconds since the process was made (MPI_Wtime).
    pub fn wtime_seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// What decides about the algorithms of collectives on a communicator: the same at all its members.
    pub(crate) fn collectives(&self, communicator: &Communicator) -> &crate::coll::Settings {
        if communicator.is_mixed() { &self.worlds.collectives } else { &self.settings.collectives }
    }

    /// The way to processes of other worlds, if there is one.
    pub(crate) fn connector(&self) -> Option<&Arc<dyn Connector>> {
        self.settings.connector.as_ref()
    }

    /// The way to the launcher for what concerns the death of processes, if there is one.
    pub(crate) fn recovery(&self) -> Option<&Arc<dyn Recovery>> {
        self.settings.recovery.as_ref()
    }

    /// How messages travel; for `parnass info`.
    pub fn protocols(&self) -> &Table {
        &self.protocols
    }

    /// The level of thread support that is provided.
    pub fn thread_level(&self) -> ThreadLevel {
        match self.thread_level.load(Ordering::Relaxed) {
            0 => ThreadLevel::Single,
            1 => ThreadLevel::Funneled,
            2 => ThreadLevel::Serialized,
            _ => ThreadLevel::Multiple,
        }
    }

    /// Sets the level of thread support. To be called while only one thread is inside MPI.
    pub fn set_thread_level(&self, level: ThreadLevel) {
        self.thread_level.store(level as i32, Ordering::Relaxed);
        if level == ThreadLevel::Multiple {
            self.admit_thread();
        }
    }

    /// A thread of the library itself is about to call beside those of the program. To be called while only one thread is inside
    /// MPI, unless several may be.
    pub(crate) fn admit_thread(&self) {
        self.nic.several_threads();
        self.slots.set_concurrent();
    }

    /// Keeps a request that the user has freed until it is complete (MPI 5.0, section 3.7.3).
    pub(crate) fn adopt(&self, request: Arc<Request>) {
        let count = {
            let mut orphans = lock(&self.orphans);
            orphans.push(request);
            orphans.len()
        };
        self.any_orphans.store(true, Ordering::Release);
        // A program that frees every request must not gather them until the end.
        if count.is_multiple_of(ORPHANS_BETWEEN_LOOKS) {
            self.progress();
            self.release_orphans();
        }
    }

    /// Lets go of the freed requests that are complete; whether none is left.
    pub(crate) fn release_orphans(&self) -> bool {
        if !self.any_orphans.load(Ordering::Acquire) {
            return true;
        }
        // Completion may unpack data; no lock is held meanwhile.
        let mut active = std::mem::take(&mut *lock(&self.orphans));
        active.retain(|request| !request.is_complete(self));
        let mut orphans = lock(&self.orphans);
        orphans.append(&mut active);
        self.any_orphans.store(!orphans.is_empty(), Ordering::Release);
        orphans.is_empty()
    }

    /// Whether a request that the user has freed is still active on this communicator.
    pub(crate) fn has_orphans_on(&self, communicator: &Communicator) -> bool {
        let on_it = |request: &Arc<Request>| {
            request.communicator().is_some_and(|own| std::ptr::eq(Arc::as_ptr(own), communicator))
        };
        !self.release_orphans() && lock(&self.orphans).iter().any(on_it)
    }

    /// Whether [`Process::finalize`] has been called.
    pub fn is_finalized(&self) -> bool {
        self.finalized.load(Ordering::Acquire)
    }

    /// Ends the use of MPI (MPI 5.0, section 11.2.2): completes what the user has started and freed, and returns
    /// when no process of the job needs the memory of this one any more. The attributes of MPI_COMM_SELF must
    /// have been deleted before.
    pub fn finalize(self: &Arc<Self>) -> Result<()> {
        self.wait_until(None, || self.release_orphans().then_some(()));
        self.buffers.flush_all(self);
        self.wait_until(None, || (self.activities.is_empty()).then_some(()));
        if self.survives() {
            self.meet_survivors()?;
        } else {
            self.synchronise()?;
        }
        self.observer().tell();
        // A program may have left a window open.
        self.nic.set_wheel(None);
        self.nic.close();
        self.finalized.store(true, Ordering::Release);
        if let Some(connector) = self.connector() {
            connector.finalized();
        }
        self.settings.launcher.finalized();
        Ok(())
    }

    /// A barrier among all processes of the job, by messages: of several nodes only the speakers need connections.
    fn synchronise(&self) -> Result<()> {
        self.execute(&Call::new(self.world(), Collective::Barrier))
    }

    /// Ends the job (MPI_Abort). Does not return.
    pub fn abort(&self, code: i32, message: &str) -> ! {
        self.settings.launcher.abort(code, message)
    }
}

/// A run of bytes of the user.
#[derive(Clone, Copy, Debug)]
pub struct UserBytes {
    pub address: parnass_base::UserAddress,
    pub length: u64,
}

impl UserBytes {
    /// No bytes.
    pub const EMPTY: UserBytes = UserBytes { address: parnass_base::UserAddress::NULL, length: 0 };

    /// Whether no byte is in both.
    pub(crate) fn is_apart_from(&self, other: &UserBytes) -> bool {
        let (first, second) = (self.address.as_ptr().addr() as u64, other.address.as_ptr().addr() as u64);
        first.saturating_add(self.length) <= second || second.saturating_add(other.length) <= first
    }
}

/// An error of the NIC, in the standard's words.
#[cold]
pub(crate) fn portal_error(error: PortalError) -> Error {
    match error {
        PortalError::NoSuchProcess(number, size) => Error::new(
            crate::constants::MPI_ERR_INTERN,
            format!(
                "process {number} does not exist: the job has the processes 0 to {}",
                size.saturating_sub(1)
            ),
        ),
        PortalError::Dead(number) => crate::faults::Fault::Failed(ProcessId(number)).error(),
        PortalError::OutOfMemory(what) => Error::new(
            crate::constants::MPI_ERR_NO_MEM,
            format!(
                "the job's shared memory is full: {what}; receive more before sending more, or send less at once"
            ),
        ),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
