//! Reads when people are reminded, who gets the reminders, and when the wait ends.

use super::{RETRY, Reader};
use crate::limits;
use crate::question::Escalation;
use crate::violation::PathSegment;
use serde_json::{Map, Value};

const TIMEOUT: &str = "timeout_seconds";
const ATTEMPTS: &str = "max_attempts";
const INTERVAL: &str = "interval_seconds";
const STRATEGY: &str = "strategy";
const LADDER: &str = "escalation_ladder";
const MEMBERS: [&str; 5] = [
    ATTEMPTS,
    INTERVAL,
    STRATEGY,
    LADDER,
    "final_fallback_policy",
];
const STEP_MEMBERS: [&str; 3] = ["attempt", "channel_hint", "notify_to"];

/// When something happens to a wait.
#[derive(Default)]
pub(super) struct Times {
    pub(super) expires_after_ms: Option<u64>,
    pub(super) remind_every_ms: Option<u64>,
    pub(super) reminders: u32,
    pub(super) ladder: Vec<Escalation>,
}

impl Times {
    /// `timeout_seconds` ends the wait; without it, the last interval does. `None`: neither is given.
    fn new(timeout_ms: Option<u64>, every_ms: Option<u64>, attempts: Option<u32>) -> Option<Self> {
        let last = attempts.unwrap_or(1);
        let (end_ms, every_ms, reminders) = match (timeout_ms, every_ms) {
            (None, None) => return None,
            (Some(end_ms), None) => (end_ms, end_ms / u64::from(last), last - 1),
            (None, Some(every_ms)) => (every_ms.saturating_mul(last.into()), every_ms, last - 1),
            (Some(end_ms), Some(every_ms)) => {
                // A reminder at the end comes too late.
                let fit = u32::try_from((end_ms - 1) / every_ms).unwrap_or(u32::MAX);
                let most = attempts.unwrap_or(limits::REMINDERS_MAX) - 1;
                (end_ms, every_ms, fit.min(most))
            }
        };
        Some(Self {
            expires_after_ms: Some(end_ms),
            remind_every_ms: (reminders > 0).then_some(every_ms),
            reminders,
            ladder: Vec::new(),
        })
    }
}

impl Reader<'_> {
    /// `None` when something is wrong.
    pub(super) fn times(&mut self) -> Option<Times> {
        let members = self.members;
        let timeout = members.get(TIMEOUT);
        let timeout_ms = self.seconds(&[TIMEOUT.into()], timeout);
        let policy = match members.get(RETRY) {
            None => {
                return Some(Times {
                    expires_after_ms: timeout_ms,
                    ..Times::default()
                });
            }
            Some(Value::Object(policy)) => policy,
            Some(other) => {
                self.fault(RETRY, "has the wrong type", "an object", other);
                return None;
            }
        };
        self.refuse_unknown(&[RETRY.into()], policy, &MEMBERS);
        if let Some(strategy) = policy.get(STRATEGY).filter(|s| *s != "fixed") {
            let path = [RETRY.into(), STRATEGY.into()];
            self.fault_at(&path, "is not valid", "`fixed`", strategy);
        }
        let attempts = self.attempts(policy.get(ATTEMPTS));
        let (path, every) = ([RETRY.into(), INTERVAL.into()], policy.get(INTERVAL));
        let every_ms = self.seconds(&path, every);
        if every.is_none() && timeout.is_none() {
            let expected = "a number of seconds, here or in `timeout_seconds`";
            self.fault_at(&path, "is required", expected, &Value::Null);
        }
        let is_sound =
            timeout.is_some() == timeout_ms.is_some() && every.is_some() == every_ms.is_some();
        let times = attempts.filter(|_| is_sound);
        let times = times.and_then(|attempts| Times::new(timeout_ms, every_ms, attempts));
        let reminders = times.as_ref().map(|times| times.reminders);
        let reminders = reminders.unwrap_or(limits::REMINDERS_MAX - 1);
        let ladder = policy.get(LADDER);
        let ladder = ladder.map_or_else(Vec::new, |steps| self.ladder(steps, reminders));
        Some(Times { ladder, ..times? })
    }

    /// Milliseconds of a member that says seconds.
    fn seconds(&mut self, path: &[PathSegment], value: Option<&Value>) -> Option<u64> {
        let value = value?;
        let max = limits::DELAY_MS_MAX;
        let ms = value.as_f64().map(|seconds| seconds * 1000.0);
        match ms.filter(|ms| (1000.0..=max as f64).contains(ms)) {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "in range"
            )]
            Some(ms) => Some(ms as u64),
            None => {
                let expected = format!("a number from 1 to {}", max / 1000);
                self.fault_at(path, "is not valid", &expected, value);
                None
            }
        }
    }

    /// How often the question is asked; inside, `None` when it is not said. `None`: it is said wrong.
    fn attempts(&mut self, value: Option<&Value>) -> Option<Option<u32>> {
        let Some(value) = value else {
            return Some(None);
        };
        let attempts = integer(value, limits::REMINDERS_MAX);
        if attempts.is_none() {
            let expected = format!("an integer from 1 to {}", limits::REMINDERS_MAX);
            let path = [RETRY.into(), ATTEMPTS.into()];
            self.fault_at(&path, "is not valid", &expected, value);
        }
        attempts.map(Some)
    }

    /// The steps that are right.
    fn ladder(&mut self, steps: &Value, reminders: u32) -> Vec<Escalation> {
        let max = limits::REMINDERS_MAX as usize;
        let list = steps.as_array().filter(|list| list.len() <= max);
        let Some(list) = list else {
            let expected = format!("an array of at most {max} steps");
            let path = [RETRY.into(), LADDER.into()];
            self.fault_at(&path, "is not valid", &expected, steps);
            return Vec::new();
        };
        let mut ladder: Vec<Escalation> = Vec::with_capacity(list.len());
        for (at, step) in list.iter().enumerate() {
            let path = [RETRY.into(), LADDER.into(), at.into()];
            let Some(step) = step.as_object() else {
                let expected = "an object: attempt, channel_hint?, notify_to?";
                self.fault_at(&path, "has the wrong type", expected, step);
                continue;
            };
            let Some(read) = self.step(&path, step, reminders) else {
                continue;
            };
            if ladder.iter().any(|other| other.attempt == read.attempt) {
                let path = [&path[..], &["attempt".into()]].concat();
                let expected = "a different number in each step";
                self.fault_at(&path, "is there twice", expected, &read.attempt.into());
            }
            ladder.push(read);
        }
        ladder
    }

    fn step(
        &mut self,
        path: &[PathSegment],
        step: &Map<String, Value>,
        reminders: u32,
    ) -> Option<Escalation> {
        self.refuse_unknown(path, step, &STEP_MEMBERS);
        let at = |member: &str| [path, &[member.into()]].concat();
        let hint = |reader: &mut Self, member| {
            reader.text_at(&at(member), step.get(member), limits::HINT_CHARS_MAX)
        };
        let (channel_hint, notify_to) = (hint(self, "channel_hint"), hint(self, "notify_to"));
        let given = step.get("attempt");
        let attempt = given.and_then(|attempt| integer(attempt, reminders));
        if attempt.is_none() {
            let expected = match reminders {
                0 => "no step, as there is no reminder before the wait ends".to_owned(),
                _ => format!("the number of a reminder, from 1 to {reminders}"),
            };
            let reason = given.map_or("is required", |_| "is not reached");
            self.fault_at(
                &at("attempt"),
                reason,
                &expected,
                given.unwrap_or(&Value::Null),
            );
        }
        Some(Escalation {
            attempt: attempt?,
            channel_hint,
            notify_to,
        })
    }
}

/// An integer from 1.
fn integer(value: &Value, max: u32) -> Option<u32> {
    let found = u32::try_from(value.as_u64()?).ok();
    found.filter(|found| (1..=max).contains(found))
}
