//! Peers on other nodes, whose memory is not shared: their NICs cannot be driven from here, and nothing of theirs can be
//! read. Everything travels in messages.
//!
//! ```text
//! short       STREAM with its payload  ->  matched: the payload goes into the user's buffer as it comes
//!                                          else: it is kept by the network, counted against the sender's credit
//! long        DIRECT, names the put    ->  matched, at once or later
//!                                      <-  PULL, names put and transfer
//!             DATA with its payload    ->  into the user's buffer as it comes
//! matched     with an ack              <-  NOTICE
//! ```
//! `LANDED` and `SENT` are what the network tells this process itself: a payload is in its place, a lent one is sent.

use crate::core::{Core, Driver, Outcome};
use crate::interface::*;
use crate::memory::{Memory, Place};
use crate::message::{self, DATA, DIRECT, FarMessage, LANDED, PULL, SENT, STREAM};
use crate::nic::Nic;
use crate::record::{flag, kind};
use crate::travel::Travel;
use crate::withdraw::NO_TRANSFER;
use parnass_base::atomics::Ordering;
use parnass_base::lane::Message;
use parnass_base::{Scratch, UserAddress};
use parnass_transport::{Bulk, Network};

/// Where a record's bytes that have arrived are counted.
const DONE: usize = 1;
/// A put that is shorter is direct because the program wants it so. A longer one is so because it is never copied within a node, which
/// says nothing of networks.
const CHOSEN_DIRECT: usize = 64 << 10;
/// The place of a peer whose NIC is not in this process's reach.
pub const FAR: u32 = u32::MAX;

/// A put that a target on another node has been told of, and has not yet received.
#[derive(Debug)]
pub struct FarPut {
    put: Put,
    /// Whether its target has asked for the bytes.
    pulled: bool,
    /// The bytes of a buffer with gaps, brought together; lent to the network.
    together: Option<Scratch>,
}

/// A payload that still comes, for a buffer with gaps.
#[derive(Debug)]
pub struct Landing {
    together: Scratch,
    description: u32,
    /// Where in the described bytes it belongs.
    offset: u64,
}

/// The name of no landing: the payload went to its place as it came.
const IN_PLACE: u64 = u64::MAX;

impl FarPut {
    /// Takes it back from a target that is dead.
    pub fn take_back(self) -> Put {
        // The network has let go of it; but a thread that was about to write it may not have.
        std::mem::forget(self.together);
        self.put
    }

    pub fn target(&self) -> u32 {
        self.put.target.0
    }

    /// Notes that `target` asks for `length` bytes; the put, if it may.
    fn pull(&mut self, target: u32, length: usize) -> Option<Put> {
        let may = !self.pulled && self.put.target.0 == target && length <= self.put.length;
        self.pulled |= may;
        may.then_some(self.put)
    }
}

impl Core {
    /// Whether the NIC of `process` is out of this one's reach.
    #[inline(always)]
    pub fn is_far(&self, process: u32) -> bool {
        self.places.get(process as usize).is_none_or(|place| *place == FAR)
    }

    pub fn network(&self) -> &dyn Network {
        self.transport.network().expect("a peer that is far is reached by a network")
    }

    /// Hands a put for another node to the network; `None`: no room now.
    #[cold]
    pub fn send_far(&self, put: &Put) -> Option<PutOutcome> {
        let target = put.target.0;
        let ack = put.ack == Ack::Matched;
        let network = self.network();
        self.expect(target, u32::from(ack));
        let unasked = put.protocol != Protocol::Direct || put.length > CHOSEN_DIRECT;
        let longest = if put.blocking { network.stream_bytes() } else { network.unasked_bytes() };
        if unasked && put.length <= longest {
            let words = [put.match_bits, put.header_data, put.user];
            let tag = message::tag(STREAM, usize::from(ack), self.me);
            let (source, _together) = self.together(put.source, put.length);
            if network.stream(target, tag, &words, source, put.length) {
                self.count_sent(Travel::Stream, put.length);
                return Some(PutOutcome::Done);
            }
        }
        let name = self.far_puts.keep(FarPut { put: *put, pulled: false, together: None });
        let words = [put.match_bits, put.header_data, name, put.length as u64, put.user];
        if self.transport.post(target, message::tag(DIRECT, usize::from(ack), self.me), &words) {
            self.count_sent(Travel::Announced, put.length);
            return Some(PutOutcome::Pending);
        }
        self.far_puts.forget(name);
        self.received(target, u32::from(ack));
        None
    }

    /// The first `length` bytes of memory of this process in a row, and what holds them if they had to be brought together.
    fn together(&self, memory: Memory, length: usize) -> (UserAddress, Option<Scratch>) {
        match memory.place() {
            Place::Run(address) => (address, None),
            Place::Described(number) => {
                let together = Scratch::new(length);
                self.gather(number, together.address(), length);
                (together.address(), Some(together))
            }
        }
    }

    /// Tells an initiator on another node of its put.
    #[cold]
    pub fn notify_far(&self, process: u32, event: &Event) {
        let (tag, words) = message::notice(self.me, event);
        self.post_or_delay(process, tag, words);
    }

    /// A matched message whose record is in no list: its payload goes to where the record says. `true`: it is there.
    pub fn land_stream(&self, nic: &Nic, index: u32, payload: u64) -> bool {
        let record = nic.slab.at(index);
        let placed = record.length.get();
        if placed == 0 {
            self.network().discard(Bulk(payload));
            return true;
        }
        record.kind.set(kind::TRANSFER);
        record.detail.set(0);
        record.data[DONE].store(0, Ordering::Relaxed);
        self.land(nic, index, payload, 0, placed)
    }

    fn land(&self, nic: &Nic, index: u32, payload: u64, offset: u64, length: u64) -> bool {
        let land = |target, landing| {
            let mut then = Message { tag: message::tag(LANDED, 0, self.me), ..Message::default() };
            then.words[..3].copy_from_slice(&[nic.slab.handle(index), length, landing]);
            self.network().land(Bulk(payload), target, length as usize, then)
        };
        let description = match Memory::from_word(nic.slab.at(index).address.get()).place() {
            Place::Run(address) => return land(address.offset(offset as i64), IN_PLACE),
            Place::Described(number) => number,
        };
        let together = Scratch::new(length as usize);
        let target = together.address();
        let landing = self.far_landings.keep(Landing { together, description, offset });
        let whole = land(target, landing);
        if whole {
            self.spread_landing(landing);
        }
        whole
    }

    /// All of a payload for a buffer with gaps is there: it goes to its places.
    fn spread_landing(&self, name: u64) {
        if let Some(landing) = self.far_landings.forget(name) {
            let Landing { together, description, offset } = landing;
            self.scatter(description, offset, together.address(), together.len());
        }
    }

    /// A matched long message whose record is in no list: asks its initiator for the bytes. `true`: there are none.
    pub fn pull(&self, nic: &Nic, index: u32, initiator: u32, put: u64) -> bool {
        let record = nic.slab.at(index);
        let placed = record.length.get();
        record.kind.set(kind::TRANSFER);
        record.detail.set(0);
        record.data[DONE].store(0, Ordering::Relaxed);
        let words = [put, nic.slab.handle(index), placed, 0];
        self.post_or_delay(initiator, message::tag(PULL, 0, self.me), words);
        placed == 0
    }

    /// Takes in what another node has sent that is no put, at this process's own NIC, whose lock is held.
    #[cold]
    pub fn take_far(&self, nic: &Nic, driver: Driver, message: &FarMessage, outcome: &mut Outcome) -> bool {
        let known = match *message {
            FarMessage::Pull { source, put, transfer, length } => {
                self.answer_pull(nic, driver, source, put, transfer, length, outcome)
            }
            FarMessage::Data { source, transfer, offset, payload, length } => {
                self.take_data(nic, driver, source, transfer, offset, payload, length, outcome)
            }
            FarMessage::Notice { source, event } if !self.is_far(source) => {
                self.tell(nic, driver, &event, flag::AWAITED, outcome);
                true
            }
            FarMessage::Notice { source, event } => {
                let awaited = self.tallies.of(source).outstanding.load(Ordering::Relaxed) != 0;
                if awaited && matches!(event.kind, EventKind::Ack | EventKind::Withdrawn) {
                    self.tell(nic, driver, &event, flag::AWAITED, outcome);
                }
                awaited
            }
            FarMessage::Landed { source, transfer, length, landing } if source == self.me => {
                self.spread_landing(landing);
                self.count_landed(nic, driver, transfer, length, outcome)
            }
            FarMessage::Sent { source, put } if source == self.me => {
                self.finish_put(nic, driver, put, EventKind::Send, outcome)
            }
            FarMessage::Landed { .. } | FarMessage::Sent { .. } => false,
        };
        if !known {
            nic.control.dropped.set(nic.control.dropped.get() + 1);
        }
        true
    }

    /// Tells this process, now or when it asks.
    pub fn tell(&self, nic: &Nic, driver: Driver, event: &Event, flags: u32, outcome: &mut Outcome) {
        if driver == Driver::Owner {
            if flags & flag::AWAITED != 0 {
                self.received(event.initiator.0, 1);
            }
            outcome.events.push(*event);
        } else {
            self.queue_copy(nic, event, flags);
        }
    }

    fn answer_pull(
        &self,
        nic: &Nic,
        driver: Driver,
        source: u32,
        name: u64,
        transfer: u64,
        length: u64,
        outcome: &mut Outcome,
    ) -> bool {
        let length = length as usize;
        let Some(put) = self.far_puts.find(name, |kept| kept.pull(source, length)).flatten() else {
            return false;
        };
        if length == 0 {
            let kind = if transfer == NO_TRANSFER { EventKind::Withdrawn } else { EventKind::Send };
            return self.finish_put(nic, driver, name, kind, outcome);
        }
        let mut then = Message { tag: message::tag(SENT, 0, self.me), ..Message::default() };
        then.words[0] = name;
        let tag = message::tag(DATA, 0, self.me);
        let (from, together) = self.together(put.source, length);
        if let Some(together) = together {
            self.far_puts.find(name, |kept| kept.together = Some(together));
        }
        self.network().lend(source, tag, transfer, from, length, then);
        true
    }

    fn finish_put(
        &self,
        nic: &Nic,
        driver: Driver,
        name: u64,
        kind: EventKind,
        outcome: &mut Outcome,
    ) -> bool {
        let Some(FarPut { put, .. }) = self.far_puts.forget(name) else { return false };
        self.tell(nic, driver, &put.event(kind), 0, outcome);
        true
    }

    fn take_data(
        &self,
        nic: &Nic,
        driver: Driver,
        source: u32,
        transfer: u64,
        offset: u64,
        payload: u64,
        length: u64,
        outcome: &mut Outcome,
    ) -> bool {
        let found = nic.slab.resolve(transfer).filter(|index| {
            let record = nic.slab.at(*index);
            let end = offset.checked_add(length);
            record.kind.get() == kind::TRANSFER
                && record.source.get() == source
                && end.is_some_and(|end| end <= record.length.get())
        });
        let Some(index) = found else {
            self.network().discard(Bulk(payload));
            return false;
        };
        if self.land(nic, index, payload, offset, length) {
            self.count_landed(nic, driver, transfer, length, outcome);
        }
        true
    }

    /// Bytes of a transfer are in their place; all of them: it is over.
    fn count_landed(
        &self,
        nic: &Nic,
        driver: Driver,
        transfer: u64,
        length: u64,
        outcome: &mut Outcome,
    ) -> bool {
        let Some(index) = nic.slab.resolve(transfer) else { return false };
        let record = nic.slab.at(index);
        if record.kind.get() != kind::TRANSFER {
            return false; // Its initiator is dead, and so it is over.
        }
        let done = record.data[DONE].load(Ordering::Relaxed) + length;
        record.data[DONE].store(done, Ordering::Relaxed);
        if done == record.length.get() {
            self.report(nic, index, EventKind::Put, driver, outcome);
        }
        true
    }
}
