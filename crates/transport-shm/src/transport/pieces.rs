//! Pieces of bulk memory: claimed, filled, drained, and discarded by whoever has read them.

use super::{Peer, SharedMemory};
use crate::kept;
use crate::layout::Piece;
use crate::pool::{self, HEAD, Pool};
use parnass_base::UserAddress;
use parnass_transport::Bulk;
use std::sync::{MutexGuard, PoisonError};

impl SharedMemory {
    fn lock_pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// See [`parnass_transport::Transport::runs_ahead`].
    pub(super) fn uses_up_pieces(&self, length: usize) -> bool {
        !self.kept.has(length) && self.lock_pool().runs_ahead(&self.own().station, length)
    }

    /// A piece for `length` bytes; `keep`: of a message that has come and stays.
    pub(super) fn claim_for(&self, length: usize, keep: bool) -> Option<Bulk> {
        if !keep && let found @ Some(_) = self.kept.take(length) {
            return found;
        }
        let claimed = self.lock_pool().claim(&self.own().station, length, keep);
        if let Some(offset) = claimed {
            return Some(Bulk(u64::from(self.rank) << 40 | offset as u64));
        }
        self.peers.iter().find_map(|peer| kept::steal(&peer.kept, length))
    }

    pub(super) fn piece(&self, bulk: Bulk) -> (&Peer, usize) {
        (self.peer((bulk.0 >> 40) as u32), (bulk.0 & ((1 << 40) - 1)) as usize)
    }

    /// Where the `length` bytes of a piece lie that follow the first `skip` ones.
    pub(super) fn bytes_of(&self, bulk: Bulk, skip: usize, length: usize) -> UserAddress {
        let (peer, offset) = self.piece(bulk);
        // SAFETY: inside the mapping, which `self` keeps.
        unsafe { UserAddress::new(peer.bulk.pointer(offset + HEAD + skip, length)) }
    }

    /// See [`parnass_transport::Transport::discard`].
    pub(super) fn has_read(&self, bulk: Bulk) {
        // Pieces of one size may belong to several.
        let give_back = |bulks: &[Bulk]| {
            for own in bulks.chunk_by(|one, other| one.0 >> 40 == other.0 >> 40) {
                let (peer, first) = self.piece(own[0]);
                let others = own[1..].iter().map(|bulk| self.piece(*bulk).1);
                pool::give_back(&peer.bulk, &peer.station, first, others);
            }
        };
        let (peer, offset) = self.piece(bulk);
        let class = peer.bulk.reference::<Piece>(offset).class.get();
        self.kept.keep(class as usize, bulk, give_back);
    }
}
