//! Bodies of procedures: process topologies (MPI 5.0, chapter 8).

use super::prelude::*;
use parnass_mpi::comm::topology::{Cartesian, Edge, Graph, Neighbors, Topology};

/// MPI_Dims_create.
pub fn dims_create(_call: &Call, nnodes: i32, dims: &mut OutSlice<'_, i32>) -> Result<()> {
    let mut dimensions: Vec<i32> = (0..dims.len()).map(|index| dims.get(index)).collect();
    parnass_mpi::topology::balance(nnodes, &mut dimensions)?;
    dimensions.iter().enumerate().for_each(|(index, dimension)| dims.set(index, *dimension));
    Ok(())
}

fn give(made: Option<Arc<Communicator>>, place: &OutHandle<Communicator>) -> Result<()> {
    match made {
        Some(made) => place.set(made),
        None => {
            place.set_null();
            Ok(())
        }
    }
}

/// As many of the values as there is room for.
fn fill(places: &mut OutSlice<'_, i32>, values: impl IntoIterator<Item = i32>) {
    let room = places.len();
    values.into_iter().take(room).enumerate().for_each(|(index, value)| places.set(index, value));
}

fn grid(dims: &[i32], periods: &[i32]) -> Result<Cartesian> {
    Cartesian::new(dims.to_vec(), periods.iter().map(|&period| period != 0).collect())
}

/// MPI_Topo_test.
pub fn topo_test(_call: &Call, comm: &Arc<Communicator>, status: Out<i32>) -> Result<()> {
    status.set(match comm.topology() {
        None => MPI_UNDEFINED,
        Some(Topology::Cartesian(_)) => MPI_CART,
        Some(Topology::Graph(_)) => MPI_GRAPH,
        Some(Topology::Distributed(_)) => MPI_DIST_GRAPH,
    });
    Ok(())
}

/// MPI_Cart_create.
pub fn cart_create(
    call: &Call,
    comm_old: &Arc<Communicator>,
    dims: &[i32],
    periods: &[i32],
    comm_cart: OutHandle<Communicator>,
) -> Result<()> {
    give(comm_old.create_grid(call.process(), grid(dims, periods)?)?, &comm_cart)
}

/// MPI_Cart_map.
pub fn cart_map(
    _call: &Call,
    comm: &Arc<Communicator>,
    dims: &[i32],
    periods: &[i32],
    newrank: Out<i32>,
) -> Result<()> {
    newrank.set(comm.rank_in_grid(&grid(dims, periods)?)?);
    Ok(())
}

/// MPI_Cartdim_get.
pub fn cartdim_get(_call: &Call, comm: &Arc<Communicator>, ndims: Out<i32>) -> Result<()> {
    ndims.set(comm.grid()?.extents().len() as i32);
    Ok(())
}

/// MPI_Cart_get.
pub fn cart_get(
    _call: &Call,
    comm: &Arc<Communicator>,
    dims: &mut OutSlice<'_, i32>,
    periods: &mut OutSlice<'_, i32>,
    coords: &mut OutSlice<'_, i32>,
) -> Result<()> {
    let grid = comm.grid()?;
    fill(dims, grid.extents().iter().copied());
    fill(periods, grid.periodic().iter().map(|&periodic| i32::from(periodic)));
    fill(coords, grid.coordinates(comm.rank()));
    Ok(())
}

/// MPI_Cart_rank.
pub fn cart_rank(_call: &Call, comm: &Arc<Communicator>, coords: IntArray, rank: Out<i32>) -> Result<()> {
    let grid = comm.grid()?;
    let coords = coords.with_length(grid.extents().len(), "coords")?;
    rank.set(grid.rank(&coords.iter().map(|coordinate| coordinate as i32).collect::<Vec<_>>())?);
    Ok(())
}

/// MPI_Cart_coords.
pub fn cart_coords(
    _call: &Call,
    comm: &Arc<Communicator>,
    rank: i32,
    coords: &mut OutSlice<'_, i32>,
) -> Result<()> {
    let grid = comm.grid()?;
    comm.check_rank(rank)?;
    fill(coords, grid.coordinates(rank));
    Ok(())
}

/// MPI_Cart_shift.
pub fn cart_shift(
    _call: &Call,
    comm: &Arc<Communicator>,
    direction: i32,
    disp: i32,
    rank_source: Out<i32>,
    rank_dest: Out<i32>,
) -> Result<()> {
    let (source, destination) = comm.grid()?.shift(comm.rank(), direction, disp)?;
    rank_source.set(source);
    rank_dest.set(destination);
    Ok(())
}

/// MPI_Cart_sub.
pub fn cart_sub(
    call: &Call,
    comm: &Arc<Communicator>,
    remain_dims: IntArray,
    newcomm: OutHandle<Communicator>,
) -> Result<()> {
    let remain = remain_dims.with_length(comm.grid()?.extents().len(), "remain_dims")?;
    let kept: Vec<bool> = remain.iter().map(|keep| keep != 0).collect();
    newcomm.set(comm.cut_grid(call.process(), &kept)?)
}

/// The arrays of MPI_Graph_create: `indx` says how many edges there are.
fn graph(indx: &[i32], edges: IntArray) -> Result<Graph> {
    let count = indx.last().copied().unwrap_or(0).max(0);
    let edges = edges.with_length(count as usize, "edges")?;
    Graph::new(indx.to_vec(), edges.iter().map(|edge| edge as i32).collect())
}

/// MPI_Graph_create.
pub fn graph_create(
    call: &Call,
    comm_old: &Arc<Communicator>,
    indx: &[i32],
    edges: IntArray,
    comm_graph: OutHandle<Communicator>,
) -> Result<()> {
    give(comm_old.create_graph(call.process(), graph(indx, edges)?)?, &comm_graph)
}

/// MPI_Graph_map.
pub fn graph_map(
    _call: &Call,
    comm: &Arc<Communicator>,
    indx: &[i32],
    edges: IntArray,
    newrank: Out<i32>,
) -> Result<()> {
    graph(indx, edges)?;
    let nodes = comm.check_nodes(indx.len())?;
    newrank.set(if comm.rank() < nodes { comm.rank() } else { MPI_UNDEFINED });
    Ok(())
}

/// MPI_Graphdims_get.
pub fn graphdims_get(
    _call: &Call,
    comm: &Arc<Communicator>,
    nnodes: Out<i32>,
    nedges: Out<i32>,
) -> Result<()> {
    let (ends, edges) = comm.graph()?.arrays();
    nnodes.set(ends.len() as i32);
    nedges.set(edges.len() as i32);
    Ok(())
}

/// MPI_Graph_get.
pub fn graph_get(
    _call: &Call,
    comm: &Arc<Communicator>,
    indx: &mut OutSlice<'_, i32>,
    edges: &mut OutSlice<'_, i32>,
) -> Result<()> {
    let (ends, neighbors) = comm.graph()?.arrays();
    fill(indx, ends.iter().copied());
    fill(edges, neighbors.iter().copied());
    Ok(())
}

/// MPI_Graph_neighbors_count.
pub fn graph_neighbors_count(
    _call: &Call,
    comm: &Arc<Communicator>,
    rank: i32,
    nneighbors: Out<i32>,
) -> Result<()> {
    let graph = comm.graph()?;
    comm.check_rank(rank)?;
    nneighbors.set(graph.neighbors(rank).len() as i32);
    Ok(())
}

/// MPI_Graph_neighbors.
pub fn graph_neighbors(
    _call: &Call,
    comm: &Arc<Communicator>,
    rank: i32,
    neighbors: &mut OutSlice<'_, i32>,
) -> Result<()> {
    let graph = comm.graph()?;
    comm.check_rank(rank)?;
    fill(neighbors, graph.neighbors(rank).iter().copied());
    Ok(())
}

/// Weights as the program gives them: `None` for MPI_UNWEIGHTED. (MPI_WEIGHTS_EMPTY is for no edges.)
fn weights(pointer: *const c_void, count: usize, name: &str) -> Result<Option<Vec<i32>>> {
    match pointer.addr() {
        MPI_UNWEIGHTED => Ok(None),
        MPI_WEIGHTS_EMPTY if count == 0 => Ok(Some(Vec::new())),
        0 if count == 0 => Ok(Some(Vec::new())),
        0 | MPI_WEIGHTS_EMPTY => Err(Error::new(
            MPI_ERR_ARG,
            format!(
                "{name} is no array, but there are {count} edges; give a weight for each, or MPI_UNWEIGHTED"
            ),
        )),
        _ => {
            let array = IntArray::int(pointer.cast()).with_length(count, name)?;
            Ok(Some(array.iter().map(|weight| weight as i32).collect()))
        }
    }
}

fn with_weights(ranks: &[i32], weights: Option<&[i32]>) -> Vec<(i32, i32)> {
    let weight = |index: usize| weights.map_or(1, |weights| weights[index]);
    ranks.iter().enumerate().map(|(index, &rank)| (rank, weight(index))).collect()
}

/// MPI_Dist_graph_create_adjacent.
pub fn dist_graph_create_adjacent(
    call: &Call,
    comm_old: &Arc<Communicator>,
    sources: &[i32],
    sourceweights: *const c_void,
    destinations: &[i32],
    destweights: *const c_void,
    comm_dist_graph: OutHandle<Communicator>,
) -> Result<()> {
    let coming = weights(sourceweights, sources.len(), "sourceweights")?;
    let going = weights(destweights, destinations.len(), "destweights")?;
    let neighbors = Neighbors {
        sources: with_weights(sources, coming.as_deref()),
        destinations: with_weights(destinations, going.as_deref()),
        weighted: coming.is_some() || going.is_some(),
    };
    comm_dist_graph.set(comm_old.create_neighbors(call.process(), neighbors)?)
}

/// MPI_Dist_graph_create.
pub fn dist_graph_create(
    call: &Call,
    comm_old: &Arc<Communicator>,
    sources: &[i32],
    degrees: &[i32],
    destinations: IntArray,
    edge_weights: *const c_void,
    comm_dist_graph: OutHandle<Communicator>,
) -> Result<()> {
    if let Some(index) = degrees.iter().position(|&degree| degree < 0) {
        return Err(Error::new(
            MPI_ERR_ARG,
            format!("degrees[{index}] is {}; it must be 0 or more", degrees[index]),
        ));
    }
    let count = degrees.iter().map(|&degree| degree as usize).sum();
    let destinations = destinations.with_length(count, "destinations")?;
    let given = weights(edge_weights, count, "weights")?;
    let origins = sources
        .iter()
        .zip(degrees)
        .flat_map(|(&source, &degree)| std::iter::repeat_n(source, degree as usize));
    let edges: Vec<Edge> = origins
        .enumerate()
        .map(|(index, source)| Edge {
            source,
            destination: destinations.get(index) as i32,
            weight: given.as_ref().map_or(1, |given| given[index]),
        })
        .collect();
    comm_dist_graph.set(comm_old.create_distributed_graph(call.process(), &edges, given.is_some())?)
}

/// MPI_Dist_graph_neighbors_count.
pub fn dist_graph_neighbors_count(
    _call: &Call,
    comm: &Arc<Communicator>,
    indegree: Out<i32>,
    outdegree: Out<i32>,
    weighted: Out<bool>,
) -> Result<()> {
    let neighbors = comm.neighbors()?;
    indegree.set(neighbors.sources.len() as i32);
    outdegree.set(neighbors.destinations.len() as i32);
    weighted.set(neighbors.weighted);
    Ok(())
}

/// MPI_Dist_graph_neighbors.
pub fn dist_graph_neighbors(
    _call: &Call,
    comm: &Arc<Communicator>,
    maxindegree: i64,
    sources: &mut OutSlice<'_, i32>,
    sourceweights: *mut c_void,
    maxoutdegree: i64,
    destinations: &mut OutSlice<'_, i32>,
    destweights: *mut c_void,
) -> Result<()> {
    let neighbors = comm.neighbors()?;
    let weighted = neighbors.weighted;
    tell(&neighbors.sources, weighted, maxindegree, sources, sourceweights, "sourceweights")?;
    tell(&neighbors.destinations, weighted, maxoutdegree, destinations, destweights, "destweights")
}

fn tell(
    edges: &[(i32, i32)],
    weighted: bool,
    most: i64,
    ranks: &mut OutSlice<'_, i32>,
    weights: *mut c_void,
    name: &str,
) -> Result<()> {
    fill(ranks, edges.iter().map(|&(rank, _)| rank));
    if weighted && !matches!(weights.addr(), 0 | MPI_UNWEIGHTED | MPI_WEIGHTS_EMPTY) {
        // SAFETY: the program gives an array for as many weights as ranks, since it is none of the special values.
        let mut places = unsafe { OutSlice::new(weights.cast::<i32>(), most, name) }?;
        fill(&mut places, edges.iter().map(|&(_, weight)| weight));
    }
    Ok(())
}
