//! What a communicator keeps of its collective operations, so that the next one of the same shape allocates nothing.

use super::execution::Flight;
use parnass_collectives::{Schedule, Shape};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many schedules are kept.
const KEPT_SCHEDULES: usize = 64;
/// How many lists of operations in flight are kept: as many collectives may be under way without allocation.
const KEPT_LISTS: usize = 8;

/// Schedules by their shape, and lists for operations in flight. One in every communicator.
#[derive(Default)]
pub(crate) struct Cache {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// The last one used stands first.
    schedules: Vec<(Shape, Arc<Schedule>)>,
    lists: Vec<Vec<Flight>>,
}

impl Cache {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The schedule of a shape, made by `make` when it is not there, and an empty list.
    pub(super) fn take(
        &self,
        shape: &Shape,
        make: impl FnOnce() -> Schedule,
    ) -> (Arc<Schedule>, Vec<Flight>) {
        let mut kept = self.kept();
        let list = kept.lists.pop().unwrap_or_default();
        if let Some(index) = kept.schedules.iter().position(|(known, _)| known == shape) {
            kept.schedules.swap(0, index);
            return (Arc::clone(&kept.schedules[0].1), list);
        }
        let schedule = Arc::new(make());
        if kept.schedules.len() == KEPT_SCHEDULES {
            kept.schedules.pop();
        }
        kept.schedules.push((*shape, Arc::clone(&schedule)));
        let last = kept.schedules.len() - 1;
        kept.schedules.swap(0, last);
        (schedule, list)
    }

    /// An empty list, for an operation whose schedule is not kept.
    pub(super) fn take_list(&self) -> Vec<Flight> {
        self.kept().lists.pop().unwrap_or_default()
    }

    /// Takes a list back.
    pub(super) fn give_back(&self, mut list: Vec<Flight>) {
        list.clear();
        let mut kept = self.kept();
        if kept.lists.len() < KEPT_LISTS {
            kept.lists.push(list);
        }
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.kept();
        formatter.debug_struct("Cache").field("schedules", &kept.schedules.len()).finish_non_exhaustive()
    }
}
