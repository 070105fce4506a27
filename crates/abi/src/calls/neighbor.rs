//! Collective operations on the neighbours in a topology (MPI 5.0, section 8.6).

pub(super) mod prepare;

use super::coll::start;
use super::prelude::*;

/// MPI_Neighbor_allgather.
pub fn neighbor_allgather(
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

/// MPI_Ineighbor_allgather.
pub fn ineighbor_allgather(
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

/// MPI_Neighbor_allgatherv.
pub fn neighbor_allgatherv(
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

/// MPI_Ineighbor_allgatherv.
pub fn ineighbor_allgatherv(
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

/// MPI_Neighbor_alltoall.
pub fn neighbor_alltoall(
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

/// MPI_Ineighbor_alltoall.
pub fn ineighbor_alltoall(
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

/// MPI_Neighbor_alltoallv.
pub fn neighbor_alltoallv(
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

/// MPI_Ineighbor_alltoallv.
pub fn ineighbor_alltoallv(
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

/// MPI_Neighbor_alltoallw.
pub fn neighbor_alltoallw(
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

/// MPI_Ineighbor_alltoallw.
pub fn ineighbor_alltoallw(
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
