//! Numbers that look random and are the same for the same seed (splitmix64).

/// A stream of numbers.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `end` - 1.
    pub const fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// An index of `items`, which is not empty.
    pub fn index<T>(&mut self, items: &[T]) -> usize {
        let end = u64::try_from(items.len()).unwrap();
        usize::try_from(self.below(end)).unwrap()
    }
}
