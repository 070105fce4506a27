//! The clock that all processes of a machine share.

/// Nanoseconds since some time in the past, the same for all processes; never 0.
#[inline]
pub fn nanoseconds() -> u64 {
    read(libc::CLOCK_MONOTONIC).max(1)
}

/// How many nanoseconds the threads of this process have had a processor, all together.
pub fn processor_nanoseconds() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

#[inline(always)]
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the time to a place for one. Both clocks always exist.
    unsafe { libc::clock_gettime(clock, &mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

#[cfg(all(test, not(loom)))]
mod tests {
    #[test]
    fn the_clock_does_not_go_back() {
        let first = super::nanoseconds();
        assert!(first > 0 && super::nanoseconds() >= first);
    }
}

/// Lets a while pass, of about a nanosecond for each step. Each one needs the result of the last, so that a core has nearly all of its units left for another
/// thread that it may run besides.
#[inline]
pub fn idle(steps: u32) {
    let mut number = std::hint::black_box(3u64);
    for _ in 0..steps {
        number = number.wrapping_mul(number);
    }
    std::hint::black_box(number);
}
