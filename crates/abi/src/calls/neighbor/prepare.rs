//! The arguments of the collective procedures on neighbours, checked, as one [`Collective`] call.

use crate::arguments::count as count_argument;
use crate::calls::coll::prepare::{self, Run};
use crate::calls::prelude::*;
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
        return prepare::even(buffer, count, datatype, names);
    }
    let count = count_argument(count, names[1])? as u64;
    Ok(Side::Even { address: buffer.user(), count, datatype })
}

/// All forms of MPI_Neighbor_allgather.
pub fn allgather(
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    comm: &Arc<Communicator>,
    run: Run<'_>,
) -> Result<()> {
    let (sources, targets) = comm.degrees()?;
    let recvtype = recvtype.committed("recvtype")?;
    let sendtype = sendtype.committed("sendtype")?;
    let mut collective = Collective::new(comm, Operation::NeighborAllgather);
    collective.recv = blocks(recvbuf, recvcount, &recvtype, sources, ["recvbuf", "recvcount"])?;
    collective.send = blocks(sendbuf, sendcount, &sendtype, targets, ["sendbuf", "sendcount"])?;
    run(&collective)
}

/// All forms of MPI_Neighbor_allgatherv.
pub fn allgatherv(
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcounts: IntArray,
    displs: IntArray,
    recvtype: Handle<Datatype>,
    comm: &Arc<Communicator>,
    run: Run<'_>,
) -> Result<()> {
    let (sources, targets) = comm.degrees()?;
    let recvtype = recvtype.committed("recvtype")?;
    let sendtype = sendtype.committed("sendtype")?;
    let mut collective = Collective::new(comm, Operation::NeighborAllgatherv);
    let names = ["recvbuf", "recvcounts", "displs"];
    collective.recv = prepare::varied(recvbuf, recvcounts, displs, &recvtype, sources, names)?;
    collective.send = blocks(sendbuf, sendcount, &sendtype, targets, ["sendbuf", "sendcount"])?;
    run(&collective)
}

/// All forms of MPI_Neighbor_alltoall.
pub fn alltoall(
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    comm: &Arc<Communicator>,
    run: Run<'_>,
) -> Result<()> {
    let (sources, targets) = comm.degrees()?;
    let recvtype = recvtype.committed("recvtype")?;
    let sendtype = sendtype.committed("sendtype")?;
    let mut collective = Collective::new(comm, Operation::NeighborAlltoall);
    collective.recv = blocks(recvbuf, recvcount, &recvtype, sources, ["recvbuf", "recvcount"])?;
    collective.send = blocks(sendbuf, sendcount, &sendtype, targets, ["sendbuf", "sendcount"])?;
    run(&collective)
}

/// All forms of MPI_Neighbor_alltoallv.
pub fn alltoallv(
    sendbuf: Address,
    sendcounts: IntArray,
    sdispls: IntArray,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcounts: IntArray,
    rdispls: IntArray,
    recvtype: Handle<Datatype>,
    comm: &Arc<Communicator>,
    run: Run<'_>,
) -> Result<()> {
    let (sources, targets) = comm.degrees()?;
    let recvtype = recvtype.committed("recvtype")?;
    let sendtype = sendtype.committed("sendtype")?;
    let mut collective = Collective::new(comm, Operation::NeighborAlltoallv);
    let names = ["recvbuf", "recvcounts", "rdispls"];
    collective.recv = prepare::varied(recvbuf, recvcounts, rdispls, &recvtype, sources, names)?;
    let names = ["sendbuf", "sendcounts", "sdispls"];
    collective.send = prepare::varied(sendbuf, sendcounts, sdispls, &sendtype, targets, names)?;
    run(&collective)
}

/// All forms of MPI_Neighbor_alltoallw.
pub fn alltoallw(
    sendbuf: Address,
    sendcounts: IntArray,
    sdispls: IntArray,
    sendtypes: HandleArray<Datatype>,
    recvbuf: Address,
    recvcounts: IntArray,
    rdispls: IntArray,
    recvtypes: HandleArray<Datatype>,
    comm: &Arc<Communicator>,
    run: Run<'_>,
) -> Result<()> {
    let (sources, targets) = comm.degrees()?;
    let mut collective = Collective::new(comm, Operation::NeighborAlltoallw);
    let names = ["recvbuf", "recvcounts", "rdispls", "recvtypes"];
    collective.recv = prepare::typed(recvbuf, recvcounts, rdispls, recvtypes, sources, names)?;
    let names = ["sendbuf", "sendcounts", "sdispls", "sendtypes"];
    collective.send = prepare::typed(sendbuf, sendcounts, sdispls, sendtypes, targets, names)?;
    run(&collective)
}
