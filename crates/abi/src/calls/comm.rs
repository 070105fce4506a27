//! Bodies of procedures: comm.

use super::prelude::*;

/// MPI_Comm_compare.
pub fn comm_compare(
    call: &Call,
    comm1: &Arc<Communicator>,
    comm2: &Arc<Communicator>,
    result: Out<i32>,
) -> Result<()> {
    let _ = (comm1, comm2, result);
    Err(call.missing())
}

/// MPI_Comm_create.
pub fn comm_create(
    call: &Call,
    comm: &Arc<Communicator>,
    group: &Arc<Group>,
    newcomm: OutHandle<Communicator>,
) -> Result<()> {
    let _ = (comm, group, newcomm);
    Err(call.missing())
}

/// MPI_Comm_create_group.
pub fn comm_create_group(
    call: &Call,
    comm: &Arc<Communicator>,
    group: &Arc<Group>,
    tag: i32,
    newcomm: OutHandle<Communicator>,
) -> Result<()> {
    let _ = (comm, group, tag, newcomm);
    Err(call.missing())
}

/// MPI_Comm_disconnect.
pub fn comm_disconnect(call: &Call, comm: InOutHandle<Communicator>) -> Result<()> {
    let _ = comm;
    Err(call.missing())
}

/// MPI_Comm_dup.
pub fn comm_dup(call: &Call, comm: &Arc<Communicator>, newcomm: OutHandle<Communicator>) -> Result<()> {
    let _ = (comm, newcomm);
    Err(call.missing())
}

/// MPI_Comm_dup_with_info.
pub fn comm_dup_with_info(
    call: &Call,
    comm: &Arc<Communicator>,
    info: Option<&Arc<Info>>,
    newcomm: OutHandle<Communicator>,
) -> Result<()> {
    let _ = (comm, info, newcomm);
    Err(call.missing())
}

/// MPI_Comm_free.
pub fn comm_free(call: &Call, comm: InOutHandle<Communicator>) -> Result<()> {
    let _ = comm;
    Err(call.missing())
}

/// MPI_Comm_get_info.
pub fn comm_get_info(call: &Call, comm: &Arc<Communicator>, info_used: OutHandle<Info>) -> Result<()> {
    let _ = (comm, info_used);
    Err(call.missing())
}

/// MPI_Comm_get_name.
pub fn comm_get_name(call: &Call, comm: &Arc<Communicator>, comm_name: StringOut) -> Result<()> {
    let _ = (comm, comm_name);
    Err(call.missing())
}

/// MPI_Comm_get_parent.
pub fn comm_get_parent(call: &Call, parent: OutHandle<Communicator>) -> Result<()> {
    let _ = parent;
    Err(call.missing())
}

/// MPI_Comm_group.
pub fn comm_group(call: &Call, comm: &Arc<Communicator>, group: OutHandle<Group>) -> Result<()> {
    let _ = (comm, group);
    Err(call.missing())
}

/// MPI_Comm_idup.
pub fn comm_idup(
    call: &Call,
    comm: &Arc<Communicator>,
    newcomm: OutHandle<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (comm, newcomm, request);
    Err(call.missing())
}

/// MPI_Comm_idup_with_info.
pub fn comm_idup_with_info(
    call: &Call,
    comm: &Arc<Communicator>,
    info: Option<&Arc<Info>>,
    newcomm: OutHandle<Communicator>,
    request: OutHandle<Request>,
) -> Result<()> {
    let _ = (comm, info, newcomm, request);
    Err(call.missing())
}

/// MPI_Comm_rank.
pub fn comm_rank(call: &Call, comm: &Arc<Communicator>, rank: Out<i32>) -> Result<()> {
    let _ = (comm, rank);
    Err(call.missing())
}

/// MPI_Comm_remote_group.
pub fn comm_remote_group(call: &Call, comm: &Arc<Communicator>, group: OutHandle<Group>) -> Result<()> {
    let _ = (comm, group);
    Err(call.missing())
}

/// MPI_Comm_remote_size.
pub fn comm_remote_size(call: &Call, comm: &Arc<Communicator>, size: Out<i32>) -> Result<()> {
    let _ = (comm, size);
    Err(call.missing())
}

/// MPI_Comm_set_info.
pub fn comm_set_info(call: &Call, comm: &Arc<Communicator>, info: Option<&Arc<Info>>) -> Result<()> {
    let _ = (comm, info);
    Err(call.missing())
}

/// MPI_Comm_set_name.
pub fn comm_set_name(call: &Call, comm: &Arc<Communicator>, comm_name: &[u8]) -> Result<()> {
    let _ = (comm, comm_name);
    Err(call.missing())
}

/// MPI_Comm_size.
pub fn comm_size(call: &Call, comm: &Arc<Communicator>, size: Out<i32>) -> Result<()> {
    let _ = (comm, size);
    Err(call.missing())
}

/// MPI_Comm_split.
pub fn comm_split(
    call: &Call,
    comm: &Arc<Communicator>,
    color: i32,
    key: i32,
    newcomm: OutHandle<Communicator>,
) -> Result<()> {
    let _ = (comm, color, key, newcomm);
    Err(call.missing())
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
    let _ = (comm, split_type, key, info, newcomm);
    Err(call.missing())
}

/// MPI_Comm_test_inter.
pub fn comm_test_inter(call: &Call, comm: &Arc<Communicator>, flag: Out<bool>) -> Result<()> {
    let _ = (comm, flag);
    Err(call.missing())
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
    let _ = (local_comm, local_leader, peer_comm, remote_leader, tag, newintercomm);
    Err(call.missing())
}

/// MPI_Intercomm_merge.
pub fn intercomm_merge(
    call: &Call,
    intercomm: &Arc<Communicator>,
    high: bool,
    newintracomm: OutHandle<Communicator>,
) -> Result<()> {
    let _ = (intercomm, high, newintracomm);
    Err(call.missing())
}

/// MPI_Topo_test.
pub fn topo_test(call: &Call, comm: &Arc<Communicator>, status: Out<i32>) -> Result<()> {
    let _ = (comm, status);
    Err(call.missing())
}
