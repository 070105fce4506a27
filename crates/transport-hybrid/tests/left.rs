//! What one thread of a process has read from a network, and leaves, while another one sleeps: nobody else tells of it.

use parnass_base::UserAddress;
use parnass_base::atomics::{AtomicBool, Ordering};
use parnass_base::lane::Message;
use parnass_base::process::processors;
use parnass_portals::{Company, Interface, Wheel};
use parnass_transport::{Bulk, Network, Prospect, Transport};
use parnass_transport_hybrid::{Duty, Hybrid};
use parnass_transport_shm::{JobMemory, SharedMemory};
use std::sync::{Arc, OnceLock};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// A network that has something for who looks when the sleeper sleeps.
struct LateNews {
    near: Arc<SharedMemory>,
    sleeper: OnceLock<ThreadId>,
    others_look: AtomicBool,
    read: AtomicBool,
    size: u32,
}

impl Network for LateNews {
    fn me(&self) -> u32 {
        0
    }
    fn size(&self) -> u32 {
        self.size
    }
    fn stream_bytes(&self) -> usize {
        0
    }
    fn post(&self, _: u32, _: u32, _: &[u64]) -> bool {
        unreachable!("nothing is sent")
    }
    fn stream(&self, _: u32, _: u32, _: &[u64], _: UserAddress, _: usize) -> bool {
        unreachable!("nothing is sent")
    }
    fn lend(&self, _: u32, _: u32, _: u64, _: UserAddress, _: usize, _: Message) {
        unreachable!("nothing is sent")
    }
    fn poll(&self) -> bool {
        if self.sleeper.get().is_some_and(|sleeper| *sleeper != std::thread::current().id()) {
            self.others_look.store(true, Ordering::SeqCst);
            while !self.near.sleeps(0) {
                std::thread::yield_now();
            }
            self.read.store(true, Ordering::SeqCst);
        }
        self.holds()
    }
    fn look(&self) -> bool {
        self.poll()
    }
    /// There is always more.
    fn take(&self, _: usize, _: &mut dyn FnMut(&Message) -> bool) -> usize {
        usize::from(self.holds())
    }
    fn land(&self, _: Bulk, _: UserAddress, _: usize, _: Message) -> bool {
        unreachable!("nothing has come")
    }
    fn is_whole(&self, _: Bulk) -> bool {
        unreachable!("nothing has come")
    }
    fn discard(&self, _: Bulk) {}
    /// What has been read is told by nobody else.
    fn arm(&self) {}
    fn arm_lightly(&self, _: Prospect) {}
    fn holds(&self) -> bool {
        self.read.load(Ordering::SeqCst)
    }
    fn more_follows(&self, _: u32) {}
    fn give_up(&self, _: u32) {}
    fn close(&self) {}
}

/// Others may send requests; there is none.
struct Idle;

impl Wheel for Idle {
    fn turn(&self) -> bool {
        false
    }
    fn is_due(&self) -> bool {
        false
    }
}

/// A process that has fewer processors than its node has ranks: who waits sleeps soon, and the helper takes the time of its process.
fn make() -> (Interface, Arc<LateNews>) {
    let ranks = processors() as u32 + 1;
    let file = JobMemory::create(ranks).unwrap();
    let near = Arc::new(SharedMemory::attach(JobMemory::open(file).unwrap(), 0).unwrap());
    let network = Arc::new(LateNews {
        near: near.clone(),
        sleeper: OnceLock::new(),
        others_look: AtomicBool::new(false),
        read: AtomicBool::new(false),
        size: ranks + 1,
    });
    let nodes: Vec<u32> = (0..ranks).map(|_| 0).chain([1]).collect();
    let hybrid = Hybrid::new(near, network.clone(), &nodes, Duty::default());
    (Interface::new(Box::new(hybrid)).unwrap(), network)
}

/// Sleeps until it is woken.
fn sleep(interface: &Interface) {
    let (began, limit) = (Instant::now(), Duration::from_secs(20));
    interface.wait(interface.ticket(), None, Some(began + limit), Company::Others);
    assert!(began.elapsed() < limit, "nobody woke it");
}

/// Has `other` done while a thread waits, which is to be woken.
fn beside_sleeper(other: impl FnOnce(&Interface)) {
    let (interface, network) = make();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            network.sleeper.set(std::thread::current().id()).unwrap();
            sleep(&interface);
        });
        network.sleeper.wait();
        other(&interface);
    });
}

#[test]
fn who_fell_asleep_while_the_helper_looked_is_woken() {
    let (interface, network) = make();
    network.sleeper.set(std::thread::current().id()).unwrap();
    interface.set_wheel(Some(Arc::new(Idle)));
    // It has found this process computing.
    while !network.others_look.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    sleep(&interface);
    interface.leave();
    interface.set_wheel(None);
}

#[test]
fn who_sleeps_is_woken_for_what_another_thread_has_not_taken() {
    beside_sleeper(|interface| while !interface.progress(&mut |_| ()) {});
}

#[test]
fn who_sleeps_is_woken_where_another_thread_leaves_with_what_it_has_met() {
    beside_sleeper(|interface| {
        interface.will_wait(None);
        while !interface.has_work() {}
        interface.leave();
    });
}
