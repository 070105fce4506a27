//! Virtual topologies: communicators whose processes are arranged (MPI 5.0, chapter 8).

use super::Communicator;
use super::exchange::{Channel, decode, encode, run};
use crate::constants::{
    MPI_ERR_ARG, MPI_ERR_DIMS, MPI_ERR_RANK, MPI_ERR_TOPOLOGY, MPI_PROC_NULL, MPI_UNDEFINED,
};
use crate::group::RankRange;
use crate::process::Process;
use crate::{Error, Result};
use std::sync::Arc;

/// How the processes of a communicator are arranged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// A grid, the last dimension running fastest.
    Cartesian(Cartesian),
    /// A graph that every process knows as a whole.
    Graph(Graph),
    /// A graph of which every process knows its own edges.
    Distributed(Neighbors),
}

/// A grid of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cartesian {
    extents: Vec<i32>,
    periodic: Vec<bool>,
}

impl Cartesian {
    /// A grid with these extents; along a periodic dimension the last is next to the first. With an extent of 0 there is
    /// no place in it for anybody.
    pub fn new(extents: Vec<i32>, periodic: Vec<bool>) -> Result<Cartesian> {
        assert_eq!(extents.len(), periodic.len());
        if let Some(index) = extents.iter().position(|&extent| extent < 0) {
            return Err(Error::new(
                MPI_ERR_DIMS,
                format!("dims[{index}] is {}; a dimension of a grid has 0 or more processes", extents[index]),
            ));
        }
        Ok(Cartesian { extents, periodic })
    }

    /// How many processes it has, and an error if that is more than `available`.
    fn processes_among(&self, available: i32) -> Result<i32> {
        if self.extents.contains(&0) {
            return Ok(0);
        }
        let processes = self.extents.iter().try_fold(1_i64, |product, &extent| {
            Some(product * i64::from(extent)).filter(|&product| product <= i64::from(available))
        });
        processes.map(|processes| processes as i32).ok_or_else(|| {
            Error::new(
                MPI_ERR_DIMS,
                format!(
                    "dims is {:?}, a grid of more than the {available} processes of the communicator; the product of \
                     the dimensions must not be more",
                    self.extents
                ),
            )
        })
    }

    /// The extent of each dimension.
    pub fn extents(&self) -> &[i32] {
        &self.extents
    }

    /// Whether each dimension is periodic.
    pub fn periodic(&self) -> &[bool] {
        &self.periodic
    }

    /// The place of a rank that is in the grid.
    pub fn coordinates(&self, rank: i32) -> Vec<i32> {
        let mut rest = rank;
        let mut coordinates: Vec<i32> = self
            .extents
            .iter()
            .rev()
            .map(|&extent| {
                let coordinate = rest % extent;
                rest /= extent;
                coordinate
            })
            .collect();
        coordinates.reverse();
        coordinates
    }

    /// MPI_Cart_rank: coordinates beyond the grid are wrapped along periodic dimensions, and are an error along others.
    pub fn rank(&self, coordinates: &[i32]) -> Result<i32> {
        let mut rank = 0;
        for (index, ((&coordinate, &extent), &periodic)) in
            coordinates.iter().zip(&self.extents).zip(&self.periodic).enumerate()
        {
            if !periodic && !(0..extent).contains(&coordinate) {
                return Err(Error::new(
                    MPI_ERR_ARG,
                    format!(
                        "coords[{index}] is {coordinate}; along this dimension, which is not periodic, it must be 0 to {}",
                        extent - 1
                    ),
                ));
            }
            rank = rank * extent + coordinate.rem_euclid(extent);
        }
        Ok(rank)
    }

    /// MPI_Cart_shift: the ranks `displacement` steps before and after `rank`, MPI_PROC_NULL beyond an edge.
    pub fn shift(&self, rank: i32, direction: i32, displacement: i32) -> Result<(i32, i32)> {
        let index =
            usize::try_from(direction).ok().filter(|&index| index < self.extents.len()).ok_or_else(|| {
                Error::new(
                    MPI_ERR_ARG,
                    format!(
                        "direction is {direction}; the grid has {} dimensions, counted from 0",
                        self.extents.len()
                    ),
                )
            })?;
        let place = self.coordinates(rank);
        let neighbor = |steps: i64| {
            let coordinate = i64::from(place[index]) + steps;
            let extent = i64::from(self.extents[index]);
            if !self.periodic[index] && !(0..extent).contains(&coordinate) {
                return MPI_PROC_NULL;
            }
            let mut other = place.clone();
            other[index] = coordinate.rem_euclid(extent) as i32;
            self.rank(&other).expect("inside the grid")
        };
        Ok((neighbor(-i64::from(displacement)), neighbor(i64::from(displacement))))
    }
}

/// A graph over the ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// For each rank the end of its neighbors in `edges`.
    ends: Vec<i32>,
    edges: Vec<i32>,
}

impl Graph {
    /// The arrays of MPI_Graph_create.
    pub fn new(ends: Vec<i32>, edges: Vec<i32>) -> Result<Graph> {
        let mut last = 0;
        for (node, &end) in ends.iter().enumerate() {
            if end < last {
                return Err(Error::new(
                    MPI_ERR_ARG,
                    format!(
                        "index[{node}] is {end}, less than the {last} before it; the numbers of edges add up"
                    ),
                ));
            }
            last = end;
        }
        let nodes = ends.len() as i32;
        match edges.iter().position(|edge| !(0..nodes).contains(edge)) {
            Some(place) => Err(Error::new(
                MPI_ERR_ARG,
                format!("edges[{place}] is {}; the nodes of the graph are 0 to {}", edges[place], nodes - 1),
            )),
            None => Ok(Graph { ends, edges }),
        }
    }

    /// As it was given: the ends, and the edges.
    pub fn arrays(&self) -> (&[i32], &[i32]) {
        (&self.ends, &self.edges)
    }

    /// The neighbors of a rank that is in the graph.
    pub fn neighbors(&self, rank: i32) -> &[i32] {
        let start = if rank == 0 { 0 } else { self.ends[rank as usize - 1] };
        &self.edges[start as usize..self.ends[rank as usize] as usize]
    }
}

/// Whom a process talks to in the collective operations on its neighbours (MPI 5.0, section 8.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighborhood {
    /// From which rank each block of the receive buffer comes; `None` beyond the edge of a grid.
    pub(crate) sources: Vec<Option<u32>>,
    /// To which rank each block of the send buffer goes.
    pub(crate) destinations: Vec<Option<u32>>,
    /// The blocks of the receive buffer in the order in which the sources send them, where a source has several.
    pub(crate) order: Vec<u32>,
}

impl Neighborhood {
    fn of_grid(grid: &Cartesian, rank: i32) -> Neighborhood {
        let dimensions = grid.extents.len();
        let neighbors: Vec<Option<u32>> = (0..dimensions)
            .flat_map(|direction| {
                let (before, after) = grid.shift(rank, direction as i32, 1).expect("a dimension of the grid");
                [before, after]
            })
            .map(|neighbor| u32::try_from(neighbor).ok())
            .collect();
        // What goes towards the lower neighbour comes there from the upper one, even if both are the same process.
        let order = (0..neighbors.len() as u32).map(|block| block ^ 1).collect();
        Neighborhood { sources: neighbors.clone(), destinations: neighbors, order }
    }

    fn of_edges(sources: impl Iterator<Item = i32>, destinations: impl Iterator<Item = i32>) -> Neighborhood {
        let sources: Vec<_> = sources.map(|rank| u32::try_from(rank).ok()).collect();
        let destinations = destinations.map(|rank| u32::try_from(rank).ok()).collect();
        let order = (0..sources.len() as u32).collect();
        Neighborhood { sources, destinations, order }
    }
}

/// The edges of one process in a distributed graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbors {
    /// From whom edges come, and with which weights.
    pub sources: Vec<(i32, i32)>,
    /// To whom edges go, and with which weights.
    pub destinations: Vec<(i32, i32)>,
    /// Whether the program has given the weights.
    pub weighted: bool,
}

/// An edge that a process contributes to a distributed graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    pub source: i32,
    pub destination: i32,
    pub weight: i32,
}

impl Communicator {
    /// Its topology, if it has one.
    pub fn topology(&self) -> Option<&Topology> {
        self.topology.get().map(|topology| &**topology)
    }

    /// Its grid; an error if it has none.
    pub fn grid(&self) -> Result<&Cartesian> {
        match self.topology() {
            Some(Topology::Cartesian(grid)) => Ok(grid),
            _ => Err(self.no_topology("a Cartesian topology", "MPI_Cart_create")),
        }
    }

    /// Its graph; an error if it has none.
    pub fn graph(&self) -> Result<&Graph> {
        match self.topology() {
            Some(Topology::Graph(graph)) => Ok(graph),
            _ => Err(self.no_topology("a graph topology", "MPI_Graph_create")),
        }
    }

    /// Its edges in a distributed graph; an error if it has none.
    pub fn neighbors(&self) -> Result<&Neighbors> {
        match self.topology() {
            Some(Topology::Distributed(neighbors)) => Ok(neighbors),
            _ => Err(self.no_topology("a distributed graph topology", "MPI_Dist_graph_create")),
        }
    }

    /// Whom this process talks to in the operations on neighbours, if the communicator has a topology.
    pub(crate) fn neighborhood(&self) -> Option<Neighborhood> {
        Some(match self.topology()? {
            Topology::Cartesian(grid) => Neighborhood::of_grid(grid, self.rank()),
            Topology::Graph(graph) => {
                let neighbors = || graph.neighbors(self.rank()).iter().copied();
                Neighborhood::of_edges(neighbors(), neighbors())
            }
            Topology::Distributed(neighbors) => Neighborhood::of_edges(
                neighbors.sources.iter().map(|&(rank, _)| rank),
                neighbors.destinations.iter().map(|&(rank, _)| rank),
            ),
        })
    }

    /// How many neighbours this process has in the operations on neighbours: sources and destinations, those beyond
    /// the edges of a grid included. An error if there is no topology.
    pub fn degrees(&self) -> Result<(usize, usize)> {
        match self.topology() {
            Some(Topology::Cartesian(grid)) => Ok((2 * grid.extents.len(), 2 * grid.extents.len())),
            Some(Topology::Graph(graph)) => {
                let degree = graph.neighbors(self.rank()).len();
                Ok((degree, degree))
            }
            Some(Topology::Distributed(neighbors)) => {
                Ok((neighbors.sources.len(), neighbors.destinations.len()))
            }
            None => {
                Err(self
                    .no_topology("a topology", "MPI_Cart_create, MPI_Graph_create or MPI_Dist_graph_create"))
            }
        }
    }

    #[cold]
    fn no_topology(&self, what: &str, how: &str) -> Error {
        Error::new(
            MPI_ERR_TOPOLOGY,
            format!("{} has no {}; use one that {how} made", self.describe(), what.trim_start_matches("a ")),
        )
    }

    /// An error unless `rank` is one of this communicator.
    pub fn check_rank(&self, rank: i32) -> Result<()> {
        if (0..self.size()).contains(&rank) {
            return Ok(());
        }
        Err(Error::new(
            MPI_ERR_RANK,
            format!("rank is {rank}; the ranks of {} are 0 to {}", self.describe(), self.size() - 1),
        ))
    }

    /// The rank that this process has in a grid (MPI_Cart_map): its own, or MPI_UNDEFINED beyond the grid.
    pub fn rank_in_grid(&self, grid: &Cartesian) -> Result<i32> {
        let processes = grid.processes_among(self.size())?;
        Ok(if self.rank() < processes { self.rank() } else { MPI_UNDEFINED })
    }

    /// The first `count` processes in a communicator of their own, with a topology.
    fn arrange(
        self: &Arc<Self>,
        process: &Arc<Process>,
        count: i32,
        topology: Topology,
    ) -> Result<Option<Arc<Communicator>>> {
        self.check_intra()?;
        let group = match count {
            0 => crate::Group::empty(),
            _ => self.group().range_include(&[RankRange { first: 0, last: count - 1, stride: 1 }])?,
        };
        let made = self.create(process, &group)?;
        if let Some(made) = &made {
            made.set_topology(Arc::new(topology));
        }
        Ok(made)
    }

    /// MPI_Cart_create. Ranks are not reordered: on one machine's memory all places are alike.
    pub fn create_grid(
        self: &Arc<Self>,
        process: &Arc<Process>,
        grid: Cartesian,
    ) -> Result<Option<Arc<Communicator>>> {
        let processes = grid.processes_among(self.size())?;
        self.arrange(process, processes, Topology::Cartesian(grid))
    }

    /// MPI_Cart_sub: the grids that remain when the dimensions that are not `kept` are cut.
    pub fn cut_grid(self: &Arc<Self>, process: &Arc<Process>, kept: &[bool]) -> Result<Arc<Communicator>> {
        let grid = self.grid()?;
        let (mut color, mut key) = (0, 0);
        for ((&coordinate, &extent), &keep) in
            grid.coordinates(self.rank()).iter().zip(grid.extents()).zip(kept)
        {
            let place = if keep { &mut key } else { &mut color };
            *place = *place * extent + coordinate;
        }
        let remaining = |index: &usize| kept[*index];
        let dimensions: Vec<usize> = (0..grid.extents().len()).filter(remaining).collect();
        let smaller = Cartesian {
            extents: dimensions.iter().map(|&index| grid.extents[index]).collect(),
            periodic: dimensions.iter().map(|&index| grid.periodic[index]).collect(),
        };
        let made = self.split(process, color, key)?.expect("every process has a color");
        made.set_topology(Arc::new(Topology::Cartesian(smaller)));
        Ok(made)
    }

    /// MPI_Graph_create.
    pub fn create_graph(
        self: &Arc<Self>,
        process: &Arc<Process>,
        graph: Graph,
    ) -> Result<Option<Arc<Communicator>>> {
        let nodes = self.check_nodes(graph.ends.len())?;
        self.arrange(process, nodes, Topology::Graph(graph))
    }

    /// An error if a graph has more nodes than there are processes.
    pub fn check_nodes(&self, nodes: usize) -> Result<i32> {
        if nodes > self.size() as usize {
            return Err(Error::new(
                MPI_ERR_ARG,
                format!(
                    "the graph has {nodes} nodes, but {} only {} processes",
                    self.describe(),
                    self.size()
                ),
            ));
        }
        Ok(nodes as i32)
    }

    /// MPI_Dist_graph_create_adjacent: every process names its own edges.
    pub fn create_neighbors(
        self: &Arc<Self>,
        process: &Arc<Process>,
        neighbors: Neighbors,
    ) -> Result<Arc<Communicator>> {
        for &(rank, _) in neighbors.sources.iter().chain(&neighbors.destinations) {
            self.check_rank(rank)?;
        }
        let made = self.arrange(process, self.size(), Topology::Distributed(neighbors))?;
        Ok(made.expect("every process is a member"))
    }

    /// MPI_Dist_graph_create: every process names any edges of the graph.
    pub fn create_distributed_graph(
        self: &Arc<Self>,
        process: &Arc<Process>,
        edges: &[Edge],
        weighted: bool,
    ) -> Result<Arc<Communicator>> {
        self.check_intra()?;
        for edge in edges {
            self.check_rank(edge.source)?;
            self.check_rank(edge.destination)?;
        }
        let channel = Channel::all(process, self);
        let own: Vec<[i32; 3]> =
            edges.iter().map(|edge| [edge.source, edge.destination, edge.weight]).collect();
        let all = run(process, self, async move {
            let counts = decode(&channel.allgather(&encode(&[own.len() as u32])).await?);
            let most = counts.iter().copied().max().unwrap_or(0) as usize;
            // Rows of one length: an allgather has blocks of one size.
            let mut row: Vec<u32> = own.iter().flatten().map(|&word| word as u32).collect();
            row.resize(3 * most, 0);
            let rows = decode(&channel.allgather(&encode(&row)).await?);
            let mut all = Vec::new();
            for (row, &count) in rows.chunks_exact((3 * most).max(1)).zip(&counts) {
                all.extend(row.chunks_exact(3).take(count as usize).map(|edge| Edge {
                    source: edge[0] as i32,
                    destination: edge[1] as i32,
                    weight: edge[2] as i32,
                }));
            }
            Ok(all)
        })?;
        let here = self.rank();
        let coming = all.iter().filter(|edge| edge.destination == here);
        let going = all.iter().filter(|edge| edge.source == here);
        self.create_neighbors(
            process,
            Neighbors {
                sources: coming.map(|edge| (edge.source, edge.weight)).collect(),
                destinations: going.map(|edge| (edge.destination, edge.weight)).collect(),
                weighted,
            },
        )
    }

    pub(super) fn set_topology(&self, topology: Arc<Topology>) {
        // A communicator gets its topology when it is made, before the program knows it, and never another.
        let _ = self.topology.set(topology);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_coordinates_are_inverse() {
        let grid = Cartesian::new(vec![2, 3, 4], vec![false, true, false]).unwrap();
        for rank in 0..24 {
            assert_eq!(grid.rank(&grid.coordinates(rank)), Ok(rank));
        }
        assert_eq!(grid.coordinates(23), [1, 2, 3]);
        assert_eq!(grid.rank(&[0, -1, 0]), grid.rank(&[0, 2, 0]));
        assert_eq!(grid.rank(&[0, 0, 4]).unwrap_err().class(), MPI_ERR_ARG);
        assert_eq!(grid.processes_among(24), Ok(24));
        assert_eq!(grid.processes_among(23).unwrap_err().class(), MPI_ERR_DIMS);
        assert_eq!(Cartesian::new(vec![2, -1], vec![true, true]).unwrap_err().class(), MPI_ERR_DIMS);
        assert_eq!(
            Cartesian::new(vec![i32::MAX, i32::MAX, i32::MAX, 0], vec![true; 4]).unwrap().processes_among(4),
            Ok(0)
        );
        assert_eq!(Cartesian::new(vec![], vec![]).unwrap().coordinates(0), [0; 0]);
    }

    #[test]
    fn shifts_end_at_edges_and_wrap_around() {
        let grid = Cartesian::new(vec![2, 3], vec![false, true]).unwrap();
        assert_eq!(grid.shift(0, 0, 1), Ok((MPI_PROC_NULL, 3)));
        assert_eq!(grid.shift(0, 0, -1), Ok((3, MPI_PROC_NULL)));
        assert_eq!(grid.shift(0, 1, 1), Ok((2, 1)));
        assert_eq!(grid.shift(4, 1, 5), Ok((5, 3)));
        assert_eq!(grid.shift(4, 0, 0), Ok((4, 4)));
        assert_eq!(grid.shift(4, 0, i32::MIN), Ok((MPI_PROC_NULL, MPI_PROC_NULL)));
        assert_eq!(grid.shift(4, 2, 1).unwrap_err().class(), MPI_ERR_ARG);
    }

    #[test]
    fn graphs_know_their_neighbors() {
        let graph = Graph::new(vec![2, 3, 3, 5], vec![1, 3, 0, 0, 3]).unwrap();
        assert_eq!(
            [0, 1, 2, 3].map(|rank| graph.neighbors(rank).to_vec()),
            [vec![1, 3], vec![0], vec![], vec![0, 3]]
        );
        assert!(Graph::new(vec![1, 0], vec![0]).is_err());
        assert!(Graph::new(vec![1, 2], vec![0, 2]).is_err());
    }

    #[test]
    fn neighbors_in_a_grid_are_ordered_by_dimension_the_lower_one_first() {
        let grid = Cartesian::new(vec![3, 1, 2], vec![false, true, true]).unwrap();
        let corner = Neighborhood::of_grid(&grid, 0);
        assert_eq!(corner.destinations, [None, Some(2), Some(0), Some(0), Some(1), Some(1)]);
        assert_eq!(corner.sources, corner.destinations);
        assert_eq!(corner.order, [1, 0, 3, 2, 5, 4]);
    }
}
