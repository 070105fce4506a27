//! The services whose ports a process has published (MPI_Publish_name; MPI 5.0, section 11.9.4).
//!
//! Who publishes a name serves it: at an abstract name that is made of the user and the service, a thread answers who asks. So
//! every process of the user on this machine finds it, of whatever job, nothing is left behind, and the kernel sees to it
//! that a service is published once.

use std::collections::BTreeMap;
use std::io::{
    self,
    ErrorKind::{BrokenPipe, ConnectionReset, NotConnected, TimedOut, UnexpectedEof},
};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen,
    shutdown, socket_with, sockopt,
};

use crate::protocol::{self, Message};
use parnass_base::bytes;

/// How long the other side of a question may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a process has published.
#[derive(Debug, Default)]
pub struct Services(Mutex<BTreeMap<Vec<u8>, Served>>);

#[derive(Debug)]
struct Served {
    port: Vec<u8>,
    /// Ends the thread.
    bell: Arc<OwnedFd>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Where a service is served. An abstract name has 107 bytes at most, a service's may have more.
fn place(service: &[u8]) -> rustix::io::Result<SocketAddrUnix> {
    let user = rustix::process::geteuid().as_raw();
    let [one, other] =
        [bytes::FNV_BASIS, 0x9e37_79b9_7f4a_7c15].map(|beginning| bytes::fnv(beginning, service));
    SocketAddrUnix::new_abstract_name(format!("parnass-service-{user}-{one:016x}{other:016x}").as_bytes())
}

/// Whether the process at the other end is of this user.
fn is_ours(socket: &OwnedFd) -> bool {
    let own = rustix::process::geteuid();
    sockopt::socket_peercred(socket).is_ok_and(|peer| peer.uid == own || peer.uid.is_root())
}

fn open() -> rustix::io::Result<OwnedFd> {
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// A socket that listens at `place`. Whom nobody answers holds the name for moments only: a process that another thread
/// has just forked, and that has yet to execute its program, has the descriptor of a service that was taken back.
fn listener(place: &SocketAddrUnix) -> rustix::io::Result<OwnedFd> {
    let end = Instant::now() + PATIENCE;
    loop {
        let listener = open()?;
        match bind(&listener, place) {
            Err(Errno::ADDRINUSE)
                if Instant::now() < end && connect(&open()?, place) == Err(Errno::CONNREFUSED) =>
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            bound => {
                bound?;
                listen(&listener, 64)?;
                return Ok(listener);
            }
        }
    }
}

fn readable(socket: &OwnedFd) -> bool {
    let time = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
    poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&time)) == Ok(1)
}

impl Services {
    fn all(&self) -> std::sync::MutexGuard<'_, BTreeMap<Vec<u8>, Served>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes the port of a service.
    ///
    /// # Errors
    /// `AddrInUse`: somebody has published the service. Or the kernel refuses.
    pub fn publish(&self, service: &[u8], port: &[u8]) -> io::Result<()> {
        let listener = listener(&place(service)?)?;
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let (stop, words, answer) =
            (bell.clone(), bytes::digits(service), Message::Port(String::from_utf8_lossy(port).into_owned()));
        let thread = std::thread::Builder::new().name("parnass-service".into()).stack_size(128 << 10).spawn(
            move || {
                serve(&listener, &stop, &words, &answer);
                // From here on nobody is answered, whoever else may have the descriptor still.
                let _ = shutdown(&listener, Shutdown::Both);
            },
        )?;
        let served = Served { port: port.to_vec(), bell, thread: Some(thread) };
        self.all().insert(service.to_vec(), served);
        Ok(())
    }

    /// Takes it back. `false`: this process has not published that.
    pub fn unpublish(&self, service: &[u8], port: &[u8]) -> bool {
        let mut all = self.all();
        let known = all.get(service).is_some_and(|served| served.port == port);
        if known {
            all.remove(service);
        }
        known
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // The name is free when it has ended.
        }
    }
}

/// Answers who asks, until the bell rings.
fn serve(listener: &OwnedFd, stop: &OwnedFd, words: &str, answer: &Message) {
    parnass_base::process::block_signals();
    loop {
        let mut set = [PollFd::new(listener, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
        match poll(&mut set, None) {
            Ok(_) if !set[1].revents().is_empty() => return,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        let Ok(socket) = accept_with(listener, SocketFlags::CLOEXEC) else { continue };
        if !is_ours(&socket) || !readable(&socket) {
            continue;
        }
        if let Ok((Message::Lookup(service), _)) = protocol::receive(socket.as_fd()) {
            let refused = Message::Refused("another service".to_owned());
            let answer = if service == words { answer } else { &refused };
            let _ = protocol::send(socket.as_fd(), answer, &[]);
        }
    }
}

/// The port of a service that some process of this user on this machine has published; `None`: nobody has.
///
/// # Errors
/// The kernel refuses, or who has published it does not answer.
pub fn look_up(service: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let socket = open()?;
    match connect(&socket, &place(service)?) {
        Ok(()) => {}
        Err(Errno::CONNREFUSED | Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    if !is_ours(&socket) {
        return Ok(None);
    }
    match ask(&socket, service) {
        Ok(Message::Port(name)) => Ok(Some(name.into_bytes())),
        Ok(_) => Ok(None),
        // It was taken back at this moment.
        Err(error) if matches!(error.kind(), UnexpectedEof | ConnectionReset | BrokenPipe | NotConnected) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn ask(socket: &OwnedFd, service: &[u8]) -> io::Result<Message> {
    protocol::send(socket.as_fd(), &Message::Lookup(bytes::digits(service)), &[])?;
    if !readable(socket) {
        return Err(TimedOut.into());
    }
    protocol::receive(socket.as_fd()).map(|(message, _)| message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_found_until_it_is_taken_back() {
        let services = Services::default();
        let service = format!("a service of process {} {}", std::process::id(), "x".repeat(300)).into_bytes();
        assert_eq!(look_up(&service).unwrap(), None);
        services.publish(&service, b"port 1").unwrap();
        assert_eq!(look_up(&service).unwrap(), Some(b"port 1".to_vec()));
        let again = Services::default().publish(&service, b"port 2").unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AddrInUse);
        assert!(!services.unpublish(&service, b"port 2") && !services.unpublish(b"other", b"port 1"));
        assert!(services.unpublish(&service, b"port 1") && !services.unpublish(&service, b"port 1"));
        assert_eq!(look_up(&service).unwrap(), None);
        services.publish(&service, b"port 3").unwrap();
        // A process that is being forked has the descriptors of this one for moments: the service ends all the same.
        let forks = std::thread::spawn(|| {
            for _ in 0..200 {
                std::process::Command::new("true").status().unwrap();
            }
        });
        while !forks.is_finished() {
            assert!(services.unpublish(&service, b"port 3"));
            assert_eq!(look_up(&service).unwrap(), None);
            services.publish(&service, b"port 3").unwrap();
            assert_eq!(look_up(&service).unwrap(), Some(b"port 3".to_vec()));
        }
        drop(services);
        assert_eq!(look_up(&service).unwrap(), None);
    }
}
