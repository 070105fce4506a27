//! The parts of a file that the aggregators of a collective access handle (the file domains of two-phase access).

/// A range of a file, dealt out in equal parts to a number of aggregators, and each part in equal windows to rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domains {
    low: u64,
    high: u64,
    part: u64,
    window: u64,
}

/// Parts begin at multiples of this many bytes, so that no two aggregators write to one page.
const PAGE: u64 = 4096;

impl Domains {
    /// The range `low .. high` for some aggregators and rounds, both at least 1.
    pub fn new(low: u64, high: u64, aggregators: u64, rounds: u64) -> Domains {
        let start = low / PAGE * PAGE;
        let part = (high.max(low) - start).div_ceil(aggregators).next_multiple_of(PAGE).max(PAGE);
        Domains { low, high, part, window: part.div_ceil(rounds) }
    }

    /// What an aggregator handles in all rounds, as (first, one past the last); empty if they are equal.
    pub fn of(&self, aggregator: u64) -> (u64, u64) {
        let start = self.start(aggregator);
        self.clip(start, start.saturating_add(self.part))
    }

    /// What an aggregator handles in a round.
    pub fn window(&self, aggregator: u64, round: u64) -> (u64, u64) {
        let start = self.start(aggregator);
        let end = start.saturating_add(self.part);
        let first = start.saturating_add(round.saturating_mul(self.window)).min(end);
        self.clip(first, first.saturating_add(self.window).min(end))
    }

    fn start(&self, aggregator: u64) -> u64 {
        (self.low / PAGE * PAGE).saturating_add(self.part.saturating_mul(aggregator))
    }

    fn clip(&self, first: u64, end: u64) -> (u64, u64) {
        let first = first.clamp(self.low, self.high);
        (first, end.clamp(first, self.high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_windows_cover_the_range_once() {
        for (low, high) in
            [(0, 1), (0, 4096), (5, 4097), (4095, 50_001), (7, 7), (1 << 40, (1 << 40) + 123_456)]
        {
            for aggregators in 1..6 {
                for rounds in 1..5 {
                    let domains = Domains::new(low, high, aggregators, rounds);
                    let mut next = low;
                    for aggregator in 0..aggregators {
                        let (first, end) = domains.of(aggregator);
                        assert_eq!(first.min(high), next.min(first).max(first.min(high)));
                        let mut inside = first;
                        for round in 0..rounds {
                            let (from, to) = domains.window(aggregator, round);
                            if from < to {
                                assert_eq!(from, inside);
                                inside = to;
                            }
                        }
                        assert_eq!(inside, end);
                        if first < end {
                            assert_eq!(first, next);
                            next = end;
                        }
                    }
                    assert_eq!(next, high);
                }
            }
        }
    }

    #[test]
    fn parts_begin_at_pages() {
        let domains = Domains::new(100, 1_000_000, 3, 2);
        assert_eq!(domains.of(0).0, 100);
        assert!(domains.of(1).0.is_multiple_of(4096) && domains.of(2).0.is_multiple_of(4096));
        assert_eq!(domains.of(2).1, 1_000_000);
    }
}
