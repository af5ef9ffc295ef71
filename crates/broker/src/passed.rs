//! Remembers how far this process has read the log without anything to record, so that reading on costs no transaction.
//! Owns how far the stored place may lie behind. A crash forgets it: those events are read again, and nothing follows
//! from them still.

use std::sync::{Mutex, MutexGuard, PoisonError};
use taskledger_domain::Position;

/// Positions after which the place is stored even if nothing follows from them: how many are read again after a crash.
const STORE_EVERY: u64 = 50_000;

/// The place up to which the log was read in vain. A crash forgets it.
#[derive(Debug, Default)]
pub(crate) struct Passed(Mutex<Inner>);

#[derive(Debug, Clone, Copy, Default)]
struct Inner {
    /// A place that was stored, and up to where nothing followed behind it.
    stored: Position,
    upto: Position,
    /// Whether any task was published up to here; `None`: not known.
    is_used: Option<bool>,
    /// Whether requesters were told of tasks that could not run, and have not begun since; `None`: not known.
    has_blocked: Option<bool>,
}

impl Passed {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        // What a panic left are places that were true.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Up to where nothing is missing, as far as this process has read.
    pub(crate) fn upto(&self) -> Position {
        self.inner().upto
    }

    /// The place that must be stored at least for events behind `after` to be the next ones.
    pub(crate) fn rests_on(&self, after: Position) -> Position {
        let inner = self.inner();
        match after == inner.upto {
            true => inner.stored,
            false => after,
        }
    }

    /// Nothing follows from the events behind `after` up to `upto`. False: they are to be noted all the same.
    pub(crate) fn pass(&self, after: Position, upto: Position) -> bool {
        let stored = self.rests_on(after);
        let mut inner = self.inner();
        if upto <= inner.upto {
            return true;
        }
        if upto - stored >= STORE_EVERY {
            return false;
        }
        (inner.stored, inner.upto) = (stored, upto);
        true
    }

    /// This place is stored, after events up to `read` were looked at.
    pub(crate) fn store(&self, place: Position, read: Position) {
        let mut inner = self.inner();
        // Another server has gone on, or back: tasks may have been published that were not seen here.
        if place != read {
            inner.is_used = None;
            inner.has_blocked = None;
        }
        (inner.stored, inner.upto) = (place, place);
    }

    pub(crate) fn is_used(&self) -> Option<bool> {
        self.inner().is_used
    }

    pub(crate) fn set_used(&self, is_used: bool) {
        self.inner().is_used = Some(is_used);
    }

    pub(crate) fn has_blocked(&self) -> Option<bool> {
        self.inner().has_blocked
    }

    pub(crate) fn set_blocked(&self, has_blocked: bool) {
        self.inner().has_blocked = Some(has_blocked);
    }

    /// Some of the tasks that could not run have begun or ended, or were forgotten: perhaps none is left.
    pub(crate) fn unblocked(&self) {
        let mut inner = self.inner();
        inner.has_blocked = inner.has_blocked.filter(|has_blocked| !has_blocked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_passed_rests_on_the_stored_place() {
        let passed = Passed::default();
        passed.store(10, 10);
        assert!(passed.pass(10, 20) && passed.pass(20, 30));
        assert_eq!((passed.upto(), passed.rests_on(30)), (30, 10));
        assert_eq!(passed.rests_on(25), 25, "nobody has passed over these");
        assert!(!passed.pass(30, 10 + STORE_EVERY), "now it is stored");
        passed.store(10 + STORE_EVERY, 10 + STORE_EVERY);
        assert!(passed.pass(10 + STORE_EVERY, 11 + STORE_EVERY));
    }

    #[test]
    fn a_place_that_others_have_moved_says_nothing_of_what_was_published() {
        let passed = Passed::default();
        passed.set_used(false);
        passed.store(5, 5);
        assert_eq!(passed.is_used(), Some(false));
        passed.store(9, 7);
        assert_eq!(passed.is_used(), None);
    }

    #[test]
    fn that_no_task_is_blocked_is_known_for_good_and_that_one_is_until_one_is_not() {
        let passed = Passed::default();
        passed.set_blocked(true);
        passed.unblocked();
        assert_eq!(passed.has_blocked(), None);
        passed.set_blocked(false);
        passed.unblocked();
        assert_eq!(passed.has_blocked(), Some(false));
    }
}
