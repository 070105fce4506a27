//! The slots of a lane: cache lines whose first word says which message of the ring they belong to, and how their bytes are written and
//! read.

use crate::address::UserAddress;
use crate::atomics::{AtomicU64, Ordering, hand_over};
#[cfg(not(loom))]
use crate::copy::copy_few;

/// Words of a slot besides word 0.
pub const WORDS: usize = 7;
/// Bytes of a slot.
pub(crate) const SLOT_BYTES: usize = WORDS * 8;

pub(crate) const SEQUENCE: u64 = (1 << 24) - 1;
pub(crate) const FURTHER_SHIFT: u32 = 24;
pub(crate) const TAG_SHIFT: u32 = 32;

/// The `length` bytes at `source` in words, for [`write_words`]; the rest is 0.
#[inline(always)]
pub fn read_words<const COUNT: usize>(source: UserAddress, length: usize) -> [u64; COUNT] {
    let mut words = [0; COUNT];
    let whole = length / 8;
    for (index, word) in words.iter_mut().enumerate().take(whole) {
        *word = source.offset(index as i64 * 8).read_word();
    }
    if !length.is_multiple_of(8) {
        words[whole] = source.offset(whole as i64 * 8).read_part(length % 8);
    }
    words
}

/// Writes the first `length` bytes of `words`.
#[inline(always)]
pub fn write_words(words: &[u64], target: UserAddress, length: usize) {
    if length == 8 {
        return target.write_word(words[0]);
    }
    let whole = length / 8;
    for (index, word) in words.iter().enumerate().take(whole) {
        target.offset(index as i64 * 8).write_word(*word);
    }
    if !length.is_multiple_of(8) {
        target.offset(whole as i64 * 8).write_part(words[whole], length % 8);
    }
}

/// One slot: a cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Slot {
    pub(crate) words: [AtomicU64; 8],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Slot>() == 64);

#[cfg(not(loom))]
// SAFETY: repr(C), made of atomics.
unsafe impl crate::record::Record for Slot {}

impl Default for Slot {
    fn default() -> Self {
        Slot { words: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

impl Slot {
    /// Writes `length` bytes behind the first `skip` words of the message.
    #[inline(always)]
    pub(crate) fn fill(&self, skip: usize, source: UserAddress, length: usize) {
        #[cfg(not(loom))]
        {
            assert!(length <= (WORDS - skip) * 8);
            let words = self.words[1 + skip..].as_ptr().cast::<u8>().cast_mut();
            // SAFETY: inside the slot, which is this producer's until it is committed; the source is the user's memory.
            unsafe { copy_few(source.as_ptr(), words, length) };
        }
        #[cfg(loom)]
        for (index, word) in
            read_words::<WORDS>(source, length).into_iter().enumerate().take(length.div_ceil(8))
        {
            self.words[1 + skip + index].store(word, Ordering::Relaxed);
        }
    }

    /// Copies `length` bytes behind the first `skip` words of the message to `target`.
    #[inline(always)]
    pub(crate) fn pour(&self, skip: usize, target: UserAddress, length: usize) {
        #[cfg(not(loom))]
        {
            assert!(length <= (WORDS - skip) * 8);
            let words = self.words[1 + skip..].as_ptr().cast::<u8>();
            // SAFETY: inside the slot, which nobody writes to while it is committed and not given back; the target is the user's memory.
            unsafe { copy_few(words, target.as_ptr(), length) };
        }
        #[cfg(loom)]
        {
            let words: [u64; WORDS] =
                std::array::from_fn(|index| self.words[1 + index].load(Ordering::Relaxed));
            write_words(&words[skip..], target, length);
        }
    }

    /// Whether it has been committed at this position.
    #[inline(always)]
    pub(crate) fn is_at(&self, position: u64) -> bool {
        // Acquire pairs with the release in `commit`.
        self.words[0].load(Ordering::Acquire) & SEQUENCE == (position + 1) & SEQUENCE
    }

    #[inline(always)]
    pub(crate) fn commit(&self, position: u64, further: usize, tag: u32) {
        let sequence = (position + 1) & SEQUENCE;
        let word = u64::from(tag) << TAG_SHIFT | (further as u64) << FURTHER_SHIFT | sequence;
        // Release pairs with the acquire in `peek`.
        self.words[0].store(word, Ordering::Release);
    }

    /// It belongs to no message: no position is 0 of its sequence but one that has just been committed.
    pub(crate) fn wipe(&self) {
        self.words[0].store(0, Ordering::Relaxed);
    }

    /// Commits a slot that is not the first of its message.
    #[inline(always)]
    pub(crate) fn commit_further(&self, position: u64, hands_over: bool) {
        self.commit(position, 0, 0);
        if hands_over {
            hand_over(self);
        }
    }
}

/// Fills slots, the first of them at `position`, with the bytes of a message from `source` on, and commits one after the other.
#[inline]
pub(crate) fn fill(slots: &[Slot], position: u64, source: UserAddress, hands_over: bool) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    if slots.len() > 1 && std::is_x86_feature_detected!("avx") {
        // SAFETY: the processor has AVX; the claimed slots are this producer's until they are committed, and the source is the user's
        // memory of `slots.len() * SLOT_BYTES` bytes.
        return unsafe { fill_by_vectors(slots, position, source, hands_over) };
    }
    for (index, slot) in slots.iter().enumerate() {
        slot.fill(0, source.offset((index * SLOT_BYTES) as i64), SLOT_BYTES);
        slot.commit_further(position + index as u64, hands_over);
    }
}

/// Copies all bytes of the message in slots that have been committed to `target`.
#[inline]
pub(crate) fn pour(slots: &[Slot], target: UserAddress) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    if slots.len() > 1 && std::is_x86_feature_detected!("avx") {
        // SAFETY: the processor has AVX; nobody writes to slots that are committed and not given back, and the target is the user's
        // memory of `slots.len() * SLOT_BYTES` bytes.
        return unsafe { pour_by_vectors(slots, target) };
    }
    for (index, slot) in slots.iter().enumerate() {
        slot.pour(0, target.offset((index * SLOT_BYTES) as i64), SLOT_BYTES);
    }
}

/// As [`fill`].
///
/// # Safety
/// The processor has AVX. The slots are claimed by this producer and not committed. The source may be read.
#[cfg(all(target_arch = "x86_64", not(loom)))]
#[target_feature(enable = "avx")]
unsafe fn fill_by_vectors(slots: &[Slot], position: u64, source: UserAddress, hands_over: bool) {
    use std::arch::x86_64::{_mm256_loadu_si256, _mm256_storeu_si256};
    for (index, slot) in slots.iter().enumerate() {
        // SAFETY: 56 bytes of the source, to the seven words behind word 0, by two vectors that share eight bytes.
        unsafe {
            let bytes = source.as_ptr().add(index * SLOT_BYTES);
            let words = slot.words.as_ptr().cast::<u8>().cast_mut();
            _mm256_storeu_si256(words.add(8).cast(), _mm256_loadu_si256(bytes.cast()));
            _mm256_storeu_si256(words.add(32).cast(), _mm256_loadu_si256(bytes.add(24).cast()));
        }
        slot.commit_further(position + index as u64, hands_over);
    }
}

/// As [`pour`].
///
/// # Safety
/// The processor has AVX. The slots are committed and not given back. The target may be written.
#[cfg(all(target_arch = "x86_64", not(loom)))]
#[target_feature(enable = "avx")]
unsafe fn pour_by_vectors(slots: &[Slot], target: UserAddress) {
    use std::arch::x86_64::{_mm256_loadu_si256, _mm256_storeu_si256};
    for (index, slot) in slots.iter().enumerate() {
        // SAFETY: the seven words behind word 0, to 56 bytes of the target, by two vectors that share eight bytes.
        unsafe {
            let words = slot.words.as_ptr().cast::<u8>();
            let bytes = target.as_ptr().add(index * SLOT_BYTES);
            let (first, second) =
                (_mm256_loadu_si256(words.add(8).cast()), _mm256_loadu_si256(words.add(32).cast()));
            _mm256_storeu_si256(bytes.cast(), first);
            _mm256_storeu_si256(bytes.add(24).cast(), second);
        }
    }
}
