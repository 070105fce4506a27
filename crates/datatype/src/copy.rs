//! Executing copy programs: memory to packed stream and back.
//!
//! Every function is compiled twice, for `PACK` (memory to stream) and for unpacking (stream to memory). Memory
//! is addressed by number, since a layout may start from address 0 (`MPI_BOTTOM`) and reach many objects.
//!
//! # Safety
//! All functions of this module ask the same of their caller: every byte that the program reaches from `memory`,
//! and `length` bytes from `stream`, are valid for the copy, and the two do not overlap.

use crate::program::{Program, Run, Shape};
use parnass_base::atomics::{fetch_to_read, fetch_to_write};
use parnass_base::copy::{LINE, copy};
use std::ops::Range;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut, without_provenance};

/// Iterations of a loop that are copied column by column at once; their bytes stay in the first-level cache.
const TILE: u64 = 32;
/// Runs of each iteration that are copied before the next iteration takes its turn, in a transposition; their cache lines,
/// which the next iterations use again, stay in the second-level cache.
const TRANSPOSITION_BLOCK: u64 = 1024;
/// Longest run that is worth copying column by column.
const SHORT_RUN: u64 = 64;
/// Longest run that is moved without a call.
const LONG_RUN: usize = 4096;

/// Bytes between what is moved and what is fetched meanwhile, where several runs follow: what another core's cache or memory
/// takes to deliver at full speed.
const AHEAD: u64 = 2048;
/// Runs of whole lines are moved from or to so many pages of the stream in turn, and so many runs further on each is fetched meanwhile.
const PAGES: u64 = 4;
const PAGE: u64 = 4096;
const RUNS_AHEAD: i64 = 2;
/// Rows of a column between the one that is written and the one that is fetched meanwhile: a store waits until those before it have found
/// their pages.
const ROWS_AHEAD: u64 = 16;
/// Shorter columns mostly lie in the caches.
const LONG_COLUMN: u64 = 512;
/// Bytes between rows that are fetched: each has a line of its own, and several have a page together. To find a page for each row twice takes
/// longer than the stores wait.
const FETCHED_STRIDES: Range<u64> = 64..4096;

/// Moves one value of type `T`; both sides may be unaligned.
#[inline(always)]
unsafe fn move_value<const PACK: bool, T: Copy>(memory: usize, stream: usize) {
    let (memory, stream) =
        (with_exposed_provenance_mut::<T>(memory), with_exposed_provenance_mut::<T>(stream));
    // SAFETY: as the module asks.
    unsafe {
        if PACK {
            stream.write_unaligned(memory.read_unaligned());
        } else {
            memory.write_unaligned(stream.read_unaligned());
        }
    }
}

/// Moves `length` bytes: short ones in pieces of which the last overlaps the one before, long ones by a call. In memory,
/// what comes next starts at `next`: the processor does not guess that, so it is fetched meanwhile.
#[inline(always)]
unsafe fn move_bytes<const PACK: bool>(memory: usize, stream: usize, length: usize, next: usize) {
    // SAFETY: as the module asks.
    unsafe {
        if (LINE..=LONG_RUN).contains(&length) {
            let rest = length % LINE;
            for start in (0..length - rest).step_by(LINE) {
                fetch_to_read(without_provenance::<u8>(next.wrapping_add(start)));
                move_value::<PACK, [u8; LINE]>(memory.wrapping_add(start), stream + start);
            }
            if rest > LINE / 2 {
                let start = length - LINE;
                move_value::<PACK, [u8; LINE]>(memory.wrapping_add(start), stream + start);
            } else if rest > 0 {
                let start = length - LINE / 2;
                move_value::<PACK, [u8; LINE / 2]>(memory.wrapping_add(start), stream + start);
            }
        } else {
            move_by_call::<PACK>(memory, stream, length);
        }
    }
}

/// Moves `length` bytes.
#[inline(always)]
unsafe fn move_by_call<const PACK: bool>(memory: usize, stream: usize, length: usize) {
    let (memory, stream) =
        (with_exposed_provenance_mut::<u8>(memory), with_exposed_provenance_mut::<u8>(stream));
    // SAFETY: as the module asks.
    unsafe {
        if PACK {
            copy(memory, stream, length);
        } else {
            copy(stream, memory, length);
        }
    }
}

/// Calls `$body` with the type alias `$T` of `$length` bytes where there is a specialised size, else `$other`.
macro_rules! by_length {
    ($length:expr, $T:ident => $body:expr, $other:expr) => {
        by_length!(@ $length, $T, $body, $other, 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 20 24 28 32 40 48 56 64)
    };
    (@ $length:expr, $T:ident, $body:expr, $other:expr, $($size:literal)*) => {
        match $length {
            $($size => { type $T = [u8; $size]; $body })*
            _ => $other,
        }
    };
}

/// Moves one run, without a call where it is short; `next` as for [`move_bytes`].
#[inline(always)]
unsafe fn move_run<const PACK: bool>(memory: usize, stream: usize, length: u64, next: usize) {
    // SAFETY: as the module asks.
    unsafe {
        by_length!(length, T => move_value::<PACK, T>(memory, stream), {
            move_bytes::<PACK>(memory, stream, length as usize, next);
        });
    }
}

/// Moves one run that nothing follows.
#[inline(always)]
unsafe fn move_last<const PACK: bool>(memory: usize, stream: usize, length: usize) {
    // SAFETY: as the module asks.
    unsafe { move_bytes::<PACK>(memory, stream, length, memory.wrapping_add(length)) }
}

/// Where a row is in memory.
#[inline(always)]
fn row(memory: usize, stride: i64, index: u64) -> usize {
    memory.wrapping_add_signed((stride.wrapping_mul(index as i64)) as isize)
}

/// Two strides, a count: the one loop that everything short comes down to.
#[inline(always)]
unsafe fn move_column<const PACK: bool, T: Copy>(
    memory: usize,
    memory_stride: i64,
    stream: usize,
    stream_stride: u64,
    count: u64,
) {
    let row = |index| row(memory, memory_stride, index);
    // Loads run ahead by themselves.
    let fetches = !PACK && count >= LONG_COLUMN && FETCHED_STRIDES.contains(&memory_stride.unsigned_abs());
    let fetching = if fetches { count - ROWS_AHEAD } else { 0 };
    for index in 0..fetching {
        fetch_to_write(without_provenance::<u8>(row(index + ROWS_AHEAD)));
        // SAFETY: as the module asks.
        unsafe { move_value::<PACK, T>(row(index), stream + (stream_stride * index) as usize) };
    }
    for index in fetching..count {
        // SAFETY: as the module asks.
        unsafe { move_value::<PACK, T>(row(index), stream + (stream_stride * index) as usize) };
    }
}

/// Moves `count` runs of `length` bytes between two strided sides.
unsafe fn move_strided<const PACK: bool>(
    memory: usize,
    memory_stride: i64,
    stream: usize,
    stream_stride: u64,
    count: u64,
    length: u64,
) {
    // SAFETY: as the module asks.
    unsafe {
        by_length!(length, T => move_column::<PACK, T>(memory, memory_stride, stream, stream_stride, count), {
            let is_whole = length.is_multiple_of(LINE as u64) && length <= PAGE;
            let moved = if is_whole {
                move_in_turn::<PACK>(memory, memory_stride, stream, stream_stride, count, length)
            } else {
                0
            };
            let ahead = memory_stride.wrapping_mul((AHEAD / length).max(1) as i64) as isize;
            for index in moved..count {
                let memory = row(memory, memory_stride, index);
                let next = memory.wrapping_add_signed(ahead);
                move_bytes::<PACK>(memory, stream + (stream_stride * index) as usize, length as usize, next);
            }
        });
    }
}

/// As [`move_strided`], of runs of whole lines, from several pages of the stream in turn: a core fetches ahead page by page, each by itself, so that more
/// lines are on their way. How many were moved.
unsafe fn move_in_turn<const PACK: bool>(
    memory: usize,
    memory_stride: i64,
    stream: usize,
    stream_stride: u64,
    count: u64,
    length: u64,
) -> u64 {
    let page = PAGE / length;
    let ahead = memory_stride.wrapping_mul(RUNS_AHEAD) as isize;
    let mut done = 0;
    while count - done >= PAGES * page {
        for index in done..done + page {
            let places: [_; PAGES as usize] = std::array::from_fn(|number| {
                let index = index + number as u64 * page;
                (row(memory, memory_stride, index), stream + (stream_stride * index) as usize)
            });
            for line in (0..length as usize).step_by(LINE) {
                for (memory, stream) in places {
                    let memory = memory.wrapping_add(line);
                    fetch_to_read(without_provenance::<u8>(memory.wrapping_add_signed(ahead)));
                    // SAFETY: as the module asks.
                    unsafe { move_value::<PACK, [u8; LINE]>(memory, stream + line) };
                }
            }
        }
        done += PAGES * page;
    }
    done
}

/// Moves runs of one length at listed offsets.
unsafe fn move_blocks<const PACK: bool>(memory: usize, offsets: &[i64], stream: usize, length: u64) {
    // SAFETY: as the module asks.
    unsafe {
        by_length!(length, T => {
            for (index, offset) in offsets.iter().enumerate() {
                move_value::<PACK, T>(memory.wrapping_add_signed(*offset as isize), stream + index * size_of::<T>());
            }
        }, {
            for (index, offset) in offsets.iter().enumerate() {
                let stream = stream + index * length as usize;
                let next = offsets.get(index + 1).unwrap_or(offset);
                move_bytes::<PACK>(
                    memory.wrapping_add_signed(*offset as isize),
                    stream,
                    length as usize,
                    memory.wrapping_add_signed(*next as isize),
                );
            }
        });
    }
}

/// Moves whole runs, the last of which ends at `end` of the packed stream; `stream` is where the first one begins.
unsafe fn move_runs<const PACK: bool>(memory: usize, runs: &[Run], end: u64, stream: usize) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("bmi2") {
        // SAFETY: the processor has these instructions; the rest is as the module asks.
        return unsafe { move_runs_by_masks::<PACK>(memory, runs, end, stream) };
    }
    for_each_run(memory, runs, end, stream, |memory, stream, length, next| {
        // SAFETY: as the module asks.
        unsafe { move_run::<PACK>(memory, stream, length, next) };
    });
}

/// Calls `visit` with each run's places in memory and in the stream, its length, and where the next one is in memory.
#[inline(always)]
fn for_each_run(
    memory: usize,
    runs: &[Run],
    end: u64,
    stream: usize,
    visit: impl Fn(usize, usize, u64, usize),
) {
    let Some(base) = runs.first().map(|run| run.start) else { return };
    let ends = runs[1..].iter().copied().chain([Run { offset: runs[runs.len() - 1].offset, start: end }]);
    for (run, next) in runs.iter().zip(ends) {
        visit(
            memory.wrapping_add_signed(run.offset as isize),
            stream + (run.start - base) as usize,
            next.start - run.start,
            memory.wrapping_add_signed(next.offset as isize),
        );
    }
}

/// As [`move_runs`]. Short runs of changing lengths are moved by one load and one store under a mask: the processor could
/// not guess where to go for each length.
///
/// # Safety
/// As for the module, and the processor has AVX-512BW and BMI2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
unsafe fn move_runs_by_masks<const PACK: bool>(memory: usize, runs: &[Run], end: u64, stream: usize) {
    use std::arch::x86_64::{_bzhi_u64, _mm512_mask_storeu_epi8, _mm512_maskz_loadu_epi8};
    for_each_run(memory, runs, end, stream, |memory, stream, length, next| {
        // SAFETY: as the module asks; what the mask leaves out is neither read nor written.
        unsafe {
            if length > 64 {
                return move_bytes::<PACK>(memory, stream, length as usize, next);
            }
            let (from, to) = if PACK { (memory, stream) } else { (stream, memory) };
            let mask = _bzhi_u64(u64::MAX, length as u32);
            let bytes = _mm512_maskz_loadu_epi8(mask, with_exposed_provenance(from));
            _mm512_mask_storeu_epi8(with_exposed_provenance_mut(to), mask, bytes);
        }
    });
}

/// Executes the whole program.
pub(crate) unsafe fn full<const PACK: bool>(program: &Program, memory: usize, stream: usize) {
    let memory = memory.wrapping_add_signed(program.first as isize);
    // SAFETY: as the module asks.
    unsafe {
        match &program.shape {
            Shape::Empty => {}
            Shape::Run => move_last::<PACK>(memory, stream, program.size as usize),
            Shape::Strided { count, stride, length } => {
                move_strided::<PACK>(memory, *stride, stream, *length, *count, *length);
            }
            Shape::Blocks { length, offsets } => move_blocks::<PACK>(memory, offsets, stream, *length),
            Shape::Runs(runs) => move_runs::<PACK>(memory, runs, program.size, stream),
            Shape::Loop { count, stride, body } => full_loop::<PACK>(body, *count, *stride, memory, stream),
            Shape::Sequence(parts) => {
                for part in parts.iter() {
                    full::<PACK>(&part.body, memory, stream + part.start as usize);
                }
            }
        }
    }
}

/// Moves `count` groups of `GROUP` runs; the runs of a group lie at `offsets` in memory and side by side in the stream.
#[inline(always)]
unsafe fn move_groups<const PACK: bool, const GROUP: usize, T: Copy>(
    memory: usize,
    offsets: [i64; GROUP],
    stride: i64,
    stream: usize,
    count: u64,
) {
    for index in 0..count {
        let memory = memory.wrapping_add_signed((stride.wrapping_mul(index as i64)) as isize);
        let stream = stream + index as usize * GROUP * size_of::<T>();
        for (place, offset) in offsets.iter().enumerate() {
            // SAFETY: as the module asks.
            unsafe {
                let memory = memory.wrapping_add_signed(*offset as isize);
                move_value::<PACK, T>(memory, stream + place * size_of::<T>());
            }
        }
    }
}

/// As [`move_groups`], for the commonest lengths and groups; returns false for others.
unsafe fn move_common_groups<const PACK: bool>(
    memory: usize,
    offsets: impl ExactSizeIterator<Item = i64>,
    length: u64,
    stride: i64,
    stream: usize,
    count: u64,
) -> bool {
    let group = offsets.len();
    if !matches!(length, 4 | 8) || !(2..=4).contains(&group) {
        return false;
    }
    let mut places = [0; 4];
    places.iter_mut().zip(offsets).for_each(|(place, offset)| *place = offset);
    let [a, b, c, d] = places;
    // SAFETY: as the module asks.
    unsafe {
        match (length, group) {
            (4, 2) => move_groups::<PACK, 2, u32>(memory, [a, b], stride, stream, count),
            (4, 3) => move_groups::<PACK, 3, u32>(memory, [a, b, c], stride, stream, count),
            (4, _) => move_groups::<PACK, 4, u32>(memory, [a, b, c, d], stride, stream, count),
            (_, 2) => move_groups::<PACK, 2, u64>(memory, [a, b], stride, stream, count),
            (_, 3) => move_groups::<PACK, 3, u64>(memory, [a, b, c], stride, stream, count),
            (_, _) => move_groups::<PACK, 4, u64>(memory, [a, b, c, d], stride, stream, count),
        }
    }
    true
}

/// Executes the whole `body` `count` times.
pub(crate) unsafe fn full_loop<const PACK: bool>(
    body: &Program,
    count: u64,
    stride: i64,
    memory: usize,
    stream: usize,
) {
    // SAFETY: as the module asks.
    unsafe {
        if count == 1 {
            return full::<PACK>(body, memory, stream);
        }
        let start = memory.wrapping_add_signed(body.first as isize);
        match &body.shape {
            Shape::Run if stride == body.size as i64 => {
                return move_last::<PACK>(start, stream, (body.size * count) as usize);
            }
            Shape::Run => return move_strided::<PACK>(start, stride, stream, body.size, count, body.size),
            // A transposition: iterations walk along the same cache lines, so they take turns before those are lost.
            Shape::Strided { count: inner, stride: step, length }
                if *inner > TRANSPOSITION_BLOCK && stride.unsigned_abs() < step.unsigned_abs() =>
            {
                let mut done = 0;
                while done < *inner {
                    let now = TRANSPOSITION_BLOCK.min(inner - done);
                    let start = start.wrapping_add_signed((step.wrapping_mul(done as i64)) as isize);
                    for index in 0..count {
                        let memory = start.wrapping_add_signed((stride.wrapping_mul(index as i64)) as isize);
                        let stream = stream + (body.size * index + length * done) as usize;
                        move_strided::<PACK>(memory, *step, stream, *length, now, *length);
                    }
                    done += now;
                }
                return;
            }
            // Column by column where a row is short.
            Shape::Strided { count: inner, stride: step, length } if *length <= SHORT_RUN && *inner <= 8 => {
                let offsets = (0..*inner as u32).map(|index| step.wrapping_mul(index as i64));
                if move_common_groups::<PACK>(start, offsets, *length, stride, stream, count) {
                    return;
                }
                return tiles(count, stride, body.size, start, stream, |memory, stream, count| {
                    for index in 0..*inner {
                        let memory = memory.wrapping_add_signed((step.wrapping_mul(index as i64)) as isize);
                        let stream = stream + (index * length) as usize;
                        move_strided::<PACK>(memory, stride, stream, body.size, count, *length);
                    }
                });
            }
            Shape::Blocks { length, offsets } if *length <= SHORT_RUN && offsets.len() <= 16 => {
                if move_common_groups::<PACK>(start, offsets.iter().copied(), *length, stride, stream, count)
                {
                    return;
                }
                return tiles(count, stride, body.size, start, stream, |memory, stream, count| {
                    for (index, offset) in offsets.iter().enumerate() {
                        let memory = memory.wrapping_add_signed(*offset as isize);
                        move_strided::<PACK>(
                            memory,
                            stride,
                            stream + index * *length as usize,
                            body.size,
                            count,
                            *length,
                        );
                    }
                });
            }
            Shape::Runs(runs) if runs.len() <= 16 && body.size <= SHORT_RUN * runs.len() as u64 => {
                return tiles(count, stride, body.size, start, stream, |memory, stream, count| {
                    for (index, run) in runs.iter().enumerate() {
                        let memory = memory.wrapping_add_signed(run.offset as isize);
                        let length = Program::run_length(runs, index, body.size);
                        move_strided::<PACK>(
                            memory,
                            stride,
                            stream + run.start as usize,
                            body.size,
                            count,
                            length,
                        );
                    }
                });
            }
            _ => {}
        }
        for index in 0..count {
            let memory = memory.wrapping_add_signed((stride.wrapping_mul(index as i64)) as isize);
            full::<PACK>(body, memory, stream + (body.size * index) as usize);
        }
    }
}

/// Cuts a loop into tiles of a few iterations.
fn tiles(
    count: u64,
    stride: i64,
    size: u64,
    memory: usize,
    stream: usize,
    mut body: impl FnMut(usize, usize, u64),
) {
    let mut done = 0;
    while done < count {
        let now = TILE.min(count - done);
        body(
            memory.wrapping_add_signed((stride.wrapping_mul(done as i64)) as isize),
            stream + (size * done) as usize,
            now,
        );
        done += now;
    }
}

/// Executes the bytes `skip .. skip + length` of the packed stream of `program`.
pub(crate) unsafe fn window<const PACK: bool>(
    program: &Program,
    memory: usize,
    skip: u64,
    length: u64,
    stream: usize,
) {
    if length == 0 {
        return;
    }
    // SAFETY: as the module asks.
    unsafe {
        if length == program.size {
            return full::<PACK>(program, memory, stream);
        }
        let memory = memory.wrapping_add_signed(program.first as isize);
        match &program.shape {
            Shape::Empty => {}
            Shape::Run => move_last::<PACK>(memory.wrapping_add(skip as usize), stream, length as usize),
            Shape::Strided { count: _, stride, length: run } => {
                window_loop::<PACK>(&Program::run(0, *run), *stride, memory, skip, length, stream);
            }
            Shape::Loop { count: _, stride, body } => {
                window_loop::<PACK>(body, *stride, memory, skip, length, stream)
            }
            Shape::Blocks { length: run, offsets } => {
                let (head, whole, tail) = split(*run, skip, length);
                let mut index = (skip / run) as usize;
                let mut stream = stream;
                if head > 0 {
                    let memory = memory
                        .wrapping_add_signed(offsets[index] as isize)
                        .wrapping_add((skip % run) as usize);
                    move_last::<PACK>(memory, stream, head as usize);
                    stream += head as usize;
                    index += 1;
                }
                move_blocks::<PACK>(memory, &offsets[index..index + whole as usize], stream, *run);
                if tail > 0 {
                    index += whole as usize;
                    stream += (whole * run) as usize;
                    move_last::<PACK>(
                        memory.wrapping_add_signed(offsets[index] as isize),
                        stream,
                        tail as usize,
                    );
                }
            }
            Shape::Runs(runs) => {
                // Part of a run, whole runs, part of a run.
                let end = skip + length;
                let at = |index: usize| memory.wrapping_add_signed(runs[index].offset as isize);
                let mut first = runs.partition_point(|run| run.start <= skip) - 1;
                let inside = skip - runs[first].start;
                let mut stream = stream;
                if inside > 0 {
                    let now = length.min(Program::run_length(runs, first, program.size) - inside);
                    move_last::<PACK>(at(first).wrapping_add(inside as usize), stream, now as usize);
                    stream += now as usize;
                    first += 1;
                }
                let last = runs.partition_point(|run| run.start < end) - 1;
                if first > last {
                    return;
                }
                let is_whole = runs[last].start + Program::run_length(runs, last, program.size) == end;
                let (whole, stop) = if is_whole { (last + 1, end) } else { (last, runs[last].start) };
                move_runs::<PACK>(memory, &runs[first..whole], stop, stream);
                if !is_whole {
                    let stream = stream + (stop - runs[first].start) as usize;
                    move_last::<PACK>(at(last), stream, (end - stop) as usize);
                }
            }
            Shape::Sequence(parts) => {
                let mut index = parts.partition_point(|part| part.start <= skip) - 1;
                let (mut skip, mut left, mut stream) = (skip - parts[index].start, length, stream);
                while left > 0 {
                    let body = &parts[index].body;
                    let now = left.min(body.size - skip);
                    window::<PACK>(body, memory, skip, now, stream);
                    (skip, left, stream, index) = (0, left - now, stream + now as usize, index + 1);
                }
            }
        }
    }
}

/// Cuts a window of a list of units of `size` bytes: bytes of a first, cut unit; whole units; bytes of a last, cut unit.
/// A window inside one unit is all head.
fn split(size: u64, skip: u64, length: u64) -> (u64, u64, u64) {
    let inside = skip % size;
    let head = if inside == 0 { 0 } else { length.min(size - inside) };
    ((head), (length - head) / size, (length - head) % size)
}

/// Executes the bytes `skip .. skip + length` of the packed stream of `body` repeated at `stride`.
pub(crate) unsafe fn window_loop<const PACK: bool>(
    body: &Program,
    stride: i64,
    memory: usize,
    skip: u64,
    length: u64,
    stream: usize,
) {
    if length == 0 {
        return;
    }
    let (head, whole, tail) = split(body.size, skip, length);
    let at = |index: u64| memory.wrapping_add_signed((stride.wrapping_mul(index as i64)) as isize);
    let mut index = skip / body.size;
    let mut stream = stream;
    // SAFETY: as the module asks.
    unsafe {
        if head > 0 {
            window::<PACK>(body, at(index), skip % body.size, head, stream);
            stream += head as usize;
            index += 1;
        }
        if whole > 0 {
            full_loop::<PACK>(body, whole, stride, at(index), stream);
        }
        if tail > 0 {
            window::<PACK>(body, at(index + whole), 0, tail, stream + (whole * body.size) as usize);
        }
    }
}

/// Visits the runs of bytes of the window `skip .. skip + length` of `body` repeated at `stride`, in packed order,
/// as (offset, length). Stops, and returns false, as soon as `visit` returns false.
pub(crate) fn visit_loop(
    body: &Program,
    stride: i64,
    base: i64,
    mut skip: u64,
    mut length: u64,
    visit: &mut dyn FnMut(i64, u64) -> bool,
) -> bool {
    while length > 0 {
        let (index, inside) = (skip / body.size, skip % body.size);
        let now = length.min(body.size - inside);
        if !visit_window(body, base.wrapping_add(stride.wrapping_mul(index as i64)), inside, now, visit) {
            return false;
        }
        (skip, length) = (skip + now, length - now);
    }
    true
}

fn visit_window(
    program: &Program,
    base: i64,
    skip: u64,
    length: u64,
    visit: &mut dyn FnMut(i64, u64) -> bool,
) -> bool {
    if length == 0 {
        return true;
    }
    let base = base.wrapping_add(program.first);
    match &program.shape {
        Shape::Empty => true,
        Shape::Run => visit(base.wrapping_add_unsigned(skip), length),
        Shape::Strided { stride, length: run, .. } => {
            visit_loop(&Program::run(0, *run), *stride, base, skip, length, visit)
        }
        Shape::Loop { stride, body, .. } => visit_loop(body, *stride, base, skip, length, visit),
        Shape::Blocks { length: run, offsets } => {
            let (mut skip, mut left) = (skip, length);
            while left > 0 {
                let (index, inside) = ((skip / run) as usize, skip % run);
                let now = left.min(run - inside);
                if !visit(base.wrapping_add(offsets[index]).wrapping_add_unsigned(inside), now) {
                    return false;
                }
                (skip, left) = (skip + now, left - now);
            }
            true
        }
        Shape::Runs(runs) => {
            let mut index = runs.partition_point(|run| run.start <= skip) - 1;
            let (mut skip, mut left) = (skip - runs[index].start, length);
            while left > 0 {
                let now = left.min(Program::run_length(runs, index, program.size) - skip);
                if !visit(base.wrapping_add(runs[index].offset).wrapping_add_unsigned(skip), now) {
                    return false;
                }
                (skip, left, index) = (0, left - now, index + 1);
            }
            true
        }
        Shape::Sequence(parts) => {
            let mut index = parts.partition_point(|part| part.start <= skip) - 1;
            let (mut skip, mut left) = (skip - parts[index].start, length);
            while left > 0 {
                let body = &parts[index].body;
                let now = left.min(body.size - skip);
                if !visit_window(body, base, skip, now, visit) {
                    return false;
                }
                (skip, left, index) = (0, left - now, index + 1);
            }
            true
        }
    }
}
