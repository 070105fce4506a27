//! A job of another launcher: its processes find each other through PMI or PMIx, and the first of each node makes the memory
//! that the ranks of the node share, and hands it to them over a local socket.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use parnass_base::inherited::inherited;
use rustix::io::retry_on_intr;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, socket_with,
};

use crate::description::{self, Description, Key, Nodes};
use crate::pmi::{self, Launcher, Version, nodes_of_mapping};
use crate::protocol::{self, Address, Message, VERSION, Welcome};
use crate::wire::{Decoder, Encoder};
use crate::{Error, Membership, available_processors};

/// What a process of another launcher's job keeps: the launcher, and the other ranks of its node.
#[derive(Debug)]
pub struct Foreign {
    state: Mutex<State>,
    rank: u32,
    size: u32,
    /// The first rank of each node, which speaks for the node in an exchange.
    leaders: Vec<u32>,
}

/// What another launcher offers to the processes of its job.
pub trait Store: std::fmt::Debug + Send {
    /// Puts bytes under a name. Others see it after the next barrier.
    fn put(&mut self, name: &str, bytes: &[u8]) -> io::Result<()>;
    /// Gets what `rank` has put under a name before the last barrier.
    fn get(&mut self, rank: u32, name: &str) -> io::Result<Vec<u8>>;
    /// Waits until all processes have called it.
    fn barrier(&mut self) -> io::Result<()>;
    /// Says that this process has finished with MPI.
    fn finalize(&mut self) -> io::Result<()>;
    /// Has the launcher end all processes.
    fn abort(&mut self, code: i32, message: &str);
    /// Which part of the launcher's command line has started this process; -1 where it does not know.
    fn app_number(&mut self) -> i32;
}

#[derive(Debug)]
struct State {
    client: Box<dyn Store>,
    local: Local,
    rounds: u32,
}

/// The other ranks of the node.
#[derive(Debug)]
enum Local {
    /// Of the first one: a connection to each other.
    Leader(Vec<OwnedFd>),
    /// Of the others: the connection to the first.
    Member(OwnedFd),
}

/// The variables that PMI launchers set.
#[derive(Clone, Debug)]
pub struct Variables {
    pub descriptor: String,
    pub rank: String,
    pub size: String,
    /// What the launcher calls the job.
    pub job: String,
    /// Which version the user wants, if he does.
    pub version: Option<String>,
    /// Whether Slurm has started the process, whose server is made for version 2.
    pub slurm: bool,
}

impl Variables {
    /// Which version is asked for first.
    fn first_version(&self) -> Result<Version, Error> {
        match self.version.as_deref() {
            Some("1") => Ok(Version::One),
            Some("2") => Ok(Version::Two),
            Some(other) => {
                Err(Error::new(format!("PMI_VERSION is '{other}': set it to 1 or 2, or unset it")))
            }
            None if self.slurm => Ok(Version::Two),
            None => Ok(Version::One),
        }
    }
}

/// Takes the place that PMI gives. `make_memory` makes the memory for so many ranks of a node.
pub fn join(
    variables: &Variables,
    make_memory: impl FnOnce(u32) -> io::Result<OwnedFd>,
) -> Result<Membership, Error> {
    let number = |name: &str, text: &str| -> Result<u32, Error> {
        text.parse().map_err(|_| {
            Error::new(format!("another launcher has set {name} to '{text}', which is no number"))
        })
    };
    let descriptor = number("PMI_FD", &variables.descriptor)?;
    let (rank, size) = (number("PMI_RANK", &variables.rank)?, number("PMI_SIZE", &variables.size)?);
    if rank >= size {
        return Err(Error::new(format!(
            "another launcher has set PMI_RANK to {rank} and PMI_SIZE to {size}"
        )));
    }
    let trouble = |what: &'static str| {
        move |error: io::Error| {
            Error::new(format!(
                "a PMI launcher has started this process (PMI_RANK={rank}, PMI_SIZE={size}), but {what}: {error}; \
                 use the mpiexec of Parnass, or unset PMI_FD, PMI_RANK and PMI_SIZE to run alone"
            ))
        }
    };
    let socket =
        inherited(descriptor as i32).map_err(trouble("the descriptor in PMI_FD was closed on the way"))?;
    let mut client = pmi::connect(socket, variables.first_version()?, rank, size, &variables.job)
        .map_err(trouble("it cannot be talked to"))?;
    let of_rank = match size {
        1 => vec![0], // Some launchers have nothing to say of a single rank.
        _ => nodes(&mut *client, size).map_err(trouble("it does not say which ranks share a host"))?,
    };
    meet(client, rank, of_rank, make_memory).map_err(trouble("its processes cannot find each other"))
}

/// Takes the place that PMIx gives, as [`join`].
pub fn join_pmix(make_memory: impl FnOnce(u32) -> io::Result<OwnedFd>) -> Result<Membership, Error> {
    let trouble = |error: io::Error| {
        Error::new(format!(
            "a PMIx launcher has started this process, but its job cannot be joined: {error}; libpmix.so.2 must be \
             found (Debian: libpmix2), or use the mpiexec of Parnass, or unset PMIX_NAMESPACE and PMIX_RANK to run alone"
        ))
    };
    let (store, rank, of_rank) = crate::pmix::connect().map_err(trouble)?;
    meet(Box::new(store), rank, of_rank, make_memory).map_err(trouble)
}

/// The node of each rank, as the launcher says.
fn nodes(client: &mut dyn Launcher, size: u32) -> io::Result<Vec<u32>> {
    let mapping = client.mapping()?;
    nodes_of_mapping(&mapping, size).ok_or_else(|| io::Error::other(format!("'{mapping}'")))
}

/// The first rank of each node, by node.
fn leaders(of_rank: &[u32]) -> Vec<u32> {
    let count = of_rank.iter().max().map_or(0, |last| last + 1);
    (0..count)
        .filter_map(|node| of_rank.iter().position(|&other| other == node).map(|rank| rank as u32))
        .collect()
}

/// What the first rank of a node shows to all.
struct Station {
    address: Address,
    host: String,
    /// The job's key, from rank 0.
    key: Key,
}

impl Station {
    fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::new();
        encoder.u32(VERSION).bytes(self.address.to_string().as_bytes()).bytes(self.host.as_bytes());
        encoder.raw(&self.key.0).finish()
    }

    fn decode(bytes: &[u8]) -> io::Result<Station> {
        let read = || {
            let mut decoder = Decoder::new(bytes);
            decoder.u32().filter(|&version| version == VERSION)?;
            let address = Address::parse(&decoder.text()?)?;
            let host = decoder.text()?;
            let key = Key(decoder.raw(32)?.try_into().ok()?);
            decoder.end().map(|()| Station { address, host, key })
        };
        let other = "another process uses another release of this library";
        read().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, other))
    }
}

fn meet(
    mut client: Box<dyn Store>,
    rank: u32,
    of_rank: Vec<u32>,
    make_memory: impl FnOnce(u32) -> io::Result<OwnedFd>,
) -> io::Result<Membership> {
    let size = of_rank.len() as u32;
    let leaders = leaders(&of_rank);
    let node = of_rank[rank as usize];
    let leader = leaders[node as usize];
    let app_number = client.app_number();
    let mut listener = None;
    if leader == rank {
        let address = Address::unique("parnass-pmi");
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        bind(&socket, &SocketAddrUnix::new_abstract_name(address.name.as_bytes())?)?;
        listen(&socket, 4096)?;
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let station = Station { address, host, key: Key::random() };
        client.put(&format!("parnass-node-{rank}"), &station.encode())?;
        listener = Some((socket, station.address));
    }
    client.barrier()?;
    let mut station = |leader: u32| Station::decode(&client.get(leader, &format!("parnass-node-{leader}"))?);
    let (local, given) = match listener {
        Some((socket, address)) => {
            let stations = leaders.iter().map(|&leader| station(leader)).collect::<io::Result<Vec<_>>>()?;
            let key = stations[of_rank[0] as usize].key;
            let names = stations.into_iter().map(|station| station.host).collect();
            let nodes = Nodes::new(of_rank, names)
                .ok_or_else(|| io::Error::other("the launcher's process mapping makes no sense"))?;
            let description = Description { nodes, key, tunables: Vec::new(), parents: Vec::new() };
            let (_, local_size) = description.nodes.local(rank);
            let memory = make_memory(local_size)?;
            let members = admit(&socket, &address, &description, &memory, local_size - 1, app_number)?;
            (Local::Leader(members), (memory, description))
        }
        None => {
            let address = station(leader)?.address;
            let (socket, memory, description) = ask(&address, rank)?;
            (Local::Member(socket), (memory, description))
        }
    };
    let (memory, Description { nodes, key, .. }) = given;
    let (local_rank, local_size) = nodes.local(rank);
    let state = State { client, local, rounds: 0 };
    let foreign = Foreign { state: Mutex::new(state), rank, size, leaders };
    Ok(Membership {
        rank,
        size,
        nodes,
        local_rank,
        local_size,
        job_memory: Some(memory),
        app_number,
        job_id: format!("foreign-{}", std::process::id()),
        local_cpus: available_processors(),
        processors: Vec::new(),
        bound: false,
        // Each process reads its own environment.
        tunables: None,
        parents: Vec::new(),
        survives: false,
        key,
        launcher: crate::LauncherLink::foreign(foreign),
    })
}

/// Gives the memory to the `others` of this node as they ask, and keeps the connections.
fn admit(
    listener: &OwnedFd,
    address: &Address,
    description: &Description,
    memory: &OwnedFd,
    others: u32,
    app_number: i32,
) -> io::Result<Vec<OwnedFd>> {
    let file = description.to_file()?;
    let mut members = Vec::new();
    while members.len() < others as usize {
        let socket = retry_on_intr(|| accept_with(listener, SocketFlags::CLOEXEC))?;
        let own = rustix::process::geteuid();
        let known = rustix::net::sockopt::socket_peercred(&socket).is_ok_and(|peer| peer.uid == own);
        let asked = known
            && protocol::receive(socket.as_fd()).is_ok_and(|(message, _)| {
                matches!(message, Message::Join { version: VERSION, secret, .. } if secret == address.secret)
            });
        if asked {
            let local_cpus = available_processors();
            let processors = Vec::new();
            let welcome = Welcome { app_number, local_cpus, bound: false, survives: false, processors };
            let files = [memory.as_fd(), file.as_fd()];
            protocol::send(socket.as_fd(), &Message::Welcome(welcome), &files)?;
            members.push(socket);
        }
    }
    Ok(members)
}

/// Asks the first rank of this node for its memory.
fn ask(address: &Address, rank: u32) -> io::Result<(OwnedFd, OwnedFd, Description)> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    let place = SocketAddrUnix::new_abstract_name(address.name.as_bytes())?;
    retry_on_intr(|| connect(&socket, &place))?;
    protocol::send(socket.as_fd(), &Message::Join { version: VERSION, secret: address.secret, rank }, &[])?;
    let malformed =
        || io::Error::new(io::ErrorKind::InvalidData, "the first rank of the node answers nonsense");
    let (Message::Welcome(_), files) = protocol::receive(socket.as_fd())? else { return Err(malformed()) };
    let [memory, description] = <[OwnedFd; 2]>::try_from(files).map_err(|_| malformed())?;
    Ok((socket, memory, Description::from_file(description)?))
}

impl Foreign {
    /// As [`Membership::exchange`]. The first rank of each node collects what its node gives, and hands out what
    /// all nodes have given.
    pub(crate) fn exchange(&self, part: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { client, local, rounds, .. } = &mut *state;
        let round = *rounds;
        *rounds += 1;
        let malformed = || io::Error::new(io::ErrorKind::InvalidData, "a part of an exchange is malformed");
        let name = |leader: u32| format!("parnass-part-{round}-{leader}");
        match local {
            Local::Member(leader) => {
                let own = Encoder::new().u32(self.rank).raw(part).finish();
                protocol::send(leader.as_fd(), &Message::Exchange(own), &[])?;
                client.barrier()?;
                match protocol::receive(leader.as_fd())? {
                    (Message::Exchanged, mut files) => {
                        let file = files.pop().ok_or_else(malformed)?;
                        description::decode_parts(&description::bytes_of(file)?).ok_or_else(malformed)
                    }
                    _ => Err(malformed()),
                }
            }
            Local::Leader(members) => {
                let mut parts = vec![(self.rank, part.to_vec())];
                for member in &*members {
                    let (Message::Exchange(bytes), _) = protocol::receive(member.as_fd())? else {
                        return Err(malformed());
                    };
                    let mut decoder = Decoder::new(&bytes);
                    parts.push((decoder.u32().ok_or_else(malformed)?, decoder.rest().to_vec()));
                }
                let mut encoder = Encoder::new();
                for (rank, part) in &parts {
                    encoder.u32(*rank).bytes(part);
                }
                client.put(&name(self.rank), &encoder.finish())?;
                client.barrier()?;
                let mut all: BTreeMap<u32, Vec<u8>> = parts.into_iter().collect();
                for &leader in self.leaders.iter().filter(|&&leader| leader != self.rank) {
                    let bytes = client.get(leader, &name(leader))?;
                    let mut decoder = Decoder::new(&bytes);
                    while decoder.end().is_none() {
                        let rank = decoder.u32().ok_or_else(malformed)?;
                        all.insert(rank, decoder.bytes().ok_or_else(malformed)?.to_vec());
                    }
                }
                if !all.keys().copied().eq(0..self.size) {
                    return Err(malformed());
                }
                let all: Vec<Vec<u8>> = all.into_values().collect();
                let file = description::file_of(c"parnass-exchange", &description::encode_parts(&all))?;
                for member in &*members {
                    protocol::send(member.as_fd(), &Message::Exchanged, &[file.as_fd()])?;
                }
                Ok(all)
            }
        }
    }

    /// Has the launcher end all ranks, with this exit code.
    pub(crate) fn abort(&self, code: i32, message: &str) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).client.abort(code, message);
    }

    /// Tells the launcher that this process has finished with MPI.
    pub(crate) fn finalized(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Where the launcher is gone there is nobody to tell.
        let _ = state.client.finalize();
    }
}
