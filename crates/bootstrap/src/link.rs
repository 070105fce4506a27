//! The connection of a rank to its launcher.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;

use parnass_base::process::die_with;
use rustix::io::retry_on_intr;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::description::{self, Description};
use crate::foreign::Foreign;
use crate::protocol::{self, Address, Message, PART_BYTES_MAXIMUM, Welcome};
use crate::recovery::{Appeal, News};
use crate::{Error, JOB_VARIABLE, Launch, UNSET};

/// The connection of a rank to its launcher; every call does nothing in a world of one.
#[derive(Debug)]
pub struct LauncherLink(Kind);

#[derive(Debug)]
enum Kind {
    Alone,
    Own {
        /// The launcher holds its other end and sends nothing on it: the kernel ends this process when it is closed. Before
        /// `socket`, so that it is dropped first: the launcher closes its end when it sees that one closed, and a process that
        /// gives up after it has joined is to say why.
        _watch: OwnedFd,
        socket: OwnedFd,
        /// Held by the thread that exchanges.
        exchanging: Mutex<()>,
        /// What the launcher tells without being asked; none where the launcher is another rank.
        news: Option<OwnedFd>,
    },
    Foreign(Foreign),
}

/// What a rank is given when it joins.
pub(crate) struct Given {
    pub welcome: Welcome,
    pub memory: OwnedFd,
    pub description: Description,
}

impl LauncherLink {
    pub(crate) fn none() -> LauncherLink {
        LauncherLink(Kind::Alone)
    }

    pub(crate) fn foreign(foreign: Foreign) -> LauncherLink {
        LauncherLink(Kind::Foreign(foreign))
    }

    /// Whether a launcher is at the other end.
    pub fn is_connected(&self) -> bool {
        !matches!(self.0, Kind::Alone)
    }

    /// Asks the launcher at `address` for the place of `rank`. From then on the kernel kills this process
    /// when the launcher dies.
    pub(crate) fn connect(address: &Address, rank: u32) -> Result<(LauncherLink, Given), Error> {
        let gone = |error: io::Error| {
            Error::new(format!(
                "the launcher named by {JOB_VARIABLE}={} is gone ({error}); {UNSET}",
                address.name
            ))
        };
        let ask = || -> io::Result<_> {
            let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
            let place = SocketAddrUnix::new_abstract_name(address.name.as_bytes())?;
            retry_on_intr(|| connect(&socket, &place))?;
            let join = Message::Join { version: protocol::VERSION, secret: address.secret, rank };
            protocol::send(socket.as_fd(), &join, &[])?;
            let (answer, files) = protocol::receive(socket.as_fd())?;
            Ok((socket, answer, files))
        };
        let (socket, answer, files) = ask().map_err(gone)?;
        let mut files = files.into_iter();
        match (answer, files.next(), files.next(), files.next()) {
            (Message::Welcome(welcome), Some(memory), Some(description), Some(watch)) => {
                let news = files.next();
                let description = Description::from_file(description)
                    .ok()
                    .filter(|description| rank < description.nodes.size())
                    .ok_or_else(|| {
                        Error::new("the launcher describes the job in a way that is not understood")
                    })?;
                die_with(watch.as_fd()).map_err(gone)?;
                let link =
                    LauncherLink(Kind::Own { _watch: watch, socket, exchanging: Mutex::default(), news });
                Ok((link, Given { welcome, memory, description }))
            }
            (Message::Refused(reason), ..) => Err(Error::new(reason)),
            (other, ..) => Err(Error::new(format!("the launcher answered {other:?} to a request to join"))),
        }
    }

    /// Gives `part` and gets the parts of all ranks, in their order. Every rank of the job must take part, in the
    /// same order where there are several exchanges.
    ///
    /// # Errors
    /// `part` has more than [`PART_BYTES_MAXIMUM`] bytes, or the launcher is gone.
    pub(crate) fn exchange(&self, part: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        if part.len() > PART_BYTES_MAXIMUM {
            let message =
                format!("an exchange takes {PART_BYTES_MAXIMUM} bytes of a rank, not {}", part.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let (socket, exchanging) = match &self.0 {
            Kind::Alone => return Ok(vec![part.to_vec()]),
            Kind::Foreign(foreign) => return foreign.exchange(part),
            Kind::Own { socket, exchanging, .. } => (socket, exchanging),
        };
        let _one_thread = exchanging.lock();
        protocol::send(socket.as_fd(), &Message::Exchange(part.to_vec()), &[])?;
        let answer = protocol::receive(socket.as_fd())?;
        let malformed = || io::Error::new(io::ErrorKind::InvalidData, "the launcher's answer is malformed");
        match answer {
            (Message::Exchanged, mut files) => {
                let file = files.pop().ok_or_else(malformed)?;
                description::decode_parts(&description::bytes_of(file)?).ok_or_else(malformed)
            }
            (Message::Refused(reason), _) => Err(io::Error::other(reason)),
            _ => Err(malformed()),
        }
    }

    /// Has the launcher start an mpiexec beside this world, and tells its process id. `None`: there is no launcher that does so, and this process must do it itself.
    ///
    /// # Errors
    /// The launcher cannot, or is gone.
    pub fn spawn(&self, launch: &Launch) -> io::Result<Option<i32>> {
        let Kind::Own { socket, exchanging, .. } = &self.0 else { return Ok(None) };
        let file = description::file_of(c"parnass-spawn", &launch.encode())?;
        let _one_thread = exchanging.lock();
        protocol::send(socket.as_fd(), &Message::Spawn, &[file.as_fd()])?;
        match protocol::receive(socket.as_fd())? {
            (Message::Running(process), _) => Ok(Some(process)),
            (Message::Refused(reason), _) => Err(io::Error::other(reason)),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the launcher's answer is malformed")),
        }
    }

    /// Tells the launcher that this rank has called MPI_Abort: it shows `message` (may be empty), ends every
    /// rank and exits with `code`. The caller then ends itself; the launcher does if it does not.
    pub fn abort(&self, code: i32, message: &str) {
        if let Kind::Foreign(foreign) = &self.0 {
            return foreign.abort(code, message);
        }
        self.tell(&Message::Abort { code, message: message.to_owned() });
    }

    /// Tells the launcher that this rank has completed MPI_Finalize: from now on its end is no failure.
    pub fn finalized(&self) {
        if let Kind::Foreign(foreign) = &self.0 {
            return foreign.finalized();
        }
        self.tell(&Message::Finalized);
    }

    /// Whether the launcher takes [`LauncherLink::appeal`] and tells news.
    pub fn has_news(&self) -> bool {
        matches!(&self.0, Kind::Own { news: Some(_), .. })
    }

    /// Has the launcher tell ranks something. What comes of it is heard with [`LauncherLink::hear`].
    ///
    /// # Errors
    /// It does not fit into a message.
    pub fn appeal(&self, appeal: &Appeal) -> io::Result<()> {
        let bytes = appeal.encode();
        if bytes.len() > PART_BYTES_MAXIMUM {
            let text = "the members of the communicator are too scattered over the job";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        self.tell(&Message::Appeal(bytes));
        Ok(())
    }

    /// Waits for news. `None`: none will come any more.
    pub fn hear(&self) -> Option<News> {
        let Kind::Own { news: Some(news), .. } = &self.0 else { return None };
        match protocol::receive(news.as_fd()) {
            Ok((Message::News(bytes), _)) => News::decode(&bytes),
            _ => None,
        }
    }

    fn tell(&self, message: &Message) {
        if let Kind::Own { socket, .. } = &self.0 {
            // An error means that the launcher is gone, and with it, by the watch, this process.
            let _ = protocol::send(socket.as_fd(), message, &[]);
        }
    }
}
