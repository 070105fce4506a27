//! Searches among the messages that nobody has asked for yet, and the message that one has taken (MPI_Mprobe) and that still lies where it came.
//!
//! Mostly its receive follows at once, and copies it from there to where it belongs, once. It is the next message of its source, and there is one at
//! most. Before anything is posted, and before anything else of that source is taken in, it is put aside, in its record or in memory of its
//! own. Meanwhile it counts among the unexpected messages, of which there is mostly none: so the short ways, which ask for that, need not ask for it.
//! Others than its owner leave it where it is. All this is done with the lock held.

use crate::core::{Core, Outcome, event_of, pattern_of};
use crate::interface::*;
use crate::memory::Memory;
use crate::message::{self, Arrival, Incoming, Payload};
use crate::nic::Nic;
use crate::receive_soon::{Soon, takes};
use crate::record::{flag, kind};
use crate::slab::Purpose;
use parnass_base::Scratch;
use parnass_base::lane::{self, Arrived, ShortBytes};
use parnass_transport::{MemoryError, Next};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The bytes of messages that were put aside, by record.
#[derive(Debug, Default)]
pub struct Aside(Mutex<HashMap<u32, Scratch>>);

impl Aside {
    fn put(&self, index: u32, bytes: Scratch) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(index, bytes);
    }

    fn take(&self, index: u32) -> Option<Scratch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&index)
    }
}

/// What a search tells of a message.
#[inline(always)]
fn event_for(user: u64, source: u32, match_bits: u64, header_data: u64, length: u64) -> Event {
    Event {
        kind: EventKind::Search,
        user,
        initiator: ProcessId(source),
        match_bits,
        header_data,
        requested_length: length,
        placed_length: 0,
        taken: 0,
    }
}

impl Nic {
    /// Whether a message is held, and is the next of this source.
    #[inline(always)]
    pub fn holds(&self, source: u32) -> bool {
        let held = self.control.held.get();
        held != 0 && self.slab.at(held).source.get() == source
    }

    fn count_held(&self, index: u32) {
        self.control.held.set(index);
        let count = &self.unexpected.0.order().count;
        count.set(if index != 0 { count.get() + 1 } else { count.get() - 1 });
    }
}

impl Core {
    pub fn search(&self, operation: SearchOperation, entry: &MatchEntry) -> Option<Event> {
        let nic = self.own();
        self.post_all();
        let pattern = pattern_of(entry);
        let mut outcome = Outcome::default();
        self.lock(nic);
        self.clear_way(nic);
        // The usual case first: a short message, and nobody has asked for any.
        let mut event = self.look_at_short(nic, operation, entry);
        let mut more = true;
        if event.is_none() && nic.unexpected.find(&nic.slab, &nic.classes, &pattern, |_| true) == 0 {
            (event, more) = self.look_at_next(nic, operation, entry);
        }
        if event.is_some() || !more {
            nic.lock().release();
            return event;
        }
        let taken_in = self.take_in_all(nic, &mut outcome);
        let found = nic.unexpected.find(&nic.slab, &nic.classes, &pattern, |_| true);
        let event = (found != 0).then(|| {
            let record = nic.slab.at(found);
            let mut event = event_of(record, EventKind::Search);
            event.user = entry.user;
            event.placed_length = 0;
            if operation == SearchOperation::Take {
                nic.unexpected.remove(&nic.slab, &nic.classes, found);
                record.kind.set(kind::TAKEN);
                event.taken = nic.slab.handle(found);
            }
            event
        });
        nic.lock().release();
        self.finish(&mut outcome);
        self.tell_of_arrivals(taken_in);
        event
    }

    /// Receives the next message of a source that is named, if `entry` takes it, its bytes take one slot, and nobody else may expect it.
    pub fn take_short(&self, entry: &MatchEntry) -> Option<(Received, ShortBytes)> {
        let ProcessId(source) = entry.source?;
        let nic = self.own();
        self.post_all();
        self.lock(nic);
        self.clear_way(nic);
        let mut taken = None;
        if nic.unexpected.0.order().count.get() == 0
            && let Next::Short(short) = self.transport.next(source)
            && let Some(words) = short.words()
        {
            taken = self.accept_short(nic, entry, &short, None).map(|received| (received, words));
            if taken.is_some() {
                self.transport.pass_next(source, short.slots());
            }
        }
        nic.lock().release();
        taken
    }

    /// As [`Core::look_at_next`], for a short message of a source that is named, where nothing is kept or asked for.
    #[inline(always)]
    fn look_at_short(&self, nic: &Nic, operation: SearchOperation, entry: &MatchEntry) -> Option<Event> {
        let ProcessId(source) = entry.source?;
        if nic.unexpected.0.order().count.get() != 0 || nic.receives() {
            return None;
        }
        let Next::Short(short) = self.transport.next(source) else { return None };
        let (kind, last, source) = message::parts(short.tag());
        let match_bits = short.word(0);
        if kind != message::INLINE || !takes(entry, source, match_bits) {
            return None;
        }
        let length = short.bytes(last) as u64;
        let event = event_for(entry.user, source, match_bits, short.word(1), length);
        self.found(nic, operation, event)
    }

    /// The message that a source has sent next, if that is what is looked for and would be kept, copied twice: it stays where it is, for the receive that
    /// mostly follows. And whether any has come.
    fn look_at_next(
        &self,
        nic: &Nic,
        operation: SearchOperation,
        entry: &MatchEntry,
    ) -> (Option<Event>, bool) {
        let (mut found, mut some) = (None, false);
        self.transport.take(self.me, 1, &mut |message| {
            some = true;
            if found.is_none()
                && self.comes_too_soon(nic, message)
                && let Some(Incoming::Put(arrival)) = Incoming::decode(message)
                && takes(entry, arrival.source, arrival.match_bits)
            {
                let Arrival { source, match_bits, header_data, length, .. } = arrival;
                if operation == SearchOperation::Look || self.may_hold(&arrival) {
                    found = self.found(
                        nic,
                        operation,
                        event_for(entry.user, source, match_bits, header_data, length),
                    );
                }
            }
            false
        });
        (found, some)
    }

    /// Whether a message is of the usual kind. A network may not offer one again before it is asked for more.
    fn may_hold(&self, arrival: &Arrival) -> bool {
        let usual = match arrival.payload {
            Payload::Inline(_) | Payload::Bulk(_) => !arrival.ack,
            Payload::Long(message) => message.is_soon_whole(),
            _ => false,
        };
        usual && !self.is_far(arrival.source)
    }

    /// What a search tells of a message that stays where it is; one that it takes is named by a record. `None`: there is no room for that.
    #[inline(always)]
    fn found(&self, nic: &Nic, operation: SearchOperation, event: Event) -> Option<Event> {
        if operation == SearchOperation::Look {
            return Some(event);
        }
        let index = nic.slab.allocate(Purpose::Arrival);
        if index == 0 {
            return None;
        }
        let record = nic.slab.at(index);
        record.kind.set(kind::TAKEN);
        record.flags.set(0);
        record.source.set(event.initiator.0);
        record.match_bits.set(event.match_bits);
        record.header_data.set(event.header_data);
        record.requested.set(event.requested_length);
        nic.count_held(index);
        Some(Event { taken: nic.slab.handle(index), ..event })
    }

    /// Puts the message aside that is held, if there is one.
    #[inline(always)]
    pub fn clear_way(&self, nic: &Nic) {
        if nic.control.held.get() != 0 {
            self.clear_way_now(nic);
        }
    }

    #[cold]
    fn clear_way_now(&self, nic: &Nic) {
        self.transport.take(self.me, 1, &mut |message| {
            matches!(Incoming::decode(message), Some(Incoming::Put(arrival)) if nic.holds(arrival.source))
                && self.put_aside(nic, self.me, message)
        });
    }

    /// Puts the message aside that is held, which is this one. `false`: others than its owner leave it.
    #[cold]
    pub fn put_aside(&self, nic: &Nic, of: u32, message: &Arrived) -> bool {
        let Some(Incoming::Put(arrival)) = Incoming::decode(message).filter(|_| of == self.me) else {
            return false;
        };
        let index = nic.control.held.get();
        let record = nic.slab.at(index);
        match arrival.payload {
            Payload::Bulk(bulk) => {
                record.flags.set(flag::BULK);
                record.remote.set(bulk);
            }
            Payload::Long(message) => {
                let bytes = Scratch::new(arrival.length as usize);
                // It was whole when it was found.
                let whole = message.copy_to(lane::HEAD, bytes.address(), bytes.len());
                debug_assert!(whole);
                record.flags.set(flag::ASIDE);
                self.aside.put(index, bytes);
            }
            Payload::Inline(words) => {
                record.class.set(arrival.length as u32);
                record.short().iter().zip(words).for_each(|(cell, word)| cell.set(word));
            }
            _ => unreachable!("only messages of the usual kind are held"),
        }
        nic.count_held(0);
        true
    }

    /// Receives a message that a search took and that still lies where it came. `None`: it does not.
    #[inline]
    pub fn receive_held(&self, taken: u64, memory: Memory, length: usize) -> Option<Received> {
        let nic = self.own();
        self.lock(nic);
        let index = nic.control.held.get();
        let received = (index != 0 && nic.slab.resolve(taken) == Some(index)).then(|| {
            let source = nic.slab.at(index).source.get();
            let (match_bits, ignore_bits, user) = (0, u64::MAX, 0);
            let entry =
                MatchEntry { source: Some(ProcessId(source)), match_bits, ignore_bits, memory, length, user };
            // The usual case first: a short message.
            if let Next::Short(short) = self.transport.next(source)
                && let Some(received) = self.receive_short(nic, &entry, &short)
            {
                self.transport.pass_next(source, short.slots());
                return Some(received);
            }
            self.receive_any_held(nic, index, &entry)
        });
        let received = received.flatten();
        if received.is_some() {
            nic.count_held(0);
            nic.slab.release(index);
        }
        nic.lock().release();
        received
    }

    #[inline(never)]
    fn receive_any_held(&self, nic: &Nic, index: u32, entry: &MatchEntry) -> Option<Received> {
        let mut received = None;
        self.transport.take(self.me, 1, &mut |message| {
            if received.is_none()
                && let Some(Incoming::Put(arrival)) = Incoming::decode(message)
                && nic.holds(arrival.source)
                && let Soon::Received(now) = self.accept(nic, entry, &arrival)
            {
                received = Some(now);
                return true;
            }
            false
        });
        if received.is_none() {
            self.clear_way_now(nic);
            if nic.control.held.get() == index {
                // It is not there any more.
                let lost = event_of(nic.slab.at(index), EventKind::Failed);
                received = Some(Received { placed_length: 0, ..Received::from(&lost) });
            }
        }
        received
    }

    /// Receives a message that a search took, wherever it lies.
    pub fn receive_taken(&self, taken: u64, memory: Memory, length: usize, user: u64) -> Appended {
        if let Some(received) = self.receive_held(taken, memory, length) {
            return Appended::Complete(received.event(user));
        }
        let nic = self.own();
        let mut outcome = Outcome::default();
        self.lock(nic);
        let found = nic.slab.resolve(taken).filter(|index| nic.slab.at(*index).kind.get() == kind::TAKEN);
        let result = found.map(|index| self.receive_record(nic, index, memory, length, user, &mut outcome));
        nic.lock().release();
        self.finish(&mut outcome);
        result.expect("a message that a search took and nobody has received yet")
    }

    /// Places the bytes of a message that was put aside.
    pub fn place_aside(&self, index: u32, memory: Memory, length: usize) -> Result<(), MemoryError> {
        let Some(aside) = self.aside.take(index) else { return Err(MemoryError::Failed) };
        let mut bytes = vec![0; length];
        aside.address().read(&mut bytes);
        self.place(self.me, memory, &bytes)
    }
}
