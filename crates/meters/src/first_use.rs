//! Counters by names that the program does not know beforehand, such as those of executors.

use std::sync::OnceLock;

/// Names that have a value of their own. More would be more series than a scrape should have.
pub const NAMES_MAX: usize = 64;
/// The name under which all others are shown.
pub const OTHER: &str = "_other";

/// A name and what is kept under it.
type Named<T> = (Box<str>, T);

/// A value for each of the first [`NAMES_MAX`] names that are used, and one for all others together.
/// Finding one takes no lock: it compares the names in the order of their first use.
#[derive(Debug)]
pub struct FirstUse<T> {
    named: Box<[OnceLock<Named<T>>]>,
    other: OnceLock<T>,
    make: fn() -> T,
}

impl<T> FirstUse<T> {
    /// No name is used yet; `make` makes the value of a new one.
    #[must_use]
    pub fn new(make: fn() -> T) -> Self {
        Self {
            named: (0..NAMES_MAX).map(|_| OnceLock::new()).collect(),
            other: OnceLock::new(),
            make,
        }
    }

    /// The value of a name. Cost: O(names in use), at most [`NAMES_MAX`] comparisons.
    pub fn of(&self, name: &str) -> &T {
        self.at(self.position(name))
    }

    /// The name under which this one is shown: itself or [`OTHER`].
    pub fn shown(&self, name: &str) -> &str {
        let named = self.named.get(self.position(name));
        named
            .and_then(OnceLock::get)
            .map_or(OTHER, |(name, _)| name)
    }

    /// Where the value of a name is, for [`Self::at`]. Cost: as [`Self::of`].
    pub fn position(&self, name: &str) -> usize {
        let is_it = |slot: &OnceLock<(Box<str>, T)>| {
            let (taken, _) = slot.get_or_init(|| (name.into(), (self.make)()));
            **taken == *name
        };
        self.named.iter().position(is_it).unwrap_or(NAMES_MAX)
    }

    /// The value at a position that [`Self::position`] gave. Cost: O(1).
    pub fn at(&self, position: usize) -> &T {
        let named = self.named.get(position).and_then(OnceLock::get);
        match named {
            Some((_, value)) => value,
            None => self.other.get_or_init(self.make),
        }
    }

    /// The names in use with their values, in the order of their first use; [`OTHER`] comes last.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        let named = self.named.iter().map_while(OnceLock::get);
        let named = named.map(|(name, value)| (&**name, value));
        named.chain(self.other.get().map(|value| (OTHER, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::{FirstUse, NAMES_MAX, OTHER};
    use crate::Counter;

    #[test]
    fn the_first_names_are_counted_apart_and_the_rest_together() {
        let counters = FirstUse::new(Counter::default);
        assert_eq!(counters.iter().count(), 0);
        for _ in 0..2 {
            for n in 0..10_000 {
                counters.of(&format!("name{n}")).increment();
            }
        }
        let shown: Vec<_> = counters.iter().map(|(name, c)| (name, c.get())).collect();
        assert_eq!(shown.len(), NAMES_MAX + 1);
        assert_eq!(shown[0], ("name0", 2));
        assert_eq!(shown[NAMES_MAX - 1], ("name63", 2));
        assert_eq!(shown[NAMES_MAX], (OTHER, 2 * (10_000 - 64)));
        assert_eq!(counters.shown("name5"), "name5");
        assert_eq!(counters.shown("name64"), OTHER);
    }
}
