//! Histograms: how many values lay in each range.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The ranges of a histogram.
#[derive(Debug, PartialEq, Eq)]
pub struct Buckets {
    /// The highest value of each range, ascending; above the last one there is one more range. In the unit
    /// in which values are observed: nanoseconds for times.
    upper: &'static [u64],
    /// How many of that unit make one of the unit in which they are shown.
    divisor: u64,
}

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

impl Buckets {
    /// Of calls and appends, which take from a fraction of a millisecond to the time limit of a request.
    pub const CALLS: Self = Self::seconds(&[
        MS / 2,
        MS,
        5 * MS / 2,
        5 * MS,
        10 * MS,
        25 * MS,
        50 * MS,
        100 * MS,
        250 * MS,
        500 * MS,
        SECOND,
        5 * SECOND / 2,
        5 * SECOND,
        10 * SECOND,
    ]);
    /// Of attempts of executors, up to an hour.
    pub const ATTEMPTS: Self = Self::seconds(&[
        10 * MS,
        50 * MS,
        100 * MS,
        500 * MS,
        SECOND,
        5 * SECOND,
        15 * SECOND,
        60 * SECOND,
        300 * SECOND,
        900 * SECOND,
        1800 * SECOND,
        3600 * SECOND,
    ]);
    /// Of deliveries to webhooks, up to a minute.
    pub const DELIVERIES: Self = Self::seconds(&[
        10 * MS,
        25 * MS,
        50 * MS,
        100 * MS,
        250 * MS,
        500 * MS,
        SECOND,
        5 * SECOND / 2,
        5 * SECOND,
        10 * SECOND,
        30 * SECOND,
        60 * SECOND,
    ]);
    /// Buckets for numbers of events in an append.
    pub const EVENTS: Self = Self {
        upper: &[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
        divisor: 1,
    };

    const fn seconds(upper: &'static [u64]) -> Self {
        Self {
            upper,
            divisor: SECOND,
        }
    }
}

/// Counts of values in each range, and their sum.
#[derive(Debug)]
pub struct Histogram {
    buckets: &'static Buckets,
    /// One for each range, the one without an upper bound included.
    counts: Box<[AtomicU64]>,
    /// Wraps after 584 years of nanoseconds.
    sum: AtomicU64,
}

/// A snapshot of a histogram.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The sum of all values.
    pub sum: f64,
    /// How many there were.
    pub count: u64,
    /// The highest value of each range, and how many lay in it; the last range ends with infinity.
    pub buckets: Vec<(f64, u64)>,
}

impl Histogram {
    /// Without values.
    #[must_use]
    pub fn new(buckets: &'static Buckets) -> Self {
        Self {
            counts: (0..=buckets.upper.len())
                .map(|_| AtomicU64::new(0))
                .collect(),
            buckets,
            sum: AtomicU64::new(0),
        }
    }

    /// Adds a value in the unit of the buckets. Cost: two atomic additions.
    pub fn observe(&self, value: u64) {
        let ranges = self.buckets.upper;
        let range = ranges.iter().take_while(|upper| value > **upper).count();
        self.counts[range].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// Adds a time.
    pub fn observe_time(&self, time: Duration) {
        self.observe(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// What it shows now. Values that are added meanwhile may be in the buckets and not yet in the sum.
    #[must_use]
    pub fn read(&self) -> Reading {
        let shown = |value: u64| value as f64 / self.buckets.divisor as f64;
        let upper = self.buckets.upper.iter().map(|upper| shown(*upper));
        let counts = self.counts.iter().map(|c| c.load(Ordering::Relaxed));
        let buckets: Vec<_> = upper.chain([f64::INFINITY]).zip(counts).collect();
        Reading {
            sum: shown(self.sum.load(Ordering::Relaxed)),
            count: buckets.iter().map(|(_, count)| count).sum(),
            buckets,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Buckets, Histogram};
    use std::time::Duration;

    #[test]
    fn a_value_lies_in_the_first_range_that_it_does_not_exceed() {
        static BUCKETS: Buckets = Buckets {
            upper: &[10, 20],
            divisor: 10,
        };
        let histogram = Histogram::new(&BUCKETS);
        for value in [0, 10, 11, 20, 21, 1000] {
            histogram.observe(value);
        }
        let reading = histogram.read();
        assert_eq!(reading.buckets, [(1.0, 2), (2.0, 2), (f64::INFINITY, 2)]);
        assert_eq!((reading.count, reading.sum), (6, 106.2));
    }

    #[test]
    fn times_are_shown_in_seconds() {
        let histogram = Histogram::new(&Buckets::CALLS);
        histogram.observe_time(Duration::from_millis(1500));
        assert_eq!(histogram.read().sum, 1.5);
    }

    #[test]
    fn ranges_rise() {
        for buckets in [
            Buckets::CALLS,
            Buckets::ATTEMPTS,
            Buckets::DELIVERIES,
            Buckets::EVENTS,
        ] {
            assert!(buckets.upper.is_sorted_by(|a, b| a < b), "{buckets:?}");
        }
        assert_eq!(Buckets::CALLS.upper.len(), 14);
        assert_eq!(Buckets::ATTEMPTS.upper.len(), 12);
    }
}
