//! What is known of credentials that were used lately, by their digest.
//!
//! Two halves: when the young one is full, the old one is dropped and the young one becomes old. What is in
//! use moves back to the young half, so that it stays. Refused credentials have a cache of their own:
//! strangers cannot push out those who may call.

use super::Denial;
use crate::caller::Caller;
use crate::token::{Digest, TokenId};
use std::collections::HashMap;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, PoisonError};
use taskledger_domain::Timestamp;

/// Accepted credentials in one half.
const ACCEPTED_MAX: usize = 4_000;
/// Refused credentials in one half.
const REFUSED_MAX: usize = 1_000;

/// An accepted credential.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) id: TokenId,
    pub(super) caller: Arc<Caller>,
    /// When the store said so.
    pub(super) since: Timestamp,
    /// The minute of its last use that is noted already.
    pub(super) minute: AtomicI64,
}

/// What the store said of a credential.
#[derive(Debug, Clone)]
pub(super) enum Known {
    Accepted(Arc<Accepted>),
    Refused(Denial, Timestamp),
}

#[derive(Debug)]
struct Halves<T> {
    young: HashMap<Digest, T>,
    old: HashMap<Digest, T>,
    max: usize,
}

impl<T: Clone> Halves<T> {
    fn new(max: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            max,
        }
    }

    fn get(&mut self, digest: &Digest) -> Option<T> {
        if let Some(found) = self.young.get(digest) {
            return Some(found.clone());
        }
        let found = self.old.remove(digest)?;
        self.put(*digest, found.clone());
        Some(found)
    }

    fn put(&mut self, digest: Digest, value: T) {
        if self.young.len() >= self.max && !self.young.contains_key(&digest) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(digest, value);
    }

    fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

#[derive(Debug)]
struct State {
    accepted: Halves<Arc<Accepted>>,
    refused: Halves<(Denial, Timestamp)>,
    /// Rises each time that everything is forgotten.
    epoch: u64,
}

/// The cache; one for each server.
#[derive(Debug)]
pub(super) struct Cache(Mutex<State>);

impl Cache {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State {
            accepted: Halves::new(ACCEPTED_MAX),
            refused: Halves::new(REFUSED_MAX),
            epoch: 0,
        }))
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is known of a credential, and the epoch in which that was asked. Cost: O(1).
    pub(super) fn get(&self, digest: &Digest) -> (Option<Known>, u64) {
        self.with(|state| {
            let accepted = state.accepted.get(digest).map(Known::Accepted);
            let known = accepted.or_else(|| {
                let refused = state.refused.get(digest);
                refused.map(|(denial, since)| Known::Refused(denial, since))
            });
            (known, state.epoch)
        })
    }

    /// Keeps what the store said, unless everything was forgotten since `epoch`: then the store may say
    /// something else by now.
    pub(super) fn put(&self, digest: Digest, known: Known, epoch: u64) {
        self.with(|state| {
            if state.epoch != epoch {
                return;
            }
            match known {
                Known::Accepted(accepted) => state.accepted.put(digest, accepted),
                Known::Refused(denial, since) => {
                    state.accepted.young.remove(&digest);
                    state.accepted.old.remove(&digest);
                    state.refused.put(digest, (denial, since));
                }
            }
        });
    }

    /// Forgets everything. Cost: O(entries).
    pub(super) fn clear(&self) {
        self.with(|state| {
            state.accepted.clear();
            state.refused.clear();
            state.epoch += 1;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(n: u32) -> Digest {
        Digest::of(&n.to_string())
    }

    #[test]
    fn what_is_in_use_stays_while_others_come_and_go() {
        let mut halves = Halves::new(10);
        halves.put(digest(0), 0);
        for n in 1..1_000 {
            halves.put(digest(n), n);
            assert_eq!(halves.get(&digest(0)), Some(0), "after {n}");
            assert!(halves.young.len() + halves.old.len() <= 20);
        }
        assert_eq!(halves.get(&digest(1)), None);
    }

    #[test]
    fn an_answer_from_before_a_change_is_not_kept() {
        let cache = Cache::new();
        let (_, epoch) = cache.get(&digest(1));
        cache.clear();
        cache.put(
            digest(1),
            Known::Refused(Denial::Unknown, Timestamp(0)),
            epoch,
        );
        assert!(cache.get(&digest(1)).0.is_none());
    }
}
