//! The list of all algorithms.

use crate::problem::{Operation, Problem};
use crate::schedule::Schedule;
use crate::{
    allgather, allreduce, alltoall, barrier, bcast, board, direct, exscan, gather, inter, neighbor, reduce,
    reduce_scatter, scan, scatter,
};

/// Which communicators an algorithm is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Groups {
    /// Intracommunicators.
    One,
    /// Intercommunicators.
    Two,
}

/// What an algorithm demands beyond that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    Nothing,
    /// The operator may be applied in any order.
    Commutative,
    /// The number of processes is a power of two.
    PowerOfTwo,
    /// There are several nodes, some with more than one process; and, for a reduction in the order of the ranks, the ranks of
    /// each node follow one another.
    Nodes,
    /// There is a board, and what else `board::can` says.
    Board,
    /// There is a board, and the processes read each other's memory, and what else `direct::can` says.
    Direct,
}

/// A way to do an operation.
#[derive(Debug)]
pub struct Algorithm {
    /// The operations that it can do.
    pub operations: &'static [Operation],
    /// Unique among the algorithms of an operation.
    pub name: &'static str,
    /// What it costs, for `n` processes and `m` bytes: rounds, messages, bytes.
    pub cost: &'static str,
    pub groups: Groups,
    pub needs: Needs,
    pub build: fn(&Problem<'_>) -> Schedule,
}

impl Algorithm {
    /// Whether the algorithm can solve a problem. The same answer at every process.
    pub fn can(&self, problem: &Problem<'_>) -> bool {
        self.operations.contains(&problem.operation)
            && (self.groups == Groups::Two) == problem.is_inter()
            && self.has_what_it_needs(problem)
    }

    /// Whether it can solve a problem of its operations and its communicators.
    pub(crate) fn has_what_it_needs(&self, problem: &Problem<'_>) -> bool {
        match self.needs {
            Needs::Nothing => true,
            Needs::Commutative => problem.commutative,
            Needs::PowerOfTwo => problem.size.is_power_of_two(),
            Needs::Nodes => {
                problem.nodes.is_some_and(|nodes| nodes.shared() && (problem.commutative || nodes.in_order()))
            }
            Needs::Board => board::can(problem),
            Needs::Direct => direct::can(problem),
        }
    }
}

/// Every algorithm, in the order of the operations of the standard. Each is one place in memory: two references to it are equal.
pub static ALGORITHMS: &[&Algorithm] = &[
    &barrier::dissemination::ALGORITHM,
    &barrier::linear::ALGORITHM,
    &barrier::binomial::ALGORITHM,
    &barrier::board::ALGORITHM,
    &barrier::nodes::ALGORITHM,
    &inter::barrier::ALGORITHM,
    &bcast::binomial::ALGORITHM,
    &bcast::linear::ALGORITHM,
    &bcast::scatter_allgather::ALGORITHM,
    &bcast::chain::ALGORITHM,
    &bcast::board::ALGORITHM,
    &bcast::direct::ALGORITHM,
    &bcast::nodes::ALGORITHM,
    &inter::bcast::ALGORITHM,
    &gather::linear::ALGORITHM,
    &gather::binomial::ALGORITHM,
    &gather::board::ALGORITHM,
    &gather::vector::ALGORITHM,
    &inter::gather::ALGORITHM,
    &scatter::linear::ALGORITHM,
    &scatter::binomial::ALGORITHM,
    &scatter::board::ALGORITHM,
    &scatter::vector::ALGORITHM,
    &inter::scatter::ALGORITHM,
    &allgather::ring::ALGORITHM,
    &allgather::recursive_doubling::ALGORITHM,
    &allgather::bruck::ALGORITHM,
    &allgather::gather_bcast::ALGORITHM,
    &allgather::board::ALGORITHM,
    &allgather::direct::ALGORITHM,
    &allgather::nodes::ALGORITHM,
    &inter::allgather::ALGORITHM,
    &inter::allgatherv::ALGORITHM,
    &alltoall::pairwise::ALGORITHM,
    &alltoall::linear::ALGORITHM,
    &alltoall::bruck::ALGORITHM,
    &alltoall::board::ALGORITHM,
    &alltoall::vector::ALGORITHM,
    &alltoall::direct::ALGORITHM,
    &inter::alltoall::ALGORITHM,
    &reduce::binomial::ALGORITHM,
    &reduce::linear::ALGORITHM,
    &reduce::reduce_scatter_gather::ALGORITHM,
    &reduce::board::ALGORITHM,
    &reduce::direct::ALGORITHM,
    &reduce::nodes::ALGORITHM,
    &inter::reduce::ALGORITHM,
    &allreduce::recursive_doubling::ALGORITHM,
    &allreduce::linear::ALGORITHM,
    &allreduce::reduce_bcast::ALGORITHM,
    &allreduce::rabenseifner::ALGORITHM,
    &allreduce::ring::ALGORITHM,
    &allreduce::board::ALGORITHM,
    &allreduce::direct::ALGORITHM,
    &allreduce::nodes::ALGORITHM,
    &inter::allreduce::ALGORITHM,
    &reduce_scatter::pairwise::ALGORITHM,
    &reduce_scatter::recursive_halving::ALGORITHM,
    &reduce_scatter::linear::ALGORITHM,
    &reduce_scatter::reduce_then_scatter::ALGORITHM,
    &reduce_scatter::board::ALGORITHM,
    &reduce_scatter::direct::ALGORITHM,
    &inter::reduce_scatter::ALGORITHM,
    &scan::recursive_doubling::ALGORITHM,
    &scan::linear::ALGORITHM,
    &scan::board::ALGORITHM,
    &exscan::recursive_doubling::ALGORITHM,
    &exscan::linear::ALGORITHM,
    &exscan::board::ALGORITHM,
    &neighbor::linear::ALGORITHM,
];

/// The algorithm of that name for an operation on one kind of communicator.
pub fn named(operation: Operation, groups: Groups, name: &str) -> Option<&'static Algorithm> {
    ALGORITHMS.iter().copied().find(|algorithm| {
        algorithm.operations.contains(&operation) && algorithm.groups == groups && algorithm.name == name
    })
}
