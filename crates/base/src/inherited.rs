//! A descriptor that this process was started with, and knows by its number only.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// A descriptor of its own for what `number` is open for. Both are closed on exec from now on: it is this process's, and
/// not its children's.
///
/// # Errors
/// Nothing is open under that number.
pub fn inherited(number: i32) -> io::Result<OwnedFd> {
    // SAFETY: fcntl with integer arguments; it refuses numbers under which nothing is open.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: fcntl with integer arguments.
    unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    // SAFETY: the copy was made here and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn only_what_is_open_is_inherited() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let copy = inherited(file.as_raw_fd()).unwrap();
        assert_ne!(copy.as_raw_fd(), file.as_raw_fd());
        assert!(inherited(-1).is_err() && inherited(1 << 20).is_err());
    }
}
