//! The helper thread of a process whose ranks share processors, beside a network.

use parnass_base::UserAddress;
use parnass_base::atomics::{AtomicBool, Ordering};
use parnass_base::lane::Message;
use parnass_base::process::processors;
use parnass_portals::{Company, Interface, Wheel};
use parnass_transport::{Bulk, Network, Prospect, Transport};
use parnass_transport_hybrid::{Duty, Hybrid};
use parnass_transport_shm::{JobMemory, SharedMemory};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A network that has something for who looks last: for a helper that looks while the process computes, and is told only when that has
/// fallen asleep.
struct LateNews {
    near: Arc<SharedMemory>,
    helper_looks: Arc<AtomicBool>,
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
        if std::thread::current().name() == Some("parnass-helper") {
            self.helper_looks.store(true, Ordering::SeqCst);
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
    fn take(&self, _: usize, _: &mut dyn FnMut(&Message) -> bool) -> usize {
        0
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

#[test]
fn who_fell_asleep_while_the_helper_looked_is_woken_for_what_that_has_read() {
    // Fewer processors than ranks: the helper takes the time of its process.
    let ranks = processors() as u32 + 1;
    let file = JobMemory::create(ranks).unwrap();
    let near = Arc::new(SharedMemory::attach(JobMemory::open(file).unwrap(), 0).unwrap());
    let nodes: Vec<u32> = (0..ranks).map(|_| 0).chain([1]).collect();
    let helper_looks = Arc::new(AtomicBool::new(false));
    let network = LateNews {
        near: near.clone(),
        helper_looks: helper_looks.clone(),
        read: AtomicBool::new(false),
        size: ranks + 1,
    };
    let hybrid = Hybrid::new(near, network, &nodes, Duty::default());
    let interface = Interface::new(Box::new(hybrid)).unwrap();
    interface.set_wheel(Some(Arc::new(Idle)));
    while !helper_looks.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    let asleep = Instant::now();
    let limit = Duration::from_secs(20);
    interface.wait(interface.ticket(), None, Some(asleep + limit), Company::None);
    interface.leave();
    assert!(interface.has_work(), "the helper has looked");
    assert!(asleep.elapsed() < limit, "nobody woke it");
    interface.set_wheel(None);
}
