//! When the keeper is told of what comes: while the process sleeps, or does something else.

use crate::link::Streams;
use crate::pipe::Carrier;
use parnass_base::atomics::Ordering;
use parnass_transport::Prospect;
use std::cell::Cell;
use std::time::Duration;

/// What is counted of the times that a process stayed away after it had begun something, at first: as if it had always.
pub(crate) const STAYED: u32 = BEGUN.0;

/// Arrivals that the process has taken itself before the keeper is not told of them any more.
pub(crate) const STALE: u32 = 8;

/// States of [`Streams::tended`]; 0: the keeper sleeps.
pub(crate) const TENDED: u32 = 1;
pub(crate) const ASKED: u32 = 2;

/// So long after it has left the library, or less, requests to a process are taken by the keeper: at first, and where it has come back each time before,
/// at most. To set a clock for that takes 17 us in a virtual machine, and the keeper wakes for it.
const QUIET: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(4));
/// Where every fourth time or so that a process has left it stayed away for so long, the keeper is told at once of what comes when it leaves again.
const AWAY: Duration = Duration::from_micros(100);
/// The share of such times among the last ones: all, from where on the keeper is told at once, and how much of it the last time counts.
const SHARES: (u32, u32, u32) = (256, 64, 4);
/// The same of the times that a process stayed away after it had begun something. A keeper that comes in vain takes the processor from a burst of messages, and
/// one that does not come leaves a transfer to the end of a computation: so one such time in twenty is enough.
const BEGUN: (u32, u32, u32) = (256, 12, 16);

thread_local! {
    /// Whether this thread is a keeper.
    static KEEPS: Cell<bool> = const { Cell::new(false) };
}

/// To be called by the thread that is the keeper.
pub(crate) fn keep() {
    KEEPS.set(true);
}

/// A share with what came last.
fn with(share: u32, (all, _, part): (u32, u32, u32), long: bool) -> u32 {
    share - share.div_ceil(part) + if long { all / part } else { 0 }
}

impl<C: Carrier> Streams<C> {
    /// See [`parnass_transport::Network::arm`].
    pub fn arm(&self) {
        if self.closing.load(Ordering::Relaxed) {
            return;
        }
        // Before the carrier is armed: the keeper may be about to disarm it.
        self.armed.store(true, Ordering::SeqCst);
        self.watch(0);
    }

    /// Has the keeper told of the next arrival, though nobody sleeps for it; `prospect` is a [`Prospect`] as a number, or 0.
    pub fn watch(&self, prospect: u32) {
        self.prospect.store(prospect, Ordering::Relaxed);
        self.stale.store(0, Ordering::Relaxed);
        self.watched.store(true, Ordering::Relaxed);
        self.carrier.arm();
    }

    /// The process has taken something. If the keeper is told of arrivals meanwhile, it is soon asked to stop that.
    #[inline]
    pub(crate) fn took(&self) {
        if C::DISARMS
            && self.watched.load(Ordering::Relaxed)
            && self.stale.fetch_add(1, Ordering::Relaxed) + 1 == STALE
        {
            self.carrier.ring();
        }
    }

    /// See [`parnass_transport::Network::arm_lightly`].
    #[inline]
    pub fn watch_lightly(&self, prospect: Prospect) {
        if prospect == Prospect::Request {
            return self.watch_for_requests();
        }
        let prospect = prospect as u32;
        if self.watched.load(Ordering::Relaxed) {
            return;
        }
        if self.needless.load(Ordering::Relaxed) & prospect == 0 && !self.comes_back_soon() {
            self.begin(prospect);
        } else if self.unheard.load(Ordering::Relaxed) == 0 {
            self.unheard.store(self.nanoseconds(), Ordering::Relaxed);
        }
    }

    #[cold]
    fn begin(&self, prospect: u32) {
        if self.begun.load(Ordering::Relaxed) == 0 {
            self.begun.store(self.nanoseconds(), Ordering::Relaxed);
        }
        self.watch_again(prospect);
    }

    /// Whether the process has begun something since it waited.
    pub(crate) fn has_begun(&self) -> bool {
        self.unheard.load(Ordering::Relaxed) | self.begun.load(Ordering::Relaxed) != 0
    }

    /// A thread has written something, which took so long. A process that begins many messages is in the library meanwhile: that is no time that it was away.
    pub(crate) fn has_written(&self, took: Duration) {
        if KEEPS.get() {
            return; // It writes while the process is away.
        }
        for since in [&self.unheard, &self.begun] {
            let before = since.load(Ordering::Relaxed);
            if before != 0 {
                let later = before + took.as_nanos() as u64;
                // It fails where another thread has come back to wait meanwhile.
                let _ = since.compare_exchange(before, later, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
    }

    /// Whether the process nearly always waits soon for what it has begun: it takes that itself.
    pub(crate) fn comes_back_soon(&self) -> bool {
        self.stayed.load(Ordering::Relaxed) < BEGUN.1
    }

    #[cold]
    fn watch_again(&self, prospect: u32) {
        if self.closing.load(Ordering::Relaxed) || self.keeper_arms(prospect) {
            return;
        }
        if C::SETTLES {
            self.prospect.store(prospect, Ordering::Relaxed);
            self.watched.store(true, Ordering::Relaxed);
            self.wanted.store(true, Ordering::Release);
            self.carrier.ring();
        } else {
            self.watch(prospect);
        }
    }

    /// Whether the keeper is at work now, and has the carrier armed when it has done it.
    fn keeper_arms(&self, prospect: u32) -> bool {
        if self.tended.load(Ordering::Relaxed) == 0 {
            return false;
        }
        self.prospect.store(prospect, Ordering::Relaxed);
        let asked = self.tended.compare_exchange(TENDED, ASKED, Ordering::SeqCst, Ordering::Relaxed);
        asked.is_ok() || asked == Err(ASKED)
    }

    fn nanoseconds(&self) -> u64 {
        // 0 is none.
        self.began.elapsed().as_nanos() as u64 | 1
    }

    /// The process leaves, and others may want something of it. One that comes back soon each time takes that itself.
    fn watch_for_requests(&self) {
        // Pairs with `remind`: the keeper sees that the process has left, or a clock is set here.
        self.left.swap(self.nanoseconds(), Ordering::SeqCst);
        if self.watched.load(Ordering::Relaxed) {
            return;
        }
        if self.stays_away() {
            self.watch_again(Prospect::Request as u32);
        } else if !self.reminded.swap(true, Ordering::SeqCst) {
            self.carrier.ring_after(self.quiet());
        }
    }

    fn quiet(&self) -> Duration {
        QUIET.0 * (1 << self.calls.load(Ordering::Relaxed))
    }

    /// A thread of the process waits from now on, and looks itself: what the carrier was armed for when the process left is no reason any more.
    #[inline]
    pub fn attended(&self) {
        if self.left.load(Ordering::Relaxed) != 0 {
            self.come_back();
        }
        if self.has_begun() {
            self.look_back();
        }
    }

    /// Notes how soon the process has come back to what it had begun. Where the keeper was of no use lately, and so was not asked to watch that, it may be of
    /// use the next time if the process comes back only now.
    #[cold]
    fn look_back(&self) {
        let (unheard, begun) =
            (self.unheard.swap(0, Ordering::Relaxed), self.begun.swap(0, Ordering::Relaxed));
        let now = self.nanoseconds();
        let was_long = |since: u64| since != 0 && now.saturating_sub(since) > AWAY.as_nanos() as u64;
        let long = was_long(unheard) || was_long(begun);
        self.stayed.store(with(self.stayed.load(Ordering::Relaxed), BEGUN, long), Ordering::Relaxed);
        if was_long(unheard) {
            self.needless.store(0, Ordering::Relaxed);
        }
    }

    /// Whether the process mostly stays away for a while when it leaves.
    pub(crate) fn stays_away(&self) -> bool {
        C::DISARMS && self.away.load(Ordering::Relaxed) >= SHARES.1
    }

    fn come_back(&self) {
        let left = self.left.swap(0, Ordering::Relaxed);
        let long = self.nanoseconds().saturating_sub(left) > AWAY.as_nanos() as u64;
        self.away.store(with(self.away.load(Ordering::Relaxed), SHARES, long), Ordering::Relaxed);
        // For something that has begun it is armed again by nobody.
        let of_those = [0, Prospect::Request as u32].contains(&self.prospect.load(Ordering::Relaxed));
        if !C::DISARMS || !of_those || !self.watched.load(Ordering::Relaxed) || self.is_armed() {
            return;
        }
        self.carrier.disarm();
        self.watched.store(false, Ordering::Relaxed);
        if self.is_armed() {
            // Somebody is about to sleep, and has armed the carrier before it was disarmed, perhaps.
            self.watch(0);
        }
    }

    fn is_armed(&self) -> bool {
        self.armed.load(Ordering::SeqCst)
    }

    /// For the keeper: the time of [`Carrier::ring_after`] is over.
    pub fn remind(&self) {
        self.reminded.store(false, Ordering::SeqCst);
        let left = self.left.load(Ordering::SeqCst);
        let away = self.nanoseconds().saturating_sub(left) > AWAY.as_nanos() as u64;
        if left != 0 && away {
            self.calls.store(0, Ordering::Relaxed);
            if !self.watched.swap(true, Ordering::Relaxed) {
                self.prospect.store(Prospect::Request as u32, Ordering::Relaxed);
                self.wanted.store(true, Ordering::Release);
            }
            return;
        }
        // It calls again and again. Where it waits, it sets the next clock when it leaves.
        if self.quiet() < QUIET.1 {
            self.calls.fetch_add(1, Ordering::Relaxed);
        }
        if left != 0 && !self.reminded.swap(true, Ordering::SeqCst) {
            self.carrier.ring_after(self.quiet());
        }
    }
}
