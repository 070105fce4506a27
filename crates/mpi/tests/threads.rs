//! MPI_THREAD_MULTIPLE: several threads of a process in MPI at once.

mod common;

use common::{Random, byte, content, memory, nothing, pattern, run};
use parnass_base::Scratch;
use parnass_mpi::Activity;
use parnass_mpi::constants::*;
use parnass_mpi::datatype::Buffer;
use parnass_mpi::op::PredefinedOps;
use parnass_mpi::request::{Operation, complete};
use parnass_mpi::rma::{Memory, Place, Setting};
use parnass_mpi::{Info, Plane, Process, Request, SendMode, Status, ThreadLevel, Window};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const MULTIPLE: ThreadLevel = ThreadLevel::Multiple;

/// Each thread talks with the same thread of the other process, by its own tag; all mixed with waits on others.
#[test]
fn every_thread_hears_only_its_own_messages() {
    let threads = 4;
    run(2, MULTIPLE, |process| {
        let world = process.world();
        let peer = 1 - process.rank();
        std::thread::scope(|scope| {
            for tag in 0..threads {
                scope.spawn(move || {
                    let mut random = Random::new(tag as u64 + 1);
                    for round in 0..150 {
                        let length = [0, 8, 700, 5000, 30_000][random.below(5) as usize];
                        let data = memory(&pattern(process.rank(), peer, tag, round, length));
                        let place = Scratch::new(length);
                        let send = Buffer::new(data.address(), length as u64, byte(process));
                        let receive = Buffer::new(place.address(), length as u64, byte(process));
                        let mode = if round % 3 == 0 { SendMode::Synchronous } else { SendMode::Standard };
                        if round % 2 == 0 {
                            let request = process.ireceive(world, receive, peer as i32, tag).unwrap();
                            process.send(world, send, peer as i32, tag, mode).unwrap();
                            complete::wait(process, &request).unwrap();
                        } else {
                            let request = process.isend(world, send, peer as i32, tag, mode).unwrap();
                            process.receive(world, receive, peer as i32, tag).unwrap();
                            complete::wait(process, &request).unwrap();
                        }
                        assert!(content(&place, length) == pattern(peer, process.rank(), tag, round, length));
                    }
                });
            }
        });
    });
}

/// A message is received by exactly one of the threads that wait for it.
#[test]
fn threads_that_wait_for_the_same_messages_share_them() {
    let threads = 4u64;
    let each = 200u64;
    run(2, MULTIPLE, |process| {
        let world = process.world();
        if process.rank() == 0 {
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    scope.spawn(move || {
                        for round in 0..each {
                            let data = memory(&(thread * each + round + 1).to_le_bytes());
                            let buffer = Buffer::new(data.address(), 8, byte(process));
                            process.send(world, buffer, 1, 5, SendMode::Standard).unwrap();
                        }
                    });
                }
            });
        } else {
            let sum = AtomicU64::new(0);
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let sum = &sum;
                    scope.spawn(move || {
                        for round in 0..each {
                            let place = Scratch::new(8);
                            let buffer = Buffer::new(place.address(), 8, byte(process));
                            if (thread + round) % 3 == 0 {
                                let (message, _) =
                                    process.mprobe(world, MPI_ANY_SOURCE, MPI_ANY_TAG).unwrap();
                                process.receive_message(&message.unwrap(), buffer).unwrap();
                            } else {
                                process.receive(world, buffer, MPI_ANY_SOURCE, MPI_ANY_TAG).unwrap();
                            }
                            let mut bytes = [0; 8];
                            place.address().read(&mut bytes);
                            sum.fetch_add(u64::from_le_bytes(bytes), Ordering::SeqCst);
                        }
                    });
                }
            });
            let all = threads * each;
            assert_eq!(sum.load(Ordering::SeqCst), all * (all + 1) / 2);
        }
    });
}

/// Several threads of every process update, put into and get from the memory of all others at once.
#[test]
fn threads_share_a_window() {
    let threads = 3;
    let rounds = 60;
    run(2, MULTIPLE, |process| {
        let world = process.world();
        let bytes = 8 * (1 + i64::from(threads) * i64::from(world.size()));
        let setting = Setting { memory: Memory::Allocate { size: bytes }, unit: 8, hints: &Info::new() };
        let window = &Window::make(process, world, &setting).unwrap();
        let ops = PredefinedOps::default();
        let (sum, word) = (ops.get(MPI_SUM).unwrap(), process.datatypes().get(MPI_INT64_T).unwrap());
        window.lock_all(process, 0).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..threads {
                scope.spawn(move || {
                    let (one, seen) = (memory(&1_u64.to_le_bytes()), memory(&[0; 8]));
                    // The place of this thread at every process.
                    let own = i64::from(1 + thread + threads * world.rank());
                    for round in 0..rounds {
                        for rank in 0..world.size() {
                            let place = |displacement| Place { rank, displacement, count: 1, datatype: word };
                            window
                                .fetch_and_op(process, one.address(), seen.address(), &place(0), sum)
                                .unwrap();
                            let value = memory(&u64::to_le_bytes(round));
                            window.put(process, &Buffer::new(value.address(), 1, word), &place(own)).unwrap();
                            let back = memory(&[0; 8]);
                            window.flush(process, rank).unwrap();
                            window.get(process, &Buffer::new(back.address(), 1, word), &place(own)).unwrap();
                            assert_eq!(content(&back, 8), round.to_le_bytes());
                        }
                    }
                });
            }
        });
        window.unlock_all(process).unwrap();
        window.fence(process, 0).unwrap();
        let total = memory(&[0; 8]);
        let place = Place { rank: world.rank(), displacement: 0, count: 1, datatype: word };
        window.get(process, &Buffer::new(total.address(), 1, word), &place).unwrap();
        let updates = rounds * u64::from(threads as u32) * u64::from(world.size() as u32);
        assert_eq!(content(&total, 8), updates.to_le_bytes());
        window.fence(process, MPI_MODE_NOSUCCEED).unwrap();
        window.free(process).unwrap();
    });
}

/// Passes a token around the ring a number of times: an activity of many steps.
struct Ring {
    rounds: u32,
    token: Scratch,
    receive: Option<Operation>,
    send: Option<Operation>,
    tag: u32,
    passed: u32,
}

impl Ring {
    fn new(process: &Process, rounds: u32, tag: u32) -> Ring {
        let _ = process;
        Ring { rounds, token: Scratch::new(8), receive: None, send: None, tag, passed: 0 }
    }

    fn bytes(&self) -> parnass_mpi::process::UserBytes {
        parnass_mpi::process::UserBytes { address: self.token.address(), length: 8 }
    }
}

impl Activity for Ring {
    fn advance(&mut self, process: &Process) -> Option<parnass_mpi::Result<Status>> {
        let world = process.world();
        let (me, size) = (world.rank(), world.size());
        let (left, right) = ((me + size - 1) % size, (me + 1) % size);
        loop {
            if let Some(send) = &mut self.send {
                send.poll(process)?.unwrap();
                self.send = None;
                self.passed += 1;
            }
            if self.passed == self.rounds {
                return Some(Ok(Status { bytes: u64::from(self.passed), ..Status::EMPTY }));
            }
            if me != 0 || self.passed > 0 || self.receive.is_some() {
                let receive = match &mut self.receive {
                    Some(receive) => receive,
                    None => {
                        let operation = process
                            .start_receive_bytes(world, Plane::Collective, left, self.tag, self.bytes())
                            .unwrap();
                        self.receive.insert(operation)
                    }
                };
                receive.poll(process)?.unwrap();
                self.receive = None;
            }
            let operation =
                process.start_send_bytes(world, Plane::Collective, right, self.tag, self.bytes()).unwrap();
            self.send = Some(operation);
        }
    }
}

/// Drains the token that process 0 started.
fn rings(process: &Arc<Process>, threads: u32) {
    let world = process.world();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let ring = Ring::new(process, 50, 1000 + thread);
                let request = Request::composite(process, world, Box::new(ring));
                let status = complete::wait(process, &request).unwrap();
                assert_eq!(status.bytes, 50);
                if process.rank() == 0 {
                    let place = Scratch::new(8);
                    let bytes = parnass_mpi::process::UserBytes { address: place.address(), length: 8 };
                    let left = world.size() - 1;
                    let mut last = process
                        .start_receive_bytes(world, Plane::Collective, left, 1000 + thread, bytes)
                        .unwrap();
                    process.wait_operation(&mut last).unwrap();
                }
            });
        }
    });
}

#[test]
fn activities_advance_whoever_turns_the_wheel() {
    run(3, MULTIPLE, |process| rings(process, 3));
    run(2, ThreadLevel::Single, |process| rings(process, 1));
    run(1, ThreadLevel::Single, |process| rings(process, 1));
}

/// An activity goes on while its process waits for something else.
#[test]
fn an_activity_goes_on_while_its_process_waits_for_another_message() {
    run(3, ThreadLevel::Single, |process| {
        let world = process.world();
        let request = Request::composite(process, world, Box::new(Ring::new(process, 30, 7)));
        let me = process.rank();
        if me == 0 {
            // Comes only when the ring has gone round 30 times.
            process.receive(world, nothing(process), 2, 1).unwrap();
            let place = Scratch::new(8);
            let bytes = parnass_mpi::process::UserBytes { address: place.address(), length: 8 };
            let mut last = process.start_receive_bytes(world, Plane::Collective, 2, 7, bytes).unwrap();
            process.wait_operation(&mut last).unwrap();
        }
        if me == 2 {
            process.wait_until(None, || request.is_complete(process).then_some(()));
            process.send(world, nothing(process), 0, 1, SendMode::Standard).unwrap();
        }
        complete::wait(process, &request).unwrap();
    });
}
