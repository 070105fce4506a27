//! Context ids: what keeps the messages of one communicator apart from those of all others.
//!
//! ```text
//!  31             16 15                1   0
//! +-----------------+------------------+-------+
//! | leader process  | counter          | plane |
//! +-----------------+------------------+-------+
//! ```
//! A context is allocated by one process, the leader of the new communicator, from its own counter, and told
//! to the other members; so no agreement is needed. MPI_COMM_WORLD is (process 0, counter 0), MPI_COMM_SELF is
//! (own process, counter 1), and the local communicator of that with the parents (process 0, counter 2).
//!
//! Processes of several worlds do not number each other alike. The contexts of their communicators have a leader that no world
//! has, 65535, and one is taken that none of the members uses: they are asked.

use crate::Communicator;
use crate::constants::MPI_ERR_OTHER;
use crate::group::Group;
use crate::process::Process;
use crate::{Error, Result};
use parnass_portals::ProcessId;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// Which of a communicator's two message spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plane {
    /// The program's sends and receives.
    PointToPoint = 0,
    /// The library's own: collectives and the creation of communicators.
    Collective = 1,
}

/// A communicator's context: 32 bits whose lowest bit is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Context(u32);

impl Context {
    /// One less than 15 bits hold: the last one is never a context, so that it can stand for "not known yet".
    const COUNTERS: u32 = (1 << 15) - 1;
    const FIRST_FREE_COUNTER: u32 = 3;
    /// Stands for the leader where the members are of several worlds: a job has fewer processes.
    const SHARED_LEADER: u32 = 0xffff;

    /// MPI_COMM_WORLD's.
    pub const WORLD: Context = Context(0);
    /// That of the local group of the communicator with the parents, see MPI_Comm_get_parent.
    pub const OF_SPAWNED: Context = Context(2 << 1);

    /// One for a communicator whose members are of several worlds.
    fn shared(counter: u32) -> Context {
        Context(Self::SHARED_LEADER << 16 | (counter % Self::COUNTERS) << 1)
    }

    fn new(leader: ProcessId, counter: u32) -> Context {
        debug_assert!(leader.0 < 1 << 16 && counter < Self::COUNTERS);
        Context(leader.0 << 16 | counter << 1)
    }

    /// MPI_COMM_SELF's of a process.
    pub fn of_self(process: ProcessId) -> Context {
        Context::new(process, 1)
    }

    /// The 32 bits that stand in front of the tag in the match bits.
    pub fn bits(self, plane: Plane) -> u32 {
        self.0 | plane as u32
    }

    /// As it travels to the other members.
    pub fn to_wire(self) -> u32 {
        self.0
    }

    /// What the leader told.
    pub fn from_wire(bits: u32) -> Context {
        Context(bits & !1)
    }

    /// The process that allocated it.
    pub fn leader(self) -> ProcessId {
        ProcessId(self.0 >> 16)
    }
}

/// The contexts that one process may give out, and those that it uses.
#[derive(Debug)]
pub struct ContextIds {
    me: ProcessId,
    /// Processes from this number on are of other worlds.
    own_world: u32,
    pool: Mutex<Pool>,
    /// Whose they are.
    owner: OnceLock<Weak<Process>>,
}

#[derive(Debug)]
struct Pool {
    next: u32,
    /// Given back, oldest first; used only when all others have been given out once, so that an id rests
    /// as long as possible before it names another communicator.
    freed: VecDeque<Context>,
    /// Those of the communicators of this process that still exist, whoever leads them.
    in_use: HashMap<Context, Weak<Communicator>>,
    /// The next one to be proposed for a communicator whose members are of several worlds.
    next_shared: u32,
    /// In how many communicators of this process each process of another world is.
    foreign: HashMap<u32, u32>,
}

/// A context for a new communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocated {
    pub context: Context,
    /// It has named another communicator before, which may still live at other members: a receive that is pending on
    /// a freed communicator keeps it. They must be asked.
    pub second_hand: bool,
}

impl ContextIds {
    /// All ids of process `me`, which knows of one world only.
    pub fn new(me: ProcessId) -> ContextIds {
        ContextIds::in_world(me, u32::MAX)
    }

    /// All ids of process `me` in a world of `size`.
    pub fn in_world(me: ProcessId, size: u32) -> ContextIds {
        ContextIds {
            me,
            own_world: size,
            pool: Mutex::new(Pool {
                next: Context::FIRST_FREE_COUNTER,
                freed: VecDeque::new(),
                in_use: HashMap::new(),
                next_shared: 0,
                foreign: HashMap::new(),
            }),
            owner: OnceLock::new(),
        }
    }

    /// Says whose they are.
    pub(crate) fn belong_to(&self, process: &Arc<Process>) {
        let _ = self.owner.set(Arc::downgrade(process));
    }

    /// Whose they are, if somebody has died or something was revoked there.
    pub(crate) fn concerned(&self) -> Option<Arc<Process>> {
        self.owner.get()?.upgrade().filter(|process| process.faults.is_active())
    }

    /// Whether some member is of another world.
    pub fn is_mixed(&self, group: &Group) -> bool {
        group.reaches(self.own_world)
    }

    /// Where the search for shared contexts begins: another place at each process makes it short.
    pub fn begin_shared_at(&self, number: u32) {
        self.pool().next_shared = number;
    }

    /// A context that no communicator of this process has, for one whose members are of several worlds; another one each time.
    pub fn propose_shared(&self) -> u32 {
        let mut pool = self.pool();
        for _ in 0..Context::COUNTERS {
            let context = Context::shared(pool.next_shared);
            pool.next_shared = pool.next_shared.wrapping_add(1);
            if !pool.in_use.contains_key(&context) {
                return context.to_wire();
            }
        }
        Context::shared(pool.next_shared).to_wire()
    }

    /// As [`ContextIds::enter`], unless a communicator of this process has this context: `false` then.
    pub fn reserve(&self, context: Context) -> bool {
        match self.pool().in_use.entry(context) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(Weak::new());
                true
            }
        }
    }

    /// A communicator has these processes of other worlds among its members.
    pub fn meet(&self, group: &Group) {
        if self.is_mixed(group) {
            let mut pool = self.pool();
            for process in group.processes().filter(|process| process.0 >= self.own_world) {
                *pool.foreign.entry(process.0).or_default() += 1;
            }
        }
    }

    /// A communicator that had them is gone.
    pub fn part(&self, group: &Group) {
        if self.is_mixed(group) {
            let mut pool = self.pool();
            for process in group.processes().filter(|process| process.0 >= self.own_world) {
                if let Some(count) = pool.foreign.get_mut(&process.0) {
                    *count -= 1;
                    if *count == 0 {
                        pool.foreign.remove(&process.0);
                    }
                }
            }
        }
    }

    /// In how many communicators of this process a process of another world is.
    pub fn meetings(&self, process: ProcessId) -> u32 {
        self.pool().foreign.get(&process.0).copied().unwrap_or(0)
    }

    fn pool(&self) -> std::sync::MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an id for a new communicator that this process leads.
    pub fn allocate(&self) -> Result<Allocated> {
        let mut pool = self.pool();
        if pool.next < Context::COUNTERS {
            let context = Context::new(self.me, pool.next);
            pool.next += 1;
            return Ok(Allocated { context, second_hand: false });
        }
        let oldest = pool.freed.pop_front().map(|context| Allocated { context, second_hand: true });
        oldest.ok_or_else(|| {
            Error::new(
                MPI_ERR_OTHER,
                format!(
                    "process {} already leads {} communicators, the most that one process can lead; free communicators that are no longer used",
                    self.me.0,
                    Context::COUNTERS - Context::FIRST_FREE_COUNTER
                ),
            )
        })
    }

    /// A communicator of this process has this context from now on.
    pub fn enter(&self, context: Context, communicator: Weak<Communicator>) {
        self.pool().in_use.insert(context, communicator);
    }

    /// The communicator of this process with a context.
    pub fn communicator(&self, context: Context) -> Option<Arc<Communicator>> {
        self.pool().in_use.get(&context)?.upgrade()
    }

    /// All communicators of this process.
    pub fn communicators(&self) -> Vec<Arc<Communicator>> {
        self.pool().in_use.values().filter_map(Weak::upgrade).collect()
    }

    /// Whether a communicator of this process has this context.
    pub fn is_in_use(&self, context: Context) -> bool {
        self.pool().in_use.contains_key(&context)
    }

    /// The communicator with this context is gone; if this process gave the id out, it may do so again. (Those of the
    /// predefined communicators are never given out.)
    pub fn leave(&self, context: Context) {
        let mut pool = self.pool();
        pool.in_use.remove(&context);
        if context.leader() == self.me && context != Context::WORLD && context != Context::of_self(self.me) {
            pool.freed.push_back(context);
        }
    }

    /// Gives back an id that was not used after all: the next one to be given out where possible, else the last.
    pub fn withdraw(&self, Allocated { context, second_hand }: Allocated) {
        let mut pool = self.pool();
        debug_assert_eq!(context.leader(), self.me);
        if !second_hand && context == Context::new(self.me, pool.next - 1) {
            pool.next -= 1;
        } else {
            pool.freed.push_back(context);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn an_id_rests_as_long_as_possible() {
        let me = ProcessId(3);
        let ids = ContextIds::new(me);
        let first = ids.allocate().unwrap().context;
        ids.enter(first, Weak::new());
        assert!(ids.is_in_use(first));
        ids.leave(first);
        assert!(!ids.is_in_use(first));
        let mut seen = HashSet::from([first]);
        for _ in 1..Context::COUNTERS - Context::FIRST_FREE_COUNTER {
            let next = ids.allocate().unwrap();
            assert!(seen.insert(next.context) && !next.second_hand);
        }
        assert_eq!(ids.allocate(), Ok(Allocated { context: first, second_hand: true }));
        let error = ids.allocate().unwrap_err();
        assert!(error.message().contains("free communicators"), "{error}");
        assert!(seen.iter().all(|context| context.leader() == me && *context != Context::of_self(me)));
    }

    #[test]
    fn shared_contexts_are_nobodys_own_and_are_proposed_once_each() {
        let ids = ContextIds::in_world(ProcessId(0), 4);
        ids.begin_shared_at(7);
        let first = Context::from_wire(ids.propose_shared());
        assert!(ids.reserve(first) && !ids.reserve(first));
        assert_eq!(first.leader(), ProcessId(0xffff));
        ids.begin_shared_at(7);
        let second = Context::from_wire(ids.propose_shared());
        assert_ne!(first, second);
        ids.leave(first);
        assert!(ids.reserve(first));
        for counter in 0..2 * Context::COUNTERS {
            let bits = Context::shared(counter).bits(Plane::Collective);
            assert!(bits < u32::MAX - 1, "{counter} stands for no context");
        }
    }

    #[test]
    fn meetings_with_other_worlds_are_counted() {
        let ids = ContextIds::in_world(ProcessId(0), 2);
        let mixed = Group::from_processes(vec![ProcessId(0), ProcessId(3), ProcessId(2)]);
        assert!(ids.is_mixed(&mixed) && !ids.is_mixed(&Group::world(2)) && !ids.is_mixed(&Group::empty()));
        ids.meet(&mixed);
        ids.meet(&Group::single(ProcessId(3)));
        assert_eq!([0, 2, 3].map(|process| ids.meetings(ProcessId(process))), [0, 1, 2]);
        ids.part(&mixed);
        assert_eq!([2, 3].map(|process| ids.meetings(ProcessId(process))), [0, 1]);
    }

    #[test]
    fn world_and_self_differ_for_every_process() {
        for process in [0, 1, 65535] {
            let own = Context::of_self(ProcessId(process));
            assert_ne!(own, Context::WORLD);
            assert_ne!(own.bits(Plane::PointToPoint), own.bits(Plane::Collective));
        }
    }

    #[test]
    fn a_withdrawn_id_comes_again_at_once() {
        let ids = ContextIds::new(ProcessId(0));
        let context = ids.allocate().unwrap();
        ids.withdraw(context);
        assert_eq!(ids.allocate(), Ok(context));
    }

    #[test]
    fn foreign_and_predefined_ids_are_not_taken_back() {
        let ids = ContextIds::new(ProcessId(1));
        for context in [Context::WORLD, Context::of_self(ProcessId(1)), Context::new(ProcessId(2), 9)] {
            ids.enter(context, Weak::new());
            ids.leave(context);
        }
        assert!(ids.pool().freed.is_empty());
    }
}
