//! Runs that lie close together, to be read or written as one (data sieving).
//!
//! ```text
//!   file      |##-#--##|-------------|#-##|---------      # runs of an access, - holes
//!   stretch    <------>               <-->                no hole inside is longer than the limit
//! ```

use crate::{Run, View};
use parnass_base::PAGE;

/// Where no hole is longer than this, no page of the stretch lies in a hole as a whole: to map it gives storage to no page that
/// writing the runs one by one would leave out.
pub const LONGEST_HOLE_IN_PAGES: u64 = PAGE as u64 - 1;

/// Whether to write so many runs through a mapping of their stretch is likely cheaper than one call for each: a page that is
/// brought in costs about as much as a call, and the mapping itself as much as a few.
pub fn mapping_pays(runs: u64, span_bytes: u64) -> bool {
    runs > 8 + span_bytes / PAGE as u64
}

/// How far a stretch may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest hole inside.
    pub hole_bytes: u64,
    /// From the first byte to one past the last. A run that is longer alone is a stretch of its own.
    pub span_bytes: u64,
}

/// Successive runs of an access, none of which begins before the end of the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Where the first run begins in the file.
    pub offset: u64,
    pub last: Run,
    pub runs: u64,
    /// Bytes in all runs.
    pub bytes: u64,
}

impl Stretch {
    /// One past the last byte.
    pub fn end(&self) -> u64 {
        self.last.end()
    }

    /// Bytes of the runs and the holes between them.
    pub fn span(&self) -> u64 {
        self.end() - self.offset
    }
}

impl View {
    /// The first stretch of the bytes `start .. start + length` of the stream; `length` is not 0. Ask [`View::reaches`] first.
    pub fn stretch(&self, start: u64, length: u64, limits: Limits) -> Stretch {
        let mut stretch: Option<Stretch> = None;
        self.visit(start, length, &mut |run| match &mut stretch {
            None => {
                stretch = Some(Stretch { offset: run.offset, last: run, runs: 1, bytes: run.length });
                run.length < limits.span_bytes
            }
            Some(stretch) => {
                let hole = run.offset.checked_sub(stretch.end());
                let fits = hole.is_some_and(|hole| hole <= limits.hole_bytes)
                    && run.end() - stretch.offset <= limits.span_bytes;
                if fits {
                    stretch.last = run;
                    stretch.runs += 1;
                    stretch.bytes += run.length;
                }
                fits
            }
        });
        let nothing = Run { offset: self.displacement(), length: 0 };
        stretch.unwrap_or(Stretch { offset: nothing.offset, last: nothing, runs: 0, bytes: 0 })
    }
}
