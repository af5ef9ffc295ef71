//! Idempotency keys: a repeated call with the same key and request gets the first reply; another request under the key
//! is refused.
//!
//! The stored record is typed and has a version, so that a call may be repeated through another door than the first
//! one.

mod fingerprint;
mod record;

pub(super) use fingerprint::fingerprint;

use super::api::Reply;
use super::authorize::UseCase;
use super::context::{Context, Idempotency};
use super::error::Error;
use record::{RECORD_VERSION, Record, Written, unreadable};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use taskledger_auth::{ANONYMOUS, Kind};
use taskledger_domain::flow::Done;
use taskledger_domain::violation::Violation;

/// Milliseconds for which a key is remembered: a day.
pub const KEY_LIFETIME_MS: u64 = 24 * 3600 * 1000;

/// Builds the reply to a call from what its command did; it is stored with the events.
pub type ReplyOf = Arc<dyn Fn(Done) -> Reply + Send + Sync>;

/// A use case that is asked for under an idempotency key.
#[derive(Debug, Clone)]
pub struct Key {
    /// What it claims: tenant and caller, use case or method, and the caller's key.
    pub claimed: Arc<str>,
    idempotency: Idempotency,
}

impl Key {
    /// The key of a call, if it carries one.
    #[must_use]
    pub(super) fn of(context: &Context, use_case: UseCase) -> Option<Self> {
        let idempotency = context.idempotency.clone()?;
        let caller = &*context.caller;
        let scope = match caller.kind() {
            Kind::Anonymous => Cow::from(ANONYMOUS),
            // Not the credential: a retry with the token that replaced another is the same call.
            Kind::User | Kind::Service => format!("{}/{}", caller.tenant(), caller.actor()).into(),
        };
        let method = idempotency.method().unwrap_or(use_case.as_str());
        Some(Self {
            claimed: claimed(&scope, method, &idempotency.key),
            idempotency,
        })
    }

    /// The reply to a repetition, from what the claim on its key holds.
    ///
    /// # Errors
    /// `Refused`: the key was used with another request.
    pub fn repeat(&self, value: &str) -> Result<Reply, Error> {
        let record = Record::read(value)?;
        if **self.idempotency.fingerprint() != *record.fingerprint {
            return Err(self.of_another_request());
        }
        if record.v != RECORD_VERSION {
            return Err(unreadable(&format!("it has version {}", record.v)));
        }
        serde_json::from_str(record.reply.get()).map_err(|error| unreadable(&error))
    }

    /// Whether another call has claimed the key, by what the claim holds: then this call, which the audit log has an
    /// entry of, was answered with the reply to that one. `false` if there is no such entry.
    pub(super) fn is_of_another_call(&self, value: &str) -> bool {
        let own = self.idempotency.noted_call;
        own.is_some() && Record::read(value).is_ok_and(|record| record.call != own)
    }

    fn of_another_request(&self) -> Error {
        let path = ["metadata".into(), "idempotency_key".into()];
        let expected = "the body that was sent with this key before, or a new key";
        let key = Value::from(&*self.idempotency.key);
        let reason = "Key was used with another body";
        Error::invalid(vec![Violation::new(&path, reason, expected, &key)])
    }
}

/// A command that carries an idempotency key.
#[derive(Clone)]
pub struct Repeatable {
    /// What the key claims, and for which use case.
    pub key: Key,
    /// Makes the reply that is stored with the key, once the command is decided.
    pub reply: ReplyOf,
}

impl fmt::Debug for Repeatable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repeatable")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl Repeatable {
    /// What the claim on the key holds once the command is accepted.
    #[must_use]
    pub fn claim_value(&self, done: Done) -> String {
        let record = Written {
            v: RECORD_VERSION,
            fingerprint: self.key.idempotency.fingerprint(),
            reply: &(self.reply)(done),
            call: self.key.idempotency.noted_call,
        };
        serde_json::to_string(&record).expect("a reply can always be written as JSON")
    }
}

/// What a key claims.
fn claimed(caller: &str, method: &str, key: &str) -> Arc<str> {
    // The length keeps apart what a caller or a key with the separator in it could mix up.
    let length = caller.len();
    Arc::from(format!("{length}:{caller}\u{1f}{method}\u{1f}{key}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::api::Created;
    use taskledger_domain::testing::id;
    use uuid::Uuid;

    fn key(request: &str) -> Key {
        let mut context = Context::anonymous(Arc::from("request"));
        context.idempotency = Some(Idempotency::of(Arc::from("k"), Arc::from(request)));
        Key::of(&context, UseCase::CreateTasks).expect("it has a key")
    }

    fn record(key: &Key) -> String {
        let task = id("a");
        let reply: ReplyOf = Arc::new(move |_| {
            Reply::Created(Created {
                task,
                task_ids: None,
            })
        });
        let key = key.clone();
        Repeatable { key, reply }.claim_value(Done::Ok)
    }

    #[test]
    fn a_record_is_answered_to_the_same_request_only() {
        let written = record(&key("f"));
        let again = key("f").repeat(&written);
        assert!(matches!(again, Ok(Reply::Created(created)) if created.task == id("a")));
        let other = key("g").repeat(&written);
        assert!(matches!(other, Err(Error::Refused(_))), "{other:?}");
    }

    #[test]
    fn a_call_with_an_entry_in_the_audit_log_knows_whose_record_it_finds() {
        let of_call = |n: Option<u128>| {
            let mut key = key("f");
            key.idempotency.noted_call = n.map(Uuid::from_u128);
            key
        };
        let (first, second, unnoted) = (of_call(Some(1)), of_call(Some(2)), of_call(None));
        for (asked, written, expected) in [
            (&first, &first, false),
            (&second, &first, true),
            (&second, &unnoted, true),
            (&unnoted, &first, false),
        ] {
            assert_eq!(asked.is_of_another_call(&record(written)), expected);
            assert!(asked.repeat(&record(written)).is_ok());
        }
    }

    #[test]
    fn a_record_of_a_later_form_is_not_guessed_at() {
        let later = r#"{"v":2,"fingerprint":"f","reply":"Deleted"}"#;
        let found = key("f").repeat(later);
        assert!(matches!(found, Err(Error::Failed(_))), "{found:?}");
    }
}
