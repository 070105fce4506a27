//! Blocking collectives of ranks that are threads, on boards, against what a single process computes.

mod common;

use common::{Random, byte, content, memory, run};
use parnass_base::Scratch;
use parnass_mpi::coll::{Call, Collective, Side};
use parnass_mpi::datatype::{CountForm, Datatype};
use parnass_mpi::op::PredefinedOps;
use parnass_mpi::{Process, ThreadLevel};
use std::sync::Arc;

const LENGTHS: [usize; 8] = [0, 1, 8, 48, 49, 900, 40_000, 150_000];

fn pattern(rank: u32, step: u64, length: usize) -> Vec<u8> {
    let mut random = Random::new(step << 8 | u64::from(rank));
    (0..length).map(|_| random.next() as u8).collect()
}

fn side<'a>(process: &'a Process, place: &Scratch, count: usize) -> Side<'a> {
    Side::Even { address: place.address(), count: count as u64, datatype: byte(process) }
}

fn one(process: &Arc<Process>, ops: &PredefinedOps, step: u64) {
    let world = process.world();
    let (rank, size) = (process.rank(), process.size());
    let mut random = Random::new(step + 1);
    let length = LENGTHS[random.below(LENGTHS.len() as u64) as usize];
    let root = random.below(u64::from(size)) as u32;
    let everything = || (0..size).flat_map(|from| pattern(from, step, length)).collect::<Vec<u8>>();
    let sum = |ranks: std::ops::Range<u32>, length| {
        let mut sum = vec![0; length];
        for from in ranks {
            sum.iter_mut().zip(pattern(from, step, length)).for_each(|(sum, one)| *sum ^= one);
        }
        sum
    };
    let xor = ops.get(0x2a).unwrap();
    let all = length * size as usize;
    let operation = [
        Collective::Barrier,
        Collective::Bcast,
        Collective::Allgather,
        Collective::Alltoall,
        Collective::Allreduce,
        Collective::Reduce,
        Collective::ReduceScatterBlock,
        Collective::Scan,
    ][random.below(8) as usize];
    let mut call = Call::new(world, operation);
    let (mine, place) = (memory(&pattern(rank, step, all)), memory(&vec![0xee; all + 1]));
    let mut expected = vec![0xee; all + 1];
    match operation {
        Collective::Barrier => {}
        Collective::Bcast => {
            call.root = root as i32;
            if rank == root {
                place.address().write(&pattern(root, step, length));
            }
            call.recv = side(process, &place, length);
            expected[..length].copy_from_slice(&pattern(root, step, length));
        }
        Collective::Allgather => {
            call.send = side(process, &mine, length);
            call.recv = side(process, &place, length);
            expected[..all].copy_from_slice(&everything());
        }
        Collective::Alltoall => {
            call.send = side(process, &mine, length);
            call.recv = side(process, &place, length);
            let blocks = (0..size)
                .flat_map(|from| pattern(from, step, all)[rank as usize * length..][..length].to_vec());
            expected[..all].copy_from_slice(&blocks.collect::<Vec<u8>>());
        }
        Collective::ReduceScatterBlock => {
            call.op = Some(xor);
            call.send = side(process, &mine, all);
            call.recv = side(process, &place, length);
            expected[..length].copy_from_slice(&sum(0..size, all)[rank as usize * length..][..length]);
        }
        _ => {
            call.op = Some(xor);
            call.send = side(process, &mine, length);
            call.recv = side(process, &place, length);
            let ranks = match operation {
                Collective::Scan => 0..rank + 1,
                Collective::Reduce if rank != root => 0..0,
                _ => 0..size,
            };
            if operation == Collective::Reduce {
                call.root = root as i32;
            }
            if !ranks.is_empty() {
                expected[..length].copy_from_slice(&sum(ranks, length));
            }
        }
    }
    process.collective(&call).unwrap();
    assert!(content(&place, all + 1) == expected, "{operation:?}, step {step}, {length} bytes, root {root}");
}

#[test]
fn many_in_a_row_give_what_one_process_computes() {
    for size in [2, 3, 7] {
        run(size, ThreadLevel::Single, |process| {
            let ops = PredefinedOps::default();
            for step in 0..150 {
                one(process, &ops, step);
            }
        });
    }
}

/// More broadcasts than a board has notes, short and long ones in turn: nothing is overwritten before it was taken.
#[test]
fn a_root_that_runs_ahead_waits_for_the_last() {
    for size in [2, 3, 7] {
        run(size, ThreadLevel::Single, |process| {
            for step in 0..600 {
                let length = [8, 8, 8, 48, 900, 8, 20_000][step as usize / 50 % 7];
                let expected = pattern(0, step, length);
                let place = memory(&if process.rank() == 0 { expected.clone() } else { vec![0xee; length] });
                let mut call = Call::new(process.world(), Collective::Bcast);
                call.root = 0;
                call.recv = side(process, &place, length);
                process.collective(&call).unwrap();
                assert!(content(&place, length) == expected, "step {step}, {length} bytes");
                if process.rank() + 1 == size && step % 40 == 0 {
                    std::thread::sleep(std::time::Duration::from_micros(300));
                }
            }
        });
    }
}

/// Schedules are kept for datatypes, which come and go: one that lies where another lay is not taken for it.
#[test]
fn datatypes_that_come_and_go_are_told_apart() {
    run(2, ThreadLevel::Single, |process| {
        for step in 0..100 {
            let (blocks, stride) = [(4, 1), (4, 2), (2, 4), (3, 3)][step as usize % 4];
            let datatype = Datatype::vector(CountForm::Int, blocks, 1, stride, byte(process)).unwrap();
            datatype.commit();
            let (data, empty) = (pattern(0, step, 16), vec![0xee; 16]);
            let mut expected = empty.clone();
            (0..blocks * stride)
                .step_by(stride as usize)
                .for_each(|at| expected[at as usize] = data[at as usize]);
            let place = memory(if process.rank() == 0 { &data } else { &empty });
            let mut call = Call::new(process.world(), Collective::Bcast);
            call.root = 0;
            call.recv = Side::Even { address: place.address(), count: 1, datatype: &datatype };
            process.collective(&call).unwrap();
            assert_eq!(content(&place, 16), if process.rank() == 0 { data } else { expected }, "step {step}");
        }
    });
}
