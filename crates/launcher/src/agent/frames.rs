//! What a guardian and the agents that it has started say to each other. The document is docs/wire/launcher.md.
//!
//! ```text
//! frame:  length of kind and body (4 bytes)   kind (1 byte)   body   newline
//! ```
//!
//! The newline lets a frame pass through starters that hand on whole lines only.

use parnass_bootstrap::wire::{Decoder, Encoder};

use crate::stats::Account;

/// Counts up when a frame changes its meaning.
pub const VERSION: u32 = 5;
/// No frame is longer. The longest are the parts of an exchange among all ranks.
pub const FRAME_BYTES_MAXIMUM: usize = 64 << 20;

/// From a guardian to an agent below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// What the agent has to do: an encoded [`Plan`](super::plan::Plan).
    Plan(Vec<u8>),
    /// Every agent of the job is ready: start the ranks.
    Start,
    /// Pass this signal on to the ranks.
    Signal(i32),
    /// End the ranks: SIGTERM, and SIGKILL a while later.
    End,
    /// Kill what is left at once.
    Kill,
    /// All ranks of the job have ended: end what they left behind, then yourself.
    Finish,
    /// Bytes for the standard input of rank 0; none are its end.
    Input(Vec<u8>),
    /// So many more bytes of output may be sent.
    Credit(u32),
    /// The parts of all ranks in the exchange that `wave` and `round` name.
    Exchanged { wave: u32, round: u32, parts: Vec<u8> },
    /// Answer, to show that you are alive.
    Ping,
    /// Nobody reads stream 0 or 1 any more.
    CloseOutput(u8),
    /// Tell a rank, or all ranks, some news; those who have joined their ranks as the `wave`-th, or all.
    News { rank: Option<u32>, wave: Option<u32>, bytes: Vec<u8> },
    /// Say what each rank does that is still running. `thorough`: take time for it, and have the worlds say so too that ranks have started.
    Explain { thorough: bool },
}

/// How a report ends a job, if it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The job has failed, and ends.
    Fail,
    /// The job has failed, but goes on to its end.
    FailAndGoOn,
    /// The job ends; nothing is said of ranks that end with it.
    End,
    /// A rank has ended by the signal that the user sent.
    EndBy,
    /// A rank is dead, and the job goes on without it.
    Lost,
}

/// From an agent to the guardian above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// This agent and all below it can start their ranks.
    Ready,
    /// The rank is this process.
    Started { rank: u32, process: i32 },
    /// What a rank has written: whole lines as far as possible. `stream` is 0 or 1.
    Output { rank: u32, stream: u8, bytes: Vec<u8> },
    /// Something for the user.
    Say(String),
    /// The process of the rank has ended, with this status of wait(2).
    Ended { rank: u32, status: i32 },
    /// Something that the user is told and that decides about the job. `code` is an exit code, or the signal of
    /// [`Verdict::EndBy`]; `rank` the one that ends by itself.
    Verdict { verdict: Verdict, code: u8, rank: Option<u32>, text: String },
    /// The parts of all ranks here and below, by rank.
    Exchange { wave: u32, round: u32, parts: Vec<(u32, Vec<u8>)> },
    /// So many bytes of input have reached rank 0.
    InputTaken(u32),
    /// No process of the job is left here or below; what is still to come is output.
    Gone,
    /// The answer to [`Order::Ping`].
    Pong,
    /// So many worlds run here and below that ranks have started.
    Guests(u32),
    /// What a rank did, for `--stats`.
    Account { rank: u32, account: Account },
    /// A rank, the process that has joined it as the `wave`-th, has something for other ranks.
    Appeal { rank: u32, wave: u32, bytes: Vec<u8> },
    /// What a rank does, for the user, and whether it sleeps in MPI until something comes.
    Waits { rank: u32, sleeps: bool, text: String },
}

/// A message that travels in a frame.
pub trait Frame: Sized {
    /// Its kind and body.
    fn encode(&self) -> Vec<u8>;
    /// `None` when the bytes are none; they may be anything.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Frame for Order {
    fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::new();
        match self {
            Order::Plan(plan) => encoder.u8(0).raw(plan),
            Order::Start => encoder.u8(1),
            Order::Signal(signal) => encoder.u8(2).i32(*signal),
            Order::End => encoder.u8(3),
            Order::Kill => encoder.u8(4),
            Order::Finish => encoder.u8(5),
            Order::Input(bytes) => encoder.u8(6).raw(bytes),
            Order::Credit(bytes) => encoder.u8(7).u32(*bytes),
            Order::Exchanged { wave, round, parts } => encoder.u8(8).u32(*wave).u32(*round).raw(parts),
            Order::Ping => encoder.u8(9),
            Order::CloseOutput(stream) => encoder.u8(10).u8(*stream),
            Order::News { rank, wave, bytes } => {
                encoder.u8(11).u32(rank.unwrap_or(u32::MAX)).u32(wave.unwrap_or(u32::MAX)).raw(bytes)
            }
            Order::Explain { thorough } => encoder.u8(12).u8(u8::from(*thorough)),
        };
        encoder.finish()
    }

    fn decode(bytes: &[u8]) -> Option<Order> {
        let mut decoder = Decoder::new(bytes);
        let order = match decoder.u8()? {
            0 => return Some(Order::Plan(decoder.rest().to_vec())),
            1 => Order::Start,
            2 => Order::Signal(decoder.i32()?),
            3 => Order::End,
            4 => Order::Kill,
            5 => Order::Finish,
            6 => return Some(Order::Input(decoder.rest().to_vec())),
            7 => Order::Credit(decoder.u32()?),
            8 => {
                let (wave, round) = (decoder.u32()?, decoder.u32()?);
                return Some(Order::Exchanged { wave, round, parts: decoder.rest().to_vec() });
            }
            9 => Order::Ping,
            10 => Order::CloseOutput(decoder.u8().filter(|&stream| stream < 2)?),
            11 => {
                let named = |number: u32| Some(number).filter(|&number| number != u32::MAX);
                let (rank, wave) = (named(decoder.u32()?), named(decoder.u32()?));
                return Some(Order::News { rank, wave, bytes: decoder.rest().to_vec() });
            }
            12 => Order::Explain { thorough: decoder.u8()? != 0 },
            _ => return None,
        };
        decoder.end().map(|()| order)
    }
}

impl Verdict {
    const ALL: [Verdict; 5] =
        [Verdict::Fail, Verdict::FailAndGoOn, Verdict::End, Verdict::EndBy, Verdict::Lost];
}

impl Frame for Report {
    fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::new();
        match self {
            Report::Ready => encoder.u8(0),
            Report::Started { rank, process } => encoder.u8(1).u32(*rank).i32(*process),
            Report::Output { rank, stream, bytes } => encoder.u8(2).u32(*rank).u8(*stream).raw(bytes),
            Report::Say(text) => encoder.u8(3).raw(text.as_bytes()),
            Report::Ended { rank, status } => encoder.u8(4).u32(*rank).i32(*status),
            Report::Verdict { verdict, code, rank, text } => {
                let rank = rank.unwrap_or(u32::MAX);
                encoder.u8(5).u8(*verdict as u8).u8(*code).u32(rank).raw(text.as_bytes())
            }
            Report::Exchange { wave, round, parts } => {
                encoder.u8(6).u32(*wave).u32(*round).u32(parts.len() as u32);
                for (rank, part) in parts {
                    encoder.u32(*rank).bytes(part);
                }
                &mut encoder
            }
            Report::InputTaken(bytes) => encoder.u8(7).u32(*bytes),
            Report::Gone => encoder.u8(8),
            Report::Pong => encoder.u8(9),
            Report::Guests(count) => encoder.u8(10).u32(*count),
            Report::Account { rank, account } => {
                encoder.u8(11).u32(*rank);
                account.encode(&mut encoder);
                &mut encoder
            }
            Report::Appeal { rank, wave, bytes } => encoder.u8(12).u32(*rank).u32(*wave).raw(bytes),
            Report::Waits { rank, sleeps, text } => {
                encoder.u8(13).u32(*rank).u8(u8::from(*sleeps)).raw(text.as_bytes())
            }
        };
        encoder.finish()
    }

    fn decode(bytes: &[u8]) -> Option<Report> {
        let mut decoder = Decoder::new(bytes);
        let report = match decoder.u8()? {
            0 => Report::Ready,
            1 => Report::Started { rank: decoder.u32()?, process: decoder.i32()? },
            2 => {
                let (rank, stream) = (decoder.u32()?, decoder.u8().filter(|&stream| stream < 2)?);
                return Some(Report::Output { rank, stream, bytes: decoder.rest().to_vec() });
            }
            3 => return Some(Report::Say(text(decoder.rest()))),
            4 => Report::Ended { rank: decoder.u32()?, status: decoder.i32()? },
            5 => {
                let verdict = *Verdict::ALL.get(usize::from(decoder.u8()?))?;
                let (code, rank) = (decoder.u8()?, decoder.u32()?);
                let rank = Some(rank).filter(|&rank| rank != u32::MAX);
                return Some(Report::Verdict { verdict, code, rank, text: text(decoder.rest()) });
            }
            6 => {
                let (wave, round) = (decoder.u32()?, decoder.u32()?);
                let count = decoder.count(8)?;
                let part = |_| Some((decoder.u32()?, decoder.bytes()?.to_vec()));
                let parts = (0..count).map(part).collect::<Option<Vec<_>>>()?;
                Report::Exchange { wave, round, parts }
            }
            7 => Report::InputTaken(decoder.u32()?),
            8 => Report::Gone,
            9 => Report::Pong,
            10 => Report::Guests(decoder.u32()?),
            11 => {
                let rank = decoder.u32()?;
                return Some(Report::Account { rank, account: Account::decode(&mut decoder)? });
            }
            12 => {
                let (rank, wave) = (decoder.u32()?, decoder.u32()?);
                return Some(Report::Appeal { rank, wave, bytes: decoder.rest().to_vec() });
            }
            13 => {
                let (rank, sleeps) = (decoder.u32()?, decoder.u8()? != 0);
                return Some(Report::Waits { rank, sleeps, text: text(decoder.rest()) });
            }
            _ => return None,
        };
        decoder.end().map(|()| report)
    }
}

/// Puts `message` into a frame at the end of `bytes`.
pub fn append(bytes: &mut Vec<u8>, message: &impl Frame) {
    let body = message.encode();
    bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&body);
    bytes.push(b'\n');
}

/// The first frame in `bytes`: its message and its length. `Ok(None)` when more bytes are needed.
///
/// # Errors
/// What stands there is no frame: the other side is not what it should be.
pub fn first<F: Frame>(bytes: &[u8]) -> Result<Option<(F, usize)>, Malformed> {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if length == 0 || length > FRAME_BYTES_MAXIMUM {
        return Err(Malformed);
    }
    match (rest.get(..length), rest.get(length)) {
        (Some(body), Some(b'\n')) => {
            let message = F::decode(body).ok_or(Malformed)?;
            Ok(Some((message, 4 + length + 1)))
        }
        (_, None) => Ok(None),
        _ => Err(Malformed),
    }
}

/// What came is no frame of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 0..40)
    }

    fn orders() -> impl Strategy<Value = Order> {
        prop_oneof![
            bytes().prop_map(Order::Plan),
            any::<i32>().prop_map(Order::Signal),
            prop::sample::select(vec![
                Order::Start,
                Order::End,
                Order::Kill,
                Order::Finish,
                Order::Ping,
                Order::Explain { thorough: true },
                Order::Explain { thorough: false }
            ]),
            (0u8..2).prop_map(Order::CloseOutput),
            bytes().prop_map(Order::Input),
            any::<u32>().prop_map(Order::Credit),
            (any::<u32>(), any::<u32>(), bytes()).prop_map(|(wave, round, parts)| Order::Exchanged {
                wave,
                round,
                parts
            }),
        ]
    }

    fn reports() -> impl Strategy<Value = Report> {
        let part = (any::<u32>(), bytes());
        prop_oneof![
            (any::<u32>(), any::<i32>()).prop_map(|(rank, process)| Report::Started { rank, process }),
            (any::<u32>(), 0u8..2, bytes()).prop_map(|(rank, stream, bytes)| Report::Output {
                rank,
                stream,
                bytes
            }),
            "[a-z\n]{0,20}".prop_map(Report::Say),
            (any::<u32>(), any::<i32>()).prop_map(|(rank, status)| Report::Ended { rank, status }),
            (0usize..4, any::<u8>(), prop::option::of(0u32..9), "[a-z ]{0,20}").prop_map(
                |(verdict, code, rank, text)| {
                    Report::Verdict { verdict: Verdict::ALL[verdict], code, rank, text }
                }
            ),
            (any::<u32>(), any::<u32>(), prop::collection::vec(part, 0..5))
                .prop_map(|(wave, round, parts)| Report::Exchange { wave, round, parts }),
            any::<u32>().prop_map(Report::InputTaken),
            (any::<u32>(), any::<bool>(), "[a-z ]{0,20}").prop_map(|(rank, sleeps, text)| Report::Waits {
                rank,
                sleeps,
                text
            }),
            any::<u32>().prop_map(Report::Guests),
            (any::<u32>(), any::<u64>(), any::<u64>()).prop_map(|(rank, cpu_us, peak_kib)| Report::Account {
                rank,
                account: Account { cpu_us, peak_kib, counted: Vec::new() }
            }),
            prop::sample::select(vec![Report::Ready, Report::Gone, Report::Pong]),
        ]
    }

    fn read_all<F: Frame>(mut bytes: &[u8]) -> Vec<F> {
        let mut found = Vec::new();
        while let Some((message, length)) = first(bytes).unwrap() {
            found.push(message);
            bytes = &bytes[length..];
        }
        assert!(bytes.is_empty());
        found
    }

    proptest! {
        #[test]
        fn frames_survive(orders in prop::collection::vec(orders(), 0..5), reports in prop::collection::vec(reports(), 0..5)) {
            let mut bytes = Vec::new();
            orders.iter().for_each(|order| append(&mut bytes, order));
            prop_assert_eq!(read_all::<Order>(&bytes), orders);
            bytes.clear();
            reports.iter().for_each(|report| append(&mut bytes, report));
            prop_assert_eq!(read_all::<Report>(&bytes), reports);
        }

        #[test]
        fn a_part_of_a_frame_is_waited_for(report in reports()) {
            let mut bytes = Vec::new();
            append(&mut bytes, &report);
            for cut in 0..bytes.len() {
                prop_assert_eq!(first::<Report>(&bytes[..cut]), Ok(None));
            }
        }

        #[test]
        fn whatever_comes_is_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Some(order) = Order::decode(&bytes) {
                prop_assert_eq!(order.encode(), bytes.clone());
            }
            let _ = Report::decode(&bytes);
            let _ = first::<Report>(&bytes);
        }
    }
}
