//! What every way between processes offers that share no memory.

use crate::Bulk;
use parnass_base::UserAddress;
use parnass_base::lane::Message;

/// The lowest bits of every tag that crosses a network are the number of its sender.
pub const PROCESS_BITS: u32 = 20;
/// The highest bits of every tag that crosses a network are the kind of the message.
pub const KIND_SHIFT: u32 = 28;
/// The kinds that cross a network, a bit each; others are what processes that share memory tell each other, or what a network
/// tells its own. 0 is nobody's kind.
pub const CROSSING_KINDS: u16 =
    1 << 0 | 1 << 1 | 1 << 2 | 1 << 4 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 13;
/// Words that a message with a payload may carry besides.
pub const PAYLOAD_WORDS: usize = 5;
/// The word of a message with a payload that names the payload: a [`Bulk`] of the receiver.
pub const BULK_WORD: usize = 5;
/// The word of a message with a payload that says how many bytes it has.
pub const LENGTH_WORD: usize = 6;

/// Told of arrivals, by a thread of the network's own. Whether they were taken in, so that it wants to be told of the next one too:
/// the threads of the process look themselves when they can.
pub type Waker = Box<dyn Fn() -> bool + Send>;
/// Takes in what a network has brought to a process of which no thread waits. Whether there was anything.
pub type Attendant = Box<dyn FnMut() -> bool + Send>;

/// What a process that goes on computing expects from a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prospect {
    /// Perhaps a message: a receive for one is posted.
    Posted = 1,
    /// Certainly the next part of something that has begun.
    Moving = 2,
    /// Perhaps a request, at any time, for which somebody waits.
    Request = 4,
}

/// Moves messages, with payloads that follow them, between processes that share no memory. Nothing blocks.
///
/// A network vouches for the sender: `tag` of a message that is taken ends in the number of the process that sent it,
/// in [`PROCESS_BITS`] bits. A message whose sender is this process itself is one that was given as `then`.
pub trait Network: Send + Sync {
    /// The number of this process.
    fn me(&self) -> u32;

    /// How many processes there are.
    fn size(&self) -> u32;

    /// The longest payload of [`Network::stream`], in bytes.
    fn stream_bytes(&self) -> usize;

    /// Of who could do something else while its target is asked, what is longer is better not sent before.
    fn unasked_bytes(&self) -> usize {
        self.stream_bytes()
    }

    /// Sends one message of up to [`parnass_base::lane::WORDS`] words, in order per target. `false`: no room now.
    fn post(&self, target: u32, tag: u32, words: &[u64]) -> bool;

    /// Sends one message of up to [`PAYLOAD_WORDS`] words with a payload; the source may be reused at once. What
    /// a target holds of such payloads is bounded: `false`, no room now, or none at the target. A long one may also be refused because
    /// something is before it on its way.
    fn stream(&self, target: u32, tag: u32, words: &[u64], source: UserAddress, length: usize) -> bool;

    /// Sends a payload from where it lies, in as many messages as needed, each with two words: `word`, and where in
    /// the payload its own begins. When the source may be reused, `take` offers `then`. The target must have asked
    /// for it, since nothing bounds what is lent.
    fn lend(&self, target: u32, tag: u32, word: u64, source: UserAddress, length: usize, then: Message);

    /// Whether a message may be waiting; sends what was gathered. Cheap: it does not look at every peer each time.
    fn poll(&self) -> bool;

    /// As [`Network::poll`], and looks at every peer: `false` is certain.
    fn look(&self) -> bool;

    /// Takes up to `limit` messages, each offered to `accept`; one that is refused stays, and so does what follows
    /// it from its sender. Returns how many were taken. One caller at a time. `accept` may call [`Network::land`]
    /// and [`Network::discard`], and whatever sends.
    fn take(&self, limit: usize, accept: &mut dyn FnMut(&Message) -> bool) -> usize;

    /// Puts the first `length` bytes of a payload at `target`, as they come, and throws away the rest; the name is
    /// used up. `true`: all is there. `false`: `take` offers `then` when it is.
    fn land(&self, payload: Bulk, target: UserAddress, length: usize, then: Message) -> bool;

    /// As [`Network::land`], if all of the payload is there. `false`: nothing is done.
    fn land_whole(&self, payload: Bulk, target: UserAddress, length: usize) -> bool {
        let _ = (payload, target, length);
        false
    }

    /// Whether all of a payload has come that nobody has asked for yet.
    fn is_whole(&self, payload: Bulk) -> bool;

    /// Throws a payload away; the name is used up.
    fn discard(&self, payload: Bulk);

    /// From now on the next arrival, or one that is there, calls the waker that this network was made with, once.
    fn arm(&self);

    /// As [`Network::arm`], for a process that does not sleep: nothing is done where the waker will be called anyway, or where it was
    /// of no use when it was called last with this prospect. For requests it is armed at
    /// once where the process mostly stays away for a while, and else a little later, if it is away then.
    fn arm_lightly(&self, prospect: Prospect);

    /// A thread of the process waits from now on, and looks itself: the waker need not be called for what comes before the process is
    /// armed again.
    fn attended(&self) {}

    /// Whether something was read that nobody has taken. Sends what was gathered.
    fn holds(&self) -> bool {
        self.poll()
    }

    /// Something is about to follow the next message to `target`, and may be sent together with it. What does not follow within a
    /// millisecond is not waited for.
    fn more_follows(&self, target: u32);

    /// A peer is dead: nothing goes there or comes from there any more, and no memory that was lent or named for it is used.
    fn give_up(&self, peer: u32);

    /// Says goodbye to every peer: this process will send nothing more, and its end is no loss. Returns when what
    /// was posted is on its way.
    fn close(&self);
}

/// A network that somebody else holds too.
impl<N: Network> Network for std::sync::Arc<N> {
    fn me(&self) -> u32 {
        N::me(self)
    }

    fn size(&self) -> u32 {
        N::size(self)
    }

    fn stream_bytes(&self) -> usize {
        N::stream_bytes(self)
    }

    fn unasked_bytes(&self) -> usize {
        N::unasked_bytes(self)
    }

    fn post(&self, target: u32, tag: u32, words: &[u64]) -> bool {
        N::post(self, target, tag, words)
    }

    fn stream(&self, target: u32, tag: u32, words: &[u64], source: UserAddress, length: usize) -> bool {
        N::stream(self, target, tag, words, source, length)
    }

    fn lend(&self, target: u32, tag: u32, word: u64, source: UserAddress, length: usize, then: Message) {
        N::lend(self, target, tag, word, source, length, then);
    }

    fn poll(&self) -> bool {
        N::poll(self)
    }

    fn look(&self) -> bool {
        N::look(self)
    }

    fn take(&self, limit: usize, accept: &mut dyn FnMut(&Message) -> bool) -> usize {
        N::take(self, limit, accept)
    }

    fn land(&self, payload: Bulk, target: UserAddress, length: usize, then: Message) -> bool {
        N::land(self, payload, target, length, then)
    }

    fn land_whole(&self, payload: Bulk, target: UserAddress, length: usize) -> bool {
        N::land_whole(self, payload, target, length)
    }

    fn is_whole(&self, payload: Bulk) -> bool {
        N::is_whole(self, payload)
    }

    fn discard(&self, payload: Bulk) {
        N::discard(self, payload);
    }

    fn arm(&self) {
        N::arm(self);
    }

    fn arm_lightly(&self, prospect: Prospect) {
        N::arm_lightly(self, prospect);
    }

    fn attended(&self) {
        N::attended(self);
    }

    fn holds(&self) -> bool {
        N::holds(self)
    }

    fn more_follows(&self, target: u32) {
        N::more_follows(self, target);
    }

    fn give_up(&self, peer: u32) {
        N::give_up(self, peer);
    }

    fn close(&self) {
        N::close(self);
    }
}
