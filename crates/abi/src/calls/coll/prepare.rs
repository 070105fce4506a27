//! The arguments of collective procedures: checked as far as they are significant at this process, they become one
//! [`Collective`] call, which is then run or started.
#![allow(clippy::too_many_arguments, reason = "the signatures are the standard's")]

use crate::arguments;
use crate::calls::prelude::*;
use parnass_base::UserAddress;
use parnass_mpi::coll::{BlockTypes, Blocks, Call as Collective, Collective as Operation, Side};

/// Whether a buffer is MPI_IN_PLACE, which intercommunicators do not know.
fn in_place(buffer: Address, comm: &Communicator, name: &str) -> Result<bool> {
    if !buffer.is_in_place() {
        return Ok(false);
    }
    if comm.is_inter() {
        return Err(Error::new(
            MPI_ERR_BUFFER,
            format!(
                "{name} is MPI_IN_PLACE, but {} is an intercommunicator, where nothing can be done in place; give the \
                 address of the data",
                comm.describe()
            ),
        ));
    }
    Ok(true)
}

/// How many blocks there are where every process that is talked to has one.
fn partners(comm: &Communicator) -> usize {
    comm.remote_size() as usize
}

/// A buffer of equal blocks.
#[inline]
pub fn even<'a>(
    buffer: Address,
    count: i64,
    datatype: &'a Arc<Datatype>,
    names: [&str; 2],
) -> Result<Side<'a>> {
    let count = arguments::count(count, names[1])?;
    arguments::buffer(buffer, count, datatype, names[0])?;
    Ok(Side::Even { address: buffer.user(), count: count as u64, datatype })
}

/// Counts that must not be negative.
fn block_counts(counts: IntArray, number: usize, name: &str) -> Result<Vec<u64>> {
    let counts = counts.with_length(number, name)?;
    let checked = counts.iter().enumerate().map(|(index, count)| {
        u64::try_from(count).map_err(|_| {
            Error::new(MPI_ERR_COUNT, format!("{name}[{index}] is {count}; it must be 0 or more"))
        })
    });
    checked.collect()
}

/// A buffer of blocks of one datatype, with displacements in extents.
pub fn varied<'a>(
    buffer: Address,
    counts: IntArray,
    displacements: IntArray,
    datatype: &'a Arc<Datatype>,
    number: usize,
    names: [&str; 3],
) -> Result<Side<'a>> {
    let counts = block_counts(counts, number, names[1])?;
    let longest = counts.iter().copied().max().unwrap_or(0);
    // MPI_IN_PLACE is not for here, and the null address only for absolute addresses.
    arguments::buffer(buffer, longest.min(i64::MAX as u64) as i64, datatype, names[0])?;
    let extent = datatype.layout().extent();
    let offsets = displacements
        .with_length(number, names[2])?
        .iter()
        .map(|displacement| displacement.wrapping_mul(extent))
        .collect();
    let blocks = Box::new(Blocks { counts, offsets, datatypes: BlockTypes::Same(datatype) });
    Ok(Side::Varied { address: buffer.user(), blocks })
}

/// A buffer of blocks each of its own datatype, with displacements in bytes.
pub fn typed(
    buffer: Address,
    counts: IntArray,
    displacements: IntArray,
    datatypes: HandleArray<Datatype>,
    number: usize,
    names: [&str; 4],
) -> Result<Side<'static>> {
    let counts = block_counts(counts, number, names[1])?;
    let offsets = displacements.with_length(number, names[2])?.to_vec();
    let handles = datatypes.with_length(number, names[3])?;
    let mut types = Vec::with_capacity(number);
    for (index, (handle, count)) in handles.iter().zip(&counts).enumerate() {
        // The datatype of an empty block may be anything.
        let handle = if *count == 0 { Handle::new(MPI_BYTE) } else { *handle };
        let datatype = handle.committed(&format!("{}[{index}]", names[3]))?;
        if buffer.is_in_place() {
            arguments::buffer(buffer, *count as i64, &datatype, names[0])?;
        }
        types.push(Arc::clone(&datatype));
    }
    let blocks = Box::new(Blocks { counts, offsets, datatypes: BlockTypes::Each(types) });
    Ok(Side::Varied { address: buffer.user(), blocks })
}

/// Where both buffers are significant they must not be the same.
#[inline]
pub fn distinct(send: &Side<'_>, recv: &Side<'_>) -> Result<()> {
    let extent_of = |side: &Side<'_>| match side {
        Side::Even { address, count, datatype } => (*address, *count > 0 && datatype.layout().size() > 0),
        _ => (UserAddress::NULL, false),
    };
    let ((one, one_filled), (two, two_filled)) = (extent_of(send), extent_of(recv));
    if one == two && one != UserAddress::NULL && one_filled && two_filled {
        return Err(Error::new(
            MPI_ERR_BUFFER,
            format!(
                "sendbuf and recvbuf are both {:#x}; give two buffers, or MPI_IN_PLACE where the procedure takes it",
                one.value()
            ),
        ));
    }
    Ok(())
}

const SEND: [&str; 2] = ["sendbuf", "sendcount"];
const RECV: [&str; 2] = ["recvbuf", "recvcount"];
const SENDS: [&str; 3] = ["sendbuf", "sendcounts", "displs"];
const RECVS: [&str; 3] = ["recvbuf", "recvcounts", "displs"];

/// What this process is in an operation with a root.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The root of an intracommunicator, which takes part itself too.
    Member,
    /// The root of an intercommunicator.
    Root,
    /// One that talks to the root.
    Other,
    /// In the group of the root of an intercommunicator, but not the root.
    Bystander,
}

fn part(root: i32, comm: &Communicator) -> Part {
    match root {
        MPI_ROOT => Part::Root,
        MPI_PROC_NULL => Part::Bystander,
        rank if rank == comm.rank() && !comm.is_inter() => Part::Member,
        _ => Part::Other,
    }
}

/// What is done with the finished call.
pub type Run<'r> = &'r dyn Fn(&Collective<'_>) -> Result<()>;

/// The scans are defined on intracommunicators only.
fn intra_only(comm: &Communicator) -> Result<()> {
    if comm.is_inter() {
        return Err(Error::new(
            MPI_ERR_COMM,
            format!(
                "{} is an intercommunicator, on which there are no scans; merge it with MPI_Intercomm_merge first",
                comm.describe()
            ),
        ));
    }
    Ok(())
}

/// MPI_Allgather and MPI_Iallgather.
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
    let recvtype = recvtype.committed("recvtype")?;
    let mut collective = Collective::new(comm, Operation::Allgather);
    collective.in_place = in_place(sendbuf, comm, "sendbuf")?;
    collective.recv = even(recvbuf, recvcount, &recvtype, RECV)?;
    if collective.in_place {
        return run(&collective);
    }
    let sendtype = sendtype.committed("sendtype")?;
    collective.send = even(sendbuf, sendcount, &sendtype, SEND)?;
    distinct(&collective.send, &collective.recv)?;
    run(&collective)
}

/// MPI_Allgatherv and MPI_Iallgatherv.
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
    let recvtype = recvtype.committed("recvtype")?;
    let mut collective = Collective::new(comm, Operation::Allgatherv);
    collective.in_place = in_place(sendbuf, comm, "sendbuf")?;
    collective.recv = varied(recvbuf, recvcounts, displs, &recvtype, partners(comm), RECVS)?;
    if collective.in_place {
        return run(&collective);
    }
    let sendtype = sendtype.committed("sendtype")?;
    collective.send = even(sendbuf, sendcount, &sendtype, SEND)?;
    run(&collective)
}

/// MPI_Allreduce and MPI_Iallreduce.
pub fn allreduce(
    sendbuf: Address,
    recvbuf: Address,
    count: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
    run: Run<'_>,
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
    run(&collective)
}

/// MPI_Alltoall and MPI_Ialltoall.
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
    let recvtype = recvtype.committed("recvtype")?;
    let mut collective = Collective::new(comm, Operation::Alltoall);
    collective.in_place = in_place(sendbuf, comm, "sendbuf")?;
    collective.recv = even(recvbuf, recvcount, &recvtype, RECV)?;
    if collective.in_place {
        return run(&collective);
    }
    let sendtype = sendtype.committed("sendtype")?;
    collective.send = even(sendbuf, sendcount, &sendtype, SEND)?;
    distinct(&collective.send, &collective.recv)?;
    run(&collective)
}

/// MPI_Alltoallv and MPI_Ialltoallv.
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
    let recvtype = recvtype.committed("recvtype")?;
    let mut collective = Collective::new(comm, Operation::Alltoallv);
    collective.in_place = in_place(sendbuf, comm, "sendbuf")?;
    let names = ["recvbuf", "recvcounts", "rdispls"];
    collective.recv = varied(recvbuf, recvcounts, rdispls, &recvtype, partners(comm), names)?;
    if collective.in_place {
        return run(&collective);
    }
    let sendtype = sendtype.committed("sendtype")?;
    let names = ["sendbuf", "sendcounts", "sdispls"];
    collective.send = varied(sendbuf, sendcounts, sdispls, &sendtype, partners(comm), names)?;
    run(&collective)
}

/// MPI_Alltoallw and MPI_Ialltoallw.
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
    let mut collective = Collective::new(comm, Operation::Alltoallw);
    collective.in_place = in_place(sendbuf, comm, "sendbuf")?;
    let names = ["recvbuf", "recvcounts", "rdispls", "recvtypes"];
    collective.recv = typed(recvbuf, recvcounts, rdispls, recvtypes, partners(comm), names)?;
    if !collective.in_place {
        let names = ["sendbuf", "sendcounts", "sdispls", "sendtypes"];
        collective.send = typed(sendbuf, sendcounts, sdispls, sendtypes, partners(comm), names)?;
    }
    run(&collective)
}

/// MPI_Barrier and MPI_Ibarrier.
pub fn barrier(comm: &Arc<Communicator>, run: Run<'_>) -> Result<()> {
    run(&Collective::new(comm, Operation::Barrier))
}

/// MPI_Bcast and MPI_Ibcast.
pub fn bcast(
    buffer: Address,
    count: i64,
    datatype: Handle<Datatype>,
    root: i32,
    comm: &Arc<Communicator>,
    run: Run<'_>,
) -> Result<()> {
    let mut collective = Collective::new(comm, Operation::Bcast);
    collective.root = root;
    if part(root, comm) == Part::Bystander {
        return run(&collective);
    }
    let datatype = datatype.committed("datatype")?;
    collective.recv = even(buffer, count, &datatype, ["buffer", "count"])?;
    run(&collective)
}

/// MPI_Exscan and MPI_Iexscan.
pub fn exscan(
    sendbuf: Address,
    recvbuf: Address,
    count: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
    run: Run<'_>,
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
    run(&collective)
}

/// MPI_Gather and MPI_Igather.
pub fn gather(
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    root: i32,
    comm: &Arc<Communicator>,
    run: Run<'_>,
) -> Result<()> {
    let mut collective = Collective::new(comm, Operation::Gather);
    collective.root = root;
    let part = part(root, comm);
    collective.in_place = part == Part::Member && sendbuf.is_in_place();
    let (send_significant, recv_significant) = match part {
        Part::Member => (!collective.in_place, true),
        Part::Root => (false, true),
        Part::Other => (true, false),
        Part::Bystander => (false, false),
    };
    let sendtype = send_significant.then(|| sendtype.committed("sendtype")).transpose()?;
    let recvtype = recv_significant.then(|| recvtype.committed("recvtype")).transpose()?;
    if let Some(sendtype) = &sendtype {
        collective.send = even(sendbuf, sendcount, sendtype, SEND)?;
    }
    if let Some(recvtype) = &recvtype {
        collective.recv = even(recvbuf, recvcount, recvtype, RECV)?;
    }
    distinct(&collective.send, &collective.recv)?;
    run(&collective)
}

/// MPI_Gatherv and MPI_Igatherv.
pub fn gatherv(
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcounts: IntArray,
    displs: IntArray,
    recvtype: Handle<Datatype>,
    root: i32,
    comm: &Arc<Communicator>,
    run: Run<'_>,
) -> Result<()> {
    let mut collective = Collective::new(comm, Operation::Gatherv);
    collective.root = root;
    let part = part(root, comm);
    collective.in_place = part == Part::Member && sendbuf.is_in_place();
    let (send_significant, recv_significant) = match part {
        Part::Member => (!collective.in_place, true),
        Part::Root => (false, true),
        Part::Other => (true, false),
        Part::Bystander => (false, false),
    };
    let sendtype = send_significant.then(|| sendtype.committed("sendtype")).transpose()?;
    let recvtype = recv_significant.then(|| recvtype.committed("recvtype")).transpose()?;
    if let Some(sendtype) = &sendtype {
        collective.send = even(sendbuf, sendcount, sendtype, SEND)?;
    }
    if let Some(recvtype) = &recvtype {
        collective.recv = varied(recvbuf, recvcounts, displs, recvtype, partners(comm), RECVS)?;
    }
    run(&collective)
}

/// MPI_Reduce and MPI_Ireduce.
pub fn reduce(
    sendbuf: Address,
    recvbuf: Address,
    count: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    root: i32,
    comm: &Arc<Communicator>,
    run: Run<'_>,
) -> Result<()> {
    let mut collective = Collective::new(comm, Operation::Reduce);
    collective.root = root;
    let part = part(root, comm);
    if part == Part::Bystander {
        return run(&collective);
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
    run(&collective)
}

/// MPI_Reduce_scatter and MPI_Ireduce_scatter.
pub fn reduce_scatter(
    sendbuf: Address,
    recvbuf: Address,
    recvcounts: IntArray,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
    run: Run<'_>,
) -> Result<()> {
    let (datatype, op) = (datatype.committed("datatype")?, op.get("op")?);
    op.require_defined_on(&datatype)?;
    let mut collective = Collective::new(comm, Operation::ReduceScatter);
    collective.op = Some(&op);
    collective.in_place = in_place(sendbuf, comm, "sendbuf")?;
    let counts = block_counts(recvcounts, comm.size() as usize, "recvcounts")?;
    let total = counts.iter().fold(0u64, |sum, count| sum.saturating_add(*count)) as i64;
    // In place the operands of all blocks lie in the receive buffer.
    let received = if collective.in_place { total } else { counts[comm.rank() as usize] as i64 };
    arguments::buffer(recvbuf, received, &datatype, "recvbuf")?;
    let blocks = Blocks { counts, offsets: Vec::new(), datatypes: BlockTypes::Same(&datatype) };
    collective.recv = Side::Varied { address: recvbuf.user(), blocks: Box::new(blocks) };
    if !collective.in_place {
        collective.send = even(sendbuf, total, &datatype, ["sendbuf", "recvcounts"])?;
        let recv = Side::Even { address: recvbuf.user(), count: received as u64, datatype: &datatype };
        distinct(&collective.send, &recv)?;
    }
    run(&collective)
}

/// MPI_Reduce_scatter_block and MPI_Ireduce_scatter_block.
pub fn reduce_scatter_block(
    sendbuf: Address,
    recvbuf: Address,
    recvcount: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
    run: Run<'_>,
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
    run(&collective)
}

/// MPI_Scan and MPI_Iscan.
pub fn scan(
    sendbuf: Address,
    recvbuf: Address,
    count: i64,
    datatype: Handle<Datatype>,
    op: Handle<Op>,
    comm: &Arc<Communicator>,
    run: Run<'_>,
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
    run(&collective)
}

/// MPI_Scatter and MPI_Iscatter.
pub fn scatter(
    sendbuf: Address,
    sendcount: i64,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    root: i32,
    comm: &Arc<Communicator>,
    run: Run<'_>,
) -> Result<()> {
    let mut collective = Collective::new(comm, Operation::Scatter);
    collective.root = root;
    let part = part(root, comm);
    collective.in_place = part == Part::Member && recvbuf.is_in_place();
    let (send_significant, recv_significant) = match part {
        Part::Member => (true, !collective.in_place),
        Part::Root => (true, false),
        Part::Other => (false, true),
        Part::Bystander => (false, false),
    };
    let sendtype = send_significant.then(|| sendtype.committed("sendtype")).transpose()?;
    let recvtype = recv_significant.then(|| recvtype.committed("recvtype")).transpose()?;
    if let Some(sendtype) = &sendtype {
        collective.send = even(sendbuf, sendcount, sendtype, SEND)?;
    }
    if let Some(recvtype) = &recvtype {
        collective.recv = even(recvbuf, recvcount, recvtype, RECV)?;
    }
    distinct(&collective.send, &collective.recv)?;
    run(&collective)
}

/// MPI_Scatterv and MPI_Iscatterv.
pub fn scatterv(
    sendbuf: Address,
    sendcounts: IntArray,
    displs: IntArray,
    sendtype: Handle<Datatype>,
    recvbuf: Address,
    recvcount: i64,
    recvtype: Handle<Datatype>,
    root: i32,
    comm: &Arc<Communicator>,
    run: Run<'_>,
) -> Result<()> {
    let mut collective = Collective::new(comm, Operation::Scatterv);
    collective.root = root;
    let part = part(root, comm);
    collective.in_place = part == Part::Member && recvbuf.is_in_place();
    let (send_significant, recv_significant) = match part {
        Part::Member => (true, !collective.in_place),
        Part::Root => (true, false),
        Part::Other => (false, true),
        Part::Bystander => (false, false),
    };
    let sendtype = send_significant.then(|| sendtype.committed("sendtype")).transpose()?;
    let recvtype = recv_significant.then(|| recvtype.committed("recvtype")).transpose()?;
    if let Some(sendtype) = &sendtype {
        collective.send = varied(sendbuf, sendcounts, displs, sendtype, partners(comm), SENDS)?;
    }
    if let Some(recvtype) = &recvtype {
        collective.recv = even(recvbuf, recvcount, recvtype, RECV)?;
    }
    run(&collective)
}
