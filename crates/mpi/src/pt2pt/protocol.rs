//! The protocol chooser: how the bytes of a message travel, decided in one pure function by their number.

use parnass_portals::Protocol;

/// One way for a message to travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub name: &'static str,
    pub protocol: Protocol,
    /// Longest message that goes this way, in bytes.
    pub limit: u64,
    pub meaning: &'static str,
}

/// The table that [`choose`] indexes: `parnass info` prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    rows: [Row; 3],
}

/// Longest message, in bytes, that can be copied into shared memory as a whole.
pub const COPIED_LIMIT: u64 = 64 << 10;

impl Table {
    /// The table in which messages of at least `direct_threshold` bytes are described, not copied.
    pub fn new(direct_threshold: u64) -> Table {
        let copied = direct_threshold.saturating_sub(1).min(COPIED_LIMIT);
        Table {
            rows: [
                Row {
                    name: "record",
                    protocol: Protocol::Buffered,
                    limit: copied.min(parnass_portals::RECORD_BYTES as u64),
                    meaning: "copied into one record of the target's mailbox, and out of it",
                },
                Row {
                    name: "chunk",
                    protocol: Protocol::Buffered,
                    limit: copied,
                    meaning: "copied into more records of the mailbox (up to 1 KiB), a run beside them (from 256 B to 16 KiB) or other shared memory, and out of it",
                },
                Row {
                    name: "direct",
                    protocol: Protocol::Direct,
                    limit: u64::MAX,
                    meaning: "moved once between the two user buffers, or in pieces through shared memory",
                },
            ],
        }
    }

    /// The rows, shortest messages first.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The row for a message of `bytes` bytes. All modes of sending travel alike; they differ in what is awaited.
    #[inline]
    pub fn choose(&self, bytes: u64) -> usize {
        usize::from(bytes > self.rows[0].limit) + usize::from(bytes > self.rows[1].limit)
    }

    /// How a message of `bytes` bytes travels.
    #[inline]
    pub fn protocol(&self, bytes: u64) -> Protocol {
        // Rows 0 and 1 are both buffered for the NIC.
        if bytes > self.rows[1].limit { Protocol::Direct } else { Protocol::Buffered }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_has_the_first_row_whose_limit_holds_it() {
        for threshold in [0, 1, 500, 1 << 16, 1 << 20, u64::MAX] {
            let table = Table::new(threshold);
            for bytes in [0, 1, 40, 41, 499, 500, 65535, 65536, 65537, 1 << 20, u64::MAX] {
                let expected = table.rows().iter().position(|row| bytes <= row.limit).unwrap();
                assert_eq!(table.choose(bytes), expected, "{bytes} bytes, threshold {threshold:?}");
                assert_eq!(table.protocol(bytes), table.rows()[expected].protocol);
            }
        }
    }

    #[test]
    fn what_does_not_fit_into_shared_memory_is_never_copied() {
        let table = Table::new(u64::MAX);
        assert_eq!(table.protocol(COPIED_LIMIT), Protocol::Buffered);
        assert_eq!(table.protocol(COPIED_LIMIT + 1), Protocol::Direct);
    }
}
