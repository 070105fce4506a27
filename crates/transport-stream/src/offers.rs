//! What one link lends to a peer that reads it where it lies.
//!
//! It is offered in pieces, a few at a time; the memory of a piece is open to the peer from the offer to the answer. The answer may be
//! that it is to be sent instead. When all pieces of what was lent are settled, its owner is told.

use crate::pipe::Region;
use crate::wire::OfferWords;
use parnass_base::UserAddress;
use parnass_base::lane::Message;
use std::collections::VecDeque;

/// Pieces that may be on offer at once.
pub const MOST: usize = 4;
/// The longest piece, in bytes.
pub const LONGEST: usize = 4 << 20;

/// What a peer says of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It has been read.
    Taken,
    /// It is wanted nowhere.
    Declined,
    /// It is to be sent.
    Instead,
}

/// A piece of what is lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Of what.
    pub name: u64,
    /// Where it begins, in what is lent and in memory.
    pub offset: usize,
    pub source: UserAddress,
    pub length: usize,
}

/// What is lent, cut into pieces from its beginning.
#[derive(Debug)]
struct Lent {
    name: u64,
    tag: u32,
    word: u64,
    source: UserAddress,
    length: usize,
    /// Bytes in pieces, and pieces that are not settled.
    cut: usize,
    unsettled: usize,
    then: Message,
}

/// A piece that was offered.
#[derive(Debug)]
struct Offer {
    number: u64,
    piece: Piece,
    /// `None`: it is sent.
    region: Option<u64>,
}

/// See the module's description.
#[derive(Debug, Default)]
pub struct Offers {
    lent: VecDeque<Lent>,
    offers: Vec<Offer>,
    names: u64,
    numbers: u64,
}

impl Offers {
    /// Adds what is lent.
    pub fn add(&mut self, tag: u32, word: u64, source: UserAddress, length: usize, then: Message) {
        let (name, cut, unsettled) = (self.names, 0, 0);
        self.names += 1;
        self.lent.push_back(Lent { name, tag, word, source, length, cut, unsettled, then });
    }

    /// Whether there is nothing, or nothing any more.
    pub fn is_empty(&self) -> bool {
        self.lent.is_empty()
    }

    /// What may be offered now.
    pub fn next(&self, longest: usize) -> Option<Piece> {
        if self.offers.len() >= MOST {
            return None;
        }
        let lent = self.lent.iter().find(|lent| lent.cut < lent.length)?;
        let length = (lent.length - lent.cut).min(LONGEST).min(longest);
        let source = lent.source.offset(lent.cut as i64);
        Some(Piece { name: lent.name, offset: lent.cut, source, length })
    }

    /// Cuts off the piece that [`Offers::next`] has given; the tag and the word of what it is of.
    pub fn skip(&mut self, piece: &Piece) -> (u32, u64) {
        let lent =
            self.lent.iter_mut().find(|lent| lent.name == piece.name).expect("a piece of what is lent");
        lent.cut += piece.length;
        lent.unsettled += 1;
        (lent.tag, lent.word)
    }

    /// As [`Offers::skip`], and notes that it is on offer; the tag and the words that say so.
    pub fn offer(&mut self, piece: &Piece, region: &Region) -> (u32, OfferWords) {
        let (tag, word) = self.skip(piece);
        let number = self.numbers;
        self.numbers += 1;
        self.offers.push(Offer { number, piece: *piece, region: Some(region.name) });
        let (offset, length) = (piece.offset as u64, piece.length as u64);
        let (key, address) = (region.remote.key, region.remote.address);
        (tag, OfferWords { word, offset, length, key, address, number })
    }

    /// The peer reads this offer no more: its region, and where its bytes are. `None`: there is none that is open.
    pub fn close(&mut self, number: u64) -> Option<(u64, UserAddress, usize)> {
        let offer = self.offers.iter_mut().find(|offer| offer.number == number)?;
        let region = offer.region.take()?;
        Some((region, offer.piece.source, offer.piece.length))
    }

    /// Nothing more is to be done for an offer; what is to be told, if it was the last one of what was lent.
    pub fn settle(&mut self, number: u64) -> Option<Message> {
        let at = self.offers.iter().position(|offer| offer.number == number)?;
        let name = self.offers.swap_remove(at).piece.name;
        self.settle_piece(name)
    }

    /// As [`Offers::settle`], for a piece that was never offered, of what has this name.
    pub fn settle_piece(&mut self, name: u64) -> Option<Message> {
        let at = self.lent.iter().position(|lent| lent.name == name)?;
        let lent = &mut self.lent[at];
        lent.unsettled -= 1;
        if lent.unsettled != 0 || lent.cut != lent.length {
            return None;
        }
        self.lent.remove(at).map(|lent| lent.then)
    }

    /// The regions that are open.
    pub fn regions(self) -> Vec<u64> {
        self.offers.into_iter().filter_map(|offer| offer.region).collect()
    }
}
