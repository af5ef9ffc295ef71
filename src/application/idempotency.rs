//! Repetitions of a call: the same key and body get the first answer, another body is refused.

use super::caller::Caller;
use super::error::Error;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;
use std::sync::Arc;
use taskledger_domain::flow::Done;
use taskledger_domain::violation::Violation;

/// Milliseconds for which a key is remembered: a day.
pub const KEY_LIFETIME_MS: u64 = 24 * 3600 * 1000;

/// Builds the answer of a call from what its command did; the answer is stored with the events.
pub type AnswerOf = Arc<dyn Fn(Done) -> Box<RawValue> + Send + Sync>;

/// A call that carries an idempotency key.
#[derive(Clone)]
pub struct Repeatable {
    /// Principal, method and key, joined by a character that none of them can hold.
    pub key: Arc<str>,
    /// Of method and body.
    pub fingerprint: Arc<str>,
    /// Its answer.
    pub answer: AnswerOf,
}

impl fmt::Debug for Repeatable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repeatable")
            .field("fingerprint", &self.fingerprint)
            .finish_non_exhaustive()
    }
}

#[derive(Serialize, Deserialize)]
struct Stored {
    fingerprint: String,
    answer: Box<RawValue>,
}

impl Repeatable {
    /// The call, if it carries a key.
    #[must_use]
    pub fn of(caller: &Caller, method: &str, answer: AnswerOf) -> Option<Self> {
        let idempotency = caller.idempotency.as_ref()?;
        let key = Arc::from(format!(
            "{}\u{1f}{method}\u{1f}{}",
            caller.principal, idempotency.key
        ));
        Some(Self {
            key,
            fingerprint: idempotency.fingerprint.clone(),
            answer,
        })
    }

    /// What the claim on the key holds once the command is accepted.
    #[must_use]
    pub fn claim_value(&self, done: Done) -> String {
        let stored = Stored {
            fingerprint: self.fingerprint.to_string(),
            answer: (self.answer)(done),
        };
        serde_json::to_string(&stored).expect("text and JSON can be written as JSON")
    }

    /// The answer to a repetition, from what the claim holds.
    ///
    /// # Errors
    /// `Refused`: the key was used with another body.
    pub fn repeat(&self, claim_value: &str) -> Result<Box<RawValue>, Error> {
        let stored: Stored = serde_json::from_str(claim_value).map_err(|e| {
            super::error::Failure::Broken(format!(
                "claim of an idempotency key cannot be read: {e}"
            ))
        })?;
        if *stored.fingerprint == *self.fingerprint {
            return Ok(stored.answer);
        }
        let key = self.key.rsplit('\u{1f}').next().unwrap_or_default();
        let path = ["metadata".into(), "idempotency_key".into()];
        let expected = "the body that was sent with this key before, or a new key";
        Err(Error::invalid(vec![Violation::new(
            &path,
            "Key was used with another body",
            expected,
            &Value::from(key),
        )]))
    }
}
