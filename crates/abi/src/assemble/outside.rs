//! The way of a process to those of other worlds: TCP, which is brought up when the first of them is met.

use super::{host, on_loss, selection};
use parnass_bootstrap::{Errand, Launch, Membership, SPAWN_VARIABLE, Services, Started, installed_launcher};
use parnass_mpi::Info;
use parnass_mpi::process::{CardBytes, Connector, Conversation, NAME_BYTES, Program, WORLD_BYTES};
use parnass_portals::Interface;
use parnass_transport_hybrid::{Duty, Hybrid, waker};
use parnass_transport_shm::SharedMemory;
use parnass_transport_tcp::{
    Acquaintance, Listener, Pair, Port, Talk, Tcp, Tuning, Visit, admit, call, pair_key, world_name,
};
use parnass_tunables::{self as tunables, Settings as Tunables};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of a card before the contact: the name, and whether its world encrypts.
pub const CARD_HEAD_BYTES: usize = NAME_BYTES + 1;

/// What others must know of a process to reach it.
pub fn card(membership: &Membership, settings: &Tunables, contact: &[u8]) -> CardBytes {
    card_of(membership, settings.switch(tunables::ENCRYPT), contact)
}

fn card_of(membership: &Membership, encrypt: bool, contact: &[u8]) -> CardBytes {
    let mut card = world_name(membership.key()).to_vec();
    assert_eq!(card.len(), WORLD_BYTES, "the name of a world");
    card.extend(membership.rank.to_le_bytes());
    card.push(u8::from(encrypt));
    card.extend(contact);
    card
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// See [`Connector`].
pub struct Outside {
    membership: Arc<Membership>,
    near: Arc<SharedMemory>,
    tuning: Tuning,
    network: Mutex<Network>,
    ports: Mutex<BTreeMap<String, Arc<Port>>>,
    services: Services,
    /// Connections to the mpiexecs that this process has started itself.
    spawned: Mutex<Vec<OwnedFd>>,
}

#[derive(Default)]
struct Network {
    /// Listens, and was told to others, but is not used yet.
    start: Option<(Listener, CardBytes)>,
    tcp: Option<Arc<Tcp>>,
    card: CardBytes,
    /// Processes of other worlds cannot be reached.
    closed: bool,
    /// How often others were expected before there was a network.
    expected: u32,
}

impl Outside {
    pub fn new(
        membership: Arc<Membership>,
        near: Arc<SharedMemory>,
        tuning: Tuning,
        start: Option<(Listener, CardBytes)>,
    ) -> Outside {
        Outside {
            membership,
            near,
            tuning,
            network: Mutex::new(Network { start, ..Network::default() }),
            ports: Mutex::default(),
            services: Services::default(),
            spawned: Mutex::default(),
        }
    }

    /// Where the world's own network leads nowhere else.
    pub fn without_way(self) -> Outside {
        lock(&self.network).closed = true;
        self
    }

    /// With the network that the world has anyway.
    pub fn with_network(self, tcp: Arc<Tcp>, card: CardBytes) -> Outside {
        *lock(&self.network) = Network { tcp: Some(tcp), card, ..Network::default() };
        self
    }

    fn port(&self, name: &str) -> Result<Arc<Port>, String> {
        let port = lock(&self.ports).get(name).cloned();
        port.ok_or_else(|| {
            let shown: String = name.chars().take(60).collect();
            format!("'{shown}' is not the name of a port that this process has open; MPI_Open_port gives one")
        })
    }

    /// The environment of an mpiexec that this process has started.
    fn variables(errand: &Errand) -> Vec<(OsString, OsString)> {
        let of_rank = |name: &OsStr| {
            let own = ["PARNASS_JOB", "PARNASS_RANK", "PARNASS_SIZE", "PARNASS_LOCAL_RANK"];
            own.iter().any(|own| *own == name)
        };
        let mut variables: Vec<(OsString, OsString)> =
            std::env::vars_os().filter(|(name, _)| !of_rank(name)).collect();
        variables.retain(|(name, _)| name != SPAWN_VARIABLE);
        variables.push((SPAWN_VARIABLE.into(), errand.address().into()));
        variables
    }

    /// Ends this process when the world that it has started itself fails.
    fn watch(&self, socket: OwnedFd) -> Result<(), String> {
        let copy = socket.try_clone().map_err(|error| error.to_string())?;
        lock(&self.spawned).push(socket);
        let watch = move || {
            parnass_base::process::block_signals();
            let told = parnass_bootstrap::receive(std::os::fd::AsFd::as_fd(&copy));
            // Its end without a word is that of a world which has ended well.
            if let Ok((parnass_bootstrap::Message::Abort { code, .. }, _)) = told {
                crate::errors::flush_c_output();
                crate::errors::exit_now(code);
            }
        };
        let builder = std::thread::Builder::new().name("parnass-spawned".into()).stack_size(128 << 10);
        builder.spawn(watch).map(|_| ()).map_err(|error| error.to_string())
    }

    /// This process is finalized: its end is no failure of the worlds that it has started itself.
    fn released(&self) {
        for socket in lock(&self.spawned).drain(..) {
            let finalized = parnass_bootstrap::Message::Finalized;
            let _ = parnass_bootstrap::send(std::os::fd::AsFd::as_fd(&socket), &finalized, &[]);
        }
    }
}

impl Connector for Outside {
    fn card(&self, nic: &Interface) -> Result<CardBytes, String> {
        let mut network = lock(&self.network);
        if network.tcp.is_some() {
            return Ok(network.card.clone());
        }
        if network.closed {
            return Err(
                "ranks that talk over libfabric cannot meet processes of other worlds; start the job with \
                        --tunable network=tcp"
                    .to_owned(),
            );
        }
        let (listener, card) = match network.start.take() {
            Some(start) => start,
            None => {
                let listener = Listener::new(host(&self.membership), &selection()?)?;
                let card = card_of(&self.membership, self.tuning.encrypt, &listener.contact());
                (listener, card)
            }
        };
        let (me, size) = (self.membership.rank, self.membership.size);
        let duty = Duty::default();
        let tcp = listener.to_others(
            me,
            size,
            self.membership.key(),
            waker(&self.near, &duty),
            on_loss(&self.membership),
            self.tuning,
        );
        let tcp = Arc::new(tcp.map_err(|error| format!("TCP cannot be used: {error}"))?);
        (0..network.expected).for_each(|_| tcp.expect(true));
        nic.widen(Box::new(Hybrid::new(self.near.clone(), tcp.clone(), &vec![0; size as usize], duty)));
        network.tcp = Some(tcp);
        network.card = card.clone();
        Ok(card)
    }

    fn expect(&self, more: bool) {
        let mut network = lock(&self.network);
        match &network.tcp {
            Some(tcp) => tcp.expect(more),
            None if more => network.expected += 1,
            None => network.expected -= 1,
        }
    }

    fn admit(&self, cards: &[CardBytes], key: &[u8; 32]) -> Result<u32, String> {
        let network = lock(&self.network);
        let tcp = network.tcp.as_ref().ok_or("there is no network yet")?;
        let own = &network.card[..NAME_BYTES];
        let acquaintance = |card: &CardBytes| {
            let (head, contact) = card.split_at_checked(CARD_HEAD_BYTES)?;
            let (name, encrypt) = head.split_at(NAME_BYTES);
            let first = own < name;
            let [one, other] = if first { [own, name] } else { [name, own] };
            let pair = Pair {
                key: pair_key(key, one, other),
                first,
                rank: u32::from_le_bytes(name[WORLD_BYTES..].try_into().ok()?),
                encrypted: self.tuning.encrypt || encrypt == [1],
            };
            Some(Acquaintance { contact: contact.to_vec(), pair })
        };
        let acquaintances: Option<Vec<Acquaintance>> = cards.iter().map(acquaintance).collect();
        let acquaintances =
            acquaintances.ok_or("what a process of another world tells of itself is not understood")?;
        admit(tcp, &acquaintances).map_err(|error| error.to_string())
    }

    fn let_go(&self, process: u32) {
        if let Some(tcp) = &lock(&self.network).tcp {
            tcp.let_go(process);
        }
    }

    fn random(&self) -> [u8; 32] {
        parnass_bootstrap::Key::random().0
    }

    fn spawn(&self, programs: &[Program], parents: &[u8]) -> Result<Vec<CardBytes>, String> {
        let failed = |error: std::io::Error| format!("no mpiexec can be started for the processes: {error}");
        let errand = Errand::new().map_err(failed)?;
        let words = words_of(programs, self.membership.tunables.as_deref())?;
        let directory = std::env::current_dir().map_err(failed)?;
        let launch = Launch { words, directory, variables: Outside::variables(&errand) };
        let launcher = self.membership.launcher();
        let mut started = match launcher.spawn(&launch).map_err(failed)? {
            Some(process) => Started::Elsewhere(process),
            None => {
                let program = installed_launcher();
                let child = launch.command(&program).spawn();
                Started::Here(
                    child.map_err(|error| format!("{} cannot be started: {error}", program.display()))?,
                )
            }
        };
        let watch = matches!(started, Started::Here(_));
        let (parts, socket) = errand.wait(parents, watch, &mut started)?;
        if watch {
            self.watch(socket)?;
        }
        let cards = parts.iter().map(|part| super::network::Contacts::decode(part).map(|place| place.tcp));
        cards.collect::<Option<_>>().ok_or_else(|| "a new process does not say where it is".to_owned())
    }

    fn open_port(&self) -> Result<String, String> {
        let port = Port::open(host(&self.membership), &selection()?)?;
        let name = port.name().to_owned();
        lock(&self.ports).insert(name.clone(), Arc::new(port));
        Ok(name)
    }

    fn close_port(&self, port: &str) -> Result<(), String> {
        self.port(port)?;
        lock(&self.ports).remove(port);
        Ok(())
    }

    fn accept(&self, port: &str) -> Result<Box<dyn Conversation>, String> {
        let visit = self
            .port(port)?
            .accept()
            .map_err(|error| format!("nobody can be let in at the port: {error}"))?;
        Ok(Box::new(Meeting(visit)))
    }

    fn call(&self, port: &str, patience: Duration) -> Result<Box<dyn Conversation>, String> {
        Ok(Box::new(Meeting(call(port, patience)?)))
    }

    fn join(&self, descriptor: i32) -> Result<Box<dyn Conversation>, String> {
        let bad =
            |error: std::io::Error| format!("fd is {descriptor}, over which nothing can be said: {error}");
        if descriptor < 0 {
            return Err(format!("fd is {descriptor}; it must be a connected stream socket"));
        }
        // SAFETY: the program says that it is open, and leaves it so during the call; if it is not, the kernel says so.
        let socket = unsafe { BorrowedFd::borrow_raw(descriptor) }.try_clone_to_owned().map_err(bad)?;
        Ok(Box::new(Meeting(Talk(socket).trust().map_err(bad)?)))
    }

    fn publish(&self, service: &[u8], port: &[u8]) -> Result<(), String> {
        self.services.publish(service, port).map_err(|error| {
            let service = String::from_utf8_lossy(service);
            match error.kind() {
                std::io::ErrorKind::AddrInUse => format!("the service '{service}' is published already"),
                _ => format!("the service '{service}' cannot be published: {error}"),
            }
        })
    }

    fn unpublish(&self, service: &[u8], port: &[u8]) -> Result<(), String> {
        match self.services.unpublish(service, port) {
            true => Ok(()),
            false => Err(format!(
                "this process has not published the service '{}' with that port",
                String::from_utf8_lossy(service)
            )),
        }
    }

    fn look_up(&self, service: &[u8]) -> Result<Option<Vec<u8>>, String> {
        parnass_bootstrap::look_up(service).map_err(|error| error.to_string())
    }

    fn finalized(&self) {
        self.released();
    }
}

struct Meeting(Visit);

impl Conversation for Meeting {
    fn key(&self) -> [u8; 32] {
        self.0.key
    }

    fn swap(&mut self, own: &[u8]) -> Result<Vec<u8>, String> {
        self.0.talk.swap(own).map_err(|error| error.to_string())
    }
}

/// A word of a command line, from bytes of the program.
fn word(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

/// The pairs of `hints`, and of the file that they name.
fn hints_of(hints: &Info) -> Result<Vec<(String, Vec<u8>)>, String> {
    let pairs = |hints: &Info| -> Vec<(String, Vec<u8>)> {
        hints.iter().map(|(key, value)| (String::from_utf8_lossy(key).into_owned(), value.to_vec())).collect()
    };
    let mut all = Vec::new();
    if let Some(file) = hints.value(b"file") {
        let file = PathBuf::from(word(file));
        let text = std::fs::read_to_string(&file).map_err(|error| {
            format!("the info key file names {}, which cannot be read: {error}", file.display())
        })?;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (key, value) = line
                .split_once('=')
                .ok_or_else(|| format!("{}: '{line}' is not KEY=VALUE", file.display()))?;
            all.push((key.trim().to_owned(), value.trim().as_bytes().to_vec()));
        }
    }
    all.extend(pairs(hints));
    Ok(all)
}

/// The command line of the mpiexec that starts these programs.
fn words_of(programs: &[Program], tunables: Option<&[String]>) -> Result<Vec<OsString>, String> {
    let mut words: Vec<OsString> = Vec::new();
    for tunable in tunables.unwrap_or_default() {
        words.extend(["--tunable".into(), tunable.into()]);
    }
    let mut hosts: Vec<Vec<u8>> = Vec::new();
    for (index, program) in programs.iter().enumerate() {
        if index != 0 {
            words.push(":".into());
        }
        let mut command = word(&program.command);
        let mut count = program.processes;
        let mut part: Vec<OsString> = Vec::new();
        let hints = hints_of(&program.hints)?;
        let value = |key: &str| hints.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value);
        if let Some(host) = value("host")
            && !hosts.contains(host)
        {
            part.extend(["--host".into(), word(host)]);
            hosts.push(host.clone());
        }
        let directory = value("wdir").map(|directory| word(directory));
        if let Some(directory) = &directory {
            part.extend(["-wdir".into(), directory.clone()]);
        }
        for line in value("env").map(|text| text.split(|&byte| byte == b'\n')).into_iter().flatten() {
            if let Some(at) = line.iter().position(|&byte| byte == b'=') {
                part.extend(["-env".into(), word(&line[..at]), word(&line[at + 1..])]);
            }
        }
        if let Some(path) = value("path") {
            command = found_in(&word(path), &command);
        }
        if let Some(soft) = value("soft") {
            let soft = String::from_utf8_lossy(soft).into_owned();
            count = most_of(&soft, count).ok_or_else(|| {
                format!("the info key soft is '{soft}'; it must be numbers or ranges a:b:c, one of them 1 to {count}")
            })?;
        }
        words.extend(part);
        words.extend(["-n".into(), count.to_string().into(), command]);
        words.extend(program.arguments.iter().map(|argument| word(argument)));
    }
    Ok(words)
}

/// The program in the first of the directories that has it.
fn found_in(path: &OsStr, command: &OsStr) -> OsString {
    if Path::new(command).components().count() > 1 {
        return command.to_owned();
    }
    let found =
        std::env::split_paths(path).map(|directory| directory.join(command)).find(|file| file.exists());
    let found = found.and_then(|file| std::path::absolute(file).ok());
    found.map_or_else(|| command.to_owned(), PathBuf::into_os_string)
}

/// The largest number up to `most` in a list such as `1,4:8:2` (MPI 5.0, section 11.8.2).
fn most_of(soft: &str, most: u32) -> Option<u32> {
    let mut best = None;
    for triplet in soft.split(',') {
        let numbers: Option<Vec<i64>> = triplet.split(':').map(|number| number.trim().parse().ok()).collect();
        let (first, last, step) = match numbers?.as_slice() {
            [only] => (*only, *only, 1),
            [first, last] => (*first, *last, 1),
            [first, last, step] => (*first, *last, *step),
            _ => return None,
        };
        if step == 0 {
            return None;
        }
        let mut number = first;
        while if step > 0 {
            number <= last && number <= i64::from(most)
        } else {
            number >= last && number > 0
        } {
            if (1..=i64::from(most)).contains(&number) {
                best = best.max(Some(number as u32));
            }
            number += step;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(command: &str, processes: u32, hints: &[(&str, &str)]) -> Program {
        let mut info = Info::new();
        for (key, value) in hints {
            info.set(key.as_bytes(), value.as_bytes()).unwrap();
        }
        Program { command: command.into(), arguments: vec![b"a b".to_vec()], processes, hints: info }
    }

    fn line(programs: &[Program]) -> Result<String, String> {
        let words = words_of(programs, Some(&["spins=5".to_owned()]))?;
        Ok(words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join("|"))
    }

    #[test]
    fn hints_become_options() {
        let programs = [
            program("x", 2, &[("wdir", "/tmp"), ("host", "here"), ("env", "A=1\nB=2=3"), ("other", "?")]),
            program("y", 9, &[("soft", "1:8:2"), ("host", "here")]),
        ];
        let wanted = "--tunable|spins=5|--host|here|-wdir|/tmp|-env|A|1|-env|B|2=3|-n|2|x|a b|:|-n|7|y|a b";
        assert_eq!(line(&programs).unwrap(), wanted);
        assert_eq!(
            line(&[program("sh", 1, &[("path", "/nowhere:/bin")])]).unwrap(),
            "--tunable|spins=5|-n|1|/bin/sh|a b"
        );
        assert!(line(&[program("x", 2, &[("soft", "3")])]).unwrap_err().contains("soft is '3'"));
        assert!(line(&[program("x", 2, &[("file", "/nowhere/x")])]).unwrap_err().contains("/nowhere/x"));
    }

    #[test]
    fn a_soft_number_is_the_largest_that_is_allowed() {
        for (soft, most, wanted) in [
            ("4", 4, Some(4)),
            ("1,2,9", 4, Some(2)),
            ("0:100:5", 13, Some(10)),
            ("8:2:-3", 7, Some(5)),
            ("x", 4, None),
            ("1:2:0", 4, None),
        ] {
            assert_eq!(most_of(soft, most), wanted, "{soft}");
        }
    }
}
