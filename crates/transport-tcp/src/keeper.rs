//! The thread that lets connections in and makes them, and wakes the process for arrivals.
//!
//! Nothing that has not proved to be of the job is seen by any other thread. The keeper sleeps in the kernel; while small
//! messages are being gathered it looks after them, so that none waits long for others.

use crate::address::candidates;
use crate::sockets::{BELL, Command, SOCKETS, Socket, Sockets, TIMER, hurry};
use parnass_base::atomics::Ordering;
use parnass_transport::Waker;
use parnass_transport_stream::handshake::{Callee, Caller, Move};
use parnass_transport_stream::proof::fresh;
use parnass_transport_stream::wire::Verdict;
use parnass_transport_stream::{INTERFACE_VARIABLE, Loss, Pipe, Refusal, Stage, Streams, Watch, lock};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a connection may take to come up, and one that somebody else has made to prove itself.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// A process whose kernel has taken a connection is there: for so long it may get no processor, or be stopped.
const SLOWNESS: Duration = Duration::from_secs(120);
/// From then on that the other side may have taken a connection for good it is waited for as long as the connection stands.
const WHILE_IT_STANDS: Duration = Duration::from_secs(365 * 24 * 3600);
/// How many may be at it at once.
const CROWD: usize = 256;
/// The next address of a peer is tried so long after the one before.
const STAGGER: Duration = Duration::from_millis(250);
/// All addresses are tried again after so long.
const AGAIN: Duration = Duration::from_millis(500);
/// For so long a peer that cannot be reached is tried.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks for peers that answer no more.
const CHECK: Duration = Duration::from_secs(5);
/// A peer that acknowledges nothing for so long is lost.
const SILENCE: Duration = Duration::from_secs(25);

/// What epoll rounds up to: shorter times are slept in poll.
const EPOLL_TICK_NS: i64 = 1_000_000;

/// A connection that is not established yet.
#[derive(Debug)]
struct Pending {
    socket: OwnedFd,
    /// For the calling side: whom it calls, and where.
    target: Option<(u32, SocketAddr)>,
    side: Side,
    connected: bool,
    to_send: Vec<u8>,
    awaited: usize,
    received: Vec<u8>,
    /// What it has said, where it is not known yet who that is.
    parked: Vec<u8>,
    deadline: Instant,
    /// Established with whom, when all is sent.
    verdict: Option<(u32, Verdict)>,
}

#[derive(Debug)]
enum Side {
    Caller(Caller),
    Callee(Callee),
}

/// The search for a way to a peer.
#[derive(Debug)]
struct Call {
    left: VecDeque<SocketAddr>,
    next: Instant,
    until: Instant,
    failures: Vec<String>,
}

/// The keeper's own.
pub struct Keeper {
    streams: Arc<Streams<Sockets>>,
    listeners: Vec<OwnedFd>,
    watch: Watch,
    pending: BTreeMap<u64, Pending>,
    next_name: u64,
    calls: BTreeMap<u32, Call>,
    check: Instant,
}

/// A listening socket on all addresses of both families, at the same port; where there is no IPv6, of IPv4 alone.
pub fn listen() -> io::Result<(Vec<OwnedFd>, u16)> {
    let open = |address: SocketAddr| -> io::Result<(OwnedFd, u16)> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
        if address.is_ipv6() {
            sockopt::set_ipv6_v6only(&socket, false)?;
        }
        net::bind(&socket, &address)?;
        net::listen(&socket, 1024)?;
        let own: SocketAddr = net::getsockname(&socket)?.try_into()?;
        Ok((socket, own.port()))
    };
    let both = SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, 0));
    let (socket, port) =
        open(both).or_else(|_| open(SocketAddr::from((std::net::Ipv4Addr::UNSPECIFIED, 0))))?;
    Ok((vec![socket], port))
}

impl Keeper {
    pub fn new(
        streams: Arc<Streams<Sockets>>,
        listeners: Vec<OwnedFd>,
        waker: Waker,
        on_loss: Box<dyn Fn(Loss) + Send>,
    ) -> io::Result<Keeper> {
        for (number, listener) in (0..).zip(&listeners) {
            epoll::add(&streams.carrier.gate, listener, EventData::new_u64(number), EventFlags::IN)?;
        }
        let next_name = listeners.len() as u64;
        Ok(Keeper {
            streams,
            listeners,
            watch: Watch::new(waker, on_loss),
            pending: BTreeMap::new(),
            next_name,
            calls: BTreeMap::new(),
            check: Instant::now() + CHECK,
        })
    }

    /// Its life.
    pub fn run(mut self) {
        self.watch.begin();
        let mut events: [std::mem::MaybeUninit<epoll::Event>; 64] =
            [const { std::mem::MaybeUninit::uninit() }; 64];
        while !self.streams.stopping.load(Ordering::Acquire) {
            let mut time = self.limit().map(|limit| rustix::time::Timespec {
                tv_sec: limit.as_secs() as i64,
                tv_nsec: i64::from(limit.subsec_nanos()),
            });
            let gate = &self.streams.carrier.gate;
            if let Some(time) = &mut time
                && time.tv_sec == 0
                && time.tv_nsec < EPOLL_TICK_NS
            {
                let _ = poll(&mut [PollFd::new(gate, PollFlags::IN)], Some(time));
                time.tv_nsec = 0;
            }
            let Ok((found, _)) = epoll::wait(gate, &mut events, time.as_ref()) else {
                continue;
            };
            for event in found.iter() {
                match event.data.u64() {
                    SOCKETS => drop(self.watch.arrivals(&self.streams)),
                    BELL => {
                        let mut count = [0; 8];
                        let _ = rustix::io::read(&self.streams.carrier.bell, &mut count);
                    }
                    TIMER => {
                        self.streams.carrier.timer.take();
                        self.streams.remind();
                    }
                    name if (name as usize) < self.listeners.len() => self.let_in(name as usize),
                    name => self.advance(name),
                }
            }
            let commands = std::mem::take(&mut *lock(&self.streams.carrier.commands));
            for command in commands {
                self.obey(command);
            }
            self.watch.look_after_stale(&self.streams);
            self.look_after_time();
            self.watch.look_after_gathered(&self.streams);
        }
    }

    /// How long it may sleep.
    fn limit(&mut self) -> Option<Duration> {
        let pending = self.pending.values().map(|pending| pending.deadline);
        let calls = self.calls.values().map(|call| call.next);
        let check = self.streams.links().next().map(|_| self.check);
        self.watch.limit(&self.streams, pending.chain(calls).chain(check))
    }

    fn look_after_time(&mut self) {
        let now = Instant::now();
        let absent = self.watch.overslept(now);
        self.pending.values_mut().for_each(|pending| pending.deadline += absent);
        self.calls.values_mut().for_each(|call| call.until += absent);
        let late: Vec<u64> = self
            .pending
            .iter()
            .filter(|(_, pending)| pending.deadline <= now)
            .map(|(name, _)| *name)
            .collect();
        for name in late {
            self.refuse(name, Refusal::Slow, "no answer".to_owned());
        }
        let due: Vec<u32> =
            self.calls.iter().filter(|(_, call)| call.next <= now).map(|(peer, _)| *peer).collect();
        for peer in due {
            self.call_next(peer, now);
        }
        self.watch.look_after_time(&self.streams, now);
        if self.check <= now {
            self.check = now + CHECK;
            self.look_for_silence();
        }
    }

    /// Peers that acknowledge nothing any more, neither data nor the question whether there is room.
    fn look_for_silence(&self) {
        for link in self.streams.links() {
            let out = lock(&link.out);
            if let Stage::Up(socket, _) = &out.stage
                && socket.silence().is_ok_and(|silence| silence > SILENCE)
            {
                // Every read and write of it fails from now on, and the receiving side reports it.
                socket.cut();
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Connect(peer) => self.call(peer),
            Command::Lost(peer, error) => {
                if self.streams.peer(peer).let_go.load(Ordering::Relaxed) {
                    return;
                }
                let reason = match error.kind() {
                    io::ErrorKind::UnexpectedEof => "it ended without a goodbye".to_owned(),
                    _ => error.to_string(),
                };
                let way = lock(&self.streams.link(peer).out).way.clone();
                let who = self.who(peer);
                self.watch.lose(
                    peer,
                    format!(
                        "the connection to {who} ({way}) is lost: {reason}. See whether the \
                         process and its host are still there, and whether the network between them is"
                    ),
                );
            }
            Command::Acquainted => self.look_at_strangers(),
        }
    }

    /// What a peer is, for messages.
    fn who(&self, peer: u32) -> String {
        let host = self.streams.carrier.contact(peer).map_or("this one".to_owned(), |contact| contact.host);
        match self.streams.peer(peer).tag {
            rank if rank == peer => format!("rank {rank} on host {host}"),
            rank => format!("rank {rank} of another world that this one is connected with, on host {host}"),
        }
    }

    /// The addresses of a peer that lead there from here.
    fn ways(&self, peer: u32) -> Vec<SocketAddr> {
        let carrier = &self.streams.carrier;
        let contact = carrier.contact(peer);
        contact.map_or(Vec::new(), |contact| candidates(&carrier.interfaces, &carrier.machine, &contact))
    }

    /// The addresses of a peer, in words.
    fn describe(&self, peer: u32) -> String {
        let ways = self.ways(peer);
        let words: Vec<String> = ways.iter().map(SocketAddr::to_string).collect();
        if words.is_empty() { "no address leads there".into() } else { words.join(", ") }
    }

    // ---- calling

    fn call(&mut self, peer: u32) {
        let now = Instant::now();
        let call = Call { left: VecDeque::new(), next: now, until: now + PATIENCE, failures: Vec::new() };
        self.calls.entry(peer).or_insert(call);
    }

    /// Tries the next address of a peer.
    fn call_next(&mut self, peer: u32, now: Instant) {
        if !matches!(lock(&self.streams.link(peer).out).stage, Stage::Wanted) {
            self.calls.remove(&peer);
            return;
        }
        let ways = self.ways(peer);
        let Some(call) = self.calls.get_mut(&peer) else { return };
        if call.left.is_empty() {
            let tried_before = !call.failures.is_empty();
            let trying =
                self.pending.values().any(|pending| pending.target.is_some_and(|(to, _)| to == peer));
            if trying {
                call.next = now + AGAIN;
                return;
            }
            call.left = ways.into();
            if now >= call.until || call.left.is_empty() {
                let failures = std::mem::take(&mut call.failures);
                self.calls.remove(&peer);
                self.give_up(peer, &failures);
                return;
            }
            if tried_before {
                call.next = now + AGAIN;
                return;
            }
        }
        call.next = now + STAGGER;
        let Some(address) = call.left.pop_front() else { return };
        if let Err(error) = self.connect(peer, address) {
            self.failed(peer, address, &error.to_string());
        }
    }

    fn give_up(&mut self, peer: u32, failures: &[String]) {
        let mut reasons = failures.to_vec();
        reasons.sort_unstable();
        reasons.dedup();
        let tried = if reasons.is_empty() { self.describe(peer) } else { reasons.join("; ") };
        let text = format!(
            "{} cannot be reached: {tried}. See whether a firewall between the hosts drops \
             connections to ports that are not reserved, or name the network that connects them: \
             {}=eth0, or {}=10.1.0.0/16",
            self.who(peer),
            INTERFACE_VARIABLE,
            INTERFACE_VARIABLE
        );
        lock(&self.streams.link(peer).out).stage = Stage::Lost;
        if !self.streams.peer(peer).let_go.load(Ordering::Relaxed) {
            self.watch.lose(peer, text);
        }
    }

    fn failed(&mut self, peer: u32, address: SocketAddr, reason: &str) {
        if let Some(call) = self.calls.get_mut(&peer) {
            call.failures.push(format!("{address}: {reason}"));
            if call.failures.len() > 64 {
                call.failures.remove(0);
            }
            // The others need not wait for the one that has failed.
            if !call.left.is_empty() {
                call.next = Instant::now();
            }
        }
    }

    fn connect(&mut self, peer: u32, address: SocketAddr) -> io::Result<()> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
        tune(&socket)?;
        match net::connect(&socket, &address) {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS) => (),
            Err(error) => return Err(error.into()),
        }
        let (identity, name) = (self.streams.peer(peer).identity, self.streams.peer(peer).name);
        let (caller, first) = Caller::new(identity, name, fresh()?);
        self.add(socket, Some((peer, address)), Side::Caller(caller), first)
    }

    fn add(
        &mut self,
        socket: OwnedFd,
        target: Option<(u32, SocketAddr)>,
        side: Side,
        first: Move,
    ) -> io::Result<()> {
        let Move::Exchange(to_send, awaited) = first else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let name = self.next_name;
        self.next_name += 1;
        let connected = target.is_none();
        let flags = if connected { EventFlags::IN } else { EventFlags::OUT };
        epoll::add(&self.streams.carrier.gate, &socket, EventData::new_u64(name), flags)?;
        let pending = Pending {
            socket,
            target,
            side,
            connected,
            to_send,
            awaited,
            received: Vec::new(),
            parked: Vec::new(),
            deadline: Instant::now() + HANDSHAKE,
            verdict: None,
        };
        self.pending.insert(name, pending);
        Ok(())
    }

    // ---- being called

    fn let_in(&mut self, listener: usize) {
        for _ in 0..64 {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            // Anything but a socket: nobody is there any more, or no descriptor is left; the next event tries again.
            let Ok(socket) = net::accept_with(&self.listeners[listener], flags) else { return };
            let strangers: Vec<u64> = self
                .pending
                .iter()
                .filter(|(_, pending)| pending.target.is_none())
                .map(|(name, _)| *name)
                .collect();
            if strangers.len() >= CROWD {
                // The one that has been silent longest makes room.
                self.refuse(strangers[0], Refusal::Crowd, String::new());
            }
            let Ok(nonce) = fresh() else { return };
            let (callee, first) = Callee::new(self.streams.identity, nonce);
            let _ = self.add(socket, None, Side::Callee(callee), first);
        }
    }

    // ---- both

    /// Ends a connection that is not established.
    fn refuse(&mut self, name: u64, refusal: Refusal, reason: String) {
        let Some(pending) = self.pending.remove(&name) else { return };
        match (pending.target, pending.verdict) {
            // It was to be the one, and nobody else calls any more.
            (None, Some((peer, Verdict::Accepted))) => self.call(peer),
            (None, _) => self.streams.refusals.count(refusal),
            (Some((peer, address)), _) => {
                let reason = if reason.is_empty() {
                    match refusal {
                        Refusal::Version => "it speaks another version: use one release on all hosts".into(),
                        Refusal::Slow => "no answer".into(),
                        _ => "what answers there is not of this job".to_owned(),
                    }
                } else {
                    reason
                };
                self.failed(peer, address, &reason);
            }
        }
    }

    /// Something can be sent or read on a connection that is not established.
    fn advance(&mut self, name: u64) {
        loop {
            let Some(pending) = self.pending.get_mut(&name) else { return };
            match pending.turn() {
                Ok(Turn::Wait) => {
                    let flags = if pending.connected && pending.to_send.is_empty() {
                        EventFlags::IN
                    } else {
                        EventFlags::OUT
                    };
                    let _ = epoll::modify(
                        &self.streams.carrier.gate,
                        &pending.socket,
                        EventData::new_u64(name),
                        flags,
                    );
                    return;
                }
                Ok(Turn::Sent(peer, verdict)) => return self.end(name, peer, verdict),
                Ok(Turn::Received(bytes)) => {
                    let streams = &self.streams;
                    let moved = match &mut pending.side {
                        Side::Caller(caller) => caller.receive(&bytes),
                        Side::Callee(callee) => callee.receive_of(&bytes, &|name| streams.acquainted(name)),
                    };
                    match moved {
                        Ok(Move::Exchange(to_send, awaited)) => {
                            pending.to_send = to_send;
                            pending.awaited = awaited;
                            if pending.target.is_some() {
                                // Its answer is the last that who is called needs.
                                pending.deadline = Instant::now() + WHILE_IT_STANDS;
                            }
                        }
                        Ok(Move::Decide(peer)) => self.decide(name, peer),
                        Ok(Move::Over(verdict)) => {
                            let peer = pending.target.map_or(self.streams.identity.me, |(peer, _)| peer);
                            return self.end(name, peer, verdict);
                        }
                        Err(Refusal::OtherJob) if self.streams.expecting.load(Ordering::Acquire) != 0 => {
                            // It may be of those that this process is about to be told of.
                            pending.parked = bytes;
                            let (data, nothing) = (EventData::new_u64(name), EventFlags::empty());
                            let _ = epoll::modify(&self.streams.carrier.gate, &pending.socket, data, nothing);
                            return;
                        }
                        Err(refusal) => return self.refuse(name, refusal, String::new()),
                    }
                }
                Err(error) => return self.refuse(name, Refusal::Garbage, error.to_string()),
            }
        }
    }

    /// Looks again at those that could not be told from strangers.
    fn look_at_strangers(&mut self) {
        let parked = self.pending.iter().filter(|(_, pending)| !pending.parked.is_empty());
        for name in parked.map(|(name, _)| *name).collect::<Vec<u64>>() {
            if let Some(pending) = self.pending.get_mut(&name) {
                pending.received = std::mem::take(&mut pending.parked);
                self.advance(name);
            }
        }
    }

    /// Decides, as the connected side, which of two crossing connections it is to be: that of the lower rank.
    fn decide(&mut self, name: u64, peer: u32) {
        let verdict = match lock(&self.streams.link(peer).out).stage {
            Stage::Idle => Verdict::Accepted,
            Stage::Wanted if self.streams.peer(peer).is_before() => Verdict::Accepted,
            Stage::Wanted | Stage::Up(..) | Stage::Over | Stage::Lost => Verdict::Crossed,
        };
        let Some(pending) = self.pending.get_mut(&name) else { return };
        if let Side::Callee(callee) = &pending.side {
            pending.to_send = callee.decide(verdict);
            pending.verdict = Some((peer, verdict));
        }
        if verdict == Verdict::Accepted {
            // From now on no other connection can become the one.
            lock(&self.streams.link(peer).out).stage = Stage::Wanted;
            self.forget_calls(peer);
        }
    }

    fn forget_calls(&mut self, peer: u32) {
        self.calls.remove(&peer);
        self.pending.retain(|_, pending| pending.target.is_none_or(|(to, _)| to != peer));
    }

    /// The handshake is over.
    fn end(&mut self, name: u64, peer: u32, verdict: Verdict) {
        let Some(pending) = self.pending.remove(&name) else { return };
        if verdict == Verdict::Crossed {
            // The peer's own call is on its way; if it fails, this side tries again.
            return;
        }
        self.forget_calls(peer);
        let _ = epoll::delete(&self.streams.carrier.gate, &pending.socket);
        let keys = match &pending.side {
            Side::Caller(caller) => caller.keys(),
            Side::Callee(callee) => callee.keys(),
        };
        let ready = tune(&pending.socket).and_then(|()| {
            if self.streams.carrier.is_near(peer) {
                hurry(&pending.socket);
            }
            let socket = Socket::new(pending.socket, &self.streams.carrier.interfaces);
            self.streams.establish(peer, socket, keys)
        });
        if let Err(error) = ready {
            self.obey(Command::Lost(peer, error));
        }
    }
}

/// Small frames leave at once; a peer that is gone is noticed while nothing is said.
fn tune(socket: &OwnedFd) -> io::Result<()> {
    sockopt::set_tcp_nodelay(socket, true)?;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, Duration::from_secs(10))?;
    sockopt::set_tcp_keepintvl(socket, Duration::from_secs(3))?;
    sockopt::set_tcp_keepcnt(socket, 5)?;
    Ok(())
}

/// What became of a turn.
enum Turn {
    /// The socket must be waited for.
    Wait,
    /// As many bytes as were awaited.
    Received(Vec<u8>),
    /// The last bytes are sent.
    Sent(u32, Verdict),
}

impl Pending {
    fn turn(&mut self) -> io::Result<Turn> {
        if !self.connected {
            sockopt::socket_error(&self.socket)??;
            match net::getpeername(&self.socket) {
                Err(rustix::io::Errno::NOTCONN) => return Ok(Turn::Wait),
                Err(error) => return Err(error.into()),
                Ok(_) => {
                    self.connected = true;
                    self.deadline = Instant::now() + SLOWNESS;
                }
            }
        }
        while !self.to_send.is_empty() {
            match net::send(&self.socket, &self.to_send, net::SendFlags::NOSIGNAL) {
                Ok(count) => drop(self.to_send.drain(..count)),
                Err(rustix::io::Errno::AGAIN) => return Ok(Turn::Wait),
                Err(error) => return Err(error.into()),
            }
        }
        if let Some((peer, verdict)) = self.verdict {
            return Ok(Turn::Sent(peer, verdict));
        }
        while self.received.len() < self.awaited {
            let mut bytes = [0; 256];
            let room = (self.awaited - self.received.len()).min(bytes.len());
            match net::recv(&self.socket, &mut bytes[..room], net::RecvFlags::empty()) {
                Ok((0, _)) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it hung up")),
                Ok((count, _)) => self.received.extend_from_slice(&bytes[..count]),
                Err(rustix::io::Errno::AGAIN) => return Ok(Turn::Wait),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Turn::Received(std::mem::take(&mut self.received)))
    }
}
