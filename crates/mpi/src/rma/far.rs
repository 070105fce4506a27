//! Targets that can be reached by messages only: those on other nodes, and those whose memory the kernel does not open. The *service* of
//! the window takes the requests at the target (`service.rs`).
//!
//! A request is a header of eight words, and a payload if it has one: a table of runs (offset and length, where the target's data is not
//! one run), then the data. A short payload follows the header in its message; a longer one is a message of its own. Requests of one origin to one target are carried out in order. What returns data, and a lock, is answered;
//! what does not is made certain by a flush, which is answered when all before it is done.

use super::service::Service;
use super::transfer::{Place, packed, require_room};
use super::{Target, Window, guard};
use crate::Result;
use crate::activity::ActivityName;
use crate::comm::Plane;
use crate::constants::*;
use crate::datatype::{Buffer, Datatype};
use crate::op::Op;
use crate::process::{Process, UserBytes};
use crate::request::Operation;
use parnass_base::{Scratch, UserAddress};
use parnass_datatype::Operator;
use parnass_portals::Access;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Tag of the headers. (1 and 2 are those of `sync`.)
pub(super) const REQUEST: u32 = 3;
/// From here on every request has two tags of its own: for its payload, and for its answer.
const FIRST_OWN: u32 = 16;
/// Numbers of requests come round after this many.
const SERIALS: u32 = 1 << 24;
const WORDS: usize = 8;
pub(super) const HEADER_BYTES: usize = WORDS * size_of::<u64>();
/// The longest payload in the message of its header, in bytes.
pub(super) const TOGETHER: usize = 4 << 10;
pub(super) const RUN_BYTES: usize = 2 * size_of::<u64>();

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Kind {
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
pub(super) struct Request {
    pub kind: Kind,
    pub serial: u32,
    /// From the base of the target's part of the window.
    pub start: i64,
    /// Bytes of the target's data.
    pub length: u64,
    /// How many runs stand in front of the payload; 0 where the data is one run at `start`.
    pub runs: u64,
    /// Bytes of the payload, runs and data.
    pub payload: u64,
    /// Handle values of a predefined operation and of the predefined datatype of an accumulate.
    pub op: usize,
    pub datatype: usize,
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

    pub fn from_words(words: [u64; WORDS]) -> Option<Request> {
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

    pub fn payload_tag(&self) -> u32 {
        FIRST_OWN + 2 * self.serial
    }

    pub fn answer_tag(&self) -> u32 {
        self.payload_tag() + 1
    }
}

pub(super) fn bytes_of(memory: &Scratch) -> UserBytes {
    UserBytes { address: memory.address(), length: memory.len() as u64 }
}

fn finish(process: &Process, mut operation: Operation) -> Result<()> {
    process.wait_until(operation.awaited(), || operation.poll(process)).map(drop)
}

/// How much has gone to a target, and how much of it is certain.
#[derive(Debug, Default)]
struct Certainty {
    sent: AtomicU64,
    certain: AtomicU64,
}

impl Certainty {
    /// Something has gone. Not before it has: who flushes for another thread sends its request behind what is noted here.
    fn note(&self) {
        // Release pairs with the acquire in `open`.
        self.sent.fetch_add(1, Ordering::Release);
    }

    /// Up to where a flush that is sent now makes certain; `None` if all is. Another thread whose flush is not answered yet
    /// changes nothing of that.
    fn open(&self) -> Option<u64> {
        let sent = self.sent.load(Ordering::Acquire);
        // Acquire pairs with the release in `settle`: what the other thread was told has happened.
        (self.certain.load(Ordering::Acquire) < sent).then_some(sent)
    }

    /// A flush was answered.
    fn settle(&self, up_to: u64) {
        self.certain.fetch_max(up_to, Ordering::Release);
    }
}

/// What a window has where some ranks can be reached by messages only.
#[derive(Debug)]
pub(super) struct Far {
    serial: AtomicU32,
    /// By target.
    certainty: Box<[Certainty]>,
    service: Mutex<Option<ActivityName>>,
}

impl Far {
    /// Starts the service of this process.
    pub fn start(process: &Arc<Process>, service: Service, size: usize) -> Far {
        Far {
            serial: AtomicU32::new(0),
            certainty: (0..size).map(|_| Certainty::default()).collect(),
            service: Mutex::new(Some(process.start_service(Box::new(service)))),
        }
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
        let target = self.communicator.peer(rank);
        process.nic().call_helper(target);
        if payload.length > together as u64 {
            let tag = request.payload_tag();
            let second = process.start_send_bytes(&self.communicator, plane, rank, tag, payload)?;
            finish(process, second)?;
            // Where it was this process that moved the payload, the target does not know that it is there.
            process.nic().call_helper(target);
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
        let certainty = &far.certainty[rank as usize];
        if let Some(sent) = certainty.open() {
            let request = self.send(process, rank, Request::new(Kind::Flush), UserBytes::EMPTY)?;
            self.answer(process, rank, &request, UserBytes::EMPTY)?;
            certainty.settle(sent);
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
        // The flush without which nobody can know that it is there.
        process.nic().more_follows(self.communicator.peer(place.rank));
        self.send_data(process, place.rank, request, &runs, UserBytes { address, length })?;
        self.far(place.rank)?.certainty[place.rank as usize].note();
        Ok(())
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
        let service = self.far.as_ref().and_then(|far| guard(&far.service).take());
        if let Some(service) = service {
            self.send(process, self.rank(), Request::new(Kind::Stop), UserBytes::EMPTY)?;
            process.wait_until(None, || process.activities.result(service).map(drop));
            process.end_service();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_thread_flushes_is_certain_only_when_that_is_answered() {
        let certainty = Certainty::default();
        assert_eq!(certainty.open(), None);
        certainty.note();
        let first = certainty.open();
        assert_eq!(first, Some(1));
        assert_eq!(certainty.open(), first, "the first flush is not answered yet");
        certainty.note();
        certainty.settle(1);
        assert_eq!(certainty.open(), Some(2), "what has gone behind the flush needs another");
        certainty.settle(2);
        certainty.settle(1);
        assert_eq!(certainty.open(), None, "answers may be noted in any order");
    }

    #[test]
    fn requests_survive_the_wire() {
        for kind in Kind::ALL {
            let request =
                Request { serial: 7, start: -8, length: 9, runs: 2, payload: 41, ..Request::new(kind) };
            let there = Request::from_words(request.to_words()).expect("a request");
            assert_eq!(there.to_words(), request.to_words());
        }
        assert!(Request::from_words([0; WORDS]).is_none());
    }
}
