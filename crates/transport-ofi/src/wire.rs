//! The packets, version 3: bytes to values and back, nothing else. The document is docs/wire/ofi.md.

/// The version of packets and contacts.
pub const VERSION: u8 = 3;

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The four messages of a handshake.
    Hello,
    Challenge,
    Answer,
    Verdict,
    /// Bytes of the stream, or none: it only says what was taken.
    Data,
    /// The last packet, whose arrival is to be told.
    Last,
    /// The other side's last packet has arrived.
    Heard,
}

impl Kind {
    const ALL: [Kind; 7] =
        [Kind::Hello, Kind::Challenge, Kind::Answer, Kind::Verdict, Kind::Data, Kind::Last, Kind::Heard];

    /// Whether it is of a stream, and no message of a handshake.
    pub fn is_streamed(self) -> bool {
        matches!(self, Kind::Data | Kind::Last | Kind::Heard)
    }
}

/// The head of a packet.
///
/// ```text
///   0  version (4 bits), kind (4 bits)
///   1  sender's rank (3 bytes)
///   4  number of the packet in its direction
///   8  bytes of the other direction that were taken so far, modulo 2^32
///  12  token (8 bytes): of the direction; in a handshake, of the call
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub kind: Kind,
    pub from: u32,
    pub sequence: u32,
    pub taken: u32,
    pub token: u64,
}

impl Head {
    /// Bytes of it. With the head and the words of a frame that carries eight bytes it makes 60: what the smallest inline
    /// sends of usual providers take.
    pub const BYTES: usize = 20;

    /// As bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let number = Kind::ALL.iter().position(|kind| *kind == self.kind).unwrap_or_default() as u8 + 1;
        let mut bytes = [0; Self::BYTES];
        bytes[0] = VERSION << 4 | number;
        bytes[1..4].copy_from_slice(&self.from.to_le_bytes()[..3]);
        bytes[4..8].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.taken.to_le_bytes());
        bytes[12..].copy_from_slice(&self.token.to_le_bytes());
        bytes
    }

    /// From bytes; `None`: no packet of this version.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Option<Head> {
        let number = |at: usize| bytes[at..at + 4].first_chunk().map(|word| u32::from_le_bytes(*word));
        let token = bytes.last_chunk::<8>().map(|word| u64::from_le_bytes(*word))?;
        if bytes[0] >> 4 != VERSION {
            return None;
        }
        let kind = *Kind::ALL.get(usize::from(bytes[0] & 15).checked_sub(1)?)?;
        Some(Head { kind, from: number(0)? >> 8, sequence: number(4)?, taken: number(8)?, token })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_comes_is_decoded_or_refused(mut bytes in any::<[u8; Head::BYTES]>(), kind in any::<Option<u8>>()) {
            if let Some(kind) = kind {
                bytes[0] = (VERSION << 4) | (kind % 8);
            }
            if let Some(head) = Head::decode(&bytes) {
                prop_assert_eq!(head.encode(), bytes);
                prop_assert!(head.from < 1 << 24);
            }
        }
    }
}
