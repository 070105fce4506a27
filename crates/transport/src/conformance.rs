//! What every transport must do, as tests that each sibling runs.
//!
//! A sibling gives a function that makes the transports of a job of some size, all in this process, and calls
//! [`check`] with it. Each check panics with what was wrong. What holds only between processes that share memory is
//! checked between those; a network between the others is checked by [`check_network`].

use crate::{BULK_WORD, Bulk, Follow, LENGTH_WORD, MemoryError, Network, Posting, Transport, Waiting};
use parnass_base::lane::{HEAD, Message, WORDS};
use parnass_base::{Scratch, UserAddress, Word64};
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

/// A check that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Tries until something has come of it. Nothing is decided by how long that takes.
fn until<R>(what: &str, mut attempt: impl FnMut() -> Option<R>) -> R {
    let start = Instant::now();
    loop {
        if let Some(result) = attempt() {
            return result;
        }
        assert!(start.elapsed() < PATIENCE, "{what} did not come");
        std::thread::yield_now();
    }
}

/// Takes messages until there are `count`.
fn gather(transport: &dyn Transport, of: u32, count: usize) -> Vec<(u32, [u64; WORDS])> {
    let mut taken = Vec::new();
    until("a message", || {
        taken.extend(take_all(transport, of));
        (taken.len() >= count).then_some(())
    });
    taken
}

fn take_all(transport: &dyn Transport, of: u32) -> Vec<(u32, [u64; WORDS])> {
    let mut taken = Vec::new();
    transport.poll(of);
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
    until("a message", || job[2].poll(2).then_some(()));
    let taken = gather(&*job[2], 2, 60);
    for sender in 0..3 {
        let numbers: Vec<u64> =
            taken.iter().filter(|message| message.0 == sender).map(|message| message.1[0]).collect();
        assert_eq!(numbers, (0..20).map(|number| number * 10).collect::<Vec<_>>());
    }
    assert!(taken.iter().all(|message| message.1[6] == message.1[0] + 6));
    assert!(!job[2].poll(2));
    if !job[0].shares(1) || !job[2].shares(1) {
        return;
    }
    // A peer that holds the lock may take them too.
    assert!(job[0].post(1, 7, &[1]));
    assert!(job[2].poll(1));
    assert_eq!(take_all(&*job[2], 1)[0].0, 7);
}

/// Messages with bytes arrive whole, between others; those that are too long are refused as such, and so are long ones
/// while the target does not want them. What is kept comes back.
pub fn bytes_travel_in_messages(make: &dyn Fn(u32) -> Job) {
    let job = make(2);
    if !job[0].shares(1) {
        return;
    }
    let source = filled(1 << 20, 3);
    let post =
        |length| job[0].post_bytes(1, 9, [1, length as u64], source.address(), length, Follow::Nothing);
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
    let mut numbers = Vec::new();
    let one = |message: &Message, numbers: &mut Vec<u64>| {
        numbers.push(message.words[0]);
        true
    };
    if job[0].shares(1) {
        assert_eq!(job[1].take(1, 1, &mut |message| one(message, &mut numbers)), 1);
        assert!(job[0].post(1, 0, &[sent]));
    } else {
        until("room", || {
            // Who has no room tries again, and looks after its network meanwhile.
            job[0].poll(0);
            job[1].poll(1);
            job[1].take(1, 1, &mut |message| one(message, &mut numbers));
            job[0].post(1, 0, &[sent]).then_some(())
        });
    }
    until("the last message", || {
        job[0].poll(0);
        numbers.extend(take_all(&*job[1], 1).iter().map(|message| message.1[0]));
        (numbers.len() as u64 > sent).then_some(())
    });
    assert_eq!(numbers, (0..=sent).collect::<Vec<_>>());
}

/// A message that is refused stays first.
pub fn a_refused_message_stays(make: &dyn Fn(u32) -> Job) {
    let job = make(2);
    for number in 0..3 {
        assert!(job[0].post(1, 0, &[number]));
    }
    until("the first message", || {
        job[1].poll(1);
        (job[1].take(1, 10, &mut |message| message.words[0] == 0) == 1).then_some(())
    });
    until("the second message", || job[1].poll(1).then_some(()));
    let rest: Vec<u64> = gather(&*job[1], 1, 2).iter().map(|message| message.1[0]).collect();
    assert_eq!(rest, [1, 2]);
}

/// Threads of one process, and several processes, send at once.
pub fn senders_in_threads(make: &dyn Fn(u32) -> Job) {
    const EACH: u64 = 500;
    let job = make(3);
    job[0].several_threads();
    let threads: Vec<_> = [0u32, 0, 1]
        .into_iter()
        .zip(0..)
        .map(|(process, number)| {
            let transport: Arc<dyn Transport> = job[process as usize].clone();
            std::thread::spawn(move || {
                let tag = number << crate::PROCESS_BITS | process;
                for step in 0..EACH {
                    while !transport.post(2, tag, &[step]) {
                        transport.poll(process);
                        std::thread::yield_now();
                    }
                }
            })
        })
        .collect();
    let mut next = [0; 3];
    while next != [EACH; 3] {
        job[2].poll(2);
        if job[2].take(2, 50, &mut |message| {
            let number = (message.tag >> crate::PROCESS_BITS) as usize;
            assert_eq!(next[number], message.words[0]);
            next[number] += 1;
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
    if !job[0].shares(1) {
        return;
    }
    let limit = job[0].limits().bulk_bytes;
    assert!(job[0].claim(limit.max(job[0].pipe_bytes(1)) + 1).is_none());
    for length in [1, 64, 65, 5_000, limit] {
        let source = filled(length, 9);
        let bulk = job[0].claim(length).expect("bulk memory at first");
        job[0].fill(bulk, 0, length, &mut |target| target.copy_apart(source.address(), length));
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
    if !job[0].shares(1) {
        return;
    }
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
            let mut taken = 0;
            // It may be woken for a part of a message, and early.
            while taken == 0 && (by_message || transport.rings() == rings) {
                let rings = if by_message { transport.rings() } else { rings };
                let mut changed = || transport.poll(1);
                transport.sleep(rings, None, &mut changed);
                taken = take_all(&*transport, 1).len();
            }
            taken
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
    job[0].sleep_helper(None, &mut || true);
    job[0].ring(1);
    job[0].ring_helper(1);
}

/// Peers see who waits for whom.
pub fn waiting_is_shown(make: &dyn Fn(u32) -> Job) {
    let job = make(3);
    for waiting in [Waiting::For(0), Waiting::For(2), Waiting::ForAny, Waiting::ForElse, Waiting::Not] {
        job[1].show(waiting);
        assert_eq!(job[0].shown(1), if job[0].shares(1) { waiting } else { Waiting::Not });
        assert_eq!(job[0].shown(2), Waiting::Not);
    }
}

/// A job on a network: what connects each of its processes.
pub type NetworkJob = Vec<Arc<dyn Network>>;

/// Runs every check of a network.
pub fn check_network(make: &dyn Fn(u32) -> NetworkJob) {
    network_numbers(make);
    all_pairs_at_once(make);
    payloads_land(make);
    payloads_are_bounded(make);
    lent_payloads_arrive(make);
    lent_payloads_go_where_their_taker_says(make);
    lent_payloads_wait_for_their_taker(make);
    what_is_refused_stays(make);
}

/// A message with the number of its sender at the end of its tag.
fn tag(sender: &dyn Network, number: u32) -> u32 {
    number << crate::PROCESS_BITS | sender.me()
}

/// Takes one message, whatever it is; `decide` is called with it.
fn take_one(network: &dyn Network, decide: &mut dyn FnMut(&Message)) -> Message {
    let mut found = None;
    until("a message", || {
        network.poll();
        network.take(1, &mut |message| {
            let first = found.is_none();
            if first {
                decide(message);
                found = Some(*message);
            }
            first
        });
        found
    })
}

/// Everybody knows its number, and how many there are.
pub fn network_numbers(make: &dyn Fn(u32) -> NetworkJob) {
    for (number, network) in (0..).zip(make(3)) {
        assert_eq!((network.me(), network.size()), (number, 3));
        assert!(network.stream_bytes() >= 4096);
        // Only "nothing" is certain: where its helper thread looks at the same moment there may be something.
        until("a look that finds nothing", || (!network.look()).then_some(()));
    }
}

/// Everybody sends to everybody else at the same moment; order holds per pair.
pub fn all_pairs_at_once(make: &dyn Fn(u32) -> NetworkJob) {
    const EACH: u64 = 200;
    let job = make(4);
    let threads: Vec<_> = job
        .into_iter()
        .map(|network| {
            std::thread::spawn(move || {
                let me = network.me();
                let mut next = [0u64; 4];
                let mut sent = 0;
                while sent < EACH || (0..4).any(|peer| peer != me && next[peer as usize] != EACH) {
                    if sent < EACH {
                        for peer in (0..4).filter(|peer| *peer != me) {
                            assert!(network.post(peer, tag(&*network, 1), &[sent, 7, 7]));
                        }
                        sent += 1;
                    }
                    network.poll();
                    network.take(10, &mut |message| {
                        let peer = message.tag as usize & 0xf;
                        assert_eq!(message.words[..3], [next[peer], 7, 7]);
                        next[peer] += 1;
                        true
                    });
                    std::thread::yield_now();
                }
                network
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("a process");
    }
}

/// A payload lands where its taker says: at once, later, shortened, or not at all.
pub fn payloads_land(make: &dyn Fn(u32) -> NetworkJob) {
    let job = make(2);
    let limit = job[0].stream_bytes();
    for length in [1, 100, 5_000, limit] {
        let source = filled(length, 3);
        let then = Message { tag: tag(&*job[1], 9), words: [1, 2, 3, 4, 5, 6, 7] };
        let ways = [
            ("at once", length),
            ("if whole", length),
            ("if whole, short", length / 2),
            ("later", length),
            ("short", length / 2),
            ("never", 0),
        ];
        for (way, room) in ways {
            let words = [1, 2, 3, 4, 5];
            until("credit", || {
                job[1].poll();
                if job[0].poll() {
                    job[0].take(1, &mut |message| panic!("nobody has sent {message:?}"));
                }
                job[0].stream(1, tag(&*job[0], 4), &words, source.address(), length).then_some(())
            });
            let target = Scratch::new(length);
            target.address().write(&vec![0; length]);
            let mut there = false;
            let mut land = |bulk| match way {
                "never" => {
                    job[1].discard(bulk);
                    there = true;
                }
                "if whole" | "if whole, short" if job[1].land_whole(bulk, target.address(), room) => {
                    there = true
                }
                _ => there = job[1].land(bulk, target.address(), room, then),
            };
            let message = take_one(&*job[1], &mut |message| {
                if way != "later" {
                    land(Bulk(message.words[BULK_WORD]));
                }
            });
            assert_eq!((message.tag, &message.words[..5]), (tag(&*job[0], 4), &words[..]));
            assert_eq!(message.words[LENGTH_WORD], length as u64);
            if way == "later" {
                // What comes behind it is seen meanwhile.
                assert!(job[0].post(1, tag(&*job[0], 5), &[]));
                assert_eq!(take_one(&*job[1], &mut |_| ()).tag, tag(&*job[0], 5));
                land(Bulk(message.words[BULK_WORD]));
            }
            if !there {
                assert_eq!(take_one(&*job[1], &mut |_| ()), then);
            }
            let mut expected = content(&source);
            expected[room..].fill(0);
            assert_eq!(content(&target), expected, "{length} bytes landed {way}");
        }
    }
}

/// A sender cannot make a target hold more than some amount; what is used up can be sent again.
pub fn payloads_are_bounded(make: &dyn Fn(u32) -> NetworkJob) {
    let job = make(2);
    let limit = job[0].stream_bytes();
    let source = filled(limit, 4);
    let mut held = Vec::new();
    let mut take = || {
        job[1].poll();
        job[1].take(100, &mut |message| {
            held.push(Bulk(message.words[BULK_WORD]));
            true
        });
    };
    let mut refused = 0;
    let mut sent = 0;
    while refused < 1_000 {
        if job[0].stream(1, tag(&*job[0], 1), &[], source.address(), limit) {
            (sent, refused) = (sent + 1, 0);
        } else {
            refused += 1;
            // What is before it on its way may need a connection first.
            std::thread::sleep(Duration::from_micros(50));
        }
        assert!(sent < 1 << 14, "payloads without bound");
        job[0].poll();
        take();
    }
    until("all of them", || {
        job[0].poll();
        job[1].poll();
        job[1].take(100, &mut |message| {
            held.push(Bulk(message.words[BULK_WORD]));
            true
        });
        (held.len() == sent).then_some(())
    });
    assert!(sent >= 2);
    held.into_iter().for_each(|bulk| job[1].discard(bulk));
    until("credit", || {
        job[1].poll();
        job[1].take(1, &mut |_| true);
        job[0].poll();
        job[0].take(1, &mut |_| true);
        job[0].stream(1, tag(&*job[0], 1), &[], source.address(), limit).then_some(())
    });
}

/// What is lent arrives whole, in parts that say where they belong, among other messages; then the source is told.
pub fn lent_payloads_arrive(make: &dyn Fn(u32) -> NetworkJob) {
    let job = make(2);
    let length = 5_000_001;
    let (first, second) = (filled(length, 5), filled(length, 6));
    let done = |number: u64| Message { tag: tag(&*job[0], 8), words: [number, 0, 0, 0, 0, 0, 0] };
    job[0].lend(1, tag(&*job[0], 2), 1, first.address(), length, done(1));
    job[0].lend(1, tag(&*job[0], 2), 2, second.address(), length, done(2));
    assert!(job[0].post(1, tag(&*job[0], 3), &[]));
    let targets = [Scratch::new(length), Scratch::new(length)];
    let (mut landed, mut posted, mut finished) = (0, false, Vec::new());
    until("all of it", || {
        for network in &job {
            network.poll();
            network.take(10, &mut |message| {
                match message.tag >> crate::PROCESS_BITS {
                    2 => {
                        let [word, offset, part] = [0, 1, LENGTH_WORD].map(|index| message.words[index]);
                        let target = targets[word as usize - 1].address().offset(offset as i64);
                        let then = Message { tag: tag(&*job[1], 7), words: [part, 0, 0, 0, 0, 0, 0] };
                        let bulk = Bulk(message.words[BULK_WORD]);
                        if network.land(bulk, target, part as usize, then) {
                            landed += part;
                        }
                    }
                    3 => posted = true,
                    7 => landed += message.words[0],
                    _ => finished.push(message.words[0]),
                }
                true
            });
        }
        (landed == 2 * length as u64 && posted && finished.len() == 2).then_some(())
    });
    assert!(content(&targets[0]) == content(&first) && content(&targets[1]) == content(&second));
}

/// Takes what has come, and what is lent by parts: `land` gives a place and how many bytes of a part go there, or `None` where it is wanted
/// nowhere. Adds to `done`, by the numbers of tags, what was told: bytes for 7, and 1 for all others.
fn take_lent(
    network: &dyn Network,
    done: &mut [u64; 10],
    land: &mut dyn FnMut(&Message) -> Option<(UserAddress, usize)>,
) {
    network.poll();
    network.take(10, &mut |message| {
        let number = (message.tag >> crate::PROCESS_BITS) as usize;
        match number {
            2 => {
                let bulk = Bulk(message.words[BULK_WORD]);
                let Some((target, room)) = land(message) else {
                    network.discard(bulk);
                    return true;
                };
                let part = message.words[LENGTH_WORD];
                let then = Message { tag: tag(network, 7), words: [part, 0, 0, 0, 0, 0, 0] };
                if network.land(bulk, target, room, then) {
                    done[7] += part;
                }
            }
            7 => done[7] += message.words[0],
            _ => done[number] += 1,
        }
        true
    });
}

/// Parts of what is lent may be thrown away, or land shortened; the source is told all the same.
pub fn lent_payloads_go_where_their_taker_says(make: &dyn Fn(u32) -> NetworkJob) {
    let job = make(2);
    let length = 9_000_001;
    let source = filled(length, 5);
    let target = filled(length, 0);
    let mut expected = content(&target);
    let then = Message { tag: tag(&*job[0], 8), words: [0; WORDS] };
    job[0].lend(1, tag(&*job[0], 2), 1, source.address(), length, then);
    let (mut done, mut parts, mut thrown) = ([0; 10], 0, 0);
    until("all of it", || {
        take_lent(&*job[0], &mut done, &mut |_| None);
        take_lent(&*job[1], &mut done, &mut |message| {
            let [offset, part] = [1, LENGTH_WORD].map(|index| message.words[index] as usize);
            parts += 1;
            if parts % 3 == 0 {
                thrown += part as u64;
                return None;
            }
            let room = part - (parts % 3) * 100;
            expected[offset..offset + room].copy_from_slice(&content(&source)[offset..offset + room]);
            Some((target.address().offset(offset as i64), room))
        });
        (done[7] + thrown == length as u64 && done[8] == 1).then_some(())
    });
    assert!(parts >= 3, "{parts} parts");
    assert!(content(&target) == expected, "bytes are where they should not be");
}

/// What is lent may be kept waiting: everything else goes on, and nothing is lost.
pub fn lent_payloads_wait_for_their_taker(make: &dyn Fn(u32) -> NetworkJob) {
    let job = make(2);
    let length = 300_000;
    let source = filled(length, 6);
    let target = Scratch::new(length);
    let then = Message { tag: tag(&*job[0], 8), words: [0; WORDS] };
    job[0].lend(1, tag(&*job[0], 2), 1, source.address(), length, then);
    let first = take_one(&*job[1], &mut |_| ());
    assert_eq!(first.tag, tag(&*job[0], 2));
    let mut done = [0; 10];
    for number in 1..=50 {
        assert!(job[1].post(0, tag(&*job[1], 4), &[]));
        until("a message", || {
            job[1].poll();
            take_lent(&*job[0], &mut done, &mut |_| None);
            (done[4] == number).then_some(())
        });
    }
    let part = first.words[LENGTH_WORD];
    let landed = Message { tag: tag(&*job[1], 7), words: [part, 0, 0, 0, 0, 0, 0] };
    if job[1].land(Bulk(first.words[BULK_WORD]), target.address(), part as usize, landed) {
        done[7] += part;
    }
    until("all of it", || {
        take_lent(&*job[0], &mut done, &mut |_| None);
        take_lent(&*job[1], &mut done, &mut |message| {
            let [offset, part] = [1, LENGTH_WORD].map(|index| message.words[index] as usize);
            Some((target.address().offset(offset as i64), part))
        });
        (done[7] == length as u64 && done[8] == 1).then_some(())
    });
    assert!(content(&target) == content(&source), "other bytes than were lent");
}

/// A refused message is offered again, before what follows it.
pub fn what_is_refused_stays(make: &dyn Fn(u32) -> NetworkJob) {
    let job = make(2);
    for number in 0..3 {
        assert!(job[0].post(1, tag(&*job[0], 1), &[number]));
    }
    let mut offered = Vec::new();
    until("all of them", || {
        job[0].poll();
        job[1].poll();
        job[1].take(10, &mut |message| {
            offered.push(message.words[0]);
            offered.iter().filter(|number| **number == message.words[0]).count() == 2
        });
        (offered.len() == 6).then_some(())
    });
    assert_eq!(offered, [0, 0, 1, 1, 2, 2]);
}
