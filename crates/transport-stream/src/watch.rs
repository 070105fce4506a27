//! What the keepers of all siblings do besides looking after their connections: wake the process for arrivals, send what was
//! gathered and left, and tell of losses.

use crate::attendance::{ASKED, STALE, TENDED, keep};
use crate::link::{Loss, Streams, try_lock};
use crate::pipe::Carrier;
use parnass_base::atomics::{Ordering, full_fence};
use parnass_base::process::{Berth, become_keeper};
use parnass_transport::Waker;
use std::time::{Duration, Instant};

/// So long after a loss it is told: the launcher knows best why a process is gone, and is let speak first.
const GRACE: Duration = Duration::from_secs(2);
/// Between two looks at what was gathered: where the last one has found something to send, and where the process sends it itself.
const PAUSE: (Duration, Duration) = (Duration::from_micros(100), Duration::from_millis(1));
/// Looks before which nothing was gathered, until the keeper sleeps again.
const IDLE_LOOKS: u32 = 2;
/// Arrivals in a row that the keeper has taken from a process that takes what comes itself, until it looks away.
const CHANCES: u32 = 2;
/// After arrivals that nobody was asleep for, it is watched again after so long, and at most after so long.
const REARM: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(16));

/// Part of a keeper.
pub struct Watch {
    waker: Waker,
    berth: Berth,
    on_loss: Box<dyn Fn(Loss) + Send>,
    losses: Vec<(Instant, Loss)>,
    rearm: Option<Instant>,
    rearm_after: Duration,
    /// How often in a row the keeper was useful to a process that has taken something itself since the carrier was armed.
    chances: u32,
    idle_looks: u32,
    pause: Duration,
    /// When what was gathered is looked at next.
    look: Option<Instant>,
    /// When the keeper wanted to look again, at the latest.
    expected: Option<Instant>,
}

impl Watch {
    /// `waker` is called for arrivals, `on_loss` when a peer is lost.
    pub fn new(waker: Waker, on_loss: Box<dyn Fn(Loss) + Send>) -> Watch {
        Watch {
            waker,
            berth: Berth::default(),
            on_loss,
            losses: Vec::new(),
            rearm: None,
            rearm_after: REARM.0,
            chances: 0,
            idle_looks: 0,
            pause: PAUSE.0,
            look: None,
            expected: None,
        }
    }

    /// Connections have something. Whether the carrier is armed again.
    ///
    /// What has come for a process that computes was taken in here, and so will be what comes next. Where the threads of the
    /// process take it themselves, this thread costs them time: then it looks less and less often.
    pub fn arrivals<C: Carrier>(&mut self, streams: &Streams<C>) -> bool {
        if streams.closing.load(Ordering::Relaxed) {
            return false;
        }
        streams.tended.store(TENDED, Ordering::Relaxed);
        streams.watched.store(false, Ordering::Relaxed);
        let asked = streams.armed.swap(false, Ordering::Relaxed);
        // Pairs with the fence in `Interface::leave`: who stops waiting asks for this thread again, or is found computing below.
        full_fence();
        streams.moved.store(false, Ordering::Relaxed);
        let comes_back = streams.stale.load(Ordering::Relaxed) != 0;
        let useful = (self.waker)() || streams.moved.load(Ordering::Relaxed);
        let meanwhile = streams.tended.swap(0, Ordering::SeqCst) == ASKED;
        if useful {
            self.berth.has_served();
            self.chances = if comes_back { self.chances + 1 } else { 0 };
            if (self.chances >= CHANCES || streams.comes_back_soon()) && !meanwhile {
                // This thread came between two calls of a process that is in the library most of the time, and the next arrival would
                // bring it there again.
                self.put_off();
                return false;
            }
            self.rearm = None;
            self.rearm_after = REARM.0;
            streams.needless.store(0, Ordering::Relaxed);
            streams.watch(0);
            return true;
        }
        self.berth.was_needless();
        self.rearm_later(streams, asked);
        if meanwhile {
            // Once: that it was for nothing is noted.
            streams.watch(streams.prospect.load(Ordering::Relaxed));
        }
        meanwhile
    }

    /// The threads of the process take what comes: this one is to be told of it after a while; sooner where somebody has `asked` for that.
    fn rearm_later<C: Carrier>(&mut self, streams: &Streams<C>, asked: bool) {
        if asked {
            self.rearm_after = REARM.0;
            self.rearm = Some(Instant::now() + self.rearm_after);
        } else {
            self.put_off();
            streams.needless.fetch_or(streams.prospect.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// This thread is to be told of arrivals again after twice the time that it was the last time.
    fn put_off(&mut self) {
        self.rearm_after = (self.rearm_after * 2).min(REARM.1);
        self.rearm = Some(Instant::now() + self.rearm_after);
    }

    /// Where the process has taken what came before this thread could: the kernel woke it and let it sleep on, each time, and would go
    /// on with that.
    pub fn look_after_stale<C: Carrier>(&mut self, streams: &Streams<C>) {
        let stale = streams.stale.load(Ordering::Relaxed) >= STALE;
        // Where it is not watched, an arrival was told after all, and has put this thread off already.
        if !stale || !streams.watched.load(Ordering::Relaxed) || streams.closing.load(Ordering::Relaxed) {
            return;
        }
        streams.stale.store(0, Ordering::Relaxed);
        let asked = streams.armed.swap(false, Ordering::SeqCst);
        streams.carrier.disarm();
        streams.watched.store(false, Ordering::Relaxed);
        if streams.armed.load(Ordering::SeqCst) {
            // Somebody is about to sleep, and has armed the carrier before it was disarmed, perhaps.
            streams.watch(0);
        } else {
            self.rearm_later(streams, asked);
        }
    }

    /// Called by the thread that is the keeper.
    pub fn begin(&mut self) {
        self.berth = become_keeper();
        keep();
    }

    /// Notes a loss, to be told soon.
    pub fn lose(&mut self, rank: u32, text: String) {
        self.losses.push((Instant::now() + GRACE, Loss { rank, text }));
    }

    /// How long the keeper may sleep, where `others` says until when it may for its own part.
    pub fn limit<C: Carrier>(
        &mut self,
        streams: &Streams<C>,
        others: impl Iterator<Item = Instant>,
    ) -> Option<Duration> {
        let now = Instant::now();
        let attentive = streams.attentive.load(Ordering::Relaxed);
        self.look = attentive.then(|| self.look.unwrap_or(now + self.pause));
        let losses = self.losses.iter().map(|(when, _)| *when);
        self.expected = others.chain(losses).chain(self.rearm).chain(self.look).min();
        self.expected.map(|first| first.saturating_duration_since(now))
    }

    /// How much later than it wanted the keeper looks again, asked once: it was stopped, or got no processor. Whoever has answered
    /// meanwhile was not slow, and a peer that was not called meanwhile is not beyond reach.
    pub fn overslept(&mut self, now: Instant) -> Duration {
        self.expected.take().map_or(Duration::ZERO, |expected| now.saturating_duration_since(expected))
    }

    /// Does what is due. Whether it has armed the carrier.
    pub fn look_after_time<C: Carrier>(&mut self, streams: &Streams<C>, now: Instant) -> bool {
        let due = self.rearm.is_some_and(|when| when <= now);
        // Acquire pairs with the release in `watch_again`.
        let wanted = streams.wanted.swap(false, Ordering::Acquire);
        if wanted || due {
            self.rearm = None;
        }
        let arms = (wanted || due) && !streams.closing.load(Ordering::Relaxed);
        if arms {
            if due {
                // The program may do something else by now.
                streams.needless.store(0, Ordering::Relaxed);
            }
            streams.watch(if wanted { streams.prospect.load(Ordering::Relaxed) } else { 0 });
            // Read, and then left by a thread that computes now: no event tells of that. A thread that takes messages now may leave
            // some later; who waited for it here would be woken each time that it lets go of the lock, and find it taken again.
            match try_lock(&streams.incoming).map(|incoming| incoming.has_ready()) {
                Some(true) => drop(self.arrivals(streams)),
                Some(false) => (),
                None => self.rearm = Some(now + REARM.0),
            }
        }
        let mut told = Vec::new();
        self.losses.retain(|(when, loss)| {
            let due = *when <= now;
            if due {
                told.push(loss.clone());
            }
            !due
        });
        if !streams.closing.load(Ordering::Relaxed) {
            told.into_iter().for_each(|loss| (self.on_loss)(loss));
        }
        arms
    }

    /// Sends what others have gathered and left.
    pub fn look_after_gathered<C: Carrier>(&mut self, streams: &Streams<C>) {
        if self.look.is_some_and(|when| when <= Instant::now()) {
            self.look = None;
            let sent_itself = streams.sent_itself.swap(false, Ordering::Relaxed);
            let sent = streams.send_gathered();
            self.idle_looks = if sent || sent_itself { 0 } else { self.idle_looks + 1 };
            if sent {
                self.pause = PAUSE.0;
            } else if sent_itself {
                self.pause = PAUSE.1;
            }
            if self.idle_looks >= IDLE_LOOKS {
                self.idle_looks = 0;
                streams.attentive.swap(false, Ordering::SeqCst);
                // What was gathered before the line above, by somebody who then did not ring.
                streams.send_gathered();
            }
        }
        if streams.has_told() && !streams.closing.load(Ordering::Relaxed) {
            // This thread has sent the last of what was lent, perhaps, and nobody else knows.
            let _ = (self.waker)();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::Identity;
    use crate::pipe::{Pipe, Sight};
    use parnass_base::UserAddress;
    use parnass_base::atomics::{AtomicBool, AtomicU32};
    use parnass_base::socket::Part;
    use parnass_transport::Prospect;
    use std::io;
    use std::sync::Arc;

    /// A carrier that carries nothing, and notes whether it is armed, how often it was rung, and how often it was to ring later.
    #[derive(Debug, Default)]
    struct Nothing {
        armed: AtomicBool,
        rings: AtomicU32,
        reminders: AtomicU32,
    }

    impl Pipe for Nothing {
        fn send(&self, _: &[Part<'_>]) -> io::Result<usize> {
            Err(io::ErrorKind::WouldBlock.into())
        }
        fn receive(&self, _: UserAddress, _: usize, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::WouldBlock.into())
        }
        fn way(&self) -> &str {
            "none"
        }
        fn finish(&self) {}
        fn cut(&self) {}
    }

    impl Carrier for Nothing {
        type Pipe = Nothing;
        const DISARMS: bool = true;
        fn connect(&self, _: u32) {}
        fn lost(&self, _: u32, _: io::Error) {}
        fn watch(&self, _: &Nothing, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn block(&self, _: &Nothing, _: usize, _: bool) {}
        fn forget(&self, _: &Nothing) {}
        fn look(&self, _: &mut dyn FnMut(Sight<Nothing>)) {}
        fn arm(&self) {
            self.armed.store(true, Ordering::Relaxed);
        }
        fn disarm(&self) {
            self.armed.store(false, Ordering::Relaxed);
        }
        fn ring(&self) {
            self.rings.fetch_add(1, Ordering::Relaxed);
        }
        fn ring_after(&self, _: Duration) {
            self.reminders.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn nothing() -> (Streams<Nothing>, Watch) {
        let streams = Streams::new(Identity::new(&[1; 32], 0, 2, false), Nothing::default(), Arc::default());
        (streams, Watch::new(Box::new(|| false), Box::new(|_| ())))
    }

    #[test]
    fn the_keeper_is_not_woken_for_what_the_process_takes_itself() {
        let (streams, mut watch) = nothing();
        for round in 0..3 {
            streams.watch(0);
            (0..STALE - 1).for_each(|_| streams.took());
            watch.look_after_stale(&streams);
            assert!(streams.carrier.armed.load(Ordering::Relaxed), "it may be needed");
            (0..STALE).for_each(|_| streams.took());
            assert_eq!(streams.carrier.rings.load(Ordering::Relaxed), round + 1);
            watch.look_after_stale(&streams);
            assert!(!streams.carrier.armed.load(Ordering::Relaxed));
            let limit = watch.limit(&streams, std::iter::empty()).unwrap();
            assert!(limit <= REARM.1, "and is told again later: {limit:?}");
            assert!(!watch.look_after_time(&streams, Instant::now()));
            assert!(watch.look_after_time(&streams, Instant::now() + REARM.1));
            assert!(streams.carrier.armed.load(Ordering::Relaxed));
        }
    }

    #[test]
    fn who_is_about_to_sleep_is_woken_though_the_keeper_disarms() {
        let (streams, mut watch) = nothing();
        streams.watch(0);
        (0..STALE).for_each(|_| streams.took());
        streams.arm();
        (0..STALE).for_each(|_| streams.took());
        watch.look_after_stale(&streams);
        let armed = streams.carrier.armed.load(Ordering::Relaxed);
        // Either it is armed still, or it is so soon: the sleeper may have woken meanwhile.
        assert!(armed || watch.look_after_time(&streams, Instant::now() + REARM.0));
    }

    #[test]
    fn who_asks_while_the_keeper_works_has_it_come_again() {
        let streams = Arc::new(nothing().0);
        for useful in [false, true] {
            let of_waker = streams.clone();
            let asks = move || {
                assert!(!of_waker.watched.load(Ordering::Relaxed));
                of_waker.watch_lightly(Prospect::Moving);
                assert!(!of_waker.carrier.armed.load(Ordering::Relaxed), "the keeper arms it itself");
                useful
            };
            let mut watch = Watch::new(Box::new(asks), Box::new(|_| ()));
            streams.carrier.armed.store(false, Ordering::Relaxed);
            assert!(watch.arrivals(&streams));
            assert!(streams.carrier.armed.load(Ordering::Relaxed) && streams.watched.load(Ordering::Relaxed));
        }
    }

    /// Leaves for a while, and comes back to wait.
    fn leave_for(streams: &Streams<Nothing>, time: Duration) {
        streams.watch_lightly(Prospect::Request);
        std::thread::sleep(time);
        streams.attended();
    }

    #[test]
    fn the_keeper_is_told_of_requests_to_a_process_that_stays_away() {
        let (streams, mut watch) = nothing();
        let armed = || streams.carrier.armed.load(Ordering::Relaxed);
        let reminders = || streams.carrier.reminders.load(Ordering::Relaxed);
        // As a keeper that has found the process waiting.
        assert!(!watch.arrivals(&streams) && !armed());
        for _ in 0..3 {
            streams.watch_lightly(Prospect::Request);
            assert!(!armed() && reminders() == 1, "a clock is set, once");
            streams.attended();
            // However long that took on this machine.
            streams.away.store(0, Ordering::Relaxed);
        }
        streams.remind();
        assert!(!watch.look_after_time(&streams, Instant::now()), "it waits there");
        streams.watch_lightly(Prospect::Request);
        assert_eq!(reminders(), 2, "and is looked after again when it leaves");
        std::thread::sleep(Duration::from_millis(1));
        streams.remind();
        assert!(watch.look_after_time(&streams, Instant::now()) && armed());
        leave_for(&streams, Duration::from_millis(1));
        assert!(!armed(), "who waits looks himself");
        streams.watch_lightly(Prospect::Request);
        assert!(armed(), "it stayed away for long, and may again");
        streams.arm();
        streams.attended();
        assert!(armed(), "somebody sleeps");
    }

    #[test]
    fn a_keeper_that_was_of_no_use_watches_again_for_who_stays_away() {
        let (streams, mut watch) = nothing();
        let armed = || streams.carrier.armed.load(Ordering::Relaxed);
        streams.watch_lightly(Prospect::Moving);
        streams.carrier.armed.store(false, Ordering::Relaxed);
        streams.armed.store(false, Ordering::Relaxed);
        streams.prospect.store(Prospect::Moving as u32, Ordering::Relaxed);
        assert!(!watch.arrivals(&streams), "the process has taken it itself");
        for (away, again) in [(false, false), (true, false), (false, true)] {
            streams.watch_lightly(Prospect::Moving);
            assert_eq!(armed(), again);
            if away {
                std::thread::sleep(Duration::from_millis(1));
            } else {
                // However long that took on this machine.
                streams.unheard.store(0, Ordering::Relaxed);
            }
            streams.attended();
        }
    }

    #[test]
    fn the_keeper_is_not_told_of_what_the_process_nearly_always_waits_for_soon() {
        let (streams, mut watch) = nothing();
        let is_told = |time: Duration| {
            streams.watched.store(false, Ordering::Relaxed);
            streams.watch_lightly(Prospect::Posted);
            for since in [&streams.begun, &streams.unheard] {
                let began = since.load(Ordering::Relaxed);
                since.store(began.saturating_sub(time.as_nanos() as u64).min(began), Ordering::Relaxed);
            }
            streams.attended();
            streams.watched.load(Ordering::Relaxed)
        };
        std::thread::sleep(Duration::from_millis(2));
        let (soon, late) = (Duration::ZERO, Duration::from_millis(1));
        let told = (0..100).filter(|_| is_told(soon)).count();
        assert!((20..80).contains(&told), "at first it is: {told} of 100");
        watch.waker = Box::new(|| true);
        assert!(!watch.arrivals(&streams), "of use, but too early");
        assert!(!is_told(soon) && !is_told(late), "nobody knew that it would stay away");
        let told = (0..200).filter(|number| is_told(if number % 10 == 0 { late } else { soon })).count();
        assert!(told > 150, "where it stays away one time in ten: {told} of 200");
    }

    #[test]
    fn who_begins_many_messages_is_not_away_while_it_writes_them() {
        let (streams, _) = nothing();
        let begun = || streams.begun.load(Ordering::Relaxed);
        streams.has_written(Duration::from_micros(10));
        assert_eq!(begun(), 0, "nothing was begun");
        streams.begun.store(10_000, Ordering::Relaxed);
        streams.has_written(Duration::from_micros(900));
        assert_eq!(begun(), 910_000, "however long it writes");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                crate::attendance::keep();
                streams.has_written(Duration::from_micros(10));
            });
        });
        assert_eq!(begun(), 910_000, "that was the keeper");
    }

    #[test]
    fn the_keeper_does_not_wait_for_a_thread_that_takes_messages() {
        let (streams, mut watch) = nothing();
        streams.wanted.store(true, Ordering::Release);
        let taking = crate::lock(&streams.incoming);
        let now = Instant::now();
        assert!(watch.look_after_time(&streams, now), "it is armed all the same");
        let limit = watch.limit(&streams, std::iter::empty()).unwrap();
        assert!(limit <= REARM.0, "what is left then is looked for soon: {limit:?}");
        drop(taking);
        watch.look_after_time(&streams, now + REARM.0);
        assert_eq!(watch.limit(&streams, std::iter::empty()), None);
    }

    #[test]
    fn the_keeper_of_a_process_that_ends_sleeps() {
        let (streams, mut watch) = nothing();
        assert!(!watch.arrivals(&streams), "the threads of the process take what comes");
        assert!(watch.limit(&streams, std::iter::empty()).is_some(), "and so it is armed later");
        streams.close();
        assert!(!watch.look_after_time(&streams, Instant::now() + REARM.1));
        assert_eq!(watch.limit(&streams, std::iter::empty()), None);
    }

    #[test]
    fn who_comes_back_by_itself_is_left_alone_though_the_keeper_was_first() {
        let (streams, _) = nothing();
        let mut watch = Watch::new(Box::new(|| true), Box::new(|_| ()));
        for _ in 0..5 {
            streams.watch(0);
            assert!(watch.arrivals(&streams), "the process computes");
        }
        let mut arms = 0;
        for _ in 0..5 {
            streams.watch(0);
            streams.took();
            arms += u32::from(watch.arrivals(&streams));
        }
        assert_eq!(arms, CHANCES - 1);
        assert!(watch.limit(&streams, std::iter::empty()).is_some(), "it is looked after again later");
        streams.watch(0);
        assert!(watch.arrivals(&streams), "it has not come back");
    }

    #[test]
    fn what_the_process_sends_itself_is_looked_after_less_often() {
        let (streams, mut watch) = nothing();
        streams.attentive.store(true, Ordering::Relaxed);
        for (sent_itself, pause) in [(false, PAUSE.0), (true, PAUSE.1), (false, PAUSE.1)] {
            streams.sent_itself.store(sent_itself, Ordering::Relaxed);
            let limit = watch.limit(&streams, std::iter::empty()).unwrap();
            assert!(limit <= watch.pause);
            watch.look = Some(Instant::now());
            watch.look_after_gathered(&streams);
            assert_eq!((watch.pause, watch.look), (pause, None));
        }
        assert!(streams.attentive.load(Ordering::Relaxed), "one look more");
        assert!(watch.limit(&streams, std::iter::empty()).is_some());
        watch.look = Some(Instant::now());
        watch.look_after_gathered(&streams);
        assert!(!streams.attentive.load(Ordering::Relaxed));
        assert_eq!(watch.limit(&streams, std::iter::empty()), None);
    }
}
