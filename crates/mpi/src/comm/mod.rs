//! Communicators: a group of processes and a message space of their own (MPI 5.0, chapter 7).

mod context;
mod create;
pub(crate) mod exchange;
mod inter;
mod meet;
mod recovery;
mod spawn;
mod split;
pub mod topology;

pub use context::{Allocated, Context, ContextIds, Plane};
pub use meet::Begin;
pub use spawn::Spawned;

use crate::attribute::AttributeStore;
use crate::constants::{MPI_ERR_ARG, MPI_ERR_COMM, MPI_MAX_OBJECT_NAME, MPI_UNDEFINED};
use crate::errhandler::{Errhandler, ErrhandlerSlot};
use crate::group::{Comparison, Group};
use crate::info::Info;
use crate::process::Process;
use crate::pt2pt::partitioned::Partitioned;
use crate::{Error, Result};
use parnass_portals::ProcessId;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use topology::Topology;

/// What sort of communicator it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// MPI_COMM_WORLD.
    World,
    /// MPI_COMM_SELF.
    SelfOnly,
    /// Made by the library for its own use; no program knows it.
    Internal,
    /// Made by the program.
    Ordinary,
}

/// A communicator. Lives in an [`Arc`]: the handle of the program holds one, and so does every operation that is
/// under way, so that a communicator that is freed lives on until its last operation is done (MPI 5.0, section 7.4.3).
pub struct Communicator {
    /// [`UNKNOWN_CONTEXT`] while a nonblocking creation is under way, and when the communicator has been revoked.
    context: AtomicU32,
    /// The same, whether it has been revoked or not.
    own_context: AtomicU32,
    next_agreement: AtomicU32,
    /// How many of its dead members the program has acknowledged, in the order in which this process has heard of them.
    acknowledged: AtomicU32,
    role: Role,
    rank: i32,
    group: Group,
    /// The other side, for an intercommunicator.
    remote: Option<Remote>,
    /// Whether some of its processes are of another world than this one.
    mixed: bool,
    next_collective: AtomicU32,
    next_persistent: AtomicU32,
    collectives: crate::coll::Cache,
    partitioned: Partitioned,
    board: crate::coll::BoardSlot,
    attributes: AttributeStore,
    errhandler: ErrhandlerSlot,
    name: Mutex<Box<[u8]>>,
    info: Mutex<Info>,
    topology: OnceLock<Arc<Topology>>,
    ids: Arc<ContextIds>,
}

/// What an intercommunicator has beyond an intracommunicator.
struct Remote {
    group: Group,
    /// An intracommunicator of the local group, for the local steps of collectives.
    local: Arc<Communicator>,
}

/// No context has this value: the highest counter is never given out.
pub(crate) const UNKNOWN_CONTEXT: u32 = u32::MAX - 1;

/// Tags on the collective plane from here on are those of persistent collectives; below are the sequence numbers of the others.
const FIRST_PERSISTENT_TAG: u32 = 1 << 30;

/// Tags on the collective plane from here on are those of partitioned messages.
pub(crate) const FIRST_PARTITIONED_TAG: u32 = 3 << 29;

/// Tags on the collective plane from here on are used with the tags of the program (MPI_Comm_create_group,
/// MPI_Intercomm_create).
pub const FIRST_USER_TAG_ON_COLLECTIVE_PLANE: u32 = 1 << 31;

impl Communicator {
    /// MPI_COMM_WORLD of a job of `size` processes, as seen by process `me`.
    pub fn world(me: ProcessId, size: u32, ids: &Arc<ContextIds>) -> Arc<Communicator> {
        let world = Communicator::new(Some(Context::WORLD), Role::World, me, Group::world(size), None, ids);
        world.rename(b"MPI_COMM_WORLD");
        let world = Arc::new(world);
        ids.enter(Context::WORLD, Arc::downgrade(&world));
        world
    }

    /// MPI_COMM_SELF of process `me`.
    pub fn self_only(me: ProcessId, ids: &Arc<ContextIds>) -> Arc<Communicator> {
        let own =
            Communicator::new(Some(Context::of_self(me)), Role::SelfOnly, me, Group::single(me), None, ids);
        own.rename(b"MPI_COMM_SELF");
        let own = Arc::new(own);
        ids.enter(Context::of_self(me), Arc::downgrade(&own));
        own
    }

    fn new(
        context: Option<Context>,
        role: Role,
        me: ProcessId,
        group: Group,
        remote: Option<Remote>,
        ids: &Arc<ContextIds>,
    ) -> Communicator {
        Communicator {
            context: AtomicU32::new(context.map_or(UNKNOWN_CONTEXT, Context::to_wire)),
            own_context: AtomicU32::new(context.map_or(UNKNOWN_CONTEXT, Context::to_wire)),
            next_agreement: AtomicU32::new(0),
            acknowledged: AtomicU32::new(0),
            role,
            rank: group.rank_of(me).unwrap_or(MPI_UNDEFINED),
            mixed: ids.is_mixed(&group),
            group,
            remote,
            next_collective: AtomicU32::new(0),
            next_persistent: AtomicU32::new(0),
            collectives: crate::coll::Cache::default(),
            partitioned: Partitioned::default(),
            board: crate::coll::BoardSlot::new(),
            attributes: AttributeStore::new(),
            errhandler: ErrhandlerSlot::new(Errhandler::Fatal),
            name: Mutex::new(Box::default()),
            info: Mutex::new(Info::new()),
            topology: OnceLock::new(),
            ids: ids.clone(),
        }
    }

    /// The high half of the match bits on a plane.
    #[inline]
    pub fn context(&self, plane: Plane) -> u32 {
        // Pairs with the store in `set_context`: a program sees the communicator only after that has happened.
        self.context.load(Ordering::Relaxed) | plane as u32
    }

    /// For what goes nowhere: an error if this process knows that it was revoked.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.context.load(Ordering::Relaxed) != UNKNOWN_CONTEXT {
            return Ok(());
        }
        Err(crate::faults::Fault::Revoked.error())
    }

    fn set_context(self: &Arc<Self>, context: Context) {
        self.own_context.store(context.to_wire(), Ordering::Relaxed);
        self.ids.enter(context, Arc::downgrade(self));
        self.ids.meet(&self.group);
        if let Some(remote) = &self.remote {
            self.ids.meet(&remote.group);
        }
        self.context.store(context.to_wire(), Ordering::Relaxed);
        if let Some(process) = self.ids.concerned() {
            process.look_at_new(self);
        }
    }

    /// The rank of this process in the local group.
    #[inline]
    pub fn rank(&self) -> i32 {
        self.rank
    }

    /// The size of the local group.
    #[inline]
    pub fn size(&self) -> i32 {
        self.group.size()
    }

    /// The size of the group that messages go to: the remote group of an intercommunicator, else the group.
    #[inline]
    pub fn remote_size(&self) -> i32 {
        self.peers().size()
    }

    /// Whether it is an intercommunicator.
    #[inline]
    pub fn is_inter(&self) -> bool {
        self.remote.is_some()
    }

    /// Whether processes of several worlds are in it: those that MPI_Comm_spawn has started, or that were connected with.
    #[inline]
    pub fn is_mixed(&self) -> bool {
        self.mixed
    }

    /// The process that a rank as used in sends and receives names: in the remote group of an intercommunicator.
    ///
    /// # Panics
    /// When `rank` is negative or not below [`Communicator::remote_size`].
    #[inline]
    pub fn peer(&self, rank: i32) -> ProcessId {
        self.peers().process(rank)
    }

    /// The rank of a process from which a message came; MPI_UNDEFINED if it is none of the peers.
    #[inline]
    pub fn rank_of(&self, process: ProcessId) -> i32 {
        self.peers().rank_of(process).unwrap_or(MPI_UNDEFINED)
    }

    /// Whether the rank of each peer is its number.
    #[inline]
    pub fn rank_is_number(&self) -> bool {
        self.peers().rank_is_number()
    }

    /// The group of those that messages go to and come from.
    #[inline]
    pub fn peers(&self) -> &Group {
        self.remote.as_ref().map_or(&self.group, |remote| &remote.group)
    }

    /// MPI_Comm_group: the local group.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// MPI_Comm_remote_group; an error for an intracommunicator.
    pub fn remote_group(&self) -> Result<&Group> {
        self.remote.as_ref().map(|remote| &remote.group).ok_or_else(|| self.not_inter())
    }

    /// The hidden intracommunicator of the local group of an intercommunicator.
    pub fn local_communicator(&self) -> Option<&Arc<Communicator>> {
        self.remote.as_ref().map(|remote| &remote.local)
    }

    fn not_inter(&self) -> Error {
        Error::new(
            MPI_ERR_COMM,
            format!("{} is an intracommunicator; an intercommunicator is needed here", self.describe()),
        )
    }

    /// The tag of the next collective operation, on the collective plane.
    pub fn next_collective_tag(&self) -> u32 {
        self.next_collective.fetch_add(1, Ordering::Relaxed) % FIRST_PERSISTENT_TAG
    }

    /// The tag of the next persistent collective operation, on the collective plane: no other one has it until half a
    /// milliard more were made.
    pub(crate) fn next_persistent_tag(&self) -> u32 {
        let number = self.next_persistent.fetch_add(1, Ordering::Relaxed);
        FIRST_PERSISTENT_TAG + number % (FIRST_PARTITIONED_TAG - FIRST_PERSISTENT_TAG)
    }

    /// What the executor of collectives keeps here from call to call.
    pub(crate) fn collective_cache(&self) -> &crate::coll::Cache {
        &self.collectives
    }

    /// What its partitioned operations know of each other.
    pub(crate) fn partitioned(&self) -> &Partitioned {
        &self.partitioned
    }

    /// What its blocking collectives share with the other members.
    pub(crate) fn board(&self) -> &crate::coll::BoardSlot {
        &self.board
    }

    /// What sort it is.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Whether it is MPI_COMM_WORLD or MPI_COMM_SELF.
    pub fn is_predefined(&self) -> bool {
        matches!(self.role, Role::World | Role::SelfOnly)
    }

    /// MPI_Comm_compare.
    pub fn compare(&self, other: &Communicator) -> Comparison {
        if std::ptr::eq(self, other) {
            return Comparison::Identical;
        }
        if self.is_inter() != other.is_inter() {
            return Comparison::Unequal;
        }
        let local = self.group.compare(&other.group);
        let remote = self.peers().compare(other.peers());
        match (local, remote) {
            (Comparison::Unequal, _) | (_, Comparison::Unequal) => Comparison::Unequal,
            (Comparison::Similar, _) | (_, Comparison::Similar) => Comparison::Similar,
            _ => Comparison::Congruent,
        }
    }

    /// Its attributes.
    pub fn attributes(&self) -> &AttributeStore {
        &self.attributes
    }

    /// Its error handler.
    pub fn errhandler(&self) -> Errhandler {
        self.errhandler.get()
    }

    /// MPI_Comm_set_errhandler.
    pub fn set_errhandler(&self, errhandler: Errhandler) {
        self.errhandler.set(errhandler);
    }

    /// MPI_Comm_get_name; empty if none was set.
    pub fn name(&self) -> Box<[u8]> {
        self.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// MPI_Comm_set_name: what is longer than MPI_MAX_OBJECT_NAME - 1 bytes is an error.
    pub fn set_name(&self, name: &[u8]) -> Result<()> {
        let longest = MPI_MAX_OBJECT_NAME as usize - 1;
        if name.len() > longest {
            return Err(Error::new(
                MPI_ERR_ARG,
                format!("the name has {} bytes; at most {longest} are allowed", name.len()),
            ));
        }
        self.rename(name);
        Ok(())
    }

    fn rename(&self, name: &[u8]) {
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = name.into();
    }

    /// How messages to people call it: its name, or what it is.
    pub fn describe(&self) -> String {
        let name = self.name();
        if name.is_empty() {
            let sort = if self.is_inter() { "an intercommunicator" } else { "a communicator" };
            format!("{sort} of {} processes", self.size())
        } else {
            name.escape_ascii().to_string()
        }
    }

    /// MPI_Comm_get_info: the hints in use.
    pub fn info(&self) -> Info {
        self.info.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// MPI_Comm_set_info: takes the hints that are known over; others are ignored, as the standard asks.
    pub fn set_info(&self, hints: &Info) {
        let mut info = self.info.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, value) in hints.iter() {
            if KNOWN_HINTS.contains(&key) && (value == b"true" || value == b"false") {
                info.set(key, value).expect("a known hint has a valid key and a short value");
            }
        }
    }

    /// For MPI_Comm_disconnect: completes what the program has started here and freed. (What it has not freed it must
    /// have completed itself.)
    pub fn quiesce(&self, process: &Process) {
        process.wait_until(None, || (!process.has_orphans_on(self)).then_some(()));
    }

    /// For MPI_Comm_disconnect, after [`Communicator::quiesce`] on the last use of it: returns when all processes of both
    /// sides have come so far, and lets go of those of other worlds with which nothing else is shared.
    pub fn part(self: &Arc<Self>, process: &Process) -> Result<()> {
        if !self.mixed {
            return Ok(());
        }
        process.collective(&crate::coll::Call::new(self, crate::coll::Collective::Barrier))?;
        let local = self.local_communicator();
        let all = self.group.processes().chain(self.peers().processes().filter(|_| self.is_inter()));
        for other in all.filter(|other| other.0 >= process.size()) {
            let in_this = 1 + u32::from(local.is_some_and(|local| local.group.contains(other)));
            if self.ids.meetings(other) == in_this {
                process.let_go(other);
            }
        }
        Ok(())
    }

    /// Whether MPI_Comm_free and MPI_Comm_disconnect may be called on it.
    pub fn check_freeable(&self) -> Result<()> {
        if self.is_predefined() {
            return Err(Error::new(
                MPI_ERR_COMM,
                format!("{} is predefined and cannot be freed; MPI_Finalize does that", self.describe()),
            ));
        }
        Ok(())
    }
}

/// The assertions of MPI 5.0, section 7.4.4.
const KNOWN_HINTS: [&[u8]; 6] = [
    b"mpi_assert_no_any_tag",
    b"mpi_assert_no_any_source",
    b"mpi_assert_exact_length",
    b"mpi_assert_allow_overtaking",
    b"mpi_assert_strict_start_ordering",
    b"mpi_assert_strict_persistent_collective_ordering",
];

impl Drop for Communicator {
    fn drop(&mut self) {
        let bits = *self.own_context.get_mut();
        if bits != UNKNOWN_CONTEXT {
            self.ids.leave(Context::from_wire(bits));
            if let Some(process) = self.ids.concerned() {
                process.forget_faults(bits);
            }
            self.ids.part(&self.group);
            if let Some(remote) = &self.remote {
                self.ids.part(&remote.group);
            }
        }
    }
}

impl std::fmt::Debug for Communicator {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} (context {:#x})", self.describe(), self.context(Plane::PointToPoint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_predefined_communicators() {
        let me = ProcessId(2);
        let ids = Arc::new(ContextIds::new(me));
        let world = Communicator::world(me, 4, &ids);
        let own = Communicator::self_only(me, &ids);
        assert_eq!((world.rank(), world.size(), world.remote_size()), (2, 4, 4));
        assert_eq!((own.rank(), own.size()), (0, 1));
        assert_eq!(&*world.name(), b"MPI_COMM_WORLD");
        assert_eq!(world.peer(3), ProcessId(3));
        assert_eq!(own.rank_of(me), 0);
        assert_eq!(own.rank_of(ProcessId(0)), MPI_UNDEFINED);
        assert_eq!(world.compare(&own), Comparison::Unequal);
        assert_eq!(world.compare(&world), Comparison::Identical);
        assert_ne!(world.context(Plane::PointToPoint), own.context(Plane::PointToPoint));
        assert!(world.check_freeable().unwrap_err().message().contains("MPI_COMM_WORLD is predefined"));
        assert_eq!(world.next_collective_tag() + 1, world.next_collective_tag());
    }

    #[test]
    fn hints_that_are_not_known_are_ignored() {
        let me = ProcessId(0);
        let world = Communicator::world(me, 1, &Arc::new(ContextIds::new(me)));
        let mut hints = Info::new();
        hints.set(b"mpi_assert_no_any_tag", b"true").unwrap();
        hints.set(b"mpi_assert_exact_length", b"perhaps").unwrap();
        hints.set(b"colour", b"green").unwrap();
        world.set_info(&hints);
        assert_eq!(world.info().iter().collect::<Vec<_>>(), [(&b"mpi_assert_no_any_tag"[..], &b"true"[..])]);
    }
}
