//! The links of a process, and how it sends.

use crate::address::{Contact, interface_of};
use crate::handshake::{Identity, Refusal};
use crate::incoming::{Incoming, Notes};
use crate::outgoing::Outgoing;
use crate::seal::{Keys, Opener, Sealer};
use crate::wire::{FrameKind, Head};
use parnass_base::UserAddress;
use parnass_base::atomics::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use parnass_base::lane::Message;
use parnass_base::socket::{self, InterfaceAddress, Part};
use rustix::event::epoll::{self, EventData, EventFlags};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A payload up to this long is copied when it meets others on their way.
const GATHERED: usize = 4 << 10;
/// Bytes gathered before they are sent though nobody waits for them: at first, so that the peer soon has something to
/// do, and at most.
const BATCH: (usize, usize) = (512, 16 << 10);
/// Bytes that a link keeps in copy before it says that there is no room.
const ROOM: usize = 1 << 20;
/// What is sent so long after the last one goes at once; sooner, it may meet others.
const LONE: Duration = Duration::from_micros(5);

/// In what state a link is.
#[derive(Debug)]
pub enum Stage {
    /// Nobody has asked for it.
    Idle,
    /// Asked for; the keeper is at it.
    Wanted,
    /// A connection: its socket, and its number among the receiving sides.
    Up(Arc<OwnedFd>, usize),
    /// One side has said goodbye.
    Over,
    /// The peer is lost.
    Lost,
}

/// What a link sends, and over what.
#[derive(Debug)]
pub struct Out {
    pub stage: Stage,
    pub row: Outgoing,
    /// Where the connection is encrypted.
    sealer: Option<Sealer>,
    /// The socket took no more, and tells when it does.
    blocked: bool,
    /// Stands in the list of links with something gathered.
    gathered: bool,
    last: Option<Instant>,
    /// Bytes that are gathered now.
    batch: usize,
    /// The two ends of the connection, for messages.
    pub way: String,
}

impl Out {
    /// Whether all is sent.
    fn is_sent(&self) -> bool {
        self.row.is_empty() && self.sealer.as_ref().is_none_or(|sealer| sealer.unsent().is_empty())
    }

    /// Forgets what is not sent.
    fn clear(&mut self) {
        self.row = Outgoing::default();
        self.sealer = None;
    }
}

/// The link to one peer.
#[derive(Debug)]
pub struct Link {
    peer: u32,
    pub out: Mutex<Out>,
    /// Payload bytes whose credit is to be given back.
    owed: AtomicU32,
    /// Payload bytes of this process that the peer may hold.
    used: AtomicU64,
}

/// What the keeper is asked to do.
#[derive(Debug)]
pub enum Command {
    Connect(u32),
    Lost(u32, io::Error),
}

/// A peer that is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    pub rank: u32,
    /// A sentence for a person: who, where, why, and what to do.
    pub text: String,
}

impl fmt::Display for Loss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// How many connections were refused, by reason.
#[derive(Debug, Default)]
pub struct Refusals([AtomicU64; 6]);

impl Refusals {
    const REASONS: [Refusal; 6] = [
        Refusal::Garbage,
        Refusal::Version,
        Refusal::OtherJob,
        Refusal::Proof,
        Refusal::Slow,
        Refusal::Crowd,
    ];

    pub(crate) fn count(&self, refusal: Refusal) {
        self.0[refusal as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Those that were refused for `refusal`.
    pub fn of(&self, refusal: Refusal) -> u64 {
        self.0[refusal as usize].load(Ordering::Relaxed)
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        Self::REASONS.iter().map(|refusal| self.of(*refusal)).sum()
    }
}

/// What the threads of the process and the keeper share.
pub struct Shared {
    pub identity: Identity,
    pub contacts: Vec<Contact>,
    pub interfaces: Vec<InterfaceAddress>,
    links: Box<[OnceLock<Box<Link>>]>,
    pub incoming: Mutex<Incoming>,
    /// Messages for this process from itself: what was lent is sent, what was to land is there.
    told: Mutex<VecDeque<Message>>,
    told_count: AtomicU32,
    /// Links with something gathered.
    gathered: Mutex<Vec<u32>>,
    gathered_count: AtomicU32,
    /// All connections.
    pub sockets: OwnedFd,
    /// What the keeper sleeps on; the connections are in it while armed.
    pub gate: OwnedFd,
    pub bell: OwnedFd,
    pub commands: Mutex<Vec<Command>>,
    /// Whether the keeper looks after what is gathered.
    pub attentive: AtomicBool,
    /// Whether somebody else has armed the gate since the keeper last looked.
    pub armed: AtomicBool,
    pub closing: AtomicBool,
    pub stopping: AtomicBool,
    /// Bytes of payloads that a peer may be made to hold.
    window: u64,
    pub refusals: Refusals,
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "links of {:?}", self.identity)
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an event of the gate or of the connections is about.
pub const SOCKETS: u64 = u64::MAX;
pub const BELL: u64 = u64::MAX - 1;

impl Shared {
    pub fn new(
        identity: Identity,
        contacts: Vec<Contact>,
        interfaces: Vec<InterfaceAddress>,
    ) -> io::Result<Shared> {
        use rustix::event::{EventfdFlags, eventfd};
        let sockets = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let gate = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&gate, &bell, EventData::new_u64(BELL), EventFlags::IN)?;
        epoll::add(&gate, &sockets, EventData::new_u64(SOCKETS), EventFlags::IN | EventFlags::ONESHOT)?;
        let size = u64::from(identity.size);
        Ok(Shared {
            links: (0..size).map(|_| OnceLock::new()).collect(),
            window: ((256 << 20) / size).clamp(256 << 10, 4 << 20),
            identity,
            contacts,
            interfaces,
            incoming: Mutex::default(),
            told: Mutex::default(),
            told_count: AtomicU32::new(0),
            gathered: Mutex::default(),
            gathered_count: AtomicU32::new(0),
            sockets,
            gate,
            bell,
            commands: Mutex::default(),
            attentive: AtomicBool::new(false),
            armed: AtomicBool::new(true),
            closing: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            refusals: Refusals::default(),
        })
    }

    /// The link to a peer.
    pub fn link(&self, peer: u32) -> &Link {
        self.links[peer as usize].get_or_init(|| {
            assert!(peer != self.identity.me, "a link of a process to itself");
            let out = Out {
                stage: Stage::Idle,
                row: Outgoing::default(),
                sealer: None,
                blocked: false,
                gathered: false,
                last: None,
                batch: BATCH.0,
                way: "not connected yet".to_owned(),
            };
            Box::new(Link { peer, out: Mutex::new(out), owed: AtomicU32::new(0), used: AtomicU64::new(0) })
        })
    }

    /// The links that there are.
    pub fn links(&self) -> impl Iterator<Item = &Link> {
        self.links.iter().filter_map(|link| link.get().map(Box::as_ref))
    }

    pub fn ring_keeper(&self) {
        // The counter cannot overflow: the keeper empties it.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    pub fn command(&self, command: Command) {
        lock(&self.commands).push(command);
        self.ring_keeper();
    }

    pub fn arm(&self) {
        if self.closing.load(Ordering::Relaxed) {
            return;
        }
        self.armed.store(true, Ordering::Relaxed);
        let once = EventFlags::IN | EventFlags::ONESHOT;
        // It fails only when the descriptors are gone, and with them this process's links.
        let _ = epoll::modify(&self.gate, &self.sockets, EventData::new_u64(SOCKETS), once);
    }

    pub fn tell(&self, message: Message) {
        let mut told = lock(&self.told);
        told.push_back(message);
        self.told_count.store(told.len() as u32, Ordering::Release);
    }

    pub fn has_told(&self) -> bool {
        self.told_count.load(Ordering::Acquire) != 0
    }

    pub fn next_told(&self) -> Option<Message> {
        let mut told = lock(&self.told);
        let message = told.pop_front();
        self.told_count.store(told.len() as u32, Ordering::Release);
        message
    }

    pub fn untell(&self, message: Message) {
        let mut told = lock(&self.told);
        told.push_front(message);
        self.told_count.store(told.len() as u32, Ordering::Release);
    }

    // ---- sending

    fn head(link: &Link, tag: u32, words: usize, payload: usize, counted: bool) -> Head {
        let returned = link.owed.swap(0, Ordering::Relaxed);
        let kind = FrameKind::Message;
        Head { kind, words: words as u8, counted, tag, returned, payload: payload as u32 }
    }

    /// Makes sure that there is a connection, or will be. Whether anything may be added to the row.
    fn ready<'a>(&self, link: &Link, out: &'a mut Out) -> Option<&'a mut Out> {
        match out.stage {
            Stage::Idle => {
                out.stage = Stage::Wanted;
                self.command(Command::Connect(link.peer));
            }
            Stage::Wanted | Stage::Up(..) => (),
            Stage::Over | Stage::Lost => return None,
        }
        Some(out)
    }

    /// See [`parnass_transport::Network::post`].
    pub fn post(&self, target: u32, tag: u32, words: &[u64]) -> bool {
        let link = self.link(target);
        let mut guard = lock(&link.out);
        if guard.row.copied() > ROOM {
            return false;
        }
        // Who has said goodbye awaits nothing, and to a lost peer nothing goes.
        let Some(out) = self.ready(link, &mut guard) else { return true };
        let lone = out.row.is_empty();
        out.row.frame(&Self::head(link, tag, words.len(), 0, false), words);
        self.go(link, out, lone);
        true
    }

    /// See [`parnass_transport::Network::stream`].
    pub fn stream(&self, target: u32, tag: u32, words: &[u64], source: UserAddress, length: usize) -> bool {
        let link = self.link(target);
        let mut guard = lock(&link.out);
        let used = link.used.load(Ordering::Relaxed);
        if guard.row.copied() > ROOM || used + length as u64 > self.window {
            return false;
        }
        let Some(out) = self.ready(link, &mut guard) else { return true };
        link.used.fetch_add(length as u64, Ordering::Relaxed);
        let lone = out.row.is_empty();
        out.row.frame(&Self::head(link, tag, words.len(), length, true), words);
        if length <= GATHERED && !lone || !matches!(out.stage, Stage::Up(..)) {
            out.row.copy_payload(source, length);
            self.go(link, out, lone);
        } else {
            out.row.place_payload(source, length);
            if !out.blocked {
                self.write(link, out);
            }
            out.row.keep();
        }
        true
    }

    /// See [`parnass_transport::Network::lend`].
    pub fn lend(&self, target: u32, tag: u32, word: u64, source: UserAddress, length: usize, then: Message) {
        let link = self.link(target);
        let mut guard = lock(&link.out);
        let Some(out) = self.ready(link, &mut guard) else {
            self.tell(then);
            return;
        };
        out.row.lend(tag, word, source, length, then);
        if matches!(out.stage, Stage::Up(..)) && !out.blocked {
            self.write(link, out);
        }
    }

    /// Sends what is in the row now, or leaves it for a little while, to be sent with what follows.
    fn go(&self, link: &Link, out: &mut Out, lone: bool) {
        if out.blocked || !matches!(out.stage, Stage::Up(..)) {
            return;
        }
        let now = Instant::now();
        if lone && out.last.is_none_or(|last| now.duration_since(last) > LONE) {
            out.batch = BATCH.0;
            out.last = Some(now);
            self.write(link, out);
        } else if out.row.copied() >= out.batch {
            out.batch = (out.batch * 2).min(BATCH.1);
            out.last = Some(now);
            self.write(link, out);
        } else if !out.gathered {
            out.gathered = true;
            let mut gathered = lock(&self.gathered);
            gathered.push(link.peer);
            self.gathered_count.store(gathered.len() as u32, Ordering::Relaxed);
            drop(gathered);
            if !self.attentive.swap(true, Ordering::SeqCst) {
                self.ring_keeper();
            }
        }
    }

    /// Sends what was gathered. Whether there was anything.
    pub fn send_gathered(&self) -> bool {
        if self.gathered_count.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let peers = {
            // The count belongs to the list: set without the lock, it could hide what another thread has just added.
            let mut gathered = lock(&self.gathered);
            self.gathered_count.store(0, Ordering::Relaxed);
            std::mem::take(&mut *gathered)
        };
        for peer in peers {
            let link = self.link(peer);
            let mut out = lock(&link.out);
            out.gathered = false;
            if !out.blocked {
                self.write(link, &mut out);
            }
        }
        true
    }

    /// Hands the row to the socket as far as it takes it.
    pub fn write(&self, link: &Link, out: &mut Out) {
        let Stage::Up(socket, number) = &out.stage else { return };
        let (socket, number) = (socket.clone(), *number);
        let mut full = false;
        while !out.is_sent() {
            let sent = match (&mut out.sealer, out.row.one_run()) {
                (Some(sealer), _) => {
                    if sealer.unsent().is_empty() {
                        let count = sealer.seal(&out.row.parts());
                        out.row.sent(count, &mut |then| self.tell(then));
                    }
                    let sent = socket::send(socket.as_fd(), &[Part::Bytes(sealer.unsent())]);
                    sent.map(|count| sealer.sent(count))
                }
                (None, Some(run)) => socket::send(socket.as_fd(), &[Part::Bytes(run)])
                    .map(|count| out.row.sent(count, &mut |then| self.tell(then))),
                (None, None) => socket::send(socket.as_fd(), &out.row.parts())
                    .map(|count| out.row.sent(count, &mut |then| self.tell(then))),
            };
            match sent {
                Ok(()) => (),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    full = true;
                    break;
                }
                Err(error) => {
                    // The end of the stream says more, if there is one: the receiving side reports it.
                    if error.kind() != io::ErrorKind::BrokenPipe {
                        self.lose(link, out, error);
                    } else {
                        out.clear();
                    }
                    return;
                }
            }
        }
        if full != out.blocked {
            out.blocked = full;
            let flags = if full { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
            let _ = epoll::modify(&self.sockets, &*socket, EventData::new_u64(number as u64), flags);
        }
    }

    fn lose(&self, link: &Link, out: &mut Out, error: io::Error) {
        if matches!(out.stage, Stage::Up(..) | Stage::Wanted) {
            out.stage = Stage::Lost;
            out.clear();
            if !self.closing.load(Ordering::Relaxed) {
                self.command(Command::Lost(link.peer, error));
            }
        }
    }

    /// Makes `socket` the connection to `peer`.
    pub fn establish(&self, peer: u32, socket: OwnedFd, keys: Option<Keys>) -> io::Result<()> {
        let socket = Arc::new(socket);
        let mut incoming = lock(&self.incoming);
        let opener = keys.as_ref().map(|keys| Opener::new(&keys.receiving));
        let number = incoming.add(peer, socket.clone(), opener);
        let link = self.link(peer);
        let mut out = lock(&link.out);
        out.sealer = keys.as_ref().map(|keys| Sealer::new(&keys.sending));
        out.way = self.way(&socket);
        out.stage = Stage::Up(socket.clone(), number);
        epoll::add(&self.sockets, &*socket, EventData::new_u64(number as u64), EventFlags::IN)?;
        drop(incoming);
        self.write(link, &mut out);
        Ok(())
    }

    fn way(&self, socket: &OwnedFd) -> String {
        let own = rustix::net::getsockname(socket).ok().and_then(|own| SocketAddr::try_from(own).ok());
        let far = rustix::net::getpeername(socket).ok().flatten();
        let far = far.and_then(|far| SocketAddr::try_from(far).ok());
        match (own, far) {
            (Some(own), Some(far)) => {
                let own = own.ip().to_canonical();
                let far = SocketAddr::new(far.ip().to_canonical(), far.port());
                format!("{far}, from {own} of {}", interface_of(&self.interfaces, own))
            }
            _ => "its address is not known any more".to_owned(),
        }
    }

    /// Asks the kernel which connections have something, and lets those write that may again.
    pub fn look(&self, incoming: &mut Incoming) {
        let mut events: [std::mem::MaybeUninit<epoll::Event>; 64] =
            [const { std::mem::MaybeUninit::uninit() }; 64];
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        let Ok((events, _)) = epoll::wait(&self.sockets, &mut events, Some(&now)) else { return };
        for event in events.iter() {
            let (flags, number) = (event.flags, event.data.u64() as usize);
            if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                incoming.mark(number);
            }
            if flags.contains(EventFlags::OUT) {
                let link = self.link(incoming.peer(number));
                let mut out = lock(&link.out);
                self.write(link, &mut out);
            }
        }
    }

    fn forget(&self, out: &Out) {
        if let Stage::Up(socket, _) = &out.stage {
            let _ = epoll::delete(&self.sockets, &**socket);
        }
    }

    /// Says goodbye to everybody, and waits until that is on its way.
    pub fn close(&self) {
        if self.closing.swap(true, Ordering::Relaxed) {
            return;
        }
        let deadline = Instant::now() + Duration::from_secs(5);
        for link in self.links() {
            loop {
                let mut out = lock(&link.out);
                let out = &mut *out;
                match &out.stage {
                    Stage::Up(socket, _) => {
                        let socket = socket.clone();
                        if out.is_sent() {
                            let kind = FrameKind::Goodbye;
                            let head =
                                Head { kind, words: 0, counted: false, tag: 0, returned: 0, payload: 0 };
                            out.row.frame(&head, &[]);
                            self.write(link, out);
                            if out.is_sent() {
                                let _ = rustix::net::shutdown(&*socket, rustix::net::Shutdown::Write);
                                self.forget(out);
                                out.stage = Stage::Over;
                            }
                            break;
                        }
                        self.write(link, out);
                    }
                    Stage::Wanted if !out.row.is_empty() => (),
                    _ => break,
                }
                if Instant::now() > deadline {
                    break;
                }
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    }
}

impl Notes for Shared {
    fn credit(&self, peer: u32, count: usize, given: bool) {
        let link = self.link(peer);
        if given {
            let _ = link.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                Some(used.saturating_sub(count as u64))
            });
            return;
        }
        let owed = link.owed.fetch_add(count as u32, Ordering::Relaxed) + count as u32;
        if u64::from(owed) < self.window / 4 {
            return;
        }
        let mut out = lock(&link.out);
        if let Some(out) = self.ready(link, &mut out) {
            let head = Head { kind: FrameKind::Credit, ..Self::head(link, 0, 0, 0, false) };
            out.row.frame(&head, &[]);
            if !out.blocked {
                self.write(link, out);
            }
        }
    }

    fn landed(&self, then: Message) {
        self.tell(then);
    }

    fn goodbye(&self, peer: u32) {
        let mut out = lock(&self.link(peer).out);
        self.forget(&out);
        out.stage = Stage::Over;
    }

    fn lost(&self, peer: u32, error: io::Error) {
        let link = self.link(peer);
        let mut out = lock(&link.out);
        self.forget(&out);
        self.lose(link, &mut out, error);
    }
}
