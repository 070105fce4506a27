//! What intercommunicators need (MPI 5.0, section 6.2.2): the work within a group goes to or from its process 0, the
//! leader; the leaders exchange. Where no process of a group knows what the others send, everybody talks to everybody.

pub(crate) mod allgather;
pub(crate) mod allgatherv;
pub(crate) mod allreduce;
pub(crate) mod alltoall;
pub(crate) mod barrier;
pub(crate) mod bcast;
pub(crate) mod gather;
pub(crate) mod reduce;
pub(crate) mod reduce_scatter;
pub(crate) mod scatter;
