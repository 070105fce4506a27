//! Messages of which a part has been placed, while their senders still write the rest.
//!
//! While the memory of a receive holds such a part, no other message may take that receive, though it may name any source; nor can
//! it be taken back, for one that is leaves its memory as it was (MPI 5.0, section 3.8.4). So a posted entry names the process
//! whose message it holds a part of. Only the death of that process makes it an entry as any other.

use crate::core::PLAIN_PORTAL;
use crate::record::{Entry, kind};

fn name(source: u32) -> u64 {
    u64::from(source) + 1
}

/// Whether a posted entry is one for plain messages (use once, put only, truncating) that a message from this source may take.
#[inline(always)]
pub fn is_plain(entry: &Entry, source: u32) -> bool {
    let kept = entry.remote.get();
    entry.detail.get() == PLAIN_PORTAL && (kept == 0 || kept == name(source))
}

/// Keeps a posted entry for the process of a message of which its memory holds a part.
#[cold]
pub fn keep(entry: &Entry, source: u32) {
    entry.remote.set(name(source));
}

/// Whether the memory of a posted entry holds a part of a message.
pub fn holds_part(entry: &Entry) -> bool {
    entry.remote.get() != 0
}

/// Nothing more comes from a process: an entry that was kept for it is one as any other.
pub fn let_go(entry: &Entry, source: u32) {
    if entry.kind.get() == kind::POSTED && is_plain(entry, source) {
        entry.remote.set(0);
    }
}
