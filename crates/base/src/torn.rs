//! Mapped files that somebody else makes shorter. A store behind the new end raises SIGBUS, which ends a process that does nothing
//! about it. While a [`Watched`] range lives, such a store goes nowhere instead, and the range says that it is torn.
//!
//! A signal's handler belongs to the process as a whole, so this does too. The handler stands only while a range is watched, what is not
//! about one of them goes to the handler that stood before, and that one is put back unless the program has set another meanwhile.

use std::io;
use std::mem::zeroed;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering, compiler_fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// As many ranges may be watched at once; whoever wants more does without a mapping.
const RANGES: usize = 16;

struct Range {
    taken: AtomicBool,
    /// 0: not watched.
    start: AtomicUsize,
    length: AtomicUsize,
    torn: AtomicBool,
}

impl Range {
    const fn new() -> Range {
        Range {
            taken: AtomicBool::new(false),
            start: AtomicUsize::new(0),
            length: AtomicUsize::new(0),
            torn: AtomicBool::new(false),
        }
    }
}

static WATCHED: [Range; RANGES] = [const { Range::new() }; RANGES];
/// How many are.
static USERS: Mutex<u32> = Mutex::new(0);
/// What stood before, as in a sigaction.
static BEFORE: (AtomicUsize, AtomicI32) = (AtomicUsize::new(libc::SIG_DFL), AtomicI32::new(0));

fn users() -> MutexGuard<'static, u32> {
    USERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The action that is set for SIGBUS.
fn action() -> libc::sigaction {
    // SAFETY: all-zero is a valid value, to be overwritten.
    let mut action: libc::sigaction = unsafe { zeroed() };
    // SAFETY: nothing is set, and the room is of the right size.
    unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut action) };
    action
}

fn own() -> usize {
    handle as extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) as usize
}

/// Makes this thread hear SIGBUS, or not, as `how` says; what it heard before.
fn mask(how: libc::c_int, set: &libc::sigset_t) -> libc::sigset_t {
    // SAFETY: both sets live during the call, and the second is filled by it.
    unsafe {
        let mut before = zeroed();
        libc::pthread_sigmask(how, set, &mut before);
        before
    }
}

/// A mapping that its thread stores into.
#[derive(Debug)]
pub struct Watched {
    number: usize,
    mask: libc::sigset_t,
}

impl Watched {
    /// Watches the mapping of `length` bytes at `start`, which is the caller's own and stays until this is dropped, by this thread.
    ///
    /// # Errors
    /// Too many are watched.
    pub fn new(start: usize, length: usize) -> io::Result<Watched> {
        let mut users = users();
        let number = WATCHED.iter().position(|range| !range.taken.load(Ordering::Relaxed));
        let number = number.ok_or(io::ErrorKind::ResourceBusy)?;
        let range = &WATCHED[number];
        range.taken.store(true, Ordering::Relaxed);
        range.torn.store(false, Ordering::Relaxed);
        range.length.store(length, Ordering::Relaxed);
        range.start.store(start, Ordering::Release);
        if *users == 0 {
            let before = action();
            // A handler of this library that was left there is not to call itself.
            if before.sa_sigaction != own() {
                BEFORE.0.store(before.sa_sigaction, Ordering::Relaxed);
                BEFORE.1.store(before.sa_flags, Ordering::Release);
            }
            let mut new = before;
            new.sa_sigaction = own();
            new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            // SAFETY: the handler calls nothing that a handler may not call.
            unsafe { libc::sigaction(libc::SIGBUS, &new, std::ptr::null_mut()) };
        }
        *users += 1;
        // SAFETY: a set that is made empty before anything is put in.
        let bus = unsafe {
            let mut bus = zeroed();
            libc::sigemptyset(&mut bus);
            libc::sigaddset(&mut bus, libc::SIGBUS);
            bus
        };
        let watched = Watched { number, mask: mask(libc::SIG_UNBLOCK, &bus) };
        // The handler interrupts this very thread: only the compiler could move the stores that follow before all this.
        compiler_fence(Ordering::SeqCst);
        Ok(watched)
    }

    /// Whether what was stored may have gone nowhere.
    pub fn is_torn(&self) -> bool {
        compiler_fence(Ordering::SeqCst);
        WATCHED[self.number].torn.load(Ordering::Relaxed)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        mask(libc::SIG_SETMASK, &self.mask);
        let mut users = users();
        let range = &WATCHED[self.number];
        range.start.store(0, Ordering::Relaxed);
        range.taken.store(false, Ordering::Relaxed);
        *users -= 1;
        let mut standing = action();
        if *users == 0 && standing.sa_sigaction == own() {
            standing.sa_sigaction = BEFORE.0.load(Ordering::Relaxed);
            standing.sa_flags = BEFORE.1.load(Ordering::Relaxed);
            // SAFETY: what the kernel has said was set before.
            unsafe { libc::sigaction(libc::SIGBUS, &standing, std::ptr::null_mut()) };
        }
    }
}

/// Puts memory of nobody's in the place of a watched range that a thread could not store into; the store is then done again.
extern "C" fn handle(signal: libc::c_int, about: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO what the signal is about; a number of this thread's own.
    let (code, address, errno) =
        unsafe { ((*about).si_code, (*about).si_addr().addr(), libc::__errno_location()) };
    // SAFETY: as above.
    let kept = unsafe { *errno };
    let hit = WATCHED.iter().find(|range| {
        // Acquire pairs with the release in `new`.
        let start = range.start.load(Ordering::Acquire);
        start != 0 && address.wrapping_sub(start) < range.length.load(Ordering::Relaxed)
    });
    // Positive: a fault of this thread's, and not what another process has sent.
    if code > 0
        && let Some(range) = hit
    {
        let start = std::ptr::without_provenance_mut(range.start.load(Ordering::Relaxed));
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let length = range.length.load(Ordering::Relaxed);
        // SAFETY: in the place of a mapping that lives, whose owner waits here and was promised no more than that it may be stored into.
        let new = unsafe { libc::mmap(start, length, protection, flags, -1, 0) };
        if new != libc::MAP_FAILED {
            range.torn.store(true, Ordering::Relaxed);
            // SAFETY: as above.
            unsafe { *errno = kept };
            return;
        }
    }
    // Acquire pairs with the release in `new`.
    let flags = BEFORE.1.load(Ordering::Acquire);
    let before = BEFORE.0.load(Ordering::Relaxed);
    if before == libc::SIG_IGN && code <= 0 {
        return;
    }
    if before == libc::SIG_DFL || before == libc::SIG_IGN {
        // SAFETY: the default action; an all-zero action is valid. What a fault did is done again and meets it.
        unsafe {
            let default: libc::sigaction = zeroed();
            libc::sigaction(signal, &default, std::ptr::null_mut());
            if code <= 0 {
                libc::raise(signal);
            }
        }
    } else if flags & libc::SA_SIGINFO != 0 {
        // SAFETY: the program has set this as a handler with these arguments.
        let before: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
            unsafe { std::mem::transmute(before) };
        before(signal, about, context);
    } else {
        // SAFETY: the program has set this as a handler with this argument.
        let before: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(before) };
        before(signal);
    }
}
