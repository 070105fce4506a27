//! What a collective operation is made of: a list of steps over three buffers.
//!
//! ```text
//!   Receive  Send  Receive  Send   Wait   Reduce  Copy   Receive  Send   Wait   Copy
//!   '------- one round -----------------' '- local --'   '--- next round ---' '-...
//! ```
//!
//! In an exchange the send stands before the receive: the message is on its way while the receive is posted.
//!
//! Where processes share a board (memory that all of them see), a schedule may use it instead of messages. What happens
//! there happens in rounds, which count from 0 in each schedule:
//!
//! ```text
//!   Post 0   Post 1   Take 0   Fold 0   Done 0   Post 2   Take 1   Fold 1   Done 1   ...
//! ```
//!
//! Where they also read each other's memory, long data does not go onto the board: it is offered there, and read where it lies. Who
//! has offered something leaves it alone until a later round says that it was read:
//!
//! ```text
//!   Offer 0   Fetch 0   Post 1   Take 1
//! ```
//!
//! Blocks that differ, whose lengths only those know who give and get them, are dealt: the short ones of all processes lie one behind
//! the other, behind a table of their lengths, and everybody picks its own. The long ones go by messages, when all is done on the board:
//!
//! ```text
//!   Deal 0   Pick 0   Receive   Send   Wait
//! ```
//!
//! A schedule holds no address and no datatype, so it can be kept and run again: blocking, nonblocking,
//! persistent or simulated runs all execute the same list.

/// Which buffer a [`Span`] lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Region {
    /// The buffer that the caller gives as input. Never written.
    Send,
    /// The buffer of the result; also the input where the operation works in place, and the only buffer of a broadcast.
    Recv,
    /// Working memory of [`Schedule::scratch_bytes`] bytes, aligned to 64 bytes.
    Scratch,
}

/// What the elements of a [`Span`] are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Bytes: packed data, or a part of a dense buffer.
    Bytes,
    /// The send type.
    Send,
    /// The receive type; in a reduction the only type there is.
    Recv,
    /// The send type of block `n`, where each block has its own (MPI_Alltoallw).
    SendAt(u32),
    /// The receive type of block `n`.
    RecvAt(u32),
}

/// `count` elements that start `offset` bytes after the beginning of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    pub region: Region,
    pub kind: Kind,
    /// Of the first element's origin, in bytes. In scratch memory it may be negative: the lower bound of a type
    /// need not be zero.
    pub offset: i64,
    pub count: u64,
}

impl Span {
    /// `count` elements from element `first` of this span on.
    #[must_use]
    pub fn part(self, first: u64, count: u64, element: &Element) -> Span {
        Span { offset: self.offset + first as i64 * element.extent, count, ..self }
    }

    /// `length` bytes from byte `first` of this span of bytes on.
    #[must_use]
    pub fn bytes(self, first: u64, length: u64) -> Span {
        debug_assert_eq!(self.kind, Kind::Bytes);
        Span { offset: self.offset + first as i64, count: length, ..self }
    }
}

/// What a schedule must know of a datatype: how it lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Element {
    /// Bytes of data in one element.
    pub size: u64,
    /// Bytes from one element to the next.
    pub extent: i64,
    /// Bytes from the origin to the first byte of data.
    pub true_lower_bound: i64,
    /// Bytes from the first to behind the last byte of data.
    pub true_extent: u64,
    /// Whether neighbouring elements form one run of bytes, in order.
    pub dense: bool,
}

impl Element {
    /// A type without holes of `size` bytes.
    pub const fn of_size(size: u64) -> Element {
        Element { size, extent: size as i64, true_lower_bound: 0, true_extent: size, dense: true }
    }

    /// Where the data of `count` elements lies, relative to the origin of the first: first byte and length.
    pub fn reach(&self, count: u64) -> (i64, u64) {
        if count == 0 {
            return (0, 0);
        }
        let stretch = (count as i64 - 1) * self.extent;
        (self.true_lower_bound + stretch.min(0), self.true_extent + stretch.unsigned_abs())
    }
}

/// A process that takes part, by its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// In the group of this process.
    Local(u32),
    /// In the other group of an intercommunicator.
    Remote(u32),
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Starts to send. The span must not be written before the next [`Step::Wait`].
    Send { to: Peer, data: Span },
    /// Starts to receive. The span must not be touched before the next [`Step::Wait`]. Messages between two
    /// processes match in the order in which they were started.
    Receive { from: Peer, data: Span },
    /// Waits until everything that has been started is complete.
    Wait,
    /// Copies, converting from one layout to another of the same packed size.
    Copy { from: Span, to: Span },
    /// `inout = input (op) inout`, element by element; `input` belongs to lower ranks.
    Reduce { input: Span, inout: Span },
    /// Puts `data` on the board in a round, packed. Waits until everybody is [`Step::Done`] with the round
    /// [`BOARD_DEPTH`] before.
    Post { round: u32, data: Slice, wake: Wake },
    /// Says on the board in a round where `data` lies: one run of `length` bytes, which others read there. As with [`Step::Post`] there
    /// must be room. An empty span is only announced: so many bytes come by message.
    Offer { round: u32, data: Span, length: u64, wake: Wake },
    /// Waits for what process `from` offers in a round, of `offered` bytes, and reads what lies there from `skip` on.
    Fetch { round: u32, from: u32, offered: u64, skip: u64, data: Slice },
    /// Waits until all processes have posted in a round, each with [`Wake::all_when_complete`] or its like.
    Gather { round: u32 },
    /// Waits for what process `from` posts in a round, of `posted` bytes, and takes what stands there from `skip` on.
    Take { round: u32, from: u32, posted: u64, skip: u64, data: Slice },
    /// As [`Step::Take`] for whole elements: `inout = taken (op) inout`.
    Fold { round: u32, from: u32, posted: u64, skip: u64, inout: Span },
    /// Puts all [`Schedule::shares`] on the board in a round, with their table. As with [`Step::Post`] there must be room.
    Deal { round: u32, wake: Wake },
    /// Waits for what process `from` deals in a round, and takes its share for this process. Nothing is taken if that goes by message.
    Pick { round: u32, from: u32, share: Share },
    /// Nothing of the rounds up to this one will be taken any more.
    Done { round: u32 },
}

/// Bytes of the packed form of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    pub span: Span,
    pub skip: u64,
    pub length: u64,
}

/// A block for one process, as it is dealt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// All of the block.
    pub data: Slice,
    /// It is too long for the board, and goes by message.
    pub away: bool,
}

impl Share {
    /// What stands in the table of a deal for a share that goes by message.
    pub const AWAY: u16 = u16::MAX;

    /// What stands in the table of a deal for it.
    #[inline]
    pub fn entry(&self) -> u16 {
        if self.away { Share::AWAY } else { self.data.length as u16 }
    }

    /// Bytes of the table of a deal to so many processes.
    #[inline]
    pub const fn table_bytes(processes: usize) -> u64 {
        (processes * size_of::<u16>()).next_multiple_of(8) as u64
    }

    /// Bytes that the share behind an entry takes up in a deal.
    #[inline]
    pub fn room(entry: u16) -> u64 {
        if entry == Share::AWAY { 0 } else { u64::from(entry).next_multiple_of(8) }
    }
}

/// Who is to be woken when something was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// One process, or all.
    pub only: Option<u32>,
    /// Not before all have posted in this round.
    pub when_complete: bool,
}

impl Wake {
    /// All, at once.
    pub const fn all() -> Wake {
        Wake { only: None, when_complete: false }
    }

    /// All, by the last one that posts.
    pub const fn all_when_complete() -> Wake {
        Wake { only: None, when_complete: true }
    }

    /// One process, at once or by the last one that posts.
    pub const fn one(rank: u32, when_complete: bool) -> Wake {
        Wake { only: Some(rank), when_complete }
    }
}

/// How many rounds of a board can be under way at once, at least.
pub const BOARD_DEPTH: u32 = 8;

/// The steps of one process; by default none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    steps: Vec<Step>,
    shares: Vec<Share>,
    scratch_bytes: u64,
    width: usize,
    rounds: u32,
    messages: Option<u32>,
}

impl Schedule {
    /// In order. The last step that is not local is followed by a [`Step::Wait`].
    #[inline]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// What [`Step::Deal`] deals: a block for each process.
    #[inline]
    pub fn shares(&self) -> &[Share] {
        &self.shares
    }

    /// Where the steps of messages begin, if the schedule may have such behind those on the board: at every process of the
    /// communicator, or at none. There may be none left at this one.
    #[inline]
    pub fn messages(&self) -> Option<usize> {
        self.messages.map(|first| first as usize)
    }

    /// The same with bytes instead of elements, where these form one run and need not be told apart. `run`: for such a span, how far from
    /// its origin the first byte lies, and how many there are.
    #[must_use]
    pub fn with_runs(mut self, run: impl Fn(&Span) -> Option<(i64, u64)>) -> Schedule {
        let plain = |span: &mut Span| {
            if let Some((first, count)) = run(span) {
                *span = Span { region: span.region, kind: Kind::Bytes, offset: span.offset + first, count };
            }
        };
        for step in &mut self.steps {
            match step {
                Step::Send { data, .. } | Step::Receive { data, .. } | Step::Offer { data, .. } => {
                    plain(data)
                }
                Step::Copy { from, to } => [from, to].into_iter().for_each(plain),
                Step::Post { data, .. } | Step::Take { data, .. } | Step::Fetch { data, .. } => {
                    plain(&mut data.span)
                }
                Step::Pick { share, .. } => plain(&mut share.data.span),
                Step::Wait
                | Step::Deal { .. }
                | Step::Reduce { .. }
                | Step::Fold { .. }
                | Step::Gather { .. }
                | Step::Done { .. } => {}
            }
        }
        self.shares.iter_mut().for_each(|share| plain(&mut share.data.span));
        self
    }

    /// Which kinds of datatypes of even blocks its messages and what is done beside them need: [`Kind::Send`] and [`Kind::Recv`].
    pub fn even_kinds(&self) -> [bool; 2] {
        let mut found = [false; 2];
        let mut note = |span: &Span| match span.kind {
            Kind::Send => found[0] = true,
            Kind::Recv => found[1] = true,
            Kind::Bytes | Kind::SendAt(_) | Kind::RecvAt(_) => {}
        };
        for step in &self.steps {
            match step {
                Step::Send { data, .. } | Step::Receive { data, .. } => note(data),
                Step::Reduce { inout, .. } => note(inout),
                Step::Copy { from, to } => {
                    note(from);
                    note(to);
                }
                _ => {}
            }
        }
        found
    }

    /// What is left of the messages where some processes give otherwise than was expected, as they have said on the board: of each its
    /// rank, and whether a message comes from it. None of them is to be waited for in vain.
    #[must_use]
    pub fn amid_errors(self, others: &[(u32, bool)]) -> Schedule {
        let first = self.messages().unwrap_or(self.steps.len());
        let (board, messages) = self.steps.split_at(first);
        let nothing = Span { region: Region::Recv, kind: Kind::Bytes, offset: 0, count: 0 };
        let strays = others.iter().filter(|(_, comes)| *comes);
        let strays = strays.map(|(rank, _)| Step::Receive { from: Peer::Local(*rank), data: nothing });
        let stays = |step: &&Step| match step {
            Step::Receive { from: Peer::Local(from), .. } => others.iter().all(|(rank, _)| rank != from),
            step => **step != Step::Wait,
        };
        let messages = strays.chain(messages.iter().filter(stays).copied()).chain([Step::Wait]);
        Schedule { steps: board.iter().copied().chain(messages).collect(), ..self }
    }

    /// How much working memory the schedule needs.
    #[inline]
    pub fn scratch_bytes(&self) -> u64 {
        self.scratch_bytes
    }

    /// How many rounds on the board it takes: the same number at every process.
    #[inline]
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// The largest number of sends and receives that are under way at once.
    #[inline]
    pub fn width(&self) -> usize {
        self.width
    }
}

/// Takes the steps on a board while they are written, in place of a schedule that keeps them: what is done once need not be kept.
pub trait Runner: std::fmt::Debug {
    /// Takes a step; `shares` as in [`Schedule::shares`].
    fn step(&self, step: &Step, shares: &[Share]);

    /// So many bytes of working memory, aligned to 64 bytes, until all is done: where in [`Region::Scratch`] they lie.
    fn scratch(&self, length: u64) -> i64;
}

/// Writes a schedule.
#[derive(Debug, Default)]
pub struct Builder<'r> {
    runner: Option<&'r dyn Runner>,
    steps: Vec<Step>,
    shares: Vec<Share>,
    scratch_bytes: u64,
    started: usize,
    width: usize,
    rounds: u32,
    messages: Option<u32>,
}

impl<'r> Builder<'r> {
    /// An empty one. It has room for a short schedule, which grows no more.
    pub fn new() -> Builder<'r> {
        Builder { steps: Vec::with_capacity(8), ..Builder::default() }
    }

    /// One whose steps somebody takes at once, up to [`Builder::messages`]; the schedule has what comes behind. Without a runner as [`Builder::new`].
    pub fn for_runner(runner: Option<&'r dyn Runner>) -> Builder<'r> {
        if runner.is_some() { Builder { runner, ..Builder::default() } } else { Builder::new() }
    }

    #[inline]
    fn put(&mut self, step: Step) {
        match self.runner {
            Some(runner) => runner.step(&step, &self.shares),
            None => self.steps.push(step),
        }
    }

    /// Starts to send.
    pub fn send(&mut self, to: Peer, data: Span) {
        self.started += 1;
        self.steps.push(Step::Send { to, data });
    }

    /// Starts to receive.
    pub fn receive(&mut self, from: Peer, data: Span) {
        self.started += 1;
        self.steps.push(Step::Receive { from, data });
    }

    /// Starts to send and to receive. Who sends long data is to know that it exchanges: what is awaited is asked for before.
    pub fn exchange(&mut self, to: Peer, data: Span, from: Peer, place: Span) {
        self.receive(from, place);
        self.send(to, data);
    }

    /// Waits for all that was started.
    pub fn wait(&mut self) {
        if self.started > 0 {
            self.width = self.width.max(self.started);
            self.started = 0;
            self.steps.push(Step::Wait);
        }
    }

    /// Copies; nothing if there is nothing to copy or both are the same place.
    pub fn copy(&mut self, from: Span, to: Span) {
        if from.count > 0 && to.count > 0 && from != to {
            self.put(Step::Copy { from, to });
        }
    }

    /// Reduces; nothing if there are no elements.
    pub fn reduce(&mut self, input: Span, inout: Span) {
        debug_assert_eq!(input.count, inout.count);
        if input.count > 0 {
            self.put(Step::Reduce { input, inout });
        }
    }

    /// Deals a block to each process, in the order of the ranks.
    pub fn deal(&mut self, round: u32, shares: Vec<Share>, wake: Wake) {
        debug_assert!(self.shares.is_empty());
        self.shares = shares;
        self.put(Step::Deal { round, wake });
    }

    /// What follows goes by messages. To be said at every process, also if nothing follows.
    pub fn messages(&mut self) {
        self.runner = None;
        self.messages = Some(self.steps.len() as u32);
    }

    /// Any step of the board.
    pub fn board(&mut self, step: Step) {
        self.put(step);
    }

    /// Says how many rounds on the board there are.
    pub fn rounds(&mut self, rounds: u32) {
        self.rounds = rounds;
    }

    /// Working memory for `length` bytes of packed data.
    pub fn scratch(&mut self, length: u64) -> Span {
        Span { region: Region::Scratch, kind: Kind::Bytes, offset: self.allocate(length), count: length }
    }

    /// Working memory for `count` elements of the type of a reduction.
    pub fn scratch_elements(&mut self, count: u64, element: &Element) -> Span {
        let (first, length) = element.reach(count);
        Span { region: Region::Scratch, kind: Kind::Recv, offset: self.allocate(length) - first, count }
    }

    fn allocate(&mut self, length: u64) -> i64 {
        if let Some(runner) = self.runner {
            return runner.scratch(length);
        }
        let start = self.scratch_bytes;
        self.scratch_bytes = (start + length).next_multiple_of(64);
        start as i64
    }

    /// The schedule.
    pub fn finish(mut self) -> Schedule {
        self.wait();
        Schedule {
            steps: self.steps,
            shares: self.shares,
            scratch_bytes: self.scratch_bytes,
            width: self.width,
            rounds: self.rounds,
            messages: self.messages,
        }
    }
}

/// Part `index` of `count` things in `parts` nearly equal parts: first and number.
pub fn share(count: u64, parts: u32, index: u32) -> (u64, u64) {
    let parts = u128::from(parts);
    let bound = |i: u32| (u128::from(count) * u128::from(i) / parts) as u64;
    let first = bound(index);
    (first, bound(index + 1) - first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_everything_once() {
        for count in [0, 1, 5, 16, 1000, u64::MAX / 2] {
            for parts in 1..20 {
                let mut next = 0;
                for index in 0..parts {
                    let (first, number) = share(count, parts, index);
                    assert_eq!(first, next);
                    next += number;
                }
                assert_eq!(next, count);
            }
        }
    }

    #[test]
    fn scratch_for_a_type_with_a_lower_bound_holds_its_data() {
        let element = Element { size: 4, extent: -24, true_lower_bound: 8, true_extent: 12, dense: false };
        let mut builder = Builder::new();
        builder.scratch(3);
        let span = builder.scratch_elements(3, &element);
        let schedule = builder.finish();
        // The last element lies lowest.
        assert_eq!(span.offset + 2 * element.extent + element.true_lower_bound, 64);
        assert_eq!(schedule.scratch_bytes(), 128);
    }

    #[test]
    fn elements_in_one_run_become_bytes_but_for_those_that_are_reduced() {
        let span = |offset, count| Span { region: Region::Recv, kind: Kind::Recv, offset, count };
        let mut builder = Builder::new();
        builder.send(Peer::Local(1), span(16, 3));
        builder.copy(span(0, 3), span(64, 5));
        builder.reduce(span(0, 3), span(16, 3));
        // Elements of 8 bytes that begin 4 bytes behind their origins; five of them are no run.
        let schedule = builder.finish().with_runs(|span| (span.count < 5).then_some((4, span.count * 8)));
        let bytes = |offset| Span { kind: Kind::Bytes, ..span(offset, 24) };
        let reduce = Step::Reduce { input: span(0, 3), inout: span(16, 3) };
        let steps = [
            Step::Send { to: Peer::Local(1), data: bytes(20) },
            Step::Copy { from: bytes(4), to: span(64, 5) },
            reduce,
            Step::Wait,
        ];
        assert_eq!(schedule.steps(), steps);
    }

    #[test]
    fn who_gives_otherwise_than_expected_is_not_waited_for() {
        let block = Span { region: Region::Recv, kind: Kind::Bytes, offset: 0, count: 100 };
        let share = Share { data: Slice { span: block, skip: 0, length: 100 }, away: false };
        let pick = Step::Pick { round: 0, from: 3, share };
        let receive = |from, data| Step::Receive { from: Peer::Local(from), data };
        let mut builder = Builder::new();
        builder.board(pick);
        builder.messages();
        builder.receive(Peer::Local(1), block);
        builder.receive(Peer::Local(2), block);
        builder.send(Peer::Local(2), block);
        // Nothing long comes from 2, and something does from 3.
        let left = builder.finish().amid_errors(&[(2, false), (3, true)]);
        let send = Step::Send { to: Peer::Local(2), data: block };
        let empty = Span { count: 0, ..block };
        assert_eq!(left.steps(), [pick, receive(3, empty), receive(1, block), send, Step::Wait]);
    }

    #[test]
    fn an_idle_builder_gives_an_empty_schedule() {
        let schedule = Builder::new().finish();
        assert!(schedule.steps().is_empty());
        assert_eq!((schedule.scratch_bytes(), schedule.width()), (0, 0));
    }
}
