//! Whether others want the processor of this rank, of whom it does not know: those of another container, another job, or any other program.

use parnass_base::atomics::{AtomicU32, Ordering};
use parnass_base::clock::nanoseconds;
use parnass_base::process::{Scheduled, scheduled};
use std::cell::Cell;

/// How long a thread is watched before it is judged. To ask the kernel takes a few microseconds.
const WINDOW_NS: u64 = 10_000_000;
/// A thread that ran and wanted to run for a shorter time than this says nothing.
const LEAST_NS: u64 = 1_000_000;
/// So much of the time in which it wanted to run, a thread is kept waiting where there is a crowd: a quarter; and a sixteenth where there is none.
const CROWDED: u64 = 4;
const CALM: u64 = 16;
/// A rank in a crowd looks 2^4 times less often before it sleeps.
const MOST: u32 = 4;
/// So many crowded windows in a row are a crowd: not the bustle of a job that starts.
const SURE: u32 = 2;
/// As many calm windows in a row let it look twice as often again.
const PATIENT: u32 = 8;

/// Who waits for a turn no longer than this, on the average, meets threads that do little when they are woken: as the keepers of other ranks' networks,
/// which work here while those compute. Who wants the processor for himself has it for milliseconds.
const BRIEF_NS: u64 = 100_000;

fn is_brief(waited: u64, turns: u64) -> bool {
    waited < turns * BRIEF_NS
}

/// What this rank knows of the crowd.
#[derive(Debug, Default)]
pub struct Crowd {
    /// A waiting rank looks 2 to the power of this times less often than it might.
    less: AtomicU32,
    /// Windows in a row that were crowded, and that were calm.
    crowded: AtomicU32,
    calm: AtomicU32,
}

thread_local! {
    /// When this thread was watched last, and what the kernel said then.
    static LAST: Cell<(u64, Scheduled)> = const { Cell::new((0, Scheduled { ran: 0, waited: 0, all_ran: 0, turns: 0 })) };
}

impl Crowd {
    /// How often to look, where `spins` would do without a crowd.
    #[inline]
    pub fn spins(&self, spins: u32) -> u32 {
        (spins >> self.less.load(Ordering::Relaxed)).max(spins.min(1))
    }

    /// To be called by a thread that has just slept. Whether [`Crowd::spins`] may answer otherwise now.
    pub fn watch(&self) -> bool {
        let now = nanoseconds();
        let (then, before) = LAST.get();
        if now.saturating_sub(then) < WINDOW_NS {
            return false;
        }
        let Some(after) = scheduled() else {
            // Not asked again soon.
            LAST.set((now + (1 << 40), before));
            return false;
        };
        LAST.set((now, after));
        let ran = after.ran.saturating_sub(before.ran);
        // This process's own threads, as the keeper of its network, are no crowd.
        let company = after.all_ran.saturating_sub(before.all_ran).saturating_sub(ran);
        let waited = after.waited.saturating_sub(before.waited).saturating_sub(company);
        let turns = after.turns.saturating_sub(before.turns);
        then != 0 && self.judge(ran, if is_brief(waited, turns) { 0 } else { waited })
    }

    /// A thread `ran` for so long, and `waited` so long for a processor.
    fn judge(&self, ran: u64, waited: u64) -> bool {
        let wanted = ran + waited;
        if wanted < LEAST_NS {
            return false;
        }
        let in_a_row = |windows: &AtomicU32, is: bool, enough: u32| {
            let so_far = if is { windows.load(Ordering::Relaxed) + 1 } else { 0 };
            windows.store(so_far % enough, Ordering::Relaxed);
            so_far == enough
        };
        let less = self.less.load(Ordering::Relaxed);
        let crowd = in_a_row(&self.crowded, waited * CROWDED > wanted, SURE);
        let calm = in_a_row(&self.calm, waited * CALM <= wanted, PATIENT);
        let now = if crowd { MOST } else { less.saturating_sub(calm.into()) };
        self.less.store(now, Ordering::Relaxed);
        now != less
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_rank_in_a_crowd_looks_less_often_and_recovers_slowly() {
        let crowd = Crowd::default();
        let (idle, calm, between, crowded) = ((1_000, 100_000), (8 * MS, 0), (8 * MS, MS), (2 * MS, MS));
        let judge = |(ran, waited): (u64, u64)| crowd.judge(ran, waited);
        assert!(
            (0..10).all(|_| !judge(idle) && !judge(between)),
            "too short to say anything, or not a crowd"
        );
        assert!(!judge(crowded) && !judge(calm) && !judge(crowded), "one window is not enough");
        assert_eq!(crowd.spins(8_000), 8_000);
        assert!(judge(crowded));
        assert_eq!((crowd.spins(8_000), crowd.spins(1), crowd.spins(0)), (500, 1, 0));
        let windows = (1..).find(|_| judge(calm)).unwrap();
        assert_eq!((windows, crowd.spins(8_000)), (PATIENT, 1_000));
        assert!((0..MOST * PATIENT).all(|_| !judge(between)), "neither calm nor crowded: it stays as it is");
        for _ in 1..MOST * PATIENT {
            judge(calm);
        }
        assert_eq!(crowd.spins(8_000), 8_000);
    }

    #[test]
    fn threads_that_do_little_are_no_crowd() {
        assert!(is_brief(5 * MS, 500) && !is_brief(6 * MS, 2) && !is_brief(3 * MS, 0));
    }

    #[test]
    fn the_kernel_says_how_long_a_thread_ran() {
        let Some(before) = scheduled() else { return };
        let began = std::time::Instant::now();
        while began.elapsed().as_millis() < 20 {
            std::hint::spin_loop();
        }
        let after = scheduled().unwrap();
        assert!(
            after.ran + after.waited >= before.ran + before.waited + 5 * MS,
            "{before:?}, then {after:?}"
        );
    }
}
