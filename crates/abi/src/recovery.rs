//! User-Level Failure Mitigation: the MPIX_ calls of fault tolerance, which are not of the standard yet. They are declared in `mpi-ext.h`.

use crate::arguments::{InOut, Out, OutHandle};
use crate::call::Call;
use crate::handles;
use crate::objects::{Communicator, Group, Request};
use parnass_mpi::Result;
use parnass_mpi::constants::MPI_GROUP_EMPTY;
use std::ffi::c_int;
use std::sync::Arc;

/// Runs the body of a call whose errors go to the error handler of `comm`.
fn run(name: &'static str, comm: usize, body: impl FnOnce(&Call, &Arc<Communicator>) -> Result<()>) -> c_int {
    let call = Call::enter(name);
    match handles::get::<Communicator>(comm, "comm").and_then(|held| body(&call, &held)) {
        Ok(()) => call.succeed(),
        Err(error) => call.fail_on(comm, error),
    }
}

/// An empty group is MPI_GROUP_EMPTY.
fn give_group(group: Group, place: &OutHandle<Group>) -> Result<()> {
    if group.is_empty() {
        place.set_raw(MPI_GROUP_EMPTY);
        return Ok(());
    }
    place.set(Arc::new(group))
}

/// A flag of the program that is written when an agreement ends.
struct LateFlag(InOut<i32>);

// SAFETY: the program keeps the variable valid, and does not touch it, until the operation that writes it is complete, whichever thread completes it.
unsafe impl Send for LateFlag {}

impl LateFlag {
    fn set(&self, flag: i32) {
        self.0.set(flag);
    }
}

fn get_failed(name: &'static str, comm: usize, group: *mut usize) -> c_int {
    run(name, comm, |call, comm| {
        let group = OutHandle::<Group>::new(group, "failedgrp")?;
        give_group(comm.failed(call.process()), &group)
    })
}

fn ack_failed(name: &'static str, comm: usize, count: c_int, acknowledged: *mut c_int) -> c_int {
    run(name, comm, |call, comm| {
        let acknowledged = Out::<i32>::new(acknowledged, "num_acked")?;
        acknowledged.set(comm.acknowledge(call.process(), count));
        Ok(())
    })
}

macro_rules! entries {
    ($($(#[$doc:meta])* $name:ident, $profiling:ident ($($parameter:ident: $type:ty),*) $body:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The places are the caller's.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name(comm: usize $(, $parameter: $type)*) -> c_int {
            ($body)(stringify!($name), comm $(, $parameter)*)
        }

        $(#[$doc])*
        ///
        /// # Safety
        /// The places are the caller's.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $profiling(comm: usize $(, $parameter: $type)*) -> c_int {
            ($body)(stringify!($name), comm $(, $parameter)*)
        }
    )*};
}

entries! {
    /// Interrupts all that is under way on a communicator, at all its members, and lets nothing begin there any more.
    MPIX_Comm_revoke, PMPIX_Comm_revoke () |name, comm| run(name, comm, |call, comm| comm.revoke(call.process()));

    /// Whether a communicator is revoked, as far as this process has heard.
    MPIX_Comm_is_revoked, PMPIX_Comm_is_revoked (flag: *mut c_int) |name, comm, flag| run(name, comm, |call, comm| {
        Out::<bool>::new(flag, "flag")?.set(comm.is_revoked(call.process()));
        Ok(())
    });

    /// The members of a communicator that have died, as far as this process has heard.
    MPIX_Comm_get_failed, PMPIX_Comm_get_failed (failedgrp: *mut usize) get_failed;

    /// Acknowledges the first `num_to_ack` of those whom MPIX_Comm_get_failed tells.
    MPIX_Comm_ack_failed, PMPIX_Comm_ack_failed (num_to_ack: c_int, num_acked: *mut c_int) ack_failed;

    /// Acknowledges all whom MPIX_Comm_get_failed would tell.
    MPIX_Comm_failure_ack, PMPIX_Comm_failure_ack () |name, comm| run(name, comm, |call, comm| {
        comm.acknowledge(call.process(), c_int::MAX);
        Ok(())
    });

    /// Those who have died and were acknowledged.
    MPIX_Comm_failure_get_acked, PMPIX_Comm_failure_get_acked (failedgrp: *mut usize) |name, comm, failedgrp| {
        run(name, comm, |call, comm| {
            let group = OutHandle::<Group>::new(failedgrp, "failedgrp")?;
            give_group(comm.acknowledged_group(call.process()), &group)
        })
    };

    /// Agrees with all living members on the bitwise and of their flags.
    MPIX_Comm_agree, PMPIX_Comm_agree (flag: *mut c_int) |name, comm, flag| run(name, comm, |call, comm| {
        let flag = InOut::<i32>::new(flag, "flag")?;
        let (agreed, result) = comm.agree(call.process(), flag.get());
        flag.set(agreed);
        result
    });

    /// As MPIX_Comm_agree, without waiting.
    MPIX_Comm_iagree, PMPIX_Comm_iagree (flag: *mut c_int, request: *mut usize) |name, comm, flag, request| {
        run(name, comm, |call, comm| {
            let flag = LateFlag(InOut::<i32>::new(flag, "flag")?);
            let request = OutHandle::<Request>::new(request, "request")?;
            let own = flag.0.get();
            request.set(comm.start_agree(call.process(), own, move |agreed| flag.set(agreed))?)
        })
    };

    /// A communicator of those who live.
    MPIX_Comm_shrink, PMPIX_Comm_shrink (newcomm: *mut usize) |name, comm, newcomm| run(name, comm, |call, comm| {
        let newcomm = OutHandle::<Communicator>::new(newcomm, "newcomm")?;
        newcomm.set(comm.shrink(call.process())?)
    });

    /// As MPIX_Comm_shrink, without waiting; `newcomm` is written when the request is complete.
    MPIX_Comm_ishrink, PMPIX_Comm_ishrink (newcomm: *mut usize, request: *mut usize) |name, comm, newcomm, request| {
        run(name, comm, |call, comm| {
            let newcomm = OutHandle::<Communicator>::new(newcomm, "newcomm")?;
            let request = OutHandle::<Request>::new(request, "request")?;
            newcomm.set_null();
            request.set(comm.start_shrink(call.process(), move |made| newcomm.set(made))?)
        })
    };
}
