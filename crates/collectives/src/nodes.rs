//! Which processes of a communicator share a node, for algorithms that send little between nodes.
//!
//! The processes of a node form a team. One of the team speaks for it with the other nodes: its first process, or the root.

use crate::problem::Problem;
use crate::schedule::Peer;

/// The nodes of a communicator with processes on several. The same at every process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// The node of each rank; nodes count from 0 in the order of their first ranks.
    of_rank: Vec<u32>,
    /// All ranks, node by node, ascending within each.
    ranks: Vec<u32>,
    /// Where each node begins among these, and the end.
    starts: Vec<u32>,
    in_order: bool,
    shared: bool,
}

impl Nodes {
    /// From a name of each rank's node; `None` if all are on one.
    pub fn new(names: &[u32]) -> Option<Nodes> {
        let mut known = std::collections::BTreeMap::new();
        let of_rank: Vec<u32> = names
            .iter()
            .map(|name| {
                let next = known.len() as u32;
                *known.entry(*name).or_insert(next)
            })
            .collect();
        if known.len() < 2 {
            return None;
        }
        let mut ranks: Vec<u32> = (0..names.len() as u32).collect();
        ranks.sort_by_key(|rank| of_rank[*rank as usize]);
        let count = known.len() as u32;
        let starts = (0..=count)
            .map(|node| ranks.partition_point(|rank| of_rank[*rank as usize] < node) as u32)
            .collect();
        let in_order = ranks.is_sorted();
        Some(Nodes { in_order, shared: (count as usize) < names.len(), of_rank, ranks, starts })
    }

    /// How many nodes there are, at least two.
    pub fn count(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    /// The node of a rank.
    pub fn of(&self, rank: u32) -> u32 {
        self.of_rank[rank as usize]
    }

    /// The ranks of a node, ascending.
    pub fn team(&self, node: u32) -> &[u32] {
        &self.ranks[self.start(node) as usize..self.start(node + 1) as usize]
    }

    /// How many processes stand before those of a node, where they stand node by node.
    pub fn start(&self, node: u32) -> u32 {
        self.starts[node as usize]
    }

    /// Whether the ranks of each node follow one another.
    pub fn in_order(&self) -> bool {
        self.in_order
    }

    /// Whether some node has more than one process.
    pub fn shared(&self) -> bool {
        self.shared
    }

    /// All ranks, node by node.
    pub fn ranks(&self) -> &[u32] {
        &self.ranks
    }
}

/// The place of a rank in a row of all processes that stands node by node, so that neighbours share a node where they can: the
/// rank itself on one node.
pub(crate) fn place(problem: &Problem<'_>, rank: u32) -> u32 {
    let Some(nodes) = problem.nodes else { return rank };
    let node = nodes.of(rank);
    nodes.start(node) + index_in(nodes.team(node), rank)
}

/// The rank at a place of that row.
pub(crate) fn rank_at(problem: &Problem<'_>, place: u32) -> u32 {
    problem.nodes.map_or(place, |nodes| nodes.ranks[place as usize])
}

fn index_in(team: &[u32], rank: u32) -> u32 {
    team.binary_search(&rank).expect("a process is in its team") as u32
}

/// What a process sees of teams in which `speaker` speaks for its own, and the first process for every other. Places in
/// the team count from its speaker, places among the nodes from that of `speaker`.
pub(crate) struct View<'p> {
    nodes: &'p Nodes,
    speaker: u32,
    /// The place of this process in its team: 0 if it speaks.
    pub(crate) me: u32,
    /// Of its team.
    pub(crate) size: u32,
    /// The place of its node.
    pub(crate) node: u32,
}

impl<'p> View<'p> {
    pub(crate) fn new(problem: &Problem<'p>, speaker: u32) -> View<'p> {
        let nodes = problem.nodes.expect("an algorithm for several nodes has some");
        let own = nodes.of(problem.rank);
        let team = nodes.team(own);
        let size = team.len() as u32;
        let mut view = View { nodes, speaker, me: 0, size, node: 0 };
        view.me = (index_in(team, problem.rank) + size - view.first(own)) % size;
        view.node = (own + nodes.count() - nodes.of(speaker)) % nodes.count();
        view
    }

    /// Where the speaker stands in the team of a node.
    fn first(&self, node: u32) -> u32 {
        if node == self.nodes.of(self.speaker) { index_in(self.nodes.team(node), self.speaker) } else { 0 }
    }

    /// How many nodes there are.
    pub(crate) fn count(&self) -> u32 {
        self.nodes.count()
    }

    /// The node at a place.
    pub(crate) fn node_at(&self, place: u32) -> u32 {
        (place + self.nodes.of(self.speaker)) % self.nodes.count()
    }

    /// The process at a place in this process's team.
    pub(crate) fn mate(&self, place: u32) -> Peer {
        let own = self.node_at(self.node);
        let team = self.nodes.team(own);
        Peer::Local(team[((place + self.first(own)) % self.size) as usize])
    }

    /// The process that speaks for the node at a place.
    pub(crate) fn speaker_of(&self, place: u32) -> Peer {
        let node = self.node_at(place);
        Peer::Local(self.nodes.team(node)[self.first(node) as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_one_node_need_no_teams() {
        assert_eq!(Nodes::new(&[]), None);
        assert_eq!(Nodes::new(&[7, 7, 7]), None);
    }

    #[test]
    fn teams_stand_in_the_order_of_their_first_ranks() {
        let nodes = Nodes::new(&[9, 2, 9, 5, 2, 2]).unwrap();
        assert_eq!(nodes.ranks(), [0, 2, 1, 4, 5, 3]);
        assert_eq!((0..3).map(|node| nodes.team(node)).collect::<Vec<_>>(), [&[0, 2][..], &[1, 4, 5], &[3]]);
        assert_eq!((nodes.of(4), nodes.start(2), nodes.count()), (1, 5, 3));
        assert!(nodes.shared() && !nodes.in_order());
        assert!(Nodes::new(&[3, 3, 1]).unwrap().in_order());
        assert!(!Nodes::new(&[3, 4, 1]).unwrap().shared());
    }
}
