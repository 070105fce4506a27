//! A world that a running process starts: an mpiexec of its own beside it, which calls that process, hears what its ranks are
//! to be told, and tells what they say.
//!
//! The process listens at an abstract name, which only the mpiexec knows that is started for it.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, socket_with,
};

use crate::description::{self, bytes_of, file_of};
use crate::protocol::{self, Address, Message};
use crate::wire::{Decoder, Encoder};

/// Environment variable with the [`Address`] that an mpiexec is to call before it starts anything.
pub const SPAWN_VARIABLE: &str = "PARNASS_SPAWN";
/// Between two looks whether the other side is still there.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// How an mpiexec is to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Its command line, without its own name.
    pub words: Vec<OsString>,
    pub directory: PathBuf,
    pub variables: Vec<(OsString, OsString)>,
}

impl Launch {
    /// As it travels to the launcher.
    pub fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::new();
        encoder.bytes(self.directory.as_os_str().as_bytes()).u32(self.words.len() as u32);
        for word in &self.words {
            encoder.bytes(word.as_bytes());
        }
        encoder.u32(self.variables.len() as u32);
        for (name, value) in &self.variables {
            encoder.bytes(name.as_bytes()).bytes(value.as_bytes());
        }
        encoder.finish()
    }

    /// `None` when the bytes are none.
    pub fn decode(bytes: &[u8]) -> Option<Launch> {
        let mut decoder = Decoder::new(bytes);
        let directory = PathBuf::from(string(&mut decoder)?);
        let count = decoder.count(4)?;
        let words = (0..count).map(|_| string(&mut decoder)).collect::<Option<_>>()?;
        let count = decoder.count(8)?;
        let pairs = (0..count).map(|_| Some((string(&mut decoder)?, string(&mut decoder)?)));
        let variables = pairs.collect::<Option<_>>()?;
        decoder.end()?;
        Some(Launch { words, directory, variables })
    }

    /// A file with it, as a launcher was given it.
    ///
    /// # Errors
    /// It is none.
    pub fn from_file(file: OwnedFd) -> io::Result<Launch> {
        Launch::decode(&bytes_of(file)?).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// The command, for the mpiexec at `program`.
    pub fn command(&self, program: &std::path::Path) -> Command {
        let mut command = Command::new(program);
        command.args(&self.words).current_dir(&self.directory).env_clear();
        command.envs(self.variables.iter().map(|(name, value)| (name, value))).stdin(Stdio::null());
        command
    }
}

fn string(decoder: &mut Decoder<'_>) -> Option<OsString> {
    Some(OsString::from_vec(decoder.bytes()?.to_vec()))
}

/// The mpiexec of the installation that the library of this process is of, else the one that PATH has.
pub fn installed_launcher() -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let library = maps.lines().find_map(|line| {
        let path = std::path::Path::new(line.get(line.find('/')?..)?);
        let name = path.file_name()?.to_str()?;
        (name.starts_with("libmpi") && name.contains(".so")).then(|| path.to_owned())
    });
    let beside = library.and_then(|library| Some(library.parent()?.parent()?.join("bin/mpiexec")));
    beside.filter(|program| program.exists()).unwrap_or_else(|| "mpiexec".into())
}

/// The mpiexec that was started.
#[derive(Debug)]
pub enum Started {
    /// By the launcher: its process.
    Elsewhere(i32),
    /// By this process.
    Here(Child),
}

impl Started {
    /// Whether it still runs.
    fn lives(&mut self) -> bool {
        match self {
            Started::Elsewhere(process) => std::path::Path::new(&format!("/proc/{process}")).exists(),
            Started::Here(child) => matches!(child.try_wait(), Ok(None)),
        }
    }
}

/// Where the mpiexec that starts a world for this process calls.
#[derive(Debug)]
pub struct Errand {
    listener: OwnedFd,
    address: Address,
}

impl Errand {
    /// Listens.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn new() -> io::Result<Errand> {
        let address = Address::unique("parnass-spawn");
        let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        bind(&listener, &SocketAddrUnix::new_abstract_name(address.name.as_bytes())?)?;
        listen(&listener, 8)?;
        Ok(Errand { listener, address })
    }

    /// The value of [`SPAWN_VARIABLE`].
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Waits until the new world is there. What its processes tell, by rank, and the connection: with `watch`, the mpiexec
    /// watches it from then on.
    ///
    /// # Errors
    /// A sentence for a person: why there is no new world.
    pub fn wait(
        self,
        parents: &[u8],
        watch: bool,
        started: &mut Started,
    ) -> Result<(Vec<Vec<u8>>, OwnedFd), String> {
        let broken =
            |error: io::Error| format!("the mpiexec that was to start the processes is gone: {error}");
        let socket = self.called(started).map_err(broken)?;
        let file = file_of(c"parnass-parents", parents).map_err(broken)?;
        protocol::send(socket.as_fd(), &Message::Parents { watch }, &[file.as_fd()]).map_err(broken)?;
        await_input(&socket, started).map_err(broken)?;
        match protocol::receive(socket.as_fd()).map_err(broken)? {
            (Message::Spawned, mut files) => {
                let parts = files.pop().and_then(|file| bytes_of(file).ok());
                let parts = parts.and_then(|parts| description::decode_parts(&parts));
                parts
                    .map(|parts| (parts, socket))
                    .ok_or_else(|| "the mpiexec's answer is malformed".to_owned())
            }
            (Message::Refused(reason), _) => Err(reason),
            (other, _) => Err(format!("the mpiexec that was to start the processes answered {other:?}")),
        }
    }

    /// The connection of the one that knows the secret.
    fn called(&self, started: &mut Started) -> io::Result<OwnedFd> {
        loop {
            await_input(&self.listener, started)?;
            let socket = accept_with(&self.listener, SocketFlags::CLOEXEC)?;
            if let Ok((Message::Spawning(secret), _)) = protocol::receive(socket.as_fd())
                && secret == self.address.secret
            {
                return Ok(socket);
            }
        }
    }
}

fn await_input(socket: &OwnedFd, started: &mut Started) -> io::Result<()> {
    let mut gone = false;
    loop {
        match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&LOOK)) {
            // What it has said last is still there.
            Ok(0) if gone => return Err(io::Error::other("it has ended")),
            Ok(0) => gone = !started.lives(),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The process for which an mpiexec starts a world.
#[derive(Debug)]
pub struct Caller {
    pub socket: OwnedFd,
    /// What the ranks are to be told.
    pub parents: Vec<u8>,
    /// Whether the two watch each other.
    pub watch: bool,
}

impl Caller {
    /// Calls the process that [`SPAWN_VARIABLE`] names.
    ///
    /// # Errors
    /// It is gone.
    pub fn call(address: &str) -> io::Result<Caller> {
        let malformed = || io::Error::from(io::ErrorKind::InvalidData);
        let address = Address::parse(address).ok_or_else(malformed)?;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        connect(&socket, &SocketAddrUnix::new_abstract_name(address.name.as_bytes())?)?;
        protocol::send(socket.as_fd(), &Message::Spawning(address.secret), &[])?;
        match protocol::receive(socket.as_fd())? {
            (Message::Parents { watch }, mut files) => {
                let parents = bytes_of(files.pop().ok_or_else(malformed)?)?;
                Ok(Caller { socket, parents, watch })
            }
            _ => Err(malformed()),
        }
    }

    /// The ranks are there, and tell this: [`description::encode_parts`].
    pub fn spawned(&self, parts: &[u8]) {
        // Where it cannot be told, the process is gone.
        if let Ok(file) = file_of(c"parnass-spawned", parts) {
            let _ = protocol::send(self.socket.as_fd(), &Message::Spawned, &[file.as_fd()]);
        }
    }

    /// There will be no ranks.
    pub fn refuse(&self, reason: &str) {
        let _ = protocol::send(self.socket.as_fd(), &Message::Refused(reason.to_owned()), &[]);
    }

    /// The ranks have failed.
    pub fn abort(&self, code: i32, message: &str) {
        let abort = Message::Abort { code, message: message.to_owned() };
        let _ = protocol::send(self.socket.as_fd(), &abort, &[]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sleeper() -> Started {
        Started::Here(Command::new("sleep").arg("60").spawn().unwrap())
    }

    fn end(started: Started) {
        if let Started::Here(mut child) = started {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn what_both_sides_tell_arrives() {
        let errand = Errand::new().unwrap();
        let address = errand.address();
        let mpiexec = std::thread::spawn(move || {
            let caller = Caller::call(&address).unwrap();
            caller.spawned(&description::encode_parts(&[b"one".to_vec(), b"two".to_vec()]));
            (caller.parents.clone(), caller.watch)
        });
        let mut started = sleeper();
        let (parts, _) = errand.wait(&[7; 100_000], true, &mut started).unwrap();
        assert_eq!(parts, [b"one", b"two"]);
        assert_eq!(mpiexec.join().unwrap(), (vec![7; 100_000], true));
        end(started);
    }

    #[test]
    fn a_refusal_and_an_end_are_told() {
        let errand = Errand::new().unwrap();
        let address = errand.address();
        let mpiexec = std::thread::spawn(move || Caller::call(&address).unwrap().refuse("no such program"));
        let mut started = sleeper();
        assert_eq!(errand.wait(b"", false, &mut started).unwrap_err(), "no such program");
        mpiexec.join().unwrap();
        end(started);
        let mut ended = Started::Here(Command::new("true").spawn().unwrap());
        assert!(Errand::new().unwrap().wait(b"", false, &mut ended).unwrap_err().contains("it has ended"));
    }

    proptest! {
        #[test]
        fn launches_survive(words in prop::collection::vec("[a-z]{0,9}", 0..9), value in "[a-z=/ ]{0,20}") {
            let words = words.into_iter().map(OsString::from).collect();
            let variables = vec![("NAME".into(), OsString::from(&value)), ("B".into(), "".into())];
            let launch = Launch { words, directory: value.into(), variables };
            let bytes = launch.encode();
            prop_assert_eq!(Launch::decode(&bytes), Some(launch));
            for cut in 0..bytes.len() {
                prop_assert_eq!(Launch::decode(&bytes[..cut]), None);
            }
        }
    }
}
