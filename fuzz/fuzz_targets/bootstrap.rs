//! The messages between a rank and its launcher, the description of a job, and PMI: the first byte says which decoder reads the rest.
#![no_main]

use libfuzzer_sys::fuzz_target;
use parnass_bootstrap::fuzzing::{DECODERS, decode};

fuzz_target!(|bytes: &[u8]| {
    if let Some((decoder, bytes)) = bytes.split_first() {
        decode(usize::from(*decoder) % DECODERS, bytes);
    }
});
