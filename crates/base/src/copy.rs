//! Copying between user memory and mapped memory.
//!
//! The C library's `memcpy` becomes `rep movsb` for longer lengths on processors that announce it as fast. On
//! several of them that instruction falls to a sixth of its speed when source and target lie a few bytes apart
//! modulo the page size, which is just how a buffer from `malloc` (16 bytes into its page) lies to anything
//! aligned to a cache line. A plain loop over vector registers does not care, so longer copies use that. On others
//! it takes lines from other cores four times as fast as that loop, see [`copy_to_read`].

/// Bytes of a cache line.
pub const LINE: usize = 64;

/// Shorter copies are over before that helps.
#[cfg(target_arch = "x86_64")]
const FETCHING_LEAST: usize = 4096;
/// So far ahead they are fetched, and where lines of several places are copied in turn.
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = 1024;
#[cfg(target_arch = "x86_64")]
const ROW_AHEAD: usize = 512;

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
        return unsafe { copy_by_vectors::<false>(source, target, length) };
    }
    // SAFETY: promised by the caller.
    unsafe { std::ptr::copy_nonoverlapping(source, target, length) }
}

/// As [`copy`], in line, of at most a line: few moves of fixed lengths, which overlap.
///
/// # Safety
/// As for [`copy`].
#[cfg(not(loom))]
#[inline(always)]
pub(crate) unsafe fn copy_few(source: *const u8, target: *mut u8, length: usize) {
    debug_assert!(length <= LINE);
    // SAFETY: every move lies inside the two ranges.
    unsafe {
        match length {
            32.. => move_parts::<u128, 4>(source, target, [0, 16, length - 32, length - 16]),
            16.. => move_parts::<u128, 2>(source, target, [0, length - 16]),
            8.. => move_parts::<u64, 2>(source, target, [0, length - 8]),
            _ => (0..length).for_each(|at| target.add(at).write(source.add(at).read())),
        }
    }
}

/// Copies what lies at each of the places: all is read before the first is written.
///
/// # Safety
/// As for [`copy`], of all places.
#[cfg(not(loom))]
#[inline(always)]
unsafe fn move_parts<T: Copy, const PARTS: usize>(
    source: *const u8,
    target: *mut u8,
    places: [usize; PARTS],
) {
    // SAFETY: promised by the caller.
    unsafe {
        let parts = places.map(|at| source.add(at).cast::<T>().read_unaligned());
        for (at, part) in places.into_iter().zip(parts) {
            target.add(at).cast::<T>().write_unaligned(part);
        }
    }
}

/// As [`copy`], of what another core has just written, to memory that may lie in no cache of this core: many lines are on their way at once. How depends on
/// the processor.
///
/// # Safety
/// As for [`copy`].
#[inline]
pub unsafe fn copy_from_written(source: *const u8, target: *mut u8, length: usize) {
    #[cfg(target_arch = "x86_64")]
    if length >= FETCHING_LEAST {
        if has_fast_moves() {
            // SAFETY: promised by the caller.
            return unsafe {
                if (MOVED_FROM..=MOVED_MOST).contains(&length) {
                    move_bytes(source, target, length)
                } else {
                    copy(source, target, length)
                }
            };
        }
        if std::is_x86_feature_detected!("avx") {
            // SAFETY: the processor has AVX; the rest is promised by the caller.
            return unsafe { copy_by_vectors::<true>(source, target, length) };
        }
    }
    // SAFETY: promised by the caller.
    unsafe { copy(source, target, length) }
}

/// # Safety
/// As for [`copy`], and the processor has AVX; `length` is at least 128.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn copy_by_vectors<const FETCHES: bool>(source: *const u8, target: *mut u8, length: usize) {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_store_si256, _mm256_storeu_si256};
    const VECTOR: usize = size_of::<__m256i>();
    const BLOCK: usize = 4 * VECTOR;
    // SAFETY: every access below lies inside the two ranges: the first and the last block are whole since
    // `length` is at least one block, and the loops take whole strides and blocks of what is left.
    unsafe {
        let vector = |at: usize| source.add(at).cast::<__m256i>();
        let place = |at: usize| target.add(at).cast::<__m256i>();
        let fetch = |at: usize| {
            if FETCHES {
                crate::atomics::fetch_to_write(place(at.min(length - 1)));
            }
        };
        if FETCHES {
            (0..AHEAD).step_by(LINE).for_each(fetch);
        }
        let mut at = LINE - target.addr() % LINE;
        _mm256_storeu_si256(place(0), _mm256_loadu_si256(vector(0)));
        _mm256_storeu_si256(place(VECTOR), _mm256_loadu_si256(vector(VECTOR)));
        let ahead = read_ahead(length);
        while ahead == 0
            && let Some(stride) = stride(length - at)
        {
            for line in (at..at + stride).step_by(LINE) {
                let both = |row: usize| {
                    let from = line + row * stride;
                    fetch(from + ROW_AHEAD);
                    (_mm256_loadu_si256(vector(from)), _mm256_loadu_si256(vector(from + VECTOR)))
                };
                let store = |row: usize, (first, second)| {
                    let to = line + row * stride;
                    _mm256_store_si256(place(to), first);
                    _mm256_store_si256(place(to + VECTOR), second);
                };
                let (first, second, third, fourth) = (both(0), both(1), both(2), both(3));
                store(0, first);
                store(1, second);
                store(2, third);
                store(3, fourth);
            }
            at += ROWS * stride;
        }
        while at + BLOCK <= length {
            if ahead != 0 {
                for line in [at + ahead, at + ahead + LINE] {
                    crate::atomics::fetch_to_read_later(vector(line.min(length - 1)));
                }
            }
            // Single variables, not arrays: those went through the stack.
            let first = _mm256_loadu_si256(vector(at));
            let second = _mm256_loadu_si256(vector(at + VECTOR));
            let third = _mm256_loadu_si256(vector(at + 2 * VECTOR));
            let fourth = _mm256_loadu_si256(vector(at + 3 * VECTOR));
            _mm256_store_si256(place(at), first);
            _mm256_store_si256(place(at + VECTOR), second);
            _mm256_store_si256(place(at + 2 * VECTOR), third);
            _mm256_store_si256(place(at + 3 * VECTOR), fourth);
            fetch(at + AHEAD);
            fetch(at + AHEAD + LINE);
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

/// Copies from this length on fetch what they read ahead of that, on cores of Intel's.
#[cfg(target_arch = "x86_64")]
const READ_AHEAD_LEAST: usize = 32 << 10;

/// How far ahead lines are fetched into the second cache, where a core waits for more of them at once than in the first one: that counts where they come from
/// another core (64 KiB from one that is 150 ns away 4.4 and 3.8 us, 128 KiB 9.1 and 8.3).
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn read_ahead(length: usize) -> usize {
    if length >= READ_AHEAD_LEAST && is_intels() { 2048 } else { 0 }
}

/// Bytes that a longer copy takes from several places in turn, each at most a page long.
#[cfg(target_arch = "x86_64")]
const ROWS: usize = 4;
#[cfg(target_arch = "x86_64")]
const ROW: usize = 4096;
/// Where less than so much is left, it is copied from one end to the other.
#[cfg(target_arch = "x86_64")]
const ROWS_LEAST: usize = ROWS * ROW - 256;

/// How far apart the places are that a copy takes lines from in turn when so much is left. A core of Intel's fetches ahead page by page, each by itself: from
/// several pages at once more lines are on their way, which counts where they come from another core. On other cores it halves the speed: on those of
/// AMD's lines of several pages are in each other's way.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn stride(left: usize) -> Option<usize> {
    (left >= ROWS_LEAST && is_intels()).then(|| (left / ROWS).min(ROW) / LINE * LINE)
}

/// Whether this processor is one of Intel's. What helps those to have lines passed on from core to core makes others slower.
#[inline]
pub fn is_intels() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        static KNOWN: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
        *KNOWN.get_or_init(|| is_made_by(b"GenuineIntel"))
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Whether the processor calls its maker so.
#[cfg(target_arch = "x86_64")]
fn is_made_by(maker: &[u8; 12]) -> bool {
    let name = std::arch::x86_64::__cpuid(0);
    [name.ebx, name.edx, name.ecx].map(u32::to_ne_bytes).as_flattened() == maker
}

/// Whether `rep movsb` asks for the lines that it will write whole, and for many at once, however source and target lie to each other: AMD's cores from
/// Zen 5 on (16 KiB to another part of the chip: 0.6 us, by vectors 2.4; between neighbours 0.28 and 0.45).
#[cfg(target_arch = "x86_64")]
#[inline]
fn has_fast_moves() -> bool {
    static KNOWN: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *KNOWN.get_or_init(|| {
        let signature = std::arch::x86_64::__cpuid(1).eax;
        let family = (signature >> 8 & 0xf) + (signature >> 20 & 0xff);
        let leaves = std::arch::x86_64::__cpuid(0).eax;
        let announced = leaves >= 7 && std::arch::x86_64::__cpuid_count(7, 0).edx >> 4 & 1 == 1;
        is_made_by(b"AuthenticAMD") && family >= 0x1a && announced
    })
}

/// Shorter copies, which another core reads as they are written, are over before such a move has begun.
#[cfg(target_arch = "x86_64")]
const MOVED_LEAST: usize = 2048;

/// What is shorter or longer, and was written by another core, is read as fast by vectors, and more steadily (between neighbours 16 KiB in a row 0.35 us, by
/// moves sometimes 0.9; 1 MiB at once 20 us and 26).
#[cfg(target_arch = "x86_64")]
const MOVED_FROM: usize = (32 << 10) + 1;
#[cfg(target_arch = "x86_64")]
const MOVED_MOST: usize = 64 << 10;

/// Bytes of the target that are fetched while those before them are written.
const FETCHED: usize = 2048;

/// As [`copy`], to memory that another core has read: many of its lines are taken from that core at once, where plain stores alone would wait for one after
/// the other. How depends on the processor.
///
/// # Safety
/// As for [`copy`].
#[inline]
pub unsafe fn copy_to_read(source: *const u8, target: *mut u8, length: usize) {
    if !is_intels() {
        #[cfg(target_arch = "x86_64")]
        if length >= MOVED_LEAST && has_fast_moves() {
            // SAFETY: promised by the caller.
            return unsafe { move_bytes(source, target, length) };
        }
        // SAFETY: promised by the caller.
        return unsafe { copy(source, target, length) };
    }
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

/// As [`copy_to_read`], of what is read when all is there.
///
/// # Safety
/// As for [`copy`].
#[inline]
pub unsafe fn copy_to_read_later(source: *const u8, target: *mut u8, length: usize) {
    #[cfg(target_arch = "x86_64")]
    if has_fast_moves() {
        // SAFETY: promised by the caller.
        return unsafe { move_bytes(source, target, length) };
    }
    // SAFETY: promised by the caller.
    unsafe { copy_to_read(source, target, length) }
}

/// # Safety
/// As for [`copy`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn move_bytes(source: *const u8, target: *mut u8, length: usize) {
    // SAFETY: what it reads and writes was promised by the caller, and the direction is forwards, as the calling convention has it.
    unsafe {
        std::arch::asm!(
            "rep movsb", inout("rcx") length => _, inout("rdi") target => _, inout("rsi") source => _,
            options(nostack, preserves_flags)
        );
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
        let both = |from: usize| {
            (
                _mm256_loadu_si256(source.add(from).cast()),
                _mm256_loadu_si256(source.add(from + VECTOR).cast()),
            )
        };
        let store = |to: usize, (first, second)| {
            _mm256_stream_si256(target.add(to).cast(), first);
            _mm256_stream_si256(target.add(to + VECTOR).cast(), second);
        };
        while let Some(stride) = stride(whole - at) {
            for line in (at..at + stride).step_by(LINE) {
                let row = |number: usize| line + number * stride;
                let (first, second, third, fourth) = (both(row(0)), both(row(1)), both(row(2)), both(row(3)));
                store(row(0), first);
                store(row(1), second);
                store(row(2), third);
                store(row(3), fourth);
            }
            at += ROWS * stride;
        }
        while at < whole {
            store(at, both(at));
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
        let source: Vec<u8> = (0..41_000u32).map(|number| (number * 11 + number / 256) as u8).collect();
        let place = crate::Scratch::new(41_000);
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
            (0, 0, 16384),
            (9, 16, 40_000),
            (1, 33, 33_333),
        ] {
            place.address().write(&[0xee; 41_000]);
            // SAFETY: both ranges lie inside their memory.
            unsafe { stream(source.as_ptr().add(from), place.address().as_ptr().add(to), length) };
            let mut seen = [0; 41_000];
            place.address().read(&mut seen);
            assert_eq!(seen[to..to + length], source[from..from + length]);
            assert!(seen[..to].iter().chain(&seen[to + length..]).all(|byte| *byte == 0xee));
        }
    }

    #[test]
    fn every_length_and_offset_arrives_and_nothing_beside_it_changes() {
        let source: Vec<u8> = (0..41_000u32).map(|number| (number * 7 + number / 256) as u8).collect();
        for length in
            (0..300).chain(1000..1300).chain([2047, 2048, 4096, 5000, 16_200, 16_384, 16_500, 33_333, 40_000])
        {
            for (from, to) in [(0, 0), (16, 64), (1, 0), (0, 1), (31, 33), (63, 5)] {
                let mut target = vec![0xee; length + 200];
                for how in [copy, copy_from_written, copy_to_read, copy_to_read_later] {
                    target.fill(0xee);
                    // SAFETY: both ranges lie inside their vectors.
                    unsafe { how(source.as_ptr().add(from), target.as_mut_ptr().add(to), length) };
                    assert_eq!(target[to..to + length], source[from..from + length], "{length} {from} {to}");
                    assert!(target[..to].iter().chain(&target[to + length..]).all(|byte| *byte == 0xee));
                }
            }
        }
    }
}
