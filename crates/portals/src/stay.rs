//! Whether the thread of a network that has taken something in for a process that computes looks for more before it sleeps.
//!
//! To sleep and be woken takes it several microseconds of the processor that it shares with the program, and who sends to it pays for the call to another
//! processor: in a virtual machine more than for the message itself. Where the next message follows sooner than that, it costs both less to wait for it here.

use std::time::{Duration, Instant};

/// What is taken in so soon after the last time follows it.
const CLOSE: Duration = Duration::from_micros(50);
/// How long it looks after what was taken in last: about as long as a peer needs that waits for an answer before it sends again.
const LOOKS: Duration = Duration::from_micros(12);
/// And at most without a pause, for there are other things to do.
const MOST: Duration = Duration::from_millis(1);
/// How often at most it sleeps at once after it has looked in vain.
const RESTS: u32 = 64;

/// Asked by that thread alone.
#[derive(Debug, Default)]
pub struct Stay {
    began: Option<Instant>,
    /// When something was taken in last.
    taken: Option<Instant>,
    /// Whether it looks for more this time, has looked, and has found something then.
    looks: bool,
    looked: bool,
    found: bool,
    /// How often it sleeps at once from now on, and how often it did after the last look that was in vain.
    rests: u32,
    rested: u32,
}

impl Stay {
    /// It was woken.
    pub fn begin(&mut self, now: Instant) {
        let close = self.taken.is_some_and(|taken| now.saturating_duration_since(taken) < CLOSE);
        self.looks = close && self.rests == 0;
        if close {
            self.rests = self.rests.saturating_sub(1);
        }
        self.began = Some(now);
        (self.looked, self.found) = (false, false);
    }

    /// Whether it looks for more this time.
    pub fn looks(&self) -> bool {
        self.looks
    }

    /// Something was taken in.
    pub fn taken(&mut self, now: Instant) {
        self.taken = Some(now);
        self.found |= self.looked;
    }

    /// There is nothing at the moment. Whether to look again.
    pub fn goes_on(&mut self, now: Instant) -> bool {
        if !self.looks {
            return false;
        }
        let within =
            |from: Option<Instant>, time| from.is_some_and(|from| now.saturating_duration_since(from) < time);
        if within(self.taken, LOOKS) && within(self.began, MOST) {
            self.looked = true;
            return true;
        }
        if self.found {
            self.rested = 0;
        } else if self.looked {
            self.rested = (self.rested * 2).clamp(1, RESTS);
            self.rests = self.rested;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Woken at each of the times, in microseconds; each time one message is there, and another comes so long after it, if any. How often it looked for that.
    fn looks(stay: &mut Stay, from: Instant, every: Duration, next: Option<Duration>, count: u32) -> u32 {
        let mut looks = 0;
        for number in 0..count {
            let now = from + every * number;
            stay.begin(now);
            stay.taken(now);
            looks += u32::from(stay.goes_on(now));
            if let Some(next) = next.filter(|_| stay.looks) {
                stay.taken(now + next);
                stay.goes_on(now + next);
            }
            assert!(!stay.goes_on(now + next.unwrap_or_default() + LOOKS));
        }
        looks
    }

    #[test]
    fn who_is_woken_again_and_again_looks_and_who_looks_in_vain_sleeps() {
        let mut stay = Stay::default();
        let start = Instant::now();
        assert_eq!(looks(&mut stay, start, CLOSE * 2, None, 10), 0, "messages that come now and then");
        let start = start + CLOSE * 100;
        let next = Some(LOOKS / 2);
        assert_eq!(
            looks(&mut stay, start, CLOSE / 2, next, 10),
            9,
            "each but the first follows another soon"
        );
        let start = start + CLOSE * 100;
        assert_eq!(
            looks(&mut stay, start, CLOSE / 2, None, 8),
            3,
            "the first follows none, and of the others 1, 3, and 7"
        );
        assert!(looks(&mut stay, start + CLOSE * 4, CLOSE / 2, None, 1000) < 20);
    }

    #[test]
    fn nobody_looks_for_ever() {
        let mut stay = Stay::default();
        let start = Instant::now();
        stay.taken(start);
        stay.begin(start);
        let mut now = start;
        while stay.goes_on(now) {
            stay.taken(now);
            now += LOOKS / 2;
        }
        assert!(now >= start + MOST && now < start + MOST * 2);
    }
}
