//! A thread of another process, stopped for a moment to read where it is (ptrace(2)).
//!
//! The kernel allows it for processes of the same user; where its Yama module restricts it, for descendants and for those that permit it.

use crate::process::lives;
use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// So long a thread is waited for, at most: one that is in the middle of a disk's work does not stop.
const PATIENCE: Duration = Duration::from_millis(50);
const LOOK_EVERY: Duration = Duration::from_micros(50);

/// Where a thread is in its code and on its stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    pub instruction: u64,
    pub stack: u64,
    pub frame: u64,
    /// Where its function returns to, on machines that have a register for it.
    pub link: u64,
}

/// Stops the thread with number `thread`, hands its registers to `look`, and lets it go on. A signal that comes meanwhile is not lost. To be called on
/// a thread that ends soon: whom it could not let go of goes on then.
///
/// # Errors
/// It may not be looked at (`PermissionDenied`), it has ended (ESRCH), does not stop in time (`TimedOut`), or this processor is none that is known
/// here (`Unsupported`).
pub fn stopped<T>(thread: i32, look: impl FnOnce(Registers) -> T) -> io::Result<T> {
    let nothing = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: changes no memory here or there.
    check(unsafe { libc::ptrace(libc::PTRACE_SEIZE, thread, nothing, nothing) })?;
    // SAFETY: as above.
    let registers = check(unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, thread, nothing, nothing) })
        .and_then(|()| {
            let began = Instant::now();
            loop {
                match registers(thread) {
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) && lives(thread as u32) => {}
                    other => break other,
                }
                if began.elapsed() > PATIENCE {
                    break Err(io::ErrorKind::TimedOut.into());
                }
                sleep(LOOK_EVERY);
            }
        });
    let looked = registers.map(look);
    let signal = signal_under_way(thread);
    // SAFETY: as above; the thread goes on, with the signal that it was about to take.
    unsafe { libc::ptrace(libc::PTRACE_DETACH, thread, nothing, signal as *mut libc::c_void) };
    looked
}

fn check(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The signal that a stopped thread was about to take when it stopped; 0 if it stopped because it was asked to.
fn signal_under_way(thread: i32) -> usize {
    // SAFETY: all-zero is a valid record, of the size that the kernel writes.
    let (got, record) = unsafe {
        let mut record: libc::siginfo_t = std::mem::zeroed();
        let nothing = std::ptr::null_mut::<libc::c_void>();
        (libc::ptrace(libc::PTRACE_GETSIGINFO, thread, nothing, &raw mut record), record)
    };
    let was_asked = record.si_code >> 8 == libc::PTRACE_EVENT_STOP;
    if got < 0 || was_asked { 0 } else { record.si_signo as usize }
}

#[cfg(all(target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn registers(thread: i32) -> io::Result<Registers> {
    /// Of elf(5): the general registers.
    const NT_PRSTATUS: usize = 1;
    // SAFETY: all-zero is a valid record.
    let mut all: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    let mut piece =
        libc::iovec { iov_base: (&raw mut all).cast(), iov_len: size_of::<libc::user_regs_struct>() };
    // SAFETY: the kernel writes at most the length that is told.
    check(unsafe { libc::ptrace(libc::PTRACE_GETREGSET, thread, NT_PRSTATUS, &raw mut piece) })?;
    #[cfg(target_arch = "x86_64")]
    return Ok(Registers { instruction: all.rip, stack: all.rsp, frame: all.rbp, link: 0 });
    #[cfg(target_arch = "aarch64")]
    return Ok(Registers { instruction: all.pc, stack: all.sp, frame: all.regs[29], link: all.regs[30] });
}

#[cfg(not(all(target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn registers(_: i32) -> io::Result<Registers> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_child_is_stopped_looked_at_and_goes_on() {
        let mut child = Command::new("sleep").arg("0.3").spawn().unwrap();
        let thread = child.id() as i32;
        let looked =
            std::thread::spawn(move || (stopped(thread, |registers| registers), stopped(thread, |_| 1)));
        let (first, second) = looked.join().unwrap();
        if let Ok(registers) = first {
            assert!(registers.instruction != 0 && registers.stack != 0);
            assert_eq!(second.unwrap(), 1);
        } else {
            assert_eq!(first.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        }
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn who_is_not_there_is_an_error() {
        let mut child = Command::new("true").spawn().unwrap();
        let thread = child.id() as i32;
        child.wait().unwrap();
        assert!(stopped(thread, |_| ()).is_err());
    }
}
