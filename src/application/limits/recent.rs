//! Remembers the latest callers, to know whether a caller is the only one.

use std::sync::{Arc, Mutex};
use std::time::Duration;
use taskledger_auth::Caller;
use tokio::time::Instant;

/// A caller is there for so long after its last call.
const THERE: Duration = Duration::from_secs(1);

/// Identifies a caller: tenant and actor.
pub(super) type Key = (Arc<str>, Arc<str>);

/// The latest callers.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<Calls>);

#[derive(Debug, Default)]
struct Calls {
    last: Option<(Key, Instant)>,
    /// The last call of anybody but the caller of `last`.
    other: Option<(Key, Instant)>,
}

impl Recent {
    /// Somebody calls. Cost: O(1).
    pub(super) fn note(&self, caller: &Caller, now: Instant) {
        let mut calls = self.0.lock().expect("no code panics with it");
        match &mut calls.last {
            Some((key, at)) if is_of(key, caller) => *at = now,
            last => {
                let before = last.replace((key_of(caller), now));
                calls.other = before;
            }
        }
    }

    /// Whether anybody but this caller is there. Cost: O(1).
    pub(super) fn is_shared(&self, caller: &Key) -> bool {
        let calls = self.0.lock().expect("no code panics with it");
        let other = match &calls.last {
            Some((key, _)) if key == caller => &calls.other,
            last => last,
        };
        other.as_ref().is_some_and(|(_, at)| at.elapsed() < THERE)
    }
}

pub(super) fn key_of(caller: &Caller) -> Key {
    (caller.tenant().clone(), caller.actor().clone())
}

fn is_of((tenant, actor): &Key, caller: &Caller) -> bool {
    actor == caller.actor() && tenant == caller.tenant()
}
