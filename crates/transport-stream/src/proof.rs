//! Proofs that a side of a connection knows the job's key: HMAC-SHA256 over everything that was said, each with the name
//! of the step, so that none can be sent back or used again.

use crate::wire::{JOB_BYTES, SECRET_BYTES, Secret};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::io;

/// What a proof is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The name of a job.
    Job,
    /// The answer of the side that was connected to.
    Challenge,
    /// The answer to that.
    Answer,
    /// The end of the handshake.
    Verdict,
    /// The key that stands for the job's where connections are encrypted.
    Encrypted,
    /// The key of one direction of an encrypted connection.
    Stream,
    /// What every packet of one direction bears, where each says for itself who has sent it.
    Packet,
    /// The key of two processes of different worlds.
    Pair,
    /// Who answers at a port, or calls there, knows the port's secret.
    Port,
}

fn keyed(key: &Secret, step: Step, said: &[&[u8]]) -> Hmac<Sha256> {
    let label: &[u8] = match step {
        Step::Job => b"parnass job name",
        Step::Challenge => b"parnass challenge",
        Step::Answer => b"parnass answer",
        Step::Verdict => b"parnass verdict",
        Step::Encrypted => b"parnass encrypted",
        Step::Stream => b"parnass stream",
        Step::Packet => b"parnass packet",
        Step::Pair => b"parnass pair",
        Step::Port => b"parnass port",
    };
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(&[label.len() as u8]);
    mac.update(label);
    for bytes in said {
        mac.update(&(bytes.len() as u32).to_le_bytes());
        mac.update(bytes);
    }
    mac
}

/// The proof for a step, after `said`.
pub fn make(key: &Secret, step: Step, said: &[&[u8]]) -> Secret {
    let bytes: [u8; SECRET_BYTES] = keyed(key, step, said).finalize().into_bytes().into();
    bytes
}

/// Whether `proof` is the one, found out in a time that tells nothing.
pub fn holds(key: &Secret, step: Step, said: &[&[u8]], proof: &[u8]) -> bool {
    keyed(key, step, said).verify_slice(proof).is_ok()
}

/// 32 bytes that nobody can guess, from the kernel.
///
/// # Errors
/// The kernel has none.
pub fn fresh() -> io::Result<Secret> {
    let mut bytes = [0; SECRET_BYTES];
    let count = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    if count == bytes.len() { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// The name of the job with this key. It tells nothing about the key.
pub fn job_name(key: &Secret) -> [u8; JOB_BYTES] {
    let whole = make(key, Step::Job, &[]);
    *whole.first_chunk().expect("a name is shorter than a proof")
}
