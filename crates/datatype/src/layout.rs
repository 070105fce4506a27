//! Layouts: which bytes of memory, of which elements, in which order.

use crate::copy;
use crate::element::Element;
use crate::program::{Program, SequenceBuilder, Shape};
use crate::signature::Signature;
use parnass_base::UserAddress;
use std::fmt;
use std::sync::Arc;

/// A layout: a type map (MPI 5.0, section 5.1) compiled for copying. Immutable, and cheap to clone.
#[derive(Clone)]
pub struct Layout(Arc<Inner>);

struct Inner {
    program: Program,
    signature: Signature,
    /// Lowest and one past the highest byte of the data; none without data.
    data: Bounds,
    /// The same with the padding at the ends of structures, at any depth.
    padded: Bounds,
    /// Explicit bounds, from a resized type at any depth.
    markers: Bounds,
    alignment: u32,
    lower_bound: i64,
    extent: i64,
    /// Elements that follow each other at the extent form one run of bytes.
    dense: bool,
}

/// Why a layout cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// Its size, a displacement or a bound is beyond what 63 bits hold.
    TooLarge,
}

impl fmt::Display for LayoutError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LayoutError::TooLarge => {
                formatter.write_str("the type's size, bounds or displacements would exceed 2^63 - 1 bytes")
            }
        }
    }
}

impl std::error::Error for LayoutError {}

impl fmt::Debug for Layout {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Layout")
            .field("size", &self.size())
            .field("lower_bound", &self.lower_bound())
            .field("extent", &self.extent())
            .field("program", &self.0.program)
            .finish()
    }
}

/// Lowest and one past the highest byte of something, if it has any.
type Bounds = Option<(i64, i64)>;

/// Collects what a new layout spans, in wide arithmetic.
struct Span {
    data: Option<(i128, i128)>,
    padded: Option<(i128, i128)>,
    markers: Option<(i128, i128)>,
    alignment: u32,
    bytes: u128,
}

impl Span {
    fn new() -> Span {
        Span { data: None, padded: None, markers: None, alignment: 1, bytes: 0 }
    }

    /// Adds `count` copies of `old`, the lowest of them at `low` and the highest at `high`.
    fn place(&mut self, old: &Layout, count: u128, low: i128, high: i128) {
        if count == 0 {
            return;
        }
        let join = |into: &mut Option<(i128, i128)>, bounds: Option<(i64, i64)>| {
            if let Some((from, to)) = bounds {
                let (from, to) = (from as i128 + low, to as i128 + high);
                let (first, last) = into.get_or_insert((from, to));
                *first = from.min(*first);
                *last = to.max(*last);
            }
        };
        join(&mut self.data, old.0.data);
        join(&mut self.padded, old.0.padded);
        join(&mut self.markers, old.0.markers);
        self.alignment = self.alignment.max(old.0.alignment);
        self.bytes = self.bytes.saturating_add((old.size() as u128).saturating_mul(count));
    }

    /// Pads the end to a multiple of the alignment, as a compiler pads a structure: the epsilon of section 5.1. On this machine no
    /// element requires an alignment, so that it is 0 for every type that is no structure.
    fn pad(&mut self) {
        if let Some((from, to)) = &mut self.padded {
            let alignment = i128::from(self.alignment);
            *to = *from + (*to - *from + alignment - 1) / alignment * alignment;
        }
    }

    fn finish(self, program: impl FnOnce() -> (Program, Signature)) -> Result<Layout, LayoutError> {
        if self.bytes > i64::MAX as u128 {
            return Err(LayoutError::TooLarge);
        }
        let narrow = |bounds: Option<(i128, i128)>| match bounds {
            None => Ok(None),
            Some((from, to)) => match (i64::try_from(from), i64::try_from(to), i64::try_from(to - from)) {
                (Ok(from), Ok(to), Ok(_)) => Ok(Some((from, to))),
                _ => Err(LayoutError::TooLarge),
            },
        };
        let (data, padded, markers) = (narrow(self.data)?, narrow(self.padded)?, narrow(self.markers)?);
        let (program, signature) = program();
        Layout::assemble(program, signature, (data, padded, markers), self.alignment)
    }
}

/// The lowest and the highest of the positions `index * stride`, `index < count`.
fn range(count: u64, stride: i128) -> (i128, i128) {
    let last = (count as i128 - 1).max(0).saturating_mul(stride);
    (last.min(0), last.max(0))
}

impl Layout {
    fn assemble(
        program: Program,
        signature: Signature,
        (data, padded, markers): (Bounds, Bounds, Bounds),
        alignment: u32,
    ) -> Result<Layout, LayoutError> {
        let (lower_bound, upper_bound) = markers.or(padded).unwrap_or((0, 0));
        let extent = upper_bound.checked_sub(lower_bound).ok_or(LayoutError::TooLarge)?;
        lower_bound.checked_add(extent).ok_or(LayoutError::TooLarge)?;
        let dense = program.size == 0 || (program.shape == Shape::Run && program.size as i64 == extent);
        Ok(Layout(Arc::new(Inner {
            program,
            signature,
            data,
            padded,
            markers,
            alignment,
            lower_bound,
            extent,
            dense,
        })))
    }

    /// One value of an element.
    pub fn element(element: Element) -> Layout {
        let size = element.size();
        let (program, signature) = (Program::run(0, size as u64), Signature::element(element));
        let bytes = Some((0, size as i64));
        Layout::assemble(program, signature, (bytes, bytes, None), element.alignment())
            .expect("an element is small")
    }

    /// No bytes at all; extent 0.
    pub fn empty() -> Layout {
        Layout::assemble(Program::EMPTY, Signature::EMPTY, (None, None, None), 1).expect("nothing is small")
    }

    /// `count` copies of `old`, one extent apart (MPI_Type_contiguous).
    pub fn repeat(count: u64, old: &Layout) -> Result<Layout, LayoutError> {
        Layout::hvector(count, 1, old.extent(), old)
    }

    /// `count` blocks of `block` copies; the blocks start `stride` *extents* apart (MPI_Type_vector).
    pub fn vector(count: u64, block: u64, stride: i64, old: &Layout) -> Result<Layout, LayoutError> {
        let stride =
            if count > 1 { stride.checked_mul(old.extent()).ok_or(LayoutError::TooLarge)? } else { 0 };
        Layout::hvector(count, block, stride, old)
    }

    /// `count` blocks of `block` copies; the blocks start `stride` *bytes* apart (MPI_Type_create_hvector).
    pub fn hvector(count: u64, block: u64, stride: i64, old: &Layout) -> Result<Layout, LayoutError> {
        let mut span = Span::new();
        let (outer_low, outer_high) = range(count, stride as i128);
        let (inner_low, inner_high) = range(block, old.extent() as i128);
        span.place(old, count as u128 * block as u128, outer_low + inner_low, outer_high + inner_high);
        span.finish(|| {
            let copies = count.saturating_mul(block);
            (
                old.0.program.repeated(block, old.extent()).repeated(count, stride),
                old.0.signature.repeated(copies),
            )
        })
    }

    /// Blocks of `old` as (copies, displacement in extents), in this order (MPI_Type_indexed).
    pub fn indexed(
        blocks: impl ExactSizeIterator<Item = (u64, i64)>,
        old: &Layout,
    ) -> Result<Layout, LayoutError> {
        let extent = old.extent() as i128;
        Layout::blocks(blocks.map(|(copies, displacement)| (copies, displacement as i128 * extent)), old)
    }

    /// Blocks of `old` as (copies, displacement in bytes), in this order (MPI_Type_create_hindexed).
    pub fn hindexed(
        blocks: impl ExactSizeIterator<Item = (u64, i64)>,
        old: &Layout,
    ) -> Result<Layout, LayoutError> {
        Layout::blocks(blocks.map(|(copies, displacement)| (copies, displacement as i128)), old)
    }

    fn blocks(
        blocks: impl ExactSizeIterator<Item = (u64, i128)>,
        old: &Layout,
    ) -> Result<Layout, LayoutError> {
        let mut span = Span::new();
        let mut builder = SequenceBuilder::with_capacity(blocks.len());
        let mut copies_in_all = 0_u64;
        let program = &old.0.program;
        for (copies, displacement) in blocks {
            let (low, high) = range(copies, old.extent() as i128);
            span.place(old, copies as u128, displacement + low, displacement + high);
            if span.bytes > i64::MAX as u128 {
                return Err(LayoutError::TooLarge);
            }
            copies_in_all = copies_in_all.saturating_add(copies);
            let displacement = i64::try_from(displacement).map_err(|_| LayoutError::TooLarge)?;
            if old.0.dense {
                builder.push_run(displacement.wrapping_add(program.first), program.size * copies);
            } else {
                builder.push(program.repeated(copies, old.extent()).shifted(displacement));
            }
        }
        span.finish(|| (builder.finish(), old.0.signature.repeated(copies_in_all)))
    }

    /// Blocks of different layouts as (copies, displacement in bytes, layout), in this order (MPI_Type_create_struct).
    pub fn structure<'a>(
        blocks: impl ExactSizeIterator<Item = (u64, i64, &'a Layout)>,
    ) -> Result<Layout, LayoutError> {
        let mut span = Span::new();
        let mut builder = SequenceBuilder::with_capacity(blocks.len());
        let mut signatures = Vec::with_capacity(blocks.len());
        for (copies, displacement, old) in blocks {
            let (low, high) = range(copies, old.extent() as i128);
            span.place(old, copies as u128, displacement as i128 + low, displacement as i128 + high);
            if span.bytes > i64::MAX as u128 {
                return Err(LayoutError::TooLarge);
            }
            builder.push(old.0.program.repeated(copies, old.extent()).shifted(displacement));
            signatures.push(old.0.signature.repeated(copies));
        }
        span.pad();
        span.finish(|| (builder.finish(), Signature::sequence(signatures)))
    }

    /// The same data with other bounds (MPI_Type_create_resized).
    pub fn resized(lower_bound: i64, extent: i64, old: &Layout) -> Result<Layout, LayoutError> {
        let upper_bound = lower_bound.checked_add(extent).ok_or(LayoutError::TooLarge)?;
        let inner = &old.0;
        let markers = Some((lower_bound, upper_bound));
        let bounds = (inner.data, inner.padded, markers);
        Layout::assemble(inner.program.clone(), inner.signature.clone(), bounds, inner.alignment)
    }

    /// Bytes of data in one copy.
    #[inline]
    pub fn size(&self) -> u64 {
        self.0.program.size
    }

    /// Distance of successive copies, in bytes.
    #[inline]
    pub fn extent(&self) -> i64 {
        self.0.extent
    }

    /// Lower bound in bytes, with explicit bounds taken into account.
    #[inline]
    pub fn lower_bound(&self) -> i64 {
        self.0.lower_bound
    }

    /// Upper bound in bytes: lower bound and extent.
    pub fn upper_bound(&self) -> i64 {
        self.0.lower_bound + self.0.extent
    }

    /// The lowest byte of data; 0 without data.
    #[inline]
    pub fn true_lower_bound(&self) -> i64 {
        self.0.data.map_or(0, |(from, _)| from)
    }

    /// From the lowest byte of data to one past the highest.
    #[inline]
    pub fn true_extent(&self) -> i64 {
        self.0.data.map_or(0, |(from, to)| to - from)
    }

    /// The multiple of an address at which a C compiler would place the most demanding element.
    pub fn alignment(&self) -> u32 {
        self.0.alignment
    }

    /// The sequence of elements of one copy.
    pub fn signature(&self) -> &Signature {
        &self.0.signature
    }

    /// If `count` copies form one run of bytes in packed order: the offset of the run from the buffer's address.
    #[inline]
    pub fn contiguous(&self, count: u64) -> Option<i64> {
        let inner = &*self.0;
        if inner.dense || (count <= 1 && inner.program.shape == Shape::Run) {
            Some(inner.program.first)
        } else {
            None
        }
    }

    /// Bytes of one copy, if copies are runs of bytes that follow each other from the buffer's address on; 0 otherwise.
    pub fn plain_size(&self) -> u32 {
        match self.0.dense && self.0.program.first == 0 {
            true => u32::try_from(self.size()).unwrap_or(0),
            false => 0,
        }
    }

    /// Lowest byte and length in bytes of the memory that `count` copies span, from the buffer's address.
    #[inline]
    pub fn footprint(&self, count: u64) -> (i64, u64) {
        match self.0.data {
            Some((from, to)) if count == 1 => (from, (to - from) as u64),
            // One run: no number that is too large, or the memory would not be there.
            Some((from, _)) if self.0.dense && count <= 1 << 31 && self.size() <= 1 << 31 => {
                (from, count * self.size())
            }
            _ => self.wide_footprint(count),
        }
    }

    fn wide_footprint(&self, count: u64) -> (i64, u64) {
        match self.0.data {
            Some((from, to)) if count > 0 => {
                let (low, high) = range(count, self.extent() as i128);
                ((from as i128 + low) as i64, ((to as i128 + high) - (from as i128 + low)) as u64)
            }
            _ => (0, 0),
        }
    }

    /// Copies the bytes `skip .. skip + length` of the packed stream of `count` copies from `source` to `target`.
    /// The window is cut at the end of the stream; the number of bytes copied is returned. Its cost does not grow with `skip`.
    pub fn pack(&self, count: u64, source: UserAddress, skip: u64, target: UserAddress, length: u64) -> u64 {
        let length = self.clamp(count, skip, length);
        // SAFETY: both addresses were promised valid for the operation when they were made.
        unsafe { self.execute::<true>(count, source.value(), skip, length, target.value()) };
        length
    }

    /// Copies `length` bytes from `source` to the places `skip .. skip + length` of the packed stream of `count` copies at
    /// `target`. The window is cut at the end of the stream; the number of bytes copied is returned.
    pub fn unpack(
        &self,
        count: u64,
        target: UserAddress,
        skip: u64,
        source: UserAddress,
        length: u64,
    ) -> u64 {
        let length = self.clamp(count, skip, length);
        // SAFETY: both addresses were promised valid for the operation when they were made.
        unsafe { self.execute::<false>(count, target.value(), skip, length, source.value()) };
        length
    }

    /// As [`Layout::pack`], into a slice that is no user memory.
    pub fn pack_into(&self, count: u64, source: UserAddress, skip: u64, target: &mut [u8]) -> u64 {
        // SAFETY: the slice is writable during the call.
        let address = unsafe { UserAddress::new(target.as_mut_ptr()) };
        self.pack(count, source, skip, address, target.len() as u64)
    }

    /// As [`Layout::unpack`], from a slice that is no user memory.
    pub fn unpack_from(&self, count: u64, target: UserAddress, skip: u64, source: &[u8]) -> u64 {
        // SAFETY: the slice is readable during the call, and unpacking only reads the stream.
        let address = unsafe { UserAddress::new(source.as_ptr()) };
        self.unpack(count, target, skip, address, source.len() as u64)
    }

    fn clamp(&self, count: u64, skip: u64, length: u64) -> u64 {
        length.min(self.size().saturating_mul(count).saturating_sub(skip))
    }

    unsafe fn execute<const PACK: bool>(
        &self,
        count: u64,
        memory: usize,
        skip: u64,
        length: u64,
        stream: usize,
    ) {
        let program = &self.0.program;
        if length == 0 {
            return;
        }
        // SAFETY: the caller promises the memory; the lengths were cut to the stream.
        unsafe {
            if self.0.dense {
                let run = Program::run(program.first, self.size().saturating_mul(count));
                copy::window::<PACK>(&run, memory, skip, length, stream);
            } else if skip == 0 && length == program.size.saturating_mul(count) {
                copy::full_loop::<PACK>(program, count, self.extent(), memory, stream);
            } else {
                copy::window_loop::<PACK>(program, self.extent(), memory, skip, length, stream);
            }
        }
    }

    /// Visits the runs of bytes in the window `skip .. skip + length` of the packed stream of `count` copies, as (offset from
    /// the buffer's address, length), in packed order, until `visit` returns false.
    pub fn visit_runs(&self, count: u64, skip: u64, length: u64, visit: &mut dyn FnMut(i64, u64) -> bool) {
        let length = self.clamp(count, skip, length);
        if self.0.dense {
            if length > 0 {
                visit(self.0.program.first.wrapping_add_unsigned(skip), length);
            }
        } else {
            copy::visit_loop(&self.0.program, self.extent(), 0, skip, length, visit);
        }
    }
}
