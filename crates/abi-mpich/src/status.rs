//! Statuses: the two layouts, and the places where a call reads or writes one.

use crate::codes::{code_in, code_out};
use crate::generated::tables::{MPI_STATUS_IGNORE, rank_in, rank_out, tag_in, tag_out};
use std::ffi::c_int;

/// MPI_Status of MPICH.
///
/// ```text
///   0          4                        8            12        16
///   | count_lo | count_hi and cancelled | MPI_SOURCE | MPI_TAG | MPI_ERROR |
/// ```
///
/// The lowest bit of the second field says whether it was cancelled; the others go above those of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Status {
    pub count_lo: c_int,
    pub count_hi_and_cancelled: c_int,
    pub source: c_int,
    pub tag: c_int,
    pub error: c_int,
}

/// MPI_Status of the standard, with what Parnass keeps in its internal part (`StatusRecord` of
/// `crates/abi/src/arguments/results.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct StandardStatus {
    source: c_int,
    tag: c_int,
    error: c_int,
    cancelled: c_int,
    size: [c_int; 2],
    unused: [c_int; 2],
}

const _: () = assert!(size_of::<Status>() == 20 && size_of::<StandardStatus>() == 32);

/// In a field that the call has not written. No source, tag or error code has this value.
const UNTOUCHED: c_int = c_int::MIN + 0x5a5a;

impl StandardStatus {
    /// One that shows what a call writes.
    pub const UNTOUCHED: StandardStatus = StandardStatus {
        source: UNTOUCHED,
        tag: UNTOUCHED,
        error: UNTOUCHED,
        cancelled: 0,
        size: [0; 2],
        unused: [0; 2],
    };

    /// The standard's form of a status.
    pub fn of(status: &Status) -> StandardStatus {
        StandardStatus {
            source: rank_in(status.source),
            tag: tag_in(status.tag),
            error: code_in(status.error),
            cancelled: status.count_hi_and_cancelled & 1,
            size: [status.count_lo, (status.count_hi_and_cancelled as u32 >> 1) as c_int],
            unused: [0; 2],
        }
    }

    /// Writes what a call has written here into a status of the program.
    #[inline]
    pub fn give(&self, status: &mut Status) {
        if self.source != UNTOUCHED {
            status.source = rank_out(self.source);
            status.tag = tag_out(self.tag);
            status.count_lo = self.size[0];
            status.count_hi_and_cancelled = (self.size[1] << 1) | c_int::from(self.cancelled != 0);
        }
        if self.error != UNTOUCHED {
            status.error = code_out(self.error);
        }
    }
}

/// Whether the program wants no status. (A null pointer is taken for MPI_STATUS_IGNORE too.)
#[inline(always)]
fn is_ignored(place: *const Status) -> bool {
    place.addr() <= MPI_STATUS_IGNORE.0
}

/// A status that the call writes, if the program wants it.
pub struct StatusOut {
    place: *mut Status,
    record: StandardStatus,
}

impl StatusOut {
    /// Takes the program's place.
    #[inline(always)]
    pub fn new(place: *mut Status) -> StatusOut {
        StatusOut { place, record: StandardStatus::UNTOUCHED }
    }

    /// What the standard's library gets.
    #[inline(always)]
    pub fn place(&mut self) -> *mut StandardStatus {
        if is_ignored(self.place) { std::ptr::null_mut() } else { &mut self.record }
    }

    /// Writes the status.
    ///
    /// # Safety
    /// The place is the program's, for a status.
    #[inline(always)]
    pub unsafe fn finish(&self) {
        if !is_ignored(self.place) {
            // SAFETY: the caller's promise; a status is made of integers.
            self.record.give(unsafe { &mut *self.place });
        }
    }
}

/// A status that the call changes.
pub struct StatusInOut {
    place: *mut Status,
    record: StandardStatus,
}

impl StatusInOut {
    /// Takes the program's status.
    ///
    /// # Safety
    /// It is MPI_STATUS_IGNORE, or a status.
    pub unsafe fn new(place: *mut Status) -> StatusInOut {
        // SAFETY: the caller's promise.
        StatusInOut { place, record: unsafe { read(place) }.unwrap_or(StandardStatus::UNTOUCHED) }
    }

    /// What the standard's library gets.
    pub fn place(&mut self) -> *mut StandardStatus {
        if is_ignored(self.place) { std::ptr::null_mut() } else { &mut self.record }
    }

    /// Writes the status.
    ///
    /// # Safety
    /// As for [`StatusInOut::new`].
    pub unsafe fn finish(&self) {
        if !is_ignored(self.place) {
            // SAFETY: the caller's promise.
            self.record.give(unsafe { &mut *self.place });
        }
    }
}

/// A status that the call reads.
pub struct StatusIn(Option<StandardStatus>);

impl StatusIn {
    /// Takes the program's status.
    ///
    /// # Safety
    /// It is MPI_STATUS_IGNORE, or a status.
    #[inline]
    pub unsafe fn new(place: *const Status) -> StatusIn {
        // SAFETY: the caller's promise.
        StatusIn(unsafe { read(place) })
    }

    /// What the standard's library gets.
    #[inline]
    pub fn place(&self) -> *const StandardStatus {
        self.0.as_ref().map_or(std::ptr::null(), std::ptr::from_ref)
    }
}

/// # Safety
/// It is MPI_STATUS_IGNORE, or a status.
#[inline]
unsafe fn read(place: *const Status) -> Option<StandardStatus> {
    // SAFETY: the caller's promise.
    (!is_ignored(place)).then(|| StandardStatus::of(unsafe { &*place }))
}

/// An array of statuses that the call writes, if the program wants it.
pub struct StatusesOut {
    place: *mut Status,
    records: Vec<StandardStatus>,
}

impl StatusesOut {
    /// Takes the program's array.
    pub fn new(place: *mut Status, length: i64) -> StatusesOut {
        let length = if is_ignored(place) { 0 } else { usize::try_from(length).unwrap_or(0) };
        StatusesOut { place, records: vec![StandardStatus::UNTOUCHED; length] }
    }

    /// What the standard's library gets.
    pub fn place(&mut self) -> *mut StandardStatus {
        if is_ignored(self.place) { std::ptr::null_mut() } else { self.records.as_mut_ptr() }
    }

    /// Writes the statuses that the call has written.
    ///
    /// # Safety
    /// The array is the program's and as long as it said.
    pub unsafe fn finish(&self) {
        for (index, record) in self.records.iter().enumerate() {
            // SAFETY: the caller's promise.
            record.give(unsafe { &mut *self.place.add(index) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for (lo, hi) in [(0, 0), (8, 1), (-1, 0x7fff_fffe), (-1, 3)] {
            let status = Status { count_lo: lo, count_hi_and_cancelled: hi, source: -2, tag: -1, error: 14 };
            let mut back = Status { count_lo: 9, count_hi_and_cancelled: 9, source: 9, tag: 9, error: 9 };
            let standard = StandardStatus::of(&status);
            assert_eq!((standard.source, standard.tag, standard.error), (-1, -2, 15));
            standard.give(&mut back);
            assert_eq!(back, status);
        }
    }

    #[test]
    fn what_is_not_written_stays() {
        let before = Status { count_lo: 1, count_hi_and_cancelled: 2, source: 3, tag: 4, error: 5 };
        let mut status = before;
        let mut out = StatusOut::new(&mut status);
        assert!(!out.place().is_null());
        // SAFETY: the place is a status.
        unsafe { out.finish() };
        assert_eq!(status, before);
        assert!(StatusOut::new(std::ptr::without_provenance_mut(1)).place().is_null());
    }
}
