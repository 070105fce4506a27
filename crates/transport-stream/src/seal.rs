//! What an encrypted connection carries after its handshake: records, each encrypted and authenticated as a whole. They are
//! cut without regard to frames. State machines over bytes: no pipe of their own.
//!
//! ```text
//!   | length (4) | encrypted (length) | tag (16) |
//! ```
//! Each direction of each connection has a key of its own, made of the job's key and all that was said in the handshake; the
//! nonce is the number of the record. So a record that was changed, repeated, left out, or moved to another place, direction
//! or connection does not open, and nothing after it is looked at.

use crate::pipe::Pipe;
use crate::wire::Secret;
use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce, Tag};
use parnass_base::UserAddress;
use parnass_base::socket::Part;
use std::fmt;
use std::io;

/// Most encrypted bytes of a record.
const RECORD: usize = 32 << 10;
/// Bytes of the length before them.
const LENGTH: usize = 4;
/// Bytes of the tag behind them.
const TAG: usize = 16;
/// Most bytes of a record.
const WHOLE: usize = LENGTH + RECORD + TAG;

/// The keys of a side of a connection.
pub struct Keys {
    pub sending: Secret,
    pub receiving: Secret,
}

fn cipher(key: &Secret) -> ChaCha20Poly1305 {
    ChaCha20Poly1305::new(&Key::from(*key))
}

/// The nonce of record `number`: four bytes of nought, and the number.
fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_le_bytes());
    bytes.into()
}

/// The sending end.
pub struct Sealer {
    cipher: ChaCha20Poly1305,
    /// Records sealed so far.
    sealed: u64,
    /// The last record, of which `start` bytes are sent.
    record: Vec<u8>,
    start: usize,
}

impl fmt::Debug for Sealer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sealer").field("sealed", &self.sealed).finish_non_exhaustive()
    }
}

impl Sealer {
    pub fn new(key: &Secret) -> Sealer {
        Sealer { cipher: cipher(key), sealed: 0, record: Vec::new(), start: 0 }
    }

    /// What is left of the last record. The next one can be sealed when that is nothing.
    pub fn unsent(&self) -> &[u8] {
        &self.record[self.start..]
    }

    /// Notes that so many bytes more are sent.
    pub fn sent(&mut self, count: usize) {
        self.start += count;
    }

    /// Seals the first bytes of `parts`; returns how many.
    pub fn seal(&mut self, parts: &[Part<'_>]) -> usize {
        debug_assert!(self.unsent().is_empty(), "a record is still to be sent");
        self.start = 0;
        self.record.clear();
        self.record.resize(LENGTH, 0);
        for part in parts {
            let at = self.record.len();
            let room = LENGTH + RECORD - at;
            match *part {
                Part::Bytes(bytes) => self.record.extend_from_slice(&bytes[..bytes.len().min(room)]),
                Part::User(address, length) => {
                    self.record.resize(at + length.min(room), 0);
                    address.read(&mut self.record[at..]);
                }
            }
        }
        let count = self.record.len() - LENGTH;
        let length = (count as u32).to_le_bytes();
        self.record[..LENGTH].copy_from_slice(&length);
        let tag = self
            .cipher
            .encrypt_inout_detached(&nonce(self.sealed), &length, (&mut self.record[LENGTH..]).into())
            .expect("a record is shorter than what the cipher can take");
        self.record.extend_from_slice(&tag);
        self.sealed += 1;
        count
    }
}

/// The receiving end.
pub struct Opener {
    cipher: ChaCha20Poly1305,
    /// Records opened so far.
    opened: u64,
    /// Bytes as they came, from `start` to `end`.
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    /// The part of `bytes` before `start` that is open and not yet taken.
    open: std::ops::Range<usize>,
    /// A record did not open: nothing more is looked at.
    broken: bool,
}

impl fmt::Debug for Opener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Opener").field("opened", &self.opened).finish_non_exhaustive()
    }
}

/// What a record is that does not open.
fn forged() -> io::Error {
    let text = "what came over it is not what the rank has sent: a record is changed, repeated, left out or out of its place";
    io::Error::new(io::ErrorKind::InvalidData, text)
}

impl Opener {
    pub fn new(key: &Secret) -> Opener {
        Opener {
            cipher: cipher(key),
            opened: 0,
            bytes: vec![0; 2 * WHOLE].into_boxed_slice(),
            start: 0,
            end: 0,
            open: 0..0,
            broken: false,
        }
    }

    /// As [`Pipe::receive`], for what was sealed.
    ///
    /// # Errors
    /// As there; and `InvalidData` from the first record on that does not open.
    pub fn receive(
        &mut self,
        pipe: &impl Pipe,
        address: UserAddress,
        length: usize,
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        loop {
            if !self.open.is_empty() {
                return Ok(self.take(address, length, buffer));
            }
            if self.open_next()? {
                continue;
            }
            let room = self.room();
            let count = pipe.receive(UserAddress::NULL, 0, room)?;
            if count == 0 {
                let cut = io::Error::new(io::ErrorKind::UnexpectedEof, "it ended within a record");
                return if self.start == self.end { Ok(0) } else { Err(cut) };
            }
            self.filled(count);
        }
    }

    /// Where the next bytes go. Nothing is open then.
    fn room(&mut self) -> &mut [u8] {
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        self.open = 0..0;
        &mut self.bytes[self.end..]
    }

    /// Notes that so many bytes have come.
    fn filled(&mut self, count: usize) {
        self.end += count;
    }

    /// Opens the next record; false: it is not there as a whole.
    fn open_next(&mut self) -> io::Result<bool> {
        if self.broken {
            return Err(forged());
        }
        let there = &mut self.bytes[self.start..self.end];
        let Some((length, rest)) = there.split_first_chunk_mut::<LENGTH>() else { return Ok(false) };
        let count = u32::from_le_bytes(*length) as usize;
        if count == 0 || count > RECORD {
            self.broken = true;
            return Err(forged());
        }
        if rest.len() < count + TAG {
            return Ok(false);
        }
        let (text, rest) = rest.split_at_mut(count);
        let (tag, _) = rest.split_first_chunk::<TAG>().expect("the tag is there");
        let tag = Tag::from(*tag);
        if self.cipher.decrypt_inout_detached(&nonce(self.opened), &length[..], text.into(), &tag).is_err() {
            self.broken = true;
            return Err(forged());
        }
        self.opened += 1;
        let first = self.start + LENGTH;
        self.open = first..first + count;
        self.start += LENGTH + count + TAG;
        Ok(true)
    }

    /// Takes open bytes, first to `address`, then to `buffer`; returns how many.
    fn take(&mut self, address: UserAddress, length: usize, buffer: &mut [u8]) -> usize {
        let open = &self.bytes[self.open.clone()];
        let (first, rest) = open.split_at(length.min(open.len()));
        if !first.is_empty() {
            address.write(first);
        }
        let more = rest.len().min(buffer.len());
        buffer[..more].copy_from_slice(&rest[..more]);
        let count = first.len() + more;
        self.open.start += count;
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parnass_base::Scratch;
    use proptest::prelude::*;

    const KEY: Secret = [9; 32];

    /// The records of these messages.
    fn records(messages: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut sealer = Sealer::new(&KEY);
        messages
            .iter()
            .map(|message| {
                assert_eq!(sealer.seal(&[Part::Bytes(message)]), message.len());
                let record = sealer.unsent().to_vec();
                sealer.sent(record.len());
                record
            })
            .collect()
    }

    /// What opens of a stream that comes in pieces of `step` bytes, and whether something did not.
    fn open(opener: &mut Opener, stream: &[u8], step: usize) -> (Vec<u8>, bool) {
        let mut text = Vec::new();
        let mut rest = stream;
        loop {
            match opener.open_next() {
                Err(_) => return (text, true),
                Ok(true) => {
                    let mut buffer = [0; 1000];
                    while !opener.open.is_empty() {
                        let count = opener.take(UserAddress::NULL, 0, &mut buffer);
                        text.extend_from_slice(&buffer[..count]);
                    }
                }
                Ok(false) if rest.is_empty() => return (text, false),
                Ok(false) => {
                    let room = opener.room();
                    let count = step.min(room.len()).min(rest.len());
                    room[..count].copy_from_slice(&rest[..count]);
                    opener.filled(count);
                    rest = &rest[count..];
                }
            }
        }
    }

    #[test]
    fn what_is_sealed_opens_however_it_comes() {
        let long: Vec<u8> = (0..3 * RECORD + 77).map(|index| (index % 251) as u8).collect();
        let memory = Scratch::new(long.len());
        memory.address().write(&long);
        let mut sealer = Sealer::new(&KEY);
        let (mut stream, mut done) = (Vec::new(), 0);
        while done < long.len() {
            let left = Part::User(memory.address().offset(done as i64), long.len() - done);
            done += sealer.seal(&[left, Part::Bytes(b"end")]);
            stream.extend_from_slice(sealer.unsent());
            sealer.sent(sealer.unsent().len());
        }
        let wanted = [&long[..], b"end"].concat();
        assert_eq!(done, wanted.len());
        assert_eq!(stream.len(), wanted.len() + 4 * (LENGTH + TAG));
        for step in [1_000, 33_000, usize::MAX] {
            assert!(open(&mut Opener::new(&KEY), &stream, step) == (wanted.clone(), false), "{step}");
        }
    }

    #[test]
    fn nothing_of_the_text_is_seen() {
        let message = b"attack at dawn, attack at dawn, attack at dawn";
        let records = records(&[message, message]);
        let seen = |record: &[u8]| record.windows(6).any(|window| window == b"attack");
        assert!(!seen(&records[0]) && !seen(&records[1]));
        assert_ne!(records[0][LENGTH..], records[1][LENGTH..]);
    }

    #[test]
    fn repeated_left_out_and_swapped_records_do_not_open() {
        let all = records(&[b"one", b"two", b"three"]);
        let stream = |order: &[usize]| order.iter().flat_map(|index| all[*index].clone()).collect::<Vec<_>>();
        let opened = |order: &[usize]| {
            let (text, broken) = open(&mut Opener::new(&KEY), &stream(order), usize::MAX);
            (String::from_utf8(text).unwrap(), broken)
        };
        assert_eq!(opened(&[0, 1, 2]), ("onetwothree".into(), false));
        assert_eq!(opened(&[0, 0, 1]), ("one".into(), true));
        assert_eq!(opened(&[1, 0]), (String::new(), true));
        assert_eq!(opened(&[0, 2]), ("one".into(), true));
        // Once broken it stays so, whatever comes.
        let mut opener = Opener::new(&KEY);
        assert!(open(&mut opener, &stream(&[1]), usize::MAX).1);
        assert!(open(&mut opener, &stream(&[0]), usize::MAX) == (Vec::new(), true));
        // Of another connection, or of the other direction.
        assert!(open(&mut Opener::new(&[8; 32]), &stream(&[0]), usize::MAX) == (Vec::new(), true));
    }

    proptest! {
        #[test]
        fn no_changed_bit_opens(at in any::<usize>(), bit in 0u8..8) {
            let mut record = records(&[b"some frames and what belongs to them"]).remove(0);
            let at = at % record.len();
            record[at] ^= 1 << bit;
            let (text, broken) = open(&mut Opener::new(&KEY), &record, usize::MAX);
            prop_assert!(text.is_empty());
            // A longer length waits for the rest, which never opens either.
            prop_assert!(broken || at < LENGTH);
            record.resize(record.len() + WHOLE, 0);
            prop_assert_eq!(open(&mut Opener::new(&KEY), &record, usize::MAX), (Vec::new(), true));
        }

        #[test]
        fn garbage_never_opens(bytes in proptest::collection::vec(any::<u8>(), 0..2000), step in 1usize..300) {
            prop_assert!(open(&mut Opener::new(&KEY), &bytes, step).0.is_empty());
        }
    }
}
