//! When two processes look for the messages that they send each other at the same time; and the time that exchanges take.

use parnass_base::atomics::Ordering::Relaxed;
use parnass_base::atomics::{AtomicBool, AtomicU32, AtomicU64};
use parnass_base::choice::Choice;
use parnass_base::clock;

/// Exchanges whose time is taken together.
pub(super) const TIMED: u32 = 64;

/// The time that exchanges with a peer take, of so many together.
#[derive(Debug, Default)]
pub(super) struct Timed {
    exchanges: AtomicU32,
    /// When the first of them began; 0: not known.
    began: AtomicU64,
}

impl Timed {
    /// The next exchange is the first of those whose time is taken, from `now` on; 0: from when that is known.
    #[inline(always)]
    pub(super) fn begin(&self, now: u64) {
        self.exchanges.store(0, Relaxed);
        self.began.store(now, Relaxed);
    }

    /// One more; whether there were so many that [`Timed::end`] is due.
    #[inline(always)]
    pub(super) fn count(&self) -> bool {
        let exchanges = self.exchanges.load(Relaxed) + 1;
        self.exchanges.store(exchanges, Relaxed);
        exchanges >= TIMED
    }

    /// What all of them took, if it is known when they began; the next ones begin `now`.
    pub(super) fn end(&self, now: u64) -> Option<u64> {
        let began = self.began.load(Relaxed);
        self.begin(now);
        (began != 0).then(|| now.saturating_sub(began))
    }
}

/// When to look for a message of the peer, after one to it that went by the lane: at once, or when such a one has come so far, which is found out from the time
/// that exchanges take. Two that send to each other at the same time both look too early otherwise, and each takes the line from the other, who is about to write it.
/// Cores that share their caches gain nothing by waiting.
#[derive(Debug, Default)]
pub(super) struct Meeting {
    /// 0 to look at once, 1 to let the time pass.
    ways: Choice<2>,
    /// Steps of [`parnass_base::clock::idle`].
    after: AtomicU32,
    /// Whether the first look was in vain.
    vain: AtomicBool,
    /// Whether the last message to the peer was longer than [`LONGEST`].
    is_long: AtomicBool,
    timed: Timed,
}

/// The way of [`Meeting::ways`] that lets time pass, and the most steps that it does.
const LETS_PASS: usize = 1;
const MOST_STEPS: u32 = 400;
/// Longer messages take several lines each, of which the first look takes one. For them it may come too late where it came in time for the last ones: an
/// MPI_Iallreduce of 400 bytes between cores far from each other took a sixth longer.
const LONGEST: usize = 128;
/// Steps by which the first look comes later after one in vain, which costs about as much as so many steps too many: of 3, 8, 16 and 32 these were the best
/// where two exchange 8 bytes to 1 KiB between cores that are far from each other.
const MUCH_LATER: u32 = 16;

impl Meeting {
    /// So many bytes are sent to the peer.
    #[inline(always)]
    pub(super) fn sends(&self, length: usize) {
        self.is_long.store(length > LONGEST, Relaxed);
    }

    /// Whether time is to pass before the first look.
    #[inline(always)]
    pub(super) fn lets_pass(&self) -> bool {
        self.ways.way() == LETS_PASS && !self.is_long.load(Relaxed)
    }

    /// Lets it pass.
    #[inline(never)]
    pub(super) fn let_pass(&self) {
        clock::idle(self.after.load(Relaxed));
    }

    /// That one was in vain.
    #[inline(always)]
    pub(super) fn looked_in_vain(&self) {
        self.vain.store(true, Relaxed);
    }

    /// One message was exchanged for one. Whether the time that so many took is to be [learned](Meeting::learn).
    #[inline(always)]
    pub(super) fn met(&self) -> bool {
        let vain = self.vain.load(Relaxed);
        self.vain.store(false, Relaxed);
        if self.is_long.load(Relaxed) {
            self.timed.begin(0);
            return false;
        }
        if self.ways.way() == LETS_PASS {
            let after = match (self.after.load(Relaxed), vain) {
                (after, true) if after >= MOST_STEPS => 0,
                (after, true) => after + MUCH_LATER,
                (after, false) => after.saturating_sub(1),
            };
            self.after.store(after, Relaxed);
        }
        self.timed.count()
    }

    #[inline(never)]
    pub(super) fn learn(&self, now: u64) {
        if let Some(took) = self.timed.end(now) {
            self.ways.learn(self.ways.way(), TIMED as usize, took);
        }
    }

    /// What comes now is no exchange of this kind: the time of those before is not taken.
    #[inline(always)]
    pub(super) fn is_disturbed(&self) {
        self.timed.begin(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(meeting: &Meeting) -> u32 {
        if meeting.lets_pass() { meeting.after.load(Relaxed) } else { 0 }
    }

    /// Exchanges whose message comes after so many steps, each of one nanosecond, and `late` more if it was looked for before. How many steps the first look
    /// waits for at the end.
    fn exchange(comes: u32, late: u32) -> u32 {
        let (meeting, mut now) = (Meeting::default(), 1);
        for _ in 0..200 * TIMED {
            let waits = steps(&meeting);
            if waits < comes {
                meeting.looked_in_vain();
            }
            now += u64::from(if waits < comes { comes + late } else { waits });
            if meeting.met() {
                meeting.learn(now);
            }
        }
        steps(&meeting)
    }

    #[test]
    fn waits_where_a_look_in_vain_costs_much_and_nowhere_else() {
        let waits = exchange(200, 300);
        assert!((190..230).contains(&waits), "{waits} steps");
        assert_eq!(exchange(200, 0), 0);
        assert_eq!(exchange(0, 300), 0);
        assert_eq!(exchange(5_000, 300), 0);
    }
}
