//! The executor of schedules on the board of a communicator.

use super::call::{Call, Side};
use super::execution::{COPY_PART, Ground, Parts, check_length, note};
use crate::comm::Communicator;
use crate::constants::{MPI_ERR_COUNT, MPI_ERR_INTERN, MPI_ERR_NO_MEM, MPI_ERR_OTHER};
use crate::error::{Error, Result};
use crate::faults::{Fault, interrupts};
use crate::process::Process;
use parnass_base::{Scratch, UserAddress};
use parnass_collectives::{Operation, Schedule, Share, Slice, Span, Step, Wake};
use parnass_portals::{Board, MemoryError, NO_MEMORY, ProcessId, Reading, WITHDRAWN};
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

/// How an operation on a board has failed.
pub(super) struct Failed {
    pub(super) error: Error,
    /// There is nothing more to be done.
    pub(super) ended: bool,
    /// Who has given otherwise than was expected, and whether it is by message.
    pub(super) astray: Vec<(u32, bool)>,
}

/// A collective operation under way on a board. Somebody waits for it, so it is run in one go, and nothing of it is ever in flight.
pub(super) struct Turn<'p, 'a> {
    process: &'p Process,
    board: &'p Board,
    ground: Ground<'p, 'a>,
    /// The round of the board that is round 0 of the schedule.
    first: u64,
    owed: Owed,
    /// Whether others wait for this member too, so that nobody runs ahead of it.
    gives: bool,
    /// Who has given otherwise than was expected, and whether it is by message.
    astray: Vec<(u32, bool)>,
    failed: Option<Error>,
    /// No step is taken any more.
    ended: bool,
}

impl<'p, 'a> Turn<'p, 'a> {
    #[inline(always)]
    pub(super) fn new(process: &'p Process, board: &'p Board, ground: Ground<'p, 'a>) -> Self {
        Turn {
            process,
            board,
            ground,
            first: board.next_round(),
            owed: Owed::Nobody,
            gives: false,
            astray: Vec::new(),
            failed: None,
            ended: false,
        }
    }

    /// Runs all steps up to the first message. After an error they go on, so that the other processes are not left waiting; unless the job
    /// will end of it, or the others learn of it by themselves.
    #[inline(always)]
    pub(super) fn run(mut self, schedule: &Schedule) -> std::result::Result<(), Failed> {
        let steps = schedule.steps();
        for step in &steps[..schedule.messages().unwrap_or(steps.len())] {
            if let Err(error) = self.step(step, schedule.shares()) {
                self.fail(error);
                if self.ended {
                    break;
                }
            }
        }
        self.end(schedule.rounds())
    }

    /// Takes the next step, unless it has ended.
    #[inline]
    pub(super) fn take_step(&mut self, step: &Step, shares: &[Share]) {
        if !self.ended
            && let Err(error) = self.step(step, shares)
        {
            self.fail(error);
        }
    }

    /// Keeps an error.
    #[cold]
    fn fail(&mut self, error: Error) {
        note(&mut self.failed, error);
        self.ended = self.ground.parts.is_fatal() || self.failed.as_ref().is_some_and(interrupts);
    }

    /// All steps have been taken, of so many rounds: draws these, and says how it went.
    #[inline(always)]
    pub(super) fn end(mut self, rounds: u32) -> std::result::Result<(), Failed> {
        self.board.pass(u64::from(rounds));
        if self.ended {
            self.give_up(rounds);
        } else {
            self.leave(rounds);
        }
        match self.failed {
            None => Ok(()),
            Some(error) => Err(Failed { error, ended: self.ended, astray: self.astray }),
        }
    }

    /// This process leaves before all have read what it has offered.
    #[cold]
    fn give_up(&self, rounds: u32) {
        if !self.ground.parts.is_fatal() {
            self.board.withdraw(self.first..self.round(rounds));
        }
    }

    #[inline(always)]
    fn step(&mut self, step: &Step, shares: &[Share]) -> Result<()> {
        match step {
            &Step::Post { round, ref data, wake } => self.post(round, data, wake),
            &Step::Take { round, from, posted, skip, ref data } => {
                self.take((round, from), (posted, skip), data)
            }
            &Step::Fold { round, from, posted, skip, ref inout } => {
                self.fold((round, from), (posted, skip), inout)
            }
            &Step::Gather { round } => self.gather(round),
            Step::Copy { from, to } => self.ground.copy(self.process, from, to),
            Step::Reduce { input, inout } => self.ground.reduce_from(self.ground.address(input), inout),
            &Step::Offer { round, ref data, length, wake } => self.offer(round, (data, length), wake),
            &Step::Fetch { round, from, offered, skip, ref data } => {
                self.fetch((round, from), (offered, skip), data)
            }
            &Step::Deal { round, wake } => self.deal(round, shares, wake),
            &Step::Pick { round, from, ref share } => self.pick((round, from), share),
            &Step::Done { round } => {
                // Nothing of the rounds up to this one will be read any more.
                self.board.done(self.round(round));
                Ok(())
            }
            Step::Send { .. } | Step::Receive { .. } | Step::Wait => Err(no_messages()),
        }
    }

    #[inline]
    fn round(&self, round: u32) -> u64 {
        self.first + u64::from(round)
    }

    /// Wakes whoever sleeps for what was posted last, as far as that can be seen at once.
    #[inline]
    fn wake(&mut self, only: Option<u32>) {
        let board = self.board;
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
    fn announce(&mut self, round: u64, wake: Wake) {
        if !wake.when_complete || self.board.arrive(round) {
            self.wake(wake.only);
        }
    }

    /// Wakes for certain.
    #[inline]
    fn settle(&mut self) {
        let board = self.board;
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
            if found || turn % NIC_EVERY == NIC_EVERY - 1 && process.nic().has_work() {
                break;
            }
            process.nic().answer_others();
            std::hint::spin_loop();
        }
        process.nic().count_waited(began);
        found
    }

    /// Waits for something that peers do on the board.
    fn wait(&mut self, awaited: Option<ProcessId>, ready: &dyn Fn() -> bool) -> Result<()> {
        if Turn::look(self.process, ready) { Ok(()) } else { self.wait_longer(awaited, ready) }
    }

    /// As [`Turn::wait`], after a look that was in vain.
    fn wait_longer(&mut self, awaited: Option<ProcessId>, ready: &dyn Fn() -> bool) -> Result<()> {
        let (process, communicator) = (self.process, self.ground.parts.communicator);
        self.settle();
        let hopeless = || process.fault_of_all(communicator).is_some();
        process.wait_watching(awaited, &|| ready() || hopeless());
        if ready() { Ok(()) } else { process.check_all(communicator) }
    }

    #[cold]
    fn wait_for_room(&mut self, round: u64, length: u64) -> Result<()> {
        let board = self.board;
        let ready = || board.has_room(round, length);
        if Turn::look(self.process, &ready) {
            return Ok(());
        }
        // To announce a sleeper costs all the others a cache line each time that they leave.
        board.block(true);
        let result = self.wait_longer(None, &ready);
        board.block(false);
        result
    }

    /// Waits for what a member posts in a round of the schedule; the round of the board, or an error if what was posted is not of the
    /// expected length.
    #[inline(always)]
    fn find(&mut self, (round, from): (u32, u32), expected: u64) -> Result<u64> {
        let round = self.round(round);
        match self.board.posted(from, round) {
            Some(length) if length == expected => {
                if !self.gives {
                    // Who posted without waiting for others has perhaps posted more.
                    self.board.expect(from, round + 1);
                }
            }
            _ => self.find_later((round, from), expected)?,
        }
        Ok(round)
    }

    #[inline(never)]
    fn find_later(&mut self, (round, from): (u64, u32), expected: u64) -> Result<()> {
        match self.await_posted((round, from))? {
            posted if posted == expected => Ok(()),
            posted => {
                let peer = self.board.process(from);
                self.explain((from, peer), posted, Some(Board::length_of(expected)))
            }
        }
    }

    /// Waits for what a member posts in a round of the board.
    #[inline]
    fn await_posted(&mut self, (round, from): (u64, u32)) -> Result<u64> {
        let board = self.board;
        if board.posted(from, round).is_none() {
            self.wait(Some(board.process(from)), &|| board.posted(from, round).is_some())?;
        }
        Ok(board.posted(from, round).unwrap_or(0))
    }

    /// Why a member has not posted what was expected.
    #[cold]
    fn explain(&mut self, (from, peer): (u32, ProcessId), posted: u64, expected: Option<u64>) -> Result<()> {
        // Who has no memory for the board gives by message what it was to give so.
        if posted != WITHDRAWN && posted != NO_MEMORY {
            self.astray.push((from, Board::is_offered(posted)));
        }
        match (posted, expected) {
            (NO_MEMORY, _) => return Err(no_memory(peer)),
            (WITHDRAWN, _) => return self.await_news(),
            (_, Some(expected)) => check_length(peer, Board::length_of(posted), expected)?,
            (_, None) => {}
        }
        Err(another_way(peer))
    }

    /// A member has been interrupted. What it was told comes to this process too.
    #[cold]
    fn await_news(&self) -> Result<()> {
        let (process, communicator) = (self.process, self.ground.parts.communicator);
        process.wait_watching(None, &|| process.fault_of_all(communicator).is_some());
        process.check_all(communicator)
    }

    /// Waits until this member may post so many bytes in a round of the board.
    #[inline(always)]
    fn make_room(&mut self, round: u64, length: u64) -> Result<()> {
        if self.board.has_room(round, length) { Ok(()) } else { self.wait_for_room(round, length) }
    }

    /// Shows what was written for a round of the board: `posted` says how much, or that there was no memory for it.
    #[inline(always)]
    fn show(&mut self, round: u64, posted: u64, wake: Wake) -> Result<()> {
        self.board.post(round, posted);
        self.gives = true;
        self.announce(round, wake);
        if posted == NO_MEMORY { Err(no_memory(self.process.me())) } else { Ok(()) }
    }

    #[inline(always)]
    fn post(&mut self, round: u32, data: &Slice, wake: Wake) -> Result<()> {
        let (round, mut length) = (self.round(round), data.length);
        self.make_room(round, length)?;
        if length > 0 {
            if let Some(place) = self.board.take_place(round, length) {
                self.pack(data, place)?;
            } else {
                length = NO_MEMORY;
            }
        }
        self.show(round, length, wake)
    }

    fn deal(&mut self, round: u32, shares: &[Share], wake: Wake) -> Result<()> {
        let round = self.round(round);
        let mut at = Share::table_bytes(shares.len());
        let length = at + shares.iter().map(|share| Share::room(share.entry())).sum::<u64>();
        self.make_room(round, length)?;
        let Some((target, goes_to_and_fro)) = self.board.take_place(round, length) else {
            return self.show(round, NO_MEMORY, wake);
        };
        for (index, share) in shares.iter().enumerate() {
            let entry = share.entry();
            target.offset((index * size_of::<u16>()) as i64).write(&entry.to_ne_bytes());
            if !share.away && entry > 0 {
                self.pack(&share.data, (target.offset(at as i64), goes_to_and_fro))?;
                at += Share::room(entry);
            }
        }
        self.show(round, Board::dealt(length), wake)
    }

    fn pick(&mut self, (round, from): (u32, u32), share: &Share) -> Result<()> {
        let (board, round) = (self.board, self.round(round));
        let peer = board.process(from);
        if !self.gives && board.posted(from, round).is_some() {
            // As in `find`.
            board.expect(from, round + 1);
        }
        let posted = self.await_posted((round, from))?;
        if !Board::is_dealt(posted) {
            return self.explain((from, peer), posted, None);
        }
        let length = Board::length_of(posted);
        let source = board.data(from, round, length);
        let (me, members) = (board.me(), board.members());
        let mut at = Share::table_bytes(members);
        let entry = |index: usize| {
            let mut entry = [0; size_of::<u16>()];
            source.offset((index * size_of::<u16>()) as i64).read(&mut entry);
            u16::from_ne_bytes(entry)
        };
        for index in 0..me {
            at += Share::room(entry(index));
        }
        let (given, expected) = (entry(me), share.entry());
        if given != expected {
            self.astray.push((from, given == Share::AWAY));
            check_length(peer, u64::from(given), share.data.length)?;
            return Err(another_way(peer));
        }
        if share.away || expected == 0 { Ok(()) } else { self.unpack(&share.data, source.offset(at as i64)) }
    }

    fn offer(&mut self, round: u32, (data, length): (&Span, u64), wake: Wake) -> Result<()> {
        let round = self.round(round);
        // The note alone is written.
        self.make_room(round, 0)?;
        let Ok(bytes) = self.ground.resolve(data)? else { return Err(not_one_run()) };
        self.board.offer(round, bytes.address, length);
        self.gives = true;
        self.announce(round, wake);
        Ok(())
    }

    fn fetch(&mut self, (round, from): (u32, u32), (offered, skip): (u64, u64), data: &Slice) -> Result<()> {
        self.gives = true;
        let round = self.find((round, from), Board::offered(offered))?;
        if data.length == 0 {
            return Ok(());
        }
        let (process, board, parts) = (self.process, self.board, self.ground.parts);
        let (owner, source) = (board.process(from), board.offer_of(from, round).offset(skip as i64));
        let read = |skip: u64, local: UserAddress, length: u64| {
            let read = process.nic().read_memory(owner, source.offset(skip as i64), local, length as usize);
            read.map_err(|error| not_read(process, parts, owner, error))
        };
        match self.ground.resolve(&data.span)? {
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
        if board.still_offers(from, round) { Ok(()) } else { self.await_news() }
    }

    #[inline(always)]
    fn take(&mut self, (round, from): (u32, u32), (posted, skip): (u64, u64), data: &Slice) -> Result<()> {
        let round = self.find((round, from), posted)?;
        if data.length == 0 {
            return Ok(());
        }
        self.unpack(data, self.board.data(from, round, posted).offset(skip as i64))
    }

    /// Puts data on the board, into a piece that goes to and fro between two, which this process has read last, or into memory that others have.
    #[inline(always)]
    fn pack(&self, data: &Slice, (target, goes_to_and_fro): (UserAddress, bool)) -> Result<()> {
        match self.ground.resolve(&data.span)? {
            Ok(bytes) => {
                let (source, length) = (bytes.address.offset(data.skip as i64), data.length as usize);
                if goes_to_and_fro {
                    target.copy_to_read(source, length);
                } else {
                    self.process.pace.copy(target, source, length);
                }
            }
            Err(buffer) => {
                let layout = buffer.datatype.layout();
                layout.pack(buffer.count, buffer.address, data.skip, target, data.length);
            }
        }
        Ok(())
    }

    /// Takes data from the board.
    #[inline(always)]
    fn unpack(&self, data: &Slice, source: UserAddress) -> Result<()> {
        match self.ground.resolve(&data.span)? {
            Ok(bytes) => {
                let (target, length) = (bytes.address.offset(data.skip as i64), data.length as usize);
                if length == size_of::<u64>() {
                    target.copy_apart(source, length);
                } else if self.ground.past_caches {
                    target.stream_from(source, length);
                } else {
                    target.copy_from_written(source, length);
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
    fn fold(&mut self, (round, from): (u32, u32), (posted, skip): (u64, u64), inout: &Span) -> Result<()> {
        let round = self.find((round, from), posted)?;
        if inout.count == 0 {
            return Ok(());
        }
        self.ground.reduce_from(self.board.data(from, round, posted).offset(skip as i64), inout)
    }

    #[inline]
    fn gather(&mut self, round: u32) -> Result<()> {
        let (board, round) = (self.board, self.round(round));
        if !board.is_complete(round) {
            self.wait(None, &|| board.is_complete(round))?;
        }
        Ok(())
    }

    /// All steps are done.
    #[inline(always)]
    fn leave(&mut self, rounds: u32) {
        let last = self.round(rounds - 1);
        if self.owed != Owed::Nobody {
            self.board.done(last);
            self.settle();
        } else if self.board.done_in_time(last) {
            self.settle();
        }
    }
}

#[cold]
fn no_messages() -> Error {
    Error::new(MPI_ERR_INTERN, "the schedule wants messages, which one on a board has none of")
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
            let reading = self.all_read_all(communicator, board)?;
            board.set_reading(reading);
        }
        Ok(communicator.board().get_or_init(|| board).as_ref())
    }

    /// Whether every member of a new board reads the memory of every other: the same answer at all of them.
    fn all_read_all(&self, communicator: &Arc<Communicator>, board: &Board) -> Result<Reading> {
        // Of a process that has not come yet nobody can tell.
        self.execute_on(&Call::new(communicator, Operation::Barrier), board)?;
        let size = communicator.size() as usize;
        let mine = match (0..size as u32).all(|rank| self.nic().reaches(board.process(rank))) {
            false => Reading::No,
            true if self.nic().copies_once() => Reading::Fast,
            true => Reading::Slow,
        };
        let place = Scratch::new(size);
        place.address().offset(communicator.rank() as i64).write(&[mine as u8]);
        let mut call = Call::new(communicator, Operation::Allgather);
        call.recv = Side::Even { address: place.address(), count: 1, datatype: self.datatypes().byte() };
        call.in_place = true;
        self.execute_on(&call, board)?;
        let mut told = vec![0; size];
        place.address().read(&mut told);
        let least = [Reading::No, Reading::Slow, Reading::Fast]
            .into_iter()
            .find(|known| told.contains(&(*known as u8)));
        Ok(least.unwrap_or(Reading::No))
    }
}
