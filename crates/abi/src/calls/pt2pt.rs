//! Point-to-point communication (MPI 5.0, chapter 3).

#![allow(clippy::too_many_arguments)]

use crate::arguments::{Address, MessageInOut, Out, OutHandle, StatusOut};
use crate::call::Call;
use crate::calls::request::store;
use crate::messages;
use crate::objects::{Communicator, Datatype, Message, Request, SENT, quick_handle};
use parnass_mpi::Result;
pub use parnass_mpi::SendMode;
use parnass_mpi::constants::MPI_MESSAGE_NO_PROC;
use parnass_mpi::pt2pt::Envelope;
use parnass_mpi::request::Specification;
use parnass_mpi::request::Status;
use std::sync::Arc;

/// MPI_Send, and in the other modes.
#[inline(always)]
pub fn send(
    call: &Call,
    mode: SendMode,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: i32,
    tag: i32,
    comm: &Arc<Communicator>,
) -> Result<()> {
    call.process().send(comm, buf.data(count, datatype), dest, tag, mode)
}

/// MPI_Isend, and in the other modes.
#[inline(always)]
pub fn isend(
    call: &Call,
    mode: SendMode,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: i32,
    tag: i32,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let (process, data) = (call.process(), buf.data(count, datatype));
    let may_be_sent_at_once = matches!(mode, SendMode::Standard | SendMode::Ready);
    if may_be_sent_at_once && process.sends_at_once(comm, &data, dest, tag) {
        request.set_raw(SENT);
        return Ok(());
    }
    request.set(process.isend(comm, data, dest, tag, mode)?)
}

/// MPI_Send_init, and in the other modes.
pub fn send_init(
    _call: &Call,
    mode: SendMode,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: i32,
    tag: i32,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let specification = Specification::Send {
        address: buf.user(),
        count: count as u64,
        datatype: Arc::clone(datatype),
        target: dest,
        tag,
        mode,
    };
    request.set(Request::persistent(comm, specification))
}

/// MPI_Recv.
#[inline(always)]
pub fn recv(
    call: &Call,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    source: i32,
    tag: i32,
    comm: &Arc<Communicator>,
    status: StatusOut,
) -> Result<()> {
    store(status, &call.process().receive(comm, buf.data(count, datatype), source, tag)?);
    Ok(())
}

/// MPI_Irecv.
#[inline(always)]
pub fn irecv(
    call: &Call,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    source: i32,
    tag: i32,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let (process, data) = (call.process(), buf.data(count, datatype));
    if let Some(quick) = process.receive_quickly(comm, &data, source, tag) {
        request.set_raw(quick_handle(quick));
        return Ok(());
    }
    request.set(process.ireceive(comm, data, source, tag)?)
}

/// MPI_Recv_init.
pub fn recv_init(
    _call: &Call,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    source: i32,
    tag: i32,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let specification = Specification::Receive {
        address: buf.user(),
        count: count as u64,
        datatype: Arc::clone(datatype),
        source,
        tag,
    };
    request.set(Request::persistent(comm, specification))
}

/// MPI_Sendrecv.
pub fn sendrecv(
    call: &Call,
    sendbuf: Address,
    sendcount: i64,
    sendtype: &Arc<Datatype>,
    dest: i32,
    sendtag: i32,
    recvbuf: Address,
    recvcount: i64,
    recvtype: &Arc<Datatype>,
    source: i32,
    recvtag: i32,
    comm: &Arc<Communicator>,
    status: StatusOut,
) -> Result<()> {
    let received = call.process().send_receive(
        comm,
        sendbuf.data(sendcount, sendtype),
        Envelope { rank: dest, tag: sendtag },
        recvbuf.data(recvcount, recvtype),
        Envelope { rank: source, tag: recvtag },
    )?;
    store(status, &received);
    Ok(())
}

/// MPI_Sendrecv_replace.
pub fn sendrecv_replace(
    call: &Call,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: i32,
    sendtag: i32,
    source: i32,
    recvtag: i32,
    comm: &Arc<Communicator>,
    status: StatusOut,
) -> Result<()> {
    let received = call.process().send_receive_replace(
        comm,
        buf.data(count, datatype),
        Envelope { rank: dest, tag: sendtag },
        Envelope { rank: source, tag: recvtag },
    )?;
    store(status, &received);
    Ok(())
}

/// MPI_Isendrecv.
pub fn isendrecv(
    call: &Call,
    sendbuf: Address,
    sendcount: i64,
    sendtype: &Arc<Datatype>,
    dest: i32,
    sendtag: i32,
    recvbuf: Address,
    recvcount: i64,
    recvtype: &Arc<Datatype>,
    source: i32,
    recvtag: i32,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    request.set(call.process().isend_receive(
        comm,
        sendbuf.data(sendcount, sendtype),
        Envelope { rank: dest, tag: sendtag },
        recvbuf.data(recvcount, recvtype),
        Envelope { rank: source, tag: recvtag },
    )?)
}

/// MPI_Isendrecv_replace.
pub fn isendrecv_replace(
    call: &Call,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: i32,
    sendtag: i32,
    source: i32,
    recvtag: i32,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    request.set(call.process().isend_receive_replace(
        comm,
        buf.data(count, datatype),
        Envelope { rank: dest, tag: sendtag },
        Envelope { rank: source, tag: recvtag },
    )?)
}

/// MPI_Probe.
pub fn probe(call: &Call, source: i32, tag: i32, comm: &Arc<Communicator>, status: StatusOut) -> Result<()> {
    store(status, &call.process().probe(comm, source, tag)?);
    Ok(())
}

/// MPI_Iprobe.
pub fn iprobe(
    call: &Call,
    source: i32,
    tag: i32,
    comm: &Arc<Communicator>,
    flag: Out<bool>,
    status: StatusOut,
) -> Result<()> {
    let found = call.process().iprobe(comm, source, tag)?;
    flag.set(found.is_some());
    if let Some(found) = found {
        store(status, &found);
    }
    Ok(())
}

fn give_message(place: OutHandle<Message>, message: Option<Message>) {
    place.set_raw(message.map_or(MPI_MESSAGE_NO_PROC, messages::keep));
}

/// MPI_Mprobe.
pub fn mprobe(
    call: &Call,
    source: i32,
    tag: i32,
    comm: &Arc<Communicator>,
    message: OutHandle<Message>,
    status: StatusOut,
) -> Result<()> {
    messages::check_room()?;
    let (found, probed) = call.process().mprobe(comm, source, tag)?;
    give_message(message, found);
    store(status, &probed);
    Ok(())
}

/// MPI_Improbe.
pub fn improbe(
    call: &Call,
    source: i32,
    tag: i32,
    comm: &Arc<Communicator>,
    flag: Out<bool>,
    message: OutHandle<Message>,
    status: StatusOut,
) -> Result<()> {
    messages::check_room()?;
    let found = call.process().improbe(comm, source, tag)?;
    flag.set(found.is_some());
    match found {
        Some((found, probed)) => {
            give_message(message, found);
            store(status, &probed);
        }
        None => message.set_null(),
    }
    Ok(())
}

/// MPI_Mrecv.
pub fn mrecv(
    call: &Call,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    message: MessageInOut,
    status: StatusOut,
) -> Result<()> {
    let received = match message.take() {
        Some(message) => {
            let received = call.process().receive_message(&message, buf.data(count, datatype));
            received.inspect_err(|_| call.raise_on(message.communicator()))?
        }
        None => Status::NO_PROCESS,
    };
    store(status, &received);
    Ok(())
}

/// MPI_Imrecv.
pub fn imrecv(
    call: &Call,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    message: MessageInOut,
    request: OutHandle<Request>,
) -> Result<()> {
    request.set(match message.take() {
        Some(message) => call.process().ireceive_message(&message, buf.data(count, datatype)),
        None => Request::complete(None, Ok(Status::NO_PROCESS)),
    })
}
