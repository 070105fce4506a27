//! How long a waiting rank may keep its processor.

use crate::crowd::Crowd;
use crate::layout::Station;
use crate::tuning::Tuning;
use parnass_base::atomics::{AtomicU32, Ordering};
use parnass_base::process::allowed_processors;
use parnass_base::{Placed, Word64};

/// Ranks that share a processor at most, that are some: of more, few run when they are waited for.
const SOME: u32 = 8;
/// How many ranks' processors a station can show.
const SHOWN: usize = 512;

/// Decides whether a rank may spin: only if the ranks that may run on its processors are not more than those.
#[derive(Debug)]
pub struct Patience {
    mine: [u64; 8],
    processors: u32,
    tuning: Tuning,
    /// The last answer, for how many attached ranks it was found, and how many of them may run on its processors.
    spins: AtomicU32,
    attached: AtomicU32,
    neighbours: AtomicU32,
    asked: AtomicU32,
    /// Ranks of the job that run on this machine and do not share this memory, and the processors of all that do or do not.
    apart: AtomicU32,
    machine: AtomicU32,
    crowd: Crowd,
}

impl Patience {
    /// Finds out where this rank may run, and shows it.
    pub fn new(station: &Placed<Station>, tuning: &Tuning) -> Patience {
        let mut mine = [0u64; 8];
        for processor in allowed_processors().into_iter().filter(|processor| *processor < SHOWN) {
            mine[processor / 64] |= 1 << (processor % 64);
        }
        for (shown, word) in station.processors.iter().zip(mine) {
            shown.set(word);
        }
        let counted = mine.iter().map(|word| word.count_ones()).sum::<u32>().max(1);
        // The control group of the process may grant fewer than its mask.
        let granted = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
        Patience {
            mine,
            processors: counted.min(granted),
            tuning: *tuning,
            spins: AtomicU32::new(0),
            attached: AtomicU32::new(0),
            neighbours: AtomicU32::new(0),
            asked: AtomicU32::new(0),
            apart: AtomicU32::new(0),
            machine: AtomicU32::new(0),
            crowd: Crowd::default(),
        }
    }

    /// Counts ranks that run on this machine, which has so many `processors` for the job, and do not share this memory. Where they may
    /// run is not known: a rank that is bound to some of the processors assumes that they are bound too, to others as far as there are enough; else that
    /// they come to its own. To be said before the first question.
    pub fn count_apart(&self, ranks: u32, processors: u32) {
        self.apart.store(ranks, Ordering::Relaxed);
        self.machine.store(processors, Ordering::Relaxed);
    }

    /// Whether there is a processor for each of `size` ranks that share this memory, of which so many are `neighbours` on these processors, and for each
    /// of those that do not share it.
    fn suffices(&self, size: u32, neighbours: u32) -> bool {
        let (apart, machine) = (self.apart.load(Ordering::Relaxed), self.machine.load(Ordering::Relaxed));
        let bound = self.processors < machine;
        if bound && size + apart <= machine {
            neighbours <= self.processors
        } else {
            neighbours + apart <= self.processors
        }
    }

    /// Polls before sleeping, in a job of `size` ranks.
    #[inline]
    pub fn spins<'a>(&self, size: u32, station: &dyn Fn(u32) -> &'a Placed<Station>) -> u32 {
        if self.attached.load(Ordering::Relaxed) == size {
            return self.spins.load(Ordering::Relaxed);
        }
        self.decide(size, station)
    }

    #[cold]
    fn decide<'a>(&self, size: u32, station: &dyn Fn(u32) -> &'a Placed<Station>) -> u32 {
        // While ranks are still to come, every 64th question is answered anew.
        if !self.asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(64) {
            return self.spins.load(Ordering::Relaxed);
        }
        let (mut attached, mut neighbours) = (0, 0);
        for rank in 0..size {
            let station = station(rank);
            if station.process.load(Ordering::Acquire) == 0 {
                // It may come to these processors.
                neighbours += 1;
                continue;
            }
            attached += 1;
            if self.meets(station) {
                neighbours += 1;
            }
        }
        let spins = if self.suffices(size, neighbours) { self.crowd.spins(self.tuning.spins) } else { 0 };
        self.spins.store(spins, Ordering::Relaxed);
        self.neighbours.store(neighbours, Ordering::Relaxed);
        self.attached.store(attached, Ordering::Relaxed);
        spins
    }

    /// Whether more processors are this rank's than ranks may run there.
    pub fn has_spare<'a>(&self, size: u32, station: &dyn Fn(u32) -> &'a Placed<Station>) -> bool {
        if self.attached.load(Ordering::Relaxed) != size {
            self.decide(size, station);
        }
        self.neighbours.load(Ordering::Relaxed) + self.apart.load(Ordering::Relaxed) < self.processors
    }

    /// For a thread that has just slept: whether others turn out to want its processor.
    pub fn meets_crowd(&self) -> bool {
        let before = self.spins.load(Ordering::Relaxed);
        if before == 0 || !self.crowd.watch() {
            return false;
        }
        let now = self.crowd.spins(self.tuning.spins);
        self.spins.store(now, Ordering::Relaxed);
        now < before
    }

    /// Whether all `size` ranks are there, and there is no processor for each.
    pub fn certainly_shares(&self, size: u32) -> bool {
        self.attached.load(Ordering::Relaxed) == size && self.spins.load(Ordering::Relaxed) == 0
    }

    /// Whether a rank may run on one of the processors of this one.
    fn meets(&self, station: &Placed<Station>) -> bool {
        station.processors.iter().zip(self.mine).any(|(theirs, mine)| theirs.get() & mine != 0)
    }

    /// Whether a rank may run at the same time as this one, which both are not if they are bound to the same processor.
    pub fn may_be_beside(&self, station: &Placed<Station>) -> bool {
        let theirs = station.processors.iter().map(Word64::get);
        theirs.zip(self.mine).map(|(theirs, mine)| (theirs | mine).count_ones()).sum::<u32>() > 1
    }

    /// Whether a rank is bound to other processors than this one, while some ranks share each.
    pub fn is_across(&self, station: &Placed<Station>) -> bool {
        (1..=SOME * self.processors).contains(&self.neighbours.load(Ordering::Relaxed))
            && self.spins.load(Ordering::Relaxed) == 0
            && !self.meets(station)
    }

    /// Turns to give away before sleeping, where there is no spinning.
    ///
    /// A rank that has spun goes to sleep at once: if strangers keep its processor busy, a turn given away is lost to
    /// them, while a sleeper that is woken gets the processor soon.
    #[inline(always)]
    pub fn yields(&self) -> u32 {
        if self.spins.load(Ordering::Relaxed) == 0 { self.tuning.yields } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// That of a rank on `processors` of `machine` beside `neighbours`, itself among them, and ranks with other memory.
    fn patience(processors: u32, machine: u32, neighbours: u32, apart: u32) -> Patience {
        let patience = Patience {
            mine: [0; 8],
            processors,
            tuning: Tuning::default(),
            spins: AtomicU32::new(0),
            attached: AtomicU32::new(neighbours),
            neighbours: AtomicU32::new(neighbours),
            asked: AtomicU32::new(0),
            apart: AtomicU32::new(0),
            machine: AtomicU32::new(0),
            crowd: Crowd::default(),
        };
        patience.count_apart(apart, machine);
        patience
    }

    /// Whether it spins.
    fn spins(processors: u32, machine: u32, neighbours: u32, apart: u32) -> bool {
        patience(processors, machine, neighbours, apart).suffices(neighbours, neighbours)
    }

    #[test]
    fn a_processor_is_to_spare_where_there_are_more_than_ranks() {
        let spare = |processors, neighbours, apart| {
            let nobody = |_| -> &'static Placed<Station> { unreachable!("all have been counted") };
            patience(processors, 16, neighbours, apart).has_spare(neighbours, &nobody)
        };
        assert!(spare(2, 1, 0) && spare(16, 15, 0) && spare(4, 1, 2));
        assert!(!spare(1, 1, 0), "bound to its own");
        assert!(!spare(2, 2, 0) && !spare(16, 15, 1) && !spare(2, 3, 0));
    }

    #[test]
    fn a_rank_spins_that_has_a_processor_to_itself() {
        assert!(spins(2, 2, 2, 0) && spins(2, 2, 1, 1), "not bound, as many as there are");
        assert!(!spins(2, 2, 3, 0) && !spins(2, 2, 2, 1), "not bound, more than there are");
        assert!(spins(1, 2, 1, 1), "bound, and so is the other one, elsewhere");
        assert!(!spins(1, 2, 1, 2), "bound, and not all others can be elsewhere");
        assert!(!spins(1, 4, 2, 0), "two on one processor");
        assert!(!spins(1, 1, 1, 1), "one processor for two that share no memory");
    }
}
