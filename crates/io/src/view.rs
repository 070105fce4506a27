//! File views (MPI 5.0, section 14.3): the file as a stream of bytes without holes.
//!
//! ```text
//!   file    | displacement |##--#|##--#|##--#| ...      # data of a filetype, - hole
//!   stream                  012    345   678            the bytes that the view shows
//! ```

use parnass_base::UserAddress;
use parnass_datatype::Layout;
use std::fmt;

/// A run of bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// From the start of the file.
    pub offset: u64,
    /// In bytes.
    pub length: u64,
}

impl Run {
    /// One past its last byte.
    pub fn end(self) -> u64 {
        self.offset + self.length
    }
}

/// A view: from a displacement on, the filetype repeats to the end of the file; its data is what the view shows (but see
/// [`View::is_interleaved`]).
///
/// Positions are bytes of the stream, so that an offset in etypes is a position divided by the size of the etype.
#[derive(Clone, Debug)]
pub struct View {
    displacement: u64,
    etype_bytes: u64,
    filetype: Layout,
}

/// Why a view cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewError {
    /// The etype has no data.
    EmptyEtype,
    /// The filetype's size is not a multiple of the etype's.
    NotWholeEtypes { filetype: u64, etype: u64 },
    /// Data of the filetype lies before its start.
    Negative { displacement: i64 },
    /// A displacement of the filetype is below the one before it.
    Decreasing { before: i64, after: i64 },
}

impl fmt::Display for ViewError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ViewError::EmptyEtype => {
                formatter.write_str("the etype has no data; give one with at least one byte")
            }
            ViewError::NotWholeEtypes { filetype, etype } => write!(
                formatter,
                "the filetype has {filetype} bytes of data, the etype {etype}; a filetype is made of whole etypes"
            ),
            ViewError::Negative { displacement } => write!(
                formatter,
                "the filetype has data at displacement {displacement}; in a file displacements must not be negative"
            ),
            ViewError::Decreasing { before, after } => write!(
                formatter,
                "the filetype has data at displacement {after} behind that at {before}; its displacements must not decrease"
            ),
        }
    }
}

impl std::error::Error for ViewError {}

impl View {
    /// The whole file, byte by byte: the view after opening it (where `etype_bytes` is 1).
    pub fn of_bytes(displacement: u64, byte: &Layout) -> View {
        View { displacement, etype_bytes: 1, filetype: byte.clone() }
    }

    /// A view.
    ///
    /// # Errors
    /// What section 14.3 forbids of the filetype.
    pub fn new(displacement: u64, etype_bytes: u64, filetype: &Layout) -> Result<View, ViewError> {
        if etype_bytes == 0 {
            return Err(ViewError::EmptyEtype);
        }
        if !filetype.size().is_multiple_of(etype_bytes) {
            return Err(ViewError::NotWholeEtypes { filetype: filetype.size(), etype: etype_bytes });
        }
        let mut wrong = None;
        let mut before = 0;
        filetype.visit_runs(1, 0, filetype.size(), &mut |offset, _| {
            if offset < 0 {
                wrong = Some(ViewError::Negative { displacement: offset });
            } else if offset < before {
                wrong = Some(ViewError::Decreasing { before, after: offset });
            }
            before = offset;
            wrong.is_none()
        });
        match wrong {
            Some(wrong) => Err(wrong),
            None => Ok(View { displacement, etype_bytes, filetype: filetype.clone() }),
        }
    }

    /// Bytes before the first filetype.
    pub fn displacement(&self) -> u64 {
        self.displacement
    }

    /// Bytes of data in an etype.
    pub fn etype_bytes(&self) -> u64 {
        self.etype_bytes
    }

    /// Whether two pieces of data of one filetype share a byte: such a view may be read, but not written.
    pub fn overlaps(&self) -> bool {
        let (mut end, mut overlaps) = (0, false);
        self.filetype.visit_runs(1, 0, self.filetype.size(), &mut |offset, length| {
            overlaps = offset < end;
            end = offset.wrapping_add_unsigned(length);
            !overlaps
        });
        overlaps
    }

    /// Whether a filetype reaches behind the start of the next one's data. Such a view shows its first filetype only, as in the next
    /// ones displacements would decrease from one byte of the stream to the next. Libraries that build a filetype for a single
    /// access (HDF5 does) leave such extents.
    pub fn is_interleaved(&self) -> bool {
        self.filetype.size() > 0 && self.filetype.extent() < self.filetype.true_extent()
    }

    /// Whether the stream is the file from the displacement on.
    pub fn is_contiguous(&self) -> bool {
        self.filetype.contiguous(2).is_some()
    }

    /// Whether all bytes `start .. start + length` of the stream lie within a file of less than 2^63 bytes. A view without data
    /// shows none.
    pub fn reaches(&self, start: u64, length: u64) -> bool {
        let Some(end) = start.checked_add(length) else { return false };
        if length == 0 {
            return true;
        }
        let Some(filetypes) = end.checked_sub(1).and_then(|last| last.checked_div(self.filetype.size()))
        else {
            return false;
        };
        if filetypes > 0 && self.is_interleaved() {
            return false;
        }
        let start = u128::from(filetypes) * self.filetype.extent().unsigned_abs() as u128;
        let span = (self.filetype.true_lower_bound() + self.filetype.true_extent()).unsigned_abs();
        u128::from(self.displacement) + start + u128::from(span) <= i64::MAX as u128
    }

    /// Visits the runs of the file that hold the bytes `start .. start + length` of the stream, in their order, until `visit`
    /// returns false. Runs that touch are one. Ask [`View::reaches`] first.
    pub fn visit(&self, start: u64, length: u64, visit: &mut dyn FnMut(Run) -> bool) {
        let mut pending: Option<Run> = None;
        let mut goes_on = true;
        self.filetype.visit_runs(u64::MAX, start, length, &mut |offset, length| {
            let run = Run { offset: self.displacement.wrapping_add_signed(offset), length };
            match &mut pending {
                Some(before) if before.end() == run.offset => before.length += length,
                Some(before) => {
                    goes_on = visit(*before);
                    pending = Some(run);
                }
                None => pending = Some(run),
            }
            goes_on
        });
        if goes_on && let Some(last) = pending {
            visit(last);
        }
    }

    /// Copies the bytes `start .. start + length` of the stream to their places in memory that looks like the file; `file` is where
    /// its byte 0 would be, and only the bytes that the view shows are touched.
    pub fn scatter(&self, start: u64, length: u64, stream: UserAddress, file: UserAddress) {
        let first = file.offset(self.displacement as i64);
        self.filetype.unpack(u64::MAX, first, start, stream, length);
    }

    /// The other way: copies the bytes `start .. start + length` of the stream out of such memory.
    pub fn gather(&self, start: u64, length: u64, file: UserAddress, stream: UserAddress) {
        let first = file.offset(self.displacement as i64);
        self.filetype.pack(u64::MAX, first, start, stream, length);
    }

    /// The place in the file of a byte of the stream. Of a view without data: the displacement.
    pub fn offset_of(&self, position: u64) -> u64 {
        let mut found = self.displacement;
        self.filetype.visit_runs(u64::MAX, position, 1, &mut |offset, _| {
            found = self.displacement.wrapping_add_signed(offset);
            false
        });
        found
    }

    /// How many bytes of the stream lie before a place in the file.
    pub fn position_at(&self, offset: u64) -> u64 {
        let (size, extent) = (self.filetype.size(), self.filetype.extent());
        let inside = offset.saturating_sub(self.displacement).min(i64::MAX as u64);
        if size == 0 || inside == 0 {
            return 0;
        }
        let span = (self.filetype.true_lower_bound() + self.filetype.true_extent()) as u64;
        // Filetypes that lie before the place as a whole; where more than one is shown, an extent is at least the span of the data.
        let whole =
            if inside >= span && !self.is_interleaved() { (inside - span) / extent as u64 + 1 } else { 0 };
        let start = whole * size;
        // In the next one: the first byte of the stream that is not before the place.
        let (mut low, mut high) = (0, size);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.offset_of(start + middle) < offset { low = middle + 1 } else { high = middle }
        }
        start + low
    }
}
