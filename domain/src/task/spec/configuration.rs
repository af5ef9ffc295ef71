//! The members of a task that say what it executes: `inputs`, `schemas`, `params`.

use super::reader::Reader;
use super::{Params, Schemas, timeout_ms};
use crate::contract::Outputs;
use crate::limits;
use crate::suggestion::known_member;
use crate::task::{RetryPolicy, wiring};
use crate::violation::PathSegment;
use crate::{InvalidTime, Payload, Timestamp};
use serde_json::{Map, Value};

/// The members of `schemas` that callers write.
const SCHEMAS_MEMBERS: [&str; 8] = [
    "method",
    "type",
    "input_schema",
    "wiring",
    "templates",
    "outputs",
    "types",
    "validation",
];

/// The member of `schemas` that says which phase of which document the task carries out.
const OF_DOCUMENT: &str = "workflow";

impl<'a> Reader<'a> {
    /// An object member within its size limit, as text.
    fn object(&mut self, field: &str) -> Option<(&'a Map<String, Value>, Payload)> {
        let map: &'a Map<String, Value> = self.map;
        let value = map.get(field)?;
        let Some(object) = value.as_object() else {
            self.fault(field, "Wrong type", "a JSON object", value);
            return None;
        };
        match Payload::checked(object) {
            Ok(payload) => Some((object, payload)),
            Err(unfit) => {
                let found = Value::from(unfit.found());
                self.fault(field, unfit.reason(), unfit.expected(), &found);
                None
            }
        }
    }

    pub(super) fn inputs(&mut self) -> Option<Payload> {
        self.object("inputs").map(|(_, payload)| payload)
    }

    pub(super) fn schemas(&mut self) -> Option<Option<Schemas>> {
        if self.map.get("schemas")?.is_null() {
            return Some(None);
        }
        let (object, raw) = self.object("schemas")?;
        let path = |field: &str| ["schemas".into(), field.into()];
        for (name, value) in object {
            let name = name.as_str();
            if !SCHEMAS_MEMBERS.contains(&name) && name != OF_DOCUMENT {
                let at = self.at(&path(name));
                let expected = known_member(name, &SCHEMAS_MEMBERS);
                self.report(&at, "Unknown field", expected, value);
            }
        }
        if let Some(kind) = object.get("type")
            && !matches!(kind.as_str(), Some("local" | "remote" | "external"))
        {
            let at = self.at(&path("type"));
            self.report(
                &at,
                "Invalid value",
                "one of: local, remote, external",
                kind,
            );
        }
        if let Some(schema) = object.get("input_schema")
            && !schema.is_object()
        {
            let at = self.at(&path("input_schema"));
            self.report(&at, "Wrong type", "a JSON Schema (draft-07) object", schema);
        }
        if let Some(templates) = object.get("templates")
            && !templates.is_boolean()
        {
            let at = self.at(&path("templates"));
            self.report(&at, "Wrong type", "true or false", templates);
        }
        for fault in wiring::form_faults(object, self.schema_steps) {
            let names = fault.path.into_iter().map(PathSegment::from);
            let below = ["schemas".into(), "wiring".into()].into_iter().chain(names);
            let at = self.at(&below.collect::<Vec<_>>());
            self.report(&at, fault.reason, fault.expected, &fault.found);
        }
        for fault in Outputs::parse_within(object, self.schema_steps)
            .err()
            .unwrap_or_default()
        {
            let names = fault.path.iter().map(|name| PathSegment::from(&**name));
            let below = std::iter::once("schemas".into()).chain(names);
            let at = self.at(&below.collect::<Vec<_>>());
            self.report(&at, fault.reason, fault.expected, &fault.found);
        }
        let method = object.get("method");
        let text = method
            .and_then(Value::as_str)
            .filter(|m| !m.is_empty() && m.chars().count() <= limits::KEY_CHARS_MAX);
        if let Some(text) = text {
            return Some(Some(Schemas {
                raw,
                method: text.to_owned(),
                remote: object.get("type").and_then(Value::as_str) == Some("remote"),
            }));
        }
        let at = self.at(&path("method"));
        let reason = if method.is_none() {
            "Required field is missing"
        } else {
            "Invalid value"
        };
        let expected = "the name of an executor; leave `schemas` out for a group";
        self.report(&at, reason, expected, method.unwrap_or(&Value::Null));
        None
    }

    pub(super) fn params(&mut self) -> Option<Option<Params>> {
        if self.map.get("params")?.is_null() {
            return Some(None);
        }
        let (object, raw) = self.object("params")?;
        let path = self.at(&["params".into()]);
        let mut r = Reader {
            map: object,
            path: &path,
            violations: self.violations,
            schema_steps: self.schema_steps,
        };
        let (retry, timeout_ms, deadline) = (r.retry(), r.timeout_ms(), r.deadline());
        let delay_max = (limits::START_DELAY_MS_MAX / 1000) as f64;
        let delay = r.number_in("delay_seconds", 0.0, delay_max, false);
        let delay_ms = delay.map(|seconds| (seconds * 1000.0) as u64);
        let start_within_ms = r.seconds_as_ms("schedule_to_start_seconds", 0.001);
        let grace_max = (limits::CANCEL_GRACE_MS_MAX / 1000) as f64;
        let cancel_grace = r.number_in("cancel_grace_seconds", 0.0, grace_max, false);
        Some(Some(Params {
            raw,
            delay_ms: delay_ms.filter(|ms| *ms > 0),
            retry,
            timeout_ms,
            deadline,
            start_within_ms,
            cancel_grace_ms: cancel_grace.map(|seconds| (seconds * 1000.0) as u64),
        }))
    }

    fn retry(&mut self) -> Option<RetryPolicy> {
        let (count, policy) = (self.map.get("retry_count"), self.map.get("retry"));
        if let (Some(_), Some(policy)) = (count, policy) {
            self.fault(
                "retry",
                "Conflicts with `retry_count`",
                "one of `retry` and `retry_count`",
                policy,
            );
            return None;
        }
        if count.is_some() {
            // As for `priority`, 3.0 is an integer.
            let parsed = self.number_in("retry_count", 0.0, f64::from(limits::RETRIES_MAX), true);
            let extra = parsed.map(|n| n as u32);
            return extra.filter(|n| *n > 0).map(RetryPolicy::extra_attempts);
        }
        let policy = policy?;
        let Some(object) = policy.as_object() else {
            self.fault(
                "retry",
                "Wrong type",
                "an object {max_attempts, initial_delay_ms, multiplier, max_delay_ms, jitter, max_elapsed_seconds}",
                policy,
            );
            return None;
        };
        let path = self.at(&["retry".into()]);
        let mut r = Reader {
            map: object,
            path: &path,
            violations: self.violations,
            schema_steps: self.schema_steps,
        };
        r.refuse_unknown(
            &[
                "max_attempts",
                "initial_delay_ms",
                "multiplier",
                "max_delay_ms",
                "jitter",
                "max_elapsed_seconds",
                "non_retryable_exit_codes",
                "non_retryable_statuses",
            ],
            &[],
        );
        let attempts_max = u64::from(limits::RETRIES_MAX) + 1;
        let max_attempts = r.number_in("max_attempts", 1.0, attempts_max as f64, true);
        if !object.contains_key("max_attempts") {
            r.fault(
                "max_attempts",
                "Required field is missing",
                format!("an integer in 1-{attempts_max}"),
                &Value::Null,
            );
        }
        let delay_max = limits::DELAY_MS_MAX as f64;
        let initial = r.number_in("initial_delay_ms", 0.0, delay_max, false);
        let multiplier = r.number_in("multiplier", 1.0, 100.0, false);
        let max_delay = r.number_in("max_delay_ms", 0.0, delay_max, false);
        let jitter = r.number_in("jitter", 0.0, 1.0, false);
        let max_elapsed_ms = r.seconds_as_ms("max_elapsed_seconds", 0.001);
        r.codes("non_retryable_exit_codes", 1, limits::EXIT_CODE_MAX);
        r.codes(
            "non_retryable_statuses",
            limits::STATUS_MIN,
            limits::STATUS_MAX,
        );
        Some(RetryPolicy {
            max_attempts: max_attempts? as u32,
            initial_delay_ms: initial.map_or(RetryPolicy::INITIAL_DELAY_MS_DEFAULT, |n| n as u64),
            multiplier: multiplier.unwrap_or(RetryPolicy::MULTIPLIER_DEFAULT),
            max_delay_ms: max_delay.map_or(RetryPolicy::MAX_DELAY_MS_DEFAULT, |n| n as u64),
            jitter: jitter.unwrap_or(RetryPolicy::JITTER_DEFAULT),
            max_elapsed_ms,
        })
    }

    /// Executors read the list themselves; here only its form is checked.
    fn codes(&mut self, field: &str, min: u16, max: u16) {
        let Some(value) = self.map.get(field) else {
            return;
        };
        let code = |item: &Value| {
            item.as_u64()
                .is_some_and(|n| (u64::from(min)..=u64::from(max)).contains(&n))
        };
        let fits = value
            .as_array()
            .is_some_and(|items| items.len() <= limits::RETRY_CODES_MAX && items.iter().all(code));
        if !fits {
            let most = limits::RETRY_CODES_MAX;
            let expected = format!("an array of at most {most} integers in {min}-{max}");
            self.fault(field, "Invalid value", expected, value);
        }
    }

    fn number_in(&mut self, field: &str, min: f64, max: f64, integer: bool) -> Option<f64> {
        let value = self.map.get(field)?;
        let number = value
            .as_f64()
            .filter(|n| (min..=max).contains(n) && (!integer || n.fract() == 0.0));
        if number.is_none() {
            let kind = if integer { "an integer" } else { "a number" };
            self.fault(
                field,
                "Invalid value",
                format!("{kind} in {min}-{max}"),
                value,
            );
        }
        number
    }

    fn timeout_ms(&mut self) -> Option<u64> {
        self.seconds_as_ms("timeout_seconds", 0.001)?;
        timeout_ms(self.map)
    }

    fn seconds_as_ms(&mut self, field: &str, min: f64) -> Option<u64> {
        let seconds_max = (limits::DELAY_MS_MAX / 1000) as f64;
        let seconds = self.number_in(field, min, seconds_max, false)?;
        Some((seconds * 1000.0) as u64)
    }

    /// `Some(None)`: null, which removes it.
    pub(super) fn start_at(&mut self) -> Option<Option<Timestamp>> {
        if self.map.get("start_at")?.is_null() {
            return Some(None);
        }
        self.time("start_at").map(Some)
    }

    fn deadline(&mut self) -> Option<Timestamp> {
        self.time("deadline")
    }

    /// A time that is not null.
    fn time(&mut self, field: &str) -> Option<Timestamp> {
        let value = self.map.get(field).filter(|v| !v.is_null())?;
        let parsed = value.as_str().map(Timestamp::parse);
        match parsed.unwrap_or(Err(InvalidTime::Form)) {
            Ok(time) => Some(time),
            Err(invalid) => {
                self.fault(field, invalid.reason(), invalid.expected(), value);
                None
            }
        }
    }
}
