//! Groups: ordered sets of processes (MPI 5.0, section 7.3).

use crate::constants::{MPI_ERR_ARG, MPI_ERR_GROUP, MPI_ERR_RANK, MPI_PROC_NULL, MPI_UNDEFINED};
use crate::{Error, Result};
use parnass_portals::ProcessId;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// How two groups, or two communicators, relate (MPI 5.0, sections 7.3.1 and 7.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The same object.
    Identical,
    /// Communicators only: the same processes in the same order, different contexts.
    Congruent,
    /// The same processes in another order.
    Similar,
    /// Different processes.
    Unequal,
}

/// An ordered set of processes. Cheap to clone.
///
/// A regular group (the world, one process, every third process) is stored as a rule and needs no table.
#[derive(Clone)]
pub struct Group {
    members: Members,
    /// The number of the session that it comes from; 0 for the world model.
    session: u32,
}

#[derive(Clone)]
enum Members {
    /// Process `first + rank * stride` for each rank below `count`.
    Regular {
        first: u32,
        stride: i32,
        count: u32,
    },
    Table(Arc<Table>),
}

struct Table {
    processes: Box<[u32]>,
    /// Built at the first look-up.
    ranks: OnceLock<HashMap<u32, u32>>,
}

/// A triplet of MPI_Group_range_incl and MPI_Group_range_excl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankRange {
    pub first: i32,
    pub last: i32,
    pub stride: i32,
}

#[cold]
fn no_such_rank(rank: i32, count: u32) -> ! {
    panic!("rank {rank} of a group of {count}")
}

impl Group {
    const fn of(members: Members) -> Group {
        Group { members, session: 0 }
    }

    /// The number of the session that it comes from, directly or through other groups and communicators; 0 for the
    /// world model.
    pub fn session(&self) -> u32 {
        self.session
    }

    /// The same processes, from a session unless they come from one already.
    #[must_use]
    pub fn within_session(mut self, session: u32) -> Group {
        if self.session == 0 {
            self.session = session;
        }
        self
    }

    /// A group that is made from this one.
    fn derived(&self, processes: Vec<ProcessId>) -> Group {
        Group::from_processes(processes).within_session(self.session)
    }

    /// MPI_GROUP_EMPTY.
    pub const fn empty() -> Group {
        Group::of(Members::Regular { first: 0, stride: 1, count: 0 })
    }

    /// The processes 0 to `size` - 1: the group of MPI_COMM_WORLD.
    pub const fn world(size: u32) -> Group {
        Group::of(Members::Regular { first: 0, stride: 1, count: size })
    }

    /// One process: the group of MPI_COMM_SELF.
    pub const fn single(process: ProcessId) -> Group {
        Group::of(Members::Regular { first: process.0, stride: 1, count: 1 })
    }

    /// The given processes, which must be distinct.
    pub fn from_processes(processes: Vec<ProcessId>) -> Group {
        let numbers: Vec<u32> = processes.into_iter().map(|process| process.0).collect();
        let count = numbers.len() as u32;
        match numbers.as_slice() {
            [] => return Group::empty(),
            [only] => return Group::single(ProcessId(*only)),
            [first, second, ..] => {
                let stride = i64::from(*second) - i64::from(*first);
                let regular =
                    numbers.windows(2).all(|pair| i64::from(pair[1]) - i64::from(pair[0]) == stride);
                if let (true, Ok(stride)) = (regular, i32::try_from(stride)) {
                    return Group::of(Members::Regular { first: *first, stride, count });
                }
            }
        }
        Group::of(Members::Table(Arc::new(Table {
            processes: numbers.into_boxed_slice(),
            ranks: OnceLock::new(),
        })))
    }

    /// How many processes it has.
    #[inline]
    pub fn size(&self) -> i32 {
        match &self.members {
            Members::Regular { count, .. } => *count as i32,
            Members::Table(table) => table.processes.len() as i32,
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.size() == 0
    }

    /// The process with this rank.
    ///
    /// # Panics
    /// When `rank` is negative or not below the size.
    #[inline(always)]
    pub fn process(&self, rank: i32) -> ProcessId {
        match &self.members {
            Members::Regular { first, stride, count } => {
                if rank as u32 >= *count {
                    no_such_rank(rank, *count);
                }
                ProcessId((i64::from(*first) + i64::from(rank) * i64::from(*stride)) as u32)
            }
            Members::Table(table) => ProcessId(table.processes[rank as usize]),
        }
    }

    /// Whether the rank of each member is its number.
    #[inline]
    pub fn rank_is_number(&self) -> bool {
        matches!(self.members, Members::Regular { first: 0, stride: 1, .. })
    }

    /// The rank of a process, if it is a member. Takes constant time.
    #[inline]
    pub fn rank_of(&self, process: ProcessId) -> Option<i32> {
        match &self.members {
            Members::Regular { first, stride, count } => {
                let distance = i64::from(process.0) - i64::from(*first);
                let stride = i64::from(*stride);
                let rank = distance / stride;
                (distance % stride == 0 && (0..i64::from(*count)).contains(&rank)).then_some(rank as i32)
            }
            Members::Table(table) => {
                const SHORT: usize = 8;
                if table.processes.len() <= SHORT {
                    return table
                        .processes
                        .iter()
                        .position(|&member| member == process.0)
                        .map(|rank| rank as i32);
                }
                let ranks = table.ranks.get_or_init(|| {
                    table.processes.iter().enumerate().map(|(rank, &member)| (member, rank as u32)).collect()
                });
                ranks.get(&process.0).map(|&rank| rank as i32)
            }
        }
    }

    /// Whether some member has this number or a higher one.
    pub fn reaches(&self, number: u32) -> bool {
        match &self.members {
            Members::Regular { count: 0, .. } => false,
            Members::Regular { first, .. } => *first >= number || self.process(self.size() - 1).0 >= number,
            Members::Table(table) => table.processes.iter().any(|&process| process >= number),
        }
    }

    /// Whether the process is a member.
    pub fn contains(&self, process: ProcessId) -> bool {
        self.rank_of(process).is_some()
    }

    /// All members in the order of their ranks.
    pub fn processes(&self) -> impl ExactSizeIterator<Item = ProcessId> + '_ {
        (0..self.size()).map(|rank| self.process(rank))
    }

    /// MPI_Group_compare.
    pub fn compare(&self, other: &Group) -> Comparison {
        if self.size() != other.size() {
            return Comparison::Unequal;
        }
        if let (Members::Table(mine), Members::Table(theirs)) = (&self.members, &other.members)
            && Arc::ptr_eq(mine, theirs)
        {
            return Comparison::Identical;
        }
        if self.processes().eq(other.processes()) {
            Comparison::Identical
        } else if self.processes().all(|process| other.contains(process)) {
            Comparison::Similar
        } else {
            Comparison::Unequal
        }
    }

    /// MPI_Group_translate_ranks for one rank: MPI_PROC_NULL stays, a process that `other` lacks gives MPI_UNDEFINED.
    pub fn translate(&self, rank: i32, other: &Group) -> Result<i32> {
        if rank == MPI_PROC_NULL {
            return Ok(MPI_PROC_NULL);
        }
        self.check_rank(rank)?;
        Ok(other.rank_of(self.process(rank)).unwrap_or(MPI_UNDEFINED))
    }

    /// MPI_Group_union: the members of `self`, then those of `other` that `self` lacks, in the order of `other`.
    #[must_use]
    pub fn union(&self, other: &Group) -> Group {
        let further = other.processes().filter(|&process| !self.contains(process));
        self.derived(self.processes().chain(further).collect())
    }

    /// MPI_Group_intersection: the members of `self` that are also in `other`, in the order of `self`.
    #[must_use]
    pub fn intersection(&self, other: &Group) -> Group {
        self.derived(self.processes().filter(|&process| other.contains(process)).collect())
    }

    /// MPI_Group_difference: the members of `self` that are not in `other`, in the order of `self`.
    #[must_use]
    pub fn difference(&self, other: &Group) -> Group {
        self.derived(self.processes().filter(|&process| !other.contains(process)).collect())
    }

    /// MPI_Group_incl: the members with these ranks, in this order.
    pub fn include(&self, ranks: &[i32]) -> Result<Group> {
        self.check_distinct(ranks)?;
        Ok(self.derived(ranks.iter().map(|&rank| self.process(rank)).collect()))
    }

    /// MPI_Group_excl: all members but those with these ranks.
    pub fn exclude(&self, ranks: &[i32]) -> Result<Group> {
        self.check_distinct(ranks)?;
        let mut stays = vec![true; self.size() as usize];
        ranks.iter().for_each(|&rank| stays[rank as usize] = false);
        let kept = (0..self.size()).filter(|rank| stays[*rank as usize]);
        Ok(self.derived(kept.map(|rank| self.process(rank)).collect()))
    }

    /// MPI_Group_range_incl.
    pub fn range_include(&self, ranges: &[RankRange]) -> Result<Group> {
        self.include(&self.expand(ranges)?)
    }

    /// MPI_Group_range_excl.
    pub fn range_exclude(&self, ranges: &[RankRange]) -> Result<Group> {
        self.exclude(&self.expand(ranges)?)
    }

    /// The ranks that the triplets name, in order. Both ends must be ranks of the group, so the work is bounded
    /// by the number of triplets times the size.
    fn expand(&self, ranges: &[RankRange]) -> Result<Vec<i32>> {
        let mut ranks = Vec::new();
        for (index, range) in ranges.iter().enumerate() {
            if range.stride == 0 {
                return Err(Error::new(
                    MPI_ERR_ARG,
                    format!(
                        "range {index} ({}, {}, {}) has stride 0; give a stride that is not zero",
                        range.first, range.last, range.stride
                    ),
                ));
            }
            self.check_rank(range.first)?;
            let mut rank = i64::from(range.first);
            let last = i64::from(range.last);
            let ahead = |rank: i64| if range.stride > 0 { rank <= last } else { rank >= last };
            while ahead(rank) {
                let member = i32::try_from(rank).unwrap_or(i32::MAX);
                self.check_rank(member)?;
                ranks.push(member);
                if ranks.len() > self.size() as usize {
                    // A rank must have come twice; the check for distinct ranks names it.
                    return Ok(ranks);
                }
                rank += i64::from(range.stride);
            }
        }
        Ok(ranks)
    }

    fn check_distinct(&self, ranks: &[i32]) -> Result<()> {
        // Few are compared with each other.
        let mut seen = vec![false; if ranks.len() > 16 { self.size() as usize } else { 0 }];
        for (index, &rank) in ranks.iter().enumerate() {
            self.check_rank(rank)?;
            let twice = match seen.get_mut(rank as usize) {
                Some(seen) => std::mem::replace(seen, true),
                None => ranks[..index].contains(&rank),
            };
            if twice {
                return Err(Error::new(
                    MPI_ERR_RANK,
                    format!("rank {rank} is named twice; each rank of the group may be named once"),
                ));
            }
        }
        Ok(())
    }

    fn check_rank(&self, rank: i32) -> Result<()> {
        let size = self.size();
        if (0..size).contains(&rank) {
            return Ok(());
        }
        let allowed = match size {
            0 => "the group is empty and has no ranks".to_string(),
            1 => "the only rank of this group is 0".to_string(),
            _ => format!("the ranks of this group are 0 to {}", size - 1),
        };
        Err(Error::new(MPI_ERR_RANK, format!("rank {rank} is not in the group; {allowed}")))
    }

    /// An error unless every member of `self` is in `whole`, which is called `whole_name` in the message.
    pub fn check_subset_of(&self, whole: &Group, whole_name: &str) -> Result<()> {
        match self.processes().find(|&process| !whole.contains(process)) {
            None => Ok(()),
            Some(process) => Err(Error::new(
                MPI_ERR_GROUP,
                format!(
                    "process {} of the job (rank {} of the group) is not in {whole_name}; every member of the group must be",
                    process.0,
                    self.rank_of(process).unwrap_or(MPI_UNDEFINED)
                ),
            )),
        }
    }
}

impl PartialEq for Group {
    /// The same processes in the same order.
    fn eq(&self, other: &Group) -> bool {
        self.compare(other) == Comparison::Identical
    }
}

impl Eq for Group {}

impl std::fmt::Debug for Group {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.processes().map(|process| process.0)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(processes: &[u32]) -> Group {
        Group::from_processes(processes.iter().map(|&process| ProcessId(process)).collect())
    }

    fn range(first: i32, last: i32, stride: i32) -> RankRange {
        RankRange { first, last, stride }
    }

    #[test]
    fn regular_groups_need_no_table() {
        for processes in [&[0, 1, 2, 3][..], &[4, 6, 8], &[9, 6, 3, 0], &[5], &[]] {
            let group = group(processes);
            assert!(matches!(group.members, Members::Regular { .. }), "{processes:?}");
            assert_eq!(group.processes().map(|process| process.0).collect::<Vec<_>>(), processes);
            for number in 0..12 {
                let expected = processes.iter().position(|&member| member == number).map(|rank| rank as i32);
                assert_eq!(group.rank_of(ProcessId(number)), expected);
            }
        }
        assert!(matches!(group(&[0, 1, 3]).members, Members::Table(_)));
    }

    #[test]
    fn ranges_include_both_ends_and_go_backwards() {
        let world = Group::world(10);
        assert_eq!(
            world.range_include(&[range(1, 7, 3), range(8, 4, -2)]),
            Err(world.include(&[4, 4]).unwrap_err())
        );
        assert_eq!(world.range_include(&[range(1, 7, 3), range(8, 5, -2)]), Ok(group(&[1, 4, 7, 8, 6])));
        assert_eq!(world.range_exclude(&[range(0, 9, 2)]), Ok(group(&[1, 3, 5, 7, 9])));
        assert_eq!(world.range_include(&[range(3, 2, 1)]), Ok(Group::empty()));
    }

    #[test]
    fn mistakes_are_named() {
        let world = Group::world(4);
        let error = world.include(&[0, 4]).unwrap_err();
        assert_eq!(
            (error.class(), error.message()),
            (MPI_ERR_RANK, "rank 4 is not in the group; the ranks of this group are 0 to 3")
        );
        let error = world.exclude(&[2, 1, 2]).unwrap_err();
        assert_eq!(error.message(), "rank 2 is named twice; each rank of the group may be named once");
        assert_eq!(world.range_include(&[range(0, 3, 0)]).unwrap_err().class(), MPI_ERR_ARG);
        assert_eq!(world.range_include(&[range(0, i32::MAX, i32::MAX)]).unwrap_err().class(), MPI_ERR_RANK);
        assert_eq!(world.range_include(&[range(0, i32::MAX, 1)]).unwrap_err().class(), MPI_ERR_RANK);
    }

    #[test]
    fn comparison_and_translation() {
        let world = Group::world(4);
        let turned = group(&[3, 2, 1, 0]);
        assert_eq!(world.compare(&Group::world(4)), Comparison::Identical);
        assert_eq!(world.compare(&turned), Comparison::Similar);
        assert_eq!(world.compare(&group(&[0, 1, 2, 4])), Comparison::Unequal);
        assert_eq!(turned.translate(0, &world), Ok(3));
        assert_eq!(world.translate(MPI_PROC_NULL, &turned), Ok(MPI_PROC_NULL));
        assert_eq!(world.translate(3, &Group::world(2)), Ok(MPI_UNDEFINED));
        assert_eq!(world.translate(-1, &turned).unwrap_err().class(), MPI_ERR_RANK);
    }
}
