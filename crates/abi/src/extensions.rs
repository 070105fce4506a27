//! Entries beyond the standard, for libraries that offer another interface on top of this one: MPICH's ABI and Fortran.
//!
//! Their functions get what the standard's have no place for: an extra state, which is given back to a destructor when the
//! operation or error handler has ended. MPIX_Op_create_x has the name and signature that MPICH chose for the same purpose. They are
//! not in `mpi.h`.

use crate::arguments::{OutHandle, RequestInOut};
use crate::call::Call;
use crate::calls::op::with_handle;
use crate::handles;
use crate::objects::{Communicator, Errhandler, Op, Request};
use parnass_base::UserAddress;
use parnass_mpi::constants::*;
use parnass_mpi::errhandler::ErrhandlerKind;
use parnass_mpi::request::Moment;
use parnass_mpi::{Datatype, Error, Result};
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// A reduction function: input, input and result, count, datatype, extra state.
pub type UserFunctionX = unsafe extern "C" fn(*mut c_void, *mut c_void, i64, usize, *mut c_void);
/// An error handler function: the object's handle, the error code, which it may change, extra state.
pub type ErrhandlerFunctionX = unsafe extern "C" fn(usize, *mut c_int, *mut c_void);
/// Carries the data of an operation: extra state, a [`Moment`] as a number in its order, and the partition that it concerns.
pub type CarryFunction = unsafe extern "C" fn(*mut c_void, c_int, c_int);
/// Gets the extra state when nothing uses it any more.
pub type DestructorFunction = unsafe extern "C" fn(*mut c_void);

/// The extra state of a function, and its end.
struct ExtraState {
    state: usize,
    destructor: Option<DestructorFunction>,
}

impl ExtraState {
    fn new(state: *mut c_void, destructor: Option<DestructorFunction>) -> ExtraState {
        ExtraState { state: state.expose_provenance(), destructor }
    }

    fn get(&self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.state)
    }

    /// Lets it be, because what it was for was not made.
    fn forget(mut self: Arc<Self>) {
        if let Some(own) = Arc::get_mut(&mut self) {
            own.destructor = None;
        }
    }
}

impl Drop for ExtraState {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: the program gave a function that takes its extra state at the end; this is the end.
            unsafe { destructor(self.get()) }
        }
    }
}

fn missing(name: &str) -> Error {
    Error::new(MPI_ERR_ARG, format!("{name} is a null pointer; give the address of a function"))
}

unsafe fn op_create(
    function: Option<UserFunctionX>,
    destructor: Option<DestructorFunction>,
    commute: c_int,
    extra_state: *mut c_void,
    op: *mut usize,
) -> c_int {
    let call = Call::enter("MPIX_Op_create_x");
    let extra = Arc::new(ExtraState::new(extra_state, destructor));
    let made = (|| -> Result<()> {
        let function = function.ok_or_else(|| missing("user_fn_x"))?;
        let op = OutHandle::<Op>::new(op, "op")?;
        let extra = extra.clone();
        let combine = move |input: UserAddress, inout: UserAddress, count: u64, datatype: &Arc<Datatype>| {
            with_handle(datatype, |handle| {
                let (input, inout) = (input.as_ptr().cast(), inout.as_ptr().cast());
                // SAFETY: a function of this type: two buffers of `count` elements, and its extra state.
                unsafe { function(input, inout, count as i64, handle, extra.get()) };
            });
        };
        op.set(Op::user(Box::new(combine), commute != 0))
    })();
    end(call, made, extra)
}

unsafe fn errhandler_create(
    name: &'static str,
    kind: ErrhandlerKind,
    function: Option<ErrhandlerFunctionX>,
    destructor: Option<DestructorFunction>,
    extra_state: *mut c_void,
    errhandler: *mut usize,
) -> c_int {
    let call = Call::enter_any_time(name);
    let extra = Arc::new(ExtraState::new(extra_state, destructor));
    let made = (|| -> Result<()> {
        let function = function.ok_or_else(|| missing("the error handler function"))?;
        let errhandler = OutHandle::<Errhandler>::new(errhandler, "errhandler")?;
        let extra = extra.clone();
        let callback = move |handle: usize, mut code: i32| {
            // SAFETY: a function of this type, with its extra state; the code's place lives during the call.
            unsafe { function(handle, &mut code, extra.get()) };
            code
        };
        errhandler.set(Arc::new(Errhandler::user(kind, Box::new(callback))))
    })();
    end(call, made, extra)
}

unsafe fn request_stage(
    carry: Option<CarryFunction>,
    destructor: Option<DestructorFunction>,
    extra_state: *mut c_void,
    request: *mut usize,
) -> c_int {
    let call = Call::enter("MPIX_Request_stage");
    let extra = Arc::new(ExtraState::new(extra_state, destructor));
    let made = (|| -> Result<()> {
        let carry = carry.ok_or_else(|| missing("carry_fn"))?;
        let place = OutHandle::<Request>::new(request, "request")?;
        // SAFETY: the caller's promise.
        let mut held = unsafe { RequestInOut::new(request, "request") }?;
        let Some(inner) = held.get().cloned() else { return Ok(()) };
        let extra = extra.clone();
        let carry = move |moment: Moment| {
            let (number, partition) = match moment {
                Moment::Start => (0, 0),
                Moment::Ready(partition) => (1, partition),
                Moment::Arrived(partition) => (2, partition),
                Moment::Complete => (3, 0),
            };
            // SAFETY: a function of this type, with its extra state.
            unsafe { carry(extra.get(), number, partition) };
        };
        held.release();
        place.set(Request::staged(inner, Box::new(carry)))
    })();
    end(call, made, extra)
}

/// Ends a call; one that has failed has not taken the extra state.
fn end(call: Call, made: Result<()>, extra: Arc<ExtraState>) -> c_int {
    match made {
        Ok(()) => call.succeed(),
        Err(error) => {
            extra.forget();
            call.fail(error)
        }
    }
}

/// How many processes an exchange on the communicator has on each side: the members of the other group, or the neighbors. Returns
/// an error class, and raises no error.
unsafe fn exchange_sizes(comm: usize, neighbors: c_int, senders: *mut i64, receivers: *mut i64) -> c_int {
    let Ok(comm) = handles::get::<Communicator>(comm, "comm") else { return MPI_ERR_COMM };
    let sizes = match neighbors {
        0 => Ok((comm.remote_size() as usize, comm.remote_size() as usize)),
        _ => comm.degrees(),
    };
    let Ok((from, to)) = sizes else { return MPI_ERR_TOPOLOGY };
    // SAFETY: the caller's promise.
    unsafe {
        senders.write(from as i64);
        receivers.write(to as i64);
    }
    MPI_SUCCESS
}

macro_rules! entries {
    ($($(#[$doc:meta])* $name:ident, $profiling:ident ($($parameter:ident: $type:ty),*) $body:block)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The functions are of their types or null, and the places are the caller's.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name($($parameter: $type),*) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { $body }
        }

        $(#[$doc])*
        ///
        /// # Safety
        /// The functions are of their types or null, and the places are the caller's.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $profiling($($parameter: $type),*) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { $body }
        }
    )*};
}

entries! {
    /// MPI_Op_create_c with an extra state.
    MPIX_Op_create_x, PMPIX_Op_create_x(
        function: Option<UserFunctionX>, destructor: Option<DestructorFunction>, commute: c_int,
        extra_state: *mut c_void, op: *mut usize
    ) {
        op_create(function, destructor, commute, extra_state, op)
    }
    /// MPI_Comm_create_errhandler with an extra state.
    MPIX_Comm_create_errhandler_extra, PMPIX_Comm_create_errhandler_extra(
        function: Option<ErrhandlerFunctionX>, destructor: Option<DestructorFunction>, extra_state: *mut c_void,
        errhandler: *mut usize
    ) {
        let name = "MPIX_Comm_create_errhandler_extra";
        errhandler_create(name, ErrhandlerKind::Communicator, function, destructor, extra_state, errhandler)
    }
    /// MPI_File_create_errhandler with an extra state.
    MPIX_File_create_errhandler_extra, PMPIX_File_create_errhandler_extra(
        function: Option<ErrhandlerFunctionX>, destructor: Option<DestructorFunction>, extra_state: *mut c_void,
        errhandler: *mut usize
    ) {
        let name = "MPIX_File_create_errhandler_extra";
        errhandler_create(name, ErrhandlerKind::File, function, destructor, extra_state, errhandler)
    }
    /// MPI_Session_create_errhandler with an extra state.
    MPIX_Session_create_errhandler_extra, PMPIX_Session_create_errhandler_extra(
        function: Option<ErrhandlerFunctionX>, destructor: Option<DestructorFunction>, extra_state: *mut c_void,
        errhandler: *mut usize
    ) {
        let name = "MPIX_Session_create_errhandler_extra";
        errhandler_create(name, ErrhandlerKind::Session, function, destructor, extra_state, errhandler)
    }
    /// MPI_Win_create_errhandler with an extra state.
    MPIX_Win_create_errhandler_extra, PMPIX_Win_create_errhandler_extra(
        function: Option<ErrhandlerFunctionX>, destructor: Option<DestructorFunction>, extra_state: *mut c_void,
        errhandler: *mut usize
    ) {
        let name = "MPIX_Win_create_errhandler_extra";
        errhandler_create(name, ErrhandlerKind::Window, function, destructor, extra_state, errhandler)
    }
    /// Puts a request around another that works on memory that stands in for the program's own: `carry` is called when data
    /// must be carried between the two. It may not call MPI.
    MPIX_Request_stage, PMPIX_Request_stage(
        carry: Option<CarryFunction>, destructor: Option<DestructorFunction>, extra_state: *mut c_void,
        request: *mut usize
    ) {
        request_stage(carry, destructor, extra_state, request)
    }
    /// The lengths of the arrays of datatypes of an exchange: what this process receives from and sends to.
    MPIX_Comm_exchange_sizes, PMPIX_Comm_exchange_sizes(
        comm: usize, neighbors: c_int, senders: *mut i64, receivers: *mut i64
    ) {
        exchange_sizes(comm, neighbors, senders, receivers)
    }
}
