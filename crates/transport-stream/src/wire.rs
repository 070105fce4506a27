//! The wire format, version 2: bytes to values and back, nothing else. The document is docs/wire/tcp.md; that of offers,
//! docs/wire/ofi.md.

/// The first bytes of every connection.
pub const MAGIC: [u8; 8] = *b"ParnassT";
/// Versions of the format that this library speaks, oldest and newest.
pub const VERSIONS: (u16, u16) = (2, 2);
/// Bytes of a nonce, of a proof, and of a job's key.
pub const SECRET_BYTES: usize = 32;
/// Bytes of a job's name.
pub const JOB_BYTES: usize = 16;

/// 32 bytes that nobody can guess.
pub type Secret = [u8; SECRET_BYTES];

/// Takes `N` bytes from the front. The callers' lengths are fixed, so that it cannot fail.
fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    let (first, rest) = bytes.split_first_chunk::<N>().expect("a message of fixed length");
    *bytes = rest;
    *first
}

/// What the side that connects says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    pub versions: (u16, u16),
    pub job: [u8; JOB_BYTES],
    pub from: u32,
    pub to: u32,
    pub nonce: Secret,
}

impl Hello {
    /// Bytes of it.
    pub const BYTES: usize = 8 + 4 + JOB_BYTES + 8 + SECRET_BYTES;

    /// As bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = Vec::with_capacity(Self::BYTES);
        bytes.extend(MAGIC);
        bytes.extend(self.versions.0.to_le_bytes());
        bytes.extend(self.versions.1.to_le_bytes());
        bytes.extend(self.job);
        bytes.extend(self.from.to_le_bytes());
        bytes.extend(self.to.to_le_bytes());
        bytes.extend(self.nonce);
        bytes.try_into().expect("as long as its fields")
    }

    /// From bytes; `None`: not of this protocol.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Option<Hello> {
        let mut rest = &bytes[..];
        if take::<8>(&mut rest) != MAGIC {
            return None;
        }
        Some(Hello {
            versions: (u16::from_le_bytes(take(&mut rest)), u16::from_le_bytes(take(&mut rest))),
            job: take(&mut rest),
            from: u32::from_le_bytes(take(&mut rest)),
            to: u32::from_le_bytes(take(&mut rest)),
            nonce: take(&mut rest),
        })
    }
}

/// What the side that was connected to answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// The version that both will speak; 0: there is none, and nothing follows.
    pub version: u16,
    pub nonce: Secret,
    pub proof: Secret,
}

impl Challenge {
    /// Bytes of it.
    pub const BYTES: usize = 8 + 2 + 2 * SECRET_BYTES;

    /// As bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = Vec::with_capacity(Self::BYTES);
        bytes.extend(MAGIC);
        bytes.extend(self.version.to_le_bytes());
        bytes.extend(self.nonce);
        bytes.extend(self.proof);
        bytes.try_into().expect("as long as its fields")
    }

    /// From bytes; `None`: not of this protocol.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Option<Challenge> {
        let mut rest = &bytes[..];
        if take::<8>(&mut rest) != MAGIC {
            return None;
        }
        let version = u16::from_le_bytes(take(&mut rest));
        Some(Challenge { version, nonce: take(&mut rest), proof: take(&mut rest) })
    }
}

/// How the side that was connected to decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// From here on the connection carries frames.
    Accepted,
    /// Both sides have connected at once; the other connection is the one.
    Crossed,
}

impl Verdict {
    /// Bytes of it: the verdict, and a proof that it is the peer's.
    pub const BYTES: usize = 1 + SECRET_BYTES;

    /// Its number.
    pub fn number(self) -> u8 {
        match self {
            Verdict::Accepted => 1,
            Verdict::Crossed => 2,
        }
    }

    /// From its number.
    pub fn from_number(number: u8) -> Option<Verdict> {
        [Verdict::Accepted, Verdict::Crossed].into_iter().find(|verdict| verdict.number() == number)
    }
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A message, and its payload.
    Message,
    /// Only gives credit back.
    Credit,
    /// Nothing more will come, and that is as it should be.
    Goodbye,
    /// A message whose payload the receiver may read out of the sender's memory. Its words are an [`OfferWords`].
    Offer,
    /// What the receiver says of an offer; the only word is the number of the offer. It was read whole.
    Taken,
    /// It is wanted nowhere.
    Declined,
    /// It could not be read, and is to be sent.
    Instead,
    /// The next bytes of an offer that is sent; the only word is its number.
    Part,
}

impl FrameKind {
    const ALL: [FrameKind; 8] = [
        FrameKind::Message,
        FrameKind::Credit,
        FrameKind::Goodbye,
        FrameKind::Offer,
        FrameKind::Taken,
        FrameKind::Declined,
        FrameKind::Instead,
        FrameKind::Part,
    ];
}

/// Words of an offer.
pub const OFFER_WORDS: usize = 6;

/// What an offer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferWords {
    /// The words of the message: one of the sender's choice, and where in the payload these bytes begin.
    pub word: u64,
    pub offset: u64,
    /// How many bytes it is.
    pub length: u64,
    /// Where they are.
    pub key: u64,
    pub address: u64,
    /// The number of the offer in its direction of the stream, from 0.
    pub number: u64,
}

impl OfferWords {
    /// As words.
    pub fn encode(&self) -> [u64; OFFER_WORDS] {
        [self.word, self.offset, self.length, self.key, self.address, self.number]
    }

    /// From the first words of a frame.
    pub fn decode(words: &[u64; WORDS as usize]) -> OfferWords {
        let [word, offset, length, key, address, number, _] = *words;
        OfferWords { word, offset, length, key, address, number }
    }
}

/// The head of a frame. Its words and its payload follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub kind: FrameKind,
    /// Words that follow, at most seven.
    pub words: u8,
    /// Whether the payload counts against the credit of its sender.
    pub counted: bool,
    pub tag: u32,
    /// Payload bytes whose credit is given back.
    pub returned: u32,
    /// Bytes of the payload.
    pub payload: u32,
}

/// Most words of a frame.
const WORDS: u8 = parnass_base::lane::WORDS as u8;
/// Most words of a frame with a payload.
const PAYLOAD_WORDS: u8 = parnass_transport::PAYLOAD_WORDS as u8;
/// The longest payload of a frame, in bytes.
pub const PAYLOAD_MAXIMUM: u32 = 1 << 20;

impl Head {
    /// Bytes of it.
    pub const BYTES: usize = 16;

    /// As bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let kind = FrameKind::ALL.iter().position(|kind| *kind == self.kind).unwrap_or_default() as u8 + 1;
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&[kind, self.words, u8::from(self.counted), 0]);
        bytes[4..8].copy_from_slice(&self.tag.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.returned.to_le_bytes());
        bytes[12..].copy_from_slice(&self.payload.to_le_bytes());
        bytes
    }

    /// From bytes; `None`: no frame of this version.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Option<Head> {
        let mut rest = &bytes[..];
        let [kind, words, counted, reserved] = take(&mut rest);
        let kind = *FrameKind::ALL.get(usize::from(kind).checked_sub(1)?)?;
        let [tag, returned, payload] = std::array::from_fn(|_| u32::from_le_bytes(take(&mut rest)));
        let most = if payload == 0 { WORDS } else { PAYLOAD_WORDS };
        let fits = match kind {
            FrameKind::Message => words <= most,
            FrameKind::Credit | FrameKind::Goodbye => words == 0 && payload == 0,
            FrameKind::Offer => usize::from(words) == OFFER_WORDS && payload == 0 && counted == 0,
            FrameKind::Taken | FrameKind::Declined | FrameKind::Instead => {
                words == 1 && payload == 0 && counted == 0
            }
            FrameKind::Part => words == 1 && payload != 0 && counted == 0,
        };
        if reserved != 0 || counted > 1 || payload > PAYLOAD_MAXIMUM || !fits {
            return None;
        }
        Some(Head { kind, words, counted: counted == 1, tag, returned, payload })
    }

    /// Bytes of head and words.
    pub fn bytes_before_payload(&self) -> usize {
        Self::BYTES + usize::from(self.words) * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_comes_is_decoded_or_refused(bytes in proptest::array::uniform32(any::<u8>()), kind in 0u8..11, words in 0u8..9) {
            let mut head = *bytes.first_chunk::<{ Head::BYTES }>().unwrap();
            head[..4].copy_from_slice(&[kind, words, bytes[20] & 1, 0]);
            head[14] &= 0x1f;
            if bytes[21] & 1 == 0 {
                head[12..].fill(0);
            }
            head[15] = 0;
            if let Some(decoded) = Head::decode(&head) {
                prop_assert_eq!(decoded.encode(), head);
                prop_assert!(decoded.words <= 7 && decoded.payload <= PAYLOAD_MAXIMUM);
            }
            let random = *bytes.first_chunk::<{ Head::BYTES }>().unwrap();
            if let Some(decoded) = Head::decode(&random) {
                prop_assert_eq!(decoded.encode(), random);
            }
        }

        #[test]
        fn hellos_and_challenges_survive(
            job in any::<[u8; JOB_BYTES]>(),
            numbers in any::<(u16, u16, u32, u32)>(),
            nonce in any::<Secret>(),
            proof in any::<Secret>(),
            noise in any::<(usize, u8)>(),
        ) {
            let hello = Hello { versions: (numbers.0, numbers.1), job, from: numbers.2, to: numbers.3, nonce };
            let mut bytes = hello.encode();
            prop_assert_eq!(Hello::decode(&bytes), Some(hello));
            let challenge = Challenge { version: numbers.0, nonce, proof };
            prop_assert_eq!(Challenge::decode(&challenge.encode()), Some(challenge));
            bytes[noise.0 % Hello::BYTES] ^= noise.1;
            if let Some(other) = Hello::decode(&bytes) {
                prop_assert_eq!(other.encode(), bytes);
            }
        }
    }
}
