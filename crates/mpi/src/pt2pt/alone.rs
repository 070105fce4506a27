//! Whether one thread receives alone, of several that may: then it need not post an entry for each message.

use crate::process::Process;
use parnass_base::place;
use std::sync::atomic::{AtomicU32, Ordering};

/// After so many receives in a row a thread counts as the only one.
const IN_A_ROW: u32 = 16;

/// Which thread has received last, and how often in a row. Two that write at once may leave the words of either.
#[derive(Debug, Default)]
pub(crate) struct Lone {
    thread: AtomicU32,
    times: AtomicU32,
}

impl Lone {
    /// Notes that this thread receives; whether it has for a while.
    #[inline]
    fn receives(&self) -> bool {
        let thread = place::own() as u32;
        if self.thread.load(Ordering::Relaxed) != thread {
            self.thread.store(thread, Ordering::Relaxed);
            self.times.store(0, Ordering::Relaxed);
            return false;
        }
        let times = self.times.load(Ordering::Relaxed);
        if times < IN_A_ROW {
            self.times.store(times + 1, Ordering::Relaxed);
        }
        times == IN_A_ROW
    }
}

impl Process {
    /// Whether the thread that calls receives alone, though others might, and none of them waits. Another one may begin to meanwhile: it takes turns at
    /// the NIC's lock, and [`Process::tell_others`] wakes it.
    #[inline]
    pub(super) fn receives_alone(&self) -> bool {
        self.lone.receives()
            && self.waiters.load(Ordering::Relaxed) == 0
            && self.probers.load(Ordering::Relaxed) == 0
    }

    /// Wakes the threads for which something may have come in while the caller has received without turning the wheel: an event, or a
    /// message that one looks for. The NIC's lock is between those that look and the caller.
    #[inline]
    pub(super) fn tell_others(&self) {
        if self.nic().has_events() || self.probers.load(Ordering::Relaxed) != 0 {
            self.wake_waiters(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_alone_after_a_row_until_another_one_comes() {
        let lone = Lone::default();
        let in_a_row = || (0..=IN_A_ROW + 1).filter(|_| lone.receives()).count();
        assert!(in_a_row() > 0);
        assert!(lone.receives());
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(!lone.receives()));
        });
        assert!(!lone.receives());
        assert!(in_a_row() > 0);
    }
}
