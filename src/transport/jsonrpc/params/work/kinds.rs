//! Kinds of values that calls of workers have.

use super::super::super::methods::tokens::kinds::each;
use super::super::super::reader::{Fault, Integer, Kind, Reader, Refusal, TASK_ID, integer};
use crate::application::api::work::{Output, is_unseen};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use taskledger_domain::contract::TooLarge;
use taskledger_domain::flow::OutputPart;
use taskledger_domain::limits::{KEY_CHARS_MAX, OUTPUT_PART_BYTES_MAX};
use taskledger_domain::payload::Unfit;
use taskledger_domain::question::is_answer;
use taskledger_domain::task::Progress;
use taskledger_domain::text::name_pattern;
use taskledger_domain::{LeaseId, Payload, SuspensionId, TaskId};

/// Methods of one claim.
pub const METHODS_MAX: usize = 100;
/// Seconds that a lease holds unless the worker says otherwise.
pub const LEASE_SECONDS_DEFAULT: u64 = 60;
/// Characters of what may be meant as the token of a lease.
const LEASE_CHARS_MAX: usize = 255;

/// Seconds that a lease can hold.
#[must_use]
pub const fn lease_seconds() -> Integer {
    integer(5..=3600)
}

/// A text that is not empty; what exceeds so many bytes is cut off.
#[derive(Debug, Clone, Copy)]
pub struct CutText {
    /// Bytes that are kept.
    pub bytes_max: usize,
}

impl Kind for CutText {
    type Out = String;

    fn schema(&self) -> Value {
        json!({"type": "string", "minLength": 1})
    }

    fn parse(&self, value: &Value) -> Result<String, Refusal> {
        let expected = "a string of at least 1 character";
        let text = value
            .as_str()
            .ok_or_else(|| Fault::new("not a string", expected))?;
        if text.is_empty() {
            return Err(Fault::new("empty", expected).into());
        }
        Ok(text[..text.floor_char_boundary(self.bytes_max)].to_owned())
    }
}

/// A name: of a worker or a method.
#[derive(Debug, Clone, Copy)]
pub struct NameText;

impl Kind for NameText {
    type Out = Arc<str>;

    fn schema(&self) -> Value {
        json!({"type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX})
    }

    fn parse(&self, value: &Value) -> Result<Arc<str>, Refusal> {
        let expected = || format!("a string of 1 to {KEY_CHARS_MAX} characters");
        let text = value
            .as_str()
            .ok_or_else(|| Fault::new("not a string", expected()))?;
        if text.is_empty() {
            Err(Fault::new("empty", expected()).into())
        } else if fits(text, KEY_CHARS_MAX) {
            Ok(Arc::from(text))
        } else {
            Err(Fault::new("too long", expected()).into())
        }
    }
}

/// The name by which a worker or a method is to be known: people read it in lists.
#[derive(Debug, Clone, Copy)]
pub struct NewName;

impl Kind for NewName {
    type Out = Arc<str>;

    fn schema(&self) -> Value {
        json!({"type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX, "pattern": name_pattern()})
    }

    fn parse(&self, value: &Value) -> Result<Arc<str>, Refusal> {
        let name = NameText.parse(value)?;
        match fault_of(&name) {
            None => Ok(name),
            Some(fault) => {
                let expected = format!("1 to {KEY_CHARS_MAX} characters {DISTINCT}");
                Err(Fault::new(fault, expected).into())
            }
        }
    }
}

/// What is expected of a name that people read in lists, behind the number of its characters.
pub(in crate::transport::jsonrpc) const DISTINCT: &str = "without white space at its ends, control characters, and characters that are not seen or change the direction of text";

/// Why a name could be taken for another one in a list.
pub(in crate::transport::jsonrpc) fn fault_of(name: &str) -> Option<&'static str> {
    if name.contains(is_unseen) {
        Some("has characters that are not shown")
    } else if name.trim() == name {
        None
    } else {
        Some("has white space at its ends")
    }
}

/// The methods of which a worker wants tasks, not empty.
#[derive(Debug, Clone, Copy)]
pub struct MethodNames;

impl Kind for MethodNames {
    type Out = Arc<[Arc<str>]>;

    fn schema(&self) -> Value {
        json!({"type": "array", "minItems": 1, "maxItems": METHODS_MAX, "items": NewName.schema()})
    }

    fn parse(&self, value: &Value) -> Result<Self::Out, Refusal> {
        let expected = || format!("1 to {METHODS_MAX} names of methods");
        let methods = each(value, "methods", METHODS_MAX, expected, |item| {
            let name = NewName.parse(item);
            name.map_err(|refusal| ("not the name of a method", refusal.expected().into_owned()))
        })?;
        Ok(Arc::from(methods))
    }
}

/// The token of a lease. A text that no server has given is nobody's lease, which the call finds out: so
/// worker and server need not agree about the form.
#[derive(Debug, Clone, Copy)]
pub struct LeaseToken;

impl Kind for LeaseToken {
    type Out = Option<LeaseId>;

    fn schema(&self) -> Value {
        json!({"type": "string", "minLength": 1, "maxLength": LEASE_CHARS_MAX})
    }

    fn parse(&self, value: &Value) -> Result<Self::Out, Refusal> {
        let expected = "the `token` of a lease, as `tasks.claim` gave it";
        let text = value
            .as_str()
            .ok_or_else(|| Fault::new("not a string", expected))?;
        if text.is_empty() || !fits(text, LEASE_CHARS_MAX) {
            return Err(Fault::new("not the token of a lease", expected).into());
        }
        Ok(LeaseId::parse(text).ok())
    }
}

/// The id of a wait for a person.
#[derive(Debug, Clone, Copy)]
pub struct SuspensionText;

impl Kind for SuspensionText {
    type Out = SuspensionId;

    fn schema(&self) -> Value {
        json!({"type": "string", "format": "uuid"})
    }

    fn parse(&self, value: &Value) -> Result<SuspensionId, Refusal> {
        const EXPECTED: &str = "the `suspension_id` that the task shows";
        let text = value
            .as_str()
            .ok_or_else(|| Fault::new("not a string", EXPECTED))?;
        Ok(SuspensionId::parse(text).map_err(|_| Fault::new("Invalid UUID format", EXPECTED))?)
    }
}

/// An answer, as an object with it as `value`; as large and as deep as `inputs` of tasks may be.
#[derive(Debug, Clone, Copy)]
pub struct Answer;

impl Kind for Answer {
    type Out = Payload;

    fn schema(&self) -> Value {
        json!({"type": ["boolean", "number", "string", "object"], "minLength": 1})
    }

    fn parse(&self, value: &Value) -> Result<Payload, Refusal> {
        if !is_answer(value) {
            let expected = "true or false, a number, a text that is not empty, or an object";
            return Err(Fault::new("no answer", expected).into());
        }
        let mut answer = Map::new();
        answer.insert("value".to_owned(), value.clone());
        let payload = Payload::checked(&answer);
        Ok(payload.map_err(|unfit| Fault::new(unfit.reason(), unfit.expected()))?)
    }
}

/// A part of an output: a text that is not empty, or an object.
#[derive(Debug, Clone, Copy)]
pub struct OutputText;

impl Kind for OutputText {
    type Out = OutputPart;

    fn schema(&self) -> Value {
        json!({"type": ["string", "object"], "minLength": 1})
    }

    fn parse(&self, value: &Value) -> Result<OutputPart, Refusal> {
        let expected = || {
            format!(
                "a text that is not empty, or an object, of at most {OUTPUT_PART_BYTES_MAX} bytes"
            )
        };
        let part = match value {
            Value::String(text) if !text.is_empty() => OutputPart::Text(text.clone()),
            Value::Object(members) => {
                let payload = Payload::checked(members);
                OutputPart::Data(
                    payload.map_err(|unfit| Fault::new(unfit.reason(), unfit.expected()))?,
                )
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => {
                return Err(Fault::new("no part of an output", expected()).into());
            }
        };
        if part.bytes() > OUTPUT_PART_BYTES_MAX {
            let reason = format!("Too large: {} bytes", part.bytes());
            return Err(Fault::new(reason, expected()).into());
        }
        Ok(part)
    }
}

/// How much of a task is done, 0 to 1.
#[derive(Debug, Clone, Copy)]
pub struct Fraction;

impl Kind for Fraction {
    type Out = Progress;

    fn schema(&self) -> Value {
        json!({"type": "number", "minimum": 0, "maximum": 1})
    }

    fn parse(&self, value: &Value) -> Result<Progress, Refusal> {
        let expected = "a number from 0 to 1";
        let number = value
            .as_f64()
            .ok_or_else(|| Fault::new("not a number", expected))?;
        if (0.0..=1.0).contains(&number) {
            Ok(Progress::from_millionths((number * 1e6) as u32))
        } else {
            Err(Fault::new("out of range", expected).into())
        }
    }
}

/// What came of a task: a JSON object. How large it is, is for the service to refuse, which records that.
#[derive(Debug, Clone, Copy)]
pub struct Outcome;

impl Kind for Outcome {
    type Out = Output;

    fn schema(&self) -> Value {
        Object.schema()
    }

    fn parse(&self, value: &Value) -> Result<Output, Refusal> {
        let members = value
            .as_object()
            .ok_or_else(|| Fault::new("not an object", "an object"))?;
        let output = TooLarge::unless_fits(members).map(Output::from);
        Ok(output.map_err(|unfit| Fault::new(unfit.reason(), unfit.expected()))?)
    }
}

/// A JSON object whose text is kept; as large and as deep as `inputs` of tasks may be.
#[derive(Debug, Clone, Copy)]
pub struct Object;

impl Kind for Object {
    type Out = Payload;

    fn schema(&self) -> Value {
        json!({"type": "object"})
    }

    fn parse(&self, value: &Value) -> Result<Payload, Refusal> {
        let members = value
            .as_object()
            .ok_or_else(|| Fault::new("not an object", "an object"))?;
        let payload = Payload::checked(members);
        let fault = |unfit: Unfit| {
            let largest = match unfit {
                Unfit::TooLarge(_) => largest(members),
                Unfit::TooDeep(_) | Unfit::ReservedName => None,
            };
            let more = largest.map_or_else(String::new, |(key, bytes)| {
                format!(", {bytes} of them in `{key}`")
            });
            Fault::new(unfit.reason() + &more, unfit.expected())
        };
        Ok(payload.map_err(fault)?)
    }
}

/// The member with the most bytes of JSON, and how many.
fn largest(members: &Map<String, Value>) -> Option<(&str, usize)> {
    let sizes = members
        .iter()
        .map(|(key, value)| (key.as_str(), value.to_string().len()));
    sizes.max_by_key(|(_, bytes)| *bytes)
}

/// Asks for the task and for the lease under which it is held.
pub(super) fn held(reader: &mut Reader<'_>) -> (Option<TaskId>, Option<Option<LeaseId>>) {
    let task = reader.required("task_id", TASK_ID, "The claimed task.");
    let lease = reader.required(
        "lease",
        LeaseToken,
        "The `token` of its lease. It is good only together with the principal that claimed the task.",
    );
    (task, lease)
}

fn fits(text: &str, chars_max: usize) -> bool {
    text.len() <= chars_max || text.chars().count() <= chars_max
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_no_lease_of_this_server_is_taken_and_is_nobodys() {
        assert_eq!(LeaseToken.parse(&json!("0815")), Ok(None));
        let id = "0f8fad5b-d9cb-469f-a165-70867728950e";
        assert_eq!(
            LeaseToken.parse(&json!(id)),
            Ok(Some(LeaseId::parse(id).unwrap()))
        );
        for wrong in [json!(""), json!(1), json!("x".repeat(256))] {
            assert!(LeaseToken.parse(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_fraction_is_a_number_from_0_to_1() {
        assert_eq!(Fraction.parse(&json!(0)), Ok(Progress::ZERO));
        assert_eq!(Fraction.parse(&json!(1.0)), Ok(Progress::DONE));
        assert_eq!(
            Fraction.parse(&json!(0.25)),
            Ok(Progress::from_millionths(250_000))
        );
        for wrong in [json!(1.1), json!(-0.1), json!("1")] {
            assert!(Fraction.parse(&wrong).is_err(), "{wrong}");
        }
    }
}
