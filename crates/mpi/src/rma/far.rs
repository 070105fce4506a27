//! Targets that can be reached by messages only: those on other nodes, and those whose memory the kernel does not open. A thread of the
//! target, the *service* of the window, takes the requests, so that they are carried out while the program computes.
//!
//! A request is a header of eight words, and a payload if it has one: a table of runs (offset and length, where the target's data is not
//! one run), then the data. A short payload follows the header in its message; a longer one is a message of its own. Requests of one origin to one target are carried out in order. What returns data, and a lock, is answered;
//! what does not is made certain by a flush, which is answered when all before it is done.

use super::accumulate::{Combination, update_spot};
use super::attached::Attached;
use super::transfer::{Place, Spot, packed, require_room};
use super::{Target, Window, guard};
use crate::comm::{Communicator, Plane};
use crate::constants::*;
use crate::datatype::{Buffer, CountForm, Datatype};
use crate::op::Op;
use crate::process::{Process, UserBytes};
use crate::request::Operation;
use crate::{Error, Result};
use parnass_base::{Scratch, UserAddress};
use parnass_counters::WINDOW_REQUESTS;
use parnass_datatype::Operator;
use parnass_portals::{Access, Segment};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Tag of the headers. (1 and 2 are those of `sync`.)
const REQUEST: u32 = 3;
/// From here on every request has two tags of its own: for its payload, and for its answer.
const FIRST_OWN: u32 = 16;
/// Numbers of requests come round after this many.
const SERIALS: u32 = 1 << 24;
const WORDS: usize = 8;
const HEADER_BYTES: usize = WORDS * size_of::<u64>();
/// The longest payload in the message of its header, in bytes.
const TOGETHER: usize = 4 << 10;
const RUN_BYTES: usize = 2 * size_of::<u64>();

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum Kind {
    Put = 1,
    Get,
    /// An accumulate; answered with what was there.
    Update,
    Swap,
    LockShared,
    LockExclusive,
    UnlockShared,
    UnlockExclusive,
    Flush,
    Stop,
}

impl Kind {
    const ALL: [Kind; 10] = [
        Kind::Put,
        Kind::Get,
        Kind::Update,
        Kind::Swap,
        Kind::LockShared,
        Kind::LockExclusive,
        Kind::UnlockShared,
        Kind::UnlockExclusive,
        Kind::Flush,
        Kind::Stop,
    ];
}

/// A header.
#[derive(Clone, Copy, Debug)]
struct Request {
    kind: Kind,
    serial: u32,
    /// From the base of the target's part of the window.
    start: i64,
    /// Bytes of the target's data.
    length: u64,
    /// How many runs stand in front of the payload; 0 where the data is one run at `start`.
    runs: u64,
    /// Bytes of the payload, runs and data.
    payload: u64,
    /// Handle values of a predefined operation and of the predefined datatype of an accumulate.
    op: usize,
    datatype: usize,
}

impl Request {
    fn new(kind: Kind) -> Request {
        Request { kind, serial: 0, start: 0, length: 0, runs: 0, payload: 0, op: 0, datatype: 0 }
    }

    fn to_words(self) -> [u64; WORDS] {
        [
            self.kind as u64,
            u64::from(self.serial),
            self.start as u64,
            self.length,
            self.runs,
            self.payload,
            self.op as u64,
            self.datatype as u64,
        ]
    }

    fn from_words(words: [u64; WORDS]) -> Option<Request> {
        Some(Request {
            kind: Kind::ALL.into_iter().find(|kind| *kind as u64 == words[0])?,
            serial: words[1] as u32,
            start: words[2] as i64,
            length: words[3],
            runs: words[4],
            payload: words[5],
            op: words[6] as usize,
            datatype: words[7] as usize,
        })
    }

    fn payload_tag(&self) -> u32 {
        FIRST_OWN + 2 * self.serial
    }

    fn answer_tag(&self) -> u32 {
        self.payload_tag() + 1
    }
}

fn bytes_of(memory: &Scratch) -> UserBytes {
    UserBytes { address: memory.address(), length: memory.len() as u64 }
}

fn finish(process: &Process, mut operation: Operation) -> Result<()> {
    process.wait_until(operation.awaited(), || operation.poll(process)).map(drop)
}

/// What a window has where some ranks can be reached by messages only.
#[derive(Debug)]
pub(super) struct Far {
    serial: AtomicU32,
    /// Targets to which something went that no flush has made certain yet.
    unsettled: Box<[AtomicBool]>,
    service: Mutex<Option<JoinHandle<()>>>,
}

impl Far {
    /// Starts the service of this process.
    pub fn start(process: &Arc<Process>, window: Service, size: usize) -> Result<Far> {
        process.admit_thread();
        let own = Arc::clone(process);
        let thread = std::thread::Builder::new()
            .name("parnass-window".into())
            .stack_size(256 << 10)
            .spawn(move || {
                parnass_base::process::block_signals();
                parnass_base::process::be_prompt();
                parnass_counters::be_silent();
                crate::progress::serve();
                if let Err(error) = window.run(&own) {
                    // Nobody would ever be answered.
                    let text =
                        format!("the thread that serves a window of this process cannot go on: {}", error.message());
                    own.abort(error.class(), &text);
                }
            })
            .map_err(|error| {
                Error::new(
                    MPI_ERR_NO_MEM,
                    format!("no thread can be had for a window with ranks on other nodes: {error}; allow more threads"),
                )
            })?;
        Ok(Far {
            serial: AtomicU32::new(0),
            unsettled: (0..size).map(|_| AtomicBool::new(false)).collect(),
            service: Mutex::new(Some(thread)),
        })
    }
}

impl Window {
    fn far(&self, rank: i32) -> Result<&Far> {
        self.far.as_ref().ok_or_else(|| self.unreachable(rank))
    }

    /// Sends a request, which gets its number here.
    fn send(
        &self,
        process: &Process,
        rank: i32,
        mut request: Request,
        payload: UserBytes,
    ) -> Result<Request> {
        let far = self.far(rank)?;
        request.serial = far.serial.fetch_add(1, Ordering::Relaxed) % SERIALS;
        request.payload = payload.length;
        let together = if payload.length as usize <= TOGETHER { payload.length as usize } else { 0 };
        let header = Scratch::new(HEADER_BYTES + together);
        for (index, word) in request.to_words().into_iter().enumerate() {
            header.address().offset(8 * index as i64).write_word(word);
        }
        if together > 0 {
            header.address().offset(HEADER_BYTES as i64).copy_apart(payload.address, together);
        }
        let plane = Plane::PointToPoint;
        let first = process.start_send_bytes(&self.communicator, plane, rank, REQUEST, bytes_of(&header))?;
        if payload.length > together as u64 {
            let tag = request.payload_tag();
            let second = process.start_send_bytes(&self.communicator, plane, rank, tag, payload)?;
            finish(process, second)?;
        }
        finish(process, first)?;
        Ok(request)
    }

    fn answer(&self, process: &Process, rank: i32, request: &Request, place: UserBytes) -> Result<()> {
        let tag = request.answer_tag();
        finish(
            process,
            process.start_receive_bytes(&self.communicator, Plane::PointToPoint, rank, tag, place)?,
        )
    }

    /// Makes certain that what went to a rank is done.
    #[inline(always)]
    pub(super) fn settle(&self, process: &Process, rank: i32) -> Result<()> {
        match &self.far {
            Some(far) => self.settle_far(process, far, rank),
            None => Ok(()),
        }
    }

    fn settle_far(&self, process: &Process, far: &Far, rank: i32) -> Result<()> {
        if far.unsettled[rank as usize].swap(false, Ordering::Relaxed) {
            let request = self.send(process, rank, Request::new(Kind::Flush), UserBytes::EMPTY)?;
            self.answer(process, rank, &request, UserBytes::EMPTY)?;
        }
        Ok(())
    }

    /// As [`Window::settle`], for all ranks.
    pub(super) fn settle_all(&self, process: &Process) -> Result<()> {
        match self.far {
            Some(_) => (0..self.size()).try_for_each(|rank| self.settle(process, rank)),
            None => Ok(()),
        }
    }

    /// Takes or gives back the lock of a rank on another node.
    pub(super) fn far_lock(&self, process: &Process, rank: i32, access: Access, take: bool) -> Result<()> {
        let kind = match (access, take) {
            (Access::Shared, true) => Kind::LockShared,
            (Access::Exclusive, true) => Kind::LockExclusive,
            (Access::Shared, false) => Kind::UnlockShared,
            (Access::Exclusive, false) => Kind::UnlockExclusive,
        };
        let request = self.send(process, rank, Request::new(kind), UserBytes::EMPTY)?;
        if !take {
            return Ok(());
        }
        let (plane, tag) = (Plane::PointToPoint, request.answer_tag());
        let mut answer =
            process.start_receive_bytes(&self.communicator, plane, rank, tag, UserBytes::EMPTY)?;
        process.wait_until(answer.awaited(), || {
            answer.poll(process).or_else(|| {
                // Whoever holds it may be dead, which the rank does not know of.
                let fault = process.fault_of_all(&self.communicator)?;
                answer.cancel(process);
                Some(Err(fault.error()))
            })
        })?;
        Ok(())
    }

    /// The request for the first `length` bytes at a place, and its table of runs.
    fn request(
        &self,
        kind: Kind,
        target: &Target,
        place: &Place<'_>,
        length: u64,
    ) -> Result<(Request, Vec<u64>)> {
        let mut start = self.start_of(target, place)?;
        let layout = place.datatype.layout();
        let mut runs = Vec::new();
        match layout.contiguous(place.count) {
            Some(offset) => start += offset,
            None => layout.visit_runs(place.count, 0, length, &mut |offset, bytes| {
                runs.extend([offset as u64, bytes]);
                true
            }),
        }
        Ok((Request { start, length, runs: runs.len() as u64 / 2, ..Request::new(kind) }, runs))
    }

    /// Sends a request with its runs and data.
    fn send_data(
        &self,
        process: &Process,
        rank: i32,
        request: Request,
        runs: &[u64],
        data: UserBytes,
    ) -> Result<Request> {
        if runs.is_empty() {
            return self.send(process, rank, request, data);
        }
        let table = size_of_val(runs);
        let whole = Scratch::new(table + data.length as usize);
        for (index, word) in runs.iter().enumerate() {
            whole.address().offset(8 * index as i64).write_word(*word);
        }
        whole.address().offset(table as i64).copy_apart(data.address, data.length as usize);
        self.send(process, rank, request, bytes_of(&whole))
    }

    fn mark_unsettled(&self, rank: i32) {
        if let Some(far) = &self.far {
            far.unsettled[rank as usize].store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn far_put(
        &self,
        process: &Process,
        target: &Target,
        origin: &Buffer<'_>,
        place: &Place<'_>,
    ) -> Result<()> {
        let length = origin.size();
        let (request, runs) = self.request(Kind::Put, target, place, length)?;
        require_room("origin", length, "target", place.size())?;
        if length == 0 {
            return Ok(());
        }
        let data;
        let address = match origin.contiguous() {
            Some(address) => address,
            None => {
                data = packed(origin);
                data.address()
            }
        };
        self.mark_unsettled(place.rank);
        self.send_data(process, place.rank, request, &runs, UserBytes { address, length }).map(drop)
    }

    pub(super) fn far_get(
        &self,
        process: &Process,
        target: &Target,
        origin: &Buffer<'_>,
        place: &Place<'_>,
    ) -> Result<()> {
        let length = place.size();
        let (request, runs) = self.request(Kind::Get, target, place, length)?;
        require_room("target", length, "origin", origin.size())?;
        if length == 0 {
            return Ok(());
        }
        let request = self.send_data(process, place.rank, request, &runs, UserBytes::EMPTY)?;
        self.answer_into(process, place.rank, &request, origin, length)
    }

    /// Receives an answer of `length` bytes into a buffer.
    fn answer_into(
        &self,
        process: &Process,
        rank: i32,
        request: &Request,
        buffer: &Buffer<'_>,
        length: u64,
    ) -> Result<()> {
        if let Some(address) = buffer.contiguous() {
            return self.answer(process, rank, request, UserBytes { address, length });
        }
        let data = Scratch::new(length as usize);
        self.answer(process, rank, request, bytes_of(&data))?;
        buffer.datatype.layout().unpack(buffer.count, buffer.address, 0, data.address(), length);
        Ok(())
    }

    /// An accumulate whose arguments have been checked; `input` is the packed data of the origin.
    pub(super) fn far_update(
        &self,
        process: &Process,
        target: &Target,
        (input, result): (UserAddress, Option<&Buffer<'_>>),
        place: &Place<'_>,
        (op, basic): (&Op, &Arc<Datatype>),
    ) -> Result<()> {
        let length = place.size();
        let (mut request, runs) = self.request(Kind::Update, target, place, length)?;
        request.op = op.predefined().unwrap_or(MPI_NO_OP);
        request.datatype = basic.predefined().unwrap_or(MPI_DATATYPE_NULL);
        let changes = op.operator() != Some(Operator::Nothing);
        let data = UserBytes { address: input, length: if changes { length } else { 0 } };
        let request = self.send_data(process, place.rank, request, &runs, data)?;
        let unwanted;
        let basic_bytes = process.datatypes().byte();
        let result = match result {
            Some(result) => *result,
            None => {
                unwanted = Scratch::new(length as usize);
                Buffer::new(unwanted.address(), length, basic_bytes)
            }
        };
        self.answer_into(process, place.rank, &request, &result, length)
    }

    /// A swap: `data` holds what is expected and what is to be written; what was there comes to `result`.
    pub(super) fn far_swap(
        &self,
        process: &Process,
        target: &Target,
        data: &Scratch,
        result: UserAddress,
        place: &Place<'_>,
    ) -> Result<()> {
        let length = place.size();
        let (request, _) = self.request(Kind::Swap, target, place, length)?;
        let request = self.send(process, place.rank, request, bytes_of(data))?;
        self.answer(process, place.rank, &request, UserBytes { address: result, length })
    }

    /// Ends the service of this process. No request is on its way to it.
    pub(super) fn stop_service(&self, process: &Process) -> Result<()> {
        let thread = self.far.as_ref().and_then(|far| guard(&far.service).take());
        if let Some(thread) = thread {
            self.send(process, self.rank(), Request::new(Kind::Stop), UserBytes::EMPTY)?;
            let _ = thread.join();
        }
        Ok(())
    }
}

/// What carries out the requests of others at this process.
#[derive(Debug)]
pub(super) struct Service {
    pub communicator: Arc<Communicator>,
    /// This process as a target.
    pub own: Target,
    pub base: UserAddress,
    pub segment: Arc<Segment>,
    pub member: u32,
    /// What may be accessed, of a dynamic window.
    pub attached: Option<Arc<Attached>>,
}

/// Somebody who waits for the lock of this process.
#[derive(Debug)]
struct Waiter {
    rank: i32,
    request: Request,
    access: Access,
}

impl Service {
    fn run(&self, process: &Process) -> Result<()> {
        let header = Scratch::new(HEADER_BYTES + TOGETHER);
        let mut waiters: Vec<Waiter> = Vec::new();
        let bytes = process.datatypes().byte();
        loop {
            let buffer = Buffer::new(header.address(), header.len() as u64, bytes);
            let plane = Plane::PointToPoint;
            let mut operation =
                process.start_recv(&self.communicator, plane, MPI_ANY_SOURCE, REQUEST as i32, buffer)?;
            loop {
                self.wait(process, &operation, &mut waiters);
                if operation.is_complete(process) {
                    break;
                }
            }
            let outcome = process.wait_until(None, || operation.poll(process))?;
            let rank = outcome.source.map_or(MPI_UNDEFINED, |source| self.communicator.rank_of(source));
            let words = std::array::from_fn(|index| header.address().offset(8 * index as i64).read_word());
            match Request::from_words(words) {
                Some(Request { kind: Kind::Stop, .. }) => return Ok(()),
                Some(request) => {
                    let behind = header.address().offset(HEADER_BYTES as i64);
                    // What fails is between the two, one of which may be dead; the others are served on.
                    let _ = self.serve(process, rank, request, behind, &mut waiters);
                }
                None => {
                    return Err(Error::new(
                        MPI_ERR_INTERN,
                        format!("rank {rank} has sent what is no request"),
                    ));
                }
            }
        }
    }

    /// Waits for the next request, and hands the lock to whoever waits longest for it.
    fn wait(&self, process: &Process, operation: &Operation, waiters: &mut Vec<Waiter>) {
        let Some(access) = waiters.first().map(|waiter| waiter.access) else {
            process.wait_watching(None, &|| operation.is_complete(process));
            return;
        };
        let mine = Cell::new(false);
        self.segment.await_access(self.member, true);
        process.wait_watching(None, &|| {
            if !mine.get() {
                mine.set(self.segment.try_acquire(self.member, access));
            }
            mine.get() || operation.is_complete(process)
        });
        self.segment.await_access(self.member, false);
        if mine.get() {
            let waiter = waiters.remove(0);
            if self.answer(process, waiter.rank, &waiter.request, UserBytes::EMPTY).is_err() {
                // The dead hold no lock that they have not heard of.
                self.segment.release(self.member, access);
            }
        }
    }

    fn answer(&self, process: &Process, rank: i32, request: &Request, data: UserBytes) -> Result<()> {
        let tag = request.answer_tag();
        finish(process, process.start_send_bytes(&self.communicator, Plane::PointToPoint, rank, tag, data)?)
    }

    /// Carries out a request; `behind` is where a short payload has come.
    fn serve(
        &self,
        process: &Process,
        rank: i32,
        request: Request,
        behind: UserAddress,
        waiters: &mut Vec<Waiter>,
    ) -> Result<()> {
        process.counters().count_any(WINDOW_REQUESTS, 1);
        let apart = request.payload > TOGETHER as u64;
        let kept = Scratch::new(if apart { request.payload as usize } else { 0 });
        let payload = if apart { kept.address() } else { behind };
        if apart {
            let (plane, tag) = (Plane::PointToPoint, request.payload_tag());
            finish(
                process,
                process.start_receive_bytes(&self.communicator, plane, rank, tag, bytes_of(&kept))?,
            )?;
        }
        let access = match request.kind {
            Kind::LockShared | Kind::UnlockShared => Access::Shared,
            _ => Access::Exclusive,
        };
        match request.kind {
            Kind::LockShared | Kind::LockExclusive => waiters.push(Waiter { rank, request, access }),
            Kind::UnlockShared | Kind::UnlockExclusive => self.segment.release(self.member, access),
            Kind::Flush => {
                Segment::fence();
                self.answer(process, rank, &request, UserBytes::EMPTY)?;
            }
            Kind::Put | Kind::Get | Kind::Update | Kind::Swap => {
                self.transfer(process, rank, request, payload)?;
            }
            Kind::Stop => {}
        }
        Ok(())
    }

    fn transfer(&self, process: &Process, rank: i32, request: Request, payload: UserAddress) -> Result<()> {
        let table = request.runs as usize * RUN_BYTES;
        let data = payload.offset(table as i64);
        let derived;
        let (datatype, count) = if request.runs == 0 {
            (process.datatypes().byte(), request.length)
        } else {
            let word = |index: usize| payload.offset(8 * index as i64).read_word() as i64;
            let runs = request.runs as usize;
            let lengths: Vec<i64> = (0..runs).map(|run| word(2 * run + 1)).collect();
            let places: Vec<i64> = (0..runs).map(|run| word(2 * run)).collect();
            derived = Datatype::hindexed(CountForm::Large, &lengths, &places, process.datatypes().byte())?;
            (&derived, 1)
        };
        let address = self.base.offset(request.start);
        if let Some(attached) = &self.attached {
            let place =
                Place { rank: self.communicator.rank(), displacement: request.start, count, datatype };
            if let Err(error) = attached.require(address, &place) {
                // Not every request is answered, so its origin cannot be told.
                process.abort(error.class(), &format!("rank {rank}, in a window: {}", error.message()));
            }
        }
        let spot = Spot { target: &self.own, address, count, datatype, direct: true, asked: false };
        let old = Scratch::new(if request.kind == Kind::Put { 0 } else { request.length as usize });
        match request.kind {
            Kind::Put => return spot.write(process, data, request.length),
            Kind::Get => spot.read(process, old.address(), request.length)?,
            Kind::Swap => {
                let _update = self.segment.update(self.member);
                spot.read(process, old.address(), request.length)?;
                let bytes = request.length as usize;
                let (mut seen, mut expected) = (vec![0; bytes], vec![0; bytes]);
                old.address().read(&mut seen);
                data.read(&mut expected);
                if seen == expected {
                    spot.write(process, data.offset(bytes as i64), request.length)?;
                }
            }
            _ => {
                let ops = crate::op::PredefinedOps::default();
                let (op, basic) = (ops.get(request.op), process.datatypes().get(request.datatype));
                let (Some(op), Some(basic)) = (op, basic) else { return Ok(()) };
                let combination = Combination::new(op, basic)?;
                let result = Buffer::new(old.address(), request.length, process.datatypes().byte());
                let _update = self.segment.update(self.member);
                update_spot(process, &spot, &combination, data, request.length, Some(&result))?;
            }
        }
        self.answer(process, rank, &request, bytes_of(&old))
    }
}
