//! A view against a byte-by-byte walk: random filetypes, random windows of the stream.

use parnass_base::Scratch;
use parnass_datatype::{Element, Layout};
use parnass_io::{LONGEST_HOLE_IN_PAGES, Limits, Run, View, ViewError};
use proptest::prelude::*;

/// Blocks of a filetype: (hole before, length), and a hole at the end.
#[derive(Clone, Debug)]
struct Tile {
    displacement: u64,
    blocks: Vec<(u64, u64)>,
    tail: u64,
    repeated: u64,
}

impl Tile {
    fn layout(&self) -> Layout {
        let byte = Layout::element(Element::Byte);
        let mut at = 0;
        let mut blocks = Vec::new();
        for &(hole, length) in &self.blocks {
            blocks.push((length, (at + hole) as i64));
            at += hole + length;
        }
        let tile = Layout::hindexed(blocks.into_iter(), &byte).unwrap();
        let tile = Layout::resized(0, (at + self.tail) as i64, &tile).unwrap();
        Layout::repeat(self.repeated, &tile).unwrap()
    }

    /// The file offsets of the first bytes of the stream.
    fn walk(&self, count: usize) -> Vec<u64> {
        let mut offsets = Vec::new();
        let mut at = self.displacement;
        while offsets.len() < count {
            for &(hole, length) in &self.blocks {
                at += hole;
                offsets.extend(at..at + length);
                at += length;
            }
            at += self.tail;
        }
        offsets.truncate(count);
        offsets
    }
}

fn tiles() -> impl Strategy<Value = Tile> {
    let blocks = prop::collection::vec((0_u64..6, 1_u64..6), 1..6);
    (0_u64..50, blocks, 0_u64..7, 1_u64..4).prop_map(|(displacement, blocks, tail, repeated)| Tile {
        displacement,
        blocks,
        tail,
        repeated,
    })
}

proptest! {
    #[test]
    fn the_view_shows_what_the_walk_shows(tile in tiles(), start in 0_u64..150, length in 0_u64..150) {
        let view = View::new(tile.displacement, 1, &tile.layout()).unwrap();
        let walk = tile.walk(400);
        let mut seen = Vec::new();
        let mut runs: Vec<Run> = Vec::new();
        view.visit(start, length, &mut |run| {
            seen.extend(run.offset..run.end());
            runs.push(run);
            true
        });
        prop_assert_eq!(&seen, &walk[start as usize..(start + length) as usize]);
        prop_assert!(runs.windows(2).all(|pair| pair[0].end() < pair[1].offset), "runs that touch are one");
        prop_assert!(view.reaches(start, length) && !view.overlaps());
        prop_assert_eq!(view.offset_of(start), walk[start as usize]);
        let offset = start + length;
        let before = walk.iter().filter(|&&place| place < offset).count() as u64;
        prop_assert_eq!(view.position_at(offset), before);
    }

    #[test]
    fn stretches_hold_all_runs_within_their_limits(
        tile in tiles(), start in 0_u64..150, length in 1_u64..150, hole_bytes in 0_u64..8, span_bytes in 1_u64..60,
    ) {
        let view = View::new(tile.displacement, 1, &tile.layout()).unwrap();
        let limits = Limits { hole_bytes, span_bytes };
        let mut runs: Vec<Run> = Vec::new();
        view.visit(start, length, &mut |run| { runs.push(run); true });
        let (mut done, mut rest) = (0, &runs[..]);
        while done < length {
            let stretch = view.stretch(start + done, length - done, limits);
            let (inside, behind) = rest.split_at(stretch.runs as usize);
            prop_assert_eq!(stretch.offset, inside[0].offset);
            prop_assert_eq!(stretch.last, inside[inside.len() - 1]);
            prop_assert_eq!(stretch.bytes, inside.iter().map(|run| run.length).sum::<u64>());
            prop_assert!(inside.windows(2).all(|pair| pair[1].offset - pair[0].end() <= hole_bytes));
            prop_assert!(stretch.runs == 1 || stretch.span() <= span_bytes);
            // It ends only where a limit says so.
            if let Some(next) = behind.first() {
                let hole = next.offset - stretch.end();
                prop_assert!(hole > hole_bytes || next.end() - stretch.offset > span_bytes);
            }
            (done, rest) = (done + stretch.bytes, behind);
        }
        prop_assert!(rest.is_empty() && done == length);
    }

    #[test]
    fn scattering_touches_what_the_view_shows(tile in tiles(), start in 0_u64..150, length in 0_u64..150) {
        let view = View::new(tile.displacement, 1, &tile.layout()).unwrap();
        let walk = tile.walk(400);
        let shown = &walk[start as usize..(start + length) as usize];
        let (file, stream) = (Scratch::new(10_000), Scratch::new(200));
        file.address().write(&[7; 10_000]);
        let data: Vec<u8> = (0..length).map(|index| 100 + index as u8).collect();
        stream.address().write(&data);
        view.scatter(start, length, stream.address(), file.address());
        let mut expected = vec![7; 10_000];
        for (&place, &byte) in shown.iter().zip(&data) {
            expected[place as usize] = byte;
        }
        let mut found = vec![0; 10_000];
        file.address().read(&mut found);
        prop_assert_eq!(&found, &expected);
        stream.address().write(&[0; 200]);
        view.gather(start, length, file.address(), stream.address());
        let mut back = vec![0; length as usize];
        stream.address().read(&mut back);
        prop_assert_eq!(back, data);
    }

    #[test]
    fn every_page_of_a_mapped_stretch_holds_data(blocks in prop::collection::vec((1_u64..6000, 1_u64..300), 1..60)) {
        let (mut at, mut bytes) = (0, 0);
        let mut list = Vec::new();
        for (hole, length) in blocks {
            bytes += length;
            list.push((length, (at + hole) as i64));
            at += hole + length;
        }
        let byte = Layout::element(Element::Byte);
        let view = View::new(0, 1, &Layout::hindexed(list.into_iter(), &byte).unwrap()).unwrap();
        let limits = Limits { hole_bytes: LONGEST_HOLE_IN_PAGES, span_bytes: 1 << 19 };
        let mut done = 0;
        while done < bytes {
            let stretch = view.stretch(done, bytes - done, limits);
            for page in stretch.offset / 4096..=(stretch.end() - 1) / 4096 {
                prop_assert!(view.position_at((page + 1) * 4096) > view.position_at(page * 4096), "page {page}");
            }
            done += stretch.bytes;
        }
    }

    #[test]
    fn a_visit_stops_when_it_is_told_to(tile in tiles(), stop in 1_usize..5) {
        let view = View::new(tile.displacement, 1, &tile.layout()).unwrap();
        let mut visits = 0;
        view.visit(0, 200, &mut |_| { visits += 1; visits < stop });
        prop_assert!(visits <= stop);
    }
}

#[test]
fn what_a_view_must_not_be() {
    let byte = Layout::element(Element::Byte);
    let int = Layout::element(Element::Int32);
    let blocks = |list: &[(u64, i64)]| Layout::hindexed(list.iter().copied(), &byte).unwrap();
    assert_eq!(View::new(0, 0, &byte).unwrap_err(), ViewError::EmptyEtype);
    assert_eq!(
        View::new(0, 4, &blocks(&[(6, 0)])).unwrap_err(),
        ViewError::NotWholeEtypes { filetype: 6, etype: 4 }
    );
    assert_eq!(View::new(0, 1, &blocks(&[(2, -3)])).unwrap_err(), ViewError::Negative { displacement: -3 });
    assert_eq!(
        View::new(0, 1, &blocks(&[(2, 10), (2, 3)])).unwrap_err(),
        ViewError::Decreasing { before: 10, after: 3 }
    );
    assert!(View::new(0, 1, &blocks(&[(4, 0), (4, 2)])).unwrap().overlaps());
    assert!(View::new(3, 4, &int).unwrap().is_contiguous());
}

#[test]
fn runs_that_overlap_are_stretches_of_their_own() {
    let byte = Layout::element(Element::Byte);
    let runs = Layout::hindexed([(10_u64, 0_i64), (4, 2), (1, 20)].into_iter(), &byte).unwrap();
    let view = View::new(0, 1, &runs).unwrap();
    let limits = Limits { hole_bytes: 100, span_bytes: 100 };
    assert_eq!(view.stretch(0, 15, limits).runs, 1);
    let second = view.stretch(10, 5, limits);
    assert_eq!((second.offset, second.runs, second.bytes, second.end()), (2, 2, 5, 21));
}

#[test]
fn of_interleaved_filetypes_the_first_is_shown() {
    let byte = Layout::element(Element::Byte);
    let blocks = |list: &[(u64, i64)]| Layout::hindexed(list.iter().copied(), &byte).unwrap();
    for extent in [4, 0, -20] {
        let narrow = Layout::resized(0, extent, &blocks(&[(2, 0), (2, 8)])).unwrap();
        let view = View::new(100, 1, &narrow).unwrap();
        assert!(view.is_interleaved() && !view.is_contiguous());
        assert!(view.reaches(0, 4) && !view.reaches(0, 5) && !view.reaches(4, 1));
        let mut runs = Vec::new();
        view.visit(0, 4, &mut |run| {
            runs.push((run.offset, run.length));
            true
        });
        assert_eq!(runs, [(100, 2), (108, 2)]);
        assert_eq!(
            [99, 100, 101, 105, 109, 110, 1000].map(|offset| view.position_at(offset)),
            [0, 0, 1, 2, 3, 4, 4]
        );
    }
    let narrow = Layout::resized(0, 4, &Layout::element(Element::Byte)).unwrap();
    assert!(!View::new(0, 1, &narrow).unwrap().is_interleaved());
}

#[test]
fn an_empty_filetype_shows_nothing() {
    let view = View::new(8, 4, &Layout::empty()).unwrap();
    assert!(view.reaches(0, 0) && !view.reaches(0, 1));
    assert_eq!((view.position_at(100), view.offset_of(0)), (0, 8));
}

#[test]
fn the_end_of_what_a_file_can_hold() {
    let byte = View::of_bytes(0, &Layout::element(Element::Byte));
    assert!(byte.reaches(i64::MAX as u64 - 1, 1));
    assert!(!byte.reaches(i64::MAX as u64, 1) && !byte.reaches(u64::MAX, 1));
    let sparse = Layout::resized(0, 1 << 40, &Layout::element(Element::Byte)).unwrap();
    let sparse = View::new(0, 1, &sparse).unwrap();
    assert!(sparse.reaches((1 << 23) - 1, 1) && !sparse.reaches(1 << 23, 1));
}
