//! Collective operations (MPI 5.0, chapter 6): the arguments become one [`Collective`] call. The blocking, nonblocking and
//! persistent forms of a procedure share a body, and differ in [`How`] the call is made.
#![allow(clippy::too_many_arguments, reason = "the signatures are the standard's")]

pub(super) mod sides;

use super::prelude::*;
use crate::arguments::{self, Ints};
use crate::objects::SENT;
use parnass_base::UserAddress;
use parnass_mpi::coll::{BlockTypes, Blocks, Call as Collective, Collective as Operation, Side};
use sides::*;

/// How a call is made.
pub enum How {
    /// Until it is complete.
    Now,
    /// Started, for the request to complete.
    Start(OutHandle<Request>),
    /// Kept in the request, which starts it.
    Keep(OutHandle<Request>),
}

impl How {
    #[inline(always)]
    pub(super) fn run(self, call: &Call, collective: &Collective<'_>) -> Result<()> {
        match self {
            How::Now => call.process().collective(collective),
            How::Start(request) => match call.process().start_collective(collective) {
                Some(started) => request.set(started),
                None => {
                    request.set_raw(SENT);
                    Ok(())
                }
            },
            How::Keep(request) => request.set(call.process().persistent_collective(collective)),
        }
    }
}

/// MPI_Allgather in all its forms.
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
    let recvtype = recvtype.committed("recvtype")?;
    let mut collective = Collective::new(comm, Operation::Allgather);
    collective.in_place = in_place(sendbuf, comm, "sendbuf")?;
    collective.recv = even(recvbuf, recvcount, &recvtype, RECV)?;
    if collective.in_place {
        return how.run(call, &collective);
    }
    let sendtype = sendtype.committed("sendtype")?;
    collective.send = even(sendbuf, sendcount, &sendtype, SEND)?;
    distinct(&collective.send, &collective.recv)?;
    how.run(call, &collective)
}

/// MPI_Allgatherv in all its forms.
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
    let recvtype = recvtype.committed("recvtype")?;
    let mut collective = Collective::new(comm, Operation::Allgatherv);
    collective.in_place = in_place(sendbuf, comm, "sendbuf")?;
    let recvs = varied(recvbuf, recvcounts, displs, &recvtype, partners(comm), RECVS)?;
    collective.recv = side(recvbuf, &recvs);
    if collective.in_place {
        return how.run(call, &collective);
    }
    let sendtype = sendtype.committed("sendtype")?;
    collective.send = even(sendbuf, sendcount, &sendtype, SEND)?;
    how.run(call, &collective)
}

/// MPI_Allreduce in all its forms.
pub fn allreduce(
    call: &Call,
    how: How,
    sendbuf: Address,
    recvbuf: Address,
    count: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let (datatype, op) = (datatype.committed("datatype")?, op.get("op")?);
    op.require_defined_on(&datatype)?;
    let mut collective = Collective::new(comm, Operation::Allreduce);
    collective.op = Some(&op);
    collective.in_place = in_place(sendbuf, comm, "sendbuf")?;
    collective.recv = even(recvbuf, count, &datatype, ["recvbuf", "count"])?;
    if !collective.in_place {
        collective.send = even(sendbuf, count, &datatype, ["sendbuf", "count"])?;
        distinct(&collective.send, &collective.recv)?;
    }
    how.run(call, &collective)
}

/// MPI_Alltoall in all its forms.
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
    let recvtype = recvtype.committed("recvtype")?;
    let mut collective = Collective::new(comm, Operation::Alltoall);
    collective.in_place = in_place(sendbuf, comm, "sendbuf")?;
    collective.recv = even(recvbuf, recvcount, &recvtype, RECV)?;
    if collective.in_place {
        return how.run(call, &collective);
    }
    let sendtype = sendtype.committed("sendtype")?;
    collective.send = even(sendbuf, sendcount, &sendtype, SEND)?;
    distinct(&collective.send, &collective.recv)?;
    how.run(call, &collective)
}

/// MPI_Alltoallv in all its forms.
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
    let recvtype = recvtype.committed("recvtype")?;
    let mut collective = Collective::new(comm, Operation::Alltoallv);
    collective.in_place = in_place(sendbuf, comm, "sendbuf")?;
    let names = ["recvbuf", "recvcounts", "rdispls"];
    let recvs = varied(recvbuf, recvcounts, rdispls, &recvtype, partners(comm), names)?;
    collective.recv = side(recvbuf, &recvs);
    if collective.in_place {
        return how.run(call, &collective);
    }
    let sendtype = sendtype.committed("sendtype")?;
    let names = ["sendbuf", "sendcounts", "sdispls"];
    let sends = varied(sendbuf, sendcounts, sdispls, &sendtype, partners(comm), names)?;
    collective.send = side(sendbuf, &sends);
    how.run(call, &collective)
}

/// MPI_Alltoallw in all its forms.
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
    let mut collective = Collective::new(comm, Operation::Alltoallw);
    collective.in_place = in_place(sendbuf, comm, "sendbuf")?;
    let names = ["recvbuf", "recvcounts", "rdispls", "recvtypes"];
    let recvs = typed(recvbuf, recvcounts, rdispls, recvtypes, partners(comm), names)?;
    collective.recv = side(recvbuf, &recvs);
    if collective.in_place {
        return how.run(call, &collective);
    }
    let names = ["sendbuf", "sendcounts", "sdispls", "sendtypes"];
    let sends = typed(sendbuf, sendcounts, sdispls, sendtypes, partners(comm), names)?;
    collective.send = side(sendbuf, &sends);
    how.run(call, &collective)
}

/// MPI_Barrier in all its forms.
pub fn barrier(call: &Call, how: How, comm: &Arc<Communicator>) -> Result<()> {
    how.run(call, &Collective::new(comm, Operation::Barrier))
}

/// MPI_Bcast in all its forms.
pub fn bcast(
    call: &Call,
    how: How,
    buffer: Address,
    count: i64,
    datatype: Handle<Datatype>,
    root: i32,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let mut collective = Collective::new(comm, Operation::Bcast);
    collective.root = root;
    if part(root, comm) == Part::Bystander {
        return how.run(call, &collective);
    }
    let datatype = datatype.committed("datatype")?;
    collective.recv = even(buffer, count, &datatype, ["buffer", "count"])?;
    how.run(call, &collective)
}

/// MPI_Exscan in all its forms.
pub fn exscan(
    call: &Call,
    how: How,
    sendbuf: Address,
    recvbuf: Address,
    count: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    intra_only(comm)?;
    let (datatype, op) = (datatype.committed("datatype")?, op.get("op")?);
    op.require_defined_on(&datatype)?;
    let mut collective = Collective::new(comm, Operation::Exscan);
    collective.op = Some(&op);
    collective.in_place = in_place(sendbuf, comm, "sendbuf")?;
    // Rank 0 gets nothing, so that its receive buffer may be anything unless it holds the input.
    collective.recv = if comm.rank() == 0 && !collective.in_place {
        let count = arguments::count(count, "count")? as u64;
        Side::Even { address: recvbuf.user(), count, datatype: &datatype }
    } else {
        even(recvbuf, count, &datatype, ["recvbuf", "count"])?
    };
    if !collective.in_place {
        collective.send = even(sendbuf, count, &datatype, ["sendbuf", "count"])?;
        distinct(&collective.send, &collective.recv)?;
    }
    how.run(call, &collective)
}

/// MPI_Gather in all its forms.
pub fn gather(
    call: &Call,
    how: How,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    root: i32,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let mut collective = Collective::new(comm, Operation::Gather);
    collective.root = root;
    let part = part(root, comm);
    collective.in_place = part == Part::Member && sendbuf.is_in_place();
    let (send_significant, recv_significant) = part.significant(collective.in_place);
    let sendtype = send_significant.then(|| sendtype.committed("sendtype")).transpose()?;
    let recvtype = recv_significant.then(|| recvtype.committed("recvtype")).transpose()?;
    if let Some(sendtype) = &sendtype {
        collective.send = even(sendbuf, sendcount, sendtype, SEND)?;
    }
    if let Some(recvtype) = &recvtype {
        collective.recv = even(recvbuf, recvcount, recvtype, RECV)?;
    }
    distinct(&collective.send, &collective.recv)?;
    how.run(call, &collective)
}

/// MPI_Gatherv in all its forms.
pub fn gatherv(
    call: &Call,
    how: How,
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
    let mut collective = Collective::new(comm, Operation::Gatherv);
    collective.root = root;
    let part = part(root, comm);
    collective.in_place = part == Part::Member && sendbuf.is_in_place();
    let (send_significant, recv_significant) = part.significant(collective.in_place);
    let sendtype = send_significant.then(|| sendtype.committed("sendtype")).transpose()?;
    let recvtype = recv_significant.then(|| recvtype.committed("recvtype")).transpose()?;
    if let Some(sendtype) = &sendtype {
        collective.send = even(sendbuf, sendcount, sendtype, SEND)?;
    }
    let recvs;
    if let Some(recvtype) = &recvtype {
        recvs = varied(recvbuf, recvcounts, displs, recvtype, partners(comm), RECVS)?;
        collective.recv = side(recvbuf, &recvs);
    }
    how.run(call, &collective)
}

/// MPI_Reduce in all its forms.
pub fn reduce(
    call: &Call,
    how: How,
    sendbuf: Address,
    recvbuf: Address,
    count: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    root: i32,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let mut collective = Collective::new(comm, Operation::Reduce);
    collective.root = root;
    let part = part(root, comm);
    if part == Part::Bystander {
        return how.run(call, &collective);
    }
    let (datatype, op) = (datatype.committed("datatype")?, op.get("op")?);
    op.require_defined_on(&datatype)?;
    collective.op = Some(&op);
    collective.in_place = part == Part::Member && sendbuf.is_in_place();
    collective.recv = if part == Part::Other {
        let count = arguments::count(count, "count")? as u64;
        Side::Even { address: UserAddress::NULL, count, datatype: &datatype }
    } else {
        even(recvbuf, count, &datatype, ["recvbuf", "count"])?
    };
    if part != Part::Root && !collective.in_place {
        collective.send = even(sendbuf, count, &datatype, ["sendbuf", "count"])?;
        distinct(&collective.send, &collective.recv)?;
    }
    how.run(call, &collective)
}

/// MPI_Reduce_scatter in all its forms.
pub fn reduce_scatter(
    call: &Call,
    how: How,
    sendbuf: Address,
    recvbuf: Address,
    recvcounts: IntArray,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let (datatype, op) = (datatype.committed("datatype")?, op.get("op")?);
    op.require_defined_on(&datatype)?;
    let mut collective = Collective::new(comm, Operation::ReduceScatter);
    collective.op = Some(&op);
    collective.in_place = in_place(sendbuf, comm, "sendbuf")?;
    let (counts, _) = block_counts(recvcounts, comm.size() as usize, "recvcounts")?;
    let total = counts.iter().fold(0, i64::saturating_add);
    // In place the operands of all blocks lie in the receive buffer.
    let received = if collective.in_place { total } else { counts.get(comm.rank() as usize) };
    arguments::buffer(recvbuf, received, &datatype, "recvbuf")?;
    let datatypes = BlockTypes::Same(&datatype);
    let recvs = Blocks { counts, displacements: Ints::NONE, unit: 0, datatypes };
    collective.recv = side(recvbuf, &recvs);
    if !collective.in_place {
        collective.send = even(sendbuf, total, &datatype, ["sendbuf", "recvcounts"])?;
        let recv = Side::Even { address: recvbuf.user(), count: received as u64, datatype: &datatype };
        distinct(&collective.send, &recv)?;
    }
    how.run(call, &collective)
}

/// MPI_Reduce_scatter_block in all its forms.
pub fn reduce_scatter_block(
    call: &Call,
    how: How,
    sendbuf: Address,
    recvbuf: Address,
    recvcount: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let (datatype, op) = (datatype.committed("datatype")?, op.get("op")?);
    op.require_defined_on(&datatype)?;
    let mut collective = Collective::new(comm, Operation::ReduceScatterBlock);
    collective.op = Some(&op);
    collective.in_place = in_place(sendbuf, comm, "sendbuf")?;
    collective.recv = even(recvbuf, recvcount, &datatype, RECV)?;
    if !collective.in_place {
        collective.send = even(sendbuf, recvcount, &datatype, ["sendbuf", "recvcount"])?;
        distinct(&collective.send, &collective.recv)?;
    }
    how.run(call, &collective)
}

/// MPI_Scan in all its forms.
pub fn scan(
    call: &Call,
    how: How,
    sendbuf: Address,
    recvbuf: Address,
    count: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    intra_only(comm)?;
    let (datatype, op) = (datatype.committed("datatype")?, op.get("op")?);
    op.require_defined_on(&datatype)?;
    let mut collective = Collective::new(comm, Operation::Scan);
    collective.op = Some(&op);
    collective.in_place = in_place(sendbuf, comm, "sendbuf")?;
    collective.recv = even(recvbuf, count, &datatype, ["recvbuf", "count"])?;
    if !collective.in_place {
        collective.send = even(sendbuf, count, &datatype, ["sendbuf", "count"])?;
        distinct(&collective.send, &collective.recv)?;
    }
    how.run(call, &collective)
}

/// MPI_Scatter in all its forms.
pub fn scatter(
    call: &Call,
    how: How,
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    root: i32,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let mut collective = Collective::new(comm, Operation::Scatter);
    collective.root = root;
    let part = part(root, comm);
    collective.in_place = part == Part::Member && recvbuf.is_in_place();
    let (recv_significant, send_significant) = part.significant(collective.in_place);
    let sendtype = send_significant.then(|| sendtype.committed("sendtype")).transpose()?;
    let recvtype = recv_significant.then(|| recvtype.committed("recvtype")).transpose()?;
    if let Some(sendtype) = &sendtype {
        collective.send = even(sendbuf, sendcount, sendtype, SEND)?;
    }
    if let Some(recvtype) = &recvtype {
        collective.recv = even(recvbuf, recvcount, recvtype, RECV)?;
    }
    distinct(&collective.send, &collective.recv)?;
    how.run(call, &collective)
}

/// MPI_Scatterv in all its forms.
pub fn scatterv(
    call: &Call,
    how: How,
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
    let mut collective = Collective::new(comm, Operation::Scatterv);
    collective.root = root;
    let part = part(root, comm);
    collective.in_place = part == Part::Member && recvbuf.is_in_place();
    let (recv_significant, send_significant) = part.significant(collective.in_place);
    let sendtype = send_significant.then(|| sendtype.committed("sendtype")).transpose()?;
    let recvtype = recv_significant.then(|| recvtype.committed("recvtype")).transpose()?;
    let sends;
    if let Some(sendtype) = &sendtype {
        sends = varied(sendbuf, sendcounts, displs, sendtype, partners(comm), SENDS)?;
        collective.send = side(sendbuf, &sends);
    }
    if let Some(recvtype) = &recvtype {
        collective.recv = even(recvbuf, recvcount, recvtype, RECV)?;
    }
    how.run(call, &collective)
}
