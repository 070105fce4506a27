//! The short way of a blocking receive: a message is given to an entry that is never posted.

use crate::core::{BATCH, Core, Driver, Outcome, is_plain, pattern_of};
use crate::index;
use crate::interface::*;
use crate::message::{self, Arrival, INLINE_ROOM, Incoming, Payload};
use crate::nic::Nic;
use crate::record::ANY;
use parnass_base::atomics::Ordering;
use parnass_transport::{Bulk, Waiting};

/// Polls for a message before an entry is posted for it: some tens of microseconds.
const SOON_SPINS: u32 = 2000;
/// Polls without a pause between them.
const EAGER_SPINS: u32 = 128;
impl Core {
    /// Receives a message that is there, or comes while this process may spin, without posting an entry for it.
    /// `None`: it has not come, and nothing is left behind; or there is other work to be done first.
    #[inline]
    pub fn receive_soon(&self, entry: &MatchEntry) -> Option<Appended> {
        let nic = self.own();
        if nic.unexpected.0.order().count.get() != 0 {
            return None;
        }
        let waiting = entry.source.map_or(Waiting::ForAny, |awaited| Waiting::For(awaited.0));
        let mut shown = false;
        let mut result = None;
        for turn in 0..=self.transport.spins().min(SOON_SPINS) {
            if self.transport.poll(self.me) {
                result = self.take_in_for(nic, entry);
                // Among unexpected messages the long way looks.
                if result.is_some() || nic.unexpected.0.order().count.get() != 0 {
                    break;
                }
            }
            if self.has_other_work(nic) {
                break;
            }
            if turn == 0 {
                // From here on nobody else drives this NIC.
                self.transport.show(waiting);
                shown = true;
            }
            // A pause costs as much as the way of a message from core to core.
            if turn >= EAGER_SPINS {
                std::hint::spin_loop();
            }
        }
        if shown {
            self.transport.show(Waiting::Not);
        }
        result
    }

    /// Whether something besides arrivals waits to be done.
    #[inline(always)]
    fn has_other_work(&self, nic: &Nic) -> bool {
        let control = &nic.control;
        control.events.count.get() != 0
            || control.unclaimed.load(Ordering::Relaxed) != 0
            || control.calls.load(Ordering::Relaxed) != 0
            || self.delayed_count.load(Ordering::Relaxed) != 0
            || self.outstanding_count.load(Ordering::Relaxed) != 0
            || self.has_pipes()
    }

    /// Takes in arrivals up to the first that no posted entry wants and that `entry` takes.
    #[inline]
    fn take_in_for(&self, nic: &Nic, entry: &MatchEntry) -> Option<Appended> {
        let pattern = pattern_of(entry);
        let mut outcome = Outcome::default();
        let mut result = None;
        self.lock(nic);
        // Whoever drove this NIC before may have found what is looked for.
        if nic.unexpected.0.order().count.get() != 0 {
            nic.lock().release();
            return None;
        }
        self.transport.take(self.me, BATCH, &mut |message| {
            if result.is_some() {
                return false;
            }
            match Incoming::decode(message) {
                Some(Incoming::Put(arrival)) => {
                    if index::fits(
                        pattern.source,
                        pattern.match_bits,
                        pattern.ignore_bits,
                        arrival.source,
                        arrival.match_bits,
                    ) && !self.is_awaited(nic, &arrival)
                    {
                        result = self.accept(nic, entry, &arrival);
                        if let Some(Appended::Complete(_)) = result {
                            return true;
                        }
                    }
                    self.deliver(nic, self.me, Driver::Other, &arrival, &mut outcome)
                }
                Some(Incoming::Piece(piece)) => {
                    self.place_piece(nic, self.me, Driver::Other, &piece, &mut outcome)
                }
                None => {
                    nic.control.dropped.set(nic.control.dropped.get() + 1);
                    true
                }
            }
        });
        nic.lock().release();
        self.finish(&mut outcome);
        result
    }

    /// Whether a posted entry takes this message.
    #[inline]
    fn is_awaited(&self, nic: &Nic, arrival: &Arrival) -> bool {
        nic.posted.0.order().count.get() != 0
            && nic.posted.find(&nic.slab, &nic.classes, arrival.source, arrival.match_bits, is_plain) != 0
    }

    /// Gives a message to an entry that is not posted, if that is all there is to do; else posts the entry, for the
    /// message to be delivered to it. `None`: no memory to post it.
    #[inline]
    fn accept(&self, nic: &Nic, entry: &MatchEntry, arrival: &Arrival) -> Option<Appended> {
        let placed = arrival.length.min(entry.length as u64);
        let moved = match arrival.payload {
            Payload::Inline(words) if !arrival.ack && placed == 8 => {
                self.transport.place(self.me, entry.memory, &words[0].to_ne_bytes())
            }
            Payload::Inline(words) if !arrival.ack => {
                let mut bytes = [0; INLINE_ROOM];
                message::spread(&words, &mut bytes, placed as usize);
                self.transport.place(self.me, entry.memory, &bytes[..placed as usize])
            }
            Payload::Bulk(bulk) if !arrival.ack => {
                let moved = self.transport.drain(Bulk(bulk), 0, self.me, entry.memory, placed as usize);
                self.transport.discard(Bulk(bulk));
                moved
            }
            _ => {
                let source = entry.source.map_or(ANY, |source| source.0);
                return self.post(nic, source, entry).ok();
            }
        };
        Some(Appended::Complete(Event {
            kind: if moved.is_ok() { EventKind::Put } else { EventKind::Failed },
            user: entry.user,
            initiator: ProcessId(arrival.source),
            match_bits: arrival.match_bits,
            header_data: arrival.header_data,
            requested_length: arrival.length,
            placed_length: placed,
            taken: 0,
        }))
    }
}
