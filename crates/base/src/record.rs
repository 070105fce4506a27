//! What may lie in memory that several processes share.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A type that may be viewed at any (aligned) place of shared memory.
///
/// # Safety
/// The type must be `repr(C)` or `repr(transparent)`, valid for every bit pattern, without drop glue, and made
/// only of atomics, so that shared access from several threads and processes is no data race.
pub unsafe trait Record: Sync + Sized {}

/// 32 bits in shared memory, written under some lock: plain (relaxed) access.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Word32(AtomicU32);

/// 64 bits in shared memory, written under some lock: plain (relaxed) access.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Word64(AtomicU64);

// SAFETY: transparent over an atomic.
unsafe impl Record for Word32 {}
// SAFETY: transparent over an atomic.
unsafe impl Record for Word64 {}
// SAFETY: an atomic.
unsafe impl Record for AtomicU32 {}
// SAFETY: an atomic.
unsafe impl Record for AtomicU64 {}
// SAFETY: an array of records has their properties.
unsafe impl<T: Record, const N: usize> Record for [T; N] {}

impl Word32 {
    /// The value.
    #[inline(always)]
    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Replaces the value.
    #[inline(always)]
    pub fn set(&self, value: u32) {
        self.0.store(value, Ordering::Relaxed);
    }
}

impl Word64 {
    /// The value.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Replaces the value.
    #[inline(always)]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// Declares a structure whose fields are all records, laid out as in C, and makes it a [`Record`].
/// Sound to use anywhere, since each field is checked to be a record itself.
#[macro_export]
macro_rules! record {
    ($(#[$meta:meta])* $visibility:vis struct $name:ident {
        $($(#[$field_meta:meta])* $field_visibility:vis $field:ident: $type:ty,)*
    }) => {
        $(#[$meta])*
        #[repr(C)]
        $visibility struct $name {
            $($(#[$field_meta])* $field_visibility $field: $type,)*
        }

        const _: () = {
            const fn is_record<T: $crate::Record>() {}
            $(is_record::<$type>();)*
        };

        // SAFETY: repr(C), and every field is a record, as just checked.
        unsafe impl $crate::Record for $name {}
    };
}
