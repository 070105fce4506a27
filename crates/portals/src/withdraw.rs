//! Taking back a put that nobody has received yet.
//!
//! The initiator asks, behind the put and in the same way; whoever drives the target's NIC looks for the message among the unexpected ones. If it is
//! there it goes away, and the initiator gets [`EventKind::Withdrawn`] in place of the put's last event. If it is not, it has been matched, and all
//! comes as it would have. So a put that was asked back ends without any doing of the target's program.

use crate::core::{Core, Outcome, PLAIN_PORTAL, notice};
use crate::index::Pattern;
use crate::interface::*;
use crate::message::{self, PULL, WITHDRAW};
use crate::nic::Nic;
use crate::record::flag;
use parnass_transport::{Bulk, Waiting};

/// In place of the transfer's handle: nobody pulls this put any more.
pub const NO_TRANSFER: u64 = u64::MAX;

impl Core {
    /// Asks for a put back that `target` may not have matched yet; its `header_data` names it among those with its match bits.
    #[cold]
    pub fn ask_back(&self, target: u32, match_bits: u64, header_data: u64) {
        if target == self.me && self.take_back_own(match_bits, header_data) {
            return;
        }
        self.post_or_delay(target, message::tag(WITHDRAW, 0, self.me), [match_bits, header_data, 0, 0]);
        if !self.is_far(target) && self.transport.shown(target) == Waiting::Not {
            self.transport.ring_helper(target);
        }
    }

    /// Takes a put to oneself back at once, if it has come and nobody has received it; whether it did. (A question in the mailbox is read by whoever is
    /// first: a helper may lose its processor over the answer.)
    fn take_back_own(&self, match_bits: u64, header_data: u64) -> bool {
        let nic = self.own();
        let mut outcome = Outcome::default();
        self.post_all();
        self.lock(nic);
        let taken_in = self.take_in_all(nic, &mut outcome);
        let found = self.withdraw(nic, self.me, self.me, match_bits, header_data, &mut outcome);
        nic.lock().release();
        self.finish(&mut outcome);
        self.tell_of_arrivals(taken_in);
        found
    }

    /// Takes in such a question of `source` at the NIC of `of`, whose lock is held. Whether it found the message.
    #[cold]
    pub fn withdraw(
        &self,
        nic: &Nic,
        of: u32,
        source: u32,
        match_bits: u64,
        header_data: u64,
        outcome: &mut Outcome,
    ) -> bool {
        let pattern = Pattern { source, match_bits, ignore_bits: 0, portal: PLAIN_PORTAL };
        // What is in a pipe was sent to a receive that was there: its bytes move.
        let found = nic.unexpected.find(&nic.slab, &nic.classes, &pattern, |record| {
            record.header_data.get() == header_data && record.flags.get() & flag::PIPED == 0
        });
        if found == 0 {
            return false;
        }
        nic.unexpected.remove(&nic.slab, &nic.classes, found);
        let record = nic.slab.at(found);
        let (flags, remote) = (record.flags.get(), record.remote.get());
        record.length.set(0);
        let told = |kind| (source, notice(record, of, kind));
        // The last event of a put that was sent in whole is the ack; of another that its source is free.
        let direct = flags & flag::DIRECT != 0;
        if direct && flags & flag::ACK != 0 {
            outcome.notices.push(told(EventKind::Ack));
        }
        if direct && self.is_far(source) {
            self.post_or_delay(source, message::tag(PULL, 0, self.me), [remote, NO_TRANSFER, 0, 0]);
        } else if direct || flags & flag::ACK != 0 {
            outcome.notices.push(told(EventKind::Withdrawn));
        }
        if flags & flag::STREAM != 0 {
            self.network().discard(Bulk(remote));
        } else if flags & flag::BULK != 0 {
            self.transport.discard(Bulk(remote));
            if flags & flag::KEPT != 0 {
                self.let_go(nic, record.requested.get());
            }
        }
        nic.slab.release(found);
        true
    }
}
