//! The MPI standard's semantics. Knows no wire and no C.
#![forbid(unsafe_code)]

mod activity;
pub mod attribute;
pub mod coll;
pub mod comm;
pub mod constants;
pub mod datatype;
pub mod environment;
pub mod errhandler;
pub mod error;
pub mod error_registry;
mod faults;
pub mod group;
pub mod implemented;
pub mod info;
pub mod io;
pub mod observe;
pub mod op;
pub mod process;
pub mod progress;
pub mod pt2pt;
pub mod recovery;
pub mod request;
pub mod rma;
pub mod session;
pub mod topology;
#[rustfmt::skip]
mod tuning;
mod worlds;

pub use activity::Activity;
pub use comm::{Communicator, Plane};
pub use datatype::{Buffer, Datatype};
pub use errhandler::Errhandler;
pub use error::{Error, Result};
pub use group::Group;
pub use info::Info;
pub use io::File;
pub use op::Op;
pub use parnass_collectives::Ints;
pub use parnass_portals::{CROWD, EXCHANGED_IN_MAILBOX, EXCHANGED_MOST, copies_once, piped_most};
pub use process::{Process, Settings, ThreadLevel};
pub use pt2pt::SendMode;
pub use request::{Operation, Request, Status};
pub use rma::Window;
pub use session::Session;
pub use tuning::Tuning;
