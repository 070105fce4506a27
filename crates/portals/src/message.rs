//! What travels in a message: a tag of 32 bits (kind, a small number, the source) and seven words.
//!
//! | kind        | words                                                | small number          |
//! |-------------|------------------------------------------------------|-----------------------|
//! | `INLINE`    | match bits, header data, bytes, and more slots of them; or their number, and a run of them | bytes in the last slot |
//! | `INLINE_ACK`| match bits, header data, user, up to 32 bytes        | bytes                 |
//! | `BULK`      | match bits, header data, piece, length, user         | 1 if an ack is wanted |
//! | `DIRECT`    | match bits, header data, address, length, user       | 1 if an ack is wanted |
//! | `PIECE`     | handle of the transfer, offset, piece, length        | 0                     |
//! | `PIPED`     | match bits, header data, piece, length, user         | 1 if an ack is wanted |
//! | `WITHDRAW`  | match bits, header data; of a put that is to go away if nobody has received it | 0 |
//! | `NOTICE`    | user, match bits, header data, length; to the initiator of a put | kind of the event     |
//!
//! Between nodes, where the last two words of a message with a payload name the payload and its length:
//!
//! | kind        | words                                                | small number          |
//! |-------------|------------------------------------------------------|-----------------------|
//! | `STREAM`    | match bits, header data, user, with a payload        | 1 if an ack is wanted |
//! | `DIRECT`    | match bits, header data, name of the put, length, user | 1 if an ack is wanted |
//! | `PULL`      | name of the put, handle of the transfer, length      | 0                     |
//! | `DATA`      | handle of the transfer, offset, with a payload       | 0                     |
//! | `LANDED`    | handle of the transfer, length, landing; to oneself  | 0                     |
//! | `SENT`      | name of the put; to oneself                          | 0                     |

use crate::interface::{Event, EventKind, ProcessId};
use crate::record::Entry;
use parnass_base::UserAddress;
use parnass_base::lane::{Arrived, Message};
use parnass_transport::{BULK_WORD, LENGTH_WORD};

pub const INLINE: u32 = 1;
pub const INLINE_ACK: u32 = 2;
pub const BULK: u32 = 3;
pub const DIRECT: u32 = 4;
pub const PIECE: u32 = 5;
pub const PIPED: u32 = 6;
pub const STREAM: u32 = 7;
pub const PULL: u32 = 8;
pub const DATA: u32 = 9;
pub const NOTICE: u32 = 10;
pub const LANDED: u32 = 11;
pub const SENT: u32 = 12;
pub const WITHDRAW: u32 = 13;

/// Networks refuse all others.
const _: () = {
    let kinds = [INLINE, INLINE_ACK, DIRECT, STREAM, PULL, DATA, NOTICE, WITHDRAW];
    let (mut crossing, mut index) = (1, 0);
    while index < kinds.len() {
        crossing |= 1 << kinds[index];
        index += 1;
    }
    assert!(crossing == parnass_transport::CROSSING_KINDS);
    assert!(SOURCE_BITS + SMALL_BITS == parnass_transport::KIND_SHIFT);
};

/// Bytes that an inline message without and with ack can carry.
pub const INLINE_ROOM: usize = 40;
pub const INLINE_ACK_ROOM: usize = 32;

const SOURCE_BITS: u32 = parnass_transport::PROCESS_BITS;
const SMALL_BITS: u32 = 8;

/// A tag from its parts.
#[inline(always)]
pub fn tag(kind: u32, small: usize, source: u32) -> u32 {
    kind << (SOURCE_BITS + SMALL_BITS) | (small as u32) << SOURCE_BITS | source
}

/// The parts of a tag: kind, small number, source.
#[inline(always)]
pub fn parts(tag: u32) -> (u32, usize, u32) {
    let small = tag >> SOURCE_BITS & ((1 << SMALL_BITS) - 1);
    (tag >> (SOURCE_BITS + SMALL_BITS), small as usize, tag & ((1 << SOURCE_BITS) - 1))
}

/// What process `source` tells the initiator of a put that it has received: tag and words.
pub fn notice(source: u32, event: &Event) -> (u32, [u64; 4]) {
    let tag = tag(NOTICE, event.kind as usize, source);
    (tag, [event.user, event.match_bits, event.header_data, event.requested_length])
}

/// Up to 40 bytes from `source`, as words.
#[inline(always)]
pub fn gather<const WORDS: usize>(source: UserAddress, length: usize, words: &mut [u64; WORDS]) {
    let mut bytes = [0; 8];
    if length == 8 {
        source.read(&mut bytes);
        words[0] = u64::from_ne_bytes(bytes);
        return;
    }
    let (whole, rest) = (length / 8, length % 8);
    for (number, word) in words.iter_mut().enumerate().take(whole) {
        source.offset(number as i64 * 8).read(&mut bytes);
        *word = u64::from_ne_bytes(bytes);
    }
    if rest != 0 {
        bytes = [0; 8];
        source.offset(whole as i64 * 8).read(&mut bytes[..rest]);
        words[whole] = u64::from_ne_bytes(bytes);
    }
}

/// The first `length` bytes of `words`, as `bytes`.
#[inline(always)]
pub fn spread(words: &[u64], bytes: &mut [u8; INLINE_ROOM], length: usize) {
    for (chunk, word) in bytes.chunks_exact_mut(8).zip(words).take(length.div_ceil(8)) {
        chunk.copy_from_slice(&word.to_ne_bytes());
    }
}

/// A message as the target sees it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    pub source: u32,
    pub match_bits: u64,
    pub header_data: u64,
    /// Bytes as sent.
    pub length: u64,
    pub ack: bool,
    /// What the events at the initiator carry.
    pub user: u64,
    pub payload: Payload<'a>,
}

impl Arrival<'_> {
    /// Notes in a record who has sent it, and what it is.
    #[inline(always)]
    pub fn note_in(&self, record: &Entry) {
        record.source.set(self.source);
        record.match_bits.set(self.match_bits);
        record.header_data.set(self.header_data);
        record.requested.set(self.length);
        record.remote_user.set(self.user);
    }
}

/// Where the bytes of a message are.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    Inline([u64; 5]),
    Bulk(u64),
    Direct(u64),
    /// In a piece that is being filled.
    Piped(u64),
    /// In this message, in several slots or in a run.
    Long(&'a Arrived<'a>),
    /// A payload that the network keeps, or that still arrives.
    Stream(u64),
}

/// A part of a matched message, where data cannot go directly.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub source: u32,
    pub transfer: u64,
    pub offset: u64,
    pub bulk: u64,
    pub length: u64,
}

/// What another node sends besides puts, and what the network tells this process.
#[derive(Clone, Copy, Debug)]
pub enum FarMessage {
    Pull { source: u32, put: u64, transfer: u64, length: u64 },
    Data { source: u32, transfer: u64, offset: u64, payload: u64, length: u64 },
    Notice { source: u32, event: Event },
    Landed { source: u32, transfer: u64, length: u64, landing: u64 },
    Sent { source: u32, put: u64 },
}

impl FarMessage {
    #[cold]
    fn decode(message: &Message) -> Option<FarMessage> {
        let (kind, small, source) = parts(message.tag);
        let words = &message.words;
        Some(match kind {
            PULL => FarMessage::Pull { source, put: words[0], transfer: words[1], length: words[2] },
            DATA => FarMessage::Data {
                source,
                transfer: words[0],
                offset: words[1],
                payload: words[BULK_WORD],
                length: words[LENGTH_WORD],
            },
            NOTICE => FarMessage::Notice {
                source,
                event: Event {
                    kind: EventKind::from_number(small as u32),
                    user: words[0],
                    initiator: ProcessId(source),
                    match_bits: words[1],
                    header_data: words[2],
                    requested_length: words[3],
                    placed_length: words[3],
                    taken: 0,
                },
            },
            LANDED => FarMessage::Landed { source, transfer: words[0], length: words[1], landing: words[2] },
            SENT => FarMessage::Sent { source, put: words[0] },
            _ => return None,
        })
    }
}

/// What a message says.
#[derive(Clone, Copy, Debug)]
pub enum Incoming<'a> {
    Put(Arrival<'a>),
    Piece(Piece),
    /// See [`crate::withdraw`].
    Withdraw {
        source: u32,
        match_bits: u64,
        header_data: u64,
    },
    Far(FarMessage),
}

impl<'a> Incoming<'a> {
    /// Reads a message. `None`: of no known kind.
    #[inline(always)]
    pub fn decode(message: &'a Arrived<'a>) -> Option<Incoming<'a>> {
        let (kind, small, source) = parts(message.tag);
        let words = &message.words;
        let (match_bits, header_data) = (words[0], words[1]);
        let (length, ack, user, payload) = match kind {
            INLINE if message.is_long() => (message.bytes(small) as u64, false, 0, Payload::Long(message)),
            INLINE => {
                let data = [words[2], words[3], words[4], words[5], words[6]];
                (small.min(INLINE_ROOM) as u64, false, 0, Payload::Inline(data))
            }
            INLINE_ACK => {
                let data = [words[3], words[4], words[5], words[6], 0];
                (small.min(INLINE_ACK_ROOM) as u64, true, words[2], Payload::Inline(data))
            }
            BULK => (words[3], small != 0, words[4], Payload::Bulk(words[2])),
            DIRECT => (words[3], small != 0, words[4], Payload::Direct(words[2])),
            PIPED => (words[3], small != 0, words[4], Payload::Piped(words[2])),
            STREAM => (words[LENGTH_WORD], small != 0, words[2], Payload::Stream(words[BULK_WORD])),
            PIECE => {
                let (transfer, offset, bulk, length) = (words[0], words[1], words[2], words[3]);
                return Some(Incoming::Piece(Piece { source, transfer, offset, bulk, length }));
            }
            WITHDRAW => return Some(Incoming::Withdraw { source, match_bits, header_data }),
            _ => return FarMessage::decode(message).map(Incoming::Far),
        };
        Some(Incoming::Put(Arrival { source, match_bits, header_data, length, ack, user, payload }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parnass_base::Scratch;

    #[test]
    fn tags_keep_their_parts() {
        assert_eq!(parts(tag(DIRECT, 40, 1_000_000)), (DIRECT, 40, 1_000_000));
    }

    #[test]
    fn bytes_survive_the_words() {
        let source = Scratch::new(40);
        let content: Vec<u8> = (1..=40).collect();
        source.address().write(&content);
        for length in 0..=40 {
            let (mut words, mut bytes) = ([0; 5], [0; 40]);
            gather(source.address(), length, &mut words);
            spread(&words, &mut bytes, length);
            assert_eq!(bytes[..length], content[..length]);
        }
    }
}
