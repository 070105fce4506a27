//! Proofs that a side of a connection knows the job's key: HMAC-SHA256 over everything that was said, each with the name
//! of the step, so that none can be sent back or used again.

use crate::wire::{JOB_BYTES, SECRET_BYTES, Secret};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

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
}

fn keyed(key: &Secret, step: Step, said: &[&[u8]]) -> Hmac<Sha256> {
    let label: &[u8] = match step {
        Step::Job => b"parnass job name",
        Step::Challenge => b"parnass challenge",
        Step::Answer => b"parnass answer",
        Step::Verdict => b"parnass verdict",
        Step::Encrypted => b"parnass encrypted",
        Step::Stream => b"parnass stream",
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

/// The name of the job with this key. It tells nothing about the key.
pub fn job_name(key: &Secret) -> [u8; JOB_BYTES] {
    let whole = make(key, Step::Job, &[]);
    *whole.first_chunk().expect("a name is shorter than a proof")
}
