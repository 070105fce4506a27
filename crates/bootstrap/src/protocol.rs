//! What a rank and its launcher say to each other: one short text per message on a sequenced-packet socket.
//! The document is docs/wire/launcher.md.
//!
//! ```text
//! rank:      join VERSION SECRET RANK
//! launcher:  welcome APP_NUMBER LOCAL_CPUS BOUND SURVIVE PROCESSORS
//!                                                         with four descriptors: the memory of the ranks of this
//!                                                         node, the description of the job, a socket to
//!                                                         watch, and one for news; or
//!            refused REASON
//! rank:      exchange BYTES                               its part of an exchange among all ranks
//! launcher:  exchanged                                    with the descriptor of a file of all parts
//! rank:      finalized                                    MPI_Finalize is complete
//!            abort CODE MESSAGE                           MPI_Abort
//!            spawn                                        with the descriptor of a file: the mpiexec to start for it
//! launcher:  running PROCESS                              or refused REASON
//! rank:      appeal BYTES                                 see recovery.rs
//! launcher:  news BYTES                                   on the socket for news; see recovery.rs
//! ```
//!
//! The mpiexec that starts a world for a running process calls that process:
//!
//! ```text
//! mpiexec:   spawning SECRET
//! caller:    parents WATCH                                with the descriptor of a file: what the new world is told
//! mpiexec:   spawned                                      with the descriptor of a file of what its processes tell; or
//!            refused REASON
//! caller:    finalized                                    where WATCH is 1: its end is no failure from now on
//! mpiexec:   abort CODE MESSAGE                           where WATCH is 1: the new world has failed
//! ```
//!
//! A process that has published the name of a service is asked:
//!
//! ```text
//! asking:    lookup SERVICE
//! asked:     port NAME                                    or refused REASON
//! ```
//!
//! Nothing is ever sent on the socket to watch. Its end is the launcher's death, and the kernel ends the rank with it.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// Counts up when a message changes its meaning.
pub const VERSION: u32 = 7;
/// The most that a rank may give to an exchange.
pub const PART_BYTES_MAXIMUM: usize = 16 << 10;
/// The text of an abort is cut to fit.
const TEXT_BYTES_MAXIMUM: usize = 4096;
/// No message is longer.
const MESSAGE_BYTES_MAXIMUM: usize = PART_BYTES_MAXIMUM + 32;
/// No message brings more.
const DESCRIPTORS_MAXIMUM: usize = 4;
const EXCHANGE: &[u8] = b"exchange ";
const APPEAL: &[u8] = b"appeal ";
const NEWS: &[u8] = b"news ";

/// What only the processes of one job know, by their environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Secret(u128);

impl Secret {
    /// A new one, from the kernel.
    pub fn random() -> Secret {
        let mut bytes = [0; 16];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
            .expect("the kernel gives sixteen random bytes");
        Secret(u128::from_ne_bytes(bytes))
    }
}

/// Where the launcher listens. Written as `NAME:SECRET`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The abstract name of its socket, which is the job's name too.
    pub name: String,
    /// The job's secret.
    pub secret: Secret,
}

impl Address {
    /// A name that no other socket has and nobody can guess in advance, and a new secret.
    pub fn unique(kind: &str) -> Address {
        let mut bytes = [0; 8];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
            .expect("the kernel gives eight random bytes");
        let number = u64::from_ne_bytes(bytes);
        let name = format!("{kind}-{}-{number:016x}", rustix::process::getpid().as_raw_nonzero());
        Address { name, secret: Secret::random() }
    }

    /// Reads `NAME:SECRET`.
    pub fn parse(text: &str) -> Option<Address> {
        let (name, secret) = text.rsplit_once(':')?;
        let secret = Secret(u128::from_str_radix(secret, 16).ok()?);
        (!name.is_empty() && name.len() < 100).then(|| Address { name: name.to_owned(), secret })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{:032x}", self.name, self.secret.0)
    }
}

/// What a rank is told when it joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Which part of the command line started the rank.
    pub app_number: i32,
    /// Processors that the local ranks share.
    pub local_cpus: usize,
    /// Whether each rank has processors of its own.
    pub bound: bool,
    /// Whether the job goes on when a rank dies.
    pub survives: bool,
    /// The processors of this machine that the job may use; empty where that is not known.
    pub processors: Vec<usize>,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A process asks for the place of `rank`.
    Join { version: u32, secret: Secret, rank: u32 },
    /// The place is given.
    Welcome(Welcome),
    /// The place is not given, for this reason.
    Refused(String),
    /// What the rank gives to the exchange of all ranks.
    Exchange(Vec<u8>),
    /// All have given; a file holds it.
    Exchanged,
    /// The rank has completed MPI_Finalize.
    Finalized,
    /// The rank has called MPI_Abort.
    Abort { code: i32, message: String },
    /// The rank wants an mpiexec to be started; a file says how.
    Spawn,
    /// It is this process.
    Running(i32),
    /// An mpiexec that was started so calls.
    Spawning(Secret),
    /// A file has what it is to tell its ranks. Whether the two watch each other from then on.
    Parents { watch: bool },
    /// Its ranks are there; a file has what they tell.
    Spawned,
    /// Which port has the service of this name, in hexadecimal digits?
    Lookup(String),
    /// This one.
    Port(String),
    /// A revocation or a part of an agreement, see [`crate::recovery::Appeal`].
    Appeal(Vec<u8>),
    /// See [`crate::recovery::News`].
    News(Vec<u8>),
}

/// A set of processors in hexadecimal digits: the lowest bit of the first is processor 0.
fn digits_of(processors: &[usize]) -> String {
    let mut digits = vec![0; processors.iter().max().map_or(0, |last| last / 4 + 1)];
    processors.iter().for_each(|processor| digits[processor / 4] |= 1 << (processor % 4));
    digits.into_iter().filter_map(|digit| char::from_digit(digit, 16)).chain(['.']).collect()
}

fn processors_of(digits: &str) -> Option<Vec<usize>> {
    let digits: Vec<u32> =
        digits.strip_suffix('.')?.chars().map(|digit| digit.to_digit(16)).collect::<Option<_>>()?;
    Some(
        (0..4 * digits.len()).filter(|processor| digits[processor / 4] >> (processor % 4) & 1 != 0).collect(),
    )
}

impl Message {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let text = match self {
            Message::Join { version, secret, rank } => format!("join {version} {:032x} {rank}", secret.0),
            Message::Welcome(Welcome { app_number, local_cpus, bound, survives, processors }) => {
                let (bound, survives, set) = (u8::from(*bound), u8::from(*survives), digits_of(processors));
                format!("welcome {app_number} {local_cpus} {bound} {survives} {set}")
            }
            Message::Refused(reason) => format!("refused {reason}"),
            Message::Exchange(bytes) => return [EXCHANGE, bytes].concat(),
            Message::Appeal(bytes) => return [APPEAL, bytes].concat(),
            Message::News(bytes) => return [NEWS, bytes].concat(),
            Message::Exchanged => "exchanged".to_owned(),
            Message::Finalized => "finalized".to_owned(),
            Message::Abort { code, message } => format!("abort {code} {message}"),
            Message::Spawn => "spawn".to_owned(),
            Message::Running(process) => format!("running {process}"),
            Message::Spawning(secret) => format!("spawning {:032x}", secret.0),
            Message::Parents { watch } => format!("parents {}", u8::from(*watch)),
            Message::Spawned => "spawned".to_owned(),
            Message::Lookup(service) => format!("lookup {service}"),
            Message::Port(name) => format!("port {name}"),
        };
        let mut text = text.into_bytes();
        text.truncate(TEXT_BYTES_MAXIMUM);
        text
    }

    /// `None` when the bytes are no message; they come from another process and may be anything.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Message> {
        if let Some(part) = bytes.strip_prefix(EXCHANGE) {
            return Some(Message::Exchange(part.to_vec()));
        }
        if let Some(part) = bytes.strip_prefix(APPEAL) {
            return Some(Message::Appeal(part.to_vec()));
        }
        if let Some(part) = bytes.strip_prefix(NEWS) {
            return Some(Message::News(part.to_vec()));
        }
        let text = String::from_utf8_lossy(bytes);
        let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
        let fields: Vec<&str> = rest.split(' ').collect();
        Some(match word {
            "join" => Message::Join {
                version: fields.first()?.parse().ok()?,
                secret: Secret(u128::from_str_radix(fields.get(1)?, 16).ok()?),
                rank: fields.get(2)?.parse().ok()?,
            },
            "welcome" => Message::Welcome(Welcome {
                app_number: fields.first()?.parse().ok()?,
                local_cpus: fields.get(1)?.parse().ok()?,
                bound: *fields.get(2)? == "1",
                survives: *fields.get(3)? == "1",
                processors: processors_of(fields.get(4)?)?,
            }),
            "refused" => Message::Refused(rest.to_owned()),
            "exchanged" => Message::Exchanged,
            "finalized" => Message::Finalized,
            "spawn" => Message::Spawn,
            "running" => Message::Running(rest.parse().ok()?),
            "spawning" => Message::Spawning(Secret(u128::from_str_radix(rest, 16).ok()?)),
            "parents" => Message::Parents { watch: rest == "1" },
            "spawned" => Message::Spawned,
            "lookup" => Message::Lookup(rest.to_owned()),
            "port" => Message::Port(rest.to_owned()),
            "abort" => {
                let (code, message) = rest.split_once(' ').unwrap_or((rest, ""));
                Message::Abort { code: code.parse().ok()?, message: message.to_owned() }
            }
            _ => return None,
        })
    }
}

/// Sends `message` on `socket`, with the descriptors that go along (four at most).
pub fn send(socket: BorrowedFd<'_>, message: &Message, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let bytes = message.encode();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAXIMUM))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    retry_on_intr(|| sendmsg(socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// Receives one message and the descriptors that came with it.
///
/// # Errors
/// `UnexpectedEof` when the other side has closed; `InvalidData` when what came is no message; `WouldBlock`.
pub fn receive(socket: BorrowedFd<'_>) -> io::Result<(Message, Vec<OwnedFd>)> {
    let mut bytes = [0; MESSAGE_BYTES_MAXIMUM];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAXIMUM))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = retry_on_intr(|| {
        recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)
    })?;
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut descriptors = Vec::new();
    for part in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(arrived) = part {
            descriptors.extend(arrived);
        }
    }
    let message = Message::decode(&bytes[..received.bytes]).ok_or(io::ErrorKind::InvalidData)?;
    Ok((message, descriptors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn every_message_survives_its_encoding() {
        let processors = vec![0, 3, 4, 1000];
        let welcome = Welcome { app_number: 1, local_cpus: 2, bound: true, survives: true, processors };
        for message in [
            Message::Join { version: VERSION, secret: Secret::random(), rank: 7 },
            Message::Welcome(welcome),
            Message::Refused("rank 7 is taken".into()),
            Message::Exchange(vec![0, 255, b' ', 7]),
            Message::Exchange(Vec::new()),
            Message::Appeal(vec![1, 255, 0]),
            Message::News(vec![0, b' ', 7]),
            Message::Exchanged,
            Message::Finalized,
            Message::Spawn,
            Message::Running(12),
            Message::Spawning(Secret::random()),
            Message::Parents { watch: true },
            Message::Spawned,
            Message::Lookup("00ff".into()),
            Message::Port("a:b c".into()),
            Message::Abort { code: -3, message: "out of cheese, twice".into() },
            Message::Abort { code: 3, message: String::new() },
        ] {
            assert_eq!(Message::decode(&message.encode()), Some(message));
        }
    }

    #[test]
    fn other_bytes_are_no_message() {
        for bytes in [
            &b""[..],
            b"join",
            b"join 1 x 2",
            b"welcome 1",
            b"welcome 1 2 0 0 x",
            b"abort x",
            b"\xff\xfe",
            b"hello 1 2",
        ] {
            assert_eq!(Message::decode(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn descriptors_go_along() {
        let (near, far) = rustix::net::socketpair(
            rustix::net::AddressFamily::UNIX,
            rustix::net::SocketType::SEQPACKET,
            rustix::net::SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        let part = Message::Exchange(vec![7; PART_BYTES_MAXIMUM]);
        send(near.as_fd(), &part, &[near.as_fd(), far.as_fd()]).unwrap();
        let (message, descriptors) = receive(far.as_fd()).unwrap();
        assert_eq!((&message, descriptors.len()), (&part, 2));
        drop((near, descriptors));
        assert_eq!(receive(far.as_fd()).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn addresses_read_what_they_write() {
        let address = Address { name: "parnass-12-ab".into(), secret: Secret::random() };
        assert_eq!(Address::parse(&address.to_string()), Some(address));
        for text in ["", ":", "name", "name:xyz", ":12"] {
            assert_eq!(Address::parse(text), None, "{text:?}");
        }
    }
}
