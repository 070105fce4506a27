//! The operations on neighbours, on random graphs with repeated edges and edges of a process to itself, and on grids.

use crate::simulator::{MARGIN, Memory, Process, Random, run, unpack};
use parnass_collectives::{
    Direct, Element, Ints, Neighborhood, Operation, Overrides, Part, Problem, Root, Shape, Vector, schedule,
};

/// An edge: from which process and which of its blocks, to which process and which of its blocks.
struct Edge {
    from: (usize, u32),
    to: (usize, u32),
}

#[derive(Default)]
struct Place {
    sources: Vec<Option<u32>>,
    destinations: Vec<Option<u32>>,
    order: Vec<u32>,
}

/// A graph whose edges every process names in the same order.
fn random_graph(random: &mut Random, size: usize) -> (Vec<Place>, Vec<Edge>) {
    let mut places: Vec<Place> = (0..size).map(|_| Place::default()).collect();
    let mut edges = Vec::new();
    for _ in 0..random.below(4 * size as u64) {
        let (source, target) = (random.below(size as u64) as usize, random.below(size as u64) as usize);
        edges.push(Edge {
            from: (source, places[source].destinations.len() as u32),
            to: (target, places[target].sources.len() as u32),
        });
        places[source].destinations.push(Some(target as u32));
        places[target].sources.push(Some(source as u32));
    }
    for place in &mut places {
        place.order = (0..place.sources.len() as u32).collect();
    }
    (places, edges)
}

/// A grid of one dimension: what leaves to the left comes from the right.
fn ring(size: usize, periodic: bool) -> (Vec<Place>, Vec<Edge>) {
    let mut places = Vec::new();
    let mut edges = Vec::new();
    for rank in 0..size {
        let left = (rank > 0 || periodic).then(|| (rank + size - 1) % size);
        let right = (rank + 1 < size || periodic).then(|| (rank + 1) % size);
        for (block, to) in [(0, left), (1, right)] {
            edges.extend(to.map(|to| Edge { from: (rank, block), to: (to, 1 - block) }));
        }
        let both = vec![left.map(|rank| rank as u32), right.map(|rank| rank as u32)];
        places.push(Place { sources: both.clone(), destinations: both, order: vec![1, 0] });
    }
    (places, edges)
}

/// Blocks that follow each other with gaps.
#[derive(Default)]
struct Blocks {
    counts: Vec<u64>,
    offsets: Vec<i64>,
    elements: Vec<Element>,
}

impl Blocks {
    fn new(lengths: &[u64], step: Option<i64>) -> Blocks {
        let mut blocks = Blocks::default();
        let mut cursor = 0;
        for length in lengths {
            blocks.counts.push(*length);
            blocks.offsets.push(cursor);
            blocks.elements.push(Element::of_size(1));
            cursor += step.unwrap_or(*length as i64 + 3);
        }
        blocks
    }
}

fn check(operation: Operation, random: &mut Random, (places, edges): (Vec<Place>, Vec<Edge>)) {
    let size = places.len();
    let same_to_all = matches!(operation, Operation::NeighborAllgather | Operation::NeighborAllgatherv);
    let even = matches!(operation, Operation::NeighborAllgather | Operation::NeighborAlltoall);
    let common = random.below(40);
    let mut sent: Vec<Vec<u64>> = places.iter().map(|place| vec![0; place.destinations.len()]).collect();
    let mut got: Vec<Vec<u64>> = places.iter().map(|place| vec![0; place.sources.len()]).collect();
    let contributions: Vec<u64> = (0..size).map(|_| if even { common } else { random.below(40) }).collect();
    for edge in &edges {
        let length = match (even, same_to_all) {
            (true, _) => common,
            (false, true) => contributions[edge.from.0],
            (false, false) => random.below(40),
        };
        sent[edge.from.0][edge.from.1 as usize] = length;
        got[edge.to.0][edge.to.1 as usize] = length;
    }
    let step = even.then_some(common as i64);
    let send_blocks: Vec<Blocks> = sent.iter().map(|lengths| Blocks::new(lengths, step)).collect();
    let recv_blocks: Vec<Blocks> = got.iter().map(|lengths| Blocks::new(lengths, step)).collect();
    let buffer = || vec![0x5A; 2 * MARGIN + 64 * 4 * size.max(2)];
    let mut sends: Vec<Memory> = Vec::new();
    let mut results: Vec<Memory> = (0..size).map(|_| buffer()).collect();
    for _ in 0..size {
        let mut memory = buffer();
        let length = memory.len() - MARGIN;
        memory[MARGIN..].copy_from_slice(&random.bytes(length));
        sends.push(memory);
    }
    for edge in &edges {
        let (source, block) = (edge.from.0, edge.from.1 as usize);
        let offset = if same_to_all { 0 } else { send_blocks[source].offsets[block] };
        let start = (MARGIN as i64 + offset) as usize;
        let length = sent[source][block];
        let data = sends[source][start..start + length as usize].to_vec();
        let place = recv_blocks[edge.to.0].offsets[edge.to.1 as usize];
        unpack(&mut results[edge.to.0], place, length, &Element::of_size(1), &data);
    }
    let mut processes: Vec<Process> = Vec::new();
    for (rank, place) in places.iter().enumerate() {
        let element = Element::of_size(1);
        let own = if same_to_all { contributions[rank] } else { common };
        let vector = |blocks: &'_ Blocks| {
            (blocks.counts.iter().map(|count| *count as i64).collect::<Vec<_>>(), blocks.offsets.clone())
        };
        let (send, recv) = (vector(&send_blocks[rank]), vector(&recv_blocks[rank]));
        let typed = operation == Operation::NeighborAlltoallw;
        let elements = |blocks: &Blocks| if typed { blocks.elements.clone() } else { Vec::new() };
        let (send_elements, recv_elements) = (elements(&send_blocks[rank]), elements(&recv_blocks[rank]));
        let problem = Problem {
            shape: Shape {
                operation,
                rank: rank as u32,
                size: size as u32,
                remote_size: 0,
                root: Root::None,
                send: Part { count: own, element },
                recv: Part { count: common, element },
                in_place: false,
                commutative: true,
                oversubscribed: false,
                board: 0,
                direct: Direct::No,
            },
            send: (!even && !same_to_all).then_some(Vector {
                counts: Ints::Large(&send.0),
                displacements: Ints::Large(&send.1),
                unit: 1,
                elements: &send_elements,
            }),
            recv: (!even).then_some(Vector {
                counts: Ints::Large(&recv.0),
                displacements: Ints::Large(&recv.1),
                unit: 1,
                elements: &recv_elements,
            }),
            neighborhood: Some(Neighborhood {
                sources: &place.sources,
                destinations: &place.destinations,
                order: &place.order,
            }),
            nodes: None,
            runner: None,
        };
        let schedule = schedule(&problem, &Overrides::default());
        let mut process = Process::new(schedule, sends[rank].clone(), buffer(), [element; 2]);
        process.send_elements = send_elements;
        process.recv_elements = recv_elements;
        processes.push(process);
    }
    let synchronous = random.coin();
    run(&mut processes, [size, 0], 0, synchronous, random, &|_, _| {});
    for (rank, process) in processes.iter().enumerate() {
        assert!(process.send == sends[rank], "the send buffer of process {rank} has changed");
        assert!(process.recv == results[rank], "{}: wrong result at process {rank}", operation.name());
    }
}

#[test]
fn every_edge_carries_its_own_block() {
    for operation in Operation::ALL.into_iter().filter(|operation| operation.is_on_neighbors()) {
        for seed in 0..60 {
            let mut random = Random::new(seed);
            let size = 1 + random.below(8) as usize;
            let graph = random_graph(&mut random, size);
            check(operation, &mut random, graph);
        }
    }
}

#[test]
fn on_a_grid_what_goes_one_way_comes_from_the_other() {
    for operation in Operation::ALL.into_iter().filter(|operation| operation.is_on_neighbors()) {
        for size in 1..6 {
            for periodic in [false, true] {
                let mut random = Random::new(size as u64);
                check(operation, &mut random, ring(size, periodic));
            }
        }
    }
}
