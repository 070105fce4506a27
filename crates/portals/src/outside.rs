//! What a NIC is asked for and keeps, as a tool sees it that maps its memory from outside: to explain a hang.

use crate::core::PLAIN_PORTAL;
use crate::nic::Nic;
use crate::record::{ANY, kind};
use parnass_base::Window;

/// A posted receive, or a message that no receive has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lying {
    /// The initiator; `None` for a receive that takes messages of anybody.
    pub source: Option<u32>,
    pub match_bits: u64,
    /// Those that a receive does not ask for; 0 for a message.
    pub ignore_bits: u64,
}

/// What there is of plain messages in a NIC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// The receives that are posted.
    pub receives: Vec<Lying>,
    /// The messages that have come and were not received, nor taken by a search.
    pub messages: Vec<Lying>,
}

/// Looks through the NIC that lies in `memory`, whose owner counts in `counters`. It takes no lock, since whoever holds it may be stopped: while the
/// NIC is at work, records may be missing or be seen twice.
pub fn look_inside(memory: &Window, counters: &Window) -> Inside {
    let nic = Nic::new(memory, counters);
    let mut inside = Inside::default();
    for index in 1..nic.slab.fresh() {
        let record = nic.slab.at(index);
        let what = record.kind.get();
        if !matches!(what, kind::POSTED | kind::UNEXPECTED) || record.detail.get() != PLAIN_PORTAL {
            continue;
        }
        let source = Some(record.source.get()).filter(|&source| source != ANY);
        let match_bits = record.match_bits.get();
        if what == kind::POSTED {
            let ignore_bits = record.ignore_bits.get();
            inside.receives.push(Lying { source, match_bits, ignore_bits });
        } else {
            inside.messages.push(Lying { source, match_bits, ignore_bits: 0 });
        }
    }
    inside
}
