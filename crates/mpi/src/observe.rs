//! What tools see of a process, and what they may change in it (MPI 5.0, chapter 15).

use crate::comm::{Communicator, Plane};
use crate::process::Process;
use crate::pt2pt::protocol::COPIED_LIMIT;
use parnass_collectives::{Algorithm, Groups, Operation, Overrides, named};
use parnass_counters as counters;
use parnass_counters::{COLLECTIVES, COUNTERS, CollectiveCounter, Counters, Home, Observer, watch};
use parnass_portals::Protocol;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// The bits of a match pattern that name the communicator.
const CONTEXT_BITS: u64 = 0xffff_ffff << 32;

/// What of the settings of a process may change while it runs.
#[derive(Debug)]
pub(crate) struct Changeable {
    /// Longest message that is copied.
    copied_limit: AtomicU64,
    mailbox_limit: AtomicU64,
    /// Counts up with every change of the algorithms, so that schedules of earlier days are not used again.
    era: AtomicU32,
    overrides: Mutex<Arc<Overrides>>,
    /// Whether there are any.
    overridden: AtomicBool,
}

/// Why a value was not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unchanged {
    /// Something is under way that needs the present one.
    NotNow,
    /// It cannot be one; says why.
    Wrong(String),
}

fn mailbox_limit(copied_limit: u64) -> u64 {
    copied_limit.min(parnass_portals::EXCHANGED_IN_MAILBOX as u64)
}

impl Changeable {
    pub(crate) fn new(copied_limit: u64, overrides: Overrides) -> Changeable {
        Changeable {
            copied_limit: AtomicU64::new(copied_limit),
            mailbox_limit: AtomicU64::new(mailbox_limit(copied_limit)),
            era: AtomicU32::new(0),
            overridden: AtomicBool::new(!overrides.is_empty()),
            overrides: Mutex::new(Arc::new(overrides)),
        }
    }

    /// How a message of `bytes` bytes travels.
    #[inline(always)]
    pub(crate) fn protocol(&self, bytes: u64) -> Protocol {
        if bytes > self.copied_limit.load(Ordering::Relaxed) { Protocol::Direct } else { Protocol::Buffered }
    }

    /// Whether one may be copied: any, unless fewer are than could be.
    pub(crate) fn may_copy(&self, bytes: u64) -> bool {
        let limit = self.copied_limit.load(Ordering::Relaxed);
        bytes <= limit || limit == COPIED_LIMIT
    }

    /// Whether a message of `bytes` bytes goes through a mailbox if it has room, whatever else there is.
    #[inline(always)]
    pub(crate) fn fits_mailbox(&self, bytes: u64) -> bool {
        bytes <= self.mailbox_limit.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn era(&self) -> u32 {
        self.era.load(Ordering::Relaxed)
    }

    /// Which algorithms are asked for, if any are.
    #[inline]
    pub(crate) fn overrides(&self) -> Option<Arc<Overrides>> {
        let overridden = self.overridden.load(Ordering::Relaxed);
        overridden.then(|| self.overrides.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

/// The row of the counter of an operation with an algorithm.
pub(crate) fn row_of(operation: Operation, algorithm: &'static Algorithm) -> u32 {
    let mut rows = ROWS[operation as usize].iter();
    let row = rows.find(|(known, _)| std::ptr::eq(*known, algorithm));
    row.expect("a test compares the two tables").1
}

/// The algorithms of each operation, with the rows of their counters.
static ROWS: LazyLock<Vec<Vec<(&'static Algorithm, u32)>>> = LazyLock::new(|| {
    let row = |counter: &CollectiveCounter, operation| {
        let groups = if counter.inter { Groups::Two } else { Groups::One };
        Some((named(operation, groups, counter.algorithm)?, counter.row as u32))
    };
    let of = |operation: Operation| {
        let counters = COLLECTIVES.iter().filter(|counter| counter.operation == operation.name());
        counters.filter_map(|counter| row(counter, operation)).collect()
    };
    Operation::ALL.map(of).into()
});

impl Process {
    /// What this process counts.
    #[inline(always)]
    pub fn counters(&self) -> &Counters {
        self.nic().counters()
    }

    /// Who is told what happens in it.
    #[inline]
    pub fn observer(&self) -> &Arc<Observer> {
        self.nic().observer()
    }

    /// Counts a collective operation that begins, and tells of it.
    #[inline]
    pub(crate) fn count_collective(&self, row: u32, communicator: &Communicator) {
        if let Home::Program(counter) = COUNTERS[row as usize].home {
            self.counters().count(counter, 1);
        }
        if self.counters().watch() & watch::EVENTS != 0 {
            self.tell_collective(row, communicator);
        }
    }

    #[cold]
    fn tell_collective(&self, row: u32, communicator: &Communicator) {
        let context = communicator.context(Plane::Collective);
        self.observer().raise(counters::COLLECTIVE_BEGUN, &[row.into(), context.into()]);
        self.observer().tell();
    }

    /// Unexpected messages and posted receives of a communicator now.
    pub fn queues(&self, communicator: &Communicator) -> (u64, u64) {
        let on = |plane| self.nic().queues(u64::from(communicator.context(plane)) << 32, CONTEXT_BITS);
        let (first, second) = (on(Plane::PointToPoint), on(Plane::Collective));
        (first.0 + second.0, first.1 + second.1)
    }

    /// See [`parnass_portals::Interface::begin_marks`].
    pub fn begin_marks(&self) -> [(u64, u64); 2] {
        self.nic().begin_marks()
    }

    /// Gives the network interface other values from now on.
    pub fn retune(&self, tuning: parnass_portals::Tuning) {
        self.nic().retune(tuning);
    }

    /// From how many bytes on messages are described, from now on.
    pub fn set_direct_threshold(&self, bytes: u64) {
        let table = crate::pt2pt::protocol::Table::new(bytes);
        let limit = table.rows()[1].limit;
        self.changeable.copied_limit.store(limit, Ordering::Relaxed);
        self.changeable.mailbox_limit.store(mailbox_limit(limit), Ordering::Relaxed);
    }

    /// Asks for other algorithms from the next collective operation on. All processes must do the same between the same two.
    ///
    /// # Errors
    /// Operations are under way; or the text names none.
    pub fn set_algorithms(&self, text: &str) -> Result<(), Unchanged> {
        let overrides = Overrides::parse(text).map_err(Unchanged::Wrong)?;
        if !self.activities.is_empty() {
            return Err(Unchanged::NotNow);
        }
        self.changeable.overridden.store(!overrides.is_empty(), Ordering::Relaxed);
        *self.changeable.overrides.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(overrides);
        self.changeable.era.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parnass_collectives::ALGORITHMS;

    #[test]
    fn every_algorithm_of_every_operation_has_a_counter() {
        let mut rows = std::collections::BTreeSet::new();
        for algorithm in ALGORITHMS {
            for operation in algorithm.operations {
                assert!(
                    rows.insert(row_of(*operation, algorithm)),
                    "{} {}",
                    operation.name(),
                    algorithm.name
                );
            }
        }
        assert_eq!(rows.len(), COLLECTIVES.len(), "spec/counters.toml has a collective that is none");
    }
}
