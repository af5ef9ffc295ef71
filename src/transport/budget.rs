//! A memory budget that many requests share: the total is never exceeded, and each request has its part.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A number of bytes that may be in use at once.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    used: Arc<AtomicUsize>,
    bytes_max: usize,
}

/// There is no room for more at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Budget {
    /// Nothing of it is used.
    pub(crate) fn of(bytes_max: usize) -> Self {
        Self {
            used: Arc::default(),
            bytes_max,
        }
    }

    /// For callers inside the process, who are not limited.
    pub(crate) fn unlimited() -> Self {
        Self::of(usize::MAX)
    }

    /// A part of it, empty yet.
    pub(crate) fn share(&self) -> Share {
        Share {
            budget: self.clone(),
            bytes: 0,
        }
    }
}

/// A request's part of a [`Budget`], given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Budget,
    bytes: usize,
}

impl Share {
    /// Takes more.
    ///
    /// # Errors
    /// [`Full`]; the share is as it was.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), Full> {
        let before = self.budget.used.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > self.budget.bytes_max {
            self.budget.used.fetch_sub(bytes, Ordering::Relaxed);
            return Err(Full);
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Takes what is missing to hold so many bytes.
    ///
    /// # Errors
    /// [`Full`]; the share is as it was.
    pub(crate) fn cover(&mut self, bytes: usize) -> Result<(), Full> {
        self.take(bytes.saturating_sub(self.bytes))
    }

    /// As [`Self::cover`], whatever the budget: for what must not be refused any more.
    pub(crate) fn cover_always(&mut self, bytes: usize) {
        let missing = bytes.saturating_sub(self.bytes);
        self.budget.used.fetch_add(missing, Ordering::Relaxed);
        self.bytes += missing;
    }

    /// Whether it holds nothing.
    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, Full};

    #[test]
    fn shares_never_hold_more_than_the_budget_and_give_back_what_they_held() {
        let budget = Budget::of(10);
        let (mut first, mut second) = (budget.share(), budget.share());
        assert_eq!(first.take(6), Ok(()));
        assert_eq!(first.cover(4), Ok(()), "it holds more already");
        assert_eq!(second.cover(5), Err(Full));
        assert_eq!(second.cover(4), Ok(()));
        drop(first);
        assert_eq!(second.cover(10), Ok(()));
        second.cover_always(12);
        assert_eq!(budget.share().take(1), Err(Full));
        drop(second);
        assert_eq!(budget.share().take(10), Ok(()));
    }
}
