//! What the algorithms on a board have in common: rounds, pieces, folding in the order of the ranks.
//!
//! All of them are flat: in a round every process posts its data, and those that want it take it. Where there are more
//! processes than cores nobody is woken before all have posted.

use crate::deal;
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Element, Kind, Region, Schedule, Slice, Span, Step, Wake};

/// Longer data than this many pieces goes by messages.
const MOST_PIECES: u64 = 4096;
/// The shortest piece, in bytes, that data is cut into.
const LEAST_PIECE: u64 = 4096;
/// In how many pieces data is cut at least, where these are long enough, so that both sides work at once.
const PIECES: u64 = 4;

/// Whether a problem can be solved on a board. The same answer at every process.
pub(crate) fn can(problem: &Problem<'_>) -> bool {
    let (board, bytes, size) = (problem.board, problem.bytes(), u64::from(problem.size));
    if board == 0 || size < 2 || problem.is_inter() || bytes > MOST_PIECES * board / size {
        return false;
    }
    let fits = problem.element().size <= board;
    match problem.operation {
        Operation::Reduce | Operation::Allreduce | Operation::Scan | Operation::Exscan => fits,
        Operation::ReduceScatter | Operation::ReduceScatterBlock => {
            fits && (bytes <= board || !problem.oversubscribed && (size == 2 || problem.commutative))
        }
        // Where nobody is woken before all have posted, many rounds are slow. And what goes out must not be overwritten before.
        Operation::Alltoall if problem.oversubscribed => bytes * size <= board,
        Operation::Alltoall => size == 2 || !problem.in_place || bytes * size <= board,
        Operation::Gatherv | Operation::Scatterv | Operation::Alltoallv | Operation::Alltoallw => {
            deal::can(problem)
        }
        Operation::Allgatherv if problem.oversubscribed => longest_block(problem) <= LEAST_PIECE.min(board),
        _ => true,
    }
}

/// Bytes of the longest block of an allgather whose blocks differ.
pub(crate) fn longest_block(problem: &Problem<'_>) -> u64 {
    (0..problem.size).map(|index| problem.recv_block_bytes(index)).max().unwrap_or(0)
}

/// Writes a schedule on a board.
pub(crate) struct Rounds<'p> {
    pub(crate) builder: Builder<'p>,
    pub(crate) problem: &'p Problem<'p>,
}

impl<'p> Rounds<'p> {
    pub(crate) fn new(problem: &'p Problem<'p>) -> Rounds<'p> {
        Rounds { builder: Builder::for_runner(problem.runner), problem }
    }

    /// Every process posts in this round; this one posts `data`.
    pub(crate) fn post(&mut self, round: u32, data: Slice) {
        let wake = Wake { only: None, when_complete: self.problem.oversubscribed };
        self.builder.board(Step::Post { round, data, wake });
    }

    /// Every process posts in this round; what this one posts is for `rank` alone.
    pub(crate) fn post_to(&mut self, round: u32, data: Slice, rank: u32) {
        let wake =
            if self.problem.oversubscribed { Wake::all_when_complete() } else { Wake::one(rank, false) };
        self.builder.board(Step::Post { round, data, wake });
    }

    /// Every process posts in this round for the root, but for the root itself.
    pub(crate) fn post_to_root(&mut self, round: u32, data: Slice) {
        let wake = self.wake_root();
        if !self.problem.is_root() {
            self.builder.board(Step::Post { round, data, wake });
        } else if wake.when_complete {
            // It is counted.
            self.builder.board(Step::Post { round, data: NOTHING, wake });
        }
    }

    /// Instead of [`Rounds::post_to_root`], at a process that gives the root so many bytes in another way.
    pub(crate) fn announce_to_root(&mut self, round: u32, length: u64) {
        let wake = self.wake_root();
        self.builder.board(Step::Offer { round, data: NOTHING.span, length, wake });
    }

    fn wake_root(&self) -> Wake {
        Wake::one(self.problem.root_rank(), self.problem.oversubscribed)
    }

    /// One process posts in this round: this one.
    pub(crate) fn post_alone(&mut self, round: u32, data: Slice) {
        self.builder.board(Step::Post { round, data, wake: Wake::all() });
    }

    /// As [`Rounds::post_alone`]; what is posted is for `rank` alone.
    pub(crate) fn post_alone_to(&mut self, round: u32, data: Slice, rank: u32) {
        self.builder.board(Step::Post { round, data, wake: Wake::one(rank, false) });
    }

    /// Begins to take what all have posted.
    pub(crate) fn gather(&mut self, round: u32) {
        if self.problem.oversubscribed {
            self.builder.board(Step::Gather { round });
        }
    }

    /// Takes `data.length` bytes of the `posted` ones of a process, from `skip` on.
    pub(crate) fn take(&mut self, round: u32, from: u32, posted: u64, skip: u64, data: Slice) {
        self.builder.board(Step::Take { round, from, posted, skip, data });
    }

    /// All rounds: in each, first `post`, one round ahead of the rest, then `take`.
    pub(crate) fn run(
        mut self,
        rounds: u32,
        mut post: impl FnMut(&mut Self, u32),
        mut take: impl FnMut(&mut Self, u32),
    ) -> Schedule {
        if rounds > 0 {
            post(&mut self, 0);
        }
        for round in 0..rounds {
            if round + 1 < rounds {
                post(&mut self, round + 1);
            }
            take(&mut self, round);
            if round + 1 < rounds {
                self.builder.board(Step::Done { round });
            }
        }
        self.finish(rounds)
    }

    /// The schedule.
    pub(crate) fn finish(mut self, rounds: u32) -> Schedule {
        self.builder.rounds(rounds);
        self.builder.finish()
    }

    /// Folds what the processes of `ranks`, this one among them, have posted, in the order of the ranks. `operands.own` is
    /// what this process has brought.
    pub(crate) fn fold(&mut self, round: u32, ranks: std::ops::Range<u32>, operands: &Operands) {
        self.fold_in_order(round, ranks.rev(), operands);
    }

    /// As [`Rounds::fold`], of what all have posted, where everybody folds a share of its own. If their order does not matter, everybody begins with
    /// its own operands and goes on with those of the next rank: nobody is read by all others at once.
    pub(crate) fn fold_share(&mut self, round: u32, operands: &Operands) {
        let (rank, size) = (self.problem.rank, self.problem.size);
        if self.problem.commutative {
            self.fold_in_order(round, (rank..size).chain(0..rank), operands);
        } else {
            self.fold(round, 0..size, operands);
        }
    }

    /// The last of the ranks comes first.
    fn fold_in_order(&mut self, round: u32, ranks: impl Iterator<Item = u32> + Clone, operands: &Operands) {
        let Operands { own, result, posted, skip, scratch, spare } = *operands;
        let (me, element) = (self.problem.rank, *self.problem.element());
        let (count, length) = (result.count, result.count * element.size);
        let first = ranks.clone().next();
        // Own operands that lie where the result goes must not be overwritten before they are used.
        let direct = !self.problem.in_place
            || (first == Some(me) && own == result)
            || !ranks.clone().any(|rank| rank == me);
        let target = if direct { result } else { scratch.part(0, count, &element) };
        for (index, rank) in ranks.enumerate() {
            match (rank == me, index == 0) {
                (true, true) => self.builder.copy(own, target),
                (true, false) => self.builder.reduce(own, target),
                (false, true) => self.take(round, rank, posted, skip, whole(target, length)),
                (false, false) if element.dense => {
                    self.builder.board(Step::Fold { round, from: rank, posted, skip, inout: target });
                }
                (false, false) => {
                    let spare = spare.part(0, count, &element);
                    self.take(round, rank, posted, skip, whole(spare, length));
                    self.builder.reduce(spare, target);
                }
            }
        }
        self.builder.copy(target, result);
    }

    /// Working memory for [`Rounds::fold`] of at most `count` elements: a place for the result, and one for operands.
    pub(crate) fn scratch(&mut self, count: u64) -> [Span; 2] {
        let element = self.problem.element();
        let nothing = Span { count: 0, ..self.problem.result() };
        let scratch =
            if self.problem.in_place { self.builder.scratch_elements(count, element) } else { nothing };
        let spare = if element.dense { nothing } else { self.builder.scratch_elements(count, element) };
        [scratch, spare]
    }
}

/// What is folded in one round.
#[derive(Clone, Copy)]
pub(crate) struct Operands {
    pub(crate) own: Span,
    /// Where the result goes, as many elements as `own`.
    pub(crate) result: Span,
    /// How many bytes each process has posted, and where among them the operands begin.
    pub(crate) posted: u64,
    pub(crate) skip: u64,
    /// From [`Rounds::scratch`].
    pub(crate) scratch: Span,
    pub(crate) spare: Span,
}

/// No data.
pub(crate) const NOTHING: Slice =
    Slice { span: Span { region: Region::Recv, kind: Kind::Bytes, offset: 0, count: 0 }, skip: 0, length: 0 };

/// All of a span, whose packed form has this length.
pub(crate) fn whole(span: Span, length: u64) -> Slice {
    Slice { span, skip: 0, length }
}

/// How long the pieces are that `bytes` are cut into.
fn piece(problem: &Problem<'_>, bytes: u64) -> u64 {
    (bytes / PIECES).next_multiple_of(LEAST_PIECE).clamp(LEAST_PIECE.min(problem.board), problem.board)
}

/// Data cut into pieces.
#[derive(Clone, Copy)]
pub(crate) struct Pieces {
    total: u64,
    each: u64,
}

impl Pieces {
    /// Bytes, in pieces.
    pub(crate) fn of_bytes(problem: &Problem<'_>, total: u64) -> Pieces {
        Pieces { total, each: piece(problem, total) }
    }

    /// Elements, in pieces of whole ones.
    pub(crate) fn of_elements(problem: &Problem<'_>, total: u64, element: &Element) -> Pieces {
        let size = element.size.max(1);
        Pieces { total, each: (piece(problem, total * size) / size).max(1) }
    }

    /// Elements, in as few pieces of whole ones as a board can take.
    pub(crate) fn few(problem: &Problem<'_>, total: u64, element: &Element) -> Pieces {
        Pieces { total, each: (problem.board / element.size.max(1)).max(1) }
    }

    /// How many there are; at least one, so that a process with a wrong count is found out.
    pub(crate) fn count(&self) -> u32 {
        self.total.div_ceil(self.each).max(1) as u32
    }

    /// The longest.
    pub(crate) fn longest(&self) -> u64 {
        self.each.min(self.total)
    }

    /// Where a piece begins, and how long it is.
    pub(crate) fn get(&self, index: u32) -> (u64, u64) {
        let first = u64::from(index) * self.each;
        (first, self.each.min(self.total - first))
    }
}
