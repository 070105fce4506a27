//! Memory of another process, by the kernel's cross-memory calls.

use parnass_base::UserAddress;
use parnass_base::process::lives;
use parnass_transport::MemoryError;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the other process to this one.
    Read,
    /// From this process to the other one.
    Write,
}

/// Moves `length` bytes between `local` here and `remote` in process `process`.
pub fn transfer(
    way: Way,
    process: u32,
    remote: UserAddress,
    local: UserAddress,
    length: usize,
) -> Result<(), MemoryError> {
    let mut moved = 0;
    while moved < length {
        let near =
            libc::iovec { iov_base: local.offset(moved as i64).as_ptr().cast(), iov_len: length - moved };
        let far =
            libc::iovec { iov_base: remote.offset(moved as i64).as_ptr().cast(), iov_len: length - moved };
        let process = process as libc::pid_t;
        // SAFETY: the local range was promised valid when its address was made; the kernel checks the remote one.
        let result = unsafe {
            match way {
                Way::Read => libc::process_vm_readv(process, &near, 1, &far, 1, 0),
                Way::Write => libc::process_vm_writev(process, &near, 1, &far, 1, 0),
            }
        };
        if result > 0 {
            moved += result as usize;
            continue;
        }
        let error = std::io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::EINTR) if result < 0 => continue,
            Some(libc::EPERM | libc::ENOSYS | libc::EACCES) if result < 0 => Err(MemoryError::NotPermitted),
            Some(libc::ESRCH) if result < 0 => Err(MemoryError::Gone),
            _ => Err(MemoryError::Failed),
        };
    }
    Ok(())
}

/// Lets any process of this user read and write this one's memory, where the kernel's Yama module would
/// forbid it.
pub fn permit_peers() {
    // SAFETY: changes nothing but who may attach; fails harmlessly without Yama.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
}

/// The number of this process.
pub fn process_number() -> u32 {
    std::process::id()
}

/// Whether a process with this number still runs: as [`lives`], but one that has ended and that nobody has waited for does not.
pub fn runs(process: u32) -> bool {
    // SAFETY: makes a descriptor, or fails.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, process as libc::pid_t, 0) } as i32;
    if descriptor < 0 {
        return lives(process);
    }
    // SAFETY: it was made just now, and nobody else has it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let mut ended = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one descriptor, which stays open meanwhile; does not wait.
    unsafe { libc::poll(&raw mut ended, 1, 0) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_ended_does_not_run() {
        assert!(runs(process_number()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        while runs(child.id()) {
            std::thread::yield_now();
        }
        assert!(lives(child.id()), "nobody has waited for it");
        child.wait().unwrap();
        assert!(!runs(child.id()) && !lives(child.id()));
    }
}
