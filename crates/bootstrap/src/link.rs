//! The connection of a rank to its launcher.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::retry_on_intr;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::protocol::{self, Address, Message, Welcome};
use crate::{Error, JOB_VARIABLE, UNSET};

/// The connection of a rank to its launcher; every call does nothing in a world of one.
#[derive(Debug)]
pub struct LauncherLink {
    socket: Option<OwnedFd>,
}

impl LauncherLink {
    pub(crate) fn none() -> LauncherLink {
        LauncherLink { socket: None }
    }

    /// Whether a launcher is at the other end.
    pub fn is_connected(&self) -> bool {
        self.socket.is_some()
    }

    /// Asks the launcher at `address` for the place of `rank`. From then on the kernel kills this process
    /// when the launcher dies.
    pub(crate) fn connect(address: &Address, rank: u32) -> Result<(LauncherLink, Welcome, OwnedFd), Error> {
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
            protocol::send(socket.as_fd(), &join, None)?;
            let (answer, memory) = protocol::receive(socket.as_fd())?;
            Ok((socket, answer, memory))
        };
        let (socket, answer, memory) = ask().map_err(gone)?;
        match (answer, memory) {
            (Message::Welcome(welcome), Some(memory)) => {
                parnass_base::process::die_with(socket.as_fd()).map_err(gone)?;
                Ok((LauncherLink { socket: Some(socket) }, welcome, memory))
            }
            (Message::Refused(reason), _) => Err(Error::new(reason)),
            (other, _) => Err(Error::new(format!("the launcher answered {other:?} to a request to join"))),
        }
    }

    /// Tells the launcher that this rank has called MPI_Abort: it shows `message` (may be empty), ends every
    /// rank and exits with `code`. The caller then ends itself; the launcher does if it does not.
    pub fn abort(&self, code: i32, message: &str) {
        self.tell(&Message::Abort { code, message: message.to_owned() });
    }

    /// Tells the launcher that this rank has completed MPI_Finalize: from now on its end is no failure.
    pub fn finalized(&self) {
        self.tell(&Message::Finalized);
    }

    fn tell(&self, message: &Message) {
        if let Some(socket) = &self.socket {
            // An error means that the launcher is gone, and with it, by the watch, this process.
            let _ = protocol::send(socket.as_fd(), message, None);
        }
    }
}
