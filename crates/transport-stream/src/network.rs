//! The network over streams, as the layers above see it.

use crate::books::Refusals;
use crate::incoming::Incoming;
use crate::link::{Stage, Streams, lock, try_lock};
use crate::peer::Pair;
use crate::pipe::{Carrier, Pipe};
use parnass_base::UserAddress;
use parnass_base::atomics::{AtomicU32, Ordering};
use parnass_base::lane::Message;
use parnass_transport::{Bulk, Network, Prospect};
use std::io;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Polls of the link that has spoken last between two looks at all links: where it is the only one, and else.
const LOOK_EVERY: (u32, u32) = (64, 4);

/// Streams between the ranks of a job, and the thread that keeps them.
#[derive(Debug)]
pub struct StreamNetwork<C: Carrier> {
    streams: Arc<Streams<C>>,
    polls: AtomicU32,
    keeper: Mutex<Option<JoinHandle<()>>>,
}

impl<C: Carrier> StreamNetwork<C> {
    /// With a thread of this name, the keeper, which runs `keep` until [`Streams::stopping`].
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn start(
        streams: Arc<Streams<C>>,
        name: &str,
        keep: impl FnOnce() + Send + 'static,
    ) -> io::Result<StreamNetwork<C>> {
        let thread = std::thread::Builder::new().name(name.into()).stack_size(256 << 10).spawn(keep)?;
        Ok(StreamNetwork { streams, polls: AtomicU32::new(0), keeper: Mutex::new(Some(thread)) })
    }

    /// Makes processes of other worlds peers of this one. The number of the first; the others follow. `before` is told it
    /// when none of them can be met yet.
    ///
    /// # Errors
    /// There are too many.
    pub fn admit(&self, pairs: &[Pair], before: impl FnOnce(u32)) -> io::Result<u32> {
        self.streams.admit(pairs, before)
    }

    /// This process is about to be told of processes of other worlds (`true`), or was. Meanwhile connections of strangers wait:
    /// the others may know of this one before.
    pub fn expect(&self, more: bool) {
        if more {
            self.streams.expecting.fetch_add(1, Ordering::AcqRel);
        } else {
            self.streams.expecting.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Says goodbye to a process of another world with which nothing is shared any more. Its end is no loss from now on.
    pub fn let_go(&self, peer: u32) {
        self.streams.let_go(peer);
    }

    /// How many connections were refused, and why.
    pub fn refusals(&self) -> &Refusals {
        &self.streams.refusals
    }

    /// How many connections there are or are wanted.
    pub fn connections(&self) -> usize {
        self.streams.links().count()
    }

    /// What carries the streams.
    pub fn carrier(&self) -> &C {
        &self.streams.carrier
    }

    /// Breaks the connection to a peer, as a fault of the network would: for tests.
    pub fn cut(&self, peer: u32) {
        if let Stage::Up(pipe, _) = &lock(&self.streams.link(peer).out).stage {
            pipe.cut();
        }
    }
}

impl<C: Carrier> Network for StreamNetwork<C> {
    fn me(&self) -> u32 {
        self.streams.identity.me
    }

    fn size(&self) -> u32 {
        self.streams.identity.size
    }

    fn stream_bytes(&self) -> usize {
        C::STREAM_BYTES
    }

    fn unasked_bytes(&self) -> usize {
        C::UNASKED_BYTES
    }

    fn post(&self, target: u32, tag: u32, words: &[u64]) -> bool {
        self.streams.post(target, tag, words)
    }

    fn stream(&self, target: u32, tag: u32, words: &[u64], source: UserAddress, length: usize) -> bool {
        self.streams.stream(target, tag, words, source, length)
    }

    fn lend(&self, target: u32, tag: u32, word: u64, source: UserAddress, length: usize, then: Message) {
        self.streams.lend(target, tag, word, source, length, then);
    }

    fn poll(&self) -> bool {
        self.streams.send_own_gathered();
        if self.streams.has_told() {
            return true;
        }
        let Some(mut incoming) = try_lock(&self.streams.incoming) else { return true };
        if self.streams.carrier.wants_look() {
            self.streams.look(&mut incoming);
        }
        let apart = self.streams.apart_of(&incoming);
        if incoming.has_ready() || self.streams.has_told() {
            return true;
        }
        if incoming.look_at_hot() {
            if !apart {
                self.streams.set_apart(&incoming);
            }
            return true;
        }
        let every = if incoming.links() == 1 { LOOK_EVERY.0 } else { LOOK_EVERY.1 };
        if self.polls.fetch_add(1, Ordering::Relaxed).is_multiple_of(every) {
            self.streams.look(&mut incoming);
        }
        incoming.has_ready() || self.streams.has_told()
    }

    fn look(&self) -> bool {
        if self.poll() {
            return true;
        }
        let mut incoming = lock(&self.streams.incoming);
        loop {
            self.streams.look(&mut incoming);
            // A look also writes where a connection has room again, and what was lent may be sent now.
            if incoming.has_ready() || self.streams.has_told() {
                return true;
            }
            if self.streams.carrier.is_settled() {
                return false;
            }
        }
    }

    fn take(&self, limit: usize, accept: &mut dyn FnMut(&Message) -> bool) -> usize {
        let mut taken =
            Incoming::take(|| lock(&self.streams.incoming), limit, &*self.streams, &mut |message| {
                accept(message)
            });
        if taken != 0 {
            self.streams.took();
        }
        while let Some(message) = self.streams.next_told() {
            if !accept(&message) {
                self.streams.untell(message);
                break;
            }
            taken += 1;
        }
        taken
    }

    fn land(&self, payload: Bulk, target: UserAddress, length: usize, then: Message) -> bool {
        lock(&self.streams.incoming).land(payload, target, length, then, &*self.streams)
    }

    fn land_whole(&self, payload: Bulk, target: UserAddress, length: usize) -> bool {
        lock(&self.streams.incoming).land_whole(payload, target, length, &*self.streams)
    }

    fn is_whole(&self, payload: Bulk) -> bool {
        lock(&self.streams.incoming).is_whole(payload)
    }

    fn discard(&self, payload: Bulk) {
        lock(&self.streams.incoming).discard(payload, &*self.streams);
    }

    fn arm(&self) {
        self.streams.arm();
    }

    #[inline]
    fn arm_lightly(&self, prospect: Prospect) {
        self.streams.watch_lightly(prospect);
    }

    #[inline]
    fn attended(&self) {
        self.streams.attended();
    }

    fn holds(&self) -> bool {
        if self.streams.carrier.wants_look() {
            return self.poll();
        }
        self.streams.send_own_gathered();
        let Some(incoming) = try_lock(&self.streams.incoming) else { return true };
        // Only of what lies in the kernel is told who is armed.
        let holds = if C::SETTLES { incoming.has_ready() } else { incoming.has_read() };
        holds || self.streams.has_told()
    }

    fn more_follows(&self, target: u32) {
        self.streams.more_follows(target);
    }

    fn give_up(&self, peer: u32) {
        self.streams.give_up(peer);
    }

    fn close(&self) {
        self.streams.close();
    }
}

impl<C: Carrier> Drop for StreamNetwork<C> {
    fn drop(&mut self) {
        self.streams.close();
        self.streams.stopping.store(true, Ordering::Release);
        self.streams.carrier.ring();
        if let Some(thread) = lock(&self.keeper).take() {
            let _ = thread.join();
        }
    }
}
