//! What several algorithms are made of.

use crate::problem::Problem;
use crate::schedule::{Builder, Element, Kind, Peer, Region, Span};

/// The buffer of a broadcast as a stream of bytes: the user's own memory where it is dense, else a packed copy.
pub(crate) struct Stream {
    pub(crate) bytes: Span,
    typed: Span,
    packed: bool,
}

impl Stream {
    pub(crate) fn new(builder: &mut Builder<'_>, problem: &Problem<'_>) -> Stream {
        let part = problem.shape.recv;
        let typed = problem.result();
        let length = part.bytes();
        if part.element.dense || part.count == 0 {
            let offset = part.element.true_lower_bound;
            let bytes = Span { region: Region::Recv, kind: Kind::Bytes, offset, count: length };
            return Stream { bytes, typed, packed: false };
        }
        let bytes = builder.scratch(length);
        if problem.is_root() {
            builder.copy(typed, bytes);
        }
        Stream { bytes, typed, packed: true }
    }

    pub(crate) fn finish(&self, builder: &mut Builder<'_>, problem: &Problem<'_>) {
        if self.packed && !problem.is_root() {
            builder.copy(self.bytes, self.typed);
        }
    }
}

/// Broadcast along a binomial tree whose root is process 0; `me` and `peer` may count from another root.
pub(crate) fn tree_broadcast(
    builder: &mut Builder<'_>,
    me: u32,
    size: u32,
    data: Span,
    peer: impl Fn(u32) -> Peer,
) {
    start_tree_broadcast(builder, me, size, data, peer);
    builder.wait();
}

/// The same, without the wait for what this process sends.
pub(crate) fn start_tree_broadcast(
    builder: &mut Builder<'_>,
    me: u32,
    size: u32,
    data: Span,
    peer: impl Fn(u32) -> Peer,
) {
    let mut mask = 1;
    while mask < size {
        if me & mask != 0 {
            builder.receive(peer(me - mask), data);
            builder.wait();
            break;
        }
        mask <<= 1;
    }
    mask >>= 1;
    while mask > 0 {
        if me + mask < size {
            builder.send(peer(me + mask), data);
        }
        mask >>= 1;
    }
}

/// Reduction along a binomial tree to process 0, in the order of `me`. `input` is not written. Where the result
/// comes to lie at process 0 is returned: in `target`, which must not overlap `input`, if one is given and there
/// is anything to reduce; elsewhere at will.
pub(crate) fn tree_reduce(
    builder: &mut Builder<'_>,
    me: u32,
    size: u32,
    input: Span,
    target: Option<Span>,
    element: &Element,
    peer: impl Fn(u32) -> Peer,
) -> Span {
    let children: Vec<u32> = (0..32)
        .map(|bit| 1u32 << bit)
        .take_while(|mask| *mask < size && me & mask == 0)
        .map(|mask| me + mask)
        .filter(|child| *child < size)
        .collect();
    let mut accumulated = input;
    let mut places: Vec<Span> = Vec::new();
    for (index, child) in children.iter().enumerate() {
        let is_last_of_all = me == 0 && index + 1 == children.len();
        let place = match target {
            Some(target) if is_last_of_all => target,
            _ if places.len() < 2 => {
                places.push(builder.scratch_elements(input.count, element));
                places[index]
            }
            _ => places[index % 2],
        };
        builder.receive(peer(*child), place);
        builder.wait();
        builder.reduce(accumulated, place);
        accumulated = place;
    }
    if me != 0 {
        builder.send(peer(me & (me - 1)), accumulated);
        builder.wait();
    }
    accumulated
}

/// Receives the operands of all other processes of the group at once and folds them in rank order into `target`,
/// which either does not overlap `own` or is the same.
pub(crate) fn receive_and_fold(
    builder: &mut Builder<'_>,
    rank: u32,
    size: u32,
    own: Span,
    target: Span,
    element: &Element,
) {
    let last = size - 1;
    let overlaps = own.region == target.region;
    let sum = if overlaps && rank != last { builder.scratch_elements(own.count, element) } else { target };
    let mut operands = Vec::with_capacity(size as usize);
    for source in 0..size {
        let place = if source == rank {
            own
        } else if source == last {
            sum
        } else {
            builder.scratch_elements(own.count, element)
        };
        if source != rank {
            builder.receive(Peer::Local(source), place);
        }
        operands.push(place);
    }
    builder.wait();
    builder.copy(operands[last as usize], sum);
    for operand in operands[..last as usize].iter().rev() {
        builder.reduce(*operand, sum);
    }
    builder.copy(sum, target);
}

/// The processes that remain when those beyond a power of two have handed their operands to a neighbour:
/// of the first `2 * extra` ranks the odd ones, and all ranks after them.
pub(crate) struct Core {
    pub(crate) size: u32,
    pub(crate) extra: u32,
    /// The place of this process among them, if it remains.
    pub(crate) me: Option<u32>,
}

impl Core {
    pub(crate) fn of(rank: u32, size: u32) -> Core {
        let core = 1 << (31 - size.leading_zeros());
        let extra = size - core;
        let me = if rank >= 2 * extra {
            Some(rank - extra)
        } else if rank % 2 == 1 {
            Some(rank / 2)
        } else {
            None
        };
        Core { size: core, extra, me }
    }

    /// The rank of the process at a place.
    pub(crate) fn rank(&self, place: u32) -> u32 {
        if place < self.extra { 2 * place + 1 } else { place + self.extra }
    }

    /// The first rank whose operands are in the hands of the process at a place.
    pub(crate) fn first_rank(&self, place: u32) -> u32 {
        if place < self.extra { 2 * place } else { place + self.extra }
    }

    /// Whether a rank takes the operands of the rank before it.
    pub(crate) fn folds(&self, rank: u32) -> bool {
        rank < 2 * self.extra && rank % 2 == 1
    }

    /// Hands over or takes in: afterwards the sum of a process that remains covers its neighbour.
    pub(crate) fn fold(&self, builder: &mut Builder<'_>, rank: u32, sum: Span, other: Span) {
        if self.me.is_none() {
            builder.send(Peer::Local(rank + 1), sum);
            builder.wait();
        } else if self.folds(rank) {
            builder.receive(Peer::Local(rank - 1), other);
            builder.wait();
            builder.reduce(other, sum);
        }
    }

    /// Recursive halving: afterwards `sum` holds, at the process at place `p`, the reduction over all of elements
    /// `bounds[p]..bounds[p + 1]`. The rest of `sum`, and `other`, is spoilt. Commutative only.
    pub(crate) fn halve(
        &self,
        builder: &mut Builder<'_>,
        sum: Span,
        other: Span,
        bounds: &[u64],
        element: &Element,
    ) {
        let Some(me) = self.me else { return };
        let piece = |span: Span, low: u32, high: u32| {
            let (first, end) = (bounds[low as usize], bounds[high as usize]);
            span.part(first, end - first, element)
        };
        let (mut low, mut high) = (0, self.size);
        let mut mask = self.size / 2;
        while mask > 0 {
            let partner = Peer::Local(self.rank(me ^ mask));
            let middle = low + mask;
            let (kept, given) = if me & mask == 0 {
                ((low, middle), (middle, high))
            } else {
                ((middle, high), (low, middle))
            };
            let (gives, takes) = (piece(sum, given.0, given.1), piece(other, kept.0, kept.1));
            builder.exchange(partner, gives, partner, takes);
            builder.wait();
            builder.reduce(piece(other, kept.0, kept.1), piece(sum, kept.0, kept.1));
            (low, high) = kept;
            mask /= 2;
        }
    }

    /// The reverse of the way of [`Core::halve`] without reduction: afterwards everybody that remains has all pieces.
    pub(crate) fn double(&self, builder: &mut Builder<'_>, sum: Span, bounds: &[u64], element: &Element) {
        let Some(me) = self.me else { return };
        let piece = |low: u32| {
            move |mask: u32| {
                let (first, end) = (bounds[low as usize], bounds[(low + mask) as usize]);
                sum.part(first, end - first, element)
            }
        };
        let mut mask = 1;
        while mask < self.size {
            let partner = Peer::Local(self.rank(me ^ mask));
            let mine = me & !(mask - 1);
            builder.exchange(partner, piece(mine)(mask), partner, piece(mine ^ mask)(mask));
            builder.wait();
            mask *= 2;
        }
    }
}

/// Where the parts of `count` elements begin when they are dealt evenly to `parts`; one more than parts.
pub(crate) fn even_bounds(count: u64, parts: u32) -> Vec<u64> {
    let mut bounds: Vec<u64> =
        (0..parts).map(|index| crate::schedule::share(count, parts, index).0).collect();
    bounds.push(count);
    bounds
}
