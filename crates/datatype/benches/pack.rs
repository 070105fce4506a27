//! Packing and unpacking against loops written by hand: bytes a nanosecond of both, and the ratio.
//!
//! `cargo bench -p parnass-datatype`

use parnass_base::Scratch;
use parnass_datatype::{Element, Layout, Operand, Operator, Slice, reduce};
use std::hint::black_box;
use std::time::Instant;

/// Nanoseconds of one run of `work`: the least of several rounds.
fn time(mut work: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    // Enough repetitions that the clock's resolution does not matter.
    let mut repetitions = 1;
    for _ in 0..30 {
        let start = Instant::now();
        for _ in 0..repetitions {
            work();
            // What was written is read by somebody, as far as the compiler knows.
            std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
        }
        let taken = start.elapsed().as_nanos() as f64;
        best = best.min(taken / f64::from(repetitions));
        if taken < 5_000.0 {
            repetitions *= 2;
        }
    }
    best
}

fn report(name: &str, bytes: u64, by_hand: f64, engine: f64) {
    let bytes = bytes as f64;
    println!(
        "{name:<44} {bytes:>9} B  by hand {:>6.2} B/ns  engine {:>6.2} B/ns  ratio {:>5.2}",
        bytes / by_hand,
        bytes / engine,
        by_hand / engine
    );
}

/// Packs and unpacks `count` copies, against a loop over doubles at the places that `index` gives.
fn doubles(name: &str, layout: &Layout, count: u64, memory: &mut [f64], index: &dyn Fn(usize) -> Vec<usize>) {
    let size = layout.size() * count;
    let mut packed = vec![0.0_f64; size as usize / 8];
    let source = memory.as_mut_ptr();
    // SAFETY: the slices outlive the measurement.
    let address = unsafe { parnass_base::UserAddress::new(source.cast()) };
    // SAFETY: as above.
    let target = unsafe { parnass_base::UserAddress::new(packed.as_mut_ptr().cast()) };
    let engine_pack = time(|| {
        black_box(layout.pack(count, address, 0, target, size));
    });
    let expected: Vec<f64> = (0..count as usize).flat_map(index).map(|place| memory[place]).collect();
    assert_eq!(packed, expected, "{name}");
    let engine_unpack = time(|| {
        black_box(layout.unpack(count, address, 0, target, size));
    });
    let _ = (engine_pack, engine_unpack);
    RESULT.with(|result| result.set((engine_pack, engine_unpack, size)));
}

thread_local! {
    static RESULT: std::cell::Cell<(f64, f64, u64)> = const { std::cell::Cell::new((0.0, 0.0, 0)) };
}

fn compare(name: &str, pack_by_hand: impl FnMut(), unpack_by_hand: impl FnMut()) {
    let (pack, unpack, size) = RESULT.with(|result| result.get());
    report(&format!("{name}, pack"), size, time(pack_by_hand), pack);
    report(&format!("{name}, unpack"), size, time(unpack_by_hand), unpack);
}

const ROWS: usize = 1000;
const COLUMNS: usize = 1000;

fn main() {
    let double = Layout::element(Element::Float64);
    let mut matrix: Vec<f64> = (0..ROWS * COLUMNS).map(|index| index as f64).collect();
    let mut packed = vec![0.0_f64; ROWS * COLUMNS];

    let column = Layout::vector(ROWS as u64, 1, COLUMNS as i64, &double).unwrap();
    doubles("column", &column, 1, &mut matrix, &|_| (0..ROWS).map(|row| row * COLUMNS).collect());
    let (from, to) = (matrix.as_mut_ptr(), packed.as_mut_ptr());
    // SAFETY: the pointers are those of the two vectors, and the indices stay inside.
    let hand = |row: usize, pack: bool| unsafe {
        let (memory, stream) = (from.add(row * COLUMNS), to.add(row));
        if pack { *stream = *memory } else { *memory = *stream }
    };
    compare(
        "column of a matrix",
        || (0..ROWS).for_each(|row| hand(row, true)),
        || {
            (0..ROWS).for_each(|row| hand(row, false));
        },
    );

    let small = Layout::vector(64, 1, 64, &double).unwrap();
    doubles("small column", &small, 1, &mut matrix, &|_| (0..64).map(|row| row * 64).collect());
    // SAFETY: the pointers are those of the two vectors, and the indices stay inside.
    let hand = |row: usize, pack: bool| unsafe {
        let (memory, stream) = (from.add(row * 64), to.add(row));
        if pack { *stream = *memory } else { *memory = *stream }
    };
    compare(
        "column of a 64 x 64 matrix",
        || (0..64).for_each(|row| hand(row, true)),
        || {
            (0..64).for_each(|row| hand(row, false));
        },
    );

    let blocks = Layout::vector(100_000, 4, 10, &double).unwrap();
    doubles("blocks", &blocks, 1, &mut matrix, &|_| {
        (0..400_000).map(|place| place / 4 * 10 + place % 4).collect()
    });
    // SAFETY: the pointers are those of the two vectors, and the indices stay inside.
    let hand = |block: usize, pack: bool| unsafe {
        let (memory, stream) = (from.add(block * 10), to.add(block * 4));
        if pack {
            std::ptr::copy_nonoverlapping(memory, stream, 4);
        } else {
            std::ptr::copy_nonoverlapping(stream, memory, 4);
        }
    };
    compare(
        "vector, 4 of 10 doubles",
        || (0..100_000).for_each(|block| hand(block, true)),
        || {
            (0..100_000).for_each(|block| hand(block, false));
        },
    );

    // Blocks of 1 KiB, in 16 KiB of data and in 1 MiB.
    for count in [16_usize, 1024] {
        let blocks = Layout::vector(count as u64, 128, 256, &double).unwrap();
        doubles("large blocks", &blocks, 1, &mut matrix, &|_| {
            (0..count * 128).map(|place| place / 128 * 256 + place % 128).collect()
        });
        // SAFETY: the pointers are those of the two vectors, and the indices stay inside.
        let hand = |block: usize, pack: bool| unsafe {
            let (memory, stream) = (from.add(block * 256), to.add(block * 128));
            if pack {
                std::ptr::copy_nonoverlapping(memory, stream, 128);
            } else {
                std::ptr::copy_nonoverlapping(stream, memory, 128);
            }
        };
        compare(
            "vector, 128 of 256 doubles",
            || (0..count).for_each(|block| hand(block, true)),
            || {
                (0..count).for_each(|block| hand(block, false));
            },
        );
    }

    // Pairs of doubles at irregular places.
    let places: Vec<i64> = (0..50_000_i64).map(|index| index * 20 + (index * index) % 17).collect();
    let indexed = Layout::indexed(places.iter().map(|place| (2, *place)), &double).unwrap();
    doubles("indexed block", &indexed, 1, &mut matrix, &|_| {
        places.iter().flat_map(|place| [*place as usize, *place as usize + 1]).collect()
    });
    // SAFETY: the pointers are those of the two vectors, and the indices stay inside.
    let hand = |index: usize, pack: bool| unsafe {
        let (memory, stream) = (from.add(places[index] as usize), to.add(index * 2));
        if pack {
            std::ptr::copy_nonoverlapping(memory, stream, 2);
        } else {
            std::ptr::copy_nonoverlapping(stream, memory, 2);
        }
    };
    compare(
        "indexed, pairs of doubles",
        || (0..places.len()).for_each(|index| hand(index, true)),
        || {
            (0..places.len()).for_each(|index| hand(index, false));
        },
    );

    // Runs of 1 to 16 doubles at irregular places.
    let runs: Vec<(u64, i64)> =
        (0..40_000_i64).map(|index| (1 + (index * 7 % 16) as u64, index * 24)).collect();
    let irregular = Layout::indexed(runs.iter().copied(), &double).unwrap();
    doubles("indexed", &irregular, 1, &mut matrix, &|_| {
        runs.iter().flat_map(|&(length, place)| place as usize..place as usize + length as usize).collect()
    });
    // SAFETY: the pointers are those of the two vectors, and the indices stay inside.
    let hand = |pack: bool| unsafe {
        let mut stream = to;
        for &(length, place) in &runs {
            let memory = from.add(place as usize);
            if pack {
                std::ptr::copy_nonoverlapping(memory, stream, length as usize);
            } else {
                std::ptr::copy_nonoverlapping(stream, memory, length as usize);
            }
            stream = stream.add(length as usize);
        }
    };
    compare("indexed, 1 to 16 doubles", || hand(true), || hand(false));

    // An array of structures of which two doubles and not the third are taken.
    let pair = Layout::structure([(1, 0, &double), (1, 16, &double)].into_iter()).unwrap();
    let pair = Layout::resized(0, 32, &pair).unwrap();
    let count = 100_000;
    doubles("structure", &pair, count, &mut matrix, &|copy| vec![copy * 4, copy * 4 + 2]);
    // SAFETY: the pointers are those of the two vectors, and the indices stay inside.
    let hand = |copy: usize, pack: bool| unsafe {
        let (memory, stream) = (from.add(copy * 4), to.add(copy * 2));
        if pack {
            *stream = *memory;
            *stream.add(1) = *memory.add(2);
        } else {
            *memory = *stream;
            *memory.add(2) = *stream.add(1);
        }
    };
    compare(
        "array of structures, 2 of 4 doubles",
        || (0..count as usize).for_each(|copy| hand(copy, true)),
        || {
            (0..count as usize).for_each(|copy| hand(copy, false));
        },
    );

    // The transposed matrix: columns one after the other.
    let column = Layout::resized(0, 8, &column_of(ROWS, COLUMNS, &double)).unwrap();
    doubles("transposed", &column, COLUMNS as u64, &mut matrix, &|column| {
        (0..ROWS).map(|row| row * COLUMNS + column).collect()
    });
    // SAFETY: the pointers are those of the two vectors, and the indices stay inside.
    let hand = |pack: bool| unsafe {
        for column in 0..COLUMNS {
            for row in 0..ROWS {
                let (memory, stream) = (from.add(row * COLUMNS + column), to.add(column * ROWS + row));
                if pack { *stream = *memory } else { *memory = *stream }
            }
        }
    };
    compare("transposed matrix", || hand(true), || hand(false));

    // A face of a cube, across its slowest but one dimension.
    let side = 100;
    let face = [
        Slice { size: side, part: 1, start: 3 },
        Slice { size: side, part: side, start: 0 },
        Slice { size: side, part: side, start: 0 },
    ];
    let face = Layout::subarray(&face, &double).unwrap();
    let side = side as usize;
    doubles("face", &face, 1, &mut matrix, &|_| (0..side * side).map(|place| place * side + 3).collect());
    // SAFETY: the pointers are those of the two vectors, and the indices stay inside.
    let hand = |place: usize, pack: bool| unsafe {
        let (memory, stream) = (from.add(place * side + 3), to.add(place));
        if pack { *stream = *memory } else { *memory = *stream }
    };
    compare(
        "face of a cube, stride 100 doubles",
        || (0..side * side).for_each(|place| hand(place, true)),
        || {
            (0..side * side).for_each(|place| hand(place, false));
        },
    );

    let slab = [
        Slice { size: 100, part: 10, start: 3 },
        Slice { size: 100, part: 50, start: 10 },
        Slice { size: 100, part: 100, start: 0 },
    ];
    let slab = Layout::subarray(&slab, &double).unwrap();
    let place = |z: usize, y: usize| z * 10_000 + (y + 10) * 100 + 3;
    doubles("slab", &slab, 1, &mut matrix, &|_| {
        (0..50_000).map(|index| place(index / 500, index / 10 % 50) + index % 10).collect()
    });
    // SAFETY: the pointers are those of the two vectors, and the indices stay inside.
    let hand = |pack: bool| unsafe {
        for z in 0..100 {
            for y in 0..50 {
                let (memory, stream) = (from.add(place(z, y)), to.add((z * 50 + y) * 10));
                if pack {
                    std::ptr::copy_nonoverlapping(memory, stream, 10);
                } else {
                    std::ptr::copy_nonoverlapping(stream, memory, 10);
                }
            }
        }
    };
    compare("part of a cube, rows of 10 doubles", || hand(true), || hand(false));

    reductions();
}

fn column_of(rows: usize, columns: usize, double: &Layout) -> Layout {
    Layout::vector(rows as u64, 1, columns as i64, double).unwrap()
}

fn reductions() {
    let count = 1 << 14;
    let (input, inout) = (Scratch::new(count * 8), Scratch::new(count * 8));
    input.address().write(&vec![0; count * 8]);
    inout.address().write(&vec![0; count * 8]);
    for (name, operator, element) in [
        ("MPI_SUM on double", Operator::Sum, Element::Float64),
        ("MPI_SUM on int", Operator::Sum, Element::Int32),
        ("MPI_MAX on float", Operator::Max, Element::Float32),
        ("MPI_MIN on int64_t", Operator::Min, Element::Int64),
        ("MPI_LAND on int", Operator::LogicalAnd, Element::Int32),
        ("MPI_PROD on double complex", Operator::Product, Element::Complex64),
    ] {
        let units = (count * 8) as u64 / element.size() as u64;
        let taken = time(|| {
            assert!(reduce(operator, Operand::One(element), input.address(), inout.address(), units));
        });
        println!("{name:<44} {:>9} B  {:>6.2} B/ns", count * 8, (count * 8) as f64 / taken);
    }
}
