//! A timer that wakes a keeper, which any thread may set without waking it.

use rustix::io;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use rustix::time::{timerfd_create, timerfd_settime};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// The timer. It goes into what the keeper sleeps on.
#[derive(Debug)]
pub struct Timer(OwnedFd);

impl Timer {
    /// One that is not set.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn new() -> std::io::Result<Timer> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Timer(timerfd_create(TimerfdClockId::Monotonic, flags)?))
    }

    /// It goes off once, after so long from now, and not when it was to go off before.
    pub fn set(&self, after: Duration) {
        let nothing = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value =
            Timespec { tv_sec: after.as_secs() as i64, tv_nsec: i64::from(after.subsec_nanos()).max(1) };
        let once = Itimerspec { it_interval: nothing, it_value: value };
        // The descriptor is a timer, and the time is one.
        let _ = timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once);
    }

    /// For the keeper, when it has gone off.
    pub fn take(&self) {
        let mut count = [0; 8];
        let _ = io::read(&self.0, &mut count);
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
