//! The buffers of collective procedures, checked as far as they are significant at this process.

use crate::arguments::{self, Ints};
use crate::calls::prelude::*;
use parnass_base::UserAddress;
use parnass_mpi::coll::{BlockTypes, Blocks, Side};

/// Whether a buffer is MPI_IN_PLACE, which intercommunicators do not know.
pub fn in_place(buffer: Address, comm: &Communicator, name: &str) -> Result<bool> {
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
pub fn partners(comm: &Communicator) -> usize {
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

/// Counts that must not be negative, and the greatest of them.
#[inline]
pub fn block_counts<'a>(counts: IntArray, number: usize, name: &str) -> Result<(Ints<'a>, i64)> {
    let counts = counts.with_length(number, name)?;
    match counts.range() {
        (0, most) => Ok((counts, most)),
        _ => Err(negative(counts, name)),
    }
}

#[cold]
fn negative(counts: Ints<'_>, name: &str) -> Error {
    let index = counts.iter().position(|count| count < 0).unwrap_or(0);
    Error::new(MPI_ERR_COUNT, format!("{name}[{index}] is {}; it must be 0 or more", counts.get(index)))
}

/// Blocks of one datatype, with displacements in extents.
#[inline]
pub fn varied<'a>(
    buffer: Address,
    counts: IntArray,
    displacements: IntArray,
    datatype: &'a Arc<Datatype>,
    number: usize,
    names: [&str; 3],
) -> Result<Blocks<'a>> {
    let (counts, longest) = block_counts(counts, number, names[1])?;
    // MPI_IN_PLACE is not for here, and the null address only for absolute addresses.
    arguments::buffer(buffer, longest, datatype, names[0])?;
    let displacements = displacements.with_length(number, names[2])?;
    let unit = datatype.layout().extent();
    Ok(Blocks { counts, displacements, unit, datatypes: BlockTypes::Same(datatype) })
}

/// Blocks each of its own datatype, with displacements in bytes.
pub fn typed<'a>(
    buffer: Address,
    counts: IntArray,
    displacements: IntArray,
    datatypes: HandleArray<Datatype>,
    number: usize,
    names: [&str; 4],
) -> Result<Blocks<'a>> {
    let (counts, _) = block_counts(counts, number, names[1])?;
    let displacements = displacements.with_length(number, names[2])?;
    let handles = datatypes.with_length(number, names[3])?;
    let mut types = Vec::with_capacity(number);
    for (index, (handle, count)) in handles.iter().zip(counts.iter()).enumerate() {
        // The datatype of an empty block may be anything.
        let handle = if count == 0 { Handle::new(MPI_BYTE) } else { *handle };
        let datatype = handle.committed(&format!("{}[{index}]", names[3]))?;
        if buffer.is_in_place() {
            arguments::buffer(buffer, count, &datatype, names[0])?;
        }
        types.push(Arc::clone(&datatype));
    }
    Ok(Blocks { counts, displacements, unit: 1, datatypes: BlockTypes::Each(types) })
}

/// A buffer of blocks that differ.
#[inline]
pub fn side<'a>(buffer: Address, blocks: &'a Blocks<'a>) -> Side<'a> {
    Side::Varied { address: buffer.user(), blocks }
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

pub const SEND: [&str; 2] = ["sendbuf", "sendcount"];
pub const RECV: [&str; 2] = ["recvbuf", "recvcount"];
pub const SENDS: [&str; 3] = ["sendbuf", "sendcounts", "displs"];
pub const RECVS: [&str; 3] = ["recvbuf", "recvcounts", "displs"];

/// What this process is in an operation with a root.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The root of an intracommunicator, which takes part itself too.
    Member,
    /// The root of an intercommunicator.
    Root,
    /// One that talks to the root.
    Other,
    /// In the group of the root of an intercommunicator, but not the root.
    Bystander,
}

pub fn part(root: i32, comm: &Communicator) -> Part {
    match root {
        MPI_ROOT => Part::Root,
        MPI_PROC_NULL => Part::Bystander,
        rank if rank == comm.rank() && !comm.is_inter() => Part::Member,
        _ => Part::Other,
    }
}

impl Part {
    /// Which arguments of a process are significant: those of the block that is its own, and those of the blocks at the root.
    pub fn significant(self, in_place: bool) -> (bool, bool) {
        match self {
            Part::Member => (!in_place, true),
            Part::Root => (false, true),
            Part::Other => (true, false),
            Part::Bystander => (false, false),
        }
    }
}

/// The scans are defined on intracommunicators only.
pub fn intra_only(comm: &Communicator) -> Result<()> {
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
