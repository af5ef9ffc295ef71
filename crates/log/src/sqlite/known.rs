//! Caches which events are missing from the log: every stream that begins asks for it, and it hardly changes.
//!
//! Owns: when the memory may be trusted. Only this process drops events, so it holds from a reading on
//! until the next drop begins; while one is under way nothing is remembered.

use crate::retention::Dropped;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The answer to `EventStore::dropped`, as long as it cannot have changed.
#[derive(Debug, Default)]
pub(super) struct KnownDropped(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    value: Option<Dropped>,
    /// Drops that have begun.
    begun: u64,
    /// Drops that have ended. One that was broken off never does, and then nothing is remembered.
    ended: u64,
}

impl KnownDropped {
    /// What is remembered, or the ticket with which a reading may be [kept](Self::keep): the drops that
    /// have ended, all of which the reading will see.
    pub(super) fn get(&self) -> Result<Dropped, u64> {
        let known = self.lock();
        known.value.ok_or(known.ended)
    }

    /// Remembers a reading, unless there were drops of which it may have seen nothing.
    pub(super) fn keep(&self, read: Dropped, ticket: u64) {
        let mut known = self.lock();
        if known.begun == ticket {
            known.value = Some(read);
        }
    }

    /// A drop begins.
    pub(super) fn begin(&self) {
        let mut known = self.lock();
        known.begun += 1;
        known.value = None;
    }

    /// A drop has ended, with effect or without.
    pub(super) fn end(&self) {
        self.lock().ended += 1;
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_remembered_of_the_time_before_or_during_a_drop() {
        let known = KnownDropped::default();
        let before = Dropped::default();
        let ticket = known.get().unwrap_err();
        known.begin();
        known.keep(before, ticket);
        let during = known.get().unwrap_err();
        known.keep(before, during);
        assert!(known.get().is_err(), "the drop may be done already");
        known.end();
        for read in [ticket, during] {
            known.keep(before, read);
            assert!(
                known.get().is_err(),
                "it may have been read before the drop"
            );
        }
        let after = known.get().unwrap_err();
        known.keep(before, after);
        assert_eq!(known.get(), Ok(before));
    }
}
