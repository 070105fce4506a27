//! Nonblocking sends and receives: the same transfers, behind requests.

use crate::activity::current_owner;
use crate::comm::{Communicator, Plane};
use crate::constants::MPI_PROC_NULL;
use crate::datatype::Buffer;
use crate::error::Result;
use crate::process::{Process, UserBytes};
use crate::pt2pt::described::Held;
use crate::pt2pt::transfer::{match_bits, sending};
use crate::pt2pt::{Envelope, SendMode};
use crate::request::Request;
use crate::request::operation::{Direction, Operation, Outcome};
use parnass_portals::Follow;
use std::sync::Arc;

impl Process {
    /// MPI_Isend and MPI_Irsend of a message that is sent at once: then its request is [`Request::sent`]. `false`: nothing was
    /// done.
    #[inline(always)]
    pub fn sends_at_once(
        &self,
        communicator: &Communicator,
        buffer: &Buffer<'_>,
        target: i32,
        tag: i32,
    ) -> bool {
        if target == MPI_PROC_NULL {
            return communicator.check_open().is_ok();
        }
        let (data, _description) = self.described.data(buffer);
        let match_bits = match_bits(communicator, Plane::PointToPoint, tag as u32);
        let peer = communicator.peer(target);
        self.put_short(peer, match_bits, data, Follow::More) || self.put_exchanged(peer, match_bits, data)
    }

    /// MPI_Isend, MPI_Ibsend, MPI_Issend, MPI_Irsend.
    pub fn isend(
        &self,
        communicator: &Arc<Communicator>,
        buffer: Buffer<'_>,
        target: i32,
        tag: i32,
        mode: SendMode,
    ) -> Result<Arc<Request>> {
        let operation =
            self.start_send(communicator, Plane::PointToPoint, target, tag as u32, buffer, mode)?;
        Ok(Request::transfer(communicator, operation))
    }

    /// MPI_Irecv.
    pub fn ireceive(
        &self,
        communicator: &Arc<Communicator>,
        buffer: Buffer<'_>,
        source: i32,
        tag: i32,
    ) -> Result<Arc<Request>> {
        let operation = self.start_recv(communicator, Plane::PointToPoint, source, tag, buffer)?;
        Ok(Request::transfer(communicator, operation))
    }

    /// MPI_Isendrecv.
    pub fn isend_receive(
        &self,
        communicator: &Arc<Communicator>,
        send: Buffer<'_>,
        to: Envelope,
        receive: Buffer<'_>,
        from: Envelope,
    ) -> Result<Arc<Request>> {
        let plane = Plane::PointToPoint;
        let receiving = self.start_recv(communicator, plane, from.rank, from.tag, receive)?;
        let sending =
            self.start_send(communicator, plane, to.rank, to.tag as u32, send, SendMode::Standard)?;
        Ok(Request::exchange(communicator, sending, receiving))
    }

    /// MPI_Isendrecv_replace.
    pub fn isend_receive_replace(
        &self,
        communicator: &Arc<Communicator>,
        buffer: Buffer<'_>,
        to: Envelope,
        from: Envelope,
    ) -> Result<Arc<Request>> {
        let (sending, receiving) = self.start_exchange_replace(communicator, buffer, to, from)?;
        Ok(Request::exchange(communicator, sending, receiving))
    }

    /// Sends a copy of a buffer and receives into it.
    pub(crate) fn start_exchange_replace(
        &self,
        communicator: &Communicator,
        buffer: Buffer<'_>,
        to: Envelope,
        from: Envelope,
    ) -> Result<(Operation, Operation)> {
        let plane = Plane::PointToPoint;
        let send = if to.rank == MPI_PROC_NULL {
            Operation::over(Direction::Send, Ok(Outcome::SENT))
        } else {
            let layout = buffer.datatype.layout();
            let length = buffer.size();
            let staging = self.staging.take(length);
            layout.pack(buffer.count, buffer.address, 0, staging.address(), length);
            let peer = communicator.peer(to.rank);
            let match_bits = match_bits(communicator, plane, to.tag as u32);
            let bytes = UserBytes { address: staging.address(), length };
            let started = self.put(peer, match_bits, bytes.into(), false, current_owner())?;
            sending(started, peer, match_bits, Some(Held::Staging(staging)))
        };
        let receive = self.start_recv(communicator, plane, from.rank, from.tag, buffer)?;
        Ok((send, receive))
    }
}
