//! The death of a peer, as its survivor's NIC sees it.

use crate::core::{Core, Driver, Outcome};
use crate::far::FarPut;
use crate::interface::*;
use crate::nic::Nic;
use crate::partial;
use crate::record::{flag, kind};
use crate::send::Delayed;
use crate::transfer;
use parnass_base::atomics::Ordering;
use parnass_transport::Bulk;

/// Rounds of taking in what the dead one and others have sent.
const ROUNDS: u32 = 10_000;

impl Core {
    /// See [`Interface::bury`].
    #[cold]
    pub fn bury(&self, dead: &[ProcessId]) -> bool {
        let dead: Vec<u32> = dead.iter().map(|peer| peer.0).collect();
        let nic = self.own();
        self.lock(nic);
        self.clear_way(nic);
        let buried = self.transport.bury(&dead);
        nic.lock().release();
        self.buries.store(!buried, Ordering::Relaxed);
        buried
    }

    /// See [`Interface::fail`].
    #[cold]
    pub fn fail(&self, peer: u32) {
        let Some(counters) = self.tallies.get(peer).filter(|_| peer != self.me) else { return };
        let nic = self.own();
        self.post_all();
        // What it had sent whole is received as ever: it is taken in as long as it counts as alive.
        let mut outcome = Outcome::default();
        self.lock(nic);
        for _ in 0..ROUNDS {
            if self.take_in(nic, self.me, Driver::Other, &mut outcome) == 0 {
                break;
            }
        }
        nic.lock().release();
        self.finish(&mut outcome);
        if !counters.die() {
            return;
        }
        if self.is_far(peer)
            && let Some(network) = self.transport.network()
        {
            network.give_up(peer);
        }
        self.outstanding_count.fetch_sub(counters.outstanding.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        let mut lost = self.take_back_delayed(peer);
        lost.extend(self.far_puts.forget_all(|put| put.target() == peer).into_iter().map(FarPut::take_back));
        lost.extend(self.give_up_pipes(peer));
        self.lock(nic);
        let of_peer = |index: &u32| {
            let record = nic.slab.at(*index);
            record.kind.get() == kind::TRANSFER && record.source.get() == peer
        };
        if !self.is_far(peer) {
            nic.slab.all().filter(of_peer).for_each(|index| transfer::stop(nic, index));
        }
        nic.lock().release();
        // Other threads of this process may still move what they had claimed.
        while self.movers.load(Ordering::Acquire) != 0 {
            std::thread::yield_now();
        }
        self.lock(nic);
        for put in lost {
            self.queue_copy(nic, &put.event(EventKind::Failed), 0);
        }
        self.fail_records(nic, peer);
        nic.lock().release();
        self.transport.ring(self.me);
    }

    /// The puts that had no room at a peer.
    fn take_back_delayed(&self, peer: u32) -> Vec<Put> {
        let mut queues = self.delayed();
        let queue = queues.get_mut(peer as usize).map(std::mem::take).unwrap_or_default();
        self.tallies.of(peer).go(queue.len() as u32);
        self.delayed_count.fetch_sub(queue.len() as u32, Ordering::Relaxed);
        let put = |delayed| match delayed {
            Delayed::Put(put) => Some(put),
            Delayed::Message { .. } => None,
        };
        queue.into_iter().filter_map(put).collect()
    }

    /// Ends the transfers from a dead peer, and forgets the messages of which it kept the data. Lock held.
    fn fail_records(&self, nic: &Nic, peer: u32) {
        let far = self.is_far(peer);
        for index in nic.slab.all() {
            let record = nic.slab.at(index);
            partial::let_go(record, peer);
            if record.source.get() != peer {
                continue;
            }
            let flags = record.flags.get();
            match record.kind.get() {
                kind::TRANSFER => {
                    if !far {
                        transfer::abandon(nic, index);
                    }
                    let mut nothing = Outcome::default();
                    self.report(nic, index, EventKind::Failed, Driver::Other, &mut nothing);
                }
                kind::UNEXPECTED if flags & (flag::DIRECT | flag::PIPED | flag::STREAM) != 0 => {
                    let payload = Bulk(record.remote.get());
                    let network = self.transport.network().filter(|_| flags & flag::STREAM != 0);
                    if network.is_some_and(|network| network.is_whole(payload)) {
                        continue;
                    }
                    nic.unexpected.remove(&nic.slab, &nic.classes, index);
                    nic.slab.release(index);
                }
                _ => {}
            }
        }
    }
}
