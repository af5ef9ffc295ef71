//! Counts frequent events, and writes them down once a minute, or when somebody asks, with their count.

use std::collections::HashMap;
use std::hash::Hash;
use taskledger_domain::Timestamp;

/// How long the next row about the same thing waits.
pub(super) const WINDOW_MS: u64 = 60_000;

/// One kind of thing that is counted.
#[derive(Debug)]
struct Window<V> {
    /// When it was last written.
    written: Option<Timestamp>,
    /// How often it happened since.
    count: u64,
    /// About the last time that it happened.
    last: V,
}

/// Counts by key.
#[derive(Debug)]
pub(super) struct Throttle<K, V> {
    windows: HashMap<K, Window<V>>,
    max: usize,
    /// As what a key is counted that comes when there are `max` keys already. It gives few different ones.
    overflow: fn(&K) -> K,
}

impl<K: Clone + Eq + Hash, V: Clone> Throttle<K, V> {
    /// For at most `max` keys; what comes beyond them is counted as `overflow` says.
    pub(super) fn new(max: usize, overflow: fn(&K) -> K) -> Self {
        Self {
            windows: HashMap::new(),
            max,
            overflow,
        }
    }

    /// Counts one. Cost: O(1).
    pub(super) fn note(&mut self, key: K, about: V) {
        let is_new = !self.windows.contains_key(&key);
        let key = if is_new && self.windows.len() >= self.max {
            (self.overflow)(&key)
        } else {
            key
        };
        self.again(key, 1, about);
    }

    /// Counts what was taken and could not be written.
    pub(super) fn again(&mut self, key: K, count: u64, about: V) {
        let window = self.windows.entry(key).or_insert_with(|| Window {
            written: None,
            count: 0,
            last: about.clone(),
        });
        window.count = window.count.saturating_add(count);
        window.last = about;
    }

    /// Takes what is to be written now: what was not written within the last minute. Cost: O(keys).
    pub(super) fn take(&mut self, now: Timestamp) -> Vec<(K, u64, V)> {
        self.take_after(WINDOW_MS, now)
    }

    /// Takes all that was counted, for somebody who reads the rows: its next row waits a minute again. Cost: O(keys).
    pub(super) fn take_all(&mut self, now: Timestamp) -> Vec<(K, u64, V)> {
        self.take_after(0, now)
    }

    /// Takes what was not written within the last `window_ms`.
    fn take_after(&mut self, window_ms: u64, now: Timestamp) -> Vec<(K, u64, V)> {
        let mut due = Vec::new();
        self.windows.retain(|key, window| {
            let within_ms = if window.count == 0 {
                WINDOW_MS
            } else {
                window_ms
            };
            let written = window.written;
            if written.is_some_and(|written| now.ms_since(written) < within_ms) {
                return true;
            }
            if window.count == 0 {
                return false;
            }
            due.push((key.clone(), window.count, window.last.clone()));
            window.count = 0;
            window.written = Some(now);
            true
        });
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: i64) -> Timestamp {
        Timestamp(s * 1_000_000)
    }

    /// Two are counted, behind one that was taken at once.
    fn counted() -> Throttle<&'static str, i32> {
        let mut throttle = Throttle::new(10, |_| "more");
        throttle.note("a", 1);
        assert_eq!(throttle.take(at(0)), [("a", 1, 1)]);
        throttle.note("a", 2);
        throttle.note("a", 3);
        throttle
    }

    #[test]
    fn the_first_is_taken_at_once_and_the_rest_after_a_minute() {
        let mut throttle = counted();
        assert_eq!(throttle.take(at(59)), []);
        assert_eq!(throttle.take(at(60)), [("a", 2, 3)]);
        assert_eq!(throttle.take(at(120)), []);
        assert!(throttle.windows.is_empty());
    }

    #[test]
    fn whoever_reads_sees_what_was_counted_up_to_now() {
        let mut throttle = counted();
        assert_eq!(throttle.take_all(at(1)), [("a", 2, 3)]);
        assert_eq!(throttle.take_all(at(1)), []);
        throttle.note("a", 4);
        assert_eq!(throttle.take(at(60)), [], "a minute after the last row");
        assert_eq!(throttle.take(at(61)), [("a", 1, 4)]);
    }

    #[test]
    fn the_number_of_keys_is_bounded_and_nothing_is_lost() {
        let mut throttle = Throttle::new(2, |key: &i32| -(key % 2));
        for key in 1..=100 {
            throttle.note(key, ());
        }
        let mut taken = throttle.take(Timestamp(0));
        taken.sort_unstable();
        assert_eq!(
            taken,
            [(-1, 49, ()), (0, 49, ()), (1, 1, ()), (2, 1, ())],
            "odd and even ones stay apart"
        );
    }
}
