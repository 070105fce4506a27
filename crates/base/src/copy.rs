//! Copying between user memory and mapped memory.
//!
//! The C library's `memcpy` becomes `rep movsb` for longer lengths on processors that announce it as fast. On
//! several of them that instruction falls to a sixth of its speed when source and target lie a few bytes apart
//! modulo the page size, which is just how a buffer from `malloc` (16 bytes into its page) lies to anything
//! aligned to a cache line. A plain loop over vector registers does not care, so longer copies use that.

/// Bytes of a cache line.
pub const LINE: usize = 64;

/// Shorter copies are left to the C library, which does not use `rep movsb` for them.
#[cfg(target_arch = "x86_64")]
const LEAST: usize = 1024;

/// Copies `length` bytes from `source` to `target`.
///
/// # Safety
/// The source must be readable, the target writable, and the two must not overlap.
#[inline]
pub unsafe fn copy(source: *const u8, target: *mut u8, length: usize) {
    #[cfg(target_arch = "x86_64")]
    if length >= LEAST && std::is_x86_feature_detected!("avx") {
        // SAFETY: the processor has AVX; the rest is promised by the caller.
        return unsafe { copy_by_vectors(source, target, length) };
    }
    // SAFETY: promised by the caller.
    unsafe { std::ptr::copy_nonoverlapping(source, target, length) }
}

/// # Safety
/// As for [`copy`], and the processor has AVX; `length` is at least 128.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn copy_by_vectors(source: *const u8, target: *mut u8, length: usize) {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_store_si256, _mm256_storeu_si256};
    const VECTOR: usize = size_of::<__m256i>();
    const BLOCK: usize = 4 * VECTOR;
    // SAFETY: every access below lies inside the two ranges: the first and the last block are whole since
    // `length` is at least one block, and the loop ends before the last block.
    unsafe {
        let vector = |at: usize| source.add(at).cast::<__m256i>();
        let place = |at: usize| target.add(at).cast::<__m256i>();
        // Single variables, not arrays: those went through the stack.
        let mut at = VECTOR - target.addr() % VECTOR;
        _mm256_storeu_si256(place(0), _mm256_loadu_si256(vector(0)));
        while at + BLOCK <= length {
            let first = _mm256_loadu_si256(vector(at));
            let second = _mm256_loadu_si256(vector(at + VECTOR));
            let third = _mm256_loadu_si256(vector(at + 2 * VECTOR));
            let fourth = _mm256_loadu_si256(vector(at + 3 * VECTOR));
            _mm256_store_si256(place(at), first);
            _mm256_store_si256(place(at + VECTOR), second);
            _mm256_store_si256(place(at + 2 * VECTOR), third);
            _mm256_store_si256(place(at + 3 * VECTOR), fourth);
            at += BLOCK;
        }
        // The last block again, unaligned.
        let last = length - BLOCK;
        let first = _mm256_loadu_si256(vector(last));
        let second = _mm256_loadu_si256(vector(last + VECTOR));
        let third = _mm256_loadu_si256(vector(last + 2 * VECTOR));
        let fourth = _mm256_loadu_si256(vector(last + 3 * VECTOR));
        _mm256_storeu_si256(place(last), first);
        _mm256_storeu_si256(place(last + VECTOR), second);
        _mm256_storeu_si256(place(last + 2 * VECTOR), third);
        _mm256_storeu_si256(place(last + 3 * VECTOR), fourth);
    }
}

/// Bytes of the target that are fetched while those before them are written.
const FETCHED: usize = 2048;

/// As [`copy`], to memory that another core has read: many of its lines are taken from that core at once, where the stores alone would
/// wait for one after the other.
///
/// # Safety
/// As for [`copy`].
#[inline]
pub unsafe fn copy_to_read(source: *const u8, target: *mut u8, length: usize) {
    let fetch = |from: usize| {
        for at in (from..length.min(from + FETCHED)).step_by(LINE) {
            crate::atomics::fetch_to_write(target.wrapping_add(at));
        }
    };
    fetch(0);
    let mut at = 0;
    while at < length {
        fetch(at + FETCHED);
        // SAFETY: a part of what the caller promises.
        unsafe { copy(source.add(at), target.add(at), FETCHED.min(length - at)) };
        at += FETCHED;
    }
}

/// How many pages are read at once of what another core has written, and bytes of each in turn.
#[cfg(target_arch = "x86_64")]
const PAGES: usize = 4;
#[cfg(target_arch = "x86_64")]
const TURN: usize = 256;

/// As [`copy`], of what another core has written: four pages are read at once, since the processor fetches ahead in each of them, and in
/// one alone not enough to fill the way between two cores.
///
/// # Safety
/// As for [`copy`].
#[inline]
pub unsafe fn copy_written(source: *const u8, target: *mut u8, length: usize) {
    let mut at = 0;
    #[cfg(target_arch = "x86_64")]
    if length >= PAGES * crate::PAGE && std::is_x86_feature_detected!("avx") {
        while at + PAGES * crate::PAGE <= length {
            // SAFETY: the processor has AVX, and so many bytes are a part of what the caller promises.
            unsafe { copy_pages(source.add(at), target.add(at)) };
            at += PAGES * crate::PAGE;
        }
    }
    // SAFETY: the rest of what the caller promises.
    unsafe { copy(source.add(at), target.add(at), length - at) }
}

/// # Safety
/// As for [`copy`] of so many pages, and the processor has AVX.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn copy_pages(source: *const u8, target: *mut u8) {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_storeu_si256};
    for turn in (0..crate::PAGE).step_by(TURN) {
        for page in 0..PAGES {
            let first = page * crate::PAGE + turn;
            for at in (first..first + TURN).step_by(2 * LINE) {
                // SAFETY: two lines inside the pages.
                unsafe {
                    let from = source.add(at).cast::<__m256i>();
                    let to = target.add(at).cast::<__m256i>();
                    let (first, second) = (_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1)));
                    let (third, fourth) = (_mm256_loadu_si256(from.add(2)), _mm256_loadu_si256(from.add(3)));
                    _mm256_storeu_si256(to, first);
                    _mm256_storeu_si256(to.add(1), second);
                    _mm256_storeu_si256(to.add(2), third);
                    _mm256_storeu_si256(to.add(3), fourth);
                }
            }
        }
    }
}

/// As [`copy`], past the caches: what is written does not stay in this core's, and where other cores hold the lines these are
/// not asked for first.
///
/// # Safety
/// As for [`copy`].
#[inline]
pub unsafe fn stream(source: *const u8, target: *mut u8, length: usize) {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx") {
        let before = target.align_offset(64).min(length);
        // SAFETY: the processor has AVX, and behind the first bytes the target is aligned to a line; the rest is promised by the caller.
        return unsafe {
            std::ptr::copy_nonoverlapping(source, target, before);
            stream_by_vectors(source.add(before), target.add(before), length - before);
        };
    }
    // SAFETY: promised by the caller.
    unsafe { copy(source, target, length) }
}

/// # Safety
/// As for [`copy`], and the processor has AVX; the target is aligned to 64 bytes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn stream_by_vectors(source: *const u8, target: *mut u8, length: usize) {
    use std::arch::x86_64::{__m256i, _mm_sfence, _mm256_loadu_si256, _mm256_stream_si256};
    const VECTOR: usize = size_of::<__m256i>();
    let whole = length / LINE * LINE;
    let mut at = 0;
    // SAFETY: whole lines inside the two ranges, then the rest of them.
    unsafe {
        while at < whole {
            let first = _mm256_loadu_si256(source.add(at).cast());
            let second = _mm256_loadu_si256(source.add(at + VECTOR).cast());
            _mm256_stream_si256(target.add(at).cast(), first);
            _mm256_stream_si256(target.add(at + VECTOR).cast(), second);
            at += LINE;
        }
        std::ptr::copy_nonoverlapping(source.add(whole), target.add(whole), length - whole);
        // Such stores are not ordered with others by themselves.
        _mm_sfence();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_stream_arrives_whole() {
        let source: Vec<u8> = (0..5000u32).map(|number| (number * 11 + number / 256) as u8).collect();
        let place = crate::Scratch::new(5000);
        for (from, to, length) in [
            (0, 0, 0),
            (3, 0, 63),
            (0, 0, 64),
            (16, 0, 65),
            (1, 0, 4096),
            (5, 0, 4995),
            (0, 16, 4096),
            (7, 63, 1),
            (9, 33, 20),
            (2, 5, 4000),
        ] {
            place.address().write(&[0xee; 5000]);
            // SAFETY: both ranges lie inside their memory.
            unsafe { stream(source.as_ptr().add(from), place.address().as_ptr().add(to), length) };
            let mut seen = [0; 5000];
            place.address().read(&mut seen);
            assert_eq!(seen[to..to + length], source[from..from + length]);
            assert!(seen[..to].iter().chain(&seen[to + length..]).all(|byte| *byte == 0xee));
        }
    }

    #[test]
    fn what_another_core_has_written_arrives_whole() {
        let source: Vec<u8> = (0..40_000u32).map(|number| (number * 13 + number / 256) as u8).collect();
        for length in [0, 1, 8, 4096, 16_383, 16_384, 16_385, 32_768, 39_000] {
            for (from, to) in [(0, 0), (16, 64), (1, 0), (31, 33)] {
                let mut target = vec![0xee; length + 200];
                // SAFETY: both ranges lie inside their vectors.
                unsafe { copy_written(source.as_ptr().add(from), target.as_mut_ptr().add(to), length) };
                assert_eq!(target[to..to + length], source[from..from + length], "{length} {from} {to}");
                assert!(target[..to].iter().chain(&target[to + length..]).all(|byte| *byte == 0xee));
            }
        }
    }

    #[test]
    fn every_length_and_offset_arrives_and_nothing_beside_it_changes() {
        let source: Vec<u8> = (0..6000u32).map(|number| (number * 7 + number / 256) as u8).collect();
        for length in (0..300).chain(1000..1300).chain([2047, 2048, 4096, 5000]) {
            for (from, to) in [(0, 0), (16, 64), (1, 0), (0, 1), (31, 33), (63, 5)] {
                let mut target = vec![0xee; length + 200];
                // SAFETY: both ranges lie inside their vectors.
                unsafe { copy(source.as_ptr().add(from), target.as_mut_ptr().add(to), length) };
                assert_eq!(target[to..to + length], source[from..from + length], "{length} {from} {to}");
                assert!(target[..to].iter().chain(&target[to + length..]).all(|byte| *byte == 0xee));
            }
        }
    }
}
