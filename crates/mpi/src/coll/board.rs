//! The steps of a schedule that happen on the board of a communicator.

use super::execution::{Execution, Parts, check_length};
use crate::comm::Communicator;
use crate::constants::{MPI_ERR_INTERN, MPI_ERR_NO_MEM};
use crate::error::{Error, Result};
use crate::process::Process;
use parnass_collectives::{Slice, Span, Wake};
use parnass_portals::{Board, NO_MEMORY, ProcessId};

/// Looks for something on the board before the NIC is asked whether there is something else to do.
const SOON_SPINS: u32 = 2000;
/// Looks without a pause between them.
const EAGER_SPINS: u32 = 128;
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
    owed: Owed,
}

impl Place {
    pub(super) fn new(board: &Board, rounds: u32) -> Place {
        Place { first: board.begin(u64::from(rounds)), owed: Owed::Nobody }
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
            // A pause costs as much as the way of a line from core to core.
            if turn >= EAGER_SPINS {
                std::hint::spin_loop();
            }
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
        round: u64,
    ) -> Result<()> {
        let ready = || board.has_room(round);
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
            length => check_length(board.process(from), length.unwrap_or(0), expected),
        }
    }
}

impl Execution {
    #[inline]
    pub(super) fn post(
        &mut self,
        process: &Process,
        parts: &Parts<'_>,
        round: u32,
        data: Slice,
        wake: Wake,
    ) -> Result<()> {
        let board = parts.board()?;
        let round = self.place.round(round);
        if !board.has_room(round) {
            self.place.wait_for_room(process, board, parts, round)?;
        }
        let mut length = data.length;
        if length > 0 {
            if let Some(target) = board.take_place(round, length) {
                match self.resolve(parts, data.span)? {
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
        if !wake.when_complete || board.arrive(round) {
            self.place.wake(board, wake.only);
        }
        if length == NO_MEMORY { Err(no_memory(process.me())) } else { Ok(()) }
    }

    #[inline]
    pub(super) fn take(
        &mut self,
        process: &Process,
        parts: &Parts<'_>,
        (round, from): (u32, u32),
        (posted, skip): (u64, u64),
        data: Slice,
    ) -> Result<()> {
        let board = parts.board()?;
        let round = self.place.round(round);
        self.place.find(process, board, parts, (round, from), posted)?;
        if data.length == 0 {
            return Ok(());
        }
        let source = board.data(from, round, posted).offset(skip as i64);
        match self.resolve(parts, data.span)? {
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
        inout: Span,
    ) -> Result<()> {
        let board = parts.board()?;
        let round = self.place.round(round);
        self.place.find(process, board, parts, (round, from), posted)?;
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
        if let (Some(board), rounds @ 1..) = (parts.board, self.rounds()) {
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
    pub(super) fn board_of<'a>(
        &self,
        communicator: &'a std::sync::Arc<Communicator>,
    ) -> Result<Option<&'a Board>> {
        match communicator.board().get() {
            Some(board) => Ok(board.as_ref()),
            None => self.make_board(communicator),
        }
    }

    #[cold]
    fn make_board<'a>(&self, communicator: &'a std::sync::Arc<Communicator>) -> Result<Option<&'a Board>> {
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
        Ok(communicator.board().get_or_init(|| board).as_ref())
    }
}
