//! Which of several ways to move data is the fastest, found out by the time that they take.
//!
//! That depends on the processor, on the length, and on how near to each other the cores are that take part; on a virtual machine it
//! changes within minutes. So the way that was the fastest is gone, and the others are *visited* now and then: a few transfers go there, the
//! first of which warms up what that way uses and does not count. A visit ends with the first transfer that is slower, and the more
//! such a visit costs, and the more of them were in vain, the later comes the next one.
//!
//! To ask costs one load. Whatever is learned comes with a finished transfer. Who cannot go the way that was asked for, since that takes
//! two, goes another one and says so; the visit is still to come then.

use crate::atomics::{AtomicU32, Ordering};

/// What a way costs when it is first visited is the least of so many transfers.
const FIRST: u32 = 3;
/// Transfers of a later visit, at most.
const VISIT: u32 = 15;
/// At most one part of the time in so many is lost by visits.
const SHARE: u32 = 64;
/// Transfers before the first visit, and twice as many after each one that was in vain, up to what visits may cost, which is between
/// these bounds.
const SOON: u32 = 16;
const LATE: u32 = 500;
const LATEST: u32 = 4095;
/// A way takes another one's place when it costs less by one part in so many.
const BETTER: u32 = 16;
/// What is known of lengths of which the longest are up to so many times twice as long.
const NEAR: usize = 2;
/// A price is nanoseconds for one byte, with so many bits behind the point.
const POINT: u32 = 16;

/// A choice between `WAYS` ways, at most three, which are called 0, 1 and so on. It begins with way 0.
#[derive(Debug)]
pub struct Choice<const WAYS: usize> {
    /// The price of each way, smoothed; 0: unknown.
    prices: [AtomicU32; WAYS],
    /// See [`State`].
    state: AtomicU32,
}

impl<const WAYS: usize> Default for Choice<WAYS> {
    fn default() -> Self {
        Choice { prices: std::array::from_fn(|_| AtomicU32::new(0)), state: AtomicU32::new(0) }
    }
}

/// Where a choice stands. In one word:
///
/// ```text
/// bits  0..2   the way that is the fastest, as far as is known
/// bits  2..4   the way to go
/// bits  4..6   the way that was visited last
/// bits  6..8   how many ways are known
/// bits  8..12  transfers of this visit
/// bits 12..16  visits in vain
/// bits 16..32  transfers until the next visit
/// ```
#[derive(Clone, Copy, Debug)]
struct State {
    best: u32,
    now: u32,
    last: u32,
    known: u32,
    steps: u32,
    vain: u32,
    left: u32,
}

impl State {
    fn of(word: u32) -> State {
        let part = |shift: u32, bits: u32| word >> shift & ((1 << bits) - 1);
        State {
            best: part(0, 2),
            now: part(2, 2),
            last: part(4, 2),
            known: part(6, 2),
            steps: part(8, 4),
            vain: part(12, 4),
            left: word >> 16,
        }
    }

    fn word(self) -> u32 {
        let State { best, now, last, known, steps, vain, left } = self;
        best | now << 2 | last << 4 | known << 6 | steps << 8 | vain << 12 | left << 16
    }

    fn change_to(&mut self, best: u32) {
        *self = State { best, now: best, steps: 0, left: (SOON << self.vain).min(LATE), ..*self };
    }

    /// Goes back from a visit. `most`: transfers until the next one.
    fn turn_back(&mut self, most: u32) {
        let left = (SOON << self.vain).min(most);
        *self = State { now: self.best, steps: 0, vain: (self.vain + 1).min(15), left, ..*self };
    }
}

impl<const WAYS: usize> Choice<WAYS> {
    /// The way to go.
    #[inline]
    pub fn way(&self) -> usize {
        State::of(self.state.load(Ordering::Relaxed)).now as usize
    }

    /// `bytes` went by `way`, which took so long. Where several threads say so at once, some of it may be lost.
    pub fn learn(&self, way: usize, bytes: usize, nanoseconds: u64) {
        let mut state = State::of(self.state.load(Ordering::Relaxed));
        let way = way as u32;
        let price = (nanoseconds.min(u64::MAX >> POINT) << POINT) / bytes.max(1) as u64;
        let price = u32::try_from(price).unwrap_or(u32::MAX).max(1);
        let is_known = way < state.known;
        if way != state.now {
            if is_known {
                self.smooth(way, price);
            }
            return;
        }
        if !is_known {
            self.first_visit(&mut state, price);
        } else if state.now != state.best {
            self.visit(&mut state, price);
        } else {
            self.go_on(&mut state, price);
        }
        self.state.store(state.word(), Ordering::Relaxed);
    }

    /// Whether anything has been learned.
    #[inline]
    fn knows(&self) -> bool {
        self.state.load(Ordering::Relaxed) != 0
    }

    fn knows_all(&self) -> bool {
        State::of(self.state.load(Ordering::Relaxed)).known == WAYS as u32
    }

    /// Begins with what `other` knows, which a visit will soon put to the proof.
    fn begin_as(&self, other: &Choice<WAYS>) {
        let State { best, known, .. } = State::of(other.state.load(Ordering::Relaxed));
        for way in 0..WAYS as u32 {
            self.set_price(way, other.price(way));
        }
        let state = State { best, now: best, last: best, known, steps: 0, vain: 0, left: SOON };
        self.state.store(state.word(), Ordering::Relaxed);
    }

    fn first_visit(&self, state: &mut State, price: u32) {
        if state.steps != 0 {
            let before = if state.steps == 1 { u32::MAX } else { self.price(state.now) };
            self.set_price(state.now, price.min(before));
        }
        state.steps += 1;
        if state.steps > FIRST {
            state.known += 1;
            state.last = state.now;
            state.steps = 0;
            state.now = state.known;
            if state.known == WAYS as u32 {
                state.change_to(self.cheapest());
            }
        }
    }

    fn visit(&self, state: &mut State, price: u32) {
        state.steps += 1;
        if state.steps == 1 {
            return;
        }
        self.smooth(state.now, price);
        let (visited, best) = (self.price(state.now), self.price(state.best));
        if visited < better_than(best) {
            state.change_to(state.now);
        } else if price > best.saturating_add(best / BETTER) || state.steps == VISIT {
            // Two transfers or more were slower by that.
            let lost = 2 * u64::from(visited.saturating_sub(best)) * u64::from(SHARE) / u64::from(best);
            state.turn_back(lost.clamp(LATE.into(), LATEST.into()) as u32);
        }
    }

    fn go_on(&self, state: &mut State, price: u32) {
        self.smooth(state.best, price);
        let cheapest = self.cheapest();
        if self.price(cheapest) < better_than(self.price(state.best)) {
            // It has become slower than another one was.
            return state.change_to(cheapest);
        }
        state.left = state.left.saturating_sub(1);
        if state.left == 0 && WAYS > 1 {
            let after = |way: u32| (way + 1) % WAYS as u32;
            let next = after(state.last);
            state.now = if next == state.best { after(next) } else { next };
            state.last = state.now;
        }
    }

    fn price(&self, way: u32) -> u32 {
        // 0 is seen by who races with the thread that visits first.
        self.prices[way as usize].load(Ordering::Relaxed).max(1)
    }

    fn set_price(&self, way: u32, price: u32) {
        self.prices[way as usize].store(price, Ordering::Relaxed);
    }

    /// Down fast, and up slowly: a transfer during which a processor was taken away says nothing about the way.
    fn smooth(&self, way: u32, price: u32) {
        let old = self.price(way);
        let new = if price < old {
            old - (old - price.max(old / 2)) / 2
        } else {
            old.saturating_add((price.min(old.saturating_mul(2)) - old).div_ceil(8))
        };
        self.set_price(way, new);
    }

    fn cheapest(&self) -> u32 {
        (0..WAYS as u32).min_by_key(|way| self.price(*way)).unwrap_or(0)
    }
}

fn better_than(price: u32) -> u32 {
    price - price / BETTER
}

/// A choice for each of `CLASSES` classes of lengths, of which each is twice as long as the one before. The first ends at 2 to the power of `FIRST`.
#[derive(Debug)]
pub struct Choices<const WAYS: usize, const CLASSES: usize, const FIRST: u32>([Choice<WAYS>; CLASSES]);

impl<const WAYS: usize, const CLASSES: usize, const FIRST: u32> Default for Choices<WAYS, CLASSES, FIRST> {
    fn default() -> Self {
        Choices(std::array::from_fn(|_| Choice::default()))
    }
}

impl<const WAYS: usize, const CLASSES: usize, const FIRST: u32> Choices<WAYS, CLASSES, FIRST> {
    /// That for so many bytes. One of which nothing is known begins with what is known of somewhat shorter ones.
    #[inline]
    pub fn of(&self, bytes: usize) -> &Choice<WAYS> {
        let power = usize::BITS - bytes.saturating_sub(1).leading_zeros();
        let class = (power.saturating_sub(FIRST) as usize).min(CLASSES - 1);
        let choice = &self.0[class];
        if !choice.knows() {
            self.begin(class);
        }
        choice
    }

    #[cold]
    fn begin(&self, class: usize) {
        let shorter = self.0[class.saturating_sub(NEAR)..class].iter().rev();
        if let Some(shorter) = shorter.into_iter().find(|shorter| shorter.knows_all()) {
            self.0[class].begin_as(shorter);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const BYTES: usize = 4096;

    /// Transfers on a simulated machine, where `time` says how long one takes by a way. How many went each way, and the time of all.
    fn run<const WAYS: usize>(
        choice: &Choice<WAYS>,
        transfers: u32,
        mut time: impl FnMut(usize, u32) -> u64,
    ) -> ([u32; WAYS], u64) {
        let (mut went, mut whole) = ([0; WAYS], 0);
        for number in 0..transfers {
            let way = choice.way();
            let nanoseconds = time(way, number);
            choice.learn(way, BYTES, nanoseconds);
            went[way] += 1;
            whole += nanoseconds;
        }
        (went, whole)
    }

    #[test]
    fn the_fastest_way_is_found_whichever_it_is() {
        for fastest in 0..3 {
            let choice = Choice::<3>::default();
            let time = |way, _| if way == fastest { 1000 } else { 1200 };
            run(&choice, 1000, time);
            let (went, whole) = run(&choice, 10_000, time);
            assert!(went[fastest] > 9500, "{went:?}");
            assert!(whole < 10_000 * 1020, "{whole}");
        }
    }

    #[test]
    fn a_way_that_has_become_the_fastest_is_found_again_and_again() {
        let choice = Choice::<2>::default();
        for turn in 0..10 {
            let fastest = turn % 2;
            let time = |way, _| if way == fastest { 1000 } else { 3000 };
            run(&choice, 2000, time);
            let (went, _) = run(&choice, 1000, time);
            assert!(went[fastest] > 950, "turn {turn}: {went:?}");
        }
    }

    #[test]
    fn a_way_that_only_another_has_overtaken_is_left_too() {
        let choice = Choice::<2>::default();
        run(&choice, 1000, |way, _| [1000, 20_000][way]);
        assert_eq!(choice.way(), 0);
        // The one in use is as fast as ever, so nothing but a visit can tell.
        run(&choice, 5000, |way, _| [1000, 500][way]);
        let (went, _) = run(&choice, 1000, |way, _| [1000, 500][way]);
        assert!(went[1] > 950, "{went:?}");
    }

    #[test]
    fn visits_cost_little_however_slow_the_other_way_is() {
        for slow in [1010, 1100, 2000, 5000, 20_000] {
            let choice = Choice::<2>::default();
            let time = |way, _| [1000, slow][way];
            run(&choice, 1000, time);
            let (went, whole) = run(&choice, 20_000, time);
            assert!(went[1] > 0 && whole < 20_000 * 1025, "{slow}: {went:?}, {whole}");
        }
    }

    #[test]
    fn transfers_that_were_interrupted_change_nothing() {
        let choice = Choice::<2>::default();
        let time = |way, number: u32| {
            let interrupted = if number.is_multiple_of(37) { 1_000_000 } else { 0 };
            [1000, 1500][way] + u64::from(number * 7919 % 200) + interrupted
        };
        run(&choice, 2000, time);
        let (went, _) = run(&choice, 10_000, time);
        assert!(went[0] > 9000, "{went:?}");
    }

    #[test]
    fn the_first_transfer_of_a_visit_does_not_count() {
        let choice = Choice::<2>::default();
        let (mut before, mut run_of_second) = (0, 0);
        let mut time = |way: usize, _| {
            run_of_second = if way == 1 && before == 1 { run_of_second + 1 } else { 0 };
            before = way;
            match (way, run_of_second) {
                (0, _) => 1000,
                (_, 0) => 100_000,
                _ => 800,
            }
        };
        run(&choice, 20, &mut time);
        let (went, _) = run(&choice, 1000, time);
        assert!(went[1] > 950, "{went:?}");
    }

    /// A target that does not wait is asked in vain: that says nothing about the way, which is visited once it waits.
    #[test]
    fn what_went_another_way_than_asked_for_leaves_the_visit_to_come() {
        let choice = Choice::<2>::default();
        for _ in 0..1000 {
            choice.learn(1, BYTES, 1000);
        }
        assert_eq!(choice.way(), 0);
        run(&choice, 20, |way, _| [500, 1000][way]);
        for _ in 0..1000 {
            choice.learn(1, BYTES, 1000);
        }
        let (went, _) = run(&choice, 1000, |way, _| [500, 1000][way]);
        assert!(went[0] > 950 && went[1] > 0, "{went:?}");
    }

    #[test]
    fn longer_ones_begin_with_what_is_known_of_shorter_ones() {
        let choices = Choices::<2, 6, 10>::default();
        let time = |way, _| [1000, 500][way];
        run(choices.of(1024), 10, time);
        assert_eq!((choices.of(4096).way(), choices.of(16384).way(), choices.of(2048).way()), (1, 1, 1));
        // Here it is the other one that is faster.
        let (went, _) = run(choices.of(4096), 1000, |way, _| [4000, 8000][way]);
        assert!(went[0] > 900, "{went:?}");
        // What is known is too far away, or not all known.
        let choices = Choices::<2, 6, 10>::default();
        run(choices.of(1024), 10, time);
        assert_eq!(choices.of(8192).way(), 0);
        let choices = Choices::<2, 6, 10>::default();
        run(choices.of(1024), 5, time);
        assert_eq!(choices.of(2048).way(), 0);
    }

    #[test]
    fn each_class_of_lengths_learns_by_itself() {
        let choices = Choices::<2, 4, 10>::default();
        let same = |one: usize, other: usize| std::ptr::eq(choices.of(one), choices.of(other));
        assert!(same(0, 1024) && !same(1024, 1025) && same(1025, 2048) && !same(2048, 2049));
        assert!(same(4097, 1 << 40));
        run(choices.of(2048), 100, |way, _| [1000, 500][way]);
        assert_eq!((choices.of(2048).way(), choices.of(1024).way()), (1, 0));
    }
}
