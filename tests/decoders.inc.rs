// The tests of a crate's decoders: its tests/decoders.rs brings DECODERS, decode and sample from its module `fuzzing`, and includes this.

use proptest::prelude::*;

proptest! {
    #[test]
    fn bytes_that_were_changed_on_the_way(
        decoder in 0..DECODERS,
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..6),
        length in any::<usize>(),
        more in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut bytes = sample(decoder);
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        bytes.truncate(length % (2 * bytes.len()));
        bytes.extend(more);
        decode(decoder, &bytes);
    }

    #[test]
    fn any_bytes(decoder in 0..DECODERS, bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        decode(decoder, &bytes);
    }
}

#[test]
fn what_is_right() {
    (0..DECODERS).for_each(|decoder| decode(decoder, &sample(decoder)));
}
