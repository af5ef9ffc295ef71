//! `retry` of a phase: {max_attempts, backoff, initial_delay_ms, max_delay_ms, retryable_errors, fallback_agent}.

use serde_json::Value;
use taskledger_domain::limits::{DELAY_MS_MAX, RETRIES_MAX};

use crate::members::{Members, note};
use crate::node::short;
use crate::workflow::{Backoff, Retry};

const KNOWN: [&str; 6] = [
    "max_attempts",
    "backoff",
    "initial_delay_ms",
    "max_delay_ms",
    "retryable_errors",
    "fallback_agent",
];
/// What is not acted on, though its meaning is known.
const WITHOUT_EFFECT: [&str; 2] = ["retryable_errors", "fallback_agent"];
const BACKOFFS: [&str; 3] = ["constant", "linear", "exponential"];
/// RFC-0012: `max_attempts` of a task.
const MAX_ATTEMPTS_DEFAULT: u32 = 3;

/// Reads it, and notes what has no effect.
pub(crate) fn read(phase: &Members<'_>, not_acted_on: &mut Vec<String>) -> Option<Retry> {
    let retry = phase.map(
        "retry",
        "a map, such as {max_attempts: 3, backoff: exponential}",
    )?;
    for entry in retry.kept(&KNOWN, &[]) {
        note(not_acted_on, || retry.path.key(&entry.key));
    }
    for key in WITHOUT_EFFECT {
        if retry.get(key).is_some() {
            note(not_acted_on, || retry.path.key(key));
        }
    }
    let attempts_max = u64::from(RETRIES_MAX) + 1;
    let max_attempts = whole(&retry, "max_attempts", 1, attempts_max);
    let max_attempts = max_attempts.and_then(|n| u32::try_from(n).ok());
    let retry = Retry {
        max_attempts: max_attempts.unwrap_or(MAX_ATTEMPTS_DEFAULT),
        backoff: backoff(&retry),
        initial_delay_ms: whole(&retry, "initial_delay_ms", 0, DELAY_MS_MAX),
        max_delay_ms: whole(&retry, "max_delay_ms", 0, DELAY_MS_MAX),
        retryable_errors: owned(&retry, "retryable_errors"),
        fallback_agent: retry.text("fallback_agent").map(str::to_owned),
    };
    if !retry.is_exact() {
        note(not_acted_on, || phase.path.key("retry").key("backoff"));
    }
    Some(retry)
}

fn owned(retry: &Members<'_>, key: &str) -> Vec<String> {
    let texts = retry.texts(key, "a list of strings").into_iter();
    texts.map(|(_, text, _)| text.to_owned()).collect()
}

fn backoff(retry: &Members<'_>) -> Backoff {
    match retry.text("backoff") {
        Some("constant") => Backoff::Constant,
        Some("linear") => Backoff::Linear,
        Some("exponential") | None => Backoff::Exponential,
        Some(other) => {
            let node = &retry.get("backoff").expect("it has a text").value;
            let meant = retry.faults.did_you_mean(other, BACKOFFS.into_iter());
            retry.wrong(
                "backoff",
                node,
                "`constant`, `linear` or `exponential`",
                meant,
            );
            Backoff::Exponential
        }
    }
}

/// A whole number; 3.0 is one.
fn whole(retry: &Members<'_>, key: &str, min: u64, max: u64) -> Option<u64> {
    let node = &retry.get(key)?.value;
    let number = node.scalar().and_then(Value::as_f64);
    let fits = |n: &f64| n.fract() == 0.0 && (min as f64..=max as f64).contains(n);
    let Some(number) = number.filter(fits) else {
        let expected = short(&format!("a whole number from {min} to {max}"));
        retry.wrong(key, node, &expected, None);
        return None;
    };
    Some(number as u64)
}
