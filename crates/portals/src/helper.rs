//! The helper thread: drives the NIC of a process that computes.
//!
//! It sleeps until a long message concerns a process that nobody's waiting thread looks after, and while there is
//! something to move it looks every now and then, so that one wake-up serves many messages. It never spins.

use crate::core::Core;
use parnass_base::atomics::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

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
            .stack_size(128 << 10)
            .spawn(move || run(&core));
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = thread.ok();
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

fn run(core: &Core) {
    parnass_base::process::block_signals();
    let stopping = || core.stopping.load(Ordering::Acquire);
    let pause = Duration::from_micros(core.tuning.helper_pause.into());
    let mut idle = core.tuning.helper_looks;
    while !stopping() {
        if idle >= core.tuning.helper_looks {
            core.transport.sleep_helper(&mut || stopping() || core.needs_help());
            idle = 0;
        }
        // The owner may be about to wait, and do it all itself.
        std::thread::sleep(pause);
        let attended = core.is_attended();
        if attended {
            core.pass_on();
        }
        if attended || !core.work_unattended() { idle += 1 } else { idle = 0 }
    }
}
