//! How processes of worlds that know nothing of each other meet: at a port, whose name says where it is and holds a secret.
//!
//! ```text
//! calling side                         side of the port
//!   nonce                           ->
//!                                   <-  nonce, proof over both
//!   proof over both                 ->
//! ```
//! From then on both have a key that nobody else knows, and tell each other messages of any length.

use crate::address::{Contact, candidates};
use crate::keeper;
use base64::engine::{Engine, general_purpose::URL_SAFE_NO_PAD as BASE64};
use parnass_base::socket;
use parnass_transport_stream::Selection;
use parnass_transport_stream::interfaces::machine;
use parnass_transport_stream::proof::{self, Step, fresh};
use parnass_transport_stream::wire::{SECRET_BYTES, Secret};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags, SocketFlags};
use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// How long who calls may take to prove that it knows the secret.
const PROOF: Duration = Duration::from_secs(5);
/// How long one address is tried.
const TRY: Duration = Duration::from_secs(5);
/// No message is longer, in bytes.
const MESSAGE_MAXIMUM: usize = 256 << 20;
const KIND: &str = "parnass-port-2";

/// Bytes of a name: as many as MPICH's MPI_MAX_PORT_NAME has room for, and a host with many addresses leaves out the least promising.
const NAME_MAXIMUM: usize = 255;

fn name_of(secret: &Secret, mut contact: Contact) -> String {
    loop {
        let name = format!("{KIND}:{}:{}", BASE64.encode(secret), BASE64.encode(contact.encode()));
        if name.len() <= NAME_MAXIMUM || !contact.drop_last() {
            return name;
        }
    }
}

/// A place where others can call.
#[derive(Debug)]
pub struct Port {
    sockets: Vec<OwnedFd>,
    secret: Secret,
    name: String,
}

/// A conversation with a process of another world.
#[derive(Debug)]
pub struct Visit {
    pub talk: Talk,
    /// Known to the two sides alone.
    pub key: Secret,
}

impl Port {
    /// Opens one on this host, at addresses of `selection`.
    ///
    /// # Errors
    /// A sentence for a person.
    pub fn open(host: &str, selection: &Selection) -> Result<Port, String> {
        let refused = |error: io::Error| format!("cannot listen for TCP connections: {error}");
        let (sockets, port) = keeper::listen().map_err(refused)?;
        let interfaces = socket::interface_addresses().map_err(refused)?;
        let contact = Contact::new(host.to_owned(), machine(), port, &interfaces, selection)?;
        let secret = fresh().map_err(refused)?;
        let name = name_of(&secret, contact);
        Ok(Port { sockets, secret, name })
    }

    /// What who wants to call must know.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits for somebody who calls and knows the name.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn accept(&self) -> io::Result<Visit> {
        loop {
            let mut set: Vec<PollFd<'_>> =
                self.sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
            match poll(&mut set, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for listener in &self.sockets {
                // An error: who called is gone again.
                let Ok(socket) = net::accept_with(listener, SocketFlags::CLOEXEC) else { continue };
                if let Ok(visit) = self.receive(Talk(socket)) {
                    return Ok(visit);
                }
            }
        }
    }

    fn receive(&self, mut talk: Talk) -> io::Result<Visit> {
        let theirs = talk.hear(SECRET_BYTES, Some(PROOF))?;
        let own = fresh()?;
        let proof = proof::make(&self.secret, Step::Port, &[b"answer", &theirs, &own]);
        talk.say(&[own, proof].concat())?;
        let answer = talk.hear(SECRET_BYTES, Some(PROOF))?;
        if !proof::holds(&self.secret, Step::Port, &[b"call", &theirs, &own], &answer) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(Visit { talk, key: proof::make(&self.secret, Step::Pair, &[&theirs, &own]) })
    }
}

/// Calls at the port with this name, and waits until somebody answers there, but no longer than `patience`.
///
/// # Errors
/// A sentence for a person: it is no name of a port, or nobody is there.
pub fn call(name: &str, patience: Duration) -> Result<Visit, String> {
    let parts: Vec<&str> = name.split(':').collect();
    let known = match parts[..] {
        [KIND, secret, contact] => {
            let bytes = |text: &str| BASE64.decode(text).ok();
            let secret = bytes(secret).and_then(|secret| Secret::try_from(secret).ok());
            secret.zip(bytes(contact).and_then(|contact| Contact::decode(&contact)))
        }
        _ => None,
    };
    let Some((secret, contact)) = known else {
        let shown: String = name.chars().take(60).collect();
        return Err(format!("'{shown}' is not the name of a port of Parnass; MPI_Open_port gives one"));
    };
    let interfaces = socket::interface_addresses().map_err(|error| format!("no network: {error}"))?;
    let mut failures = Vec::new();
    for address in candidates(&interfaces, &machine(), &contact) {
        match TcpStream::connect_timeout(&address, TRY) {
            Ok(stream) => {
                return greet(Talk(stream.into()), &secret, patience).map_err(|error| match error.kind() {
                    io::ErrorKind::TimedOut => format!(
                        "the port at {address} on host {} is open, but nobody has accepted there for {} s",
                        contact.host,
                        patience.as_secs()
                    ),
                    _ => format!(
                        "the port at {address} on host {} was closed before it answered: {error}",
                        contact.host
                    ),
                });
            }
            Err(error) => failures.push(format!("{address}: {error}")),
        }
    }
    if failures.is_empty() {
        failures.push("no address leads there".to_owned());
    }
    Err(format!("nobody is at the port on host {}: {}", contact.host, failures.join("; ")))
}

fn greet(mut talk: Talk, secret: &Secret, patience: Duration) -> io::Result<Visit> {
    let own = fresh()?;
    talk.say(&own)?;
    let answer = talk.hear(2 * SECRET_BYTES, Some(patience))?;
    let (theirs, proof) = answer.split_at(SECRET_BYTES);
    if !proof::holds(secret, Step::Port, &[b"answer", &own, theirs], proof) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it does not know the port's secret"));
    }
    talk.say(&proof::make(secret, Step::Port, &[b"call", &own, theirs]))?;
    Ok(Visit { talk, key: proof::make(secret, Step::Pair, &[&own, theirs]) })
}

/// A connected stream socket over which two sides tell each other messages.
#[derive(Debug)]
pub struct Talk(pub OwnedFd);

impl Talk {
    /// Two sides that trust the socket agree on a key.
    ///
    /// # Errors
    /// The other side is gone, or does the same no more.
    pub fn trust(mut self) -> io::Result<Visit> {
        let own = fresh()?;
        let theirs = self.swap(&own)?;
        let theirs = Secret::try_from(theirs)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the other side speaks otherwise"))?;
        let [first, second] = if own < theirs { [own, theirs] } else { [theirs, own] };
        Ok(Visit { talk: self, key: proof::make(&first, Step::Pair, &[&second]) })
    }

    /// Tells the other side a message, and hears its.
    ///
    /// # Errors
    /// The other side is gone, or says what is no message.
    pub fn swap(&mut self, own: &[u8]) -> io::Result<Vec<u8>> {
        let mut to_send = (own.len() as u32).to_le_bytes().to_vec();
        to_send.extend_from_slice(own);
        let (mut sent, mut heard, mut length) = (0, Vec::new(), 4);
        // Both at once: neither side reads only when it has said all.
        while sent < to_send.len() || heard.len() < length {
            let write = if sent < to_send.len() { PollFlags::OUT } else { PollFlags::empty() };
            let read = if heard.len() < length { PollFlags::IN } else { PollFlags::empty() };
            self.wait(write | read, None)?;
            if sent < to_send.len() {
                sent +=
                    again(net::send(&self.0, &to_send[sent..], SendFlags::NOSIGNAL | SendFlags::DONTWAIT))?;
            }
            if heard.len() < length {
                self.read(&mut heard, length)?;
            }
            if heard.len() == 4 && length == 4 {
                let bytes = u32::from_le_bytes([heard[0], heard[1], heard[2], heard[3]]) as usize;
                if bytes > MESSAGE_MAXIMUM {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "the other side speaks otherwise",
                    ));
                }
                length += bytes;
            }
        }
        Ok(heard.split_off(4))
    }

    fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut sent = 0;
        while sent < bytes.len() {
            self.wait(PollFlags::OUT, None)?;
            sent += again(net::send(&self.0, &bytes[sent..], SendFlags::NOSIGNAL | SendFlags::DONTWAIT))?;
        }
        Ok(())
    }

    fn hear(&mut self, count: usize, patience: Option<Duration>) -> io::Result<Vec<u8>> {
        let mut heard = Vec::new();
        while heard.len() < count {
            self.wait(PollFlags::IN, patience)?;
            self.read(&mut heard, count)?;
        }
        Ok(heard)
    }

    /// Reads what is there, so that `heard` has `length` bytes at most.
    fn read(&self, heard: &mut Vec<u8>, length: usize) -> io::Result<()> {
        let mut bytes = [0; 4096];
        let room = (length - heard.len()).min(bytes.len());
        match net::recv(&self.0, &mut bytes[..room], RecvFlags::DONTWAIT) {
            Ok((0, _)) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((count, _)) => {
                heard.extend_from_slice(&bytes[..count]);
                Ok(())
            }
            Err(error) => again(Err(error)).map(|_| ()),
        }
    }

    fn wait(&self, flags: PollFlags, patience: Option<Duration>) -> io::Result<()> {
        let time = patience
            .map(|time| Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) });
        match poll(&mut [PollFd::new(&self.0, flags)], time.as_ref()) {
            Ok(0) => Err(io::ErrorKind::TimedOut.into()),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Nothing, where a call of the kernel must be repeated.
fn again(result: rustix::io::Result<usize>) -> io::Result<usize> {
    match result {
        Ok(count) => Ok(count),
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn open() -> Port {
        Port::open("here", &Selection::default()).unwrap()
    }

    #[test]
    fn both_sides_have_one_key_and_hear_each_other() {
        let port = open();
        assert!(port.name().len() <= NAME_MAXIMUM);
        let name = port.name().to_owned();
        let caller = std::thread::spawn(move || {
            let mut visit = call(&name, LONG).unwrap();
            (visit.key, visit.talk.swap(&[1; 1 << 20]).unwrap())
        });
        let mut visit = port.accept().unwrap();
        let heard = visit.talk.swap(&[2; 3 << 20]).unwrap();
        let (key, told) = caller.join().unwrap();
        assert_eq!(key, visit.key);
        assert!(heard == vec![1; 1 << 20] && told == vec![2; 3 << 20]);
    }

    #[test]
    fn a_caller_does_not_wait_for_ever_and_the_next_is_heard() {
        let port = open();
        let error = call(port.name(), Duration::from_millis(20)).unwrap_err();
        assert!(error.contains("nobody has accepted there"), "{error}");
        let name = port.name().to_owned();
        let caller = std::thread::spawn(move || call(&name, LONG).unwrap().key);
        let key = port.accept().unwrap().key;
        assert_eq!(caller.join().unwrap(), key);
    }

    #[test]
    fn who_does_not_know_the_secret_is_not_heard() {
        let port = open();
        let parts: Vec<&str> = port.name().split(':').collect();
        let forged = format!("{KIND}:{}:{}", BASE64.encode([0; SECRET_BYTES]), parts[2]);
        let name = port.name().to_owned();
        let callers = std::thread::spawn(move || (call(&forged, LONG).is_err(), call(&name, LONG).is_ok()));
        port.accept().unwrap();
        assert_eq!(callers.join().unwrap(), (true, true));
    }

    #[test]
    fn closed_ports_and_other_words_are_named() {
        let name = open().name().to_owned();
        assert!(call(&name, LONG).unwrap_err().contains("nobody is at the port on host here"));
        for word in ["", "rubbish", "parnass-port-2:xx:yy", "parnass-port-2:00:00", "parnass-port-2:é:é"] {
            assert!(call(word, LONG).unwrap_err().contains("not the name of a port"), "{word}");
        }
    }

    #[test]
    fn the_name_of_a_port_is_short_on_a_host_of_many_addresses() {
        let interfaces: Vec<_> = (1..=30)
            .map(|number| socket::InterfaceAddress {
                interface: format!("eth{number}"),
                address: std::net::Ipv6Addr::new(0x2001, 0xdb8, number, 0, 1, 2, 3, 4).into(),
                prefix: 64,
            })
            .collect();
        let host = "h".repeat(64);
        let contact =
            Contact::new(host.clone(), machine(), 40_000, &interfaces, &Selection::default()).unwrap();
        let name = name_of(&[7; SECRET_BYTES], contact);
        assert!(name.len() <= NAME_MAXIMUM, "{}", name.len());
        let read = Contact::decode(&BASE64.decode(name.rsplit(':').next().unwrap()).unwrap()).unwrap();
        assert_eq!((read.host, read.port), (host, 40_000));
    }

    #[test]
    fn a_socket_that_both_trust_gives_both_one_key() {
        let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        let other = std::thread::spawn(move || Talk(far.into()).trust().unwrap().key);
        assert_eq!(Talk(near.into()).trust().unwrap().key, other.join().unwrap());
    }
}
