//! Contacts and packets of libfabric, and frames that offer memory: the first byte says which decoder reads the rest.
#![no_main]

use libfuzzer_sys::fuzz_target;
use parnass_transport_ofi::fuzzing::{DECODERS, decode};

fuzz_target!(|bytes: &[u8]| {
    if let Some((decoder, bytes)) = bytes.split_first() {
        decode(usize::from(*decoder) % DECODERS, bytes);
    }
});
