//! Which algorithm for which problem: a table, read from the top.

use crate::algorithm::{ALGORITHMS, Algorithm, Groups, Needs, named};
use crate::problem::{Direct, Operation, Problem};
use crate::schedule::Schedule;
use std::sync::LazyLock;

/// A line of the table: the first one whose conditions hold, and whose algorithm can solve the problem, is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    pub operation: Operation,
    /// Only where the processes are on several nodes.
    pub several_nodes: bool,
    /// Only where there are more processes than cores.
    pub oversubscribed: bool,
    /// Only up to this many processes.
    pub up_to_processes: u32,
    /// Only up to this many bytes, as [`Problem::bytes`] counts them.
    pub up_to_bytes: u64,
    /// The name of the algorithm.
    pub algorithm: &'static str,
}

const ANY: u64 = u64::MAX;
const ALL: u32 = u32::MAX;
const KIB: u64 = 1 << 10;
/// Up to so many bytes the board is the fastest way for few processes that have a core each.
const FEW: u64 = 16 << 20;

const fn rule(
    operation: Operation,
    oversubscribed: bool,
    up_to_processes: u32,
    up_to_bytes: u64,
    algorithm: &'static str,
) -> Rule {
    Rule { operation, several_nodes: false, oversubscribed, up_to_processes, up_to_bytes, algorithm }
}

/// For processes on several nodes.
const fn between(operation: Operation, up_to_bytes: u64, algorithm: &'static str) -> Rule {
    Rule { several_nodes: true, ..rule(operation, false, ALL, up_to_bytes, algorithm) }
}

/// For intracommunicators; intercommunicators have one algorithm for each operation.
///
/// Between nodes a message costs many times what it costs within one, so few of them cross; long data goes around rings and along
/// chains, which stand node by node, so that every byte crosses to a node once. Where every process has a node to itself, what is not
/// long takes few rounds.
///
/// What a board can do comes next; where there is none, the next line holds.
///
/// Long data is read where it lies, where the processes may do that: a call of the kernel costs as much as the board does for some KiB, and
/// what its owner has just written comes no faster than from the board, but there is one copy instead of two. A broadcast stays on the
/// board, at which its root works too.
///
/// When processes outnumber cores a round costs a change of process on a core for every message, so that few
/// messages win over few rounds; otherwise rounds count for short messages and bytes for long ones.
pub const RULES: &[Rule] = &[
    between(Operation::Barrier, ANY, "nodes"),
    rule(Operation::Barrier, false, ALL, ANY, "board"),
    rule(Operation::Barrier, true, 128, ANY, "linear"),
    rule(Operation::Barrier, true, ALL, ANY, "binomial"),
    rule(Operation::Barrier, false, ALL, ANY, "dissemination"),
    Rule { up_to_processes: 4, ..between(Operation::Bcast, ANY, "nodes") },
    Rule { up_to_processes: 4, ..between(Operation::Bcast, ANY, "binomial") },
    between(Operation::Bcast, 2048 * KIB, "nodes"),
    between(Operation::Bcast, 2048 * KIB, "binomial"),
    between(Operation::Bcast, ANY, "chain"),
    rule(Operation::Bcast, true, 4, 4 * KIB, "board"),
    rule(Operation::Bcast, true, 4, 32 * KIB, "linear"),
    rule(Operation::Bcast, true, 3, ANY, "binomial"),
    rule(Operation::Bcast, true, 4, 128 * KIB, "binomial"),
    rule(Operation::Bcast, true, ALL, 64 * KIB, "board"),
    rule(Operation::Bcast, true, 128, 32 * KIB, "linear"),
    rule(Operation::Bcast, true, ALL, 1024 * KIB, "direct"),
    rule(Operation::Bcast, true, ALL, ANY, "binomial"),
    rule(Operation::Bcast, false, ALL, FEW, "board"),
    rule(Operation::Bcast, false, 4, ANY, "binomial"),
    rule(Operation::Bcast, false, ALL, 32 * KIB, "binomial"),
    rule(Operation::Bcast, false, 8, 512 * KIB, "scatter_allgather"),
    rule(Operation::Bcast, false, ALL, ANY, "chain"),
    rule(Operation::Gather, true, ALL, 4 * KIB, "board"),
    rule(Operation::Gather, true, ALL, ANY, "linear"),
    rule(Operation::Gather, false, 4, FEW, "board"),
    rule(Operation::Gather, false, ALL, 64 * KIB, "board"),
    rule(Operation::Gather, false, 8, ANY, "linear"),
    rule(Operation::Gather, false, ALL, 2 * KIB, "binomial"),
    rule(Operation::Gather, false, ALL, ANY, "linear"),
    rule(Operation::Gatherv, false, ALL, ANY, "board"),
    rule(Operation::Gatherv, false, ALL, ANY, "linear"),
    rule(Operation::Scatter, true, ALL, ANY, "linear"),
    rule(Operation::Scatter, false, 4, FEW, "board"),
    rule(Operation::Scatter, false, ALL, 8 * KIB, "board"),
    rule(Operation::Scatter, false, 8, ANY, "linear"),
    rule(Operation::Scatter, false, ALL, 2 * KIB, "binomial"),
    rule(Operation::Scatter, false, ALL, ANY, "linear"),
    rule(Operation::Scatterv, true, 8, ANY, "board"),
    rule(Operation::Scatterv, true, ALL, ANY, "linear"),
    rule(Operation::Scatterv, false, ALL, ANY, "board"),
    rule(Operation::Scatterv, false, ALL, ANY, "linear"),
    between(Operation::Allgather, 32 * KIB, "nodes"),
    between(Operation::Allgather, 8 * KIB, "recursive_doubling"),
    between(Operation::Allgather, 4 * KIB, "bruck"),
    between(Operation::Allgather, ANY, "ring"),
    rule(Operation::Allgather, true, ALL, 4 * KIB, "board"),
    rule(Operation::Allgather, true, 4, 16 * KIB, "gather_bcast"),
    rule(Operation::Allgather, true, 3, 64 * KIB, "ring"),
    rule(Operation::Allgather, true, 4, 32 * KIB, "ring"),
    rule(Operation::Allgather, true, ALL, 8 * KIB, "gather_bcast"),
    rule(Operation::Allgather, true, ALL, ANY, "direct"),
    rule(Operation::Allgather, true, ALL, 16 * KIB, "gather_bcast"),
    rule(Operation::Allgather, true, ALL, ANY, "ring"),
    rule(Operation::Allgather, false, 4, 8 * KIB, "board"),
    rule(Operation::Allgather, false, 4, ANY, "direct"),
    rule(Operation::Allgather, false, 4, FEW, "board"),
    rule(Operation::Allgather, false, 8, 128 * KIB, "board"),
    rule(Operation::Allgather, false, 8, ANY, "direct"),
    rule(Operation::Allgather, false, ALL, 1024 * KIB, "board"),
    rule(Operation::Allgather, false, ALL, 8 * KIB, "recursive_doubling"),
    rule(Operation::Allgather, false, ALL, 4 * KIB, "bruck"),
    rule(Operation::Allgather, false, ALL, ANY, "ring"),
    rule(Operation::Allgatherv, true, ALL, 128 * KIB, "board"),
    rule(Operation::Allgatherv, true, ALL, ANY, "direct"),
    rule(Operation::Allgatherv, false, 2, 16 * KIB, "board"),
    rule(Operation::Allgatherv, false, 4, 32 * KIB, "board"),
    rule(Operation::Allgatherv, false, 4, ANY, "direct"),
    rule(Operation::Allgatherv, false, 4, FEW, "board"),
    rule(Operation::Allgatherv, false, ALL, 1024 * KIB, "board"),
    rule(Operation::Allgatherv, true, ALL, 128 * KIB, "gather_bcast"),
    rule(Operation::Allgatherv, false, ALL, ANY, "ring"),
    rule(Operation::Alltoall, true, ALL, 512, "board"),
    rule(Operation::Alltoall, true, ALL, 256, "bruck"),
    rule(Operation::Alltoall, true, 4, 64 * KIB, "linear"),
    rule(Operation::Alltoall, true, 6, 16 * KIB, "linear"),
    rule(Operation::Alltoall, true, ALL, 2 * KIB, "linear"),
    rule(Operation::Alltoall, true, ALL, ANY, "direct"),
    rule(Operation::Alltoall, true, ALL, ANY, "linear"),
    rule(Operation::Alltoall, false, ALL, 8 * KIB, "board"),
    rule(Operation::Alltoall, false, ALL, ANY, "direct"),
    rule(Operation::Alltoall, false, 4, FEW, "board"),
    rule(Operation::Alltoall, false, ALL, 1024 * KIB, "board"),
    rule(Operation::Alltoall, false, 4, 32 * KIB, "linear"),
    rule(Operation::Alltoall, false, ALL, 256, "bruck"),
    rule(Operation::Alltoall, false, ALL, 4 * KIB, "linear"),
    rule(Operation::Alltoall, false, ALL, ANY, "pairwise"),
    rule(Operation::Alltoallv, false, ALL, ANY, "board"),
    rule(Operation::Alltoallv, true, ALL, ANY, "linear"),
    rule(Operation::Alltoallv, false, 16, ANY, "linear"),
    rule(Operation::Alltoallv, false, ALL, ANY, "pairwise"),
    rule(Operation::Alltoallw, false, ALL, ANY, "board"),
    rule(Operation::Alltoallw, true, ALL, ANY, "linear"),
    rule(Operation::Alltoallw, false, 16, ANY, "linear"),
    rule(Operation::Alltoallw, false, ALL, ANY, "pairwise"),
    between(Operation::Reduce, ANY, "nodes"),
    rule(Operation::Reduce, true, ALL, 4 * KIB, "board"),
    rule(Operation::Reduce, true, 128, 8 * KIB, "linear"),
    rule(Operation::Reduce, true, ALL, ANY, "binomial"),
    rule(Operation::Reduce, false, 4, FEW, "board"),
    rule(Operation::Reduce, false, ALL, 128 * KIB, "board"),
    rule(Operation::Reduce, false, ALL, ANY, "direct"),
    rule(Operation::Reduce, false, ALL, 1024 * KIB, "board"),
    rule(Operation::Reduce, false, ALL, 64 * KIB, "binomial"),
    rule(Operation::Reduce, false, ALL, ANY, "reduce_scatter_gather"),
    rule(Operation::Reduce, false, ALL, ANY, "binomial"),
    between(Operation::Allreduce, 1024 * KIB, "nodes"),
    between(Operation::Allreduce, 256 * KIB, "recursive_doubling"),
    between(Operation::Allreduce, 1024 * KIB, "rabenseifner"),
    between(Operation::Allreduce, ANY, "ring"),
    between(Operation::Allreduce, ANY, "nodes"),
    rule(Operation::Allreduce, true, ALL, 4 * KIB, "board"),
    rule(Operation::Allreduce, true, 128, 8 * KIB, "linear"),
    rule(Operation::Allreduce, true, 3, 64 * KIB, "reduce_bcast"),
    rule(Operation::Allreduce, true, ALL, 16 * KIB, "reduce_bcast"),
    rule(Operation::Allreduce, true, ALL, ANY, "direct"),
    rule(Operation::Allreduce, true, ALL, ANY, "reduce_bcast"),
    rule(Operation::Allreduce, false, 4, 32 * KIB, "board"),
    rule(Operation::Allreduce, false, 4, ANY, "direct"),
    rule(Operation::Allreduce, false, 4, FEW, "board"),
    rule(Operation::Allreduce, false, 8, 256 * KIB, "board"),
    rule(Operation::Allreduce, false, ALL, 32 * KIB, "board"),
    rule(Operation::Allreduce, false, ALL, ANY, "direct"),
    rule(Operation::Allreduce, false, ALL, 1024 * KIB, "board"),
    rule(Operation::Allreduce, false, ALL, 16 * KIB, "recursive_doubling"),
    rule(Operation::Allreduce, false, ALL, 1024 * KIB, "rabenseifner"),
    rule(Operation::Allreduce, false, ALL, ANY, "ring"),
    rule(Operation::Allreduce, false, ALL, ANY, "reduce_bcast"),
    rule(Operation::ReduceScatter, true, ALL, 4 * KIB, "board"),
    rule(Operation::ReduceScatter, true, ALL, 8 * KIB, "reduce_then_scatter"),
    rule(Operation::ReduceScatter, true, ALL, 16 * KIB, "board"),
    rule(Operation::ReduceScatter, true, 4, 32 * KIB, "board"),
    rule(Operation::ReduceScatter, true, 4, 128 * KIB, "recursive_halving"),
    rule(Operation::ReduceScatter, true, ALL, ANY, "direct"),
    rule(Operation::ReduceScatter, false, 2, 16 * KIB, "board"),
    rule(Operation::ReduceScatter, false, 4, 32 * KIB, "board"),
    rule(Operation::ReduceScatter, false, 4, ANY, "direct"),
    rule(Operation::ReduceScatter, false, 4, 2 * FEW, "board"),
    rule(Operation::ReduceScatter, false, ALL, 64 * KIB, "board"),
    rule(Operation::ReduceScatter, false, ALL, ANY, "direct"),
    rule(Operation::ReduceScatter, false, ALL, 2048 * KIB, "board"),
    rule(Operation::ReduceScatter, false, ALL, 512 * KIB, "recursive_halving"),
    rule(Operation::ReduceScatter, false, ALL, ANY, "pairwise"),
    rule(Operation::ReduceScatter, false, ALL, ANY, "linear"),
    rule(Operation::ReduceScatterBlock, true, ALL, 4 * KIB, "board"),
    rule(Operation::ReduceScatterBlock, true, ALL, 8 * KIB, "reduce_then_scatter"),
    rule(Operation::ReduceScatterBlock, true, ALL, 16 * KIB, "board"),
    rule(Operation::ReduceScatterBlock, true, 4, 32 * KIB, "board"),
    rule(Operation::ReduceScatterBlock, true, 4, 128 * KIB, "recursive_halving"),
    rule(Operation::ReduceScatterBlock, true, ALL, ANY, "direct"),
    rule(Operation::ReduceScatterBlock, false, 2, 16 * KIB, "board"),
    rule(Operation::ReduceScatterBlock, false, 4, 32 * KIB, "board"),
    rule(Operation::ReduceScatterBlock, false, 4, ANY, "direct"),
    rule(Operation::ReduceScatterBlock, false, 4, 2 * FEW, "board"),
    rule(Operation::ReduceScatterBlock, false, ALL, 64 * KIB, "board"),
    rule(Operation::ReduceScatterBlock, false, ALL, ANY, "direct"),
    rule(Operation::ReduceScatterBlock, false, ALL, 2048 * KIB, "board"),
    rule(Operation::ReduceScatterBlock, false, ALL, 512 * KIB, "recursive_halving"),
    rule(Operation::ReduceScatterBlock, false, ALL, ANY, "pairwise"),
    rule(Operation::ReduceScatterBlock, false, ALL, ANY, "linear"),
    rule(Operation::Scan, false, ALL, 4 * KIB, "board"),
    rule(Operation::Scan, true, ALL, ANY, "linear"),
    rule(Operation::Scan, false, 4, FEW, "board"),
    rule(Operation::Scan, false, ALL, ANY, "recursive_doubling"),
    rule(Operation::Exscan, false, ALL, 4 * KIB, "board"),
    rule(Operation::Exscan, true, ALL, ANY, "linear"),
    rule(Operation::Exscan, false, 4, FEW, "board"),
    rule(Operation::Exscan, false, ALL, ANY, "recursive_doubling"),
    rule(Operation::NeighborAllgather, false, ALL, ANY, "linear"),
    rule(Operation::NeighborAllgatherv, false, ALL, ANY, "linear"),
    rule(Operation::NeighborAlltoall, false, ALL, ANY, "linear"),
    rule(Operation::NeighborAlltoallv, false, ALL, ANY, "linear"),
    rule(Operation::NeighborAlltoallw, false, ALL, ANY, "linear"),
];

/// Algorithms that a person has asked for, for tests and measurements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    chosen: Vec<(Operation, &'static str)>,
}

impl Overrides {
    /// None.
    pub const NONE: &Overrides = &Overrides { chosen: Vec::new() };

    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.chosen.is_empty()
    }

    /// Reads `operation:algorithm`, several of them separated by commas, as in `allreduce:ring,bcast:chain`.
    /// Every process must be given the same.
    ///
    /// # Errors
    /// A sentence that says what is wrong and what there is.
    pub fn parse(text: &str) -> Result<Overrides, String> {
        let mut chosen = Vec::new();
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let Some((operation, name)) = item.split_once(':') else {
                return Err(format!("'{item}' is not of the form operation:algorithm"));
            };
            let Some(operation) = Operation::ALL.into_iter().find(|known| known.name() == operation) else {
                let known: Vec<_> = Operation::ALL.iter().map(|known| known.name()).collect();
                return Err(format!(
                    "'{operation}' is no collective operation; there are {}",
                    known.join(", ")
                ));
            };
            match named(operation, Groups::One, name) {
                Some(algorithm) => chosen.push((operation, algorithm.name)),
                None => {
                    let known: Vec<_> = ALGORITHMS
                        .iter()
                        .filter(|known| known.groups == Groups::One)
                        .filter(|known| known.operations.contains(&operation))
                        .map(|known| known.name)
                        .collect();
                    return Err(format!(
                        "{} has no algorithm '{name}'; it has {}",
                        operation.name(),
                        known.join(", ")
                    ));
                }
            }
        }
        Ok(Overrides { chosen })
    }

    fn of(&self, operation: Operation) -> Option<&'static Algorithm> {
        let (_, name) = self.chosen.iter().rev().find(|(chosen, _)| *chosen == operation)?;
        named(operation, Groups::One, name)
    }
}

/// The algorithm for a problem: the same at every process of the communicator.
///
/// # Panics
/// If the table has no line for the operation, which a test excludes.
pub fn select(problem: &Problem<'_>, overrides: &Overrides) -> &'static Algorithm {
    if problem.is_inter() {
        return ALGORITHMS
            .iter()
            .copied()
            .find(|algorithm| algorithm.can(problem))
            .expect("every operation but the scans has an algorithm for intercommunicators");
    }
    if let Some(algorithm) = overrides.of(problem.operation).filter(|algorithm| algorithm.can(problem)) {
        return algorithm;
    }
    let bytes = problem.bytes();
    let lines = &LINES[place(problem.operation, problem.nodes.is_some(), problem.oversubscribed)];
    let line = lines.iter().find(|(rule, algorithm)| {
        problem.size <= rule.up_to_processes
            && bytes <= rule.up_to_bytes
            && (algorithm.needs != Needs::Direct || problem.direct == Direct::Fast)
            && algorithm.has_what_it_needs(problem)
    });
    line.expect("the last line of every operation holds always").1
}

/// The lines of [`RULES`] for each operation, with their algorithms: on one node or on several, and with a core for each process or without.
static LINES: LazyLock<Vec<Vec<(&'static Rule, &'static Algorithm)>>> = LazyLock::new(|| {
    let lines = |operation, nodes, oversubscribed| {
        let rules = RULES.iter().filter(move |rule| {
            rule.operation == operation
                && (nodes || !rule.several_nodes)
                && (oversubscribed || !rule.oversubscribed)
        });
        rules.filter_map(|rule| Some((rule, named(operation, Groups::One, rule.algorithm)?))).collect()
    };
    let cases = [(false, false), (false, true), (true, false), (true, true)];
    Operation::ALL
        .into_iter()
        .flat_map(|operation| cases.map(|(nodes, oversubscribed)| lines(operation, nodes, oversubscribed)))
        .collect()
});

/// Where its lines stand in [`LINES`].
fn place(operation: Operation, nodes: bool, oversubscribed: bool) -> usize {
    operation as usize * 4 + usize::from(nodes) * 2 + usize::from(oversubscribed)
}

/// The schedule for a problem.
pub fn schedule(problem: &Problem<'_>, overrides: &Overrides) -> Schedule {
    (select(problem, overrides).build)(problem)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nodes::Nodes;
    use crate::problem::{Part, Root, Shape};
    use crate::schedule::Element;

    pub(crate) fn shape(operation: Operation, size: u32, count: u64, commutative: bool) -> Shape {
        let part = Part { count, element: Element::of_size(8) };
        Shape {
            operation,
            rank: 0,
            size,
            remote_size: 0,
            root: Root::Rank(0),
            send: part,
            recv: part,
            in_place: false,
            commutative,
            oversubscribed: false,
            board: 0,
            direct: Direct::No,
        }
    }

    #[test]
    fn every_rule_names_an_algorithm_that_exists() {
        for rule in RULES {
            assert!(named(rule.operation, Groups::One, rule.algorithm).is_some(), "{rule:?}");
        }
    }

    #[test]
    fn there_is_an_algorithm_for_everything() {
        for operation in Operation::ALL {
            for size in 1..70 {
                for bytes in [0, 8, 1 << 13, 1 << 17, 1 << 30] {
                    for oversubscribed in [false, true] {
                        for commutative in [false, true] {
                            let shape =
                                Shape { oversubscribed, ..shape(operation, size, bytes / 8, commutative) };
                            let problem = Problem::even(shape);
                            assert!(select(&problem, &Overrides::default()).can(&problem));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn overrides_are_obeyed_where_they_can_be() {
        let overrides = Overrides::parse("allreduce:ring, barrier:linear").expect("both exist");
        let commutative = Problem::even(shape(Operation::Allreduce, 4, 1, true));
        assert_eq!(select(&commutative, &overrides).name, "ring");
        let ordered = Problem::even(shape(Operation::Allreduce, 4, 1, false));
        assert_eq!(select(&ordered, &overrides).name, "recursive_doubling");
        let barrier = Problem::even(shape(Operation::Barrier, 4, 0, true));
        assert_eq!(select(&barrier, &overrides).name, "linear");
    }

    #[test]
    fn a_board_is_used_where_there_is_one() {
        for oversubscribed in [false, true] {
            let shape = Shape { board: 4096, oversubscribed, ..shape(Operation::Allreduce, 8, 1, false) };
            assert_eq!(select(&Problem::even(shape), &Overrides::default()).name, "board");
            let without = Problem::even(Shape { board: 0, ..shape });
            assert_ne!(select(&without, &Overrides::default()).name, "board");
            let long = Problem::even(Shape { recv: Part { count: 1 << 27, ..shape.recv }, ..shape });
            assert_ne!(select(&long, &Overrides::default()).name, "board");
        }
    }

    #[test]
    fn long_data_is_read_where_it_lies_if_all_may_do_that() {
        let operations =
            [Operation::Allgather, Operation::Alltoall, Operation::Allreduce, Operation::ReduceScatterBlock];
        for operation in operations {
            for (oversubscribed, size) in [(false, 2), (false, 16), (true, 8)] {
                if operation == Operation::Allgather && size == 16 {
                    // As fast on the board.
                    continue;
                }
                let shape = Shape {
                    board: 4096,
                    oversubscribed,
                    direct: Direct::Fast,
                    ..shape(operation, size, 1 << 14, true)
                };
                assert_eq!(select(&Problem::even(shape), &Overrides::default()).name, "direct");
                for direct in [Direct::No, Direct::Slow] {
                    let without = Shape { direct, ..shape };
                    assert_ne!(select(&Problem::even(without), &Overrides::default()).name, "direct");
                }
                let slow = Shape { direct: Direct::Slow, ..shape };
                let wanted = Overrides::parse(&format!("{}:direct", operation.name())).unwrap();
                assert_eq!(select(&Problem::even(slow), &wanted).name, "direct");
            }
        }
        let in_place = Shape { in_place: true, ..shape(Operation::Alltoall, 2, 1 << 14, true) };
        let in_place = Shape { board: 4096, direct: Direct::Fast, ..in_place };
        assert_eq!(select(&Problem::even(in_place), &Overrides::default()).name, "board");
    }

    /// What is taken for processes on the nodes `places`.
    fn name(operation: Operation, places: &[u32], bytes: u64, commutative: bool) -> &'static str {
        let shape = shape(operation, places.len() as u32, bytes / 8, commutative);
        let nodes = Nodes::new(places);
        select(&Problem { nodes: nodes.as_ref(), ..Problem::even(shape) }, &Overrides::default()).name
    }

    #[test]
    fn few_messages_cross_between_nodes() {
        for operation in [Operation::Barrier, Operation::Bcast, Operation::Reduce, Operation::Allgather] {
            assert_eq!(name(operation, &[0, 0, 1, 1], 8, true), "nodes");
            assert_ne!(name(operation, &[0, 1, 2, 3], 8, true), "nodes");
            assert_ne!(name(operation, &[0, 0, 0, 0], 8, true), "nodes");
        }
        assert_eq!(name(Operation::Allreduce, &[0, 1, 0, 1], 8, true), "nodes");
        assert_eq!(name(Operation::Allreduce, &[0, 1, 0, 1], 8, false), "recursive_doubling");
        assert_eq!(name(Operation::Allreduce, &[0, 0, 1, 1], 8, false), "nodes");
        assert_eq!(name(Operation::Allreduce, &[0, 0, 1, 1], 1 << 24, true), "ring");
        assert_eq!(name(Operation::Allreduce, &[0, 0, 1, 1], 1 << 24, false), "nodes");
    }

    #[test]
    fn few_rounds_where_every_process_has_a_node_to_itself() {
        let name =
            |operation, size: u32, bytes| name(operation, &(0..size).collect::<Vec<u32>>(), bytes, true);
        for size in [2, 4, 16] {
            assert_eq!(name(Operation::Allreduce, size, 8), "recursive_doubling");
            assert_eq!(name(Operation::Allreduce, size, 1 << 24), "ring");
            assert_eq!(name(Operation::Allgather, size, 8), "recursive_doubling");
            assert_eq!(name(Operation::Bcast, size, 8), "binomial");
            assert_eq!(name(Operation::Bcast, size, 1 << 24), if size == 16 { "chain" } else { "binomial" });
        }
        assert_eq!(name(Operation::Allgather, 5, 8), "bruck");
    }

    #[test]
    fn wrong_overrides_are_explained() {
        assert!(Overrides::parse("ring").unwrap_err().contains("operation:algorithm"));
        assert!(Overrides::parse("reduceall:ring").unwrap_err().contains("allreduce"));
        assert!(Overrides::parse("allreduce:star").unwrap_err().contains("rabenseifner"));
        assert_eq!(Overrides::parse(""), Ok(Overrides::default()));
    }
}
