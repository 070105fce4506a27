//! Bodies of procedures: coll.

use super::prelude::*;

/// MPI_Allgather.
pub fn allgather(
    call: &Call,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let _ = (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
    Err(call.missing())
}

/// MPI_Allgatherv.
pub fn allgatherv(
    call: &Call,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcounts: IntArray,
    displs: IntArray,
    recvtype: Handle<Datatype>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let _ = (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm);
    Err(call.missing())
}

/// MPI_Allreduce.
pub fn allreduce(
    call: &Call,
    sendbuf: Address,
    recvbuf: Address,
    count: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let _ = (sendbuf, recvbuf, count, datatype, op, comm);
    Err(call.missing())
}

/// MPI_Alltoall.
pub fn alltoall(
    call: &Call,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let _ = (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
    Err(call.missing())
}

/// MPI_Alltoallv.
pub fn alltoallv(
    call: &Call,
    sendbuf: Address,
    sendcounts: IntArray,
    sdispls: IntArray,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcounts: IntArray,
    rdispls: IntArray,
    recvtype: Handle<Datatype>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let _ = (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm);
    Err(call.missing())
}

/// MPI_Alltoallw.
pub fn alltoallw(
    call: &Call,
    sendbuf: Address,
    sendcounts: IntArray,
    sdispls: IntArray,
    sendtypes: HandleArray<Datatype>,
    recvbuf: Address,
    recvcounts: IntArray,
    rdispls: IntArray,
    recvtypes: HandleArray<Datatype>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let _ = (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm);
    Err(call.missing())
}

/// MPI_Barrier.
pub fn barrier(call: &Call, comm: &Arc<Communicator>) -> Result<()> {
    let _ = comm;
    Err(call.missing())
}

/// MPI_Bcast.
pub fn bcast(
    call: &Call,
    buffer: Address,
    count: i64,
    datatype: Handle<Datatype>,
    root: i32,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let _ = (buffer, count, datatype, root, comm);
    Err(call.missing())
}

/// MPI_Exscan.
pub fn exscan(
    call: &Call,
    sendbuf: Address,
    recvbuf: Address,
    count: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let _ = (sendbuf, recvbuf, count, datatype, op, comm);
    Err(call.missing())
}

/// MPI_Gather.
pub fn gather(
    call: &Call,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    root: i32,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let _ = (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
    Err(call.missing())
}

/// MPI_Gatherv.
pub fn gatherv(
    call: &Call,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcounts: IntArray,
    displs: IntArray,
    recvtype: Handle<Datatype>,
    root: i32,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let _ = (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm);
    Err(call.missing())
}

/// MPI_Iallgather.
pub fn iallgather(
    call: &Call,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request);
    Err(call.missing())
}

/// MPI_Iallgatherv.
pub fn iallgatherv(
    call: &Call,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcounts: IntArray,
    displs: IntArray,
    recvtype: Handle<Datatype>,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, request);
    Err(call.missing())
}

/// MPI_Iallreduce.
pub fn iallreduce(
    call: &Call,
    sendbuf: Address,
    recvbuf: Address,
    count: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (sendbuf, recvbuf, count, datatype, op, comm, request);
    Err(call.missing())
}

/// MPI_Ialltoall.
pub fn ialltoall(
    call: &Call,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request);
    Err(call.missing())
}

/// MPI_Ialltoallv.
pub fn ialltoallv(
    call: &Call,
    sendbuf: Address,
    sendcounts: IntArray,
    sdispls: IntArray,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcounts: IntArray,
    rdispls: IntArray,
    recvtype: Handle<Datatype>,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, request);
    Err(call.missing())
}

/// MPI_Ialltoallw.
pub fn ialltoallw(
    call: &Call,
    sendbuf: Address,
    sendcounts: IntArray,
    sdispls: IntArray,
    sendtypes: HandleArray<Datatype>,
    recvbuf: Address,
    recvcounts: IntArray,
    rdispls: IntArray,
    recvtypes: HandleArray<Datatype>,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, request);
    Err(call.missing())
}

/// MPI_Ibarrier.
pub fn ibarrier(call: &Call, comm: &Arc<Communicator>, request: OutHandle<Request>) -> Result<()> {
    let _ = (comm, request);
    Err(call.missing())
}

/// MPI_Ibcast.
pub fn ibcast(
    call: &Call,
    buffer: Address,
    count: i64,
    datatype: Handle<Datatype>,
    root: i32,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (buffer, count, datatype, root, comm, request);
    Err(call.missing())
}

/// MPI_Iexscan.
pub fn iexscan(
    call: &Call,
    sendbuf: Address,
    recvbuf: Address,
    count: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (sendbuf, recvbuf, count, datatype, op, comm, request);
    Err(call.missing())
}

/// MPI_Igather.
pub fn igather(
    call: &Call,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    root: i32,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request);
    Err(call.missing())
}

/// MPI_Igatherv.
pub fn igatherv(
    call: &Call,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcounts: IntArray,
    displs: IntArray,
    recvtype: Handle<Datatype>,
    root: i32,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm, request);
    Err(call.missing())
}

/// MPI_Ireduce.
pub fn ireduce(
    call: &Call,
    sendbuf: Address,
    recvbuf: Address,
    count: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    root: i32,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (sendbuf, recvbuf, count, datatype, op, root, comm, request);
    Err(call.missing())
}

/// MPI_Ireduce_scatter.
pub fn ireduce_scatter(
    call: &Call,
    sendbuf: Address,
    recvbuf: Address,
    recvcounts: IntArray,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (sendbuf, recvbuf, recvcounts, datatype, op, comm, request);
    Err(call.missing())
}

/// MPI_Ireduce_scatter_block.
pub fn ireduce_scatter_block(
    call: &Call,
    sendbuf: Address,
    recvbuf: Address,
    recvcount: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (sendbuf, recvbuf, recvcount, datatype, op, comm, request);
    Err(call.missing())
}

/// MPI_Iscan.
pub fn iscan(
    call: &Call,
    sendbuf: Address,
    recvbuf: Address,
    count: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (sendbuf, recvbuf, count, datatype, op, comm, request);
    Err(call.missing())
}

/// MPI_Iscatter.
pub fn iscatter(
    call: &Call,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    root: i32,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request);
    Err(call.missing())
}

/// MPI_Iscatterv.
pub fn iscatterv(
    call: &Call,
    sendbuf: Address,
    sendcounts: IntArray,
    displs: IntArray,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    root: i32,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm, request);
    Err(call.missing())
}

/// MPI_Reduce.
pub fn reduce(
    call: &Call,
    sendbuf: Address,
    recvbuf: Address,
    count: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    root: i32,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let _ = (sendbuf, recvbuf, count, datatype, op, root, comm);
    Err(call.missing())
}

/// MPI_Reduce_scatter.
pub fn reduce_scatter(
    call: &Call,
    sendbuf: Address,
    recvbuf: Address,
    recvcounts: IntArray,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let _ = (sendbuf, recvbuf, recvcounts, datatype, op, comm);
    Err(call.missing())
}

/// MPI_Reduce_scatter_block.
pub fn reduce_scatter_block(
    call: &Call,
    sendbuf: Address,
    recvbuf: Address,
    recvcount: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let _ = (sendbuf, recvbuf, recvcount, datatype, op, comm);
    Err(call.missing())
}

/// MPI_Scan.
pub fn scan(
    call: &Call,
    sendbuf: Address,
    recvbuf: Address,
    count: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let _ = (sendbuf, recvbuf, count, datatype, op, comm);
    Err(call.missing())
}

/// MPI_Scatter.
pub fn scatter(
    call: &Call,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    root: i32,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let _ = (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
    Err(call.missing())
}

/// MPI_Scatterv.
pub fn scatterv(
    call: &Call,
    sendbuf: Address,
    sendcounts: IntArray,
    displs: IntArray,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    root: i32,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let _ = (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm);
    Err(call.missing())
}
