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
    /// Rising. A new key that comes when there are so many already is counted as a broader one.
    maxes: &'static [usize],
    /// The broader key of one that finds no room at this place of `maxes`. The last place gives few different ones.
    broader: fn(&K, usize) -> K,
}

impl<K: Clone + Eq + Hash, V: Clone> Throttle<K, V> {
    /// For at most `maxes` keys, each of those beyond one of them counted as `broader` says.
    pub(super) fn new(maxes: &'static [usize], broader: fn(&K, usize) -> K) -> Self {
        Self {
            windows: HashMap::new(),
            maxes,
            broader,
        }
    }

    /// Counts one. Cost: O(1).
    pub(super) fn note(&mut self, mut key: K, about: V) {
        for (place, max) in self.maxes.iter().enumerate() {
            if self.windows.len() < *max || self.windows.contains_key(&key) {
                break;
            }
            key = (self.broader)(&key, place);
        }
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
        let mut throttle = Throttle::new(&[10], |_, _| "more");
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
        let mut throttle = Throttle::new(&[2], |key: &i32, _| -(key % 2));
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

    #[test]
    fn what_finds_no_room_is_counted_as_broadly_as_it_must_be() {
        let mut throttle = Throttle::new(&[2, 4], |key: &i32, place| match place {
            0 => key / 10 * 10,
            _ => 0,
        });
        for key in [11, 12, 13, 14, 21, 31, 12] {
            throttle.note(key, ());
        }
        let mut taken = throttle.take(Timestamp(0));
        taken.sort_unstable();
        assert_eq!(
            taken,
            [
                (0, 1, ()),
                (10, 2, ()),
                (11, 1, ()),
                (12, 2, ()),
                (20, 1, ()),
            ]
        );
    }
}
