//! Group operations against the same operations on plain lists and sets.

use parnass_mpi::Group;
use parnass_mpi::constants::{MPI_PROC_NULL, MPI_UNDEFINED};
use parnass_mpi::group::{Comparison, RankRange};
use parnass_portals::ProcessId;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Ordered sets of processes, half of them regular.
fn processes() -> impl Strategy<Value = Vec<u32>> {
    let regular = (0..40_u32, -3..4_i32, 0..12_u32).prop_map(|(first, stride, count)| {
        let stride = if stride == 0 { 1 } else { stride };
        (0..count as i32).map(|rank| (first as i32 + 40 + rank * stride) as u32).collect()
    });
    let any = Just((0..24_u32).collect::<Vec<_>>()).prop_shuffle();
    let shuffled = (any, 0..24_usize).prop_map(|(mut processes, count)| {
        processes.truncate(count);
        processes
    });
    prop_oneof![regular, shuffled]
}

fn group(processes: &[u32]) -> Group {
    Group::from_processes(processes.iter().map(|&process| ProcessId(process)).collect())
}

fn list(group: &Group) -> Vec<u32> {
    group.processes().map(|process| process.0).collect()
}

proptest! {
    #[test]
    fn ranks_and_processes_are_inverse(processes in processes()) {
        let group = group(&processes);
        prop_assert_eq!(list(&group), processes.clone());
        for number in 0..100 {
            let expected = processes.iter().position(|&process| process == number).map(|rank| rank as i32);
            prop_assert_eq!(group.rank_of(ProcessId(number)), expected);
        }
    }

    #[test]
    fn set_operations(left in processes(), right in processes()) {
        let (a, b) = (group(&left), group(&right));
        let only_right = right.iter().filter(|process| !left.contains(process));
        prop_assert_eq!(list(&a.union(&b)), left.iter().chain(only_right).copied().collect::<Vec<_>>());
        let common: Vec<u32> = left.iter().filter(|process| right.contains(process)).copied().collect();
        prop_assert_eq!(list(&a.intersection(&b)), common);
        let only_left: Vec<u32> = left.iter().filter(|process| !right.contains(process)).copied().collect();
        prop_assert_eq!(list(&a.difference(&b)), only_left);
        let sets = [&left, &right].map(|side| side.iter().copied().collect::<BTreeSet<_>>());
        let expected = match (left == right, sets[0] == sets[1]) {
            (true, _) => Comparison::Identical,
            (false, true) => Comparison::Similar,
            (false, false) => Comparison::Unequal,
        };
        prop_assert_eq!(a.compare(&b), expected);
        for (rank, process) in left.iter().enumerate() {
            let expected = right.iter().position(|other| other == process).map_or(MPI_UNDEFINED, |rank| rank as i32);
            prop_assert_eq!(a.translate(rank as i32, &b).unwrap(), expected);
        }
        prop_assert_eq!(a.translate(MPI_PROC_NULL, &b).unwrap(), MPI_PROC_NULL);
    }

    #[test]
    fn inclusion_and_exclusion(processes in processes(), ranks in prop::collection::vec(-1..14_i32, 0..6)) {
        let group = group(&processes);
        let distinct: BTreeSet<i32> = ranks.iter().copied().collect();
        let valid = distinct.len() == ranks.len() && ranks.iter().all(|rank| (0..group.size()).contains(rank));
        let included = group.include(&ranks);
        let excluded = group.exclude(&ranks);
        prop_assert_eq!((included.is_ok(), excluded.is_ok()), (valid, valid));
        if let (Ok(included), Ok(excluded)) = (included, excluded) {
            let expected: Vec<u32> = ranks.iter().map(|&rank| processes[rank as usize]).collect();
            prop_assert_eq!(list(&included), expected.clone());
            let rest: Vec<u32> = processes.iter().filter(|process| !expected.contains(process)).copied().collect();
            prop_assert_eq!(list(&excluded), rest);
        }
    }

    #[test]
    fn ranges_are_their_ranks(size in 1..20_u32, first in 0..20_i32, last in 0..20_i32, stride in -4..5_i32) {
        let world = Group::world(size);
        let mut ranks = Vec::new();
        if stride != 0 {
            let count = (last - first) / stride;
            if (last - first).signum() * stride.signum() >= 0 {
                ranks.extend((0..=count).map(|index| first + index * stride));
            }
        }
        let valid = stride != 0 && first < size as i32 && ranks.iter().all(|&rank| rank < size as i32);
        let range = [RankRange { first, last, stride }];
        prop_assert_eq!(world.range_include(&range).is_ok(), valid);
        if valid {
            prop_assert_eq!(world.range_include(&range).unwrap(), world.include(&ranks).unwrap());
            prop_assert_eq!(world.range_exclude(&range).unwrap(), world.exclude(&ranks).unwrap());
        }
    }
}
