//! The link that alone has something to say is looked at by itself.
//!
//! A connection that the kernel is to tell of costs whoever sends over it, if both ends are on one machine: for each arrival it goes through
//! the lists of those who are to be told (0.15 us, and 0.12 more where the keeper sleeps on them; half a round trip of 8 bytes is 3.7).

use crate::incoming::Incoming;
use crate::link::Streams;
use crate::pipe::Carrier;
use parnass_base::atomics::{AtomicBool, Ordering};

impl<C: Carrier> Streams<C> {
    /// Whether the link that has spoken last is set apart; if another one is, it is so no longer.
    #[inline]
    pub(crate) fn apart_of(&self, incoming: &Incoming<C::Pipe>) -> bool {
        let Some(apart) = self.carrier.apart() else { return false };
        let hot = incoming.is_hot(apart);
        if !hot {
            self.carrier.rejoin();
        }
        hot
    }

    /// Sets the link apart that alone has spoken for a while, unless the keeper is to be told of it.
    #[inline]
    pub(crate) fn set_apart(&self, incoming: &Incoming<C::Pipe>) {
        let is_needed = || {
            let told = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
            told(&self.watched)
                || told(&self.closing)
                || self.tended.load(Ordering::Relaxed) != 0
                || self.stays_away()
        };
        if let Some((number, pipe)) = incoming.steady()
            && !is_needed()
        {
            // Whoever has the keeper told, or closes, says so first, and then has the link rejoin the others.
            self.carrier.set_apart(pipe, number, &is_needed);
        }
    }
}
