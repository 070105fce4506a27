//! The endpoint of a process as streams to its peers.

use crate::address::Contact;
use crate::engine::Engine;
use parnass_base::UserAddress;
use parnass_base::atomics::{AtomicU32, Ordering};
use parnass_base::socket::Part;
use parnass_transport_stream::{Carrier, Pipe, Region, Remote, Sight, Timer, lock};
use rustix::event::epoll::{self, EventData, EventFlags};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What an event of the gate is about.
pub const ARRIVALS: u64 = 0;
pub const BELL: u64 = 1;
pub const TIMER: u64 = 2;
/// So long the end of a stream waits until the peer has heard all of it.
const FAREWELL: Duration = Duration::from_secs(5);
/// So long reads from a peer that is dead may take to end: its connection breaks, or the provider gives up.
const LAST_READS: Duration = Duration::from_secs(5);
/// Looks in a row after which a provider is taken at its word though it says that there is more.
const LOOKS: u32 = 64;

/// The stream to one peer.
pub struct Channel {
    engine: Arc<Mutex<Engine>>,
    peer: u32,
    way: String,
    /// The longest run that either side can read out of the other's memory; 0: none.
    reads: usize,
}

impl fmt::Debug for Channel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "channel to {} over {}", self.peer, self.way)
    }
}

impl Pipe for Channel {
    fn send(&self, parts: &[Part<'_>]) -> io::Result<usize> {
        lock(&self.engine).send(self.peer, parts)
    }

    fn receive(&self, address: UserAddress, length: usize, buffer: &mut [u8]) -> io::Result<usize> {
        lock(&self.engine).receive(self.peer, address, length, buffer)
    }

    fn way(&self) -> &str {
        &self.way
    }

    fn reads(&self) -> usize {
        self.reads
    }

    fn read(&self, name: usize, from: Remote, target: UserAddress, length: usize) -> io::Result<()> {
        lock(&self.engine).read(self.peer, name, from, target, length)
    }

    fn finish(&self) {
        let deadline = Instant::now() + FAREWELL;
        let mut last = false;
        loop {
            let mut engine = lock(&self.engine);
            engine.progress();
            if engine.has_parted(self.peer) {
                return;
            }
            if !last {
                let sent = engine.send_last(self.peer);
                last = sent.map_or_else(|error| error.kind() != io::ErrorKind::WouldBlock, |()| true);
            }
            drop(engine);
            if Instant::now() > deadline {
                return;
            }
            std::thread::sleep(Duration::from_micros(20));
        }
    }

    fn cut(&self) {
        lock(&self.engine).cut(self.peer);
    }
}

/// All streams of a process.
pub struct Fabric {
    engine: Arc<Mutex<Engine>>,
    pub contacts: Arc<[Contact]>,
    /// The provider, for messages.
    pub provider: String,
    /// What the keeper sleeps on; arrivals are in it while armed, where the provider can tell of them.
    pub gate: OwnedFd,
    pub bell: OwnedFd,
    pub timer: Timer,
    /// Whether the provider can tell of arrivals.
    pub tells: bool,
    pub lost: Mutex<Vec<(u32, io::Error)>>,
    looks: AtomicU32,
    /// How many streams take no more.
    blocked: AtomicU32,
    /// How many reads are not over.
    reads: Arc<AtomicU32>,
}

impl fmt::Debug for Fabric {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "libfabric's {}", self.provider)
    }
}

impl Fabric {
    pub fn new(engine: Engine, contacts: Arc<[Contact]>, provider: String) -> io::Result<Fabric> {
        use rustix::event::{EventfdFlags, eventfd};
        let gate = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&gate, &bell, EventData::new_u64(BELL), EventFlags::IN)?;
        let timer = Timer::new()?;
        epoll::add(&gate, &timer, EventData::new_u64(TIMER), EventFlags::IN)?;
        let tells = match engine.endpoint.wait_descriptor() {
            None => false,
            Some(arrivals) => {
                let once = EventFlags::IN | EventFlags::ONESHOT;
                epoll::add(&gate, arrivals, EventData::new_u64(ARRIVALS), once)?;
                true
            }
        };
        let reads = engine.reads.count.clone();
        let engine = Arc::new(Mutex::new(engine));
        let (lost, looks, blocked) = (Mutex::default(), AtomicU32::new(0), AtomicU32::new(0));
        Ok(Fabric { engine, contacts, provider, gate, bell, timer, tells, lost, looks, blocked, reads })
    }

    /// The engine, alone.
    pub fn engine(&self) -> std::sync::MutexGuard<'_, Engine> {
        lock(&self.engine)
    }

    /// Where a peer is, for messages.
    pub fn place(&self, peer: u32) -> String {
        let contact = &self.contacts[peer as usize];
        format!("rank {peer} on host {} (libfabric's {})", contact.host, self.provider)
    }
}

impl Carrier for Fabric {
    type Pipe = Channel;

    const SETTLES: bool = true;

    fn connect(&self, peer: u32) {
        self.engine().connect(peer);
        // The keeper minds the time.
        self.ring();
    }

    fn lost(&self, peer: u32, error: io::Error) {
        lock(&self.lost).push((peer, error));
        self.ring();
    }

    fn watch(&self, pipe: &Channel, number: usize) -> io::Result<()> {
        self.engine().watch(pipe.peer, number);
        Ok(())
    }

    fn block(&self, pipe: &Channel, number: usize, blocked: bool) {
        let count = self.engine().block(pipe.peer, number, blocked);
        self.blocked.store(count, Ordering::Relaxed);
    }

    fn wants_look(&self) -> bool {
        // What has been taken by the peer is told in packets: with the next look there may be room.
        // And reads go on only while somebody looks.
        self.blocked.load(Ordering::Relaxed) != 0 || self.reads.load(Ordering::Relaxed) != 0
    }

    fn open_region(&self, address: UserAddress, length: usize) -> io::Result<Region> {
        self.engine().open_region(address, length)
    }

    fn close_region(&self, name: u64) {
        self.engine().endpoint.close_region(name);
    }

    fn end_reads(&self, peer: u32) {
        let deadline = Instant::now() + LAST_READS;
        loop {
            let mut engine = self.engine();
            if engine.forget_reads(peer) {
                return;
            }
            if Instant::now() > deadline {
                return engine.shut_for(peer);
            }
            engine.progress();
            drop(engine);
            std::thread::sleep(Duration::from_micros(20));
        }
    }

    fn forget(&self, pipe: &Channel) {
        let count = self.engine().forget(pipe.peer);
        self.blocked.store(count, Ordering::Relaxed);
    }

    fn look(&self, tell: &mut dyn FnMut(Sight<Channel>)) {
        let up = {
            let mut engine = self.engine();
            engine.progress();
            std::mem::take(&mut engine.up)
        };
        for (peer, keys) in up {
            let way = format!("libfabric's {}", self.provider);
            let reads = self.engine().reads_from(peer);
            tell(Sight::Up(peer, Channel { engine: self.engine.clone(), peer, way, reads }, keys));
        }
        let (readable, writable, over) = {
            let mut engine = self.engine();
            (std::mem::take(&mut engine.readable), engine.writable(), engine.reads.take_over())
        };
        over.into_iter().for_each(|(name, result)| tell(Sight::Read(name, result)));
        readable.into_iter().for_each(|number| tell(Sight::Readable(number)));
        writable.into_iter().for_each(|number| tell(Sight::Writable(number)));
    }

    fn arm(&self) {
        let engine = self.engine();
        if let Some(arrivals) = engine.endpoint.wait_descriptor() {
            let once = EventFlags::IN | EventFlags::ONESHOT;
            // It fails only when the descriptors are gone, and with them this process's streams.
            let _ = epoll::modify(&self.gate, arrivals, EventData::new_u64(ARRIVALS), once);
        } else {
            // The keeper looks by itself, and sooner now.
            self.ring();
        }
    }

    fn is_settled(&self) -> bool {
        let settled = {
            let mut engine = self.engine();
            !engine.reads.has_over() && engine.endpoint.may_wait()
        };
        let looks = if settled { 0 } else { self.looks.load(Ordering::Relaxed) + 1 };
        self.looks.store(looks % LOOKS, Ordering::Relaxed);
        settled || looks == LOOKS
    }

    fn part(&self, deadline: Instant) {
        loop {
            let mut engine = self.engine();
            engine.progress();
            if engine.have_parted() || Instant::now() > deadline {
                // The process ends without dropping this, and shared memory's provider leaves its file behind then.
                engine.endpoint.shut();
                return;
            }
            drop(engine);
            std::thread::sleep(Duration::from_micros(20));
        }
    }

    fn ring(&self) {
        // The counter cannot overflow: the keeper empties it.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    fn ring_after(&self, time: Duration) {
        self.timer.set(time);
    }
}
