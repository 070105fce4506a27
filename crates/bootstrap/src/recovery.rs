//! What ranks and launcher say to each other where ranks may die and the others go on: revocations, agreements, and news of
//! the dead. The launcher is the one place that all of it passes through, so that all ranks hear the same, in the same order.
//!
//! ```text
//! appeal (rank):       0 CONTEXT                                          revoke a communicator
//!                      1 CONTEXT NUMBER FLAG WORD MEMBERS ACKNOWLEDGED    a part of an agreement
//!                      2 RANK TEXT                                        this rank cannot be reached any more, for this reason
//! news (launcher):     0 RANKS                                            these are dead
//!                      1 CONTEXT                                          this communicator is revoked
//!                      2 CONTEXT NUMBER FLAG WORD UNACKNOWLEDGED FAILED   what was agreed
//! ```

use crate::wire::{Decoder, Encoder};

/// What one member gives to an agreement of the members of a communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contribution {
    /// The communicator.
    pub context: u32,
    /// Which of its agreements.
    pub number: u32,
    /// All its members, alive or dead, by their ranks in the job and in the same order at each of them.
    pub members: Vec<u32>,
    /// All flags are joined by a bitwise and.
    pub flag: u32,
    /// Of these, that of the first living member counts.
    pub word: u32,
    /// The dead that this member knows of and has acknowledged.
    pub acknowledged: Vec<u32>,
}

/// What all living members of a communicator are told at the end of an agreement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub flag: u32,
    pub word: u32,
    /// Whether there is a dead member that some living one has not acknowledged.
    pub unacknowledged: bool,
    /// The dead members.
    pub failed: Vec<u32>,
}

/// What a rank says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Appeal {
    Revoke { context: u32 },
    Agree(Contribution),
    Unreachable { rank: u32, reason: String },
}

/// What ranks are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    Failed(Vec<u32>),
    Revoked { context: u32 },
    Agreed { context: u32, number: u32, decision: Decision },
}

/// Ranks as runs with a constant step: first, step, count. Groups are mostly made of few such runs.
fn runs(encoder: &mut Encoder, ranks: &[u32]) {
    let mut found: Vec<(u32, u32, u32)> = Vec::new();
    for &rank in ranks {
        match found.last_mut() {
            Some((first, step, count)) if *count == 1 => {
                *step = rank.wrapping_sub(*first);
                *count = 2;
            }
            Some((first, step, count)) if first.wrapping_add(step.wrapping_mul(*count)) == rank => {
                *count += 1
            }
            _ => found.push((rank, 0, 1)),
        }
    }
    encoder.u32(found.len() as u32);
    for (first, step, count) in found {
        encoder.u32(first).u32(step).u32(count);
    }
}

fn read_runs(decoder: &mut Decoder<'_>) -> Option<Vec<u32>> {
    /// No job has more ranks.
    const MOST: usize = 1 << 16;
    let mut ranks = Vec::new();
    for _ in 0..decoder.count(12)? {
        let (first, step, count) = (decoder.u32()?, decoder.u32()?, decoder.u32()?);
        if ranks.len() + count as usize > MOST {
            return None;
        }
        ranks.extend((0..count).map(|index| first.wrapping_add(step.wrapping_mul(index))));
    }
    Some(ranks)
}

impl Appeal {
    /// As it travels.
    pub fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::new();
        match self {
            Appeal::Revoke { context } => {
                encoder.u8(0).u32(*context);
            }
            Appeal::Agree(part) => {
                encoder.u8(1).u32(part.context).u32(part.number).u32(part.flag).u32(part.word);
                runs(&mut encoder, &part.members);
                runs(&mut encoder, &part.acknowledged);
            }
            Appeal::Unreachable { rank, reason } => {
                let short: String = reason.chars().take(500).collect();
                encoder.u8(2).u32(*rank).bytes(short.as_bytes());
            }
        }
        encoder.finish()
    }

    /// `None`: the bytes, which may be anything, are none.
    pub fn decode(bytes: &[u8]) -> Option<Appeal> {
        let mut decoder = Decoder::new(bytes);
        let appeal = match decoder.u8()? {
            0 => Appeal::Revoke { context: decoder.u32()? },
            1 => Appeal::Agree(Contribution {
                context: decoder.u32()?,
                number: decoder.u32()?,
                flag: decoder.u32()?,
                word: decoder.u32()?,
                members: read_runs(&mut decoder)?,
                acknowledged: read_runs(&mut decoder)?,
            }),
            2 => Appeal::Unreachable { rank: decoder.u32()?, reason: decoder.text()? },
            _ => return None,
        };
        decoder.end().map(|()| appeal)
    }
}

impl News {
    /// As it travels.
    pub fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::new();
        match self {
            News::Failed(ranks) => runs(encoder.u8(0), ranks),
            News::Revoked { context } => {
                encoder.u8(1).u32(*context);
            }
            News::Agreed { context, number, decision } => {
                encoder.u8(2).u32(*context).u32(*number).u32(decision.flag).u32(decision.word);
                encoder.u8(u8::from(decision.unacknowledged));
                runs(&mut encoder, &decision.failed);
            }
        }
        encoder.finish()
    }

    /// `None`: the bytes, which may be anything, are none.
    pub fn decode(bytes: &[u8]) -> Option<News> {
        let mut decoder = Decoder::new(bytes);
        let news = match decoder.u8()? {
            0 => News::Failed(read_runs(&mut decoder)?),
            1 => News::Revoked { context: decoder.u32()? },
            2 => News::Agreed {
                context: decoder.u32()?,
                number: decoder.u32()?,
                decision: Decision {
                    flag: decoder.u32()?,
                    word: decoder.u32()?,
                    unacknowledged: decoder.u8()? != 0,
                    failed: read_runs(&mut decoder)?,
                },
            },
            _ => return None,
        };
        decoder.end().map(|()| news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ranks() -> impl Strategy<Value = Vec<u32>> {
        prop_oneof![
            prop::collection::vec(0u32..70_000, 0..20),
            (0u32..50, 0u32..5, 0u32..3000)
                .prop_map(|(first, step, count)| (0..count).map(|at| first + at * step).collect()),
        ]
    }

    proptest! {
        #[test]
        fn appeals_and_news_survive(
            numbers: [u32; 4], members in ranks(), others in ranks(), unacknowledged: bool
        ) {
            let [context, number, flag, word] = numbers;
            let part = Contribution { context, number, members, flag, word, acknowledged: others.clone() };
            let unreachable = Appeal::Unreachable { rank: word, reason: "no route".to_owned() };
            for appeal in [Appeal::Revoke { context }, Appeal::Agree(part), unreachable] {
                prop_assert_eq!(Appeal::decode(&appeal.encode()), Some(appeal));
            }
            let decision = Decision { flag, word, unacknowledged, failed: others.clone() };
            for news in [News::Failed(others), News::Revoked { context }, News::Agreed { context, number, decision }] {
                prop_assert_eq!(News::decode(&news.encode()), Some(news));
            }
        }

        #[test]
        fn whatever_comes_is_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = Appeal::decode(&bytes);
            let _ = News::decode(&bytes);
        }
    }

    #[test]
    fn a_job_of_any_size_fits_into_a_message() {
        let members: Vec<u32> = (0..65_535).collect();
        let part = Contribution { context: 0, number: 0, members, flag: 0, word: 0, acknowledged: vec![5] };
        assert!(Appeal::Agree(part).encode().len() < 100);
    }
}
