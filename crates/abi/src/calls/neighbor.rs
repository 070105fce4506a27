//! Collective operations on the neighbours in a topology (MPI 5.0, section 8.6).
#![allow(clippy::too_many_arguments, reason = "the signatures are the standard's")]

pub use super::coll::How;
use super::coll::sides::{even, side, typed, varied};
use super::prelude::*;
use crate::arguments::count as count_argument;
use parnass_mpi::coll::{Call as Collective, Collective as Operation, Side};

/// One block for each of `degree` neighbours. Without any the buffer may be anything.
fn blocks<'a>(
    buffer: Address,
    count: i64,
    datatype: &'a Arc<Datatype>,
    degree: usize,
    names: [&str; 2],
) -> Result<Side<'a>> {
    if degree > 0 {
        return even(buffer, count, datatype, names);
    }
    let count = count_argument(count, names[1])? as u64;
    Ok(Side::Even { address: buffer.user(), count, datatype })
}

/// MPI_Neighbor_allgather in all its forms.
pub fn allgather(
    call: &Call,
    how: How,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let (sources, targets) = comm.degrees()?;
    let recvtype = recvtype.committed("recvtype")?;
    let sendtype = sendtype.committed("sendtype")?;
    let mut collective = Collective::new(comm, Operation::NeighborAllgather);
    collective.recv = blocks(recvbuf, recvcount, &recvtype, sources, ["recvbuf", "recvcount"])?;
    collective.send = blocks(sendbuf, sendcount, &sendtype, targets, ["sendbuf", "sendcount"])?;
    how.run(call, &collective)
}

/// MPI_Neighbor_allgatherv in all its forms.
pub fn allgatherv(
    call: &Call,
    how: How,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcounts: IntArray,
    displs: IntArray,
    recvtype: Handle<Datatype>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let (sources, targets) = comm.degrees()?;
    let recvtype = recvtype.committed("recvtype")?;
    let sendtype = sendtype.committed("sendtype")?;
    let mut collective = Collective::new(comm, Operation::NeighborAllgatherv);
    let names = ["recvbuf", "recvcounts", "displs"];
    let recvs = varied(recvbuf, recvcounts, displs, &recvtype, sources, names)?;
    collective.recv = side(recvbuf, &recvs);
    collective.send = blocks(sendbuf, sendcount, &sendtype, targets, ["sendbuf", "sendcount"])?;
    how.run(call, &collective)
}

/// MPI_Neighbor_alltoall in all its forms.
pub fn alltoall(
    call: &Call,
    how: How,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let (sources, targets) = comm.degrees()?;
    let recvtype = recvtype.committed("recvtype")?;
    let sendtype = sendtype.committed("sendtype")?;
    let mut collective = Collective::new(comm, Operation::NeighborAlltoall);
    collective.recv = blocks(recvbuf, recvcount, &recvtype, sources, ["recvbuf", "recvcount"])?;
    collective.send = blocks(sendbuf, sendcount, &sendtype, targets, ["sendbuf", "sendcount"])?;
    how.run(call, &collective)
}

/// MPI_Neighbor_alltoallv in all its forms.
pub fn alltoallv(
    call: &Call,
    how: How,
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
    let (sources, targets) = comm.degrees()?;
    let recvtype = recvtype.committed("recvtype")?;
    let sendtype = sendtype.committed("sendtype")?;
    let mut collective = Collective::new(comm, Operation::NeighborAlltoallv);
    let names = ["recvbuf", "recvcounts", "rdispls"];
    let recvs = varied(recvbuf, recvcounts, rdispls, &recvtype, sources, names)?;
    collective.recv = side(recvbuf, &recvs);
    let names = ["sendbuf", "sendcounts", "sdispls"];
    let sends = varied(sendbuf, sendcounts, sdispls, &sendtype, targets, names)?;
    collective.send = side(sendbuf, &sends);
    how.run(call, &collective)
}

/// MPI_Neighbor_alltoallw in all its forms.
pub fn alltoallw(
    call: &Call,
    how: How,
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
    let (sources, targets) = comm.degrees()?;
    let mut collective = Collective::new(comm, Operation::NeighborAlltoallw);
    let names = ["recvbuf", "recvcounts", "rdispls", "recvtypes"];
    let recvs = typed(recvbuf, recvcounts, rdispls, recvtypes, sources, names)?;
    collective.recv = side(recvbuf, &recvs);
    let names = ["sendbuf", "sendcounts", "sdispls", "sendtypes"];
    let sends = typed(sendbuf, sendcounts, sdispls, sendtypes, targets, names)?;
    collective.send = side(sendbuf, &sends);
    how.run(call, &collective)
}
