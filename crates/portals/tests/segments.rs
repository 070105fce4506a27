//! Segments that are made, let go of, and made again; and memory that is lent to the program.

mod support;

use parnass_base::UserAddress;
use parnass_portals::{Interface, ProcessId, Segment};
use support::interfaces;

const PART: usize = 4096;

fn members() -> Box<[ProcessId]> {
    Box::new([ProcessId(0), ProcessId(1)])
}

/// A segment of two members that process 0 makes, as both see it, and its name. Each has its part.
fn made(nics: &[Interface], bytes: usize) -> (u64, [Segment; 2]) {
    let made = nics[0].make_segment(2, bytes).unwrap();
    let name = made.name();
    let first = nics[0].open_segment(name, Some(made), members(), bytes).unwrap();
    let second = nics[1].open_segment(name, None, members(), bytes).unwrap();
    first.reserve(0, PART).unwrap();
    second.reserve(PART, PART).unwrap();
    (name, [first, second])
}

fn word(segment: &Segment, offset: usize) -> UserAddress {
    segment.address(offset, 8)
}

#[test]
fn who_makes_one_again_finds_it_zero_and_its_locks_free() {
    let nics = interfaces(2);
    let (name, segments) = made(&nics, 2 * PART);
    word(&segments[0], 0).write_word(7);
    word(&segments[1], PART).write_word(8);
    assert_eq!((word(&segments[1], 0).read_word(), word(&segments[0], PART).read_word()), (7, 8));
    assert!(segments[1].try_acquire(0, parnass_portals::Access::Exclusive));
    drop(segments);
    let (again, segments) = made(&nics, 2 * PART);
    assert_eq!(again, name);
    assert_eq!((word(&segments[1], 0).read_word(), word(&segments[0], PART).read_word()), (0, 0));
    assert!(segments[1].try_acquire(0, parnass_portals::Access::Exclusive));
    word(&segments[0], PART).write_word(9);
    assert_eq!(word(&segments[1], PART).read_word(), 9);
}

#[test]
fn what_somebody_still_has_open_is_not_taken() {
    let nics = interfaces(2);
    let (first, [mine, theirs]) = made(&nics, 2 * PART);
    drop(mine);
    let (second, others) = made(&nics, 2 * PART);
    assert_ne!(second, first);
    word(&theirs, PART).write_word(5);
    assert_eq!(word(&others[0], PART).read_word(), 0);
    drop(theirs);
    assert_eq!(made(&nics, 2 * PART).0, first);
}

#[test]
fn of_another_length_is_another_one_and_few_are_kept() {
    let nics = interfaces(2);
    let names: Vec<u64> = (2..14).map(|parts| made(&nics, parts * PART).0).collect();
    let again: Vec<u64> = (2..14).rev().map(|parts| made(&nics, parts * PART).0).collect();
    let same = names.iter().rev().zip(&again).filter(|(before, now)| before == now).count();
    assert_eq!(same, 8, "{names:?} {again:?}");
}

#[test]
fn a_long_one_ends_with_its_last_user() {
    let nics = interfaces(2);
    let bytes = 4 << 20;
    let (name, segments) = made(&nics, bytes);
    drop(segments);
    assert_ne!(made(&nics, bytes).0, name);
}

#[test]
fn what_is_lent_is_the_same_memory_wherever_it_is_mapped() {
    let nics = interfaces(2);
    let block = nics[0].lend(3 * PART + 1).unwrap();
    let part = block.address().offset(PART as i64 + 100);
    let place = block.place_of(part, 200).unwrap();
    let theirs = nics[1].map_lent(place, 200).unwrap();
    part.write_word(5);
    assert_eq!(theirs.address(0, 200).read_word(), 5);
    theirs.address(0, 200).offset(192).write_word(6);
    assert_eq!(part.offset(192).read_word(), 6);
    assert_eq!(block.place_of(block.address(), 4 * PART as u64), Some(place - PART as u64 - 100));
    assert_eq!(block.place_of(part, 3 * PART as u64), None, "it reaches over the end");
    assert_eq!(block.place_of(block.address().offset(-8), 8), None);
    // Given back and lent again, it has the place that others still know.
    drop(block);
    let again = nics[0].lend(3 * PART + 1).unwrap();
    let same = nics[1].map_lent(place, 200).unwrap();
    again.address().offset(PART as i64 + 100).write_word(7);
    assert_eq!((theirs.address(0, 8).read_word(), same.address(0, 8).read_word()), (7, 7));
    let other = nics[0].lend(3 * PART + 1).unwrap();
    assert_ne!(other.place_of(other.address(), 8), again.place_of(again.address(), 8));
}

/// Blocks of many lengths, one after the other, do not keep those of the last ones from being taken again.
#[test]
fn the_blocks_that_were_given_back_last_are_lent_again() {
    let nics = interfaces(2);
    let place = |pages: usize| {
        let block = nics[0].lend(pages * PART).unwrap();
        block.place_of(block.address(), 8).unwrap()
    };
    let first = place(1);
    for pages in 2..=20 {
        place(pages);
    }
    assert_eq!(place(20), place(20));
    assert_eq!(place(15), place(15));
    assert_ne!(place(1), first, "too many have come since");
}

#[test]
fn who_has_lent_much_or_is_alone_lends_nothing() {
    assert!(interfaces(1)[0].lend(100).is_none());
    let nics = interfaces(2);
    assert!(nics[0].lend(1 << 30).is_none());
    assert!(nics[0].lend(usize::MAX).is_none());
    let long: Vec<_> = (0..3).map_while(|_| nics[0].lend(30 << 20)).collect();
    assert_eq!(long.len(), 2, "64 MiB by default");
    drop(long);
    let many: Vec<_> = (0..1000).map_while(|_| nics[0].lend(0)).collect();
    assert_eq!(many.len(), 256);
    drop(many);
    assert!(nics[0].lend(30 << 20).is_some());
}
