//! The thread that calls peers again who have not answered, lets the provider work while nobody else does, and wakes the
//! process for arrivals.

use crate::fabric::{ARRIVALS, BELL, Fabric, TIMER};
use parnass_base::atomics::Ordering;
use parnass_transport::Waker;
use parnass_transport_stream::{Carrier, INTERFACE_VARIABLE, Loss, Stage, Streams, Watch, lock};
use rustix::event::epoll;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Between two looks while the provider takes no more, or cannot tell of arrivals.
const PACE: Duration = Duration::from_millis(1);
/// Where it cannot tell of them, the first looks for somebody who has just fallen asleep come sooner, and are so many: what he waits for
/// is often about to come.
const FIRST_PACE: Duration = Duration::from_micros(50);
const FIRST_LOOKS: u32 = 40;
/// Between two looks whether somebody wants to connect, until everybody is.
const TICK: Duration = Duration::from_millis(25);

/// The keeper's own.
pub struct Keeper {
    streams: Arc<Streams<Fabric>>,
    watch: Watch,
    /// Looks that have found nothing since somebody has rung.
    idle_looks: u32,
}

impl Keeper {
    pub fn new(streams: Arc<Streams<Fabric>>, waker: Waker, on_loss: Box<dyn Fn(Loss) + Send>) -> Keeper {
        Keeper { streams, watch: Watch::new(waker, on_loss), idle_looks: 0 }
    }

    /// Its life.
    pub fn run(mut self) {
        self.watch.begin();
        let mut events: [std::mem::MaybeUninit<epoll::Event>; 4] =
            [const { std::mem::MaybeUninit::uninit() }; 4];
        while !self.streams.stopping.load(Ordering::Acquire) {
            // A poll set counts in milliseconds, and rounds up: of what is shorter it is asked after a sleep.
            let limit = self.limit().map(|limit| {
                if limit >= PACE {
                    return limit;
                }
                std::thread::sleep(limit);
                Duration::ZERO
            });
            let time = limit.map(|limit| rustix::time::Timespec {
                tv_sec: limit.as_secs() as i64,
                tv_nsec: i64::from(limit.subsec_nanos()),
            });
            let fabric = &self.streams.carrier;
            let Ok((found, _)) = epoll::wait(&fabric.gate, &mut events, time.as_ref()) else { continue };
            let (mut told, mut rung) = (false, false);
            for event in found.iter() {
                match event.data.u64() {
                    ARRIVALS => told = true,
                    BELL => {
                        let mut count = [0; 8];
                        let _ = rustix::io::read(&fabric.bell, &mut count);
                        rung = true;
                        self.idle_looks = 0;
                    }
                    TIMER => {
                        fabric.timer.take();
                        self.streams.remind();
                        rung = true;
                    }
                    _ => (),
                }
            }
            // Without a bell or arrivals the time is up, and something may be stuck.
            if told || !rung {
                self.arrivals(told);
            }
            self.look_after_time();
            self.watch.look_after_gathered(&self.streams);
        }
    }

    /// How long it may sleep.
    fn limit(&mut self) -> Option<Duration> {
        let fabric = &self.streams.carrier;
        let (deadline, waiting, whole) = {
            let engine = fabric.engine();
            (engine.deadline(), engine.is_waiting(), engine.is_whole())
        };
        // Providers over connections do not tell of those who want one.
        let tick = (!whole).then(|| Instant::now() + TICK);
        let blind = !fabric.tells && self.streams.watched.load(Ordering::Relaxed);
        // While the process parts from its peers, nothing is armed any more.
        let closing = self.streams.closing.load(Ordering::Relaxed);
        let pace = if blind && self.idle_looks < FIRST_LOOKS { FIRST_PACE } else { PACE };
        let pace = (waiting || blind || closing).then(|| Instant::now() + pace);
        self.watch.limit(&self.streams, deadline.into_iter().chain(pace).chain(tick))
    }

    /// Looks at what has come; `told`: the provider has told of it, once.
    fn arrivals(&mut self, told: bool) {
        let found = {
            let mut incoming = lock(&self.streams.incoming);
            self.streams.look(&mut incoming);
            incoming.has_ready()
        };
        self.idle_looks = if found { 0 } else { self.idle_looks.saturating_add(1) };
        if found {
            if self.watch.arrivals(&self.streams) {
                self.settle();
            }
        } else if told {
            // A send has completed, or a handshake went on: nobody need be woken.
            self.streams.carrier.arm();
            self.settle();
        }
    }

    /// After arming: what is there already, and will not be told of, is looked at now.
    fn settle(&mut self) {
        while !self.streams.carrier.is_settled() {
            let found = {
                let mut incoming = lock(&self.streams.incoming);
                self.streams.look(&mut incoming);
                incoming.has_ready()
            };
            if found && !self.watch.arrivals(&self.streams) {
                return;
            }
        }
    }

    fn look_after_time(&mut self) {
        let now = Instant::now();
        let absent = self.watch.overslept(now);
        let given_up = self.streams.carrier.engine().look_after_calls(now, absent);
        for (peer, failures) in given_up {
            self.give_up(peer, &failures);
        }
        let lost = std::mem::take(&mut *lock(&self.streams.carrier.lost));
        for (peer, error) in lost {
            let reason = match error.kind() {
                io::ErrorKind::UnexpectedEof => "it ended without a goodbye".to_owned(),
                _ => error.to_string(),
            };
            let place = self.streams.carrier.place(peer);
            self.watch.lose(
                peer,
                format!(
                    "the stream to {place} is lost: {reason}. See whether the process and its host are still there, and \
                     whether the network between them is"
                ),
            );
        }
        if self.watch.look_after_time(&self.streams, now) {
            self.settle();
        }
    }

    fn give_up(&mut self, peer: u32, failures: &[String]) {
        let tried = if failures.is_empty() { "no answer".to_owned() } else { failures.join("; ") };
        let place = self.streams.carrier.place(peer);
        let text = format!(
            "{place} cannot be reached: {tried}. See whether a firewall between the hosts is in the way, name the network \
             that connects them ({INTERFACE_VARIABLE}=eth0, or {INTERFACE_VARIABLE}=10.1.0.0/16), or use TCP: \
             `mpiexec --tunable network=tcp`"
        );
        lock(&self.streams.link(peer).out).stage = Stage::Lost;
        self.watch.lose(peer, text);
    }
}
