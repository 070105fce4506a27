//! What every transport offers to the virtual NIC. A transport knows bytes and peers, and nothing else.
#![forbid(unsafe_code)]

pub mod conformance;
mod network;

pub use network::{
    Attendant, BULK_WORD, CROSSING_KINDS, KIND_SHIFT, LENGTH_WORD, Network, PAYLOAD_WORDS, PROCESS_BITS,
    Prospect, Waker,
};

use parnass_base::atomics::AtomicU64;
use parnass_base::lane::{self, Arrived, Short};
use parnass_base::{Ahead, UserAddress, Window};
use std::io;
use std::time::{Duration, Instant};

/// Why memory of a peer could not be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryError {
    /// The kernel or the transport does not allow it at all: another way must be taken.
    NotPermitted,
    /// The peer is gone.
    Gone,
    /// The address is none of the peer's.
    Failed,
}

/// A piece of bulk memory of some process, that travels inside a message. 0 names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bulk(pub u64);

/// How far a piece that is filled and drained at the same time has come, in bytes since its first one.
#[derive(Clone, Copy, Debug)]
pub struct Gauge<'a> {
    /// Stored by who fills it.
    pub filled: &'a AtomicU64,
    /// Stored by who drains it.
    pub drained: &'a AtomicU64,
}

/// Numbers that the layers above choose by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that fit in one bulk piece.
    pub bulk_bytes: usize,
    /// Bits of the number of a process in a message tag.
    pub processes: u32,
}

/// What a waiting rank has done for others before it sleeps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turns {
    /// How often another process has run instead.
    pub given: u32,
    /// Nanoseconds in which nobody else wanted to run.
    pub idle: u64,
}

/// What its sender sends after a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// Mostly more at once.
    More,
    /// Mostly nothing before an answer.
    Nothing,
    /// The receive of what its target sends meanwhile. A long one is better shown as a whole, as neither side looks at it before it has sent its own: as
    /// [`Posting::TooLong`], unless it is an answer.
    Exchange,
}

/// What comes next from a process.
#[derive(Clone, Copy, Debug)]
pub enum Next<'a> {
    /// A short message, which has come.
    Short(Short<'a>),
    /// An answer, after so many steps, see [`Transport::answer_after`].
    AnswerAfter(u32),
    /// Another message, or none.
    Other,
}

/// An answer that has come.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// A short message.
    Short(Short<'a>),
    /// Another one.
    Other,
}

/// A way to move bytes between the processes of a job.
///
/// Process numbers are those of the job; every method panics on a number that is not below [`Transport::size`].
pub trait Transport: Send + Sync {
    /// The number of this process.
    fn me(&self) -> u32;

    /// How many processes there are.
    fn size(&self) -> u32;

    /// What fits.
    fn limits(&self) -> Limits;

    /// Whether this process shares memory with `peer`, and so its NIC. Where not, only [`Transport::post`] and
    /// [`Transport::network`] lead there.
    fn shares(&self, peer: u32) -> bool;

    /// The way to the peers whose memory is not shared, where there are such.
    fn network(&self) -> Option<&dyn Network>;

    /// The memory in which the NIC of `of` lies, which is shared: zero at first, its first page reserved.
    fn nic_memory(&self, of: u32) -> Window;

    /// The memory in which `of` counts, which is shared, see the counters crate: zero at first, and reserved.
    fn counter_memory(&self, of: u32) -> Window;

    /// Memory in which `of` makes boards, see the portals crate: zero at first, to be reserved before use. `None` if `of`
    /// shares no memory with this process.
    fn board_memory(&self, of: u32) -> Option<Window>;

    /// Makes a segment of `length` bytes: memory, zero at first and to be reserved before use, which every process that shares memory
    /// with this one can open by its name.
    fn make_segment(&self, length: usize) -> io::Result<u64>;

    /// A segment that this process has made, or one that shares memory with it.
    fn open_segment(&self, name: u64, length: usize) -> io::Result<Window>;

    /// Gives the memory of a segment back. Nobody uses it any more; any of those who have opened it may do that.
    fn end_segment(&self, name: u64, length: usize);

    /// A number that names this process in locks, not 0.
    fn holder(&self) -> u32;

    /// Whether the process with this holder number still lives.
    fn holder_lives(&self) -> fn(u32) -> bool;

    /// Sends one message of up to [`parnass_base::lane::WORDS`] words, without blocking, in order per sender and
    /// target; wakes the target if it sleeps. `false`: no room now.
    fn post(&self, target: u32, tag: u32, words: &[u64]) -> bool;

    /// As [`Transport::post`], with `length` bytes from `source` behind two words in one message.
    fn post_bytes(
        &self,
        target: u32,
        tag: u32,
        head: [u64; lane::HEAD],
        source: UserAddress,
        length: usize,
        follow: Follow,
    ) -> Posting;

    /// As [`Transport::post_bytes`], for bytes of which there are more than lie in the slots of a mailbox: `write` is told for each part where it
    /// starts in the message, where it belongs, and how long it is.
    fn post_written(
        &self,
        target: u32,
        tag: u32,
        head: [u64; lane::HEAD],
        length: usize,
        write: &mut dyn FnMut(usize, UserAddress, usize),
    ) -> Posting {
        let _ = (target, tag, head, length, write);
        Posting::TooLong
    }

    /// If what comes from `source` (or from anybody) probably answers what this process has sent, in the lines of that: from whom it comes, and for how long
    /// nothing should look for it ([`parnass_base::clock::idle`]). Each look takes these lines from who is about to write there, so that there should be
    /// pauses between them too.
    fn answer_after(&self, source: Option<u32>) -> Option<(u32, u32)> {
        let _ = source;
        None
    }

    /// Offers such an answer if it has come, after so many looks in vain; whether it was accepted. If not, it or something else may be there for
    /// [`Transport::take`], and now and then it is left to that, so that nobody else's messages wait behind a long row of answers.
    fn take_answer(&self, source: u32, looks: u32, accept: &mut dyn FnMut(&Arrived) -> bool) -> bool {
        let _ = (source, looks, accept);
        false
    }

    /// Such an answer, if it has come: it stays until [`Transport::pass_answer`] or [`Transport::take_answer`]. Now and then one is left to
    /// [`Transport::take`].
    fn next_answer(&self, source: u32) -> Option<Answer<'_>> {
        let _ = source;
        None
    }

    /// The short answer was taken, after so many looks in vain.
    fn pass_answer(&self, source: u32, looks: u32) {
        let _ = (source, looks);
    }

    /// What comes next from `source`. A short message stays until [`Transport::pass_next`]; now and then one is left to [`Transport::take`].
    fn next(&self, source: u32) -> Next<'_> {
        let _ = source;
        Next::Other
    }

    /// The message of [`Transport::next`], of so many slots, was taken.
    fn pass_next(&self, source: u32, slots: u64) {
        let _ = (source, slots);
    }

    /// Tells where the next message will be written, if it is like the last one and that is worth fetching while this process waits. Once for
    /// each message.
    fn will_write(&self, ahead: &mut Ahead) {
        let _ = ahead;
    }

    /// From now on several threads of this process may call. To be called while only one does.
    fn several_threads(&self) {}

    /// Whether a message may be waiting for `of`.
    fn poll(&self, of: u32) -> bool;

    /// Whether `target` has taken all messages of this process out of its mailbox, as far as that is known without asking it.
    fn has_taken_in(&self, target: u32) -> bool {
        let _ = target;
        true
    }

    /// Takes messages out of the mailbox of `of`, up to `limit` from each of its parts (so that no sender keeps
    /// others waiting), each offered to `accept`; one that is refused stays, and so does what follows it. Returns how many were taken. Only one caller at a time
    /// per `of`: the holder of its NIC's lock.
    fn take(&self, of: u32, limit: usize, accept: &mut dyn FnMut(&Arrived) -> bool) -> usize;

    /// These processes are dead: what they have left in the mailbox of this process in the middle of a message is no message, and nothing waits for the
    /// rest. All that they had sent whole is there then. To be called by the holder of this process's NIC's lock. `false`: what is of the dead is not
    /// known yet, since somebody who lives is in the middle of a message; to be called again.
    fn bury(&self, dead: &[u32]) -> bool {
        let _ = dead;
        true
    }

    /// Whether more messages of `length` bytes lie in the bulk memory of this process, not read yet, than its cache holds. One that is sent now is
    /// better sent when some of them were read.
    fn runs_ahead(&self, length: usize) -> bool {
        let _ = length;
        false
    }

    /// Whether the message that this process is about to send to `target`, and that takes bulk memory, follows others in a row: nothing has come from there since.
    fn follows(&self, target: u32) -> bool {
        let _ = target;
        false
    }

    /// Bulk memory of this process for `length` bytes, or none now.
    fn claim(&self, length: usize) -> Option<Bulk>;

    /// Copies the first `length` bytes of an arrived message into bulk memory of this
    /// process, some of which is set aside for that. `None`: not now.
    fn keep(&self, message: &Arrived, length: usize) -> Option<Bulk> {
        let _ = (message, length);
        None
    }

    /// Tells the senders of this process whether they may send it messages of more than [`parnass_base::lane::WORDS`]
    /// words. Those under way still come.
    fn accept_long(&self, accept: bool) {
        let _ = accept;
    }

    /// Puts `length` bytes into a piece that this process has claimed, `skip` bytes from its start; `write` is told where, and
    /// writes all of them.
    fn fill(&self, bulk: Bulk, skip: usize, length: usize, write: &mut dyn FnMut(UserAddress));

    /// Copies `length` bytes of a piece, from `skip` on, to `target` in the memory of `owner`.
    fn drain(
        &self,
        bulk: Bulk,
        skip: usize,
        owner: u32,
        target: UserAddress,
        length: usize,
    ) -> Result<(), MemoryError>;

    /// As [`Transport::drain`] into memory of this process, with `read`, which is told where the `length` bytes are.
    fn drain_by(&self, bulk: Bulk, skip: usize, length: usize, read: &mut dyn FnMut(UserAddress));

    /// What is longer than so many bytes is better written past the caches: they would not hold it until it is read.
    fn past_caches(&self) -> usize {
        usize::MAX
    }

    /// Gives a piece back to whoever claimed it.
    fn discard(&self, bulk: Bulk);

    /// Bytes of the largest piece that this process may fill while `peer` drains it, both watching its
    /// [`Gauge`]; 0 where that is not possible. At least [`Limits::bulk_bytes`] otherwise.
    fn pipe_bytes(&self, peer: u32) -> usize;

    /// The gauge of a piece. Any content, until its owner stores to it. `None` where there are no pipes.
    fn gauge(&self, bulk: Bulk) -> Option<Gauge<'_>>;

    /// Copies `bytes` to `target` in the memory of `owner`.
    fn place(&self, owner: u32, target: UserAddress, bytes: &[u8]) -> Result<(), MemoryError>;

    /// Whether [`Transport::read`] and [`Transport::write`] work with `peer`. Asked of the kernel once.
    fn reaches(&self, peer: u32) -> bool;

    /// Whether processes may reach into each other's memory, as far as this one can tell by itself; where not, what comes for a
    /// process can be placed by that process alone.
    fn reaches_peers(&self) -> bool;

    /// Copies from `remote` in the memory of `peer` to `local`.
    fn read(
        &self,
        peer: u32,
        remote: UserAddress,
        local: UserAddress,
        length: usize,
    ) -> Result<(), MemoryError>;

    /// Copies from `local` to `remote` in the memory of `peer`.
    fn write(
        &self,
        peer: u32,
        remote: UserAddress,
        local: UserAddress,
        length: usize,
    ) -> Result<(), MemoryError>;

    /// Wakes whoever sleeps in `target`; cheap when nobody does.
    fn ring(&self, target: u32);

    /// Whether [`Transport::ring`] costs no fence, because who sleeps makes one on behalf of those who ring.
    fn rings_lightly(&self) -> bool {
        false
    }

    /// Executes a fence in this thread and in all those of the peers that share memory and ring lightly. `false`: that cannot be done.
    fn fence_all(&self) -> bool {
        false
    }

    /// As [`Transport::ring`], but may miss a target that falls asleep at this moment: for a ring that is repeated after a
    /// fence, or that follows one.
    fn ring_unfenced(&self, target: u32);

    /// Wakes every thread of this process that sleeps, or is about to with an older count of rings.
    fn ring_always(&self);

    /// The count of rings of this process.
    fn rings(&self) -> u32;

    /// How often [`Transport::poll`] should be tried before a sleep; 0 when there is no core to spare.
    fn spins(&self) -> u32;

    /// Whether there are more processors for this process than processes that may run there: its helper thread takes the time of nobody who computes.
    fn has_spare_processor(&self) -> bool {
        false
    }

    /// Lets another process run, where [`Transport::spins`] is 0, and counts that. `false`: that has been tried long enough.
    fn step_aside(&self, turns: &mut Turns) -> bool;

    /// Sleeps until rung since `rings` was taken, unless `changed` says that there is something, or until `deadline`.
    fn sleep(&self, rings: u32, deadline: Option<Instant>, changed: &mut dyn FnMut() -> bool);

    /// For a thread that has just slept: whether it turns out that others, of whom this process did not know, want its processors. From then on
    /// [`Transport::spins`] says less, until they are gone.
    fn meets_crowd(&self) -> bool {
        false
    }

    /// Shows to peers and tools whether this process waits, and for whom.
    fn show(&self, waiting: Waiting);

    /// Whether a thread of `of` waits in the library, and for whom.
    fn shown(&self, of: u32) -> Waiting;

    /// Whether `of`, which shares memory with this process, seems to run on another processor: it has neither given its turn away
    /// nor gone to sleep.
    fn runs_beside(&self, of: u32) -> bool {
        let _ = of;
        false
    }

    /// Whether this process shares a processor with some others, and `of`, which shares memory with it, another one with others.
    fn is_across(&self, of: u32) -> bool {
        let _ = of;
        false
    }

    /// Whether a thread of `of`, which shares memory with this process, sleeps or is about to.
    fn sleeps(&self, of: u32) -> bool {
        let _ = of;
        true
    }

    /// Whether the process `of`, which shares memory with this one, still lives. Asks the kernel.
    fn lives(&self, of: u32) -> bool {
        let _ = of;
        true
    }

    /// Wakes the helper thread of `target` if it sleeps.
    fn ring_helper(&self, target: u32);

    /// As [`Transport::ring_helper`], for a message that its target may be about to take itself: not while its helper [rests](Transport::rest_helper).
    fn ring_helper_that_waits(&self, target: u32) {
        self.ring_helper(target);
    }

    /// From now on the helper thread is better not woken for what its process mostly does itself, or is just doing: for the helper, which sleeps for a while
    /// only each time, and for a process that is about to compute.
    fn rest_helper(&self, rests: bool) {
        let _ = rests;
    }

    /// Something is about to follow the next message to `target`, and may be sent together with it, where that saves anything.
    fn more_follows(&self, target: u32) {
        let _ = target;
    }

    /// For the helper thread: sleeps until it is rung, or `limit` has passed, unless `changed` says that there is something.
    fn sleep_helper(&self, limit: Option<Duration>, changed: &mut dyn FnMut() -> bool);

    /// For the helper thread: whether it was rung since it asked last, asleep or not.
    fn was_helper_rung(&self) -> bool;

    /// Where there is a network: who takes in what it brings while no thread of this process waits. `None` takes that back, and
    /// when it returns nobody is called any more.
    fn attend(&self, attendant: Option<Attendant>) {
        let _ = attendant;
    }

    /// Whether something is known to be there for this process that nobody has taken: as [`Transport::poll`] of its own, but a network is
    /// not asked for what may just have come.
    fn holds(&self, me: u32) -> bool {
        self.poll(me)
    }

    /// Whether the network has brought something, after a look at every peer of it.
    fn look_afar(&self) -> bool {
        false
    }

    /// Something is to come from the network for which this process will not wait at once: the attendant is to be called for the next
    /// arrival. Cheap when that has been asked for before, and nothing where it was of no use lately.
    fn attend_soon(&self, prospect: Prospect) {
        let _ = prospect;
    }

    /// A thread of this process waits from now on, and looks itself: the attendant need not be called for requests until the process leaves.
    fn attended(&self) {}
}

/// What has become of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posting {
    /// It is on its way.
    Posted,
    /// No room now.
    Full,
    /// Too long for this mailbox, or just now for this target: the bytes must take another way.
    TooLong,
}

/// What a process waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It computes, or was not seen yet.
    Not,
    /// For this process.
    For(u32),
    /// For any of several, or for what is not known.
    ForAny,
    /// For something on this node that is no receive of a message: a message that comes may stay where it is for long.
    ForElse,
}
