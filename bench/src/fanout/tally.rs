//! What subscribers have seen, all together: how many events, how late, and whether any was lost,
//! doubled, or out of order.

use crate::moment::time_us;
use std::collections::HashMap;

/// Delays are counted in classes that are so many times as wide as the one before.
const CLASS_GROWTH: f64 = 1.05;
/// Classes: from 10 us to more than an hour.
const CLASSES: usize = 420;
const FIRST_CLASS_US: f64 = 10.0;

/// The order of events as the first reader of each saw it. All others must see the same.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Ids and times in order.
    events: Vec<(u64, Option<i64>)>,
    places: HashMap<u64, usize>,
    classes: Vec<u64>,
    figures: Figures,
}

/// Counts so far.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Figures {
    /// Events that came to somebody, each once.
    pub(crate) events: usize,
    /// Events that came, each as often as it came.
    pub(crate) deliveries: u64,
    /// Bytes that came, heads of answers and chunks included.
    pub(crate) bytes: u64,
    /// Events that a reader was not shown although it was shown later ones.
    pub(crate) lost: u64,
    /// Events that a reader was shown again.
    pub(crate) doubled: u64,
    /// Streams that ended although nobody wanted that.
    pub(crate) ended: u64,
    /// When the last of them came, in microseconds of the clock.
    pub(crate) last_us: i64,
    /// Half of the deliveries were not later than this.
    pub(crate) p50_ms: f64,
    /// All but one of a hundred were not later than this.
    pub(crate) p99_ms: f64,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self {
            events: Vec::new(),
            places: HashMap::new(),
            classes: vec![0; CLASSES],
            figures: Figures::default(),
        }
    }

    /// A reader, which has seen `seen` events, is shown one more; gives how many it has seen now.
    pub(crate) fn take(&mut self, seen: usize, now_us: i64, id: u64, data: &[u8]) -> usize {
        self.figures.deliveries += 1;
        self.figures.last_us = now_us;
        let place = match self.events.get(seen) {
            Some((expected, _)) if *expected == id => seen,
            _ => match self.places.get(&id).copied() {
                Some(place) => place,
                None => {
                    self.places.insert(id, self.events.len());
                    self.events.push((id, time_us(data)));
                    self.events.len() - 1
                }
            },
        };
        if place < seen {
            self.figures.doubled += 1;
            return seen;
        }
        self.figures.lost += (place - seen) as u64;
        if let Some(sent_us) = self.events[place].1 {
            self.classes[class(now_us - sent_us)] += 1;
        }
        place + 1
    }

    /// Bytes came.
    pub(crate) fn bytes(&mut self, len: usize) {
        self.figures.bytes += len as u64;
    }

    /// A stream ended.
    pub(crate) fn ended(&mut self) {
        self.figures.ended += 1;
    }

    /// The counts; those of delays begin anew.
    pub(crate) fn figures(&mut self) -> Figures {
        let figures = Figures {
            events: self.events.len(),
            p50_ms: self.percentile(50.0),
            p99_ms: self.percentile(99.0),
            ..self.figures
        };
        self.classes.fill(0);
        figures
    }

    /// Only the counts that are cheap.
    pub(crate) fn deliveries(&self) -> u64 {
        self.figures.deliveries
    }

    /// Upper end of the class that holds it.
    fn percentile(&self, percent: f64) -> f64 {
        let all: u64 = self.classes.iter().sum();
        let wanted = (all as f64 * percent / 100.0).ceil() as u64;
        let mut counted = 0;
        for (class, count) in self.classes.iter().enumerate() {
            counted += count;
            if counted >= wanted.max(1) {
                return FIRST_CLASS_US * CLASS_GROWTH.powi(class as i32) / 1e3;
            }
        }
        0.0
    }
}

fn class(delay_us: i64) -> usize {
    let classes = (delay_us.max(1) as f64 / FIRST_CLASS_US).ln() / CLASS_GROWTH.ln();
    (classes.ceil().max(0.0) as usize).min(CLASSES - 1)
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn what_a_reader_misses_or_sees_again_is_counted() {
        let mut tally = Tally::new();
        let mut read = |ids: &[u64]| {
            let seen = |seen, id: &u64| tally.take(seen, 0, *id, b"");
            let seen = ids.iter().fold(0, seen);
            let figures = tally.figures();
            (seen, figures.lost, figures.doubled, figures.events)
        };
        assert_eq!(read(&[1, 2, 3, 4]), (4, 0, 0, 4));
        assert_eq!(read(&[1, 2, 3, 4]), (4, 0, 0, 4));
        assert_eq!(read(&[1, 4]), (4, 2, 0, 4));
        assert_eq!(read(&[1, 2, 2, 3]), (3, 2, 1, 4));
        assert_eq!(read(&[1, 2, 1, 2, 3, 4, 5]), (5, 2, 3, 5));
    }
}
