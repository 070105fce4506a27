//! The processes that ask for a rank, and what they say.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use parnass_bootstrap::{Message, Secret, Welcome};
use parnass_transport_shm::JobMemory;
use rustix::event::epoll;
use rustix::net::{AddressFamily, SocketFlags, SocketType, accept_with, socketpair};

use super::{Connection, Guardian, Source};
use crate::report;

impl Guardian {
    pub(super) fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while let Ok(socket) = accept_with(&self.listener, flags) {
            let Ok(peer) = rustix::net::sockopt::socket_peercred(&socket) else { continue };
            let own = rustix::process::geteuid();
            if peer.uid != own && !peer.uid.is_root() {
                continue;
            }
            let free = self.connections.iter().position(Option::is_none);
            let index = free.unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            let data = Source::Connection(index).encode();
            if epoll::add(&self.epoll, &socket, data, epoll::EventFlags::IN).is_ok() {
                let process = Some(peer.pid);
                if self.leaves_files {
                    // When the pipe is full it knows enough of them.
                    let _ = rustix::io::write(&self.members, &peer.pid.as_raw_nonzero().get().to_ne_bytes());
                }
                self.connections[index] = Some(Connection {
                    socket,
                    watched: None,
                    process,
                    rank: None,
                    wave: 0,
                    rounds: 0,
                    finalized: false,
                    aborted: false,
                    news: super::recovery::Courier::default(),
                });
            }
        }
    }

    pub(super) fn read_connection(&mut self, index: usize) {
        loop {
            let Some(connection) = self.connections.get(index).and_then(Option::as_ref) else { return };
            match parnass_bootstrap::receive(connection.socket.as_fd()) {
                Ok((Message::Spawn, files)) => self.start_guest(index, files),
                Ok((message, _)) => self.obey(index, message),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return self.disconnected(index), // Its end, or no message of ours.
            }
        }
    }

    pub(super) fn obey(&mut self, index: usize, message: Message) {
        let Some(connection) = &mut self.connections[index] else { return };
        match (message, connection.rank) {
            (Message::Join { version, secret, rank }, None) => {
                let answer =
                    self.admit(index, version, secret, rank as usize).and_then(|(welcome, memory)| {
                        let watch =
                            self.watch(index).map_err(|error| format!("no socket for a rank: {error}"))?;
                        let news = self
                            .open_news(index)
                            .map_err(|error| format!("no socket for a rank: {error}"))?;
                        Ok((welcome, memory, watch, news))
                    });
                let connection = self.connections[index].as_ref().expect("it has just asked");
                let sent = match &answer {
                    Ok((welcome, memory, watch, news)) => {
                        let description = self.description.as_ref().expect("made before");
                        let files = [memory.as_fd(), description.as_fd(), watch.as_fd(), news.as_fd()];
                        parnass_bootstrap::send(
                            connection.socket.as_fd(),
                            &Message::Welcome(welcome.clone()),
                            &files,
                        )
                    }
                    Err(reason) => {
                        let message = Message::Refused(reason.clone());
                        parnass_bootstrap::send(connection.socket.as_fd(), &message, &[])
                    }
                };
                if answer.is_err() || sent.is_err() {
                    self.disconnected(index);
                }
            }
            (Message::Exchange(part), Some(_)) => self.take_part(index, part),
            (Message::Appeal(bytes), Some(rank)) => {
                let wave = connection.wave;
                self.pass_appeal(rank as u32, wave, bytes);
            }
            (Message::Finalized, Some(_)) => connection.finalized = true,
            (Message::Abort { code, message }, Some(rank)) => {
                connection.finalized = true; // Its end is accounted for.
                connection.aborted = true;
                self.drain(rank);
                let name = self.name(rank);
                let report = match message.as_str() {
                    "" => format!("{name} called MPI_Abort with code {code}"),
                    message => format!("{name}: {message}"),
                };
                self.fail_but(Some(rank), report::abort_code(code), &report);
            }
            _ => self.disconnected(index),
        }
    }

    /// What the member of a connection watches: it ends when this guardian does, or drops the connection.
    fn watch(&mut self, index: usize) -> io::Result<OwnedFd> {
        let flags = SocketFlags::CLOEXEC;
        let (near, far) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        if let Some(connection) = &mut self.connections[index] {
            connection.watched = Some(near);
        }
        Ok(far)
    }

    /// Gives the place of `rank` to a process, or says why not.
    pub(super) fn admit(
        &mut self,
        index: usize,
        version: u32,
        secret: Secret,
        rank: usize,
    ) -> Result<(Welcome, OwnedFd), String> {
        if version != parnass_bootstrap::VERSION {
            return Err(format!(
                "this MPI library speaks version {version} of the start-up protocol and mpiexec version {}; \
                 use the mpiexec that was installed with the library",
                parnass_bootstrap::VERSION
            ));
        }
        if secret != self.address.secret || self.own.binary_search(&rank).is_err() {
            return Err(
                "PARNASS_JOB or PARNASS_RANK was changed; unset both to run the program alone".to_owned()
            );
        }
        let place = &self.ranks[rank];
        if let Some(holder) = place.member.and_then(|holder| self.connections[holder].as_ref()) {
            let process = holder.process.map_or(0, |process| process.as_raw_nonzero().get());
            return Err(format!(
                "rank {rank} of this job is process {process} already; start an MPI program from within a rank \
                 by mpiexec, or alone with PARNASS_JOB and PARNASS_RANK unset"
            ));
        }
        if place.lost.is_some() || self.is_ending() {
            return Err("the job is ending".to_owned());
        }
        let wave = place.joined;
        let memory = self.memory(wave).map_err(|error| format!("no memory for the job: {error}"))?;
        if wave == 1 && !self.roster.description.parents.is_empty() {
            // The next program in the slots of a world that was started by another has no parents.
            self.roster.description.parents = Vec::new();
            self.description = None;
        }
        if self.description.is_none() {
            let file = self.roster.description.to_file();
            self.description = Some(file.map_err(|error| format!("no memory for the job: {error}"))?);
        }
        let place = &mut self.ranks[rank];
        place.joined += 1;
        place.member = Some(index);
        let connection = self.connections[index].as_mut().expect("it has just asked");
        (connection.rank, connection.wave) = (Some(rank), wave);
        let welcome = Welcome {
            app_number: self.ranks[rank].part as i32,
            local_cpus: parnass_bootstrap::available_processors(),
            bound: !self.starter.places.of_rank.is_empty(),
            survives: self.job.survives,
            processors: parnass_base::process::allowed_processors(),
        };
        Ok((welcome, memory))
    }

    /// The memory for those that join as the `wave`-th in their ranks. It is given up here with the last one.
    pub(super) fn memory(&mut self, wave: u32) -> io::Result<OwnedFd> {
        let size = self.own.len() as u32;
        if !self.memories.contains_key(&wave) {
            let memory = JobMemory::create(size)?;
            self.keep_memory(&memory)?;
            self.memory_of_ranks = Some(memory.try_clone()?);
            self.memories.insert(wave, (memory, size));
        }
        let (memory, missing) = self.memories.get_mut(&wave).expect("it has just been made");
        let copy = memory.try_clone()?;
        *missing -= 1;
        if *missing == 0 {
            self.memories.remove(&wave);
        }
        Ok(copy)
    }

    pub(super) fn disconnected(&mut self, index: usize) {
        let Some(connection) = self.connections[index].take() else { return };
        self.remove_leftovers_of(&connection);
        if let Some(rank) = connection.rank {
            let place = &mut self.ranks[rank];
            place.member = None;
            if !connection.finalized {
                place.lost = Some(Instant::now());
                place.lost_process = connection.process;
            }
        }
    }
}
