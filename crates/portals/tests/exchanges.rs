//! When a long message is copied whole before its target hears of it, and that it then arrives.

mod support;

use parnass_base::Scratch;
use parnass_portals::*;
use support::interfaces;

const LONG: usize = 128 << 10;

fn entry(source: u32, memory: &Scratch, length: usize) -> MatchEntry {
    MatchEntry {
        source: Some(ProcessId(source)),
        match_bits: 1,
        ignore_bits: 0,
        memory: memory.address().into(),
        length,
        user: 7,
    }
}

fn put(target: u32, memory: &Scratch, length: usize, protocol: Protocol) -> Put {
    Put {
        target: ProcessId(target),
        match_bits: 1,
        header_data: 0,
        source: memory.address().into(),
        length,
        protocol,
        blocking: false,
        ack: Ack::None,
        user: 8,
    }
}

fn exchanges(nic: &Interface, target: u32, memory: &Scratch, length: usize, otherwise: Protocol) -> bool {
    nic.exchanges(ProcessId(target), memory.address().into(), length, otherwise, false)
}

/// Sends a message, has it received, and takes in what there is at both ends.
fn deliver(from: &Interface, to: &Interface, memory: &Scratch, length: usize) {
    let posted = to.append(List::Priority, &entry(from.me().0, memory, length)).unwrap();
    assert!(matches!(posted, Appended::Posted(_)));
    assert_eq!(from.put(&put(to.me().0, memory, length, Protocol::Buffered)), Ok(PutOutcome::Done));
    let mut came = false;
    while !came {
        to.progress(&mut |event: Event| came |= event.kind == EventKind::Put);
    }
}

#[test]
fn who_has_not_had_a_long_message_or_awaits_none_does_not_exchange() {
    let nics = interfaces(2);
    let (nic, memory) = (&nics[0], Scratch::new(LONG));
    // Where ranks share processors of Intel's the kernel copies what is longer than 64 KiB.
    let copies_long = nic.spins() != 0 || !copies_once(2);
    let is_exchange = |length, otherwise| exchanges(nic, 1, &memory, length, otherwise);
    deliver(&nics[1], nic, &memory, 2048);
    let awaited = nic.append(List::Priority, &entry(1, &memory, LONG)).unwrap();
    assert!(!is_exchange(8192, Protocol::Buffered), "nothing long has come");
    let Appended::Posted(awaited) = awaited else { panic!("nothing was sent: {awaited:?}") };
    assert!(nic.unlink(awaited, 7));

    deliver(&nics[1], nic, &memory, 8192);
    assert!(!is_exchange(8192, Protocol::Buffered), "nothing is awaited");
    let goes_on = nic.exchanges(ProcessId(1), memory.address().into(), 8192, Protocol::Buffered, true);
    assert!(goes_on, "something may be awaited soon");
    nic.append(List::Priority, &entry(1, &memory, LONG)).unwrap();
    assert!(is_exchange(8192, Protocol::Buffered));
    assert_eq!(is_exchange(LONG, Protocol::Direct), copies_long);
    assert!(!is_exchange(2048, Protocol::Buffered), "goes through the mailbox");
    assert!(!is_exchange((2 << 20) + 1, Protocol::Direct), "longer than any piece");

    let more = (0..1000).take_while(|_| is_exchange(8192, Protocol::Buffered)).count();
    assert!((10..100).contains(&more), "{more} messages, and nothing comes back");
}

#[test]
fn who_answers_is_not_exchanged_with() {
    let nics = interfaces(2);
    let (nic, memory) = (&nics[0], Scratch::new(LONG));
    let asks_while_it_awaits = || {
        let awaited = nic.append(List::Priority, &entry(1, &memory, LONG)).unwrap();
        let is_exchange = exchanges(nic, 1, &memory, LONG, Protocol::Buffered);
        let Appended::Posted(awaited) = awaited else { panic!("nothing was sent: {awaited:?}") };
        assert!(nic.unlink(awaited, 7));
        is_exchange
    };
    for _ in 0..3 {
        asks_while_it_awaits();
        deliver(nic, &nics[1], &memory, 8192);
        deliver(&nics[1], nic, &memory, 8192);
    }
    assert!(!asks_while_it_awaits(), "its messages came when it had taken in those that it was sent");
    // What it sends before it has taken in what it was sent is no answer.
    let unread = Scratch::new(8192);
    assert_eq!(nic.put(&put(1, &unread, 8192, Protocol::Buffered)), Ok(PutOutcome::Done));
    deliver(&nics[1], nic, &memory, 8192);
    assert!(asks_while_it_awaits());
}

/// Of what does not go at once nothing is left, and what went before comes in its order.
#[test]
fn the_short_way_of_an_exchange_does_all_or_nothing() {
    let nics = interfaces(2);
    let (nic, memory) = (&nics[0], Scratch::new(LONG));
    let mut sent = 0_u64;
    let sends = |number: u64| {
        memory.address().write_word(number);
        let put = Put { header_data: number, ..put(1, &memory, LONG, Protocol::Exchanged) };
        nic.put_exchanged(&put)
    };
    while sends(sent) {
        sent += 1;
        assert!(sent < 1 << 20, "there is no end to the mailbox and to the pieces");
    }
    assert!(sent > 4, "{sent} messages");
    assert!(!sends(sent));
    let target = Scratch::new(LONG);
    for number in 0..=sent {
        if number == sent {
            assert!(sends(number), "there is room again");
        }
        let mut came = matches!(
            nics[1].append(List::Priority, &entry(0, &target, LONG)).unwrap(),
            Appended::Complete(event) if event.header_data == number
        );
        while !came {
            nics[1].progress(&mut |event: Event| {
                came |= event.kind == EventKind::Put && event.header_data == number
            });
        }
        assert_eq!(target.address().read_word(), number);
    }
}

#[test]
fn what_is_exchanged_leaves_its_buffer_at_once_and_takes_bounded_memory() {
    let nics = interfaces(2);
    let (nic, memory) = (&nics[0], Scratch::new(LONG));
    deliver(&nics[1], nic, &memory, 8192);
    nic.append(List::Priority, &entry(1, &memory, 0)).unwrap();
    let mut sent = 0_u8;
    while exchanges(nic, 1, &memory, LONG, Protocol::Direct) {
        memory.address().write(&[sent; LONG]);
        assert_eq!(nic.put(&put(1, &memory, LONG, Protocol::Exchanged)), Ok(PutOutcome::Done));
        sent += 1;
    }
    if nic.spins() != 0 {
        assert!((8..=32).contains(&sent), "{sent} messages that nobody has received");
    }
    let target = Scratch::new(LONG);
    for number in 0..sent {
        target.address().write(&[!number; LONG]);
        let mut is_there = matches!(
            nics[1].append(List::Priority, &entry(0, &target, LONG)).unwrap(),
            Appended::Complete(event) if event.placed_length == LONG as u64
        );
        while !is_there {
            nics[1].progress(&mut |event: Event| {
                is_there |= event.kind == EventKind::Put && event.placed_length == LONG as u64;
            });
        }
        let mut bytes = vec![0; LONG];
        target.address().read(&mut bytes);
        assert!(bytes.iter().all(|byte| *byte == number), "message {number}");
    }
}
