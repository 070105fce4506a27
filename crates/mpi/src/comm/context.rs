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
//! (own process, counter 1).

use crate::constants::MPI_ERR_OTHER;
use crate::{Error, Result};
use parnass_portals::ProcessId;
use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

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
    const FIRST_FREE_COUNTER: u32 = 2;

    /// MPI_COMM_WORLD's.
    pub const WORLD: Context = Context(0);

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
    pool: Mutex<Pool>,
}

#[derive(Debug)]
struct Pool {
    next: u32,
    /// Given back, oldest first; used only when all others have been given out once, so that an id rests
    /// as long as possible before it names another communicator.
    freed: VecDeque<Context>,
    /// Those of the communicators of this process that still exist, whoever leads them.
    in_use: HashSet<Context>,
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
    /// All ids of process `me`.
    pub fn new(me: ProcessId) -> ContextIds {
        ContextIds {
            me,
            pool: Mutex::new(Pool {
                next: Context::FIRST_FREE_COUNTER,
                freed: VecDeque::new(),
                in_use: HashSet::new(),
            }),
        }
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
    pub fn enter(&self, context: Context) {
        self.pool().in_use.insert(context);
    }

    /// Whether a communicator of this process has this context.
    pub fn is_in_use(&self, context: Context) -> bool {
        self.pool().in_use.contains(&context)
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

    #[test]
    fn an_id_rests_as_long_as_possible() {
        let me = ProcessId(3);
        let ids = ContextIds::new(me);
        let first = ids.allocate().unwrap().context;
        ids.enter(first);
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
            ids.enter(context);
            ids.leave(context);
        }
        assert!(ids.pool().freed.is_empty());
    }
}
