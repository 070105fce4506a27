//! Bodies of procedures: pt2pt.

use super::prelude::*;

/// MPI_Bsend.
pub fn bsend(
    call: &Call,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: i32,
    tag: i32,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let _ = (buf, count, datatype, dest, tag, comm);
    Err(call.missing())
}

/// MPI_Bsend_init.
pub fn bsend_init(
    call: &Call,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: i32,
    tag: i32,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (buf, count, datatype, dest, tag, comm, request);
    Err(call.missing())
}

/// MPI_Ibsend.
pub fn ibsend(
    call: &Call,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: i32,
    tag: i32,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (buf, count, datatype, dest, tag, comm, request);
    Err(call.missing())
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
    let _ = (source, tag, comm, flag, message, status);
    Err(call.missing())
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
    let _ = (buf, count, datatype, message, request);
    Err(call.missing())
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
    let _ = (source, tag, comm, flag, status);
    Err(call.missing())
}

/// MPI_Irecv.
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
    let _ = (buf, count, datatype, source, tag, comm, request);
    Err(call.missing())
}

/// MPI_Irsend.
pub fn irsend(
    call: &Call,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: i32,
    tag: i32,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (buf, count, datatype, dest, tag, comm, request);
    Err(call.missing())
}

/// MPI_Isend.
pub fn isend(
    call: &Call,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: i32,
    tag: i32,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (buf, count, datatype, dest, tag, comm, request);
    Err(call.missing())
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
    let _ = (
        sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm,
        request,
    );
    Err(call.missing())
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
    let _ = (buf, count, datatype, dest, sendtag, source, recvtag, comm, request);
    Err(call.missing())
}

/// MPI_Issend.
pub fn issend(
    call: &Call,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: i32,
    tag: i32,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (buf, count, datatype, dest, tag, comm, request);
    Err(call.missing())
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
    let _ = (source, tag, comm, message, status);
    Err(call.missing())
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
    let _ = (buf, count, datatype, message, status);
    Err(call.missing())
}

/// MPI_Probe.
pub fn probe(call: &Call, source: i32, tag: i32, comm: &Arc<Communicator>, status: StatusOut) -> Result<()> {
    let _ = (source, tag, comm, status);
    Err(call.missing())
}

/// MPI_Recv.
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
    let _ = (buf, count, datatype, source, tag, comm, status);
    Err(call.missing())
}

/// MPI_Recv_init.
pub fn recv_init(
    call: &Call,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    source: i32,
    tag: i32,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (buf, count, datatype, source, tag, comm, request);
    Err(call.missing())
}

/// MPI_Rsend.
pub fn rsend(
    call: &Call,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: i32,
    tag: i32,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let _ = (buf, count, datatype, dest, tag, comm);
    Err(call.missing())
}

/// MPI_Rsend_init.
pub fn rsend_init(
    call: &Call,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: i32,
    tag: i32,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (buf, count, datatype, dest, tag, comm, request);
    Err(call.missing())
}

/// MPI_Send.
pub fn send(
    call: &Call,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: i32,
    tag: i32,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let _ = (buf, count, datatype, dest, tag, comm);
    Err(call.missing())
}

/// MPI_Send_init.
pub fn send_init(
    call: &Call,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: i32,
    tag: i32,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (buf, count, datatype, dest, tag, comm, request);
    Err(call.missing())
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
    let _ = (
        sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm,
        status,
    );
    Err(call.missing())
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
    let _ = (buf, count, datatype, dest, sendtag, source, recvtag, comm, status);
    Err(call.missing())
}

/// MPI_Ssend.
pub fn ssend(
    call: &Call,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: i32,
    tag: i32,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let _ = (buf, count, datatype, dest, tag, comm);
    Err(call.missing())
}

/// MPI_Ssend_init.
pub fn ssend_init(
    call: &Call,
    buf: Address,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: i32,
    tag: i32,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (buf, count, datatype, dest, tag, comm, request);
    Err(call.missing())
}
