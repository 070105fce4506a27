//! What several tests begin with.

use parnass_portals::Interface;
use parnass_transport_shm::{JobMemory, SharedMemory};

/// The NICs of a job on one machine, all in this process.
pub fn interfaces(size: u32) -> Vec<Interface> {
    let file = JobMemory::create(size).unwrap();
    let attach = |rank| {
        let memory = JobMemory::open(file.try_clone().unwrap()).unwrap();
        Interface::new(Box::new(SharedMemory::attach(memory, rank).unwrap())).unwrap()
    };
    (0..size).map(attach).collect()
}
