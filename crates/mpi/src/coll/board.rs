//! The steps of a schedule that happen on the board of a communicator.

use super::call::{Call, Side};
use super::execution::{COPY_PART, Execution, Parts, check_length};
use crate::comm::Communicator;
use crate::constants::{MPI_ERR_COUNT, MPI_ERR_INTERN, MPI_ERR_NO_MEM, MPI_ERR_OTHER};
use crate::error::{Error, Result};
use crate::faults::Fault;
use crate::process::Process;
use parnass_base::{Scratch, UserAddress};
use parnass_collectives::{Operation, Slice, Span, Wake};
use parnass_portals::{Board, MemoryError, NO_MEMORY, ProcessId, WITHDRAWN};
use std::sync::Arc;

/// Looks for something on the board before the NIC is asked whether there is something else to do.
const SOON_SPINS: u32 = 2000;
/// Looks between two at the NIC.
const NIC_EVERY: u32 = 16;

/// Whom an execution has to wake for certain before it waits or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Owed {
    #[default]
    Nobody,
    One(u32),
    All,
}

/// How an execution stands on a board.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// The round of the board that is round 0 of the schedule.
    first: u64,
    rounds: u32,
    owed: Owed,
}

impl Place {
    pub(super) fn new(board: &Board, rounds: u32) -> Place {
        Place { first: board.begin(u64::from(rounds)), rounds, owed: Owed::Nobody }
    }

    #[inline]
    fn round(&self, round: u32) -> u64 {
        self.first + u64::from(round)
    }

    /// Wakes whoever sleeps for what was posted last, as far as that can be seen at once.
    #[inline]
    fn wake(&mut self, board: &Board, only: Option<u32>) {
        let now = match only {
            Some(member) => {
                board.ring(member);
                Owed::One(member)
            }
            None => {
                board.ring_all();
                Owed::All
            }
        };
        if board.rings_for_certain() {
            return;
        }
        self.owed = if self.owed == Owed::Nobody || self.owed == now { now } else { Owed::All };
    }

    /// Wakes whoever waits for what was posted in a round of the board.
    #[inline]
    fn announce(&mut self, board: &Board, round: u64, wake: Wake) {
        if !wake.when_complete || board.arrive(round) {
            self.wake(board, wake.only);
        }
    }

    /// Wakes for certain.
    #[inline]
    fn settle(&mut self, board: &Board) {
        board.settle();
        match std::mem::replace(&mut self.owed, Owed::Nobody) {
            Owed::Nobody => {}
            Owed::One(member) => board.ring(member),
            Owed::All => board.ring_all(),
        }
    }

    /// Looks for something that peers do on the board, as long as that is worth it; whether it has happened.
    #[inline]
    fn look(process: &Process, ready: &dyn Fn() -> bool) -> bool {
        let began = process.nic().watched_since();
        let mut found = false;
        for turn in 0..process.nic().spins().min(SOON_SPINS) {
            found = ready();
            if found || turn % NIC_EVERY == 0 && process.nic().has_work() {
                break;
            }
            std::hint::spin_loop();
        }
        process.nic().count_waited(began);
        found
    }

    /// Waits for something that peers do on the board.
    #[inline]
    fn wait(
        &mut self,
        process: &Process,
        board: &Board,
        parts: &Parts<'_>,
        awaited: Option<ProcessId>,
        ready: &dyn Fn() -> bool,
    ) -> Result<()> {
        if !Place::look(process, ready) {
            self.settle(board);
            let hopeless = || process.fault_of_all(parts.communicator).is_some();
            process.wait_watching(awaited, &|| ready() || hopeless());
            if !ready() {
                return process.check_all(parts.communicator);
            }
        }
        Ok(())
    }

    #[cold]
    fn wait_for_room(
        &mut self,
        process: &Process,
        board: &Board,
        parts: &Parts<'_>,
        (round, length): (u64, u64),
    ) -> Result<()> {
        let ready = || board.has_room(round, length);
        // To announce a sleeper costs all the others a cache line each time that they leave.
        if !Place::look(process, &ready) {
            board.block(true);
            self.settle(board);
            let hopeless = || process.fault_of_all(parts.communicator).is_some();
            process.wait_watching(None, &|| ready() || hopeless());
            board.block(false);
            if !ready() {
                return process.check_all(parts.communicator);
            }
        }
        Ok(())
    }

    /// Waits for what a member posts in a round; an error if that is not of the expected length.
    #[inline]
    fn find(
        &mut self,
        process: &Process,
        board: &Board,
        parts: &Parts<'_>,
        (round, from): (u64, u32),
        expected: u64,
    ) -> Result<()> {
        let mut posted = board.posted(from, round);
        if posted.is_none() {
            let peer = board.process(from);
            self.wait(process, board, parts, Some(peer), &|| board.posted(from, round).is_some())?;
            posted = board.posted(from, round);
        }
        match posted {
            Some(length) if length == expected => Ok(()),
            Some(NO_MEMORY) => Err(no_memory(board.process(from))),
            Some(WITHDRAWN) => Place::await_news(process, parts),
            length => {
                let (length, expected) = (Board::length_of(length.unwrap_or(0)), Board::length_of(expected));
                check_length(board.process(from), length, expected)?;
                Err(another_way(board.process(from)))
            }
        }
    }

    /// A member has been interrupted. What it was told comes to this process too.
    #[cold]
    fn await_news(process: &Process, parts: &Parts<'_>) -> Result<()> {
        process.wait_watching(None, &|| process.fault_of_all(parts.communicator).is_some());
        process.check_all(parts.communicator)
    }
}

impl Execution {
    #[inline]
    pub(super) fn post(
        &mut self,
        process: &Process,
        parts: &Parts<'_>,
        round: u32,
        data: &Slice,
        wake: Wake,
    ) -> Result<()> {
        let board = parts.board()?;
        let round = self.place.round(round);
        let mut length = data.length;
        if !board.has_room(round, length) {
            self.place.wait_for_room(process, board, parts, (round, length))?;
        }
        if length > 0 {
            if let Some(target) = board.take_place(round, length) {
                match self.resolve(parts, &data.span)? {
                    Ok(bytes) => {
                        let source = bytes.address.offset(data.skip as i64);
                        process.pace.copy(target, source, length as usize);
                    }
                    Err(buffer) => {
                        let layout = buffer.datatype.layout();
                        layout.pack(buffer.count, buffer.address, data.skip, target, length);
                    }
                }
            } else {
                length = NO_MEMORY;
            }
        }
        board.post(round, length);
        self.place.announce(board, round, wake);
        if length == NO_MEMORY { Err(no_memory(process.me())) } else { Ok(()) }
    }

    #[inline]
    pub(super) fn offer(
        &mut self,
        process: &Process,
        parts: &Parts<'_>,
        round: u32,
        (data, length): (&Span, u64),
        wake: Wake,
    ) -> Result<()> {
        let board = parts.board()?;
        let round = self.place.round(round);
        // The note alone is written.
        if !board.has_room(round, 0) {
            self.place.wait_for_room(process, board, parts, (round, 0))?;
        }
        let Ok(bytes) = self.resolve(parts, data)? else { return Err(not_one_run()) };
        board.offer(round, bytes.address, length);
        self.place.announce(board, round, wake);
        Ok(())
    }

    /// Waits for what a member posts in a round of the schedule; the board, and the round there.
    #[inline]
    fn find<'a>(
        &mut self,
        process: &Process,
        parts: &Parts<'a>,
        (round, from): (u32, u32),
        expected: u64,
    ) -> Result<(&'a Board, u64)> {
        let (board, round) = (parts.board()?, self.place.round(round));
        self.place.find(process, board, parts, (round, from), expected)?;
        Ok((board, round))
    }

    #[inline]
    pub(super) fn fetch(
        &mut self,
        process: &Process,
        parts: &Parts<'_>,
        (round, from): (u32, u32),
        (offered, skip): (u64, u64),
        data: &Slice,
    ) -> Result<()> {
        let (board, round) = self.find(process, parts, (round, from), Board::offered(offered))?;
        if data.length == 0 {
            return Ok(());
        }
        let (owner, source) = (board.process(from), board.offer_of(from, round).offset(skip as i64));
        let read = |skip: u64, local: UserAddress, length: u64| {
            let read = process.nic().read_memory(owner, source.offset(skip as i64), local, length as usize);
            read.map_err(|error| not_read(process, parts, owner, error))
        };
        match self.resolve(parts, &data.span)? {
            Ok(bytes) => read(0, bytes.address.offset(data.skip as i64), data.length)?,
            Err(buffer) => {
                // In parts that stay in the cache.
                let part = data.length.min(COPY_PART);
                let (packed, layout) = (process.staging.take(part), buffer.datatype.layout());
                for start in (0..data.length).step_by(COPY_PART as usize) {
                    let length = part.min(data.length - start);
                    read(start, packed.address(), length)?;
                    let skip = data.skip + start;
                    layout.unpack(buffer.count, buffer.address, skip, packed.address(), length);
                }
            }
        }
        if board.still_offers(from, round) { Ok(()) } else { Place::await_news(process, parts) }
    }

    /// This process leaves before all have read what it has offered.
    #[cold]
    pub(super) fn withdraw(&self, parts: &Parts<'_>) {
        if let Some(board) = parts.board {
            board.withdraw(self.place.first..self.place.round(self.place.rounds));
        }
    }

    #[inline]
    pub(super) fn take(
        &mut self,
        process: &Process,
        parts: &Parts<'_>,
        (round, from): (u32, u32),
        (posted, skip): (u64, u64),
        data: &Slice,
    ) -> Result<()> {
        let (board, round) = self.find(process, parts, (round, from), posted)?;
        if data.length == 0 {
            return Ok(());
        }
        let source = board.data(from, round, posted).offset(skip as i64);
        match self.resolve(parts, &data.span)? {
            Ok(bytes) => {
                let (target, length) = (bytes.address.offset(data.skip as i64), data.length as usize);
                if self.past_caches {
                    target.stream_from(source, length);
                } else {
                    target.copy_apart(source, length);
                }
            }
            Err(buffer) => {
                let layout = buffer.datatype.layout();
                layout.unpack(buffer.count, buffer.address, data.skip, source, data.length);
            }
        }
        Ok(())
    }

    #[inline]
    pub(super) fn fold(
        &mut self,
        process: &Process,
        parts: &Parts<'_>,
        (round, from): (u32, u32),
        (posted, skip): (u64, u64),
        inout: &Span,
    ) -> Result<()> {
        let (board, round) = self.find(process, parts, (round, from), posted)?;
        if inout.count == 0 {
            return Ok(());
        }
        self.reduce_from(parts, board.data(from, round, posted).offset(skip as i64), inout)
    }

    #[inline]
    pub(super) fn gather(&mut self, process: &Process, parts: &Parts<'_>, round: u32) -> Result<()> {
        let board = parts.board()?;
        let round = self.place.round(round);
        if !board.is_complete(round) {
            self.place.wait(process, board, parts, None, &|| board.is_complete(round))?;
        }
        Ok(())
    }

    /// Nothing of the rounds up to this one will be read any more.
    #[inline]
    pub(super) fn done(&mut self, parts: &Parts<'_>, round: u32) -> Result<()> {
        parts.board()?.done(self.place.round(round));
        Ok(())
    }

    /// All steps are done.
    #[inline]
    pub(super) fn leave(&mut self, parts: &Parts<'_>) {
        if let (Some(board), rounds @ 1..) = (parts.board, self.place.rounds) {
            let last = self.place.round(rounds - 1);
            if self.place.owed != Owed::Nobody {
                board.done(last);
                self.place.settle(board);
            } else if board.done_in_time(last) {
                self.place.settle(board);
            }
        }
    }
}

impl<'a> Parts<'a> {
    #[inline]
    fn board(&self) -> Result<&'a Board> {
        self.board.ok_or_else(no_board)
    }
}

#[cold]
fn no_board() -> Error {
    Error::new(MPI_ERR_INTERN, "the schedule wants a board, which this call does not have")
}

#[cold]
fn not_one_run() -> Error {
    Error::new(MPI_ERR_INTERN, "the schedule offers data with gaps to others, who cannot read it")
}

#[cold]
fn another_way(process: ProcessId) -> Error {
    Error::new(
        MPI_ERR_COUNT,
        format!(
            "process {} takes part in this collective operation in another way; counts and datatypes must describe the same amount \
             of data at every rank",
            process.0
        ),
    )
}

#[cold]
fn not_read(process: &Process, parts: &Parts<'_>, owner: ProcessId, error: MemoryError) -> Error {
    if let Err(fault) = process.check_all(parts.communicator) {
        return fault;
    }
    let why = match error {
        // This process may not have heard of it yet.
        MemoryError::Gone => return Fault::Failed(owner).error(),
        MemoryError::NotPermitted => "the kernel does not permit it any more",
        MemoryError::Failed => "there is no such memory",
    };
    Error::new(
        MPI_ERR_OTHER,
        format!(
            "what process {} gives in this collective operation cannot be read from its memory: {why}; give a buffer that \
             holds all that count and datatype say, or start the program with PARNASS_DIRECT=off",
            owner.0
        ),
    )
}

#[cold]
fn no_memory(process: ProcessId) -> Error {
    Error::new(
        MPI_ERR_NO_MEM,
        format!(
            "process {} has no memory for what it hands to the others in a collective operation",
            process.0
        ),
    )
}

/// The board of a communicator, made by its first blocking collective operation; `None` inside if there is no room for one.
pub(crate) type BoardSlot = std::sync::OnceLock<Option<Board>>;

impl Process {
    /// The board of a communicator. Its first use is a collective operation in itself.
    #[inline]
    pub(super) fn board_of<'a>(&self, communicator: &'a Arc<Communicator>) -> Result<Option<&'a Board>> {
        match communicator.board().get() {
            Some(board) => Ok(board.as_ref()),
            None => self.make_board(communicator),
        }
    }

    #[cold]
    fn make_board<'a>(&self, communicator: &'a Arc<Communicator>) -> Result<Option<&'a Board>> {
        let size = communicator.size() as u32;
        let group = communicator.group();
        // All members say the same: whoever is elsewhere has some members elsewhere too.
        let together = || (0..size as i32).all(|rank| self.nic().shares_memory(group.process(rank)));
        let mut board = None;
        if !communicator.is_inter() && parnass_portals::board_bytes(size) > 0 && together() {
            let rank = communicator.rank() as u32;
            let mine = if rank == 0 { self.nic().claim_board(size) } else { 0 };
            // 0 is the name of none.
            let name = self.tell_all(communicator, mine)?;
            if name != 0 {
                let members = (0..size as i32).map(|rank| group.process(rank)).collect();
                board = self.nic().open_board(name, members, rank);
            }
        }
        if let Some(board) = &mut board {
            let direct = self.all_read_all(communicator, board)?;
            board.set_direct(direct);
        }
        Ok(communicator.board().get_or_init(|| board).as_ref())
    }

    /// Whether every member of a new board reads the memory of every other: the same answer at all of them.
    fn all_read_all(&self, communicator: &Arc<Communicator>, board: &Board) -> Result<bool> {
        // Of a process that has not come yet nobody can tell.
        self.execute(&Call::new(communicator, Operation::Barrier), Some(board))?;
        let size = communicator.size() as usize;
        let reads_all = (0..size as u32).all(|rank| self.nic().reaches(board.process(rank)));
        let place = Scratch::new(size);
        place.address().offset(communicator.rank() as i64).write(&[u8::from(reads_all)]);
        let mut call = Call::new(communicator, Operation::Allgather);
        call.recv = Side::Even { address: place.address(), count: 1, datatype: self.datatypes().byte() };
        call.in_place = true;
        self.execute(&call, Some(board))?;
        let mut told = vec![0; size];
        place.address().read(&mut told);
        Ok(told.iter().all(|reads_all| *reads_all != 0))
    }
}
