//! Libfabric does what every network must do, over its providers for TCP and for shared memory.

use parnass_transport::Network;
use parnass_transport::conformance::{NetworkJob, check_network};
use parnass_transport_ofi::{Listener, Reads, Selection, Tuning};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A maker of jobs over a provider; `None`, and the reason said, where it is not here.
fn maker(provider: &'static str, reads: Reads, encrypt: bool) -> Option<impl Fn(u32) -> NetworkJob> {
    maker_of(provider, move |_| reads, encrypt)
}

/// As [`maker`]; `reads` is asked for each rank.
fn maker_of(
    provider: &'static str,
    reads: impl Fn(u32) -> Reads,
    encrypt: bool,
) -> Option<impl Fn(u32) -> NetworkJob> {
    let selection = Selection::parse("lo").unwrap();
    let open = move |rank| Listener::new("here", Some(provider), &selection, reads(rank));
    if let Err(reason) = open(0) {
        eprintln!("skip: {reason}");
        return None;
    }
    Some(move |size: u32| {
        let listeners: Vec<Listener> = (0..size).map(|rank| open(rank).unwrap()).collect();
        let contacts: Vec<Vec<u8>> = listeners.iter().map(Listener::contact).collect();
        (0..)
            .zip(listeners)
            .map(|(rank, listener)| {
                let lost = Box::new(|loss| panic!("{loss}"));
                let tuning = Tuning { encrypt };
                let network =
                    listener.join(rank, &[7; 32], &contacts, Box::new(|| false), lost, tuning).unwrap();
                Arc::new(network) as Arc<dyn parnass_transport::Network>
            })
            .collect()
    })
}

#[test]
fn conforms_over_tcp() {
    if let Some(make) = maker("tcp", Reads::Never, false) {
        check_network(&make);
    }
}

#[test]
fn conforms_over_tcp_where_memory_is_read() {
    if let Some(make) = maker("tcp", Reads::Always, false) {
        check_network(&make);
    }
}

#[test]
fn conforms_where_only_some_read_memory() {
    let readers = |rank: u32| if rank.is_multiple_of(2) { Reads::Always } else { Reads::Never };
    if let Some(make) = maker_of("tcp", readers, false) {
        check_network(&make);
    }
}

#[test]
fn conforms_where_it_is_encrypted() {
    if let Some(make) = maker("tcp", Reads::Always, true) {
        check_network(&make);
    }
}

#[test]
fn conforms_over_shared_memory() {
    if let Some(make) = maker("shm", Reads::Never, false) {
        check_network(&make);
    }
}

#[test]
fn conforms_over_shared_memory_where_it_is_encrypted() {
    if let Some(make) = maker("shm", Reads::Never, true) {
        check_network(&make);
    }
}

#[test]
fn sleepers_are_connected_to_and_woken() {
    wakes_sleepers("tcp");
    wakes_sleepers("shm");
}

/// A rank that sleeps, and looks at nothing by itself, is connected to and woken, and so is one that has been asleep for a while.
fn wakes_sleepers(provider: &str) {
    let selection = Selection::parse("lo").unwrap();
    let open = || Listener::new("here", Some(provider), &selection, Reads::Auto);
    let (first, second) = match (open(), open()) {
        (Ok(first), Ok(second)) => (first, second),
        (Err(reason), _) | (_, Err(reason)) => {
            eprintln!("skip: {reason}");
            return;
        }
    };
    let contacts = [first.contact(), second.contact()];
    let (wake, woken) = std::sync::mpsc::channel();
    let lost = || Box::new(|loss| panic!("{loss}"));
    let tuning = Tuning { encrypt: false };
    let awake = first.join(0, &[7; 32], &contacts, Box::new(|| false), lost(), tuning).unwrap();
    let waker = Box::new(move || {
        // Nobody listens any more: the test is over.
        let _ = wake.send(());
        false
    });
    let asleep = second.join(1, &[7; 32], &contacts, waker, lost(), tuning).unwrap();
    for number in 0..3 {
        asleep.arm();
        while asleep.look() {
            asleep.take(10, &mut |_| true);
        }
        std::thread::sleep(Duration::from_millis(300));
        while woken.try_recv().is_ok() {}
        assert!(awake.post(1, 0, &[number]));
        let start = Instant::now();
        while woken.try_recv().is_err() {
            awake.poll();
            assert!(start.elapsed() < Duration::from_secs(15), "message {number} wakes nobody");
            std::thread::yield_now();
        }
        eprintln!("message {number} woke after {:?}", start.elapsed());
        let mut taken = Vec::new();
        while taken.is_empty() {
            asleep.look();
            asleep.take(10, &mut |message| {
                taken.push(message.words[0]);
                true
            });
        }
        assert_eq!(taken, [number]);
    }
}
