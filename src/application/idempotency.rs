//! Repetitions of a call: the same key and body get the first answer, another body is refused.

use super::caller::{Caller, Idempotency};
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
    /// See [`claimed_key`].
    pub key: Arc<str>,
    /// The caller's key, and the fingerprint of method and body.
    pub idempotency: Idempotency,
    /// Its answer.
    pub answer: AnswerOf,
}

impl fmt::Debug for Repeatable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repeatable")
            .field("idempotency", &self.idempotency)
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
        Some(Self {
            key: claimed_key(caller, method)?,
            idempotency: idempotency.clone(),
            answer,
        })
    }

    /// What the claim on the key holds once the command is accepted.
    #[must_use]
    pub fn claim_value(&self, done: Done) -> String {
        let stored = Stored {
            fingerprint: self.idempotency.fingerprint.to_string(),
            answer: (self.answer)(done),
        };
        serde_json::to_string(&stored).expect("text and JSON can be written as JSON")
    }

    /// The answer to a repetition, from what the claim holds.
    ///
    /// # Errors
    /// `Refused`: the key was used with another body.
    pub fn repeat(&self, claim_value: &str) -> Result<Box<RawValue>, Error> {
        repeat(&self.idempotency, claim_value)
    }
}

/// What a call with an idempotency key claims: principal, method and key.
#[must_use]
pub fn claimed_key(caller: &Caller, method: &str) -> Option<Arc<str>> {
    let idempotency = caller.idempotency.as_ref()?;
    // The length keeps apart what a principal or a key with the separator in it could mix up.
    let (principal, key) = (&caller.principal, &idempotency.key);
    Some(Arc::from(format!(
        "{}:{principal}\u{1f}{method}\u{1f}{key}",
        principal.len()
    )))
}

/// The answer to a repetition, from what the claim on its key holds.
///
/// # Errors
/// `Refused`: the key was used with another body.
pub fn repeat(idempotency: &Idempotency, claim_value: &str) -> Result<Box<RawValue>, Error> {
    let stored: Stored = serde_json::from_str(claim_value).map_err(|e| {
        super::error::Failure::Broken(format!("claim of an idempotency key cannot be read: {e}"))
    })?;
    if *stored.fingerprint == *idempotency.fingerprint {
        return Ok(stored.answer);
    }
    let path = ["metadata".into(), "idempotency_key".into()];
    let expected = "the body that was sent with this key before, or a new key";
    let key = Value::from(&*idempotency.key);
    Err(Error::invalid(vec![Violation::new(
        &path,
        "Key was used with another body",
        expected,
        &key,
    )]))
}
