//! A fence on behalf of others: whoever calls [`force`] makes every thread of every registered process execute one.
//!
//! So the side of a protocol that runs often does without a fence, and the rare side pays for both.

/// Lets other processes force fences on this one. `false`: the kernel does not offer it, and this process must
/// execute its own.
pub fn register() -> bool {
    command(libc::MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)
}

/// Executes a fence in this thread and in all running threads of processes that have called [`register`]. `false`: the
/// kernel does not offer it.
pub fn force() -> bool {
    command(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED)
}

fn command(command: libc::c_int) -> bool {
    // SAFETY: touches no memory of this process.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

#[cfg(all(test, not(loom)))]
mod tests {
    #[test]
    fn who_is_registered_can_force() {
        if super::register() {
            assert!(super::force());
        }
    }
}
