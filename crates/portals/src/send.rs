//! Puts on their way out: into a mailbox, or into the queue of what has no room yet.

use crate::core::{Core, Outcome};
use crate::interface::*;
use crate::memory::{Memory, Place};
use crate::message::{self, BULK, DIRECT, INLINE, INLINE_ACK, INLINE_ACK_ROOM};
use crate::pipe::PIPE_LEAST;
use crate::travel::Travel;
use crate::ways::Counters;
use parnass_base::atomics::Ordering;
use parnass_base::clock::idle;
use parnass_base::{Scratch, lane};
use parnass_counters::DELAYED_SENDS;
use parnass_transport::{Follow, Posting, Waiting};
use std::collections::VecDeque;

/// Up to so many bytes with gaps between them are brought together before they are sent.
const TOGETHER: usize = 1024;

/// Longest message that goes through a mailbox where its sender awaits one too.
pub const EXCHANGED_IN_MAILBOX: usize = 2 << 10;

/// Longest message of which all is copied before its target hears of it.
pub const EXCHANGED_MOST: usize = 2 << 20;
/// So many long messages may follow the last one that came, and be parts of an exchange still.
const EXCHANGED_AFTER: u32 = 64;

/// Looks for room in a mailbox whose owner takes in what is there, at most; while nobody drives its NIC; and while it does not even wait, which who receives
/// what has come already never does.
const MOST_LOOKS: u32 = 4_000;
const IDLE_LOOKS: u32 = 30;
const AWAY_LOOKS: u32 = 10;
/// About a microsecond before each: who looks takes the line of the mailbox's head from its owner, who takes in some ten messages meanwhile.
const ROOM_STEPS: u32 = 1_000;

/// Something that waits for room in the mailbox of its target.
#[derive(Debug)]
pub enum Delayed {
    Put(Put),
    Message { tag: u32, words: [u64; 4] },
}

impl Core {
    #[inline]
    pub fn put(&self, put: &Put) -> Result<PutOutcome, PortalError> {
        let target = put.target.0;
        let Some(counters) = self.tallies.get(target) else {
            return Err(PortalError::NoSuchProcess(target, self.size()));
        };
        if counters.is_dead() {
            return Err(PortalError::Dead(target));
        }
        if counters.delayed() != 0 {
            self.catch_up(target);
        }
        if put.blocking && put.protocol != Protocol::Direct && self.transport.runs_ahead(put.length) {
            // What is in its own cache is sent and received several times faster than what has to come from memory.
            self.tries_while_taken_in(target, &mut || !self.transport.runs_ahead(put.length));
        }
        if counters.delayed() == 0
            && let Some(outcome) = self.send(put)
        {
            return Ok(outcome);
        }
        self.delay(target, Delayed::Put(*put));
        self.counters.count_any(DELAYED_SENDS, 1);
        Ok(PutOutcome::Pending)
    }

    /// The short way of a buffered put without an ack: through the mailbox, if there is room for it now and nothing
    /// waits to go before it. `false`: nothing was done.
    #[inline(always)]
    pub fn put_short(
        &self,
        target: u32,
        match_bits: u64,
        header_data: u64,
        source: Memory,
        length: usize,
        follow: Follow,
    ) -> bool {
        if !self.tallies.get(target).is_some_and(Counters::is_free) {
            return false;
        }
        let posted = match self.post_short(target, match_bits, header_data, source, length, follow) {
            Posting::Posted => true,
            Posting::Full => self.post_when_taken_in(target, match_bits, header_data, source, length, follow),
            Posting::TooLong => false,
        };
        if posted {
            self.counters.sent_short(length as u64);
        }
        posted
    }

    /// Whether the target probably sends a long message too, at the same time as this process sends it one, so that all of this one is copied into a piece
    /// before. Long messages come, then, and one is awaited, or `receives`: this process does not wait for its message, and so may be about to receive one; and
    /// the target is not known to answer, which must have the message before.
    pub fn exchanges(
        &self,
        target: u32,
        source: Memory,
        length: usize,
        otherwise: Protocol,
        receives: bool,
    ) -> bool {
        if length <= EXCHANGED_IN_MAILBOX || length > EXCHANGED_MOST || target == self.me {
            return false;
        }
        let answers = self.tallies.of(target).ask();
        let left = self.exchanging.load(Ordering::Relaxed);
        if left == 0 || answers || !receives && !self.own().receives() || self.is_far(target) {
            return false;
        }
        let moves_otherwise = || {
            let run = matches!(source.place(), Place::Run(_));
            self.transport.spins() == 0 && self.tuning.copies_once
                || run && self.prefers_direct(target, self.me, length)
                || self.transport.runs_ahead(length)
        };
        if otherwise == Protocol::Direct && moves_otherwise() {
            return false;
        }
        self.exchanging.store(left - 1, Ordering::Relaxed);
        true
    }

    /// Notes of a message that this process receives, if it is long, that such come, and whether its source has sent it as an answer.
    #[inline]
    pub fn note_long(&self, source: u32, length: usize) {
        if length > EXCHANGED_IN_MAILBOX {
            self.tallies.of(source).note_answer(self.transport.has_taken_in(source));
            self.exchanging.store(EXCHANGED_AFTER, Ordering::Relaxed);
        }
    }

    /// As [`Core::post_short`], for a mailbox that is full.
    #[cold]
    fn post_when_taken_in(
        &self,
        target: u32,
        match_bits: u64,
        header_data: u64,
        source: Memory,
        length: usize,
        follow: Follow,
    ) -> bool {
        self.tries_while_taken_in(target, &mut || {
            self.post_short(target, match_bits, header_data, source, length, follow) == Posting::Posted
        })
    }

    /// Tries to send what was delayed before more is.
    #[cold]
    fn catch_up(&self, target: u32) {
        let mut outcome = Outcome::default();
        self.tries_while_taken_in(target, &mut || self.send_delayed(&mut outcome));
        self.leave_events(&mut outcome);
    }

    /// Tries until it succeeds, as long as the target takes in what is there: room in its mailbox comes sooner than what is kept back
    /// could be noted down, and a flood needs no memory here. What comes here meanwhile is taken in. A target that computes instead is waited for but once.
    fn tries_while_taken_in(&self, target: u32, attempt: &mut dyn FnMut() -> bool) -> bool {
        if self.is_far(target) || target == self.me || self.transport.spins() == 0 {
            return false;
        }
        let counters = self.tallies.of(target);
        let (mut idle_looks, mut away_looks) = (0, 0);
        let mut is_away = counters.is_away();
        for _ in 0..MOST_LOOKS {
            // Two that send to each other would wait for each other.
            if self.transport.poll(self.me) && self.progress_and_leave_events() {
                (idle_looks, away_looks, is_away) = (0, 0, false);
            } else {
                if self.transport.shown(target) == Waiting::Not {
                    away_looks += 1;
                    if is_away || away_looks > AWAY_LOOKS {
                        counters.note_away(true);
                        return false;
                    }
                }
                idle(ROOM_STEPS);
            }
            if attempt() {
                counters.note_away(false);
                return true;
            }
            // While somebody drives that NIC, it goes on soon: at worst the kernel is just giving it memory.
            idle_looks += u32::from(!self.nic_of(target).lock().is_held());
            if idle_looks == IDLE_LOOKS {
                return false;
            }
        }
        false
    }

    #[inline(always)]
    fn post_short(
        &self,
        target: u32,
        match_bits: u64,
        header_data: u64,
        source: Memory,
        length: usize,
        follow: Follow,
    ) -> Posting {
        let tag = message::tag(INLINE, lane::last_bytes(length), self.me);
        let head = [match_bits, header_data];
        match source.place() {
            Place::Run(address) => self.transport.post_bytes(target, tag, head, address, length, follow),
            Place::Described(number) => self.post_described(target, tag, head, number, length, follow),
        }
    }

    #[cold]
    fn post_described(
        &self,
        target: u32,
        tag: u32,
        head: [u64; 2],
        number: u32,
        length: usize,
        follow: Follow,
    ) -> Posting {
        if follow == Follow::Exchange {
            return Posting::TooLong;
        }
        if length <= TOGETHER {
            let together = Scratch::new(length);
            self.gather(number, together.address(), length);
            return self.transport.post_bytes(target, tag, head, together.address(), length, follow);
        }
        let mut posting = Posting::TooLong;
        self.with_described(number, &mut |stream| {
            let mut write = |at: usize, part, now| stream.gather(at as u64, part, now);
            posting = self.transport.post_written(target, tag, head, length, &mut write);
        });
        posting
    }

    #[cold]
    fn delay(&self, target: u32, what: Delayed) {
        let mut queues = self.delayed();
        if queues.len() <= target as usize {
            queues.resize_with(target as usize + 1, VecDeque::new);
        }
        queues[target as usize].push_back(what);
        self.tallies.of(target).delay();
        self.delayed_count.fetch_add(1, Ordering::Relaxed);
        drop(queues);
        self.transport.ring_helper(self.me);
    }

    /// Hands a put to the transport; `None`: no room now.
    #[inline]
    fn send(&self, put: &Put) -> Option<PutOutcome> {
        let transport = &*self.transport;
        let target = put.target.0;
        let ack = put.ack == Ack::Matched;
        let copied = put.protocol != Protocol::Direct;
        let exchanged = put.protocol == Protocol::Exchanged;
        if copied {
            if !ack {
                match self.post_copied(put) {
                    Posting::Posted => return Some(PutOutcome::Done),
                    Posting::Full => return None,
                    Posting::TooLong => (),
                }
            }
            if ack && put.length <= INLINE_ACK_ROOM {
                let [a, b, c, d] = self.words(put.source, put.length);
                let words = [put.match_bits, put.header_data, put.user, a, b, c, d];
                let tag = message::tag(INLINE_ACK, put.length, self.me);
                let used = 3 + put.length.div_ceil(8);
                self.expect(target, 1);
                if transport.post(target, tag, &words[..used]) {
                    self.counters.sent_short_by_any(put.length as u64);
                    return Some(PutOutcome::Done);
                }
                self.received(target, 1);
                return None;
            }
        }
        if self.is_far(target) {
            return self.send_far(put);
        }
        let mut direct = false;
        // In a row it is not what one message takes that counts, and a pipe makes its two ends wait for each other.
        let in_row = copied && put.length >= PIPE_LEAST && transport.follows(target);
        if put.length >= PIPE_LEAST && !in_row && !exchanged && self.is_taken_at_once(put) {
            direct = matches!(put.source.place(), Place::Run(_))
                && self.prefers_direct(target, self.me, put.length);
            if !direct && let Some(outcome) = self.send_piped(put) {
                self.count_sent(Travel::Pipe, put.length);
                return Some(outcome);
            }
        }
        if copied
            && !direct
            && let Some(posted) = self.send_piece(put)
        {
            return posted.then_some(PutOutcome::Done);
        }
        let words = [put.match_bits, put.header_data, put.source.word(), put.length as u64, put.user];
        let tag = message::tag(DIRECT, usize::from(ack), self.me);
        self.expect(target, 1 + u32::from(ack));
        if transport.post(target, tag, &words) {
            self.count_sent(Travel::Direct, put.length);
            // While this process waits it does the work itself.
            if transport.shown(target) == Waiting::Not && !self.is_attended() && !self.is_thrifty() {
                transport.ring_helper_that_waits(target);
            }
            return Some(PutOutcome::Pending);
        }
        self.received(target, 1 + u32::from(ack));
        None
    }

    /// As [`Core::post_short`], of any put that is copied and wants no ack.
    #[inline]
    fn post_copied(&self, put: &Put) -> Posting {
        let exchanged = put.protocol == Protocol::Exchanged;
        let follow = if exchanged { Follow::Exchange } else { Follow::Nothing };
        let (bits, header_data) = (put.match_bits, put.header_data);
        let posting = self.post_short(put.target.0, bits, header_data, put.source, put.length, follow);
        if posting == Posting::Posted {
            self.counters.sent_short_by_any(put.length as u64);
        }
        posting
    }

    /// Sends a message in a piece of shared memory. `None`: there is none for it; `Some(false)`: the mailbox has no room now.
    #[inline]
    fn send_piece(&self, put: &Put) -> Option<bool> {
        let (target, ack) = (put.target.0, put.ack == Ack::Matched);
        let bulk = self.transport.claim(put.length)?;
        if put.protocol == Protocol::Exchanged {
            self.fill_exchanged(bulk, put.source, put.length);
        } else {
            self.fill(target, bulk, 0, put.source, 0, put.length);
        }
        let words = [put.match_bits, put.header_data, bulk.0, put.length as u64, put.user];
        let tag = message::tag(BULK, usize::from(ack), self.me);
        self.expect(target, u32::from(ack));
        let posted = self.transport.post(target, tag, &words);
        if posted {
            self.count_sent(Travel::Chunk, put.length);
        } else {
            self.received(target, u32::from(ack));
            self.transport.discard(bulk);
        }
        Some(posted)
    }

    /// The short way of a put that is [`Protocol::Exchanged`], without an ack. `false`: nothing was done.
    pub fn put_exchanged(&self, put: &Put) -> bool {
        if !self.tallies.get(put.target.0).is_some_and(Counters::is_free) {
            return false;
        }
        match self.post_copied(put) {
            Posting::Posted => true,
            Posting::Full => false,
            Posting::TooLong => self.send_piece(put) == Some(true),
        }
    }

    /// Notes that `count` events will come from `target`.
    #[inline]
    pub fn expect(&self, target: u32, count: u32) {
        if count != 0 && !self.tallies.of(target).is_dead() {
            self.tallies.of(target).outstanding.fetch_add(count, Ordering::Relaxed);
            self.outstanding_count.fetch_add(count, Ordering::Relaxed);
        }
    }

    pub fn received(&self, target: u32, count: u32) {
        // Of a dead one nothing is awaited.
        if count != 0 && !self.tallies.of(target).is_dead() {
            self.tallies.of(target).outstanding.fetch_sub(count, Ordering::Relaxed);
            self.outstanding_count.fetch_sub(count, Ordering::Relaxed);
        }
    }

    /// Tells an initiator of its put, if there is room for it now.
    pub fn post_notice(&self, process: u32, event: &Event) -> bool {
        let (tag, words) = message::notice(self.me, event);
        self.transport.post(process, tag, &words)
    }

    /// Sends a message that belongs to a transfer, now or later.
    pub fn post_or_delay(&self, target: u32, tag: u32, words: [u64; 4]) {
        if self.tallies.of(target).is_dead() {
            return;
        }
        if self.tallies.of(target).delayed() != 0 || !self.transport.post(target, tag, &words) {
            self.delay(target, Delayed::Message { tag, words });
        }
    }

    /// Tries again to send what was delayed. Returns whether anything went.
    #[cold]
    pub fn send_delayed(&self, outcome: &mut Outcome) -> bool {
        let Ok(mut queues) = self.delayed.try_lock() else { return false };
        let mut moved = false;
        for (target, queue) in (0..).zip(queues.iter_mut()).filter(|(_, queue)| !queue.is_empty()) {
            let counters = self.tallies.of(target);
            while let Some(first) = queue.front() {
                match first {
                    Delayed::Put(put) => match self.send(put) {
                        None => break,
                        Some(PutOutcome::Done) => outcome.events.push(put.event(EventKind::Send)),
                        Some(PutOutcome::Pending) => (),
                    },
                    Delayed::Message { tag, words } => {
                        if !self.transport.post(target, *tag, words) {
                            break;
                        }
                    }
                }
                queue.pop_front();
                counters.go(1);
                counters.note_away(false);
                self.delayed_count.fetch_sub(1, Ordering::Relaxed);
                moved = true;
            }
        }
        moved
    }
}
