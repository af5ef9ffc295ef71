//! Delays callers who keep calling although they were told to wait.
//!
//! A call that is refused because its caller calls too often was read first, which costs nearly as much as carrying out
//! a small one. So whoever is refused many times a second is made to wait before its next call is read. Nobody else
//! waits.

use crate::clock::SharedClock;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use taskledger_auth::Caller;
use taskledger_domain::Timestamp;

/// Refusals of one caller a second that have no consequence: clients that heed what they are told have fewer.
const FREE_PER_SECOND: u32 = 20;
/// Refusals that have none after a quiet time: of calls that were under way already.
const FREE_MAX: u32 = 40;
/// How long each call waits of a caller with more.
const PAUSE: Duration = Duration::from_millis(250);
/// Callers that are kept before those without a recent refusal are forgotten.
const CALLERS_KEPT: usize = 1_024;
/// Callers that are kept at most; further ones are not made to wait.
const CALLERS_MAX: usize = 65_536;

/// Identifies a caller: tenant and actor.
type Key = (Arc<str>, Arc<str>);

/// Callers with recent refusals.
pub(super) struct Refused {
    callers: Mutex<HashMap<Key, Free>>,
    /// Whether anybody is in `callers`.
    any: AtomicBool,
    clock: SharedClock,
}

/// What is left of the refusals without consequence.
#[derive(Debug, Clone, Copy)]
struct Free {
    left: f64,
    at: Timestamp,
}

impl std::fmt::Debug for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Refused").finish_non_exhaustive()
    }
}

impl Refused {
    /// Nobody was refused yet.
    pub(super) fn new(clock: SharedClock) -> Self {
        Self {
            callers: Mutex::default(),
            any: AtomicBool::new(false),
            clock,
        }
    }

    /// Counts a refusal. Cost: O(1), now and then O(callers).
    pub(super) fn count(&self, caller: &Caller) {
        let now = self.clock.now();
        let mut callers = self.callers.lock().expect("no code panics with it");
        let key = (caller.tenant().clone(), caller.actor().clone());
        if callers.len() >= CALLERS_KEPT && !callers.contains_key(&key) {
            callers.retain(|_, free| !free.at(now).is_whole());
            if callers.len() >= CALLERS_MAX {
                return;
            }
        }
        let free = callers.entry(key).or_insert(Free::whole(now));
        let before = free.at(now);
        *free = Free {
            left: (before.left - 1.0).max(0.0),
            at: now,
        };
        self.any.store(true, Ordering::Relaxed);
    }

    /// How long the next call of a caller waits, if it has to. Cost: O(1); next to nothing while nobody is refused.
    pub(super) fn pause(&self, caller: &Caller) -> Option<Duration> {
        if !self.any.load(Ordering::Relaxed) {
            return None;
        }
        let now = self.clock.now();
        let mut callers = self.callers.lock().expect("no code panics with it");
        let key = (caller.tenant().clone(), caller.actor().clone());
        let free = callers.get(&key)?.at(now);
        if free.is_whole() {
            callers.remove(&key);
            self.any.store(!callers.is_empty(), Ordering::Relaxed);
        }
        (free.left < 1.0).then_some(PAUSE)
    }
}

impl Free {
    fn whole(at: Timestamp) -> Self {
        let left = f64::from(FREE_MAX);
        Self { left, at }
    }

    fn is_whole(self) -> bool {
        self.left >= f64::from(FREE_MAX)
    }

    /// The same at a later time.
    fn at(self, now: Timestamp) -> Self {
        let micros = u32::try_from(now.0.saturating_sub(self.at.0).max(0)).unwrap_or(u32::MAX);
        let gained = f64::from(micros) * f64::from(FREE_PER_SECOND) / 1e6;
        Self {
            left: (self.left + gained).min(f64::from(FREE_MAX)),
            at: now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use taskledger_auth::{Name, Scopes};

    fn user(name: &str) -> Caller {
        Caller::user(&Name::new(name).expect("a name"), Scopes::NONE)
    }

    #[test]
    fn whoever_goes_on_is_made_to_wait_and_nobody_else() {
        let clock = Arc::new(ManualClock::at(Timestamp(0)));
        let refused = Refused::new(clock.clone());
        let (ann, bob) = (user("ann"), user("bob"));
        for _ in 0..FREE_MAX - 1 {
            refused.count(&ann);
            assert_eq!(refused.pause(&ann), None);
        }
        refused.count(&ann);
        assert_eq!(refused.pause(&ann), Some(PAUSE));
        assert_eq!(refused.pause(&bob), None);
        // when: it heeds what it is told
        clock.advance_ms(1_000 / u64::from(FREE_PER_SECOND));
        assert_eq!(refused.pause(&ann), None);
        refused.count(&ann);
        assert_eq!(refused.pause(&ann), Some(PAUSE));
        clock.advance_ms(60_000);
        assert_eq!(refused.pause(&ann), None);
        assert!(!refused.any.load(Ordering::Relaxed), "it is forgotten");
    }

    #[test]
    fn callers_without_a_recent_refusal_are_forgotten() {
        let clock = Arc::new(ManualClock::at(Timestamp(0)));
        let refused = Refused::new(clock.clone());
        for n in 0..CALLERS_KEPT {
            refused.count(&user(&format!("u{n}")));
        }
        clock.advance_ms(60_000);
        refused.count(&user("ann"));
        assert_eq!(refused.callers.lock().expect("not poisoned").len(), 1);
    }
}
