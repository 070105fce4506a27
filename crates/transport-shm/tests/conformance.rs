//! The shared-memory transport does what every transport must do.

use parnass_transport::conformance::{Job, check};
use parnass_transport::{Transport, Waiting};
use parnass_transport_shm::{JobMemory, SharedMemory, Tuning};
use std::sync::Arc;

fn make(size: u32, cross_memory: bool) -> Job {
    let file = JobMemory::create(size).unwrap();
    (0..size)
        .map(|rank| {
            let memory = JobMemory::open(file.try_clone().unwrap()).unwrap();
            let transport =
                SharedMemory::attach_with(memory, rank, Tuning { direct: cross_memory, ..Tuning::default() })
                    .unwrap();
            Arc::new(transport) as Arc<dyn Transport>
        })
        .collect()
}

#[test]
fn conforms() {
    check(&|size| make(size, true));
}

#[test]
fn conforms_where_memory_of_peers_cannot_be_reached() {
    check(&|size| make(size, false));
}

#[test]
fn a_rank_is_given_once() {
    let file = JobMemory::create(2).unwrap();
    let memory = || JobMemory::open(file.try_clone().unwrap()).unwrap();
    let _first = SharedMemory::attach(memory(), 1).unwrap();
    assert!(SharedMemory::attach(memory(), 1).unwrap_err().to_string().contains("taken"));
    assert!(SharedMemory::attach(memory(), 2).is_err());
}

#[test]
fn tools_see_who_waits_for_whom() {
    let file = JobMemory::create(2).unwrap();
    let memory = || JobMemory::open(file.try_clone().unwrap()).unwrap();
    let tool = memory();
    assert_eq!(tool.observe(1), (0, Waiting::Not));
    let rank = SharedMemory::attach(memory(), 1).unwrap();
    rank.show(Waiting::For(0));
    assert_eq!(tool.observe(1), (std::process::id(), Waiting::For(0)));
}

#[test]
fn a_peer_that_comes_later_can_be_reached_then() {
    let file = JobMemory::create(2).unwrap();
    let attach = |rank| {
        let memory = JobMemory::open(file.try_clone().unwrap()).unwrap();
        SharedMemory::attach(memory, rank).unwrap()
    };
    let first = attach(0);
    assert!(!first.reaches(1));
    let _second = attach(1);
    assert!(first.reaches(1));
}
