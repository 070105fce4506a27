//! Connections as streams: sockets of the kernel, and how it is asked which of them have something.

use crate::address::{Contact, Contacts};
use parnass_base::atomics::{AtomicBool, AtomicU64, Ordering};
use parnass_base::socket::{self, InterfaceAddress, Part};
use parnass_base::{Growing, UserAddress};
use parnass_transport_stream::interfaces::{boot_of, interface_of};
use parnass_transport_stream::{Carrier, Pipe, Sight, Timer, lock};
use rustix::event::epoll::{self, EventData, EventFlags};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What an event of the gate is about, besides connections that are not established.
pub const SOCKETS: u64 = u64::MAX;
pub const BELL: u64 = u64::MAX - 1;
pub const TIMER: u64 = u64::MAX - 2;

/// The number of no connection.
const NONE: u64 = u64::MAX;

/// An established connection.
#[derive(Debug)]
pub struct Socket {
    descriptor: OwnedFd,
    way: String,
    /// Whether it is to be told that it takes again.
    blocked: AtomicBool,
}

impl Socket {
    /// The two ends are described by the names of `interfaces`.
    pub fn new(descriptor: OwnedFd, interfaces: &[InterfaceAddress]) -> Socket {
        let own = rustix::net::getsockname(&descriptor).ok().and_then(|own| SocketAddr::try_from(own).ok());
        let far = rustix::net::getpeername(&descriptor).ok().flatten();
        let far = far.and_then(|far| SocketAddr::try_from(far).ok());
        let way = match (own, far) {
            (Some(own), Some(far)) => {
                let own = own.ip().to_canonical();
                let far = SocketAddr::new(far.ip().to_canonical(), far.port());
                format!("{far}, from {own} of {}", interface_of(interfaces, own))
            }
            _ => "its address is not known any more".to_owned(),
        };
        Socket { descriptor, way, blocked: AtomicBool::new(false) }
    }

    /// What the kernel is to tell of it.
    fn events(&self) -> EventFlags {
        if self.blocked.load(Ordering::Relaxed) { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN }
    }

    /// How long the peer has acknowledged nothing though something waits for it.
    pub fn silence(&self) -> io::Result<std::time::Duration> {
        socket::silence(self.descriptor.as_fd())
    }
}

impl Pipe for Socket {
    fn send(&self, parts: &[Part<'_>]) -> io::Result<usize> {
        socket::send(self.descriptor.as_fd(), parts)
    }

    fn receive(&self, address: UserAddress, length: usize, buffer: &mut [u8]) -> io::Result<usize> {
        socket::receive(self.descriptor.as_fd(), address, length, buffer)
    }

    fn way(&self) -> &str {
        &self.way
    }

    fn finish(&self) {
        let _ = rustix::net::shutdown(&self.descriptor, rustix::net::Shutdown::Write);
    }

    fn cut(&self) {
        let _ = rustix::net::shutdown(&self.descriptor, rustix::net::Shutdown::Both);
    }
}

/// What the keeper is asked to do.
#[derive(Debug)]
pub enum Command {
    Connect(u32),
    Lost(u32, io::Error),
    /// Processes of other worlds are known now that were not before.
    Acquainted,
}

/// Has a connection within a machine send as fast as it is read. Machines' own choices may be for long ways: BBR, which sends by the
/// clock, takes a rate from what it has seen, and moves 6 GB/s here where Reno, which every process may choose, moves 10.
pub fn hurry(socket: impl AsFd) {
    // A kernel that refuses leaves the connection as it was.
    let _ = rustix::net::sockopt::set_tcp_congestion(socket, "reno");
}

/// All connections of a process.
pub struct Sockets {
    /// Names this machine and its network stack.
    pub machine: String,
    own: Contacts,
    /// And those of others.
    others: Growing<Contact>,
    pub interfaces: Vec<InterfaceAddress>,
    /// All established connections, but for the one that is set apart.
    sockets: OwnedFd,
    apart: Mutex<Option<(Arc<Socket>, usize)>>,
    /// Its number, or [`NONE`].
    apart_number: AtomicU64,
    /// What the keeper sleeps on; the connections are in it while armed.
    pub gate: OwnedFd,
    pub bell: OwnedFd,
    pub timer: Timer,
    pub commands: Mutex<Vec<Command>>,
}

impl fmt::Debug for Sockets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TCP")
    }
}

impl Sockets {
    pub fn new(machine: String, own: Contacts, interfaces: Vec<InterfaceAddress>) -> io::Result<Sockets> {
        use rustix::event::{EventfdFlags, eventfd};
        let sockets = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let gate = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&gate, &bell, EventData::new_u64(BELL), EventFlags::IN)?;
        let timer = Timer::new()?;
        epoll::add(&gate, &timer, EventData::new_u64(TIMER), EventFlags::IN)?;
        epoll::add(&gate, &sockets, EventData::new_u64(SOCKETS), EventFlags::IN | EventFlags::ONESHOT)?;
        let others = Growing::default();
        Ok(Sockets {
            machine,
            own,
            others,
            interfaces,
            sockets,
            apart: Mutex::default(),
            apart_number: AtomicU64::new(NONE),
            gate,
            bell,
            timer,
            commands: Mutex::default(),
        })
    }

    /// Where a peer is.
    pub fn contact(&self, peer: u32) -> Option<Contact> {
        match (peer as usize).checked_sub(self.own.len()) {
            None => self.own.get(peer),
            Some(other) => self.others.get(other).cloned(),
        }
    }

    /// Whether a peer runs on this machine, in whatever network stack.
    pub fn is_near(&self, peer: u32) -> bool {
        self.contact(peer).is_some_and(|contact| boot_of(&contact.machine) == boot_of(&self.machine))
    }

    /// Where processes of other worlds are, from the number of the first on.
    pub fn learn(&self, first: u32, contacts: Vec<Contact>) {
        for (number, contact) in (first as usize - self.own.len()..).zip(contacts) {
            self.others.get_or_fill(number, || contact);
        }
    }

    fn command(&self, command: Command) {
        lock(&self.commands).push(command);
        self.ring();
    }

    /// Has the kernel tell of what comes over a connection, and, where it is blocked, when it takes again.
    fn add(&self, socket: &Socket, number: usize) -> io::Result<()> {
        let name = EventData::new_u64(number as u64);
        Ok(epoll::add(&self.sockets, &socket.descriptor, name, socket.events())?)
    }

    fn rejoin_from(&self, apart: &mut Option<(Arc<Socket>, usize)>) {
        if let Some((socket, number)) = apart.take() {
            // It fails only when the descriptors are gone.
            let _ = self.add(&socket, number);
            self.apart_number.store(NONE, Ordering::Relaxed);
        }
    }
}

impl Carrier for Sockets {
    type Pipe = Socket;

    /// To ask first takes a tenth of the time that 512 KiB take, and has a receiver that computes wake twice.
    const STREAM_BYTES: usize = 1 << 20;

    /// Who is part of a collective sends while others still reduce what they have: what they do not expect yet they copy.
    const UNASKED_BYTES: usize = 256 << 10;

    const DISARMS: bool = true;

    fn connect(&self, peer: u32) {
        self.command(Command::Connect(peer));
    }

    fn lost(&self, peer: u32, error: io::Error) {
        self.command(Command::Lost(peer, error));
    }

    fn watch(&self, pipe: &Socket, number: usize) -> io::Result<()> {
        self.add(pipe, number)
    }

    fn block(&self, pipe: &Socket, number: usize, blocked: bool) {
        let mut apart = lock(&self.apart);
        pipe.blocked.store(blocked, Ordering::Relaxed);
        self.rejoin_from(&mut apart);
        let name = EventData::new_u64(number as u64);
        let _ = epoll::modify(&self.sockets, &pipe.descriptor, name, pipe.events());
    }

    fn forget(&self, pipe: &Socket) {
        self.rejoin();
        let _ = epoll::delete(&self.sockets, &pipe.descriptor);
    }

    fn set_apart(&self, pipe: &Arc<Socket>, number: usize, is_needed: &dyn Fn() -> bool) {
        let mut apart = lock(&self.apart);
        self.rejoin_from(&mut apart);
        // Who needs it takes the lock later, or has said so by now.
        if is_needed() || pipe.blocked.load(Ordering::Relaxed) {
            return;
        }
        // It fails where the connection is forgotten.
        if epoll::delete(&self.sockets, &pipe.descriptor).is_ok() {
            *apart = Some((pipe.clone(), number));
            self.apart_number.store(number as u64, Ordering::Relaxed);
        }
    }

    #[inline]
    fn apart(&self) -> Option<usize> {
        let number = self.apart_number.load(Ordering::Relaxed);
        (number != NONE).then_some(number as usize)
    }

    fn rejoin(&self) {
        self.rejoin_from(&mut lock(&self.apart));
    }

    fn look(&self, tell: &mut dyn FnMut(Sight<Socket>)) {
        let mut events: [std::mem::MaybeUninit<epoll::Event>; 64] =
            [const { std::mem::MaybeUninit::uninit() }; 64];
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        let Ok((events, _)) = epoll::wait(&self.sockets, &mut events, Some(&now)) else { return };
        for event in events.iter() {
            let (flags, number) = (event.flags, event.data.u64() as usize);
            if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                tell(Sight::Readable(number));
            }
            if flags.contains(EventFlags::OUT) {
                tell(Sight::Writable(number));
            }
        }
    }

    fn arm(&self) {
        self.rejoin();
        let once = EventFlags::IN | EventFlags::ONESHOT;
        // It fails only when the descriptors are gone, and with them this process's links.
        let _ = epoll::modify(&self.gate, &self.sockets, EventData::new_u64(SOCKETS), once);
    }

    fn disarm(&self) {
        let _ = epoll::modify(&self.gate, &self.sockets, EventData::new_u64(SOCKETS), EventFlags::ONESHOT);
    }

    fn acquainted(&self) {
        self.command(Command::Acquainted);
    }

    fn ring(&self) {
        // The counter cannot overflow: the keeper empties it.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    fn ring_after(&self, time: Duration) {
        self.timer.set(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::sockopt::tcp_congestion;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_connection_within_a_machine_is_not_paced() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        hurry(&near);
        assert_eq!(tcp_congestion(&near).unwrap(), "reno");
    }

    /// What a look tells of now: the numbers of connections that have something, and of those that take again.
    fn told(sockets: &Sockets) -> (Vec<usize>, Vec<usize>) {
        let (mut readable, mut writable) = (Vec::new(), Vec::new());
        sockets.look(&mut |sight| match sight {
            Sight::Readable(number) => readable.push(number),
            Sight::Writable(number) => writable.push(number),
            _ => unreachable!("sockets tell nothing else"),
        });
        (readable, writable)
    }

    #[test]
    fn of_a_connection_that_is_set_apart_a_look_does_not_tell_until_somebody_needs_it() {
        let sockets =
            Sockets::new("b8-1 net:[1]".to_owned(), Contacts::decode(&[[0; 0]; 0]).unwrap(), Vec::new())
                .unwrap();
        let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        let pipe = Arc::new(Socket::new(near.into(), &[]));
        sockets.watch(&pipe, 7).unwrap();
        std::io::Write::write_all(&mut &far, b"x").unwrap();
        let ways: [&dyn Fn(); 3] =
            [&|| sockets.rejoin(), &|| sockets.arm(), &|| sockets.block(&pipe, 7, false)];
        for rejoin in ways {
            sockets.set_apart(&pipe, 7, &|| true);
            assert_eq!((sockets.apart(), told(&sockets).0), (None, vec![7]), "it is needed");
            sockets.set_apart(&pipe, 7, &|| false);
            assert_eq!((sockets.apart(), told(&sockets).0), (Some(7), vec![]));
            rejoin();
            assert_eq!((sockets.apart(), told(&sockets)), (None, (vec![7], vec![])));
        }
        sockets.set_apart(&pipe, 7, &|| false);
        sockets.block(&pipe, 7, true);
        sockets.set_apart(&pipe, 7, &|| false);
        assert_eq!((sockets.apart(), told(&sockets)), (None, (vec![7], vec![7])), "it is to be told of room");
        sockets.block(&pipe, 7, false);
        sockets.set_apart(&pipe, 7, &|| false);
        sockets.forget(&pipe);
        sockets.set_apart(&pipe, 7, &|| false);
        sockets.rejoin();
        assert_eq!((sockets.apart(), told(&sockets).0), (None, vec![]), "nothing is told of it any more");
    }

    #[test]
    fn a_machine_is_the_same_in_each_of_its_network_stacks() {
        let contact = |machine: &str| Contact {
            host: "h".into(),
            machine: machine.into(),
            port: 1,
            addresses: Vec::new(),
        };
        let names = ["b8-1 net:[1]", "b8-1 net:[2]", "b8-2 net:[1]"];
        let contacts: Vec<Vec<u8>> = names.iter().map(|name| contact(name).encode()).collect();
        let sockets =
            Sockets::new(names[0].to_owned(), Contacts::decode(&contacts).unwrap(), Vec::new()).unwrap();
        assert_eq!([0, 1, 2].map(|peer| sockets.is_near(peer)), [true, true, false]);
    }
}
