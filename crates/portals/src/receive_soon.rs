//! The short way of a blocking receive: a message is given to an entry that is never posted.

use crate::core::{BATCH, Core, Driver, Outcome, pattern_of};
use crate::index::{self, Pattern};
use crate::interface::*;
use crate::memory::Place;
use crate::message::{self, Arrival, BULK, INLINE, INLINE_ROOM, Incoming, Payload};
use crate::nic::Nic;
use crate::partial::is_plain;
use crate::progress::YIELD_EVERY_FAR;
use crate::record::{INLINE_BYTES, flag};
use crate::travel::Travel;
use parnass_base::UserAddress;
use parnass_base::atomics::Ordering;
use parnass_base::clock::idle;
use parnass_base::lane::{self, Arrived, Short, write_words};
use parnass_base::{Ahead, Word64};
use parnass_transport::{Answer, Bulk, MemoryError, Next, Turns, Waiting};

/// Looks for what is no answer without a pause between them.
const FIRST_LOOKS: u32 = 4;
/// Looks after which a message does not come soon any more.
const SOON: u32 = 128;
/// Between two looks for what comes soon. A pause of the processor may take as long as a message from core to core. Where two exchange 1 KiB between cores that
/// are far from each other, looks without a pause took a third longer, and so did those with fetches of lines to write to between them.
const LOOK_PAUSE: u32 = 20;
/// Looks for an answer between two at all that has come.
const LOOKS_AT_ALL: u32 = 4;
/// About what it takes to ask for two lines.
const FETCH_STEPS: u32 = 4;

impl Core {
    /// Receives a message that is there, or comes while this process may spin or let others run, without posting an entry for it. The result is what
    /// `tell` makes of it, and goes where it belongs at once: what has just been written in parts is slow to copy as a whole.
    /// `later`: it has not come, and nothing is left behind; or there is other work to be done first, or it needs an
    /// entry, because its bytes come later.
    #[inline(always)]
    pub fn receive_soon<T>(
        &self,
        entry: &MatchEntry,
        tell: impl FnOnce(&Received) -> T,
        later: impl FnOnce() -> T,
    ) -> T {
        let mut result = self.look_for(entry);
        if matches!(result, Soon::NotYet) && self.transport.spins() == 0 {
            result = self.receive_after_others(entry);
        }
        match &result {
            Soon::Received(received) => tell(received),
            Soon::NotYet | Soon::NeedsEntry => later(),
        }
    }

    /// Whether something is there to be taken in, or comes while this process may spin.
    pub fn awaits_arrival(&self, awaited: Option<ProcessId>) -> bool {
        let mut came = self.transport.poll(self.me);
        let spins = self.transport.spins().min(self.tuning.receive_spins());
        if came || spins == 0 {
            return came;
        }
        self.show_searching(awaited);
        let began = self.watched_since();
        for _ in 0..spins {
            came = self.transport.poll(self.me);
            if came || self.has_other_work(self.own()) {
                break;
            }
            std::hint::spin_loop();
        }
        self.transport.show(Waiting::Not);
        self.count_waited(began);
        came
    }

    /// Lets those run who may send the message, where ranks share processors.
    #[inline(never)]
    pub fn receive_after_others(&self, entry: &MatchEntry) -> Soon {
        let mut turns = Turns::default();
        let mut result = Soon::NotYet;
        while matches!(result, Soon::NotYet) {
            // Nobody else has to take in what comes meanwhile.
            self.show_looking(entry.source);
            if !self.take_turns(entry.source, &mut turns, || self.has_work()) {
                break;
            }
            result = self.look_for(entry);
        }
        self.transport.show(Waiting::Not);
        result
    }

    #[inline(always)]
    fn look_for(&self, entry: &MatchEntry) -> Soon {
        self.post_all();
        self.lock(self.own());
        self.look_with_lock(entry)
    }

    /// The usual case first: a short message that has come, which nothing precedes. With the lock, which is released.
    #[inline(always)]
    pub fn look_with_lock(&self, entry: &MatchEntry) -> Soon {
        let nic = self.own();
        self.clear_way(nic);
        let answer = match entry.source {
            Some(ProcessId(source)) if nic.unexpected.0.order().count.get() == 0 => {
                match self.transport.next(source) {
                    Next::Short(short) => {
                        if let Some(received) = self.receive_short(nic, entry, &short) {
                            self.transport.pass_next(source, short.slots());
                            nic.lock().release();
                            return Soon::Received(received);
                        }
                        return self.receive_piece(nic, entry, source, short);
                    }
                    Next::AnswerAfter(steps) => Some((source, steps)),
                    Next::Other => None,
                }
            }
            source => self.transport.answer_after(source.map(|source| source.0)),
        };
        self.look_longer(nic, entry, answer)
    }

    /// Copies a short message to where it belongs, if `entry` takes it and nobody else may expect it.
    #[inline(always)]
    pub fn receive_short(&self, nic: &Nic, entry: &MatchEntry, short: &Short<'_>) -> Option<Received> {
        let Place::Run(memory) = entry.memory.place() else { return None };
        self.accept_short(nic, entry, short, Some(memory))
    }

    /// As [`Core::receive_short`], but copies to `memory`, if to anywhere.
    #[inline(always)]
    pub fn accept_short(
        &self,
        nic: &Nic,
        entry: &MatchEntry,
        short: &Short<'_>,
        memory: Option<UserAddress>,
    ) -> Option<Received> {
        if nic.posted.0.order().count.get() != 0 {
            return None;
        }
        let (kind, last, initiator) = message::parts(short.tag());
        let match_bits = short.word(0);
        if kind != INLINE || !takes(entry, initiator, match_bits) {
            return None;
        }
        let (header_data, length) = (short.word(1), short.bytes(last));
        let placed = length.min(entry.length);
        self.note_came(length);
        if let Some(memory) = memory {
            short.copy_to(memory, placed);
        }
        self.count_received(nic, Travel::Short, initiator, match_bits, length as u64, false);
        Some(Received {
            failed: false,
            initiator: ProcessId(initiator),
            match_bits,
            header_data,
            requested_length: length as u64,
            placed_length: placed as u64,
        })
    }

    /// As [`Core::look_longer`], where `short` comes next from `source`, and is no short message for `entry`: its bytes may lie in a piece.
    #[inline(never)]
    fn receive_piece(&self, nic: &Nic, entry: &MatchEntry, source: u32, short: Short<'_>) -> Soon {
        let (kind, ack, initiator) = message::parts(short.tag());
        let [match_bits, header_data, bulk, length] = [0, 1, 2, 3].map(|index| short.word(index));
        if kind == BULK
            && ack == 0
            && nic.posted.0.order().count.get() == 0
            && takes(entry, initiator, match_bits)
        {
            let payload = Payload::Bulk(bulk);
            let arrival =
                Arrival { source: initiator, match_bits, header_data, length, ack: false, user: 0, payload };
            let result = self.accept(nic, entry, &arrival);
            if let Soon::Received(_) = result {
                self.transport.pass_next(source, short.slots());
            }
            nic.lock().release();
            return result;
        }
        self.look_longer(nic, entry, None)
    }

    /// As [`Core::look_for`], with the lock, which is released. It is held while polling, so that taking it costs no time once the message is there. Others want
    /// it only for transfers, and while there are such, this is not done. `answer`: what [`parnass_transport::Transport::answer_after`] told.
    #[inline(never)]
    fn look_longer(&self, nic: &Nic, entry: &MatchEntry, answer: Option<(u32, u32)>) -> Soon {
        let pattern = pattern_of(entry);
        let found = nic.unexpected.find(&nic.slab, &nic.classes, &pattern, |_| true);
        if found != 0 {
            return self.receive_found(nic, found, entry);
        }
        // Mostly there is none: nothing is made, nothing ended.
        let mut outcome = None;
        let mut result = Soon::NotYet;
        let mut spins = None;
        let mut began = None;
        let mut ahead = answer.map(|(_, after)| self.let_pass(entry, after));
        for turn in 0.. {
            let expected = answer.map(|(source, _)| (source, turn));
            self.take_in_for(nic, &pattern, entry, expected, &mut result, &mut outcome);
            if !matches!(result, Soon::NotYet) {
                break;
            }
            if outcome.is_some() || self.has_other_work(nic) {
                result = Soon::NeedsEntry;
                break;
            }
            let spins = *spins.get_or_insert_with(|| {
                // From here on nobody else drives this NIC.
                self.show_looking(entry.source);
                began = self.watched_since();
                self.transport.spins().min(self.tuning.receive_spins())
            });
            if turn >= spins {
                break;
            }
            if turn % YIELD_EVERY_FAR == YIELD_EVERY_FAR - 1 && self.comes_from_far(entry) {
                std::thread::yield_now();
            }
            match &mut ahead {
                None if turn < FIRST_LOOKS => (),
                None if turn >= SOON => std::hint::spin_loop(),
                None => idle(LOOK_PAUSE),
                Some(ahead) => {
                    if !ahead.fetch() {
                        idle(LOOK_PAUSE);
                    }
                }
            }
        }
        nic.lock().release();
        if spins.is_some() {
            self.transport.show(Waiting::Not);
            self.count_waited(began);
        }
        if let Some(mut outcome) = outcome {
            self.finish(&mut outcome);
        }
        result
    }

    /// Lets the time pass before an answer is looked for, and fetches what is written then.
    #[inline]
    fn let_pass(&self, entry: &MatchEntry, after: u32) -> Ahead {
        let mut ahead = self.will_write(entry.memory, entry.length);
        let mut left = after;
        while left >= FETCH_STEPS && ahead.fetch() {
            left -= FETCH_STEPS;
        }
        idle(left);
        ahead
    }

    #[inline]
    fn comes_from_far(&self, entry: &MatchEntry) -> bool {
        self.networked.load(Ordering::Relaxed) && entry.source.is_some_and(|source| self.is_far(source.0))
    }

    /// Receives an unexpected message, if that is all there is to do, and releases the lock.
    #[inline(never)]
    fn receive_found(&self, nic: &Nic, found: u32, entry: &MatchEntry) -> Soon {
        let record = nic.slab.at(found);
        let flags = record.flags.get();
        // The usual case first: a short message, whose initiator wants to know nothing.
        if flags == 0
            && let Place::Run(memory) = entry.memory.place()
        {
            let length = record.class.get() as usize;
            let placed = length.min(entry.length).min(INLINE_BYTES);
            if placed == 8 {
                memory.write_word(record.short()[0].get());
            } else {
                write_words(&record.short().map(Word64::get), memory, placed);
            }
            let received = Received {
                failed: false,
                initiator: ProcessId(record.source.get()),
                match_bits: record.match_bits.get(),
                header_data: record.header_data.get(),
                requested_length: length as u64,
                placed_length: placed as u64,
            };
            nic.unexpected.remove(&nic.slab, &nic.classes, found);
            nic.slab.release(found);
            self.count_received(
                nic,
                Travel::Short,
                received.initiator.0,
                received.match_bits,
                length as u64,
                true,
            );
            nic.lock().release();
            return Soon::Received(received);
        }
        if flags & (flag::DIRECT | flag::PIPED | flag::STREAM) != 0 {
            nic.lock().release();
            return Soon::NeedsEntry;
        }
        match self.receive_unexpected(nic, found, entry) {
            Appended::Complete(event) => Soon::Received(Received::from(&event)),
            Appended::Posted(_) => Soon::NeedsEntry,
        }
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
            || control.transfers.count.get() != 0
            || nic.lock().is_awaited()
    }

    /// Takes in arrivals up to the first that no posted entry wants and that `entry` takes. `expected`: from whom an answer is expected, and how many looks
    /// for it were in vain.
    #[inline(always)]
    fn take_in_for(
        &self,
        nic: &Nic,
        pattern: &Pattern,
        entry: &MatchEntry,
        expected: Option<(u32, u32)>,
        result: &mut Soon,
        outcome: &mut Option<Outcome>,
    ) {
        let mut accept = |message: &Arrived| {
            if !matches!(result, Soon::NotYet) {
                return false;
            }
            let fits = |source, match_bits| {
                index::fits(pattern.source, pattern.match_bits, pattern.ignore_bits, source, match_bits)
            };
            // The usual case first: a short message, that is expected, and nobody else expects any.
            let (kind, small, source) = message::parts(message.tag);
            if kind == INLINE
                && fits(source, message.words[0])
                && nic.posted.0.order().count.get() == 0
                && let Place::Run(memory) = entry.memory.place()
            {
                let long = message.is_long();
                let length = if long { message.bytes(small) } else { small.min(INLINE_ROOM) };
                let placed = length.min(entry.length);
                if !long {
                    write_words(&message.words[lane::HEAD..], memory, placed);
                } else if self.place_long(self.me, entry.memory, source, message, placed).is_err() {
                    *result = self.placed_in_part(entry, source);
                    return false;
                }
                self.count_received(nic, Travel::Short, source, message.words[0], length as u64, false);
                *result = Soon::Received(Received {
                    failed: false,
                    initiator: ProcessId(source),
                    match_bits: message.words[0],
                    header_data: message.words[1],
                    requested_length: length as u64,
                    placed_length: placed as u64,
                });
                return true;
            }
            match Incoming::decode(message) {
                Some(Incoming::Put(arrival)) => {
                    if fits(arrival.source, arrival.match_bits) && !self.is_awaited(nic, &arrival) {
                        *result = match self.accept(nic, entry, &arrival) {
                            Soon::NotYet => self.placed_in_part(entry, arrival.source),
                            soon => soon,
                        };
                        return matches!(result, Soon::Received(_));
                    }
                    self.deliver(nic, self.me, Driver::Other, &arrival, outcome.get_or_insert_default())
                }
                _ => self.take_one(nic, self.me, Driver::Other, message, outcome.get_or_insert_default()),
            }
        };
        // In between nothing is looked at but the answer, so that it is seen as soon as it is there.
        let (came, all) = match expected {
            Some((source, looks)) => {
                // Of a receive with more room probably not.
                let answer = if entry.length <= Short::MOST_BYTES {
                    self.transport.next_answer(source)
                } else {
                    Some(Answer::Other)
                };
                let came = match answer {
                    None => false,
                    Some(Answer::Short(short))
                        if let Some(received) = self.receive_short(nic, entry, &short) =>
                    {
                        self.transport.pass_answer(source, looks);
                        *result = Soon::Received(received);
                        return;
                    }
                    Some(_) => self.transport.take_answer(source, looks, &mut accept),
                };
                (came, looks % LOOKS_AT_ALL == LOOKS_AT_ALL - 1)
            }
            None => (false, true),
        };
        if !came && all {
            self.transport.take(self.me, BATCH, &mut accept);
        }
        if outcome.as_ref().is_some_and(Outcome::is_empty) {
            *outcome = None;
        }
    }

    /// The memory of an entry may hold a part of a message, whose sender is behind. One that takes messages from anybody is posted now, for the rest of this one.
    #[cold]
    fn placed_in_part(&self, entry: &MatchEntry, source: u32) -> Soon {
        if entry.source.is_some() {
            return Soon::NotYet;
        }
        self.begun_from.store(source + 1, Ordering::Relaxed);
        Soon::NeedsEntry
    }

    /// Whether a posted entry takes this message.
    #[inline]
    pub fn is_awaited(&self, nic: &Nic, arrival: &Arrival) -> bool {
        nic.posted.0.order().count.get() != 0
            && Core::posted_for(nic, arrival.source, arrival.match_bits) != 0
    }

    /// The posted entry that takes a message of these criteria, or 0.
    #[inline]
    pub fn posted_for(nic: &Nic, source: u32, match_bits: u64) -> u32 {
        nic.posted.find(&nic.slab, &nic.classes, source, match_bits, |entry| is_plain(entry, source))
    }

    /// Gives a message to an entry that is not posted, if that is all there is to do.
    #[inline(always)]
    pub fn accept(&self, nic: &Nic, entry: &MatchEntry, arrival: &Arrival) -> Soon {
        let placed = arrival.length.min(entry.length as u64);
        let moved = match arrival.payload {
            Payload::Inline(words) if !arrival.ack => {
                let mut bytes = [0; INLINE_ROOM];
                message::spread(&words, &mut bytes, placed as usize);
                self.place(self.me, entry.memory, &bytes[..placed as usize])
            }
            Payload::Long(message) => {
                match self.place_long(self.me, entry.memory, arrival.source, message, placed as usize) {
                    Err(MemoryError::NotPermitted) => return Soon::NotYet,
                    moved => moved,
                }
            }
            Payload::Bulk(bulk) if !arrival.ack => {
                let moved =
                    self.place_bulk(self.me, entry.memory, arrival.source, Bulk(bulk), placed as usize);
                self.transport.discard(Bulk(bulk));
                moved
            }
            Payload::Stream(payload) if !arrival.ack => match entry.memory.place() {
                Place::Run(memory) if self.network().land_whole(Bulk(payload), memory, placed as usize) => {
                    Ok(())
                }
                _ => return Soon::NeedsEntry,
            },
            _ => return Soon::NeedsEntry,
        };
        let way = Travel::of(&arrival.payload, false);
        self.count_received(nic, way, arrival.source, arrival.match_bits, arrival.length, false);
        Soon::Received(Received {
            failed: moved.is_err(),
            initiator: ProcessId(arrival.source),
            match_bits: arrival.match_bits,
            header_data: arrival.header_data,
            requested_length: arrival.length,
            placed_length: placed,
        })
    }
}

#[inline(always)]
pub fn takes(entry: &MatchEntry, source: u32, match_bits: u64) -> bool {
    entry.source.is_none_or(|awaited| awaited.0 == source)
        && (match_bits ^ entry.match_bits) & !entry.ignore_bits == 0
}

/// How far a message is that an entry waits for.
pub enum Soon {
    /// Not there, or not all of it.
    NotYet,
    Received(Received),
    /// It is there, and stays where it is until an entry is posted for it; or there is other work.
    NeedsEntry,
}
