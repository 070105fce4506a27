//! The usual case of what comes: a short message for which the owner, who takes it in, has posted an entry.

use crate::core::Core;
use crate::interface::*;
use crate::memory::{Memory, Place};
use crate::message::{self, INLINE_ROOM};
use crate::nic::Nic;
use crate::parked::Unparked;
use crate::travel::Travel;
use parnass_base::lane::{self, Arrived, write_words};

impl Core {
    /// As [`Core::deliver`], for the usual case: a short message for which the owner, who takes it in, has posted an entry.
    #[inline(always)]
    pub fn deliver_short(&self, nic: &Nic, message: &Arrived, sink: &mut impl Sink) -> bool {
        let (kind, small, source) = message::parts(message.tag);
        if kind != message::INLINE {
            return false;
        }
        if message.is_long() {
            return self.deliver_slots(nic, message, sink);
        }
        let Some(entry) = self.take_entry(nic, source, message.words[0]) else { return false };
        let length = small.min(INLINE_ROOM);
        let placed = length.min(entry.length);
        write_words(&message.words[lane::HEAD..], entry.memory, placed);
        self.tell_delivered(nic, message, &entry, length, placed, sink);
        true
    }

    /// The same of several slots.
    #[inline(never)]
    fn deliver_slots(&self, nic: &Nic, message: &Arrived, sink: &mut impl Sink) -> bool {
        let (_, small, source) = message::parts(message.tag);
        if !message.lies_in_slots_whole() {
            return false;
        }
        let Some(entry) = self.take_entry(nic, source, message.words[0]) else { return false };
        let length = message.bytes(small);
        let placed = length.min(entry.length);
        // It is whole, and its entry this process's: nothing can fail.
        let placing = self.place_long(self.me, entry.memory.into(), source, message, placed);
        debug_assert!(placing.is_ok());
        self.tell_delivered(nic, message, &entry, length, placed, sink);
        true
    }

    #[inline(always)]
    fn tell_delivered(
        &self,
        nic: &Nic,
        message: &Arrived,
        entry: &Unparked,
        length: usize,
        placed: usize,
        sink: &mut impl Sink,
    ) {
        let (_, _, source) = message::parts(message.tag);
        self.count_received(nic, Travel::Short, source, message.words[0], length as u64, false);
        sink.hear(Event {
            kind: EventKind::Put,
            user: entry.user,
            initiator: ProcessId(source),
            match_bits: message.words[0],
            header_data: message.words[1],
            requested_length: length as u64,
            placed_length: placed as u64,
            taken: 0,
        });
    }

    /// Takes out the entry that a message of these criteria meets, if its memory is one run. What is posted is older than what is
    /// parked.
    #[inline(always)]
    fn take_entry(&self, nic: &Nic, source: u32, match_bits: u64) -> Option<Unparked> {
        if nic.posted.0.order().count.get() == 0 {
            return nic.parked.take(source, match_bits);
        }
        self.take_posted(nic, source, match_bits)
    }

    #[inline(never)]
    fn take_posted(&self, nic: &Nic, source: u32, match_bits: u64) -> Option<Unparked> {
        let index = Core::posted_for(nic, source, match_bits);
        if index == 0 {
            return nic.parked.take(source, match_bits);
        }
        let record = nic.slab.at(index);
        let Place::Run(memory) = Memory::from_word(record.address.get()).place() else { return None };
        let entry = Unparked { memory, length: record.length.get() as usize, user: record.user.get() };
        nic.posted.remove(&nic.slab, &nic.classes, index);
        nic.slab.release(index);
        Some(entry)
    }
}
