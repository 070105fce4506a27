//! A desk, at which one process asks its owner to carry something out, while the owner looks there between other things.
//!
//! ```text
//! line 0   lock of those who ask
//! line 1   state, who asks, seven words: the question, then the answer
//! ```
//! Who asks may take the question back as long as the owner has not taken it up, so that nobody depends on an owner that has gone
//! to do something else. Nobody sleeps at a desk.

use crate::atomics::{AtomicU32, AtomicU64, Ordering};
use crate::lock::Lock;

/// Words of a question and of its answer.
pub const WORDS: usize = 7;

/// What is asked, and what is answered; opaque here.
pub type Words = [u64; WORDS];

const FREE: u32 = 0;
const ASKED: u32 = 1;
const TAKEN: u32 = 2;

/// The desk. Zeroed memory is a desk at which nobody asks.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Desk {
    lock: Lock,
    _lock_line: [AtomicU32; 15],
    state: AtomicU32,
    asker: AtomicU32,
    words: [AtomicU64; WORDS],
}

#[cfg(not(loom))]
// SAFETY: repr(C), made of atomics.
unsafe impl crate::record::Record for Desk {}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Desk>() == 128);

impl Default for Desk {
    fn default() -> Self {
        Desk {
            lock: Lock::default(),
            _lock_line: std::array::from_fn(|_| AtomicU32::new(0)),
            state: AtomicU32::new(FREE),
            asker: AtomicU32::new(0),
            words: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

/// The right to ask, until it is dropped.
#[derive(Debug)]
pub struct Seat<'a>(&'a Desk);

impl Desk {
    /// Sits down to ask, unless somebody else does, or an owner has died over an answer. `holder` is the process number of the caller.
    #[inline]
    pub fn sit(&self, holder: u32) -> Option<Seat<'_>> {
        if !self.lock.try_acquire(holder) {
            return None;
        }
        let seat = Seat(self);
        (self.state.load(Ordering::Relaxed) == FREE).then_some(seat)
    }

    /// For the owner: whether somebody asks.
    #[inline(always)]
    pub fn is_asked(&self) -> bool {
        self.state.load(Ordering::Relaxed) == ASKED
    }

    /// For the owner: takes the question up, with the number of who asks. [`Desk::answer`] must follow.
    #[inline]
    pub fn take(&self) -> Option<(u32, Words)> {
        // Acquire pairs with the release in `ask`.
        self.state.compare_exchange(ASKED, TAKEN, Ordering::Acquire, Ordering::Relaxed).ok()?;
        Some((self.asker.load(Ordering::Relaxed), self.words()))
    }

    /// As [`Desk::take`], of a question that is `accepted` by its words; another one is left.
    #[inline]
    pub fn take_if(&self, accepted: impl Fn(&Words) -> bool) -> Option<(u32, Words)> {
        if !accepted(&self.words()) {
            return None;
        }
        let (asker, words) = self.take()?;
        if accepted(&words) {
            return Some((asker, words));
        }
        // It is another one than was looked at. Release pairs with the acquire in `take`, of whoever takes it up then.
        self.state.store(ASKED, Ordering::Release);
        None
    }

    /// For the owner: it is carried out.
    #[inline]
    pub fn answer(&self, words: Words) {
        self.put(words);
        // Release pairs with the acquire in `answer` of the seat.
        self.state.store(FREE, Ordering::Release);
    }

    fn words(&self) -> Words {
        std::array::from_fn(|index| self.words[index].load(Ordering::Relaxed))
    }

    fn put(&self, words: Words) {
        for (cell, word) in self.words.iter().zip(words) {
            cell.store(word, Ordering::Relaxed);
        }
    }
}

impl Seat<'_> {
    /// Puts a question down. `asker` is told to the owner.
    #[inline]
    pub fn ask(&self, asker: u32, words: Words) {
        self.0.put(words);
        self.0.asker.store(asker, Ordering::Relaxed);
        // Release pairs with the acquire in `take`.
        self.0.state.store(ASKED, Ordering::Release);
    }

    /// The answer, if it is there.
    #[inline]
    pub fn answer(&self) -> Option<Words> {
        // Acquire pairs with the release in `answer` of the desk.
        (self.0.state.load(Ordering::Acquire) == FREE).then(|| self.0.words())
    }

    /// Takes the question back. `false`: the owner has taken it up.
    pub fn withdraw(&self) -> bool {
        self.0.state.compare_exchange(ASKED, FREE, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl Drop for Seat<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.lock.release();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_answered_or_taken_back() {
        let desk = Desk::default();
        let seat = desk.sit(7).unwrap();
        assert!(desk.sit(8).is_none(), "one asks at a time");
        seat.ask(3, [1, 2, 3, 4, 5, 6, 7]);
        assert!(desk.is_asked() && seat.answer().is_none());
        let (asker, mut words) = desk.take().unwrap();
        assert_eq!((asker, words[6]), (3, 7));
        assert!(!seat.withdraw() && desk.take().is_none());
        words[0] = 70;
        desk.answer(words);
        assert_eq!(seat.answer().unwrap()[0], 70);
        seat.ask(3, words);
        assert!(seat.withdraw() && desk.take().is_none());
        drop(seat);
        assert!(desk.sit(8).is_some());
    }

    #[test]
    fn what_is_not_accepted_is_left() {
        let desk = Desk::default();
        let seat = desk.sit(7).unwrap();
        seat.ask(3, [1; WORDS]);
        assert!(desk.take_if(|words| words[0] == 2).is_none() && desk.is_asked());
        let looks = std::cell::Cell::new(0);
        let accepted_once = |_: &Words| looks.replace(looks.get() + 1) == 0;
        assert!(desk.take_if(accepted_once).is_none() && desk.is_asked(), "another one than was looked at");
        assert_eq!(desk.take_if(|words| words[0] == 1), Some((3, [1; WORDS])));
        assert!(!seat.withdraw());
        desk.answer([9; WORDS]);
        assert_eq!(seat.answer(), Some([9; WORDS]));
    }

    #[test]
    fn an_owner_that_dies_over_an_answer_is_asked_no_more() {
        let desk = Desk::default();
        let seat = desk.sit(7).unwrap();
        seat.ask(3, [0; WORDS]);
        desk.take().unwrap();
        drop(seat);
        assert!(desk.sit(8).is_none());
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;

    /// What a question is about belongs to the owner from when it takes the question up until it answers, and else to who asks.
    #[test]
    fn a_question_is_carried_out_once_or_taken_back() {
        loom::model(|| {
            let shared = Arc::new((Desk::default(), UnsafeCell::new(0_u64)));
            // SAFETY: it is the caller's turn; loom checks exactly this claim.
            let raise = |shared: &(Desk, UnsafeCell<u64>)| shared.1.with_mut(|value| unsafe { *value += 1 });
            let other = shared.clone();
            let owner = loom::thread::spawn(move || {
                for _ in 0..2 {
                    if other.0.is_asked()
                        && let Some((asker, mut words)) = other.0.take()
                    {
                        raise(&other);
                        words[0] += u64::from(asker);
                        other.0.answer(words);
                    }
                }
            });
            let seat = shared.0.sit(1).unwrap();
            let mut expected = 0;
            for round in 0..2 {
                raise(&shared);
                expected += 1;
                seat.ask(5, [round; WORDS]);
                if seat.answer().is_none() && seat.withdraw() {
                    continue;
                }
                let answer = loop {
                    match seat.answer() {
                        Some(words) => break words,
                        None => loom::thread::yield_now(),
                    }
                };
                assert_eq!(answer[0], round + 5);
                expected += 1;
            }
            drop(seat);
            owner.join().unwrap();
            // SAFETY: no other thread is left.
            assert_eq!(shared.1.with(|value| unsafe { *value }), expected);
        });
    }

    /// An owner that takes up only some questions takes up no other, also if one is put down in place of another while it looks.
    #[test]
    fn what_is_not_accepted_is_not_carried_out() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(|| {
            let desk = Arc::new(Desk::default());
            let others = desk.clone();
            let owner = loom::thread::spawn(move || {
                let taken = others.take_if(|words| words[0] == 1);
                if let Some((_, words)) = taken {
                    assert_eq!(words, [1; WORDS]);
                    others.answer([9; WORDS]);
                }
                usize::from(taken.is_some())
            });
            let seat = desk.sit(1).unwrap();
            let mut answered = 0;
            for question in [1, 0] {
                seat.ask(5, [question; WORDS]);
                loop {
                    if let Some(words) = seat.answer() {
                        assert_eq!((question, words), (1, [9; WORDS]));
                        answered += 1;
                        break;
                    }
                    if seat.withdraw() {
                        break;
                    }
                    loom::thread::yield_now();
                }
            }
            drop(seat);
            assert_eq!(owner.join().unwrap(), answered);
        });
    }

    /// Two who ask one after the other see only their own answers.
    #[test]
    fn one_asks_at_a_time() {
        loom::model(|| {
            let desk = Arc::new(Desk::default());
            let others = desk.clone();
            let ask = |desk: &Desk, who: u32| {
                if let Some(seat) = desk.sit(who) {
                    seat.ask(who, [u64::from(who); WORDS]);
                    if !seat.withdraw() {
                        while seat.answer().is_none() {
                            loom::thread::yield_now();
                        }
                        assert_eq!(seat.answer().unwrap(), [u64::from(who) + 10; WORDS]);
                    }
                }
            };
            let second = loom::thread::spawn(move || ask(&others, 2));
            let own = desk.clone();
            let owner = loom::thread::spawn(move || {
                if let Some((who, words)) = own.take() {
                    assert_eq!(words, [u64::from(who); WORDS]);
                    own.answer(words.map(|word| word + 10));
                }
            });
            ask(&desk, 1);
            second.join().unwrap();
            owner.join().unwrap();
        });
    }
}
