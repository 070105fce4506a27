//! Each kind of send, receive, probe and request, over each protocol.

mod common;

use common::{byte, bytes, content, memory, nothing, pattern, run};
use parnass_base::Scratch;
use parnass_mpi::constants::*;
use parnass_mpi::datatype::{Buffer, CountForm, Datatype};
use parnass_mpi::pt2pt::{BufferOwner, Envelope};
use parnass_mpi::request::{GeneralizedCallbacks, Specification, complete};
use parnass_mpi::{Process, Request, SendMode, Status, ThreadLevel};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Lengths on both sides of every limit of the protocols.
const LENGTHS: [usize; 14] =
    [0, 1, 8, 63, 64, 200, 1023, 1025, 4096, 16_383, 16_384, 70_000, 1 << 20, 3_000_001];

const SINGLE: ThreadLevel = ThreadLevel::Single;

fn sent(source: i32, tag: i32, bytes: usize) -> Status {
    Status { source, tag, error: MPI_SUCCESS, bytes: bytes as u64, cancelled: false }
}

#[test]
fn every_length_in_every_mode_expected_and_unexpected() {
    run(2, SINGLE, |process| {
        let world = process.world();
        let modes = [SendMode::Standard, SendMode::Synchronous, SendMode::Buffered, SendMode::Ready];
        let attached = Scratch::new(4 << 20);
        process.attach_buffer(BufferOwner::Process, attached.address(), 4 << 20).unwrap();
        for (round, &length) in LENGTHS.iter().enumerate() {
            for (number, &mode) in modes.iter().enumerate() {
                let tag = (round * modes.len() + number) as i32;
                let expected = pattern(0, 1, tag, 0, length);
                if process.rank() == 0 {
                    if mode == SendMode::Ready {
                        // The receive is posted when the other side says so.
                        process.receive(world, nothing(process), 1, 7).unwrap();
                    }
                    let data = memory(&expected);
                    process.send(world, bytes(process, &data), 1, tag, mode).unwrap();
                    // The buffer may be reused now.
                    data.address().write(&vec![0xee; length]);
                } else {
                    let place = Scratch::new(length + 8);
                    let status = if mode == SendMode::Ready {
                        let request = process.ireceive(world, bytes(process, &place), 0, tag).unwrap();
                        process.send(world, nothing(process), 0, 7, SendMode::Standard).unwrap();
                        complete::wait(process, &request).unwrap()
                    } else {
                        process.receive(world, bytes(process, &place), 0, tag).unwrap()
                    };
                    assert_eq!(status, sent(0, tag, length), "{mode:?}");
                    assert_eq!(content(&place, length), expected, "{length} bytes, {mode:?}");
                }
            }
        }
        assert_eq!(process.detach_buffer(BufferOwner::Process).unwrap(), (attached.address(), 4 << 20));
    });
}

#[test]
fn messages_to_oneself() {
    run(1, SINGLE, |process| {
        let own = process.self_communicator();
        for length in LENGTHS {
            let expected = pattern(0, 0, 1, 2, length);
            let data = memory(&expected);
            let place = Scratch::new(length);
            let receive = process.ireceive(own, bytes(process, &place), MPI_ANY_SOURCE, MPI_ANY_TAG).unwrap();
            process.send(own, bytes(process, &data), 0, 3, SendMode::Synchronous).unwrap();
            assert_eq!(complete::wait(process, &receive).unwrap(), sent(0, 3, length));
            assert_eq!(content(&place, length), expected);

            let send = process.isend(own, bytes(process, &data), 0, 4, SendMode::Standard).unwrap();
            let place = Scratch::new(length);
            assert_eq!(process.receive(own, bytes(process, &place), 0, 4).unwrap(), sent(0, 4, length));
            assert_eq!(complete::wait(process, &send).unwrap(), Status::EMPTY);
            assert_eq!(content(&place, length), expected);
        }
    });
}

#[test]
fn messages_that_are_too_long_are_cut_and_reported() {
    run(2, SINGLE, |process| {
        let world = process.world();
        for (tag, length) in [(0, 100), (1, 5000), (2, 200_000)] {
            let expected = pattern(0, 1, tag, 0, length);
            if process.rank() == 0 {
                process.send(world, bytes(process, &memory(&expected)), 1, tag, SendMode::Standard).unwrap();
            } else {
                let place = memory(&vec![0x55; length]);
                let half = Buffer::new(place.address(), length as u64 / 2, byte(process));
                let error = process.receive(world, half, 0, tag).unwrap_err();
                assert_eq!(error.class(), MPI_ERR_TRUNCATE);
                let text = error.message();
                assert!(text.contains(&format!("{length} bytes")), "{text}");
                assert!(text.contains(&format!("holds {} bytes", length / 2)), "{text}");
                let mut kept = expected[..length / 2].to_vec();
                kept.resize(length, 0x55);
                assert_eq!(content(&place, length), kept);
            }
        }
    });
}

#[test]
fn the_null_process_takes_and_gives_nothing() {
    run(1, SINGLE, |process| {
        let world = process.world();
        let null = MPI_PROC_NULL;
        process.send(world, nothing(process), null, 0, SendMode::Synchronous).unwrap();
        assert_eq!(process.receive(world, nothing(process), null, 0).unwrap(), Status::NO_PROCESS);
        let receive = process.ireceive(world, nothing(process), null, 0).unwrap();
        assert_eq!(complete::wait(process, &receive).unwrap(), Status::NO_PROCESS);
        assert_eq!(process.probe(world, null, 0).unwrap(), Status::NO_PROCESS);
        assert_eq!(process.iprobe(world, null, MPI_ANY_TAG).unwrap(), Some(Status::NO_PROCESS));
        let (message, status) = process.mprobe(world, null, 0).unwrap();
        assert!(message.is_none() && status == Status::NO_PROCESS);
        let nobody = Envelope { rank: null, tag: 0 };
        let both = process.send_receive(world, nothing(process), nobody, nothing(process), nobody).unwrap();
        assert_eq!(both, Status::NO_PROCESS);
    });
}

#[test]
fn exchanges_in_a_ring() {
    run(3, SINGLE, |process| {
        let world = process.world();
        let (me, size) = (process.rank(), process.size());
        let (left, right) = ((me + size - 1) % size, (me + 1) % size);
        let to = Envelope { rank: right as i32, tag: 5 };
        let from = Envelope { rank: left as i32, tag: 5 };
        for length in [8, 3000, 100_000] {
            let mine = pattern(me, right, 5, 0, length);
            let theirs = pattern(left, me, 5, 0, length);
            let (data, place) = (memory(&mine), Scratch::new(length));
            let status =
                process.send_receive(world, bytes(process, &data), to, bytes(process, &place), from).unwrap();
            assert_eq!(status, sent(left as i32, 5, length));
            assert_eq!(content(&place, length), theirs);

            let request = process
                .isend_receive(world, bytes(process, &data), to, bytes(process, &place), from)
                .unwrap();
            assert_eq!(complete::wait(process, &request).unwrap(), sent(left as i32, 5, length));

            let status = process.send_receive_replace(world, bytes(process, &data), to, from).unwrap();
            assert_eq!(status, sent(left as i32, 5, length));
            assert_eq!(content(&data, length), theirs);

            let data = memory(&mine);
            let request = process.isend_receive_replace(world, bytes(process, &data), to, from).unwrap();
            complete::wait(process, &request).unwrap();
            assert_eq!(content(&data, length), theirs);
        }
    });
}

#[test]
fn data_with_gaps() {
    run(2, SINGLE, |process| {
        let world = process.world();
        // Every other one of `count` blocks of 3 bytes.
        for count in [1u64, 5, 3000, 50_000] {
            let blocks = Datatype::vector(CountForm::Int, count as i64, 3, 6, byte(process)).unwrap();
            let span = count as usize * 6;
            let full = pattern(0, 1, 9, count, span);
            if process.rank() == 0 {
                let data = memory(&full);
                let buffer = Buffer::new(data.address(), 1, &blocks);
                process.send(world, buffer, 1, 9, SendMode::Standard).unwrap();
                let request = process.isend(world, buffer, 1, 9, SendMode::Synchronous).unwrap();
                complete::wait(process, &request).unwrap();
            } else {
                let place = memory(&vec![0xaa; span]);
                let buffer = Buffer::new(place.address(), 1, &blocks);
                let expected: Vec<u8> =
                    full.iter().enumerate().map(|(at, &byte)| if at % 6 < 3 { byte } else { 0xaa }).collect();
                let status = process.receive(world, buffer, 0, 9).unwrap();
                assert_eq!(status.bytes, count * 3);
                assert_eq!(content(&place, span - 3), expected[..span - 3]);
                place.address().write(&vec![0xaa; span]);
                let request = process.ireceive(world, buffer, 0, 9).unwrap();
                complete::wait(process, &request).unwrap();
                assert_eq!(content(&place, span - 3), expected[..span - 3]);
            }
        }
    });
}

#[test]
fn probes_see_the_message_that_the_receive_gets() {
    run(2, SINGLE, |process| {
        let world = process.world();
        for length in [0, 10, 2000, 100_000] {
            if process.rank() == 0 {
                let data = memory(&pattern(0, 1, 1, 0, length));
                let other = memory(&pattern(0, 1, 2, 0, length));
                let requests = [
                    process.isend(world, bytes(process, &data), 1, 1, SendMode::Standard).unwrap(),
                    process.isend(world, bytes(process, &other), 1, 2, SendMode::Standard).unwrap(),
                ];
                for request in requests {
                    complete::wait(process, &request).unwrap();
                }
                process.receive(world, nothing(process), 1, 3).unwrap();
            } else {
                assert_eq!(process.probe(world, 0, 2).unwrap(), sent(0, 2, length));
                assert_eq!(process.probe(world, MPI_ANY_SOURCE, MPI_ANY_TAG).unwrap(), sent(0, 1, length));
                assert_eq!(process.iprobe(world, 0, 77).unwrap(), None);
                let (message, status) = process.mprobe(world, MPI_ANY_SOURCE, 2).unwrap();
                assert_eq!(status, sent(0, 2, length));
                // The message is taken: nobody else gets it.
                assert_eq!(process.iprobe(world, 0, 2).unwrap(), None);
                assert!(process.improbe(world, 0, 2).unwrap().is_none());
                let place = Scratch::new(length);
                assert_eq!(
                    process.receive_message(&message.unwrap(), bytes(process, &place)).unwrap(),
                    sent(0, 2, length)
                );
                assert_eq!(content(&place, length), pattern(0, 1, 2, 0, length));
                let (message, _) = process.improbe(world, 0, MPI_ANY_TAG).unwrap().unwrap();
                let request = process.ireceive_message(&message.unwrap(), bytes(process, &place));
                assert_eq!(complete::wait(process, &request).unwrap(), sent(0, 1, length));
                assert_eq!(content(&place, length), pattern(0, 1, 1, 0, length));
                process.send(world, nothing(process), 0, 3, SendMode::Standard).unwrap();
            }
        }
    });
}

/// A blocking receive takes its message on a short way; receives that were posted before come first all the same,
/// and messages for others that arrive meanwhile are kept.
#[test]
fn a_blocking_receive_comes_after_the_receives_posted_before() {
    run(2, SINGLE, |process| {
        let world = process.world();
        for length in [0usize, 8, 33, 40, 41, 1000, 20_000, 300_000] {
            for mode in [SendMode::Standard, SendMode::Synchronous] {
                let message = |tag: i32, number: u64| pattern(0, 1, tag, number, length);
                if process.rank() == 0 {
                    process.receive(world, nothing(process), 1, 9).unwrap();
                    let order = [(2, 0), (1, 0), (3, 0), (1, 1), (2, 1), (1, 2)];
                    let data: Vec<_> =
                        order.iter().map(|&(tag, number)| memory(&message(tag, number))).collect();
                    let sends: Vec<_> = order
                        .iter()
                        .zip(&data)
                        .map(|(&(tag, _), data)| {
                            process.isend(world, bytes(process, data), 1, tag, mode).unwrap()
                        })
                        .collect();
                    for send in &sends {
                        assert_eq!(complete::wait(process, send), Ok(Status::EMPTY));
                    }
                } else {
                    let places: Vec<_> = (0..6).map(|_| Scratch::new(length)).collect();
                    let buffer = |place: usize| bytes(process, &places[place]);
                    let first = process.ireceive(world, buffer(0), MPI_ANY_SOURCE, 1).unwrap();
                    let second = process.ireceive(world, buffer(1), 0, 1).unwrap();
                    process.send(world, nothing(process), 0, 9, SendMode::Standard).unwrap();
                    assert_eq!(process.receive(world, buffer(2), 0, 1).unwrap(), sent(0, 1, length));
                    assert_eq!(
                        process.receive(world, buffer(3), MPI_ANY_SOURCE, 2).unwrap(),
                        sent(0, 2, length)
                    );
                    let any = process.receive(world, buffer(4), MPI_ANY_SOURCE, MPI_ANY_TAG).unwrap();
                    assert_eq!(any, sent(0, 3, length));
                    assert_eq!(
                        process.receive(world, buffer(5), 0, MPI_ANY_TAG).unwrap(),
                        sent(0, 2, length)
                    );
                    for request in [first, second] {
                        assert_eq!(complete::wait(process, &request).unwrap(), sent(0, 1, length));
                    }
                    let expected = [(1, 0), (1, 1), (1, 2), (2, 0), (3, 0), (2, 1)];
                    for (place, (tag, number)) in places.iter().zip(expected) {
                        assert!(content(place, length) == message(tag, number), "{length} bytes, {mode:?}");
                    }
                }
            }
        }
    });
}

#[test]
fn a_synchronous_send_waits_for_its_receive() {
    run(2, SINGLE, |process| {
        let world = process.world();
        for length in [0, 100, 5000, 200_000] {
            if process.rank() == 0 {
                let data = memory(&pattern(0, 1, 1, 0, length));
                let request =
                    process.isend(world, bytes(process, &data), 1, 1, SendMode::Synchronous).unwrap();
                process.send(world, nothing(process), 1, 2, SendMode::Standard).unwrap();
                process.receive(world, nothing(process), 1, 3).unwrap();
                for _ in 0..50 {
                    assert!(complete::test(process, &request).is_none(), "nobody has received yet");
                }
                process.send(world, nothing(process), 1, 4, SendMode::Standard).unwrap();
                complete::wait(process, &request).unwrap();
            } else {
                process.receive(world, nothing(process), 0, 2).unwrap();
                process.probe(world, 0, 1).unwrap();
                process.send(world, nothing(process), 0, 3, SendMode::Standard).unwrap();
                process.receive(world, nothing(process), 0, 4).unwrap();
                let place = Scratch::new(length);
                process.receive(world, bytes(process, &place), 0, 1).unwrap();
            }
        }
    });
}

#[test]
fn what_is_cancelled_is_neither_sent_nor_received() {
    run(1, SINGLE, |process| {
        let own = process.self_communicator();
        let place = memory(&[1; 16]);
        let receive = process.ireceive(own, bytes(process, &place), 0, 1).unwrap();
        receive.cancel(process).unwrap();
        assert!(complete::wait(process, &receive).unwrap().cancelled);

        let data = memory(&[2; 16]);
        let send = process.isend(own, bytes(process, &data), 0, 1, SendMode::Synchronous).unwrap();
        assert_eq!(process.probe(own, 0, 1).unwrap(), sent(0, 1, 16));
        send.cancel(process).unwrap();
        assert!(complete::wait(process, &send).unwrap().cancelled);
        assert_eq!(process.iprobe(own, 0, MPI_ANY_TAG).unwrap(), None);

        // Too late: the operation is complete, and not cancelled.
        let receive = process.ireceive(own, bytes(process, &place), 0, 1).unwrap();
        process.send(own, bytes(process, &data), 0, 1, SendMode::Standard).unwrap();
        while !receive.is_complete(process) {
            process.progress();
        }
        receive.cancel(process).unwrap();
        assert_eq!(complete::wait(process, &receive).unwrap(), sent(0, 1, 16));
        assert_eq!(content(&place, 16), [2; 16]);
    });
}

#[test]
fn buffered_sends_keep_accounts() {
    run(1, SINGLE, |process| {
        let own = process.self_communicator();
        let data = memory(&[7; 1000]);
        let send = |process: &Process| process.send(own, bytes(process, &data), 0, 1, SendMode::Buffered);
        let error = send(process).unwrap_err();
        assert_eq!(error.class(), MPI_ERR_BUFFER);
        assert!(error.message().contains("MPI_Buffer_attach"));

        let attached = Scratch::new(2000);
        process.attach_buffer(BufferOwner::Process, attached.address(), 1095).unwrap();
        let error = send(process).unwrap_err();
        assert_eq!(error.class(), MPI_ERR_BUFFER);
        assert!(error.message().contains("1000 bytes") && error.message().contains("1095 bytes"), "{error}");
        assert_eq!(
            process.attach_buffer(BufferOwner::Process, attached.address(), 10).unwrap_err().class(),
            MPI_ERR_BUFFER
        );
        process.detach_buffer(BufferOwner::Process).unwrap();
        process.attach_buffer(BufferOwner::Process, attached.address(), 1096).unwrap();
        send(process).unwrap();
        process.flush_buffer(BufferOwner::Process).unwrap();
        assert_eq!(process.detach_buffer(BufferOwner::Process).unwrap(), (attached.address(), 1096));
        assert_eq!(process.detach_buffer(BufferOwner::Process).unwrap_err().class(), MPI_ERR_BUFFER);

        // The communicator's own comes first, and can be automatic.
        let automatic = process_address(2);
        process.attach_buffer(BufferOwner::Communicator(own), automatic, 0).unwrap();
        for _ in 0..20 {
            send(process).unwrap();
        }
        let flush = process.start_flush_buffer(BufferOwner::Communicator(own)).unwrap();
        complete::wait(process, &flush).unwrap();
        assert_eq!(process.detach_buffer(BufferOwner::Communicator(own)).unwrap(), (automatic, 0));
        for _ in 0..21 {
            let place = Scratch::new(1000);
            process.receive(own, bytes(process, &place), 0, 1).unwrap();
            assert_eq!(content(&place, 1000), [7; 1000]);
        }
    });
}

fn process_address(value: i64) -> parnass_base::UserAddress {
    parnass_base::UserAddress::NULL.offset(value)
}

#[test]
fn a_persistent_request_can_be_started_again() {
    run(2, SINGLE, |process| {
        let world = process.world();
        let place = Scratch::new(64);
        let datatype = Arc::clone(byte(process));
        let (address, count) = (place.address(), 64);
        let request = Request::persistent(
            world,
            if process.rank() == 0 {
                let mode = SendMode::Standard;
                Specification::Send { address, count, datatype, target: 1, tag: 3, mode }
            } else {
                Specification::Receive { address, count, datatype, source: MPI_ANY_SOURCE, tag: MPI_ANY_TAG }
            },
        );
        assert!(!request.is_active());
        assert_eq!(complete::wait(process, &request).unwrap(), Status::EMPTY);
        assert_eq!(request.cancel(process).unwrap_err().class(), MPI_ERR_REQUEST);
        for round in 0..20 {
            let expected = pattern(0, 1, 3, round, 64);
            if process.rank() == 0 {
                address.write(&expected);
            }
            request.start(process).unwrap();
            assert_eq!(request.start(process).unwrap_err().class(), MPI_ERR_REQUEST);
            let status = complete::wait(process, &request).unwrap();
            if process.rank() == 1 {
                assert_eq!(status, sent(0, 3, 64));
                assert_eq!(content(&place, 64), expected);
            }
            assert!(!request.is_active());
        }
    });
}

#[test]
fn requests_freed_while_active_go_on() {
    run(2, SINGLE, |process| {
        let world = process.world();
        let length = 300_000;
        let data = memory(&pattern(0, 1, 1, 1, length));
        let place = Scratch::new(length);
        if process.rank() == 0 {
            let request = process.isend(world, bytes(process, &data), 1, 1, SendMode::Standard).unwrap();
            request.free(process).unwrap();
            process.receive(world, nothing(process), 1, 2).unwrap();
        } else {
            let request = process.ireceive(world, bytes(process, &place), 0, 1).unwrap();
            complete::wait(process, &request).unwrap();
            assert_eq!(content(&place, length), pattern(0, 1, 1, 1, length));
            process.send(world, nothing(process), 0, 2, SendMode::Standard).unwrap();
        }
    });
}

struct Counted {
    freed: Arc<AtomicU32>,
    cancelled: Arc<AtomicU32>,
}

impl GeneralizedCallbacks for Counted {
    fn query(&self, status: &mut Status) -> parnass_mpi::Result<()> {
        *status = sent(11, 12, 13);
        Ok(())
    }

    fn free(&self) -> parnass_mpi::Result<()> {
        self.freed.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn cancel(&self, complete: bool) -> parnass_mpi::Result<()> {
        self.cancelled.fetch_add(if complete { 100 } else { 1 }, Ordering::SeqCst);
        Ok(())
    }
}

#[test]
fn generalized_requests_call_the_program() {
    run(1, ThreadLevel::Multiple, |process| {
        let freed = Arc::new(AtomicU32::new(0));
        let cancelled = Arc::new(AtomicU32::new(0));
        let start =
            || Request::generalized(Box::new(Counted { freed: freed.clone(), cancelled: cancelled.clone() }));
        let request = start();
        assert!(complete::test(process, &request).is_none());
        request.cancel(process).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| complete::wait(process, &request));
            request.complete_generalized(process).unwrap();
            assert_eq!(waiting.join().unwrap(), Ok(sent(11, 12, 13)));
        });
        assert_eq!((freed.load(Ordering::SeqCst), cancelled.load(Ordering::SeqCst)), (1, 1));

        let request = start();
        request.free(process).unwrap();
        assert_eq!(freed.load(Ordering::SeqCst), 1);
        request.complete_generalized(process).unwrap();
        assert_eq!(freed.load(Ordering::SeqCst), 2);
    });
}
