//! Where the parts are put together: the only place that names a concrete transport.

use parnass_portals::Interface;
use parnass_transport_shm::{JobMemory, SharedMemory};
use std::io;
use std::os::fd::OwnedFd;

/// The virtual NIC of `rank` over the job's memory, or over memory of this process alone for a world of one.
pub fn interface(job_memory: Option<OwnedFd>, rank: u32) -> io::Result<Interface> {
    let memory = match job_memory {
        Some(file) => JobMemory::open(file)?,
        None => JobMemory::private()?,
    };
    let transport = SharedMemory::attach(memory, rank)?;
    Interface::new(Box::new(transport)).map_err(|error| io::Error::other(format!("{error:?}")))
}
