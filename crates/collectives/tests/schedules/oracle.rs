//! Every algorithm, for every number of processes up to 33, against what the standard says the result is.

use crate::simulator::{MARGIN, Memory, Process, Random, run, unpack};
use parnass_collectives::{
    ALGORITHMS, Algorithm, Direct, Element, Groups, Ints, Needs, Nodes, Operation, Part, Problem, Root,
    Shape, Vector, named,
};

/// Bytes of an operand: an affine map `x -> a x + b` modulo 256. Composition is associative and not commutative.
const OPERAND: u64 = 2;

fn compose(left: &[u8], right: &mut [u8]) {
    for (left, right) in left.chunks(2).zip(right.chunks_mut(2)) {
        right[1] = left[0].wrapping_mul(right[1]).wrapping_add(left[1]);
        right[0] = left[0].wrapping_mul(right[0]);
    }
}

fn add(left: &[u8], right: &mut [u8]) {
    left.iter().zip(right).for_each(|(left, right)| *right = right.wrapping_add(*left));
}

/// A layout for elements of `size` bytes: dense, dense with a lower bound, with holes, or backwards.
fn layout(random: &mut Random, size: u64) -> Element {
    let extent = size as i64;
    let (extent, true_lower_bound, dense) = match random.below(4) {
        0 => (extent, 0, true),
        1 => (extent, 3, true),
        2 => (extent + 3, 1, false),
        // Nothing long goes backwards: it would not stay within the margins.
        _ if random.long => (extent + 1, -1, false),
        _ => (-(extent + 1), -2, false),
    };
    Element { size, extent, true_lower_bound, true_extent: size, dense }
}

/// `bytes` bytes as elements, in one of several ways.
fn part(random: &mut Random, bytes: u64) -> Part {
    if bytes > 0 && random.below(3) == 0 {
        Part { count: 1, element: layout(random, bytes) }
    } else {
        Part { count: bytes / OPERAND, element: layout(random, OPERAND) }
    }
}

/// Blocks in one buffer of one process.
#[derive(Clone, Default)]
struct Blocks {
    counts: Vec<u64>,
    offsets: Vec<i64>,
    elements: Vec<Element>,
}

impl Blocks {
    /// Equal blocks, one after the other.
    fn even(part: Part, number: usize) -> Blocks {
        let step = part.count as i64 * part.element.extent;
        Blocks {
            counts: vec![part.count; number],
            offsets: (0..number as i64).map(|index| index * step).collect(),
            elements: vec![part.element; number],
        }
    }

    /// Blocks of the given lengths, in random order, with gaps.
    fn scattered(random: &mut Random, lengths: &[u64], common: Option<Element>) -> Blocks {
        let mut blocks = Blocks::default();
        for bytes in lengths {
            let (count, element) = match common {
                Some(element) => (bytes / element.size, element),
                None => {
                    let part = part(random, *bytes);
                    (part.count, part.element)
                }
            };
            blocks.counts.push(count);
            blocks.elements.push(element);
        }
        blocks.offsets = vec![0; lengths.len()];
        let mut order: Vec<usize> = (0..lengths.len()).collect();
        for index in (1..order.len()).rev() {
            order.swap(index, random.below(index as u64 + 1) as usize);
        }
        let mut cursor = -(random.below(50) as i64);
        for index in order {
            let (first, length) = blocks.elements[index].reach(blocks.counts[index]);
            cursor += random.below(4) as i64;
            blocks.offsets[index] = cursor - first;
            cursor += length as i64;
        }
        blocks
    }

    fn fill(&self, memory: &mut Memory, index: usize, data: &[u8]) {
        unpack(memory, self.offsets[index], self.counts[index], &self.elements[index], data);
    }
}

/// What one process brings and what it must have in the end.
struct Case {
    shape: Shape,
    send: Blocks,
    recv: Blocks,
    /// Which blocks hold input: of the send buffer or, in place, of the receive buffer.
    input: Vec<(usize, Vec<u8>)>,
    /// Which blocks of the receive buffer hold the result.
    output: Vec<(usize, Vec<u8>)>,
    send_vector: bool,
    recv_vector: bool,
}

fn is_reduction(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::Reduce
            | Operation::Allreduce
            | Operation::ReduceScatter
            | Operation::ReduceScatterBlock
            | Operation::Scan
            | Operation::Exscan
    )
}

struct Setting {
    operation: Operation,
    sizes: [usize; 2],
    commutative: bool,
    largest: u64,
    oversubscribed: bool,
    /// Bytes of a piece on the board.
    board: u64,
    /// The node of each process of the first group, where there are several.
    nodes: Option<Nodes>,
}

impl Setting {
    fn fold(&self, operands: &[Vec<u8>]) -> Vec<u8> {
        let mut sum = operands.last().expect("at least one operand").clone();
        for operand in operands[..operands.len() - 1].iter().rev() {
            if self.commutative { add(operand, &mut sum) } else { compose(operand, &mut sum) }
        }
        sum
    }

    fn bytes(&self, random: &mut Random) -> u64 {
        OPERAND * if random.below(5) == 0 { 0 } else { random.below(self.largest) }
    }

    /// The cases of all processes, the second group behind the first.
    fn cases(&self, random: &mut Random) -> Vec<Case> {
        let [first, second] = self.sizes;
        let inter = second > 0;
        let total = first + second;
        let group = |index: usize| usize::from(index >= first);
        let size = |group: usize| self.sizes[group];
        let rank = |index: usize| if index < first { index } else { index - first };
        // The group that the data of a group goes to, and the number of the first process there.
        let other = |group: usize| if inter { 1 - group } else { group };
        let start = |group: usize| if group == 0 { 0 } else { first };

        let root_group = if inter { random.below(2) as usize } else { 0 };
        let root = random.below(size(root_group) as u64) as usize;
        let rooted = matches!(
            self.operation,
            Operation::Bcast
                | Operation::Gather
                | Operation::Gatherv
                | Operation::Scatter
                | Operation::Scatterv
                | Operation::Reduce
        );
        let root_of = |index: usize| {
            if !rooted {
                Root::None
            } else if !inter || group(index) != root_group {
                Root::Rank(root as u32)
            } else if rank(index) == root {
                Root::Here
            } else {
                Root::Elsewhere
            }
        };
        let is_root = |index: usize| group(index) == root_group && rank(index) == root;

        // Everything that travels: for blocks from process to process, else one piece from each.
        let mut lengths = vec![vec![0; total]; total];
        let (one, two) = (self.bytes(random), self.bytes(random));
        let reduction_lengths: Vec<u64> = (0..total).map(|_| self.bytes(random)).collect();
        for (source, row) in lengths.iter_mut().enumerate() {
            let own = self.bytes(random);
            for length in row.iter_mut() {
                *length = match self.operation {
                    Operation::Allgather if inter && group(source) == 1 => two,
                    Operation::Gatherv | Operation::Allgatherv => own,
                    Operation::Scatterv | Operation::Alltoallv | Operation::Alltoallw => self.bytes(random),
                    _ => one,
                };
            }
        }
        let in_place_allowed = !inter && !matches!(self.operation, Operation::Barrier | Operation::Bcast);
        let rooted_in_place = in_place_allowed && rooted;
        let everywhere_in_place = in_place_allowed && !rooted && random.coin();
        let root_in_place = rooted_in_place && random.coin();
        let in_place =
            |index: usize| if rooted { root_in_place && is_root(index) } else { everywhere_in_place };
        if everywhere_in_place && matches!(self.operation, Operation::Alltoallv | Operation::Alltoallw) {
            // What goes out of a block comes back into it.
            for source in 0..total {
                let (before, row) = lengths.split_at_mut(source);
                for (target, earlier) in before.iter().enumerate() {
                    row[0][target] = earlier[source];
                }
            }
        }
        let data: Vec<Vec<Vec<u8>>> = lengths
            .iter()
            .map(|row| row.iter().map(|length| random.bytes(*length as usize)).collect())
            .collect();

        // Reductions: one vector of operands per process.
        let block_lengths: Vec<u64> = match self.operation {
            Operation::ReduceScatter if !inter => reduction_lengths,
            // Both groups together hold the same number of elements, dealt out in their own way.
            Operation::ReduceScatter | Operation::ReduceScatterBlock if inter => {
                let common = OPERAND * (first * second) as u64 * random.below(3);
                (0..total).map(|index| common / size(group(index)) as u64).collect()
            }
            _ => vec![one; total],
        };
        let scatters = matches!(self.operation, Operation::ReduceScatter | Operation::ReduceScatterBlock);
        let operand_bytes = |of: usize| -> u64 {
            if scatters { block_lengths[start(of)..start(of) + size(of)].iter().sum() } else { one }
        };
        let operands: Vec<Vec<u8>> =
            (0..total).map(|index| random.bytes(operand_bytes(group(index)) as usize)).collect();
        let folded = |of: usize| self.fold(&operands[start(of)..start(of) + size(of)]);

        (0..total)
            .map(|index| {
                let (mine, theirs) = (group(index), other(group(index)));
                let partners = size(theirs);
                let partner = |number: usize| start(theirs) + number;
                let me = rank(index);
                let place = in_place(index);
                let mut case = Case {
                    shape: Shape {
                        operation: self.operation,
                        rank: me as u32,
                        size: size(mine) as u32,
                        remote_size: if inter { partners as u32 } else { 0 },
                        root: root_of(index),
                        send: Part::default(),
                        recv: Part::default(),
                        in_place: place,
                        commutative: self.commutative,
                        oversubscribed: self.oversubscribed,
                        board: self.board,
                        direct: Direct::Fast,
                    },
                    send: Blocks::default(),
                    recv: Blocks::default(),
                    input: Vec::new(),
                    output: Vec::new(),
                    send_vector: false,
                    recv_vector: false,
                };
                match self.operation {
                    Operation::Barrier => {}
                    Operation::Bcast => {
                        let part = part(random, one);
                        case.shape.recv = part;
                        case.recv = Blocks::even(part, 1);
                        let message = data[start(root_group) + root][0].clone();
                        if is_root(index) {
                            // Input that lies in the receive buffer, as in place.
                            case.shape.in_place = true;
                            case.input.push((0, message));
                        } else if !inter || mine != root_group {
                            case.output.push((0, message));
                        }
                    }
                    Operation::Gather | Operation::Gatherv => {
                        let sends = !inter || mine != root_group;
                        let own = lengths[index][0];
                        if sends && !place {
                            case.shape.send = part(random, own);
                            case.send = Blocks::even(case.shape.send, 1);
                            case.input.push((0, data[index][0].clone()));
                        }
                        if is_root(index) {
                            let all: Vec<u64> =
                                (0..partners).map(|number| lengths[partner(number)][0]).collect();
                            self.receive_blocks(random, &mut case, &all);
                            if place {
                                case.input.push((me, data[index][0].clone()));
                            }
                            case.output = (0..partners)
                                .map(|number| (number, data[partner(number)][0].clone()))
                                .collect();
                        }
                    }
                    Operation::Scatter | Operation::Scatterv => {
                        let source = start(root_group) + root;
                        if is_root(index) {
                            let all: Vec<u64> =
                                (0..partners).map(|number| lengths[index][partner(number)]).collect();
                            self.send_blocks(random, &mut case, &all);
                            case.input = (0..partners)
                                .map(|number| (number, data[index][partner(number)].clone()))
                                .collect();
                            case.shape.in_place = place;
                        }
                        if (!inter || mine != root_group) && !place {
                            case.shape.recv = part(random, lengths[source][index]);
                            case.recv = Blocks::even(case.shape.recv, 1);
                            case.output.push((0, data[source][index].clone()));
                        }
                    }
                    Operation::Allgather | Operation::Allgatherv => {
                        let all: Vec<u64> = (0..partners).map(|number| lengths[partner(number)][0]).collect();
                        self.receive_blocks(random, &mut case, &all);
                        if place {
                            case.input.push((me, data[index][0].clone()));
                        } else {
                            case.shape.send = part(random, lengths[index][0]);
                            case.send = Blocks::even(case.shape.send, 1);
                            case.input.push((0, data[index][0].clone()));
                        }
                        case.output =
                            (0..partners).map(|number| (number, data[partner(number)][0].clone())).collect();
                    }
                    Operation::Alltoall | Operation::Alltoallv | Operation::Alltoallw => {
                        let all: Vec<u64> =
                            (0..partners).map(|number| lengths[partner(number)][index]).collect();
                        self.receive_blocks(random, &mut case, &all);
                        if !place {
                            let all: Vec<u64> =
                                (0..partners).map(|number| lengths[index][partner(number)]).collect();
                            self.send_blocks(random, &mut case, &all);
                        }
                        case.input = (0..partners)
                            .map(|number| (number, data[index][partner(number)].clone()))
                            .collect();
                        case.output = (0..partners)
                            .map(|number| (number, data[partner(number)][index].clone()))
                            .collect();
                    }
                    Operation::Reduce
                    | Operation::Allreduce
                    | Operation::Scan
                    | Operation::Exscan
                    | Operation::ReduceScatter
                    | Operation::ReduceScatterBlock => {
                        self.reduction(random, &mut case, &operands[index], &block_lengths, start(mine));
                        if inter && self.operation == Operation::Reduce && mine == root_group {
                            case.input.clear();
                        }
                        let result = match self.operation {
                            Operation::Reduce if !is_root(index) => None,
                            Operation::Reduce | Operation::Allreduce => Some(folded(theirs)),
                            Operation::Scan => Some(self.fold(&operands[..=index])),
                            Operation::Exscan if index == 0 => None,
                            Operation::Exscan => Some(self.fold(&operands[..index])),
                            _ => {
                                let begin: u64 = block_lengths[start(mine)..index].iter().sum();
                                let end = begin + block_lengths[index];
                                Some(folded(theirs)[begin as usize..end as usize].to_vec())
                            }
                        };
                        // Blocks of the receive buffer: 0 the operands in place, 1 the result.
                        case.output.extend(result.map(|result| (1, result)));
                    }
                    Operation::NeighborAllgather
                    | Operation::NeighborAllgatherv
                    | Operation::NeighborAlltoall
                    | Operation::NeighborAlltoallv
                    | Operation::NeighborAlltoallw => unreachable!("neighbors.rs checks those"),
                }
                case
            })
            .collect()
    }

    fn receive_blocks(&self, random: &mut Random, case: &mut Case, lengths: &[u64]) {
        case.recv = self.blocks(random, lengths, &mut case.shape.recv);
        case.recv_vector = self.varies();
    }

    fn send_blocks(&self, random: &mut Random, case: &mut Case, lengths: &[u64]) {
        case.send = self.blocks(random, lengths, &mut case.shape.send);
        case.send_vector = self.varies();
    }

    fn varies(&self) -> bool {
        matches!(
            self.operation,
            Operation::Gatherv
                | Operation::Scatterv
                | Operation::Allgatherv
                | Operation::Alltoallv
                | Operation::Alltoallw
        )
    }

    fn blocks(&self, random: &mut Random, lengths: &[u64], shape: &mut Part) -> Blocks {
        if !self.varies() {
            *shape = part(random, lengths[0]);
            return Blocks::even(*shape, lengths.len());
        }
        let common = (self.operation != Operation::Alltoallw).then(|| layout(random, OPERAND));
        shape.element = common.unwrap_or_default();
        Blocks::scattered(random, lengths, common)
    }

    fn reduction(
        &self,
        random: &mut Random,
        case: &mut Case,
        operands: &[u8],
        block_lengths: &[u64],
        first: usize,
    ) {
        let element = layout(random, OPERAND);
        let count = operands.len() as u64 / OPERAND;
        let own = block_lengths[first + case.shape.rank as usize] / OPERAND;
        case.shape.recv = Part { count, element };
        let mut result = count;
        if self.operation == Operation::ReduceScatterBlock {
            case.shape.recv.count = own;
            result = own;
        } else if self.operation == Operation::ReduceScatter {
            case.recv_vector = true;
            result = own;
        }
        case.send = Blocks { counts: vec![count], offsets: vec![0], elements: vec![element] };
        case.recv = Blocks { counts: vec![count, result], offsets: vec![0, 0], elements: vec![element; 2] };
        case.shape.send.element = element;
        case.input.push((0, operands.to_vec()));
    }

    fn check(&self, algorithm: &Algorithm, seed: u64) {
        let mut random = Random::new(seed);
        random.long = self.largest > MARGIN as u64 / 2;
        let cases = self.cases(&mut random);
        let mut expected = Vec::new();
        let mut processes = Vec::new();
        for case in &cases {
            let mut send = vec![0x5A; 2 * MARGIN];
            let mut recv = vec![0xC3; 2 * MARGIN];
            let longest = case
                .recv
                .counts
                .iter()
                .chain(&case.send.counts)
                .zip(case.recv.elements.iter().chain(&case.send.elements))
                .map(|(count, element)| element.reach(*count).1)
                .max();
            send.resize(send.len() + longest.unwrap_or(0) as usize, 0);
            recv.resize(recv.len() + longest.unwrap_or(0) as usize, 0);
            // The data of a scatter comes from the send buffer even where the root keeps its share.
            let from_recv =
                case.shape.in_place && !matches!(self.operation, Operation::Scatter | Operation::Scatterv);
            for (index, data) in &case.input {
                if from_recv {
                    case.recv.fill(&mut recv, *index, data);
                } else {
                    case.send.fill(&mut send, *index, data);
                }
            }
            let mut result = recv.clone();
            for (index, data) in &case.output {
                case.recv.fill(&mut result, *index, data);
            }
            let block_counts: Vec<i64>;
            let vector = |blocks: &'_ Blocks| -> (Vec<i64>, Vec<i64>, Vec<Element>) {
                let typed = self.operation == Operation::Alltoallw;
                (
                    blocks.counts.iter().map(|count| *count as i64).collect(),
                    blocks.offsets.clone(),
                    if typed { blocks.elements.clone() } else { Vec::new() },
                )
            };
            let (send_parts, mut recv_parts) = (vector(&case.send), vector(&case.recv));
            if self.operation == Operation::ReduceScatter {
                let group =
                    if case.shape.remote_size > 0 && processes.len() >= self.sizes[0] { 1 } else { 0 };
                let begin = if group == 0 { 0 } else { self.sizes[0] };
                block_counts = (begin..begin + self.sizes[group])
                    .map(|index| cases[index].recv.counts[1] as i64)
                    .collect();
                recv_parts = (block_counts, Vec::new(), Vec::new());
            }
            let problem = Problem {
                shape: case.shape,
                send: case.send_vector.then_some(Vector {
                    counts: Ints::Large(&send_parts.0),
                    displacements: Ints::Large(&send_parts.1),
                    unit: 1,
                    elements: &send_parts.2,
                }),
                recv: case.recv_vector.then_some(Vector {
                    counts: Ints::Large(&recv_parts.0),
                    displacements: Ints::Large(&recv_parts.1),
                    unit: 1,
                    elements: &recv_parts.2,
                }),
                neighborhood: None,
                nodes: self.nodes.as_ref(),
                runner: None,
            };
            if !algorithm.can(&problem) {
                // Only a board depends on more than the shape that was asked about before.
                assert!(["board", "direct"].contains(&algorithm.name));
                return;
            }
            let elements = [case.shape.send.element, case.shape.recv.element];
            let schedule = (algorithm.build)(&problem);
            if matches!(algorithm.needs, Needs::Board | Needs::Direct) {
                crate::record::compare(algorithm, &problem, &schedule);
            }
            let mut process = Process::new(schedule, send.clone(), recv, elements);
            process.send_elements = send_parts.2.clone();
            process.recv_elements = recv_parts.2.clone();
            processes.push(process);
            expected.push((send, result));
        }
        let synchronous = random.coin();
        let operator: &dyn Fn(&[u8], &mut [u8]) = if self.commutative { &add } else { &compose };
        let heard = run(&mut processes, self.sizes, self.board, synchronous, &mut random, operator);
        if self.operation == Operation::Barrier {
            let all = u64::MAX >> (64 - processes.len());
            assert!(heard.iter().all(|heard| *heard == all), "a process leaves before all have come");
        }
        for (index, (process, (send, recv))) in processes.iter().zip(&expected).enumerate() {
            assert!(process.send == *send, "the send buffer of process {index} has changed");
            if process.recv != *recv {
                let places: Vec<i64> = (0..recv.len())
                    .filter(|place| process.recv[*place] != recv[*place])
                    .map(|place| place as i64 - MARGIN as i64)
                    .collect();
                panic!(
                    "wrong result at process {index}, offsets {places:?}, {:#?}, {:#?}",
                    cases[index].shape,
                    process.schedule.steps()
                );
            }
        }
    }
}

/// Nodes of several sizes, each with ranks that follow one another or not; `None` now and then.
fn nodes(random: &mut Random, size: usize) -> Option<Nodes> {
    let count = 1 + random.below(size.min(9) as u64);
    let mut names: Vec<u32> = (0..size).map(|_| random.below(count) as u32).collect();
    if random.below(3) > 0 {
        names.sort_unstable();
    }
    Nodes::new(&names)
}

fn check_all(operations: &[Operation], largest: u64, seeds: u64) {
    for algorithm in ALGORITHMS {
        for operation in algorithm.operations.iter().filter(|one| operations.contains(one)) {
            for size in 1..=33usize {
                for seed in 0..seeds {
                    let mut random = Random::new(seed * 1000 + size as u64);
                    let remote = match algorithm.groups {
                        Groups::One => 0,
                        Groups::Two => 1 + random.below(12) as usize,
                    };
                    for commutative in [true, false] {
                        if !commutative && !is_reduction(*operation) {
                            continue;
                        }
                        let setting = Setting {
                            operation: *operation,
                            sizes: [size, remote],
                            commutative,
                            largest,
                            oversubscribed: random.coin(),
                            // Short pieces too, so that there are many.
                            board: [16, 64, 4096][random.below(3) as usize],
                            nodes: if remote == 0 { nodes(&mut random, size) } else { None },
                        };
                        let shape = Shape {
                            operation: *operation,
                            rank: 0,
                            size: size as u32,
                            remote_size: remote as u32,
                            root: Root::None,
                            send: Part::default(),
                            recv: Part::default(),
                            in_place: false,
                            commutative,
                            oversubscribed: setting.oversubscribed,
                            board: setting.board,
                            direct: Direct::Fast,
                        };
                        let able = Problem { nodes: setting.nodes.as_ref(), ..Problem::even(shape) };
                        if !algorithm.can(&able) {
                            continue;
                        }
                        let outcome = std::panic::catch_unwind(|| setting.check(algorithm, seed));
                        if let Err(cause) = outcome {
                            eprintln!(
                                "failed: {} {} with {size}+{remote} processes, commutative {commutative}, seed {seed}",
                                operation.name(),
                                algorithm.name
                            );
                            std::panic::resume_unwind(cause);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn barrier_and_broadcast() {
    check_all(&[Operation::Barrier, Operation::Bcast], 40, 4);
}

#[test]
fn gather_and_scatter() {
    let operations = [Operation::Gather, Operation::Gatherv, Operation::Scatter, Operation::Scatterv];
    check_all(&operations, 20, 3);
}

#[test]
fn allgather() {
    check_all(&[Operation::Allgather, Operation::Allgatherv], 20, 3);
}

#[test]
fn alltoall() {
    check_all(&[Operation::Alltoall, Operation::Alltoallv, Operation::Alltoallw], 10, 2);
}

#[test]
fn reduce_and_allreduce() {
    check_all(&[Operation::Reduce, Operation::Allreduce], 60, 4);
}

#[test]
fn reduce_scatter() {
    check_all(&[Operation::ReduceScatter, Operation::ReduceScatterBlock], 12, 3);
}

#[test]
fn scans() {
    check_all(&[Operation::Scan, Operation::Exscan], 40, 4);
}

/// Longer than what is read and folded at once.
#[test]
fn reductions_in_several_pieces() {
    for operation in [Operation::Allreduce, Operation::ReduceScatter, Operation::ReduceScatterBlock] {
        let algorithm = named(operation, Groups::One, "direct").expect("it exists");
        for size in [2, 3] {
            for seed in 0..4 {
                let setting = Setting {
                    operation,
                    sizes: [size, 0],
                    commutative: seed % 2 == 0,
                    largest: 200 << 10,
                    oversubscribed: false,
                    board: 32 << 10,
                    nodes: None,
                };
                setting.check(algorithm, seed);
            }
        }
    }
}

#[test]
fn broadcast_in_several_segments() {
    for name in ["chain", "scatter_allgather"] {
        let algorithm = named(Operation::Bcast, Groups::One, name).expect("it exists");
        for size in [1, 2, 3, 5] {
            for seed in 0..4 {
                let setting = Setting {
                    operation: Operation::Bcast,
                    sizes: [size, 0],
                    commutative: true,
                    largest: 200 << 10,
                    oversubscribed: false,
                    board: 0,
                    nodes: nodes(&mut Random::new(seed), size),
                };
                setting.check(algorithm, seed);
            }
        }
    }
}
