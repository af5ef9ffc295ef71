//! What is known of tokens that were accepted, so that their callers can be checked again without the token:
//! a caller holds a stream open for hours, and the token is not kept.

use crate::Caller;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Tokens that are remembered. With more at a time, some of their callers have to come again.
const ACCEPTED_MAX: usize = 10_000;
/// Between two removals of expired ones, in milliseconds; each looks at all.
const SWEEP_EVERY_MS: i64 = 60_000;

/// What a deny list is asked about.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) issuer: Arc<str>,
    pub(super) id: Option<String>,
    pub(super) subject: String,
    pub(super) issued_ms: Option<i64>,
    pub(super) expires_ms: i64,
}

/// Names a token: its credential, and the user, since ids of two issuers may be the same.
type Key = (Arc<str>, Arc<str>);

#[derive(Debug, Default)]
struct Origins {
    by_caller: HashMap<Key, Arc<Origin>>,
    swept_ms: i64,
}

/// Accepted tokens, at most [`ACCEPTED_MAX`].
#[derive(Debug, Default)]
pub(super) struct AcceptedTokens(Mutex<Origins>);

impl AcceptedTokens {
    /// Remembers a token. Cost: O(1), but once a minute O([`ACCEPTED_MAX`]) while it is full.
    pub(super) fn remember(&self, caller: &Caller, origin: Origin, now_ms: i64) {
        let Some(key) = key(caller) else {
            return;
        };
        let mut origins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if origins.by_caller.contains_key(&key) {
            return;
        }
        if origins.by_caller.len() >= ACCEPTED_MAX && now_ms >= origins.swept_ms + SWEEP_EVERY_MS {
            origins.swept_ms = now_ms;
            let lasts = |_: &Key, origin: &mut Arc<Origin>| now_ms < origin.expires_ms;
            origins.by_caller.retain(lasts);
        }
        if origins.by_caller.len() >= ACCEPTED_MAX
            && let Some(any) = origins.by_caller.keys().next().cloned()
        {
            origins.by_caller.remove(&any);
        }
        origins.by_caller.insert(key, Arc::new(origin));
    }

    /// What is known of a caller's token.
    pub(super) fn origin(&self, caller: &Caller) -> Option<Arc<Origin>> {
        let key = key(caller)?;
        let origins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        origins.by_caller.get(&key).cloned()
    }
}

fn key(caller: &Caller) -> Option<Key> {
    Some((caller.credential()?.clone(), caller.actor().clone()))
}

#[cfg(test)]
mod tests {
    use super::{ACCEPTED_MAX, AcceptedTokens, Origin, SWEEP_EVERY_MS};
    use crate::{Caller, Name, Scopes};

    fn caller(n: usize) -> Caller {
        let name = Name::new("ann").expect("a name");
        Caller::user(&name, Scopes::NONE).by(format!("jwt:{n}").into(), None)
    }

    fn until(expires_ms: i64) -> Origin {
        Origin {
            issuer: "https://login.example".into(),
            id: None,
            subject: "ann".to_owned(),
            issued_ms: None,
            expires_ms,
        }
    }

    #[test]
    fn what_is_remembered_is_bounded_and_expired_tokens_go_first() {
        let accepted = AcceptedTokens::default();
        let count = || accepted.0.lock().expect("no panic").by_caller.len();
        for n in 0..ACCEPTED_MAX {
            let expires_ms = if n == 7 { i64::MAX } else { 2 * SWEEP_EVERY_MS };
            accepted.remember(&caller(n), until(expires_ms), 0);
        }
        accepted.remember(&caller(ACCEPTED_MAX), until(i64::MAX), 1);
        assert_eq!(count(), ACCEPTED_MAX);
        let later = 2 * SWEEP_EVERY_MS;
        accepted.remember(&caller(ACCEPTED_MAX + 1), until(i64::MAX), later);
        assert!((2..=3).contains(&count()), "{} are left", count());
        assert!(accepted.origin(&caller(8)).is_none());
        assert!(accepted.origin(&caller(ACCEPTED_MAX + 1)).is_some());
    }
}
