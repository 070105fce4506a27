//! Collective operations (MPI 5.0, chapter 6). Blocking and nonblocking forms differ in what they do with the same call.
#![allow(clippy::too_many_arguments, reason = "the signatures are the standard's")]

pub(super) mod prepare;

use super::prelude::*;
use parnass_mpi::coll::Call as Collective;

/// Starts a call and hands its request out.
pub(super) fn start(call: &Call, collective: &Collective<'_>, request: &OutHandle<Request>) -> Result<()> {
    request.set(call.process().start_collective(collective))
}

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
    prepare::allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, &|collective| {
        call.process().collective(collective)
    })
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
    prepare::allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, &|collective| {
        start(call, collective, &request)
    })
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
    prepare::allgatherv(
        sendbuf,
        sendcount,
        sendtype,
        recvbuf,
        recvcounts,
        displs,
        recvtype,
        comm,
        &|collective| call.process().collective(collective),
    )
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
    prepare::allgatherv(
        sendbuf,
        sendcount,
        sendtype,
        recvbuf,
        recvcounts,
        displs,
        recvtype,
        comm,
        &|collective| start(call, collective, &request),
    )
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
    prepare::allreduce(sendbuf, recvbuf, count, datatype, op, comm, &|collective| {
        call.process().collective(collective)
    })
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
    prepare::allreduce(sendbuf, recvbuf, count, datatype, op, comm, &|collective| {
        start(call, collective, &request)
    })
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
    prepare::alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, &|collective| {
        call.process().collective(collective)
    })
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
    prepare::alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, &|collective| {
        start(call, collective, &request)
    })
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
    prepare::alltoallv(
        sendbuf,
        sendcounts,
        sdispls,
        sendtype,
        recvbuf,
        recvcounts,
        rdispls,
        recvtype,
        comm,
        &|collective| call.process().collective(collective),
    )
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
    prepare::alltoallv(
        sendbuf,
        sendcounts,
        sdispls,
        sendtype,
        recvbuf,
        recvcounts,
        rdispls,
        recvtype,
        comm,
        &|collective| start(call, collective, &request),
    )
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
    prepare::alltoallw(
        sendbuf,
        sendcounts,
        sdispls,
        sendtypes,
        recvbuf,
        recvcounts,
        rdispls,
        recvtypes,
        comm,
        &|collective| call.process().collective(collective),
    )
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
    prepare::alltoallw(
        sendbuf,
        sendcounts,
        sdispls,
        sendtypes,
        recvbuf,
        recvcounts,
        rdispls,
        recvtypes,
        comm,
        &|collective| start(call, collective, &request),
    )
}

/// MPI_Barrier.
pub fn barrier(call: &Call, comm: &Arc<Communicator>) -> Result<()> {
    prepare::barrier(comm, &|collective| call.process().collective(collective))
}

/// MPI_Ibarrier.
pub fn ibarrier(call: &Call, comm: &Arc<Communicator>, request: OutHandle<Request>) -> Result<()> {
    prepare::barrier(comm, &|collective| start(call, collective, &request))
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
    prepare::bcast(buffer, count, datatype, root, comm, &|collective| call.process().collective(collective))
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
    prepare::bcast(buffer, count, datatype, root, comm, &|collective| start(call, collective, &request))
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
    prepare::exscan(sendbuf, recvbuf, count, datatype, op, comm, &|collective| {
        call.process().collective(collective)
    })
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
    prepare::exscan(sendbuf, recvbuf, count, datatype, op, comm, &|collective| {
        start(call, collective, &request)
    })
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
    prepare::gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, &|collective| {
        call.process().collective(collective)
    })
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
    prepare::gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, &|collective| {
        start(call, collective, &request)
    })
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
    prepare::gatherv(
        sendbuf,
        sendcount,
        sendtype,
        recvbuf,
        recvcounts,
        displs,
        recvtype,
        root,
        comm,
        &|collective| call.process().collective(collective),
    )
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
    prepare::gatherv(
        sendbuf,
        sendcount,
        sendtype,
        recvbuf,
        recvcounts,
        displs,
        recvtype,
        root,
        comm,
        &|collective| start(call, collective, &request),
    )
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
    prepare::reduce(sendbuf, recvbuf, count, datatype, op, root, comm, &|collective| {
        call.process().collective(collective)
    })
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
    prepare::reduce(sendbuf, recvbuf, count, datatype, op, root, comm, &|collective| {
        start(call, collective, &request)
    })
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
    prepare::reduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm, &|collective| {
        call.process().collective(collective)
    })
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
    prepare::reduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm, &|collective| {
        start(call, collective, &request)
    })
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
    prepare::reduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, comm, &|collective| {
        call.process().collective(collective)
    })
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
    prepare::reduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, comm, &|collective| {
        start(call, collective, &request)
    })
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
    prepare::scan(sendbuf, recvbuf, count, datatype, op, comm, &|collective| {
        call.process().collective(collective)
    })
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
    prepare::scan(sendbuf, recvbuf, count, datatype, op, comm, &|collective| {
        start(call, collective, &request)
    })
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
    prepare::scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, &|collective| {
        call.process().collective(collective)
    })
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
    prepare::scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, &|collective| {
        start(call, collective, &request)
    })
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
    prepare::scatterv(
        sendbuf,
        sendcounts,
        displs,
        sendtype,
        recvbuf,
        recvcount,
        recvtype,
        root,
        comm,
        &|collective| call.process().collective(collective),
    )
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
    prepare::scatterv(
        sendbuf,
        sendcounts,
        displs,
        sendtype,
        recvbuf,
        recvcount,
        recvtype,
        root,
        comm,
        &|collective| start(call, collective, &request),
    )
}
