//! Shared memory and TCP together do what every transport must do, however the ranks are spread over nodes.

use parnass_transport::conformance::{Job, check};
use parnass_transport::{Transport, Waiting};
use parnass_transport_hybrid::{Duty, Hybrid, waker};
use parnass_transport_shm::{JobMemory, SharedMemory};
use parnass_transport_tcp::{Listener, Selection, Tuning as TcpTuning};
use std::sync::Arc;

/// A job whose ranks are on these nodes.
fn make(nodes: &[u32]) -> Job {
    let count = |node: u32| nodes.iter().filter(|other| **other == node).count() as u32;
    let files: Vec<_> = (0..=*nodes.iter().max().unwrap())
        .map(|node| JobMemory::create(count(node).max(1)).unwrap())
        .collect();
    let listeners: Vec<_> =
        nodes.iter().map(|_| Listener::new("here", &Selection::default()).unwrap()).collect();
    let contacts: Vec<_> = listeners.iter().map(Listener::contact).collect();
    (0..)
        .zip(listeners)
        .map(|(rank, listener)| {
            let node = nodes[rank as usize];
            let place = nodes[..rank as usize].iter().filter(|other| **other == node).count() as u32;
            let memory = JobMemory::open(files[node as usize].try_clone().unwrap()).unwrap();
            let near = Arc::new(SharedMemory::attach(memory, place).unwrap());
            let lost = Box::new(|loss| panic!("{loss}"));
            let tuning = TcpTuning::default();
            let duty = Duty::default();
            let tcp = listener.join(rank, &[7; 32], &contacts, waker(&near, &duty), lost, tuning).unwrap();
            Arc::new(Hybrid::new(near, tcp, nodes, duty)) as Arc<dyn Transport>
        })
        .collect()
}

#[test]
fn conforms_on_one_node() {
    check(&|size| make(&vec![0; size as usize]));
}

#[test]
fn conforms_with_a_node_for_each_rank() {
    check(&|size| make(&(0..size).collect::<Vec<_>>()));
}

#[test]
fn conforms_with_ranks_dealt_out_to_nodes() {
    check(&|size| make(&(0..size).map(|rank| rank % 2).collect::<Vec<_>>()));
}

#[test]
fn what_was_refused_is_offered_at_the_next_look() {
    let job = make(&[0, 0, 1]);
    // Who waits for a rank of its node looks at the network only now and then.
    job[0].show(Waiting::For(1));
    assert!(job[2].post(0, 2, &[7]));
    let mut offered = 0;
    while offered == 0 {
        job[0].poll(0);
        job[0].take(0, 10, &mut |_| {
            offered += 1;
            false
        });
        std::thread::yield_now();
    }
    for _ in 0..3 {
        assert!(job[0].poll(0));
        assert_eq!(job[0].take(0, 10, &mut |_| false), 0);
    }
    assert_eq!(job[0].take(0, 10, &mut |message| message.words[0] == 7), 1);
}

#[test]
fn what_lies_behind_the_limit_of_one_taking_is_offered_at_the_next_look() {
    let job = make(&[0, 0, 1]);
    job[0].show(Waiting::For(1));
    // Together, so that one read brings them all.
    (0..3).for_each(|_| job[2].more_follows(0));
    assert!((0..3).all(|number| job[2].post(0, 2, &[number])));
    let mut taken = 0;
    let mut take = |limit| {
        job[0].take(0, limit, &mut |message| {
            assert_eq!(message.words[0], taken);
            taken += 1;
            true
        })
    };
    while take(1) == 0 {
        std::thread::yield_now();
    }
    assert_eq!((take(1), take(1)), (1, 1));
}
