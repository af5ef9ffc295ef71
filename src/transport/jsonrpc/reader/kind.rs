//! Kinds of values: each parses a value and describes, as JSON Schema (draft-07), what it parses.

use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::ops::RangeInclusive;
use taskledger_domain::task::{Priority, Status};
use taskledger_domain::{InvalidTime, TaskId, Timestamp, Violation};

/// A fault in one value, before it is known where the value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub reason: Cow<'static, str>,
    /// What would be accepted.
    pub expected: Cow<'static, str>,
}

impl Fault {
    /// A fault.
    pub fn new(
        reason: impl Into<Cow<'static, str>>,
        expected: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            reason: reason.into(),
            expected: expected.into(),
        }
    }
}

/// Why a value is refused.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// The value itself is refused.
    Here(Fault),
    /// Values inside it are refused; the paths begin at the parameters.
    Inside(Vec<Violation>),
}

impl Refusal {
    fn new(reason: impl Into<Cow<'static, str>>, expected: impl Into<Cow<'static, str>>) -> Self {
        Self::Here(Fault::new(reason, expected))
    }

    /// What would be accepted.
    #[must_use]
    pub fn expected(self) -> Cow<'static, str> {
        match self {
            Self::Here(fault) => fault.expected,
            Self::Inside(violations) => violations
                .into_iter()
                .next()
                .map_or(Cow::Borrowed("a value"), |v| Cow::Owned(v.expected)),
        }
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::Here(fault)
    }
}

/// A kind of value. Schema and parser stand side by side, so that neither changes alone.
pub trait Kind {
    /// What a valid value becomes.
    type Out;

    /// The JSON Schema (draft-07) of the values that are taken. `$ref` leads to the components of
    /// the OpenRPC document.
    fn schema(&self) -> Value;

    /// Reads a value.
    ///
    /// # Errors
    /// What is wrong with it.
    fn parse(&self, value: &Value) -> Result<Self::Out, Refusal>;
}

/// A kind whose values can be written down again, and so be shown as a default.
pub trait Written: Kind {
    /// The JSON that is read as `value`.
    fn write(&self, value: &Self::Out) -> Value;
}

/// The id of a stored task.
#[derive(Debug, Clone, Copy)]
pub struct StoredId;

/// The id of a stored task.
pub const TASK_ID: StoredId = StoredId;

impl Kind for StoredId {
    type Out = TaskId;

    fn schema(&self) -> Value {
        json!({"$ref": "#/components/schemas/TaskId"})
    }

    /// `Invalid UUID format`, the protocol's own words, for any other string.
    fn parse(&self, value: &Value) -> Result<TaskId, Refusal> {
        const EXPECTED: &str = "a UUID v4";
        let text = value
            .as_str()
            .ok_or_else(|| Refusal::new("not a string", EXPECTED))?;
        TaskId::parse(text).map_err(|_| Refusal::new("Invalid UUID format", EXPECTED))
    }
}

/// `true` or `false`; not 0, 1 or strings.
#[derive(Debug, Clone, Copy)]
pub struct Boolean;

/// `true` or `false`; not 0, 1 or strings.
pub const BOOLEAN: Boolean = Boolean;

impl Kind for Boolean {
    type Out = bool;

    fn schema(&self) -> Value {
        json!({"type": "boolean"})
    }

    fn parse(&self, value: &Value) -> Result<bool, Refusal> {
        value
            .as_bool()
            .ok_or_else(|| Refusal::new("not a boolean", "true or false"))
    }
}

impl Written for Boolean {
    fn write(&self, value: &bool) -> Value {
        Value::Bool(*value)
    }
}

/// A string of 1 to so many Unicode scalar values.
#[derive(Debug, Clone, Copy)]
pub struct Text {
    chars_max: usize,
}

/// A string of 1 to `chars_max` Unicode scalar values.
#[must_use]
pub const fn text(chars_max: usize) -> Text {
    Text { chars_max }
}

impl Kind for Text {
    type Out = String;

    fn schema(&self) -> Value {
        json!({"type": "string", "minLength": 1, "maxLength": self.chars_max})
    }

    fn parse(&self, value: &Value) -> Result<String, Refusal> {
        let chars_max = self.chars_max;
        let expected = || format!("a string of 1 to {chars_max} characters");
        let text = value
            .as_str()
            .ok_or_else(|| Refusal::new("not a string", expected()))?;
        // Bytes first: counting characters costs a pass.
        if text.is_empty() {
            Err(Refusal::new("empty", expected()))
        } else if text.len() > chars_max && text.chars().count() > chars_max {
            Err(Refusal::new("too long", expected()))
        } else {
            Ok(text.to_owned())
        }
    }
}

/// A whole number in a range; `3.0` is one, as in JSON Schema.
#[derive(Debug, Clone)]
pub struct Integer {
    range: RangeInclusive<u64>,
}

/// A whole number in `range`; `3.0` is one, as in JSON Schema.
#[must_use]
pub const fn integer(range: RangeInclusive<u64>) -> Integer {
    Integer { range }
}

impl Integer {
    fn expected(&self) -> String {
        match (*self.range.start(), *self.range.end()) {
            (start, u64::MAX) => format!("an integer of {start} or more"),
            (start, end) => format!("an integer from {start} to {end}"),
        }
    }
}

impl Kind for Integer {
    type Out = u64;

    fn schema(&self) -> Value {
        let (minimum, maximum) = (*self.range.start(), *self.range.end());
        json!({"type": "integer", "minimum": minimum, "maximum": maximum})
    }

    fn parse(&self, value: &Value) -> Result<u64, Refusal> {
        /// 2^53: whole numbers above it are not exact as JSON floats.
        const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
        let number = value
            .as_number()
            .ok_or_else(|| Refusal::new("not an integer", self.expected()))?;
        let whole = number.as_u64().or_else(|| {
            number
                .as_f64()
                .filter(|n| n.fract() == 0.0 && (0.0..=EXACT_MAX).contains(n))
                .map(|n| n as u64)
        });
        match whole {
            Some(n) if self.range.contains(&n) => Ok(n),
            Some(_) => Err(Refusal::new("out of range", self.expected())),
            None if number.as_f64().is_some_and(|n| n.fract() != 0.0) => {
                Err(Refusal::new("not an integer", self.expected()))
            }
            None => Err(Refusal::new("out of range", self.expected())),
        }
    }
}

impl Written for Integer {
    fn write(&self, value: &u64) -> Value {
        Value::from(*value)
    }
}

/// Seconds up to a bound, as milliseconds; fractions are taken.
#[derive(Debug, Clone, Copy)]
pub struct Seconds {
    max: u32,
}

/// 0 to `max` seconds, as milliseconds; fractions are taken.
#[must_use]
pub const fn seconds(max: u32) -> Seconds {
    Seconds { max }
}

impl Kind for Seconds {
    type Out = u64;

    fn schema(&self) -> Value {
        json!({"type": "number", "minimum": 0, "maximum": self.max})
    }

    fn parse(&self, value: &Value) -> Result<u64, Refusal> {
        let expected = || format!("a number of seconds from 0 to {}", self.max);
        let seconds = value
            .as_f64()
            .ok_or_else(|| Refusal::new("not a number", expected()))?;
        if (0.0..=f64::from(self.max)).contains(&seconds) {
            Ok((seconds * 1000.0) as u64)
        } else {
            Err(Refusal::new("out of range", expected()))
        }
    }
}

impl Written for Seconds {
    fn write(&self, ms: &u64) -> Value {
        if ms.is_multiple_of(1000) {
            Value::from(ms / 1000)
        } else {
            Value::from(*ms as f64 / 1000.0)
        }
    }
}

/// One of a few words.
#[derive(Debug, Clone, Copy)]
pub struct Choice<T: 'static> {
    reason: &'static str,
    words: &'static [(&'static str, T)],
}

/// One of `words`; any other value is refused with `reason`.
#[must_use]
pub const fn choice<T>(reason: &'static str, words: &'static [(&'static str, T)]) -> Choice<T> {
    Choice { reason, words }
}

impl<T: Copy + PartialEq> Kind for Choice<T> {
    type Out = T;

    fn schema(&self) -> Value {
        let words: Vec<_> = self.words.iter().map(|(word, _)| *word).collect();
        json!({"type": "string", "enum": words})
    }

    fn parse(&self, value: &Value) -> Result<T, Refusal> {
        let found = value
            .as_str()
            .and_then(|text| self.words.iter().find(|(word, _)| *word == text));
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let words: Vec<_> = self.words.iter().map(|(word, _)| *word).collect();
            Refusal::new(self.reason, format!("one of {}", words.join(", ")))
        })
    }
}

impl<T: Copy + PartialEq> Written for Choice<T> {
    fn write(&self, value: &T) -> Value {
        let found = self.words.iter().find(|(_, meaning)| meaning == value);
        let (word, _) = found.expect("a choice has a word for each of its values");
        Value::from(*word)
    }
}

/// One of the protocol's statuses.
pub const STATUS: Choice<Status> = choice(
    "not a status",
    &[
        ("pending", Status::Pending),
        ("in_progress", Status::InProgress),
        ("completed", Status::Completed),
        ("failed", Status::Failed),
        ("cancelled", Status::Cancelled),
    ],
);

/// How urgent a task is: 0 to 3.
#[derive(Debug, Clone, Copy)]
pub struct Urgency;

/// How urgent a task is: 0 to 3.
pub const PRIORITY: Urgency = Urgency;

impl Kind for Urgency {
    type Out = Priority;

    fn schema(&self) -> Value {
        integer(0..=3).schema()
    }

    fn parse(&self, value: &Value) -> Result<Priority, Refusal> {
        let range = integer(0..=3);
        let number = range.parse(value)?;
        u8::try_from(number)
            .ok()
            .and_then(Priority::new)
            .ok_or_else(|| Refusal::new("out of range", range.expected()))
    }
}

/// A point in time in RFC 3339.
#[derive(Debug, Clone, Copy)]
pub struct PointInTime;

/// A point in time in RFC 3339.
pub const TIMESTAMP: PointInTime = PointInTime;

impl Kind for PointInTime {
    type Out = Timestamp;

    fn schema(&self) -> Value {
        json!({"type": "string", "format": "date-time"})
    }

    fn parse(&self, value: &Value) -> Result<Timestamp, Refusal> {
        const EXPECTED: &str = "RFC 3339, for example 2026-01-31T12:00:00Z";
        let parsed = value.as_str().map(Timestamp::parse);
        parsed
            .unwrap_or(Err(InvalidTime::Form))
            .map_err(|invalid| match invalid {
                InvalidTime::Form => Refusal::new("not a point in time", EXPECTED),
                InvalidTime::Range => Refusal::new("year out of range", invalid.expected()),
                InvalidTime::LeapSecond => Refusal::new("second out of range", invalid.expected()),
            })
    }
}

/// The schema that also takes `null`, which counts as absent.
#[must_use]
pub fn or_null(mut schema: Value) -> Value {
    let Some(members) = schema.as_object_mut() else {
        return schema;
    };
    match members.get_mut("type") {
        Some(Value::String(one)) => {
            let one = std::mem::take(one);
            members.insert("type".to_owned(), json!([one, "null"]));
            if let Some(Value::Array(words)) = members.get_mut("enum") {
                words.push(Value::Null);
            }
            schema
        }
        Some(Value::Array(kinds)) if kinds.contains(&json!("null")) => schema,
        _ => Value::Object(Map::from_iter([(
            "anyOf".to_owned(),
            json!([schema, {"type": "null"}]),
        )])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason<T: std::fmt::Debug>(parsed: Result<T, Refusal>) -> Cow<'static, str> {
        match parsed.unwrap_err() {
            Refusal::Here(fault) => fault.reason,
            Refusal::Inside(violations) => panic!("{violations:?}"),
        }
    }

    #[test]
    fn whole_numbers_may_be_written_as_floats() {
        let range = integer(0..=1000);
        assert_eq!(range.parse(&json!(5)), Ok(5));
        assert_eq!(range.parse(&json!(5.0)), Ok(5));
        for (value, expected) in [
            (json!(5.5), "not an integer"),
            (json!(-1), "out of range"),
            (json!(1e300), "out of range"),
            (json!("5"), "not an integer"),
            (json!(1001), "out of range"),
        ] {
            assert_eq!(reason(range.parse(&value)), expected, "{value}");
        }
    }

    #[test]
    fn characters_are_counted_and_not_bytes() {
        assert_eq!(text(2).parse(&json!("éé")), Ok("éé".to_owned()));
        assert_eq!(reason(text(2).parse(&json!("ééé"))), "too long");
        assert_eq!(reason(text(2).parse(&json!(""))), "empty");
    }

    #[test]
    fn every_status_has_a_word() {
        for status in Status::ALL {
            assert_eq!(STATUS.parse(&json!(status.as_str())), Ok(status));
            assert_eq!(STATUS.write(&status), status.as_str());
        }
    }

    #[test]
    fn null_can_be_added_to_any_schema() {
        assert_eq!(
            or_null(STATUS.schema())["enum"][5],
            Value::Null,
            "a word list names null too"
        );
        assert_eq!(
            or_null(BOOLEAN.schema()),
            json!({"type": ["boolean", "null"]})
        );
        assert_eq!(
            or_null(or_null(BOOLEAN.schema())),
            json!({"type": ["boolean", "null"]})
        );
        assert_eq!(
            or_null(TASK_ID.schema()),
            json!({"anyOf": [TASK_ID.schema(), {"type": "null"}]})
        );
    }
}
