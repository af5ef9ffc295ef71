//! Counters and histograms, as plain memory.
//!
//! Whoever owns a fact keeps a [`Counter`] or a [`Histogram`] for it and counts with one or two atomic
//! additions: no lock, no look-up by label, no allocation. Names, labels and formats are the business of
//! whoever reads them (`src/metrics` of the server).

mod first_use;
mod histogram;

pub use first_use::{FirstUse, NAMES_MAX, OTHER};
pub use histogram::{Buckets, Histogram, Reading};

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows, from 0 at the start of the process.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds 1.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds `count`.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// The current count.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number of things that exist: each holds a [`Presence`].
#[derive(Debug, Default)]
pub struct Population(std::sync::Arc<AtomicU64>);

/// One of a [`Population`], until it is dropped.
#[derive(Debug)]
pub struct Presence(std::sync::Arc<AtomicU64>);

impl Population {
    /// Adds one member, until the returned value is dropped.
    #[must_use]
    pub fn enter(&self) -> Presence {
        self.0.fetch_add(1, Ordering::Relaxed);
        Presence(self.0.clone())
    }

    /// How many there are.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{Counter, Population};

    #[test]
    fn a_counter_adds_up() {
        let counter = Counter::default();
        counter.increment();
        counter.add(2);
        assert_eq!(counter.get(), 3);
    }

    #[test]
    fn who_is_dropped_is_not_counted_any_more() {
        let population = Population::default();
        let (first, second) = (population.enter(), population.enter());
        assert_eq!(population.get(), 2);
        drop(first);
        assert_eq!(population.get(), 1);
        drop(second);
        assert_eq!(population.get(), 0);
    }
}
