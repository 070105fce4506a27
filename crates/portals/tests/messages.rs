//! Messages between interfaces over one memory, in threads.

use parnass_base::Scratch;
use parnass_base::process::{allowed_processors, bind_to};
use parnass_counters::{DIRECT_PIPED, HELPER_WAKEUPS, Home, SLEEPS, UNEXPECTED_MESSAGES};
use parnass_portals::*;
use parnass_transport_shm::{JobMemory, SharedMemory, Tuning};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn interfaces(size: u32) -> Vec<Arc<Interface>> {
    interfaces_with(size, true)
}

fn interfaces_with(size: u32, cross_memory: bool) -> Vec<Arc<Interface>> {
    interfaces_tuned(size, cross_memory, parnass_portals::Tuning::default())
}

/// Those whose helpers move everything.
fn interfaces_with_helpers(size: u32, cross_memory: bool) -> Vec<Arc<Interface>> {
    let tuning = parnass_portals::Tuning { helper_always: true, ..Default::default() };
    interfaces_tuned(size, cross_memory, tuning)
}

/// Those that have no processor to spare for their helpers.
fn crowded_interfaces(cross_memory: bool) -> Vec<Arc<Interface>> {
    let mut processors = allowed_processors();
    processors.truncate(2);
    bind_to(&processors).unwrap();
    interfaces_with(2, cross_memory)
}

fn interfaces_tuned(size: u32, cross_memory: bool, tuning: parnass_portals::Tuning) -> Vec<Arc<Interface>> {
    let file = JobMemory::create(size).unwrap();
    (0..size)
        .map(|rank| {
            let memory = JobMemory::open(file.try_clone().unwrap()).unwrap();
            let transport =
                SharedMemory::attach_with(memory, rank, Tuning { direct: cross_memory, ..Tuning::default() })
                    .unwrap();
            Arc::new(Interface::with(Box::new(transport), tuning).unwrap())
        })
        .collect()
}

fn pattern(length: usize, seed: u8) -> Scratch {
    let scratch = Scratch::new(length);
    let bytes: Vec<u8> =
        (0..length).map(|index| (index as u8).wrapping_mul(31) ^ (index >> 8) as u8 ^ seed).collect();
    scratch.address().write(&bytes);
    scratch
}

fn content(scratch: &Scratch, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    scratch.address().read(&mut bytes);
    bytes
}

fn put(target: u32, match_bits: u64, source: &Scratch, length: usize, protocol: Protocol, ack: Ack) -> Put {
    Put {
        target: ProcessId(target),
        match_bits,
        header_data: match_bits + 1,
        source: source.address().into(),
        length,
        protocol,
        blocking: false,
        ack,
        user: 1_000 + match_bits,
    }
}

fn entry(
    source: Option<u32>,
    match_bits: u64,
    ignore_bits: u64,
    memory: &Scratch,
    length: usize,
) -> MatchEntry {
    MatchEntry {
        source: source.map(ProcessId),
        match_bits,
        ignore_bits,
        memory: memory.address().into(),
        length,
        user: match_bits,
    }
}

fn wait_for(interface: &Interface, mut found: impl FnMut(&Event) -> bool) -> Event {
    loop {
        let ticket = interface.ticket();
        let mut hit = None;
        interface.progress(&mut |event: Event| {
            if found(&event) {
                hit = Some(event);
            }
        });
        if let Some(event) = hit {
            return event;
        }
        interface.wait(ticket, None, None, Company::None);
    }
}

/// Waits for `count` events.
fn collect(interface: &Interface, mut count: usize, mut check: impl FnMut(&Event)) {
    while count > 0 {
        let ticket = interface.ticket();
        interface.progress(&mut |event: Event| {
            check(&event);
            count -= 1;
        });
        if count > 0 {
            interface.wait(ticket, None, None, Company::None);
        }
    }
}

const LENGTHS: [usize; 15] = [0, 1, 7, 8, 32, 33, 40, 41, 96, 97, 1_000, 4_096, 65_536, 65_537, 1_000_003];

/// Messages of several slots that nobody expects: the receiver keeps some of them, then their sender does; what was sent
/// last can be received first, and all of it arrives.
#[test]
fn a_flood_does_not_shut_the_mailbox() {
    const COUNT: u64 = 6_000;
    const LENGTH: usize = 4_000;
    let nics = interfaces(2);
    let (sender, receiver) = (&nics[0], &nics[1]);
    let (source, target) = (pattern(LENGTH, 1), Scratch::new(LENGTH));
    for _ in 0..2 {
        for number in 0..COUNT {
            source.address().write(&number.to_ne_bytes());
            let outcome = sender.put(&put(1, number, &source, LENGTH, Protocol::Buffered, Ack::None));
            assert_eq!(outcome, Ok(PutOutcome::Done));
            receiver.progress(&mut |event: Event| panic!("nothing is posted: {event:?}"));
        }
        for number in std::iter::once(COUNT - 1).chain(0..COUNT - 1) {
            let appended =
                receiver.append(List::Priority, &entry(Some(0), number, 0, &target, LENGTH)).unwrap();
            assert!(matches!(appended, Appended::Complete(event) if event.placed_length == LENGTH as u64));
            source.address().write(&number.to_ne_bytes());
            assert_eq!(content(&target, LENGTH), content(&source, LENGTH));
        }
    }
}

#[test]
fn every_length_arrives_posted_and_unexpected() {
    every_length(true);
}

#[test]
fn every_length_arrives_where_memory_cannot_be_reached() {
    every_length(false);
}

fn every_length(cross_memory: bool) {
    for protocol in [Protocol::Buffered, Protocol::Exchanged, Protocol::Direct] {
        for ack in [Ack::None, Ack::Matched] {
            for length in LENGTHS {
                for posted_first in [true, false] {
                    let nics = interfaces_with(2, cross_memory);
                    let source = pattern(length, 5);
                    let target = Scratch::new(length);
                    let (sender, receiver) = (&nics[0], &nics[1]);
                    let append =
                        || receiver.append(List::Priority, &entry(Some(0), 9, 0, &target, length)).unwrap();
                    if posted_first {
                        assert!(matches!(append(), Appended::Posted(_)));
                    }
                    let outcome = sender.put(&put(1, 9, &source, length, protocol, ack)).unwrap();
                    let mut event = None;
                    if !posted_first {
                        receiver.progress(&mut |_| panic!("nothing is posted"));
                        if let Appended::Complete(complete) = append() {
                            event = Some(complete);
                        }
                    }
                    let event = event.unwrap_or_else(|| wait_for(receiver, |_| true));
                    assert_eq!(event.kind, EventKind::Put);
                    assert_eq!((event.user, event.match_bits, event.header_data), (9, 9, 10));
                    assert_eq!((event.requested_length, event.placed_length), (length as u64, length as u64));
                    assert_eq!(event.initiator, ProcessId(0));
                    assert_eq!(content(&target, length), content(&source, length));
                    let mut expected = vec![];
                    if ack == Ack::Matched {
                        expected.push(EventKind::Ack);
                    }
                    if outcome == PutOutcome::Pending {
                        expected.push(EventKind::Send);
                    }
                    collect(sender, expected.len(), |event| {
                        assert_eq!(event.user, 1_009);
                        let place =
                            expected.iter().position(|kind| *kind == event.kind).expect("an expected event");
                        expected.remove(place);
                    });
                    assert!(!sender.progress(&mut |_| ()));
                }
            }
        }
    }
}

#[test]
fn long_messages_are_truncated() {
    for protocol in [Protocol::Buffered, Protocol::Exchanged, Protocol::Direct] {
        let nics = interfaces(2);
        let source = pattern(1_000, 1);
        let target = Scratch::new(100);
        nics[0].put(&put(1, 1, &source, 1_000, protocol, Ack::None)).unwrap();
        nics[1].append(List::Priority, &entry(None, 1, 0, &target, 100)).unwrap();
        let event = wait_for(&nics[1], |_| true);
        assert_eq!((event.requested_length, event.placed_length), (1_000, 100));
        assert_eq!(content(&target, 100), content(&source, 100));
    }
}

#[test]
fn a_search_looks_and_takes() {
    let nics = interfaces(2);
    let source = pattern(64, 3);
    let target = Scratch::new(64);
    for bits in [5, 6] {
        nics[0].put(&put(1, bits, &source, 64, Protocol::Buffered, Ack::None)).unwrap();
    }
    let wild = entry(None, 0, u64::MAX, &target, 0);
    let seen = nics[1].search(SearchOperation::Look, &wild).unwrap();
    assert_eq!((seen.kind, seen.match_bits, seen.requested_length), (EventKind::Search, 5, 64));
    let exact = entry(Some(0), 6, 0, &target, 0);
    let taken = nics[1].search(SearchOperation::Take, &exact).unwrap();
    assert!(nics[1].search(SearchOperation::Look, &exact).is_none());
    let Appended::Complete(event) = nics[1].receive_taken(taken.taken, target.address().into(), 64, 77)
    else {
        panic!("buffered data is there")
    };
    assert_eq!((event.kind, event.user, event.placed_length), (EventKind::Put, 77, 64));
    assert_eq!(nics[1].search(SearchOperation::Take, &wild).unwrap().match_bits, 5);
}

#[test]
fn a_peer_that_drives_the_target_posts_what_was_kept_back() {
    let nics = interfaces(2);
    let (memory, source) = (Scratch::new(8), pattern(8, 3));
    let short = entry(Some(0), 4, 0, &memory, 8);
    assert!(matches!(nics[1].append(List::Priority, &short), Ok(Appended::Posted(_))));
    nics[0].put(&put(1, 4, &source, 8, Protocol::Buffered, Ack::Matched)).unwrap();
    // Who waits for the ack drives the target, which does nothing itself.
    let deadline = Instant::now() + Duration::from_millis(5);
    nics[0].wait(nics[0].ticket(), Some(ProcessId(1)), Some(deadline), Company::None);
    assert_eq!(content(&memory, 8), content(&source, 8));
    let mut events = Vec::new();
    nics[1].progress(&mut |event: Event| events.push((event.kind, event.user, event.placed_length)));
    assert_eq!(events, [(EventKind::Put, short.user, 8)]);
    let mut acks = Vec::new();
    nics[0].progress(&mut |event: Event| acks.push(event.kind));
    assert!(acks.contains(&EventKind::Ack), "{acks:?}");
}

#[test]
fn whoever_is_about_to_sleep_has_posted_all() {
    let nics = interfaces(2);
    let (memory, source) = (Scratch::new(8), pattern(8, 5));
    for bits in [4, 5] {
        nics[1].append(List::Priority, &entry(None, bits, 0, &memory, 8)).unwrap();
    }
    let deadline = Instant::now() + Duration::from_millis(5);
    nics[1].wait(nics[1].ticket(), None, Some(deadline), Company::None);
    assert_eq!(nics[1].queues(0, 0), (0, 2));
    // An entry that is kept back after those is younger than they are.
    nics[1].append(List::Priority, &entry(None, 5, 0, &memory, 8)).unwrap();
    nics[0].put(&put(1, 5, &source, 8, Protocol::Buffered, Ack::None)).unwrap();
    let mut events = 0;
    nics[1].progress(&mut |_| events += 1);
    assert_eq!((events, nics[1].queues(5, u64::MAX)), (1, (0, 1)));
}

#[test]
fn an_unlinked_entry_matches_nothing() {
    let nics = interfaces(1);
    let memory = Scratch::new(8);
    let Appended::Posted(handle) = nics[0].append(List::Priority, &entry(None, 4, 0, &memory, 8)).unwrap()
    else {
        panic!("nothing can have matched")
    };
    let user = entry(None, 4, 0, &memory, 8).user;
    assert!(nics[0].unlink(handle, user));
    assert!(!nics[0].unlink(handle, user));
    nics[0].put(&put(0, 4, &memory, 8, Protocol::Buffered, Ack::None)).unwrap();
    nics[0].progress(&mut |event: Event| panic!("{event:?}"));
    assert!(nics[0].search(SearchOperation::Look, &entry(None, 4, 0, &memory, 8)).is_some());
}

#[test]
fn a_flood_waits_in_order_and_drains() {
    const COUNT: u64 = 20_000;
    let nics = interfaces(2);
    let receiver = nics[1].clone();
    let thread = std::thread::spawn(move || {
        let memory = Scratch::new(8);
        for bits in (0..COUNT).rev() {
            if let Appended::Posted(_) =
                receiver.append(List::Priority, &entry(Some(0), bits, 0, &memory, 8)).unwrap()
            {
                wait_for(&receiver, |event| event.user == bits);
            }
            assert_eq!(content(&memory, 8), bits.to_ne_bytes());
        }
    });
    let sources: Vec<Scratch> = (0..COUNT)
        .map(|bits| {
            let scratch = Scratch::new(8);
            scratch.address().write(&bits.to_ne_bytes());
            scratch
        })
        .collect();
    let mut pending = 0;
    for bits in 0..COUNT {
        let put = put(1, bits, &sources[bits as usize], 8, Protocol::Buffered, Ack::None);
        if nics[0].put(&put).unwrap() == PutOutcome::Pending {
            pending += 1;
        }
    }
    collect(&nics[0], pending, |event| assert_eq!(event.kind, EventKind::Send));
    thread.join().unwrap();
}

/// What the target has to tell goes through the mailbox of the initiator, and where that is full another way.
#[test]
fn a_full_mailbox_keeps_no_notice_back() {
    const LENGTH: usize = 300_000;
    let nics = interfaces(2);
    let (source, target, short) = (pattern(LENGTH, 5), Scratch::new(LENGTH), pattern(8, 6));
    nics[0].put(&put(1, 9, &source, LENGTH, Protocol::Direct, Ack::Matched)).unwrap();
    let mut outcome = PutOutcome::Done;
    while outcome == PutOutcome::Done {
        outcome = nics[1].put(&put(0, 1, &short, 8, Protocol::Buffered, Ack::None)).unwrap();
    }
    nics[1].append(List::Priority, &entry(Some(0), 9, 0, &target, LENGTH)).unwrap();
    wait_for(&nics[1], |event| event.kind == EventKind::Put);
    assert_eq!(content(&target, LENGTH), content(&source, LENGTH));
    collect(&nics[0], 2, |event| assert_eq!((event.user, event.initiator), (1_009, ProcessId(1))));
}

/// The target posts an entry and then does nothing at all; the sender waits, and everything happens.
#[test]
fn a_waiting_sender_drives_the_target() {
    for (length, protocol) in
        [(1_000_003, Protocol::Direct), (8, Protocol::Buffered), (5_000, Protocol::Buffered)]
    {
        let nics = interfaces(2);
        let (source, target) = (pattern(length, 5), Scratch::new(length));
        nics[1].append(List::Priority, &entry(Some(0), 9, 0, &target, length)).unwrap();
        nics[0].put(&put(1, 9, &source, length, protocol, Ack::Matched)).unwrap();
        let events = if protocol == Protocol::Direct { 2 } else { 1 };
        collect(&nics[0], events, |event| assert_ne!(event.kind, EventKind::Failed));
        assert_eq!(content(&target, length), content(&source, length));
        let event = wait_for(&nics[1], |_| true);
        assert_eq!((event.kind, event.placed_length), (EventKind::Put, length as u64));
    }
}

/// Where nobody else can write into the memory of a process that computes, its helper places what comes, also what is short.
#[test]
fn a_helper_places_short_messages_where_memory_cannot_be_reached() {
    for length in [1, 8, 200, 5_000] {
        let nics = interfaces_with(2, false);
        let (source, target) = (pattern(length, 5), Scratch::new(length));
        nics[1].append(List::Priority, &entry(Some(0), 9, 0, &target, length)).unwrap();
        nics[0].put(&put(1, 9, &source, length, Protocol::Buffered, Ack::Matched)).unwrap();
        collect(&nics[0], 1, |event| assert_eq!(event.kind, EventKind::Ack));
        assert_eq!(content(&target, length), content(&source, length));
        assert_eq!(wait_for(&nics[1], |_| true).kind, EventKind::Put);
    }
}

/// The target waits when the sender falls asleep, and then computes without having looked: the sender looks again.
#[test]
fn a_sleeping_sender_drives_a_target_that_has_stopped_waiting() {
    let nics = interfaces(2);
    let target = Scratch::new(8);
    nics[1].append(List::Priority, &entry(Some(0), 9, 0, &target, 8)).unwrap();
    nics[1].will_wait(None);
    let sender = nics[0].clone();
    let thread = std::thread::spawn(move || {
        let source = pattern(8, 5);
        sender.put(&put(1, 9, &source, 8, Protocol::Buffered, Ack::Matched)).unwrap();
        collect(&sender, 1, |event| assert_eq!(event.kind, EventKind::Ack));
    });
    // Long enough for it to fall asleep; sooner, the test shows less.
    std::thread::sleep(Duration::from_millis(50));
    nics[1].leave();
    let patience = Instant::now() + Duration::from_secs(20);
    while !thread.is_finished() {
        assert!(Instant::now() < patience, "the sender sleeps on");
        std::thread::sleep(Duration::from_millis(1));
    }
    thread.join().unwrap();
    assert_eq!(content(&target, 8), content(&pattern(8, 5), 8));
}

/// A receive that comes later than its message is left to the sender as long as that waits. One that stops waiting leaves nothing undone.
#[test]
fn a_sender_that_stops_waiting_moves_what_was_received_late() {
    let nics = interfaces_with_helpers(2, true);
    let length = 700_001;
    let (source, target) = (pattern(length, 5), Scratch::new(length));
    nics[1].append(List::Priority, &entry(Some(0), 7, 0, &target, length)).unwrap();
    nics[0].put(&put(1, 9, &source, length, Protocol::Direct, Ack::None)).unwrap();
    nics[1].progress(&mut |event: Event| panic!("{event:?}"));
    nics[0].will_wait(None);
    // Both have a helper that sleeps now; if one does not sleep yet, the test shows less.
    std::thread::sleep(Duration::from_millis(20));
    let appended = nics[1].append(List::Priority, &entry(Some(0), 9, 0, &target, length)).unwrap();
    assert!(matches!(appended, Appended::Posted(_)));
    nics[0].leave();
    let patience = Instant::now() + Duration::from_secs(20);
    while content(&target, length) != content(&source, length) {
        assert!(Instant::now() < patience, "nobody moves it");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(wait_for(&nics[1], |_| true).kind, EventKind::Put);
    assert_eq!(wait_for(&nics[0], |_| true).kind, EventKind::Send);
}

/// A message that nobody expects is taken in by its sender, while the target does nothing: no event tells of it, but who
/// searched before and watches the arrivals sees it.
#[test]
fn what_a_sender_takes_in_for_the_target_can_be_watched() {
    let nics = interfaces(2);
    let source = pattern(100, 5);
    let sought = entry(Some(0), 9, 0, &source, 0);
    let before = nics[1].arrivals();
    assert!(nics[1].search(SearchOperation::Look, &sought).is_none());
    assert_eq!(nics[1].arrivals(), before);
    nics[0].put(&put(1, 9, &source, 100, Protocol::Direct, Ack::None)).unwrap();
    while nics[1].arrivals() == before {
        let ticket = nics[0].ticket();
        nics[0].progress(&mut |event: Event| panic!("nothing is received: {event:?}"));
        let soon = std::time::Instant::now() + std::time::Duration::from_millis(1);
        nics[0].wait(ticket, None, Some(soon), Company::None);
    }
    assert!(nics[1].search(SearchOperation::Look, &sought).is_some());
}

/// Nobody calls the interface after the start: the helper threads do it all.
#[test]
fn helpers_move_long_messages_while_both_sides_compute() {
    for cross_memory in [true, false] {
        for posted_first in [true, false] {
            let nics = interfaces_with_helpers(2, cross_memory);
            let length = 700_001;
            let (source, target) = (pattern(length, 5), Scratch::new(length));
            let append = || nics[1].append(List::Priority, &entry(Some(0), 9, 0, &target, length)).unwrap();
            if posted_first {
                append();
            }
            nics[0].put(&put(1, 9, &source, length, Protocol::Direct, Ack::None)).unwrap();
            if !posted_first {
                append();
            }
            while content(&target, length) != content(&source, length) {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            assert_eq!(wait_for(&nics[1], |_| true).kind, EventKind::Put);
            assert_eq!(wait_for(&nics[0], |_| true).kind, EventKind::Send);
        }
    }
}

/// Without a processor to spare a helper is woken neither while nobody waits nor for what a peer that waits does itself, and else does it.
#[test]
fn a_helper_that_takes_the_time_of_its_process_does_only_what_a_peer_waits_for() {
    for (cross_memory, waits) in [(true, 0), (true, 1), (false, 0), (false, 1)] {
        let nics = crowded_interfaces(cross_memory);
        let length = 700_001;
        let (source, target) = (pattern(length, 5), Scratch::new(length));
        nics[0].put(&put(1, 9, &source, length, Protocol::Direct, Ack::None)).unwrap();
        nics[1].progress(&mut |event: Event| panic!("{event:?} though nobody expects it"));
        let appended = nics[1].append(List::Priority, &entry(Some(0), 9, 0, &target, length)).unwrap();
        assert!(matches!(appended, Appended::Posted(_)));
        // Long enough for a helper; sooner, the test shows less.
        std::thread::sleep(Duration::from_millis(20));
        let woken = || nics.iter().map(|nic| nic.counters().read(Home::Any(HELPER_WAKEUPS))).sum::<u64>();
        assert!(woken() == 0 || !cross_memory, "nobody waits");
        let end = wait_for(&nics[waits], |_| true);
        assert_eq!(end.kind, [EventKind::Send, EventKind::Put][waits]);
        assert_eq!(woken() == 0, cross_memory, "who waits does it if it can");
        assert_eq!(content(&target, length), content(&source, length));
    }
}

/// A process that stops waiting in the middle of a message from a peer that waits, or to one, moves the rest with it before it computes.
#[test]
fn who_stops_waiting_finishes_its_pipes() {
    let nics = crowded_interfaces(true);
    if nics[0].spins() == 0 {
        return;
    }
    let woken = || nics.iter().map(|nic| nic.counters().read(Home::Any(HELPER_WAKEUPS))).sum::<u64>();
    let length = 3_000_000;
    let (source, target) = (pattern(length, 7), Scratch::new(length));
    for late in [0, 1] {
        let (other, leaver) = (&nics[1 - late], &nics[late]);
        // One in which the peer has lost its processor says nothing.
        let finishes = (0..50).any(|_| {
            let before = woken();
            nics[1].append(List::Priority, &entry(Some(0), 9, 0, &target, length)).unwrap();
            nics.iter().for_each(|nic| nic.will_wait(None));
            let put = put(1, 9, &source, length, Protocol::Direct, Ack::None);
            assert_eq!(nics[0].put(&put), Ok(PutOutcome::Pending), "more than a pipe holds");
            nics[1].progress(&mut |event| panic!("{event:?} so soon"));
            let started = AtomicBool::new(false);
            let peer = || {
                let mut ended = false;
                while !ended {
                    started.store(true, Ordering::Relaxed);
                    other.progress(&mut |_| ended = true);
                }
                other.leave();
            };
            std::thread::scope(|scope| {
                scope.spawn(peer);
                while !started.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                leaver.leave();
            });
            let mut ended = false;
            leaver.progress(&mut |_| ended = true);
            if !ended {
                wait_for(leaver, |_| true);
            }
            assert_eq!(content(&target, length), content(&source, length));
            ended && woken() == before
        });
        assert!(finishes, "whoever is left with a pipe leaves it to a helper");
    }
}

/// A long message meets its receive while its sender computes; then the sender comes to wait too, before anything is moved.
#[test]
fn a_message_that_has_met_its_receive_takes_a_pipe_when_both_wait() {
    let file = JobMemory::create(2).unwrap();
    let attach = |rank| {
        let memory = JobMemory::open(file.try_clone().unwrap()).unwrap();
        let transport = SharedMemory::attach(memory, rank).unwrap();
        let tuning = parnass_portals::Tuning { piped_most: u64::MAX, ..Default::default() };
        Interface::with(Box::new(transport), tuning).unwrap()
    };
    let nics = [attach(0), attach(1)];
    if nics[0].spins() == 0 {
        return;
    }
    let length = 200_000;
    let (source, target) = (pattern(length, 7), Scratch::new(length));
    nics[0].put(&put(1, 9, &source, length, Protocol::Direct, Ack::None)).unwrap();
    nics[1].will_wait(Some(ProcessId(0)));
    nics[1].progress(&mut |event| unreachable!("{event:?} though nobody expects it"));
    nics[1].append(List::Priority, &entry(Some(0), 9, 0, &target, length)).unwrap();
    nics[0].will_wait(Some(ProcessId(1)));
    let mut ended = [false; 2];
    while ended != [true; 2] {
        for (nic, ended) in nics.iter().zip(&mut ended) {
            nic.progress(&mut |_| *ended = true);
        }
    }
    nics.iter().for_each(Interface::leave);
    assert_eq!(content(&target, length), content(&source, length));
    assert_eq!(nics[0].counters().read(Home::Any(DIRECT_PIPED)), 1);
}

/// The sender of more than fits drives a target that computes until it has room.
#[test]
fn a_sender_without_room_makes_some() {
    let nics = interfaces(2);
    let source = pattern(8, 1);
    let mut pending = 0;
    for bits in 0..2_000 {
        let outcome = nics[0].put(&put(1, bits, &source, 8, Protocol::Buffered, Ack::None)).unwrap();
        pending += usize::from(outcome == PutOutcome::Pending);
    }
    assert!(pending > 0, "a mailbox without bound");
    collect(&nics[0], pending, |event| assert_eq!(event.kind, EventKind::Send));
    let target = Scratch::new(8);
    for bits in (0..2_000).rev() {
        if let Appended::Posted(_) =
            nics[1].append(List::Priority, &entry(Some(0), bits, 0, &target, 8)).unwrap()
        {
            wait_for(&nics[1], |event| event.user == bits);
        }
        assert_eq!(content(&target, 8), content(&source, 8));
    }
}

/// What one thread's send finds on its way may be what another thread sleeps for.
#[test]
fn events_that_a_send_leaves_behind_wake_the_thread_that_waits_for_them() {
    const LIMIT: Duration = Duration::from_secs(20);
    let nics = interfaces(2);
    let (sender, receiver) = (&nics[0], &nics[1]);
    if sender.spins() == 0 {
        // On one processor nobody looks for room: what is kept back is sent by whoever waits.
        return;
    }
    let source = pattern(8, 3);
    let message = put(1, 5, &source, 8, Protocol::Buffered, Ack::None);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let end = Instant::now() + LIMIT;
            loop {
                let (ticket, mut sent) = (sender.ticket(), false);
                sender.progress(&mut |event: Event| sent = event.kind == EventKind::Send);
                if sent || Instant::now() >= end {
                    return Instant::now() < end;
                }
                sender.wait(ticket, None, Some(end), Company::None);
            }
        });
        while sender.counters().read(Home::Any(SLEEPS)) == 0 {
            std::thread::yield_now();
        }
        // It sleeps, or is about to.
        std::thread::sleep(Duration::from_millis(50));
        while sender.put(&message) != Ok(PutOutcome::Pending) {}
        receiver.progress(&mut |event: Event| panic!("nothing is posted: {event:?}"));
        sender.put(&message).unwrap();
        assert!(waiter.join().unwrap(), "it slept on beside its event");
    });
}

/// Whoever has just received is about to post the next receive: what came behind is left in the mailbox for it, and kept at the next look if not.
#[test]
fn what_comes_behind_a_received_message_waits_for_the_next_receive() {
    const LENGTH: usize = 1_000;
    let nics = interfaces(2);
    let (sender, receiver) = (&nics[0], &nics[1]);
    let (source, target) = (pattern(LENGTH, 1), Scratch::new(LENGTH));
    let kept = || receiver.counters().read(Home::Locked(UNEXPECTED_MESSAGES));
    for posts_in_time in [true, false] {
        let before = kept();
        receiver.append(List::Priority, &entry(Some(0), 0, 0, &target, LENGTH)).unwrap();
        for bits in 0..2 {
            sender.put(&put(1, bits, &source, LENGTH, Protocol::Buffered, Ack::None)).unwrap();
        }
        let mut arrived = Vec::new();
        receiver.progress(&mut |event: Event| arrived.push(event.user));
        assert_eq!((&arrived[..], kept() - before), (&[0][..], 0));
        if !posts_in_time {
            receiver.progress(&mut |event: Event| panic!("nothing is posted: {event:?}"));
            assert_eq!(kept() - before, 1);
        }
        let appended = receiver.append(List::Priority, &entry(Some(0), 1, 0, &target, LENGTH)).unwrap();
        assert_eq!(matches!(appended, Appended::Posted(_)), posts_in_time);
        if posts_in_time {
            wait_for(receiver, |event| event.user == 1);
        }
        assert_eq!(content(&target, LENGTH), content(&source, LENGTH));
    }
}

/// More unexpected messages than a NIC keeps: the sender waits, and nothing is lost.
#[test]
fn unexpected_messages_are_bounded() {
    const COUNT: u64 = 620_000;
    let nics = interfaces(2);
    let source = pattern(8, 1);
    let mut pending = 0;
    for bits in 0..COUNT {
        let outcome = nics[0].put(&put(1, bits, &source, 8, Protocol::Buffered, Ack::None)).unwrap();
        if outcome == PutOutcome::Pending {
            pending += 1;
        }
        if bits % 200 == 0 {
            nics[1].progress(&mut |event: Event| panic!("{event:?}"));
        }
    }
    while nics[0].progress(&mut |_| pending -= 1) | nics[1].progress(&mut |event: Event| panic!("{event:?}"))
    {
    }
    assert!(pending > 10_000, "unexpected messages without bound");
    let target = Scratch::new(8);
    // An entry can be posted even so.
    assert!(nics[1].append(List::Priority, &entry(Some(0), COUNT, 0, &target, 8)).is_ok());
    for bits in 0..COUNT {
        if let Appended::Posted(_) =
            nics[1].append(List::Priority, &entry(Some(0), bits, 0, &target, 8)).unwrap()
        {
            let mut arrived = false;
            while !arrived {
                nics[1].progress(&mut |event: Event| arrived |= event.user == bits);
                nics[0].progress(&mut |_| pending -= 1);
            }
        }
        if bits % 100 == 0 {
            nics[1].progress(&mut |event: Event| panic!("{event:?}"));
            nics[0].progress(&mut |_| pending -= 1);
        }
    }
    // What a helper has sent it tells of when it has sent all that there was room for.
    collect(&nics[0], pending, |event| assert_eq!(event.kind, EventKind::Send));
}

#[test]
fn a_stranger_is_refused() {
    let nics = interfaces(1);
    let memory = Scratch::new(1);
    let refused = nics[0].put(&put(3, 0, &memory, 1, Protocol::Buffered, Ack::None));
    assert_eq!(refused, Err(PortalError::NoSuchProcess(3, 1)));
}

#[test]
fn threads_exchange_in_both_directions() {
    exchange(true);
}

#[test]
fn threads_exchange_where_memory_cannot_be_reached() {
    exchange(false);
}

fn exchange(cross_memory: bool) {
    let nics = interfaces_with(4, cross_memory);
    let threads: Vec<_> = (0..4u32)
        .map(|me| {
            let interface = nics[me as usize].clone();
            std::thread::spawn(move || {
                for round in 0..60u64 {
                    let length = LENGTHS[round as usize % LENGTHS.len()];
                    let source = pattern(length, me as u8 ^ round as u8);
                    let targets: Vec<Scratch> = (0..4).map(|_| Scratch::new(length)).collect();
                    let mut open = 0;
                    for peer in 0..4u32 {
                        let entry = MatchEntry {
                            user: u64::from(peer),
                            ..entry(Some(peer), round, 0, &targets[peer as usize], length)
                        };
                        if let Appended::Posted(_) = interface.append(List::Priority, &entry).unwrap() {
                            open += 1;
                        }
                    }
                    let protocol =
                        [Protocol::Direct, Protocol::Buffered, Protocol::Exchanged][round as usize % 3];
                    for peer in 0..4 {
                        let put = put(peer, round, &source, length, protocol, Ack::None);
                        if interface.put(&put).unwrap() == PutOutcome::Pending {
                            open += 1;
                        }
                    }
                    while open > 0 {
                        let ticket = interface.ticket();
                        interface.progress(&mut |event: Event| {
                            assert_ne!(event.kind, EventKind::Failed);
                            open -= 1;
                        });
                        if open > 0 {
                            interface.wait(ticket, None, None, Company::None);
                        }
                    }
                    for peer in 0..4u8 {
                        let expected = pattern(length, peer ^ round as u8);
                        assert_eq!(content(&targets[peer as usize], length), content(&expected, length));
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}
