//! Bodies of procedures: comm.

use super::info::{copy_of, give_info};
use super::prelude::*;
use parnass_mpi::environment::Placement;
use parnass_mpi::pt2pt::BufferOwner;

/// The program's handle of a communicator, for its callbacks.
pub(super) fn handle_of(comm: &Arc<Communicator>) -> usize {
    Communicator::table().handle_of(comm).unwrap_or(MPI_COMM_NULL)
}

/// Hands a new communicator to the program; `None` is MPI_COMM_NULL.
fn give(made: Option<Arc<Communicator>>, newcomm: &OutHandle<Communicator>) -> Result<()> {
    match made {
        Some(made) => newcomm.set(made),
        None => {
            newcomm.set_null();
            Ok(())
        }
    }
}

/// MPI_Comm_compare.
pub fn comm_compare(
    _call: &Call,
    comm1: &Arc<Communicator>,
    comm2: &Arc<Communicator>,
    result: Out<i32>,
) -> Result<()> {
    result.set(super::group::comparison_code(comm1.compare(comm2)));
    Ok(())
}

/// MPI_Comm_create.
pub fn comm_create(
    call: &Call,
    comm: &Arc<Communicator>,
    group: &Arc<Group>,
    newcomm: OutHandle<Communicator>,
) -> Result<()> {
    give(comm.create(call.process(), group)?, &newcomm)
}

/// MPI_Comm_create_from_group.
pub fn comm_create_from_group(
    call: &Call,
    group: &Arc<Group>,
    stringtag: &[u8],
    info: Option<&Arc<Info>>,
    errhandler: &Arc<Errhandler>,
    newcomm: OutHandle<Communicator>,
) -> Result<()> {
    let errhandler = Errhandler::clone(errhandler);
    let made = Communicator::create_from_group(call.process(), group, stringtag, &copy_of(info), errhandler)?;
    give(made, &newcomm)
}

/// MPI_Comm_create_group.
pub fn comm_create_group(
    call: &Call,
    comm: &Arc<Communicator>,
    group: &Arc<Group>,
    tag: i32,
    newcomm: OutHandle<Communicator>,
) -> Result<()> {
    give(comm.create_group(call.process(), group, tag)?, &newcomm)
}

/// MPI_Comm_disconnect.
pub fn comm_disconnect(call: &Call, comm: InOutHandle<Communicator>) -> Result<()> {
    comm.get().check_freeable()?;
    comm.get().attributes().delete_all(comm.handle())?;
    comm.get().quiesce(call.process());
    call.process().flush_buffer(BufferOwner::Communicator(comm.get()))?;
    call.process().retire_buffer(comm.get());
    comm.get().part(call.process())?;
    settle_all(call.process(), comm.get());
    call.process().give_up(comm.get());
    comm.release();
    Ok(())
}

/// MPI_Comm_dup.
pub fn comm_dup(call: &Call, comm: &Arc<Communicator>, newcomm: OutHandle<Communicator>) -> Result<()> {
    newcomm.set(comm.duplicate(call.process(), handle_of(comm), None)?)
}

/// MPI_Comm_dup_with_info.
pub fn comm_dup_with_info(
    call: &Call,
    comm: &Arc<Communicator>,
    info: Option<&Arc<Info>>,
    newcomm: OutHandle<Communicator>,
) -> Result<()> {
    newcomm.set(comm.duplicate(call.process(), handle_of(comm), Some(&copy_of(info)))?)
}

/// MPI_Comm_free.
pub fn comm_free(call: &Call, comm: InOutHandle<Communicator>) -> Result<()> {
    comm.get().check_freeable()?;
    comm.get().attributes().delete_all(comm.handle())?;
    call.process().retire_buffer(comm.get());
    settle_all(call.process(), comm.get());
    call.process().give_up(comm.get());
    comm.release();
    Ok(())
}

/// MPI_Comm_get_info.
pub fn comm_get_info(_call: &Call, comm: &Arc<Communicator>, info_used: OutHandle<Info>) -> Result<()> {
    give_info(comm.info(), &info_used)
}

/// MPI_Comm_get_name.
pub fn comm_get_name(_call: &Call, comm: Option<&Arc<Communicator>>, comm_name: StringOut) -> Result<()> {
    match comm {
        Some(comm) => comm_name.set(&comm.name()),
        None => comm_name.set(b"MPI_COMM_NULL"),
    }
    Ok(())
}

/// MPI_Comm_group.
pub fn comm_group(_call: &Call, comm: &Arc<Communicator>, group: OutHandle<Group>) -> Result<()> {
    group.set(Arc::new(comm.group().clone()))
}

/// MPI_Comm_idup.
pub fn comm_idup(
    call: &Call,
    comm: &Arc<Communicator>,
    newcomm: OutHandle<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let (duplicate, under_way) = comm.start_duplicate(call.process(), handle_of(comm), None)?;
    newcomm.set(duplicate)?;
    request.set(under_way)
}

/// MPI_Comm_idup_with_info.
pub fn comm_idup_with_info(
    call: &Call,
    comm: &Arc<Communicator>,
    info: Option<&Arc<Info>>,
    newcomm: OutHandle<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let (duplicate, under_way) =
        comm.start_duplicate(call.process(), handle_of(comm), Some(&copy_of(info)))?;
    newcomm.set(duplicate)?;
    request.set(under_way)
}

/// MPI_Comm_rank.
pub fn comm_rank(_call: &Call, comm: &Arc<Communicator>, rank: Out<i32>) -> Result<()> {
    rank.set(comm.rank());
    Ok(())
}

/// MPI_Comm_remote_group.
pub fn comm_remote_group(_call: &Call, comm: &Arc<Communicator>, group: OutHandle<Group>) -> Result<()> {
    group.set(Arc::new(comm.remote_group()?.clone()))
}

/// MPI_Comm_remote_size.
pub fn comm_remote_size(_call: &Call, comm: &Arc<Communicator>, size: Out<i32>) -> Result<()> {
    size.set(comm.remote_group()?.size());
    Ok(())
}

/// MPI_Comm_set_info.
pub fn comm_set_info(_call: &Call, comm: &Arc<Communicator>, info: Option<&Arc<Info>>) -> Result<()> {
    comm.set_info(&copy_of(info));
    Ok(())
}

/// MPI_Comm_set_name.
pub fn comm_set_name(_call: &Call, comm: &Arc<Communicator>, comm_name: &[u8]) -> Result<()> {
    comm.set_name(comm_name)
}

/// MPI_Comm_size.
pub fn comm_size(_call: &Call, comm: &Arc<Communicator>, size: Out<i32>) -> Result<()> {
    size.set(comm.size());
    Ok(())
}

/// MPI_Comm_split.
pub fn comm_split(
    call: &Call,
    comm: &Arc<Communicator>,
    color: i32,
    key: i32,
    newcomm: OutHandle<Communicator>,
) -> Result<()> {
    give(comm.split(call.process(), color, key)?, &newcomm)
}

/// MPI_Comm_split_type.
pub fn comm_split_type(
    call: &Call,
    comm: &Arc<Communicator>,
    split_type: i32,
    key: i32,
    info: Option<&Arc<Info>>,
    newcomm: OutHandle<Communicator>,
) -> Result<()> {
    let placement = match split_type {
        MPI_COMM_TYPE_SHARED | MPI_UNDEFINED => Placement::default(),
        _ => Placement::of_this_process(),
    };
    let hints = copy_of(info);
    let (made, resource) = comm.split_type(call.process(), split_type, key, Some(&hints), &placement)?;
    if let (Some(info), Some(resource)) = (info, resource) {
        super::info::lock(info).set(b"mpi_hw_resource_type", resource.as_bytes())?;
    }
    give(made, &newcomm)
}

/// MPI_Comm_test_inter.
pub fn comm_test_inter(_call: &Call, comm: &Arc<Communicator>, flag: Out<bool>) -> Result<()> {
    flag.set(comm.is_inter());
    Ok(())
}

/// MPI_Intercomm_create.
pub fn intercomm_create(
    call: &Call,
    local_comm: &Arc<Communicator>,
    local_leader: i32,
    peer_comm: Handle<Communicator>,
    remote_leader: i32,
    tag: i32,
    newintercomm: OutHandle<Communicator>,
) -> Result<()> {
    // Significant at the local leader only, where MPI_COMM_NULL is an error with its own words.
    let peer = match local_comm.rank() == local_leader && !peer_comm.is_null() {
        true => Some(peer_comm.get("peer_comm")?),
        false => None,
    };
    let peer = peer.as_deref();
    let made = local_comm.create_intercommunicator(call.process(), local_leader, peer, remote_leader, tag)?;
    newintercomm.set(made)
}

/// MPI_Intercomm_create_from_groups.
pub fn intercomm_create_from_groups(
    call: &Call,
    local_group: &Arc<Group>,
    local_leader: i32,
    remote_group: &Arc<Group>,
    remote_leader: i32,
    stringtag: &[u8],
    info: Option<&Arc<Info>>,
    errhandler: &Arc<Errhandler>,
    newintercomm: OutHandle<Communicator>,
) -> Result<()> {
    let made = Communicator::create_intercommunicator_from_groups(
        call.process(),
        local_group,
        local_leader,
        remote_group,
        remote_leader,
        stringtag,
        &copy_of(info),
        Errhandler::clone(errhandler),
    )?;
    give(made, &newintercomm)
}

/// MPI_Intercomm_merge.
pub fn intercomm_merge(
    call: &Call,
    intercomm: &Arc<Communicator>,
    high: bool,
    newintracomm: OutHandle<Communicator>,
) -> Result<()> {
    newintracomm.set(intercomm.merge(call.process(), high)?)
}
