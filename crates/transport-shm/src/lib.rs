//! Shared memory between the ranks of one machine.

mod crowd;
mod kept;
mod layout;
mod memory;
mod patience;
mod pool;
mod process_memory;
mod segments;
mod transport;
#[rustfmt::skip]
mod tuning;

pub use memory::JobMemory;
pub use transport::SharedMemory;
pub use tuning::Tuning;
