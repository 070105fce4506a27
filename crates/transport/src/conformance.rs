//! What every transport must do, as tests that each sibling runs.
//!
//! A sibling gives a function that makes the transports of a job of some size, all in this process, and calls
//! [`check`] with it. Each check panics with what was wrong.

use crate::{MemoryError, Posting, Transport, Waiting};
use parnass_base::lane::{HEAD, WORDS};
use parnass_base::{Scratch, Word64};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A job: the transport of each of its processes.
pub type Job = Vec<Arc<dyn Transport>>;

/// Runs every check.
pub fn check(make: &dyn Fn(u32) -> Job) {
    numbers(make);
    order_and_content(make);
    bytes_travel_in_messages(make);
    a_full_mailbox_refuses(make);
    a_refused_message_stays(make);
    senders_in_threads(make);
    bulk_pieces_travel_and_come_back(make);
    memory_of_peers(make);
    nic_memory_is_shared(make);
    board_memory_is_shared(make);
    sleepers_are_woken(make);
    waiting_is_shown(make);
}

/// Everybody knows its number, and how many there are.
pub fn numbers(make: &dyn Fn(u32) -> Job) {
    for size in [1, 3] {
        for (number, transport) in (0..).zip(make(size)) {
            assert_eq!((transport.me(), transport.size()), (number, size));
            assert_ne!(transport.holder(), 0);
            assert!(transport.holder_lives()(transport.holder()));
            assert!(transport.limits().bulk_bytes >= 4096);
        }
    }
}

fn take_all(transport: &dyn Transport, of: u32) -> Vec<(u32, [u64; WORDS])> {
    let mut taken = Vec::new();
    while transport.take(of, 5, &mut |message| {
        taken.push((message.tag, message.words));
        true
    }) > 0
    {}
    taken
}

/// Messages of one sender arrive whole and in order; a process may send to itself.
pub fn order_and_content(make: &dyn Fn(u32) -> Job) {
    let job = make(3);
    assert!(!job[2].poll(2));
    for number in 0..20u64 {
        for sender in &job {
            let words: Vec<u64> = (0..WORDS as u64).map(|word| number * 10 + word).collect();
            assert!(sender.post(2, sender.me(), &words));
        }
    }
    assert!(job[2].poll(2));
    let taken = take_all(&*job[2], 2);
    for sender in 0..3 {
        let numbers: Vec<u64> =
            taken.iter().filter(|message| message.0 == sender).map(|message| message.1[0]).collect();
        assert_eq!(numbers, (0..20).map(|number| number * 10).collect::<Vec<_>>());
    }
    assert!(taken.iter().all(|message| message.1[6] == message.1[0] + 6));
    assert!(!job[2].poll(2));
    // A peer that holds the lock may take them too.
    assert!(job[0].post(1, 7, &[1]));
    assert!(job[2].poll(1));
    assert_eq!(take_all(&*job[2], 1)[0].0, 7);
}

/// Messages with bytes arrive whole, between others; those that are too long are refused as such, and so are long ones
/// while the target does not want them. What is kept comes back.
pub fn bytes_travel_in_messages(make: &dyn Fn(u32) -> Job) {
    let job = make(2);
    let source = filled(1 << 20, 3);
    let post = |length| job[0].post_bytes(1, 9, [1, length as u64], source.address(), length);
    assert_eq!(post(1 << 20), Posting::TooLong);
    let mut lengths: Vec<usize> = (0..=40).collect();
    lengths.extend(
        (41..3_000).step_by(13).take_while(|length| post(*length) == Posting::Posted && empty(&*job[1])),
    );
    for length in &lengths {
        assert!(job[0].post(1, 8, &[5]));
        assert_eq!(post(*length), Posting::Posted);
        assert!(job[0].post(1, 8, &[6]));
        let mut tags = Vec::new();
        while job[1].poll(1) {
            job[1].take(1, 1, &mut |message| {
                tags.push(message.tag);
                if message.tag == 9 {
                    assert_eq!(message.words[..2], [1, *length as u64]);
                    let target = Scratch::new(*length);
                    assert!(message.copy_to(HEAD, target.address(), *length));
                    assert_eq!(content(&target), content(&source)[..*length]);
                    if let Some(bulk) = job[1].keep(message, *length) {
                        let kept = Scratch::new(*length);
                        assert_eq!(job[1].drain(bulk, 0, 1, kept.address(), *length), Ok(()));
                        assert_eq!(content(&kept), content(&target));
                        job[1].discard(bulk);
                    }
                }
                true
            });
        }
        assert_eq!(tags, [8, 9, 8]);
    }
    for accept in [false, true] {
        job[1].accept_long(accept);
        assert_eq!(post(40), Posting::Posted);
        let long = lengths.iter().find(|length| **length > 40);
        let expected = if accept { Posting::Posted } else { Posting::TooLong };
        assert!(long.is_none_or(|length| post(*length) == expected));
    }
    let mut posting = Posting::Posted;
    while posting == Posting::Posted {
        posting = post(8);
    }
    assert_eq!(posting, Posting::Full);
}

fn empty(transport: &dyn Transport) -> bool {
    !take_all(transport, transport.me()).is_empty()
}

/// A mailbox takes a bounded number of messages, and more when some were taken out.
pub fn a_full_mailbox_refuses(make: &dyn Fn(u32) -> Job) {
    let job = make(2);
    let mut sent = 0u64;
    while job[0].post(1, 0, &[sent]) {
        sent += 1;
        assert!(sent < 1 << 20, "a mailbox without bound");
    }
    assert!(sent >= 16, "room for only {sent} messages");
    assert_eq!(job[1].take(1, 1, &mut |_| true), 1);
    assert!(job[0].post(1, 0, &[sent]));
    let numbers: Vec<u64> = take_all(&*job[1], 1).iter().map(|message| message.1[0]).collect();
    assert_eq!(numbers, (1..=sent).collect::<Vec<_>>());
}

/// A message that is refused stays first.
pub fn a_refused_message_stays(make: &dyn Fn(u32) -> Job) {
    let job = make(2);
    for number in 0..3 {
        assert!(job[0].post(1, 0, &[number]));
    }
    assert_eq!(job[1].take(1, 10, &mut |message| message.words[0] == 0), 1);
    assert!(job[1].poll(1));
    assert_eq!(take_all(&*job[1], 1).iter().map(|message| message.1[0]).collect::<Vec<_>>(), [1, 2]);
}

/// Threads of one process, and several processes, send at once.
pub fn senders_in_threads(make: &dyn Fn(u32) -> Job) {
    const EACH: u64 = 500;
    let job = make(3);
    let threads: Vec<_> = [0, 0, 1]
        .into_iter()
        .zip(0..)
        .map(|(process, number)| {
            let transport: Arc<dyn Transport> = job[process as usize].clone();
            std::thread::spawn(move || {
                for step in 0..EACH {
                    while !transport.post(2, number, &[step]) {
                        std::thread::yield_now();
                    }
                }
            })
        })
        .collect();
    let mut next = [0; 3];
    while next != [EACH; 3] {
        if job[2].take(2, 50, &mut |message| {
            assert_eq!(next[message.tag as usize], message.words[0]);
            next[message.tag as usize] += 1;
            true
        }) == 0
        {
            std::thread::yield_now();
        }
    }
    for thread in threads {
        thread.join().expect("a sender");
    }
}

fn filled(length: usize, seed: u8) -> Scratch {
    let scratch = Scratch::new(length);
    scratch.address().write(&(0..length).map(|index| index as u8 ^ seed).collect::<Vec<_>>());
    scratch
}

fn content(scratch: &Scratch) -> Vec<u8> {
    let mut bytes = vec![0; scratch.len()];
    scratch.address().read(&mut bytes);
    bytes
}

/// Bulk memory is bounded, keeps what was filled in, and can be used again when it has come back.
pub fn bulk_pieces_travel_and_come_back(make: &dyn Fn(u32) -> Job) {
    let job = make(2);
    let limit = job[0].limits().bulk_bytes;
    assert!(job[0].claim(limit.max(job[0].pipe_bytes(1)) + 1).is_none());
    for length in [1, 64, 65, 5_000, limit] {
        let source = filled(length, 9);
        let bulk = job[0].claim(length).expect("bulk memory at first");
        job[0].fill(bulk, 0, source.address(), length);
        let target = Scratch::new(length);
        assert_eq!(job[1].drain(bulk, 0, 1, target.address(), length), Ok(()));
        assert_eq!(content(&target), content(&source));
        if length > 64 {
            let rest = Scratch::new(length - 64);
            assert_eq!(job[1].drain(bulk, 64, 1, rest.address(), length - 64), Ok(()));
            assert_eq!(content(&rest), content(&source)[64..]);
        }
        job[1].discard(bulk);
    }
    let mut pieces = Vec::new();
    while let Some(bulk) = job[0].claim(limit) {
        pieces.push(bulk);
        assert!(pieces.len() < 1 << 20, "bulk memory without bound");
    }
    assert!(pieces.len() >= 4);
    for bulk in &pieces {
        job[1].discard(*bulk);
    }
    for _ in &pieces {
        assert!(job[0].claim(limit).is_some(), "what came back can be claimed again");
    }
}

/// Memory of a peer is read and written, or it is told that this is not possible.
pub fn memory_of_peers(make: &dyn Fn(u32) -> Job) {
    let job = make(2);
    let (mine, theirs) = (filled(10_000, 1), filled(10_000, 2));
    assert!(job[0].reaches(0));
    assert_eq!(job[0].place(0, mine.address(), b"here"), Ok(()));
    assert_eq!(&content(&mine)[..4], b"here");
    if !job[0].reaches(1) {
        let refused = Err(MemoryError::NotPermitted);
        assert_eq!(job[0].read(1, theirs.address(), mine.address(), 8), refused);
        assert_eq!(job[0].write(1, theirs.address(), mine.address(), 8), refused);
        assert_eq!(job[0].place(1, theirs.address(), b"x"), refused);
        return;
    }
    assert_eq!(job[0].read(1, theirs.address(), mine.address(), 5_000), Ok(()));
    assert_eq!(content(&mine)[..5_000], content(&theirs)[..5_000]);
    assert_eq!(job[0].write(1, theirs.address().offset(5_000), mine.address(), 5_000), Ok(()));
    assert_eq!(content(&theirs)[..5_000], content(&theirs)[5_000..]);
    assert_eq!(job[0].place(1, theirs.address(), b"there"), Ok(()));
    assert_eq!(&content(&theirs)[..5], b"there");
}

/// The memory of a NIC is zero, and the same for all who see it.
pub fn nic_memory_is_shared(make: &dyn Fn(u32) -> Job) {
    let job = make(2);
    let (own, seen) = (job[1].nic_memory(1), job[0].nic_memory(1));
    assert_eq!(own.len(), seen.len());
    let word = seen.record::<Word64>(64);
    assert_eq!(word.get(), 0);
    own.record::<Word64>(64).set(77);
    assert_eq!(word.get(), 77);
    assert_eq!(job[0].nic_memory(0).record::<Word64>(64).get(), 0);
    own.reserve(1 << 20, 4096).expect("memory");
    own.record::<Word64>(1 << 20).set(5);
    assert_eq!(seen.record::<Word64>(1 << 20).get(), 5);
}

/// The memory for boards is zero, the same for all who see it, and not that of the NIC.
pub fn board_memory_is_shared(make: &dyn Fn(u32) -> Job) {
    let job = make(2);
    let own = job[0].board_memory(0).expect("memory of its own");
    let Some(seen) = job[1].board_memory(0) else { return };
    own.reserve(0, 4096).expect("memory");
    assert_eq!(seen.record::<Word64>(8).get(), 0);
    own.record::<Word64>(8).set(3);
    assert_eq!(seen.record::<Word64>(8).get(), 3);
    assert_eq!(job[0].nic_memory(0).record::<Word64>(8).get(), 0);
}

/// A message and a ring wake a sleeper; a deadline ends a sleep; what has changed already forbids it.
pub fn sleepers_are_woken(make: &dyn Fn(u32) -> Job) {
    let job = make(2);
    for by_message in [true, false] {
        let transport: Arc<dyn Transport> = job[1].clone();
        let rings = transport.rings();
        let sleeper = std::thread::spawn(move || {
            while transport.rings() == rings {
                let mut changed = || transport.poll(1);
                transport.sleep(rings, None, &mut changed);
                if transport.poll(1) {
                    break;
                }
            }
            take_all(&*transport, 1).len()
        });
        if by_message {
            assert!(job[0].post(1, 0, &[]));
        } else {
            job[1].ring_always();
        }
        assert_eq!(sleeper.join().expect("a sleeper"), usize::from(by_message));
    }
    let rings = job[0].rings();
    job[0].sleep(rings, Some(Instant::now() + Duration::from_millis(1)), &mut || false);
    job[0].sleep(rings, None, &mut || true);
    job[0].sleep_helper(&mut || true);
    job[0].ring(1);
    job[0].ring_helper(1);
}

/// Peers see who waits for whom.
pub fn waiting_is_shown(make: &dyn Fn(u32) -> Job) {
    let job = make(3);
    for waiting in [Waiting::For(0), Waiting::For(2), Waiting::ForAny, Waiting::Not] {
        job[1].show(waiting);
        assert_eq!(job[0].shown(1), waiting);
        assert_eq!(job[0].shown(2), Waiting::Not);
    }
}
