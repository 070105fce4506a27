//! Partitioned communication (MPI 5.0, chapter 4).

use super::prelude::*;
use super::request::raise_on;
use parnass_mpi::pt2pt::Partitions;

/// The buffer of an operation. Without data it may be anything.
fn partitions(
    buffer: Address,
    partitions: i32,
    count: i64,
    datatype: &Arc<Datatype>,
    peer: i32,
    tag: i32,
) -> Result<Partitions> {
    if partitions > 0 && peer != MPI_PROC_NULL {
        crate::arguments::buffer(buffer, count, datatype, "buf")?;
    }
    let (address, datatype) = (buffer.user(), Arc::clone(datatype));
    Ok(Partitions { address, partitions, count: count as u64, datatype, peer, tag })
}

/// MPI_Psend_init.
pub fn psend_init(
    call: &Call,
    buf: Address,
    number: i32,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: i32,
    tag: i32,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let partitions = partitions(buf, number, count, datatype, dest, tag)?;
    request.set(call.process().partitioned_send(comm, partitions)?)
}

/// MPI_Precv_init.
pub fn precv_init(
    call: &Call,
    buf: Address,
    number: i32,
    count: i64,
    datatype: &Arc<Datatype>,
    source: i32,
    tag: i32,
    comm: &Arc<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let partitions = partitions(buf, number, count, datatype, source, tag)?;
    request.set(call.process().partitioned_receive(comm, partitions)?)
}

/// Says that partitions are ready; errors go to the handler of the request's communicator.
fn ready(call: &Call, request: &Arc<Request>, partitions: impl Iterator<Item = i32> + Clone) -> Result<()> {
    raise_on(call, request);
    request.ready(call.process(), partitions)
}

/// MPI_Pready.
pub fn pready(call: &Call, partition: i32, request: &Arc<Request>) -> Result<()> {
    ready(call, request, std::iter::once(partition))
}

/// MPI_Pready_range.
pub fn pready_range(
    call: &Call,
    partition_low: i32,
    partition_high: i32,
    request: &Arc<Request>,
) -> Result<()> {
    if partition_low > partition_high {
        return Err(Error::new(
            MPI_ERR_ARG,
            format!(
                "partition_low is {partition_low} and partition_high {partition_high}; the range goes from the lower to the \
                 higher one, both included"
            ),
        ));
    }
    ready(call, request, partition_low..=partition_high)
}

/// MPI_Pready_list.
pub fn pready_list(call: &Call, array_of_partitions: &[i32], request: &Arc<Request>) -> Result<()> {
    ready(call, request, array_of_partitions.iter().copied())
}

/// MPI_Parrived. No request, and one that is inactive, count as arrived.
pub fn parrived(call: &Call, request: Option<&Arc<Request>>, partition: i32, flag: Out<bool>) -> Result<()> {
    let Some(request) = request else {
        flag.set(true);
        return Ok(());
    };
    raise_on(call, request);
    flag.set(request.has_arrived(call.process(), partition)?);
    Ok(())
}
