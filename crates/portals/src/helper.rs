//! The helper thread: drives the NIC of a process that computes.
//!
//! Where there is a processor to spare for it, it sleeps until a long message concerns a process that nobody's waiting thread looks after, and while
//! there is something to move it looks every now and then, so that one wake-up serves many messages. Where it takes the time of its own process, it
//! is woken only for what a peer waits for and cannot do itself ([`Core::is_thrifty`]). It never spins.

use crate::core::Core;
use parnass_base::atomics::{AtomicBool, Ordering};
use parnass_counters::{HELPER_WAKEUPS, HELPER_WORKS, Home, WAITS};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two looks while a thread of the process waits, and so does the work itself. A look takes the processor from that thread, which costs
/// up to 35 us on virtual machines. Who stops waiting rings if something is left to be moved; a message that came when he was
/// about to stop is found by such a look.
const ATTENDED_PAUSE: Duration = Duration::from_millis(10);
/// The first of those in which it is not woken either: nobody else looks meanwhile if the process computes after all. The next ones grow by as much.
const RESTING_PAUSE: Duration = Duration::from_millis(1);
/// How often in a row it is woken though the process waits soon, until it sleeps on for such messages.
const MOST_NEEDLESS: u32 = 2;

/// The thread, once it is needed.
#[derive(Debug, Default)]
pub struct Helper {
    started: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Helper {
    /// Makes sure that it runs. Without a thread to be had, work waits for the next call of the process.
    #[inline]
    pub fn start(&self, core: &Arc<Core>) {
        if !self.started.load(Ordering::Relaxed) {
            self.start_first(core);
        }
    }

    #[cold]
    fn start_first(&self, core: &Arc<Core>) {
        if self.started.swap(true, Ordering::Relaxed) {
            return;
        }
        core.transport.several_threads();
        let core = core.clone();
        let thread = std::thread::Builder::new()
            .name("parnass-helper".into())
            .stack_size(256 << 10)
            .spawn(move || run(&core));
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = thread.ok();
    }

    /// Whether it runs.
    #[inline]
    pub fn is_started(&self) -> bool {
        self.started.load(Ordering::Relaxed)
    }

    /// Ends it.
    pub fn stop(&self, core: &Core) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            core.stopping.store(true, Ordering::Release);
            core.transport.ring_helper(core.me);
            let _ = thread.join();
        }
    }
}

/// How long it sleeps while the process waits, when it was woken so often in a row for nothing.
fn pause_after(needless: u32) -> Duration {
    match needless.saturating_sub(MOST_NEEDLESS) {
        0 => ATTENDED_PAUSE,
        rests => ATTENDED_PAUSE.min(RESTING_PAUSE * rests),
    }
}

/// Does all that there is to do now, and what somebody else has kept from being done, for a while.
fn serve(core: &Core) {
    let mut looks = 0;
    while !core.stopping.load(Ordering::Acquire) && !core.is_attended() && looks < core.tuning.helper_looks()
    {
        if core.work_unattended() {
            core.counters.count_any(HELPER_WORKS, 1);
            looks = 0;
        } else if core.transport.poll(core.me) || core.is_asked() {
            std::thread::sleep(Duration::from_micros(core.tuning.helper_pause().into()));
            looks += 1;
        } else {
            break;
        }
    }
}

fn run(core: &Core) {
    parnass_base::process::block_signals();
    parnass_base::process::be_prompt();
    let stopping = || core.stopping.load(Ordering::Acquire);
    let waits = || core.counters.read(Home::Program(WAITS));
    let mut idle = core.tuning.helper_looks();
    let (mut waited, mut needless) = (waits(), 0);
    while !stopping() {
        if core.is_thrifty() {
            let mut asked = || stopping() || core.transport.was_helper_rung() || core.is_asked();
            core.transport.sleep_helper(None, &mut asked);
            core.counters.count_any(HELPER_WAKEUPS, 1);
            serve(core);
            core.pass_on();
            continue;
        }
        if idle >= core.tuning.helper_looks() {
            // To look at a network is to read from it. Who waits looks himself, and nothing else tells him of what is read here.
            core.transport.sleep_helper(None, &mut || stopping() || !core.is_attended() && core.needs_help());
            core.counters.count_any(HELPER_WAKEUPS, 1);
            idle = 0;
        } else if core.is_attended() || waits() != waited {
            // Where the process waits again and again, what it was woken for would have been done without it.
            needless += 1;
            core.transport.rest_helper(needless > MOST_NEEDLESS);
            core.pass_on();
            // Who asks a process that others may send requests to may have done so between its last look and here.
            let mut ends = || stopping() || core.is_left_with_work() || core.is_asked();
            core.transport.sleep_helper(Some(pause_after(needless)), &mut ends);
            core.transport.rest_helper(false);
            idle += 1;
        }
        waited = waits();
        // The owner may be about to wait, and do it all itself. What others wait for is done first.
        if idle != 0 || !core.wheel.is_there() {
            std::thread::sleep(Duration::from_micros(core.tuning.helper_pause().into()));
        }
        if !core.is_attended() && waits() == waited {
            if core.work_unattended() {
                core.counters.count_any(HELPER_WORKS, 1);
                (idle, needless) = (0, 0);
            } else {
                idle += 1;
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_woken_for_nothing_rests_longer_and_longer() {
        let pauses: Vec<u128> = (0..=20).map(|needless| pause_after(needless).as_millis()).collect();
        let woken = MOST_NEEDLESS as usize + 1;
        assert!(pauses[..woken].iter().all(|pause| *pause == 10), "it is still woken");
        assert_eq!(pauses[woken..woken + 12], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10]);
        assert_eq!(pause_after(u32::MAX), ATTENDED_PAUSE);
    }
}
