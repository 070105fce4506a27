//! The classes of handles: which object of the MPI layer each one names.

use crate::calls::again;
use crate::handles::{Class, GENERATION_BITS, LATER, Table};
use crate::state;
use parnass_mpi::constants::*;
use parnass_mpi::datatype::PredefinedDatatypes;
use parnass_mpi::op::PredefinedOps;
use parnass_mpi::request::{Ended, Quick};
use std::sync::{Arc, Mutex};

pub use parnass_mpi::pt2pt::Message;
pub use parnass_mpi::{
    Communicator, Datatype, Errhandler, File, Group, Op, Process, Request, Session, Window,
};

/// An info object: MPI lets several threads change one.
pub type Info = Mutex<parnass_mpi::Info>;

macro_rules! class {
    ($type:ty, $tag:literal, $null:ident, $predefined:literal, $error:ident, $noun:literal, named = $named:literal $(, { $($more:tt)* })?$(,)?) => {
        impl Class for $type {
            const TAG: u32 = $tag;
            const NULL: usize = $null;
            const PREDEFINED: usize = $predefined;
            const ERROR: i32 = $error;
            const NOUN: &'static str = $noun;
            const NULL_NAME: &'static str = stringify!($null);
            const NAMED: bool = $named;

            #[inline(always)]
            fn table() -> &'static Table<Self> {
                static TABLE: Table<$type> = Table::new();
                &TABLE
            }
            $($($more)*)?
        }
    };
}

/// The bits of a life that are in a handle.
const LIFE_MASK: u32 = (1 << GENERATION_BITS) - 1;

/// The handle of a receive that is no request yet.
#[inline(always)]
pub fn quick_handle(quick: Quick) -> usize {
    const { assert!(Quick::MOST as usize <= LATER) };
    Table::<Request>::later_handle(quick.number(), quick.life())
}

/// The receive behind a handle, if it is no request yet.
#[inline(always)]
pub fn quick(handle: usize) -> Option<Quick> {
    let (number, life) = Table::<Request>::later(handle)?;
    state::running()?.process.quick(number, life, LIFE_MASK)
}

/// Ends the receive behind a handle, if it is no request yet, complete, and has gone as usual; `tell` hears how.
#[inline(always)]
pub fn end_quickly(process: &Process, handle: usize, tell: impl FnOnce(&Ended<'_>)) -> bool {
    match Table::<Request>::later(handle) {
        Some((number, life)) => process.end_quickly(number, life, LIFE_MASK, tell),
        None => false,
    }
}

/// Makes requests of all receives of a communicator that are none yet, before it is freed.
pub fn settle_all(process: &Process, communicator: &Communicator) {
    for quick in process.quick_receives(communicator) {
        drop(Request::table().find(quick_handle(quick)));
    }
}

/// The handle of [`Request::sent`]: no program can name it as a constant, but many requests may have it at once.
pub const SENT: usize = MPI_REQUEST_NULL + 1;

class!(Request, 0, MPI_REQUEST_NULL, 2, MPI_ERR_REQUEST, "request", named = false, {
    fn predefined() -> Vec<Option<Arc<Request>>> {
        vec![None, Some(Request::sent())]
    }

    #[inline(always)]
    fn end(object: Arc<Request>) {
        Request::end(object);
    }

    fn make(number: u32, life: u32) -> Option<Arc<Request>> {
        let process = &state::running()?.process;
        process.settle(process.quick(number, life, LIFE_MASK)?)
    }

    fn unmake(number: u32) {
        if let Some(running) = state::running() {
            running.process.settled_is_gone(number);
        }
    }
});
class!(Communicator, 1, MPI_COMM_NULL, 8, MPI_ERR_COMM, "communicator", named = true, {
    fn freed() {
        again::forget();
    }
});
class!(Datatype, 2, MPI_DATATYPE_NULL, 256, MPI_ERR_TYPE, "datatype", named = true, {
    fn freed() {
        again::forget();
    }

    fn predefined() -> Vec<Option<Arc<Datatype>>> {
        let datatypes = PredefinedDatatypes::default();
        (0..Self::PREDEFINED).map(|offset| datatypes.get(Self::NULL + offset).cloned()).collect()
    }

    fn identity(object: &Arc<Datatype>) -> usize {
        object.predefined().unwrap_or(Arc::as_ptr(object) as usize)
    }
});
class!(Group, 3, MPI_GROUP_NULL, 8, MPI_ERR_GROUP, "group", named = true, {
    fn predefined() -> Vec<Option<Arc<Group>>> {
        vec![None, Some(Arc::new(Group::from_processes(Vec::new())))]
    }
});
class!(Op, 4, MPI_OP_NULL, 32, MPI_ERR_OP, "operation", named = true, {
    fn predefined() -> Vec<Option<Arc<Op>>> {
        let operations = PredefinedOps::default();
        (0..Self::PREDEFINED).map(|offset| operations.get(Self::NULL + offset).cloned()).collect()
    }

    fn identity(object: &Arc<Op>) -> usize {
        object.predefined().unwrap_or(Arc::as_ptr(object) as usize)
    }
});
class!(Errhandler, 5, MPI_ERRHANDLER_NULL, 4, MPI_ERR_ERRHANDLER, "error handler", named = true, {
    const ALWAYS: bool = true;

    fn predefined() -> Vec<Option<Arc<Errhandler>>> {
        [None, Some(Errhandler::Fatal), Some(Errhandler::Abort), Some(Errhandler::Return)]
            .map(|errhandler| errhandler.map(Arc::new))
            .into()
    }

    fn identity(object: &Arc<Errhandler>) -> usize {
        match &**object {
            Errhandler::Fatal => MPI_ERRORS_ARE_FATAL,
            Errhandler::Abort => MPI_ERRORS_ABORT,
            Errhandler::Return => MPI_ERRORS_RETURN,
            Errhandler::User(user) => Arc::as_ptr(user) as usize,
        }
    }
});
class!(Info, 6, MPI_INFO_NULL, 8, MPI_ERR_INFO, "info object", named = false, {
    const ALWAYS: bool = true;

    fn predefined() -> Vec<Option<Arc<Info>>> {
        // MPI_INFO_ENV: filled when it is first looked at.
        vec![None, Some(Arc::new(Info::default()))]
    }
});
class!(Message, 7, MPI_MESSAGE_NULL, 8, MPI_ERR_REQUEST, "message", named = false);
class!(File, 8, MPI_FILE_NULL, 8, MPI_ERR_FILE, "file", named = false);
class!(Window, 9, MPI_WIN_NULL, 8, MPI_ERR_WIN, "window", named = true, {
    const FOUND_INLINE: bool = true;
});
class!(Session, 10, MPI_SESSION_NULL, 8, MPI_ERR_SESSION, "session", named = true, {
    const ALWAYS: bool = true;
});
