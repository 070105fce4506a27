//! Persistent collective operations (MPI 5.0, sections 6.13 and 8.8): the arguments of the blocking forms, kept in a request.
#![allow(clippy::too_many_arguments, reason = "the signatures are the standard's")]

use super::coll::prepare;
use super::neighbor::prepare as on_neighbors;
use super::prelude::*;
use parnass_mpi::coll::Call as Collective;

/// Makes the request of a call and hands it out.
fn keep(call: &Call, collective: &Collective<'_>, request: &OutHandle<Request>) -> Result<()> {
    request.set(call.process().persistent_collective(collective))
}

/// MPI_Allgather_init.
pub fn allgather_init(
    call: &Call,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    comm: &Arc<Communicator>,
    _info: Option<&Arc<Info>>,
    request: OutHandle<Request>,
) -> Result<()> {
    prepare::allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, &|collective| {
        keep(call, collective, &request)
    })
}

/// MPI_Allgatherv_init.
pub fn allgatherv_init(
    call: &Call,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcounts: IntArray,
    displs: IntArray,
    recvtype: Handle<Datatype>,
    comm: &Arc<Communicator>,
    _info: Option<&Arc<Info>>,
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
        &|collective| keep(call, collective, &request),
    )
}

/// MPI_Allreduce_init.
pub fn allreduce_init(
    call: &Call,
    sendbuf: Address,
    recvbuf: Address,
    count: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
    _info: Option<&Arc<Info>>,
    request: OutHandle<Request>,
) -> Result<()> {
    prepare::allreduce(sendbuf, recvbuf, count, datatype, op, comm, &|collective| {
        keep(call, collective, &request)
    })
}

/// MPI_Alltoall_init.
pub fn alltoall_init(
    call: &Call,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    comm: &Arc<Communicator>,
    _info: Option<&Arc<Info>>,
    request: OutHandle<Request>,
) -> Result<()> {
    prepare::alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, &|collective| {
        keep(call, collective, &request)
    })
}

/// MPI_Alltoallv_init.
pub fn alltoallv_init(
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
    _info: Option<&Arc<Info>>,
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
        &|collective| keep(call, collective, &request),
    )
}

/// MPI_Alltoallw_init.
pub fn alltoallw_init(
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
    _info: Option<&Arc<Info>>,
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
        &|collective| keep(call, collective, &request),
    )
}

/// MPI_Barrier_init.
pub fn barrier_init(
    call: &Call,
    comm: &Arc<Communicator>,
    _info: Option<&Arc<Info>>,
    request: OutHandle<Request>,
) -> Result<()> {
    prepare::barrier(comm, &|collective| keep(call, collective, &request))
}

/// MPI_Bcast_init.
pub fn bcast_init(
    call: &Call,
    buffer: Address,
    count: i64,
    datatype: Handle<Datatype>,
    root: i32,
    comm: &Arc<Communicator>,
    _info: Option<&Arc<Info>>,
    request: OutHandle<Request>,
) -> Result<()> {
    prepare::bcast(buffer, count, datatype, root, comm, &|collective| keep(call, collective, &request))
}

/// MPI_Exscan_init.
pub fn exscan_init(
    call: &Call,
    sendbuf: Address,
    recvbuf: Address,
    count: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
    _info: Option<&Arc<Info>>,
    request: OutHandle<Request>,
) -> Result<()> {
    prepare::exscan(sendbuf, recvbuf, count, datatype, op, comm, &|collective| {
        keep(call, collective, &request)
    })
}

/// MPI_Gather_init.
pub fn gather_init(
    call: &Call,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    root: i32,
    comm: &Arc<Communicator>,
    _info: Option<&Arc<Info>>,
    request: OutHandle<Request>,
) -> Result<()> {
    prepare::gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, &|collective| {
        keep(call, collective, &request)
    })
}

/// MPI_Gatherv_init.
pub fn gatherv_init(
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
    _info: Option<&Arc<Info>>,
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
        &|collective| keep(call, collective, &request),
    )
}

/// MPI_Neighbor_allgather_init.
pub fn neighbor_allgather_init(
    call: &Call,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    comm: &Arc<Communicator>,
    _info: Option<&Arc<Info>>,
    request: OutHandle<Request>,
) -> Result<()> {
    on_neighbors::allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, &|collective| {
        keep(call, collective, &request)
    })
}

/// MPI_Neighbor_allgatherv_init.
pub fn neighbor_allgatherv_init(
    call: &Call,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcounts: IntArray,
    displs: IntArray,
    recvtype: Handle<Datatype>,
    comm: &Arc<Communicator>,
    _info: Option<&Arc<Info>>,
    request: OutHandle<Request>,
) -> Result<()> {
    on_neighbors::allgatherv(
        sendbuf,
        sendcount,
        sendtype,
        recvbuf,
        recvcounts,
        displs,
        recvtype,
        comm,
        &|collective| keep(call, collective, &request),
    )
}

/// MPI_Neighbor_alltoall_init.
pub fn neighbor_alltoall_init(
    call: &Call,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    comm: &Arc<Communicator>,
    _info: Option<&Arc<Info>>,
    request: OutHandle<Request>,
) -> Result<()> {
    on_neighbors::alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, &|collective| {
        keep(call, collective, &request)
    })
}

/// MPI_Neighbor_alltoallv_init.
pub fn neighbor_alltoallv_init(
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
    _info: Option<&Arc<Info>>,
    request: OutHandle<Request>,
) -> Result<()> {
    on_neighbors::alltoallv(
        sendbuf,
        sendcounts,
        sdispls,
        sendtype,
        recvbuf,
        recvcounts,
        rdispls,
        recvtype,
        comm,
        &|collective| keep(call, collective, &request),
    )
}

/// MPI_Neighbor_alltoallw_init.
pub fn neighbor_alltoallw_init(
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
    _info: Option<&Arc<Info>>,
    request: OutHandle<Request>,
) -> Result<()> {
    on_neighbors::alltoallw(
        sendbuf,
        sendcounts,
        sdispls,
        sendtypes,
        recvbuf,
        recvcounts,
        rdispls,
        recvtypes,
        comm,
        &|collective| keep(call, collective, &request),
    )
}

/// MPI_Reduce_init.
pub fn reduce_init(
    call: &Call,
    sendbuf: Address,
    recvbuf: Address,
    count: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    root: i32,
    comm: &Arc<Communicator>,
    _info: Option<&Arc<Info>>,
    request: OutHandle<Request>,
) -> Result<()> {
    prepare::reduce(sendbuf, recvbuf, count, datatype, op, root, comm, &|collective| {
        keep(call, collective, &request)
    })
}

/// MPI_Reduce_scatter_block_init.
pub fn reduce_scatter_block_init(
    call: &Call,
    sendbuf: Address,
    recvbuf: Address,
    recvcount: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
    _info: Option<&Arc<Info>>,
    request: OutHandle<Request>,
) -> Result<()> {
    prepare::reduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, comm, &|collective| {
        keep(call, collective, &request)
    })
}

/// MPI_Reduce_scatter_init.
pub fn reduce_scatter_init(
    call: &Call,
    sendbuf: Address,
    recvbuf: Address,
    recvcounts: IntArray,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
    _info: Option<&Arc<Info>>,
    request: OutHandle<Request>,
) -> Result<()> {
    prepare::reduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm, &|collective| {
        keep(call, collective, &request)
    })
}

/// MPI_Scan_init.
pub fn scan_init(
    call: &Call,
    sendbuf: Address,
    recvbuf: Address,
    count: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
    _info: Option<&Arc<Info>>,
    request: OutHandle<Request>,
) -> Result<()> {
    prepare::scan(sendbuf, recvbuf, count, datatype, op, comm, &|collective| keep(call, collective, &request))
}

/// MPI_Scatter_init.
pub fn scatter_init(
    call: &Call,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    root: i32,
    comm: &Arc<Communicator>,
    _info: Option<&Arc<Info>>,
    request: OutHandle<Request>,
) -> Result<()> {
    prepare::scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, &|collective| {
        keep(call, collective, &request)
    })
}

/// MPI_Scatterv_init.
pub fn scatterv_init(
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
    _info: Option<&Arc<Info>>,
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
        &|collective| keep(call, collective, &request),
    )
}
