//! What one link has to send: frames that were gathered, and payloads that are lent.
//!
//! The stream of a connection is a row of items. Small frames are gathered in one run of bytes; a payload that is lent
//! is cut into frames, one of which is in the row at a time, so that small frames pass between them. Where the peer can read
//! it, it is offered instead, and does not come into the row.

use crate::offers::{Answer, Offers, Piece};
use crate::pipe::Region;
use crate::wire::{FrameKind, Head, OfferWords, PAYLOAD_MAXIMUM};
use parnass_base::UserAddress;
use parnass_base::lane::Message;
use parnass_base::socket::{PARTS, Part};
use std::collections::VecDeque;

/// Longest payload of one frame of what is lent, in bytes.
const CHUNK: usize = PAYLOAD_MAXIMUM as usize;
/// A run of bytes that is longer gets nothing more appended.
const RUN: usize = 64 << 10;

/// One item of the row.
#[derive(Debug)]
enum Item {
    /// Frames, of which `start` bytes have been sent.
    Bytes { bytes: Vec<u8>, start: usize },
    /// A payload, or the rest of it, where it lies, and what is to be done when it is sent.
    User { address: UserAddress, left: usize, then: Option<After> },
}

/// What begins the frames of what is lent.
#[derive(Clone, Copy, Debug)]
enum Front {
    /// Messages with this tag and word; the payload is cut off at `offset` of a longer one.
    Message { tag: u32, word: u64, offset: usize },
    /// Parts of the offer with this number.
    Part(u64),
}

/// What is to be done when what is lent is sent.
#[derive(Clone, Copy, Debug)]
enum After {
    /// This is told.
    Tell(Message),
    /// A piece of what is offered with this name is sent, which was not offered itself.
    Piece(u64),
    /// The offer with this number is settled.
    Offer(u64),
}

/// A payload that is sent from where it lies.
#[derive(Debug)]
struct Lent {
    front: Front,
    source: UserAddress,
    length: usize,
    sent: usize,
    then: After,
}

/// What an answer to an offer leaves to be done.
#[derive(Debug)]
pub struct Answered {
    /// The region that was offered is to be closed.
    pub region: u64,
    /// And this is to be told.
    pub then: Option<Message>,
}

/// The row.
#[derive(Debug, Default)]
pub struct Outgoing {
    items: VecDeque<Item>,
    lent: VecDeque<Lent>,
    offers: Offers,
    /// Bytes in items that are copies.
    copied: usize,
    /// User items in the row.
    in_place: usize,
    /// The memory of a run that is sent, for the next.
    spare: Vec<u8>,
}

impl Outgoing {
    /// Whether there is nothing to send. What is offered waits for its peer.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.lent.is_empty()
    }

    /// Bytes that are kept in copy.
    pub fn copied(&self) -> usize {
        self.copied
    }

    /// The run of bytes at the end of the row, a new one if there is none or if it is long.
    fn run(&mut self) -> &mut Vec<u8> {
        let open = matches!(self.items.back(), Some(Item::Bytes { bytes, .. }) if bytes.len() < RUN);
        if !open {
            let bytes = std::mem::take(&mut self.spare);
            self.items.push_back(Item::Bytes { bytes, start: 0 });
        }
        match self.items.back_mut() {
            Some(Item::Bytes { bytes, .. }) => bytes,
            _ => unreachable!("a run was just made"),
        }
    }

    /// Adds a frame without payload, or the front of one whose payload is added next.
    pub fn frame(&mut self, head: &Head, words: &[u64]) {
        let mut bytes = [0; Head::BYTES + parnass_base::lane::WORDS * 8];
        bytes[..Head::BYTES].copy_from_slice(&head.encode());
        for (place, word) in bytes[Head::BYTES..].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let bytes = &bytes[..head.bytes_before_payload()];
        self.copied += bytes.len();
        self.run().extend_from_slice(bytes);
    }

    /// Adds a payload by copying it.
    pub fn copy_payload(&mut self, source: UserAddress, length: usize) {
        self.copied += length;
        let bytes = self.run();
        let at = bytes.len();
        bytes.resize(at + length, 0);
        source.read(&mut bytes[at..]);
    }

    /// Adds a payload where it lies, for one attempt to send: [`Outgoing::keep`] must follow.
    pub fn place_payload(&mut self, source: UserAddress, length: usize) {
        self.items.push_back(Item::User { address: source, left: length, then: None });
        self.in_place += 1;
    }

    /// Copies what is left of a payload that [`Outgoing::place_payload`] added last.
    pub fn keep(&mut self) {
        if let Some(Item::User { address, left, then: None }) = self.items.back() {
            let (address, left) = (*address, *left);
            self.items.pop_back();
            self.in_place -= 1;
            self.copy_payload(address, left);
        }
    }

    /// Adds a payload that is sent from where it lies.
    pub fn lend(&mut self, tag: u32, word: u64, source: UserAddress, length: usize, then: Message) {
        let front = Front::Message { tag, word, offset: 0 };
        self.lent.push_back(Lent { front, source, length, sent: 0, then: After::Tell(then) });
    }

    /// What is lent, of which nothing was sent yet and which has at least `least` bytes, is to be offered.
    pub fn set_apart(&mut self, least: usize) {
        let offers = &mut self.offers;
        self.lent.retain(|lent| match *lent {
            Lent {
                front: Front::Message { tag, word, .. },
                source,
                length,
                sent: 0,
                then: After::Tell(then),
            } if length >= least => {
                offers.add(tag, word, source, length, then);
                false
            }
            _ => true,
        });
    }

    /// Whether something is lent that does not stand in the row.
    pub fn is_lending(&self) -> bool {
        !self.lent.is_empty() || !self.offers.is_empty()
    }

    /// Whether nothing is offered, or to be offered.
    pub fn is_settled(&self) -> bool {
        self.offers.is_empty()
    }

    /// What may be offered next, of at most `longest` bytes: [`Outgoing::offer`] or [`Outgoing::send_piece`] must follow.
    pub fn next_piece(&self, longest: usize) -> Option<Piece> {
        self.offers.next(longest)
    }

    /// Offers a piece, which is open to the peer as `region`; tag and words of the frame that says so.
    pub fn offer(&mut self, piece: &Piece, region: &Region) -> (u32, OfferWords) {
        self.offers.offer(piece, region)
    }

    /// Sends a piece that cannot be offered.
    pub fn send_piece(&mut self, piece: &Piece) {
        let (tag, word) = self.offers.skip(piece);
        let Piece { name, offset, source, length } = *piece;
        let front = Front::Message { tag, word, offset };
        self.lent.push_back(Lent { front, source, length, sent: 0, then: After::Piece(name) });
    }

    /// Takes an answer to an offer; `None`: there is no such offer.
    pub fn answer(&mut self, number: u64, answer: Answer) -> Option<Answered> {
        let (region, source, length) = self.offers.close(number)?;
        let mut then = None;
        if answer == Answer::Instead {
            let (front, after) = (Front::Part(number), After::Offer(number));
            self.lent.push_back(Lent { front, source, length, sent: 0, then: after });
        } else {
            then = self.offers.settle(number);
        }
        Some(Answered { region, then })
    }

    /// Forgets all that is not sent. What is offered stays so.
    pub fn clear(&mut self) {
        *self = Outgoing { offers: std::mem::take(&mut self.offers), ..Outgoing::default() };
    }

    /// Forgets all that is offered; the regions that are to be closed.
    pub fn withdraw(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.offers).regions()
    }

    /// Puts the next frame of what is lent into the row, in turn, unless one is there.
    fn refill(&mut self) {
        if self.in_place != 0 {
            return;
        }
        let Some(mut lent) = self.lent.pop_front() else { return };
        let length = (lent.length - lent.sent).min(CHUNK);
        let payload = length as u32;
        let head = Head { kind: FrameKind::Message, words: 2, counted: false, tag: 0, returned: 0, payload };
        match lent.front {
            Front::Message { tag, word, offset } => {
                self.frame(&Head { tag, ..head }, &[word, (offset + lent.sent) as u64]);
            }
            Front::Part(number) => {
                self.frame(&Head { kind: FrameKind::Part, words: 1, ..head }, &[number]);
            }
        }
        let address = lent.source.offset(lent.sent as i64);
        lent.sent += length;
        let then = (lent.sent == lent.length).then_some(lent.then);
        self.items.push_back(Item::User { address, left: length, then });
        self.in_place += 1;
        if then.is_none() {
            self.lent.push_back(lent);
        }
    }

    /// What there is to send, if it is one run of bytes.
    pub fn one_run(&self) -> Option<&[u8]> {
        match self.items.front() {
            Some(Item::Bytes { bytes, start }) if self.items.len() == 1 && self.lent.is_empty() => {
                Some(&bytes[*start..])
            }
            _ => None,
        }
    }

    /// What can be sent next.
    pub fn parts(&mut self) -> Vec<Part<'_>> {
        self.refill();
        let part = |item| match item {
            &Item::User { address, left, .. } => Part::User(address, left),
            Item::Bytes { bytes, start } => Part::Bytes(&bytes[*start..]),
        };
        self.items.iter().take(PARTS).map(part).collect()
    }

    /// Notes that `count` bytes of the last parts are sent; tells of every lent payload that is sent whole.
    pub fn sent(&mut self, mut count: usize, finished: &mut dyn FnMut(Message)) {
        while let Some(first) = self.items.front_mut() {
            match first {
                Item::Bytes { bytes, start } => {
                    let step = count.min(bytes.len() - *start);
                    *start += step;
                    count -= step;
                    self.copied -= step;
                    if *start != bytes.len() {
                        return;
                    }
                    self.spare = std::mem::take(bytes);
                    self.spare.clear();
                }
                Item::User { address, left, then } => {
                    let step = count.min(*left);
                    *address = address.offset(step as i64);
                    *left -= step;
                    count -= step;
                    if *left != 0 {
                        return;
                    }
                    self.in_place -= 1;
                    let told = match then.take() {
                        Some(After::Tell(then)) => Some(then),
                        Some(After::Piece(name)) => self.offers.settle_piece(name),
                        Some(After::Offer(number)) => self.offers.settle(number),
                        None => None,
                    };
                    told.into_iter().for_each(&mut *finished);
                }
            }
            self.items.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parnass_base::Scratch;

    fn head(words: u8, payload: usize) -> Head {
        let kind = FrameKind::Message;
        Head { kind, words, counted: true, tag: 9, returned: 0, payload: payload as u32 }
    }

    /// Sends all of it in steps of `step` bytes: the bytes, and what was told to be finished.
    fn drain(outgoing: &mut Outgoing, step: usize) -> (Vec<u8>, Vec<u32>) {
        let (mut stream, mut finished) = (Vec::new(), Vec::new());
        while !outgoing.is_empty() {
            let mut bytes = Vec::new();
            for part in outgoing.parts() {
                match part {
                    Part::Bytes(more) => bytes.extend(more),
                    Part::User(address, length) => {
                        let at = bytes.len();
                        bytes.resize(at + length, 0);
                        address.read(&mut bytes[at..]);
                    }
                }
            }
            bytes.truncate(step);
            stream.extend(&bytes);
            outgoing.sent(bytes.len(), &mut |then| finished.push(then.tag));
        }
        (stream, finished)
    }

    #[test]
    fn the_stream_is_the_same_however_it_is_cut() {
        let source = Scratch::new(3 * CHUNK);
        source.address().write(&(0..3 * CHUNK).map(|index| (index / 977) as u8).collect::<Vec<_>>());
        let fill = || {
            let mut outgoing = Outgoing::default();
            outgoing.frame(&head(1, 0), &[1]);
            outgoing.lend(5, 6, source.address(), 2 * CHUNK + 10, Message { tag: 77, words: [0; 7] });
            outgoing.lend(5, 7, source.address(), 10, Message { tag: 78, words: [0; 7] });
            outgoing.frame(&head(2, 300), &[2, 3]);
            outgoing.place_payload(source.address(), 300);
            outgoing.keep();
            outgoing
        };
        let (whole, finished) = drain(&mut fill(), usize::MAX);
        assert_eq!(finished, [78, 77]);
        assert_eq!(whole.len(), 24 + 32 + 300 + 4 * 32 + 2 * CHUNK + 20);
        for step in [1_000, 70_001] {
            assert_eq!(drain(&mut fill(), step), (whole.clone(), finished.clone()));
        }
        assert_eq!(fill().copied(), 24 + 32 + 300);
    }
}
