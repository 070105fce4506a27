//! How two sides of a new connection find out that both belong to the job, as state machines over bytes: no socket, no
//! clock, no randomness of their own.
//!
//! ```text
//! connecting side                       connected side
//!   hello: versions, job, ranks, nonce  ->
//!                                       <-  challenge: version, nonce, proof over hello and these
//!   answer: proof over all that was said ->
//!                                       <-  verdict, and a proof over all and it
//! ```
//! Nothing but the fixed fields of the hello is looked at before the proofs. Each message has a fixed length, and a side
//! reads no byte beyond it.

use crate::proof::{self, Step};
use crate::seal::Keys;
use crate::wire::{Challenge, Hello, JOB_BYTES, SECRET_BYTES, Secret, VERSIONS, Verdict};

/// Who this process is, for handshakes.
#[derive(Clone, Copy)]
pub struct Identity {
    pub key: Secret,
    pub me: u32,
    pub size: u32,
    pub encrypted: bool,
}

impl Identity {
    /// Of rank `me` of `size`. Where connections are encrypted every proof is by another key made of the job's: sides that
    /// disagree on it are of different jobs to each other, and no intruder can talk them out of it.
    pub fn new(job: &Secret, me: u32, size: u32, encrypted: bool) -> Identity {
        let key = if encrypted { proof::make(job, Step::Encrypted, &[]) } else { *job };
        Identity { key, me, size, encrypted }
    }

    /// Of a process to another one of another world: both know `key` for the two of them alone. One of them is the `first`.
    pub fn of_pair(key: &Secret, first: bool, encrypted: bool) -> Identity {
        Identity::new(key, u32::from(!first), 2, encrypted)
    }

    /// Secrets of a connection after `said`: of what the caller sends, and the callee.
    fn secrets(&self, step: Step, said: [&[u8]; 2]) -> [Secret; 2] {
        [1, 2].map(|direction| proof::make(&self.key, step, &[said[0], said[1], &[direction]]))
    }

    /// The keys of a connection after `said`, if it is encrypted.
    fn keys(&self, said: [&[u8]; 2]) -> Option<[Secret; 2]> {
        self.encrypted.then(|| self.secrets(Step::Stream, said))
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "rank {} of {}", self.me, self.size)
    }
}

/// Why a connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// What came is not of this protocol.
    Garbage,
    /// The other side speaks no version that this one does.
    Version,
    /// Of another job, or for another rank.
    OtherJob,
    /// The other side does not know the key.
    Proof,
    /// The other side said nothing for too long.
    Slow,
    /// Too many connections are waiting to be let in.
    Crowd,
}

/// What a side does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// Sends these bytes, and reads so many.
    Exchange(Vec<u8>, usize),
    /// The other side has proved that it is this rank. The connected side decides now.
    Decide(u32),
    /// The handshake is over.
    Over(Verdict),
}

/// The connecting side.
#[derive(Debug)]
pub struct Caller {
    identity: Identity,
    hello: [u8; Hello::BYTES],
    challenge: Option<[u8; Challenge::BYTES]>,
}

impl Caller {
    /// A handshake with rank `to`; `nonce` must be fresh.
    pub fn new(identity: Identity, to: u32, nonce: Secret) -> (Caller, Move) {
        let job = proof::job_name(&identity.key);
        let hello = Hello { versions: VERSIONS, job, from: identity.me, to, nonce }.encode();
        (Caller { identity, hello, challenge: None }, Move::Exchange(hello.to_vec(), Challenge::BYTES))
    }

    /// Takes as many bytes as the last move asked for.
    ///
    /// # Errors
    /// The connection must be closed.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Move, Refusal> {
        let key = &self.identity.key;
        let Some(challenge) = &self.challenge else {
            let bytes: &[u8; Challenge::BYTES] = bytes.try_into().map_err(|_| Refusal::Garbage)?;
            let challenge = Challenge::decode(bytes).ok_or(Refusal::Garbage)?;
            let open = &bytes[..Challenge::BYTES - SECRET_BYTES];
            if !proof::holds(key, Step::Challenge, &[&self.hello, open], &challenge.proof) {
                return Err(Refusal::Proof);
            }
            if challenge.version < VERSIONS.0 || challenge.version > VERSIONS.1 {
                return Err(Refusal::Version);
            }
            self.challenge = Some(*bytes);
            let answer = proof::make(key, Step::Answer, &[&self.hello, bytes]);
            return Ok(Move::Exchange(answer.to_vec(), Verdict::BYTES));
        };
        let (number, proof) = bytes.split_first().ok_or(Refusal::Garbage)?;
        if !proof::holds(key, Step::Verdict, &[&self.hello, challenge, &[*number]], proof) {
            return Err(Refusal::Proof);
        }
        Verdict::from_number(*number).map(Move::Over).ok_or(Refusal::Garbage)
    }

    /// The keys of the connection, once the handshake is over; `None`: it is not encrypted.
    pub fn keys(&self) -> Option<Keys> {
        let [sending, receiving] = self.identity.keys([&self.hello, self.challenge.as_ref()?])?;
        Some(Keys { sending, receiving })
    }

    /// What packets bear that this side sends, and that it receives, once the handshake is over.
    pub fn tokens(&self) -> Option<[Secret; 2]> {
        Some(self.identity.secrets(Step::Packet, [&self.hello, self.challenge.as_ref()?]))
    }
}

/// A process of another world, as a hello shows it.
#[derive(Clone, Copy, Debug)]
pub struct Acquainted {
    /// Who this process is to it.
    pub identity: Identity,
    /// Its number at this process.
    pub number: u32,
}

/// The connected side.
#[derive(Debug)]
pub struct Callee {
    identity: Identity,
    /// The number of the caller, where it is of another world.
    number: Option<u32>,
    nonce: Secret,
    said: Option<(Hello, [u8; Hello::BYTES], [u8; Challenge::BYTES])>,
}

impl Callee {
    /// A handshake with whoever has connected; `nonce` must be fresh.
    pub fn new(identity: Identity, nonce: Secret) -> (Callee, Move) {
        let callee = Callee { identity, number: None, nonce, said: None };
        (callee, Move::Exchange(Vec::new(), Hello::BYTES))
    }

    /// Takes as many bytes as the last move asked for.
    ///
    /// # Errors
    /// The connection must be closed; nothing else has changed.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Move, Refusal> {
        self.receive_of(bytes, &|_| None)
    }

    /// As [`Callee::receive`], where the caller may be of another world: `others` knows those by the name in their hello.
    ///
    /// # Errors
    /// As there.
    pub fn receive_of(
        &mut self,
        bytes: &[u8],
        others: &dyn Fn(&[u8; JOB_BYTES]) -> Option<Acquainted>,
    ) -> Result<Move, Refusal> {
        let Some((hello, said, challenge)) = &self.said else {
            let said: &[u8; Hello::BYTES] = bytes.try_into().map_err(|_| Refusal::Garbage)?;
            let hello = Hello::decode(said).ok_or(Refusal::Garbage)?;
            if let Some(other) = others(&hello.job) {
                (self.identity, self.number) = (other.identity, Some(other.number));
            }
            let Identity { key, me, size, .. } = &self.identity;
            let version = hello.versions.1.min(VERSIONS.1);
            if version < hello.versions.0.max(VERSIONS.0) {
                return Err(Refusal::Version);
            }
            let known = hello.job == proof::job_name(key) && hello.to == *me;
            if !known || hello.from >= *size || hello.from == *me {
                return Err(Refusal::OtherJob);
            }
            let mut challenge = Challenge { version, nonce: self.nonce, proof: [0; SECRET_BYTES] };
            let open = challenge.encode();
            let open = &open[..Challenge::BYTES - SECRET_BYTES];
            challenge.proof = proof::make(key, Step::Challenge, &[said, open]);
            let challenge = challenge.encode();
            self.said = Some((hello, *said, challenge));
            return Ok(Move::Exchange(challenge.to_vec(), SECRET_BYTES));
        };
        if !proof::holds(&self.identity.key, Step::Answer, &[said, challenge], bytes) {
            return Err(Refusal::Proof);
        }
        Ok(Move::Decide(self.number.unwrap_or(hello.from)))
    }

    /// The last bytes to send, once [`Move::Decide`] has been answered by a verdict.
    pub fn decide(&self, verdict: Verdict) -> Vec<u8> {
        let (_, said, challenge) = self.said.as_ref().expect("a handshake that is to be decided");
        let number = [verdict.number()];
        let proof = proof::make(&self.identity.key, Step::Verdict, &[said, challenge, &number]);
        [&number[..], &proof].concat()
    }

    /// The keys of the connection, once the handshake is over; `None`: it is not encrypted.
    pub fn keys(&self) -> Option<Keys> {
        let (_, said, challenge) = self.said.as_ref()?;
        let [receiving, sending] = self.identity.keys([said, challenge])?;
        Some(Keys { sending, receiving })
    }

    /// What packets bear that this side sends, and that it receives, once the handshake is over.
    pub fn tokens(&self) -> Option<[Secret; 2]> {
        let (_, said, challenge) = self.said.as_ref()?;
        let [receiving, sending] = self.identity.secrets(Step::Packet, [said, challenge]);
        Some([sending, receiving])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn identity(key: u8, me: u32) -> Identity {
        Identity::new(&[key; SECRET_BYTES], me, 4, false)
    }

    #[test]
    fn both_sides_make_the_same_keys_and_others_for_each_connection_and_direction() {
        let keys = |nonces: [u8; 2]| {
            let encrypted = |me| Identity::new(&[5; SECRET_BYTES], me, 4, true);
            let (mut caller, first) = Caller::new(encrypted(1), 2, [nonces[0]; SECRET_BYTES]);
            let (mut callee, _) = Callee::new(encrypted(2), [nonces[1]; SECRET_BYTES]);
            let Move::Exchange(hello, _) = first else { panic!("a caller speaks first") };
            let Move::Exchange(challenge, _) = callee.receive(&hello).unwrap() else { panic!("a challenge") };
            let Move::Exchange(answer, _) = caller.receive(&challenge).unwrap() else { panic!("an answer") };
            assert_eq!(callee.receive(&answer), Ok(Move::Decide(1)));
            let (one, two) = (caller.keys().unwrap(), callee.keys().unwrap());
            assert_eq!((one.sending, one.receiving), (two.receiving, two.sending));
            [one.sending, one.receiving]
        };
        let all = [keys([1, 2]), keys([1, 3]), keys([4, 2])].concat();
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), 6);
        let (caller, _) = Caller::new(identity(5, 1), 2, [1; SECRET_BYTES]);
        assert!(caller.keys().is_none());
    }

    #[test]
    fn who_encrypts_does_not_talk_to_who_does_not() {
        let hello = Caller::new(identity(5, 1), 2, [1; SECRET_BYTES]).1;
        let Move::Exchange(hello, _) = hello else { panic!("a caller speaks first") };
        let encrypted = Identity::new(&[5; SECRET_BYTES], 2, 4, true);
        let (mut callee, _) = Callee::new(encrypted, [2; SECRET_BYTES]);
        assert_eq!(callee.receive(&hello), Err(Refusal::OtherJob));
    }

    /// Plays a handshake of rank 1 with rank 2; `meddle` may change each message. What each side ends with.
    fn play(
        keys: (u8, u8),
        meddle: &mut dyn FnMut(usize, &mut Vec<u8>),
    ) -> (Result<Move, Refusal>, Result<Move, Refusal>) {
        let (mut caller, first) = Caller::new(identity(keys.0, 1), 2, [1; SECRET_BYTES]);
        let (mut callee, _) = Callee::new(identity(keys.1, 2), [2; SECRET_BYTES]);
        let sent = |step: Move| match step {
            Move::Exchange(bytes, _) => bytes,
            other => panic!("{other:?}"),
        };
        let mut hello = sent(first);
        meddle(0, &mut hello);
        let mut challenge = match callee.receive(&hello) {
            Ok(step) => sent(step),
            Err(refusal) => return (Err(Refusal::Slow), Err(refusal)),
        };
        meddle(1, &mut challenge);
        let mut answer = match caller.receive(&challenge) {
            Ok(step) => sent(step),
            Err(refusal) => return (Err(refusal), Err(Refusal::Slow)),
        };
        meddle(2, &mut answer);
        let decided = callee.receive(&answer);
        if decided.is_err() {
            return (Err(Refusal::Slow), decided);
        }
        let mut verdict = callee.decide(Verdict::Accepted);
        meddle(3, &mut verdict);
        (caller.receive(&verdict), decided)
    }

    #[test]
    fn two_of_one_job_accept_each_other() {
        assert_eq!(play((5, 5), &mut |_, _| ()), (Ok(Move::Over(Verdict::Accepted)), Ok(Move::Decide(1))));
    }

    #[test]
    fn another_job_is_known_by_its_name_and_by_its_proofs() {
        assert_eq!(play((5, 6), &mut |_, _| ()).1, Err(Refusal::OtherJob));
        // Who has seen the name of the job still does not know the key.
        let name = proof::job_name(&[6; SECRET_BYTES]);
        let mut forge = |step: usize, bytes: &mut Vec<u8>| {
            if step == 0 {
                bytes[12..28].copy_from_slice(&name);
            }
        };
        assert_eq!(play((5, 6), &mut forge).0, Err(Refusal::Proof));
    }

    #[test]
    fn an_answer_of_another_connection_proves_nothing() {
        let mut heard = Vec::new();
        let _ = play((5, 5), &mut |step, bytes| {
            if step == 2 {
                heard.clone_from(bytes)
            }
        });
        let (mut callee, _) = Callee::new(identity(5, 2), [3; SECRET_BYTES]);
        let hello = Caller::new(identity(5, 1), 2, [1; SECRET_BYTES]).1;
        let Move::Exchange(hello, _) = hello else { panic!("a caller speaks first") };
        callee.receive(&hello).unwrap();
        assert_eq!(callee.receive(&heard), Err(Refusal::Proof));
    }

    #[test]
    fn a_rank_that_is_not_or_is_oneself_is_refused() {
        for from in [2, 4, u32::MAX] {
            let mut forge = |step: usize, bytes: &mut Vec<u8>| {
                if step == 0 {
                    bytes[28..32].copy_from_slice(&from.to_le_bytes());
                }
            };
            assert_eq!(play((5, 5), &mut forge).1, Err(Refusal::OtherJob));
        }
    }

    #[test]
    fn a_version_that_both_speak_is_found_or_there_is_no_connection() {
        let with = |versions: (u16, u16)| {
            play((5, 5), &mut |step, bytes| {
                if step == 0 {
                    bytes[8..10].copy_from_slice(&versions.0.to_le_bytes());
                    bytes[10..12].copy_from_slice(&versions.1.to_le_bytes());
                }
            })
        };
        let (oldest, newest) = VERSIONS;
        assert_eq!(with((newest + 1, 9)).1, Err(Refusal::Version));
        assert_eq!(with((0, oldest - 1)).1, Err(Refusal::Version));
        // A newer peer would be spoken to, had it really said that: here somebody has changed its words.
        assert_eq!(with((oldest, 9)).0, Err(Refusal::Proof));
    }

    proptest! {
        #[test]
        fn no_changed_bit_goes_unseen(step in 0usize..4, at in any::<usize>(), bit in 0u8..8) {
            let mut meddle = |number: usize, bytes: &mut Vec<u8>| {
                if number == step {
                    let at = at % bytes.len();
                    bytes[at] ^= 1 << bit;
                }
            };
            let (caller, callee) = play((5, 5), &mut meddle);
            prop_assert!(caller.is_err() || callee.is_err());
        }

        #[test]
        fn garbage_ends_the_handshake(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let (mut callee, _) = Callee::new(identity(5, 2), [2; SECRET_BYTES]);
            prop_assert!(callee.receive(&bytes).is_err());
            let (mut caller, _) = Caller::new(identity(5, 1), 2, [1; SECRET_BYTES]);
            prop_assert!(caller.receive(&bytes).is_err());
        }
    }
}
