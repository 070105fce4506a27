//! Runs the schedules of many processes in one program, in random order, and watches them.

use parnass_collectives::{BOARD_DEPTH, Element, Kind, Peer, Region, Schedule, Share, Slice, Span, Step};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Memory before and after every buffer, so that a wild offset is seen and not lost.
pub const MARGIN: usize = 4 << 10;

/// A small generator (xorshift64*): a seed gives a run.
#[derive(Clone)]
pub struct Random {
    state: u64,
    /// Whether long buffers are wanted.
    pub long: bool,
}

impl Random {
    pub fn new(seed: u64) -> Random {
        Random { state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1, long: false }
    }

    pub fn next(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}

/// A buffer of the user: bytes, with the margins.
pub type Memory = Vec<u8>;

/// Where element `index` of a run of elements has its data.
fn place(offset: i64, index: u64, element: &Element) -> std::ops::Range<usize> {
    let first = MARGIN as i64 + offset + index as i64 * element.extent + element.true_lower_bound;
    let first = usize::try_from(first).expect("an address within the margins");
    first..first + element.size as usize
}

/// The data of `count` elements, packed.
pub fn pack(memory: &Memory, offset: i64, count: u64, element: &Element) -> Vec<u8> {
    (0..count).flat_map(|index| memory[place(offset, index, element)].to_vec()).collect()
}

/// The reverse of [`pack`].
pub fn unpack(memory: &mut Memory, offset: i64, count: u64, element: &Element, data: &[u8]) {
    assert_eq!(data.len() as u64, count * element.size, "packed length");
    for index in 0..count {
        let from = (index * element.size) as usize;
        memory[place(offset, index, element)].copy_from_slice(&data[from..from + element.size as usize]);
    }
}

/// One process: its schedule and its memory.
pub struct Process {
    pub schedule: Schedule,
    pub send: Memory,
    pub recv: Memory,
    pub send_element: Element,
    pub recv_element: Element,
    pub send_elements: Vec<Element>,
    pub recv_elements: Vec<Element>,
    scratch: Memory,
    next: usize,
    outstanding: usize,
    /// Which processes are certain to have started, as far as this one can know; and what it will know after its wait.
    heard: u64,
    hearing: u64,
    /// What is under way: the span, and whether it is being written.
    busy: Vec<(Span, bool)>,
    /// What it has posted on the board, by round, and what it knew then.
    posted: BTreeMap<u32, (Vec<u8>, u64)>,
    /// What it has offered, by round, and what it knew then.
    offered: BTreeMap<u32, (Span, u64, u64)>,
    /// What it has dealt, by round, with the table, and what it knew then.
    dealt: BTreeMap<u32, (Vec<(u16, Vec<u8>)>, u64)>,
    /// The rounds in which it has posted among all.
    arrived: BTreeSet<u32>,
    /// How many rounds it has taken everything of.
    done: u32,
}

impl Process {
    pub fn new(schedule: Schedule, send: Memory, recv: Memory, elements: [Element; 2]) -> Process {
        let scratch = vec![0xA5; 2 * MARGIN + schedule.scratch_bytes() as usize];
        Process {
            schedule,
            send,
            recv,
            send_element: elements[0],
            recv_element: elements[1],
            send_elements: Vec::new(),
            recv_elements: Vec::new(),
            scratch,
            next: 0,
            outstanding: 0,
            heard: 0,
            hearing: 0,
            busy: Vec::new(),
            posted: BTreeMap::new(),
            offered: BTreeMap::new(),
            dealt: BTreeMap::new(),
            arrived: BTreeSet::new(),
            done: 0,
        }
    }

    fn element(&self, kind: Kind) -> Element {
        match kind {
            Kind::Bytes => Element::of_size(1),
            Kind::Send => self.send_element,
            Kind::Recv => self.recv_element,
            Kind::SendAt(index) => self.send_elements[index as usize],
            Kind::RecvAt(index) => self.recv_elements[index as usize],
        }
    }

    fn memory(&mut self, region: Region) -> &mut Memory {
        match region {
            Region::Send => &mut self.send,
            Region::Recv => &mut self.recv,
            Region::Scratch => &mut self.scratch,
        }
    }

    fn get(&mut self, span: Span) -> Vec<u8> {
        let element = self.element(span.kind);
        pack(self.memory(span.region), span.offset, span.count, &element)
    }

    fn put(&mut self, span: Span, data: &[u8]) {
        assert_ne!(span.region, Region::Send, "the send buffer is never written");
        let element = self.element(span.kind);
        if span.region == Region::Scratch {
            let (first, length) = element.reach(span.count);
            let first = span.offset + first;
            assert!(
                length == 0 || first >= 0 && first as u64 + length <= self.schedule.scratch_bytes(),
                "a write outside the scratch memory: {span:?}"
            );
        }
        unpack(self.memory(span.region), span.offset, span.count, &element, data);
    }

    fn get_slice(&mut self, slice: Slice) -> Vec<u8> {
        let all = self.get(slice.span);
        all[slice.skip as usize..][..slice.length as usize].to_vec()
    }

    fn put_slice(&mut self, slice: Slice, data: &[u8]) {
        let mut all = self.get(slice.span);
        all[slice.skip as usize..][..slice.length as usize].copy_from_slice(data);
        self.put(slice.span, &all);
    }

    /// A span must not be touched while something is under way that writes it, nor written while it is read.
    fn check_free(&self, span: Span, writes: bool) {
        let reach = |span: Span| {
            let (first, length) = self.element(span.kind).reach(span.count);
            let first = span.offset + first;
            first..first + length as i64
        };
        for (other, other_writes) in &self.busy {
            if span.count == 0
                || other.count == 0
                || other.region != span.region
                || !(writes || *other_writes)
            {
                continue;
            }
            let (one, two) = (reach(span), reach(*other));
            assert!(
                one.start >= two.end || two.start >= one.end,
                "{span:?} is used while {other:?} is under way"
            );
        }
    }
}

struct Sent {
    span: Span,
    /// Taken out of the source already when it was started.
    copied: Option<Vec<u8>>,
    heard: u64,
}

#[derive(Default)]
struct Channel {
    sent: VecDeque<Sent>,
    awaited: VecDeque<Span>,
}

#[derive(PartialEq, Eq)]
enum Progress {
    Made,
    Blocked,
}

/// Does a step on the board, if it is one.
fn board_step(
    processes: &mut [Process],
    me: usize,
    step: Step,
    (depth, board): (u32, u64),
    operator: &dyn Fn(&[u8], &mut [u8]),
) -> Progress {
    let rounds = processes[me].schedule.rounds();
    let has_room = |processes: &[Process], round: u32| {
        assert!(round < rounds, "round {round} of {rounds}");
        processes.iter().all(|other| other.done.saturating_add(depth) > round)
    };
    let found = |processes: &[Process], from: u32, round: u32, posted: u64| {
        let other = &processes[from as usize];
        assert_ne!(from as usize, me, "it takes what it has posted itself");
        assert!(round < rounds && round >= processes[me].done, "round {round} is not under way");
        other.posted.get(&round).cloned().inspect(|(data, _)| {
            assert_eq!(data.len() as u64, posted, "what {from} has posted for {me} in round {round}");
        })
    };
    match step {
        Step::Post { round, data, wake } => {
            if !has_room(processes, round) {
                return Progress::Blocked;
            }
            let process = &mut processes[me];
            process.check_free(data.span, false);
            let posted = (process.get_slice(data), process.heard);
            assert!(process.posted.insert(round, posted).is_none(), "two posts in round {round}");
            if wake.when_complete {
                process.arrived.insert(round);
            }
        }
        Step::Offer { round, data, length, wake } => {
            if !has_room(processes, round) {
                return Progress::Blocked;
            }
            let process = &mut processes[me];
            let (element, heard) = (process.element(data.kind), process.heard);
            let is_run = element.dense && element.reach(data.count).1 == length;
            assert!(
                data.count == 0 || is_run,
                "{me} offers what has gaps or is not of {length} bytes: {data:?}"
            );
            assert!(
                process.offered.insert(round, (data, length, heard)).is_none(),
                "two offers in round {round}"
            );
            if wake.when_complete {
                process.arrived.insert(round);
            }
        }
        Step::Fetch { round, from, offered, skip, data } => {
            assert_ne!(from as usize, me, "it reads what it has offered itself");
            let owner = &mut processes[from as usize];
            let Some((span, length, heard)) = owner.offered.get(&round).copied() else {
                return Progress::Blocked;
            };
            assert_eq!(length, offered, "what {from} has offered for {me} in round {round}");
            if data.length > 0 {
                assert!(
                    owner.next < owner.schedule.steps().len(),
                    "{me} reads from {from}, which has returned"
                );
                let bytes = owner.get(span);
                let process = &mut processes[me];
                process.check_free(data.span, true);
                process.put_slice(data, &bytes[skip as usize..][..data.length as usize]);
            }
            processes[me].heard |= heard;
        }
        Step::Deal { round, wake } => {
            if !has_room(processes, round) {
                return Progress::Blocked;
            }
            let process = &mut processes[me];
            let shares = process.schedule.shares().to_vec();
            let table: Vec<(u16, Vec<u8>)> = shares
                .iter()
                .map(|share| {
                    let bytes = if share.away { Vec::new() } else { process.get_slice(share.data) };
                    (share.entry(), bytes)
                })
                .collect();
            let rooms = table.iter().map(|(entry, _)| Share::room(*entry)).sum::<u64>();
            let length = Share::table_bytes(processes.len()) + rooms;
            assert!(length <= board, "{length} bytes are dealt on a board of {board}");
            let process = &mut processes[me];
            let dealt = (table, process.heard);
            assert!(process.dealt.insert(round, dealt).is_none(), "two deals in round {round}");
            if wake.when_complete {
                process.arrived.insert(round);
            }
        }
        Step::Pick { round, from, share } => {
            assert_ne!(from as usize, me, "it picks out of its own deal");
            let Some((table, heard)) = processes[from as usize].dealt.get(&round).cloned() else {
                return Progress::Blocked;
            };
            let (entry, bytes) = &table[me];
            assert_eq!(*entry, share.entry(), "what {from} has dealt to {me}");
            let process = &mut processes[me];
            if !share.away {
                process.check_free(share.data.span, true);
                process.put_slice(share.data, bytes);
            }
            process.heard |= heard;
        }
        Step::Gather { round } if !processes.iter().all(|other| other.arrived.contains(&round)) => {
            return Progress::Blocked;
        }
        Step::Take { round, from, posted, skip, data } => {
            let Some((bytes, heard)) = found(processes, from, round, posted) else {
                return Progress::Blocked;
            };
            let process = &mut processes[me];
            process.check_free(data.span, true);
            process.put_slice(data, &bytes[skip as usize..][..data.length as usize]);
            process.heard |= heard;
        }
        Step::Fold { round, from, posted, skip, inout } => {
            let Some((bytes, heard)) = found(processes, from, round, posted) else {
                return Progress::Blocked;
            };
            let process = &mut processes[me];
            process.check_free(inout, true);
            let mut right = process.get(inout);
            operator(&bytes[skip as usize..][..right.len()], &mut right);
            process.put(inout, &right);
            process.heard |= heard;
        }
        Step::Done { round } => {
            let process = &mut processes[me];
            assert!(round + 1 >= process.done && round < rounds, "done with round {round} of {rounds}");
            process.done = round + 1;
        }
        _ => {}
    }
    Progress::Made
}

/// Runs everything. `sizes` are the group sizes; the processes of the second group follow those of the first. `board`: bytes of a piece.
/// With `synchronous` no send completes before it is matched, which brings every possible deadlock out. Returns, for each
/// process, the set of those that must have started before it ended.
pub fn run(
    processes: &mut [Process],
    sizes: [usize; 2],
    board: u64,
    synchronous: bool,
    random: &mut Random,
    operator: &dyn Fn(&[u8], &mut [u8]),
) -> Vec<u64> {
    let mut channels: BTreeMap<(usize, usize), Channel> = BTreeMap::new();
    let number = |me: usize, peer: Peer| {
        let first_group = me < sizes[0];
        let (local, remote) = if first_group { (0, sizes[0]) } else { (sizes[0], 0) };
        match peer {
            Peer::Local(rank) => {
                assert!((rank as usize) < sizes[usize::from(!first_group)], "no such rank {rank}");
                local + rank as usize
            }
            Peer::Remote(rank) => {
                assert!((rank as usize) < sizes[usize::from(first_group)], "no such rank {rank}");
                remote + rank as usize
            }
        }
    };
    assert!(processes.len() <= 64, "sets of processes are kept in 64 bits");
    for (me, process) in processes.iter_mut().enumerate() {
        process.heard = 1 << me;
    }
    // A shallow board brings out schedules that lean on more than they may.
    let depth = [2, BOARD_DEPTH][random.below(2) as usize];
    let mut ready: Vec<(usize, usize)> = Vec::new();
    let mut runnable: Vec<usize> = (0..processes.len()).collect();
    let mut idle = 0;
    loop {
        let actions = runnable.len() + ready.len();
        if actions == 0 {
            break;
        }
        let choice = random.below(actions as u64) as usize;
        if choice < runnable.len() {
            let me = runnable[choice];
            let process = &mut processes[me];
            let Some(step) = process.schedule.steps().get(process.next).copied() else {
                process.done = u32::MAX;
                runnable.swap_remove(choice);
                continue;
            };
            if board_step(processes, me, step, (depth, board), operator) == Progress::Blocked {
                // Another process must come first: if none can, nobody will.
                idle += 1;
                if idle > 200 * processes.len() {
                    break;
                }
                continue;
            }
            idle = 0;
            let process = &mut processes[me];
            match step {
                Step::Wait => {
                    if process.outstanding > 0 {
                        // A delivery makes it runnable again.
                        runnable.swap_remove(choice);
                        continue;
                    }
                    process.busy.clear();
                    process.heard |= process.hearing;
                }
                Step::Send { to, data } => {
                    process.check_free(data, false);
                    process.busy.push((data, false));
                    let heard = process.heard;
                    let copied = (!synchronous && random.coin()).then(|| process.get(data));
                    if copied.is_none() {
                        process.outstanding += 1;
                    }
                    let key = (me, number(me, to));
                    assert_ne!(key.0, key.1, "a message to itself");
                    let channel = channels.entry(key).or_default();
                    channel.sent.push_back(Sent { span: data, copied, heard });
                    if channel.sent.len() <= channel.awaited.len() {
                        ready.push(key);
                    }
                }
                Step::Receive { from, data } => {
                    process.check_free(data, true);
                    process.busy.push((data, true));
                    process.outstanding += 1;
                    let key = (number(me, from), me);
                    let channel = channels.entry(key).or_default();
                    channel.awaited.push_back(data);
                    if channel.awaited.len() <= channel.sent.len() {
                        ready.push(key);
                    }
                }
                Step::Copy { from, to } => {
                    process.check_free(from, false);
                    process.check_free(to, true);
                    let data = process.get(from);
                    process.put(to, &data);
                }
                Step::Post { .. }
                | Step::Offer { .. }
                | Step::Fetch { .. }
                | Step::Gather { .. }
                | Step::Take { .. }
                | Step::Fold { .. }
                | Step::Deal { .. }
                | Step::Pick { .. }
                | Step::Done { .. } => {}
                Step::Reduce { input, inout } => {
                    process.check_free(input, false);
                    process.check_free(inout, true);
                    let left = process.get(input);
                    let mut right = process.get(inout);
                    operator(&left, &mut right);
                    process.put(inout, &right);
                }
            }
            process.next += 1;
        } else {
            let (source, target) = ready.swap_remove(choice - runnable.len());
            let channel = channels.get_mut(&(source, target)).expect("it is ready");
            let sent = channel.sent.pop_front().expect("it is ready");
            let place = channel.awaited.pop_front().expect("it is ready");
            processes[target].hearing |= sent.heard;
            let waits = sent.copied.is_none();
            let data = sent.copied.unwrap_or_else(|| processes[source].get(sent.span));
            let expected = place.count * processes[target].element(place.kind).size;
            assert_eq!(data.len() as u64, expected, "length of a message from {source} to {target}");
            processes[target].put(place, &data);
            for (who, waits) in [(source, waits), (target, true)] {
                if waits {
                    processes[who].outstanding -= 1;
                    if processes[who].outstanding == 0 && !runnable.contains(&who) {
                        runnable.push(who);
                    }
                }
            }
        }
    }
    let mixed = processes[0].schedule.messages().is_some();
    for process in processes.iter() {
        let (steps, messages) = (process.schedule.steps(), process.schedule.messages());
        assert_eq!(messages.is_some(), mixed, "they disagree on whether messages follow");
        let travels = |step: &Step| matches!(step, Step::Send { .. } | Step::Receive { .. } | Step::Wait);
        let (first, rest) = steps.split_at(messages.unwrap_or(steps.len()));
        assert!(!mixed || !first.iter().any(travels), "a message before its time");
        let local = |step: &Step| travels(step) || matches!(step, Step::Copy { .. } | Step::Reduce { .. });
        assert!(rest.iter().all(local), "a step on the board behind the messages");
    }
    let rounds = processes[0].schedule.rounds();
    assert!(
        processes.iter().all(|process| process.schedule.rounds() == rounds),
        "they disagree on the rounds"
    );
    let complete = |round: &u32| processes.iter().all(|process| process.arrived.contains(round));
    assert!(
        processes.iter().all(|process| process.arrived.iter().all(complete)),
        "a round in which not all arrive"
    );
    for (me, process) in processes.iter().enumerate() {
        let steps = process.schedule.steps();
        assert!(
            process.next == steps.len(),
            "deadlock: process {me} waits at step {} of {steps:#?}",
            process.next
        );
        assert_eq!(process.outstanding, 0, "process {me} did not wait for everything");
    }
    for ((source, target), channel) in &channels {
        assert!(channel.sent.is_empty(), "an unmatched message from {source} to {target}");
        assert!(channel.awaited.is_empty(), "an unmatched receive from {source} at {target}");
    }
    processes.iter().map(|process| process.heard).collect()
}
