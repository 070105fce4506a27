//! Many messages of all kinds at once, against an oracle that knows what must come in which order.

mod common;

use common::{Random, byte, content, memory, pattern, run};
use parnass_base::Scratch;
use parnass_mpi::constants::*;
use parnass_mpi::datatype::Buffer;
use parnass_mpi::pt2pt::BufferOwner;
use parnass_mpi::request::{Readiness, complete};
use parnass_mpi::{Process, Request, SendMode, Status, ThreadLevel};
use std::collections::HashMap;
use std::sync::Arc;

const LONGEST: usize = 40_000;
/// Received only with their source and tag named.
const EXACT_TAGS: u64 = 3;
/// Received only from MPI_ANY_SOURCE.
const OPEN_TAG: i32 = 10;

#[derive(Clone, Copy, Debug)]
struct Planned {
    tag: i32,
    length: usize,
    mode: SendMode,
}

/// What each rank sends to each other, in order; all ranks know it all.
fn plan(seed: u64, size: u32, messages: u64) -> HashMap<(u32, u32), Vec<Planned>> {
    let mut random = Random::new(seed);
    let mut plan: HashMap<_, Vec<_>> = HashMap::new();
    for source in 0..size {
        for target in 0..size {
            let list = plan.entry((source, target)).or_default();
            for _ in 0..random.below(messages) {
                let tag = match random.below(4) {
                    0 => OPEN_TAG,
                    _ => random.below(EXACT_TAGS) as i32,
                };
                let length = match random.below(6) {
                    0 => 0,
                    1 | 2 => random.below(64),
                    3 => random.below(2000),
                    _ => random.below(LONGEST as u64),
                } as usize;
                let mode = match random.below(4) {
                    0 => SendMode::Synchronous,
                    1 => SendMode::Buffered,
                    _ => SendMode::Standard,
                };
                list.push(Planned { tag, length, mode });
            }
        }
    }
    plan
}

/// How many messages with this tag a rank gets from a source, and how long they are.
fn lengths(plan: &HashMap<(u32, u32), Vec<Planned>>, source: u32, target: u32, tag: i32) -> Vec<usize> {
    plan[&(source, target)].iter().filter(|one| one.tag == tag).map(|one| one.length).collect()
}

enum Step {
    Send(u32, Planned, u64),
    Exact(u32, i32),
    Open,
}

fn steps(plan: &HashMap<(u32, u32), Vec<Planned>>, me: u32, size: u32, random: &mut Random) -> Vec<Step> {
    let mut lists: Vec<Vec<Step>> = Vec::new();
    for peer in 0..size {
        let mut sequence: HashMap<i32, u64> = HashMap::new();
        let sends = plan[&(me, peer)].iter().map(|&planned| {
            let number = sequence.entry(planned.tag).or_default();
            *number += 1;
            Step::Send(peer, planned, *number - 1)
        });
        lists.push(sends.collect());
        let receives = plan[&(peer, me)].iter().map(|planned| match planned.tag {
            OPEN_TAG => Step::Open,
            tag => Step::Exact(peer, tag),
        });
        lists.push(receives.collect());
    }
    lists.iter_mut().for_each(|list| list.reverse());
    // Any interleaving; the order to and from one peer is kept.
    let mut steps = Vec::new();
    while lists.iter().any(|list| !list.is_empty()) {
        let pick = random.below(lists.len() as u64) as usize;
        steps.extend(lists[pick].pop());
    }
    steps
}

struct Posted {
    place: Scratch,
    source: Option<u32>,
    tag: i32,
    status: Option<Status>,
    request: Option<Arc<Request>>,
}

fn storm(process: &Arc<Process>, seed: u64, messages: u64) {
    let world = process.world();
    let (me, size) = (process.rank(), process.size());
    let plan = plan(seed, size, messages);
    let mut random = Random::new(seed * 1000 + u64::from(me));
    let mut sends: Vec<(Scratch, Arc<Request>)> = Vec::new();
    let mut receives: Vec<Posted> = Vec::new();
    let buffer = |place: &Scratch, length: usize| Buffer::new(place.address(), length as u64, byte(process));
    for step in steps(&plan, me, size, &mut random) {
        match step {
            Step::Send(target, Planned { tag, length, mode }, sequence) => {
                let data = memory(&pattern(me, target, tag, sequence, length));
                let request = process.isend(world, buffer(&data, length), target as i32, tag, mode).unwrap();
                sends.push((data, request));
            }
            Step::Exact(source, tag) => {
                let place = Scratch::new(LONGEST);
                let request = process.ireceive(world, buffer(&place, LONGEST), source as i32, tag).unwrap();
                receives.push(Posted {
                    place,
                    source: Some(source),
                    tag,
                    status: None,
                    request: Some(request),
                });
            }
            Step::Open => {
                let place = Scratch::new(LONGEST);
                // Half of them by a matched probe, if there is something.
                let probed = if random.below(2) == 0 {
                    process.improbe(world, MPI_ANY_SOURCE, OPEN_TAG).unwrap()
                } else {
                    None
                };
                let request = match probed {
                    Some((message, status)) => {
                        let request = process.ireceive_message(&message.unwrap(), buffer(&place, LONGEST));
                        assert_eq!(status.tag, OPEN_TAG);
                        request
                    }
                    None => {
                        process.ireceive(world, buffer(&place, LONGEST), MPI_ANY_SOURCE, OPEN_TAG).unwrap()
                    }
                };
                receives.push(Posted {
                    place,
                    source: None,
                    tag: OPEN_TAG,
                    status: None,
                    request: Some(request),
                });
            }
        }
        if random.below(8) == 0 {
            process.progress();
        }
    }
    // Complete them in any order, by any of the ways.
    loop {
        let open: Vec<usize> =
            (0..receives.len()).filter(|&index| receives[index].request.is_some()).collect();
        if open.is_empty() {
            break;
        }
        let request = |index: &usize| receives[*index].request.as_ref().unwrap();
        let is_complete = |index: &usize| request(index).readiness(process) == Readiness::Complete;
        let peers = || open.iter().map(|index| request(index).awaited());
        let done: Vec<usize> = match random.below(3) {
            0 => vec![process.wait_for_any(peers(), || open.iter().copied().find(is_complete))],
            1 => process.wait_for_any(peers(), || {
                let complete: Vec<usize> = open.iter().copied().filter(is_complete).collect();
                (!complete.is_empty()).then_some(complete)
            }),
            _ => vec![open[random.below(open.len() as u64) as usize]],
        };
        for index in done {
            let posted = &mut receives[index];
            posted.status = posted.request.take().map(|request| complete::wait(process, &request).unwrap());
        }
    }
    for (_, request) in &sends {
        complete::wait(process, request).unwrap();
    }
    // In the order in which they were posted, the receives from one source with one tag got its messages in order.
    let mut sequence: HashMap<(u32, i32), u64> = HashMap::new();
    for posted in &receives {
        let status = posted.status.unwrap();
        let source = status.source as u32;
        assert_eq!(status.tag, posted.tag);
        assert!(posted.source.is_none_or(|named| named == source));
        let number = sequence.entry((source, posted.tag)).or_default();
        let length = lengths(&plan, source, me, posted.tag)[*number as usize];
        assert_eq!(status.bytes, length as u64);
        assert!(
            content(&posted.place, length) == pattern(source, me, posted.tag, *number, length),
            "message {number} from {source} to {me} with tag {}",
            posted.tag
        );
        *number += 1;
    }
    assert_eq!(process.iprobe(world, MPI_ANY_SOURCE, MPI_ANY_TAG).unwrap(), None);
}

fn storms(level: ThreadLevel) {
    for (seed, size, messages) in [(1, 1, 200), (2, 2, 150), (3, 3, 80), (4, 5, 40), (5, 2, 300)] {
        run(size, level, |process| {
            let automatic = parnass_base::UserAddress::NULL.offset(2);
            process.attach_buffer(BufferOwner::Process, automatic, 0).unwrap();
            storm(process, seed, messages);
            process.detach_buffer(BufferOwner::Process).unwrap();
        });
    }
}

#[test]
fn a_storm_of_messages() {
    storms(ThreadLevel::Single);
}

#[test]
fn a_storm_of_messages_with_the_locks_of_thread_multiple() {
    storms(ThreadLevel::Multiple);
}
