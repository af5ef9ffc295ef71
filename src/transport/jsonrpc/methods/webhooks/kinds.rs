//! Kinds of values that only webhooks have.

use super::super::super::reader::{Choice, Fault, Kind, Refusal, TASK_ID, choice};
use crate::application::api::webhooks::headers::{
    self, HEADERS_MAX, NAME_EXPECTED, VALUE_BYTES_MAX, VALUE_EXPECTED,
};
use crate::application::api::webhooks::{
    ENTRIES_MAX, EndpointId, EventName, Ordering, SECONDS_MAX, Secret, Signature, secret,
};
use crate::subscription::notice::Kind as Notice;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use taskledger_domain::Violation;
use taskledger_domain::violation::PathSegment;

/// Characters of a secret: 64 bytes in base64 and a prefix, with room.
const SECRET_CHARS_MAX: usize = 128;
/// Characters of a description.
pub(super) const DESCRIPTION_CHARS_MAX: usize = 255;
/// Stands for what must not be repeated.
pub(super) const HIDDEN: &str = "***";

/// The id of an endpoint.
#[derive(Debug, Clone, Copy)]
pub(super) struct Id;

impl Kind for Id {
    type Out = EndpointId;

    fn schema(&self) -> Value {
        TASK_ID.schema()
    }

    fn parse(&self, value: &Value) -> Result<EndpointId, Refusal> {
        TASK_ID.parse(value).map(|id| EndpointId(id.0))
    }
}

pub(super) const ORDERING: Choice<Ordering> = choice(
    "not an ordering",
    &[
        ("none", Ordering::None),
        ("task", Ordering::Task),
        ("endpoint", Ordering::Endpoint),
    ],
);

pub(super) const SIGNATURE: Choice<Signature> = choice(
    "not a signature",
    &[("v1", Signature::Shared), ("v1a", Signature::Pair)],
);

/// Names of events, not empty.
#[derive(Debug, Clone, Copy)]
pub(super) struct Events;

fn names() -> Vec<&'static str> {
    let of_tasks = Notice::ALL.into_iter().map(EventName::Task);
    let all = of_tasks.chain(EventName::ABOUT_ENDPOINTS);
    all.map(EventName::as_str).collect()
}

impl Kind for Events {
    type Out = Arc<[EventName]>;

    fn schema(&self) -> Value {
        let names = names();
        json!({"type": "array", "minItems": 1, "maxItems": names.len(),
            "items": {"type": "string", "enum": names}})
    }

    fn parse(&self, value: &Value) -> Result<Arc<[EventName]>, Refusal> {
        let names = names();
        let expected = || format!("1 to {} of {}", names.len(), names.join(", "));
        let list = list(value, names.len(), expected)?;
        each(list, "events", |item| {
            let event = item.as_str().and_then(EventName::parse);
            event.ok_or_else(|| ("not an event", format!("one of {}", names.join(", "))))
        })
    }
}

/// Seconds before each attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule;

impl Kind for Schedule {
    type Out = Arc<[u32]>;

    fn schema(&self) -> Value {
        json!({"type": "array", "minItems": 1, "maxItems": ENTRIES_MAX,
            "items": {"type": "integer", "minimum": 0, "maximum": SECONDS_MAX}})
    }

    fn parse(&self, value: &Value) -> Result<Arc<[u32]>, Refusal> {
        let expected = || format!("1 to {ENTRIES_MAX} numbers of seconds");
        let list = list(value, ENTRIES_MAX, expected)?;
        each(list, "schedule", |item| {
            let whole = item.as_u64().or_else(|| {
                item.as_f64()
                    .filter(|n| n.fract() == 0.0 && *n >= 0.0)
                    .map(|n| n as u64)
            });
            let seconds = whole.filter(|seconds| *seconds <= u64::from(SECONDS_MAX));
            let seconds = seconds.and_then(|seconds| u32::try_from(seconds).ok());
            seconds.ok_or_else(|| {
                let expected = format!("an integer from 0 to {SECONDS_MAX}");
                ("not a number of seconds", expected)
            })
        })
    }
}

fn list(
    value: &Value,
    max: usize,
    expected: impl FnOnce() -> String,
) -> Result<&Vec<Value>, Refusal> {
    let reason = match value.as_array() {
        Some(list) if (1..=max).contains(&list.len()) => return Ok(list),
        Some(_) => "empty or too long",
        None => "not a list",
    };
    Err(Fault::new(reason, expected()).into())
}

fn each<T>(
    list: &[Value],
    name: &str,
    parse: impl Fn(&Value) -> Result<T, (&'static str, String)>,
) -> Result<Arc<[T]>, Refusal> {
    let (mut parsed, mut violations) = (Vec::new(), Vec::new());
    for (index, item) in list.iter().enumerate() {
        match parse(item) {
            Ok(item) => parsed.push(item),
            Err((reason, expected)) => violations.push(Violation::new(
                &[name.into(), index.into()],
                reason,
                expected,
                item,
            )),
        }
    }
    if violations.is_empty() {
        Ok(Arc::from(parsed))
    } else {
        Err(Refusal::Inside(violations))
    }
}

/// A secret of the caller's own.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnSecret;

impl Kind for OwnSecret {
    type Out = Secret;

    fn schema(&self) -> Value {
        json!({"type": "string", "minLength": 1, "maxLength": SECRET_CHARS_MAX,
            "description": secret::EXPECTED})
    }

    fn parse(&self, value: &Value) -> Result<Secret, Refusal> {
        own_secret(value, &["secret".into()]).map_err(Refusal::Inside)
    }
}

/// A secret of the caller's own at `path`; what is wrong never shows it.
pub(super) fn own_secret(value: &Value, path: &[PathSegment]) -> Result<Secret, Vec<Violation>> {
    let fault =
        |reason: &str, actual: &Value| vec![Violation::new(path, reason, secret::EXPECTED, actual)];
    let Some(text) = value.as_str() else {
        return Err(fault("not a string", value));
    };
    // What its schema takes is not shown at all, the rest as something that is hidden.
    let shown = match text.chars().count() {
        1..=SECRET_CHARS_MAX => Value::Null,
        _ => HIDDEN.into(),
    };
    secret::own(text).map_err(|reason| fault(reason, &shown))
}

/// Headers to send along.
#[derive(Debug, Clone, Copy)]
pub(super) struct Headers;

impl Kind for Headers {
    type Out = Vec<(Arc<str>, Secret)>;

    fn schema(&self) -> Value {
        headers_schema()
    }

    fn parse(&self, value: &Value) -> Result<Self::Out, Refusal> {
        headers_at(value, &["headers".into()]).map_err(Refusal::Inside)
    }
}

const HEADERS_EXPECTED: &str = "an object of at most 20 header names with their values";

/// The schema of headers.
pub(super) fn headers_schema() -> Value {
    json!({"type": "object", "maxProperties": HEADERS_MAX, "additionalProperties":
        {"type": "string", "minLength": 1, "maxLength": VALUE_BYTES_MAX}})
}

/// Headers at `path`, by name in lower case; what is wrong never shows a value.
pub(super) fn headers_at(
    value: &Value,
    path: &[PathSegment],
) -> Result<Vec<(Arc<str>, Secret)>, Vec<Violation>> {
    let Some(map) = value.as_object() else {
        let fault = Violation::new(path, "not an object", HEADERS_EXPECTED, &HIDDEN.into());
        return Err(vec![fault]);
    };
    if map.len() > HEADERS_MAX {
        let actual = map.len().into();
        return Err(vec![Violation::new(
            path,
            "too many",
            HEADERS_EXPECTED,
            &actual,
        )]);
    }
    let mut found: BTreeMap<String, Secret> = BTreeMap::new();
    let mut violations = Vec::new();
    for (name, value) in map {
        let at: Vec<PathSegment> = path.iter().cloned().chain([name.as_str().into()]).collect();
        let mut fault = |reason: &str, expected: &str| {
            violations.push(Violation::new(&at, reason, expected, &HIDDEN.into()));
        };
        let known = headers::name(name);
        if let Err(reason) = &known {
            fault(reason, NAME_EXPECTED);
        }
        let text = value.as_str();
        let checked = text.map_or(Err("not a string"), headers::value);
        if let Err(reason) = checked {
            fault(reason, VALUE_EXPECTED);
        }
        if let (Ok(known), Some(text)) = (known, text)
            && found.insert(known, Secret(Arc::from(text))).is_some()
        {
            fault("given twice", "each header once, whatever its case");
        }
    }
    if violations.is_empty() {
        Ok(found
            .into_iter()
            .map(|(name, value)| (Arc::from(name), value))
            .collect())
    } else {
        Err(violations)
    }
}
