//! What is counted of messages: by the way in which they travel.

use crate::core::Core;
use crate::message::{Arrival, Payload};
use crate::nic::Nic;
use crate::record::flag;
use crate::slab::ListControl;
use parnass_counters as counters;
use parnass_counters::{Any, Locked, watch};

/// How the bytes of a message travel. The order is that of the two tables below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Travel {
    /// With the message itself.
    Short,
    /// Through a chunk of shared memory.
    Chunk,
    /// Through a pipe begun before the match.
    Pipe,
    /// After the match.
    Direct,
    /// Behind the message, from another node.
    Stream,
    /// From another node, when they are asked for.
    Announced,
}

const RECEIVED: [(Locked, Locked); 6] = [
    (counters::RECEIVED_SHORT_MESSAGES, counters::RECEIVED_SHORT_BYTES),
    (counters::RECEIVED_CHUNK_MESSAGES, counters::RECEIVED_CHUNK_BYTES),
    (counters::RECEIVED_PIPE_MESSAGES, counters::RECEIVED_PIPE_BYTES),
    (counters::RECEIVED_DIRECT_MESSAGES, counters::RECEIVED_DIRECT_BYTES),
    (counters::RECEIVED_STREAM_MESSAGES, counters::RECEIVED_STREAM_BYTES),
    (counters::RECEIVED_ANNOUNCED_MESSAGES, counters::RECEIVED_ANNOUNCED_BYTES),
];

/// Of what is not short.
const SENT: [(Any, Any); 5] = [
    (counters::SENT_CHUNK_MESSAGES, counters::SENT_CHUNK_BYTES),
    (counters::SENT_PIPE_MESSAGES, counters::SENT_PIPE_BYTES),
    (counters::SENT_DIRECT_MESSAGES, counters::SENT_DIRECT_BYTES),
    (counters::SENT_STREAM_MESSAGES, counters::SENT_STREAM_BYTES),
    (counters::SENT_ANNOUNCED_MESSAGES, counters::SENT_ANNOUNCED_BYTES),
];

impl Travel {
    /// Of a message that has come.
    #[inline(always)]
    pub fn of(payload: &Payload<'_>, far: bool) -> Travel {
        match payload {
            Payload::Inline(_) | Payload::Long(_) => Travel::Short,
            Payload::Bulk(_) => Travel::Chunk,
            Payload::Piped(_) => Travel::Pipe,
            Payload::Direct(_) if far => Travel::Announced,
            Payload::Direct(_) => Travel::Direct,
            Payload::Stream(_) => Travel::Stream,
        }
    }

    /// Of an unexpected message, by the flags of its record.
    #[inline]
    pub fn of_kept(flags: u32, far: bool) -> Travel {
        match flags {
            flags if flags & flag::KEPT != 0 => Travel::Short,
            flags if flags & flag::BULK != 0 => Travel::Chunk,
            flags if flags & flag::PIPED != 0 => Travel::Pipe,
            flags if flags & flag::STREAM != 0 => Travel::Stream,
            flags if flags & flag::DIRECT != 0 && far => Travel::Announced,
            flags if flags & flag::DIRECT != 0 => Travel::Direct,
            _ => Travel::Short,
        }
    }
}

impl Core {
    /// Counts a message that has met its receive at a NIC whose lock is held.
    #[inline(always)]
    pub fn count_received(
        &self,
        nic: &Nic,
        way: Travel,
        source: u32,
        match_bits: u64,
        length: u64,
        unexpected: bool,
    ) {
        let (messages, bytes) = RECEIVED[way as usize];
        nic.counters.count_locked(messages, 1);
        nic.counters.count_locked(bytes, length);
        if nic.counters.watch() & watch::EVENTS != 0 {
            self.tell_matched(source, match_bits, length, unexpected);
        }
    }

    #[cold]
    fn tell_matched(&self, source: u32, match_bits: u64, length: u64, unexpected: bool) {
        let (tag, context) = (match_bits & 0xffff_ffff, match_bits >> 32);
        let elements = [source.into(), tag, context, length, unexpected.into()];
        self.observer.raise(counters::MESSAGE_MATCHED, &elements);
    }

    /// Tells of an unexpected message.
    #[cold]
    pub fn tell_kept(&self, arrival: &Arrival<'_>) {
        let (tag, context) = (arrival.match_bits & 0xffff_ffff, arrival.match_bits >> 32);
        let elements = [arrival.source.into(), tag, context, arrival.length];
        self.observer.raise(counters::UNEXPECTED_ARRIVED, &elements);
    }

    /// Counts a message on its way out that is not short.
    #[inline]
    pub fn count_sent(&self, way: Travel, length: usize) {
        let (messages, bytes) = SENT[way as usize - 1];
        self.counters.count_any(messages, 1);
        self.counters.count_any(bytes, length as u64);
    }

    /// See [`crate::Interface::queues`].
    pub fn queues(&self, match_bits: u64, mask: u64) -> (u64, u64) {
        let nic = self.own();
        let count = |list: &ListControl| {
            let (mut found, mut index) = (0, list.head.get());
            while index != 0 {
                let record = nic.slab.at(index);
                found += u64::from(record.match_bits.get() & mask == match_bits & mask);
                index = record.next.get();
            }
            found
        };
        self.post_all();
        self.lock(nic);
        let counts = (count(nic.unexpected.0.order()), count(nic.posted.0.order()));
        nic.lock().release();
        counts
    }

    /// See [`crate::Interface::begin_marks`].
    pub fn begin_marks(&self) -> [(u64, u64); 2] {
        let nic = self.own();
        let begin = |mark, list: &ListControl| {
            let level = list.count.get().into();
            (nic.counters.begin_mark(mark, level), level)
        };
        self.post_all();
        self.lock(nic);
        let marks = [
            begin(counters::UNEXPECTED_MARK, nic.unexpected.0.order()),
            begin(counters::POSTED_MARK, nic.posted.0.order()),
        ];
        nic.lock().release();
        marks
    }
}
