//! A message that its sender has written in part, and then no further.

use parnass_base::{Scratch, UserAddress};
use parnass_portals::*;
use parnass_transport_shm::{JobMemory, SharedMemory, Tuning};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const LENGTH: usize = 6_000;

/// Memory whose bytes behind the first part cannot be read before that is let go on.
#[derive(Debug, Default)]
struct Stopping {
    stopped: AtomicBool,
    goes_on: AtomicBool,
}

impl Stopping {
    /// Waits until a part has been written, and no more is.
    fn await_stop(&self) {
        while !self.stopped.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    }
}

impl Descriptions for Stopping {
    fn with(&self, _: u32, work: &mut dyn FnMut(&dyn Stream)) {
        work(self);
    }
}

impl Stream for Stopping {
    fn gather(&self, skip: u64, target: UserAddress, length: usize) {
        if skip != 0 {
            self.stopped.store(true, Ordering::Release);
            while !self.goes_on.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        }
        target.write(&vec![1; length]);
    }

    fn scatter(&self, _: u64, _: UserAddress, _: usize) {}

    fn gather_bytes(&self, _: &mut [u8]) {}

    fn scatter_bytes(&self, _: &[u8]) {}
}

fn interfaces(size: u32) -> Vec<Interface> {
    let file = JobMemory::create(size).unwrap();
    let attach = |rank| {
        let memory = JobMemory::open(file.try_clone().unwrap()).unwrap();
        // Only who has a core writes in parts.
        let tuning = Tuning { yields: 0, ..Tuning::default() };
        Interface::new(Box::new(SharedMemory::attach_with(memory, rank, tuning).unwrap())).unwrap()
    };
    (0..size).map(attach).collect()
}

fn put(memory: Memory, length: usize, ack: Ack) -> Put {
    Put {
        target: ProcessId(0),
        match_bits: 7,
        header_data: 0,
        source: memory,
        length,
        protocol: Protocol::Buffered,
        blocking: false,
        ack,
        user: 0,
    }
}

/// A receive for what anybody sends.
fn from_anybody(target: &Scratch) -> MatchEntry {
    MatchEntry {
        source: None,
        match_bits: 7,
        ignore_bits: 0,
        memory: target.address().into(),
        length: LENGTH,
        user: 5,
    }
}

/// Who drives the NIC of another puts no part of a message there, and may not have heard of a death yet: it keeps no receive for the dead.
#[test]
fn a_receive_is_kept_for_nobody_whose_death_its_process_knows() {
    let nics = interfaces(3);
    let [receiver, sender, other] = &nics[..] else { unreachable!() };
    let stopping = Arc::new(Stopping::default());
    sender.set_descriptions(stopping.clone());
    let (target, source) = (Scratch::new(LENGTH), Scratch::new(8));
    let entry = from_anybody(&target);
    assert!(matches!(receiver.append(List::Priority, &entry), Ok(Appended::Posted(_))));
    std::thread::scope(|scope| {
        scope.spawn(|| sender.put(&put(Memory::described(1), LENGTH, Ack::None)).unwrap());
        stopping.await_stop();
        receiver.fail(sender.me());
        let sent = other.put(&put(source.address().into(), 8, Ack::Matched));
        // It drives the receiver's NIC, which finds both messages there.
        let mut acknowledged = false;
        for _ in 0..3 {
            let ticket = other.ticket();
            let soon = std::time::Instant::now() + std::time::Duration::from_millis(10);
            other.wait(ticket, None, Some(soon), Company::None);
            other.progress(&mut |event: Event| acknowledged |= event.kind == EventKind::Ack);
        }
        let mut came = Vec::new();
        receiver.progress(&mut |event: Event| came.push((event.user, event.initiator, event.placed_length)));
        stopping.goes_on.store(true, Ordering::Release);
        assert!(sent.is_ok() && acknowledged);
        assert_eq!(came, [(5, other.me(), 8)]);
    });
}

/// A receive that was never posted has got a part, and is posted for the rest: what another process sends meanwhile waits for the next one.
#[test]
fn a_receive_from_anybody_that_has_got_a_part_gets_the_rest() {
    let nics = interfaces(3);
    // What comes from the other one is looked at first.
    let [receiver, other, sender] = &nics[..] else { unreachable!() };
    let stopping = Arc::new(Stopping::default());
    sender.set_descriptions(stopping.clone());
    let (target, source) = (Scratch::new(LENGTH), Scratch::new(8));
    let entry = from_anybody(&target);
    let mut came = Vec::new();
    let mut look = || {
        receiver.progress(&mut |event: Event| came.push((event.user, event.initiator, event.placed_length)));
        came.clone()
    };
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| sender.put(&put(Memory::described(1), LENGTH, Ack::None)).unwrap());
        stopping.await_stop();
        assert!(receiver.receive_soon(&entry, |_| false, || true), "not all of it is there");
        assert_eq!(target.address().read_word(), u64::from_ne_bytes([1; 8]), "its first part is");
        other.put(&put(source.address().into(), 8, Ack::None)).unwrap();
        assert!(matches!(receiver.append(List::Priority, &entry), Ok(Appended::Posted(_))));
        let before = look();
        stopping.goes_on.store(true, Ordering::Release);
        sending.join().unwrap();
        assert_eq!(before, []);
    });
    assert_eq!(look(), [(5, sender.me(), LENGTH as u64)]);
    let next = receiver.append(List::Priority, &entry).unwrap();
    assert!(matches!(next, Appended::Complete(event) if event.initiator == other.me()));
}
