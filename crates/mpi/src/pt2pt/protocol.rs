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

/// What the network below can do, as far as it decides how a message travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Longest message, in bytes, that fits into one record of a mailbox.
    pub record_bytes: u64,
    /// From this many bytes on one direct copy beats copying in and out of a buffer; `None` where data can never
    /// move directly between user buffers.
    pub direct_bytes: Option<u64>,
}

impl Default for Capabilities {
    fn default() -> Self {
        Capabilities { record_bytes: parnass_portals::RECORD_BYTES as u64, direct_bytes: Some(64 * 1024) }
    }
}

/// Name of the variable of the environment that overrides the measured threshold to direct transfer, in bytes.
pub const DIRECT_THRESHOLD_VARIABLE: &str = "PARNASS_DIRECT_THRESHOLD";

impl Table {
    /// The table for a network. `direct_threshold` overrides the measured one: messages of at least so many
    /// bytes go directly.
    pub fn new(capabilities: Capabilities, direct_threshold: Option<u64>) -> Table {
        let direct = direct_threshold.or(capabilities.direct_bytes);
        let chunk_limit = direct.map_or(u64::MAX, |bytes| bytes.saturating_sub(1));
        Table {
            rows: [
                Row {
                    name: "record",
                    protocol: Protocol::Buffered,
                    limit: capabilities.record_bytes.min(chunk_limit),
                    meaning: "copied into one record of the target's mailbox, and out of it",
                },
                Row {
                    name: "chunk",
                    protocol: Protocol::Buffered,
                    limit: chunk_limit,
                    meaning: "copied into memory shared with the target, and out of it",
                },
                Row {
                    name: "direct",
                    protocol: Protocol::Direct,
                    limit: u64::MAX,
                    meaning: "moved once, between the two user buffers",
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
        for threshold in [None, Some(0), Some(1), Some(500), Some(1 << 20)] {
            let table = Table::new(Capabilities::default(), threshold);
            for bytes in [0, 1, 40, 41, 499, 500, 65535, 65536, 1 << 20, u64::MAX] {
                let expected = table.rows().iter().position(|row| bytes <= row.limit).unwrap();
                assert_eq!(table.choose(bytes), expected, "{bytes} bytes, threshold {threshold:?}");
                assert_eq!(table.protocol(bytes), table.rows()[expected].protocol);
            }
        }
    }

    #[test]
    fn never_direct_where_the_network_cannot() {
        let table = Table::new(Capabilities { record_bytes: 64, direct_bytes: None }, None);
        assert_eq!(table.protocol(u64::MAX), Protocol::Buffered);
    }
}
