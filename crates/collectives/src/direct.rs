//! What the algorithms have in common in which data is read where it lies, in the memory of whoever has it: what is offered, how it is
//! folded, and how its owner learns that all have read it.

use crate::board::{NOTHING, Rounds, whole};
use crate::problem::{Direct, Operation, Problem};
use crate::schedule::{Element, Slice, Span, Step, Wake};

/// How long the pieces are, in bytes, in which operands are read and folded: so short that they stay in a core's own cache, and so long
/// that a call of the kernel for each costs little.
const PIECE: u64 = 64 << 10;

/// Whether a problem can be solved so. The same answer at every process.
pub(crate) fn can(problem: &Problem<'_>) -> bool {
    problem.direct != Direct::No
        && problem.board > 0
        && problem.size > 1
        && !problem.is_inter()
        // What goes out must not be overwritten before it was read.
        && !(problem.operation == Operation::Alltoall && problem.in_place)
}

/// What [`Rounds::read_and_fold`] works with.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    /// Elements of a piece.
    each: u64,
    /// Where operands are read to.
    spare: Span,
    /// Where the result is made, if not in its place.
    aside: Option<Span>,
    /// Own operands are where the result is made.
    stays: bool,
}

impl Rounds<'_> {
    /// `data`, of `length` bytes, or a packed copy if it has gaps.
    pub(crate) fn run_of(&mut self, data: Span, length: u64, element: &Element) -> Span {
        let is_run = element.dense && (data.count <= 1 || element.extent == element.size as i64);
        if length == 0 {
            return NOTHING.span;
        }
        if is_run {
            return data;
        }
        let packed = self.builder.scratch(length);
        self.builder.copy(data, packed);
        packed
    }

    /// Every process offers in this round; this one offers `data`, a run of `length` bytes.
    pub(crate) fn offer(&mut self, round: u32, data: Span, length: u64) {
        let wake = Wake { only: None, when_complete: self.problem.oversubscribed };
        self.builder.board(Step::Offer { round, data, length, wake });
    }

    /// One process offers in this round: this one.
    pub(crate) fn offer_alone(&mut self, round: u32, data: Span, length: u64) {
        self.builder.board(Step::Offer { round, data, length, wake: Wake::all() });
    }

    /// Reads `data.length` bytes of the `offered` ones of a process, from `skip` on.
    pub(crate) fn fetch(&mut self, round: u32, from: u32, offered: u64, skip: u64, data: Slice) {
        self.builder.board(Step::Fetch { round, from, offered, skip, data });
    }

    /// Every process says in this round that it has read all that was offered, and waits for the others to say so.
    pub(crate) fn all_have_read(&mut self, round: u32) {
        let (rank, size) = (self.problem.rank, self.problem.size);
        self.post(round, NOTHING);
        self.gather(round);
        if !self.problem.oversubscribed {
            for from in (1..size).map(|distance| (rank + distance) % size) {
                self.take(round, from, 0, 0, NOTHING);
            }
        }
    }

    /// Every process but the root says in this round that it has read what the root has offered, and the root waits for that.
    pub(crate) fn all_have_read_of_root(&mut self, round: u32) {
        self.post_to_root(round, NOTHING);
        if self.problem.is_root() {
            self.gather(round);
            if !self.problem.oversubscribed {
                for from in (0..self.problem.size).filter(|rank| *rank != self.problem.rank) {
                    self.take(round, from, 0, 0, NOTHING);
                }
            }
        }
    }

    /// Working memory for [`Rounds::read_and_fold`] of `own`, or of parts of it.
    pub(crate) fn reading(&mut self, own: Span, result: Span) -> Memory {
        let (me, last, element) = (self.problem.rank, self.problem.size - 1, *self.problem.element());
        let each = (PIECE / element.size.max(1)).max(1).min(own.count);
        // Own operands that lie where the result goes stay there if they may come first, and must not be overwritten otherwise.
        let over_own = own == result;
        let stays = over_own && (last == me || self.problem.commutative);
        let spare = self.builder.scratch_elements(each, &element);
        let aside = (over_own && !stays).then(|| self.builder.scratch_elements(each, &element));
        Memory { each, spare, aside, stays }
    }

    /// Reads the operands of all others, which they have offered with `offered` bytes in a round, and folds them with `own`, in the order of
    /// the ranks, piece by piece. If the order does not matter, everybody begins with those of the next rank: nobody is read by all others at
    /// once. `first`: where these begin among the elements of an offer.
    pub(crate) fn read_and_fold(
        &mut self,
        (round, offered): (u32, u64),
        first: u64,
        (own, result): (Span, Span),
        memory: &Memory,
    ) {
        let (me, size, element) = (self.problem.rank, self.problem.size, *self.problem.element());
        let order: Vec<u32> = match (self.problem.commutative, memory.stays) {
            (false, _) => (0..size).rev().collect(),
            (true, true) => (me..size).chain(0..me).collect(),
            // What is read first need not be copied.
            (true, false) => {
                let next = (me + 1) % size;
                [next, me].into_iter().chain((2..size).map(|distance| (me + distance) % size)).collect()
            }
        };
        let each = memory.each;
        for begin in (0..own.count).step_by(each.max(1) as usize) {
            let count = each.min(own.count - begin);
            let (length, skip) = (count * element.size, (first + begin) * element.size);
            let part = |span: Span| span.part(begin, count, &element);
            let (own, result, spare) = (part(own), part(result), memory.spare.part(0, count, &element));
            let target = memory.aside.map_or(result, |aside| aside.part(0, count, &element));
            let fetch = |rounds: &mut Self, from, to| {
                rounds.fetch(round, from, offered, skip, whole(to, length));
            };
            for (index, &rank) in order.iter().enumerate() {
                match (rank == me, index == 0) {
                    (true, true) => self.builder.copy(own, target),
                    (true, false) => self.builder.reduce(own, target),
                    (false, true) => fetch(self, rank, target),
                    (false, false) => {
                        fetch(self, rank, spare);
                        self.builder.reduce(spare, target);
                    }
                }
            }
            self.builder.copy(target, result);
        }
    }
}
