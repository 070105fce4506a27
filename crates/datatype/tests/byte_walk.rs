//! The engine against a naive walk over the type map, byte by byte, for random nested types and random windows.

use parnass_base::{Scratch, UserAddress};
use parnass_datatype::{Dealing, Element, Layout, Share, Slice};
use proptest::prelude::*;

/// A type as a tree of constructor calls.
#[derive(Clone, Debug)]
enum Type {
    Element(Element),
    Repeat(u64, Box<Type>),
    Vector(u64, u64, i64, Box<Type>),
    Hvector(u64, u64, i64, Box<Type>),
    Indexed(Vec<(u64, i64)>, Box<Type>),
    Hindexed(Vec<(u64, i64)>, Box<Type>),
    Structure(Vec<(u64, i64, Type)>),
    Resized(i64, i64, Box<Type>),
    Subarray(Vec<Slice>, Box<Type>),
    DistributedArray(Vec<Share>, Box<Type>),
}

/// A type map in full: (displacement, element) in packed order, and explicit bounds.
#[derive(Clone, Debug, Default)]
struct TypeMap {
    entries: Vec<(i64, Element)>,
    /// Where structures end, with their padding.
    structure_ends: Vec<i64>,
    lower_marks: Vec<i64>,
    upper_marks: Vec<i64>,
}

impl TypeMap {
    fn lower_bound(&self) -> i64 {
        let data = self.entries.iter().map(|(at, _)| *at);
        self.lower_marks.iter().copied().min().or_else(|| data.min()).unwrap_or(0)
    }

    fn extent(&self) -> i64 {
        if let Some(upper) = self.upper_marks.iter().max() {
            return upper - self.lower_bound();
        }
        let upper = self.entries.iter().map(|(at, element)| at + element.size() as i64).max().unwrap_or(0);
        self.structure_ends.iter().copied().max().unwrap_or(upper).max(upper) - self.lower_bound()
    }

    /// Ends a structure: its length is a multiple of its widest member's alignment.
    fn pad(&mut self) {
        if self.entries.is_empty() {
            return;
        }
        let alignment = self.entries.iter().map(|(_, element)| element.alignment() as i64).max().unwrap_or(1);
        let low = self.entries.iter().map(|(at, _)| *at).min().unwrap_or(0);
        let high = self.entries.iter().map(|(at, element)| at + element.size() as i64).max().unwrap_or(0);
        let end = self.structure_ends.iter().copied().max().unwrap_or(high).max(high);
        self.structure_ends.push(low + (end - low + alignment - 1) / alignment * alignment);
    }

    fn place(&mut self, other: &TypeMap, at: i64) {
        self.entries
            .extend(other.entries.iter().map(|(displacement, element)| (displacement + at, *element)));
        self.structure_ends.extend(other.structure_ends.iter().map(|end| end + at));
        self.lower_marks.extend(other.lower_marks.iter().map(|mark| mark + at));
        self.upper_marks.extend(other.upper_marks.iter().map(|mark| mark + at));
    }

    fn block(&mut self, other: &TypeMap, count: u64, at: i64) {
        for index in 0..count as i64 {
            self.place(other, at + index * other.extent());
        }
    }
}

impl Type {
    fn layout(&self) -> Layout {
        match self {
            Type::Element(element) => Layout::element(*element),
            Type::Repeat(count, old) => Layout::repeat(*count, &old.layout()).unwrap(),
            Type::Vector(count, block, stride, old) => {
                Layout::vector(*count, *block, *stride, &old.layout()).unwrap()
            }
            Type::Hvector(count, block, stride, old) => {
                Layout::hvector(*count, *block, *stride, &old.layout()).unwrap()
            }
            Type::Indexed(blocks, old) => Layout::indexed(blocks.iter().copied(), &old.layout()).unwrap(),
            Type::Hindexed(blocks, old) => Layout::hindexed(blocks.iter().copied(), &old.layout()).unwrap(),
            Type::Structure(blocks) => {
                let layouts: Vec<Layout> = blocks.iter().map(|(_, _, old)| old.layout()).collect();
                let items = blocks.iter().zip(&layouts).map(|(&(count, at, _), layout)| (count, at, layout));
                Layout::structure(items).unwrap()
            }
            Type::Resized(lower_bound, extent, old) => {
                Layout::resized(*lower_bound, *extent, &old.layout()).unwrap()
            }
            Type::Subarray(slices, old) => Layout::subarray(slices, &old.layout()).unwrap(),
            Type::DistributedArray(shares, old) => Layout::distributed_array(shares, &old.layout()).unwrap(),
        }
    }

    fn map(&self) -> TypeMap {
        let mut map = TypeMap::default();
        match self {
            Type::Element(element) => map.entries.push((0, *element)),
            Type::Repeat(count, old) => map.block(&old.map(), *count, 0),
            Type::Vector(count, block, stride, old) => {
                let old = old.map();
                (0..*count as i64).for_each(|index| map.block(&old, *block, index * stride * old.extent()));
            }
            Type::Hvector(count, block, stride, old) => {
                let old = old.map();
                (0..*count as i64).for_each(|index| map.block(&old, *block, index * stride));
            }
            Type::Indexed(blocks, old) => {
                let old = old.map();
                blocks.iter().for_each(|(count, at)| map.block(&old, *count, at * old.extent()));
            }
            Type::Hindexed(blocks, old) => {
                let old = old.map();
                blocks.iter().for_each(|(count, at)| map.block(&old, *count, *at));
            }
            Type::Structure(blocks) => {
                blocks.iter().for_each(|(count, at, old)| map.block(&old.map(), *count, *at));
                map.pad();
            }
            Type::Resized(lower_bound, extent, old) => {
                map = TypeMap {
                    lower_marks: vec![*lower_bound],
                    upper_marks: vec![lower_bound + extent],
                    ..old.map()
                };
            }
            Type::Subarray(slices, old) => {
                let wanted =
                    |slice: &Slice, index: u64| (slice.start..slice.start + slice.part).contains(&index);
                let sizes: Vec<u64> = slices.iter().map(|slice| slice.size).collect();
                map.array(&old.map(), &sizes, &|dimension, index| wanted(&slices[dimension], index));
            }
            Type::DistributedArray(shares, old) => {
                let mine = |share: &Share, index: u64| match share.dealing {
                    Dealing::All => true,
                    Dealing::Block(block) => index / block == share.coordinate,
                    Dealing::Cyclic(block) => index / block % share.processes == share.coordinate,
                };
                let sizes: Vec<u64> = shares.iter().map(|share| share.size).collect();
                map.array(&old.map(), &sizes, &|dimension, index| mine(&shares[dimension], index));
            }
        }
        map
    }
}

impl TypeMap {
    /// The elements of an array whose indices are wanted in every dimension; the first dimension varies fastest.
    fn array(&mut self, old: &TypeMap, sizes: &[u64], wanted: &dyn Fn(usize, u64) -> bool) {
        let all: u64 = sizes.iter().product();
        for position in 0..all {
            let mut rest = position;
            let mut in_part = true;
            for (dimension, size) in sizes.iter().enumerate() {
                in_part &= wanted(dimension, rest % size);
                rest /= size;
            }
            if in_part {
                self.place(old, position as i64 * old.extent());
            }
        }
        self.lower_marks = vec![0];
        self.upper_marks = vec![all as i64 * old.extent()];
    }
}

fn element() -> impl Strategy<Value = Element> {
    prop::sample::select(vec![
        Element::Int8,
        Element::Int16,
        Element::Int32,
        Element::Float64,
        Element::Complex32,
        Element::LongDouble,
        Element::Complex128,
    ])
}

fn slice() -> impl Strategy<Value = Slice> {
    (1_u64..5, 1_u64..4, 0_u64..3).prop_map(|(part, more, start)| Slice {
        size: part + more + start,
        part,
        start,
    })
}

fn share() -> impl Strategy<Value = Share> {
    let dealing = (0..3, 1_u64..4, 1_u64..4, 1_u64..10, 0_u64..100);
    dealing.prop_map(|(kind, block, processes, size, coordinate)| {
        let (dealing, processes) = match kind {
            0 => (Dealing::All, 1),
            1 => (Dealing::Block(size.div_ceil(processes).max(block)), processes),
            _ => (Dealing::Cyclic(block), processes),
        };
        Share { size, dealing, processes, coordinate: coordinate % processes }
    })
}

fn any_type() -> impl Strategy<Value = Type> {
    let leaf = element().prop_map(Type::Element);
    leaf.prop_recursive(4, 24, 4, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        let blocks = prop::collection::vec((0_u64..4, -6_i64..12), 0..6);
        let byte_blocks = prop::collection::vec((0_u64..4, -60_i64..120), 0..6);
        let uniform = (0_u64..4, prop::collection::vec(-6_i64..12, 0..6))
            .prop_map(|(length, at)| at.into_iter().map(|at| (length, at)).collect::<Vec<_>>());
        prop_oneof![
            (0_u64..5, boxed.clone()).prop_map(|(count, old)| Type::Repeat(count, old)),
            (0_u64..5, 0_u64..4, -5_i64..8, boxed.clone())
                .prop_map(|(c, b, s, old)| Type::Vector(c, b, s, old)),
            (0_u64..5, 0_u64..4, -50_i64..80, boxed.clone())
                .prop_map(|(c, b, s, old)| Type::Hvector(c, b, s, old)),
            (prop_oneof![blocks, uniform], boxed.clone())
                .prop_map(|(blocks, old)| Type::Indexed(blocks, old)),
            (byte_blocks, boxed.clone()).prop_map(|(blocks, old)| Type::Hindexed(blocks, old)),
            prop::collection::vec((0_u64..3, -60_i64..120, inner), 0..4).prop_map(Type::Structure),
            (-20_i64..20, -40_i64..100, boxed.clone())
                .prop_map(|(lb, extent, old)| Type::Resized(lb, extent, old)),
            (prop::collection::vec(slice(), 1..3), boxed.clone())
                .prop_map(|(slices, old)| Type::Subarray(slices, old)),
            (prop::collection::vec(share(), 1..3), boxed)
                .prop_map(|(shares, old)| Type::DistributedArray(shares, old)),
        ]
    })
}

fn bytes_of(scratch: &Scratch) -> Vec<u8> {
    let mut bytes = vec![0; scratch.len()];
    scratch.address().read(&mut bytes);
    bytes
}

fn numbered(length: usize) -> Scratch {
    let scratch = Scratch::new(length);
    let bytes: Vec<u8> = (0..length).map(|index| (index * 7 + index / 251) as u8).collect();
    scratch.address().write(&bytes);
    scratch
}

/// Every byte of `count` copies, in packed order, and the memory that holds them: (offsets from its start, its length, where the
/// buffer's address is in it).
fn walk(map: &TypeMap, count: u64) -> (Vec<usize>, usize, i64) {
    let mut offsets = Vec::new();
    for copy in 0..count as i64 {
        for (at, element) in &map.entries {
            offsets.extend((0..element.size() as i64).map(|byte| copy * map.extent() + at + byte));
        }
    }
    let low = offsets.iter().copied().min().unwrap_or(0);
    let high = offsets.iter().copied().max().map_or(0, |last| last + 1);
    (offsets.iter().map(|offset| (offset - low) as usize).collect(), (high - low) as usize, -low)
}

fn cases() -> ProptestConfig {
    ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn bounds_and_signatures_agree(tree in any_type(), cut in 0_u64..2000) {
        let (layout, map) = (tree.layout(), tree.map());
        let size: u64 = map.entries.iter().map(|(_, element)| element.size() as u64).sum();
        prop_assert_eq!(layout.size(), size);
        prop_assert_eq!(layout.lower_bound(), map.lower_bound());
        prop_assert_eq!(layout.extent(), map.extent());
        let low = map.entries.iter().map(|(at, _)| *at).min().unwrap_or(0);
        let high = map.entries.iter().map(|(at, element)| at + element.size() as i64).max().unwrap_or(0);
        prop_assert_eq!((layout.true_lower_bound(), layout.true_extent()), (low, high - low));

        let signature = layout.signature();
        prop_assert_eq!(signature.elements(), map.entries.len() as u64);
        prop_assert_eq!(signature.bytes(), size);
        let external: u64 = map.entries.iter().map(|(_, element)| element.external_size() as u64).sum();
        prop_assert_eq!(signature.external_bytes(), external);
        if size > 0 {
            let (mut elements, mut left) = (0, cut);
            for (_, element) in map.entries.iter().cycle() {
                if left < element.size() as u64 {
                    break;
                }
                (elements, left) = (elements + 1, left - element.size() as u64);
            }
            prop_assert_eq!(signature.elements_in(cut), (elements, left));
        }
        let flat: Vec<Layout> = map.entries.iter().map(|(_, element)| Layout::element(*element)).collect();
        let flat = Layout::structure(flat.iter().map(|layout| (1, 0, layout))).unwrap();
        prop_assert_eq!(signature.fingerprint(), flat.signature().fingerprint());
    }

    #[test]
    fn windows_agree(tree in any_type(), count in 0_u64..40, from in 0_u64..10_000, length in 0_u64..10_000) {
        let (layout, map) = (tree.layout(), tree.map());
        let (offsets, memory_length, origin) = walk(&map, count);
        let memory = numbered(memory_length);
        let image = bytes_of(&memory);
        let total = offsets.len();
        let skip = if total == 0 { from } else { from % (total as u64 + 1) };
        let window = &offsets[(skip as usize).min(total)..((skip + length) as usize).min(total)];

        let stream = Scratch::new(length as usize);
        stream.address().write(&vec![0xee; length as usize]);
        let packed = layout.pack(count, memory.address().offset(origin), skip, stream.address(), length);
        prop_assert_eq!(packed, window.len() as u64);
        let expected: Vec<u8> = window.iter().map(|offset| image[*offset]).collect();
        let stream = bytes_of(&stream);
        prop_assert_eq!(&stream[..window.len()], &expected[..]);
        prop_assert!(stream[window.len()..].iter().all(|byte| *byte == 0xee));

        let mut visited = Vec::new();
        layout.visit_runs(count, skip, length, &mut |offset, length| {
            visited.extend((0..length as i64).map(|byte| (offset + byte + origin) as usize));
            true
        });
        prop_assert_eq!(&visited[..], window);
        if let Some(start) = layout.contiguous(count) {
            prop_assert!(offsets.windows(2).all(|pair| pair[1] == pair[0] + 1));
            prop_assert!(total == 0 || start + origin == 0);
        }
        let (low, span) = layout.footprint(count);
        prop_assert!(total == 0 || (low + origin == 0 && span == memory_length as u64));

        let source = numbered(window.len() + 13);
        let unpacked = layout.unpack(count, memory.address().offset(origin), skip, source.address().offset(13), window.len() as u64);
        prop_assert_eq!(unpacked, window.len() as u64);
        let mut expected = image;
        for (offset, byte) in window.iter().zip(&bytes_of(&source)[13..]) {
            expected[*offset] = *byte;
        }
        // Where places overlap, MPI does not say which value stays (and no receive may do it).
        let mut result = bytes_of(&memory);
        let mut writes = vec![0; memory_length];
        window.iter().for_each(|offset| writes[*offset] += 1);
        for (offset, _) in writes.iter().enumerate().filter(|(_, writes)| **writes > 1) {
            result[offset] = expected[offset];
        }
        prop_assert_eq!(result, expected);
    }

    // A message goes in parts, each packed and unpacked where the one before ended, at any byte.
    #[test]
    fn parts_make_up_the_whole(
        tree in any_type(),
        count in 0_u64..40,
        parts in prop::collection::vec(1_u64..700, 1..12),
        start in 0_u64..700,
    ) {
        let (layout, map) = (tree.layout(), tree.map());
        let (offsets, memory_length, origin) = walk(&map, count);
        prop_assume!({ let mut sorted = offsets.clone(); sorted.sort_unstable(); sorted.dedup(); sorted.len() == offsets.len() });
        let (memory, back) = (numbered(memory_length), Scratch::new(memory_length));
        back.address().write(&vec![0xee; memory_length]);
        let image = bytes_of(&memory);
        let mut skip = start.min(offsets.len() as u64);
        let first = skip as usize;
        for length in parts.into_iter().cycle() {
            let part = Scratch::new(length as usize);
            let packed = layout.pack(count, memory.address().offset(origin), skip, part.address(), length);
            let unpacked = layout.unpack(count, back.address().offset(origin), skip, part.address(), packed);
            prop_assert_eq!(packed, unpacked);
            skip += packed;
            if packed < length {
                break;
            }
        }
        prop_assert_eq!(skip, offsets.len() as u64);
        let mut expected = vec![0xee; memory_length];
        offsets[first..].iter().for_each(|offset| expected[*offset] = image[*offset]);
        prop_assert_eq!(bytes_of(&back), expected);
    }

    #[test]
    fn external32_comes_back(tree in any_type(), count in 0_u64..20) {
        // Long doubles are converted, so only those that are one come back: leave them to the unit tests.
        let (layout, map) = (tree.layout(), tree.map());
        prop_assume!(map.entries.iter().all(|(_, element)| *element != Element::LongDouble));
        let (offsets, memory_length, origin) = walk(&map, count);
        let overlapping = { let mut sorted = offsets.clone(); sorted.sort_unstable(); sorted.dedup(); sorted.len() < offsets.len() };
        prop_assume!(!overlapping);
        let memory = numbered(memory_length);
        let image = bytes_of(&memory);
        let external = Scratch::new(layout.signature().external_bytes() as usize * count as usize);
        let length = layout.pack_external(count, memory.address().offset(origin), external.address()).unwrap();
        prop_assert_eq!(length as usize, external.len());
        if let Some(first) = map.entries.first().filter(|_| count > 0) {
            let reversed = match first.1 { Element::Complex32 => 4, Element::Complex128 => 16, other => other.size() as usize };
            let mut expected: Vec<u8> = offsets[..reversed].iter().map(|offset| image[*offset]).collect();
            expected.reverse();
            prop_assert_eq!(&bytes_of(&external)[..reversed], &expected[..]);
        }
        let back = Scratch::new(memory_length);
        back.address().write(&vec![0; memory_length]);
        layout.unpack_external(count, back.address().offset(origin), external.address());
        let back = bytes_of(&back);
        prop_assert!(offsets.iter().all(|offset| back[*offset] == image[*offset]));
    }
}

#[test]
fn structures_are_padded_and_nothing_else_is() {
    let double = Layout::element(Element::Float64);
    let char = Layout::element(Element::Int8);
    let vector = Layout::hvector(3, 4, 49, &double).unwrap();
    assert_eq!((vector.extent(), vector.true_extent()), (130, 130));
    let outer = Layout::hvector(2, 3, 4 * 130 + 1, &vector).unwrap();
    assert_eq!(outer.extent(), 4 * 130 + 1 + 3 * 130);
    let structure = Layout::structure([(1, 0, &double), (1, 8, &char)].into_iter()).unwrap();
    assert_eq!((structure.extent(), structure.true_extent()), (16, 9));
    // The padding of what it is made of belongs to a vector.
    let of_structures = Layout::hvector(2, 1, 17, &structure).unwrap();
    assert_eq!((of_structures.extent(), of_structures.true_extent()), (33, 26));
    assert_eq!(Layout::structure([(1, 0, &vector)].into_iter()).unwrap().extent(), 136);
}

#[test]
fn absolute_displacements_start_from_address_zero() {
    let (first, second) = (numbered(8), numbered(16));
    let at = |scratch: &Scratch| scratch.address().value() as i64;
    let byte = Layout::element(Element::Byte);
    let layout = Layout::hindexed([(3, at(&second) + 5), (2, at(&first))].into_iter(), &byte).unwrap();
    let stream = Scratch::new(5);
    assert_eq!(layout.pack(1, UserAddress::NULL, 0, stream.address(), 5), 5);
    let expected = [&bytes_of(&second)[5..8], &bytes_of(&first)[..2]].concat();
    assert_eq!(bytes_of(&stream), expected);
}

#[test]
fn huge_counts_cost_nothing() {
    let int = Layout::element(Element::Int32);
    let huge = Layout::repeat(1 << 40, &int).unwrap();
    let column = Layout::hvector(1 << 30, 1, 1 << 32, &int).unwrap();
    assert_eq!(huge.size(), 1 << 42);
    assert_eq!(huge.contiguous(1 << 19), Some(0));
    assert_eq!(column.extent(), (1 << 62) - (1 << 32) + 4);
    assert_eq!(column.signature().elements_in(1 << 31), (1 << 29, 0));
    assert!(Layout::repeat(1 << 62, &int).is_err());
    assert!(Layout::hvector(1 << 32, 1, 1 << 32, &int).is_err());
    assert!(Layout::resized(i64::MAX, 1, &int).is_err());
    let mut seen = Vec::new();
    column.visit_runs(1, (1 << 31) + 2, 4, &mut |offset, length| {
        seen.push((offset, length));
        true
    });
    assert_eq!(seen, [((1 << 61) + 2, 2), ((1 << 61) + (1 << 32), 2)]);
}

#[test]
fn a_tall_matrix_transposed() {
    let column = Layout::vector(3000, 1, 5, &Layout::element(Element::Int16)).unwrap();
    let column = Layout::resized(0, 2, &column).unwrap();
    let memory = numbered(30_000);
    let image = bytes_of(&memory);
    let expected: Vec<u8> = (0..5 * 3000)
        .flat_map(|place| {
            [(place % 3000) * 10 + (place / 3000) * 2, (place % 3000) * 10 + (place / 3000) * 2 + 1]
        })
        .map(|byte| image[byte])
        .collect();
    for (skip, length) in [(0, 30_000), (1, 29_998), (6001, 17_000), (2999, 4)] {
        let stream = Scratch::new(length);
        assert_eq!(
            column.pack(5, memory.address(), skip as u64, stream.address(), length as u64),
            length as u64
        );
        assert_eq!(bytes_of(&stream), expected[skip..skip + length], "{skip}");
        let back = Scratch::new(30_000);
        back.address().write(&[0; 30_000]);
        column.unpack(5, back.address(), skip as u64, stream.address(), length as u64);
        let again = Scratch::new(length);
        column.pack(5, back.address(), skip as u64, again.address(), length as u64);
        assert_eq!(bytes_of(&again), bytes_of(&stream));
    }
}

/// Those of whole lines are moved from several pages in turn.
#[test]
fn long_runs_are_moved_to_the_last_one_and_nothing_between_them() {
    for (count, length, stride) in [
        (32, 512, 1024),
        (33, 512, -1024),
        (131, 128, 200),
        (45, 704, 1001),
        (300, 192, -193),
        (3, 4096, 5000),
        (9, 4096, -8192),
        (20, 4160, 5000),
        (40, 600, 1024),
    ] {
        let runs = Layout::hvector(count, length, stride, &Layout::element(Element::Byte)).unwrap();
        let offset =
            |run: i64| if stride < 0 { (count as i64 - 1 - run) * -stride } else { run * stride } as usize;
        let packed = (count * length) as usize;
        let spread = (count as usize - 1) * stride.unsigned_abs() as usize + length as usize;
        let (stream, gathered, memory) = (numbered(packed), Scratch::new(packed), Scratch::new(spread));
        memory.address().write(&vec![0xee; spread]);
        let mut expected = vec![0xee; spread];
        for (run, bytes) in bytes_of(&stream).chunks(length as usize).enumerate() {
            expected[offset(run as i64)..][..length as usize].copy_from_slice(bytes);
        }
        let first = memory.address().offset(offset(0) as i64);
        assert_eq!(runs.unpack(1, first, 0, stream.address(), packed as u64), packed as u64);
        assert_eq!(bytes_of(&memory), expected, "{count} runs of {length}, {stride} bytes apart");
        assert_eq!(runs.pack(1, first, 0, gathered.address(), packed as u64), packed as u64);
        assert_eq!(bytes_of(&gathered), bytes_of(&stream), "{count} runs of {length}, {stride} bytes apart");
    }
}

/// Long ones have the lines of later rows fetched while earlier ones are written.
#[test]
fn long_columns_of_any_stride_are_written_to_their_last_row() {
    for (rows, stride) in
        [(511, 64), (512, 64), (513, 72), (600, -1024), (1000, 4088), (700, 4096), (900, 12)]
    {
        let column = Layout::hvector(rows, 1, stride, &Layout::element(Element::Float64)).unwrap();
        let offset =
            |row: i64| if stride < 0 { (rows as i64 - 1 - row) * -stride } else { row * stride } as usize;
        let (packed, spread) = (rows as usize * 8, (rows as usize - 1) * stride.unsigned_abs() as usize + 8);
        let stream = numbered(packed);
        let memory = Scratch::new(spread);
        memory.address().write(&vec![0xee; spread]);
        let mut expected = vec![0xee; spread];
        for (row, bytes) in bytes_of(&stream).chunks(8).enumerate() {
            expected[offset(row as i64)..][..8].copy_from_slice(bytes);
        }
        let first = memory.address().offset(offset(0) as i64);
        assert_eq!(column.unpack(1, first, 0, stream.address(), packed as u64), packed as u64);
        assert_eq!(bytes_of(&memory), expected, "{rows} rows, {stride} bytes apart");
    }
}

#[test]
fn external32_of_more_than_one_stretch() {
    let (int, double) = (Layout::element(Element::Int32), Layout::element(Element::Float64));
    let pair = Layout::structure([(1, 0, &int), (3, 8, &double)].into_iter()).unwrap();
    let count = 5000;
    let memory = numbered(pair.extent() as usize * count);
    let external = Scratch::new(28 * count);
    assert_eq!(
        pair.pack_external(count as u64, memory.address(), external.address()).unwrap(),
        28 * count as u64
    );
    let (image, form) = (bytes_of(&memory), bytes_of(&external));
    for copy in 0..count {
        let (image, form) = (&image[copy * 32..copy * 32 + 32], &form[copy * 28..copy * 28 + 28]);
        let reversed =
            |range: std::ops::Range<usize>| image[range].iter().rev().copied().collect::<Vec<u8>>();
        let expected = [reversed(0..4), reversed(8..16), reversed(16..24), reversed(24..32)].concat();
        assert_eq!(form, expected, "copy {copy}");
    }
    let back = Scratch::new(32 * count);
    back.address().write(&vec![0; 32 * count]);
    assert_eq!(pair.unpack_external(count as u64, back.address(), external.address()), 28 * count as u64);
    let back = bytes_of(&back);
    for copy in 0..count {
        assert_eq!(back[copy * 32..copy * 32 + 4], image[copy * 32..copy * 32 + 4]);
        assert_eq!(back[copy * 32 + 8..copy * 32 + 32], image[copy * 32 + 8..copy * 32 + 32]);
    }
}
